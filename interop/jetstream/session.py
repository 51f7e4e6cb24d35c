"""Playing one case against one server, and writing down what is answered."""

import json
import re
from dataclasses import dataclass, field

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
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass
class Case:
    name: str
    steps: list
    flags: tuple = field(default_factory=tuple)


def api(path: str, body="", headers: bytes = b""):
    """A request of the API; `body` is text, or what is to be written as JSON."""
    return request("$JS.API." + path, body, headers)


def request(topic: str, body="", headers: bytes = b""):
    payload = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return topic, payload.encode() if isinstance(payload, str) else payload, headers


def play(case: Case, port: int) -> list[str]:
    with Peer(port, CONNECT) as peer:
        peer.socket.settimeout(ANSWER_SECONDS_MAX)
        peer.send(b"SUB _INBOX.case.* 1\r\n")
        clear(peer)
        transcript = []
        for number, step in enumerate(case.steps):
            transcript.append(f"{step[0]} {step[1].decode(errors='replace')[:120]}".rstrip())
            transcript += [f"  {line}" for line in answers(peer, number, step)]
        clear(peer)
        return transcript


def answers(peer: Peer, number: int, step) -> list[str]:
    topic, payload, headers = step
    reply = f"_INBOX.case.{number}"
    if headers:
        total = len(headers) + len(payload)
        peer.send(f"HPUB {topic} {reply} {len(headers)} {total}\r\n".encode() + headers + payload + b"\r\n")
    else:
        peer.send(f"PUB {topic} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n")
    try:
        while True:
            line, message = peer.message()
            parts = line.split(" ")
            if parts[1] != reply:
                continue
            cut = int(parts[-2]) if parts[0] == "HMSG" else 0
            return shown(message[:cut], message[cut:])
    except TimeoutError:
        return ["(no answer)"]


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
