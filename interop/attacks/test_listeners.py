"""Attacks on other listeners than the client port: MQTT, WebSocket, leaf nodes, and PROXY headers. Also attacks
on `no_auth_user` and on users that are restricted to connection types."""

import base64
import json
import os
import socket

import pytest

from attacks.access_kit import Client, Refused, Target, permissions
from harness.cases import named
from harness.checks import check, equal
from harness.nkeys import Key, b64
from harness.peer import Closed, Peer
from mqtt import packets
from mqtt.device import Device, Unconnected
from mqtt.packets import CONNACK, PUBLISH, V4, V5

MQTT = 'server_name: here\njetstream { store_dir: "SERVER_DIR/js" }\nmqtt { port: MQTT_PORT }\n'
EVE = permissions(["open"], ["open"])
USERS = f"authorization {{ users: [\n{{ user: root, password: p }}\n{{ user: eve, password: p, {EVE} }}\n] }}\n"
TWO = """accounts {
  A { jetstream: enabled, users: [ { user: a, password: p } ] }
  B { jetstream: enabled, users: [ { user: b, password: p } ] }
}
"""


def device(target: Target, user: str, client_id: str, version: int = V5, **options) -> Device:
    return Device(target, version, client_id, user=user, password="p", **options)


def heard(device_: Device) -> list[str]:
    """Waits until the server has handled everything sent so far. Returns the topics of all messages received."""
    device_.send(b"\xc0\x00")
    found = []
    while (packet := device_.packet()).kind != packets.PINGRESP:
        if packet.kind == PUBLISH:
            device_.acknowledge(packet)
            found.append(packet.topic)
    return found


def left(target: Target, user: str, client_id: str, version: int, topic: str):
    """Creates a session with a subscription and leaves it without a connection."""
    options = {"clean": False} | ({"properties_": {"session_expiry": 600}} if version == V5 else {})
    with device(target, user, client_id, version, **options) as gone:
        gone.subscribed((topic, 1))
        gone.send(b"\xe0\x00")
        gone.until_end()
    return options


@pytest.mark.client
@pytest.mark.parametrize("version", [V4, V5])
def test_session_of_a_user_with_more_rights(version: int):
    """A client that takes over the session of another user must not receive messages of its subscriptions."""
    with Target(MQTT + USERS) as target:
        options = left(target, "root", "victim", version, "secret")
        with device(target, "root", "sender", version) as sender:
            sender.publish("secret", b"kept", qos=1)
            with device(target, "eve", "victim", version, **options) as eve:
                found = heard(eve)
                sender.publish("secret", b"live", qos=1)
                sender.publish("secret", b"live", qos=0)
                heard(sender)
                equal(found + heard(eve), [], "what came")


@pytest.mark.owner
def test_takes_over_or_ends_a_session_of_another_account_by_its_client_identifier():
    with Target(MQTT + TWO) as target:
        with device(target, "a", "victim") as victim, device(target, "b", "victim") as eve:
            equal(eve.connack.session_present, 0, "a session was there")
            victim.subscribed(("secret", 1))
            with device(target, "a", "sender") as sender:
                sender.publish("secret", b"x", qos=1)
                equal(heard(victim), ["secret"], "what the victim hears")
                equal(heard(eve), [], "what the attacker hears")


@pytest.mark.owner
def test_retained_messages_of_another_account():
    with Target(MQTT + TWO) as target, device(target, "a", "x") as a, device(target, "b", "y") as b:
        a.publish("secret", b"x", qos=1, retain=True)
        b.subscribed(("#", 1), ("secret", 1), ("$share/g/secret", 1))
        equal(heard(b), [], "what came")


FILTERS = ["secret", "#", "+", "$share/g/secret", "$share/g/#", "$MQTT/#", "$SYS/#", "$JS/#", "$R/#", "open/../secret", "secret/#", "+/#"]


@pytest.mark.client
@pytest.mark.parametrize("filter_", FILTERS)
def test_denied_filter_over_mqtt(filter_: str):
    with Target(MQTT + USERS) as target, device(target, "eve", "eve") as eve, device(target, "root", "root") as root:
        root.publish("secret", b"retained", qos=1, retain=True)
        eve.subscribe((filter_, 1))
        for topic in ("secret", "secret/x", "other"):
            root.publish(topic, b"x", qos=1)
        equal(heard(eve), [], "what came")


TOPICS = ["secret", "$JS/API/STREAM/DELETE/V", "$SYS/REQ/SERVER/PING", "$MQTT/sub/x", "_INBOX/x", "_R_/0/1"]


@pytest.mark.client
@pytest.mark.parametrize("topic", TOPICS)
def test_denied_topic_over_mqtt(topic: str):
    with Target(MQTT + USERS) as target, Client(target.port, user="root", **{"pass": "p"}) as root:
        root.made("$JS.API.STREAM.CREATE.V", {"name": "V", "subjects": ["v"]})
        for sid, subject in enumerate(["secret", "_INBOX.x", "_R_.0.1", "$MQTT.sub.x"]):
            root.sub(subject, sid)
        root.barrier()
        try:
            with device(target, "eve", "eve") as eve:
                for qos in (0, 1, 2):
                    eve.publish(topic, b"", qos=qos)
                heard(eve)
        except (Closed, AssertionError):
            pass
        equal(root.barrier(), [], "what came")
        check("V" in root.asked("$JS.API.STREAM.NAMES")["streams"], "the stream is gone")


@pytest.mark.client
def test_a_response_topic_or_a_will_that_leads_to_a_denied_subject():
    with Target(MQTT + USERS) as target, device(target, "root", "root") as root:
        root.subscribed(("secret", 1))
        with Unconnected(target, V4) as eve:
            eve.send(packets.connect(V4, "eve", user="eve", password="p", will=packets.Will("secret", b"x")))
            eve.packet()
            eve.reset()
        with device(target, "eve", "eve2") as other:
            other.publish("open", b"x", qos=1, response_topic="secret")
        equal(heard(root), [], "what came")


LOGINS = [{"user": "a"}, {"user": "a", "password": ""}, {"user": "", "password": "p"}, {"user": "A", "password": "p"}, {"user": "a\u0000", "password": "p"}, {}]


@pytest.mark.anonymous
@pytest.mark.parametrize("options", LOGINS, ids=json.dumps)
def test_mqtt_login(options: dict):
    with Target(MQTT + TWO) as target, Unconnected(target, V5) as eve:
        eve.send(packets.connect(V5, "x", **options))
        try:
            packet = eve.packet()
        except Closed:
            return
        check(packet.kind != CONNACK or packet.code >= 0x80, "it was let in")


def upgraded(port: int, headers: dict[str, str]) -> int:
    """Requests a WebSocket upgrade and returns the status."""
    lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.create_connection(("127.0.0.1", port), timeout=15) as stream:
        stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int(stream.makefile("rb").readline().split()[1])


ORIGINS = [
    "https://evil.example", "http://good.example", "https://good.example.evil.example", "https://evilgood.example",
    "https://good.example:444", "https://good.example@evil.example", "null", "https://", "good.example",
    "https://GOOD.example.", "https://good.example#.evil.example:443x", "file://good.example",
]


@pytest.mark.anonymous
@pytest.mark.parametrize("origin", ORIGINS)
def test_foreign_origin(origin: str):
    config = 'websocket { port: WS_PORT, no_tls: true, allowed_origins: ["https://good.example"], user_cookie: u, pass_cookie: p }\n' + USERS
    with Target(config) as target:
        equal(upgraded(target.ports["WS_PORT"], {"Origin": "https://good.example"}), 101, "the own page's status")
        equal(upgraded(target.ports["WS_PORT"], {"Origin": origin, "Cookie": "u=root; p=p"}), 403, "the status")


# PROXY headers that the server does not expect (`False`), and malformed ones where it does.
PROXIES = [
    (False, b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n"),
    (False, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\0\0\1\x0a\0\0\2\0\1\0\2"),
    (True, b"PROXY TCP4 10.0.0.999 10.0.0.2 1 2\r\n"),
    (True, b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nPROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n"),
    (True, b"PROXY TCP4 10.0.0.1\r\n"),
    (True, b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c\x0a\0\0\1\x0a\0\0\2\0\1\0\2"),
    (True, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x01\x0a"),
    (True, b"PROXY " + b"A" * 200 + b"\r\n"),
]


@pytest.mark.anonymous
@pytest.mark.parametrize("is_believed, header", PROXIES)
def test_forged_proxy_header(is_believed: bool, header: bytes):
    config = f"proxy_protocol: {str(is_believed).lower()}\nhttp: 127.0.0.1:HTTP_PORT\n" + USERS
    with Target(config) as target, Peer(target.port) as peer:
        peer.send(header)
        peer.send(b'CONNECT {"verbose":false,"user":"root","pass":"p"}\r\nPING\r\n')
        try:
            while peer.line() != "PONG":
                pass
        except Closed:
            return
        _, found = target.http("GET /connz")
        check("10.0.0." not in found, "the header was believed")

# A server with `no_auth_user`, and with users that are restricted to one connection type.
GUEST = (
    "no_auth_user: guest\nauthorization { users: [\n{ user: guest, password: g, %s }\n{ user: root, password: p }\n"
    '{ user: web, password: p, allowed_connection_types: ["WEBSOCKET"] }\n{ user: box, password: p, allowed_connection_types: ["MQTT"] }\n] }\n'
) % permissions(["g"], ["g"])
SHOWN = [
    {"user": "root"}, {"user": "root", "pass": "wrong"}, {"user": "nobody"}, {"pass": "p"}, {"auth_token": "p"}, {"user": "web", "pass": "p"},
    {"user": "box", "pass": "p"}, {"user": "guest"}, {"user": "guest", "pass": "p"}, {"user": "root", "pass": "P"}, {"user": "root ", "pass": "p"},
]


@pytest.mark.anonymous
@pytest.mark.parametrize("shown", SHOWN, ids=json.dumps)
def test_guest_with_wrong_credentials(shown: dict):
    """A client with wrong credentials is refused, and not accepted as the user of `no_auth_user`."""
    with Target(GUEST) as target:
        target.client().close()
        check(target.refuses(**shown), "it was let in")


@pytest.mark.anonymous
def test_a_guest_with_the_rights_of_somebody_else_by_claiming_a_jwt_a_name_or_an_account():
    with Target(GUEST) as target, target.client("root", "p") as root:
        root.sub(">")
        root.barrier()
        for options in ({"jwt": "eyJ"}, {"name": "root"}, {"account": "$G"}, {"nkey": "U"}, {"sig": "x"}):
            try:
                with Client(target.port, **options) as guest:
                    guest.pub("secret")
                    guest.barrier()
            except (Refused, Closed):
                continue
            equal(root.barrier(), [], f"what {options} has published")


LEAFS = [
    {"user": "leaf", "pass": "wrong"}, {"user": "root", "pass": "p"}, {}, {"user": "leaf"}, {"auth_token": "p"}, {"nkey": "U", "sig": "x"},
]


def leaf_connect(target: Target, **shown) -> Peer:
    peer = Peer(target.ports["LEAF_PORT"])
    info = json.loads(peer.line().removeprefix("INFO "))
    fields = {"server_id": "N" + "A" * 55, "name": "evil", "cluster": "evil", "version": "2.15.2", "headers": True, "protocol": 1} | shown
    del info
    peer.send(f"CONNECT {json.dumps(fields)}\r\nPING\r\n".encode())
    return peer


@pytest.mark.anonymous
@pytest.mark.parametrize("shown", LEAFS, ids=json.dumps)
def test_leaf_login(shown: dict):
    config = "leafnodes { port: LEAF_PORT, authorization { user: leaf, password: p } }\n" + USERS
    with Target(config) as target, leaf_connect(target, **shown) as peer:
        check(b"PONG" not in peer.until_closed(), "it was let in")


SENT = [
    b"LMSG secret 1\r\nx\r\n", b"LMSG other.x reply 1\r\nx\r\n", b"HMSG secret 12 13\r\nNATS/1.0\r\n\r\nx\r\n", b"LS+ secret\r\n", b"LS+ >\r\n", b"LS+ * q 1\r\nLS+ other.x q 1\r\n",
]


@pytest.mark.client
@pytest.mark.parametrize("data", SENT)
def test_leaf_with_few_rights(data: bytes):
    rights = permissions(["open"], ["open"])
    config = f"leafnodes {{ port: LEAF_PORT }}\naccounts {{ A {{ users: [\n{{ user: root, password: p }}\n{{ user: leaf, password: p, {rights} }}\n] }} }}\n"
    with Target(config) as target, target.client("root", "p") as root, leaf_connect(target, user="leaf", **{"pass": "p"}) as leaf:
        root.sub("secret")
        root.sub("other.>", 2)
        root.barrier()
        while leaf.line() != "PONG":
            pass
        leaf.send(data)
        root.barrier()
        root.pub("secret", b"SECRET")
        root.pub("other.x", b"SECRET")
        root.barrier()
        lines = []
        try:
            leaf.send(b"PING\r\n")
            while (line := leaf.line()) != "PONG":
                lines.append(line)
        except Closed:
            lines.append(leaf.buffer.decode(errors="replace"))
        equal(root.barrier(), [], "what came over the link")
        check(not any("LMSG" in line or "SECRET" in line for line in lines), f"{lines}")


# A proxy signs the nonce of the connection that it forwards. The user `box` must connect through a proxy.
PROXY, OTHER_PROXY = Key("U"), Key("U")
BEHIND_PROXY = (
    f"proxies {{ trusted: [ {{ key: {PROXY.public} }} ] }}\n"
    "authorization { users: [ { user: box, password: p, proxy_required: true }, { user: free, password: p } ] }\n"
)
EARLIER: list[bytes] = []


def earlier(nonce: str) -> bytes:
    """Returns a signature that was used on another connection."""
    EARLIER.append(PROXY.sign(nonce.encode()))
    return EARLIER[0]


FORGED = {
    "none": None,
    "that of a proxy that is not trusted": lambda nonce: OTHER_PROXY.sign(nonce.encode()),
    "that of nothing": lambda nonce: PROXY.sign(b""),
    "that of the nonce in capitals": lambda nonce: PROXY.sign(nonce.swapcase().encode()),
    "that of another nonce": lambda nonce: PROXY.sign(nonce[:-1].encode()),
    "one with a flipped bit": lambda nonce: bytes([PROXY.sign(nonce.encode())[0] ^ 1]) + PROXY.sign(nonce.encode())[1:],
    "one that is cut": lambda nonce: PROXY.sign(nonce.encode())[:63],
    "zeros": lambda nonce: bytes(64),
}


@pytest.mark.anonymous
@pytest.mark.parametrize("sign", named(FORGED))
def test_forged_proxy_signature(sign):
    def shown(make):
        return None if make is None else lambda nonce: {"proxy_sig": b64(make(nonce))}

    def let_in(user: str, make) -> bool:
        return not target.refuses(user=user, **{"pass": "p"}, sign=shown(make))

    with Target(BEHIND_PROXY) as target:
        check(let_in("box", lambda nonce: PROXY.sign(nonce.encode())), "the proxy's own client is refused")
        check(not let_in("box", sign), "it was let in")
        if sign is not None:
            check(not let_in("free", sign), "somebody else was let in with that signature")


@pytest.mark.anonymous
def test_one_that_was_seen_on_another_connection():
    with Target(BEHIND_PROXY) as target:
        EARLIER.clear()
        sign = {"sign": lambda nonce: {"proxy_sig": b64(earlier(nonce))}}
        Client(target.port, user="box", **{"pass": "p"}, **sign).close()
        check(target.refuses(user="box", **{"pass": "p"}, **sign), "it was let in")
