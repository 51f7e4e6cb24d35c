"""Plays every case with nats-server and with the server under test, and compares their answers."""

import difflib
import os
import tempfile

import pytest

from harness.differential import Differs, deliberate, survives
from harness.server import Server, port_free, reference_server, server_under_test
from jetstream import accounts, cases, corners, events, fields, mixtures, monitoring, publishes
from jetstream.session import play

# Results of concurrent requests depend on timing in both servers. For example, nats-server sometimes loses an event
# of a stream that is deleted at the same time as a consumer. If answers differ, the case is played again on nats-server
# alone. It passes only if nats-server then answers as the server under test did at its one play.
REFERENCE_PLAYS_MAX = 5
CASES = cases.CASES + fields.CASES + publishes.CASES + corners.CASES + mixtures.CASES + events.CASES + monitoring.CASES
DIFFERENCES = deliberate(__file__, [case.name for case in CASES + accounts.CASES])


def parameter(case):
    """A deliberate difference that disappears is a failure."""
    why = DIFFERENCES.get(case.name)
    marks = [pytest.mark.xfail(raises=Differs, reason=why)] if why else []
    return pytest.param(case, id=case.name, marks=marks)


@pytest.fixture(scope="module")
def servers():
    with tempfile.TemporaryDirectory() as folder:
        with monitored(reference_server(), "-js", "-sd", f"{folder}/wanted") as reference:
            with monitored(server_under_test(), "-js", "-sd", f"{folder}/found") as under_test:
                yield reference, under_test


@pytest.fixture(scope="module")
def servers_with_accounts():
    with tempfile.TemporaryDirectory() as folder:
        for role in ("wanted", "found"):
            with open(os.path.join(folder, role), "w") as file:
                file.write(accounts.configuration(os.path.join(folder, f"store-{role}")))
        with monitored(reference_server(), "-c", f"{folder}/wanted") as reference:
            with monitored(server_under_test(), "-c", f"{folder}/found") as under_test:
                yield reference, under_test


def monitored(binary: str, *flags: str) -> Server:
    port = port_free()
    server = Server(binary, *flags, "-m", str(port))
    server.monitor = port
    return server


@pytest.mark.parametrize("case", [parameter(case) for case in CASES])
def test_jetstream(servers, case, record_property):
    compare(case, *servers, play, record_property)


@pytest.mark.parametrize("case", [parameter(case) for case in accounts.CASES])
def test_accounts(servers_with_accounts, case, record_property):
    compare(case, *servers_with_accounts, accounts.play, record_property)


def compare(case, reference: Server, under_test: Server, play, record_property):
    with survives(under_test):
        found = play(case, under_test.port, under_test.monitor)
    plays_max = 1 if case.name in DIFFERENCES else REFERENCE_PLAYS_MAX
    for number in range(plays_max):
        wanted = play(case, reference.port, reference.monitor)
        if wanted == found:
            record_property("plays of nats-server", number + 1)
            return
    raise Differs("\n" + "\n".join(differing(wanted, found)))


def differing(wanted, found):
    """Yields the lines that differ, each after the request that it belongs to."""
    asked = None
    for line in difflib.ndiff(wanted, found):
        if line.startswith("  ") and not line.startswith("    "):
            asked = line
        elif line.startswith(("- ", "+ ")):
            if asked:
                yield asked
            asked = None
            yield line
