"""What clients do until the power fails, and what they may rely on afterwards."""

import random
from contextlib import asynccontextmanager

from power_cut.clients import Place, Publisher, connected, make_stream
from power_cut.ledger import Ledger, Op
from power_cut.oracle import Limits, check_stream


class Workload:
    """One kind of use. `run` continues until it is canceled or its connection ends. It may start with a ledger
    that is not empty, on a server that holds what a power cut has left. `check` must raise `Broken`; unless it is
    overridden, it checks one stream with the workload's name."""

    # How long a life takes, at least.
    seconds = 1.2

    def __init__(self, name: str, seed: int):
        self.name = name
        self.random = random.Random(f"{name} {seed}")

    async def run(self, place: Place, ledger: Ledger):
        raise NotImplementedError

    async def check(self, place: Place, ops: list[Op]):
        await check_stream(place, self.name, ops, self.limits(), probe=f"{self.name}.probe")

    def limits(self) -> Limits:
        """Returns the limits of the stream."""
        return Limits()

    @asynccontextmanager
    async def stream(self, place: Place, ledger: Ledger, in_flight: int = 50, **config):
        """Creates a stream unless it exists, by default with the workload's name. Yields a client and a publisher."""
        compression = self.random.choice(["none", "none", "s2"])
        default = {"name": self.name, "subjects": [f"{self.name}.>"], "allow_direct": True, "compression": compression}
        async with connected(place) as client:
            await make_stream(client, ledger, default | config)
            yield client, await Publisher.new(client, ledger, in_flight)


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
