"""Identifiers that an attacker must not be able to guess."""

import json
import signal
import socket
import tempfile

import pytest

from attacks.access_kit import Target, reply_of
from harness.checks import check, equal, until
from harness.server import Server, server_under_test
from mqtt.device import Device
from mqtt.packets import V5

NONCES = 64


@pytest.mark.anonymous
def test_nonces_of_a_server_do_not_repeat_and_differ_in_most_bits():
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


MASK = (1 << 64) - 1


def stepped(state: int) -> int:
    state ^= state >> 12
    state ^= state << 25 & MASK
    return state ^ state >> 27


def follows(one: int, other: int) -> bool:
    """Returns whether xorshift64* produces `other` soon after `one`."""
    # The output is the state times an odd number, so the state follows from one output.
    state = one * pow(0x2545F4914F6CDD1D, -1, 1 << 64) & MASK
    for _ in range(64):
        state = stepped(state)
        if state * 0x2545F4914F6CDD1D & MASK == other:
            return True
    return False


SERVICE = """
accounts {
  A { users: [ { user: a, password: p } ], imports: [ { service: { account: B, subject: svc } } ] }
  B { users: [ { user: b, password: p } ], exports: [ { service: svc } ] }
}
"""


@pytest.mark.owner
def test_the_reply_subject_of_the_next_request_computed_from_one_that_was_seen():
    with Target(SERVICE) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        b.sub("svc")
        b.barrier()
        for _ in range(8):
            a.pub("svc", b"?", "mine")
        a.barrier()
        numbers = [int(reply_of(message).rpartition(".")[2][-16:], 16) for message in b.barrier()]
        equal(len(set(numbers)), 8, "different replies")
        check(not any(follows(one, other) for one, other in zip(numbers, numbers[1:])), "the next one can be computed")


@pytest.mark.client
def test_the_mqtt_client_identifier_of_the_next_device_computed_from_ones_own():
    config = 'server_name: here\njetstream { store_dir: "SERVER_DIR/js" }\nmqtt { port: MQTT_PORT }\nhttp: 127.0.0.1:HTTP_PORT\n'
    with Target(config) as target:
        numbers = []
        for _ in range(8):
            device = Device(target, V5, "", clean=True)
            numbers.append(int(device.connack.property("assigned_id").rpartition("-")[2], 16))
            device.close()
        equal(len(set(numbers)), 8, "different identifiers")
        pairs = [(one, other) for one in numbers for other in numbers if one != other]
        check(not any(follows(one, other) for one, other in pairs), "the next one can be computed")


ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@pytest.mark.owner
def test_consumer_names():
    one = 'jetstream { store_dir: "SERVER_DIR/js" }\naccounts {\n'
    accounts = {name: f"  {name} {{ JS, users: [ {{ user: {name}, password: p }} ] }}\n" for name in "AB"}
    config = one + "".join(accounts.values()).replace("JS", "jetstream: enabled") + "}\n"
    without = one + accounts["A"].replace("JS, ", "") + accounts["B"].replace("JS", "jetstream: enabled") + "}\n"

    def names(target: Target, user: str) -> list[str]:
        with target.client(user, "p") as client:
            client.asked("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s"], "storage": "memory"})
            request = {"stream_name": "S", "config": {"ack_policy": "none"}}
            return [client.made("$JS.API.CONSUMER.CREATE.S", request)["name"] for _ in range(6)]

    with Target(config) as target:
        seen = names(target, "A") + names(target, "B")
        # A reload disables JetStream of the account, and another one enables it.
        for text in (without, config):
            target.write(text)
            reloads = target.output().count("Reloaded")
            target.signal(signal.SIGHUP)
            until(lambda: target.output().count("Reloaded") > reloads, "it does not reload")
        seen += names(target, "A")
        equal(len(set(seen)), len(seen), "different names")
        check(all(set(name) <= set(ALPHABET) for name in seen), f"{seen}")


@pytest.mark.anonymous
def test_sessions_and_nonces_of_the_dashboard_that_repeat_or_have_a_pattern():
    config = "http: 127.0.0.1:HTTP_PORT\nauthorization { user: ada, password: p }\n"
    with Target(config) as target:
        headers = {"fanline-dashboard": "1"}
        body = json.dumps({"user": "ada", "password": "p"}).encode()
        sessions = [json.loads(target.http("POST /dashboard/api/session", headers, body)[1])["session"] for _ in range(4)]
        nonces = [json.loads(target.http("POST /dashboard/api/nonce", headers)[1])["nonce"] for _ in range(4)]
        check(all(len(session) == 43 for session in sessions), "a session has less than 256 bits")
        for texts in (sessions, nonces):
            equal(len({text[:4] for text in texts}), len(texts), "different beginnings")


@pytest.mark.owner
def test_ids_of_transfers_by_which_others_could_write_into_a_restore():
    with Target('jetstream { store_dir: "SERVER_DIR/js" }\n') as target, target.client() as client:
        ids = []
        for number in range(4):
            config = {"name": f"S{number}", "subjects": [f"s{number}"], "storage": "file"}
            request = {"config": config, "state": {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}}
            found = client.made(f"$JS.API.STREAM.RESTORE.S{number}", request)
            ids.append(found["deliver_subject"].rpartition(".")[2])
        check(all(len(text) == 22 for text in ids), f"{ids}")
        equal(len({text[:4] for text in ids}), len(ids), "different beginnings")
