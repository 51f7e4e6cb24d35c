"""What monitoring shows of routes: a server under test and a nats-server in one cluster show the same."""

import json

import pytest

from harness.checks import check, equal, until
from leaf.stage import Node, Stage

from .shapes import ROUTES, start

ACCOUNTS = """
accounts {
  A { users: [ { user: a, password: a } ] }
  D { users: [ { user: d, password: d } ] }
  $SYS { users: [ { user: sys, password: sys } ] }
}
"""
SUBSCRIPTIONS = (("foo.*", ""), ("foo.>", ""), ("bar", "q"), ("bar", "q"), ("bar", ""))
SUBJECTS = ["bar", "bar", "foo.*", "foo.>"]


@pytest.fixture(scope="module")
def nodes():
    with Stage() as stage:
        yield start(stage, "tr", inside="accounts: [D]", more=ACCOUNTS, routes=ROUTES + 1)


def routes(node: Node, query: str) -> list[dict]:
    return node.monitor(f"routez?{query}")["routes"]


def rows(page: dict) -> list[tuple]:
    """Returns the listed subscriptions of the accounts of this suite: their routes' accounts, and their fields."""
    found = []
    for route in page["routes"]:
        for row in route.get("subscriptions_list_detail", []):
            equal(row.pop("cid"), route["rid"], "the connection of a subscription")
            if row["subject"] in SUBJECTS:
                found.append((route.get("account", ""), json.dumps(row, sort_keys=True)))
    return sorted(found)


def test_received_interest(nodes):
    """Each of both lists what it has received from the other, in the same form."""
    clients = {(node.name, user): node.client(user, user) for node in nodes for user in ("a", "d")}
    for client in clients.values():
        for subject, queue in SUBSCRIPTIONS:
            client.subscribe(subject, queue)
        client.flush()
    detail = "routez?subs=detail"
    until(lambda: all(len(rows(node.monitor(detail))) == 2 * len(SUBJECTS) for node in nodes), "some interest is missing")
    one, other = (rows(node.monitor(detail)) for node in nodes)
    equal(one, other, "the subscriptions")
    for node in nodes:
        for route in routes(node, "subs=detail"):
            listed = route.get("subscriptions_list_detail", [])
            equal(len(listed), route["subscriptions"], "the number of listed subscriptions")
            equal(route.get("subscriptions_list"), None, "the other list")
        names = [name for route in routes(node, "subs=1") for name in route.get("subscriptions_list", [])]
        equal(sorted(name for name in names if name in SUBJECTS), sorted(2 * SUBJECTS), "the subjects")
        check(not any("subscriptions_list" in route for route in routes(node, "subs=0")), "a list without request")
        with node.client("sys", "sys") as client:
            subject = f"$SYS.REQ.SERVER.{node.monitor('varz')['server_id']}.ROUTEZ"
            answer = json.loads(client.ask(subject, b'{"subscriptions_detail":true}').payload)
            equal(rows(answer["data"]), one, "the same by a request")
    for client in clients.values():
        client.close()
