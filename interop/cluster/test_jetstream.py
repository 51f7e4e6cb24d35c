"""JetStream of nats-servers, used by clients of servers under test without JetStream."""

import asyncio
import json
import time

import pytest
from nats.errors import NoRespondersError
from nats.js.client import JetStreamContext
from nats.js.errors import ServiceUnavailableError

from harness.checks import check, equal, until
from harness.client import Client, request_api
from leaf.stage import Node, Stage
from python import test_streams
from python.peers import SECONDS_MAX, connect

from .shapes import block, made, until_meshed

ACCOUNTS = """
accounts {
  A { jetstream: enabled, users: [ { user: a, password: a } ] }
  B { users: [ { user: b, password: b } ] }
  $SYS { users: [ { user: sys, password: sys } ] }
}
"""
SERVERS = 3


def started(stage: Stage, more: str = "") -> list[Node]:
    """Starts three nats-servers with JetStream, and a server under test without it."""
    nodes = made(stage, "rrrt")
    for node in nodes:
        node.write(block(node, nodes), more, node.jetstream() if node in nodes[:SERVERS] else "")
        node.start()
    until_meshed(nodes)
    until(lambda: any(stage.leads(node) for node in nodes[:SERVERS]), "the cluster has no leader", 60)
    until(lambda: all(stage.is_current(node) for node in nodes), "the cluster is not complete", 60)
    return nodes


@pytest.fixture(scope="module")
def nodes():
    with Stage() as stage:
        yield started(stage)


async def when_responders(ask):
    """Returns the result of a request, which is repeated while it has no responders."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            return await ask()
        except (NoRespondersError, ServiceUnavailableError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.02)


async def when_known(client, info):
    """Returns when the server of a client knows the subjects of a stream."""
    for subject in info.config.subjects or []:
        probe = subject.replace("*", "probe").replace(">", "probe")
        # The stream refuses the probe.
        headers = {"Nats-Expected-Stream": "none"}
        await when_responders(lambda: client.request(probe, b"", timeout=SECONDS_MAX, headers=headers))


@pytest.fixture
def patient(monkeypatch):
    """Waits after the creation of streams and consumers: the other servers of a cluster, also of nats-servers, may learn
    of their interest after the creation was confirmed."""
    fetch = JetStreamContext.PullSubscription.fetch

    async def fetch_again(self, *arguments, **options):
        return await when_responders(lambda: fetch(self, *arguments, **options))

    def then_known(change):
        async def changed(self, *arguments, **options):
            info = await change(self, *arguments, **options)
            await when_known(self._nc, info)
            return info

        return changed

    monkeypatch.setattr(JetStreamContext.PullSubscription, "fetch", fetch_again)
    for name in ("add_stream", "update_stream"):
        monkeypatch.setattr(JetStreamContext, name, then_known(getattr(JetStreamContext, name)))


@pytest.mark.parametrize("case", test_streams.CASES)
async def test_client(patient, nodes, case):
    client = await connect(nodes[-1])
    await case(client, client.jetstream(timeout=SECONDS_MAX))
    await client.close()


def test_replicas(nodes):
    """A stream with three replicas stores what a client of the core node publishes, and survives one of them."""
    with nodes[-1].client() as client:
        config = {"name": "THREE", "subjects": ["three.*"], "num_replicas": SERVERS}
        found = request_api(client, "STREAM.CREATE.THREE", config)
        check("error" not in found, found.get("error"))
        names = {found["cluster"]["leader"], *(peer["name"] for peer in found["cluster"]["replicas"])}
        equal(names, {node.name for node in nodes[:SERVERS]}, "the replicas")
        until(lambda: client.ask("three.a", b"1").status == 0, "the stream is not known")
        equal(request_api(client, "STREAM.DELETE.THREE")["success"], True, "the deletion")


def test_peers(nodes):
    """The core node is known, and is no peer of the JetStream servers."""

    def leader() -> dict:
        metas = (node.monitor("jsz").get("meta_cluster") for node in nodes[:SERVERS])
        return next((meta for meta in metas if meta and meta.get("replicas")), {})

    meta = until(leader, "no leader")
    equal(meta["cluster_size"], SERVERS, "the number of peers")
    names = {peer["name"] for peer in meta["replicas"]}
    check(nodes[-1].name not in names, f"peers are {names}")
    equal(nodes[-1].monitor("jsz").get("disabled"), True, "JetStream of the core node")


def test_accounts():
    """The account of a request is the client's, whatever its headers say. An account without JetStream has none."""
    with Stage() as stage:
        nodes = started(stage, ACCOUNTS)
        with nodes[-1].client("a", "a") as client, nodes[-1].client("b", "b") as other:
            forged = {"Nats-Request-Info": json.dumps({"acc": "B", "cluster": "none"})}
            config = json.dumps({"name": "MINE", "subjects": ["mine"], "num_replicas": 1}).encode()
            found = client.ask("$JS.API.STREAM.CREATE.MINE", config, forged).json()
            check("error" not in found, found.get("error"))
            equal(streams_of(nodes[0].client("a", "a")), ["MINE"], "the streams at a nats-server")
            equal(streams_of(client), ["MINE"], "the streams at the core node")
            equal(other.ask("$JS.API.INFO").status, 503, "of an account without JetStream")


def streams_of(client: Client) -> list[str]:
    return request_api(client, "STREAM.NAMES")["streams"]


def test_cold_start():
    """JetStream servers that have the core node among their routes elect a leader after all were stopped."""
    with Stage() as stage:
        nodes = started(stage)
        with nodes[-1].client() as client:
            request_api(client, "STREAM.CREATE.OLD", {"name": "OLD", "subjects": ["old"], "num_replicas": SERVERS})
        for node in nodes:
            node.stop()
        for node in nodes:
            node.start()
        until_meshed(nodes)
        until(lambda: any(stage.leads(node) for node in nodes[:SERVERS]), "the cluster has no leader", 60)
        with nodes[-1].client() as client:
            until(lambda: has_stream(client, "OLD"), "the stream does not come back", 60)


def has_stream(client: Client, name: str) -> bool:
    try:
        found = client.ask(f"$JS.API.STREAM.INFO.{name}", seconds=2)
    except TimeoutError:
        return False
    return found.status == 0 and "error" not in found.json()
