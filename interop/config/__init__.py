"""Configurations: what nats-server takes and what it does not, and that Fanline agrees."""
