"""Reloads of a running server with another file. Both programs must accept or refuse it alike. Connected clients
stay, and new clients find the same TLS settings with both."""

import contextlib
import json
import os
import signal
import socket
import ssl
import tempfile

import pytest

from harness.certificates import self_signed
from harness.checks import check, equal, until
from harness.server import Server, port_free, reference_server, server_under_test

SECONDS_MAX = 20
# If no INFO arrives for this long, the connection does not start with INFO.
SILENCE_SECONDS = 0.5
ONE, TWO = "one", "two"
MQTT_HELLO = b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01a"


def tls(certificate: str = ONE, more: str = "") -> str:
    return f'tls {{ cert_file: "{certificate}.pem", key_file: "{certificate}.key", timeout: 10\n {more} }}'


def listener(name: str, inside: str = "") -> str:
    more = 'jetstream { store_dir: store }\n' if name == "mqtt" else ""
    return f'{more}{name} {{ listen: "127.0.0.1:PORT"\n {inside} }}'


CASES = {
    "tls on": ("", tls()),
    "tls off": (tls(), ""),
    "tls with another certificate": (tls(), tls(TWO)),
    "tls with certificates of clients": (tls(), tls(more='ca_file: "two.pem", verify: true')),
    "tls first": (tls(), tls(more="handshake_first: true")),
    "tls not first any more": (tls(more="handshake_first: true"), tls()),
    "websocket with another certificate": (listener("websocket", tls()), listener("websocket", tls(TWO))),
    "websocket without tls": (listener("websocket", tls()), listener("websocket", "no_tls: true")),
    "websocket with tls": (listener("websocket", "no_tls: true"), listener("websocket", tls())),
    "mqtt with tls": (listener("mqtt"), listener("mqtt", tls().replace("10", "2"))),
    "mqtt without tls": (listener("mqtt", tls().replace("10", "2")), listener("mqtt")),
    "mqtt with another certificate": (listener("mqtt", tls()), listener("mqtt", tls(TWO))),
    "leaf nodes with another certificate": (listener("leafnodes", tls()), listener("leafnodes", tls(TWO))),
    "leaf nodes tls first": (listener("leafnodes", tls()), listener("leafnodes", tls(more="handshake_first: true"))),
    "mqtt with another window": (listener("mqtt"), listener("mqtt", "max_ack_pending: 7, ack_wait: 40s")),
    "mqtt with users of its own": (listener("mqtt"), listener("mqtt", "authorization { user: a, password: b }")),
    "another address is told": ("", 'client_advertise: "broker.example:4444"'),
    "leaf nodes elsewhere": (listener("leafnodes"), 'leafnodes { listen: "127.0.0.1:1" }'),
    "a certificate that is not there": (tls(), tls("three")),
}
# Reloads that Fanline accepts and nats-server refuses.
MORE = {
    "clients may come in clear": (tls(), f"{tls()}\nallow_non_tls: true"),
    "clients may not come in clear any more": (f"{tls()}\nallow_non_tls: true", tls()),
    "tls on, for those who want it": ("", f"{tls()}\nallow_non_tls: true"),
    # In nats-server this changes a timeout of leaf nodes, which needs a restart.
    "leaf nodes with tls": (listener("leafnodes"), listener("leafnodes", tls())),
    "leaf nodes without tls": (listener("leafnodes", tls()), listener("leafnodes")),
    "mqtt with more time for tls": (listener("mqtt", tls()), listener("mqtt", tls().replace("10", "11"))),
}


class Case(contextlib.ExitStack):
    """One server with a temporary folder."""

    def __init__(self, binary: str):
        super().__init__()
        self.folder = self.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        for name in (ONE, TWO):
            self_signed(self.folder, name)
        self.other_port = port_free()
        self.server = Server(binary, "-c", os.path.join(self.folder, "case.conf"))
        self.callback(self.server.kill)

    def write(self, text: str):
        text = text.replace("PORT", str(self.other_port)).replace("store_dir: store", f'store_dir: "{self.folder}"')
        for name in (ONE, TWO, "three"):
            for kind in ("pem", "key"):
                text = text.replace(f'"{name}.{kind}"', f'"{self.folder}/{name}.{kind}"')
        with open(os.path.join(self.folder, "case.conf"), "w", encoding="utf-8") as file:
            file.write(f"server_name: case\n{text}\n")

    def reload(self) -> str:
        """Reloads the configuration. Returns `taken` or `refused`."""
        before = len(self.server.output())
        verdicts = {"Failed to reload": "refused", "Reloaded server configuration": "taken"}
        self.server.signal(signal.SIGHUP)
        said = until(
            lambda: [text for text in verdicts if text in self.server.output()[before:]],
            lambda: f"it does not say what became of the reload: {self.server.output()}",
        )
        return verdicts[said[0]]

    def meets(self, text: str) -> tuple:
        """Returns how a new connection starts, at the client port and at the other listener."""
        other = next((name for name in ("websocket", "mqtt", "leafnodes") if name in text), "")
        found = (self.meets_info(self.server.port),)
        if other == "leafnodes":
            return *found, self.meets_info(self.other_port)
        return (*found, self.meets_at_once(other)) if other else found

    def meets_info(self, port: int) -> tuple[str, str]:
        with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as stream:
            stream.settimeout(SILENCE_SECONDS)
            told = b""
            with contextlib.suppress(TimeoutError):
                while not told.endswith(b"\r\n"):
                    told += stream.recv(4096)
            stream.settimeout(SECONDS_MAX)
            if not told:
                return "tls first", self.shown(stream)
            info = json.loads(told.removeprefix(b"INFO "))
            words = [word for word in ("tls_required", "tls_available", "tls_verify") if info.get(word)]
            return " ".join(words), self.shown(stream) if words else ""

    def meets_at_once(self, name: str) -> str:
        with socket.create_connection(("127.0.0.1", self.other_port), SECONDS_MAX) as stream:
            with contextlib.suppress(OSError):
                return self.shown(stream)
        with socket.create_connection(("127.0.0.1", self.other_port), SECONDS_MAX) as stream:
            stream.sendall(MQTT_HELLO if name == "mqtt" else b"GET / HTTP/1.1\r\n\r\n")
            return "in clear" if stream.recv(4096)[:1] in (b"\x20", b"H") else "nothing"

    def shown(self, stream: socket.socket) -> str:
        """Returns the name of the certificate that the server presents."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(stream) as secret:
            shown = ssl.DER_cert_to_PEM_cert(secret.getpeercert(binary_form=True))
        for name in (ONE, TWO):
            with open(os.path.join(self.folder, f"{name}.pem"), encoding="ascii") as file:
                if file.read() == shown:
                    return name
        return "another"


def resident(port: int, before: str):
    """Connects a client before the reload. Returns `None` if clients need TLS."""
    if before.startswith("tls"):
        return None
    stream = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
    # The server may require TLS of clients that have not sent anything yet.
    stream.sendall(b"CONNECT {}\r\n")
    check(answers(stream), "a client is not let in")
    return stream


def answers(stream: socket.socket) -> bool:
    stream.sendall(b"PING\r\n")
    told = b""
    while b"PONG\r\n" not in told:
        more = stream.recv(4096)
        if not more:
            return False
        told += more
    return True


def outcome(binary: str, before: str, after: str):
    with Case(binary) as case:
        case.write(before)
        case.server.start()
        stream = resident(case.server.port, before)
        case.write(after)
        verdict = case.reload()
        if stream:
            with stream:
                check(answers(stream), "a client that was connected is not any more")
        in_force = after if verdict == "taken" else before
        return verdict, case.meets(in_force)


@pytest.mark.parametrize("before, after", CASES.values(), ids=CASES)
def test_both(before: str, after: str):
    fanline, reference = (outcome(binary, before, after) for binary in (server_under_test(), reference_server()))
    equal(fanline, reference, "what became of it, and what is met then")


@pytest.mark.parametrize("before, after", MORE.values(), ids=MORE)
def test_more(before: str, after: str):
    """Runs a reload that Fanline accepts and nats-server refuses."""
    verdict, met = outcome(server_under_test(), before, after)
    theirs, _ = outcome(reference_server(), before, after)
    equal((verdict, theirs), ("taken", "refused"), "whether it is taken")
    with Case(server_under_test()) as case:
        case.write(after)
        case.server.start()
        equal(met, case.meets(after), "what is met, and what is met after a start")
