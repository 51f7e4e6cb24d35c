"""Bytes that might end the process or one of its threads: extreme numbers, wrong lengths, meaningless packets."""

import struct

import pytest

from attacks.archive import ARCHIVE, archive_end, archive_frame, archive_record, begin, chunk, restore
from attacks.grounds import (
    CREDENTIALS,
    ask,
    create,
    frame,
    grounds,
    mqtt,
    send_request,
    raw,
    until_refused,
    websocket,
)
from harness.cases import named
from harness.checks import check
from harness.peer import Closed, Peer
from mqtt.packets import packet as mqtt_packet
from mqtt.packets import text as mqtt_text

U64, I64 = (1 << 64) - 1, (1 << 63) - 1


def survives(play):
    play()
    grounds().is_well()


def stream_with(**config):
    """Creates a stream with extreme numbers. If it is accepted, sends requests that use these numbers."""

    def play():
        with grounds().client() as peer:
            found = create(peer, "END", allow_direct=True, allow_rollup_hdrs=True, **config)
            if "error" in found:
                return
            for headers in (b"", b"Nats-Rollup: all\r\n", b"Nats-Expected-Last-Sequence: %d\r\n" % U64):
                ask(peer, "s.END.a", b"x", headers)
            for subject, body in (
                ("STREAM.MSG.GET.END", {"seq": U64}),
                ("STREAM.MSG.DELETE.END", {"seq": U64}),
                ("STREAM.PURGE.END", {"keep": U64}),
                ("STREAM.PURGE.END", {"seq": U64}),
                ("STREAM.INFO.END", {"subjects_filter": ">", "offset": I64}),
            ):
                ask(peer, f"$JS.API.{subject}", body)
            ask(peer, "s.END.a", b"x")
            ask(peer, "$JS.API.STREAM.DELETE.END", b"")

    return play


def consumer_with(**config):
    def play():
        with grounds().client() as peer:
            create(peer, "END")
            for _ in range(3):
                ask(peer, "s.END.a", b"x")
            config_ = {"durable_name": "c", "ack_policy": "explicit"} | config
            ask(peer, "$JS.API.CONSUMER.CREATE.END.c", {"stream_name": "END", "config": config_})
            for pull in ({"batch": I64, "expires": I64, "idle_heartbeat": I64 // 2}, {"batch": 1, "max_bytes": I64}):
                send_request(peer, b"$JS.API.CONSUMER.MSG.NEXT.END.c", pull)
            for ack in (b"-NAK {\"delay\":%d}" % I64, b"+NXT {\"batch\":%d}" % I64, b"+WPI", b"-NAK %d" % -I64):
                for tail in (b"1.1.1.1.0", b"%d.%d.%d.%d.%d" % (U64, U64, U64, U64, U64), b"1.-1.a..9"):
                    peer.send(b"PUB $JS.ACK.END.c.%s %d\r\n%s\r\n" % (tail, len(ack), ack))
            ask(peer, "$JS.API.CONSUMER.INFO.END.c", b"")
            ask(peer, "$JS.API.CONSUMER.PAUSE.END.c", {"pause_until": "9999-12-31T23:59:59.999999999Z"})
            ask(peer, "$JS.API.CONSUMER.DELETE.END.c", b"")

    return play


def message_with(headers: bytes, body: bytes = b"x", **config):
    def play():
        with grounds().client() as peer:
            create(peer, "END", **config)
            for _ in range(2):
                ask(peer, "s.END.a", body, headers)
            ask(peer, "$JS.API.STREAM.PURGE.END", b"")

    return play


def restored(*frames: bytes, then: bool = True):
    def play():
        with grounds().client() as peer:
            restore(peer, "END", begin(ARCHIVE + b"".join(frames)))
            if then:
                ask(peer, "$JS.API.STREAM.INFO.END", {"subjects_filter": ">"})
                ask(peer, "$JS.API.STREAM.MSG.GET.END", {"last_by_subj": "a..b"})
                found = ask(peer, "$JS.API.STREAM.MSG.GET.END", {"next_by_subj": "*.>", "seq": 1})
                check("panic" not in str(found), str(found))
                ask(peer, "$JS.API.STREAM.DELETE.END", b"")

    return play


def raw_restore(piece: bytes):
    def play():
        with grounds().client() as peer:
            restore(peer, "END", piece)

    return play


@pytest.mark.client
@pytest.mark.parametrize(
    "play",
    named({
        "a stream that begins at the last sequence": stream_with(first_seq=U64),
        "a stream that begins in the last half": stream_with(first_seq=I64),
        "a stream of one byte": stream_with(max_bytes=1),
        "a stream whose messages live for 292 years": stream_with(max_age=I64),
        "a stream of duplicates for 292 years": stream_with(duplicate_window=I64, max_age=I64),
        "limits of a stream below all": stream_with(max_msgs=-(1 << 63), max_msg_size=-(1 << 31)),
        "a consumer from the last sequence": consumer_with(deliver_policy="by_start_sequence", opt_start_seq=U64),
        "a consumer from the last day": consumer_with(
            deliver_policy="by_start_time", opt_start_time="9999-12-31T23:59:59.999999999Z"
        ),
        "a consumer from the year 0": consumer_with(deliver_policy="by_start_time", opt_start_time="0000-01-01T00:00:00Z"),
        "acknowledgements after 292 years": consumer_with(ack_wait=I64, backoff=[I64, I64], max_deliver=5),
        "a consumer of one bit a second": consumer_with(rate_limit_bps=1, deliver_subject="push.end"),
        "a consumer of 2^64 bits a second": consumer_with(rate_limit_bps=U64, deliver_subject="push.end"),
        "a consumer that is paused for ever": consumer_with(pause_until="9999-12-31T23:59:59Z"),
        "pending acknowledgements without end": consumer_with(max_ack_pending=I64),
        "a TTL of 292 years": message_with(b"Nats-TTL: 292y\r\n", allow_msg_ttl=True),
        "a TTL of 2^63 seconds": message_with(b"Nats-TTL: 9223372036854775807\r\n", allow_msg_ttl=True),
        "a TTL below 0": message_with(b"Nats-TTL: -1s\r\n", allow_msg_ttl=True),
        "a schedule in the year 9999": message_with(
            b"Nats-Schedule: @at 9999-12-31T23:59:59Z\r\nNats-Schedule-Target: s.END.t\r\n", allow_msg_schedules=True
        ),
        "a schedule each 292 years": message_with(
            b"Nats-Schedule: @every 9223372036s\r\nNats-Schedule-Target: s.END.t\r\n", allow_msg_schedules=True
        ),
        "a batch at its last place": message_with(
            b"Nats-Batch-Id: e\r\nNats-Batch-Sequence: %d\r\nNats-Batch-Commit: 1\r\n" % U64, allow_atomic=True
        ),
        "a counter of 2^64 and more": message_with(b"Nats-Incr: %d\r\n" % (U64 + 1), b"", allow_msg_counter=True),
        "a counter of no number": message_with(b"Nats-Incr: -+-1e9\r\n", b"", allow_msg_counter=True),
        "a direct get of everything": lambda: consumer_free("$JS.API.DIRECT.GET.END", {"seq": 1, "batch": I64, "next_by_subj": ">"}),
        "a direct get of the year 9999": lambda: consumer_free(
            "$JS.API.DIRECT.GET.END", {"start_time": "9999-12-31T23:59:59.999999999Z", "next_by_subj": ">", "batch": 2}
        ),
    }),
)
def test_numbers_at_their_ends(play):
    survives(play)


def consumer_free(subject: str, body: dict):
    with grounds().client() as peer:
        create(peer, "END", allow_direct=True)
        ask(peer, "s.END.a", b"x")
        ask(peer, subject, body)


@pytest.mark.client
@pytest.mark.parametrize(
    "play",
    named({
        "a record at the last sequence": restored(archive_record(U64, b"s.END.a", b"x"), archive_end(U64)),
        "records that go backwards": restored(
            archive_record(9, b"s.END.a", b"x"), archive_record(3, b"s.END.a", b"x"), archive_end(10)
        ),
        "an end before its records": restored(archive_record(9, b"s.END.a", b"x"), archive_end(1)),
        "the last sequence and no record": restored(archive_end(U64)),
        "a subject of dots": restored(archive_record(1, b"...", b"x"), archive_record(2, b"a..b", b""), archive_end(3)),
        "a subject of wildcards": restored(archive_record(1, b">.*.>", b"x"), archive_end(2)),
        "a subject that is no UTF-8": restored(archive_record(1, b"s.\xff\xfe\0", b"x"), archive_end(2)),
        "headers that are none": restored(archive_record(1, b"s.END.a", b"", b"\0\xff\r\r\n: :"), archive_end(2)),
        "lengths beyond the record": restored(
            archive_frame(1, struct.pack("<QqqHI", 1, 1, 0, 65_535, 0xFFFFFFFF)), archive_end(2)
        ),
        "a frame of a kind that is not known": restored(archive_frame(0, b""), archive_frame(255, b"")),
        "a record before time and one after": restored(
            archive_frame(1, struct.pack("<QqqHI", 1, -(1 << 63), I64, 1, 0) + b"a"),
            archive_frame(1, struct.pack("<QqqHI", 2, I64, -(1 << 63), 1, 0) + b"a"),
            archive_end(3),
        ),
        "a consumer's state of noise": restored(
            archive_frame(2, struct.pack("<I", 30) + b'[1,{"name":"c","durable_name":"c"}]'[:30] + bytes(range(256))),
            archive_end(1),
        ),
        "a consumer's configuration that is deep": restored(
            archive_frame(2, struct.pack("<I", 100_000) + b"[" * 100_000), archive_end(1)
        ),
        "a copy from before the block": raw_restore(begin(b"") + chunk(0, b"\x0a\x00a\x02\xff\xff", b"a" * 10)),
        "a repeat of nothing": raw_restore(begin(b"") + chunk(0, b"\x0a\x1d\x00\xff\xff\xff", b"a" * 10)),
        "a block of no bytes": raw_restore(begin(b"") + chunk(0, b"\x00", b"") * 1000),
        "a literal beyond its block": raw_restore(begin(b"") + chunk(0, b"\x0a\xfc\xff\xff\xff\xffa", b"a" * 10)),
    }),
)
def test_backups_that_lie(play):
    survives(play)


def device(*packets: bytes):
    return until_refused(mqtt, *[packet + b"\xf0\0" for packet in packets])


def first_of_device(data: bytes):
    return until_refused(raw("mqtt"), data + b"\xf0\0")


def v5(properties: bytes, length: bytes | None = None) -> bytes:
    length = bytes([len(properties)]) if length is None else length
    body = mqtt_text(b"MQTT") + b"\5\xc2\0\x1e" + length + properties
    return mqtt_packet(0x10, body + mqtt_text(b"v5") + mqtt_text(b"ada") + mqtt_text(b"pw"))


LET_IN = v5(b"")


@pytest.mark.client
@pytest.mark.parametrize(
    "play",
    named({
        "all kinds, empty": device(*[bytes([kind << 4 | flags, 0]) for kind in range(16) for flags in (0, 2, 15)]),
        "all kinds, of one byte": device(*[bytes([kind << 4 | 2, 1, 255]) for kind in range(16)]),
        "a packet identifier of 0": device(mqtt_packet(0x32, mqtt_text(b"a") + b"\0\0"), mqtt_packet(0x82, b"\0\0")),
        "a topic beyond its packet": device(mqtt_packet(0x30, b"\xff\xffa"), mqtt_packet(0x82, b"\0\1\xff\xff")),
        "acknowledgements of what was never sent": device(
            b"".join(mqtt_packet(kind, struct.pack(">H", n)) for kind in (0x40, 0x50, 0x62, 0x70) for n in (1, 7, 65_535))
        ),
        "properties beyond their packet": first_of_device(v5(b"", b"\xff\xff\xff\x7f")),
        "a property twice": first_of_device(v5(b"\x21\0\1\x21\0\1")),
        "a receive maximum of 0": first_of_device(v5(b"\x21\0\0")),
        "an unknown property": first_of_device(v5(b"\xff\xff\xff\x7f")),
        "a topic alias of 65,535": first_of_device(LET_IN + mqtt_packet(0x30, mqtt_text(b"a") + b"\3\x23\xff\xffx")),
        "a topic alias that was never told": first_of_device(LET_IN + mqtt_packet(0x30, b"\0\0\3\x23\0\1x")),
        "a subscription identifier of 0": first_of_device(
            LET_IN + mqtt_packet(0x82, b"\0\1\2\x0b\0" + mqtt_text(b"a") + b"\0")
        ),
        "a session and a message that expire at the end": first_of_device(
            v5(b"\x11\xff\xff\xff\xff") + mqtt_packet(0x30, mqtt_text(b"a") + b"\5\2\xff\xff\xff\xffx")
        ),
        "a shared filter without a filter": device(mqtt_packet(0x82, b"\0\1" + mqtt_text(b"$share/") + b"\0")),
    }),
)
def test_mqtt_packets_that_lie(play):
    survives(play)


def leaf(data: bytes):
    connect = b'CONNECT {"user":"ada","pass":"pw","name":"l","server_id":"L"}\r\n'
    return until_refused(raw("leaf"), connect + data + b"NONSENSE\r\n")


@pytest.mark.client
@pytest.mark.parametrize(
    "play",
    named({
        "LMSG of 2^64 bytes": leaf(b"LMSG a %d\r\n" % U64),
        "LMSG with headers longer than itself": leaf(b"LMSG a 9 5\r\nhello\r\n"),
        "LMSG with queues without end": leaf(b"LMSG a | " + b"q " * 2000 + b"0\r\n\r\n"),
        "LS+ of a subject of dots": leaf(b"LS+ ...\r\nLS- ...\r\n"),
        "LS+ with a weight of 2^64": leaf(b"LS+ a q %d\r\nLS- a q\r\n" % U64),
        "LS- of what was never wanted": leaf(b"LS- never\r\nLS- never q\r\n"),
        "an INFO that is deep": leaf(b"INFO " + b"[" * 3000 + b"\r\n"),
        "a compressed stream of noise": leaf(b"INFO {\"compression\":\"s2_fast\"}\r\n\xff\x06\0\0S2sTwO" + bytes(range(256))),
    }),
)
def test_lines_of_leaf_nodes_that_lie(play):
    survives(play)


def client(data: bytes):
    def play():
        with Peer(grounds().server.port, CREDENTIALS) as peer:
            try:
                peer.send(data + b"\r\nNONSENSE\r\n")
                peer.until_closed()
            except Closed:
                pass

    return play


def page(*frames: bytes):
    return until_refused(websocket, *[data + frame(b"", 0x88) for data in frames])


@pytest.mark.client
@pytest.mark.parametrize(
    "play",
    named({
        "sizes of 2^63, 2^64 and more": client(b"PUB a 9223372036854775808"),
        "a size that wraps around": client(b"PUB a 18446744073709551617\r\nx"),
        "headers longer than the message": client(b"HPUB a 20 5\r\nNATS/1.0\r\n\r\n"),
        "headers of 0 bytes": client(b"HPUB a 0 0\r\n"),
        "headers without their end": client(b"SUB a 1\r\nHPUB a 10 10\r\nNATS/1.0\r\n"),
        "UNSUB after 2^64 messages": client(b"SUB a 1\r\nUNSUB 1 %d\r\nPUB a 0\r\n\r\nUNSUB 1 -1" % U64),
        "every byte as a verb": client(b"\r\n".join(bytes([b]) for b in range(256) if b not in (10, 13))),
        "WebSocket: every first byte": page(*[frame(b"ab", first) for first in range(0, 256, 5)]),
        "WebSocket: a close of one byte, and with a code that is none": page(
            frame(b"\3", 0x88), frame(b"\0\0", 0x88), frame(b"\xff\xff\xff", 0x88)
        ),
        "WebSocket: lengths that are longer than they need be": page(b"\x82\xfe\0\1" + bytes(5), b"\x82\xff" + bytes(13)),
    }),
)
def test_lines_and_frames_that_lie(play):
    survives(play)
