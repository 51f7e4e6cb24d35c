"""Shared by the JetStream cases: filling streams, copying them, and reading all their records."""

import secrets
import time
from dataclasses import dataclass

from harness.checks import check, equal, until
from harness.client import WAIT_SECONDS_MAX, Client, Message, api


# Time without a response after which a request is repeated.
ASK_SECONDS_MAX = 3
# Number of messages that are published before their acknowledgements are awaited.
WINDOW = 100
# Time without acknowledgements after which messages are published again.
RESEND_SECONDS = 2
# Delay after refused messages.
REFUSED_SECONDS = 0.25


@dataclass
class Record:
    sequence: int
    subject: str
    payload: bytes
    source: str | None


def add(client: Client, name: str, prefix: str = "$JS.API", **config) -> dict:
    config = {"name": name, "storage": "file", "num_replicas": 1} | config
    return api(client, f"STREAM.CREATE.{name}", config, prefix)


def origin(name: str, domain: str, **more) -> dict:
    """Returns the configuration of a mirror's or source's origin in another domain."""
    return {"name": name, "external": {"api": f"$JS.{domain}.API", "deliver": ""}} | more


def state(client: Client, name: str, prefix: str = "$JS.API") -> dict:
    answer = info(client, name, prefix)
    check("error" not in answer, f"{name}: {answer.get('error')}")
    return answer["state"]


def absent(client: Client, name: str, prefix: str = "$JS.API"):
    """Checks that there is no such stream."""
    answer = info(client, name, prefix)
    equal(answer.get("error", {}).get("err_code"), 10059, f"the error for {name}")


def info(client: Client, name: str, prefix: str = "$JS.API") -> dict:
    """Returns the response to STREAM.INFO. The request is repeated if a cluster of nats-servers does not respond.
    This happens while the stream has no leader, or after a deletion that the stream's server has applied and the
    meta leader has not."""

    def answer():
        try:
            return client.ask(f"{prefix}.STREAM.INFO.{name}", seconds=ASK_SECONDS_MAX).json()
        except TimeoutError:
            return None

    return until(answer, f"no answer to STREAM.INFO.{name}", 2 * WAIT_SECONDS_MAX)


def store(client: Client, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> dict:
    """Publishes one message and returns its acknowledgement. A message id prevents a second copy."""
    headers = (headers or {}) | {"Nats-Msg-Id": secrets.token_hex(8)}
    found = answered(client, subject, payload, headers).json()
    found.pop("duplicate", None)
    return found


def answered(client: Client, subject: str, payload: bytes = b"", headers: dict[str, str] | None = None) -> Message:
    """Returns the response to a request to a stream. The request is repeated after status 503 or without a
    response, because the servers of a cluster may learn of a new stream's subjects after its creation was
    confirmed."""

    def answer():
        try:
            found = client.ask(subject, payload, headers, ASK_SECONDS_MAX)
        except TimeoutError:
            return None
        return None if found.status == 503 else found

    return until(answer, f"no stream answers at {subject}", 2 * WAIT_SECONDS_MAX)


def insist(client: Client, subject: str, payloads: list[bytes]):
    """Publishes until each message was acknowledged, also if servers are killed meanwhile. Each message has an
    id, so that it is stored once even if its acknowledgement is lost. The first message is sent alone: the nodes
    of a cluster may learn of a new stream's subjects late, and then the first few messages would be stored after
    others."""
    for batch in (payloads[:1], *(payloads[first : first + WINDOW] for first in range(1, len(payloads), WINDOW))):
        batch = {secrets.token_hex(8): payload for payload in batch}
        deadline = time.monotonic() + WAIT_SECONDS_MAX * 2
        while batch:
            check(time.monotonic() < deadline, f"never acknowledged: {len(batch)}")
            publish_and_wait(client, subject, batch)
            if batch:
                # A stream without a leader refuses at once.
                time.sleep(REFUSED_SECONDS)


def publish_and_wait(client: Client, subject: str, batch: dict[str, bytes]):
    """Publishes a batch, and removes the acknowledged messages from it."""
    for identity, payload in batch.items():
        client.publish(subject, payload, f"{client.inbox}.{identity}", {"Nats-Msg-Id": identity})
    asked = len(batch)
    for _ in range(asked):
        try:
            answer = client.next(client.answers, RESEND_SECONDS)
        except TimeoutError:
            return
        if answer.status == 0 and "error" not in answer.json():
            batch.pop(answer.subject.rsplit(".", 1)[1], None)


def numbers(first: int, count: int) -> list[bytes]:
    return [b"%d" % n for n in range(first, first + count)]


def fill(client: Client, subject: str, first: int, count: int):
    insist(client, subject, numbers(first, count))


def contents(client: Client, name: str, prefix: str = "$JS.API") -> list[Record]:
    """Returns all records of a stream."""
    count = state(client, name, prefix)["messages"]
    if count == 0:
        return []
    inbox = f"_INBOX.{secrets.token_hex(8)}"
    number = client.subscribe(inbox)
    client.flush()
    config = {"deliver_subject": inbox, "deliver_policy": "all", "ack_policy": "none", "inactive_threshold": 30 * 10**9}
    api(client, f"CONSUMER.CREATE.{name}", {"stream_name": name, "config": config}, prefix)
    found = [record(name, message) for message in client.take(number, count)]
    client.unsubscribe(number)
    return found


def record(name: str, message) -> Record:
    tokens = message.reply.split(".")
    sequence = int(tokens[tokens.index(name) + 3])
    return Record(sequence, message.subject, message.payload, message.header("Nats-Stream-Source"))


def caught_up(client: Client, name: str, last: int, prefix: str = "$JS.API"):
    """Waits until the stream's last sequence is `last`."""
    until(
        lambda: state(client, name, prefix)["last_seq"] >= last,
        lambda: f"{name} stays behind {last}: {state(client, name, prefix)}",
        2 * WAIT_SECONDS_MAX,
    )
    equal(state(client, name, prefix)["last_seq"], last, f"the last sequence of {name}")


def same(mirror: list[Record], wanted: list[Record]):
    """Checks that a mirror has the same records with the same sequences."""
    found = [(each.sequence, each.subject, each.payload) for each in mirror]
    check_equal_lists(found, [(each.sequence, each.subject, each.payload) for each in wanted])


def each_once(records: list[Record], payloads: list[bytes]):
    """Checks that the records have these payloads, in order and without repetition."""
    check_equal_lists([each.payload for each in records], payloads)


def check_equal_lists(found: list, wanted: list):
    if found == wanted:
        return
    missing = [each for each in wanted if each not in set(found)]
    twice = len(found) - len(set(found))
    raise AssertionError(
        f"found {len(found)}, wanted {len(wanted)}; missing {missing[:5]}, {twice} more than once"
        + ("" if missing or twice else ", in another order, or more than wanted")
    )
