"""Several servers for one case: nats-servers from `NATS_SERVER`, and the one under test from `SERVER`."""

import contextlib
import json
import os
import tempfile
import urllib.request

import pytest

from harness.checks import until
from harness.client import Client

from harness.server import Server, port_free, reference_server, server_under_test


CLUSTER_NODES = 3


class Node:
    """One server with a configuration file and a store folder."""

    def __init__(self, stage: "Stage", name: str, binary: str):
        self.stage = stage
        self.name = name
        self.binary = binary
        self.leaf_port = port_free()
        self.cluster_port = port_free()
        self.gateway_port = port_free()
        self.http_port = port_free()
        self.websocket_port = port_free()
        self.file = os.path.join(stage.folder, f"{name}.conf")
        self.server = Server(binary, "-c", self.file)

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def store(self) -> str:
        return os.path.join(self.stage.folder, self.name)

    def write(self, *parts: str):
        """Writes the configuration: these parts, and the options that every node has."""
        common = [
            f"server_name: {self.name}",
            f'http: "127.0.0.1:{self.http_port}"',
        ]
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("\n".join([*common, *parts]) + "\n")

    def leafnodes(self, *remotes: str, listen: bool = False, more: str = "", reconnect: str = "1s") -> str:
        """Returns a `leafnodes` block with a listener and remotes. Failed connections are retried soon."""
        parts = [f'reconnect: "{reconnect}"', more]
        if listen:
            # Spokes connect through relays that can be cut, so they must not learn the hub's own address.
            parts += [f'listen: "127.0.0.1:{self.leaf_port}"', "no_advertise: true"]
        if remotes:
            parts.append(f"remotes: [ {', '.join(remotes)} ]")
        return "leafnodes {\n" + "\n".join(parts) + "\n}"

    def jetstream(self, domain: str = "") -> str:
        more = f", domain: {domain}" if domain else ""
        return f'jetstream {{ store_dir: "{self.store}"{more} }}'

    def start(self, *parts: str):
        """Starts the server, with parts of a configuration after writing them."""
        if parts:
            self.write(*parts)
        self.server.start()

    def stop(self):
        self.server.kill()

    def log(self) -> str:
        return self.server.output()

    def said(self, *texts: str):
        """Waits until the log contains one of these texts, in upper or lower case."""

        def found():
            log = self.log().lower()
            return any(text.lower() in log for text in texts)

        until(found, lambda: f"{self.name} does not say any of {texts}: {self.log()}")

    def monitor(self, page: str) -> dict:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/{page}", timeout=10) as answer:
            return json.load(answer)

    def client(self, user: str = "", password: str = "", **connect) -> Client:
        return self.stage.enter_context(Client(self.port, user, password, **connect))

    def leafs(self) -> list[dict]:
        return self.monitor("leafz").get("leafs") or []


def cluster_blocks(name: str, nodes: list[Node]) -> list[str]:
    """Returns the `cluster` block of each node."""
    routes = ", ".join(f'"nats://127.0.0.1:{node.cluster_port}"' for node in nodes)
    return [f'cluster {{ name: {name}, listen: "127.0.0.1:{node.cluster_port}", routes: [{routes}] }}' for node in nodes]


class Stage(contextlib.ExitStack):
    """The servers and files of one case, which are removed at its end."""

    def __init__(self):
        super().__init__()
        self.folder = self.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        self.nodes: list[Node] = []

    def reference(self, name: str) -> Node:
        return self.node(name, reference_server())

    def tested(self, name: str) -> Node:
        return self.node(name, server_under_test())

    def node(self, name: str, binary: str) -> Node:
        node = Node(self, name, binary)
        self.nodes.append(node)
        self.callback(node.server.log.close)
        self.callback(node.stop)
        return node

    def cluster(self, domain: str = "hub", more: str = "") -> list[Node]:
        """Returns a cluster of three nats-servers with JetStream and a leader."""
        nodes = [self.reference(f"hub{number}") for number in range(1, CLUSTER_NODES + 1)]
        for node, cluster in zip(nodes, cluster_blocks("hub", nodes)):
            node.start(cluster, node.jetstream(domain), node.leafnodes(listen=True), more)
        until(lambda: any(self.leads(node) for node in nodes), "the cluster has no leader", 60)
        # Replicas can be placed only when the leader knows its followers.
        until(lambda: all(self.is_current(node) for node in nodes), "the cluster is not complete", 60)
        return nodes

    @staticmethod
    def leads(node: Node) -> bool:
        meta = node.monitor("jsz").get("meta_cluster") or {}
        return bool(meta.get("leader"))

    @staticmethod
    def is_current(node: Node) -> bool:
        try:
            return node.monitor("healthz").get("status") == "ok"
        except OSError:
            return False


def remote(*ports: int, more: str = "", scheme: str = "nats-leaf", login: str = "") -> str:
    """Returns an entry of `remotes` with these ports."""
    user = f"{login}@" if login else ""
    urls = ", ".join(f'"{scheme}://{user}127.0.0.1:{port}"' for port in ports)
    return f"{{ urls: [{urls}]\n {more} }}"


def tested(stage: Stage, name: str) -> Node:
    return stage.tested(name)


def reference(stage: Stage, name: str) -> Node:
    return stage.reference(name)


# The server under test at each end of a leaf connection.
_ENDS = [
    pytest.param(tested, reference, id="hub"),
    pytest.param(reference, tested, id="spoke"),
    pytest.param(tested, tested, id="hub and spoke"),
]
# For cases that create their nodes, and for cases with one hub and one spoke.
ROLES = pytest.mark.parametrize("hub_of, spoke_of", _ENDS)
NODES = pytest.mark.parametrize("hub, spoke", _ENDS, indirect=True)
