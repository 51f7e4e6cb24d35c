"""The limit on an account's leaf connections, over all servers of a cluster."""

import json
import signal
from itertools import count

import pytest

from harness.checks import check, equal, until
from harness.client import settle
from harness.peer import Closed, Peer
from harness.server import is_reference
from leaf.stage import Node, Stage, remote

from .gateway_cases import is_refused
from .shapes import block, made, until_meshed
from .test_system import system

LIMIT = 2
ACCOUNTS = f"""
accounts {{
  A {{ users: [ {{ user: a, password: a }} ], limits: {{ max_leafnodes: {LIMIT} }} }}
  $SYS {{ users: [ {{ user: sys, password: sys }} ] }}
}}
"""
KINDS = ("tt", "tr", "rt", "ttt")
REFUSAL = "-ERR 'maximum account active connections exceeded'"
CLOSED = "Leafnode connection closed: Maximum Account Connections Exceeded"
numbers = count(1)


def started(stage: Stage, kinds: str) -> list[Node]:
    nodes = made(stage, kinds)
    for node in nodes:
        node.write(block(node, nodes), ACCOUNTS, node.leafnodes(listen=True))
        node.start()
    until_meshed(nodes)
    clients = [system(node) for node in nodes]
    for client in clients:
        for other in clients:
            settle(client, other)
    for client in clients:
        client.close()
    return nodes


def linked(node: Node) -> Peer | None:
    """Connects a leaf node. Returns nothing if it is refused."""
    number = next(numbers)
    connect = {"user": "a", "pass": "a", "name": f"leaf-{number}", "server_id": f"N{number}", "version": "2.15.2"}
    connect |= {"cluster": f"leaf-{number}", "headers": True}
    peer = Peer(node.leaf_port, b"CONNECT " + json.dumps(connect).encode() + b"\r\nPING\r\n")
    lines = []
    try:
        while "PONG" not in lines:
            lines.append(peer.line())
    except Closed:
        check(REFUSAL in lines, f"{node.name} closes a leaf connection after {lines}")
        return None
    return peer


def until_linked(node: Node) -> Peer:
    """Connects a leaf node, as soon as there is room: a server learns of the others' connections by events."""
    return until(lambda: linked(node), lambda: f"{node.name} accepts no leaf node: {node.log()}")


def fill(nodes: list[Node]) -> list[Peer]:
    """Connects leaf nodes until all servers refuse them. A server that learns too late of connections to others closes
    some of its own."""
    peers = []

    def is_full() -> bool:
        found = [linked(node) for node in nodes]
        peers.extend(peer for peer in found if peer)
        return not any(found) and sum(len(node.leafs()) for node in nodes) == LIMIT

    until(is_full, lambda: f"the leaf nodes are {[len(node.leafs()) for node in nodes]}: {nodes[0].log()}")
    return peers


@pytest.mark.parametrize("kinds", KINDS)
def test_connections_to_all_servers_count(kinds):
    with Stage() as stage:
        nodes = started(stage, kinds)
        leafs = [until_linked(nodes[0]), *fill(nodes)]
        for node in nodes:
            node.said(CLOSED)
        for leaf in leafs:
            leaf.close()
        for node in nodes:
            until_linked(node).close()


@pytest.mark.parametrize("kinds", KINDS)
def test_youngest_are_closed(kinds):
    """A server that learns of too many connections to another one closes its youngest ones. The event of the other
    server comes from a client of the system account."""
    with Stage() as stage:
        nodes = started(stage, kinds)
        old, young = until_linked(nodes[-1]), until_linked(nodes[-1])
        with system(nodes[0]) as client:
            server = {"name": "away", "host": "0.0.0.0", "id": "NAWAY", "ver": "2.15.2", "seq": 1, "flags": 0}
            server |= {"jetstream": False, "time": "2026-11-29T00:00:00Z"}
            event = {"server": server, "acc": "A", "conns": 0, "leafnodes": 1, "total_conns": 1}
            client.publish("$SYS.SERVER.ACCOUNT.A.CONNS", json.dumps(event).encode())
            client.flush()
        check(REFUSAL.encode() in young.until_closed(), "the youngest does not learn why")
        nodes[-1].said(CLOSED)
        old.send(b"PING\r\n")
        while old.line() != "PONG":
            pass
        equal(len(nodes[-1].leafs()), 1, "the leaf nodes that stay")


@pytest.mark.parametrize("kinds", ("tt", "tr", "rt"))
def test_leaf_nodes_of_a_server_that_stops(kinds):
    """Connections to a server that has stopped do not count."""
    with Stage() as stage:
        nodes = started(stage, kinds)
        leafs = []

        def is_known() -> bool:
            leafs.extend(fill(nodes[:1]))
            return linked(nodes[1]) is None

        until(is_known, lambda: f"{nodes[1].name} refuses no leaf node: {nodes[1].log()}")
        nodes[0].server.signal(signal.SIGTERM)
        until_linked(nodes[1])
        check(len(leafs) >= LIMIT, f"{len(leafs)} leaf nodes")


@pytest.mark.parametrize("hub_of", ("t", "r"))
def test_dialed_connections_count(hub_of):
    """The limit applies at the server that dials, too."""
    with Stage() as stage:
        hubs = [(stage.tested if hub_of == "t" else stage.reference)(f"hub-{number}") for number in range(LIMIT + 1)]
        for hub in hubs:
            hub.start(hub.leafnodes(listen=True))
        spoke = stage.tested("spoke")
        spoke.start(ACCOUNTS, spoke.leafnodes(*(remote(hub.leaf_port, more="account: A") for hub in hubs)))
        until(lambda: len(spoke.leafs()) == LIMIT, lambda: f"{len(spoke.leafs())} leaf nodes: {spoke.log()}")
        spoke.said(CLOSED)
        check(len(spoke.leafs()) <= LIMIT, f"too many leaf nodes: {spoke.leafs()}")


CLIENTS = 3
LIMITED_CLIENTS = f"""
accounts {{ A {{ users: [ {{ user: a, password: a }} ], limits: {{ max_connections: {CLIENTS} }} }} }}
"""


@pytest.mark.parametrize("more", ("", "shards: 3"))
def test_leaf_nodes_take_the_place_of_clients(more):
    """A leaf connection counts for `max_connections` of its account, which refuses clients alone. The limit of the
    server is one of clients only."""
    with Stage() as stage:
        node = stage.tested("limited")
        inside = "" if is_reference() else more
        node.start(LIMITED_CLIENTS, f"max_connections: {CLIENTS}", node.leafnodes(listen=True), inside)
        leafs = [linked(node) for _ in range(CLIENTS - 1)]
        clients = [node.client("a", "a")]
        clients[0].flush()
        check(is_refused(node, "a"), "a client in excess is accepted")
        leafs.extend(linked(node) for _ in range(CLIENTS))
        check(all(leafs), "a leaf node is refused")
        for leaf in leafs[1:]:
            leaf.close()
        until(lambda: len(node.leafs()) == 1, lambda: f"{len(node.leafs())} leaf nodes")
        clients.append(node.client("a", "a"))
        clients[1].flush()
        check(is_refused(node, "a"), "the remaining leaf node does not count")


def test_dialed_leaf_nodes_take_the_place_of_clients():
    with Stage() as stage:
        hub = stage.reference("hub")
        hub.start(hub.leafnodes(listen=True))
        spoke = stage.tested("spoke")
        spoke.start(LIMITED_CLIENTS, spoke.leafnodes(remote(hub.leaf_port, more="account: A")))
        until(lambda: len(spoke.leafs()) == 1, lambda: f"no leaf node: {spoke.log()}")
        for _ in range(CLIENTS - 1):
            spoke.client("a", "a").flush()
        check(is_refused(spoke, "a"), "the leaf node does not count")
