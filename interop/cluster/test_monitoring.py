"""What monitoring shows of routes: a server under test and a nats-server in one cluster show the same. What only a server
under test shows: whether the others have counted the interest that it has announced."""

import json
import subprocess
import urllib.request

import pytest

from harness.checks import check, equal, until
from harness.client import settle
from harness.server import is_reference, server_under_test
from leaf.stage import Node, Stage

from . import gateways
from .gateways import inbound
from .shapes import NO_POOL, ROUTES, block, made, start, until_meshed

# Drift is known after three comparisons, which are 5 s apart.
DRIFT_SECONDS_MAX = 60
# Three subjects, and the inbox that each client subscribes to.
MISSING = 4

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


def interest(node: Node, page: str = "routez") -> dict[str, dict]:
    """Returns the comparisons of a server under test with the others."""
    return {row["remote_name"]: row for row in node.monitor(page).get("interest", [])}


def until_differ(node: Node, other: Node, differences: int, drift: int, page: str = "routez"):
    def holds() -> bool:
        row = interest(node, page).get(other.name, {})
        return (row.get("difference"), row.get("drift")) == (differences, drift)

    until(holds, lambda: f"{node.name} has {interest(node, page)} of {other.name}: {node.log()}", DRIFT_SECONDS_MAX)


def metrics(node: Node) -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{node.http_port}/metrics", timeout=10) as page:
        return page.read().decode().splitlines()


def until_counted(node: Node, other: Node, least: int, page: str = "routez"):
    """Waits until a server has counted all that was announced. Interest of the system account may still change."""

    def is_equal() -> bool:
        row = interest(node, page)[other.name]
        return row["announced"] == row["counted"] > least

    until(is_equal, lambda: f"{node.name} has {interest(node, page)}")


@pytest.mark.skipif(is_reference(), reason="nats-server compares nothing")
@pytest.mark.parametrize("kinds, inside, jetstream", [("ttr", "", 0), ("tr", NO_POOL, 0), ("ttt", "", 2), ("ttr", "accounts: [D]", 2)])
def test_no_drift(kinds, inside, jetstream):
    """All servers count what was announced, also the parts of JetStream that only some of them use."""
    with Stage() as stage:
        nodes = made(stage, kinds)
        for at, node in enumerate(nodes):
            node.write(block(node, nodes, inside), ACCOUNTS, node.jetstream() if at < jetstream else "")
            node.start()
        until_meshed(nodes, 1 if inside == NO_POOL else ROUTES + ("accounts" in inside))
        for node in nodes:
            for user in ("a", "d"):
                client = node.client(user, user)
                for subject, queue in SUBSCRIPTIONS:
                    client.subscribe(subject, queue)
                client.unsubscribe(client.subscribe("gone"))
                client.flush()
        for node in nodes:
            for other in nodes:
                if node is not other and node.binary == server_under_test():
                    until_differ(node, other, 0, 0)
                    until_counted(node, other, 2 * len(SUBJECTS))


@pytest.mark.skipif(is_reference(), reason="nats-server compares nothing")
@pytest.mark.parametrize("kinds", ["tt", "tr"])
def test_drift(kinds):
    """An account that only one server has: the other ignores its interest, and this is shown as drift."""
    with Stage() as stage:
        first, second = nodes = made(stage, kinds)
        more = ACCOUNTS.replace("D {", "MORE { users: [ { user: m, password: m } ] }\n  D {")
        first.write(block(first, nodes), more)
        second.write(block(second, nodes), ACCOUNTS)
        for node in nodes:
            node.start()
        until_meshed(nodes)
        until_differ(first, second, 0, 0)
        with first.client("m", "m") as client:
            for subject in ("one", "two", "three"):
                client.subscribe(subject)
            client.flush()
            until_differ(first, second, MISSING, MISSING)
            lines = metrics(first)
            found = {name: [line for line in lines if line.startswith(f"fanline_cluster_interest_{name}{{")] for name in
                     ("announced", "counted", "drift")}
            equal(found["drift"], [f'fanline_cluster_interest_drift{{name="{second.name}"}} {MISSING}'], "the metric")
            announced, counted = (int(found[name][0].rsplit(" ", 1)[1]) for name in ("announced", "counted"))
            equal(announced - counted, MISSING, "the difference of both metrics")
        until_differ(first, second, 0, 0)


@pytest.mark.skipif(is_reference(), reason="nats-server compares nothing")
@pytest.mark.parametrize("kinds", ["tt", "tr"])
def test_permissions_are_not_compared(kinds):
    with Stage() as stage:
        nodes = start(stage, kinds, inside='permissions { import: ["in.>", "$SYS.>"], export: ["out.>", "$SYS.>"] }')
        wanted = {nodes[1].name: "permissions"}
        until(
            lambda: {name: row.get("problem") for name, row in interest(nodes[0]).items()} == wanted,
            lambda: f"the comparisons are {interest(nodes[0])}",
            DRIFT_SECONDS_MAX,
        )


@pytest.mark.skipif(is_reference(), reason="nats-server has no metrics")
def test_gateways():
    """`/metrics` has the gateways of a server, and `fanline top --all` their number."""
    with Stage() as stage:
        east, west = gateways.start(stage, more=ACCOUNTS, east="t", west="tr").values()
        (first,) = east
        until(lambda: inbound(first) == {"west": 2}, lambda: f"{first.name} has {inbound(first)}")
        with first.client("a", "a") as one, west[-1].client("a", "a") as other:
            settle(one, other)
        lines = metrics(first)
        for line in ("fanline_gateway_clusters 1", "fanline_gateways 3"):
            check(line in lines, f"no {line!r}: {lines}")
        for name in ("in_msgs_total", "out_bytes_total", "subscriptions", "pending_bytes"):
            series = [line for line in lines if line.startswith(f"fanline_gateway_{name}{{")]
            directions = sorted(line.split('direction="')[1].split('"')[0] for line in series)
            equal(directions, ["inbound", "inbound", "outbound"], f"the series of {name}")
            check(all('name="west"' in line for line in series), series)
        command = [server_under_test(), "top", "--all", "--once", "--json", "--interval", "50ms"]
        command += ["--server", f"nats://sys:sys@127.0.0.1:{first.port}"]

        def counts() -> list[int]:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            equal(done.returncode, 0, f"the exit code ({done.stdout}{done.stderr})")
            return [server["gateways"] for server in json.loads(done.stdout)["servers"]]

        until(lambda: counts() == [1, 1, 1], lambda: f"the gateways are {counts()}")


@pytest.mark.skipif(is_reference(), reason="nats-server compares nothing")
@pytest.mark.parametrize("east, west", [("t", "tr"), ("tt", "rrt")])
def test_no_drift_of_gateways(east, west):
    """The servers of other clusters count what each server has announced to them, which is the interest of its cluster."""
    with Stage() as stage:
        clusters = gateways.start(stage, more=ACCOUNTS, east=east, west=west)
        for node in [*clusters["east"], *clusters["west"]]:
            client = node.client("a", "a")
            for subject, queue in SUBSCRIPTIONS:
                client.subscribe(subject, queue)
            client.unsubscribe(client.subscribe("gone"))
            client.flush()
        compared = 0
        for node in clusters["east"]:
            dialers = {row["connection"]["name"] for row in node.monitor("gatewayz")["inbound_gateways"].get("west", [])}
            for other in clusters["west"]:
                # Each server of the other cluster has dialed one of this one.
                if other.monitor("varz")["server_id"] in dialers:
                    compared += 1
                    until_differ(node, other, 0, 0, "gatewayz")
                    until_counted(node, other, len(SUBJECTS), "gatewayz")
                    labels = f'name="west",server="{other.name}"'
                    check(f"fanline_gateway_interest_drift{{{labels}}} 0" in metrics(node), metrics(node))
        equal(compared, len(clusters["west"]), "the compared servers")


@pytest.mark.skipif(is_reference(), reason="nats-server compares nothing")
def test_drift_of_gateways():
    """A server of another cluster ignores the interest of an account that it does not have."""
    with Stage() as stage:
        clusters = gateways.made(stage, east="t", west="t")
        (first,), (second,) = clusters.values()
        more = ACCOUNTS.replace("D {", "MORE { users: [ { user: m, password: m } ] }\n  D {")
        for name, node, accounts in (("east", first, more), ("west", second, ACCOUNTS)):
            node.start(gateways.gateway_block(name, node, clusters), accounts)
        gateways.until_connected(clusters)
        until_differ(first, second, 0, 0, "gatewayz")
        with first.client("m", "m") as client:
            for subject in ("one", "two", "three"):
                client.subscribe(subject)
            client.flush()
            until_differ(first, second, MISSING, MISSING, "gatewayz")
        until_differ(first, second, 0, 0, "gatewayz")
