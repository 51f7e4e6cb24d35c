"""Plays every case with nats-server and the server under test, and compares their answers."""

import os
import tempfile

import pytest

from harness.differential import deliberate, expect, survives
from harness.server import Server, port_free, reference_server, server_under_test, wait_until_listening
from websocket.cases import CASES
from websocket.session import play

# nats-server may close before it has written everything. The order of the two is random.
REFERENCE_PLAYS_MAX = 5
# For each kind of server: settings inside the `websocket` block next to its address, and settings outside of it.
SERVERS = {
    "plain": ("", ""),
    "deflate": ("compression: true", ""),
    "same": ("same_origin: true", ""),
    "allowed": ('allowed_origins: ["http://a.example", "https://b.example:8443"]', ""),
    "leaf": ("", "leafnodes { host: 127.0.0.1, port: -1 }"),
    "mqtt": ("", "mqtt { host: 127.0.0.1, port: -1 }\nserver_name: one\njetstream { store_dir: STORE }"),
    "small": ("compression: true", "max_payload: 100"),
    "cookies": ("user_cookie: u, pass_cookie: p", "authorization { user: alice, password: secret }"),
    "headers": ('headers { X-One: "1", X-Two: "a b" }', ""),
    "advertise": ("advertise: 'w.example:443'", "client_advertise: 'c.example:4222'"),
}
DIFFERENCES = deliberate(__file__, [case.name for case in CASES])


class Listener(Server):
    """A server with a WebSocket listener."""

    def __init__(self, binary: str, kind: str, folder: str):
        inside, beside = SERVERS[kind]
        self.websocket_port = port_free()
        os.makedirs(folder)
        path = os.path.join(folder, "server.conf")
        with open(path, "w") as file:
            file.write(f"websocket {{ host: 127.0.0.1, port: {self.websocket_port}, no_tls: true\n{inside} }}\n")
            file.write(beside.replace("STORE", os.path.join(folder, "store")))
        super().__init__(binary, "-c", path)

    def start(self):
        super().start()
        wait_until_listening(self.websocket_port, self.process, self.output)


@pytest.fixture(scope="module")
def listeners(request):
    with tempfile.TemporaryDirectory() as folder:
        wanted = Listener(reference_server(), request.param, os.path.join(folder, "wanted"))
        found = Listener(server_under_test(), request.param, os.path.join(folder, "found"))
        with wanted, found:
            yield wanted, found


@pytest.mark.parametrize(
    "listeners, case", [pytest.param(case.server, case, id=case.name) for case in CASES], indirect=["listeners"]
)
def test_websocket(listeners, case):
    reference, under_test = listeners
    with survives(under_test):
        found = play(case, under_test.websocket_port)
    difference = DIFFERENCES["cases"].get(case.name)
    for _ in range(1 if difference else REFERENCE_PLAYS_MAX):
        wanted = play(case, reference.websocket_port)
        if wanted == found:
            break
    if case.info:
        wanted, found = (
            [line for line in lines if line.strip().split(":")[0] not in DIFFERENCES["info_keys"]] for lines in (wanted, found)
        )
    if difference or not is_cut_short(wanted, found):
        expect(wanted, found, difference)


def is_cut_short(wanted: list[str], found: list[str]) -> bool:
    """Returns whether the reference closed before it sent everything that the server under test sends."""
    ends_alike = wanted[-1:] == found[-1:] == ["closed"]
    return ends_alike and wanted[:-1] == found[: len(wanted) - 1]
