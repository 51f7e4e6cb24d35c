"""Leaf nodes of one cluster at several servers: a message of such a leaf node does not come back to its cluster by
another server, which would deliver it twice."""

import pytest

from harness.checks import equal, until
from harness.client import Client, settle
from leaf.stage import Node, Stage, remote

from .shapes import block, made, until_meshed

COUNT = 100
# The servers of the cluster, and the leaf nodes: `t` is a server under test, `r` a nats-server.
SHAPES = [("tt", "rrr", ""), ("tr", "rrr", ""), ("rt", "rrr", ""), ("tt", "ttt", ""), ("tr", "trt", "")]
SHAPES += [("tt", "rrr", "shards: 3"), ("ttt", "rtr", "shards: 3")]


def leaf_node(stage: Stage, kind: str, name: str, cluster: str, hub: Node) -> Node:
    node = stage.tested(name) if kind == "t" else stage.reference(name)
    node.write(
        f'cluster {{ name: {cluster}, listen: "127.0.0.1:{node.cluster_port}" }}', node.leafnodes(remote(hub.leaf_port))
    )
    node.start()
    return node


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: " ".join(shape).strip())
def nodes(request):
    """Two leaf nodes of the cluster `west` at the first and the last server, and one of `south` at the first. Those of
    `west` have no routes to each other, so what comes from the other one has come by a server."""
    kinds, leafs, more = request.param
    with Stage() as stage:
        servers = made(stage, kinds)
        for node in servers:
            node.write(block(node, servers), node.leafnodes(listen=True), more)
            node.start()
        until_meshed(servers)
        first, last = servers[0], servers[-1]
        places = [("west-1", "west", first), ("west-2", "west", last), ("south", "south", first)]
        all_leafs = [leaf_node(stage, kind, *place) for kind, place in zip(leafs, places)]
        for hub, count in [(first, 2), (last, 1)]:
            until(lambda of=hub, wanted=count: len(of.leafs()) == wanted, lambda of=hub: f"leafs of {of.name}: {of.log()}")
        yield {"first": first, "last": last} | {node.name: node for node in all_leafs}


@pytest.fixture
def clients(nodes):
    connected = {name: Client(node.port) for name, node in nodes.items()}
    yield connected
    for client in connected.values():
        client.close()


def settle_all(clients: dict[str, Client]):
    """Waits until the interest of each client is known where messages of the others come from."""
    for name, client in clients.items():
        for other, publisher in clients.items():
            if client is not publisher and not (name.startswith("west") and other.startswith("west")):
                settle(client, publisher)


@pytest.mark.parametrize("sender", ["first", "last", "west-1", "west-2", "south"])
def test_messages_arrive_once(clients, sender):
    numbers = {name: client.subscribe("data") for name, client in clients.items()}
    settle_all(clients)
    clients[sender].publish_all("data", [b"%d" % number for number in range(COUNT)])
    clients[sender].flush()
    other = {"west-1": "west-2", "west-2": "west-1"}.get(sender)
    for name, client in clients.items():
        wanted = [] if name == other else list(range(COUNT))
        found = [int(message.payload) for message in client.take(numbers[name], len(wanted))]
        equal(found, wanted, f"what arrives at {name}")
    for name, client in clients.items():
        equal(client.quiet(numbers[name]), [], f"what else arrives at {name}")


@pytest.mark.parametrize("members, wanted", [
    (["west-2", "last"], "last"),
    (["west-2", "first"], "first"),
    (["west-2", "south"], "south"),
    (["west-2", "west-1"], "west-1"),
])  # fmt: skip
def test_members_of_the_same_cluster_are_not_chosen(clients, members, wanted):
    """The members are in one queue group, and the message comes from a leaf node of the cluster of the first one."""
    numbers = {name: clients[name].subscribe("work", "group") for name in members}
    settle_all(clients)
    clients["west-1"].publish_all("work", [b"%d" % number for number in range(COUNT)])
    clients["west-1"].flush()
    found = [int(message.payload) for message in clients[wanted].take(numbers[wanted], COUNT)]
    equal(sorted(found), list(range(COUNT)), f"what arrives at {wanted}")
    for name, number in numbers.items():
        equal(clients[name].quiet(number), [], f"what else arrives at {name}")


def test_group_of_two_clusters(clients):
    """A message of another cluster reaches one member, whichever server its leaf node is at."""
    members = ["west-1", "west-2"]
    numbers = {name: clients[name].subscribe("shared", "group") for name in members}
    settle_all(clients)
    for sender in ("first", "south"):
        clients[sender].publish_all("shared", [b"%d" % number for number in range(COUNT)])
        clients[sender].flush()
        found = [int(message.payload) for name in members for message in clients[name].quiet(numbers[name])]
        equal(sorted(found), list(range(COUNT)), f"what arrives of {sender}")


def test_requests_cross(clients):
    number = clients["last"].subscribe("service")
    settle_all(clients)
    for sender in ("west-1", "south", "west-2", "first"):
        client = clients[sender]
        client.publish("service", b"ping", reply := f"{client.inbox}.{sender}", {"Key": "value"})
        request = clients["last"].next(number)
        equal((request.payload, request.header("Key")), (b"ping", "value"), "the request")
        clients["last"].publish(request.reply, b"pong")
        equal(client.next(client.answers).subject, reply, "the answer")


def test_interest_of_the_same_cluster_is_no_responder(clients):
    """A leaf node does not learn of the interest of its own cluster from its server, because no message leads there."""
    answering = clients["west-2"].subscribe("answering")
    clients["west-2"].subscribe("working", "group")
    # The second time, what the servers announce because of the first has arrived.
    settle_all(clients)
    settle_all(clients)
    for subject in ("answering", "working"):
        equal(clients["west-1"].ask(subject).status, 503, f"the answer to {subject}")
    clients["south"].publish("answering", b"question", "nowhere")
    equal(clients["west-2"].next(answering).payload, b"question", "what another cluster asks")
    number = clients["last"].subscribe("answering")
    member = clients["last"].subscribe("working", "group")
    settle_all(clients)
    for subject, of in (("answering", number), ("working", member)):
        clients["west-1"].publish(subject, b"question", "nowhere")
        equal(clients["last"].next(of).payload, b"question", f"the question to {subject}")
        clients["last"].unsubscribe(of)
    settle_all(clients)
    settle_all(clients)
    for subject in ("answering", "working"):
        equal(clients["west-1"].ask(subject).status, 503, f"the answer to {subject} afterwards")
