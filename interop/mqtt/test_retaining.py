"""Retained messages, and a thousand of them at once."""

import threading

from harness.checks import check, equal
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, fresh
from mqtt.packets import V5

GROUP = "retaining"

AS_PUBLISHED = 0x08
IF_NEW = 0x10
NEVER = 0x20

STORM_TOPICS = 1000
STORM_CLIENTS = 10
ROUNDS_MIN = 50


@case(GROUP, *BOTH)
def test_the_last_one_waits_for_subscribers(broker, version):
    """MQTT-3.3.1-5, -9 (3.1.1: 3.3.1-5 to -8): the last message is sent with its QoS, and with RETAIN."""
    own = fresh("t")
    with Device(broker, version, fresh("c")) as sender:
        for qos in range(3):
            sender.publish(f"{own}/{qos}", b"old", qos=2, retain=True)
            sender.publish(f"{own}/{qos}", b"new", qos=qos, retain=True)
        for filter_ in (f"{own}/+", f"{own}/#"):
            with Device(broker, version, fresh("c")) as listener:
                listener.subscribed((filter_, 2))
                found = sorted((packet.topic, packet.qos, packet.retain, packet.payload) for packet in take(listener, 3))
                equal(found, [(f"{own}/{qos}", qos, True, b"new") for qos in range(3)], filter_)
        with Device(broker, version, fresh("c")) as listener:
            listener.subscribed((f"{own}/2", 1))
            equal(listener.message().qos, 1, "QoS of one that was granted less")


def take(device: Device, count: int) -> list:
    return [device.message() for _ in range(count)]


@case(GROUP, *BOTH)
def test_those_who_are_there_see_no_retain(broker, version):
    """MQTT-3.3.1-12 (3.1.1: 3.3.1-9). The message arrives only once."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 1))
        for qos in (0, 1):
            sender.publish(topic, b"x", qos=qos, retain=True)
            equal(listener.message().retain, False, "RETAIN")
        sender.publish(topic, b"last", qos=1)
        equal(listener.message().payload, b"last", "the next message")


@case(GROUP, *BOTH)
def test_an_empty_one_is_delivered_and_removes(broker, version):
    """MQTT-3.3.1-6, -7 (3.1.1: 3.3.1-10, -11)."""
    own = fresh("t")
    with Device(broker, version, fresh("c")) as sender:
        for qos in (0, 1, 2):
            sender.publish(f"{own}/{qos}", b"there", qos=1, retain=True)
        with Device(broker, version, fresh("c")) as listener:
            listener.subscribed((f"{own}/+", 2))
            take(listener, 3)
            for qos in (0, 1, 2):
                sender.publish(f"{own}/{qos}", b"", qos=qos, retain=True)
                found = listener.message()
                equal((found.payload, found.retain), (b"", False), "what those who are there get")
        with Device(broker, version, fresh("c")) as listener:
            listener.subscribed((f"{own}/+", 2))
            sender.publish(f"{own}/3", b"first", qos=1)
            equal(listener.message().payload, b"first", "the first message")


@case(GROUP, *BOTH)
def test_others_leave_it_alone(broker, version):
    """MQTT-3.3.1-8 (3.1.1: 3.3.1-12)."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"kept", qos=1, retain=True)
        sender.publish(topic, b"passing", qos=1)
        sender.publish(topic, b"", qos=1)
        with Device(broker, version, fresh("c")) as listener:
            listener.subscribed((topic, 1))
            found = listener.message()
            equal((found.payload, found.retain), (b"kept", True), "retained")


@case(GROUP, *BOTH)
def test_it_outlives_its_publisher_and_his_session(broker, version):
    """3.1.1 MQTT-3.1.2-7."""
    topic = fresh("t")
    sender = Device(broker, version, fresh("c"))
    sender.publish(topic, b"kept", qos=1, retain=True)
    sender.leave()
    with Device(broker, version, fresh("c")) as listener:
        listener.subscribed(topic)
        equal(listener.message().payload, b"kept", "retained")


@case(GROUP, *BOTH)
def test_it_is_sent_again_when_a_subscription_is_made_again(broker, version):
    """MQTT-3.8.4-4 (3.1.1: 3.8.4-3)."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        device.publish(topic, b"kept", qos=1, retain=True)
        for _ in range(3):
            device.subscribed((topic, 1))
            equal(device.message().payload, b"kept", "retained")


@case(GROUP, V5)
def test_subscribers_say_when_they_want_it(broker, version):
    """MQTT-3.3.1-9 to -11."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"kept", qos=1, retain=True)
        for options, when_new, when_not in ((0, True, True), (IF_NEW, True, False), (NEVER, False, False)):
            with Device(broker, version, fresh("c")) as listener:
                for expected in (when_new, when_not):
                    listener.subscribed((topic, options | 1))
                    sender.publish(topic, b"passing", qos=1)
                    got = [listener.message().payload]
                    if got == [b"kept"]:
                        got.append(listener.message().payload)
                    equal(got, [b"kept", b"passing"] if expected else [b"passing"], f"options {options:#x}")


@case(GROUP, V5)
def test_retain_stays_as_published_for_those_who_ask(broker, version):
    """MQTT-3.3.1-12, -13."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, AS_PUBLISHED | 1))
        for qos in (0, 1):
            for retain in (True, False):
                sender.publish(topic, b"x", qos=qos, retain=retain)
                equal(listener.message().retain, retain, f"RETAIN with QoS {qos}")


@case(GROUP, V5, differs=differs(mosquitto="sends them"))
def test_shared_subscriptions_get_none(broker, version):
    """5.0, 4.8.2."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        device.publish(topic, b"kept", qos=1, retain=True)
        device.subscribed((f"$share/g/{topic}", 1))
        device.publish(topic, b"passing", qos=1)
        equal(device.message().payload, b"passing", "the first message")


@case(GROUP, V5)
def test_properties_are_kept_with_it(broker, version):
    """MQTT-3.3.2-4, -17 for retained messages. Expired ones are not sent (3.3.1.3)."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as sender:
        sender.publish(topic, b"x", qos=1, retain=True, content_type="text/x", user=("a", "b"), message_expiry=1000)
        sender.publish(topic + "/short", b"x", qos=1, retain=True, message_expiry=1)
        with Device(broker, version, fresh("c"), keep_alive=1) as clock:
            clock.until_end()
        with Device(broker, version, fresh("c")) as listener:
            listener.subscribed((topic + "/#", 1))
            found = listener.message()
            equal((found.property("content_type"), found.all("user")), ("text/x", [("a", "b")]), "properties")
            check(0 < found.property("message_expiry") <= 1000, "no expiry")
            sender.publish(topic, b"last", qos=1)
            equal(listener.message().payload, b"last", "what expired came")


@case(GROUP, *BOTH)
def test_a_thousand_in_a_storm_starve_nobody(broker, version):
    """Ten clients subscribe to a thousand retained messages each, at the same time. A pair of clients is not
    delayed."""
    own, pair = fresh("t"), fresh("t")
    with Device(broker, version, fresh("c")) as sender:
        for number in range(STORM_TOPICS):
            sender.publish(f"{own}/{number}", b"%d" % number, qos=number % 2, retain=True)

        failures: list[Exception] = []
        began = threading.Barrier(STORM_CLIENTS + 1)

        def storm():
            try:
                with Device(broker, version, fresh("c")) as device:
                    began.wait()
                    device.subscribed((f"{own}/+", 1))
                    found = {packet.topic: packet for packet in take(device, STORM_TOPICS)}
                    for number in range(STORM_TOPICS):
                        packet = found[f"{own}/{number}"]
                        equal((packet.payload, packet.retain), (b"%d" % number, True), "retained")
                    # If a retained message were sent twice, it would arrive before this one.
                    device.publish(f"{own}/last", b"last", qos=1)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=storm) for _ in range(STORM_CLIENTS)]
        with Device(broker, version, fresh("c")) as listener:
            listener.subscribed((pair, 1))
            for thread in threads:
                thread.start()
            began.wait()
            rounds = 0
            while rounds < ROUNDS_MIN or any(thread.is_alive() for thread in threads):
                sender.publish(pair, b"%d" % rounds, qos=1)
                equal(listener.message().payload, b"%d" % rounds, "the pair's message")
                rounds += 1
        for thread in threads:
            thread.join()
        for number in range(STORM_TOPICS):
            sender.publish(f"{own}/{number}", b"", retain=True)
        sender.ping()
        check(not failures, f"{failures[:1]}")
