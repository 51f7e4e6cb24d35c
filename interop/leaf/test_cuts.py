"""Connections that are cut and servers that are killed while streams are copied. At the end the records are
compared."""

import time
from dataclasses import dataclass

import pytest

from harness.checks import equal, until
from harness.client import received, settle
from harness.server import reference_server

from .link import Link
from .stage import Node, Stage, remote
from .streams import add, caught_up, contents, each_once, fill, numbers, origin, same

NEAR, FAR = "edge", "hub"
ROUNDS = 3
PER_ROUND = 500
CUT_SECONDS = 1.5
# With these pings, a server gives up a stalled connection within seconds. Clients are pinged as well, and clients
# of these cases may be silent for up to five seconds.
IMPATIENT = 'ping_interval: "1s"\nping_max: 5'


class Pair:
    """A hub and a spoke whose connection can be cut. One of them copies streams of the other."""

    def __init__(self, stage: Stage, hub: Node, spoke: Node, more: str = ""):
        self.hub = hub
        self.spoke = spoke
        self.link = stage.enter_context(Link(hub.leaf_port))
        hub.write(hub.jetstream(FAR), hub.leafnodes(listen=True), more)
        spoke.write(spoke.jetstream(NEAR), spoke.leafnodes(remote(self.link.port)), more)
        hub.start()
        spoke.start()

    def settled(self):
        with self.hub.client() as far, self.spoke.client() as near:
            settle(near, far)
            settle(far, near)

    def copying(self, reference_copies: bool) -> "Copying":
        ends = [(self.hub, FAR), (self.spoke, NEAR)]
        if (self.hub.binary == reference_server()) == reference_copies:
            ends.reverse()
        return Copying(self, *ends[0], ends[1][0])


@dataclass
class Copying:
    """The server with the origin, its domain, and the server that copies."""

    pair: Pair
    source: Node
    domain: str
    copier: Node

    def begin(self):
        self.pair.settled()
        with self.source.client() as here, self.copier.client() as there:
            add(here, "ORIGIN", subjects=["origin"])
            add(there, "MIRROR", mirror=origin("ORIGIN", self.domain))
            add(there, "SOURCED", sources=[origin("ORIGIN", self.domain)])

    def fill(self, first: int, count: int):
        with self.source.client() as here:
            fill(here, "origin", first, count)

    def compare(self, count: int):
        self.pair.settled()
        with self.source.client() as here, self.copier.client() as there:
            records = contents(here, "ORIGIN")
            each_once(records, numbers(0, count))
            for copy in ("MIRROR", "SOURCED"):
                caught_up(there, copy, count)
            same(contents(there, "MIRROR"), records)
            sourced = contents(there, "SOURCED")
            each_once(sourced, numbers(0, count))
            found = [each.source.split()[1] for each in sourced]
            equal(found, [str(n + 1) for n in range(count)], "the numbers at the origin that the copies tell of")


def as_spoke(stage: Stage, more: str = "") -> Pair:
    return Pair(stage, stage.reference("hub"), stage.tested("spoke"), more)


def as_hub(stage: Stage, more: str = "") -> Pair:
    return Pair(stage, stage.tested("hub"), stage.reference("spoke"), more)


class Disturbed:
    """A disturbance of the pair, during which messages are published."""

    def __init__(self, pair: Pair):
        self.pair = pair

    def __enter__(self):
        self.begin()

    def __exit__(self, *_):
        time.sleep(CUT_SECONDS)
        self.end()


class Cut(Disturbed):
    def begin(self):
        self.pair.link.cut()

    def end(self):
        self.pair.link.restore()


class Stalled(Disturbed):
    """No bytes pass, until both sides have given up the connection."""

    def begin(self):
        self.pair.link.stall()

    def end(self):
        until(lambda: not self.pair.spoke.leafs(), "the spoke does not give up the link", 60)
        until(lambda: not self.pair.hub.leafs(), "the hub does not give up the link", 60)
        self.pair.link.cut()
        self.pair.link.restore()


@pytest.mark.parametrize("disturb, more", [(Cut, ""), (Stalled, IMPATIENT)], ids=["cut", "stalled"])
@pytest.mark.parametrize("reference_copies", [True, False])
@pytest.mark.parametrize("make", [as_spoke, as_hub])
def test_is_cut(stage, make, reference_copies: bool, disturb, more: str):
    """Publishes in rounds, with a disturbance in the middle of each."""
    pair = make(stage, more)
    copying = pair.copying(reference_copies)
    copying.begin()
    for number in range(ROUNDS):
        first = number * PER_ROUND
        copying.fill(first, 200)
        with disturb(pair):
            copying.fill(first + 200, 200)
        copying.fill(first + 400, 100)
    copying.compare(ROUNDS * PER_ROUND)


@pytest.mark.parametrize("reference_copies", [True, False])
@pytest.mark.parametrize("make", [as_spoke, as_hub])
def test_killed_in_turn(stage, make, reference_copies: bool):
    """Kills the copying server and the server of the origin in turn with SIGKILL, while messages are published."""
    copying = make(stage).copying(reference_copies)
    copying.begin()
    for number in range(ROUNDS):
        first = number * PER_ROUND
        copying.fill(first, 300)
        copying.copier.stop()
        copying.fill(first + 300, 200)
        copying.copier.start()
        copying.source.stop()
        copying.source.start()
    copying.compare(ROUNDS * PER_ROUND)


@pytest.mark.parametrize("make", [as_spoke, as_hub])
def test_subscriptions_come_back(stage, make):
    """After each of many cuts, the interest of clients on both sides is known again without their involvement."""
    pair = make(stage)
    pair.settled()
    near, far = pair.spoke.client(), pair.hub.client()
    at_near, at_far = near.subscribe("down.>"), far.subscribe("up.>")
    for number in range(10):
        settle(near, far)
        settle(far, near)
        accepted = pair.link.accepted
        far.publish("down.x", b"%d" % number)
        near.publish("up.x", b"%d" % number)
        equal(near.next(at_near).payload, b"%d" % number, "down")
        equal(far.next(at_far).payload, b"%d" % number, "up")
        pair.link.cut()
        pair.link.restore()
        until(lambda: pair.link.accepted > accepted, "the spoke does not come back")
    equal((received(near, at_near, far), received(far, at_far, near)), ([], []), "more than was sent")


@pytest.mark.parametrize("make", [as_spoke, as_hub])
def test_hub_restarts(stage, make):
    pair = make(stage)
    pair.settled()
    near = pair.spoke.client()
    number = near.subscribe("after")
    near.flush()
    for _ in range(3):
        pair.hub.stop()
        pair.hub.start()
        far = pair.hub.client()
        settle(near, far)
        far.publish("after", b"again")
        equal(near.next(number).payload, b"again", "what came")
        far.close()
