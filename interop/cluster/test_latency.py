"""Service latency over the servers of a cluster, or of two clusters: requester, responder, and the subscriber to the
reports may be at different ones."""

import pytest

from harness.checks import check, equal
from harness.client import Client, settle
from harness.server import is_reference
from leaf.stage import Node, Stage

from . import gateways
from .shapes import block, made, until_meshed

ACCOUNTS = """
accounts {
  S {
    users: [ { user: s, password: s } ]
    exports: [
      { service: "all", latency: { sampling: 100%, subject: "latency.all" } }
      { service: "half", latency: { sampling: 50%, subject: "latency.half" } }
      { service: "traced", latency: { sampling: headers, subject: "latency.traced" } }
    ]
  }
  R {
    users: [ { user: r, password: r } ]
    imports: [
      { service: { account: S, subject: "all" }, to: "ask.all", share: true }
      { service: { account: S, subject: "half" }, to: "ask.half" }
      { service: { account: S, subject: "traced" }, to: "ask.traced" }
    ]
  }
}
"""
KINDS = ("ttt", "ttr", "trt", "rtt", "trr")
# The servers of requester, responder, and subscriber.
PLACES = [(0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2), (1, 2, 0), (2, 1, 2), (2, 0, 1)]
COUNT = 60


@pytest.fixture(scope="module", params=[*KINDS, "ttt shards: 3", "trt shards: 3"])
def nodes(request):
    kinds, _, more = request.param.partition(" ")
    with Stage() as stage:
        nodes = made(stage, kinds)
        for kind, node in zip(kinds, nodes):
            # Other servers know no shards.
            node.write(block(node, nodes), ACCOUNTS, more if kind == "t" and not is_reference() else "")
            node.start()
        until_meshed(nodes)
        yield nodes


# The clusters that gateways join.
CLUSTERS = ("t t", "t r", "r t", "tt r", "r tt", "tr rt")


@pytest.fixture(scope="module", params=[*CLUSTERS, "tt tt shards: 3"])
def clusters(request):
    east, west, *more = request.param.split(" ", 2)
    with Stage() as stage:
        found = gateways.start(stage, more=ACCOUNTS + " ".join(more if not is_reference() else []), east=east, west=west)
        yield found["east"], found["west"]


class Visitors:
    """A requester, a responder, and a subscriber to the reports, which know of each other."""

    def __init__(self, nodes: list[Node], at: tuple[int, int, int], service: str):
        requester, responder, subscriber = (nodes[number] for number in at)
        self.service = service
        self.requester = Client(requester.port, "r", "r", name="requester")
        self.responder = Client(responder.port, "s", "s", name="responder")
        self.subscriber = Client(subscriber.port, "s", "s", name="subscriber")
        self.requests = self.responder.subscribe(service)
        self.reports = self.subscriber.subscribe(f"latency.{service}")
        for node in nodes:
            with Client(node.port, "s", "s") as other:
                for client in (self.responder, self.subscriber):
                    settle(client, other)
                    settle(other, client)

    def __enter__(self) -> "Visitors":
        return self

    def __exit__(self, *_):
        for client in (self.requester, self.responder, self.subscriber):
            client.close()

    def ask(self, headers: dict[str, str] | None = None):
        reply = f"{self.requester.inbox}.answer"
        self.requester.publish(f"ask.{self.service}", b"question", reply, headers)
        request = self.responder.next(self.requests)
        self.responder.publish(request.reply, b"answer")
        equal(self.requester.next(self.requester.answers).payload, b"answer", "the answer")


@pytest.mark.parametrize("at", PLACES)
def test_reports(nodes, at):
    reports(nodes, at)


@pytest.mark.parametrize("at", ["east west east", "west east west", "east west west", "west east east"])
def test_reports_over_gateways(clusters, at):
    """The same with the last server of each cluster. The responder is in the other cluster."""
    nodes = [servers[-1] for servers in clusters]
    reports(nodes, tuple(("east", "west").index(name) for name in at.split()))


def reports(nodes: list[Node], at: tuple[int, int, int]):
    """Each request has one report, with both clients and times that add up."""
    with Visitors(nodes, at, "all") as visitors:
        for _ in range(3):
            visitors.ask()
            report = visitors.subscriber.next(visitors.reports).json()
            equal(report["type"], "io.nats.server.metric.v1.service_latency", "the type")
            equal(report["status"], 200, "the status")
            for role, account, number in [("requestor", "R", at[0]), ("responder", "S", at[1])]:
                found = report[role]
                if role == "responder" and at[0] == at[1] and "name" not in found:
                    # Shards of one Fanline do not tell each other more about a responder.
                    equal(found, {"acc": account}, "the responder at another shard")
                    continue
                names = (found["acc"], found["name"], found["server"], found["kind"])
                equal(names, (account, role.replace("requestor", "requester"), nodes[number].name, "Client"), role)
            rtt = sum(report[role].get("rtt", 0) for role in ("requestor", "responder"))
            check(report["service"] >= 0 and report["system"] >= 0, f"the times: {report}")
            total = report["service"] + report["system"] + rtt
            # A time of 0 may have been a negative one, because round-trip times vary.
            is_sum = total >= report["total"] if 0 in (report["service"], report["system"]) else total == report["total"]
            check(is_sum or at[0] == at[1], f"the times do not add up: {report}")
        equal(visitors.subscriber.quiet(visitors.reports), [], "more reports")


@pytest.mark.parametrize("at", [(0, 1, 2), (2, 0, 0)])
def test_sampling(nodes, at):
    with Visitors(nodes, at, "half") as visitors:
        for _ in range(COUNT):
            visitors.ask()
        found = visitors.subscriber.quiet(visitors.reports)
        # All or none of 60 have a probability of 2 to the power of -60 each.
        check(0 < len(found) < COUNT, f"{len(found)} reports")
        check(all(report.json()["responder"].get("name") == "responder" for report in found), "no responder")
        check(all("name" not in report.json()["requestor"] for report in found), "the requester does not share its name")


@pytest.mark.parametrize("at", [(0, 1, 2), (2, 1, 0)])
def test_sampling_by_headers(nodes, at):
    with Visitors(nodes, at, "traced") as visitors:
        visitors.ask()
        visitors.ask({"X-B3-Sampled": "1"})
        report = visitors.subscriber.next(visitors.reports).json()
        equal(report["header"], {"X-B3-Sampled": ["1"]}, "the headers")
        equal(report["responder"]["name"], "responder", "the responder")
        equal(visitors.subscriber.quiet(visitors.reports), [], "more reports")


@pytest.mark.parametrize("at", [(0, 1, 2), (2, 1, 0)])
def test_without_a_responder(nodes, at):
    """The responder has left; the requester's server reports that."""
    with Visitors(nodes, at, "all") as visitors:
        visitors.responder.unsubscribe(visitors.requests)
        with Client(nodes[at[0]].port, "s", "s") as other:
            settle(visitors.responder, other)
        answer = visitors.requester.ask("ask.all")
        equal(answer.status, 503, "the status of the answer")
        equal(visitors.subscriber.next(visitors.reports).json()["status"], 503, "the status in the report")
