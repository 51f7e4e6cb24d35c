"""Plays one case with one server, and records what it received."""

import json
import re
import socket
import time
import zlib
from dataclasses import dataclass, field

ANSWER_SECONDS_MAX = 4
QUIET_SECONDS = 0.25
LINE_CHARACTERS_MAX = 240

# Values that legitimately differ between two servers or two runs. Their keys are compared.
INFO_VALUES_IGNORED = {
    "client_id",
    "connect_urls",
    "git_commit",
    "go",
    "nonce",
    "port",
    "server_id",
    "server_name",
    "xkey",
}


@dataclass
class Step:
    verb: str
    peer: str = "a"
    data: bytes = b""
    count: int = 1


@dataclass
class Case:
    name: str
    steps: list[Step]
    # The key in `SERVERS`: "open", "user" (user and password), or "token".
    server: str = "open"
    # Also compare the contents of INFO.
    info: bool = False
    # Also compare the server's own PINGs, whose times vary.
    pings: bool = False
    # Patterns and replacements that hide random choices, such as the member of a queue group.
    masks: list[tuple[bytes, bytes]] = field(default_factory=list)


def send(data: bytes, peer: str = "a") -> Step:
    return Step("send", peer, data)


def drip(data: bytes, peer: str = "a") -> Step:
    """Sends one byte per write."""
    return Step("drip", peer, data)


def settle(peer: str = "a", pongs: int = 1) -> Step:
    """Sends PING and reads up to its answer, or until the connection closes. `pongs` includes answers to the
    case's own PINGs."""
    return Step("settle", peer, count=pongs)


def read(peer: str = "a", pongs: int = 1) -> Step:
    """Like `settle`, but the case has already sent the PING."""
    return Step("read", peer, count=pongs)


def closed(peer: str = "a") -> Step:
    """Reads until the connection closes."""
    return Step("closed", peer)


def quiet(peer: str = "a") -> Step:
    """Reads for a moment: for input that the server must not answer yet."""
    return Step("quiet", peer)


def pinged(peer: str = "a") -> Step:
    """Reads up to a PING that the server sends."""
    return Step("pinged", peer)


def splits(data: bytes) -> Step:
    """For each inner boundary of `data`, opens a connection that sends it in two writes."""
    return Step("splits", "split", data)


def play(case: Case, port: int) -> list[str]:
    """Returns the transcript: for each peer one line per protocol line that it received, and how the connection
    ended."""
    session = Session(case, port)
    try:
        for step in case.steps:
            session.do(step)
        session.end()
    finally:
        for connection in session.connections.values():
            connection.close()
    return session.transcript()


class Session:
    def __init__(self, case: Case, port: int):
        self.case = case
        self.port = port
        self.connections: dict[str, socket.socket] = {}
        self.ended: set[str] = set()
        # What a peer received is one stream, because the boundaries of reads depend on timing. Only the end, and
        # the moments at which the server must be silent, are marked in it.
        self.received: dict[str, bytearray] = {}
        self.marks: dict[str, list[tuple[int, str]]] = {}
        self.extra: list[str] = []

    def do(self, step: Step):
        if step.verb == "splits":
            self.splits(step.data)
            return
        if step.peer not in self.connections:
            self.open(step.peer)
        match step.verb:
            case "send":
                self.write(step.peer, step.data)
            case "drip":
                for byte in step.data:
                    self.write(step.peer, bytes([byte]))
                    # Long enough for the server to wake up, so that it reads most bytes one at a time.
                    time.sleep(0.0005)
            case "settle":
                self.write(step.peer, b"PING\r\n")
                self.receive(step.peer, lambda new: new.count(b"PONG\r\n") >= step.count)
            case "read":
                self.receive(step.peer, lambda new: new.count(b"PONG\r\n") >= step.count)
            case "closed":
                self.receive(step.peer, lambda new: False)
            case "pinged":
                self.receive(step.peer, lambda new: b"PING\r\n" in new)
            case "quiet":
                self.receive(step.peer, lambda new: False, QUIET_SECONDS)

    def open(self, peer: str):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_SECONDS_MAX)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections[peer] = connection
        self.received[peer] = bytearray()
        self.marks[peer] = []
        self.receive(peer, lambda new: new.endswith(b"\r\n"))

    def write(self, peer: str, data: bytes):
        # After the server has closed, a write may succeed or fail, depending on timing.
        try:
            self.connections[peer].sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self, peer: str, enough, seconds: float = ANSWER_SECONDS_MAX):
        connection, received = self.connections[peer], self.received[peer]
        start = len(received)
        deadline = time.monotonic() + seconds
        while peer not in self.ended and not enough(received[start:]):
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = connection.recv(1 << 20)
            except TimeoutError:
                mark = "nothing for a moment" if seconds == QUIET_SECONDS else "nothing more came"
                self.marks[peer].append((len(received), mark))
                return
            except ConnectionResetError:
                # A reset counts as the end of the stream: which of the two comes depends on what the server had
                # not read.
                data = b""
            received += data
            if not data:
                self.marks[peer].append((len(received), "closed"))
                self.ended.add(peer)

    def splits(self, data: bytes):
        """All boundaries must give the same transcript. Keeps the first one and those that differ from it."""
        first = None
        for at in range(1, len(data)):
            one = Session(self.case, self.port)
            try:
                one.do(send(data[:at]))
                time.sleep(0.001)
                one.do(send(data[at:]))
                one.do(settle())
                one.end()
            finally:
                for connection in one.connections.values():
                    connection.close()
            if first is None:
                first = one.transcript()
                self.extra += first
            elif one.transcript() != first:
                self.extra.append(f"split at {at}, otherwise than at 1:")
                self.extra += one.transcript()

    def end(self):
        """Closes the sending half of every connection and reads what the server still sends."""
        for peer, connection in self.connections.items():
            if peer in self.ended:
                continue
            try:
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            self.receive(peer, lambda new: False)

    def transcript(self) -> list[str]:
        lines = list(self.extra)
        for peer, received in self.received.items():
            lines.append(f"{peer} receives")
            start = 0
            for offset, mark in self.marks[peer]:
                lines += [f"  {line}" for line in self.lines(bytes(received[start:offset]))]
                lines.append(f"  ({mark})")
                start = offset
        return lines

    def lines(self, data: bytes) -> list[str]:
        for pattern, replacement in self.case.masks:
            data = re.sub(pattern, replacement, data)
        lines = []
        for line in data.splitlines(keepends=True):
            if line == b"PING\r\n" and not self.case.pings:
                continue
            if line.startswith(b"INFO "):
                lines += info_lines(line, self.case.info)
                continue
            text = ascii(line.decode("latin-1"))[1:-1]
            if len(text) > LINE_CHARACTERS_MAX:
                text = f"{text[:60]}… {len(line)} bytes, CRC {zlib.crc32(line):08x}"
            lines.append(text)
        return lines


def info_lines(line: bytes, whole: bool) -> list[str]:
    fields = json.loads(line[len("INFO ") :])
    kind = "after CONNECT" if fields.get("connect_info") else "first"
    end = line[line.rindex(b"}") + 1 :]
    lines = [f"INFO {{{kind}}}{ascii(end.decode())[1:-1]}"]
    if whole:
        for key in sorted(fields):
            value = "…" if key in INFO_VALUES_IGNORED else json.dumps(fields[key], sort_keys=True)
            lines.append(f"  {key}: {value}")
    return lines
