"""What clients do until the power fails, and what they may rely on afterwards."""

import random

from power_cut.clients import Place
from power_cut.ledger import Ledger, Op


class Workload:
    """One kind of use. `run` continues until it is canceled or its connection ends. It may start with a ledger
    that is not empty, on a server that holds what a power cut has left. `check` must raise `Broken`."""

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


# The class of each workload, by name.
ALL: dict[str, type[Workload]] = {}


def workload(*names: str):
    """Registers a class under a name. It may have several, by which it varies."""

    def register(cls):
        for name in names:
            assert name not in ALL, name
            ALL[name] = cls
        return cls

    return register


def load():
    """Imports all modules of workloads, which register themselves."""
    from power_cut.workloads import (  # noqa: F401
        batches, consumers, copies, devices, lifecycle, limits, removals, segments,
    )
