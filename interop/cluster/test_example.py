"""Runs the script `examples/cluster/run` as `docs/how-to/cluster.md` describes it."""

import os
import re
import subprocess

import pytest

from harness.checks import check, equal
from harness.server import is_reference, reference_server, server_under_test
from leaf.test_supercluster import first_port

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "cluster", "run")
SECONDS_MAX = 300


def run(*arguments: str) -> str:
    names = {"NATS_SERVER": reference_server(), "FANLINE": server_under_test(), "PORT": str(first_port())}
    done = subprocess.run(
        [SCRIPT, *arguments], env=os.environ | names, capture_output=True, text=True, timeout=SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    equal(done.returncode, 0, f"the exit code ({done.stdout}{done.stderr})")
    return done.stdout


# The script uses Fanline's own tools.
@pytest.mark.skipif(is_reference(), reason="no tools of nats-server")
def test_show():
    said = run()
    equal(said.count("hello from server-1"), 2, f"subscribers that received the message ({said})")
    check("it is noon" in said, f"the request was not answered: {said}")


@pytest.mark.skipif(is_reference(), reason="no tools of nats-server")
def test_exchange():
    """All messages arrive that are published while each server has routes to the others."""
    said = run("--exchange")
    found = re.search(r"(\d+) messages were published, (\d+) received", said)
    check(found is not None, said)
    equal(found[2], found[1], f"the received messages ({said})")
    equal(found[1], "300", "the published messages")
