"""What the workloads share: requests, and a publisher that does not wait and records each answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from power_cut.ledger import Broken, Ledger, Op

# A guard against hanging, not an expected time.
SECONDS_MAX = 20
ID = "Power-Cut-Id"


@dataclass
class Place:
    """The ports of a server."""

    port: int
    mqtt_port: int


@asynccontextmanager
async def connected(place: Place) -> AsyncIterator[Client]:
    async def ignored(_):
        pass

    client = await nats.connect(
        f"nats://127.0.0.1:{place.port}",
        allow_reconnect=False,
        connect_timeout=SECONDS_MAX,
        error_cb=ignored,
        pending_size=64 << 20,
    )
    try:
        yield client
    finally:
        # The server may be gone.
        with suppress(OSError):
            await client.close()


def payload(number: int, size: int) -> bytes:
    """Returns the bytes of a message, at least 12. The number determines all of them."""
    head = b"%011d " % number
    unit = b"%x." % (number * 2_654_435_761 % (1 << 32))
    return head + (unit * (size // len(unit) + 1))[: max(0, size - len(head))]


def parsed(message: Msg) -> dict:
    """Returns the answer to a publish."""
    status = (message.headers or {}).get("Status")
    if status:
        return {"error": {"code": int(status)}}
    return json.loads(message.data) if message.data else {}


class Publisher:
    """Publishes in order, with at most `in_flight` publishes that are not answered yet."""

    def __init__(self, client: Client, ledger: Ledger, in_flight: int):
        self.client = client
        self.ledger = ledger
        self.room = asyncio.Semaphore(in_flight)
        self.inbox = client.new_inbox()
        self.waiting: dict[str, Op] = {}

    @classmethod
    async def new(cls, client: Client, ledger: Ledger, in_flight: int = 50) -> "Publisher":
        publisher = cls(client, ledger, in_flight)
        await client.subscribe(publisher.inbox + ".>", cb=publisher.answered, pending_msgs_limit=-1)
        return publisher

    async def answered(self, message: Msg):
        op = self.waiting.pop(message.subject, None)
        if op is not None:
            op.finish(parsed(message))
            self.room.release()

    async def publish(self, subject: str, headers: dict[str, str] | None = None, size: int = 100, **about) -> Op:
        """Publishes one message. With size 0 the payload is empty, and a header carries the number."""
        await self.room.acquire()
        op = self.ledger.begin("publish", subject=subject, size=size, **about)
        reply = f"{self.inbox}.{op.number}"
        self.waiting[reply] = op
        if size == 0:
            headers = (headers or {}) | {ID: str(op.number)}
        await self.client.publish(subject, payload(op.number, size) if size else b"", reply, headers)
        return op


async def request(client: Client, subject: str, body: dict | None = None) -> dict:
    data = json.dumps(body).encode() if body is not None else b""
    message = await client.request(subject, data, timeout=SECONDS_MAX)
    return json.loads(message.data)


async def api(client: Client, ledger: Ledger, what: str, subject: str, body: dict | None = None, **about) -> Op:
    """Sends a request to JetStream and records it in the ledger."""
    op = ledger.begin(what, **about)
    op.finish(await request(client, f"$JS.API.{subject}", body))
    return op


async def make_stream(client: Client, ledger: Ledger, config: dict):
    """Creates a stream unless it exists."""
    name = config["name"]
    found = await request(client, f"$JS.API.STREAM.INFO.{name}")
    if "error" in found:
        op = await api(client, ledger, "create", f"STREAM.CREATE.{name}", config, stream=name)
        if op.is_refused:
            raise RuntimeError(f"stream {name} cannot be made: {op.answer['error']}")


@dataclass
class Stored:
    """A message that a stream holds."""

    sequence: int
    subject: str
    headers: dict[str, str]
    data: bytes

    @property
    def number(self) -> int | None:
        """The number of the publish; None for a message that the server has created itself."""
        if ID in self.headers:
            return int(self.headers[ID])
        head = self.data[:11]
        return int(head) if head.isdigit() and len(self.data) >= 12 else None


async def stored(client: Client, stream: str) -> list[Stored]:
    """Reads all messages of a stream that allows direct gets."""
    found: list[Stored] = []
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox, pending_msgs_limit=-1, pending_bytes_limit=-1)
    try:
        from_ = 1
        while True:
            body = {"seq": from_, "next_by_subj": ">", "batch": 1000}
            await client.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(body).encode(), inbox)
            last = from_
            while True:
                message = await answers.next_msg(timeout=SECONDS_MAX)
                headers = message.headers or {}
                status = headers.get("Status")
                if status is not None:
                    break
                own = {key: value for key, value in headers.items() if not key.startswith("Nats-") or key in SHOWN}
                sequence = int(headers["Nats-Sequence"])
                found.append(Stored(sequence, headers["Nats-Subject"], own, message.data))
                last = sequence + 1
            if status == "204" and int(headers.get("Nats-Num-Pending", 0)) > 0:
                from_ = last
                continue
            if status in ("204", "404"):
                return found
            raise Broken(f"stream {stream} cannot be read: {headers}")
    finally:
        await answers.unsubscribe()


SHOWN = {"Nats-Marker-Reason", "Nats-TTL", "Nats-Rollup", "Nats-Incr", "Nats-Stream-Source"}


async def stream_info(client: Client, stream: str) -> dict | None:
    found = await request(client, f"$JS.API.STREAM.INFO.{stream}")
    if "error" in found:
        return None
    return found
