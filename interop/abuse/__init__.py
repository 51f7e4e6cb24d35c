"""Peers that misbehave, next to a correct publisher and subscriber that must lose no message."""
