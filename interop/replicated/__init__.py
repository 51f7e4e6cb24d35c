"""Streams with three replicas, on three servers of one kind."""
