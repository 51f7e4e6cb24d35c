"""One WebSocket connection of raw bytes, and the transcript of what it received."""

import base64
import hashlib
import os
import re
import socket
import struct
import time
import zlib
from dataclasses import dataclass, field

from wire.session import info_lines

ANSWER_SECONDS_MAX = 4
QUIET_SECONDS = 0.25
TEXT_CHARACTERS_MAX = 200

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = base64.b64encode(hashlib.sha1(f"{KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()
# Other headers of a response are up to the server.
HEADERS_COMPARED = (
    "upgrade",
    "connection",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "nats-no-masking",
    "x-one",
    "x-two",
)
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
NAMES = {CONTINUATION: "continuation", TEXT: "text", BINARY: "binary", CLOSE: "close", PING: "ping", PONG: "pong"}
MASK = b"\x01\x02\x03\x04"


@dataclass
class Case:
    name: str
    # Each is sent in a write of its own, after `request`.
    writes: list[bytes]
    request: bytes
    # The key in `SERVERS`.
    server: str = "plain"
    # The case ends with NATS PINGs and their answers. Otherwise everything is read until the connection closes.
    settles: bool = True
    # The connection is expected to stay open without an answer, so it is only read for a moment.
    stays: bool = False
    # Also compare the contents of INFO.
    info: bool = False
    # Write one byte at a time.
    drips: bool = False
    # The mask of the PINGs at the end.
    mask: bytes | None = MASK
    masks: list[tuple[bytes, bytes]] = field(default_factory=list)


def request(path="/", method="GET", version="HTTP/1.1", extra: str | bytes = "", **changed) -> bytes:
    """Builds an upgrade request. `changed` has other values of headers; None leaves a header out."""
    headers = {
        "Host": "127.0.0.1",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Version": "13",
    }
    for name, value in changed.items():
        headers[name.replace("_", "-")] = value
    lines = [f"{method} {path} {version}"]
    lines += [f"{name}: {value}" for name, value in headers.items() if value is not None]
    extra = extra if isinstance(extra, bytes) else extra.encode()
    return "\r\n".join(lines).encode() + b"\r\n" + extra + b"\r\n"


def frame(opcode: int, payload: bytes = b"", final=True, mask: bytes | None = MASK, reserved=0, length=None) -> bytes:
    """Builds one frame. `length` is the size of the length field: 7, 16, or 64 bits."""
    first = (0x80 if final else 0) | reserved | opcode
    masked = 0x80 if mask is not None else 0
    count = len(payload)
    length = length or (7 if count < 126 else 16 if count < 65536 else 64)
    head = {
        7: lambda: struct.pack(">BB", first, masked | count),
        16: lambda: struct.pack(">BBH", first, masked | 126, count),
        64: lambda: struct.pack(">BBQ", first, masked | 127, count),
    }[length]()
    if mask is None:
        return head + payload
    repeated = (mask * (count // 4 + 1))[:count]
    return head + mask + bytes(a ^ b for a, b in zip(payload, repeated, strict=True))


def deflated(payload: bytes) -> bytes:
    """Returns the payload of a compressed message (RFC 7692, section 7.2.1)."""
    packer = zlib.compressobj(wbits=-15)
    return (packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


def play(case: Case, port: int) -> list[str]:
    """Returns the transcript: the response to the request, the data, the control frames, and the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = Session(case, connection)
        session.write(case.request)
        lines, upgraded = session.response()
        if upgraded:
            session.until(lambda: b"INFO" in session.data or "mqtt" in case.server)
            for data in case.writes:
                session.write(data)
            # The second INFO follows the first PONG. The second PONG shows that nothing else follows.
            for pongs in (1, 2) if case.settles else ():
                session.write(frame(BINARY, b"PING\r\n", mask=case.mask))
                session.until(lambda count=pongs: session.data.count(b"PONG\r\n") >= count)
            if not case.settles:
                session.until(lambda: False, QUIET_SECONDS if case.stays else ANSWER_SECONDS_MAX)
            lines += session.transcript()
        return lines


class Session:
    def __init__(self, case: Case, connection: socket.socket):
        self.case = case
        self.connection = connection
        self.received = bytearray()
        self.data = bytearray()
        self.message: bytearray | None = None
        self.control: list[str] = []
        self.kinds: set[str] = set()
        self.end = "open"

    def write(self, data: bytes):
        # After the server has closed, a write may succeed or fail, depending on timing.
        try:
            if not self.case.drips:
                self.connection.sendall(data)
                return
            for byte in data:
                self.connection.sendall(bytes([byte]))
                time.sleep(0.0005)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def fill(self, deadline: float) -> bool:
        """Reads more bytes. Returns whether any came."""
        self.connection.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            data = self.connection.recv(1 << 20)
        except TimeoutError:
            return False
        except ConnectionResetError:
            data = b""
        if not data:
            self.end = "closed"
        self.received += data
        return bool(data)

    def response(self) -> tuple[list[str], bool]:
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while b"\r\n\r\n" not in self.received:
            if not self.fill(deadline):
                return [f"no response ({self.end})"], False
        head, _, rest = bytes(self.received).partition(b"\r\n\r\n")
        status, *headers = head.decode("latin-1").split("\r\n")
        # Some statuses have a comment after their text.
        lines = [status.partition(":")[0]]
        for header in headers:
            name, _, value = header.partition(":")
            if name.lower() in HEADERS_COMPARED and (name.lower() != "connection" or " 101 " in status):
                lines.append(f"{name.lower()}: {value.strip()}")
        self.received = bytearray(rest)
        return [lines[0], *sorted(lines[1:])], " 101 " in status

    def until(self, enough, seconds: float = ANSWER_SECONDS_MAX):
        deadline = time.monotonic() + seconds
        self.take_frames()
        while self.end == "open" and not enough() and self.fill(deadline):
            self.take_frames()

    def take_frames(self):
        while len(self.received) >= 2:
            first, second = self.received[:2]
            at, count = 2, second & 0x7F
            if count >= 126:
                at = 4 if count == 126 else 10
                if len(self.received) < at:
                    return
                count = int.from_bytes(self.received[2:at], "big")
            if second & 0x80:
                self.kinds.add("masked")
                at += 4
            if len(self.received) < at + count:
                return
            payload = bytes(self.received[at : at + count])
            del self.received[: at + count]
            self.take(first, payload)

    def take(self, first: int, payload: bytes):
        opcode = first & 0x0F
        if opcode >= 8:
            self.control.append(f"{NAMES.get(opcode, opcode)} {legible(opcode, payload)}".rstrip())
            return
        if opcode:
            self.kinds.add(NAMES[opcode] + (" compressed" if first & 0x40 else ""))
            self.message = bytearray() if first & 0x40 else None
        if self.message is None:
            self.data += payload
            return
        self.message += payload
        if first & 0x80:
            self.data += zlib.decompressobj(wbits=-15).decompress(bytes(self.message) + b"\x00\x00\xff\xff")
            self.message = None

    def transcript(self) -> list[str]:
        data = bytes(self.data)
        for pattern, replacement in self.case.masks:
            data = re.sub(pattern, replacement, data)
        lines = [f"frames: {', '.join(sorted(self.kinds))}"]
        for line in data.splitlines(keepends=True):
            if line == b"PING\r\n":
                continue
            if line.startswith(b"INFO "):
                lines += info_lines(line, self.case.info)
                continue
            text = ascii(line.decode("latin-1"))[1:-1]
            if len(text) > TEXT_CHARACTERS_MAX:
                text = f"{text[:60]}… {len(line)} bytes, CRC {zlib.crc32(line):08x}"
            lines.append(text)
        return lines + self.control + [self.end]


def legible(opcode: int, payload: bytes) -> str:
    if opcode == CLOSE and len(payload) >= 2:
        return f"{int.from_bytes(payload[:2], 'big')} {ascii(payload[2:].decode('latin-1'))}"
    return ascii(payload.decode("latin-1")) if payload else ""


def random_bytes(count: int) -> bytes:
    """Returns random bytes that are the same in every run."""
    chunks = (hashlib.sha256(str(number).encode()).digest() for number in range(count // 32 + 1))
    return b"".join(chunks)[:count]


assert os.name == "posix"
