"""The official Python client over TLS and WebSocket, with the server under test."""

import os
import ssl
import tempfile

import nats
import pytest

from harness.certificates import self_signed
from harness.checks import check
from harness.server import Server, port_free, server_under_test
from python.peers import flush, ignore, take


class Site:
    """Certificates, and servers that use them."""

    def __init__(self, folder: str):
        self.folder = folder
        self.websocket = port_free()
        self.secure_websocket = port_free()
        self_signed(folder, "server")
        self_signed(folder, "ada", "email:ada@example.org")

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def tls(self, more: str = "") -> str:
        files = f'cert_file: "{self.path("server.pem")}", key_file: "{self.path("server.key")}"'
        return f"tls {{ {files}, timeout: 10 {more} }}\n"

    def server(self, text: str) -> Server:
        with open(self.path("server.conf"), "w", encoding="utf-8") as config:
            config.write(text)
        return Server(server_under_test(), "-c", self.path("server.conf"))

    def context(self, own: str | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.path("server.pem"))
        if own:
            context.load_cert_chain(self.path(f"{own}.pem"), self.path(f"{own}.key"))
        return context


@pytest.fixture(scope="module")
def site():
    with tempfile.TemporaryDirectory() as folder:
        yield Site(folder)


async def connect(url: str, **options):
    options = {"error_cb": ignore, "connect_timeout": 10, "max_reconnect_attempts": 0, **options}
    return await nats.connect(url, allow_reconnect=False, **options)


async def exchange(sender, receiver):
    """Sends messages of many sizes from one client to another."""
    subscription = await receiver.subscribe("py.carried")
    await flush(receiver)
    sizes = [0, 1, 63, 64, 125, 126, 5000, 65_536, 900_000]
    for size in sizes:
        await sender.publish("py.carried", bytes(n * 31 & 255 for n in range(size)))
    await sender.flush()
    for size, message in zip(sizes, await take(subscription, len(sizes))):
        check(message.data == bytes(n * 31 & 255 for n in range(size)), f"{size} bytes")
    await sender.close()
    await receiver.close()


async def test_tls(site):
    with site.server(site.tls()) as server:
        url = f"tls://localhost:{server.port}"
        await exchange(*[await connect(url, tls=site.context()) for _ in range(2)])


async def test_tls_first(site):
    with site.server(site.tls(", handshake_first: true")) as server:
        url = f"tls://localhost:{server.port}"
        options = {"tls": site.context(), "tls_handshake_first": True}
        await exchange(*[await connect(url, **options) for _ in range(2)])


async def test_client_certificates(site):
    asked = site.tls(f', verify: true, ca_file: "{site.path("ada.pem")}"')
    with site.server(asked) as server:
        url = f"tls://localhost:{server.port}"
        client = await connect(url, tls=site.context("ada"))
        await client.flush()
        await client.close()
        try:
            stranger = await connect(url, tls=site.context())
        except Exception:
            return
        await stranger.close()
        raise AssertionError("somebody without a certificate was let in")


async def test_websocket(site):
    text = f'websocket {{ listen: "127.0.0.1:{site.websocket}", no_tls: true }}\n'
    with site.server(text) as server:
        page = f"ws://127.0.0.1:{site.websocket}"
        await exchange(await connect(page), await connect(page))
        beside = f"nats://127.0.0.1:{server.port}"
        await exchange(await connect(beside), await connect(page))


async def test_secure_websocket(site):
    listen = f'listen: "127.0.0.1:{site.secure_websocket}"'
    with site.server(f"websocket {{ {listen}\n{site.tls()} }}\n"):
        page = f"wss://localhost:{site.secure_websocket}"
        options = {"tls": site.context(), "tls_hostname": "localhost"}
        await exchange(await connect(page, **options), await connect(page, **options))
