"""A peer that sends and receives raw bytes."""

import json
import socket
import time

# Protects against hanging. No case passes or fails because it is faster than this.
READ_SECONDS_MAX = 15

CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}\r\n'


class Closed(Exception):
    """The server closed the connection."""


class Peer:
    def __init__(self, port: int, connect: bytes = b"", receive_buffer_bytes: int = 0):
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(READ_SECONDS_MAX)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = bytearray()
        if connect:
            self.info = json.loads(self.line()[len("INFO ") :])
            self.send(connect)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data: bytes):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed(str(error)) from error

    def fill(self):
        """Waits for more bytes. A reset counts as a close: which of the two a peer sees depends on whether the
        server has read all bytes, and so on timing."""
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError as error:
            raise Closed("reset") from error
        if not data:
            raise Closed("end of stream")
        self.buffer += data

    def take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self.fill()
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def line(self) -> str:
        start = 0
        while (end := self.buffer.find(b"\r\n", start)) < 0:
            start = max(0, len(self.buffer) - 1)
            self.fill()
        data = bytes(self.buffer[:end])
        del self.buffer[: end + 2]
        return data.decode(errors="replace")

    def message(self) -> tuple[str, bytes]:
        """Returns the next message's control line and payload. Answers PING; skips INFO and +OK."""
        while True:
            line = self.line()
            verb = line.split(" ", 1)[0]
            if verb in ("MSG", "HMSG"):
                payload = self.take(int(line.rsplit(" ", 1)[1]) + 2)
                return line, payload[:-2]
            if verb == "PING":
                self.send(b"PONG\r\n")
            elif verb == "-ERR":
                raise AssertionError(line)
            elif verb not in ("INFO", "+OK", "PONG"):
                raise AssertionError(f"unexpected: {line}")

    def flush(self):
        """Returns when the server has handled everything sent so far. Drops messages that arrive before."""
        self.send(b"PING\r\n")
        while (line := self.line()) != "PONG":
            verb = line.split(" ", 1)[0]
            if verb in ("MSG", "HMSG"):
                self.take(int(line.rsplit(" ", 1)[1]) + 2)
            elif verb == "PING":
                self.send(b"PONG\r\n")
            elif verb == "-ERR":
                raise AssertionError(line)

    def until_closed(self) -> bytes:
        """Returns all bytes up to the server's close."""
        deadline = time.monotonic() + READ_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                self.fill()
            except Closed:
                data = bytes(self.buffer)
                self.buffer.clear()
                return data
        raise AssertionError("the server keeps sending")
