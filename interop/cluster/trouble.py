"""Refusals, restarts, and peers that misbehave."""

import json
import signal
import time

from harness.checks import check, equal, until
from harness.client import settle
from harness.peer import Peer
from leaf.stage import Node, Stage
from leaf.traffic import Ends, gone

from .shapes import NAME, block, made, peers, start, tls_block, until_meshed

CONNECT = {"echo": True, "headers": True, "name": "NPEER", "cluster": NAME, "lnoc": True}
INFO = {
    "server_id": "NPEER",
    "server_name": "peer",
    "proto": 2,
    "host": "127.0.0.1",
    "port": 1,
    "headers": True,
    "cluster": NAME,
}


def line(verb: str, fields: dict) -> bytes:
    return f"{verb} {json.dumps(fields)}\r\n".encode()


def alone(stage: Stage, more: str = "") -> Node:
    node = stage.tested("alone")
    node.write(f'cluster {{ name: {NAME}, listen: "127.0.0.1:{node.cluster_port}"\n {more} }}')
    node.start()
    return node


def route(stage: Stage, node: Node) -> Peer:
    peer = stage.enter_context(Peer(node.cluster_port))
    info = json.loads(peer.line()[len("INFO ") :])
    equal((info["cluster"], info["port"], info["headers"]), (NAME, node.cluster_port, True), "the INFO")
    return peer


def refuses(first: bytes, answer: str, more: str = ""):
    def case(stage: Stage):
        node = alone(stage, more)
        peer = route(stage, node)
        peer.send(first)
        received = peer.until_closed().decode()
        check(answer in received, f"{received!r} without {answer!r}")
        with node.client() as one, node.client() as other:
            settle(one, other)

    return case


LOGIN = "authorization { user: ada, password: secret }"


def survives_garbage(stage: Stage):
    """Invalid bytes of one peer close its route, and disturb nobody else."""
    nodes = start(stage, "tr")
    with nodes[0].client() as sender, nodes[1].client() as receiver:
        number = receiver.subscribe("steady")
        settle(receiver, sender)
        for garbage in (b"\x16\x03\x01\x00\xa5", b"GET / HTTP/1.1\r\n\r\n", b"RMSG x\r\n", b"RS+ $G a q x\r\n"):
            peer = route(stage, nodes[0])
            peer.send(line("CONNECT", CONNECT) + line("INFO", INFO))
            peer.send(garbage)
            peer.until_closed()
            sender.publish("steady", garbage)
            equal(receiver.next(number).payload, garbage, "the message after the garbage")
    equal(peers(nodes[0]), {nodes[1].name}, "the routes")


def never_reads(stage: Stage):
    """A peer that subscribes to everything and reads nothing does not delay messages to the others."""
    nodes = start(stage, "tr")
    peer = stage.enter_context(Peer(nodes[0].cluster_port, receive_buffer_bytes=4096))
    peer.send(line("CONNECT", CONNECT) + line("INFO", INFO) + b"RS+ $G >\r\n")
    until(lambda: INFO["server_name"] in peers(nodes[0]), "the peer is not registered")
    with nodes[0].client() as sender, nodes[1].client() as receiver:
        number = receiver.subscribe("steady")
        settle(receiver, sender)
        for _ in range(200):
            sender.publish("steady", b"x" * 100_000)
            equal(len(receiver.next(number).payload), 100_000, "the size of the message")


def peer_restarts(kinds: str):
    """A node is killed and started again; clients of the others lose nothing else, and reach it again."""

    def case(stage: Stage):
        nodes = start(stage, kinds)
        lost, other = nodes[-1], nodes[0]
        with other.client() as sender:
            ends = Ends(sender, sender)
            with lost.client() as receiver:
                receiver.subscribe(ends.subject("there"))
                settle(receiver, sender)
                lost.server.signal(signal.SIGKILL)
                lost.server.wait()
            until(lambda: gone(ends, "there"), "interest of a node that is dead")
            lost.start()
            until_meshed(nodes)
            with lost.client() as receiver:
                number = receiver.subscribe("there")
                settle(receiver, sender)
                sender.publish("there", b"again")
                equal(receiver.next(number).payload, b"again", "the message after the restart")

    return case


def restarts_in_a_chain(kinds: str):
    """Each node knows the previous one only. The last one is killed and starts again, while the first one still dials the
    address of the dead one, or has just given up."""

    def case(stage: Stage):
        nodes = made(stage, kinds)
        for number, node in enumerate(nodes):
            node.write(block(node, nodes[max(number - 1, 0) : number]))
            node.start()
        until_meshed(nodes)
        for seconds in (0.3, 0.0, 0.8, 1.2):
            nodes[-1].server.signal(signal.SIGKILL)
            nodes[-1].server.wait()
            time.sleep(seconds)
            nodes[-1].start()
            until_meshed(nodes)

    return case


def wrong_password(kinds: str):
    def case(stage: Stage):
        first, second = nodes = made(stage, kinds)
        first.write(block(first, [], LOGIN))
        second.write(block(second, [first], login="ada:wrong@"))
        for node in nodes:
            node.start()
        second.said("Authorization Violation")
        equal(peers(first), set(), "the routes of the node that checks the password")
        # A nats-server has a route from the INFO to the error.
        until(lambda: not peers(second), "the other node keeps a route")

    return case


def wrong_certificate(kinds: str, is_plain: bool = False):
    """The second node has a certificate that the first one does not accept, or does not use TLS."""

    def case(stage: Stage):
        first, second = nodes = made(stage, kinds)
        first.write(block(first, [], tls_block(stage, "first")))
        second.write(block(second, [first], "" if is_plain else tls_block(stage, "second")))
        for node in nodes:
            node.start()
        first.said("TLS route handshake error")
        equal((peers(first), peers(second)), (set(), set()), "the routes")
        with first.client() as one, first.client() as other:
            settle(one, other)

    return case


CASES = {
    "a wrong password": refuses(line("CONNECT", CONNECT | {"user": "ada", "pass": "x"}), "Authorization Violation", LOGIN),
    "no CONNECT": refuses(line("INFO", INFO), "Authorization Violation", LOGIN),
    "a client": refuses(line("CONNECT", {"lang": "go"}), "attempted to connect to route port"),
    "a gateway": refuses(line("CONNECT", {"gateway": "g"}), 'Rejecting connection from gateway "g" on the Route port'),
    "another cluster": refuses(
        line("CONNECT", CONNECT | {"cluster": "west"}),
        f'Rejecting connection, cluster name "west" does not match "{NAME}"',
    ),
    "a slot that does not exist": refuses(
        line("CONNECT", CONNECT) + line("INFO", INFO | {"route_pool_size": 3, "route_pool_idx": 9}),
        "Invalid route pool index: 9 - pool size is 3",
    ),
    "a dedicated route of an account without one": refuses(
        line("CONNECT", CONNECT) + line("INFO", INFO | {"route_pool_size": 3, "route_account": "$G"}),
        'No route for account "$G"',
    ),
    "a dedicated route of an unknown account": refuses(
        line("CONNECT", CONNECT) + line("INFO", INFO | {"route_pool_size": 3, "route_account": "X"}),
        'Unable to lookup account "X": account missing',
    ),
    "garbage disturbs nobody": survives_garbage,
    "a peer never reads": never_reads,
    "a node restarts": peer_restarts("ttt"),
    "a nats-server restarts": peer_restarts("ttr"),
    "a node among nats-servers restarts": peer_restarts("rrt"),
    "a node restarts in a chain": restarts_in_a_chain("ttt"),
    "a node restarts in a chain with a nats-server": restarts_in_a_chain("trt"),
    "a nats-server has a wrong password": wrong_password("tr"),
    "a wrong password for a nats-server": wrong_password("rt"),
    "a wrong certificate": wrong_certificate("tt"),
    "a nats-server has a wrong certificate": wrong_certificate("tr"),
    "a wrong certificate for a nats-server": wrong_certificate("rt"),
    "no TLS": wrong_certificate("tt", is_plain=True),
    "a nats-server has no TLS": wrong_certificate("tr", is_plain=True),
    "no TLS for a nats-server": wrong_certificate("rt", is_plain=True),
}
