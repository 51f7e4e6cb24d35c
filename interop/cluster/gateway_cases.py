"""Cases of gateways that are not those of any connection between servers: discovery, replies, accounts, refusals,
restarts, and peers that misbehave."""

import base64
import collections
import json
import signal
import socket

from harness.checks import WAIT_SECONDS_MAX, check, equal, until
from harness.client import Client, Message, api, settle
from harness.peer import Closed, Peer
from harness.server import is_reference
from leaf.stage import Node, Stage
from leaf.traffic import Ends, gone

from .gateways import cluster_block, gateway_block, inbound, made, outbound, start, until_connected
from .shapes import tls_block

CONNECT = {"echo": False, "headers": False, "name": "NPEER", "cluster": "", "gateway": "west"}
INFO = {
    "server_id": "NPEER",
    "server_name": "peer",
    "proto": 3,
    "host": "127.0.0.1",
    "port": 1,
    "headers": True,
    "gateway": "west",
    "gateway_nrp": True,
    "gateway_iom": True,
}
# Interval at which servers report the connections of an account.
REPORT_SECONDS = 30
# Kinds of connections in traces.
CLIENT, GATEWAY = 0, 2
LOGIN = "authorization { user: ada, password: secret }"
ACCOUNTS = """
accounts {
    A { users: [ { user: a, password: a } ], exports: [ { service: svc }, { stream: "feed.>" } ] }
    B { users: [ { user: b, password: b } ]
        imports: [ { service: { account: A, subject: svc } }, { stream: { account: A, subject: "feed.>" } } ] }
    SYS { users: [ { user: s, password: s } ] }
}
system_account: SYS
"""


def line(verb: str, fields: dict) -> bytes:
    return f"{verb} {json.dumps(fields)}\r\n".encode()


def alone(stage: Stage, inside: str = "") -> Node:
    node = made(stage, east="t")["east"][0]
    node.write(gateway_block("east", node, {}, inside))
    node.start()
    return node


def dialed(stage: Stage, node: Node, **more) -> Peer:
    peer = stage.enter_context(Peer(node.gateway_port, **more))
    info = json.loads(peer.line()[len("INFO ") :])
    equal((info["gateway"], info["port"], info["headers"]), ("east", node.gateway_port, True), "the INFO")
    equal(info["gateway_urls"], [f"127.0.0.1:{node.gateway_port}"], "the addresses")
    return peer


def refuses(first: bytes, answer: str, inside: str = ""):
    def case(stage: Stage):
        node = alone(stage, inside)
        peer = dialed(stage, node)
        peer.send(first)
        received = peer.until_closed().decode()
        check(answer in received, f"{received!r} without {answer!r}")
        with node.client() as one, node.client() as other:
            settle(one, other)

    return case


def trace_crosses(ends: Ends):
    """The servers of both clusters report their parts of a traced message."""
    wanted, reports = ends.wanted("traced"), ends.sender.subscribe(ends.subject("reports"))
    settle(ends.receiver, ends.sender)
    settle(ends.sender, ends.receiver)

    def send(**more: str):
        headers = {"Nats-Trace-Dest": ends.subject("reports")} | more
        ends.sender.publish(ends.subject("traced"), b"hi", headers=headers)

    def parts(report: Message) -> set[str]:
        first, *others = report.json()["events"]
        kinds = {event["kind"] for event in others if event["type"] == "eg"}
        found = {"it entered": first["kind"] == GATEWAY, "it left": GATEWAY in kinds, "it was delivered": CLIENT in kinds}
        return {part for part, is_found in found.items() if is_found}

    def is_whole() -> bool:
        send(**{"Nats-Trace-Only": "true"})
        return len(set().union(*map(parts, ends.sender.quiet(reports)))) == 3

    # The server that the message enters may not know yet who wants reports.
    until(is_whole, "the reports are not whole")
    send()
    found = set()
    while len(found) < 3:
        found |= parts(ends.sender.next(reports))
    equal(ends.receiver.next(wanted).payload, b"hi", "the payload")
    equal(ends.receiver.quiet(wanted), [], "further messages")


def three_clusters(first: str, second: str, third: str):
    """Two clusters know the first one only, and find each other through it."""

    def case(stage: Stage):
        found = start(stage, is_seeded=True, east=first, west=second, north=third)
        nodes = [nodes[-1] for nodes in found.values()]
        clients = [node.client() for node in nodes]
        numbers = [client.subscribe("news") for client in clients]
        for one in clients:
            for other in clients:
                settle(one, other)
        for sender, client in enumerate(clients):
            client.publish("news", b"%d" % sender)
            client.flush()
        for client, number in zip(clients, numbers):
            equal(sorted(client.next(number).payload for _ in clients), [b"0", b"1", b"2"], "messages from the clusters")
            equal(client.quiet(number), [], "further messages")

    return case


def request_before_interest(east: str, west: str):
    """The reply subject is new with each request, and the response comes at once."""

    def case(stage: Stage):
        found = start(stage, east=east, west=west)
        for one, other in ((found["east"][0], found["west"][-1]), (found["west"][0], found["east"][-1])):
            with one.client() as requester, other.client() as responder:
                service = responder.subscribe("service")
                settle(responder, requester)
                for number in range(300):
                    # One write, so that the interest has no time to spread.
                    inbox = next(requester.numbers)
                    requester.queues[inbox] = collections.deque()
                    requester.send(f"SUB in.{number} {inbox}\r\nPUB service in.{number} 2\r\nhi\r\n".encode())
                    request = responder.next(service)
                    equal(request.reply, f"in.{number}", "the reply subject")
                    responder.publish(request.reply, b"%d" % number)
                    equal(requester.next(inbox).payload, b"%d" % number, "the response")
                    equal(list(requester.queues[inbox]), [], "further responses")

    return case


def accounts(east: str, west: str):
    """Messages stay in their account. Imports work across clusters, and an account without interest receives nothing."""

    def case(stage: Stage):
        found = start(stage, more=ACCOUNTS, east=east, west=west)
        for one, other in ((found["east"][0], found["west"][-1]), (found["west"][-1], found["east"][0])):
            with one.client("a", "a") as a, other.client("b", "b") as b, other.client("a", "a") as far:
                feed, private = b.subscribe("feed.>"), b.subscribe("private")
                same = far.subscribe("private")
                settle(far, a)
                until(lambda: sent_to_feed(a, b, feed), "the feed does not get there")
                a.publish("private", b"x")
                equal(far.next(same).payload, b"x", "the message of the same account")
                equal(b.quiet(private), [], "messages of another account")
                service = a.subscribe("svc")
                settle(a, far)
                until(lambda: answered(b, a, service), "no response from the other cluster")

    return case


def sent_to_feed(sender: Client, receiver: Client, number: int) -> bool:
    sender.publish("feed.x", b"news")
    sender.flush()
    try:
        return receiver.next(number, 0.2).payload == b"news"
    except TimeoutError:
        return False


def answered(requester: Client, responder: Client, service: int) -> bool:
    reply = f"{requester.inbox}.again"
    requester.publish("svc", b"hi", reply)
    requester.flush()
    try:
        request = responder.next(service, 0.3)
        responder.publish(request.reply, b"ok")
        responder.flush()
        return requester.next(requester.answers, 0.3).payload == b"ok"
    except TimeoutError:
        return False


def system_requests(east: str, west: str):
    """All servers of both clusters answer a request of the system account."""

    def case(stage: Stage):
        found = start(stage, more=ACCOUNTS, east=east, west=west)
        everywhere = {node.name for nodes in found.values() for node in nodes}
        for nodes in found.values():
            with nodes[0].client("s", "s") as client:
                inbox = client.subscribe("answers")

                def answers() -> set[str]:
                    client.publish("$SYS.REQ.SERVER.PING.IDZ", b"", "answers")
                    client.flush()
                    return {message.json()["name"] for message in client.quiet(inbox)}

                until(lambda: answers() == everywhere, lambda: f"{answers()} answer, of {everywhere}")

    return case


def uses_jetstream(stage: Stage):
    """Clients of a server without JetStream use that of nats-servers in another cluster."""
    found = made(stage, east="t", west="rrr")
    for name, nodes in found.items():
        for node in nodes:
            jetstream = node.jetstream() if name == "west" else ""
            node.write(cluster_block(name, nodes, node), gateway_block(name, node, found), jetstream)
            node.start()
    until(lambda: any(Stage.leads(node) for node in found["west"]), "the cluster has no leader", 60)
    until_connected(found)
    with found["east"][0].client() as client:
        until(lambda: client.ask("$JS.API.INFO").status != 503, "no JetStream answers")
        config = {"name": "S", "subjects": ["s.>"], "storage": "memory", "placement": {"cluster": "west"}}
        api(client, "STREAM.CREATE.S", config)

        def stored():
            answer = client.ask("s.x", b"hello")
            # Interest in new subjects may cross after the response to the creation of their stream.
            return None if answer.status == 503 else answer.json()

        equal(until(stored, "no server has the stream")["seq"], 1, "the sequence of the message")
        consumer = {"durable_name": "c", "ack_policy": "explicit"}
        api(client, "CONSUMER.DURABLE.CREATE.S.c", {"stream_name": "S", "config": consumer})
        inbox = client.subscribe("pulled")

        def pulled():
            client.publish("$JS.API.CONSUMER.MSG.NEXT.S.c", b'{"batch":1,"expires":20000000000}', "pulled")
            message = client.next(inbox)
            # The same for the requests of a new consumer.
            return None if message.status == 503 else message

        message = until(pulled, "no server has the consumer")
        equal((message.subject, message.payload), ("s.x", b"hello"), "the pulled message")
        client.publish(message.reply, b"+ACK")
        until(lambda: api(client, "CONSUMER.INFO.S.c")["num_ack_pending"] == 0, "the acknowledgement does not arrive")


def limit_of_connections(east: str, west: str):
    """The connections of an account to the servers of all clusters count for its limit."""

    def case(stage: Stage):
        limited = ACCOUNTS.replace("user: b, password: b } ]", "user: b, password: b } ], limits: { max_connections: 3 }")
        found = start(stage, more=limited, east=east, west=west)
        one, other = found["east"][0], found["west"][-1]
        # A server reports its connections at once, and then again after a while.
        with one.client("s", "s") as publisher, other.client("s", "s") as subscriber:
            settle(subscriber, publisher)
        for _ in range(3):
            one.client("b", "b")
        seconds = REPORT_SECONDS + WAIT_SECONDS_MAX
        until(lambda: is_refused(other, "b"), "the connections of the other cluster do not count", seconds)
        other.client("a", "a")

    return case


def is_refused(node: Node, user: str) -> bool:
    try:
        with Client(node.port, user, user) as client:
            client.flush()
            return bool(client.errors)
    except Closed:
        return True


def node_restarts(east: str, west: str):
    """A node is killed and started again; the other cluster reaches it again."""

    def case(stage: Stage):
        found = start(stage, east=east, west=west)
        lost, other = found["west"][-1], found["east"][0]
        with other.client() as sender:
            ends = Ends(sender, sender)
            with lost.client() as receiver:
                receiver.subscribe(ends.subject("there"))
                settle(receiver, sender)
                lost.server.signal(signal.SIGKILL)
                lost.server.wait()
            until(lambda: gone(ends, "there"), "interest of a node that is dead")
            lost.start()
            until_connected(found)
            with lost.client() as receiver:
                number = receiver.subscribe("there")
                settle(receiver, sender)
                settle(sender, receiver)
                sender.publish("there", b"again")
                equal(receiver.next(number).payload, b"again", "the message after the restart")

    return case


def wrong_password(east: str, west: str):
    def case(stage: Stage):
        found = made(stage, east=east, west=west)
        first, second = found["east"][0], found["west"][0]
        first.write(gateway_block("east", first, {}, LOGIN))
        second.write(gateway_block("west", second, {"east": [first]}, login="ada:wrong@"))
        first.start()
        second.start()
        second.said("Authorization Violation")
        equal((inbound(first), outbound(first)), ({}, set()), "the gateways of the node that checks the password")

    return case


def own_password(east: str, west: str):
    """Without a password in the URL, that of the own block is sent."""

    def case(stage: Stage):
        found = start(stage, LOGIN, east=east, west=west)
        with found["east"][0].client() as one, found["west"][0].client() as other:
            settle(one, other)
            settle(other, one)

    return case


def wrong_name(east: str, west: str):
    """The second node expects another cluster at the address of the first one."""

    def case(stage: Stage):
        found = made(stage, east=east, west=west)
        first, second = found["east"][0], found["west"][0]
        first.write(gateway_block("east", first, {}))
        second.write(gateway_block("west", second, {"north": [first]}))
        first.start()
        second.start()
        # A nats-server logs neither the error that it sends nor the one that it receives before CONNECT.
        if not is_reference():
            tested = first if east == "t" else second
            tested.said('Connection from "west" rejected, wanted to connect to "north", this is "east"')
        equal((outbound(second), inbound(first)), (set(), {}), "the gateways")

    return case


def unknown_is_rejected(east: str, west: str):
    def case(stage: Stage):
        found = made(stage, east=east, west=west)
        first, second = found["east"][0], found["west"][0]
        first.write(gateway_block("east", first, {}, "reject_unknown_cluster: true"))
        second.write(gateway_block("west", second, {"east": [first]}))
        first.start()
        second.start()
        second.said('Connection to gateway "east" rejected')
        equal((outbound(first), inbound(first)), (set(), {}), "the gateways")

    return case


def wrong_certificate(east: str, west: str, is_plain: bool = False):
    """The second node has a certificate that the first one does not accept, or does not use TLS."""

    def case(stage: Stage):
        found = made(stage, east=east, west=west)
        first, second = found["east"][0], found["west"][0]
        first.write(gateway_block("east", first, {}, tls_block(stage, "first")))
        second.write(gateway_block("west", second, {"east": [first]}, "" if is_plain else tls_block(stage, "second")))
        first.start()
        second.start()
        first.said("TLS gateway handshake error")
        equal((outbound(second), inbound(first)), (set(), {}), "the gateways")

    return case


def survives_garbage(stage: Stage):
    """Invalid bytes of one peer close its connection, and disturb nobody else."""
    found = start(stage, east="t", west="r")
    first, second = found["east"][0], found["west"][0]
    with first.client() as sender, second.client() as receiver:
        there, here = receiver.subscribe("steady"), sender.subscribe("back")
        settle(receiver, sender)
        settle(sender, receiver)
        for garbage in (
            b"\x16\x03\x01\x00\xa5",
            b"GET / HTTP/1.1\r\n\r\n",
            b"RMSG x\r\n",
            b"RS+ $G a\r\n",
            b"INFO []\r\n",
            b"RMSG $G a 999999999999\r\n",
        ):
            peer = dialed(stage, first)
            peer.send(line("CONNECT", CONNECT | {"gateway": "south"}) + line("INFO", INFO | {"gateway": "south"}))
            peer.send(garbage)
            peer.until_closed()
            sender.publish("steady", garbage)
            equal(receiver.next(there).payload, garbage, "the message after the garbage")
            receiver.publish("back", garbage)
            equal(sender.next(here).payload, garbage, "the message back")


def never_reads(stage: Stage):
    """A cluster that wants everything and reads nothing does not delay messages to the others."""
    found = start(stage, east="t", west="r")
    first, second = found["east"][0], found["west"][0]
    peer = Listening(stage, first)
    # A nats-server stores plain interest only between these commands.
    account = {"gateway": "south", "gateway_cmd_payload": base64.b64encode(b"$G").decode()}
    peer.send(line("INFO", account | {"gateway_cmd": 2}) + b"RS+ $G >\r\n" + line("INFO", account | {"gateway_cmd": 3}))
    with first.client() as sender, second.client() as receiver:
        number = receiver.subscribe("steady")
        settle(receiver, sender)
        until(lambda: peer.has_received(b"RMSG $G settle."), "the peer is sent nothing")
        for _ in range(200):
            sender.publish("steady", b"x" * 100_000)
            equal(len(receiver.next(number).payload), 100_000, "the size of the message")


class Listening:
    """A cluster `south` that the node dials back, because it has connected itself."""

    def __init__(self, stage: Stage, node: Node):
        listener = stage.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(30)
        url = f"127.0.0.1:{listener.getsockname()[1]}"
        info = INFO | {"gateway": "south", "server_id": "NSOUTH", "gateway_url": url, "gateway_urls": [url]}
        self.inbound = dialed(stage, node)
        self.inbound.send(line("CONNECT", CONNECT | {"gateway": "south"}) + line("INFO", info))
        self.socket = stage.enter_context(listener.accept()[0])
        self.socket.settimeout(30)
        self.socket.sendall(line("INFO", info))
        self.received = b""
        until(lambda: self.has_received(b"INFO "), "no INFO comes back")

    def send(self, data: bytes):
        self.socket.sendall(data)

    def has_received(self, text: bytes) -> bool:
        if text not in self.received:
            self.received += self.socket.recv(4096)
        return text in self.received


CASES = {
    "a wrong password": refuses(line("CONNECT", CONNECT | {"user": "ada", "pass": "x"}), "Authorization Violation", LOGIN),
    "no CONNECT": refuses(line("INFO", INFO), "Authorization Violation"),
    "a client": refuses(line("CONNECT", {"lang": "go"}), "attempted to connect to gateway port"),
    "an unknown cluster": refuses(
        line("CONNECT", CONNECT), 'Connection to gateway "east" rejected', "reject_unknown: true"
    ),
    "another port of the protocol": refuses(line("CONNECT", {"cluster": "east"}), "attempted to connect to gateway port"),
    "garbage disturbs nobody": survives_garbage,
    "a cluster never reads": never_reads,
    "three clusters": three_clusters("t", "t", "t"),
    "three clusters around nats-servers": three_clusters("rr", "t", "tt"),
    "three clusters around nodes": three_clusters("tt", "rr", "t"),
    "a request before the interest": request_before_interest("tt", "tt"),
    "a request before the interest of nats-servers": request_before_interest("tt", "rr"),
    "a request before the interest in mixed clusters": request_before_interest("tr", "tr"),
    "accounts": accounts("t", "tt"),
    "accounts of nats-servers": accounts("tt", "rr"),
    "JetStream of nats-servers": uses_jetstream,
    "requests of the system account": system_requests("tt", "rr"),
    "a limit of connections": limit_of_connections("t", "tt"),
    "a limit of connections with nats-servers": limit_of_connections("rr", "t"),
    "a node restarts": node_restarts("tt", "tt"),
    "a nats-server restarts": node_restarts("t", "r"),
    "a node of nats-servers restarts": node_restarts("rr", "t"),
    "a nats-server has a wrong password": wrong_password("t", "r"),
    "a wrong password for a nats-server": wrong_password("r", "t"),
    "one password for all": own_password("t", "r"),
    "a nats-server expects another name": wrong_name("t", "r"),
    "another name than that of a nats-server": wrong_name("r", "t"),
    "a nats-server is rejected": unknown_is_rejected("t", "r"),
    "rejected by a nats-server": unknown_is_rejected("r", "t"),
    "a wrong certificate": wrong_certificate("t", "t"),
    "a nats-server has a wrong certificate": wrong_certificate("t", "r"),
    "a wrong certificate for a nats-server": wrong_certificate("r", "t"),
    "no TLS": wrong_certificate("t", "t", is_plain=True),
    "no TLS for a nats-server": wrong_certificate("r", "t", is_plain=True),
}
