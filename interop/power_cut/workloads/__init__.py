"""What clients do until the power fails, and what they may count on afterwards."""

import random

from power_cut.clients import Place
from power_cut.ledger import Ledger, Op


class Workload:
    """One kind of use. `run` goes on until it is cancelled or its connection ends; it may begin with a ledger that is
    not empty, on a server that holds what a power cut has left. `check` must raise `Broken`."""

    # How long a life takes, at least.
    seconds = 1.2

    def __init__(self, name: str, seed: int):
        self.name = name
        self.random = random.Random(f"{name} {seed}")

    async def run(self, place: Place, ledger: Ledger):
        raise NotImplementedError

    async def check(self, place: Place, ops: list[Op]):
        raise NotImplementedError

    def compression(self) -> str:
        return self.random.choice(["none", "none", "s2"])


# How each is made, by its name.
ALL: dict[str, type[Workload]] = {}


def workload(*names: str):
    """Registers a class under a name, or under several that it tells apart."""

    def register(cls):
        for name in names:
            assert name not in ALL, name
            ALL[name] = cls
        return cls

    return register


def load():
    """Every module registers its own."""
    from power_cut.workloads import (  # noqa: F401
        batches, consumers, copies, devices, lifecycle, limits, removals, segments,
    )
