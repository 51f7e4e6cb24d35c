"""Cases, and the servers that they run with."""

from dataclasses import dataclass
from typing import Callable

from mqtt.brokers import FANLINE, MOSQUITTO, NATS, Kind
from mqtt.packets import V4, V5

BOTH = (V4, V5)
LABELS = {V4: "3.1.1", V5: "5.0"}


@dataclass(frozen=True)
class Case:
    group: str
    name: str
    run: Callable
    version: int | None
    # Servers that behave differently, each with a description.
    differs: dict[str, str]
    # Whether the case needs NATS clients.
    nats: bool
    # Whether the case kills the server.
    kills: bool

    def title(self) -> str:
        version = f" ({LABELS[self.version]})" if self.version else ""
        return f"{self.group}: {self.name}{version}"

    def is_for(self, kind: Kind) -> bool:
        """Returns whether a server of this kind is expected to pass."""
        return (
            (self.version is None or self.version in kind.versions)
            and (not self.nats or kind.nats)
            and (not self.kills or kind.durable)
            and kind.name not in self.differs
        )


CASES: list[Case] = []


def case(group: str, *versions: int, differs=None, nats=False, kills=False):
    """Registers a function as a case with the function's name, once for each version. The function receives a
    broker, and the version if there are any."""

    def register(function):
        name = function.__name__.replace("_", " ")
        for version in versions or (None,):
            CASES.append(Case(group, name, function, version, differs or {}, nats, kills))
        return function

    return register


def differs(nats: str = "", mosquitto: str = "", fanline: str = "") -> dict[str, str]:
    """Returns descriptions of how references, or Fanline, behave differently."""
    found = {NATS: nats, MOSQUITTO: mosquitto, FANLINE: fanline}
    return {name: why for name, why in found.items() if why}


__all__ = ["BOTH", "CASES", "FANLINE", "Case", "case", "differs"]
