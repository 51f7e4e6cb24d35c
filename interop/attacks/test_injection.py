"""Text of a peer that could be interpreted in the protocol, the log, JSON, pages, or paths."""

import json
import os

import pytest

from attacks.archive import ARCHIVE, archive_record, begin, restore
from attacks.grounds import (
    CREDENTIALS,
    FEW_RIGHTS,
    ask,
    create,
    frame,
    grounds,
    http,
    log_is_honest,
    mqtt,
    mqtt_connect,
    raw,
    until_refused,
    websocket,
)
from harness.cases import named
from harness.checks import check, equal
from harness.peer import Peer
from mqtt.packets import packet as mqtt_packet
from mqtt.packets import text as mqtt_text

# A line in the format of the server's log, and commands that clear a terminal, set its title, or reverse text.
FORGED = "x\r\n[1] 2026/01/01 00:00:00.000000 [INF] forged\x1b[2J\x1b]0;owned\x07\x9b2J\u202etxt\x7f"


def connect_with(**fields) -> bytes:
    return b"CONNECT " + json.dumps({"user": "ada", "pass": "pw", "verbose": False, **fields}).encode() + b"\r\nPING\r\n"


def says(data: bytes):
    def play():
        with Peer(grounds().server.port) as peer:
            peer.line()
            peer.send(data + b"PING\r\n+\r\n")
            peer.until_closed()

    return play


def device_says(data: bytes):
    return until_refused(raw("mqtt"), data + b"\xf0\0")


def device_then_says(data: bytes):
    return until_refused(mqtt, data + b"\xf0\0")


def page_says(extra: str, path: str = "/", then: bytes = b""):
    return until_refused(lambda: websocket(extra, path), frame(then) + frame(b"", 0x88))


def asks(path: str, method: str = "GET", body: bytes = b"", **headers: str):
    return lambda: http(path, method, body, **headers)


def leaf_says(data: bytes):
    return until_refused(raw("leaf"), data)


def log(play):
    before = len(grounds().log())
    play()
    grounds().is_well()
    log_is_honest(before)


FORGED_BYTES = FORGED.encode()
FORGED_LINE = FORGED.replace("\r\n", "").encode()


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "play",
    named({
        "a user's name that is refused": says(connect_with(user=FORGED)),
        "a token that is refused": says(b"CONNECT " + json.dumps({"auth_token": FORGED}).encode() + b"\r\n"),
        "an nkey that is none": says(connect_with(user="", nkey=FORGED, sig=FORGED)),
        "a JWT that is none": says(connect_with(user="", jwt=FORGED)),
        "bytes that are no verb": says(FORGED_LINE + b"\r\n"),
        "an MQTT client identifier": device_says(mqtt_connect(FORGED_BYTES, b"nobody")),
        "an MQTT user's name": device_says(mqtt_connect(b"x", FORGED_BYTES)),
        "X-Forwarded-For": page_says("X-Forwarded-For: 1.1.1.1\x1b[2J\r\n"),
        "a WebSocket path": page_says("", "/\udcc2\udc9b2J"),
        "a leaf node's name": leaf_says(b"CONNECT " + json.dumps({"name": FORGED, "user": FORGED}).encode() + b"\r\n"),
        "a dashboard user's name": asks(
            "/dashboard/api/session", "POST", json.dumps({"user": FORGED}).encode(), Fanline_Dashboard="1"
        ),
        "a path of monitoring": asks("/\udcc2\udc9b2J?x=%1b%5b2J"),
    }),
)
def test_log_of_anonymous_peers(play):
    log(play)


@pytest.mark.client
@pytest.mark.parametrize(
    "play",
    named({
        "a client's name": says(connect_with(name=FORGED)),
        "a client's language and version": says(connect_with(lang=FORGED, version=FORGED)),
        "a subject that may not be published to": says(FEW_RIGHTS + b"PUB secret\x1b[2J\xc2\x9b2J 1\r\nx\r\n"),
        "a payload that is traced": says(CREDENTIALS + b"PUB a %d\r\n%s\r\n" % (len(FORGED_BYTES), FORGED_BYTES)),
        "a subscription's subject and queue": says(CREDENTIALS + b"SUB a\x1b[2J q\x1b[2J 1\r\n"),
        "an MQTT topic": device_then_says(mqtt_packet(0x30, mqtt_text(b"a\x1b[2J\xc2\x9b2J") + b"x")),
        "an MQTT filter": device_then_says(mqtt_packet(0x82, b"\0\1" + mqtt_text(FORGED_BYTES) + b"\0")),
        "a stream's description": lambda: with_client(lambda peer: create(peer, "LOG", description=FORGED)),
        "a stream's name": lambda: with_client(
            lambda peer: ask(peer, "$JS.API.STREAM.CREATE.x\x1b[2J", {"name": "x\x1b[2J"})
        ),
    }),
)
def test_log_of_clients(play):
    log(play)


def with_client(play, connect: bytes = CREDENTIALS):
    with grounds().client(connect) as peer:
        return play(peer)


# Bytes that a subscriber would interpret as a line of the server.
LINE = b"a\r\nMSG forged 1 5\r\nowned\r\n"
MARK = {"name": "IN", "subjects": ["s.IN.>"], "storage": "memory"}


def device_publishes(topic: bytes):
    return lambda _: device_then_says(mqtt_packet(0x30, mqtt_text(topic) + b"x"))()


def device_leaves_will(topic: bytes):
    body = mqtt_text(b"MQTT") + b"\4\xc6\0\x1e" + mqtt_text(b"w") + mqtt_text(topic) + mqtt_text(b"x")
    return lambda _: device_says(mqtt_packet(0x10, body + mqtt_text(b"ada") + mqtt_text(b"pw")))()


def makes_stream(**config):
    config = {k: v.decode() if isinstance(v, bytes) else v for k, v in config.items()}

    def play(peer: Peer):
        found = ask(peer, "$JS.API.STREAM.CREATE.IN", MARK | config)
        check("error" in found, f"it was taken: {config}")

    return play


def makes_consumer(**config):
    def play(peer: Peer):
        create(peer, "IN")
        found = ask(peer, "$JS.API.CONSUMER.CREATE.IN", {"stream_name": "IN", "config": config})
        check("error" in found, f"it was taken: {config}")

    return play


def schedules(target: bytes):
    def play(peer: Peer):
        create(peer, "IN", allow_msg_schedules=True)
        headers = b"Nats-Schedule: @at 2020-01-01T00:00:00Z\r\nNats-Schedule-Target: " + target + b"\r\n"
        found = ask(peer, "s.IN.a", b"x", headers)
        check("error" in found, f"it was taken: {found}")

    return play


def restores(subject: bytes):
    def play(peer: Peer):
        found = restore(peer, "IN", begin(ARCHIVE + archive_record(1, subject, b"x")))
        check("error" in found, f"it was taken: {found}")

    return play


TEXT = LINE.decode()


@pytest.mark.client
@pytest.mark.parametrize(
    "play",
    named({
        "an MQTT topic with a line": device_publishes(LINE),
        "an MQTT topic with a space": device_publishes(b"forged 1 0"),
        "an MQTT topic with a tab": device_publishes(b"forged\t1\t0"),
        "an MQTT will's topic with a line": device_leaves_will(LINE),
        "a republish destination with a line": makes_stream(republish={"src": ">", "dest": TEXT}),
        "a republish destination with a space": makes_stream(republish={"src": ">", "dest": "forged 1"}),
        "a subject transform with a line": makes_stream(subject_transform={"src": "s.IN.>", "dest": TEXT}),
        "a stream's subject with a line": makes_stream(subjects=[TEXT]),
        "a deliver subject with a line": makes_consumer(durable_name="c", deliver_subject=TEXT),
        "a deliver subject with a space": makes_consumer(durable_name="c", deliver_subject="forged 1"),
        "a deliver group with a line": makes_consumer(durable_name="c", deliver_subject="d", deliver_group=TEXT),
        "a filter with a line": makes_consumer(durable_name="c", filter_subject=TEXT),
        "a schedule's target with a space": schedules(b"s.IN.b forged 1"),
        "a schedule's target with a tab": schedules(b"s.IN.b\tforged"),
        "a restored record's subject with a line": restores(b"s.IN." + LINE),
        "a restored record's subject with a space": restores(b"s.IN.a forged 1"),
        "a restored record without a subject": restores(b""),
    }),
)
def test_protocol(play):
    """Runs an attack, while a subscriber of all subjects checks that it receives complete lines, none of them
    forged."""
    with grounds().client() as victim, grounds().client() as peer:
        victim.send(b"SUB > 1\r\n")
        victim.flush()
        play(peer)
        peer.send(b"PING\r\n")
        while peer.line() != "PONG":
            pass
        with grounds().client() as honest:
            honest.send(b"PUB the.end 0\r\n\r\n")
            honest.flush()
        while True:
            line, _ = victim.message()
            check(" forged " not in line and len(line.split(" ")) in (4, 5, 6), f"a forged line: {line!r}")
            if " the.end " in line:
                break
    grounds().is_well()


def stream_called(name: str):
    def play(peer: Peer):
        # The name is both in the subject and in the body, then in the body only.
        for token in (name, "X"):
            subject = f"$JS.API.STREAM.CREATE.{token}"
            if any(c in token for c in " \r\n\t"):
                continue
            found = ask(peer, subject, {"name": name, "subjects": ["owned"], "storage": "file"})
            check("did_create" not in found, f"{name!r} was taken")

    return play


def consumer_called(name: str):
    def play(peer: Peer):
        create(peer, "IN", storage="file")
        for subject in ("$JS.API.CONSUMER.CREATE.IN", "$JS.API.CONSUMER.DURABLE.CREATE.IN.X"):
            found = ask(peer, subject, {"stream_name": "IN", "config": {"durable_name": name, "name": name}})
            check("config" not in found, f"{name!r} was taken")

    return play


def restored_consumer_called(name: str):
    def play(peer: Peer):
        config = json.dumps([1, {"name": name, "durable_name": name}]).encode()
        from attacks.archive import archive_consumer, archive_end

        piece = begin(ARCHIVE + archive_consumer(config) + archive_end(1))
        restore(peer, "IN", piece, storage="file")

    return play


@pytest.mark.client
@pytest.mark.parametrize(
    "play",
    named({
        f"{what} {name!r}": make(name)
        for what, make, names in (
            ("a stream", stream_called, ("../owned", "owned/../../x", "/tmp/owned", "..\\owned", "owned\0", "owned\n")),
            ("a consumer", consumer_called, ("../owned", "owned/x", "/tmp/owned", "..\\owned", "owned\0")),
            ("a restored consumer", restored_consumer_called, ("../owned", "/tmp/owned")),
        )
        for name in names
    }),
)
def test_paths_of_the_store(play):
    """Checks that the attack writes nothing outside the store folder, and no file whose name leads out of it."""
    parent = os.path.dirname(grounds().folder)
    before = set(os.listdir(parent)) | set(os.listdir("/tmp"))
    with_client(play)
    new = (set(os.listdir(parent)) | set(os.listdir("/tmp"))) - before
    check(not any("owned" in name for name in new), f"written outside: {new}")
    for _, folders, files in os.walk(grounds().folder):
        check(not any("owned" in name for name in folders + files), "a name that leads elsewhere was taken")
    grounds().is_well()


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "path",
    named({
        f"monitoring {path}": path
        for path in (
            "/dashboard/../../../../etc/passwd",
            "/dashboard/%2e%2e/%2e%2e/etc/passwd",
            "/dashboard//etc/passwd",
            "/dashboard/vendor/..%2f..%2f..%2fetc/passwd",
        )
    }),
)
def test_paths_of_monitoring(path: str):
    status, _, body = http(path)
    check(status in (400, 403, 404) and b"root:" not in body, f"{path}: {status} {body[:60]!r}")


@pytest.mark.client
def test_a_clients_name_in_connz_is_one_string():
    name = '"},{"cid":7,"x":"\u2028</script>'
    with grounds().client(connect_with(name=name)) as peer:
        peer.flush()
        _, headers, body = http("/connz?auth=1")
        names = [found.get("name") for found in json.loads(body)["connections"]]
    check(name in names, f"it was not told as it is: {names}")
    equal(headers["content-type"], "application/json", "type")
    equal(headers.get("x-content-type-options"), "nosniff", "whether browsers guess")


@pytest.mark.client
def test_an_advisory_quotes_what_the_client_sent():
    with grounds().client() as victim, grounds().client() as peer:
        victim.send(b"SUB $JS.EVENT.ADVISORY.API 1\r\n")
        victim.flush()
        ask(peer, "$JS.API.STREAM.CREATE.IN", b'{"name":"a","x":"\\"}, \\u0000 \xff"}')
        _, payload = victim.message()
    json.loads(payload.decode())


@pytest.mark.client
def test_a_streams_name_and_description_add_no_line():
    with grounds().client() as peer:
        create(peer, "METRIC", description='"} 1\nforged_metric 1')
        status, _, body = http("/metrics")
    equal(status, 200, "status")
    check(b"\nforged_metric" not in body, "a line was forged")


@pytest.mark.anonymous
def test_what_monitoring_says_of_a_wrong_parameter_is_no_page():
    status, headers, _ = http("/connz?limit=%3Cscript%3Ealert(1)%3C/script%3E")
    equal(status, 400, "status")
    check(headers["content-type"].startswith("text/plain"), "it is a page")
    equal(headers.get("x-content-type-options"), "nosniff", "whether browsers guess")


@pytest.mark.anonymous
def test_the_dashboards_page_is_framed_by_nobody_and_runs_its_own_code_alone():
    _, headers, body = http("/")
    policy = headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        check(part in policy, f"{part} is missing from {policy}")
    check("unsafe" not in policy and b"onclick=" not in body.lower(), "code in the page may run")


API = "/dashboard/api/"


PAGE = {"Fanline_Dashboard": "1"}


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "path, method, headers",
    named({
        "a form that closes a connection": (API + "kick?cid=CID", "POST", {"Origin": "http://evil.example"}),
        "a link that closes a connection": (API + "kick?cid=CID", "GET", {}),
        "a preflight for the page's header": (
            API + "kick?cid=CID",
            "OPTIONS",
            {"Origin": "http://evil.example", "Access_Control_Request_Headers": "fanline-dashboard"},
        ),
        "closing a connection without credentials": (API + "kick?cid=CID", "POST", PAGE),
        "a ticket by a name that leads here": (API + "ticket", "POST", PAGE | {"Host": "evil.example:8222"}),
        "a session that was made up": (API + "ticket", "POST", PAGE | {"Authorization": "Bearer " + "A" * 43}),
        "a WebSocket without a ticket": ("/dashboard/ws?ticket=", "GET", {"Upgrade": "websocket"}),
    }),
)
def test_cross_site_requests(path, method, headers):
    with grounds().client() as victim:
        victim.flush()
        cid = victim.info["client_id"]
        status, answer, _ = http(path.replace("CID", str(cid)), method, **headers)
        check(status in (400, 401, 403, 404, 405), f"{status} for {method} {path}")
        check("access-control-allow-headers" not in answer, "other origins may send the page's header")
        victim.flush()
