"""Clusters of servers under test and nats-servers, and the two nodes between which messages are sent."""

from collections.abc import Callable

from harness.certificates import self_signed
from harness.checks import until
from leaf.shapes import Shape
from leaf.stage import Node, Stage

NAME = "east"


def made_of(kinds: str, seed: bool = False, tls: bool = False) -> Callable[[Stage], Shape]:
    """Returns a function that builds a cluster: `t` is a server under test, `r` a nats-server. With `seed`, all nodes
    know the first one only."""

    def make(stage: Stage) -> Shape:
        nodes = start(stage, kinds, seed, tls_block(stage, "node") if tls else "")
        return Shape(nodes[0], nodes[-1])

    return make


def start(stage: Stage, kinds: str, seed: bool = False, inside: str = "", more: str = "") -> list[Node]:
    """Starts a cluster whose configurations also have the options `more`, and their `cluster` blocks `inside`."""
    nodes = made(stage, kinds)
    for node in nodes:
        node.write(block(node, nodes[:1] if seed else nodes, inside), more)
    for node in nodes:
        node.start()
    until_meshed(nodes)
    return nodes


def made(stage: Stage, kinds: str) -> list[Node]:
    make = {"t": stage.tested, "r": stage.reference}
    return [make[kind](f"{NAME}-{number}") for number, kind in enumerate(kinds, 1)]


def block(node: Node, known: list[Node], inside: str = "", login: str = "") -> str:
    """Returns the `cluster` block of a node that dials the `known` ones."""
    routes = ", ".join(f'"nats://{login}127.0.0.1:{other.cluster_port}"' for other in known)
    return f'cluster {{ name: {NAME}, listen: "127.0.0.1:{node.cluster_port}", routes: [{routes}]\n{inside} }}'


def tls_block(stage: Stage, name: str) -> str:
    """Returns a block for nodes that share one certificate, which is also its authority."""
    pem, key = self_signed(stage.folder, name)
    return f'tls {{ cert_file: "{pem}", key_file: "{key}", ca_file: "{pem}", timeout: 10 }}'


def peers(node: Node) -> set[str]:
    return {route["remote_name"] for route in node.monitor("routez")["routes"]}


def until_meshed(nodes: list[Node]):
    """Returns when each node has a route to each other node."""
    names = {node.name for node in nodes}
    for node in nodes:
        until(lambda: peers(node) == names - {node.name}, lambda: f"{node.name} knows {peers(node)}: {node.log()}")


SHAPES = {
    "two": made_of("tt"),
    "with a nats-server": made_of("tr"),
    "at a nats-server": made_of("rt"),
    "three": made_of("ttt"),
    "one of three": made_of("trr"),
    "two of three": made_of("ttr"),
    "three from a seed": made_of("ttt", seed=True),
    "from a nats-server's seed": made_of("rtt", seed=True),
    "a nats-server joins": made_of("ttr", seed=True),
    "two over TLS": made_of("tt", tls=True),
    "two of three over TLS": made_of("ttr", seed=True, tls=True),
    "one of three over TLS": made_of("rtr", seed=True, tls=True),
}
