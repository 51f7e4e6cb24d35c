"""Runs one case with one server, and records the responses."""

import base64
import json
import re
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

from harness.peer import CONNECT, Peer

# If no response arrives within this time, its absence is recorded.
ANSWER_SECONDS_MAX = 2

# Values that differ between servers or runs. Only their presence is compared.
VALUES_IGNORED = {
    "ack_time",
    "active",
    "created",
    "deliver_subject_restore",
    "first_ts",
    "id",
    "last_active",
    "last_ts",
    "leader",
    "pause_remaining",
    "pinned_client_id",
    "pinned_id",
    "pinned_ts",
    "server",
    "time",
    "timestamp",
    "ts",
}
# Keys of monitoring pages that depend on the machine, the product, and earlier requests.
MONITORED_IGNORED = {
    "api", "limits", "max_memory", "max_storage", "now", "server_id", "store_dir", "sync_always", "sync_interval", "system_account",
    "update_time", "subscriptions", "client_connections", "imports", "sublist_stats",
}
TIMING = ("lag", "seq", "active", "filter_subject")
IDENTITY = re.compile(rb"Nats-Stream-Identity: \w+")
PIN = re.compile(rb"(?<=Nats-Pin-Id: )\w+")
# A random id of the origin stream, in the header of a copied record.
SOURCE = re.compile(r"(?<= )[0-9A-Za-z]{8}(?=\r\n)")
UNREADABLE = re.compile(rb"(?<=Bad Request - json: )[^\r]*")
ACK = re.compile(r"(?<=\.)\d{19}(?=\.)")
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass
class Case:
    name: str
    steps: list
    # Subjects to subscribe to before the first step, for `Heard` steps.
    listens: tuple = ()


def api(path: str, body="", headers: bytes = b""):
    """A request to the API. `body` is text, or a value that is encoded as JSON."""
    return request("$JS.API." + path, body, headers)


def request(topic: str, body="", headers: bytes = b""):
    payload = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return topic, payload.encode() if isinstance(payload, str) else payload, headers


def publish(topic: str, body="", **headers):
    """A message to a stream. `Nats_Msg_Id="x"` is the header `Nats-Msg-Id: x`."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return request(topic, body, f"NATS/1.0\r\n{lines}\r\n".encode() if lines else b"")


@dataclass
class Heard:
    """Reads a number of messages of the subscribed subjects, sorted by subject: the order between subjects
    depends on timing."""

    count: int


@dataclass
class Several:
    """A request with several responses."""

    asked: tuple
    count: int


@dataclass
class Sent:
    """A request whose responses arrive at a subscribed subject, at any time."""

    asked: tuple
    reply: str


@dataclass
class Fast:
    """A message of a fast batch with several responses. Its reply subject contains its position in the batch."""

    topic: str
    place: str
    count: int = 1
    headers: bytes = b""


@dataclass
class Sleep:
    seconds: float


@dataclass
class Monitor:
    """A request to the HTTP port. Of `/varz` only the part about JetStream is recorded."""

    path: str


def play(case: Case, port: int, monitor: int) -> list[str]:
    with Peer(port, CONNECT) as peer, Peer(port, CONNECT) as ear:
        peer.socket.settimeout(ANSWER_SECONDS_MAX)
        ear.socket.settimeout(ANSWER_SECONDS_MAX)
        peer.send(b"SUB _INBOX.case.* 1\r\nSUB _INBOX.fast.> 2\r\n")
        clear(peer)
        for number, topic in enumerate(case.listens):
            ear.send(f"SUB {topic} {number}\r\n".encode())
        ear.flush()
        transcript = []
        for number, step in enumerate(case.steps):
            transcript += steps(peer, ear, monitor, number, step)
        clear(peer)
        return transcript


def steps(peer: Peer, ear: Peer, monitor: int, number: int, step) -> list[str]:
    match step:
        case Monitor(path):
            return [path, *(f"  {line}" for line in monitored(monitor, path))]
        case Heard(count):
            return ["heard"] + sorted(line for _ in range(count) for line in heard(ear))
        case Fast(topic, place, count, headers):
            asked = topic, b"x", headers
            lines = answers(peer, f"_INBOX.fast.{place}.$FI", asked, count)
            return [f"{topic} {place}", *(f"  {line}" for line in lines)]
        case Sent((topic, payload, headers), reply):
            peer.send(written(topic, reply, payload, headers))
            peer.flush()
            return named((topic, payload, headers))
        case Sleep(seconds):
            time.sleep(seconds)
            return []
        case Several(asked, count):
            return named(asked) + [f"  {line}" for line in answers(peer, number, asked, count)]
        case asked:
            return named(asked) + [f"  {line}" for line in answers(peer, number, asked)]


def monitored(port: int, path: str) -> list[str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=ANSWER_SECONDS_MAX) as answer:
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, body = error.code, error.read()
    try:
        told = json.loads(body)
    except ValueError:
        return [str(status), body.decode(errors="replace").strip()]
    if path.startswith("/varz"):
        told = told["jetstream"]
    for account in told.get("account_details", []):
        # nats-server's streams have no defined order.
        account.get("stream_detail", []).sort(key=lambda stream: stream["name"])
    return [str(status), json.dumps(normal(without(told, MONITORED_IGNORED)), sort_keys=True)]


def without(value, keys):
    if isinstance(value, dict):
        return {name: without(inner, keys) for name, inner in value.items() if name not in keys}
    if isinstance(value, list):
        return [without(inner, keys) for inner in value]
    return value


def named(step) -> list[str]:
    headers = step[2].decode(errors="replace")[8:].strip().replace("\r\n", "|")
    return [f"{step[0]} {step[1].decode(errors='replace')[:120]} {headers[:120]}".rstrip()]


def heard(ear: Peer) -> list[str]:
    try:
        line, message = ear.message()
    except TimeoutError:
        return ["(nothing)"]
    parts = line.split(" ")
    cut = int(parts[-2]) if parts[0] == "HMSG" else 0
    return [" ".join([parts[1], *shown(message[:cut], message[cut:])])]


def answers(peer: Peer, number: int | str, step, count: int = 1) -> list[str]:
    topic, payload, headers = step
    reply = number if isinstance(number, str) else f"_INBOX.case.{number}"
    peer.send(written(topic, reply, payload, headers))
    lines = []
    try:
        while count > 0:
            line, message = peer.message()
            parts = line.split(" ")
            # Deliveries of consumers have the record's own subject.
            if parts[1].startswith("_INBOX.case.") and parts[1] != reply:
                continue
            cut = int(parts[-2]) if parts[0] == "HMSG" else 0
            reply_to = "" if len(parts) - 3 - bool(cut) == 1 else ACK.sub("{time}", parts[3])
            lines += [f"{parts[1]} {reply_to}".rstrip()] if parts[1] != reply else []
            lines += shown(message[:cut], message[cut:])
            count -= 1
    except TimeoutError:
        lines.append("(no answer)")
    return lines


def written(topic: str, reply: str, payload: bytes, headers: bytes) -> bytes:
    if headers:
        total = len(headers) + len(payload)
        return f"HPUB {topic} {reply} {len(headers)} {total}\r\n".encode() + headers + payload + b"\r\n"
    return f"PUB {topic} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n"


def clear(peer: Peer):
    """Deletes all streams."""
    while True:
        answer = answers(peer, 0, api("STREAM.NAMES"))
        names = json.loads(answer[-1]).get("streams") or []
        if not names:
            return
        for name in names:
            answers(peer, 0, api(f"STREAM.DELETE.{name}"))


def shown(headers: bytes, payload: bytes) -> list[str]:
    lines = []
    if headers:
        headers = PIN.sub(b"{id}", headers)
        headers = UNREADABLE.sub(b"{not readable}", headers)
        headers = IDENTITY.sub(b"Nats-Stream-Identity: {id}", TIME.sub(b"{time}", headers))
        lines.append(headers.decode(errors="replace").replace("\r\n", "|"))
    try:
        lines.append(json.dumps(normal(json.loads(payload)), sort_keys=True))
    except ValueError:
        lines.append(payload.decode(errors="replace"))
    return lines


def normal(value, key: str = ""):
    if key in VALUES_IGNORED and isinstance(value, (str, int)):
        return value if value == "0001-01-01T00:00:00Z" else "{" + key + "}"
    if key == "hdrs" and isinstance(value, str):
        return SOURCE.sub("{id}", TIME.sub(b"{time}", base64.b64decode(value)).decode(errors="replace"))
    if key == "api" and isinstance(value, dict):
        # The number of requests depends on earlier cases and repetitions.
        return {"level": value.get("level")}
    if key == "client" and isinstance(value, dict):
        # Streams know the requester's account, not its connection.
        return {"acc": value.get("acc")}
    if key == "response" and isinstance(value, str):
        return normal(json.loads(value))
    if isinstance(value, dict):
        value = {name: normal(inner, name) for name, inner in value.items()}
        if "lag" in value:
            # The progress of a copy depends on timing.
            value = {name: inner for name, inner in value.items() if name not in TIMING}
        if value.get("err_code") == 10025 and "unknown field" not in value["description"]:
            # Each JSON library has other texts for invalid JSON.
            value["description"] = "{not readable}"
        return value
    if isinstance(value, list):
        return [normal(inner, key) for inner in value]
    if isinstance(value, str) and value.startswith("$JS.SNAPSHOT."):
        return "{transfer}"
    return value
