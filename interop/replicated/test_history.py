"""The checker of histories finds faults that are planted, and no others."""

import pytest

from harness.checks import equal
from replicated.history import (
    Delivery,
    Publish,
    Stored,
    differences,
    outage,
    problems_of_consumer,
    problems_of_counter,
    problems_of_stream,
)


def history() -> tuple[list[Publish], list[Stored]]:
    """Two publishers, each of which waits for its acknowledgements. The last message is not acknowledged, and stored."""
    publishes = [
        Publish("a1", b"a1", 0, 2, {1}),
        Publish("b1", b"b1", 1, 3, {2}),
        Publish("a2", b"a2", 2.5, 5, {4}),
        Publish("b2", b"b2", 3.5, 4, {3}),
        Publish("b3", b"b3", 4.5),
        Publish("a3", b"a3", 5.5),
    ]
    return publishes, [Stored(at, id, id.encode()) for at, id in enumerate(["a1", "b1", "b2", "a2", "b3"], 1)]


def lose(publishes, stored):
    del stored[1]
    for message in stored[1:]:
        message.sequence -= 1


def lose_the_last(publishes, stored):
    publishes[4].acknowledged, publishes[4].sequences = 6, {5}
    stored.pop()


def leave_a_gap(publishes, stored):
    stored[4].sequence = 6


def double(publishes, stored):
    stored.append(Stored(6, "a2", b"a2"))


def invent(publishes, stored):
    stored.append(Stored(6, "c1", b"c1"))


def swap(publishes, stored):
    stored[0].id, stored[1].id = stored[1].id, stored[0].id
    stored[0].payload, stored[1].payload = stored[1].payload, stored[0].payload


def change_the_payload(publishes, stored):
    stored[2].payload = b"b3"


def acknowledge_twice(publishes, stored):
    publishes[2].sequences = {4, 5}


def reorder(publishes, stored):
    """`b2` was sent after the acknowledgement of `b1`, and is stored before it."""
    publishes[1].sequences, publishes[3].sequences = {3}, {2}
    stored[1], stored[2] = Stored(2, "b2", b"b2"), Stored(3, "b1", b"b1")


def reorder_without_acknowledgement(publishes, stored):
    """`b3` was sent after all others were stored, and precedes one of them."""
    stored[3], stored[4] = Stored(4, "b3", b"b3"), Stored(5, "a2", b"a2")
    publishes[2].sequences, publishes[2].acknowledged = {5}, 4.2


FAULTS = {
    "lost": (lose, "b1 is acknowledged as 2, which holds b2"),
    "lost at the end": (lose_the_last, "b3 is acknowledged as 5, which holds nothing"),
    "a gap": (leave_a_gap, "sequences have gaps or repetitions: [6]"),
    "doubled": (double, "a2 is stored 2 times, at [4, 6]"),
    "invented": (invent, "c1 at 6 was never published"),
    "swapped": (swap, "a1 is acknowledged as 1, which holds b1"),
    "another payload": (change_the_payload, "b2 at 3 has another payload"),
    "two sequences": (acknowledge_twice, "a2 is acknowledged with several sequences: [4, 5]"),
    "reordered": (reorder, "b2 was sent after b1 was acknowledged, and precedes it: 2 and 3"),
    "reordered, not acknowledged": (
        reorder_without_acknowledgement, "b3 was sent after a2 was acknowledged, and precedes it: 4 and 5",
    ),
}


def test_right_history():
    equal(problems_of_stream(*history()), [], "problems")
    equal(problems_of_stream([], []), [], "problems of an empty history")


@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault(name):
    fault, expected = FAULTS[name]
    publishes, stored = history()
    fault(publishes, stored)
    assert expected in problems_of_stream(publishes, stored)


def test_order_of_what_overlaps_is_free():
    publishes = [Publish("a", b"a", 0, 3, {2}), Publish("b", b"b", 1, 2, {1}), Publish("c", b"c", 4, 5, {3})]
    stored = [Stored(1, "b", b"b"), Stored(2, "a", b"a"), Stored(3, "c", b"c")]
    equal(problems_of_stream(publishes, stored), [], "problems")


def delivered(*sequences: int) -> list[Delivery]:
    """Deliveries, each of which is confirmed at once; a negative number is a delivery alone."""
    found = []
    for sequence in sequences:
        found.append(Delivery(abs(sequence), b"%d" % abs(sequence)))
        if sequence > 0:
            found.append(Delivery(sequence, is_confirmed=True))
    return found


STORED = [Stored(at, f"{at}", b"%d" % at) for at in (1, 2, 3)]
CONSUMERS = {
    "right": (delivered(1, 2, 3), []),
    "again before the confirmation": (delivered(-1, 2, 1, 3), []),
    "again after the confirmation": (delivered(1, 2, -1, 3), ["1 is delivered after its confirmed acknowledgement"]),
    "missing": (delivered(1, 3), ["1 messages are never delivered: [2]"]),
    "not confirmed": (delivered(1, -2, 3), ["1 acknowledgements are not confirmed: [2]"]),
    "not stored": (delivered(1, 2, 3, 4), ["4 is delivered, and not stored"]),
    "another payload": (
        [*delivered(1, 2), Delivery(3, b"x"), Delivery(3, is_confirmed=True)],
        ["3 is delivered with another payload than the stored one"],
    ),
}


@pytest.mark.parametrize("name", CONSUMERS)
def test_consumer(name):
    deliveries, expected = CONSUMERS[name]
    equal(problems_of_consumer(STORED, deliveries), expected, "problems")


def test_counter():
    equal(problems_of_counter([1, 2, 3]), [], "problems")
    assert problems_of_counter([1, 2, 2, 3]) and problems_of_counter([1, 3]) and problems_of_counter([2])


def test_replicas_that_differ():
    equal(differences(STORED, list(STORED)), [], "differences of equal replicas")
    assert differences(STORED, STORED[:2]) and differences(STORED, [*STORED[:2], Stored(3, "3", b"x")])


def test_outage():
    good, bad = [(0, 1, True), (5, 6, True)], [(1, 2, False), (2, 3, False)]
    equal(outage(good), 0, "without a failure")
    equal(outage(good + bad), 5, "from the first failed attempt to the end of the good one")
    equal(outage([*good, *bad, (7, 8, False), (8, 9, True)]), 5, "the longest of two")
