"""Sends raw bytes to nats-server and to the server under test, and compares their answers."""
