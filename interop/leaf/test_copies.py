"""Copies of streams between a cluster and a leaf node whose servers are killed, and between accounts of a server."""

import pytest

from harness.checks import equal, until
from harness.client import Client, api, settle
from harness.server import server_under_test

from .test_cuts import FAR, NEAR, as_hub, as_spoke
from .stage import Node, Stage, remote
from .streams import add, caught_up, contents, each_once, fill, numbers, origin, same

ROUNDS = 3
PER_ROUND = 400


class Cluster:
    """Three nats-servers, and the server under test as their leaf node."""

    def __init__(self, stage: Stage):
        self.nodes = stage.cluster(FAR)
        self.leaf = stage.tested("leaf")
        ports = [node.leaf_port for node in self.nodes]
        self.leaf.start(self.leaf.jetstream(NEAR), self.leaf.leafnodes(remote(*ports)))
        self.settled()

    def settled(self):
        with self.nodes[0].client() as far, self.leaf.client() as near:
            settle(near, far)
            settle(far, near)

    def leader(self, stream: str) -> Node:
        """Returns the leader of a stream, when there is one."""

        def named():
            try:
                with self.nodes[0].client() as client:
                    info = client.ask(f"$JS.API.STREAM.INFO.{stream}", seconds=2).json()
            except TimeoutError:
                # Without a leader there is no response about the stream.
                return None
            return (info.get("cluster") or {}).get("leader")

        name = until(named, f"nobody leads {stream}", 60)
        return next(node for node in self.nodes if node.name == name)

    def without_leader(self, stream: str, act):
        """Kills the leader of a stream, calls `act` with another server, and starts the leader again."""
        leader = self.leader(stream)
        other = next(node for node in self.nodes if node is not leader)
        leader.stop()
        act(other)
        leader.start()
        until(lambda: Stage.is_current(leader), "the killed server does not come back", 60)


def publish(node: Node, subject: str, first: int, count: int):
    with node.client() as client:
        fill(client, subject, first, count)


def test_copies_of_cluster(stage):
    """The leaf node copies a stream with three replicas, while the stream's leader and the leaf node are killed."""
    cluster = Cluster(stage)
    with cluster.nodes[0].client() as far, cluster.leaf.client() as near:
        add(far, "ORIGIN", subjects=["origin"], num_replicas=3)
        add(near, "MIRROR", mirror=origin("ORIGIN", FAR))
        add(near, "SOURCED", sources=[origin("ORIGIN", FAR)])
    for number in range(ROUNDS):
        first = number * PER_ROUND
        publish(cluster.nodes[number], "origin", first, 100)
        cluster.without_leader("ORIGIN", lambda other, at=first + 100: publish(other, "origin", at, 200))
        cluster.leaf.stop()
        publish(cluster.nodes[number], "origin", first + 300, 100)
        cluster.leaf.start()
    cluster.settled()
    with cluster.nodes[0].client() as far, cluster.leaf.client() as near:
        compare(far, "ORIGIN", near, ROUNDS * PER_ROUND)


def test_copies_in_cluster(stage):
    """A cluster copies a stream of the leaf node into three replicas, while their leader and the leaf node are
    killed."""
    cluster = Cluster(stage)
    with cluster.nodes[0].client() as far, cluster.leaf.client() as near:
        add(near, "ORIGIN", subjects=["origin"])
        add(far, "MIRROR", mirror=origin("ORIGIN", NEAR), num_replicas=3)
        add(far, "SOURCED", sources=[origin("ORIGIN", NEAR)], num_replicas=3)
    for number in range(ROUNDS):
        first = number * PER_ROUND
        publish(cluster.leaf, "origin", first, 100)
        cluster.without_leader("MIRROR", lambda _, at=first + 100: publish(cluster.leaf, "origin", at, 200))
        cluster.leaf.stop()
        cluster.leaf.start()
        publish(cluster.leaf, "origin", first + 300, 100)
    cluster.settled()
    with cluster.nodes[0].client() as far, cluster.leaf.client() as near:
        compare(near, "ORIGIN", far, ROUNDS * PER_ROUND)


def compare(here: Client, name: str, there: Client, count: int):
    """Checks that a mirror and a source have every record once."""
    records = contents(here, name)
    each_once(records, numbers(0, count))
    for copy in ("MIRROR", "SOURCED"):
        caught_up(there, copy, count)
    same(contents(there, "MIRROR"), records)
    each_once(contents(there, "SOURCED"), numbers(0, count))


ACCOUNTS = """
accounts {
  A {
    jetstream: enabled
    users: [ { user: a, password: a } ]
    exports: [ { service: "$JS.API.CONSUMER.>" }, { service: "$JS.FC.>" }, { stream: "copied.>" } ]
  }
  B {
    jetstream: enabled
    users: [ { user: b, password: b } ]
    imports: [
      { service: { account: A, subject: "$JS.API.CONSUMER.>" }, to: "A.API.CONSUMER.>" }
      { service: { account: A, subject: "$JS.FC.>" } }
      { stream: { account: A, subject: "copied.>" } }
    ]
  }
}
"""


def test_between_accounts(stage):
    """An account copies a stream of another account of the same server."""
    node = stage.node("one", server_under_test())
    node.start(node.jetstream(), ACCOUNTS)
    taken = {"name": "ORIGIN", "external": {"api": "A.API", "deliver": "copied"}}
    with node.client("a", "a") as here, node.client("b", "b") as there:
        add(here, "ORIGIN", subjects=["origin"])
        fill(here, "origin", 0, 1_000)
        add(there, "MIRROR", mirror=taken)
        add(there, "SOURCED", sources=[taken])
        fill(here, "origin", 1_000, 1_000)
        caught_up(there, "MIRROR", 2_000)
    node.stop()
    node.start()
    with node.client("a", "a") as here, node.client("b", "b") as there:
        fill(here, "origin", 2_000, 100)
        compare(here, "ORIGIN", there, 2_100)


@pytest.mark.parametrize("make", [as_spoke, as_hub])
def test_of_what_is_not_there(stage, make):
    """A mirror reports the error that its origin does not exist, until the origin exists."""
    copying = make(stage).copying(False)
    copying.pair.settled()
    with copying.source.client() as here, copying.copier.client() as there:
        add(there, "MIRROR", mirror=origin("ORIGIN", copying.domain))

        def error():
            return api(there, "STREAM.INFO.MIRROR")["mirror"].get("error", {}).get("err_code")

        until(lambda: error() == 10059, "it is not said that there is no such stream")
        add(here, "ORIGIN", subjects=["origin"])
        fill(here, "origin", 0, 50)
        caught_up(there, "MIRROR", 50)
        equal(error(), None, "the error, once it is there")
