"""What clients saw of a stream, and what must be true of it.

A publish is repeated with its message id until it is acknowledged. Without an acknowledgement it is unknown whether the
message is stored. Times are of one clock.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Publish:
    """A message that a publisher has sent, once or several times."""

    id: str
    payload: bytes
    sent: float
    acknowledged: float | None = None
    # The sequences of its acknowledgements: repetitions have their own.
    sequences: set[int] = field(default_factory=set)


@dataclass
class Stored:
    """A message that was read from the stream."""

    sequence: int
    id: str
    payload: bytes


@dataclass
class Delivery:
    """A message that a consumer delivered, or, if `is_confirmed`, the response to its acknowledgement."""

    sequence: int
    payload: bytes = b""
    is_confirmed: bool = False


def problems_of_stream(publishes: list[Publish], stored: list[Stored]) -> list[str]:
    """Returns how the content of a stream differs from what was promised to its publishers."""
    found = []
    known = {publish.id: publish for publish in publishes}
    by_sequence = {message.sequence: message for message in stored}
    sequences = [message.sequence for message in stored]
    if sequences != list(range(1, len(sequences) + 1)):
        found.append(f"sequences have gaps or repetitions: {gaps(sequences)}")
    for id, count in Counter(message.id for message in stored).items():
        if count > 1:
            at = [message.sequence for message in stored if message.id == id]
            found.append(f"{id} is stored {count} times, at {at}")
    for message in stored:
        publish = known.get(message.id)
        if publish is None:
            found.append(f"{message.id} at {message.sequence} was never published")
        elif publish.payload != message.payload:
            found.append(f"{message.id} at {message.sequence} has another payload")
    for publish in publishes:
        if len(publish.sequences) > 1:
            found.append(f"{publish.id} is acknowledged with several sequences: {sorted(publish.sequences)}")
        for sequence in publish.sequences:
            at = by_sequence.get(sequence)
            if at is None or at.id != publish.id:
                found.append(f"{publish.id} is acknowledged as {sequence}, which holds {at.id if at else 'nothing'}")
    return found + reordered(publishes, {message.id: message.sequence for message in stored})


def gaps(sequences: list[int]) -> list[int]:
    """Returns the first sequences that are not where they must be."""
    return [sequence for at, sequence in enumerate(sequences, 1) if sequence != at][:5]


def reordered(publishes: list[Publish], sequences: dict[str, int]) -> list[str]:
    """Returns the messages that precede one whose acknowledgement arrived before they were sent. This is also the order
    of a publisher that waits for each acknowledgement."""
    placed = [publish for publish in publishes if publish.id in sequences]
    acknowledged = sorted((each for each in placed if each.acknowledged is not None), key=lambda each: each.acknowledged)
    found, last, at = [], None, 0
    for publish in sorted(placed, key=lambda each: each.sent):
        while at < len(acknowledged) and acknowledged[at].acknowledged < publish.sent:
            if last is None or sequences[acknowledged[at].id] > sequences[last.id]:
                last = acknowledged[at]
            at += 1
        if last is not None and sequences[publish.id] < sequences[last.id]:
            where = f"{sequences[publish.id]} and {sequences[last.id]}"
            found.append(f"{publish.id} was sent after {last.id} was acknowledged, and precedes it: {where}")
    return found


def problems_of_consumer(stored: list[Stored], deliveries: list[Delivery]) -> list[str]:
    """Returns how a consumer, at its end, has broken its promises. `deliveries` are in the order of their arrival."""
    found, confirmed, delivered = [], set(), set()
    payloads = {message.sequence: message.payload for message in stored}
    for delivery in deliveries:
        sequence = delivery.sequence
        if delivery.is_confirmed:
            confirmed.add(sequence)
            continue
        if sequence in confirmed:
            found.append(f"{sequence} is delivered after its confirmed acknowledgement")
        if sequence not in payloads:
            found.append(f"{sequence} is delivered, and not stored")
        elif payloads[sequence] != delivery.payload:
            found.append(f"{sequence} is delivered with another payload than the stored one")
        delivered.add(sequence)
    if missing := sorted(payloads.keys() - delivered):
        found.append(f"{len(missing)} messages are never delivered: {missing[:5]}")
    if open := sorted(delivered - confirmed):
        found.append(f"{len(open)} acknowledgements are not confirmed: {open[:5]}")
    return found


def problems_of_counter(numbers: list[int]) -> list[str]:
    """Returns whether the numbers of the counters are not 1, 2, 3, and so on: each message expects the one before it."""
    wrong = [(at, number) for at, number in enumerate(numbers, 1) if at != number]
    return [f"number {at} of the counters is {number}" for at, number in wrong[:3]]


def differences(first: list[Stored], second: list[Stored]) -> list[str]:
    """Returns how the messages under another leader differ."""
    if first == second:
        return []
    pairs = [(one, other) for one, other in zip(first, second) if one != other][:3]
    return [f"another leader has {len(second)} messages instead of {len(first)}; others are at {pairs}"]


def outage(attempts: list[tuple[float, float, bool]]) -> float:
    """Returns the longest time from the start of a failed attempt to the end of the first successful one that started
    after it. An attempt is its start, its end, and whether it succeeded."""
    longest, failed = 0.0, None
    for start, end, is_good in sorted(attempts):
        if not is_good:
            failed = start if failed is None else failed
        elif failed is not None:
            longest, failed = max(longest, end - failed), None
    return longest
