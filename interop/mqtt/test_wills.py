"""Wills are sent when, and only when, they must be."""

from harness.checks import check, equal
from mqtt import packets
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, fresh, kept, two_seconds_pass
from mqtt.packets import V5, Will

GROUP = "wills"

WITH_WILL = 0x04


class Watcher(Device):
    """A subscriber of wills. Its own message after an event shows whether a will was sent before."""

    def __init__(self, broker, version):
        super().__init__(broker, version, fresh("c"))
        self.broker, self.topic = broker, fresh("will")
        self.subscribed((self.topic, 2))

    def device(self, will: dict | None = None, client_id=None, **options) -> Device:
        will = Will(self.topic, **(will or {}))
        return Device(self.broker, self.version, client_id or fresh("c"), will=will, **options)

    def hears(self, payload=b"gone"):
        found = self.message()
        equal(found.payload, payload, "the will")
        return found

    def hears_nothing(self):
        """Checks that no will was sent: that of a connection which is reset afterwards arrives first."""
        self.device({"payload": b"nothing"}).reset()
        self.hears(b"nothing")


@case(GROUP, *BOTH)
def test_one_who_takes_leave_has_none(broker, version):
    """MQTT-3.14.4-3, 3.1.2-10."""
    with Watcher(broker, version) as watcher:
        watcher.device().leave()
        watcher.hears_nothing()


@case(GROUP, *BOTH)
def test_one_who_is_gone_has_one(broker, version):
    """MQTT-3.1.2-7, -8: the connection is closed or reset without DISCONNECT."""
    with Watcher(broker, version) as watcher:
        watcher.device().close()
        watcher.hears()
        watcher.device().reset()
        watcher.hears()
        watcher.hears_nothing()


@case(GROUP, *BOTH)
def test_one_who_falls_silent_has_one(broker, version):
    """MQTT-3.1.2-22, 3.1.2-8."""
    with Watcher(broker, version) as watcher:
        with watcher.device(keep_alive=1) as device:
            device.until_end()
            watcher.hears()
        watcher.hears_nothing()


@case(GROUP, *BOTH, differs=differs(mosquitto="sends none"))
def test_one_who_breaks_the_protocol_has_one(broker, version):
    """MQTT-3.1.2-8: the server closes the connection because of an error."""
    with Watcher(broker, version) as watcher:
        with watcher.device() as device:
            device.send(packets.packet(0x36, packets.text("a"), packets.two(1)))
            device.until_end()
            watcher.hears()
        with watcher.device() as device:
            device.send(packets.connect(version, device.client_id))
            device.until_end()
            watcher.hears()
        watcher.hears_nothing()


@case(GROUP, *BOTH, differs=differs(nats="sends none", mosquitto="sends none in 3.1.1"))
def test_one_whose_id_is_taken_over_has_one(broker, version):
    """MQTT-3.1.4-3: the server closes the connection that is taken over."""
    client_id = fresh("c")
    with Watcher(broker, version) as watcher:
        old = watcher.device(client_id=client_id)
        new = Device(broker, version, client_id)
        old.until_end()
        watcher.hears()
        new.leave()
        watcher.hears_nothing()
        old.close()


@case(GROUP, *BOTH)
def test_one_who_was_refused_has_none(broker, version):
    """3.1.2.5: the will is stored only if the CONNECT is accepted."""
    from mqtt.device import Unconnected

    with Watcher(broker, version) as watcher:
        with Unconnected(broker, version) as stranger:
            stranger.send(packets.connect(version, fresh("c"), will=Will(watcher.topic), flags=0x01))
            stranger.until_end()
        watcher.hears_nothing()


@case(GROUP, *BOTH)
def test_one_without_the_flag_has_none(broker, version):
    """3.1.1 MQTT-3.1.2-12."""
    with Watcher(broker, version) as watcher:
        client_id = fresh("c")
        watcher.device(client_id=client_id).leave()
        Device(broker, version, client_id).close()
        watcher.hears_nothing()


@case(GROUP, *BOTH)
def test_it_has_its_qos_and_payload(broker, version):
    """3.1.2.6, 3.1.3.4. The will is published once."""
    with Watcher(broker, version) as watcher:
        for qos in range(3):
            payload = bytes(range(256)) * qos
            watcher.device({"qos": qos, "payload": payload}).reset()
            equal(watcher.hears(payload).qos, qos, "QoS")
        watcher.hears_nothing()


@case(GROUP, *BOTH)
def test_it_is_retained_if_it_says_so(broker, version):
    """MQTT-3.1.2-14, -15 (3.1.1: 3.1.2-16, -17)."""
    with Watcher(broker, version) as watcher:
        watcher.device({"payload": b"not kept", "qos": 1}).reset()
        watcher.hears(b"not kept")
        with Device(broker, version, fresh("c")) as later:
            later.subscribed((watcher.topic, 1))
            watcher.hears_nothing()
            equal(later.message().payload, b"nothing", "what comes later")
        watcher.device({"payload": b"kept", "retain": True, "qos": 1}).reset()
        equal(watcher.hears(b"kept").retain, False, "RETAIN where it comes at once")
        with Device(broker, version, fresh("c")) as later:
            later.subscribed((watcher.topic, 1))
            found = later.message()
            equal((found.payload, found.retain), (b"kept", True), "retained")


@case(GROUP, *BOTH)
def test_it_waits_for_those_who_are_away(broker, version):
    """4.5: absent clients receive a will like any other message."""
    client_id = fresh("c")
    with Watcher(broker, version) as watcher:
        away = Device(broker, version, client_id, **kept(version))
        away.subscribed((watcher.topic, 1))
        away.leave()
        watcher.device({"qos": 1}).reset()
        watcher.hears()
        with Device(broker, version, client_id, **kept(version)) as back:
            equal(back.message().payload, b"gone", "the will")


@case(GROUP, V5, differs=differs(mosquitto="sends it with 0x04 alone"))
def test_a_reason_of_its_own_asks_for_it(broker, version):
    """5.0, 3.14.2.1: after a DISCONNECT with reason 0x04 or any other reason except 0, the will is sent."""
    with Watcher(broker, version) as watcher:
        watcher.device().leave(WITH_WILL)
        watcher.hears()
        watcher.device().leave(0x82)
        watcher.hears()
        watcher.hears_nothing()


@case(GROUP, V5)
def test_its_properties_come_with_it(broker, version):
    """MQTT-3.1.3-10. The delay is not part of the message."""
    with Watcher(broker, version) as watcher:
        sent = {"content_type": "text/x", "response_topic": "r", "correlation_data": b"\0\1", "payload_format": 1}
        pairs = [*sent.items(), ("user", ("b", "1")), ("user", ("a", "2")), ("user", ("b", "3")), ("message_expiry", 500)]
        watcher.device({"properties": pairs}).reset()
        found = watcher.hears()
        equal({name: found.property(name) for name in sent}, sent, "properties")
        equal(found.all("user"), [("b", "1"), ("a", "2"), ("b", "3")], "user properties")
        check(0 < found.property("message_expiry") <= 500, "no expiry")


@case(GROUP, V5, differs=differs(mosquitto="waits longer than the session lasts"))
def test_it_waits_as_long_as_it_says(broker, version):
    """MQTT-3.1.2-8: the will is sent after its delay, or when the session ends, whichever is first."""
    with Watcher(broker, version) as watcher:
        watcher.device({"properties": {"will_delay": 2}}, **kept(version)).reset()
        watcher.hears_nothing()
        watcher.hears()
        # The session ends with the connection, and then the will is sent without delay.
        watcher.device({"properties": {"will_delay": 1000}}).reset()
        watcher.hears()
        watcher.device({"properties": {"will_delay": 1000}}, clean=False, properties_={"session_expiry": 1}).reset()
        watcher.hears()


@case(GROUP, V5)
def test_one_who_comes_back_in_time_has_none(broker, version):
    """MQTT-3.1.3-9."""
    client_id = fresh("c")
    with Watcher(broker, version) as watcher:
        watcher.device({"properties": {"will_delay": 2}}, client_id=client_id, **kept(version)).reset()
        back = Device(broker, version, client_id, **kept(version))
        equal(back.connack.session_present, 1, "session present")
        two_seconds_pass(broker, version)
        watcher.hears_nothing()
        back.leave()


@case(GROUP, V5, differs=differs(mosquitto="sends none"))
def test_a_session_that_is_thrown_away_has_its_will_sent(broker, version):
    """5.0, 3.1.2.5: a clean start ends the session, so the will is sent without delay."""
    client_id = fresh("c")
    with Watcher(broker, version) as watcher:
        watcher.device({"properties": {"will_delay": 1000}}, client_id=client_id, **kept(version)).reset()
        watcher.hears_nothing()
        new = Device(broker, version, client_id)
        equal(new.connack.session_present, 0, "session present")
        watcher.hears()
        new.leave()


@case(GROUP, V5)
def test_a_will_goes_to_others_of_its_own_session_rules(broker, version):
    """MQTT-3.8.3-3: the publisher of a will is its own client, so No Local applies to that client."""
    client_id, topic = fresh("c"), fresh("t")
    device = Device(broker, version, client_id, will=Will(topic, qos=1), **kept(version))
    device.subscribed((topic, 0x04 | 1))
    device.reset()
    with Watcher(broker, version) as watcher:
        back = Device(broker, version, client_id, **kept(version))
        watcher.publish(topic, b"another's", qos=1)
        equal(back.message().payload, b"another's", "the first message")
        back.leave(0, session_expiry=0)


def takes_leave(device):
    device.leave()


def takes_leave_with_will(device):
    device.leave(WITH_WILL)


def is_closed(device):
    device.close()


def is_reset(device):
    device.reset()


def falls_silent(device):
    device.until_end()


def is_malformed(device):
    device.send(packets.packet(0x36, packets.text("a"), packets.two(1)))
    device.until_end()


def asks_twice(device):
    device.send(packets.connect(device.version, device.client_id))
    device.until_end()


def sends_too_much(device):
    device.send(b"\x30\xff\xff\xff\x7f")
    device.until_end()


def is_taken_over(device):
    Device(device.broker, device.version, device.client_id, **device.options).leave()
    device.until_end()


# Ways to end a connection, each with two flags: whether a will without a delay is sent, and whether a will with a
# delay is sent if the session continues.
ENDS = (
    (takes_leave, (False, False)),
    (takes_leave_with_will, (True, True)),
    (is_closed, (True, True)),
    (is_reset, (True, True)),
    (falls_silent, (True, True)),
    (is_malformed, (True, True)),
    (asks_twice, (True, True)),
    (sends_too_much, (True, True)),
    # The client reconnects before the delay is over.
    (is_taken_over, (True, False)),
)


@case(GROUP, *BOTH, differs=differs(nats="sends none for two of them", mosquitto="sends none for some of them"))
def test_every_end_has_one_or_none(broker, version):
    """MQTT-3.1.2-8, -10, 3.1.3-9, 3.14.4-3, for sessions that end with their connection and for persistent ones."""
    for keeps in (False, True):
        for end, (at_once, delayed) in ENDS:
            if version == 4 and end is takes_leave_with_will:
                continue
            for delay in (0, 1) if version == V5 and keeps else (0,):
                with Watcher(broker, version) as watcher:
                    options = kept(version) if keeps else {}
                    will = {"qos": 1} | ({"properties": {"will_delay": delay}} if delay else {})
                    alive = {"keep_alive": 1} if end is falls_silent else {}
                    device = watcher.device(will, **options, **alive)
                    device.broker, device.options = broker, options
                    end(device)
                    what = f"{end.__name__}, kept {keeps}, delay {delay}"
                    if delayed if delay else at_once:
                        equal(watcher.message().payload, b"gone", what)
                    elif delay:
                        two_seconds_pass(broker, version)
                    watcher.hears_nothing()
                    device.close()
