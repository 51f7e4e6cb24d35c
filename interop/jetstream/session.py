"""Playing one case against one server, and writing down what is answered."""

import json
import re
import time
from dataclasses import dataclass

from harness.peer import CONNECT, Peer

# How long an answer may take before its absence counts as the answer.
ANSWER_SECONDS_MAX = 2

# Values that rightly differ between two servers or two runs. That they are there is compared.
VALUES_IGNORED = {
    "active",
    "created",
    "deliver_subject_restore",
    "first_ts",
    "id",
    "last_active",
    "last_ts",
    "leader",
    "pause_remaining",
    "pinned_ts",
    "time",
    "timestamp",
    "ts",
}
TIMING = ("lag", "seq", "active", "filter_subject")
IDENTITY = re.compile(rb"Nats-Stream-Identity: \w+")
ACK = re.compile(r"(?<=\.)\d{19}(?=\.)")
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass
class Case:
    name: str
    steps: list
    # What is listened to from the beginning, for steps that are `heard`.
    listens: tuple = ()


def api(path: str, body="", headers: bytes = b""):
    """A request of the API; `body` is text, or what is to be written as JSON."""
    return request("$JS.API." + path, body, headers)


def request(topic: str, body="", headers: bytes = b""):
    payload = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return topic, payload.encode() if isinstance(payload, str) else payload, headers


def publish(topic: str, body="", **headers):
    """A message to a stream; `Nats_Msg_Id="x"` is the header `Nats-Msg-Id: x`."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return request(topic, body, f"NATS/1.0\r\n{lines}\r\n".encode() if lines else b"")


@dataclass
class Heard:
    """So many messages to what is listened to, since the step before that was heard. Shown in the order of
    their topics: between topics it is a matter of timing."""

    count: int


@dataclass
class Several:
    """A request with so many answers."""

    asked: tuple
    count: int


@dataclass
class Sleep:
    seconds: float


def play(case: Case, port: int) -> list[str]:
    with Peer(port, CONNECT) as peer, Peer(port, CONNECT) as ear:
        peer.socket.settimeout(ANSWER_SECONDS_MAX)
        ear.socket.settimeout(ANSWER_SECONDS_MAX)
        peer.send(b"SUB _INBOX.case.* 1\r\n")
        clear(peer)
        for topic in case.listens:
            ear.send(f"SUB {topic} 1\r\n".encode())
        ear.flush()
        transcript = []
        for number, step in enumerate(case.steps):
            transcript += steps(peer, ear, number, step)
        clear(peer)
        return transcript


def steps(peer: Peer, ear: Peer, number: int, step) -> list[str]:
    match step:
        case Heard(count):
            return ["heard"] + sorted(line for _ in range(count) for line in heard(ear))
        case Sleep(seconds):
            time.sleep(seconds)
            return []
        case Several(asked, count):
            return named(asked) + [f"  {line}" for line in answers(peer, number, asked, count)]
        case asked:
            return named(asked) + [f"  {line}" for line in answers(peer, number, asked)]


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


def answers(peer: Peer, number: int, step, count: int = 1) -> list[str]:
    topic, payload, headers = step
    reply = f"_INBOX.case.{number}"
    if headers:
        total = len(headers) + len(payload)
        peer.send(f"HPUB {topic} {reply} {len(headers)} {total}\r\n".encode() + headers + payload + b"\r\n")
    else:
        peer.send(f"PUB {topic} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n")
    lines = []
    try:
        while count > 0:
            line, message = peer.message()
            parts = line.split(" ")
            # What a consumer delivers comes by the record's own topic.
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


def clear(peer: Peer):
    """Deletes every stream."""
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
    if isinstance(value, dict):
        value = {name: normal(inner, name) for name, inner in value.items()}
        if "lag" in value:
            # How far a copy is, and whether it has begun, is a matter of timing.
            value = {name: inner for name, inner in value.items() if name not in TIMING}
        if value.get("err_code") == 10025 and "unknown field" not in value["description"]:
            # Every JSON library has its own words for what it cannot read.
            value["description"] = "{not readable}"
        return value
    if isinstance(value, list):
        return [normal(inner, key) for inner in value]
    if isinstance(value, str) and value.startswith("$JS.SNAPSHOT."):
        return "{transfer}"
    return value
