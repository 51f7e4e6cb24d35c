"""Cases, and the servers that they run with: first the references, then the server under test.

A case lists servers that behave differently (`differs`), so a case that no server passes is visible.
"""

import pytest

from mqtt.brokers import FANLINE, MOSQUITTO, NATS, kinds
from mqtt.packets import V4, V5

BOTH = (V4, V5)
LABELS = {V4: "3.1.1", V5: "5.0"}
UNDER_TEST, REFERENCES = kinds()
# The titles of all cases, as docs/reference/mqtt-conformance.md names them.
TITLES: list[str] = []


def case(group: str, *versions: int, differs=None, nats=False, kills=False):
    """Runs a test function with each server that is expected to pass, and each version. The function receives a
    broker, and the version if there are any.

    `differs` describes servers that behave differently. `nats` is whether the case needs NATS clients, and `kills`
    whether it kills the server.
    """

    def mark(function):
        name = function.__name__.removeprefix("test_").replace("_", " ")
        parameters = []
        for version in versions or (None,):
            TITLES.append(f"{group}: {name}" + (f" ({LABELS[version]})" if version else ""))
            for kind in (*REFERENCES, UNDER_TEST):
                if (version is None or version in kind.versions) and kind.nats >= nats and kind.durable >= kills:
                    parameters += parameter(kind, version, kills, (differs or {}).get(kind.name))
        names = "broker, version" if versions else "broker"
        return pytest.mark.parametrize(names, parameters, indirect=["broker"])(function)

    return mark


def parameter(kind, version, kills: bool, difference: str | None) -> list:
    """Returns the parameter of one run. Where a reference differs there is none."""
    if difference and kind.name != FANLINE:
        return []
    marks = [pytest.mark.skip(reason=difference)] if difference else []
    title = f"{LABELS[version]}, {kind.name}" if version else kind.name
    return [pytest.param((kind, kills), *([version] if version else []), id=title, marks=marks)]


def differs(nats: str = "", mosquitto: str = "", fanline: str = "") -> dict[str, str]:
    """Returns descriptions of how references, or Fanline, behave differently."""
    found = {NATS: nats, MOSQUITTO: mosquitto, FANLINE: fanline}
    return {name: why for name, why in found.items() if why}


__all__ = ["BOTH", "FANLINE", "case", "differs"]
