"""Peers that misbehave, while a good pair goes on exchanging messages and must lose nothing."""
