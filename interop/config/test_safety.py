"""Pairs of options: a client that nats-server refuses must also be refused by Fanline, at every listener. Both
servers are started with each configuration of `PAIRS`, and the same test clients connect to all listeners."""

import os
import tempfile

import pytest

from config.pairs import PAIRS, REFUSED_HERE, STRICTER, WARNED
from config.visitors import REFUSED, Visitors, certificates, pin
from harness.checks import check, equal, until
from harness.server import Server, port_free, reference_server, server_under_test

WARNINGS = [
    "Plaintext passwords detected, use nkeys or bcrypt",
    "Websocket not configured with TLS. DO NOT USE IN PRODUCTION!",
]
LISTENERS = {"websocket": "WEBSOCKET_PORT", "mqtt": "MQTT_PORT", "leaf": "LEAF_PORT", "http": "HTTP_PORT"}


@pytest.fixture(scope="module")
def folder():
    """A folder with certificates."""
    with tempfile.TemporaryDirectory() as folder:
        certificates(folder)
        yield folder


def outcome(binary: str, folder: str, text: str) -> tuple[str | None, dict[str, str]]:
    """Returns the error of the start, or the results of all test clients."""
    ports = {name: port_free() for name, mark in LISTENERS.items() if mark in text}
    for name, port in ports.items():
        text = text.replace(LISTENERS[name], str(port))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        text = text.replace("CERTS", folder).replace("STORE", os.path.join(own, "store")).replace("PIN", pin(folder, "a"))
        path = os.path.join(own, "case.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"ping_interval: \"1m\"\n{text}\n")
        server = Server(binary, "-c", path)
        try:
            server.start()
        except RuntimeError:
            return server.output(), {}
        try:
            return None, Visitors(folder, {"client": server.port, **ports}).all()
        finally:
            server.kill()
            server.log.close()


@pytest.mark.parametrize("name", PAIRS)
def test_safety(name: str, folder: str):
    text = PAIRS[name]
    refused, ours = outcome(server_under_test(), folder, text)
    refused_there, theirs = outcome(reference_server(), folder, text)
    if refused_there:
        check(refused, f"nats-server does not start, and Fanline does: {refused_there}")
        return
    if name in REFUSED_HERE:
        check(server_under_test() == reference_server() or refused, "it starts: it does not differ any more")
        return
    check(not refused, f"it does not start: {refused}")
    less = {who: (ours[who], theirs[who]) for who in ours if is_less_safe(ours[who], theirs[who])}
    equal(less, {}, "who gets further than with nats-server (here, there)")
    more = {who: (ours[who], theirs[who]) for who in ours if ours[who] != theirs[who]}
    if name not in STRICTER:
        equal(more, {}, "who does not get as far as with nats-server (here, there)")


def warned(binary: str, folder: str, text: str) -> list[str]:
    """Returns the warnings that a server logs at its start."""
    path = os.path.join(folder, "warned.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("CERTS", folder).replace("WEBSOCKET_PORT", str(port_free())) + "\n")
    with Server(binary, "-c", path) as server:
        until(lambda: "Server is ready" in server.output(), server.output)
        return [warning for warning in WARNINGS if f"[WRN] {warning}" in server.output()]


@pytest.mark.parametrize("text", WARNED.values(), ids=WARNED)
def test_warnings(text: str, folder: str):
    ours, theirs = (warned(binary, folder, text) for binary in (server_under_test(), reference_server()))
    equal(ours, theirs, "the warnings")


def is_less_safe(here: str, there: str) -> bool:
    """Returns whether Fanline accepts a client, or an action of a client, that nats-server refuses."""
    if here == REFUSED:
        return False
    return there == REFUSED or not set(there.split()) <= set(here.split())
