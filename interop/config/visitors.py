"""Test clients for all listeners of a server: in clear, over TLS, and with a client certificate, with different
credentials each. The result of each client is one word."""

import contextlib
import json
import os
import random
import re
import socket
import ssl
import subprocess
import time

from mqtt.packets import V4
from mqtt.packets import connect as mqtt_connect
from websocket.session import BINARY, frame

SECONDS_MAX = 5
# If no INFO arrives for this long, the connection does not start with INFO.
SILENCE_SECONDS = 0.3
CREDENTIALS = {
    "nothing": {},
    "a:b": {"user": "a", "pass": "b"},
    "a:wrong": {"user": "a", "pass": "wrong"},
    "a without password": {"user": "a"},
    "c:d": {"user": "c", "pass": "d"},
    "w:w": {"user": "w", "pass": "w"},
    "token t": {"auth_token": "t"},
}
# Client certificates: none, the certificate of `a`, and one of another authority.
TRANSPORTS = {"in clear": None, "by TLS": "", "as a": "a", "as a stranger": "stranger"}
# Lines that show which subjects a client may use.
PERMITTED = b"SUB deny.a 1\r\nSUB ok.a 2\r\nSUB * 3\r\nPUB deny.a 1\r\nx\r\nPUB ok.a 1\r\nx\r\nPUB other 1\r\nx\r\nPING\r\n"
REFUSED = "out"


def certificates(folder: str):
    """Creates an authority with certificates of a server and of `a`, and another authority with one certificate."""
    for authority, names in {"ca": ["server", "a"], "other": ["stranger"]}.items():
        _openssl(folder, "req", "-x509", *_new_key(authority), "-days", "30", "-out", f"{authority}.pem")
        for name in names:
            _openssl(folder, "req", *_new_key(name), "-out", f"{name}.csr")
            with open(os.path.join(folder, "extensions"), "w", encoding="ascii") as file:
                file.write(f"subjectAltName=DNS:localhost,DNS:{name},IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
            signed = ["-in", f"{name}.csr", "-out", f"{name}.pem", "-days", "30", "-extfile", "extensions"]
            signed += ["-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial"]
            _openssl(folder, "x509", "-req", *signed)


def pin(folder: str, name: str) -> str:
    """Returns the SHA-256 of a certificate's key, in the form of `pinned_certs`."""
    key = subprocess.run(
        ["openssl", "x509", "-in", f"{name}.pem", "-pubkey", "-noout"], cwd=folder, check=True, capture_output=True
    ).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=key, check=True, capture_output=True)
    digest = subprocess.run(["openssl", "dgst", "-sha256", "-r"], input=der.stdout, check=True, capture_output=True)
    return digest.stdout.split()[0].decode()


def _new_key(name: str) -> list[str]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key"]


def _openssl(folder: str, *arguments: str):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


class Visitors:
    """All test clients of one server."""

    def __init__(self, folder: str, ports: dict[str, int]):
        self.folder = folder
        self.ports = ports

    def all(self) -> dict[str, str]:
        """Returns the result of each test client, by its name."""
        kinds = {
            "client": ("client", self.client),
            "websocket": ("websocket", self.websocket),
            "mqtt": ("mqtt", self.mqtt),
            "leaf": ("leaf", self.leaf),
        }
        found = {}
        for transport, certificate in TRANSPORTS.items():
            for shown, credentials in CREDENTIALS.items():
                if certificate == "stranger" and credentials:
                    continue
                for name, (port, visit) in kinds.items():
                    if port in self.ports:
                        found[f"{name} {transport}, {shown}"] = self._tried(visit, self.ports[port], certificate, credentials)
                for path, needed in {"/mqtt": "mqtt", "/leafnode": "leaf"}.items():
                    if "websocket" in self.ports and needed in self.ports:
                        who = f"websocket{path} {transport}, {shown}"
                        found[who] = self._tried(self.websocket, self.ports["websocket"], certificate, credentials, path)
            if "websocket" in self.ports:
                port = self.ports["websocket"]
                evil = self._tried(self.websocket, port, certificate, {}, "/", "https://evil.example")
                found[f"websocket {transport}, a page from elsewhere"] = evil
            if "http" in self.ports:
                found[f"http {transport}"] = self._tried(self.http, self.ports["http"], certificate)
        return found

    def _tried(self, visit, *arguments) -> str:
        try:
            return visit(*arguments)
        except OSError:
            # Closed, reset, a TLS alert, or no response.
            return REFUSED

    def _encrypted(self, stream: socket.socket, certificate: str | None) -> socket.socket:
        if certificate is None:
            return stream
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(*(os.path.join(self.folder, f"{certificate}.{kind}") for kind in ("pem", "key")))
        return context.wrap_socket(stream)

    def _greeted(self, stream: socket.socket, certificate: str | None) -> socket.socket:
        """Reads INFO and starts TLS, in the order that the server uses."""
        stream.settimeout(SILENCE_SECONDS)
        greeting = b""
        with contextlib.suppress(TimeoutError):
            greeting = stream.recv(4096)
        stream.settimeout(SECONDS_MAX)
        stream = self._encrypted(stream, certificate)
        if not greeting and certificate is not None:
            heard(stream, b"\r\n")
        return stream

    def client(self, port: int, certificate: str | None, credentials: dict) -> str:
        with _dialled(port) as stream, self._greeted(stream, certificate) as stream:
            stream.sendall(_connect(credentials))
            said = heard(stream, b"PONG", b"-ERR")
            if b"PONG" in said:
                stream.sendall(PERMITTED)
                said += heard(stream, b"PONG")
            return _verdict(said)

    def leaf(self, port: int, certificate: str | None, credentials: dict) -> str:
        with _dialled(port) as stream, self._greeted(stream, certificate) as stream:
            stream.sendall(_connect_as_leaf(credentials))
            return "in" if b"PONG" in heard(stream, b"PONG", b"-ERR") else REFUSED

    def mqtt(self, port: int, certificate: str | None, credentials: dict) -> str:
        with _dialled(port) as stream, self._encrypted(stream, certificate) as stream:
            stream.sendall(_connect_by_mqtt(credentials))
            return _connack(heard(stream, b"\x20\x02"))

    def http(self, port: int, certificate: str | None) -> str:
        with _dialled(port) as stream, self._encrypted(stream, certificate) as stream:
            stream.sendall(b"GET /varz HTTP/1.0\r\n\r\n")
            return "in" if b" 200 " in heard(stream, b"\r\n\r\n") else REFUSED

    def websocket(
        self, port: int, certificate: str | None, credentials: dict, path: str = "/", origin: str = ""
    ) -> str:
        with _dialled(port) as stream, self._encrypted(stream, certificate) as stream:
            lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"]
            lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"]
            lines += [f"Origin: {origin}"] if origin else []
            lines += ["Sec-WebSocket-Protocol: mqtt"] if path == "/mqtt" else []
            stream.sendall("\r\n".join([*lines, "", ""]).encode())
            if b" 101 " not in heard(stream, b"\r\n\r\n"):
                return REFUSED
            if path == "/mqtt":
                stream.sendall(_frame(_connect_by_mqtt(credentials)))
                return _connack(heard(stream, b"\x20\x02"))
            stream.sendall(_frame(_connect_as_leaf(credentials) if path == "/leafnode" else _connect(credentials)))
            said = heard(stream, b"PONG", b"-ERR")
            if b"PONG" in said and path == "/":
                stream.sendall(_frame(PERMITTED))
                said += heard(stream, b"PONG")
            return _verdict(said)


def _dialled(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), SECONDS_MAX)


def heard(stream: socket.socket, *ends: bytes) -> bytes:
    """Returns what the server sends until one of these texts, or until the end."""
    said = b""
    deadline = time.monotonic() + SECONDS_MAX
    while not any(end in said for end in ends) and time.monotonic() < deadline:
        more = stream.recv(4096)
        if not more:
            break
        said += more
    return said


def _connect(credentials: dict) -> bytes:
    told = {"verbose": False, "pedantic": False, "lang": "x", "version": "1", "protocol": 1, "headers": True}
    return f"CONNECT {json.dumps({**told, **credentials})}\r\nPING\r\n".encode()


def _connect_as_leaf(credentials: dict) -> bytes:
    number = random.randrange(10**9)
    told = {"name": "visitor", "server_id": f"NVISITOR{number}", "version": "2.15.2", "headers": True, "protocol": 1}
    return f"CONNECT {json.dumps({**told, **credentials})}\r\nPING\r\n".encode()


def _connect_by_mqtt(credentials: dict) -> bytes:
    user = "x" if "auth_token" in credentials else credentials.get("user")
    password = credentials.get("pass", credentials.get("auth_token"))
    return mqtt_connect(V4, "visitor", user=user, password=password)


def _frame(payload: bytes) -> bytes:
    return frame(BINARY, payload, mask=bytes(4))


def _connack(said: bytes) -> str:
    at = said.find(b"\x20\x02")
    return "in" if at >= 0 and said[at + 3 : at + 4] == b"\0" else REFUSED


def _verdict(said: bytes) -> str:
    """Returns the result of a client, with the subjects that it was denied."""
    if b"PONG" not in said:
        return REFUSED
    denied = set(re.findall(rb"Permissions Violation for (\w)\w+ to \"?([^\"' ]+)", said))
    return " ".join(["in", *sorted(f"not {what.decode()}:{subject.decode()}" for what, subject in denied)])
