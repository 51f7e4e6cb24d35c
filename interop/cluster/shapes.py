"""Clusters of servers under test and nats-servers, and the two nodes between which messages are sent."""

from collections import Counter
from collections.abc import Callable

from harness.certificates import self_signed
from harness.checks import until
from leaf.shapes import Shape
from leaf.stage import Node, Stage

NAME = "east"
# Routes to each peer by default: those of a pool of three, and a dedicated one for `$SYS`.
ROUTES = 4


def made_of(
    kinds: str, seed: bool = False, tls: bool = False, inside: str = "", more: str = "", routes: int = ROUTES
) -> Callable[[Stage], Shape]:
    """Returns a function that builds a cluster: `t` is a server under test, `r` a nats-server. With `seed`, all nodes
    know the first one only."""

    def make(stage: Stage) -> Shape:
        options = f"{inside}\n{tls_block(stage, 'node')}" if tls else inside
        nodes = start(stage, kinds, seed, options, more, routes)
        return Shape(nodes[0], nodes[-1])

    return make


def start(
    stage: Stage, kinds: str, seed: bool = False, inside: str = "", more: str = "", routes: int = ROUTES
) -> list[Node]:
    """Starts a cluster whose configurations also have the options `more`, and their `cluster` blocks `inside`."""
    nodes = made(stage, kinds)
    for node in nodes:
        node.write(block(node, nodes[:1] if seed else nodes, inside), more)
    for node in nodes:
        node.start()
    until_meshed(nodes, routes)
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


def loads(node: Node) -> dict[str, int]:
    """Returns the number of routes to each peer."""
    return dict(Counter(route["remote_name"] for route in node.monitor("routez")["routes"]))


def peers(node: Node) -> set[str]:
    return set(loads(node))


def until_meshed(nodes: list[Node], routes: int = ROUTES):
    """Returns when each node has all its routes to each other node."""
    for node in nodes:
        wanted = {other.name: routes for other in nodes if other is not node}
        until(lambda: loads(node) == wanted, lambda: f"{node.name} has {loads(node)}: {node.log()}")


NO_POOL = "pool_size: -1"
# The clients of the cases belong to this account.
DEDICATED = 'accounts: ["$G"]'

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
    "two without a pool": made_of("tt", inside=NO_POOL, routes=1),
    "one of three without a pool": made_of("rtr", inside=NO_POOL, routes=1),
    "two with a dedicated route": made_of("tt", inside=DEDICATED, routes=ROUTES + 1),
    "three with three shards": made_of("ttt", more="shards: 3"),
    "two with three shards over TLS": made_of("tt", tls=True, inside=DEDICATED, more="shards: 3", routes=ROUTES + 1),
    "one of three with a dedicated route": made_of("rtr", seed=True, inside=DEDICATED, routes=ROUTES + 1),
    "two compressed": made_of("tt", inside="compression: s2_better"),
    "two compressed over TLS": made_of("tt", tls=True, inside="compression: s2_best"),
    "one of three compressed": made_of("rtr", seed=True, inside="compression: s2_fast"),
    "two of three with a large pool": made_of("ttr", seed=True, inside="pool_size: 7", routes=8),
}
