"""Leaf nodes: the server under test as spoke, as hub and in between, beside real nats-server processes."""
