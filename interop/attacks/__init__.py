"""Attacks on a running server, by what the attacker is and what is attacked."""
