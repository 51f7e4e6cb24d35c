"""Changes while the servers run: reloads, generated names, lame duck mode, and what two servers agree on."""

import json
import signal
import socket
from collections.abc import Callable

from harness.checks import WAIT_SECONDS_MAX, check, equal, until
from harness.client import Client, settle
from harness.peer import CONNECT, Peer
from harness.server import port_free
from leaf.stage import Node, Stage
from websocket.session import request as upgrade

from .shapes import ROUTES, block, loads, made, peers, start, until_meshed

# The lame duck mode of these cases ends only after they have.
SLOW_LAME_DUCK = 'lame_duck_grace_period: "60s"\nlame_duck_duration: "120s"'


def reload(node: Node, *parts: str):
    node.write(*parts)
    node.server.signal(signal.SIGHUP)
    node.said("Reloaded")


def started(stage: Stage, kinds: str, known: int = 0) -> list[Node]:
    """Starts nodes, of which the first one knows some of the others."""
    nodes = made(stage, kinds)
    for node in nodes:
        node.write(block(node, nodes[1 : 1 + known] if node is nodes[0] else []))
        node.start()
    return nodes


def adds_a_route(kinds: str):
    def case(stage: Stage):
        first, second = nodes = started(stage, kinds)
        equal(peers(first), set(), "the peers without a route")
        reload(first, block(first, [second]))
        until_meshed(nodes)

    return case


def removes_a_route(kinds: str):
    """The route to a removed address is closed. The other ones stay as they are."""

    def case(stage: Stage):
        first, second, third = nodes = started(stage, kinds, known=2)
        until_meshed(nodes)

        def stayed() -> set[int]:
            routes = first.monitor("routez")["routes"]
            return {route["rid"] for route in routes if route["remote_name"] == third.name}

        before = stayed()
        reload(first, block(first, [third]))
        until(lambda: peers(first) == {third.name}, lambda: f"the peers are {peers(first)}: {first.log()}")
        equal(stayed(), before, "the routes to the other server")
        with first.client() as sender, third.client() as receiver:
            settle(sender, receiver)

    return case


def settles_names(kinds: str):
    """Servers without a cluster name agree on one, however often they close their routes for it."""

    def case(stage: Stage):
        nodes = made(stage, kinds)
        for node in nodes:
            node.write(block(node, nodes[:1]).replace("name:", "# name:", 1).replace(", listen", "\nlisten", 1))
            node.start()
        until_meshed(nodes)
        names = {node.monitor("varz")["cluster"]["name"] for node in nodes}
        equal(len(names), 1, "the number of names")

    return case


def connect_urls(peer: Peer, wanted: Callable[[list[str]], bool]):
    """Reads until INFO contains these addresses."""
    while True:
        line = peer.line()
        if line.startswith("INFO ") and wanted(json.loads(line[len("INFO ") :]).get("connect_urls") or []):
            return


def info_by_websocket(port: int) -> dict:
    with socket.create_connection(("127.0.0.1", port), WAIT_SECONDS_MAX) as connection, connection.makefile("rb") as file:
        connection.sendall(upgrade())
        # The server does not mask what it sends.
        line = next(line for line in file if b"INFO {" in line)
        return json.loads(line[line.index(b"{") :])


def shows_websockets(kinds: str):
    """WebSocket clients learn the addresses of the listeners for them, and no others."""

    def case(stage: Stage):
        nodes, ports = made(stage, kinds), [port_free() for _ in kinds]
        for node, port in zip(nodes, ports):
            node.write(block(node, nodes), f"websocket {{ host: 127.0.0.1, port: {port}, no_tls: true }}")
            node.start()
        until_meshed(nodes)
        for port in ports:
            equal(set(info_by_websocket(port)["connect_urls"]), {f"127.0.0.1:{each}" for each in ports}, "addresses")

    return case


def leaves_slowly(kinds: str):
    """Clients of the others do not learn the address of a server in lame duck mode, nor do its own."""

    def case(stage: Stage):
        nodes = start(stage, kinds, more=SLOW_LAME_DUCK)
        leaving, other = nodes[0], nodes[-1]
        own, elsewhere = [stage.enter_context(Peer(node.port, CONNECT)) for node in (leaving, other)]

        def has(urls: list[str], node: Node) -> bool:
            return any(url.endswith(f":{node.port}") for url in urls)

        for peer in (own, elsewhere):
            peer.send(b"PING\r\n")
            connect_urls(peer, lambda urls: has(urls, leaving) and has(urls, other))
        leaving.server.signal(signal.SIGUSR2)
        for peer in (own, elsewhere):
            connect_urls(peer, lambda urls: not has(urls, leaving) and has(urls, other))
        equal(loads(other)[leaving.name], ROUTES, "the routes of a server in lame duck mode")

    return case


def agrees(kinds: str, modes: tuple[str, str], wanted: tuple[str, str]):
    """Two servers request these compressions, and use the wanted ones. Messages of all sizes cross."""

    def case(stage: Stage):
        nodes = made(stage, kinds)
        for node, mode in zip(nodes, modes):
            node.write(block(node, nodes, f"compression: {mode}"))
            node.start()
        until_meshed(nodes)
        for node, mode in zip(nodes, wanted):
            found = {route["compression"] for route in node.monitor("routez")["routes"]}
            equal(found, {mode}, f"the compression of {node.name}")
        with nodes[0].client() as sender, nodes[1].client() as receiver:
            number = receiver.subscribe("data")
            settle(receiver, sender)
            for size in (0, 1, 1000, 100_000, 1_000_000):
                payload = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
                sender.publish("data", payload)
                check(receiver.next(number).payload == payload, f"{size} bytes differ")

    return case


def restricts(kinds: str):
    """The first server imports and exports some subjects only, until a reload."""
    rules = """permissions {
      import: { allow: ["in.*", "settle.*", "$SYS.>"], deny: "in.secret" }
      export: { allow: ["out.*", "settle.*", "$SYS.>"], deny: "out.secret" }
    }"""
    subjects = ["in.a", "in.secret", "out.a", "out.secret", "other"]

    def crossing(sender: Client, receiver: Client) -> list[str]:
        numbers = {subject: receiver.subscribe(subject) for subject in (*subjects, "settle.end")}
        settle(receiver, sender)
        for subject in numbers:
            sender.publish(subject)
        receiver.next(numbers.pop("settle.end"))
        return [subject for subject, number in numbers.items() if receiver.queues[number]]

    def case(stage: Stage):
        first, *others = nodes = made(stage, kinds)
        for node in nodes:
            node.write(block(node, nodes, rules if node is first else ""))
            node.start()
        until_meshed(nodes)
        with first.client() as inside, others[-1].client() as outside:
            equal(crossing(outside, inside), ["in.a"], "what comes in")
            equal(crossing(inside, outside), ["out.a"], "what goes out")
        reload(first, block(first, nodes))
        until_meshed(nodes)
        with first.client() as inside, others[-1].client() as outside:
            equal(crossing(outside, inside), subjects, "what comes in without permissions")
            equal(crossing(inside, outside), subjects, "what goes out without permissions")

    return case


def resizes(kinds: str):
    """All servers get another pool and another dedicated account, one after the other, by reloads."""

    def case(stage: Stage):
        nodes = start(stage, kinds)
        for node in nodes:
            reload(node, block(node, nodes, 'pool_size: 5\naccounts: ["$G"]'))
        until_meshed(nodes, 7)
        with nodes[0].client() as sender, nodes[-1].client() as receiver:
            settle(sender, receiver)

    return case


CASES = {f"{name}: {kinds}": case(kinds) for name, case, all_kinds in [
    ("a reload adds a route", adds_a_route, ["tt", "tr", "rt"]),
    ("a reload removes a route", removes_a_route, ["ttt", "trr", "rtt"]),
    ("generated names settle", settles_names, ["tt", "ttt", "ttr", "rrt"]),
    ("addresses for WebSocket", shows_websockets, ["tt", "tr", "rt"]),
    ("lame duck mode", leaves_slowly, ["tt", "tr", "rt"]),
    ("permissions", restricts, ["tt", "tr", "rt", "ttt"]),
    ("a reload changes the pool", resizes, ["tt", "ttt", "tr", "rt"]),
] for kinds in all_kinds} | {f"compression {modes}: {kinds}": agrees(kinds, modes, wanted) for modes, wanted in [
    (("accept", "accept"), ("off", "off")),
    (("s2_fast", "accept"), ("s2_fast", "s2_fast")),
    (("s2_better", "s2_best"), ("s2_better", "s2_best")),
    (("s2_fast", "off"), ("off", "off")),
    (("{ mode: s2_auto, rtt_thresholds: [0ms, 1h] }", "accept"), ("s2_fast", "s2_fast")),
] for kinds in ["tt", "tr", "rt"]}  # fmt: skip
