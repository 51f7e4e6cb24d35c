"""paho-mqtt with both versions, over TCP and WebSocket."""

import queue

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from harness.checks import check, equal
from mqtt.case import BOTH, case
from mqtt.device import fresh
from mqtt.packets import V5
from mqtt.secure import secured

GROUP = "paho-mqtt"

# Protects against hanging; not a measurement.
SECONDS_MAX = 30

PROTOCOLS = {4: paho.MQTTv311, 5: paho.MQTTv5}


def properties(kind: int, **values) -> Properties:
    found = Properties(kind)
    for name, value in values.items():
        setattr(found, name, value)
    return found


class Client:
    """A connected client that stores received messages in a queue."""

    def __init__(self, broker, version, client_id=None, transport="tcp", keeps=False, will=None, trusts=None, **options):
        self.messages: queue.Queue = queue.Queue()
        self.ended: queue.Queue = queue.Queue()
        self.version = version
        clean = {} if version == V5 else {"clean_session": not keeps}
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id or fresh("paho"), protocol=PROTOCOLS[version],
            transport=transport, **clean,
        )
        connected: queue.Queue = queue.Queue()
        self.client.on_connect = lambda _c, _u, flags, reason, _p: connected.put((flags.session_present, reason))
        self.client.on_message = lambda _c, _u, message: self.messages.put(message)
        self.client.on_disconnect = lambda _c, _u, _f, reason, _p: self.ended.put(reason)
        self.codes: queue.Queue = queue.Queue()
        self.client.on_subscribe = lambda _c, _u, _m, codes, _p: self.codes.put([code.value for code in codes])
        self.client.on_unsubscribe = lambda *_: self.codes.put("unsubscribed")
        if will:
            self.client.will_set(*will)
        if trusts:
            self.client.tls_set(trusts)
        port = broker.mqtt_port
        if transport == "websockets":
            self.client.ws_set_options(path=broker.kind.websocket_path)
            port = broker.websocket_port
        if version == V5:
            options["clean_start"] = not keeps
            if keeps:
                options["properties"] = properties(PacketTypes.CONNECT, SessionExpiryInterval=3600)
        self.client.connect("127.0.0.1", port, keepalive=60, **options)
        self.client.loop_start()
        self.session_present, reason = connected.get(timeout=SECONDS_MAX)
        equal(reason.value, 0, "the answer to CONNECT")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.disconnect()
        self.client.loop_stop()

    def crash(self):
        """Closes the connection without DISCONNECT, and does not reconnect."""
        self.client.loop_stop()
        self.client.socket().close()

    def subscribe(self, topic, qos=0, **options) -> list[int]:
        if options:
            self.client.subscribe(topic, options=SubscribeOptions(qos=qos, **options))
        else:
            self.client.subscribe(topic, qos)
        return self.codes.get(timeout=SECONDS_MAX)

    def unsubscribe(self, topic):
        self.client.unsubscribe(topic)
        self.codes.get(timeout=SECONDS_MAX)

    def publish(self, topic, payload=b"", qos=0, retain=False, **values):
        more = {"properties": properties(PacketTypes.PUBLISH, **values)} if values else {}
        return self.client.publish(topic, payload, qos, retain, **more)

    def published(self, *arguments, **options):
        info = self.publish(*arguments, **options)
        info.wait_for_publish(SECONDS_MAX)
        check(info.is_published(), "not acknowledged")

    def take(self, count: int) -> list:
        return [self.messages.get(timeout=SECONDS_MAX) for _ in range(count)]


@case(GROUP, *BOTH)
def test_publish_and_subscribe(broker, version):
    """Publishes a thousand messages with each QoS at once."""
    with Client(broker, version) as sender, Client(broker, version) as receiver:
        for qos in range(3):
            topic = fresh("p")
            equal(receiver.subscribe(topic, qos), [qos], "granted")
            infos = [sender.publish(topic, b"%d" % number, qos) for number in range(1000)]
            found = receiver.take(1000)
            equal([message.payload for message in found], [b"%d" % number for number in range(1000)], f"QoS {qos}")
            equal({message.qos for message in found}, {qos}, "QoS")
            for info in infos:
                info.wait_for_publish(SECONDS_MAX)


@case(GROUP, *BOTH)
def test_over_websocket(broker, version):
    """MQTT-6.0.0-1, -2, -4."""
    topic = fresh("p")
    with Client(broker, version, transport="websockets") as page, Client(broker, version) as device:
        page.subscribe(topic, 2)
        device.subscribe(topic, 2)
        for sender in (page, device):
            for size in (0, 10, 125, 126, 4096, 70_000, 300_000):
                payload = bytes(n * 31 & 255 for n in range(size))
                sender.published(topic, payload, qos=size % 3)
                for receiver in (page, device):
                    check(receiver.take(1)[0].payload == payload, f"{size} bytes")


@case(GROUP, *BOTH, nats=True)
def test_within_tls(broker, version):
    """TCP and WebSocket with TLS, in both directions."""
    topic = fresh("p")
    own, pem = secured(broker.kind)
    with own:
        with Client(own, version, transport="websockets", trusts=pem) as page, Client(own, version, trusts=pem) as device:
            page.subscribe(topic, 2)
            device.subscribe(topic, 2)
            for sender in (page, device):
                for size in (0, 10, 4096, 300_000):
                    payload = bytes(n * 31 & 255 for n in range(size))
                    sender.published(topic, payload, qos=size % 3)
                    for receiver in (page, device):
                        check(receiver.take(1)[0].payload == payload, f"{size} bytes")


@case(GROUP, *BOTH)
def test_retained_and_wills(broker, version):
    topic = fresh("p")
    with Client(broker, version) as watcher:
        watcher.subscribe(topic, 1)
        Client(broker, version, will=(topic, b"gone", 1, True)).crash()
        found = watcher.take(1)[0]
        equal((found.payload, found.retain), (b"gone", False), "will")
        with Client(broker, version) as later:
            later.subscribe(topic, 1)
            found = later.take(1)[0]
            equal((found.payload, found.retain), (b"gone", True), "retained")
            later.published(topic, b"", 1, True)


@case(GROUP, *BOTH)
def test_a_session_goes_on(broker, version):
    topic, client_id = fresh("p"), fresh("paho")
    with Client(broker, version, client_id, keeps=True) as client:
        equal(client.session_present, False, "session present")
        client.subscribe(topic, 2)
    with Client(broker, version) as sender:
        for number in range(100):
            sender.published(topic, b"%d" % number, qos=1 + number % 2)
    with Client(broker, version, client_id, keeps=True) as client:
        equal(client.session_present, True, "session present")
        found = [int(message.payload) for message in client.take(100)]
        # The client delivers a QoS 2 message when it is released, so other messages may overtake it.
        equal([n for n in found if n % 2], list(range(1, 100, 2)), "messages of QoS 2")
        equal([n for n in found if n % 2 == 0], list(range(0, 100, 2)), "messages of QoS 1")
        client.unsubscribe(topic)


@case(GROUP, *BOTH)
def test_it_comes_back_after_a_restart(broker, version):
    """The client reconnects by itself and resumes its session."""
    topic, client_id = fresh("p"), fresh("paho")
    with Client(broker, version, client_id, keeps=True) as client:
        client.client.reconnect_delay_set(min_delay=1, max_delay=1)
        client.subscribe(topic, 1)
        broker.restart()
        with Client(broker, version) as sender:
            sender.published(topic, b"after", qos=1)
        equal(client.take(1)[0].payload, b"after", "message")


@case(GROUP, V5)
def test_properties_of_5_0(broker, version):
    topic = fresh("p")
    with Client(broker, version) as sender, Client(broker, version) as receiver:
        receiver.subscribe(topic, 1)
        sender.published(
            topic, b"x", 1, PayloadFormatIndicator=1, ContentType="text/plain", ResponseTopic="a/b",
            CorrelationData=b"\0\1", UserProperty=[("a", "1"), ("b", "2"), ("a", "3")], MessageExpiryInterval=1000,
        )
        found = receiver.take(1)[0].properties
        equal(found.UserProperty, [("a", "1"), ("b", "2"), ("a", "3")], "user properties")
        equal((found.ContentType, found.ResponseTopic, found.CorrelationData), ("text/plain", "a/b", b"\0\1"), "others")
        check(0 < found.MessageExpiryInterval <= 1000, "expiry")


@case(GROUP, V5)
def test_options_of_subscriptions(broker, version):
    topic = fresh("p")
    with Client(broker, version) as client:
        client.published(topic, b"kept", 1, True)
        client.subscribe(topic, 1, noLocal=False, retainAsPublished=True, retainHandling=2)
        client.published(topic, b"new", 1, True)
        found = client.take(1)[0]
        equal((found.payload, found.retain), (b"new", True), "the first message")
        client.published(topic, b"", 1, True)


@case(GROUP, V5)
def test_shared_between_two(broker, version):
    topic = fresh("p")
    with Client(broker, version) as one, Client(broker, version) as two, Client(broker, version) as sender:
        for member in (one, two):
            member.subscribe(f"$share/g/{topic}", 1)
        for number in range(200):
            sender.published(topic, b"%d" % number, qos=1)
        got = []
        while len(got) < 200:
            for member in (one, two):
                try:
                    got.append(member.messages.get(timeout=0.05).payload)
                except queue.Empty:
                    pass
        equal(sorted(got, key=int), [b"%d" % number for number in range(200)], "messages")
