"""Shared by the Python suites: a server process, a peer that sends raw bytes, and a report of results."""
