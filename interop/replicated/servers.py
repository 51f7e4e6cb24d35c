"""Three servers of one kind with JetStream, which know each other. Streams have a replica on each of them."""

import contextlib
import json
import signal

import nats
from nats.js.client import JetStreamContext

from cluster.shapes import block, made, until_meshed
from cluster.test_jetstream import when_known
from harness.checks import until
from harness.client import Client
from leaf.stage import Node, Stage
from python.peers import SECONDS_MAX, connect, ignore

REPLICAS = 3
REFERENCE, FANLINE = KINDS = ("nats-server", "fanline")
# After a fault, nodes elect a leader, and copy what they have missed.
HEAL_SECONDS_MAX = 90
# Entries that a replica may be behind while the stream is used.
LAG_MAX = 100
# A request to a cluster without a leader may remain unanswered.
ANSWER_SECONDS_MAX = 2


class Cluster:
    """`more` is a part of each configuration."""

    def __init__(self, stage: Stage, kind: str, more: str = ""):
        self.kind = kind
        self.nodes = made(stage, ("r" if kind == REFERENCE else "t") * REPLICAS)
        # By default, nats-server confirms what a crash of all servers takes back.
        sync = ", sync_interval: always" if kind == REFERENCE else ""
        for node in self.nodes:
            node.write(block(node, self.nodes), f'jetstream {{ store_dir: "{node.store}"{sync} }}', more)
            node.start()
        self.until_whole()

    @property
    def is_reference(self) -> bool:
        return self.kind == REFERENCE

    @property
    def names(self) -> list[str]:
        return [node.name for node in self.nodes]

    def named(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def until_whole(self):
        """Waits until all servers are connected, and a stream with three replicas can be created."""
        until_meshed(self.nodes)
        probe = {"name": "PROBE", "subjects": ["probe"], "num_replicas": REPLICAS}
        answers = []
        with Client(self.nodes[0].port) as client:

            def is_created() -> bool:
                answers.append(answer(client, "STREAM.CREATE.PROBE", probe))
                return bool(answers[-1]) and "error" not in answers[-1]

            until(is_created, lambda: f"no stream with three replicas: {answers[-1]}", HEAL_SECONDS_MAX)
            self.until_current("PROBE", LAG_MAX)
            until(lambda: answer(client, "STREAM.DELETE.PROBE"), "the stream cannot be deleted", HEAL_SECONDS_MAX)

    def info(self, stream: str, *except_for: Node) -> dict:
        """Returns the description of a stream with a leader. `except_for` are servers that do not run."""
        node = next(node for node in self.nodes if node not in except_for)
        found = {}
        with Client(node.port) as client:

            def has_leader() -> bool:
                nonlocal found
                found = answer(client, f"STREAM.INFO.{stream}") or {}
                leader = found.get("cluster", {}).get("leader")
                return bool(leader) and leader not in [other.name for other in except_for]

            until(has_leader, lambda: f"no leader of {stream}: {found}", HEAL_SECONDS_MAX)
        return found

    def leader(self, stream: str, *except_for: Node) -> Node:
        return self.named(self.info(stream, *except_for)["cluster"]["leader"])

    def until_current(self, stream: str, lag_max: int = 0):
        """Waits until both other replicas have everything that the leader has, except for this number of entries: while a
        stream is used, a replica may never have all of them."""
        found = {}

        def is_current() -> bool:
            nonlocal found
            found = self.info(stream)["cluster"]
            others = found.get("replicas") or []
            return len(others) == REPLICAS - 1 and all(
                not peer.get("offline") and (peer["current"] or 0 < peer.get("lag", 0) <= lag_max) for peer in others
            )

        until(is_current, lambda: f"a replica of {stream} is behind: {found}", HEAL_SECONDS_MAX)

    def clear(self):
        """Deletes all streams."""
        with Client(self.nodes[0].port) as client:

            def is_empty() -> bool:
                names = (answer(client, "STREAM.NAMES") or {}).get("streams", [""])
                for name in names or []:
                    answer(client, f"STREAM.DELETE.{name}")
                return not names

            until(is_empty, "streams cannot be deleted", HEAL_SECONDS_MAX)

    def revive(self) -> list[str]:
        """Starts servers that have ended. Returns their names."""
        ended = [node for node in self.nodes if node.server.process.poll() is not None]
        for node in ended:
            node.start()
        return [node.name for node in ended]

    def logs(self, characters: int) -> str:
        return "\n".join(f"-- {node.name}\n{node.log()[-characters:]}" for node in self.nodes)


def end(node: Node, how: int = signal.SIGKILL):
    node.server.signal(how)
    node.server.wait()


def answer(client: Client, endpoint: str, body: dict | None = None) -> dict | None:
    """Returns the response to a request of the API, or nothing if it remains unanswered."""
    payload = b"" if body is None else json.dumps(body).encode()
    try:
        found = client.ask(f"$JS.API.{endpoint}", payload, seconds=ANSWER_SECONDS_MAX)
    except TimeoutError:
        return None
    return None if found.status == 503 else found.json()


@contextlib.asynccontextmanager
async def connected(cluster: Cluster):
    """Connects one client to each server, for the time of a case. Returns them, and their JetStream contexts."""
    clients = [await connect(node) for node in cluster.nodes]
    try:
        yield clients, [client.jetstream(timeout=SECONDS_MAX) for client in clients]
    finally:
        for client in clients:
            await client.close()


async def connect_to_all(cluster: Cluster, first: int = 0):
    """Connects a client that begins with one server, and changes to the others while it cannot be reached."""
    urls = [f"nats://127.0.0.1:{node.port}" for node in (*cluster.nodes[first:], *cluster.nodes[:first])]
    return await nats.connect(
        urls, dont_randomize=True, reconnect_time_wait=0.05, max_reconnect_attempts=-1, connect_timeout=2, error_cb=ignore
    )


async def add(clients: list, at: int, name: str, **config):
    """Creates a stream with three replicas at one server. Returns when all servers know its subjects."""
    jetstream: JetStreamContext = clients[at].jetstream(timeout=SECONDS_MAX)
    info = await jetstream.add_stream(name=name, **{"num_replicas": REPLICAS} | config)
    for client in clients:
        await when_known(client, info)
    return info
