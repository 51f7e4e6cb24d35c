"""Imports between accounts whose clients are connected to different nodes."""

from harness.checks import equal, until
from harness.client import Client, settle
from leaf.stage import Stage

from .shapes import start

ACCOUNTS = """
accounts {
  A {
    users: [ { user: a, password: a } ]
    exports: [ { stream: "ev.>" }, { service: "svc.*" } ]
  }
  B {
    users: [ { user: b, password: b } ]
    imports: [
      { stream { account: A, subject: "ev.*.x" }, to: "seen.$1" }
      { service { account: A, subject: "svc.*" } }
    ]
  }
}
"""
AGAIN_SECONDS = 0.2


def arrives(publisher: Client, subject: str, reply: str, subscriber: Client, number: int) -> bool:
    publisher.publish(subject, b"probe", reply)
    publisher.flush()
    try:
        subscriber.next(number, AGAIN_SECONDS)
        return True
    except TimeoutError:
        return False


def service(kinds: str):
    """Requester, responder, and the inbox are at three nodes."""

    def case(stage: Stage):
        nodes = start(stage, kinds, more=ACCOUNTS)
        responder, requester = nodes[0].client("a", "a"), nodes[-1].client("b", "b")
        third = nodes[1].client("b", "b")
        requests, answers = responder.subscribe("svc.*"), third.subscribe("in")
        responder.flush()
        settle(third, requester)
        until(lambda: arrives(requester, "svc.probe", "nowhere", responder, requests), "no request arrives")
        responder.quiet(requests)
        for number in range(100):
            requester.publish("svc.x", b"%d" % number, "in")
            request = responder.next(requests)
            responder.publish(request.reply, b"to " + request.payload)
            equal(third.next(answers).payload, b"to %d" % number, "the response")
        equal(third.quiet(answers), [], "more responses than requests")
        responder.unsubscribe(requests)
        responder.flush()
        until(lambda: refused(requester), "requests without a responder are not refused")

    return case


def refused(requester: Client) -> bool:
    try:
        return requester.ask("svc.x", seconds=AGAIN_SECONDS).status == 503
    except TimeoutError:
        return False


def stream(kinds: str):
    """Subscribers at all nodes receive each message of another account once, and a queue group shares them."""

    def case(stage: Stage):
        nodes = start(stage, kinds, more=ACCOUNTS)
        publisher = nodes[0].client("a", "a")
        clients = [node.client("b", "b") for node in nodes]
        plain = [client.subscribe("seen.*") for client in clients]
        shared = [client.subscribe("seen.*", "q") for client in clients]
        for client, number, member in zip(clients, plain, shared):
            until(lambda: arrives(publisher, "ev.probe.x", "", client, number), "no message arrives")
            until(lambda: arrives(publisher, "ev.probe.x", "", client, member), "no message for the group arrives")
        for client, number, member in zip(clients, plain, shared):
            client.quiet(number)
            client.quiet(member)
        publisher.publish_all("ev.1.x", [b"%d" % n for n in range(300)])
        publisher.flush()
        expected = list(range(300))
        for client, number in zip(clients, plain):
            found = client.take(number, 300)
            equal([int(message.payload) for message in found], expected, "what a subscriber got")
            equal({message.subject for message in found}, {"seen.1"}, "the subject")
            equal(client.quiet(number), [], "more than was sent")
        found = [int(message.payload) for client, member in zip(clients, shared) for message in client.quiet(member)]
        equal(sorted(found), expected, "what the group got")

    return case


KINDS = ("ttt", "ttr", "rrt", "trr", "rtr")
CASES = {f"a service at {kinds}": service(kinds) for kinds in KINDS} | {
    f"a stream at {kinds}": stream(kinds) for kinds in KINDS
}
