"""PUBLISH and its acknowledgements, in both directions."""

from harness.checks import check, equal
from mqtt import packets
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, fresh, kept
from mqtt.packets import PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, V5

GROUP = "publishing"


@case(GROUP, *BOTH)
def test_a_message_comes_with_the_lower_qos(broker, version):
    """MQTT-3.8.4-8 (3.1.1: 3.8.4-6), 3.8.4-7, 4.3.1-1. The payload is unchanged."""
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as receiver:
        for granted in range(3):
            topic = fresh("t")
            equal(receiver.subscribe((topic, granted)), [granted], "granted")
            for published in range(3):
                payload = bytes(range(256)) * published
                sender.publish(topic, payload, qos=published)
                found = receiver.message()
                wanted = (topic, min(granted, published), False, False)
                equal((found.topic, found.qos, found.dup, found.retain), wanted, f"QoS {published} at {granted}")
                equal(found.payload, payload, "payload")


@case(GROUP, *BOTH)
def test_each_is_acknowledged_with_its_identifier(broker, version):
    """MQTT-2.2.1-5 (3.1.1: 2.3.1-6), 3.3.4-1, 4.3.2-4, 4.3.3-8, -11."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        for number in (1, 7, 255, 256, 65_535):
            device.send(packets.publish(version, topic, b"1", qos=1, packet_id=number))
            equal(device.expect(PUBACK).packet_id, number, "PUBACK")
            device.send(packets.publish(version, topic, b"2", qos=2, packet_id=number))
            equal(device.expect(PUBREC).packet_id, number, "PUBREC")
            device.send(packets.answer(PUBREL, number))
            equal(device.expect(PUBCOMP).packet_id, number, "PUBCOMP")
            equal(listener.payloads(2), [b"1", b"2"], "messages")


@case(GROUP, *BOTH)
def test_many_in_flight_are_acknowledged_in_their_order(broker, version):
    """4.6: PUBACKs, PUBRECs, and PUBCOMPs have the order of the packets that they acknowledge."""
    topic = fresh("t")
    # The most messages in flight that all tested servers allow.
    numbers = list(range(1, 21))
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 0))
        device.send(b"".join(packets.publish(version, topic, b"%d" % n, qos=1, packet_id=n) for n in numbers))
        equal([device.expect(PUBACK).packet_id for _ in numbers], numbers, "PUBACKs")
        device.send(b"".join(packets.publish(version, topic, b"%d" % n, qos=2, packet_id=n) for n in numbers))
        equal([device.expect(PUBREC).packet_id for _ in numbers], numbers, "PUBRECs")
        device.send(b"".join(packets.answer(PUBREL, n) for n in numbers))
        equal([device.expect(PUBCOMP).packet_id for _ in numbers], numbers, "PUBCOMPs")
        wanted = [b"%d" % n for n in numbers]
        equal(listener.payloads(40), wanted + wanted, "messages")


@case(GROUP, *BOTH)
def test_an_identifier_is_free_after_its_puback(broker, version):
    """MQTT-4.3.2-5 (3.1.1: 4.3.2-2): a PUBLISH with the same identifier is a new message, also with DUP."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 1))
        for dup in (False, True, True):
            device.send(packets.publish(version, topic, b"x", qos=1, packet_id=9, dup=dup))
            equal(device.expect(PUBACK).packet_id, 9, "PUBACK")
        device.publish(topic, b"last", qos=1)
        equal(listener.payloads(4), [b"x", b"x", b"x", b"last"], "messages")


@case(GROUP, *BOTH, differs=differs(mosquitto="ends the connection, told 0x82"))
def test_a_repeated_qos_2_message_comes_once(broker, version):
    """MQTT-4.3.3-10, -12 (3.1.1: 4.3.3-2)."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        for dup in (False, True, True):
            device.send(packets.publish(version, topic, b"once", qos=2, packet_id=9, dup=dup))
            found = device.expect(PUBREC)
            equal((found.packet_id, found.code), (9, 0), "PUBREC")
        device.send(packets.answer(PUBREL, 9))
        equal(device.expect(PUBCOMP).packet_id, 9, "PUBCOMP")
        # The identifier is free again.
        device.send(packets.publish(version, topic, b"again", qos=2, packet_id=9))
        device.expect(PUBREC)
        device.send(packets.answer(PUBREL, 9))
        device.expect(PUBCOMP)
        equal(listener.payloads(2), [b"once", b"again"], "messages")
        device.publish(topic, b"last", qos=2)
        equal(listener.payloads(1), [b"last"], "the next message")


@case(GROUP, *BOTH)
def test_a_pubrel_of_nothing_is_answered(broker, version):
    """MQTT-4.3.3-11. In 5.0 the reason may be 0x92 (packet identifier not found)."""
    with Device(broker, version, fresh("c")) as device:
        device.send(packets.answer(PUBREL, 77))
        found = device.expect(PUBCOMP)
        equal(found.packet_id, 77, "PUBCOMP")
        check(found.code in (0, 0x92), f"reason {found.code:#x}")
        device.ping()


@case(GROUP, *BOTH)
def test_dup_is_not_passed_on(broker, version):
    """MQTT-3.3.1-3."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        for qos, answer in ((1, PUBACK), (2, PUBREC)):
            device.send(packets.publish(version, topic, b"x", qos=qos, packet_id=3, dup=True))
            device.expect(answer)
            if qos == 2:
                device.send(packets.answer(PUBREL, 3))
                device.expect(PUBCOMP)
            found = listener.message()
            equal((found.qos, found.dup), (qos, False), "as it comes")


@case(GROUP, *BOTH)
def test_messages_of_a_client_stay_in_order(broker, version):
    """MQTT-4.6.0-5, -6."""
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        for qos in range(3):
            topic = fresh("t")
            listener.subscribed((topic, qos))
            for number in range(300):
                device.publish(topic, b"%d" % number, qos=qos)
            equal(listener.payloads(300), [b"%d" % number for number in range(300)], f"QoS {qos}")


@case(GROUP, *BOTH)
def test_what_is_under_way_has_identifiers_of_its_own(broker, version):
    """MQTT-2.2.1-4 (3.1.1: 2.3.1-4), 4.3.2-1 to -3, 4.3.3-1 to -3: identifiers are unique and not 0, and no
    message is sent twice."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        device.publish_numbers(topic, 15, 1, 2)
        found = [listener.message(acknowledges=False) for _ in range(15)]
        equal([packet.payload for packet in found], [b"%d" % n for n in range(15)], "messages")
        check(len({packet.packet_id for packet in found} | {0}) == 16, "an identifier twice, or 0")
        check(not any(packet.dup for packet in found), "DUP of a first delivery")
        listener.ping()
        for packet in found:
            listener.acknowledge(packet)
        device.publish(topic, b"last", qos=1)
        equal(listener.message().payload, b"last", "the next one")


@case(GROUP, *BOTH)
def test_pubrel_follows_pubrec_once_and_nothing_more(broker, version):
    """MQTT-4.3.3-4 to -6 (3.1.1: 4.3.3-1), for messages that the server sends."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        device.publish(topic, b"x", qos=2)
        found = listener.expect(PUBLISH)
        listener.send(packets.answer(PUBREC, found.packet_id))
        released = listener.expect(PUBREL)
        equal((released.packet_id, released.flags), (found.packet_id, 2), "PUBREL")
        listener.ping()
        listener.send(packets.answer(PUBCOMP, found.packet_id))
        listener.ping()


@case(GROUP, *BOTH)
def test_large_payloads_arrive(broker, version):
    """Payload sizes at the limits of length fields with 1, 2, and 3 bytes, and sizes above all buffers."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 1))
        for size in (0, 1, 110, 127, 128, 129, 16_370, 16_383, 16_384, 65_536, 300_000, 1_000_000):
            payload = bytes(n * 31 & 255 for n in range(size))
            for qos in (0, 1):
                device.publish(topic, payload, qos=qos)
                check(listener.message().payload == payload, f"{size} bytes with QoS {qos}")


@case(GROUP, *BOTH)
def test_several_clients_get_each_message(broker, version):
    """MQTT-4.5.0-1."""
    topic = fresh("t")
    listeners = [Device(broker, version, fresh("c")) for _ in range(30)]
    with Device(broker, version, fresh("c")) as device:
        for number, listener in enumerate(listeners):
            listener.subscribed((topic, number % 3))
        for number in range(20):
            device.publish(topic, b"%d" % number, qos=number % 3)
        for listener in listeners:
            # The order of messages with different QoS is not defined.
            equal(sorted(listener.payloads(20), key=int), [b"%d" % n for n in range(20)], "messages")
            listener.close()


@case(GROUP, V5)
def test_properties_arrive_as_they_were(broker, version):
    """MQTT-3.3.2-4, -15, -16, -17, -18, -20."""
    topic = fresh("t")
    users = [("b", "2"), ("a", "1"), ("b", "2"), ("", "empty"), ("a", ""), ("naïve", "Zoë: ☃")]
    sent = {
        "payload_format": 1, "content_type": "text/plain", "response_topic": "reply/to/me",
        "correlation_data": bytes(range(256)),
    }
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        for qos in range(3):
            pairs = [*sent.items(), *(("user", user) for user in users)]
            number = 40 + qos
            device.send(packets.publish(version, topic, b"x", qos=qos, packet_id=number, properties_=pairs))
            if qos == 1:
                device.expect(PUBACK)
            elif qos == 2:
                device.expect(PUBREC)
                device.send(packets.answer(PUBREL, number))
                device.expect(PUBCOMP)
            found = listener.message()
            equal({name: found.property(name) for name in sent}, sent, f"properties with QoS {qos}")
            equal(found.all("user"), users, f"user properties with QoS {qos}")


@case(GROUP, V5, differs=differs(mosquitto="closes for control characters, as it may"))
def test_odd_properties_arrive_as_they_were(broker, version):
    """MQTT-3.3.2-15, -20: properties that cannot be part of a subject or header."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        for response, content in (("reply to/me", "a: b"), (" /x ", " text "), ("a\r\nb", "c\r\nd"), ("*/>/b", "")):
            for qos in range(3):
                device.publish(topic, b"x", qos=qos, response_topic=response, content_type=content)
                found = listener.message()
                told = found.property("response_topic"), found.property("content_type")
                equal(told, (response, content), f"with QoS {qos}")


@case(GROUP, V5)
def test_expiry_counts_down(broker, version):
    """MQTT-3.3.2-5, -6."""
    client_id, topic = fresh("c"), fresh("t")
    away = Device(broker, version, client_id, **kept(version))
    away.subscribed((topic, 1))
    away.leave(session_expiry=3600)
    with Device(broker, version, fresh("c")) as device:
        device.publish(topic, b"short", qos=1, message_expiry=1)
        device.publish(topic, b"long", qos=1, message_expiry=1000)
        device.publish(topic, b"for good", qos=1)
        # A keep-alive timeout is the only way to wait for the server's clock.
        wait_for_keep_alives(broker, version, 2)
    back = Device(broker, version, client_id, **kept(version))
    found = [back.message(), back.message()]
    equal([packet.payload for packet in found], [b"long", b"for good"], "what is left")
    check(900 <= found[0].property("message_expiry") < 1000, f"{found[0].property('message_expiry')} s are left")
    equal(found[1].property("message_expiry"), None, "expiry of what has none")
    back.leave(session_expiry=0)


def wait_for_keep_alives(broker, version, count: int):
    """Waits for `count` keep-alive timeouts of one and a half seconds each."""
    for _ in range(count):
        with Device(broker, version, fresh("c"), keep_alive=1) as device:
            device.until_end()


@case(GROUP, V5)
def test_an_alias_stands_for_its_topic(broker, version):
    """MQTT-3.3.2-7, -9, -12: aliases up to the server's maximum, for one connection."""
    one, other = fresh("t"), fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as listener:
        most = device.connack.property("alias_maximum", 0)
        check(most > 0, "the server takes no alias")
        listener.subscribed(one, other)
        for alias in {1, most}:
            device.publish(one, b"1", alias=alias)
            device.publish("", b"2", alias=alias)
            device.publish(other, b"3", alias=alias)
            device.publish("", b"4", alias=alias)
            found = [listener.message() for _ in range(4)]
            wanted = [(one, b"1"), (one, b"2"), (other, b"3"), (other, b"4")]
            equal([(packet.topic, packet.payload) for packet in found], wanted, f"alias {alias}")
    with Device(broker, version, fresh("c")) as device:
        device.publish("", b"of another connection", alias=1)
        check(device.end_reason() in (0x82, 0x94), "an alias that was not set")
    if most < 65_535:
        with Device(broker, version, fresh("c")) as device:
            device.publish(fresh("t"), b"", alias=most + 1)
            equal(device.end_reason(), 0x94, "an alias above the maximum")


@case(GROUP, V5)
def test_the_server_uses_no_alias_unless_it_may(broker, version):
    """MQTT-3.1.2-26, -27, 3.3.2-11."""
    topics = [fresh("t") for _ in range(5)]
    with Device(broker, version, fresh("c")) as device:
        for most in (None, 0, 2):
            options = {} if most is None else {"properties_": {"alias_maximum": most}}
            with Device(broker, version, fresh("c"), **options) as listener:
                listener.subscribed(*topics)
                known = {}
                for topic in topics * 2:
                    device.publish(topic, topic.encode())
                    found = listener.message()
                    alias = found.property("alias")
                    check(alias is None or 0 < alias <= (most or 0), f"alias {alias} of {most}")
                    if alias and found.topic:
                        known[alias] = found.topic
                    equal((found.topic or known.get(alias)).encode(), found.payload, "topic")


@case(GROUP, V5)
def test_no_more_than_the_receive_maximum_is_under_way(broker, version):
    """MQTT-3.3.4-9, -10, 4.9.0-1 to -3."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        with Device(broker, version, fresh("c"), properties_={"receive_maximum": 3}) as listener:
            listener.subscribed((topic, 2))
            device.publish_numbers(topic, 12, 1, 2)
            waiting = [listener.message(acknowledges=False) for _ in range(3)]
            # No further message may arrive, but other packets are still handled.
            listener.ping()
            listener.publish(topic + "/else", b"", qos=1)
            listener.ping()
            got = []
            while waiting:
                first = waiting.pop(0)
                got.append(first.payload)
                listener.acknowledge(first)
                if len(got) + len(waiting) < 12:
                    waiting.append(listener.message(acknowledges=False))
            equal(got, [b"%d" % number for number in range(12)], "messages")


@case(GROUP, V5, differs=differs(mosquitto="closes without a word"))
def test_more_than_the_servers_receive_maximum_ends_the_connection(broker, version):
    """3.3.4: a client with more messages in flight than the receive maximum receives 0x93."""
    with Device(broker, version, fresh("c")) as device:
        most = device.connack.property("receive_maximum", 65_535)
        if most > 5000:
            return
        for number in range(1, most + 2):
            device.send(packets.publish(version, "a", b"", qos=2, packet_id=number))
        equal(device.end_reason(), 0x93, "reason")


@case(GROUP, V5, differs=differs(mosquitto="counts it as under way for ever"))
def test_what_is_larger_than_a_client_takes_is_left_out(broker, version):
    """MQTT-3.1.2-24, -25."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        limits = {"maximum_packet": 200, "receive_maximum": 1}
        with Device(broker, version, fresh("c"), properties_=limits) as listener:
            listener.subscribed((topic, 2))
            for qos in (0, 1, 2):
                device.publish(topic, b"x" * 300, qos=qos)
                device.publish(topic, b"y" * 100, qos=qos)
                # The omitted message counts as sent, so another one may be sent.
                equal(listener.message().payload, b"y" * 100, "message")


@case(GROUP, V5)
def test_nobody_may_be_told_of(broker, version):
    """5.0, 3.4.2.1: without subscribers the reason is 0x10 or 0."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        for qos in (1, 2):
            check(device.publish(topic, b"", qos=qos) in (0, 0x10), "another reason")
        device.subscribed(topic)
        equal(device.publish(topic, b"x", qos=1), 0, "reason with a subscription")
        equal(device.message().payload, b"x", "message")


@case(GROUP, V5, differs=differs(mosquitto="counts it as under way for ever"))
def test_a_refused_message_is_done_with(broker, version):
    """MQTT-4.4.0-2, 4.3.3-4: a PUBACK or PUBREC of 0x80 completes the delivery."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        with Device(broker, version, fresh("c"), properties_={"receive_maximum": 1}) as listener:
            listener.subscribed((topic, 2))
            for qos, kind in ((1, PUBACK), (2, PUBREC), (1, PUBACK)):
                device.publish(topic, b"%d" % qos, qos=qos)
                found = listener.expect(PUBLISH)
                listener.send(packets.answer(kind, found.packet_id, 0x80))
            device.publish(topic, b"last", qos=1)
            equal(listener.message().payload, b"last", "the next one")
