"""Cases: each is one attack that must fail, and names its attacker."""

import dataclasses
from collections.abc import Callable

# Attackers: a peer without credentials, a client with few rights, the owner of an account (with all rights in
# it), an operator, and an attacker that reads or writes the store folder.
ATTACKERS = ("anonymous", "client", "owner", "operator", "disk")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    attacker: str
    play: Callable[[], None]


CASES: list[Case] = []


def attack(attacker: str, name: str):
    """Registers a function as a case. The function raises if its attack succeeds."""
    assert attacker in ATTACKERS, attacker

    def register(play: Callable[[], None]):
        CASES.append(Case(name, attacker, play))
        return play

    return register
