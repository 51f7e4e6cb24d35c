"""Invalid packets close the connection of their sender only, in 5.0 with the right reason."""

from harness.checks import check, equal
from harness.peer import Closed, Peer
from mqtt import packets
from mqtt.brokers import MOSQUITTO
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, fresh
from mqtt.packets import V4, V5

GROUP = "malformed"

MALFORMED = 0x81
PROTOCOL = 0x82
TOPIC_INVALID = 0x90
FILTER_INVALID = 0x8F
ALIAS_INVALID = 0x94
TOO_LARGE = 0x95

A = packets.text("a")


def wrong_packets(version: int):
    """Yields bytes, the reasons that 5.0 allows for them, and a description with the clause."""
    none = packets.properties(version, ())
    one = packets.two(1)
    deep = (MALFORMED, PROTOCOL)
    yield packets.packet(0x36, A, one, none), deep, "QoS 3, 3.3.1-4"
    yield packets.packet(0x32, A, packets.two(0), none), deep, "packet identifier 0, 2.2.1-3"
    yield packets.packet(0x32, A), deep, "no packet identifier"
    yield packets.packet(0x30, packets.two(9), b"a"), deep, "a topic that is cut off"
    yield packets.packet(0x30, packets.text("a/+"), none), (*deep, TOPIC_INVALID), "a wildcard, 3.3.2-2"
    yield packets.packet(0x30, packets.text("a/#"), none), (*deep, TOPIC_INVALID), "a wildcard, 3.3.2-2"
    yield packets.packet(0x30, packets.text(b"\xff"), none), (*deep, TOPIC_INVALID), "not UTF-8, 1.5.4-1"
    yield packets.packet(0x30, packets.text(b"a\0b"), none), (*deep, TOPIC_INVALID), "U+0000, 1.5.4-2"
    yield packets.packet(0x60, one), deep, "flags of PUBREL, 3.6.1-1"
    yield packets.packet(0x80, one, none, A, b"\0"), deep, "flags of SUBSCRIBE, 3.8.1-1"
    yield packets.packet(0x82, one, none), deep, "no filter, 3.8.3-2"
    yield packets.packet(0x82, packets.two(0), none, A, b"\0"), deep, "packet identifier 0, 2.2.1-3"
    yield packets.packet(0x82, one, none, A, b"\3"), deep, "requested QoS 3, 3.8.3"
    yield packets.packet(0xA0, one, none, A), deep, "flags of UNSUBSCRIBE, 3.10.1-1"
    yield packets.packet(0xA2, one, none), deep, "no filter, 3.10.3-2"
    yield packets.packet(0x00), deep, "type 0"
    yield packets.packet(0x20, b"\0\0"), deep, "a CONNACK of a client"
    yield packets.packet(0xD0), deep, "a PINGRESP of a client"
    yield b"\x30\xff\xff\xff\xff\x01", (*deep, TOO_LARGE), "a length of five bytes, 1.5.5"
    if version == V4:
        yield packets.packet(0x82, one, A, b"\4"), (), "reserved bits, 3-8.3-4"
        yield packets.packet(0xF0), (), "type 15"
        return
    alias = packets.properties(V5, {"alias": 0})
    yield packets.packet(0x30, A, alias), (*deep, ALIAS_INVALID), "alias 0, 3.3.2-8"
    yield packets.packet(0x30, packets.text(""), none), (*deep, TOPIC_INVALID), "neither topic nor alias"
    yield packets.packet(0x30, A, packets.properties(V5, b"\x7f\0")), deep, "a property that there is not"
    yield packets.packet(0x30, A, b"\x09\x01\0"), deep, "properties behind the end"
    twice = packets.properties(V5, [("content_type", "x"), ("content_type", "y")])
    yield packets.packet(0x30, A, twice), deep, "a property twice"
    yield packets.packet(0x30, A, packets.properties(V5, {"receive_maximum": 9})), deep, "a property of CONNECT"
    yield packets.packet(0x82, one, none, A, b"\x30"), deep, "retain handling 3"
    yield packets.packet(0xE0, b"\x00\x05\x11\x00\x00\x00\x09"), deep, "a session that becomes one, 3.14.2.2.2"




# Invalid packets that a reference accepts.
UNSEEN = {MOSQUITTO: ("a PINGRESP of a client",)}


@case(GROUP, *BOTH)
def test_a_wrong_packet_closes_its_sender_alone(broker, version):
    """MQTT-4.13.1-1, 4.13.2-1 (3.1.1: 4.8.0-1, 2.2.2-2). Another pair of clients is not affected."""
    topic = fresh("t")
    wrong = []
    with Device(broker, version, fresh("c")) as receiver, Device(broker, version, fresh("c")) as sender:
        receiver.subscribed((topic, 1))
        for number, (data, reasons, what) in enumerate(wrong_packets(version)):
            if what in UNSEEN.get(broker.kind.name, ()):
                continue
            with Device(broker, version, fresh("c")) as bad:
                try:
                    bad.send(data)
                    told = bad.end_reason()
                except (Closed, TimeoutError) as error:
                    told = f"{type(error).__name__}"
                if told is not None and told not in (reasons if version == V5 else ()):
                    wrong.append(f"{what}: {told if isinstance(told, str) else hex(told)}")
            payload = b"%d" % number
            sender.publish(topic, payload, qos=1)
            found = receiver.message().payload
            check(found == payload, f"after {what} the pair heard {found}")
    check(not wrong, "; ".join(wrong))



@case(GROUP, V5, differs=differs(mosquitto="does not say why it closes"))
def test_a_wrong_packet_is_told_its_reason(broker, version):
    """5.0, 4.13.1: a DISCONNECT with the reason precedes the close."""
    silent = []
    for data, reasons, what in wrong_packets(version):
        with Device(broker, version, fresh("c")) as bad:
            bad.send(data)
            if bad.end_reason() not in reasons:
                silent.append(what)
    check(not silent, f"closed without the right reason: {silent}")


@case(GROUP, *BOTH)
def test_garbage_ends_with_its_sender(broker, version):
    """Fifty clients send random bytes after CONNECT; a pair of clients is not affected."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as receiver, Device(broker, version, fresh("c")) as sender:
        receiver.subscribed((topic, 1))
        for seed in range(50):
            noise = bytes((seed * 131 + n * 197 + n * n) % 256 for n in range(3000))
            # The first bytes are an invalid packet type. Otherwise the server could wait for the rest of a long
            # packet.
            with Device(broker, version, fresh("c")) as bad:
                try:
                    bad.send(b"\x00\x00" + noise)
                except Closed:
                    pass
                bad.until_closed()
            sender.publish(topic, b"%d" % seed, qos=1)
            check(receiver.message().payload == b"%d" % seed, "the pair lost a message")


@case(GROUP, *BOTH)
def test_packets_in_pieces_are_put_together(broker, version):
    """4.2: packets may arrive in any pieces, here byte by byte."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        device.subscribed(topic)
        data = b"".join(packets.publish(version, topic, b"%d" % n) for n in range(5))
        for byte in data:
            device.send(bytes([byte]))
        check(device.payloads(5) == [b"%d" % n for n in range(5)], "in pieces")
        device.send(data)
        check(device.payloads(5) == [b"%d" % n for n in range(5)], "at once")


@case(GROUP, V5)
def test_a_packet_above_the_servers_maximum_is_refused(broker, version):
    """MQTT-3.2.2-15: the server announces its maximum, and refuses larger packets with 0x95."""
    with Device(broker, version, fresh("c")) as device:
        most = device.connack.property("maximum_packet")
        if most is None or most > 16 << 20:
            return
        device.send(b"\x30" + packets.variable(most) + packets.text("a"))
        check(device.end_reason() in (TOO_LARGE, MALFORMED), "another reason")


def websocket(broker) -> Peer:
    """Opens a WebSocket connection for MQTT."""
    peer = Peer(broker.websocket_port)
    peer.send(
        f"GET {broker.kind.websocket_path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Protocol: mqtt\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += peer.take(1)
    check(b" 101 " in head, f"answered with {head!r}")
    return peer


@case(GROUP, *BOTH, differs=differs(nats="takes text as well", mosquitto="never answers text, nor a packet in pieces"))
def test_text_frames_end_their_connection(broker, version):
    """MQTT-6.0.0-1. Binary frames may be split anywhere (MQTT-6.0.0-2)."""
    connect = packets.connect(version, fresh("c"))

    def frame(opcode: int, data: bytes) -> bytes:
        # The mask is zero.
        return bytes([0x80 | opcode, 0x80 | len(data), 0, 0, 0, 0]) + data

    with websocket(broker) as page:
        page.send(b"".join(frame(2, connect[at : at + 1]) for at in range(len(connect))))
        head = page.take(2)
        equal((head[0], page.take(head[1])[0]), (0x82, 0x20), "a CONNACK in a binary frame")
    with websocket(broker) as page:
        page.send(frame(1, connect))
        found = b""
        try:
            while True:
                found += page.take(1)
        except Closed:
            check(not found or found[0] == 0x88, f"answered with {found!r}")
