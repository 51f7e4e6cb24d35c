"""Messages over a leaf connection. Each case runs once in each direction and in each position of the server under
test."""

import secrets

from harness.checks import check, equal, until
from harness.client import Client, Message, received, settle

from .shapes import Shape

ORDERED = 20_000
SUBJECTS = 5_000


class Ends:
    """Two clients, one at each end, and a prefix for their subjects."""

    def __init__(self, sender: Client, receiver: Client):
        self.sender = sender
        self.receiver = receiver
        self.prefix = f"traffic.{secrets.token_hex(6)}"

    def subject(self, name: str) -> str:
        return f"{self.prefix}.{name}"

    def wanted(self, name: str, queue: str = "") -> int:
        """Subscribes the receiver, and waits until the sender's server knows the interest."""
        number = self.receiver.subscribe(self.subject(name), queue)
        settle(self.receiver, self.sender)
        return number

    def received(self, number: int) -> list[Message]:
        return received(self.receiver, number, self.sender)


def publishes(ends: Ends):
    sizes = [0, 1, 100, 4095, 4096, 65_536, 900_000]
    number = ends.wanted("*.>")
    for size in sizes:
        payload = bytes(n * 31 & 255 for n in range(size))
        ends.sender.publish(ends.subject(f"size.{size}"), payload, reply=f"back.{size}")
    for size, message in zip(sizes, ends.receiver.take(number, len(sizes))):
        equal((message.subject, message.reply), (ends.subject(f"size.{size}"), f"back.{size}"), "where from and to")
        check(message.payload == bytes(n * 31 & 255 for n in range(size)), f"{size} bytes")
    equal(ends.received(number), [], "more than was sent")


def keeps_order(ends: Ends):
    number = ends.wanted("order.*")
    for first in range(0, ORDERED, 1000):
        for n in range(first, first + 1000, 100):
            ends.sender.publish_all(ends.subject(f"order.{n % 7}"), [b"%d" % m for m in range(n, n + 100)])
    found = [int(message.payload) for message in ends.receiver.take(number, ORDERED)]
    check(found == list(range(ORDERED)), "out of order, or not all of them")
    equal(ends.received(number), [], "more than was sent")


def headers(ends: Ends):
    number = ends.wanted("headers")
    sent = {"Color": "green", "X-Empty": "", "Nats-Msg-Id": "one", "Long": "x" * 3000}
    ends.sender.publish(ends.subject("headers"), b"with", headers=sent)
    ends.sender.publish(ends.subject("headers"), b"", headers={"A": "b"})
    ends.sender.publish(ends.subject("headers"), b"without")
    first, second, third = ends.receiver.take(number, 3)
    equal({name: first.header(name) for name in sent}, sent, "the headers")
    equal((first.payload, second.payload, second.header("a"), third.headers), (b"with", b"", "b", b""), "the rest")


def requests(ends: Ends):
    number = ends.wanted("service")
    for n in range(200):
        inbox = ends.sender.subscribe(ends.subject(f"inbox.{n}"))
        ends.sender.publish(ends.subject("service"), b"%d" % n, reply=ends.subject(f"inbox.{n}"))
        request = ends.receiver.next(number)
        ends.receiver.publish(request.reply, b"answer to " + request.payload, headers={"N": str(n)})
        answer = ends.sender.next(inbox)
        equal((answer.payload, answer.header("N")), (b"answer to %d" % n, str(n)), "the answer")
        ends.sender.unsubscribe(inbox)


def no_responders(ends: Ends):
    equal(ends.sender.ask(ends.subject("nobody")).status, 503, "of a subject that nobody ever wanted")
    number = ends.wanted("somebody")
    ends.receiver.unsubscribe(number)
    ends.receiver.flush()
    until(lambda: gone(ends, "somebody"), "the subscription that has gone still counts")


def gone(ends: Ends, name: str) -> bool:
    try:
        return ends.sender.ask(ends.subject(name), seconds=0.3).status == 503
    except TimeoutError:
        return False


def overlapping(ends: Ends):
    """With several matching subscriptions, a message crosses once and arrives once at each subscription."""
    filters = ["over.a", "over.*", "over.>", "*.a", ">"]
    numbers = [ends.wanted(name) for name in filters]
    for n in range(50):
        ends.sender.publish(ends.subject("over.a"), b"%d" % n)
    for name, number in zip(filters, numbers):
        found = [message.payload for message in ends.received(number) if message.subject.endswith("over.a")]
        equal(found, [b"%d" % n for n in range(50)], f"what {name} got")


def both_ends(ends: Ends):
    """Subscribers on the sender's side receive each message once; no copy returns over the connection."""
    here = ends.sender.subscribe(ends.subject("both"))
    there = ends.wanted("both")
    settle(ends.sender, ends.receiver)
    for n in range(100):
        ends.sender.publish(ends.subject("both"), b"%d" % n)
    wanted = [b"%d" % n for n in range(100)]
    equal([message.payload for message in ends.received(there)], wanted, "at the other end")
    equal([message.payload for message in received(ends.sender, here, ends.receiver)], wanted, "at this end")


def queue_members_there(ends: Ends):
    numbers = [ends.wanted("jobs", "workers") for _ in range(3)]
    for n in range(300):
        ends.sender.publish(ends.subject("jobs"), b"%d" % n)
    found = [int(message.payload) for number in numbers for message in ends.received(number)]
    equal(sorted(found), list(range(300)), "what the members got together")


def queue_prefers_this_end(ends: Ends):
    here = ends.sender.subscribe(ends.subject("jobs"), "workers")
    there = ends.wanted("jobs", "workers")
    settle(ends.sender, ends.receiver)
    for n in range(100):
        ends.sender.publish(ends.subject("jobs"), b"%d" % n)
    ends.sender.flush()
    equal(len(received(ends.sender, here, ends.receiver)), 100, "messages at the member of the same server")
    equal(ends.received(there), [], "messages at the member of the other server")
    ends.sender.unsubscribe(here)
    ends.sender.flush()
    for n in range(100):
        ends.sender.publish(ends.subject("jobs"), b"%d" % n)
    equal(len(ends.received(there)), 100, "messages at the other server's, once it is alone")


def queue_groups_apart(ends: Ends):
    """Two queue groups, one with two filters, and a plain subscription: each receives each message once."""
    first = [ends.wanted("tasks", "first") for _ in range(2)]
    second = [ends.wanted("*", "second"), ends.wanted("tasks", "second")]
    plain = ends.wanted("*")
    for n in range(100):
        ends.sender.publish(ends.subject("tasks"), b"%d" % n)
    found = {
        name: sorted(int(message.payload) for number in numbers for message in ends.received(number))
        for name, numbers in {"first": first, "second": second, "plain": [plain]}.items()
    }
    for name in found:
        equal(found[name], list(range(100)), f"what {name} got")


def limited(ends: Ends):
    """After the maximum number of messages, the interest also ends at the other side."""
    number = ends.receiver.subscribe(ends.subject("five"))
    ends.receiver.send(f"UNSUB {number} 5\r\n".encode())
    settle(ends.receiver, ends.sender)
    for n in range(20):
        ends.sender.publish(ends.subject("five"), b"%d" % n)
    equal([message.payload for message in ends.received(number)], [b"%d" % n for n in range(5)], "what came")
    until(lambda: gone(ends, "five"), "the subscription that is through still counts")


def many_subjects(ends: Ends):
    number = ends.receiver.subscribe(ends.subject("unused"))
    lines = (f"SUB {ends.subject(f'many.{n}')} {number}{n:05}\r\n" for n in range(SUBJECTS))
    for n in range(SUBJECTS):
        ends.receiver.queues[int(f"{number}{n:05}")] = ends.receiver.queues[number]
    ends.receiver.send("".join(lines).encode())
    settle(ends.receiver, ends.sender)
    for n in range(SUBJECTS):
        ends.sender.publish(ends.subject(f"many.{n}"), b"%d" % n)
    found = [int(message.payload) for message in ends.receiver.take(number, SUBJECTS)]
    check(found == list(range(SUBJECTS)), "not each once, in order")
    equal(ends.received(number), [], "more than was sent")
    # Closing the client removes all of its subscriptions.
    ends.receiver.close()
    for n in (0, SUBJECTS // 2, SUBJECTS - 1):
        until(lambda: gone(ends, f"many.{n}"), "the subscriptions of somebody who has left still count")


CASES = {
    "publishes of all sizes": publishes,
    "order": keeps_order,
    "headers": headers,
    "requests": requests,
    "no responders": no_responders,
    "overlapping filters": overlapping,
    "both ends want it": both_ends,
    "a queue group at the other end": queue_members_there,
    "a queue group prefers its own end": queue_prefers_this_end,
    "queue groups apart": queue_groups_apart,
    "a subscription for five": limited,
    "many subjects": many_subjects,
}


def in_both_directions(shape: Shape, case):
    for one, other in ((shape.near, shape.far), (shape.far, shape.near)):
        with one.client() as sender, other.client() as receiver:
            case(Ends(sender, receiver))
