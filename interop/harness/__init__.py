"""Shared by the suites: server processes, a peer that sends raw bytes, comparisons, tables of cases, and checks."""
