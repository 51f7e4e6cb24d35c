"""Identifiers that a stranger must not be able to guess."""

import json
import socket
import tempfile

from attacks.case import attack
from harness.report import check, server_under_test
from harness.server import Server

NONCES = 64


@attack("anonymous", "randomness: nonces of a server do not repeat and differ in most bits")
def nonces():
    config_user = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(f"authorization {{ users: [ {{ nkey: {config_user} }} ] }}")
        file.flush()
        with Server(server_under_test(), "-c", file.name) as server:
            seen = set()
            for _ in range(NONCES):
                with socket.create_connection(("127.0.0.1", server.port), timeout=5) as stream:
                    line = stream.makefile("rb").readline()
                seen.add(json.loads(line.removeprefix(b"INFO "))["nonce"])
    check(len(seen) == NONCES, f"{NONCES - len(seen)} nonces of {NONCES} repeated")
    check(all(len(nonce) >= 15 for nonce in seen), "a nonce is shorter than 11 random bytes")
