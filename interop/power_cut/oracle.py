"""What a stream must hold after a power cut, judged by the answers that its publishers received.

A message whose publish was acknowledged may be missing only if something removed it that is still in effect: newer
messages that fill a limit, a rollup that is there, an expired time to live, or a removal that a client has requested.
A message that was lost in the cut is no reason.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from power_cut.clients import Place, Stored, connected, payload, request, stored, stream_info
from power_cut.ledger import Broken, Op, check


@dataclass(frozen=True)
class Limits:
    per_subject: int | None = None
    messages: int | None = None
    # Counted as in `record_bytes`.
    bytes: int | None = None


def covers(filter_: str, subject: str) -> bool:
    """Returns whether a purge filter matches. Only the filters that the workloads use are supported."""
    return filter_ in ("", ">", subject)


def record_bytes(subject: str, size: int) -> int:
    """Returns the number of bytes that a message without headers counts for."""
    return 30 + len(subject) + size


class Removals:
    """The deletions and purges that clients have requested."""

    def __init__(self, ops: Iterable[Op]):
        self.deleted: dict[int, list[Op]] = {}
        self.purges: list[Op] = []
        for op in ops:
            if op.what == "delete":
                self.deleted.setdefault(op.target, []).append(op)
            elif op.what == "purge":
                self.purges.append(op)

    def may_have_removed(self, op: Op) -> bool:
        return op.number in self.deleted or any(
            covers(purge.filter, op.subject) and (purge.done is None or op.at <= purge.done) for purge in self.purges
        )

    def must_have_removed(self, op: Op) -> str | None:
        """Returns which answered removal must have removed this message, or None."""
        if not op.is_granted:
            return None
        for delete in self.deleted.get(op.number, ()):
            if delete.is_granted:
                return "a deletion that was answered"
        for purge in self.purges:
            is_whole = not purge.about.get("keep") and not purge.about.get("seq")
            if purge.is_granted and is_whole and covers(purge.filter, op.subject) and op.done < purge.at:
                return f"a purge of {purge.filter or 'everything'} that was answered"
        return None


def has_expired(op: Op) -> bool:
    ttl = op.about.get("ttl")
    return ttl is not None and time.time() >= op.unix + ttl


class Holding:
    """What is found in a stream, together with what was published to it."""

    def __init__(self, stream: str, ops: list[Op], found: list[Stored]):
        self.stream = stream
        self.publishes = [op for op in ops if op.what == "publish"]
        self.removals = Removals(ops)
        self.found = found
        self.by_number: dict[int, Stored] = {}
        self.markers = [message for message in found if "Nats-Marker-Reason" in message.headers]

    def name(self, op: Op) -> str:
        answer = "in flight"
        if op.is_granted:
            answer = f"acknowledged as {op.answer['seq']}" if "seq" in op.answer else "acknowledged"
        return f"stream {self.stream}: publish {op.number} to {op.subject!r}, {answer},"

    def check_found(self):
        """Checks each message that is there: it was published so, not refused, is stored once, at the
        acknowledged sequence, and in order."""
        known = {op.number: op for op in self.publishes}
        newest = -1
        for message in self.found:
            where = f"stream {self.stream}, sequence {message.sequence} of {message.subject!r}"
            if "Nats-Marker-Reason" in message.headers:
                continue
            check(message.number is not None, f"{where}: nobody published {message.data[:40]!r} {message.headers}")
            op = known.get(message.number)
            check(op is not None, f"{where}: publish {message.number} was not sent before the cut")
            check(op.number not in self.by_number, f"{where}: publish {op.number} is stored twice")
            self.by_number[op.number] = message
            check(op.subject == message.subject, f"{where}: publish {op.number} went to {op.subject!r}")
            wanted = payload(op.number, op.size) if op.size else b""
            check(message.data == wanted or op.about.get("content_differs"), f"{where}: publish {op.number} is changed")
            check(not op.is_refused, f"{where}: publish {op.number} was refused with {op.answer}")
            if op.is_granted and not op.about.get("is_batch_part"):
                check(
                    op.answer["seq"] == message.sequence,
                    f"{where}: publish {op.number} was acknowledged as {op.answer['seq']}",
                )
            check(op.number > newest, f"{where}: publish {op.number} stands behind {newest}, which was sent later")
            newest = op.number

    def check_missing(self, limits: Limits, needed: Callable[[Op], bool] = lambda op: op.is_granted):
        """Checks that no acknowledged message is missing without a reason."""
        newer: Counter[str] = Counter(message.subject for message in self.markers)
        newer_all, newer_bytes = 0, 0
        rolled_up, all_rolled_up = set(), False
        # A stream drops its oldest messages first. So once one does not fit into a limit, older ones are dropped,
        # too, even small ones.
        is_below_limit = False
        for op in reversed(self.publishes):
            is_there = op.number in self.by_number
            # An expired message may be there or not. Where expiry leaves a marker, the marker counts in its
            # place.
            is_removed = not is_there and (
                self.removals.may_have_removed(op) or (has_expired(op) and not op.about.get("leaves_marker"))
            )
            is_replaced = False
            if not is_there and not is_removed:
                size = record_bytes(op.subject, op.size)
                is_below_limit |= limits.messages is not None and newer_all >= limits.messages
                is_below_limit |= limits.bytes is not None and newer_bytes + size > limits.bytes
                is_replaced = (
                    (limits.per_subject is not None and newer[op.subject] >= limits.per_subject)
                    or is_below_limit
                    or all_rolled_up
                    or op.subject in rolled_up
                )
                if not is_replaced and needed(op):
                    raise Broken(f"{self.name(op)} is gone; {self.what_is_left(op)}")
            if is_there or is_removed:
                newer[op.subject] += 1
                newer_all += 1
                newer_bytes += record_bytes(op.subject, op.size)
            # A rollup takes effect even if it was itself removed or replaced later.
            if is_there or is_removed or is_replaced:
                match op.about.get("rollup"):
                    case "sub":
                        rolled_up.add(op.subject)
                    case "all":
                        all_rolled_up = True

    def what_is_left(self, op: Op) -> str:
        of_subject = [m for m in self.found if m.subject == op.subject]
        numbers = [f"{m.number} at {m.sequence}" for m in of_subject[-5:]]
        there = f"its subject holds {', '.join(numbers)}" if numbers else "its subject is empty"
        later = [p for p in self.publishes if p.subject == op.subject and p.number > op.number]
        return f"{there}; of later publishes to it {len([p for p in later if p.is_granted])} were acknowledged and " \
            f"{len([p for p in later if p.answer is None])} in flight"

    def check_gone(self, limits: Limits):
        """Checks that no removed message is there, and that no limit is exceeded."""
        for op in self.publishes:
            if op.number in self.by_number:
                reason = self.removals.must_have_removed(op)
                check(reason is None, f"{self.name(op)} is back after {reason}")
        rollups = [op for op in self.publishes if op.about.get("rollup") and op.number in self.by_number]
        for rollup in rollups:
            at = self.by_number[rollup.number].sequence
            for message in self.found:
                if message.sequence < at and (rollup.rollup == "all" or message.subject == rollup.subject):
                    raise Broken(
                        f"stream {self.stream}: publish {message.number} to {message.subject!r} is there beside "
                        f"rollup {rollup.number}, which is newer"
                    )
        subjects = Counter(message.subject for message in self.found)
        if limits.per_subject is not None:
            for subject, count in subjects.items():
                check(
                    count <= limits.per_subject,
                    f"stream {self.stream}: {count} messages of {subject!r}, at most {limits.per_subject} may be",
                )
        if limits.messages is not None:
            check(len(self.found) <= limits.messages, f"stream {self.stream}: {len(self.found)} messages")
        if limits.bytes is not None:
            size = sum(record_bytes(message.subject, len(message.data)) for message in self.found)
            check(size <= limits.bytes, f"stream {self.stream}: {size} bytes, at most {limits.bytes} may be")


async def check_stream(
    place: Place, stream: str, ops: list[Op], limits: Limits = Limits(), probe: str | None = None
) -> Holding | None:
    """Checks all promises about a stream's messages. Returns None if the stream need not exist. `probe` is a
    subject to publish to, which shows that the stream's sequence continues."""
    async with connected(place) as client:
        info = await stream_info(client, stream)
        if info is None:
            created = [op for op in ops if op.what == "create" and op.stream == stream]
            check(not any(op.is_granted for op in created), f"stream {stream}, which was made, is not there")
            return None
        holding = Holding(stream, ops, await stored(client, stream))
        holding.check_found()
        holding.check_missing(limits)
        holding.check_gone(limits)
        check_state(info["state"], holding)
        if probe is not None:
            answer = await request(client, probe, {})
            check("seq" in answer, f"stream {stream}: a publish after the cut is refused: {answer}")
            check_last(answer["seq"] - 1, holding)
    return holding


def check_state(state: dict, holding: Holding):
    # A message may have expired between the two requests.
    if not any("ttl" in op.about for op in holding.publishes):
        check(
            state["messages"] == len(holding.found),
            f"stream {holding.stream}: {len(holding.found)} messages are found, its state says {state['messages']}",
        )
    check_last(state["last_seq"], holding)


def check_last(last: int, holding: Holding):
    granted = [op.answer for op in holding.publishes if op.is_granted]
    acknowledged = max((answer["seq"] for answer in granted if "seq" in answer), default=0)
    check(
        last >= acknowledged,
        f"stream {holding.stream}: sequence {acknowledged} was given and acknowledged, the last is now {last}",
    )
