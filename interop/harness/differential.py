"""Compares the server under test with nats-server, whose answers are the expected ones."""

import contextlib
import difflib
import json
import os

from harness.server import Server, is_reference


class Differs(AssertionError):
    """The servers answer differently."""


def deliberate(file: str, names: list[str]) -> dict:
    """Reads `differences.json` next to a test file: the deliberate differences of some cases. nats-server has none
    from itself. `names` are the names of all cases."""
    with open(os.path.join(os.path.dirname(file), "differences.json"), encoding="utf-8") as source:
        differences = json.load(source)
    repeated = {name for name in names if names.count(name) > 1}
    unknown = set(differences.get("cases", differences)) - set(names)
    assert not repeated and not unknown, f"repeated: {repeated}, unknown: {unknown}"
    return {key: type(value)() for key, value in differences.items()} if is_reference() else differences


def expect(wanted: list[str], found: list[str], difference: dict | None = None):
    """Requires equal transcripts. A deliberate difference must still exist, and be the recorded one."""
    if difference and wanted != found and found == difference["found"]:
        return
    if difference:
        was = "differs no more" if wanted == found else "differs otherwise than recorded"
        raise Differs(f"{was}: see differences.json\n" + legible(wanted, found))
    if wanted != found:
        raise Differs("\n" + legible(wanted, found))


def legible(wanted: list[str], found: list[str]) -> str:
    """Returns both transcripts merged: `-` marks lines of nats-server alone, `+` lines of the server under test
    alone."""
    return "\n".join(line for line in difflib.ndiff(wanted, found) if not line.startswith("?"))


@contextlib.contextmanager
def survives(server: Server):
    """Fails if the server ends meanwhile. Restarts it after a failure, so that one crash is only one failure."""
    try:
        yield
        assert server.process.poll() is None, "the server died of it:\n" + server.output()[-2000:]
    except BaseException:
        server.kill()
        server.start()
        raise
