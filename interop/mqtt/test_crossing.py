"""NATS and MQTT clients on the same subjects, with the official Python client for NATS."""

import asyncio
import contextlib
import json
import time
import urllib.request

import nats

from harness.checks import WAIT_SECONDS_MAX, check, equal
from harness.server import port_free
from mqtt import packets
from mqtt.brokers import Broker
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, fresh, kept
from mqtt.packets import SUBACK, V4, V5

GROUP = "crossing"
ALONE = {"nats-server": "has no such thing"}

SECONDS_MAX = 30

# Topic and subject of the same message. `~` is replaced by a name that only this case uses.
NAMES = [
    ("~", "~"), ("~/a/b", "~.a.b"), ("/~", "/.~"), ("~/", "~./"), ("~//b", "~./.b"), ("~/a.b", "~.a//b"),
    ("~/.", "~.//"), ("~/a.b.c/d", "~.a//b//c.d"), ("~/ü/☃", "~.ü.☃"), ("~/-_$", "~.-_$"), ("//~", "/./.~"),
]


@contextlib.asynccontextmanager
async def nats_client(broker, **options):
    async def ignore(error):
        """Ignores errors of the client; the checks of a case show them."""

    client = await nats.connect(f"nats://127.0.0.1:{broker.port}", error_cb=ignore, allow_reconnect=False, **options)
    try:
        yield client
    finally:
        await client.close()


async def subscribe(client, subject, **options):
    subscription = await client.subscribe(subject, **options)
    await flush(client)
    return subscription


async def flush(client):
    """Returns when the server has handled everything sent so far. The client sends a PING before its buffered
    messages, so a second PING is necessary."""
    await client.flush(SECONDS_MAX)
    await client.flush(SECONDS_MAX)


async def take(subscription, count) -> list:
    return [await subscription.next_msg(timeout=SECONDS_MAX) for _ in range(count)]


@case(GROUP, *BOTH, nats=True)
async def test_topics_are_subjects(broker, version):
    """Messages cross in both directions, with every QoS."""
    async with nats_client(broker) as client:
        with Device(broker, version, fresh("c")) as device:
            for topic, subject in NAMES:
                own = fresh("x")
                topic, subject = topic.replace("~", own), subject.replace("~", own)
                subscription = await subscribe(client, subject)
                for qos in range(3):
                    device.publish(topic, b"%d" % qos, qos=qos)
                found = [(message.subject, message.data) for message in await take(subscription, 3)]
                equal(found, [(subject, b"0"), (subject, b"1"), (subject, b"2")], f"from {topic}")
                await subscription.unsubscribe()
                device.subscribed((topic, 1))
                await client.publish(subject, b"back")
                await flush(client)
                found = device.message()
                equal((found.topic, found.payload), (topic, b"back"), f"from {subject}")


@case(GROUP, *BOTH, nats=True)
async def test_wildcards_see_the_other_side(broker, version):
    own = fresh("x")
    async with nats_client(broker) as client:
        star, tail = await subscribe(client, f"{own}.*"), await subscribe(client, f"{own}.>")
        with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as hash_:
            for topic in (own, f"{own}/a", f"{own}/a/b", f"{own}/c"):
                device.publish(topic, b"", qos=1)
            equal([m.subject for m in await take(star, 2)], [f"{own}.a", f"{own}.c"], "by *")
            equal([m.subject for m in await take(tail, 3)], [f"{own}.a", f"{own}.a.b", f"{own}.c"], "by >")
            device.subscribed(f"{own}/+", f"{own}/last/one")
            hash_.subscribed(f"{own}/#")
            subjects = [own, f"{own}.a", f"{own}.a.b", f"{own}.last.one"]
            for subject in subjects:
                await client.publish(subject, subject.encode())
            await flush(client)
            equal([device.message().topic for _ in range(2)], [f"{own}/a", f"{own}/last/one"], "by +")
            equal(hash_.payloads(4), [subject.encode() for subject in subjects], "by #")


@case(GROUP, *BOTH, nats=True)
async def test_messages_of_nats_have_qos_0(broker, version):
    """Messages of NATS clients have QoS 0, whatever QoS was granted. Payloads may contain any bytes."""
    topic = fresh("x")
    payload = bytes(range(256))
    async with nats_client(broker) as client:
        devices = [Device(broker, version, fresh("c")) for _ in range(3)]
        for qos, device in enumerate(devices):
            device.subscribed((topic, qos))
        for data in (payload, b"", payload * 400):
            await client.publish(topic, data)
            await flush(client)
            for device in devices:
                found = device.message()
                equal((found.qos, found.retain, found.payload == data), (0, False, True), "message")
        for device in devices:
            device.close()


@case(GROUP, *BOTH, nats=True)
async def test_many_stay_in_order(broker, version):
    out, back = fresh("x"), fresh("x")
    count = 2000
    numbers = [b"%d" % number for number in range(count)]
    async with nats_client(broker) as client:
        subscription = await subscribe(client, out)
        with Device(broker, version, fresh("c")) as device:
            device.send(b"".join(packets.publish(version, out, number) for number in numbers))
            equal([message.data for message in await take(subscription, count)], numbers, "to NATS")
            device.subscribed(back)
            for number in numbers:
                await client.publish(back, number)
            await flush(client)
            equal(device.payloads(count), numbers, "from NATS")


@case(GROUP, *BOTH, nats=True)
async def test_each_comes_once(broker, version):
    """Messages above QoS 0 are stored and forwarded. A NATS client receives each once, and not on internal
    subjects."""
    topic = fresh("x")
    async with nats_client(broker) as client:
        subscription = await subscribe(client, f"{topic}.>")
        with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as other:
            other.subscribed((f"{topic}/#", 2))
            for number in range(30):
                device.publish(f"{topic}/a", b"%d" % number, qos=number % 3, retain=number % 2 == 0)
            wanted = [b"%d" % number for number in range(30)]
            equal([message.data for message in await take(subscription, 30)], wanted, "at NATS")
            equal(sorted(other.payloads(30), key=int), wanted, "at MQTT")
            device.publish(f"{topic}/a", b"last")
            equal([message.data for message in await take(subscription, 1)], [b"last"], "the next")
            device.publish(f"{topic}/a", b"", retain=True)


@case(GROUP, *BOTH, nats=True)
async def test_streams_keep_what_devices_publish(broker, version):
    """A stream stores messages of devices, and devices receive messages that are published to the stream."""
    own = fresh("x")
    async with nats_client(broker) as client:
        stream = client.jetstream()
        await stream.add_stream(name=own, subjects=[f"{own}.>"])
        with Device(broker, version, fresh("c")) as device:
            for number in range(60):
                device.publish(f"{own}/a/{number % 3}", b"%d" % number, qos=number % 3)
            for qos in range(3) if version == V5 else ():
                # A stream without TTLs stores a message with an expiry like any other.
                device.publish(f"{own}/a/0", b"%d" % (60 + qos), qos=qos, message_expiry=1000)
            count = 63 if version == V5 else 60
            subscription = await stream.subscribe(f"{own}.>", ordered_consumer=True)
            found = [message.data for message in await take(subscription, count)]
            equal(sorted(found, key=int), [b"%d" % number for number in range(count)], "kept")
            device.subscribed((f"{own}/#", 1))
            await stream.publish(f"{own}.back", b"hello")
            equal(device.message().payload, b"hello", "published to the stream")
        await stream.delete_stream(own)


@case(GROUP, *BOTH, nats=True)
async def test_retained_messages_are_of_mqtt_alone(broker, version):
    """A NATS client does not receive a retained message when it subscribes, and its own messages are not
    retained."""
    topic = fresh("x")
    async with nats_client(broker) as client:
        with Device(broker, version, fresh("c")) as device:
            device.publish(topic, b"kept", qos=1, retain=True)
            subscription = await subscribe(client, topic)
            await client.publish(topic, b"passing")
            equal([m.data for m in await take(subscription, 1)], [b"passing"], "the first at NATS")
            device.subscribed(topic)
            equal(device.message().payload, b"kept", "retained")


@case(GROUP, *BOTH, nats=True)
async def test_a_will_reaches_nats(broker, version):
    topic = fresh("x")
    async with nats_client(broker) as client:
        subscription = await subscribe(client, topic)
        for qos in range(3):
            Device(broker, version, fresh("c"), will=packets.Will(topic, b"gone", qos)).reset()
            equal([message.data for message in await take(subscription, 1)], [b"gone"], "the will")


@case(GROUP, *BOTH, nats=True)
async def test_sessions_lie_in_streams_of_known_names(broker, version):
    """The streams `$MQTT_…` have the same names as in nats-server."""
    client_id = fresh("c")
    with Device(broker, version, client_id, **kept(version)) as device:
        device.subscribed((fresh("t"), 2))
        device.leave()
    async with nats_client(broker) as client:
        answer = await client.request("$JS.API.STREAM.NAMES", b"", timeout=SECONDS_MAX)
        names = set(json.loads(answer.data)["streams"])
        wanted = {"$MQTT_sess", "$MQTT_msgs", "$MQTT_rmsgs", "$MQTT_qos2in", "$MQTT_out"}
        check(wanted <= names, f"missing: {wanted - names}")


@case(GROUP, *BOTH, nats=True)
async def test_topics_without_a_subject_are_refused(broker, version):
    """A subject cannot contain a space."""
    with Device(broker, version, fresh("c")) as device:
        device.send(packets.subscribe(version, 3, [("a b", 0), (fresh("t"), 0)]))
        codes = device.expect(SUBACK).codes
        check(codes[0] >= 0x80 and codes[1] == 0, f"codes {codes}")
        device.send(packets.publish(version, "a b", b"", qos=1))
        check(device.end_reason() in ((0x90, 0x82, 0x81) if version == V5 else (None,)), "another reason")


@case(GROUP, *BOTH, nats=True)
async def test_monitoring_knows_its_clients(broker, version):
    """`/connz` can be queried by client identifier, and `/varz` has the `mqtt` block."""
    http = port_free()
    with Broker(broker.kind, more=f'http: "127.0.0.1:{http}"') as own:
        client_id = fresh("c")
        with Device(own, version, client_id) as device:
            device.subscribed(fresh("t"))

            def get(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{http}{path}", timeout=SECONDS_MAX) as answer:
                    return json.loads(answer.read())

            found = get(f"/connz?mqtt_client={client_id}")["connections"]
            equal([connection.get("mqtt_client") for connection in found], [client_id], "by its id")
            equal(found[0]["type"], "mqtt", "type")
            equal(get("/connz?mqtt_client=nobody")["connections"], [], "of nobody")
            equal(get("/varz")["mqtt"]["port"], own.mqtt_port, "port")


@case(GROUP, *BOTH, nats=True, differs=ALONE)
def test_monitoring_tells_of_sessions(broker, version):
    """`/connz` shows sessions of connected clients, and `/metrics` counts stored state."""
    http, topic = port_free(), fresh("t")
    with Broker(broker.kind, more=f'http: "127.0.0.1:{http}"') as own:

        def get(path) -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{http}{path}", timeout=SECONDS_MAX) as answer:
                return answer.read().decode()

        def metrics() -> dict[str, str]:
            lines = [line.rsplit(" ", 1) for line in get("/metrics").splitlines() if line.startswith("fanline_mqtt_")]
            return {name.removeprefix("fanline_mqtt_"): value for name, value in lines}

        with Device(own, version, fresh("c"), keep_alive=50, **kept(version, 1000)) as device:
            device.subscribed((topic, 1))
            device.publish(topic, b"kept", qos=1, retain=True)
            found = device.message(acknowledges=False)
            equal(found.payload, b"kept", "message")
            session = json.loads(get(f"/connz?mqtt_client={device.client_id}"))["connections"][0]["mqtt_session"]
            expected = {"version": "3.1.1" if version == V4 else "5.0", "keep_alive": 50, "in_flight": 1, "waiting": 0}
            equal(session, expected | ({} if version == V4 else {"expiry": 1000}), "session")
            counts = {"connections": "1", "in_flight_messages": "1", "kept_sessions": "1", "retained_messages": "1"}
            equal({name: metrics()[name] for name in counts}, counts, "metrics")
            equal(metrics()["kept_messages"], "1", "messages")


@case(GROUP, V5, nats=True, differs=ALONE)
async def test_properties_are_headers(broker, version):
    """User properties and content type are headers, in both directions."""
    topic = fresh("x")
    async with nats_client(broker) as client:
        subscription = await subscribe(client, topic)
        with Device(broker, version, fresh("c")) as device:
            for qos in range(3):
                device.publish(topic, b"x", qos=qos, user=("Kind", "a: b"), content_type="text/plain")
                headers = (await take(subscription, 1))[0].headers
                equal((headers["Kind"], headers["Content-Type"]), ("a: b", "text/plain"), f"headers, QoS {qos}")
            await subscription.unsubscribe()
            device.subscribed((topic, 1))
            await client.publish(topic, b"y", headers={"Kind": "back", "Content-Type": "text/html"})
            await flush(client)
            found = device.message()
            equal((found.all("user"), found.property("content_type")), ([("Kind", "back")], "text/html"), "properties")


@case(GROUP, V4, nats=True)
async def test_headers_do_not_disturb_older_clients(broker, version):
    """A client of 3.1.1 receives the payload without headers."""
    topic = fresh("x")
    async with nats_client(broker) as client:
        with Device(broker, version, fresh("c")) as device:
            device.subscribed((topic, 1))
            await client.publish(topic, b"payload", headers={"Kind": "x"})
            await flush(client)
            equal(device.message().payload, b"payload", "payload")


@case(GROUP, V5, nats=True, differs=ALONE)
async def test_requests_cross_both_ways(broker, version):
    """The response topic is the reply subject of the request."""
    ask, answer_to = fresh("x"), fresh("x")
    async with nats_client(broker) as client:
        with Device(broker, version, fresh("c")) as device:
            device.subscribed((ask, 1), (answer_to, 1))
            waiting = asyncio.create_task(client.request(ask, b"question", timeout=SECONDS_MAX))
            found = await asyncio.to_thread(device.message)
            device.publish(found.property("response_topic"), b"answer to " + found.payload)
            equal((await waiting).data, b"answer to question", "answer of a device")

            # Like `respond`, but with the headers of the request. These describe how the request was published,
            # not the response.
            async def respond(message):
                await client.publish(message.reply, b"answer to " + message.data, headers=message.headers)

            other = fresh("x")
            await subscribe(client, other, cb=respond)
            device.publish(other, b"question", qos=1, response_topic=answer_to)
            equal((await asyncio.to_thread(device.message)).payload, b"answer to question", "answer of a service")


@case(GROUP, *BOTH, nats=True, differs=differs(nats="believes whoever sends the header"))
async def test_headers_of_a_device_say_nothing_from_others(broker, version):
    """`Nmqtt-Pub` and `Mqtt-Retain` have an effect only in messages of devices."""
    topic = fresh("x")
    async with nats_client(broker) as client:
        with Device(broker, version, fresh("c")) as device, Device(broker, version, fresh("c")) as other:
            # With Retain As Published in 5.0.
            device.subscribed((topic, 2 if version == V4 else 0x08 | 2))
            copied = {"Nmqtt-Pub": "1", "Mqtt-Retain": "1", "Nmqtt-Client": "x"}
            for number in range(20):
                await client.publish(topic, b"%d" % number, headers=copied)
            await flush(client)
            found = [device.message() for _ in range(20)]
            equal([packet.payload for packet in found], [b"%d" % number for number in range(20)], "messages")
            equal({(packet.qos, packet.retain) for packet in found}, {(0, False)}, "QoS and RETAIN")
            other.publish(topic, b"a device's", qos=1)
            found = device.message()
            equal((found.payload, found.qos), (b"a device's", 1), "behind them")
            device.ping()


@case(GROUP, V5, nats=True, differs=ALONE)
async def test_above_qos_0_a_group_is_its_mqtt_members(broker, version):
    """Messages with QoS 1 and 2 go to the MQTT members of a group only. Before the first such member, a NATS
    queue group of the same name receives them."""
    topic, group = fresh("x"), fresh("g")
    async with nats_client(broker) as client:
        heard = []

        async def listen(message):
            heard.append(message.data)

        await subscribe(client, topic, queue=group, cb=listen)
        with Device(broker, version, fresh("c")) as member, Device(broker, version, fresh("c")) as sender:
            sender.publish(topic, b"alone", qos=1)
            await flush(client)
            member.subscribed((f"$share/{group}/{topic}", 1))
            sender.publish_numbers(topic, 20, 1, 2)
            equal(member.payloads(20), [b"%d" % number for number in range(20)], "messages")
            await flush(client)
            equal(heard, [b"alone"], "at NATS")


@case(GROUP, *BOTH, nats=True)
def test_a_subject_may_have_another_name(broker, version):
    """`mappings` apply to messages of every QoS, and to stored ones."""
    with Broker(broker.kind, more='mappings { "old.*": "new.{{wildcard(1)}}" }') as own:
        with Device(own, version, fresh("c")) as device, Device(own, version, fresh("c")) as sender:
            device.subscribed(("new/+", 2), ("old/+", 2))
            for qos in range(3):
                sender.publish("old/a", b"%d" % qos, qos=qos)
                found = device.message()
                equal((found.topic, found.payload, found.qos), ("new/a", b"%d" % qos, qos), "message")
            device.ping()


@case(GROUP, V5, nats=True, differs=ALONE)
async def test_a_group_has_members_on_both_sides(broker, version):
    """`$share/g/…` and the queue group `g` are one group."""
    topic, group = fresh("x"), fresh("g")
    async with nats_client(broker) as client:
        heard = []

        async def listen(message):
            heard.append(message.data)

        await subscribe(client, topic, queue=group, cb=listen)
        with Device(broker, version, fresh("c")) as member, Device(broker, version, fresh("c")) as sender:
            member.subscribed(f"$share/{group}/{topic}", f"{topic}/last")
            sender.publish_numbers(topic, 100, 0)
            sender.publish(f"{topic}/last", b"last")
            got = []
            while (payload := member.message().payload) != b"last":
                got.append(payload)
            deadline = time.monotonic() + WAIT_SECONDS_MAX
            while len(heard) + len(got) < 100:
                check(time.monotonic() < deadline, f"{len(heard)} messages at NATS and {len(got)} at MQTT, of 100")
                await asyncio.sleep(0.01)
            equal(sorted(heard + got, key=int), [b"%d" % number for number in range(100)], "messages")
            check(heard and got, f"{len(heard)} at NATS, {len(got)} at MQTT")
