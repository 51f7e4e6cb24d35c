"""Clusters that are connected by gateways, and the two nodes between which messages are sent."""

from collections.abc import Callable

from harness.checks import until
from harness.server import is_reference
from leaf.shapes import Shape
from leaf.stage import Node, Stage

from .shapes import loads, tls_block

ROUTES = 4
# nats-server has no such option.
THREE_SHARDS = "" if is_reference() else "shards: 3"


def made(stage: Stage, **clusters: str) -> dict[str, list[Node]]:
    """Returns the nodes of each cluster: `t` is a server under test, `r` a nats-server."""
    make = {"t": stage.tested, "r": stage.reference}
    return {
        name: [make[kind](f"{name}-{number}") for number, kind in enumerate(kinds, 1)]
        for name, kinds in clusters.items()
    }


def cluster_block(name: str, nodes: list[Node], node: Node) -> str:
    if len(nodes) == 1:
        return ""
    routes = ", ".join(f'"nats://127.0.0.1:{other.cluster_port}"' for other in nodes)
    return f'cluster {{ name: {name}, listen: "127.0.0.1:{node.cluster_port}", routes: [{routes}] }}'


def gateway_block(name: str, node: Node, known: dict[str, list[Node]], inside: str = "", login: str = "") -> str:
    """Returns the `gateway` block of a node that dials the first node of each of the `known` clusters."""
    entries = [
        f'{{ name: {other}, url: "nats://{login}127.0.0.1:{nodes[0].gateway_port}" }}' for other, nodes in known.items()
    ]
    gateways = f"gateways: [{', '.join(entries)}]" if entries else ""
    return f'gateway {{ name: {name}, listen: "127.0.0.1:{node.gateway_port}"\n{gateways}\n{inside} }}'


def start(
    stage: Stage, inside: str = "", more: str = "", is_seeded: bool = False, **clusters: str
) -> dict[str, list[Node]]:
    """Starts clusters, and waits until each node has a gateway to each other cluster. With `is_seeded`, all clusters
    know the first one only."""
    all_nodes = made(stage, **clusters)
    first = next(iter(all_nodes))
    known = {first: all_nodes[first]} if is_seeded else all_nodes
    for name, nodes in all_nodes.items():
        for node in nodes:
            node.write(cluster_block(name, nodes, node), gateway_block(name, node, known, inside), more)
    for nodes in all_nodes.values():
        for node in nodes:
            node.start()
    for name, nodes in all_nodes.items():
        for node in nodes:
            meshed = {other.name: ROUTES for other in nodes if other is not node}
            until(lambda: loads(node) == meshed, lambda: f"{node.name} has {loads(node)}: {node.log()}")
    until_connected(all_nodes)
    return all_nodes


def outbound(node: Node) -> set[str]:
    return set(node.monitor("gatewayz")["outbound_gateways"])


def inbound(node: Node) -> dict[str, int]:
    """Returns the number of accepted connections from each cluster."""
    return {name: len(links) for name, links in node.monitor("gatewayz")["inbound_gateways"].items()}


def until_connected(all_nodes: dict[str, list[Node]]):
    """Returns when each node has a gateway to each other cluster."""
    for name, nodes in all_nodes.items():
        wanted = set(all_nodes) - {name}
        for node in nodes:
            until(lambda: outbound(node) == wanted, lambda: f"{node.name} has {outbound(node)}: {node.log()}")


def joined(east: str, west: str, tls: bool = False, more: str = "", **options) -> Callable[[Stage], Shape]:
    """Returns a function that builds two clusters."""

    def make(stage: Stage) -> Shape:
        inside = tls_block(stage, "gateway") if tls else ""
        found = start(stage, inside, more, **options, east=east, west=west)
        return Shape(found["east"][0], found["west"][-1])

    return make


SHAPES = {
    "two servers": joined("t", "t"),
    "a nats-server": joined("t", "r"),
    "two clusters": joined("tt", "tt"),
    "a cluster of nats-servers": joined("tt", "rr"),
    "one server and a cluster of nats-servers": joined("rrr", "t"),
    "mixed clusters": joined("tr", "rt"),
    "a cluster that knows no other": joined("tt", "rr", is_seeded=True),
    "a cluster of nats-servers that knows no other": joined("rr", "tt", is_seeded=True),
    "two clusters with three shards": joined("tt", "tt", more=THREE_SHARDS),
    "over TLS": joined("t", "t", tls=True),
    "a nats-server over TLS": joined("t", "r", tls=True),
}
