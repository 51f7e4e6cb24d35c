"""Shared by the attacks on access: a server with a given configuration, clients, keys, and tokens."""

import base64
import contextlib
import json
import os
import socket
import tempfile
import time

from harness.checks import check
from harness.nkeys import Key, b64
from harness.peer import Closed, Peer
from harness.server import Server, port_free, server_under_test

PORTS = ("WS_PORT", "MQTT_PORT", "LEAF_PORT", "HTTP_PORT")


class Target(Server):
    """A server with a configuration. Free ports replace placeholders like `MQTT_PORT`, and a temporary folder
    replaces `SERVER_DIR`. The placeholders are too long to occur in a token by chance."""

    def __init__(self, config: str, *flags: str, binary: str | None = None):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.ports = {name: port_free() for name in PORTS if name in config}
        # MQTT clients of the `mqtt` suite expect this field of a broker.
        self.mqtt_port = self.ports.get("MQTT_PORT", 0)
        self.conf = os.path.join(self.folder.name, "attack.conf")
        self.write(config)
        super().__init__(binary or server_under_test(), "-c", self.conf, *flags)

    def write(self, config: str):
        for name, port in self.ports.items():
            config = config.replace(name, str(port))
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write(config.replace("SERVER_DIR", self.folder.name) + "\n")

    def __exit__(self, *_):
        super().__exit__()
        self.folder.cleanup()

    def client(self, user: str = "", password: str = "", **options) -> "Client":
        return Client(self.port, **{"user": user, "pass": password, **options})

    def refuses(self, **options) -> bool:
        """Returns whether the server refuses a client with these options in CONNECT."""
        try:
            with Client(self.port, **options):
                return False
        except (Closed, Refused):
            return True

    def http(self, request: str, headers: dict[str, str] | None = None, body: bytes = b"") -> tuple[int, str]:
        """Sends an HTTP request such as `GET /path`. Returns the status and the body of the response."""
        lines = [f"{request} HTTP/1.1", *(f"{k}: {v}" for k, v in (headers or {}).items())]
        if "Host" not in (headers or {}):
            lines.append(f"Host: 127.0.0.1:{self.ports['HTTP_PORT']}")
        lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
        with socket.create_connection(("127.0.0.1", self.ports["HTTP_PORT"]), timeout=15) as stream:
            stream.sendall("\r\n".join(lines).encode() + body)
            data = b""
            while chunk := stream.recv(1 << 16):
                data += chunk
        head, _, content = data.partition(b"\r\n\r\n")
        return int(head.split()[1]), content.decode(errors="replace")


class Refused(Exception):
    """The server has sent an error where none was expected."""


class Client(Peer):
    """A NATS client. `sign` returns additional fields of CONNECT for a nonce."""

    def __init__(self, port: int, sign=None, before: bytes = b"", **options):
        super().__init__(port)
        if before:
            self.send(before)
        self.info = json.loads(self.line().removeprefix("INFO "))
        fields = {"verbose": False, "pedantic": False, "headers": True, "no_responders": False, "protocol": 1}
        fields |= {key: value for key, value in options.items() if value != ""}
        if sign:
            fields |= sign(self.info.get("nonce", ""))
        self.send(f"CONNECT {json.dumps(fields)}\r\n".encode())
        self.errors: list[str] = []
        try:
            self.barrier()
        except Closed as error:
            self.close()
            raise Refused("closed") from error
        if self.errors:
            self.close()
            raise Refused(self.errors[0])

    def barrier(self) -> list[tuple[str, bytes]]:
        """Waits until the server has handled everything sent so far. Returns the messages received meanwhile."""
        self.send(b"PING\r\n")
        found = []
        while (line := self.line()) != "PONG":
            verb = line.split(" ", 1)[0]
            if verb in ("MSG", "HMSG"):
                found.append((line, self.take(int(line.rsplit(" ", 1)[1]) + 2)[:-2]))
            elif verb == "PING":
                self.send(b"PONG\r\n")
            elif verb == "-ERR":
                self.errors.append(line)
        return found

    def sub(self, subject: str, sid: int | str = 1, queue: str = ""):
        self.send(f"SUB {subject} {queue + ' ' if queue else ''}{sid}\r\n".encode())

    def pub(self, subject: str, payload: bytes = b"x", reply: str = "", headers: str = ""):
        reply = f"{reply} " if reply else ""
        if not headers:
            self.send(f"PUB {subject} {reply}{len(payload)}\r\n".encode() + payload + b"\r\n")
            return
        head = f"NATS/1.0\r\n{headers}\r\n\r\n".encode()
        self.send(f"HPUB {subject} {reply}{len(head)} {len(head) + len(payload)}\r\n".encode() + head + payload + b"\r\n")

    def request(self, subject: str, payload: bytes | dict = b"", headers: str = "", seconds: float = 5) -> tuple[str, bytes]:
        """Sends a request and returns the first response, or `("", b"")` if there is none."""
        inbox = f"_INBOX.k{os.urandom(8).hex()}"
        data = json.dumps(payload).encode() if isinstance(payload, dict) else payload
        self.sub(inbox, "rq")
        self.pub(subject, data, inbox, headers)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            errors = len(self.errors)
            found = self.barrier()
            for line, content in found:
                if line.split()[1] == inbox:
                    self.send(b"UNSUB rq\r\n")
                    return line, content
            if len(self.errors) > errors:
                break
        self.send(b"UNSUB rq\r\n")
        return "", b""

    def asked(self, subject: str, payload: dict | None = None) -> dict:
        """Sends a JetStream request and returns the response."""
        _, content = self.request(subject, payload if payload is not None else b"")
        return json.loads(content.rpartition(b"\r\n\r\n")[2]) if content else {}

    def made(self, subject: str, payload: dict) -> dict:
        """Sends a JetStream request that must succeed."""
        found = self.asked(subject, payload)
        check(found and "error" not in found, f"{subject}: {found or self.errors}")
        return found


def subject_of(message: tuple[str, bytes]) -> str:
    return message[0].split()[1]


def reply_of(message: tuple[str, bytes]) -> str:
    words = message[0].split()
    count = 5 if words[0] == "MSG" else 6
    return words[3] if len(words) == count else ""


def asks(asker: Client, responder: Client, inbox: str) -> str:
    """Sends a request to the service `svc` of another client. Returns the reply subject that the responder sees."""
    responder.sub("svc")
    responder.barrier()
    asker.sub(inbox)
    asker.pub("svc", b"?", inbox)
    asker.barrier()
    return reply_of(responder.barrier()[0])


def allowed(subjects: list[str]) -> str:
    return json.dumps(subjects)


def permissions(publish=None, subscribe=None, more: str = "") -> str:
    """Returns a block `permissions { … }`, from lists or from pairs of `allow` and `deny`."""
    parts = []
    for name, lists in {"publish": publish, "subscribe": subscribe}.items():
        if isinstance(lists, list):
            lists = (lists, None)
        if lists is not None:
            inner = [f"{kind}: {json.dumps(found)}" for kind, found in zip(("allow", "deny"), lists) if found is not None]
            parts.append(f"{name} {{ {', '.join(inner)} }}")
    return f"permissions {{ {', '.join([*parts, more] if more else parts)} }}"


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def jwt(issuer: Key, subject: str, nats: dict, header: dict | None = None, signer: Key | None = None, **claims) -> str:
    """Returns a token. With `signer` it is signed by another key than the issuer's."""
    header = {"typ": "JWT", "alg": "ed25519-nkey"} | (header or {})
    body = {"jti": os.urandom(8).hex(), "iat": int(time.time()), "iss": issuer.public, "sub": subject, "name": "n"} | claims
    body["nats"] = {"version": 2} | nats
    signed = ".".join(b64(json.dumps(part).encode()) for part in (header, body))
    return f"{signed}.{b64((signer or issuer).sign(signed.encode()))}"


UNLIMITED = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}


def account_jwt(operator: Key, account: str, nats: dict | None = None, limits: dict | None = None, **claims) -> str:
    nats = {"type": "account", "limits": UNLIMITED | (limits or {}), **(nats or {})}
    return jwt(operator, account, nats, **claims)


def user_jwt(issuer: Key, user: str, nats: dict | None = None, is_template: bool = False, **claims) -> str:
    nats = {"type": "user", **({} if is_template else {"subs": -1, "data": -1, "payload": -1}), **(nats or {})}
    return jwt(issuer, user, nats, **claims)


@contextlib.contextmanager
def several(*things):
    """Enters several context managers, and closes all of them at the end."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(thing) for thing in things]
