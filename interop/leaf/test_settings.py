"""Settings of a leaf connection: access, interest, transport, and monitoring."""

import base64
import os
import signal

import pytest

from harness.certificates import self_signed
from harness.checks import check, equal, until
from harness.client import received, settle
from harness.nkeys import Key

from . import streams
from .link import Link
from .proxy import Proxy
from .stage import NODES, ROLES, Node, cluster_blocks, reference, remote, tested
from .traffic import Ends, headers, publishes, requests

ACCOUNTS = "accounts { A { users: [ {user: a, password: a} ] }, B { users: [ {user: b, password: b} ] } }"


def pair(hub: Node, spoke: Node, at_hub: list[str], at_spoke: list[str]):
    hub.start(*at_hub)
    spoke.start(*at_spoke)


def exchange(one, other):
    """Exchanges a few messages in both directions."""
    for sender, receiver in ((one, other), (other, one)):
        publishes(Ends(sender, receiver))
        headers(Ends(sender, receiver))


@NODES
def test_accounts(stage, hub, spoke):
    """A leaf connection belongs to one account on each side, and reaches no other account."""
    login = "authorization { users: [ {user: la, password: x, account: A}, {user: lb, password: x, account: B} ] }"
    entries = [
        remote(hub.leaf_port, login="la:x", more="account: B"),
        remote(hub.leaf_port, login="lb:x", more="account: A"),
    ]
    at_hub = [ACCOUNTS, hub.leafnodes(listen=True, more=login)]
    pair(hub, spoke, at_hub, [ACCOUNTS, spoke.leafnodes(*entries)])
    for near, far, stranger in (("b", "a", "b"), ("a", "b", "a")):
        one, other, third = spoke.client(near, near), hub.client(far, far), hub.client(stranger, stranger)
        number = third.subscribe("traffic.>")
        third.flush()
        exchange(one, other)
        equal(received(third, number), [], "what another account saw")


@pytest.mark.parametrize("scheme", ["leaf", "tcp", "http"])
@NODES
def test_any_scheme(stage, hub, spoke, scheme: str):
    """A scheme without TLS or WebSocket is equal to no scheme."""
    pair(hub, spoke, [hub.leafnodes(listen=True)], [spoke.leafnodes(remote(hub.leaf_port, scheme=scheme))])
    settle(spoke.client(), hub.client())
    exchange(spoke.client(), hub.client())


EXPORTS = """accounts {
  OFFICE { users: [ {user: o, password: o} ], exports: [ {service: "office.ask"}, {stream: "office.news.>"} ] }
  SHOP { users: [ {user: s, password: s} ]
    imports: [ {service: {account: OFFICE, subject: "office.ask"}, to: "ask"}
               {stream: {account: OFFICE, subject: "office.news.>"}, prefix: "from"} ] }
}"""


@pytest.mark.parametrize("at_hub", [True, False])
@NODES
def test_services(stage, hub, spoke, at_hub: bool):
    """Services and streams of another account work over a leaf connection, with accounts at the hub or at the
    spoke."""
    if at_hub:
        hub_parts, spoke_parts = [EXPORTS], []
        entry = remote(hub.leaf_port, login="s:s")
    else:
        hub_parts, spoke_parts = [], [EXPORTS]
        entry = remote(hub.leaf_port, more="account: SHOP")
    pair(hub, spoke, [*hub_parts, hub.leafnodes(listen=True)], [*spoke_parts, spoke.leafnodes(entry)])
    here, there = (hub, spoke) if at_hub else (spoke, hub)
    office, shop, beside = here.client("o", "o"), there.client(), here.client("s", "s")
    settle(beside, shop)
    settle(shop, beside)
    asked = office.subscribe("office.ask")
    office.flush()
    until(lambda: answered(shop, office, asked), "no answer from the other account")
    for n in range(20):
        inbox = shop.subscribe(f"_INBOX.service.{n}")
        shop.publish("ask", b"%d" % n, f"_INBOX.service.{n}", {"N": str(n)})
        request = office.next(asked)
        equal((request.payload, request.header("N")), (b"%d" % n, str(n)), "the request")
        office.publish(request.reply, b"answer %d" % n)
        equal(shop.next(inbox).payload, b"answer %d" % n, "the answer")
    number = shop.subscribe("from.office.news.*")
    settle(shop, beside)
    office.publish("office.news.today", b"rain")
    message = shop.next(number)
    equal((message.subject, message.payload), ("from.office.news.today", b"rain"), "the news")
    equal(received(shop, number, beside), [], "more news")


def answered(shop, office, asked: int) -> bool:
    """Sends a request and responds to it, so that it does not stay pending. Returns whether it arrived."""
    shop.publish("ask", b"probe", f"{shop.inbox}.probe")
    shop.flush()
    try:
        office.publish(office.next(asked, 0.3).reply, b"")
    except TimeoutError:
        return False
    return True


@ROLES
def test_queue_over_leafs(stage, hub_of, spoke_of):
    """A queue group with members at two leaf nodes and none at the hub: each message arrives once, and both
    receive some."""
    hub = hub_of(stage, "hub")
    hub.start(hub.leafnodes(listen=True))
    publisher, numbers = hub.client(), []
    for number, members in enumerate((1, 3)):
        spoke = spoke_of(stage, f"spoke{number}")
        spoke.start(spoke.leafnodes(remote(hub.leaf_port)))
        worker = spoke.client()
        numbers.append((worker, [worker.subscribe("shared.jobs", "workers") for _ in range(members)]))
        settle(worker, publisher)
    for n in range(2000):
        publisher.publish("shared.jobs", b"%d" % n)
    found = [
        [message.payload for each in all_of for message in received(worker, each, publisher)]
        for worker, all_of in numbers
    ]
    equal(sorted(int(payload) for part in found for payload in part), list(range(2000)), "all of them")
    one, three = map(len, found)
    print(f"      {one} to the leaf with one member, {three} to the leaf with three", flush=True)
    check(one > 100 and three > one, f"{one} to the leaf with one member, {three} to the leaf with three")


def test_cluster_of_spokes(stage):
    """The servers of a cluster connect to a hub as leaf nodes. Each message arrives once at each of them and at
    the hub."""
    hub = tested(stage, "hub")
    hub.start(hub.leafnodes(listen=True))
    nodes = [stage.reference(f"edge{number}") for number in (1, 2)]
    for node, cluster in zip(nodes, cluster_blocks("edges", nodes)):
        node.start(cluster, node.leafnodes(remote(hub.leaf_port)))
    one, two, middle = nodes[0].client(), nodes[1].client(), hub.client()
    everybody = (one, two, middle)
    for near in everybody:
        for far in everybody:
            settle(near, far)
    numbers = [client.subscribe("all.*") for client in everybody]
    jobs = one.subscribe("jobs", "workers")
    settle(one, two)
    settle(two, one)
    for near, far in ((one, middle), (two, middle), (middle, one), (middle, two)):
        settle(near, far)
    for sender, name in ((two, "edge"), (middle, "hub")):
        for number in range(100):
            sender.publish(f"all.{name}", b"%d" % number)
            sender.publish("jobs", b"%s %d" % (name.encode(), number))
        sender.flush()
    expected = sorted((name, b"%d" % number) for name in ("all.edge", "all.hub") for number in range(100))
    for client, number in zip(everybody, numbers):
        found = sorted((message.subject, message.payload) for message in received(client, number, two, middle))
        equal(found, expected, "what came to one of three")
    equal(len(received(one, jobs, two, middle)), 200, "jobs that were done")


@pytest.mark.parametrize("is_ignored", [False, True])
def test_discovered(stage, is_ignored: bool):
    """A spoke knows one node of a cluster and learns of the other. It uses the other one when the first is
    killed, unless `ignore_discovered_servers` is set."""
    nodes = [stage.reference(f"hub{number}") for number in (1, 2)]
    for node, cluster in zip(nodes, cluster_blocks("hubs", nodes)):
        node.start(cluster, f'leafnodes {{ listen: "127.0.0.1:{node.leaf_port}" }}')
    until(lambda: nodes[0].monitor("routez")["num_routes"] > 0, "the cluster is not there")
    settle(nodes[0].client(), nodes[1].client())
    spoke = stage.tested("spoke")
    more = f"ignore_discovered_servers: {str(is_ignored).lower()}"
    spoke.start(spoke.leafnodes(remote(nodes[0].leaf_port, more=more), reconnect="100ms"))
    settle(spoke.client(), nodes[1].client())
    nodes[0].stop()
    if is_ignored:
        spoke.said("connection refused")
        equal(nodes[1].leafs(), [], "leafs of the other node")
    else:
        until(lambda: [leaf["name"] for leaf in spoke.leafs()] == ["hub2"], "it does not go to the other node")
        settle(spoke.client(), nodes[1].client())


@NODES
def test_login_of_user(stage, hub, spoke):
    """Without users of its own, the leaf listener uses those of the client port."""
    entry = remote(hub.leaf_port, login="a:a")
    pair(hub, spoke, [ACCOUNTS, hub.leafnodes(listen=True)], [spoke.leafnodes(entry)])
    exchange(spoke.client(), hub.client("a", "a"))


@NODES
def test_login_by_nkey(stage, hub, spoke):
    key = Key("U")
    login = f"authorization {{ nkey: {key.public} }}"
    entry = remote(hub.leaf_port, more=f"nkey: {key.private}")
    pair(hub, spoke, [hub.leafnodes(listen=True, more=login)], [spoke.leafnodes(entry)])
    exchange(spoke.client(), hub.client())


@NODES
def test_permissions(stage, hub, spoke):
    """Subjects that the leaf node's user may not use do not cross, and the connection stays."""
    link = stage.enter_context(Link(hub.leaf_port))
    users = '{ user: a, password: a }, { user: leaf, password: x, permissions: { publish: { deny: "secret.>" }, '
    users += 'subscribe: { deny: "private.>" } } }'
    accounts = f"accounts {{ A {{ users: [ {users} ] }} }}"
    entry = remote(link.port, login="leaf:x")
    pair(hub, spoke, [accounts, hub.leafnodes(listen=True)], [spoke.leafnodes(entry)])
    one_way(spoke.client(), hub.client("a", "a"), "secret.plan", "open.plan")
    one_way(hub.client("a", "a"), spoke.client(), "private.talk", "open.talk")
    equal(link.accepted, 1, "connections of the leaf")


def one_way(sender, receiver, kept: str, passed: str):
    number = receiver.subscribe(">")
    settle(receiver, sender)
    for subject in (kept, passed):
        sender.publish(subject, b"x")
    found = {message.subject for message in received(receiver, number, sender)} & {kept, passed}
    equal(found, {passed}, "what crossed")
    # A filter that is equal to the denied subject.
    receiver.unsubscribe(number)
    number = receiver.subscribe(kept)
    settle(receiver, sender)
    sender.publish(kept, b"x")
    equal(received(receiver, number, sender), [], "what crossed of what may not")


@NODES
def test_denied_by_spoke(stage, hub, spoke):
    """The spoke's own lists: subjects that it does not send (`deny_exports`), and does not accept
    (`deny_imports`)."""
    entry = remote(hub.leaf_port, more='deny_exports: ["secret.>"], deny_imports: ["private.>"]')
    pair(hub, spoke, [hub.leafnodes(listen=True)], [spoke.leafnodes(entry)])
    one_way(spoke.client(), hub.client(), "secret.plan", "open.plan")
    one_way(hub.client(), spoke.client(), "private.talk", "open.talk")


@ROLES
def test_isolated(stage, hub_of, spoke_of):
    """With `isolate_leafnode_interest`, leaf nodes reach the hub, but not each other."""
    hub = hub_of(stage, "hub")
    hub.start(hub.leafnodes(listen=True, more="isolate_leafnode_interest: true"))
    spokes = [spoke_of(stage, f"spoke{number}") for number in range(2)]
    for spoke in spokes:
        spoke.start(spoke.leafnodes(remote(hub.leaf_port)))
    one, other, middle = spokes[0].client(), spokes[1].client(), hub.client()
    exchange(one, middle)
    exchange(other, middle)
    number = other.subscribe("apart")
    settle(other, middle)
    one.publish("apart", b"x")
    # From one leaf node to the hub, and then from the hub to the other one.
    settle(middle, one)
    equal(received(other, number, middle), [], "what one leaf got of another")
    equal(one.ask("apart").status, 503, "whether one leaf knows of another's wishes")


# The settings of hub and spoke, and the modes that they then report. With `s2_auto` the mode depends on the
# round-trip time, which is longer on a busy machine. nats-server accepts `s2_uncompressed` in a configuration,
# but does not start with it.
COMPRESSIONS = {
    ("off", "s2_fast"): ("off", "off"),
    ("s2_fast", "off"): ("off", "off"),
    ("accept", "accept"): ("off", "off"),
    ("accept", "s2_best"): ("s2_best", "s2_best"),
    ("s2_better", "accept"): ("s2_better", "s2_better"),
    ("s2_auto", "accept"): ("auto", "s2_fast"),
    ("s2_auto", "s2_auto"): ("auto", "auto"),
    ("s2_fast", "s2_fast"): ("s2_fast", "s2_fast"),
    ("s2_better", "s2_best"): ("s2_better", "s2_best"),
    # With these thresholds, each round-trip time selects the third level.
    ("{mode: s2_auto, rtt_thresholds: [0ms, 0ms, 100s]}", "accept"): ("s2_better", "s2_fast"),
}
LEVELS = ("s2_uncompressed", "s2_fast", "s2_better", "s2_best")


@pytest.mark.parametrize("above, below", COMPRESSIONS)
@NODES
def test_compression(stage, hub, spoke, above: str, below: str):
    link = stage.enter_context(Link(hub.leaf_port))
    entry = remote(link.port, more=f"compression: {below}")
    pair(hub, spoke, [hub.leafnodes(listen=True, more=f"compression: {above}")], [spoke.leafnodes(entry)])
    one, other = spoke.client(), hub.client()
    exchange(one, other)
    requests(Ends(one, other))
    before = link.bytes
    number = one.subscribe("same")
    settle(one, other)
    for _ in range(1000):
        other.publish("same", b"a" * 10_000)
    one.take(number, 1000)
    carried = link.bytes - before
    print(f"      {carried} bytes for 10,000,000", flush=True)
    expected = COMPRESSIONS[above, below]
    for node, wanted in zip((hub, spoke), expected):
        found = node.leafs()[0]["compression"]
        check(found == wanted or (wanted == "auto" and found in LEVELS), f"{node.name} does {found}, not {wanted}")
    if expected[0] in ("s2_fast", "s2_better", "s2_best"):
        check(carried < 1_000_000, f"{carried} bytes were carried")
    if expected[0] == "off":
        check(carried > 10_000_000, f"{carried} bytes were carried")
    noise = os.urandom(900_000)
    for near, far in ((one, other), (other, one)):
        number = near.subscribe("noise")
        settle(near, far)
        for part in (noise, noise[:1], noise + noise[:100_000]):
            far.publish("noise", part)
            equal(near.next(number).payload, part, "what cannot be compressed")


@pytest.mark.parametrize("first, mutual", [(False, False), (True, True)])
@NODES
def test_encrypted(stage, hub, spoke, first: bool, mutual: bool):
    hub_pem, hub_key = self_signed(stage.folder, "hub")
    pem, key = self_signed(stage.folder, "spoke")
    more = ", handshake_first: true" if first else ""
    asked = f', verify: true, ca_file: "{pem}"' if mutual else ""
    shown = f', cert_file: "{pem}", key_file: "{key}"' if mutual else ""
    at_hub = f'tls {{ cert_file: "{hub_pem}", key_file: "{hub_key}", timeout: 10 {asked} {more} }}'
    at_spoke = f'tls: {{ ca_file: "{hub_pem}", timeout: 10 {shown} {more} }}'
    entry = remote(hub.leaf_port, more=at_spoke, scheme="tls")
    pair(hub, spoke, [hub.leafnodes(listen=True, more=at_hub)], [spoke.leafnodes(entry)])
    exchange(spoke.client(), hub.client())


@NODES
def test_untrusted(stage, hub, spoke):
    """A hub whose certificate is not trusted: there is no connection, and both sides log the cause."""
    pem, key = self_signed(stage.folder, "hub")
    other, _ = self_signed(stage.folder, "other")
    at_hub = f'tls {{ cert_file: "{pem}", key_file: "{key}", timeout: 10 }}'
    entry = remote(hub.leaf_port, more=f'tls: {{ ca_file: "{other}", timeout: 10 }}', scheme="tls")
    pair(hub, spoke, [hub.leafnodes(listen=True, more=at_hub)], [spoke.leafnodes(entry)])
    spoke.said("tls")
    hub.said("tls")
    equal(hub.leafs(), [], "leafs of the hub")


@NODES
def test_meant_domain(stage, hub, spoke):
    """`default_js_domain` sends JetStream requests of one account of the spoke to the hub; another account is not
    affected."""
    entries = [remote(hub.leaf_port, more=f"account: {name}", login=f"{name}:x") for name in ("A", "B")]
    users = [f"{name} {{ jetstream: enabled, users: [ {{user: {name}, password: x}} ] }}" for name in ("A", "B")]
    pair(
        hub,
        spoke,
        [f"accounts {{ {users[0]}, {users[1]} }}", hub.jetstream("hub"), hub.leafnodes(listen=True)],
        [ACCOUNTS, spoke.jetstream("edge"), "default_js_domain { A: hub }", spoke.leafnodes(*entries)],
    )
    above, below, other = hub.client("A", "x"), spoke.client("a", "a"), spoke.client("b", "b")
    settle(below, above)
    settle(other, hub.client("B", "x"))

    def answered(client):
        try:
            answer = client.ask("$JS.API.INFO", seconds=1)
        except TimeoutError:
            return False
        return answer.status != 503 and "error" not in answer.json()

    until(lambda: answered(below), "nobody answers")
    check(not answered(other), "the account that means nobody's is answered")
    streams.add(below, "S", subjects=["kept.*"], allow_direct=True)
    for number in range(100):
        below.publish(f"kept.{number}", b"%d" % number)
    below.flush()
    for client in (above, below):
        until(lambda client=client: streams.state(client, "S")["messages"] == 100, "not all of them are kept")
    message = below.ask("$JS.API.DIRECT.GET.S", b'{"seq": 17}')
    equal((message.header("Nats-Subject"), message.payload), ("kept.16", b"16"), "what is kept")
    # A write to a bucket, as clients send it.
    streams.add(below, "KV_b", subjects=["$KV.b.>"], max_msgs_per_subject=1, allow_direct=True)
    equal(below.ask("$KV.b.k", b"v").json()["stream"], "KV_b", "who keeps what is put into a bucket")


@pytest.mark.parametrize("to_hub", ["nats-leaf", "tls", "ws"])
@pytest.mark.parametrize("by_tls", [False, True])
@ROLES
def test_through_proxy(stage, hub_of, spoke_of, by_tls: bool, to_hub: str):
    """A leaf connection through a proxy that requires credentials. If the proxy's certificate is not trusted,
    there is no connection."""
    hub, spoke, doubting = hub_of(stage, "hub"), spoke_of(stage, "spoke"), spoke_of(stage, "doubting")
    pem, key = self_signed(stage.folder, "hub")
    own_pem, own_key = self_signed(stage.folder, "proxy")
    proxy = stage.enter_context(Proxy(own_pem, own_key) if by_tls else Proxy())
    known = f'tls {{ ca_file: "{own_pem}" }}' if by_tls else ""
    where = f'{"https" if by_tls else "http"}://127.0.0.1:{proxy.port}'

    def entry(tls: str) -> str:
        more = f'proxy {{ url: "{where}", username: ada, password: secret, timeout: "10s"\n {tls} }}'
        if to_hub == "tls":
            more += f'\ntls: {{ ca_file: "{pem}", timeout: 10 }}'
        port = hub.websocket_port if to_hub == "ws" else hub.leaf_port
        return remote(port, more=more, scheme=to_hub)

    at_hub = f'tls {{ cert_file: "{pem}", key_file: "{key}", timeout: 10 }}' if to_hub == "tls" else ""
    page = f'websocket {{ listen: "127.0.0.1:{hub.websocket_port}", no_tls: true }}'
    pair(hub, spoke, [page, hub.leafnodes(listen=True, more=at_hub)], [spoke.leafnodes(entry(known))])
    one, other = spoke.client(), hub.client()
    exchange(one, other)
    requests(Ends(one, other))
    carries_large(one, other)
    login = b"Proxy-Authorization: Basic " + base64.b64encode(b"ada:secret") + b"\r\n"
    check(login in proxy.asked[0], f"it does not say who it is: {proxy.asked}")
    if by_tls:
        doubting.start(doubting.leafnodes(entry("")))
        doubting.said("proxy")
        equal([leaf["name"] for leaf in hub.leafs()], ["spoke"], "leafs of the hub")


def test_dialled_otherwise(stage):
    """A reload changes the trusted authority for a hub. The open connection stays, and the next one uses the new
    authority."""
    hub, spoke = stage.reference("hub"), tested(stage, "spoke")
    link = stage.enter_context(Link(hub.leaf_port))
    files = [self_signed(stage.folder, name) for name in ("first", "second")]
    certificates = [f'tls {{ cert_file: "{pem}", key_file: "{key}", timeout: 10 }}' for pem, key in files]
    entries = [
        remote(link.port, more=f'tls: {{ ca_file: "{pem}", timeout: 10 }}', scheme="tls") for pem, _ in files
    ]
    pair(hub, spoke, [hub.leafnodes(listen=True, more=certificates[0])], [spoke.leafnodes(entries[0])])
    exchange(spoke.client(), hub.client())
    # First the hub's certificate, then the authority of the spoke; the connection stays.
    for node, text in (
        (hub, hub.leafnodes(listen=True, more=certificates[1])),
        (spoke, spoke.leafnodes(entries[1])),
    ):
        node.write(text)
        node.server.signal(signal.SIGHUP)
        node.said("reloaded server configuration")
    exchange(spoke.client(), hub.client())
    equal(link.accepted, 1, "connections")
    link.cut()
    link.restore()
    until(lambda: link.accepted > 1 and hub.leafs(), "it does not come back")
    exchange(spoke.client(), hub.client())


# The options of the WebSocket listener, and of the remote.
WEBSOCKETS = {
    "": ("", "compression: off"),
    ", compressed": ("compression: true", "ws_compression: true"),
    ", compression refused": ("", "ws_compression: true"),
    ", not masked": ("", "ws_no_masking: true, compression: off"),
    ", compressed and not masked": ("compression: true", "ws_compression: true, ws_no_masking: true"),
    ", S2": ("compression: true", "compression: s2_fast"),
    ", TLS": ("", "ws_no_masking: true"),
}


def carries_large(near, far):
    """Sends a compressible and an incompressible large payload, and a small one."""
    number = near.subscribe("large")
    settle(near, far)
    for payload in (b"a" * 1_000_000, os.urandom(1_000_000), b"x"):
        far.publish("large", payload)
        equal(near.next(number).payload, payload, "what is large")


@pytest.mark.parametrize("variant", WEBSOCKETS)
@NODES
def test_over_websocket(stage, hub, spoke, variant: str):
    offered, more = WEBSOCKETS[variant]
    carried, scheme = "no_tls: true", "ws"
    if "TLS" in variant:
        pem, key = self_signed(stage.folder, "hub")
        carried, scheme = f'tls {{ cert_file: "{pem}", key_file: "{key}", timeout: 10 }}', "wss"
        more += f'\ntls: {{ ca_file: "{pem}", timeout: 10 }}'
    page = f'websocket {{ listen: "127.0.0.1:{hub.websocket_port}", {carried}\n {offered} }}'
    entry = remote(hub.websocket_port, scheme=scheme, more=more)
    pair(hub, spoke, [page, hub.leafnodes(listen=True)], [spoke.leafnodes(entry)])
    one, other = spoke.client(), hub.client()
    exchange(one, other)
    requests(Ends(one, other))
    carries_large(one, other)
    for node in (hub, spoke):
        leaf = node.leafs()[0]
        equal(leaf.get("websocket"), True, "whether it says that it is over WebSocket")
        if "ws_compression" in more and offered:
            equal(leaf["compression"], "off", "compression besides that of WebSocket")


def test_reloaded(stage):
    """Reloads add a remote, disable it, enable it, and remove it. The other connection is not interrupted."""
    hubs = [stage.reference(f"hub{number}") for number in range(2)]
    for hub in hubs:
        hub.start(hub.leafnodes(listen=True))
    links = [stage.enter_context(Link(hub.leaf_port)) for hub in hubs]
    spoke = stage.tested("spoke")
    first = remote(links[0].port, more="account: A")

    def second(more: str = "") -> str:
        return remote(links[1].port, more=f"account: B\n{more}")

    spoke.start(ACCOUNTS, spoke.leafnodes(first))
    exchange(spoke.client("a", "a"), hubs[0].client())

    def reload(*entries: str):
        spoke.write(ACCOUNTS, spoke.leafnodes(*entries))
        spoke.server.signal(signal.SIGHUP)

    for entries in ([first, second()], [first, second("disabled: true")], [second(), first], [first]):
        reload(*entries)
        count = sum("disabled" not in entry for entry in entries)
        until(lambda: len(spoke.leafs()) == count, lambda: f"{spoke.leafs()}: {spoke.log()}")
        exchange(spoke.client("a", "a"), hubs[0].client())
        if count == 2:
            exchange(spoke.client("b", "b"), hubs[1].client())
    equal(links[0].accepted, 1, "connections over the link that was there all the time")
    equal(links[1].accepted, 2, "connections over the other")


def test_disabled(stage):
    hub, spoke = stage.reference("hub"), stage.tested("spoke")
    link = stage.enter_context(Link(hub.leaf_port))
    entry = remote(link.port, more="disabled: true")
    pair(hub, spoke, [hub.leafnodes(listen=True)], [spoke.leafnodes(entry)])
    equal(spoke.client().ask("anything").status, 503, "who is there")
    equal(link.accepted, 0, "connections")


@ROLES
def test_monitored(stage, hub_of, spoke_of):
    """`/leafz` has all keys that nats-server's page has, and equal counts."""
    keys = {}
    for name, (above, below) in {"reference": (reference, reference), "tested": (hub_of, spoke_of)}.items():
        hub, spoke = above(stage, f"hub_{name}"), below(stage, f"spoke_{name}")
        pair(hub, spoke, [hub.leafnodes(listen=True)], [spoke.leafnodes(remote(hub.leaf_port))])
        near, far = spoke.client(), hub.client()
        number = near.subscribe("counted")
        settle(near, far)
        before = hub.leafs()[0]["out_msgs"]
        for _ in range(100):
            far.publish("counted", b"x" * 10)
        near.take(number, 100)
        until(lambda: hub.leafs()[0]["out_msgs"] - before >= 100, "the hub does not count what it sent")
        for node, other in ((hub, spoke), (spoke, hub)):
            # Fanline reports the round-trip time after the first PING, two seconds after the start.
            until(lambda node=node: "rtt" in node.leafs()[0], "no round trip")
            page = node.monitor("leafz?subs=1")
            equal(page["leafnodes"], 1, "leafnodes")
            leaf = page["leafs"][0]
            equal((leaf["name"], leaf["account"]), (other.name, "$G"), "who it is")
            keys[name, node is hub] = (set(page), set(leaf))
        check("counted" in hub.monitor("leafz?subs=1")["leafs"][0]["subscriptions_list"], "no `counted`")
        equal(hub.monitor("varz")["leafnodes"], 1, "leafnodes in /varz")
    for at_hub in (True, False):
        for found, wanted, what in zip(keys["tested", at_hub], keys["reference", at_hub], ("page", "leaf")):
            check(wanted <= found, f"the {what} at the {'hub' if at_hub else 'spoke'} lacks {wanted - found}")


@NODES
def test_events(stage, hub, spoke):
    """A subscriber in the system account receives events about leaf nodes that connect and disconnect."""
    system = "accounts { $SYS { users: [ {user: sys, password: sys} ] }, A { users: [ {user: a, password: a} ] } }"
    hub.start(system, hub.leafnodes(listen=True))
    watcher = hub.client("sys", "sys")
    number = watcher.subscribe("$SYS.ACCOUNT.A.>")
    watcher.flush()
    spoke.start(spoke.leafnodes(remote(hub.leaf_port, login="a:a")))
    settle(spoke.client(), hub.client("a", "a"))

    def told(kind: str, leafs: int):
        """Waits for an event with this content. Earlier events depend on timing."""
        while True:
            message = watcher.next(number)
            if message.subject.endswith(kind) and message.json().get("leafnodes") == leafs:
                return

    told("SERVER.CONNS", 1)
    spoke.stop()
