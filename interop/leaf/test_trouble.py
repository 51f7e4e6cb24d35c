"""Errors at a leaf listener or on the way to one: both sides log a clear message, and other connections are not
affected."""

import contextlib
import json
import socket
import subprocess
import threading

import pytest

from harness.checks import check, equal, until
from harness.client import settle
from harness.peer import Closed, Peer
from harness.server import port_free

from .stage import ROLES, Node, Stage, reference, remote, tested
from .steady import Steady

LOGIN = 'authorization { user: "leaf", password: "secret" }'
CLOSED_SECONDS_MAX = 20


def hub_with_good_leaf(stage: Stage, hub: Node, more: str = LOGIN, login: str = "leaf:secret") -> tuple[Node, Steady]:
    hub.start(hub.leafnodes(listen=True, more=more))
    good = stage.reference("good")
    good.start(good.leafnodes(remote(hub.leaf_port, login=login)))
    return good, Steady(stage, good, hub)


@ROLES
def test_wrong_password(stage, hub_of, spoke_of):
    hub = hub_of(stage, "hub")
    _, steady = hub_with_good_leaf(stage, hub)
    bad = spoke_of(stage, "bad")
    bad.start(bad.leafnodes(remote(hub.leaf_port, login="leaf:wrong")))
    bad.said("authorization violation")
    hub.said("authentication error", "authorization violation")
    steady.more()
    with bad.client() as client:
        equal(client.ask("still.here").status, 503, "what the bad leaf's own clients get")
    equal(len(hub.leafs()), 1, "leafs of the hub")


@ROLES
def test_wrong_port(stage, hub_of, spoke_of):
    """A leaf node that connects to the client port."""
    hub = hub_of(stage, "hub")
    _, steady = hub_with_good_leaf(stage, hub)
    bad = spoke_of(stage, "bad")
    bad.start(bad.leafnodes(remote(hub.port, login="leaf:secret")))
    bad.said("wrong port")
    steady.more()


def test_ports_of_others(stage):
    """A leaf node that connects to a cluster port and to a monitoring port."""
    hub = stage.reference("hub")
    cluster = f'cluster {{ name: hub, listen: "127.0.0.1:{hub.cluster_port}" }}'
    hub.start(cluster, hub.leafnodes(listen=True))
    for name, port, said in (("routed", hub.cluster_port, "wrong port"), ("monitored", hub.http_port, "took too long")):
        bad = tested(stage, name)
        bad.start(bad.leafnodes(remote(port), remote(hub.leaf_port)))
        bad.said(said)
        settle(bad.client(), hub.client())


def test_nobody_listens(stage):
    """A leaf node without a reachable hub serves its clients, logs the error, and connects when the hub starts."""
    hub, spoke = stage.reference("hub"), tested(stage, "spoke")
    hub.write(hub.leafnodes(listen=True))
    spoke.start(spoke.leafnodes(remote(hub.leaf_port)))
    spoke.said("connection refused")
    near = spoke.client()
    number = near.subscribe("early")
    near.flush()
    hub.start()
    far = hub.client()
    settle(near, far)
    far.publish("early", b"bird")
    equal(near.next(number).payload, b"bird", "what came")


def test_one_url_of_two_is_dead(stage):
    hub, spoke = stage.reference("hub"), tested(stage, "spoke")
    hub.start(hub.leafnodes(listen=True))
    spoke.start(spoke.leafnodes(remote(port_free(), hub.leaf_port, more="no_randomize: true")))
    settle(spoke.client(), hub.client())


def test_client_on_leaf_port(stage):
    hub = stage.tested("hub")
    _, steady = hub_with_good_leaf(stage, hub)
    for _ in range(5):
        with Peer(hub.leaf_port) as peer:
            check(peer.line().startswith("INFO {"), "no INFO")
            peer.send(b'CONNECT {"lang":"python","user":"leaf","pass":"secret"}\r\nPING\r\n')
            said = peer.until_closed().decode(errors="replace").lower()
            check("-err 'attempted to connect to leaf node port'" in said, f"a client was told {said!r}")
    steady.more()


@pytest.mark.parametrize("role", ["spoke", "hub"])
def test_unknown_account(stage, role: str):
    """A configuration with an unknown account is refused at the start, with the account's name."""
    node = stage.tested(role)
    if role == "spoke":
        block = node.leafnodes(remote(port_free(), more="account: NOBODY"))
    else:
        block = node.leafnodes(listen=True, more="authorization { user: leaf, password: secret, account: NOBODY }")
    node.write("accounts { SOMEBODY { users: [ { user: a, password: a } ] } }", block)
    done = subprocess.run(
        [node.binary, "-c", node.file, "-a", "127.0.0.1", "-p", str(node.port)],
        capture_output=True, text=True, timeout=CLOSED_SECONDS_MAX, stdin=subprocess.DEVNULL,
    )
    equal(done.returncode, 1, "the exit code")
    check("NOBODY" in done.stdout + done.stderr, f"the account is not named: {done.stdout}{done.stderr}")


def hello_of(name: str) -> bytes:
    """Returns the CONNECT of a leaf node with this name."""
    about = {"user": "leaf", "pass": "secret", "name": name, "cluster": name, "server_id": name}
    return b"CONNECT " + json.dumps(about | {"headers": True, "protocol": 3}).encode() + b"\r\n"


def send_and_end(hub: Node, data: bytes):
    """Sends bytes to the leaf listener, and waits until the server has read all of them or closed the connection."""
    with Peer(hub.leaf_port) as peer:
        # The server may have closed the connection already.
        with contextlib.suppress(Closed, OSError):
            peer.line()
            peer.send(data)
            peer.socket.shutdown(socket.SHUT_WR)
        peer.until_closed()


def test_garbage_at_hub():
    lines = [
        b"LMSG\r\n", b"LS+ \r\n", b"LMSG a b c d e f g\r\n", b"LMSG a -1\r\n", b"LMSG a 99999999999999999999\r\n",
        b"HMSG a 20 10\r\nxxxxxxxxxx\r\n", b"LMSG a + r 5\r\nhello\r\n", b"LS+ a..b\r\n", b"LS- never.asked\r\n",
        b"LS+ a q notanumber\r\n", b"LS+ a q -7\r\n", b"LMSG a 5\r\nhelloxx", b"INFO {broken\r\n", b"INFO []\r\n",
        b"CONNECT {}\r\n", b"\x00\xff\xfe" * 100, b"A" * 100_000, b"LS+ " + b"a" * 100_000 + b"\r\n", b"-ERR\r\n",
        b"-ERR 'made up'\r\n", b"PUB a 1\r\nx\r\n", b"RMSG $G a 1\r\nx\r\n", b"LMSG a 1048577\r\n" + b"x" * 100,
        b"HMSG a 12 12\r\nNATS/1.0\r\n\r\n\r\n", b"LMSG > 1\r\nx\r\n", b"LMSG a.* 1\r\nx\r\n", b"LS+ a\rb\r\n",
    ]
    with Stage() as stage:
        hub = stage.tested("hub")
        _, steady = hub_with_good_leaf(stage, hub)
        for number, line in enumerate(lines):
            hello = hello_of(f"bad{number}")
            for opening in (b"", hello, hello + b"PING\r\nLS+ bad.>\r\n"):
                send_and_end(hub, opening + line)
        for seed in range(30):
            send_and_end(hub, bytes((seed * 131 + n * 197 + n * n) % 256 for n in range(5000)))
        steady.more(3 * 10)
        until(lambda: len(hub.leafs()) == 1, lambda: f"the bad ones are still there: {hub.leafs()}")
        equal(hub.server.process.poll(), None, "the hub's exit code")


class FakeHub:
    """A peer that listens on the hub's port and sends invalid data."""

    def __init__(self, port: int, answers: list[bytes]):
        self.answers = answers
        self.served = 0
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(16)
        self.listener.settimeout(0.1)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.is_set():
            try:
                peer, _ = self.listener.accept()
            except TimeoutError:
                continue
            with peer, contextlib.suppress(OSError):
                peer.sendall(self.answers[self.served % len(self.answers)])
                peer.settimeout(0.3)
                with contextlib.suppress(TimeoutError):
                    while peer.recv(65_536):
                        pass
            self.served += 1

    def end(self):
        self.ended.set()
        self.thread.join()
        self.listener.close()


def test_garbage_at_spoke():
    """A peer on the hub's port sends garbage at each step of the handshake. The spoke keeps working, and connects
    to the real hub later."""
    info = (
        b'INFO {"server_id":"N","server_name":"fake","version":"2.15.2","proto":3,"headers":true,"max_payload":1048576,'
        b'"client_id":7,"leafnode_urls":["127.0.0.1:1"],"info_on_connect":true}\r\n'
    )
    welcome = info.replace(b'"info_on_connect"', b'"connect_info":true,"remote_account":"$G","info_on_connect"')
    answers = [
        b"", b"garbage\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"INFO\r\n", b"INFO {\r\n", b"INFO {}\r\n",
        b"\xff" * 10_000, b"INFO " + b"{" * 100_000, info, info + b"garbage\r\n", info + b"-ERR 'no'\r\n",
        info + welcome + b"LMSG a 99999999999\r\n", info + welcome + b"LS+ \r\nLMSG\r\n",
        info + welcome + b"LS+ x.>\r\nLMSG a 5\r\nhelloxx\r\n", info + welcome + b"HMSG a 9 3\r\nabc\r\n",
        info.replace(b'"client_id":7', b'"client_id":0'), info.replace(b'"max_payload":1048576', b'"max_payload":-1'),
    ]
    with Stage() as stage:
        good, hub, spoke = stage.reference("good"), stage.reference("hub"), stage.tested("spoke")
        for node in (good, hub):
            node.write(node.leafnodes(listen=True))
        good.start()
        accounts = "accounts { A { users: [ {user: a, password: a} ] }, B { users: [ {user: b, password: b} ] } }"
        entries = [remote(good.leaf_port, more="account: A"), remote(hub.leaf_port, more="account: B")]
        spoke.write(accounts, spoke.leafnodes(*entries, reconnect="50ms"))
        fake = FakeHub(hub.leaf_port, answers)
        stage.callback(fake.end)
        spoke.start()
        near, far = spoke.client("a", "a"), good.client()
        settle(near, far)
        settle(far, near)
        # After some of these answers, the spoke waits for a second until its timeout.
        until(lambda: fake.served >= len(answers), "the spoke does not try again", 120)
        settle(near, far)
        settle(far, near)
        fake.end()
        hub.start()
        settle(spoke.client("b", "b"), hub.client())


@ROLES
def test_loop_of_two(stage, hub_of, spoke_of):
    """Two servers that connect to each other. A message must arrive only once, and the loop must be logged."""
    one, two = hub_of(stage, "one"), spoke_of(stage, "two")
    one.write(one.leafnodes(remote(two.leaf_port), listen=True))
    two.write(two.leafnodes(remote(one.leaf_port), listen=True))
    in_a_loop(stage, [one, two])


@pytest.mark.parametrize("beside, is_whole", [(reference, False), (tested, True)])
def test_loop_of_three(stage, beside, is_whole: bool):
    """Three servers in a ring. The cycle must be cut at one place, so that all servers still reach each other.
    Only if two nats-servers are adjacent, both may cut."""
    ring = [beside(stage, "one"), stage.tested("two"), beside(stage, "three")]
    for node, following in zip(ring, ring[1:] + ring[:1]):
        node.write(node.leafnodes(remote(following.leaf_port), listen=True))
    in_a_loop(stage, ring, is_whole)


def in_a_loop(stage: Stage, nodes: list[Node], is_whole: bool = True):
    for node in nodes:
        node.start()
    until(lambda: any("loop detected" in node.log().lower() for node in nodes), "nobody says that there is a loop")
    clients = [node.client() for node in nodes]

    def settle_all():
        for one, other in ((one, other) for one in clients for other in clients if one is not other and is_whole):
            settle(one, other)

    settle_all()
    subscriptions = [client.subscribe("round.and.round") for client in clients]
    settle_all()
    sent = [b"%d" % n for n in range(20)]
    for sender in clients:
        for each in sent:
            sender.publish("round.and.round", each)
        for client, number in zip(clients, subscriptions):
            is_reached = is_whole or client is sender
            came = client.take(number, len(sent)) if is_reached else []
            came = [each.payload for each in came + client.quiet(number)]
            if is_reached:
                equal(came, sent, "what came")
            else:
                check(came == [each for each in sent if each in came], f"twice, or out of order: {came}")


@ROLES
def test_same_name_twice(stage, hub_of, spoke_of):
    """Two leaf nodes with the same name: the hub logs it, and other leaf nodes are not affected."""
    hub = hub_of(stage, "hub")
    _, steady = hub_with_good_leaf(stage, hub)
    for _ in range(2):
        twin = spoke_of(stage, "twin")
        twin.start(twin.leafnodes(remote(hub.leaf_port, login="leaf:secret")))
    hub.said("duplicate remote leafnode connection", "replacing connection")
    steady.more()


def test_same_cluster_name(stage):
    """A leaf node with the name of the cluster that it connects to."""
    nodes = stage.cluster()
    spoke = stage.tested("hub")
    spoke.start(spoke.leafnodes(remote(nodes[0].leaf_port)))
    spoke.said("same cluster name")


@ROLES
def test_same_server_name(stage, hub_of, spoke_of):
    """The servers of a hub and a leaf node have the same name, and no cluster."""
    hub, spoke = hub_of(stage, "hub"), spoke_of(stage, "spoke")
    spoke.name = hub.name
    hub.start(hub.leafnodes(listen=True))
    spoke.start(spoke.leafnodes(remote(hub.leaf_port)))
    with hub.client() as sender, spoke.client() as receiver:
        settle(sender, receiver)


@ROLES
def test_too_old(stage, hub_of, spoke_of):
    hub = hub_of(stage, "hub")
    hub.start(hub.leafnodes(listen=True, more='min_version: "99.0.0"'))
    spoke = spoke_of(stage, "spoke")
    spoke.start(spoke.leafnodes(remote(hub.leaf_port)))
    hub.said("minimum version")
    spoke.said("minimum version")


def test_idle_on_leaf_port(stage):
    """A peer that sends nothing to the leaf listener is closed after a timeout, with an error."""
    hub = stage.tested("hub")
    _, steady = hub_with_good_leaf(stage, hub, LOGIN.replace("}", ", timeout: 1 }"))
    peers = [stage.enter_context(Peer(hub.leaf_port)) for _ in range(10)]
    for peer in peers:
        peer.line()
    for peer in peers:
        said = peer.until_closed().decode(errors="replace").lower()
        check("authentication timeout" in said, f"it was told {said!r}")
    steady.more()


def test_many_at_once(stage):
    """A hundred leaf nodes connect and disconnect at once, by a reset."""
    hub = stage.tested("hub")
    _, steady = hub_with_good_leaf(stage, hub)
    for _ in range(3):
        peers = []
        for number in range(100):
            peer = Peer(hub.leaf_port)
            peer.line()
            interest = b"LS+ crowd.%d\r\nLS+ crowd.all\r\nPING\r\n" % number
            peer.send(hello_of(f"crowd{number}") + interest)
            peers.append(peer)
        until(lambda: len(hub.leafs()) == 101, lambda: f"{len(hub.leafs())} leafs", 60)
        for peer in peers:
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            peer.close()
        until(lambda: len(hub.leafs()) == 1, lambda: f"{len(hub.leafs())} leafs", 60)
    with hub.client() as client:
        until(lambda: client.ask("crowd.all").status == 503, "their interest is still there")
    steady.more()
