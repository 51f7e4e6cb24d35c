"""Tests one misbehaving peer at a time, next to a correct publisher and subscriber (the good pair). The pair
checks every message, in order. The server's reaction to the bad peer is checked where it is defined."""

import contextlib
import socket
import threading
import time

import pytest

from harness.checks import check, equal
from harness.peer import CONNECT, Closed, Peer
from harness.server import Server, is_reference, server_under_test

ROUNDS_MIN = 20
BATCH = 50
MIB = 1 << 20


class Pair:
    """A publisher and a subscriber that exchange messages until they are stopped. Each waits for the other."""

    def __init__(self, port: int, connect: bytes):
        self.port = port
        self.subscriber = Peer(port, connect)
        self.subscriber.send(b"SUB good.> 1\r\n")
        self.subscriber.flush()
        self.publisher = Peer(port, connect)
        self.rounds = 0
        self.failure: Exception | None = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            while not self.stop.is_set():
                self.round()
                self.rounds += 1
        except Exception as error:
            self.failure = error

    def round(self):
        """Publishes a batch and reads all of it in order, so one lost message stops the pair."""
        first = self.rounds * BATCH
        numbers = range(first, first + BATCH)
        self.publisher.send(b"".join(b"PUB good.%d %d\r\n%d\r\n" % (n % 7, len(str(n)), n) for n in numbers))
        for n in numbers:
            line, payload = self.subscriber.message()
            equal((line, payload), (f"MSG good.{n % 7} 1 {len(str(n))}", b"%d" % n), "next message")
        # No other message may arrive. The publisher also has to answer the server's PINGs.
        self.publisher.flush()

    def more(self, rounds: int = ROUNDS_MIN):
        """Returns after this many more rounds, so that an effect of the bad peer would have shown."""
        goal = self.rounds + rounds
        while self.rounds < goal:
            if self.failure is not None:
                raise AssertionError(f"the good pair failed: {type(self.failure).__name__}: {self.failure}")
            check(self.thread.is_alive(), "the good pair stopped")
            time.sleep(0.005)

    def end(self):
        self.stop.set()
        self.thread.join()
        self.publisher.close()
        self.subscriber.close()
        check(self.failure is None, f"the good pair failed: {type(self.failure).__name__}: {self.failure}")


@contextlib.contextmanager
def stage(*flags: str, connect: bytes = CONNECT):
    with Server(server_under_test(), *flags) as server:
        pair = Pair(server.port, connect)
        try:
            pair.more()
            yield server, pair
            pair.more()
        finally:
            pair.end()
        equal(server.process.poll(), None, "the server's exit code")


@pytest.mark.parametrize(
    "data, text",
    [
        pytest.param(b"NONSENSE\r\n", "Unknown Protocol Operation", id="an unknown verb"),
        pytest.param(b"SUB %s 1\r\n" % (b"s" * 5000), "maximum control line exceeded", id="a control line of 5 KB"),
        pytest.param(b"SUB " + b"s" * 100_000, "maximum control line exceeded", id="a control line without an end"),
        pytest.param(b"PUB good.1 2\r\nhixx\r\n", "Unknown Protocol Operation", id="a payload with a wrong end"),
        pytest.param(b"PUB good.1 2147483648\r\n", "Maximum Payload Violation", id="a payload of 2 GB"),
        pytest.param(b"PUB good.1 1048577\r\n", "Maximum Payload Violation", id="a payload above the largest"),
        pytest.param(b"PUB good.1 -1\r\n", "Unknown Protocol Operation", id="a negative size"),
    ],
)
def test_refused(data: bytes, text: str):
    """Sends bytes that must close the bad peer. The server may send `text` before. `wire/` compares which
    text it sends; here it must only not be a different one."""
    with stage() as (server, pair):
        for _ in range(20):
            with Peer(server.port, CONNECT) as bad:
                bad.flush()
                with contextlib.suppress(Closed):
                    bad.send(data)
                found = bad.until_closed().decode(errors="replace")
            errors = [line for line in found.split("\r\n") if line.startswith("-ERR")]
            check(not errors or errors[0][6:-1] == text, f"the bad peer was told {errors}")
        pair.more()


def test_garbage():
    with stage() as (server, pair):
        for seed in range(50):
            with Peer(server.port) as bad:
                data = bytes((seed * 131 + n * 197 + n * n) % 256 for n in range(5000))
                with contextlib.suppress(Closed):
                    bad.send(data)
                bad.until_closed()
        pair.more()


def test_half_lines():
    """Fifty peers stop in the middle of a protocol line and stay connected."""
    with stage() as (server, pair):
        halves = [b"", b"P", b"PUB", b"PUB good.1 ", b"PUB good.1 10\r\nhal", b"SUB good", b"CONNECT {", b"HPUB good.1 12 "]
        bad = [Peer(server.port, CONNECT) for _ in range(48)]
        for number, peer in enumerate(bad):
            peer.send(halves[number % len(halves)])
        pair.more(4 * ROUNDS_MIN)
        for number, peer in enumerate(bad):
            if number % 2:
                # With SO_LINGER the close is a reset.
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            peer.close()
        pair.more()


def test_slow_drip():
    """A correct session that arrives byte by byte with pauses must work."""
    with stage() as (server, pair):
        with Peer(server.port, CONNECT) as slow:
            for byte in b"SUB drip 1\r\nPUB drip 5\r\nhello\r\n" * 5:
                slow.send(bytes([byte]))
                pair.more(1)
            for _ in range(5):
                equal(slow.message()[1], b"hello", "the slow peer's message")


@pytest.mark.parametrize("subscription", [b"SUB busy 1\r\n", b"SUB > 1\r\n"])
def test_never_reads(subscription: bytes):
    """A subscriber of a busy subject that never reads is disconnected, and another one receives everything.

    The publisher waits for the good subscriber after every mebibyte, so that one is never far behind. The bad one
    must be disconnected when more than 64 MiB are pending for it.
    """
    payload = b"x" * (256 * 1024)
    with stage() as (server, pair):
        bad = Peer(server.port, CONNECT, receive_buffer_bytes=4096)
        bad.send(subscription + b"PING\r\n")
        while bad.line() != "PONG":
            pass
        good = Peer(server.port, CONNECT)
        good.send(b"SUB busy 1\r\n")
        good.flush()
        publisher = Peer(server.port, CONNECT)
        for number in range(4 * 100):
            publisher.send(b"PUB busy %d\r\n%s\r\n" % (len(payload), payload))
            line, received = good.message()
            equal(received == payload, True, f"payload {number} at the good subscriber")
            if number % 40 == 0:
                publisher.flush()
        pair.more()
        received = len(bad.until_closed())
        check(received < 90 * MIB, f"the bad peer was sent {received} bytes")
        pair.more()
        publisher.flush()
        good.flush()
        for peer in (bad, good, publisher):
            peer.close()


def test_never_connects():
    """The server requires authentication and the peer sends no CONNECT: the server sends an error and closes."""
    credentials = CONNECT.replace(b"{", b'{"user":"alice","pass":"secret",')
    with stage("--user", "alice", "--pass", "secret", connect=credentials) as (server, pair):
        bad = [Peer(server.port) for _ in range(20)]
        for peer in bad:
            peer.line()
        for peer in bad:
            equal(peer.until_closed(), b"-ERR 'Authentication Timeout'\r\n", "what the idle peer was told")
            peer.close()


def test_publishes_unasked():
    credentials = CONNECT.replace(b"{", b'{"user":"alice","pass":"secret",')
    with stage("--user", "alice", "--pass", "secret", connect=credentials) as (server, pair):
        for _ in range(50):
            with Peer(server.port) as bad:
                bad.line()
                with contextlib.suppress(Closed):
                    bad.send(b"PUB good.1 5\r\nfalse\r\n")
                equal(bad.until_closed(), b"-ERR 'Authorization Violation'\r\n", "what the intruder was told")


def test_million_subscriptions():
    """The pair is not affected: none of the million subscriptions matches its subject, and closing removes them."""
    with stage() as (server, pair):
        with Peer(server.port, CONNECT) as bad:
            for batch in range(100):
                first = batch * 10_000
                bad.send(b"".join(b"SUB many.%d.%d %d\r\n" % (n % 1000, n, n) for n in range(first, first + 10_000)))
                bad.flush()
            with Peer(server.port, CONNECT) as publisher:
                for n in (0, 123_456, 999_999):
                    publisher.send(b"PUB many.%d.%d 2\r\nhi\r\n" % (n % 1000, n))
                    line, _ = bad.message()
                    equal(line, f"MSG many.{n % 1000}.{n} {n} 2", "one of the million")
            pair.more()
        with Peer(server.port, CONNECT) as asker:
            # The server notices the close a moment later. Each response shows whether a subscriber still exists.
            asker.send(b"SUB in 1\r\n")
            for _ in range(2000):
                asker.send(b"PUB many.0.0 in 0\r\n\r\n")
                asker.send(b"PUB in 4\r\nnext\r\n")
                line, payload = asker.message()
                if line.startswith("HMSG"):
                    break
                time.sleep(0.01)
            else:
                raise AssertionError("subscriptions of a closed connection still respond")
        pair.more()


def test_connections_in_a_loop():
    """Ten thousand connections must leave no memory in use, except what the first two thousand have allocated."""
    # nats-server stores its last 10,000 closed connections completely, and its garbage collection runs late.
    growth_bytes_max = (32 if is_reference() else 10) * MIB
    with stage() as (server, pair):
        def loop(count: int):
            for number in range(count):
                with Peer(server.port, CONNECT) as peer:
                    peer.send(b"SUB loop.%d 1\r\n" % number)
                    if number % 10 == 0:
                        peer.flush()
                    # With SO_LINGER the close is a reset, so no port stays in TIME_WAIT.
                    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

        loop(2_000)
        pair.more()
        before = server.rss_bytes()
        loop(10_000)
        pair.more()
        growth = server.rss_bytes() - before
        print(f"      memory: {before >> 20} MiB before, {growth / MIB:+.1f} MiB after 10,000 connections", flush=True)
        check(growth <= growth_bytes_max, f"memory grew by {growth} bytes from {before}")
