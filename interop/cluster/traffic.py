"""Cases that differ from those of leaf connections: queue groups are shared by the whole cluster."""

from harness.checks import check, equal
from harness.client import settle
from leaf import traffic
from leaf.traffic import Ends


def queue_is_shared(ends: Ends):
    """Members at both ends, one against three: each message reaches one, in proportion to their number."""
    here = ends.sender.subscribe(ends.subject("shared"), "workers")
    there = [ends.wanted("shared", "workers") for _ in range(3)]
    last = ends.wanted("last")
    settle(ends.sender, ends.receiver)
    ends.sender.publish_all(ends.subject("shared"), [b"%d" % n for n in range(1000)])
    ends.sender.publish(ends.subject("last"), b"")
    ends.sender.flush()
    # It comes after all others, on the same route.
    ends.receiver.next(last)
    here_found = [int(message.payload) for message in ends.sender.quiet(here)]
    there_found = [int(message.payload) for number in there for message in ends.receiver.quiet(number)]
    equal(sorted(here_found + there_found), list(range(1000)), "what the members got together")
    check(150 < len(here_found) < 350, f"{len(here_found)} of 1000 messages at one member of four")


def trace_crosses(ends: Ends):
    """Both servers report their parts of a traced message. If it requests a trace only, it is not delivered."""
    wanted, reports = ends.wanted("traced"), ends.sender.subscribe(ends.subject("reports"))
    settle(ends.receiver, ends.sender)
    settle(ends.sender, ends.receiver)
    for more in ({"Nats-Trace-Only": "true"}, {}):
        headers = {"Nats-Trace-Dest": ends.subject("reports")} | more
        ends.sender.publish(ends.subject("traced"), b"hi", headers=headers)
        names, to_client = {}, 0
        # Each shard of a server reports for itself.
        while not (to_client and len(names) == 2):
            report = ends.sender.next(reports).json()
            first, *others = report["events"]
            names.setdefault(report["server"]["name"], set()).add(first.get("name", ""))
            to_client += sum(1 for event in others if event["type"] == "eg" and event["kind"] == 0)
        sources = set().union(*names.values())
        check(sources & set(names), f"no report of {list(names)} names the other server, but {sources}")
        equal(to_client, 1, "deliveries")
    equal(ends.receiver.next(wanted).payload, b"hi", "the payload")
    equal(ends.receiver.quiet(wanted), [], "further messages")


CASES = {name: case for name, case in traffic.CASES.items() if name != "a queue group prefers its own end"} | {
    "a queue group is shared": queue_is_shared,
    "a trace crosses": trace_crosses,
}
