"""Attacks on a running server, sorted by attacker and target."""
