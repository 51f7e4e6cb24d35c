"""Configurations that nats-server accepts or refuses. Fanline must decide alike."""
