"""Peers that connect and send nothing or send slowly, and clients that guess passwords."""

import socket
import ssl
import tempfile
import time

import pytest

from attacks.grounds import Grounds, grounds, http, until_closed
from harness.cases import named
from harness.certificates import self_signed
from harness.checks import check, equal
from harness.peer import CONNECT, READ_SECONDS_MAX, Peer
from harness.server import Server, port_free, server_under_test

WAITING = 1_000
EACH_BYTES_MAX = 8 * 1024


def opens(listener: str, data: bytes, is_greeted: bool):
    def play(place: Grounds) -> socket.socket:
        stream = place.raw(listener)
        if is_greeted:
            while not stream.recv(4096).endswith(b"\r\n"):
                pass
        if data:
            stream.sendall(data)
        return stream

    return play


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "open_one",
    named({
        "before CONNECT": opens("client", b"", True),
        "within CONNECT": opens("client", b'CONNECT {"name":"', True),
        "before the upgrade to WebSocket": opens("websocket", b"", False),
        "within the upgrade to WebSocket": opens("websocket", b"GET / HTTP/1.1\r\nHost: x\r\nX: ", False),
        "before MQTT's CONNECT": opens("mqtt", b"", False),
        "within MQTT's CONNECT": opens("mqtt", b"\x10\x20\0\4MQ", False),
        "before a leaf node's CONNECT": opens("leaf", b"", True),
    }),
)
def test_connections_that_wait(open_one):
    # A new server, because one that already had many connections has free room for more.
    place = Grounds()
    # The first connections allocate room in tables that stay.
    warm = [open_one(place) for _ in range(100)]
    place.is_well()
    before = place.server.rss_bytes()
    waiting = [open_one(place) for _ in range(WAITING)]
    place.is_well()
    each = (place.server.rss_bytes() - before) / WAITING
    for stream in warm + waiting:
        stream.close()
    place.server.kill()
    print(f"      {each / 1024:.1f} KiB each", flush=True)
    check(each <= EACH_BYTES_MAX, f"a connection that waits holds {each:.0f} bytes")


@pytest.mark.anonymous
def test_a_hundred_that_send_nothing_do_not_keep_monitoring_from_others():
    slow = [grounds().raw("http") for _ in range(100)]
    for stream in slow:
        stream.sendall(b"GET /healthz HTTP/1.1\r\n")
    start = time.monotonic()
    status, _, _ = http("/healthz")
    took = time.monotonic() - start
    for stream in slow:
        stream.close()
    equal(status, 200, "status")
    check(took < 5, f"it took {took:.1f} s")


@pytest.mark.anonymous
def test_a_hundred_wrong_passwords_with_bcrypt_do_not_hold_up_messages():
    guess = CONNECT.replace(b"{", b'{"user":"eve","pass":"wrong",')
    with grounds().client() as honest:
        honest.send(b"SUB a 1\r\n")
        honest.flush()
        guessing = [Peer(grounds().server.port, guess) for _ in range(100)]
        worst = 0.0
        for _ in range(200):
            start = time.monotonic()
            honest.send(b"PUB a 2\r\nhi\r\n")
            honest.message()
            worst = max(worst, time.monotonic() - start)
        for peer in guessing:
            told = peer.until_closed()
            check(b"Authorization Violation" in told, f"{told!r}")
            peer.close()
    check(worst < 5, f"a message took {worst:.2f} s")


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "websocket_options, https",
    named({
        "in clear, where TLS is required": ("tls { FILES }", False),
        "in clear, where a certificate is required": ("tls { FILES, verify: true }", False),
        "over HTTPS, where a certificate is required": ("tls { FILES, verify: true }", True),
        "over HTTPS, where a user's certificate is required": ("tls { FILES, verify_and_map: true }", True),
    }),
)
def test_upgrade_at_monitoring(websocket_options: str, https: bool):
    """A client must get no further at the monitoring port than at the WebSocket listener."""
    with tempfile.TemporaryDirectory() as folder:
        pem, key = self_signed(folder, "server")
        files = f'cert_file: "{pem}", key_file: "{key}"'
        monitoring = port_free()
        with open(f"{folder}/conf", "w") as file:
            file.write(
                f'{"https" if https else "http"}: "127.0.0.1:{monitoring}"\n'
                f'tls {{ {files} }}\n'
                f'websocket {{ listen: "127.0.0.1:{port_free()}", '
                + websocket_options.replace("FILES", f'{files}, ca_file: "{pem}"')
                + " }\n"
            )
        with Server(server_under_test(), "-c", f"{folder}/conf"):
            for path in ("/", "/ws"):
                stream = socket.create_connection(("127.0.0.1", monitoring), timeout=READ_SECONDS_MAX)
                if https:
                    context = ssl.create_default_context()
                    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                    stream = context.wrap_socket(stream)
                stream.sendall(
                    f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n"
                    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
                )
                answer = stream.recv(1000)
                stream.close()
                check(b" 101 " not in answer.split(b"\r\n")[0], f"upgraded at {path}")


AUTH = "authorization { user: a, password: b, timeout: 0.3 }\n"
TLS = 'tls { cert_file: "FOLDER/server.pem", key_file: "FOLDER/server.key", timeout: 0.3 }'


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "options, name, data",
    named({
        "a part of CONNECT": (AUTH, "client", b"CONNECT {"),
        "a TLS record that stops": (TLS, "client", b"\x16\x03\x01\x02\x00\x01"),
        "a WebSocket request that stops": (
            'websocket { listen: "127.0.0.1:PORT", no_tls: true, handshake_timeout: "300ms" }', "websocket",
            b"GET / HTTP/1.1\r\nHost:",
        ),
        "a WebSocket that is open and says nothing": (
            AUTH + 'websocket { listen: "127.0.0.1:PORT", no_tls: true }', "websocket",
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        ),
        "WebSocket's TLS that stops": (
            f'websocket {{ listen: "127.0.0.1:PORT", {TLS} }}', "websocket", b"\x16\x03\x01",
        ),
        "a part of MQTT's CONNECT": (
            AUTH + 'mqtt { listen: "127.0.0.1:PORT" }\njetstream { store_dir: "FOLDER" }', "mqtt", b"\x10\x20",
        ),
        "MQTT's TLS that stops": (
            f'mqtt {{ listen: "127.0.0.1:PORT", {TLS} }}\njetstream {{ store_dir: "FOLDER" }}', "mqtt", b"\x16",
        ),
        "a leaf node that says nothing": (
            'leafnodes { listen: "127.0.0.1:PORT", authorization { user: a, password: b, timeout: 0.3 } }', "leaf", b"",
        ),
    }),
)
def test_slow_handshakes(options, name, data):
    """A peer that has sent only a part of its handshake is closed after the listener's timeout."""
    port = port_free()
    with tempfile.TemporaryDirectory() as folder:
        self_signed(folder, "server")
        with open(f"{folder}/conf", "w") as file:
            file.write(options.replace("PORT", str(port)).replace("FOLDER", folder))
        with Server(server_under_test(), "-c", f"{folder}/conf") as server:
            stream = socket.create_connection(
                ("127.0.0.1", server.port if name == "client" else port), timeout=READ_SECONDS_MAX
            )
            stream.sendall(data)
            until_closed(stream)
