"""What a stream must hold after a power cut, by what its publishers were told.

A message whose publish was acknowledged may be missing only if something removed it that is itself still in force:
newer messages of a limit that are there, a rollup that is there, a time to live that is over, or a removal that
somebody has asked for. A message that vanished in the cut justifies nothing."""

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
    # Counted as `record_bytes` does.
    bytes: int | None = None


def covers(filter_: str, subject: str) -> bool:
    """Of the filters that workloads purge by."""
    return filter_ in ("", ">", subject)


def record_bytes(subject: str, size: int) -> int:
    """How many bytes a message without headers counts for."""
    return 30 + len(subject) + size


class Removals:
    """What was asked to go."""

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
        """Which removal was answered, of a message that was acknowledged before it was asked for."""
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
    """What is found in a stream, beside what was published to it."""

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
        """Everything that is there was published, as it is, where it was acknowledged, once, in order."""
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
        """Nothing acknowledged is missing without a reason."""
        newer: Counter[str] = Counter(message.subject for message in self.markers)
        newer_all, newer_bytes = 0, 0
        rolled_up, all_rolled_up = set(), False
        # The oldest go first: below one that had to go for its size, smaller ones went before it.
        is_below_limit = False
        for op in reversed(self.publishes):
            is_there = op.number in self.by_number
            # What has expired was there or not; where it leaves a marker, that tells.
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
            # A rollup that went for another one had its effect.
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
        """What was removed for sure is not there, nor more than a limit lets be."""
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
    """Checks all that was promised of a stream's messages; None when there need not be such a stream. A `probe` is a
    subject to publish to, to see that the stream goes on where it was."""
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
    # Something may have expired between the two requests.
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
