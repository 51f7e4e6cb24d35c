"""A server that many attacks share, and functions to reach it. An attack must leave the server running, and its
log without forged lines."""

import atexit
import base64
import json
import os
import re
import shutil
import socket
import tempfile
import time

from harness.checks import check
from harness.peer import CONNECT, READ_SECONDS_MAX, Peer
from harness.server import Server, port_free, server_under_test
from mqtt.packets import V4, connect
from websocket.session import frame as websocket_frame

KEY = base64.b64encode(b"0123456789abcdef").decode()
CREDENTIALS = CONNECT.replace(b"{", b'{"user":"ada","pass":"pw",')
# `bob` may publish to `open.>` only.
FEW_RIGHTS = CONNECT.replace(b"{", b'{"user":"bob","pass":"pw",')
CONFIG = """
http: "127.0.0.1:%(http)d"
dashboard: write
log_file: "%(folder)s/log"
debug: true
trace: true
authorization {
  timeout: 30
  users: [
    { user: ada, password: pw }
    { user: bob, password: pw, permissions { publish: ["open.>"], subscribe: [">"] } }
    { user: eve, password: "$2a$04$gIRQrUpWMqGUfcVzHRmTNuGXVaPgMmPVjdZu4dsfYBoLG.DmJbMx2" }
  ]
}
websocket { listen: "127.0.0.1:%(websocket)d", no_tls: true, compression: true, handshake_timeout: "30s" }
mqtt { listen: "127.0.0.1:%(mqtt)d" }
leafnodes { listen: "127.0.0.1:%(leaf)d" }
jetstream { store_dir: "%(folder)s", max_mem: 64MB, max_file: 64MB }
"""


class Grounds:
    def __init__(self):
        self.folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, self.folder, True)
        self.ports = {name: port_free() for name in ("http", "websocket", "mqtt", "leaf")}
        path = os.path.join(self.folder, "conf")
        with open(path, "w") as file:
            file.write(CONFIG % {"folder": self.folder, **self.ports})
        self.server = Server(server_under_test(), "-c", path)
        self.server.start()
        atexit.register(self.server.kill)

    def client(self, connect: bytes = CREDENTIALS) -> Peer:
        return Peer(self.server.port, connect)

    def raw(self, listener: str) -> socket.socket:
        port = self.ports.get(listener, self.server.port)
        return socket.create_connection(("127.0.0.1", port), timeout=READ_SECONDS_MAX)

    def log(self) -> str:
        with open(os.path.join(self.folder, "log"), newline="", errors="replace") as file:
            return file.read()

    def is_well(self):
        """Checks that the server runs, that no thread has panicked, and that an honest client is served."""
        check(self.server.process.poll() is None, f"the server ended: {self.server.output()[-300:]}")
        check("panicked" not in self.log() + self.server.output(), "a thread has panicked")
        with self.client() as honest:
            honest.flush()
            check("error" not in ask(honest, "$JS.API.INFO", b""), "JetStream does not answer")


_shared: list[Grounds] = []


def grounds() -> Grounds:
    if not _shared:
        _shared.append(Grounds())
    return _shared[0]


_asked = 0


def send_request(peer: Peer, subject: bytes, body, headers: bytes = b"") -> bytes:
    """Publishes a request with a new reply subject, and subscribes to it. Returns the reply subject."""
    global _asked
    _asked += 1
    inbox = b"_INBOX.attack.%d" % _asked
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = b"PUB %s %s %d" % (subject, inbox, len(body))
    if headers:
        headers = b"NATS/1.0\r\n" + headers + b"\r\n"
        head = b"HPUB %s %s %d %d" % (subject, inbox, len(headers), len(headers) + len(body))
    peer.send(b"SUB %s %d\r\n" % (inbox, _asked) + head + b"\r\n" + headers + body + b"\r\n")
    return inbox


def ask(peer: Peer, subject: str, body, headers: bytes = b"") -> dict:
    inbox = send_request(peer, subject.encode(), body, headers).decode()
    while True:
        line, payload = peer.message()
        if line.split(" ")[1] == inbox:
            break
    try:
        return json.loads(payload)
    except ValueError:
        return {"text": payload.decode(errors="replace"), "line": line}


def create(peer: Peer, name: str, **config) -> dict:
    config = {"name": name, "subjects": [f"s.{name}.>"], "storage": "memory", **config}
    ask(peer, f"$JS.API.STREAM.DELETE.{name}", b"")
    return ask(peer, f"$JS.API.STREAM.CREATE.{name}", config)


def http(path: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Sends one HTTP request without encoding or adding anything."""
    lines = {"Host": "127.0.0.1", "Connection": "close", "Content-Length": str(len(body))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with grounds().raw("http") as stream:
        stream.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "surrogateescape") + body)
        answer = b""
        while data := stream.recv(1 << 16):
            answer += data
    head, _, rest = answer.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin1").split("\r\n")
    found = dict(field.lower().split(": ", 1) for field in fields if ": " in field)
    return int(first.split(" ")[1]), found, rest


def websocket(extra: str = "", path: str = "/", listener: str = "websocket") -> socket.socket:
    stream = grounds().raw(listener)
    stream.sendall(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n{extra}\r\n".encode("utf-8", "surrogateescape")
    )
    return stream


def frame(body: bytes, first: int = 0x82) -> bytes:
    """Returns a masked frame; the mask is 0."""
    return websocket_frame(first & 15, body, final=bool(first & 0x80), reserved=first & 0x70, mask=bytes(4))


def until_closed(stream: socket.socket) -> bytes:
    """Returns all bytes up to the close. A reset counts as a close."""
    found = b""
    deadline = time.monotonic() + READ_SECONDS_MAX
    try:
        while data := stream.recv(1 << 16):
            found += data
            check(time.monotonic() < deadline, "the server keeps sending")
    except ConnectionError:
        pass
    stream.close()
    return found


def until_refused(connect, *parts: bytes):
    """Returns an attack that sends each part over a connection of its own, and waits until the server closes it."""
    def play():
        for data in parts:
            with connect() as stream:
                try:
                    stream.sendall(data)
                except ConnectionError:
                    continue
                until_closed(stream)

    return play


def raw(listener: str):
    """Returns a function that connects to a listener, and sends nothing."""
    return lambda: grounds().raw(listener)


def mqtt_connect(client: bytes, user: bytes = b"ada", password: bytes = b"pw") -> bytes:
    return connect(V4, client, user=user, password=password, keep_alive=30)


def mqtt(client: bytes = b"attacker") -> socket.socket:
    stream = grounds().raw("mqtt")
    stream.sendall(mqtt_connect(client))
    check(stream.recv(4) == b"\x20\2\0\0", "the device is not let in")
    return stream


LINE = re.compile(r"\[\d+\] \d{4}/\d\d/\d\d [\d:.]+ \[[A-Z]{3}\] ")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]")


def log_is_honest(before: int):
    """Checks the log since `before`: each line has the server's format, and none contains terminal commands."""
    for line in grounds().log()[before:].split("\n"):
        check(not line or LINE.match(line), f"a forged line: {line[:120]!r}")
        check(not CONTROLS.search(line), f"a control character: {line[:160]!r}")
