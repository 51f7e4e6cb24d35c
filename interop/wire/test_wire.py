"""Plays every case with nats-server and the server under test, and compares their answers."""

import pytest

from harness.differential import deliberate, expect, survives
from harness.server import Server, reference_server, server_under_test
from wire.cases import CASES
from wire.session import play

SERVERS = {
    "open": (),
    "user": ("--user", "alice", "--pass", "secret"),
    "token": ("--auth", "s3cr3t"),
}
DIFFERENCES = deliberate(__file__, [case.name for case in CASES])


@pytest.fixture(scope="module")
def servers(request):
    flags = SERVERS[request.param]
    with Server(reference_server(), *flags) as reference, Server(server_under_test(), *flags) as under_test:
        yield reference, under_test


@pytest.mark.parametrize(
    "servers, case", [pytest.param(case.server, case, id=case.name) for case in CASES], indirect=["servers"]
)
def test_wire(servers, case):
    reference, under_test = servers
    wanted = play(case, reference.port)
    with survives(under_test):
        found = play(case, under_test.port)
    if case.info:
        found = without_keys(found, DIFFERENCES["info_keys_of_our_own"])
        wanted = without_keys(wanted, DIFFERENCES["info_keys_left_out"])
    expect(wanted, found, DIFFERENCES["cases"].get(case.name))


def without_keys(transcript: list[str], keys: list[str]) -> list[str]:
    return [line for line in transcript if line.strip().split(":")[0] not in keys]
