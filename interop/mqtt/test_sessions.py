"""State that a server stores for an absent client."""

from harness.checks import check, equal
from mqtt import packets
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, fresh, kept, two_seconds_pass
from mqtt.packets import PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, V4, V5

GROUP = "sessions"


def begin(broker, version, *filters, client_id="") -> str:
    """Creates a session with these subscriptions and disconnects. Returns its client identifier."""
    client_id = client_id or fresh("c")
    with Device(broker, version, client_id, **kept(version)) as device:
        equal(device.connack.session_present, 0, "session present of a new one")
        device.subscribed(*filters)
        device.leave()
    return client_id


def resume(broker, version, client_id) -> Device:
    device = Device(broker, version, client_id, **kept(version))
    equal(device.connack.session_present, 1, "session present")
    return device


def nothing_waits(broker, version, client_id):
    with resume(broker, version, client_id) as device:
        device.ping()


@case(GROUP, *BOTH)
def test_messages_wait_for_a_client_who_is_away(broker, version):
    """MQTT-3.1.2-5, -23, 4.5.0-1 (3.1.1: 3.1.2-4, -5): messages arrive in order, with their QoS."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 100, 1, 2)
        with resume(broker, version, client_id) as device:
            found = [device.message() for _ in range(100)]
            equal([packet.payload for packet in found], [b"%d" % n for n in range(100)], "messages")
            equal([packet.qos for packet in found], [1 + n % 2 for n in range(100)], "QoS")
            check(not any(packet.dup for packet in found), "DUP of a first delivery")
            # The subscriptions are still active.
            sender.publish(topic, b"now", qos=1)
            equal(device.message().payload, b"now", "message")
            device.leave()
    nothing_waits(broker, version, client_id)


@case(GROUP, *BOTH)
def test_a_clean_start_forgets(broker, version):
    """MQTT-3.1.2-4, 3.2.2-2 (3.1.1: 3.1.2-6, 3.2.2-1), 4.1.0-2."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 1))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"before", qos=1)
        with Device(broker, version, client_id) as device:
            equal(device.connack.session_present, 0, "session present")
            device.subscribed((topic + "/other", 1))
            sender.publish(topic, b"nobody's", qos=1)
            sender.publish(topic + "/other", b"mine", qos=1)
            equal(device.message().payload, b"mine", "the first message")
            device.leave()
    # The second session ended with its connection.
    with Device(broker, version, client_id, **kept(version)) as device:
        equal(device.connack.session_present, 0, "session present of the next one")
        device.leave(**({"session_expiry": 0} if version == V5 else {}))


LATE = differs(nats="sends it again when ack_wait has passed")


@case(GROUP, *BOTH, differs=LATE)
def test_what_was_not_acknowledged_comes_again(broker, version):
    """MQTT-4.4.0-1, 3.3.1-1, 4.6: messages are sent again with the same identifiers, in the same order, with DUP."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 10, 1, 2)
    device = resume(broker, version, client_id)
    first = [device.expect(PUBLISH) for _ in range(10)]
    # The first message is complete, the others are not.
    device.acknowledge(first[0])
    device.ping()
    device.reset()
    with resume(broker, version, client_id) as device:
        again = [device.message(acknowledges=False) for _ in range(9)]
        wanted = [(packet.packet_id, packet.payload, packet.qos, True) for packet in first[1:]]
        found = [(packet.packet_id, packet.payload, packet.qos, packet.dup) for packet in again]
        equal(found, wanted, "again")
        for packet in again:
            device.acknowledge(packet)
        device.ping()
        device.leave()
    nothing_waits(broker, version, client_id)


@case(GROUP, *BOTH)
def test_a_completed_message_does_not_come_again(broker, version):
    """4.3.3: after PUBCOMP, and the response to a later PING, neither the message nor its PUBREL is sent again."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"x", qos=2)
        device = resume(broker, version, client_id)
        device.message()
        device.ping()
        device.reset()
        sender.publish(topic, b"y", qos=2)
    with resume(broker, version, client_id) as device:
        equal(device.message().payload, b"y", "the first message")
        device.leave()


@case(GROUP, *BOTH, differs=LATE)
def test_a_pubrel_that_was_not_completed_comes_again(broker, version):
    """MQTT-4.4.0-1, 4.3.3-5, -6: the PUBREL is sent again with its identifier, and the message is not."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"x", qos=2)
    device = resume(broker, version, client_id)
    found = device.expect(PUBLISH)
    device.send(packets.answer(PUBREC, found.packet_id))
    equal(device.expect(PUBREL).packet_id, found.packet_id, "PUBREL")
    device.reset()
    with resume(broker, version, client_id) as device:
        equal(device.expect(PUBREL).packet_id, found.packet_id, "PUBREL again")
        device.send(packets.answer(PUBCOMP, found.packet_id))
        device.ping()
        device.leave()
    nothing_waits(broker, version, client_id)


@case(GROUP, *BOTH)
def test_a_message_that_was_received_is_released_later(broker, version):
    """MQTT-4.3.3-10, -11: the client sends PUBLISH again on a second connection, and PUBREL on a third one."""
    topic, client_id = fresh("t"), fresh("c")
    with Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        device = Device(broker, version, client_id, **kept(version))
        device.send(packets.publish(version, topic, b"once", qos=2, packet_id=77))
        device.expect(PUBREC)
        device.reset()
        device = resume(broker, version, client_id)
        device.send(packets.publish(version, topic, b"once", qos=2, packet_id=77, dup=True))
        equal(device.expect(PUBREC).packet_id, 77, "PUBREC")
        device.reset()
        device = resume(broker, version, client_id)
        device.send(packets.answer(PUBREL, 77))
        equal(device.expect(PUBCOMP).packet_id, 77, "PUBCOMP")
        device.publish(topic, b"last", qos=2)
        equal(listener.payloads(2), [b"once", b"last"], "messages")
        device.leave()


@case(GROUP, *BOTH)
def test_a_puback_that_got_lost_is_sent_again(broker, version):
    """MQTT-4.3.2-4: the client did not receive the PUBACK and publishes again."""
    topic, client_id = fresh("t"), fresh("c")
    with Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 1))
        device = Device(broker, version, client_id, **kept(version))
        device.send(packets.publish(version, topic, b"x", qos=1, packet_id=5))
        equal(listener.message().payload, b"x", "message")
        device.reset()
        device = resume(broker, version, client_id)
        device.send(packets.publish(version, topic, b"x", qos=1, packet_id=5, dup=True))
        equal(device.expect(PUBACK).packet_id, 5, "PUBACK")
        device.leave()


@case(GROUP, *BOTH)
def test_what_was_unsubscribed_stays_so(broker, version):
    """MQTT-3.10.4-1: a subscription that was removed is not part of the resumed session."""
    stays, goes = fresh("t"), fresh("t")
    client_id = begin(broker, version, (stays, 1), (goes, 1))
    with resume(broker, version, client_id) as device:
        device.unsubscribe(goes)
        device.leave()
    with Device(broker, version, fresh("c")) as sender:
        for topic in (goes, stays):
            sender.publish(topic, b"", qos=1)
    with resume(broker, version, client_id) as device:
        equal(device.message().topic, stays, "the first message")
        device.ping()
        device.leave()


@case(GROUP, *BOTH)
def test_a_session_is_one_clients_own(broker, version):
    """MQTT-3.1.3-2: only a client with exactly the same identifier resumes a session."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 1), client_id=fresh("own-") + "-id")
    for other in (client_id.upper(), client_id + "x", client_id[:-1]):
        with Device(broker, version, other, **kept(version)) as device:
            equal(device.connack.session_present, 0, f"session present of {other}")
            device.leave(**({"session_expiry": 0} if version == V5 else {}))
    with resume(broker, version, client_id) as device:
        device.leave()


@case(GROUP, *BOTH)
def test_it_lives_through_an_orderly_restart(broker, version):
    """MQTT-3.1.2-23, 3.1.2-4 of 3.1.1. Retained messages survive, too."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 1))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 20, 1)
        sender.publish(topic + "/kept", b"kept", qos=1, retain=True)
    broker.restart()
    with resume(broker, version, client_id) as device:
        equal(device.payloads(20), [b"%d" % n for n in range(20)], "messages")
        device.subscribed(topic + "/kept")
        equal(device.message().payload, b"kept", "retained")
        device.leave()


@case(GROUP, V5)
def test_it_ends_as_it_says(broker, version):
    """MQTT-4.1.0-2, 3.1.2-23: the session ends at once without an expiry, after its expiry, or as DISCONNECT sets
    it."""
    def present(client_id, clean=False, leaves=None, **properties) -> int:
        device = Device(broker, version, client_id, clean=clean, properties_=properties)
        device.leave(0 if leaves is not None else None, **(leaves or {}))
        return device.connack.session_present

    none = fresh("c")
    equal([present(none), present(none)], [0, 0], "without an expiry")
    short = fresh("c")
    present(short, session_expiry=1)
    two_seconds_pass(broker, version)
    equal(present(short, session_expiry=1), 0, "after its second")
    long = fresh("c")
    # The second connection has no clean start. An expiry of 0xFFFFFFFF means never.
    equal([present(long, True, session_expiry=100), present(long, session_expiry=0xFFFF_FFFF)], [0, 1], "with an expiry")
    equal(present(long, session_expiry=100), 1, "for ever")
    equal(present(long, session_expiry=100, leaves={"session_expiry": 0}), 1, "when it takes leave")
    equal(present(long), 0, "after a leave for good")
    equal(present(long, session_expiry=1, leaves={"session_expiry": 100}), 0, "a new one")
    two_seconds_pass(broker, version)
    equal(present(long), 1, "that was made longer")


@case(GROUP, V4)
def test_qos_0_may_be_lost_and_nothing_else(broker, version):
    """3.1.1 MQTT-3.1.2-5: QoS 1 messages for an absent client arrive; QoS 0 messages may be lost."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 1))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 10, 0, 1)
    with resume(broker, version, client_id) as device:
        found = []
        while b"9" not in found:
            found.append(device.message().payload)
        equal([payload for payload in found if int(payload) % 2], [b"1", b"3", b"5", b"7", b"9"], "of QoS 1")
        device.leave()


@case(GROUP, V5)
def test_a_shared_message_stays_with_whom_it_was_sent_to(broker, version):
    """MQTT-4.8.2-4: a started QoS 2 delivery is completed with the same client."""
    topic, group = fresh("t"), fresh("g")
    client_id = begin(broker, version, (f"$share/{group}/{topic}", 2))
    device = resume(broker, version, client_id)
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"x", qos=2)
        found = device.expect(PUBLISH)
        device.send(packets.answer(PUBREC, found.packet_id))
        device.expect(PUBREL)
        with Device(broker, version, fresh("c")) as member:
            member.subscribed((f"$share/{group}/{topic}", 2))
            device.reset()
            device = resume(broker, version, client_id)
            equal(device.expect(PUBREL).packet_id, found.packet_id, "PUBREL")
            device.send(packets.answer(PUBCOMP, found.packet_id))
            device.ping()
            member.ping()
            device.leave()


@case(GROUP, V5, differs=differs(mosquitto="keeps what waits for a session that ends"))
def test_a_shared_message_goes_to_another_when_its_member_leaves(broker, version):
    """4.8.2, for QoS 1: the member disconnects or crashes, with and without a persistent session. This includes
    messages that wait for its receive window."""
    for keeps, ends in ((False, Device.leave), (False, Device.reset), (True, Device.leave), (True, Device.reset)):
        topic, group = fresh("t"), fresh("g")
        options = kept(version) if keeps else {}
        first = Device(broker, version, fresh("c"), **options | ({} if keeps else {"properties_": {"receive_maximum": 3}}))
        first.subscribed((f"$share/{group}/{topic}", 1))
        with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as second:
            sender.publish_numbers(topic, 8, 1)
            equal(first.message().payload, b"0", "acknowledged")
            first.message(acknowledges=False)
            second.subscribed((f"$share/{group}/{topic}", 1))
            ends(first)
            equal(sorted(second.payloads(7)), [b"%d" % number for number in range(1, 8)], f"kept {keeps}, {ends.__name__}")
            second.ping()


@case(GROUP, V5, differs=differs(mosquitto="sends it to another"))
def test_a_shared_message_of_qos_2_goes_to_nobody_else(broker, version):
    """MQTT-4.8.2-5: also if the member's session has ended."""
    topic, group = fresh("t"), fresh("g")
    first = Device(broker, version, fresh("c"))
    first.subscribed((f"$share/{group}/{topic}", 2))
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as second:
        sender.publish(topic, b"begun", qos=2)
        first.expect(PUBLISH)
        second.subscribed((f"$share/{group}/{topic}", 2))
        first.reset()
        sender.publish(topic, b"next", qos=2)
        equal(second.message().payload, b"next", "message")
        second.ping()


@case(GROUP, V5)
def test_a_shared_message_that_is_refused_goes_to_nobody_else(broker, version):
    """MQTT-4.8.2-6."""
    topic, group = fresh("t"), fresh("g")
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as first:
        first.subscribed((f"$share/{group}/{topic}", 2))
        for qos, kind in ((1, PUBACK), (2, PUBREC)):
            sender.publish(topic, b"refused", qos=qos)
            first.send(packets.answer(kind, first.expect(PUBLISH).packet_id, 0x83))
        first.ping()
        with Device(broker, version, fresh("c")) as second:
            second.subscribed((f"$share/{group}/{topic}", 2))
            first.unsubscribe(f"$share/{group}/{topic}")
            sender.publish(topic, b"next", qos=1)
            equal(second.message().payload, b"next", "message")


@case(GROUP, V5, differs=differs(mosquitto="keeps it with a member"))
def test_a_group_that_is_away_has_its_messages_kept(broker, version):
    """4.8.2: the first member that connects receives the messages."""
    topic, group = fresh("t"), fresh("g")
    ids = [begin(broker, version, (f"$share/{group}/{topic}", 1)) for _ in range(2)]
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 10, 1, 2)
    with resume(broker, version, ids[1]) as device:
        equal(device.payloads(10), [b"%d" % number for number in range(10)], "messages")
        device.leave()
    with resume(broker, version, ids[0]) as device:
        device.ping()
        device.leave()


@case(GROUP, V5, differs=differs(mosquitto="gives it to the busy one"))
def test_a_busy_member_does_not_hold_its_group_up(broker, version):
    """A member that acknowledges nothing holds only a few messages; others receive the rest."""
    topic, group = fresh("t"), fresh("g")
    with Device(broker, version, fresh("c"), properties_={"receive_maximum": 1}) as busy:
        busy.subscribed((f"$share/{group}/{topic}", 1))
        with Device(broker, version, fresh("c")) as free, Device(broker, version, fresh("c")) as sender:
            free.subscribed((f"$share/{group}/{topic}", 1))
            sender.publish_numbers(topic, 600, 1)
            held = busy.expect(PUBLISH)
            got = {free.message().payload for _ in range(500)}
            check(len(got) == 500 and held.payload not in got, "not each once")


@case(GROUP, V5, differs=differs(mosquitto="forgets it"))
def test_what_was_begun_is_sent_again_whatever_its_age(broker, version):
    """MQTT-4.4.0-1, 4.3.3-7: started deliveries of expired messages with QoS 1 and 2 are sent again, until they
    are acknowledged."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    device = resume(broker, version, client_id)
    with Device(broker, version, fresh("c")) as sender:
        for qos in (1, 2):
            sender.publish(topic, b"%d" % qos, qos=qos, message_expiry=1)
    first = [device.expect(PUBLISH) for _ in range(2)]
    device.reset()
    two_seconds_pass(broker, version)
    with resume(broker, version, client_id) as device:
        again = [device.message() for _ in range(2)]
        wanted = [(packet.packet_id, packet.payload, packet.qos, True) for packet in first]
        equal([(packet.packet_id, packet.payload, packet.qos, packet.dup) for packet in again], wanted, "again")
        device.ping()
        device.leave()
    nothing_waits(broker, version, client_id)


@case(GROUP, V5, differs=differs(mosquitto="sends it"))
def test_what_expires_before_it_is_begun_is_not_sent(broker, version):
    """MQTT-3.3.2-5: a message that expires while it waits for the receive window is not sent. A started delivery
    is completed (MQTT-4.3.3-7, -13)."""
    topic = fresh("t")
    with Device(broker, version, fresh("c"), properties_={"receive_maximum": 1}) as device:
        device.subscribed((topic, 2))
        with Device(broker, version, fresh("c")) as sender:
            sender.publish(topic, b"begun", qos=2, message_expiry=1)
            sender.publish(topic, b"too late", qos=2, message_expiry=1)
            sender.publish(topic, b"in time", qos=2, message_expiry=100)
            begun = device.expect(PUBLISH)
            two_seconds_pass(broker, version)
            device.acknowledge(begun)
            found = device.message()
            equal(found.payload, b"in time", "the next message")
            check(found.property("message_expiry") < 99, "its age is not taken off")
            # A received QoS 2 message is published when PUBREL arrives, also after its expiry.
            sender.send(packets.publish(version, topic, b"late", qos=2, packet_id=7, properties_={"message_expiry": 1}))
            sender.expect(PUBREC)
            two_seconds_pass(broker, version)
            sender.send(packets.answer(PUBREL, 7))
            sender.expect(PUBCOMP)
