"""A small NATS client. Each subscription stores its messages in a queue until they are taken."""

import collections
import itertools
import json
import secrets
import time
from dataclasses import dataclass

from harness.checks import WAIT_SECONDS_MAX, check
from harness.peer import Peer

# If no message arrives for this long, none is expected. Only checks that something does NOT arrive depend on it.
QUIET_SECONDS = 0.25
# Interval between two probes of `settle`.
AGAIN_SECONDS = 0.05


@dataclass
class Message:
    subject: str
    reply: str
    headers: bytes
    payload: bytes

    @property
    def status(self) -> int:
        """Returns the status in the first line of the headers; 0 without a status."""
        first = self.headers.split(b"\r\n", 1)[0].split()
        return int(first[1]) if len(first) > 1 else 0

    def header(self, name: str) -> str | None:
        for line in self.headers.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.decode().lower() == name.lower():
                return value.decode().strip()
        return None

    def json(self):
        return json.loads(self.payload)


def header_block(headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode()


class Client:
    """One connection to a client port."""

    def __init__(self, port: int, user: str = "", password: str = "", **connect):
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1}
        if user:
            options |= {"user": user, "pass": password}
        line = b"CONNECT " + json.dumps(options | connect).encode() + b"\r\n"
        self.peer = Peer(port, line)
        self.queues: dict[int, collections.deque[Message]] = {}
        self.numbers = itertools.count(1)
        self.pongs = 0
        self.errors: list[str] = []
        self.inbox = f"_INBOX.{secrets.token_hex(8)}"
        self.answers = self.subscribe(f"{self.inbox}.*")
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.peer.close()

    def send(self, data: bytes):
        # An earlier read may have set a shorter timeout.
        self.peer.socket.settimeout(WAIT_SECONDS_MAX)
        self.peer.send(data)

    def subscribe(self, subject: str, queue: str = "") -> int:
        number = next(self.numbers)
        self.queues[number] = collections.deque()
        self.send(f"SUB {subject} {queue + ' ' if queue else ''}{number}\r\n".encode())
        return number

    def unsubscribe(self, number: int):
        self.send(f"UNSUB {number}\r\n".encode())

    def publish(self, subject: str, payload: bytes = b"", reply: str = "", headers: dict[str, str] | None = None):
        to = f"{subject} {reply}" if reply else subject
        if headers is None:
            self.send(f"PUB {to} {len(payload)}\r\n".encode() + payload + b"\r\n")
            return
        block = header_block(headers)
        line = f"HPUB {to} {len(block)} {len(block) + len(payload)}\r\n".encode()
        self.send(line + block + payload + b"\r\n")

    def publish_all(self, subject: str, payloads):
        """Publishes several messages with one write."""
        self.send(b"".join(b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(each), each) for each in payloads))

    def flush(self):
        """Returns when the server has handled everything sent so far. Messages that arrive meanwhile are stored."""
        wanted = self.pongs + 1
        self.send(b"PING\r\n")
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while self.pongs < wanted:
            self.read(deadline)

    def next(self, number: int, seconds: float = WAIT_SECONDS_MAX) -> Message:
        """Returns the next message of a subscription."""
        deadline = time.monotonic() + seconds
        while not self.queues[number]:
            self.read(deadline)
        return self.queues[number].popleft()

    def take(self, number: int, count: int) -> list[Message]:
        return [self.next(number) for _ in range(count)]

    def quiet(self, number: int) -> list[Message]:
        """Returns the messages that arrive until there are no more."""
        found = []
        while True:
            try:
                found.append(self.next(number, QUIET_SECONDS))
            except TimeoutError:
                return found

    def ask(self, subject: str, payload: bytes = b"", headers: dict[str, str] | None = None, seconds=WAIT_SECONDS_MAX):
        """Sends a request and returns the first response. Without responders this is a message with status 503."""
        reply = f"{self.inbox}.{secrets.token_hex(4)}"
        self.publish(subject, payload, reply, headers)
        deadline = time.monotonic() + seconds
        while True:
            message = self.next(self.answers, max(0.001, deadline - time.monotonic()))
            # Responses to earlier requests may still arrive.
            if message.subject == reply:
                return message

    def read(self, deadline: float):
        """Reads one protocol line, and the payload of a message."""
        peer = self.peer
        while (end := peer.buffer.find(b"\r\n")) < 0:
            self.fill(deadline)
        line = bytes(peer.buffer[:end]).decode(errors="replace")
        words = line.split()
        if words[0] in ("MSG", "HMSG"):
            whole = end + 2 + int(words[-1]) + 2
            while len(peer.buffer) < whole:
                self.fill(deadline)
            body = bytes(peer.buffer[end + 2 : whole - 2])
            del peer.buffer[:whole]
            self.keep(words, body)
            return
        del peer.buffer[: end + 2]
        if words[0] == "PING":
            self.send(b"PONG\r\n")
        elif words[0] == "PONG":
            self.pongs += 1
        elif words[0] == "-ERR":
            self.errors.append(line)
        else:
            check(words[0] in ("INFO", "+OK"), f"unexpected: {line}")

    def keep(self, words: list[str], body: bytes):
        sizes = 2 if words[0] == "HMSG" else 1
        header_bytes = int(words[-2]) if sizes == 2 else 0
        subject, number, *reply = words[1:-sizes]
        message = Message(subject, reply[0] if reply else "", body[:header_bytes], body[header_bytes:])
        self.queues[int(number)].append(message)

    def fill(self, deadline: float):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("nothing came")
        self.peer.socket.settimeout(left)
        self.peer.fill()


def settle(subscriber: Client, publisher: Client):
    """Returns when all interest of `subscriber` is known to the server of `publisher`.

    Interest travels in order, so the interest that this function adds arrives last.
    """
    subject = f"settle.{secrets.token_hex(8)}"
    number = subscriber.subscribe(subject)
    subscriber.flush()
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        publisher.publish(subject)
        publisher.flush()
        try:
            subscriber.next(number, AGAIN_SECONDS)
            break
        except TimeoutError:
            check(time.monotonic() < deadline, "interest does not get there")
    subscriber.unsubscribe(number)
    subscriber.flush()
    # Further probes may still arrive, in a queue that nothing reads.


def received(subscriber: Client, number: int, *publishers: Client) -> list[Message]:
    """Returns all messages of a subscription that the publishers have sent.

    A later message of each publisher arrives first, and messages of one publisher arrive in order.
    """
    for publisher in publishers:
        settle(subscriber, publisher)
    subscriber.flush()
    found = list(subscriber.queues[number])
    subscriber.queues[number].clear()
    return found


def api(client: Client, endpoint: str, body=None, prefix: str = "$JS.API") -> dict:
    """Sends a JetStream request and returns the response. An error in the response fails the case."""
    found = request_api(client, endpoint, body, prefix)
    check("error" not in found, f"{prefix}.{endpoint}: {found.get('error')}")
    return found


def request_api(client: Client, endpoint: str, body=None, prefix: str = "$JS.API") -> dict:
    payload = b"" if body is None else json.dumps(body).encode()
    answer = client.ask(f"{prefix}.{endpoint}", payload)
    check(answer.status != 503, f"{prefix}.{endpoint}: nobody answers")
    return answer.json()
