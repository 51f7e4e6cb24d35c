"""Requests and events of the system account, and limits of accounts, over all servers of a cluster."""

import json
import os
import signal
import subprocess
import urllib.request

import pytest

from harness.checks import check, equal, until
from harness.client import Client, settle
from harness.peer import Closed
from harness.server import is_reference, server_under_test
from leaf.stage import Node, Stage

from .shapes import start

CONNECTIONS_MAX = 3
ACCOUNTS = f"""
accounts {{
  A {{ users: [ {{ user: a, password: a }} ], limits: {{ max_connections: {CONNECTIONS_MAX} }} }}
  B {{ users: [ {{ user: b, password: b }} ] }}
  $SYS {{ users: [ {{ user: sys, password: sys }} ] }}
}}
"""
KINDS = ("ttt", "ttr", "trr", "rrt")
PAGES = ("IDZ", "STATSZ", "VARZ", "SUBSZ", "CONNZ", "ROUTEZ", "GATEWAYZ", "LEAFZ", "ACCOUNTZ", "JSZ", "HEALTHZ")


@pytest.fixture(scope="module", params=KINDS)
def nodes(request):
    with Stage() as stage:
        yield started(stage, request.param)


def started(stage: Stage, kinds: str) -> list[Node]:
    nodes = start(stage, kinds, more=ACCOUNTS)
    clients = [system(node) for node in nodes]
    for client in clients:
        for other in clients:
            settle(client, other)
    for client in clients:
        client.close()
    return nodes


def system(node: Node) -> Client:
    return node.client("sys", "sys")


def ask_all(client: Client, subject: str, count: int, body=None) -> list[dict]:
    """Returns the answers to a request, of which there must be this many."""
    inbox = client.subscribe(reply := f"{client.inbox}-all")
    payload = b"" if body is None else json.dumps(body).encode()
    client.publish(subject, payload, reply)
    found = [client.next(inbox) for _ in range(count)]
    more = client.quiet(inbox)
    client.unsubscribe(inbox)
    equal([each.payload for each in more], [], f"more answers to {subject}")
    return [each.json() for each in found]


def name_of(answer: dict) -> str:
    return answer.get("server", answer)["name"]


@pytest.mark.parametrize("page", PAGES)
def test_ping(nodes, page):
    """Each server answers once, whichever is asked."""
    for node in nodes:
        with system(node) as client:
            answers = ask_all(client, f"$SYS.REQ.SERVER.PING.{page}", len(nodes))
            equal(sorted(map(name_of, answers)), sorted(each.name for each in nodes), f"who answers {node.name}")


def test_one_server(nodes):
    with system(nodes[0]) as client:
        ids = {name_of(each): each.get("id") for each in ask_all(client, "$SYS.REQ.SERVER.PING.IDZ", len(nodes))}
        for node in nodes:
            (found,) = ask_all(client, f"$SYS.REQ.SERVER.{ids[node.name]}.VARZ", 1)
            equal(found["data"]["server_name"], node.name, "the server")
            (found,) = ask_all(client, "$SYS.REQ.SERVER.PING.VARZ", 1, {"server_name": node.name})
            equal(found["data"]["cluster"]["name"], "east", "its cluster")
        equal(ask_all(client, "$SYS.REQ.SERVER.PING.VARZ", 0, {"cluster": "west"}), [], "of another cluster")


def test_accounts(nodes):
    """Requests about an account are answered by all servers, also those of the account's own clients."""
    with system(nodes[0]) as client, nodes[0].client("b", "b") as one, nodes[-1].client("b", "b") as two:
        settle(one, two)
        answers = ask_all(client, "$SYS.REQ.ACCOUNT.B.CONNZ", len(nodes))
        equal(sum(each["data"]["num_connections"] for each in answers), 2, "the connections of B")
        for user in (one, two):
            for subject in ("$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ"):
                answers = ask_all(user, subject, len(nodes))
                equal(sum(each["data"]["num_connections"] for each in answers), 2, f"by {subject}")
            (info,) = ask_all(user, "$SYS.REQ.USER.INFO", 1)
            equal((info["data"]["user"], info["data"]["account"]), ("b", "B"), "the user")


def test_events(nodes):
    """Connections at one server are announced at all others, and statistics, too."""
    for node in nodes:
        for other in nodes:
            with system(other) as client:
                number = client.subscribe("$SYS.ACCOUNT.B.>")
                client.flush()
                with system(node) as sender:
                    settle(client, sender)
                node.client("b", "b", name="visitor").close()
                found = []
                while len({"CONNECT", "DISCONNECT"} & set(found)) < 2:
                    message = client.next(number)
                    if message.json()["server"]["name"] == node.name:
                        found.append(message.subject.rsplit(".", 1)[1])
    with system(nodes[0]) as client:
        number = client.subscribe("$SYS.SERVER.*.STATSZ")
        client.flush()
        # Without a reply subject the answers are events.
        client.publish("$SYS.REQ.SERVER.PING")
        seen = {}
        while set(seen) != {node.name for node in nodes}:
            found = client.next(number).json()
            seen[name_of(found)] = found["statsz"]
        for name, statistics in seen.items():
            names = {route["name"] for route in statistics["routes"]}
            equal(names, {node.name for node in nodes} - {name}, f"the routes of {name}")

        def all_are_known() -> bool:
            answers = ask_all(client, "$SYS.REQ.SERVER.PING.STATSZ", len(nodes))
            return all(each["statsz"]["active_servers"] == len(nodes) for each in answers)

        until(all_are_known, "not all servers have heard of each other")


def test_subscribers(nodes):
    """The number of subscribers of an account is that of all servers."""
    clients = [node.client("b", "b") for node in nodes]
    for client in clients:
        client.subscribe("counted.x")
        client.subscribe("counted.*", "q")
        client.flush()
    with system(nodes[0]) as asker:
        # The servers know where the account has connections, by their events.
        until(lambda: counted(asker, "B") == len(nodes), lambda: f"counted {counted(asker, 'B')}")
    for client in clients:
        client.close()


def counted(asker: Client, account: str) -> int:
    """Returns the number of servers that answer a request for subscribers, with the right number."""
    body = {"acc": account, "subject": "counted.x"}
    inbox = asker.subscribe(reply := f"{asker.inbox}-count")
    asker.publish("$SYS.REQ.ACCOUNT.NSUBS", json.dumps(body).encode(), reply)
    answers = [int(each.payload) for each in asker.quiet(inbox)]
    asker.unsubscribe(inbox)
    return sum(1 for each in answers if each == 2)


def test_order(nodes):
    """No server complains about the events of another one."""
    for node in nodes:
        check("out of order" not in node.log().lower(), f"{node.name}: {node.log()}")


def admitted(node: Node) -> Client | None:
    try:
        return node.client("a", "a")
    except (Closed, AssertionError):
        return None


def fill(node: Node):
    """Connects clients until one is refused. A server that learns too late of connections elsewhere closes some."""
    until(lambda: admitted(node) is None, lambda: f"{node.name} refuses no client: {node.log()}")


def connected(client: Client, nodes: list[Node]) -> int:
    answers = ask_all(client, "$SYS.REQ.ACCOUNT.A.CONNZ", len(nodes))
    return sum(each["data"]["num_connections"] for each in answers)


@pytest.mark.parametrize("kinds", KINDS)
def test_limit(kinds):
    """The connections of an account to all servers count for its limit."""
    with Stage() as stage:
        nodes = started(stage, kinds)
        first = nodes[0].client("a", "a")
        for node in nodes:
            fill(node)
        with system(nodes[0]) as client:
            until(lambda: connected(client, nodes) <= CONNECTIONS_MAX, lambda: f"{connected(client, nodes)} clients")
        for node in nodes:
            fill(node)
        first.close()
        until(lambda: admitted(nodes[-1]) is not None, lambda: f"no place becomes free: {nodes[-1].log()}")


@pytest.mark.parametrize("kinds", ("tt", "tr", "rt"))
def test_limit_of_a_server_that_stops(kinds):
    """Connections of a server that has stopped do not count."""
    with Stage() as stage:
        nodes = started(stage, kinds)
        fill(nodes[0])
        fill(nodes[1])
        with system(nodes[1]) as client:
            number = client.subscribe("$SYS.SERVER.*.SHUTDOWN")
            with system(nodes[0]) as sender:
                settle(client, sender)
            nodes[0].server.signal(signal.SIGTERM)
            equal(client.next(number).json()["name"], nodes[0].name, "the server that stops")
        until(lambda: admitted(nodes[1]) is not None, lambda: f"no place becomes free: {nodes[1].log()}")


def test_monitoring(nodes):
    """The cluster in `/varz` has nats-server's keys."""
    for node in nodes:
        found = node.monitor("varz")
        keys = {"name", "addr", "cluster_port", "auth_timeout", "urls", "tls_timeout"}
        check(keys <= set(found["cluster"]), f"{node.name}: {found['cluster']}")
        equal(found["cluster"]["cluster_port"], node.cluster_port, "the port of routes")
        equal(len(found["cluster"]["urls"]), len(nodes), "the URLs of routes")
        equal(found["remotes"], len(nodes) - 1, "the other servers")


@pytest.mark.skipif(is_reference(), reason="no tools of nats-server")
def test_top(nodes):
    """`fanline top --all` has all servers; `/metrics` has the routes."""
    url = f"nats://sys:sys@127.0.0.1:{nodes[-1].port}"
    command = [server_under_test(), "top", "--all", "--once", "--json", "--interval", "50ms", "--server", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    equal(done.returncode, 0, f"the exit code ({done.stdout}{done.stderr})")
    servers = json.loads(done.stdout)["servers"]
    equal([each["name"] for each in servers], [node.name for node in nodes], "the servers")
    check(all(each["routes"] >= len(nodes) - 1 for each in servers), f"the routes: {servers}")
    for node in nodes:
        if node.binary == server_under_test():
            with urllib.request.urlopen(f"http://127.0.0.1:{node.http_port}/metrics", timeout=10) as page:
                lines = page.read().decode().splitlines()
            check(f"fanline_cluster_servers {len(nodes) - 1}" in lines, f"{node.name}: {lines}")
            pending = [line for line in lines if line.startswith("fanline_route_pending_bytes{")]
            check(f"fanline_routes {len(pending)}" in lines, f"{node.name}: {len(pending)} routes: {lines}")


@pytest.mark.parametrize("kinds", KINDS)
def test_nats_command(kinds):
    """The `nats` command shows all servers."""
    tool = os.environ.get("NATS_CLI")
    if not tool:
        pytest.skip("no `nats` command")
    with Stage() as stage:
        nodes = started(stage, kinds)
        names = {node.name for node in nodes}
        for node in nodes:
            for command in ("list", "ping", "report routes"):
                said = nats(tool, node, "server", *command.split())
                check(all(name in said for name in names), f"{command} at {node.name}: {said}")
            for name in names:
                check(name in nats(tool, node, "server", "info", name), f"info of {name} at {node.name}")


def nats(tool: str, node: Node, *arguments: str) -> str:
    command = [tool, "--server", f"nats://sys:sys@127.0.0.1:{node.port}", "--no-context", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    equal(done.returncode, 0, f"the exit code of {arguments} ({done.stdout}{done.stderr})")
    return done.stdout + done.stderr
