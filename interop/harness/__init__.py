"""What the Python suites share: a server process, a raw peer, and a list of results."""
