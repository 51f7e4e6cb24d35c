"""Runs the script `examples/supercluster/run` as its README describes it."""

import os
import socket
import subprocess

import pytest

from harness.checks import check, equal
from harness.server import is_reference, port_free, reference_server, server_under_test

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "supercluster", "run")
# The script uses this many successive ports.
PORTS = 40
ROUNDS = 3
RECORDS = 1000
SECONDS_MAX = 300


def first_port() -> int:
    """Returns the first of as many successive free ports as the script needs."""
    for _ in range(100):
        first = port_free()
        if first + PORTS < 65536 and all(is_free(port) for port in range(first, first + PORTS)):
            return first
    raise AssertionError("there are not so many free ports in a row")


def is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# This part uses Fanline's own tools.
@pytest.mark.skipif(is_reference(), reason="no tools of nats-server")
def test_supercluster():
    """Messages, requests, and records arrive, also when servers are killed."""
    names = {"NATS_SERVER": reference_server(), "FANLINE": server_under_test(), "PORT": str(first_port())}
    done = subprocess.run(
        [SCRIPT], env=os.environ | names, capture_output=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL,
    )
    said = done.stdout
    equal(done.returncode, 0, f"the exit code ({said}{done.stderr})")
    equal(said.count("hello from edge4"), 2, f"subscribers that got the message ({said})")
    for name in ("edge4", "n1", "n3"):
        check(any(line.split()[1:] == [name] for line in said.splitlines()), f"{name} did not tell of it: {said}")
    check("coffee, tea" in said, f"the request was not answered: {said}")
    for number in range(1, ROUNDS + 1):
        count = number * RECORDS
        for line in (
            f"ORDERS: {count}, asked at edge5",
            f"EVENTS: {count}, asked at edge4; COPY in the cluster: {count}",
        ):
            check(line in said, f"{line!r} was not said: {said}")
