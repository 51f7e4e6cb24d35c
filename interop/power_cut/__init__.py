"""Simulated power cuts of real server processes, on a disk that loses unsynced data."""
