"""Power cuts of real server processes on a file system that forgets."""
