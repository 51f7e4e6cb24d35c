"""Crashes of the server (SIGKILL): acknowledged messages survive, and started deliveries are completed."""

import random
import threading
import time

from harness.checks import check, equal
from harness.peer import Closed
from mqtt import packets
from mqtt.case import BOTH, case, differs
from mqtt.test_sessions import LATE, begin, resume
from mqtt.device import Device, fresh, kept
from mqtt.packets import PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, V5

GROUP = "crashes"

ROUNDS = 3
PUBLISHERS = 4


@case(GROUP, *BOTH, kills=True)
def test_acknowledged_messages_wait_for_their_client(broker, version):
    """QoS 1 and 2 messages and the subscriptions survive."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 200, 1, 2)
    broker.restart_after_kill()
    with resume(broker, version, client_id) as device:
        equal(device.payloads(200), [b"%d" % n for n in range(200)], "messages")
        device.publish(topic, b"last", qos=1)
        equal(device.message().payload, b"last", "what comes next")
        device.leave()


@case(GROUP, *BOTH, kills=True, differs=differs(nats="has what was removed again"))
def test_what_is_retained_is_there_and_no_more(broker, version):
    """The last retained message of each topic survives, and removed ones do not return."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as sender:
        for qos in range(3):
            sender.publish(f"{topic}/kept{qos}", b"old", qos=1, retain=True)
            sender.publish(f"{topic}/kept{qos}", b"kept", qos=qos, retain=True)
            sender.publish(f"{topic}/gone{qos}", b"gone", qos=1, retain=True)
            sender.publish(f"{topic}/gone{qos}", b"", qos=qos, retain=True)
        # The messages with QoS 0 have no guarantee. When this later one is acknowledged, they are stored as well.
        sender.publish(f"{topic}/kept3", b"kept", qos=1, retain=True)
    broker.restart_after_kill()
    with Device(broker, version, fresh("c")) as device:
        device.subscribed((f"{topic}/+", 1))
        found = [device.message() for _ in range(4)]
        wanted = [(f"{topic}/kept{number}", b"kept", True) for number in range(4)]
        equal(sorted((packet.topic, packet.payload, packet.retain) for packet in found), wanted, "retained")
        device.publish(f"{topic}/last", b"last", qos=1)
        equal(device.message().payload, b"last", "the next message")


@case(GROUP, *BOTH, kills=True, differs=LATE)
def test_what_was_under_way_to_a_client_comes_again(broker, version):
    """MQTT-4.4.0-1: unacknowledged messages are sent again, with the same identifiers."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    device = resume(broker, version, client_id)
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 6, 1, 2)
    first = [device.expect(PUBLISH) for _ in range(6)]
    broker.restart_after_kill()
    device.close()
    with resume(broker, version, client_id) as device:
        again = [device.message(acknowledges=False) for _ in range(6)]
        equal([packet.payload for packet in again], [packet.payload for packet in first], "messages")
        for packet in again:
            device.acknowledge(packet)
        device.ping()
        device.leave()


@case(GROUP, *BOTH, kills=True, differs=LATE)
def test_a_released_message_does_not_come_again(broker, version):
    """QoS 2 to a client: its PUBREC was answered with PUBREL, so only the PUBREL is sent again."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    device = resume(broker, version, client_id)
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"x", qos=2)
    found = device.expect(PUBLISH)
    device.send(packets.answer(PUBREC, found.packet_id))
    device.expect(PUBREL)
    broker.restart_after_kill()
    device.close()
    with resume(broker, version, client_id) as device:
        equal(device.expect(PUBREL).packet_id, found.packet_id, "PUBREL")
        device.send(packets.answer(PUBCOMP, found.packet_id))
        device.ping()
        device.leave()


@case(GROUP, *BOTH, kills=True)
def test_a_received_message_is_released_once(broker, version):
    """QoS 2 from a client: the server crashes after PUBREC, and the client sends PUBREL twice."""
    topic, client_id = fresh("t"), fresh("c")
    listener_id = begin(broker, version, (topic, 2))
    device = Device(broker, version, client_id, **kept(version))
    for number in (7, 8, 9):
        device.send(packets.publish(version, topic, b"%d" % number, qos=2, packet_id=number))
        device.expect(PUBREC)
    broker.restart_after_kill()
    device.close()
    device = resume(broker, version, client_id)
    # As if the client had not received this PUBREC.
    device.send(packets.publish(version, topic, b"8", qos=2, packet_id=8, dup=True))
    device.expect(PUBREC)
    for number in (7, 8):
        device.send(packets.answer(PUBREL, number))
        equal(device.expect(PUBCOMP).packet_id, number, "PUBCOMP")
    broker.restart_after_kill()
    device.close()
    device = resume(broker, version, client_id)
    for number in (7, 8, 9):
        device.send(packets.answer(PUBREL, number))
        equal(device.expect(PUBCOMP).packet_id, number, "PUBCOMP")
    device.publish(topic, b"last", qos=1)
    with resume(broker, version, listener_id) as listener:
        equal(listener.payloads(4), [b"7", b"8", b"9", b"last"], "messages")
        listener.leave()
    device.leave()


@case(GROUP, *BOTH, kills=True)
def test_what_was_acknowledged_to_the_server_is_not_sent_again(broker, version):
    """The client sent a PUBACK, and received the response to a later PING."""
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 1))
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"one", qos=1)
    device = resume(broker, version, client_id)
    device.message()
    device.ping()
    device.leave()
    broker.restart_after_kill()
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"two", qos=1)
    with resume(broker, version, client_id) as device:
        found = device.message()
        # The server guarantees nothing for a PUBACK, so the first message may be sent again. It is sent without
        # DUP if the crash happened before its delivery was stored.
        if found.payload == b"one":
            found = device.message()
        equal(found.payload, b"two", "message")
        device.leave()


class Publisher(threading.Thread):
    """A client that publishes with one QoS, and resumes when the server is back."""

    def __init__(self, broker, version: int, topic: str, qos: int, number: int):
        super().__init__()
        self.broker, self.version, self.topic, self.qos, self.number = broker, version, topic, qos, number
        self.client_id = fresh("c")
        self.acknowledged = 0
        self.stops = threading.Event()
        self.failure: Exception | None = None
        # For QoS 2: whether a PUBREC for the current message was received, so that only PUBREL is due.
        self.is_received = False

    def run(self):
        begins = True
        while not self.stops.is_set():
            try:
                with Device(self.broker, self.version, self.client_id, **kept(self.version)) as device:
                    check(begins or device.connack.session_present, "the session is gone")
                    again = not begins
                    begins = False
                    while not self.stops.is_set() or again:
                        self.one(device, again)
                        again = False
            except (Closed, OSError):
                time.sleep(0.01)
            except Exception as error:
                self.failure = error
                return

    def one(self, device: Device, again: bool):
        packet_id = self.acknowledged % 1000 + 1
        payload = b"%d %d" % (self.number, self.acknowledged)
        data = packets.publish(self.version, self.topic, payload, qos=self.qos, packet_id=packet_id, dup=again)
        if self.qos == 1:
            device.send(data)
            equal(device.expect(PUBACK).packet_id, packet_id, "PUBACK")
        else:
            if not self.is_received:
                device.send(data)
                equal(device.expect(PUBREC).packet_id, packet_id, "PUBREC")
                self.is_received = True
            device.send(packets.answer(PUBREL, packet_id))
            equal(device.expect(PUBCOMP).packet_id, packet_id, "PUBCOMP")
            self.is_received = False
        self.acknowledged += 1


@case(GROUP, *BOTH, kills=True, differs=differs(nats="loses one now and then: what it acknowledges need not be on the disk"))
def test_a_crash_in_the_middle_loses_nothing(broker, version):
    """Four clients publish while the server is killed at random times. An absent client receives all acknowledged
    messages, in the order of each publisher: QoS 1 at least once, QoS 2 exactly once."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    topic = fresh("t")
    client_id = begin(broker, version, (topic, 2))
    publishers = [Publisher(broker, version, topic, 1 + number % 2, number) for number in range(PUBLISHERS)]
    for publisher in publishers:
        publisher.start()
    try:
        for _ in range(ROUNDS):
            goal = sum(publisher.acknowledged for publisher in publishers) + chance.randrange(50, 400)
            while sum(publisher.acknowledged for publisher in publishers) < goal:
                failed = [publisher.failure for publisher in publishers if publisher.failure]
                check(not failed, f"seed {seed}: {failed}")
                time.sleep(0.001)
            broker.restart_after_kill()
    finally:
        for publisher in publishers:
            publisher.stops.set()
        for publisher in publishers:
            publisher.join()
    check(not any(publisher.failure for publisher in publishers), f"seed {seed}: a publisher failed")
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"last", qos=1)
    got: list[list[int]] = [[] for _ in publishers]
    with resume(broker, version, client_id) as device:
        while (payload := device.message().payload) != b"last":
            number, count = map(int, payload.split())
            got[number].append(count)
        device.leave()
    for publisher, mine in zip(publishers, got):
        what = f"seed {seed}, QoS {publisher.qos}"
        once = list(dict.fromkeys(mine))
        # The message in flight at the end may be missing.
        equal(once[: publisher.acknowledged], list(range(publisher.acknowledged)), f"{what}: messages")
        check(len(once) <= publisher.acknowledged + 1, f"{what}: {len(once)} of {publisher.acknowledged}")
        if publisher.qos == 2:
            equal(len(mine), len(once), f"{what}: copies")


@case(GROUP, *BOTH, kills=True, differs=differs(nats="forgets it"))
def test_wills_are_sent_when_the_server_is_back(broker, version):
    """3.1.2.5: a server may send wills after a crash, because the crash ended the connections without DISCONNECT.
    Each will is sent once, and only if its client had not disconnected before."""
    topic, client_id = fresh("t"), fresh("c")
    away = begin(broker, version, (topic, 1))
    for number, options in enumerate(({}, kept(version))):
        will = packets.Will(topic, b"of %d" % number, qos=1)
        Device(broker, version, f"{client_id}-{number}", will=will, **options)
        Device(broker, version, f"{client_id}-leaves-{number}", will=will, **options).leave()
    with Device(broker, version, fresh("c")) as sender:
        # When this message is acknowledged, everything before it is on disk.
        sender.publish(topic, b"first", qos=1)
    broker.restart_after_kill()
    for _ in range(2):
        with resume(broker, version, away) as device:
            if _ == 0:
                equal(sorted(device.payloads(3)), [b"first", b"of 0", b"of 1"], "messages")
            device.publish(topic, b"last", qos=1)
            equal(device.message().payload, b"last", "what comes next")
            device.leave()
        broker.restart_after_kill()


@case(GROUP, V5, kills=True)
def test_a_group_has_what_was_acknowledged(broker, version):
    """4.8.2: QoS 1 messages that no member has acknowledged go to any member that connects."""
    topic, group = fresh("t"), fresh("g")
    member = begin(broker, version, (f"$share/{group}/{topic}", 1))
    device = resume(broker, version, member)
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 10, 1)
    for _ in range(5):
        device.message()
    for _ in range(5):
        device.message(acknowledges=False)
    device.ping()
    broker.restart_after_kill()
    device.close()
    with Device(broker, version, fresh("c")) as other:
        other.subscribed((f"$share/{group}/{topic}", 1))
        missing = {b"%d" % number for number in range(5, 10)}
        # Messages that were acknowledged immediately before the crash may be sent again.
        while missing:
            missing.discard(other.message().payload)


@case(GROUP, V5, kills=True, differs=differs(mosquitto="keeps nothing"))
def test_a_message_of_qos_2_stays_with_its_member(broker, version):
    """MQTT-4.8.2-4, -5."""
    topic, group = fresh("t"), fresh("g")
    member = begin(broker, version, (f"$share/{group}/{topic}", 2))
    device = resume(broker, version, member)
    with Device(broker, version, fresh("c")) as sender:
        sender.publish_numbers(topic, 4, 2)
    first = [device.expect(PUBLISH) for _ in range(4)]
    for packet in first[:2]:
        device.send(packets.answer(PUBREC, packet.packet_id))
        device.expect(PUBREL)
    broker.restart_after_kill()
    device.close()
    with Device(broker, version, fresh("c")) as other:
        other.subscribed((f"$share/{group}/{topic}", 2))
        with resume(broker, version, member) as device:
            for packet in first[:2]:
                equal(device.expect(PUBREL).packet_id, packet.packet_id, "PUBREL")
                device.send(packets.answer(PUBCOMP, packet.packet_id))
            again = [device.message() for _ in range(2)]
            found = [(packet.payload, packet.packet_id, packet.dup) for packet in again]
            equal(found, [(packet.payload, packet.packet_id, True) for packet in first[2:]], "again")
            device.ping()
            other.ping()
            device.leave(0, session_expiry=0)


@case(GROUP, V5, kills=True)
def test_a_group_without_members_keeps_nothing(broker, version):
    """The sessions of its members ended with the crash, so later messages have no receiver."""
    topic, group = fresh("t"), fresh("g")
    device = Device(broker, version, fresh("c"))
    device.subscribed((f"$share/{group}/{topic}", 1))
    broker.restart_after_kill()
    device.close()
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as other:
        sender.publish(topic, b"for nobody", qos=1)
        other.subscribed((f"$share/{group}/{topic}", 1))
        sender.publish(topic, b"for somebody", qos=1)
        equal(other.message().payload, b"for somebody", "message")
