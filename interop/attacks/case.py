"""Cases: each is one attack that must fail, and says who the attacker is."""

import dataclasses
from collections.abc import Callable

# Who attacks: somebody without credentials, a client with few rights, the owner of an account (all rights within it),
# an operator, or somebody who reads or writes the store folder.
ATTACKERS = ("anonymous", "client", "owner", "operator", "disk")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    attacker: str
    play: Callable[[], None]


CASES: list[Case] = []


def attack(attacker: str, name: str):
    """Registers a function as a case. It raises if the attack succeeds."""
    assert attacker in ATTACKERS, attacker

    def register(play: Callable[[], None]):
        CASES.append(Case(name, attacker, play))
        return play

    return register
