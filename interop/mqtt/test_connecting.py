"""CONNECT and CONNACK, keep alive, and session takeover."""

from harness.checks import check, equal
from mqtt import packets
from mqtt.brokers import MOSQUITTO, NATS
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, Unconnected, fresh, kept
from mqtt.packets import CONNACK, DISCONNECT, PINGRESP, PUBACK, PUBCOMP, PUBREL, SUBACK, UNSUBACK, V4, V5, Will

GROUP = "connecting"

UNSUPPORTED_VERSION = 0x84
SESSION_TAKEN_OVER = 0x8E
KEEP_ALIVE_TIMEOUT = 0x8D


def refused(broker, version: int, data: bytes) -> int | None:
    """Sends bytes on a new connection, which the server must close. Returns the code of its CONNACK, or None."""
    with Unconnected(broker, version) as stranger:
        stranger.send(data)
        found = stranger.until_end()
        check(len(found) <= 1 and all(packet.kind == CONNACK for packet in found), f"told {[*map(str, found)]}")
        for packet in found:
            equal(packet.session_present, 0, "session present of a refusal")
            check(packet.code, "a refusal that says 0")
        return found[0].code if found else None


@case(GROUP, *BOTH)
def test_the_first_packet_is_connack(broker, version):
    """MQTT-3.2.0-1, -2; 3.1.4-5 (3.1.1: 3.1.4-4). The PINGRESP after the CONNACK shows that there is only one
    CONNACK."""
    with Device(broker, version, fresh("c")) as device:
        equal(device.connack.session_present, 0, "session present")
        device.ping()


@case(GROUP, *BOTH)
def test_a_packet_before_connect_ends_the_connection(broker, version):
    """MQTT-3.1.0-1; a DISCONNECT may not come before a CONNACK (5.0, 3.14.0-1)."""
    for data in (packets.PINGREQ_BYTES, packets.publish(version, "a", b"b"), packets.subscribe(version, 1, [("a", 0)])):
        refused(broker, version, data)


@case(GROUP, *BOTH)
def test_a_second_connect_ends_the_connection(broker, version):
    """MQTT-3.1.0-2."""
    with Device(broker, version, fresh("c")) as device:
        device.send(packets.connect(version, device.client_id))
        reason = device.end_reason()
        check(reason is None or (version == V5 and reason == 0x82), f"told {reason}")


@case(GROUP, *BOTH)
def test_another_protocol_is_refused(broker, version):
    """MQTT-3.1.2-1."""
    told = refused(broker, version, packets.connect(version, fresh("c"), name="MQXX"))
    check(told in (None, 1, UNSUPPORTED_VERSION), f"told {told}")


@case(GROUP, *BOTH)
def test_another_level_is_refused(broker, version):
    """MQTT-3.1.2-2. In 3.1.1 the return code is required."""
    for level in (6, 99):
        told = refused(broker, version, packets.connect(version, fresh("c"), level=level))
        check(told in (1, UNSUPPORTED_VERSION), f"level {level} was told {told}")


@case(GROUP, *BOTH)
def test_flags_of_connect_that_do_not_fit_are_refused(broker, version):
    """MQTT-3.1.2-3, -11 to -13 (3.1.1: -3, -11, -13 to -15). In 3.1.1 there is no response (3.1.4-1)."""
    will = Will(fresh("t"))
    wrong = {
        "reserved bit": packets.connect(version, fresh("c"), flags=0x01),
        "will QoS without a will": packets.connect(version, fresh("c"), flags=0x08),
        "will retain without a will": packets.connect(version, fresh("c"), flags=0x20),
        "will QoS of 3": packets.connect(version, fresh("c"), will=will, flags=0x18),
    }
    for what, data in wrong.items():
        told = refused(broker, version, data)
        check(told is None or version == V5 and told in (0x81, 0x82), f"{what}: told {told}")


@case(GROUP, V4, differs=differs(mosquitto="lets it in, without looking at the password"))
def test_a_password_without_a_user_is_refused(broker, version):
    """3.1.1 MQTT-3.1.2-22."""
    equal(refused(broker, version, packets.connect(version, fresh("c"), password="secret")), None, "told")


@case(GROUP, *BOTH)
def test_a_connect_that_is_too_long_or_too_short_is_refused(broker, version):
    """MQTT-3.1.2-16 to -19 (3.1.1: -18 to -21), 3.1.3-1, -3: the flags determine which fields are present."""
    whole = packets.connect(version, fresh("c"))
    body = whole[2:]
    wrong = {
        "a user name is missing": packets.connect(version, fresh("c"), flags=0x80),
        "a will is missing": packets.connect(version, fresh("c"), flags=0x04),
        "the id is cut off": packets.packet(0x10, body[:-1]),
    }
    for what, data in wrong.items():
        told = refused(broker, version, data)
        check(told is None or version == V5 and told in (0x81, 0x82), f"{what}: told {told}")


@case(GROUP, *BOTH)
def test_text_that_is_not_utf_8_is_refused(broker, version):
    """MQTT-1.5.4-1, -2 (3.1.1: 1.5.3-1, -2), 3.1.3-4, -11, -12 (3.1.1: -4, -10, -11)."""
    for wrong in (b"\xff", b"a\xc3", b"\xed\xa0\x80"):
        body = packets.text("MQTT") + bytes([version, 2, 0, 60]) + packets.properties(version, ())
        told = refused(broker, version, packets.packet(0x10, body, packets.text(wrong)))
        check(told in (None, 0x81, 0x85, 2), f"the id {wrong}: told {told}")
        for what, data in {
            "will topic": packets.connect(version, fresh("c"), will=Will(wrong)),
            "user": packets.connect(version, fresh("c"), user=wrong, password="p"),
        }.items():
            told = refused(broker, version, data)
            # nats-server sends a return code for an invalid user name.
            allowed = (None, 4) if version == V4 else (None, 0x81, 0x82, 0x90)
            check(told in allowed, f"the {what} {wrong}: told {told}")


@case(GROUP, *BOTH)
def test_ids_that_every_server_takes(broker, version):
    """MQTT-3.1.3-5: 1 to 23 bytes of letters and digits."""
    for client_id in ("a", "Z", "0", "0123456789abcdefghijkLM", "ABCDEFGHIJKLMNOPQRSTUVW", "nopqrstuvwxyzXYZ"):
        Device(broker, version, client_id).leave()


@case(GROUP, *BOTH)
def test_an_empty_id_gets_one(broker, version):
    """MQTT-3.1.3-6, -7. In 5.0 the server sends the assigned identifier (3.2.2-16), which is unique."""
    devices = [Device(broker, version, "") for _ in range(3)]
    for device in devices:
        device.ping()
    if version == V5:
        ids = {device.connack.property("assigned_id") for device in devices}
        check(len(ids) == 3 and None not in ids, f"assigned ids: {ids}")
        # A client that connects with the assigned identifier takes the session over.
        again = Device(broker, version, devices[0].connack.property("assigned_id"))
        check_taken_over(broker, version, devices[0])
        again.close()
    for device in devices:
        device.close()


@case(GROUP, V4)
def test_an_empty_id_cannot_have_a_session(broker, version):
    """3.1.1 MQTT-3.1.3-8, 3.2.2-4, -5."""
    equal(refused(broker, version, packets.connect(version, "", clean=False)), 2, "told")


@case(GROUP, *BOTH)
def test_what_follows_a_refused_connect_is_not_looked_at(broker, version):
    """MQTT-3.1.4-6 (3.1.1: 3.1.4-5)."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as watcher:
        watcher.subscribed(topic)
        wrong = packets.connect(version, fresh("c"), flags=0x01)
        with Unconnected(broker, version) as stranger:
            stranger.send(wrong + packets.publish(version, topic, b"smuggled"))
            stranger.until_end()
        watcher.publish(topic, b"last")
        equal(watcher.message().payload, b"last", "the first message")


@case(GROUP, *BOTH)
def test_silence_ends_a_connection(broker, version):
    """MQTT-3.1.2-22 (3.1.1: -24)."""
    with Device(broker, version, fresh("c"), keep_alive=1) as device:
        found = [packet.code for packet in device.until_end()]
        check(found in ([], [KEEP_ALIVE_TIMEOUT]), f"told {found}")


@case(GROUP, *BOTH)
def test_pings_are_answered_and_keep_a_connection(broker, version):
    """MQTT-3.12.4-1. Three seconds are more than two keep-alive periods."""
    with Device(broker, version, fresh("c"), keep_alive=1) as device:
        device.socket.settimeout(0.5)
        for _ in range(6):
            device.ping()
            try:
                packet = device.packet()
            except TimeoutError:
                continue
            raise AssertionError(f"found {packet}")


def check_taken_over(broker, version, old: Device):
    """Checks that the old connection is closed with 0x8E; mosquitto 2.0 only closes it."""
    found = [packet.code for packet in old.until_end()]
    allowed = [[SESSION_TAKEN_OVER]] if version == V5 else [[]]
    if broker.kind.name == MOSQUITTO:
        allowed.append([])
    check(found in allowed, f"the old one was told {found}")


@case(GROUP, *BOTH)
def test_a_client_takes_its_id_over(broker, version):
    """MQTT-3.1.4-3 (3.1.1: 3.1.4-2)."""
    client_id = fresh("c")
    old = Device(broker, version, client_id)
    # nats-server delays clients that do this often.
    for _ in range(1 if broker.kind.name == NATS else 3):
        new = Device(broker, version, client_id)
        check_taken_over(broker, version, old)
        old.close()
        new.ping()
        old = new
    old.close()


@case(GROUP, *BOTH, differs=differs(nats="the ninth of ten is put in jail for a second, and refused"))
def test_many_with_one_id_leave_one(broker, version):
    """MQTT-3.1.4-3. Of several clients that connect at once, only the last one stays connected."""
    client_id, topic = fresh("c"), fresh("t")
    crowd = [Unconnected(broker, version) for _ in range(10)]
    for one in crowd:
        one.send(packets.connect(version, client_id))
    with Device(broker, version, fresh("c")) as watcher:
        with Device(broker, version, client_id) as last:
            for one in crowd:
                one.until_end()
                one.close()
            last.subscribed(topic)
            watcher.publish(topic, b"alone")
            equal(last.message().payload, b"alone", "message")


@case(GROUP, *BOTH)
def test_a_session_goes_on_with_the_one_who_takes_over(broker, version):
    """Of two clients with one identifier, the second takes over the subscriptions, and no message is lost."""
    client_id, topic = fresh("c"), fresh("t")
    with Device(broker, version, fresh("c")) as sender:
        old = Device(broker, version, client_id, **kept(version))
        old.subscribed((topic, 1))
        new = Device(broker, version, client_id, **kept(version))
        equal(new.connack.session_present, 1, "session present")
        old.until_end()
        sender.publish(topic, b"one", qos=1)
        equal(new.message().payload, b"one", "message")
        new.close()
        old.close()
    Device(broker, version, client_id).leave()


@case(GROUP, V5)
def test_what_the_server_can_is_told(broker, version):
    """MQTT-3.1.2-28, 3.2.2-13, -14: no Response Information unless requested. The server does not deny retained
    messages, wildcards, identifiers, and shared subscriptions, and has no invalid limits."""
    with Device(broker, version, fresh("c"), will=Will(fresh("t"), retain=True)) as device:
        told = dict(device.connack.properties)
        equal(told.get("response_information"), None, "Response Information")
        for name in ("retain_available", "wildcards_available", "identifiers_available", "shared_available"):
            equal(told.get(name, 1), 1, name)
        for name in ("receive_maximum", "maximum_packet"):
            check(told.get(name, 1) > 0, f"{name} is 0")
        equal(told.get("assigned_id"), None, "an id of its own")
        device.leave()


@case(GROUP, V5)
def test_enhanced_authentication_is_refused(broker, version):
    """MQTT-4.12.0-1."""
    data = packets.connect(version, fresh("c"), properties_={"authentication_method": "SCRAM-SHA-1"})
    check(refused(broker, version, data) in (0x8C, 0x87), "not refused with 0x8C or 0x87")


@case(GROUP, V5)
def test_an_auth_packet_that_nobody_asked_for_ends_the_connection(broker, version):
    """MQTT-4.12.0-7."""
    with Device(broker, version, fresh("c")) as device:
        device.send(packets.packet(0xF0, b"\x18\x00"))
        check(device.end_reason() in (0x82, 0x8C, None), "another reason")


@case(GROUP, V5)
def test_properties_of_connect_that_cannot_be_are_refused(broker, version):
    """5.0, 3.1.2.11: a receive maximum or a packet size of 0, a repeated property, a property of another packet."""
    for wrong in (
        [("receive_maximum", 0)], [("maximum_packet", 0)], [("session_expiry", 1), ("session_expiry", 2)],
        [("alias", 1)], b"\x7f",
    ):
        told = refused(broker, version, packets.connect(version, fresh("c"), properties_=wrong))
        check(told in (None, 0x81, 0x82), f"{wrong}: told {told}")


@case(GROUP, V5)
def test_a_password_may_come_alone(broker, version):
    """5.0, 3.1.2.9."""
    Device(broker, version, fresh("c"), password="secret").leave()


class Measured(Unconnected):
    """A connection that records the size of each received packet."""

    def packet(self):
        found = super().packet()
        self.sizes.append((found.kind, found.size))
        return found

    def __init__(self, broker, version):
        super().__init__(broker, version)
        self.sizes = []


@case(GROUP, V5, differs=differs(mosquitto="sends a CONNACK of any size"))
def test_no_packet_is_larger_than_the_client_takes(broker, version):
    """MQTT-3.1.2-24, 3.2.2-19, -20, 3.14.2-3, -4: strings are omitted, and packets that are too large are not
    sent. If the CONNACK is too large, a shorter one refuses the client, because a DISCONNECT may not be first
    (3.14.0-1)."""
    def all_of(largest: int, *sent: bytes, **properties) -> list:
        with Measured(broker, version) as device:
            properties |= {"maximum_packet": largest}
            device.send(b"".join([packets.connect(version, fresh("c"), properties_=properties), *sent]))
            device.until_end()
            check(all(size <= largest for _, size in device.sizes), f"of {largest}: {device.sizes}")
            return [kind for kind, _ in device.sizes]

    twice = packets.connect(version, "c")
    many = packets.subscribe(version, 1, [(f"{fresh('t')}", 0) for _ in range(100)])
    for largest in (*range(1, 60), 100):
        # Three cases: a refusal with a reason string, a DISCONNECT with one, and a long SUBACK.
        refusal = all_of(largest, authentication_method="x")
        equal(refusal, [CONNACK] if largest >= 5 else [], f"a refusal of {largest}")
        ended = all_of(largest, twice)
        check(ended in ([CONNACK, DISCONNECT], [CONNACK], []), f"the end of {largest}: {ended}")
        check(SUBACK not in all_of(largest, many), f"an answer of {largest}")
    equal(all_of(200, many, packets.DISCONNECT_BYTES), [CONNACK, SUBACK], "what fits")


@case(GROUP, V5)
def test_who_wants_no_reasons_gets_none(broker, version):
    """MQTT-3.1.2-29: reason strings and user properties only in PUBLISH, CONNACK, and DISCONNECT."""
    with Device(broker, version, fresh("c"), properties_={"request_problem": 0}) as device:
        device.send(packets.subscribe(version, 1, [("a/#/b", 0), ("$share//x", 0)][:1]))
        answers = [device.packet()]
        if answers[0].kind == DISCONNECT:
            return
        device.send(packets.unsubscribe(version, 2, ["nothing"]))
        device.send(packets.publish(version, fresh("nobody"), b"", qos=1, packet_id=3))
        device.send(packets.answer(PUBREL, 4))
        device.send(packets.PINGREQ_BYTES)
        answers += [device.packet() for _ in range(4)]
        kinds = {packet.kind for packet in answers}
        equal(kinds, {SUBACK, UNSUBACK, PUBACK, PUBCOMP, PINGRESP}, "answers")
        for packet in answers:
            names = {name for name, _ in packet.properties}
            check(not names & {"reason_string", "user"}, f"{packet} has {names}")
