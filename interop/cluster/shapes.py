"""Clusters of servers under test and nats-servers, and the two nodes between which messages are sent."""

from collections.abc import Callable

from harness.checks import until
from leaf.shapes import Shape
from leaf.stage import Node, Stage, cluster_blocks

NAME = "east"


def made_of(kinds: str, seed: bool = False) -> Callable[[Stage], Shape]:
    """Returns a function that builds a cluster: `t` is a server under test, `r` a nats-server. With `seed`, all nodes
    know the first one only."""

    def make(stage: Stage) -> Shape:
        nodes = start(stage, kinds, seed)
        return Shape(nodes[0], nodes[-1])

    return make


def start(stage: Stage, kinds: str, seed: bool = False, more: str = "") -> list[Node]:
    make = {"t": stage.tested, "r": stage.reference}
    nodes = [make[kind](f"{NAME}-{number}") for number, kind in enumerate(kinds, 1)]
    for node, block in zip(nodes, blocks(nodes, seed)):
        node.write(block, more)
    for node in nodes:
        node.start()
    until_meshed(nodes)
    return nodes


def blocks(nodes: list[Node], seed: bool) -> list[str]:
    if not seed:
        return cluster_blocks(NAME, nodes)
    routes = f'"nats://127.0.0.1:{nodes[0].cluster_port}"'
    return [f'cluster {{ name: {NAME}, listen: "127.0.0.1:{node.cluster_port}", routes: [{routes}] }}' for node in nodes]


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
}
