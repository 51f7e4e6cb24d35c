"""Attackers that have access to the disk of a server whose store is encrypted."""

import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import struct
import tempfile

import pytest

from harness.checks import check, equal
from harness.peer import CONNECT, Peer
from harness.server import Server, server_under_test

SECRET = "a-secret-of-the-store-9471"
# Texts that an attacker searches for. Each is part of a message, or of the configuration of a stream or consumer.
TREASURE = {
    "payload": b"treasure-in-a-payload",
    "header": b"treasure-in-a-header",
    "subject": b"treasure-in-a-subject",
    "description": b"treasure-in-a-description",
    "metadata": b"treasure-in-metadata",
    "filter": b"treasure.filter",
}
CIPHERS = ("aes", "chachapoly")
# Epoch and nonce number, which precede the sealed bytes (docs/formats/log.md).
EPOCH_AND_NONCE = struct.Struct("<QQ")
FLIPS = 24


class Store:
    """A store folder that several servers use one after the other."""

    def __init__(self, folder: str, cipher: str = "aes"):
        self.folder = folder
        self.cipher = cipher

    @contextlib.contextmanager
    def server(self, secret: str | None = SECRET, previous: str = "", *flags: str):
        key = f'key: "{secret}", cipher: {self.cipher}' if secret is not None else ""
        old = f', prev_key: "{previous}"' if previous else ""
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(f'jetstream {{ store_dir: "{self.folder}"\n {key}{old} }}\n')
            file.flush()
            with Server(server_under_test(), "-c", file.name, *flags) as server:
                yield server

    def files(self) -> dict[str, bytes]:
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.folder)] = file.read()
        return found

    def logs(self) -> list[str]:
        return [name for name in self.files() if name.endswith(".log")]


def request(port: int, subject: str, body: bytes = b"", headers: bytes = b"") -> dict:
    with Peer(port, CONNECT) as peer:
        peer.send(b"SUB reply 1\r\n")
        if headers:
            head = b"NATS/1.0\r\n" + headers + b"\r\n\r\n"
            peer.send(f"HPUB {subject} reply {len(head)} {len(head) + len(body)}\r\n".encode() + head + body + b"\r\n")
        else:
            peer.send(f"PUB {subject} reply {len(body)}\r\n".encode() + body + b"\r\n")
        return json.loads(peer.message()[1])


def must(answer: dict) -> dict:
    check("error" not in answer, f"refused: {answer}")
    return answer


def fill(port: int, name: str = "S", messages: int = 1):
    config = {
        "name": name,
        "subjects": [f"{name}.>"],
        "description": TREASURE["description"].decode(),
        "metadata": {"k": TREASURE["metadata"].decode()},
    }
    must(request(port, f"$JS.API.STREAM.CREATE.{name}", json.dumps(config).encode()))
    consumer = {"durable_name": "c", "ack_policy": "explicit", "filter_subject": f"{name}.treasure.filter"}
    body = json.dumps({"stream_name": name, "config": consumer}).encode()
    must(request(port, f"$JS.API.CONSUMER.CREATE.{name}.c", body))
    for _ in range(messages):
        publish(port, name)


def publish(port: int, name: str = "S", payload: bytes = TREASURE["payload"]):
    subject = f"{name}.{TREASURE['subject'].decode()}"
    must(request(port, subject, payload, b"X: " + TREASURE["header"]))


def read(port: int, sequence: int, name: str = "S") -> dict:
    return request(port, f"$JS.API.STREAM.MSG.GET.{name}", json.dumps({"seq": sequence}).encode())


def seals(store: Store) -> list[tuple[int, int]]:
    """Returns epoch and nonce of each sealed record: records in the log whose head of 36 bytes has flag 16."""
    found = []
    for name, content in store.files().items():
        if not name.endswith(".log"):
            continue
        at = 96
        while at + 36 <= len(content):
            length = struct.unpack_from("<I", content, at + 8)[0]
            flags = content[at + 15]
            if length < 32 or at + length > len(content):
                break
            if flags & 16:
                found.append(EPOCH_AND_NONCE.unpack_from(content, at + 36))
            at += length
    return found


@contextlib.contextmanager
def store(cipher: str = "aes"):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Store(os.path.join(folder, "store"), cipher)


@pytest.mark.disk
@pytest.mark.parametrize("what", TREASURE)
@pytest.mark.parametrize("cipher", CIPHERS)
def test_secrets_are_not_in_files(cipher: str, what: str):
    with store(cipher) as own:
        with own.server() as server:
            fill(server.port)
            server.signal(15)
            server.wait()
        found = [name for name, content in own.files().items() if TREASURE[what] in content]
        equal(found, [], f"files that show the {what}")
        with own.server() as server:
            must(read(server.port, 1))


def digests(own: Store) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in own.files().items() if "lock" not in name}


def starts(own: Store, secret: str | None, previous: str = "") -> bool:
    try:
        with own.server(secret, previous):
            return True
    except RuntimeError:
        return False


@pytest.mark.disk
def test_a_wrong_key_opens_nothing_and_changes_nothing():
    with store() as own:
        with own.server() as server:
            fill(server.port)
            server.signal(15)
            server.wait()
        before = digests(own)
        for secret in ("wrong", SECRET[:-1], SECRET + " ", SECRET.upper(), None, ""):
            check(not starts(own, secret), f"it starts with {secret!r}")
            equal(digests(own), before, f"files after a start with {secret!r}")


@pytest.mark.disk
def test_a_key_that_was_replaced_opens_nothing_any_more():
    with store() as own:
        with own.server() as server:
            fill(server.port)
        check(starts(own, "the next key", SECRET), "it does not start with the next key and the one before")
        check(not starts(own, SECRET), "it starts with the key before")
        with own.server("the next key") as server:
            must(read(server.port, 1))


@pytest.mark.disk
def test_a_store_that_was_restored_from_a_copy_seals_nothing_with_a_nonce_that_it_has_used():
    with store() as own:
        with own.server() as server:
            fill(server.port, messages=3)
        copy = own.folder + ".copy"
        shutil.copytree(own.folder, copy)
        used: list[tuple[int, int]] = []
        for _ in range(3):
            with own.server() as server:
                for _ in range(3):
                    publish(server.port)
            used += seals(own)[3:]
            shutil.rmtree(own.folder)
            shutil.copytree(copy, own.folder)
        equal(len(used), 9, "sealed records")
        equal(len(set(used)), len(used), "pairs of epoch and nonce that differ")


@pytest.mark.disk
def test_equal_messages_of_two_streams_are_not_sealed_alike():
    with store() as own:
        with own.server() as server:
            for name in ("S", "T"):
                fill(server.port, name, messages=2)
        pairs = seals(own)
        equal((len(pairs), len(set(pairs))), (4, 4), "sealed records, and pairs of epoch and nonce")


@pytest.mark.disk
def test_a_changed_byte_is_never_delivered_as_a_message():
    with store() as own:
        with own.server() as server:
            fill(server.port, messages=2)
            server.signal(15)
            server.wait()
        good = own.folder + ".good"
        shutil.copytree(own.folder, good)
        [log] = own.logs()
        content = own.files()[log]
        for number in range(FLIPS):
            shutil.rmtree(own.folder)
            shutil.copytree(good, own.folder)
            at = 96 + (len(content) - 96) * number // FLIPS
            with open(os.path.join(own.folder, log), "r+b") as file:
                file.seek(at)
                file.write(bytes([content[at] ^ 0xFF]))
            with own.server() as server:
                answers = [read(server.port, sequence) for sequence in (1, 2)]
            good_ones = [answer for answer in answers if "error" not in answer]
            payloads = {answer["message"]["data"] for answer in good_ones}
            check(payloads <= {"dHJlYXN1cmUtaW4tYS1wYXlsb2Fk"}, f"byte {at} changed: {payloads}")
            check(good_ones, f"byte {at} changed: both messages are gone")


@pytest.mark.disk
def test_a_record_of_another_sequence_is_not_taken_for_this_one():
    with store() as own:
        with own.server() as server:
            fill(server.port, messages=2)
        [log] = own.logs()
        path = os.path.join(own.folder, log)
        with open(path, "rb") as file:
            content = bytearray(file.read())
        records, at = [], 96
        while at + 36 <= len(content):
            length = struct.unpack_from("<I", content, at + 8)[0]
            if length < 32 or at + length > len(content):
                break
            if content[at + 15] & 16:
                records.append((at, length))
            at += length
        (first, length), (second, other) = records[:2]
        equal(length, other, "lengths of two equal messages")
        # Replaces the sealed part of the first record by that of the second; the head still has the first
        # sequence.
        content[first + 36 : first + length] = content[second + 36 : second + other]
        with open(path, "wb") as file:
            file.write(content)
        for name in list(own.files()):
            if os.path.basename(name) == "index":
                os.remove(os.path.join(own.folder, name))
        with own.server() as server:
            check("error" in read(server.port, 1), "the moved record is delivered")


def swap(own: Store, suffix: str):
    """Copies each file of stream T with this suffix to the folder of stream S."""
    ours, theirs = (
        sorted(name for name in own.files() if f"/{stream}/" in f"/{name}" and name.endswith(suffix)) for stream in "ST"
    )
    check(ours and theirs, f"no {suffix} files in {sorted(own.files())}")
    for name in ours:
        os.remove(os.path.join(own.folder, name))
    for name in theirs:
        to = os.path.join(own.folder, os.path.dirname(ours[0]), os.path.basename(name))
        shutil.copyfile(os.path.join(own.folder, name), to)


@pytest.mark.disk
@pytest.mark.parametrize("suffix", [".log", ".doc"])
def test_file_of_another_stream(suffix: str):
    """Swaps files of two streams. No message of T may be delivered as one of S, and no filter of T may apply to
    S."""
    with store() as own:
        with own.server() as server:
            for name, payload in (("S", b"from S"), ("T", b"from T")):
                fill(server.port, name, messages=0)
                publish(server.port, name, payload)
            server.signal(15)
            server.wait()
        swap(own, suffix)
        for name in list(own.files()):
            if os.path.basename(name) == "index":
                os.remove(os.path.join(own.folder, name))
        try:
            with own.server() as server:
                found = read(server.port, 1)
                config = request(server.port, "$JS.API.STREAM.INFO.S").get("config", {})
        except RuntimeError:
            # The server may refuse to start with a modified store.
            return
        check(base64.b64encode(b"from T").decode() not in json.dumps(found), f"a message of T: {found}")
        check(config.get("subjects") in (None, ["S.>"]), f"the configuration of T: {config}")


@pytest.mark.disk
def test_the_folder_and_its_files_are_for_their_user_alone():
    with store() as own:
        with own.server() as server:
            fill(server.port)
            open_to_others = []
            for folder, folders, names in os.walk(own.folder):
                for name in folders + names:
                    path = os.path.join(folder, name)
                    mode = stat.S_IMODE(os.stat(path).st_mode)
                    if mode & 0o007:
                        open_to_others.append(f"{os.path.relpath(path, own.folder)} {mode:o}")
            equal(open_to_others, [], "what others may read or write")


@pytest.mark.client
def test_neither_the_log_nor_a_refusal_shows_the_key():
    with store() as own, own.server(SECRET, "", "-DV") as server:
        fill(server.port)
        check(SECRET not in server.output(), "the key is in the log")
        check(not re.search(rb"prev_key|cipher\W+aes\W+key", server.output().encode()), "the log shows the block")
