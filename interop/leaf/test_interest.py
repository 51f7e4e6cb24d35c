"""Very many subjects over one leaf connection: duration, effect on other messages, and memory afterward.

`LEAF_SUBJECTS=1000000 interop/run leaf -k flood -- -s` runs the cases with a million subjects, and prints the results.
"""

import contextlib
import os
import statistics
import threading
import time

import pytest

from harness.checks import WAIT_SECONDS_MAX, check, equal, until
from harness.client import settle
from harness.peer import Closed, Peer
from harness.server import reference_server

from .link import Link
from .shapes import Shape, ready
from .stage import Node, Stage, remote

SUBJECTS = int(os.environ.get("LEAF_SUBJECTS", "30000"))
HOLDERS = 4
# Timeout for a million subjects.
SECONDS_MAX = 60
# A server that does not respond to three pings is disconnected.
IMPATIENT = 'ping_interval: "1s"\nping_max: 3'
# Interval between two probe messages, which measure the latency of the leaf connection.
PROBE_SECONDS = 0.01
# Subjects that the probes' clients subscribe to at each end: their inboxes and the probe.
PROBE_SUBJECTS = 3
# Memory that a server may still use in addition after all subjects were unsubscribed.
KEPT_BYTES_MAX = 32 << 20
KEPT_BYTES_EACH = 200
# How often a subject is subscribed and unsubscribed, and the maximum bytes that this may send over the
# connection.
COME_AND_GO = max(SUBJECTS // 10, 10_000)
FEW_BYTES = 4096

PAYLOAD = b"MSG %s %d 0\r\n\r\n"


class Holder:
    """A client that subscribes to many subjects, and reads messages on a separate thread."""

    def __init__(self, node: Node, first: int, count: int):
        self.names = [b"site.%07d.state" % n for n in range(first, first + count)]
        self.peer = Peer(node.port, b'CONNECT {"verbose":false,"pedantic":false}\r\n')
        self.peer.socket.settimeout(None)
        # Two threads send on this connection.
        self.sending = threading.Lock()
        self.pongs = 0
        self.bytes = 0
        self.failure = ""
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            while True:
                data = self.peer.socket.recv(1 << 18)
                if not data:
                    return
                pings, pongs = data.count(b"PING\r\n"), data.count(b"PONG\r\n")
                self.bytes += len(data) - 6 * (pings + pongs)
                self.pongs += pongs
                if pings:
                    self.send(b"PONG\r\n" * pings)
                if b"-ERR" in data:
                    self.failure = data.decode(errors="replace")
        except (OSError, Closed) as error:
            self.failure = repr(error)

    def send(self, data: bytes):
        with self.sending:
            self.peer.send(data)

    def subscribe(self):
        self.send(b"".join(b"SUB %s %d\r\n" % (name, n) for n, name in enumerate(self.names, 1)))

    def unsubscribe(self):
        self.send(b"".join(b"UNSUB %d\r\n" % n for n in range(1, len(self.names) + 1)))

    def flush(self):
        wanted = self.pongs + 1
        self.send(b"PING\r\n")
        until(lambda: self.pongs >= wanted, lambda: f"no pong: {self.failure}", SECONDS_MAX)

    def each_once(self) -> int:
        """Returns the number of bytes of one empty message for each subject."""
        return sum(len(PAYLOAD % (name, n)) for n, name in enumerate(self.names, 1))

    def close(self):
        self.peer.socket.shutdown(2)
        self.thread.join()
        self.peer.close()


class Probes:
    """Messages that cross one by one in both directions, and the time of each."""

    def __init__(self, stage: Stage, shape: Shape):
        self.ways = [Way(stage, shape.near, shape.far), Way(stage, shape.far, shape.near)]
        stage.callback(self.stop)

    def since(self) -> str:
        return " and ".join(way.since() for way in self.ways)

    def stop(self):
        for way in self.ways:
            way.stop()


class Way:
    def __init__(self, stage: Stage, one: Node, other: Node):
        self.names = f"{one.name} to {other.name}"
        self.sender, self.receiver = one.client(), other.client()
        subject = f"probe.{one.name}"
        self.number = self.receiver.subscribe(subject)
        settle(self.receiver, self.sender)
        self.subject = subject
        self.took: list[float] = []
        self.failure: Exception | None = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stopping.wait(PROBE_SECONDS):
                start = time.monotonic()
                self.sender.publish(self.subject, b"%f" % start)
                found = self.receiver.next(self.number, SECONDS_MAX)
                equal(found.payload, b"%f" % start, "the probe")
                self.took.append(time.monotonic() - start)
                # The sending client also has to respond to pings.
                self.sender.flush()
        except Exception as error:
            self.failure = error

    def since(self) -> str:
        check(self.failure is None, f"messages from {self.names}: {self.failure!r}")
        took, self.took = self.took, []
        if not took:
            return f"{self.names}: none"
        return f"{self.names} {statistics.median(took) * 1e3:.1f} ms, at most {max(took) * 1e3:.0f}"

    def stop(self):
        self.stopping.set()
        # Ends a read that would wait for a message forever.
        for client in (self.sender, self.receiver):
            with contextlib.suppress(OSError):
                client.peer.socket.shutdown(2)
        self.thread.join()


class Watched:
    """A pair of servers, their initial memory and interest, and their leaf connection, which must not be
    interrupted."""

    def __init__(self, stage: Stage, make, is_wired: bool = False):
        hub, spoke = make(stage)
        self.link = stage.enter_context(Link(hub.leaf_port)) if is_wired else None
        port = self.link.port if self.link else hub.leaf_port
        hub.start(hub.leafnodes(listen=True), IMPATIENT)
        spoke.start(spoke.leafnodes(remote(port)), IMPATIENT)
        self.shape = Shape(spoke, hub)
        ready(self.shape)
        self.nodes = [self.shape.near, self.shape.far]
        self.before = {node.name: self.settled(node) for node in self.nodes}
        self.idle = self.memory()

    def sides(self, is_up: bool) -> tuple[Node, Node]:
        """Returns the server with the subscribers (the spoke if `is_up`), and the other one."""
        near, far = self.shape.near, self.shape.far
        return (near, far) if is_up else (far, near)

    def settled(self, node: Node) -> int:
        """Waits until the other side's interest no longer changes. Returns its number of subjects."""
        found, deadline = -1, time.monotonic() + WAIT_SECONDS_MAX
        while found != (found := self.wanted(node)):
            check(time.monotonic() < deadline, f"the interest at {node.name} does not stop changing: {found}")
            time.sleep(0.5)
        return found

    def memory(self) -> dict[str, int]:
        return {node.name: node.server.rss_bytes() for node in self.nodes}

    def sizes(self) -> str:
        return ", ".join(f"{name} {size >> 20} MiB" for name, size in self.memory().items())

    def wanted(self, node: Node) -> int:
        """Returns the number of subjects of the other side's interest."""
        links = node.leafs()
        equal(len(links), 1, f"links of {node.name}")
        return links[0]["subscriptions"]

    def say(self, what: str):
        if "LEAF_SUBJECTS" in os.environ:
            print(f"      {what}", flush=True)

    def step(self, name: str, function):
        start = time.monotonic()
        function()
        took = time.monotonic() - start
        self.say(f"{name}: {took:.2f} s; {self.probes.since()}; {self.sizes()}")

    def end(self):
        for node in self.nodes:
            log = node.log().lower()
            for word in ("stale", "slow consumer", "connection closed", "panic"):
                check(word not in log, f"{node.name}: {node.log()}")

    def gives_memory_back(self):
        for node in self.nodes:
            if node.binary == reference_server():
                continue
            allowed = self.idle[node.name] + max(KEPT_BYTES_MAX, SUBJECTS * KEPT_BYTES_EACH)
            until(lambda: node.server.rss_bytes() < allowed, lambda: f"{node.name} keeps {self.sizes()}")


SHAPES = {
    "spoke": lambda stage: (stage.reference("hub"), stage.tested("spoke")),
    "hub": lambda stage: (stage.tested("hub"), stage.reference("spoke")),
    "hub and spoke": lambda stage: (stage.tested("hub"), stage.tested("spoke")),
}


@pytest.mark.parametrize("is_up", [True, False], ids=["wanted at the spoke", "wanted at the hub"])
@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
def test_flood(stage, make, is_up: bool):
    """Does the following twice: subscribes, sends a message to each subject, and removes half of the
    subscriptions by UNSUB and half by closing the clients."""
    watched = Watched(stage, make)
    here, there = watched.sides(is_up)
    probes = watched.probes = Probes(stage, watched.shape)
    before = watched.settled(there)
    each, half = SUBJECTS // HOLDERS, HOLDERS // 2
    for _ in range(2):
        holders = [Holder(here, n * each, each) for n in range(HOLDERS)]
        watched.step("subscribed", lambda: [holder.subscribe() for holder in holders])
        watched.step("known there", lambda: known(watched, there, before + each * HOLDERS))
        watched.step("a message for each", lambda: deliver(there, holders))
        watched.step("half unsubscribed", lambda: [holder.unsubscribe() for holder in holders[:half]])
        watched.step("known there", lambda: known(watched, there, before + each * (HOLDERS - half)))
        watched.step("the others closed", lambda: [holder.close() for holder in holders[half:]])
        watched.step("known there", lambda: known(watched, there, before))
        for holder in holders[:half]:
            equal(holder.failure, "", "of a client that unsubscribed")
            holder.close()
    watched.end()
    probes.stop()
    watched.gives_memory_back()
    watched.say(f"later: {watched.sizes()}")


@pytest.mark.parametrize("is_up", [True, False], ids=["wanted at the spoke", "wanted at the hub"])
@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
def test_told_anew(stage, make, is_up: bool):
    """Cuts the connection when the interest is known, and again before all of it was announced."""
    watched = Watched(stage, make, is_wired=True)
    here, there = watched.sides(is_up)
    before = watched.before[there.name]
    holder = Holder(here, 0, SUBJECTS)
    holder.subscribe()
    known(watched, there, before + SUBJECTS)
    for seconds in (0.3, 0.0):
        watched.link.cut()
        until(lambda: not there.leafs(), "the link is not given up")
        watched.link.restore()
        until(lambda: there.leafs(), "the link does not come back")
        time.sleep(seconds)
    watched.probes = Probes(stage, watched.shape)
    watched.step("known again", lambda: known(watched, there, before + SUBJECTS + PROBE_SUBJECTS))
    watched.step("a message for each", lambda: deliver(there, [holder]))
    holder.close()
    watched.step("closed", lambda: known(watched, there, before + PROBE_SUBJECTS))


@pytest.mark.parametrize("is_up", [True, False], ids=["wanted at the spoke", "wanted at the hub"])
@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
def test_comes_and_goes(stage, make, is_up: bool):
    """The traffic does not grow if a subject is subscribed and unsubscribed repeatedly, or has many subscribers."""
    watched = Watched(stage, make, is_wired=True)
    here, there = watched.sides(is_up)
    before = watched.before[there.name]
    holder = Holder(here, 0, 1)
    link = watched.link
    crossed = link.bytes
    holder.send(b"".join(b"SUB one %d\r\n" % n for n in range(COME_AND_GO)))
    holder.flush()
    known(watched, there, before + 1)
    check(link.bytes - crossed < FEW_BYTES, f"{link.bytes - crossed} bytes for {COME_AND_GO} subscribers of one")
    holder.send(b"".join(b"UNSUB %d\r\n" % n for n in range(COME_AND_GO)))
    holder.flush()
    known(watched, there, before)
    crossed = link.bytes
    holder.send(b"SUB one 1\r\nUNSUB 1\r\n" * COME_AND_GO)
    holder.flush()
    known(watched, there, before)
    watched.say(f"{link.bytes - crossed} bytes for {COME_AND_GO} times")
    # Fanline announces only the state at the end of a batch; nats-server announces each change.
    is_batched = here.binary != reference_server()
    told = link.bytes - crossed
    check(not is_batched or told < COME_AND_GO, f"{told} bytes for {COME_AND_GO} times")
    holder.send(b"SUB one 1\r\n")
    holder.flush()
    known(watched, there, before + 1)
    holder.close()
    known(watched, there, before)
    watched.end()


def known(watched: Watched, node: Node, count: int):
    def why():
        return f"{watched.wanted(node)} subjects, wanted {count}"

    until(lambda: watched.wanted(node) == count, why, SECONDS_MAX)


def deliver(node: Node, holders: list[Holder]):
    for holder in holders:
        holder.flush()
        holder.bytes = 0
    with node.client() as sender:
        for holder in holders:
            for first in range(0, len(holder.names), 10_000):
                sender.send(b"".join(b"PUB %s 0\r\n\r\n" % name for name in holder.names[first : first + 10_000]))
                sender.flush()
    for holder in holders:
        wanted = holder.each_once()
        until(lambda: holder.bytes >= wanted, lambda: f"{holder.bytes} bytes, wanted {wanted}", SECONDS_MAX)
        equal(holder.bytes, wanted, "bytes of messages")
