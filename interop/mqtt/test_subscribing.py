"""SUBSCRIBE, UNSUBSCRIBE, and matching of topics."""

from harness.checks import check, equal
from mqtt import packets
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, fresh
from mqtt.packets import DISCONNECT, SUBACK, UNSUBACK, V4, V5

GROUP = "subscribing"

NO_LOCAL = 0x04

# Filter, topics that it matches, and topics that it does not match. `~` is replaced by a name that only this case
# uses.
MATCHES = [
    ("~/a", ["~/a"], ["~/b", "~/a/b", "~/A", "~", "~/a/"]),
    ("~/+", ["~/a", "~/"], ["~/a/b", "~", "~/a/"]),
    ("~/+/c", ["~/b/c", "~//c"], ["~/c", "~/b/c/d", "~/b/d"]),
    ("~/#", ["~", "~/", "~/a", "~/a/b", "~//a", "~/a//b"], ["x~", "~x"]),
    ("~/a/#", ["~/a", "~/a/", "~/a/b/c"], ["~", "~/b", "~/ab"]),
    ("+/~", ["x/~", "/~"], ["~", "x/y/~"]),
    ("/~", ["/~"], ["~", "//~", "x/~"]),
    ("/+/~", ["/x/~", "//~"], ["/~", "x/y/~"]),
    ("~/+/+/#", ["~/a/b", "~/a/b/c", "~//"], ["~/a", "~"]),
    ("~/ü/☃", ["~/ü/☃"], ["~/u/☃", "~/ü"]),
    ("~/\ufeffa", ["~/\ufeffa"], ["~/a"]),
    ("~//b", ["~//b"], ["~/b", "~/a/b"]),
    ("~/", ["~/"], ["~", "~/a"]),
]


@case(GROUP, *BOTH)
def test_a_filter_matches_what_it_must(broker, version):
    """4.7: MQTT-4.7.1-1 to -3, 4.7.3-4, 3.3.2-3, 1.5.4-3. U+FEFF is an ordinary character."""
    wrong = []
    with Device(broker, version, fresh("c")) as sender:
        for pattern, hits, misses in MATCHES:
            own = fresh("m")
            with Device(broker, version, fresh("c")) as listener:
                listener.subscribed(pattern.replace("~", own), own + "/last/of/all/of/them")
                topics = [topic.replace("~", own) for topic in misses + hits]
                for topic in topics:
                    sender.publish(topic, topic.encode())
                sender.publish(own + "/last/of/all/of/them", b"last")
                found = []
                while (packet := listener.message()).payload != b"last":
                    equal(packet.payload, packet.topic.encode(), "topic")
                    found.append(packet.topic)
                # `~/#` also matches the last topic, which may then arrive twice.
                if found != topics[len(misses) :]:
                    wrong.append(f"{pattern}: {found}")
    check(not wrong, "; ".join(wrong))


@case(GROUP, *BOTH)
def test_names_with_dots_and_other_marks_are_names(broker, version):
    """4.7.3-4: characters with a meaning in other protocols are ordinary characters."""
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as listener:
        for mark in ("a.b", ".a", "a.", "..", "a..b", "a.b/c.d", "-", "_", "$a", "a$", "%41", "\\", "a,b;c:d", "{}"):
            topic = f"{fresh('m')}/{mark}"
            listener.subscribed((topic, 1))
            for qos in (0, 1):
                sender.publish(topic, mark.encode(), qos=qos)
                found = listener.message()
                equal((found.topic, found.payload), (topic, mark.encode()), "message")


@case(GROUP, *BOTH)
def test_a_dot_is_no_level(broker, version):
    """`a.b` is one level, although it is two tokens of a NATS subject."""
    own = fresh("m")
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as listener:
        listener.subscribed(f"{own}/+", f"{own}/x/y")
        for topic in (f"{own}/x.y", f"{own}/a/b"):
            sender.publish(topic, b"")
        sender.publish(f"{own}/last", b"")
        equal([listener.message().topic for _ in range(2)], [f"{own}/x.y", f"{own}/last"], "topics")


@case(GROUP, *BOTH)
def test_wildcards_do_not_see_names_of_the_server(broker, version):
    """MQTT-4.7.2-1."""
    own = fresh("m")
    with Device(broker, version, fresh("c")) as sender:
        with Device(broker, version, fresh("c")) as open_one, Device(broker, version, fresh("c")) as named:
            open_one.subscribed("#", "+/" + own)
            named.subscribed(f"$own/{own}")
            sender.publish(f"$own/{own}", b"hidden")
            equal(named.message().payload, b"hidden", "by its name")
            sender.publish(own, b"seen")
            while (found := open_one.message()).payload != b"seen":
                check(not found.topic.startswith("$"), f"saw {found.topic}")


@case(GROUP, *BOTH)
def test_several_filters_have_their_codes_in_order(broker, version):
    """MQTT-3.8.4-1, -2, -5 to -7, 3.9.3-1, -2 (3.1.1: 3.8.4-1, -2, -4, -5); 2.2.1-6 (3.1.1: 2.3.1-7)."""
    with Device(broker, version, fresh("c")) as device:
        filters = [(fresh("t"), qos) for qos in (2, 0, 1, 1, 0, 2)]
        device.send(packets.subscribe(version, 4711, filters))
        found = device.expect(SUBACK)
        equal((found.packet_id, found.codes), (4711, [2, 0, 1, 1, 0, 2]), "SUBACK")
        for name, qos in filters:
            device.publish(name, b"x", qos=2)
            equal(device.message().qos, qos, "QoS")


@case(GROUP, *BOTH, differs=differs(nats="takes marks within a level"))
def test_filters_that_are_none_fail(broker, version):
    """MQTT-4.7.1-1, -2, 4.7.3-1 (3.1.1: 4.7.1-2, -3): the filter fails, or the connection ends."""
    for wrong in ("a/#/b", "a#", "#a", "a/b#", "a+", "+a", "a/b+/c", ""):
        with Device(broker, version, fresh("c")) as device:
            device.send(packets.subscribe(version, 5, [(wrong, 0)]))
            found = device.until_end() if closes(device) else [device.last]
            failed = [packet for packet in found if packet.kind == SUBACK and packet.code < 0x80]
            check(not failed, f"{wrong!r} was granted")


def closes(device: Device) -> bool:
    """Returns whether the server closes the connection. The packet that it sent before is in `device.last`."""
    device.last = device.packet_or_none()
    if device.last is None:
        return True
    if device.last.kind == DISCONNECT:
        return True
    device.ping()
    return False


@case(GROUP, *BOTH, differs=differs(nats="keeps the QoS that was higher"))
def test_the_same_filter_replaces_a_subscription(broker, version):
    """MQTT-3.8.4-3: each message arrives once, with the QoS of the last SUBSCRIBE."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        for qos in (0, 2, 1):
            device.subscribed((topic, qos))
            device.publish(topic, b"one", qos=2)
            equal(device.message().qos, qos, "QoS")
            device.publish(topic, b"two", qos=0)
            equal(device.message().payload, b"two", "the next message")


@case(GROUP, *BOTH)
def test_no_message_is_lost_to_a_replaced_subscription(broker, version):
    """MQTT-3.8.4-4."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 1))
        for number in range(60):
            sender.publish(topic, b"%d" % number, qos=1)
            listener.send(packets.subscribe(version, 1000 + number, [(topic, 1)]))
        found = set()
        while len(found) < 60:
            packet = listener.packet()
            if packet.kind == packets.PUBLISH:
                listener.acknowledge(packet)
                found.add(int(packet.payload))
        equal(found, set(range(60)), "messages")


@case(GROUP, *BOTH, differs=differs(mosquitto="sends one, with the QoS of any of them"))
def test_overlapping_subscriptions_keep_the_highest_qos(broker, version):
    """MQTT-3.3.4-2 (3.1.1: 3.3.5-1): one copy with the highest QoS, or one for each subscription."""
    own = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        device.subscribed((f"{own}/+", 0), (f"{own}/#", 2), (f"{own}/a", 1))
        device.publish(f"{own}/a", b"x", qos=2)
        found = []
        while 2 not in found:
            found.append(device.message().qos)
            check(len(found) <= 3, f"came with {found}")


@case(GROUP, *BOTH)
def test_unsubscribing_stops_messages(broker, version):
    """MQTT-3.10.4-1, -2, -4 to -6, 3.11.3-1, -2."""
    topics = [fresh("t") for _ in range(4)]
    with Device(broker, version, fresh("c")) as device:
        device.subscribed(*topics)
        device.send(packets.unsubscribe(version, 815, [topics[0], fresh("t"), topics[2]]))
        found = device.expect(UNSUBACK)
        equal((found.packet_id, found.codes), (815, [0, 0x11, 0] if version == V5 else []), "UNSUBACK")
        for topic in topics:
            device.publish(topic, b"")
        equal([device.message().topic for _ in range(2)], [topics[1], topics[3]], "topics")


@case(GROUP, *BOTH, differs=differs(nats="takes the subscription to a/b away with that to a/b/#"))
def test_filters_are_unsubscribed_byte_for_byte(broker, version):
    """MQTT-3.10.4-1: other filters that match the same topic do not remove a subscription."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        device.subscribed(topic)
        device.unsubscribe(topic + "/#", "+", "#", topic.upper(), topic + "/")
        device.publish(topic, b"still")
        equal(device.message().payload, b"still", "message")


@case(GROUP, *BOTH, differs=differs(mosquitto="drops what is under way when its subscription goes"))
def test_what_was_begun_is_ended_after_unsubscribing(broker, version):
    """MQTT-3.10.4-3."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as listener:
        listener.subscribed((topic, 2))
        sender.publish(topic, b"x", qos=2)
        found = listener.message(acknowledges=False)
        listener.unsubscribe(topic)
        listener.acknowledge(found)
        listener.ping()


@case(GROUP, V5)
def test_own_messages_can_be_left_out(broker, version):
    """MQTT-3.8.3-3."""
    topic = fresh("t")
    with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as other:
        device.subscribed((topic, NO_LOCAL | 1))
        for qos in (0, 1):
            device.publish(topic, b"own", qos=qos)
            other.publish(topic, b"other's", qos=qos)
            equal(device.message().payload, b"other's", "the first message")


@case(GROUP, V5)
def test_identifiers_of_subscriptions_come_with_messages(broker, version):
    """MQTT-3.3.4-3 to -5."""
    own = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        device.subscribed((f"{own}/+", 1), subscription_id=7)
        device.subscribed((f"{own}/#", 1), subscription_id=268_435_455)
        device.subscribed((f"{own}/b", 1))
        device.publish(f"{own}/a", b"", qos=1)
        got = []
        while sorted(got) != [7, 268_435_455]:
            got += device.message().all("subscription_id")
            check(len(got) <= 2, f"identifiers {got}")
        # The last identifier for a filter applies.
        device.unsubscribe(f"{own}/#", f"{own}/+")
        device.subscribed((f"{own}/b", 1), subscription_id=9)
        device.publish(f"{own}/b", b"", qos=0)
        equal(device.message().all("subscription_id"), [9], "identifiers")


@case(GROUP, V5)
def test_a_shared_subscription_has_each_message_once(broker, version):
    """4.8.2, MQTT-4.8.2-1, -3."""
    topic, group = fresh("t"), fresh("g")
    members = [Device(broker, version, fresh("c")) for _ in range(3)]
    with Device(broker, version, fresh("c")) as sender, Device(broker, version, fresh("c")) as plain:
        for qos, member in enumerate(members):
            member.subscribed((f"$share/{group}/{topic}", qos))
            member.subscribed(f"{topic}/last")
        plain.subscribed((topic, 0))
        for number in range(90):
            sender.publish(topic, b"%d" % number, qos=number % 3)
        equal(sorted(map(int, plain.payloads(90))), list(range(90)), "beside the group")
        counts, got = [], []
        sender.publish(f"{topic}/last", b"last")
        for granted, member in enumerate(members):
            mine = drained(member)
            check(all(qos <= granted for _, qos in mine), "more than was granted")
            counts.append(len(mine))
            got += [number for number, _ in mine]
            member.close()
        equal(sorted(got), list(range(90)), f"over {counts}")
        check(min(counts) > 0, f"a member got nothing: {counts}")


def drained(member: Device) -> list[tuple[int, int]]:
    """Returns the messages before a second without messages. Messages above QoS 0 may arrive after a last one of
    QoS 0."""
    got = []
    member.socket.settimeout(1)
    try:
        while True:
            packet = member.message()
            if packet.payload != b"last":
                got.append((int(packet.payload), packet.qos))
    except TimeoutError:
        return got


@case(GROUP, V5, differs=differs(mosquitto="takes an empty name"))
def test_names_of_groups_that_are_none_fail(broker, version):
    """MQTT-4.8.2-1, -2, 3.8.3-4."""
    for wrong in (("$share//a", 0), ("$share/g", 0), ("$share/g+/a", 0), ("$share/#/a", 0), ("$share/g/a", NO_LOCAL)):
        with Device(broker, version, fresh("c")) as device:
            device.send(packets.subscribe(version, 5, [wrong]))
            found = device.until_end() if closes(device) else [device.last]
            failed = [packet for packet in found if packet.kind == SUBACK and packet.code < 0x80]
            check(not failed, f"{wrong} was granted")


@case(GROUP, V4, differs=differs(mosquitto="shares in 3.1.1 as well"))
def test_share_is_a_word_like_others_in_3_1_1(broker, version):
    """In 3.1.1 `$share/…` is an ordinary filter, as with nats-server."""
    own = fresh("t")
    with Device(broker, version, fresh("c")) as device:
        device.subscribed(f"$share/g/{own}")
        device.publish(own, b"not this")
        device.publish(f"$share/g/{own}", b"this")
        equal(device.message().payload, b"this", "message")
