"""Leaf nodes: the server under test as spoke, as hub, and between two servers, together with real nats-servers."""
