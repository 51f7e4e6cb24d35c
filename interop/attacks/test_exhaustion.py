"""Attacks that use much memory or time of the server with little effort."""

import contextlib
import struct
import threading
import time
import zlib

import pytest

from attacks.archive import ARCHIVE, archive_consumer, archive_frame, archive_skip, begin, bomb
from attacks.grounds import (
    ask,
    create,
    frame,
    grounds,
    http,
    mqtt,
    mqtt_connect,
    raw,
    until_refused,
    websocket,
)
from harness.cases import named
from harness.checks import check
from harness.peer import Closed, Peer
from mqtt.packets import packet as mqtt_packet
from mqtt.packets import text as mqtt_text

MIB = 1 << 20
# Maximum wait of an honest client during an attack. It is generous, because tests run at the same time as others.
WAIT_SECONDS_MAX = 5


def bounded(growth_mib_max: int, play):
    """Runs an attack. The server's memory must not grow by more than this, other clients must be served, and the
    server must work afterward."""
    with grounds().client() as honest:
        honest.flush()
        before = grounds().server.rss_bytes()
        worst, done = [0.0], threading.Event()

        def watch():
            while not done.is_set():
                start = time.monotonic()
                # Without a response, the wait has lasted as long as a peer's read timeout.
                with contextlib.suppress(OSError):
                    ask(honest, "$JS.API.INFO", b"")
                worst[0] = max(worst[0], time.monotonic() - start)
                done.wait(0.01)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            play()
        finally:
            done.set()
            watcher.join()
        growth = (grounds().server.rss_bytes() - before) / MIB
    check(growth <= growth_mib_max, f"memory grew by {growth:.0f} MiB")
    check(worst[0] <= WAIT_SECONDS_MAX, f"an honest client waited {worst[0]:.1f} s")
    grounds().is_well()


def restores(piece: bytes):
    def play():
        with grounds().client() as peer:
            config = {"name": "BOMB", "subjects": ["bomb"], "storage": "memory"}
            begun = ask(peer, "$JS.API.STREAM.RESTORE.BOMB", {"config": config})
            found = ask(peer, begun["deliver_subject"], piece)
            check("error" in found, f"it was taken: {found}")

    return play


def many_half_frames():
    """Several restores that each hold an incomplete frame and never end."""
    half = archive_frame(2, b"")[:1] + struct.pack("<II", (1 << 28) - 64, 1)
    piece = begin(ARCHIVE + half) + bomb(b"\0\0", 60)
    with grounds().client() as peer:
        taken = 0
        for n in range(7):
            config = {"name": f"H{n}", "subjects": [f"h{n}"], "storage": "memory"}
            begun = ask(peer, f"$JS.API.STREAM.RESTORE.H{n}", {"config": config})
            taken += ask(peer, begun["deliver_subject"], piece).get("text") == ""
        check(taken <= 4, f"{taken} backups hold sixty megabytes each")


@pytest.mark.client
@pytest.mark.parametrize(
    "growth_mib_max, play",
    named({
        "a million consumers": (300, restores(begin(ARCHIVE) + bomb(archive_consumer(b""), 20))),
        "the same place for ever": (40, restores(begin(ARCHIVE) + bomb(archive_skip(5), 2000))),
        "ends without end": (40, restores(begin(ARCHIVE) + bomb(archive_frame(4, b""), 2000))),
        "a frame of a gigabyte": (40, restores(begin(ARCHIVE + b"\2" + b"\xff" * 8) + bomb(b"\0\0", 500))),
        "seven frames of 256 MB": (480, many_half_frames),
    }),
)
def test_backup(growth_mib_max, play):
    bounded(growth_mib_max, play)


def deflated(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packer.compress(b"PING\r\n" * (size // 6)) + packer.flush(zlib.Z_SYNC_FLUSH)
    return data[:-4]


def page(data: bytes, extra: str = "", closes: bool = True):
    return until_refused(lambda: websocket(extra), data if closes else data + frame(b"", 0x88))


DEFLATE = "Sec-WebSocket-Extensions: permessage-deflate\r\n"
TOO_LONG = struct.pack(">BBQ", 0x82, 0xFF, (1 << 63) - 1) + bytes(4)


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "growth_mib_max, play",
    named({
        "a gigabyte that was compressed": (60, page(frame(deflated(1 << 30), 0xC2), DEFLATE)),
        "compressed bytes that are none": (20, page(frame(b"\xff" * 1000, 0xC2), DEFLATE)),
        "a compressed frame where nothing was agreed": (20, page(frame(deflated(1 << 20), 0xC2))),
        "a frame of 2^63 bytes": (20, page(TOO_LONG)),
        "fragments without end": (60, page(frame(b"", 0x02) + frame(b"a" * 4096, 0x00) * 20_000)),
        "a hundred thousand empty fragments": (
            40,
            page(frame(b"", 0x02) + frame(b"", 0x00) * 100_000, closes=False),
        ),
        "a hundred thousand pings, whose answers nobody reads": (60, page(frame(b"p" * 100, 0x89) * 100_000, closes=False)),
        "a control frame in fragments": (20, page(frame(b"", 0x09))),
        "a request of headers without end": (20, page(b"X: y\r\n" * 10_000, "X: y\r\nX:", closes=True)),
    }),
)
def test_websocket(growth_mib_max, play):
    bounded(growth_mib_max, play)


def says(data: bytes):
    def play():
        with Peer(grounds().server.port) as peer:
            peer.line()
            try:
                peer.send(data)
            except Closed:
                return
            peer.until_closed()

    return play


def requests(subject: str, body: bytes, headers: bytes = b""):
    def play():
        with grounds().client() as peer:
            create(peer, "IN", allow_atomic=True, allow_msg_counter=subject.endswith(".n"), allow_direct=True)
            found = ask(peer, subject, body, headers)
            check("error" in found or " 0 " not in found.get("line", ""), f"it was taken: {str(found)[:100]}")

    return play


DEEP = b"[" * 500_000
DEEP_MAP = b'{"a":' * 150_000


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "growth_mib_max, play",
    named({
        "a CONNECT that is half a megabyte deep": (60, says(b"CONNECT " + DEEP + b"\r\n")),
        "a CONNECT of maps in maps": (60, says(b"CONNECT " + DEEP_MAP + b"\r\n")),
        "a CONNECT without end": (60, says(b'CONNECT {"name":"' + b"a" * (4 * MIB))),
        "a sign-in at the dashboard that is deep": (
            40,
            lambda: http("/dashboard/api/session", "POST", b'{"user":' + b"[" * 16_000, Fanline_Dashboard="1"),
        ),
    }),
)
def test_json_of_anonymous_peers(growth_mib_max, play):
    bounded(growth_mib_max, play)


@pytest.mark.client
@pytest.mark.parametrize(
    "growth_mib_max, play",
    named({
        f"{what} that is {size} deep": (60, requests(subject, body))
        for what, subject in (
            ("a stream", "$JS.API.STREAM.CREATE.IN"),
            ("a consumer", "$JS.API.CONSUMER.CREATE.IN.c"),
            ("a search", "$JS.API.STREAM.MSG.GET.IN"),
            ("a purge", "$JS.API.STREAM.PURGE.IN"),
        )
        for size, body in (("500,000 arrays", DEEP), ("150,000 maps", b'{"metadata":' * 80_000))
    }),
)
def test_json_of_clients(growth_mib_max, play):
    bounded(growth_mib_max, play)


def has_closed(data: bytes):
    def play():
        with grounds().client() as peer:
            try:
                peer.send(data)
            except Closed:
                return
            peer.until_closed()

    return play


def stays(data: bytes, rounds: int = 1):
    def play():
        with grounds().client() as peer:
            for _ in range(rounds):
                peer.send(data)
            peer.send(b"PING\r\n")
            while peer.line() != "PONG":
                pass

    return play


def wildcards():
    """Many filters with a common beginning, and subjects that each of them almost matches."""
    with grounds().client() as peer:
        subs = []
        for n in range(1 << 12):
            tokens = [b"*" if n >> bit & 1 else b"a" for bit in range(12)]
            subs.append(b"SUB %s.x 1%d\r\n" % (b".".join(tokens), n))
        peer.send(b"".join(subs))
        peer.flush()
        for n in range(50):
            peer.send(b"PUB %s.y%d 0\r\n\r\n" % (b".".join([b"a"] * 12), n))
        peer.flush()


def interest_cut():
    with grounds().client() as peer:
        create(peer, "IN")
        for n in range(100):
            peer.send(b"PUB s.IN.%s 0\r\n\r\n" % b".".join(b"%d" % (n >> bit & 1) for bit in range(8)))
        found = ask(peer, "$JS.API.STREAM.INFO.IN", {"subjects_filter": "s.IN." + "*." * 7 + "*"})
        check("error" not in found, f"{found}")


def waits(count: int):
    def play():
        with grounds().client() as peer:
            create(peer, "IN")
            config = {"durable_name": "c", "ack_policy": "explicit", "max_waiting": 100}
            ask(peer, "$JS.API.CONSUMER.CREATE.IN.c", {"stream_name": "IN", "config": config})
            pull = b'{"batch":1000000000,"expires":60000000000}'
            peer.send(b"PUB $JS.API.CONSUMER.MSG.NEXT.IN.c pulls %d\r\n%s\r\n" % (len(pull), pull) * count)
            peer.flush()
            found = ask(peer, "$JS.API.CONSUMER.INFO.IN.c", b"")
            check(found["num_waiting"] <= 100, f"{found['num_waiting']} wait")

    return play


def batches():
    """Batches that are started and never committed."""
    with grounds().client() as peer:
        create(peer, "IN", allow_atomic=True)
        refused = 0
        for n in range(200):
            headers = b"Nats-Batch-Id: b%d\r\nNats-Batch-Sequence: 1\r\n" % n
            refused += "error" in ask(peer, "s.IN.a", b"x" * 1000, headers)
        check(refused >= 100, f"{200 - refused} batches are open")


def long_batch():
    with grounds().client() as peer:
        create(peer, "IN", allow_atomic=True)
        for n in range(1, 1100):
            head = b"NATS/1.0\r\nNats-Batch-Id: long\r\nNats-Batch-Sequence: %d\r\n\r\n" % n
            peer.send(b"HPUB s.IN.a %d %d\r\n%sx\r\n" % (len(head), len(head) + 1, head))
        found = ask(peer, "s.IN.a", b"", b"Nats-Batch-Id: long\r\nNats-Batch-Sequence: 1100\r\nNats-Batch-Commit: 1\r\n")
        check("error" in found, "a batch of 1,100 was taken")


def counters():
    """Increments a counter by a hundred thousand digits, and then by 1."""
    with grounds().client() as peer:
        create(peer, "IN", allow_msg_counter=True)
        for digits in (60_000, 60_000, 900_000):
            ask(peer, "s.IN.n", b"", b"Nats-Incr: +" + b"9" * digits + b"\r\n")
        for _ in range(5):
            ask(peer, "s.IN.n", b"", b"Nats-Incr: +1\r\n")


def schedules(pattern: bytes):
    def play():
        with grounds().client() as peer:
            create(peer, "IN", allow_msg_schedules=True)
            headers = b"Nats-Schedule: " + pattern + b"\r\nNats-Schedule-Target: s.IN.t\r\n"
            ask(peer, "s.IN.a", b"x", headers)
            found = ask(peer, "$JS.API.STREAM.INFO.IN", b"")
            check(found["state"]["messages"] <= 2, f"{found['state']}")

    return play


def streams_of_a_megabyte():
    with grounds().client() as peer:
        found = create(peer, "IN", description="d" * 500_000, metadata={str(n): "x" for n in range(10_000)})
        check("error" in found, "a description of half a megabyte was taken")


MANY_TOKENS = b"a." * 100_000 + b"a"


@pytest.mark.client
@pytest.mark.parametrize(
    "growth_mib_max, play",
    named({
        "PUB to 100,000 tokens": (40, has_closed(b"PUB %s 0\r\n\r\n" % MANY_TOKENS)),
        "SUB to 100,000 tokens": (40, has_closed(b"SUB %s 1\r\n" % MANY_TOKENS)),
        "SUB to 2,000 wildcards, a hundred times": (
            60,
            stays(b"".join(b"SUB %s%d 1%d\r\n" % (b"*." * 2000, n, n) for n in range(100))),
        ),
        "filters that all almost match": (60, wildcards),
        "a stream's subjects by eight wildcards": (40, interest_cut),
        "a stream of 100,000 tokens": (60, requests("$JS.API.STREAM.CREATE.IN", b'{"name":"IN","subjects":["%s"]}' % MANY_TOKENS)),
        "a stream of 20,000 subjects": (
            80,
            requests(
                "$JS.API.STREAM.CREATE.IN",
                b'{"name":"IN","subjects":["x",%s]}' % b",".join(b'"*.%d.>"' % n for n in range(20_000)),
            ),
        ),
        "100,000 subscriptions that are ended at once": (
            100,
            lambda: (stays(b"".join(b"SUB e.%d %d\r\nUNSUB %d\r\n" % (n, n, n) for n in range(100_000)))()),
        ),
    }),
)
def test_subjects_and_filters(growth_mib_max, play):
    bounded(growth_mib_max, play)


@pytest.mark.client
@pytest.mark.parametrize(
    "growth_mib_max, play",
    named({
        "20,000 pulls for one consumer": (60, waits(20_000)),
        "200 batches that never end": (60, batches),
        "a batch of 1,100": (60, long_batch),
        "counters of very many digits": (60, counters),
        "a schedule for each nanosecond": (40, schedules(b"@every 1ns")),
        "a schedule for no time at all": (40, schedules(b"@every 0s")),
        "a schedule for a day that never comes": (40, schedules(b"0 0 0 31 2 *")),
        "a schedule of very many fields": (40, schedules(b"*/1," * 10_000 + b" * * * * *")),
        "a description of half a megabyte": (40, streams_of_a_megabyte),
        "50,000 headers": (60, requests("s.IN.a", b"", b"".join(b"A%d: b\r\n" % n for n in range(50_000)))),
        "a search for 100,000 filters": (
            60,
            requests("$JS.API.DIRECT.GET.IN", b'{"multi_last":[%s"x"]}' % b"".join(b'"s.IN.%d",' % n for n in range(60_000))),
        ),
    }),
)
def test_jetstream(growth_mib_max, play):
    bounded(growth_mib_max, play)


def device_says(data: bytes):
    return until_refused(mqtt, data + b"\xf0\0")


def device_first_says(data: bytes):
    return until_refused(raw("mqtt"), data)


FILTERS = b"".join(mqtt_text(b"a/%d" % n) + b"\0" for n in range(30_000))


@pytest.mark.anonymous
@pytest.mark.parametrize(
    "growth_mib_max, play",
    named({
        "a CONNECT of 256 MB": (40, device_first_says(b"\x10\xff\xff\xff\x7f" + b"\0\4MQTT\4\2\0\x1e" + bytes(8 * MIB))),
        "a length of five bytes": (20, device_first_says(b"\x10\xff\xff\xff\xff\xff\x01")),
        "a client identifier of 65,535 bytes": (40, device_first_says(mqtt_connect(b"c" * 65_535, b"nobody"))),
        "PUBLISH before CONNECT": (20, device_first_says(mqtt_packet(0x30, mqtt_text(b"a") + b"x"))),
    }),
)
def test_mqtt_of_anonymous_peers(growth_mib_max, play):
    bounded(growth_mib_max, play)


@pytest.mark.client
@pytest.mark.parametrize(
    "growth_mib_max, play",
    named({
        "a PUBLISH of 256 MB": (60, device_says(b"\x30\xff\xff\xff\x7f" + mqtt_text(b"a") + bytes(8 * MIB))),
        "a SUBSCRIBE of 30,000 filters": (120, device_says(mqtt_packet(0x82, b"\0\1" + FILTERS))),
        "a topic of 30,000 levels": (40, device_says(mqtt_packet(0x30, mqtt_text(b"a/" * 30_000) + b"x"))),
        "100,000 PINGREQ, whose answers nobody reads": (40, device_says(b"\xc0\0" * 100_000)),
        "65,535 publishes of QoS 2 that are never released": (
            120,
            device_says(b"".join(mqtt_packet(0x34, mqtt_text(b"a") + struct.pack(">H", n)) for n in range(1, 65_535))),
        ),
    }),
)
def test_mqtt_of_clients(growth_mib_max, play):
    bounded(growth_mib_max, play)
