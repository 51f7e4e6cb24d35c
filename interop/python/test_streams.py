"""JetStream with the official Python client, nats-py: streams, consumers, key-value buckets, and objects."""

import asyncio
import hashlib
import os
import signal
import tempfile

import pytest
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    KeyValueConfig,
    ObjectMeta,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import (
    APIError,
    BadRequestError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
)

from harness.checks import check, equal
from harness.server import Server, server_under_test
from python.peers import SECONDS_MAX, connect, flush

OBJECT_BYTES = 64 * 1024 * 1024


async def publish_many(jetstream, subject: str, count: int):
    pending = [await jetstream.publish_async(subject, b"%d" % number) for number in range(count)]
    acks = await asyncio.wait_for(asyncio.gather(*pending), SECONDS_MAX)
    return [ack.seq for ack in acks]


async def drained(subscription, count: int) -> list:
    found = []
    while len(found) < count:
        batch = await subscription.fetch(min(100, count - len(found)), timeout=SECONDS_MAX)
        for message in batch:
            await message.ack()
        found += batch
    return [int(message.data) for message in found]


async def until(condition, what: str):
    """Waits until the condition returns something, and returns that."""
    for _ in range(SECONDS_MAX * 20):
        if found := await condition():
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(what)


async def settled(jetstream, stream: str, consumer: str, left: int = 0):
    """Returns once the consumer has processed all acknowledgements, which the server does not answer, and has
    `left` messages to deliver."""
    async def info():
        found = await jetstream.consumer_info(stream, consumer)
        return found if (found.num_ack_pending, found.num_pending) == (0, left) else None

    return await until(info, f"not all was acknowledged, or not {left} are left")


async def publish_and_acknowledge(client, jetstream):
    await jetstream.add_stream(name="ACKS", subjects=["acks.*"])
    ack = await jetstream.publish("acks.one", b"first")
    equal((ack.stream, ack.seq, ack.duplicate), ("ACKS", 1, None), "the first acknowledgement")
    sequences = await publish_many(jetstream, "acks.many", 2000)
    equal(sequences, list(range(2, 2002)), "sequences in order")
    info = await jetstream.stream_info("ACKS")
    equal((info.state.messages, info.state.first_seq, info.state.last_seq), (2001, 1, 2001), "the state")
    found = await jetstream.get_msg("ACKS", 1)
    equal((found.subject, found.data), ("acks.one", b"first"), "the record at 1")
    found = await jetstream.get_last_msg("ACKS", "acks.many")
    equal((found.seq, found.data), (2001, b"1999"), "the last of a subject")


async def duplicates(client, jetstream):
    await jetstream.add_stream(name="DUPES", subjects=["dupes"], duplicate_window=60)
    acks = [
        await jetstream.publish("dupes", b"x", headers={"Nats-Msg-Id": identity})
        for identity in ("a", "b", "a", "b", "c")
    ]
    equal([ack.seq for ack in acks], [1, 2, 1, 2, 3], "sequences")
    equal([bool(ack.duplicate) for ack in acks], [False, False, True, True, False], "told as duplicates")
    equal((await jetstream.stream_info("DUPES")).state.messages, 3, "stored")


async def expectations(client, jetstream):
    await jetstream.add_stream(name="EXPECT", subjects=["expect.*"])
    await jetstream.publish("expect.a", b"1", headers={"Nats-Msg-Id": "one"})
    await jetstream.publish("expect.a", b"2", headers={"Nats-Expected-Last-Sequence": "1"})
    for name, value, code in (
        ("Nats-Expected-Last-Sequence", "7", 10071),
        ("Nats-Expected-Last-Subject-Sequence", "1", 10071),
        ("Nats-Expected-Last-Msg-Id", "other", 10070),
        ("Nats-Expected-Stream", "OTHER", 10060),
    ):
        with pytest.raises(APIError) as error:
            await jetstream.publish("expect.a", b"no", headers={name: value})
        equal(error.value.err_code, code, name)
    equal((await jetstream.stream_info("EXPECT")).state.messages, 2, "stored")


async def limits(client, jetstream):
    await jetstream.add_stream(
        name="FULL", subjects=["full.*"], max_msgs=3, discard=DiscardPolicy.NEW, storage=StorageType.MEMORY
    )
    await publish_many(jetstream, "full.a", 3)
    with pytest.raises(APIError) as error:
        await jetstream.publish("full.a", b"no")
    equal((error.value.err_code, error.value.description), (10077, "maximum messages exceeded"), "the refusal")
    await jetstream.add_stream(name="LATEST", subjects=["latest.*"], max_msgs_per_subject=2)
    for key in "abc":
        await publish_many(jetstream, f"latest.{key}", 5)
    info = await jetstream.stream_info("LATEST", subjects_filter=">")
    equal(info.state.subjects, {f"latest.{key}": 2 for key in "abc"}, "records per subject")
    equal((await jetstream.stream_info("LATEST")).state.first_seq, 4, "the first")


async def pull_durable(client, jetstream):
    await jetstream.add_stream(name="PULL", subjects=["pull"])
    await publish_many(jetstream, "pull", 1000)
    subscription = await jetstream.pull_subscribe("pull", "worker")
    equal(await drained(subscription, 600), list(range(600)), "the first part")
    await settled(jetstream, "PULL", "worker", 400)
    await subscription.unsubscribe()
    again = await jetstream.pull_subscribe("pull", "worker")
    equal(await drained(again, 400), list(range(600, 1000)), "the rest, to another subscriber")
    info = await settled(jetstream, "PULL", "worker")
    equal((info.ack_floor.stream_seq, info.delivered.consumer_seq), (1000, 1000), "where it stands")
    with pytest.raises(TimeoutError):
        await again.fetch(1, timeout=0.2)


async def acknowledgements(client, jetstream):
    """NAK causes a redelivery, TERM and ACK do not, in-progress extends the wait, and a request gets an answer."""
    await jetstream.add_stream(name="KINDS", subjects=["kinds"])
    await publish_many(jetstream, "kinds", 4)
    config = ConsumerConfig(ack_wait=SECONDS_MAX, max_deliver=3)
    subscription = await jetstream.pull_subscribe("kinds", "worker", config=config)
    acked, naked, ended, slow = await subscription.fetch(4, timeout=SECONDS_MAX)
    await acked.ack_sync(timeout=SECONDS_MAX)
    await naked.nak()
    await ended.term()
    await slow.in_progress()
    (again,) = await subscription.fetch(1, timeout=SECONDS_MAX)
    equal((again.data, again.metadata.num_delivered), (b"1", 2), "what was not acknowledged")
    await again.nak(delay=0.1)
    (third,) = await subscription.fetch(1, timeout=SECONDS_MAX)
    equal((third.data, third.metadata.num_delivered), (b"1", 3), "after a delay")
    await third.ack_sync(timeout=SECONDS_MAX)
    await slow.ack_sync(timeout=SECONDS_MAX)
    info = await settled(jetstream, "KINDS", "worker")
    equal(info.ack_floor.stream_seq, 4, "acknowledged up to")


async def redelivery(client, jetstream):
    await jetstream.add_stream(name="AGAIN", subjects=["again"])
    await publish_many(jetstream, "again", 3)
    config = ConsumerConfig(ack_wait=0.3, max_deliver=2)
    subscription = await jetstream.pull_subscribe("again", "worker", config=config)
    first = await subscription.fetch(3, timeout=SECONDS_MAX)
    second = []
    while len(second) < 3:
        second += await subscription.fetch(3 - len(second), timeout=SECONDS_MAX)
    for found, delivered in ((first, 1), (second, 2)):
        equal([m.metadata.num_delivered for m in found], [delivered] * 3, "deliveries")
        equal(sorted(m.data for m in found), [b"0", b"1", b"2"], "payloads")
    with pytest.raises(TimeoutError):
        await subscription.fetch(1, timeout=1)


async def push_durable(client, jetstream):
    await jetstream.add_stream(name="PUSH", subjects=["push.>"])
    await publish_many(jetstream, "push.a", 500)
    heard, done = [], asyncio.Event()

    async def listen(message):
        heard.append((message.subject, int(message.data)))
        if len(heard) == 600:
            done.set()

    config = ConsumerConfig(filter_subject="push.a")
    await jetstream.subscribe("push.a", durable="pushed", cb=listen, config=config)
    await jetstream.publish("push.b", b"999")
    await publish_many(jetstream, "push.a", 100)
    await asyncio.wait_for(done.wait(), SECONDS_MAX)
    wanted = [("push.a", number) for number in [*range(500), *range(100)]]
    equal(heard, wanted, "what was pushed")
    await settled(jetstream, "PUSH", "pushed")


async def push_queue(client, jetstream):
    """Members of a deliver group share the messages."""
    await jetstream.add_stream(name="SHARE", subjects=["share"])
    heard, done = [[], [], []], asyncio.Event()

    def listener(mine):
        async def listen(message):
            mine.append(int(message.data))
            if sum(map(len, heard)) == 600:
                done.set()

        return listen

    for mine in heard:
        await jetstream.subscribe("share", queue="workers", durable="workers", cb=listener(mine))
    await publish_many(jetstream, "share", 600)
    await asyncio.wait_for(done.wait(), SECONDS_MAX)
    equal(sorted(sum(heard, [])), list(range(600)), "over all members")
    check(all(heard), f"a member got nothing: {[len(mine) for mine in heard]}")


async def ephemeral(client, jetstream):
    await jetstream.add_stream(name="BRIEF", subjects=["brief"])
    await publish_many(jetstream, "brief", 10)
    subscription = await jetstream.subscribe("brief", config=ConsumerConfig(deliver_policy=DeliverPolicy.LAST))
    equal((await subscription.next_msg(SECONDS_MAX)).data, b"9", "the last")
    await publish_many(jetstream, "brief", 1)
    equal((await subscription.next_msg(SECONDS_MAX)).data, b"0", "what came after")
    name = (await subscription.consumer_info()).name
    await subscription.unsubscribe()
    await jetstream.delete_consumer("BRIEF", name)
    with pytest.raises(NotFoundError) as error:
        await jetstream.consumer_info("BRIEF", name)
    equal(error.value.err_code, 10014, "the error")


async def ordered(client, jetstream):
    await jetstream.add_stream(name="ORDER", subjects=["order"])
    await publish_many(jetstream, "order", 3000)
    subscription = await jetstream.subscribe("order", ordered_consumer=True)
    found = [int((await subscription.next_msg(SECONDS_MAX)).data) for _ in range(3000)]
    equal(found, list(range(3000)), "in order")
    await subscription.unsubscribe()


async def starts(client, jetstream):
    """Where a consumer starts."""
    await jetstream.add_stream(name="START", subjects=["start.*"])
    for number in range(12):
        await jetstream.publish(f"start.{number % 3}", b"%d" % number)
    third = await jetstream.get_msg("START", 3)
    for config, wanted in (
        (ConsumerConfig(deliver_policy=DeliverPolicy.ALL), list(range(12))),
        (ConsumerConfig(deliver_policy=DeliverPolicy.LAST), [11]),
        (ConsumerConfig(deliver_policy=DeliverPolicy.LAST_PER_SUBJECT, filter_subject="start.*"), [9, 10, 11]),
        (ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=9), [8, 9, 10, 11]),
        (ConsumerConfig(deliver_policy=DeliverPolicy.ALL, filter_subjects=["start.0", "start.2"]),
         [0, 2, 3, 5, 6, 8, 9, 11]),
    ):
        info = await jetstream.add_consumer("START", config.evolve(ack_policy=AckPolicy.NONE))
        equal(info.num_pending, len(wanted), "pending")
        subscription = await jetstream.pull_subscribe_bind(info.name, "START")
        found = await subscription.fetch(len(wanted), timeout=SECONDS_MAX)
        equal([int(message.data) for message in found], wanted, str(config.deliver_policy))
    check(third.time is not None, "a record without a time")


async def work_queue(client, jetstream):
    config = StreamConfig(name="WORK", subjects=["work"], retention=RetentionPolicy.WORK_QUEUE)
    await jetstream.add_stream(config)
    await publish_many(jetstream, "work", 50)
    subscription = await jetstream.pull_subscribe("work", "worker")
    with pytest.raises(BadRequestError) as error:
        await jetstream.add_consumer("WORK", durable_name="other", ack_policy=AckPolicy.EXPLICIT)
    equal(error.value.err_code, 10099, "the error")
    equal(await drained(subscription, 50), list(range(50)), "the work")

    async def is_empty():
        return (await jetstream.stream_info("WORK")).state.messages == 0

    await until(is_empty, "what was done is still there")


async def manage_streams(client, jetstream):
    await jetstream.add_stream(name="MANAGE", subjects=["manage.*"])
    for key in "abc":
        await publish_many(jetstream, f"manage.{key}", 10)
    await jetstream.update_stream(name="MANAGE", subjects=["manage.*", "more"], max_msgs=1000)
    equal((await jetstream.publish("more", b"")).seq, 31, "to the new subject")
    check(await jetstream.delete_msg("MANAGE", 2), "a record was not deleted")
    info = await jetstream.stream_info("MANAGE")
    equal((info.state.messages, info.state.first_seq), (30, 1), "after a delete")
    check(await jetstream.purge_stream("MANAGE", subject="manage.b"), "not purged")
    equal((await jetstream.stream_info("MANAGE")).state.messages, 20, "after a purge of a subject")
    check(await jetstream.purge_stream("MANAGE", keep=5), "not purged")
    info = await jetstream.stream_info("MANAGE")
    equal((info.state.messages, info.state.last_seq), (5, 31), "after a purge")
    equal(await jetstream.find_stream_name_by_subject("more"), "MANAGE", "found by subject")
    names = [info.config.name for info in await jetstream.streams_info()]
    check("MANAGE" in names, f"not listed: {names}")
    check(await jetstream.delete_stream("MANAGE"), "not deleted")
    with pytest.raises(NotFoundError) as error:
        await jetstream.stream_info("MANAGE")
    equal(error.value.err_code, 10059, "the error")


async def key_value(client, jetstream):
    bucket = await jetstream.create_key_value(bucket="kv", history=5)
    equal(await bucket.put("a.b", b"one"), 1, "the first revision")
    entry = await bucket.get("a.b")
    equal((entry.key, entry.value, entry.revision), ("a.b", b"one", 1), "an entry")
    equal(await bucket.update("a.b", b"two", last=1), 2, "the revision after an update")
    with pytest.raises(KeyWrongLastSequenceError):
        await bucket.update("a.b", b"no", last=1)
    equal(await bucket.create("c", b"new"), 3, "the revision of a new key")
    with pytest.raises(KeyWrongLastSequenceError):
        await bucket.create("c", b"no")
    equal((await bucket.get("a.b", revision=1)).value, b"one", "an old revision")
    check(await bucket.delete("c"), "not deleted")
    with pytest.raises(KeyNotFoundError):
        await bucket.get("c")
    equal(await bucket.create("c", b"again"), 5, "the revision of a key that was deleted")
    with pytest.raises(KeyNotFoundError):
        await bucket.get("none")
    history = [(entry.value, entry.operation) for entry in await bucket.history("a.b")]
    equal(history, [(b"one", None), (b"two", None)], "the history")
    equal(sorted(await bucket.keys()), ["a.b", "c"], "the keys")
    check(await bucket.purge("a.b"), "not purged")
    equal([entry.operation for entry in await bucket.history("a.b")], ["PURGE"], "the history after a purge")
    status = await bucket.status()
    equal((status.bucket, status.history, status.values), ("kv", 5, 4), "the status")
    check(await jetstream.delete_key_value("kv"), "the bucket was not deleted")


async def key_value_watch(client, jetstream):
    bucket = await jetstream.create_key_value(bucket="watched")
    for number in range(20):
        await bucket.put(f"key.{number % 4}", b"%d" % number)
    watcher = await bucket.watch("key.>")
    found = [await watcher.updates(SECONDS_MAX) for _ in range(4)]
    equal([(entry.key, entry.value) for entry in found],
          [(f"key.{number % 4}", b"%d" % number) for number in range(16, 20)], "what is there")
    equal(await watcher.updates(SECONDS_MAX), None, "the mark after it")
    await bucket.put("key.1", b"new")
    await bucket.put("other", b"unheard")
    await bucket.delete("key.2")
    entry = await watcher.updates(SECONDS_MAX)
    equal((entry.key, entry.value, entry.operation), ("key.1", b"new", None), "a change")
    entry = await watcher.updates(SECONDS_MAX)
    equal((entry.key, entry.operation), ("key.2", "DEL"), "a deletion")
    await watcher.stop()
    empty = await jetstream.create_key_value(bucket="empty")
    watcher = await empty.watchall()
    equal(await watcher.updates(SECONDS_MAX), None, "the mark of an empty bucket")
    await watcher.stop()


async def key_value_ttl(client, jetstream):
    config = KeyValueConfig(bucket="brief", ttl=1)
    bucket = await jetstream.create_key_value(config)
    await bucket.put("key", b"soon gone")
    equal((await bucket.get("key")).value, b"soon gone", "the value")

    async def is_gone():
        try:
            await bucket.get("key")
        except KeyNotFoundError:
            return True

    await until(is_gone, "it is still there")


async def key_with_ttl(client, jetstream):
    """A key with its own TTL leaves a marker when it expires, and watchers receive that."""
    bucket = await jetstream.create_key_value(KeyValueConfig(bucket="leases", limit_marker_ttl=5))
    watcher = await bucket.watchall()
    equal(await watcher.updates(SECONDS_MAX), None, "the mark of an empty bucket")
    await bucket.create("lease", b"mine", msg_ttl=1)
    await bucket.put("other", b"stays")
    found = [await watcher.updates(SECONDS_MAX) for _ in range(3)]
    wanted = [("lease", None), ("other", None), ("lease", "PURGE")]
    equal([(entry.key, entry.operation) for entry in found], wanted, "changes")
    await watcher.stop()


async def objects(client, jetstream):
    """64 MiB are stored and read back, with their digest."""
    store = await jetstream.create_object_store("objects")
    content = os.urandom(1 << 20) * (OBJECT_BYTES >> 20)
    info = await store.put("large file.bin", content, ObjectMeta(description="large"))
    equal((info.size, info.chunks), (OBJECT_BYTES, OBJECT_BYTES // (128 * 1024)), "size and pieces")
    found = await store.get("large file.bin")
    equal(hashlib.sha256(found.data).digest(), hashlib.sha256(content).digest(), "the digest")
    equal(found.info.digest, info.digest, "the digest that was stored")
    await store.put("small", b"hello")
    equal((await store.get("small")).data, b"hello", "a small one")
    await store.put("small", b"hello again")
    equal((await store.get("small")).data, b"hello again", "in its place")
    names = sorted(entry.name for entry in await store.list())
    equal(names, ["large file.bin", "small"], "the list")
    await store.delete("large file.bin")
    equal([entry.name for entry in await store.list(ignore_deletes=True)], ["small"], "the list after a delete")
    # What remains: a chunk and the metadata of one object, and the delete marker of the other.
    equal((await jetstream.stream_info("OBJ_objects")).state.messages, 3, "records")
    await store.seal()
    with pytest.raises(APIError) as error:
        await store.put("no", b"more")
    equal(error.value.err_code, 10109, "the error")
    check(await jetstream.delete_object_store("objects"), "not deleted")


CASES = [
    publish_and_acknowledge, duplicates, expectations, limits, pull_durable, acknowledgements, redelivery,
    push_durable, push_queue, ephemeral, ordered, starts, work_queue, manage_streams, key_value,
    key_value_watch, key_value_ttl, key_with_ttl, objects,
]


@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory() as folder:
        with Server(server_under_test(), "-js", "-sd", folder) as server:
            yield server


@pytest.mark.parametrize("case", CASES)
async def test_jetstream(server, case):
    client = await connect(server)
    await case(client, client.jetstream(timeout=SECONDS_MAX))
    await client.close()


async def test_ordered_across_a_restart(tmp_path):
    """An ordered consumer receives every record once and in order, although the server restarts and forgets the
    consumer. A durable consumer continues where it was."""
    with Server(server_under_test(), "-js", "-sd", str(tmp_path)) as server:
        back = asyncio.Event()

        async def reconnected():
            back.set()

        client = await connect(
            server, max_reconnect_attempts=-1, reconnect_time_wait=0.1, reconnected_cb=reconnected
        )
        jetstream = client.jetstream(timeout=SECONDS_MAX)
        await jetstream.add_stream(name="LASTS", subjects=["lasts"])
        await publish_many(jetstream, "lasts", 500)
        subscription = await jetstream.subscribe("lasts", ordered_consumer=True, idle_heartbeat=0.5)
        found = [int((await subscription.next_msg(SECONDS_MAX)).data) for _ in range(500)]
        durable = await jetstream.pull_subscribe("lasts", "worker")
        equal(await drained(durable, 200), list(range(200)), "of the durable one, before")
        await settled(jetstream, "LASTS", "worker", 300)

        server.signal(signal.SIGTERM)
        server.wait()
        server.start()
        await asyncio.wait_for(back.wait(), SECONDS_MAX)
        await flush(client)
        info = await jetstream.stream_info("LASTS")
        equal((info.state.messages, info.state.last_seq), (500, 500), "the state after it")
        await publish_many(jetstream, "lasts", 500)
        found += [int((await subscription.next_msg(SECONDS_MAX)).data) for _ in range(500)]
        equal(found, [*range(500), *range(500)], "in order")
        wanted = [*range(200, 500), *range(500)]
        equal(await drained(durable, 800), wanted, "of the durable one, after")
        await client.close()
