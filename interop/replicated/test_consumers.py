"""Consumers, buckets, and copies of replicated streams, used from all servers; and the cases of the official Python
client, whose streams get three replicas here."""

import asyncio

import pytest
from nats.js.api import ConsumerConfig, StreamSource
from nats.js.client import JetStreamContext
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError, NotFoundError

from cluster.test_jetstream import when_known, when_responders
from cluster.test_streams import refused, until_found
from harness.checks import check, equal
from python import test_streams
from python.peers import SECONDS_MAX, connect
from python.test_streams import until as eventually
from replicated.servers import REPLICAS, Cluster, add, connected
from replicated.test_streams import SERVERS, until_answered


@pytest.fixture
def replicas(monkeypatch):
    """Streams get three replicas. Also waits until servers know new interest, as the client does not."""
    fetch = JetStreamContext.PullSubscription.fetch

    async def fetch_again(self, *arguments, **options):
        return await when_responders(lambda: fetch(self, *arguments, **options))

    def with_replicas(change):
        async def changed(self, config=None, **params):
            if config is None:
                params["num_replicas"] = REPLICAS
            else:
                config = config.evolve(num_replicas=REPLICAS)
            info = await change(self, config, **params)
            equal(info.config.num_replicas, REPLICAS, "the replicas")
            await when_known(self._nc, info)
            return info

        return changed

    monkeypatch.setattr(JetStreamContext.PullSubscription, "fetch", fetch_again)
    for name in ("add_stream", "update_stream"):
        monkeypatch.setattr(JetStreamContext, name, with_replicas(getattr(JetStreamContext, name)))


# The size of the object that the client's case stores; each server writes it.
OBJECT_BYTES = 8 << 20


@pytest.mark.parametrize("case", test_streams.CASES)
async def test_client(replicas, cluster: Cluster, monkeypatch, case):
    if cluster.is_reference and case is test_streams.expectations:
        pytest.skip("nats-server does not answer if the last message id of a replicated stream is not the expected one")
    monkeypatch.setattr(test_streams, "OBJECT_BYTES", OBJECT_BYTES)
    at = test_streams.CASES.index(case) % REPLICAS
    client = await connect(cluster.nodes[at])
    jetstream = client.jetstream(timeout=SECONDS_MAX)
    await case(client, jetstream)
    await client.close()


async def fetched(pull, count: int) -> list:
    """Returns this many messages. The client may return fewer of them at a time."""
    found = []
    while len(found) < count:
        found += await when_responders(lambda: pull.fetch(count - len(found), timeout=SECONDS_MAX))
    return found


@pytest.mark.parametrize("replicas_of_consumer", [None, 1])
async def test_durable_consumer_from_each_server(cluster: Cluster, replicas_of_consumer):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "PULLED", subjects=["pulled"])
        config = ConsumerConfig(durable_name="c", ack_wait=SECONDS_MAX, num_replicas=replicas_of_consumer)
        await streams[1].add_consumer("PULLED", config)
        sequence = 0
        for at in SERVERS:
            for _ in range(10):
                await streams[at].publish("pulled", b"x")
            pull = await until_found(lambda of=at: streams[of].pull_subscribe_bind("c", "PULLED"))
            messages = await fetched(pull, 10)
            found = [(message.metadata.sequence.stream, message.metadata.num_delivered) for message in messages]
            equal(found, [(sequence + 1 + number, 1) for number in range(10)], f"what was pulled at {at}")
            sequence += 10
            for message in messages:
                await message.ack_sync(timeout=SECONDS_MAX)
            for jetstream in streams:
                info = await jetstream.consumer_info("PULLED", "c")
                found = (info.num_ack_pending, info.num_pending, info.ack_floor.stream_seq, info.delivered.stream_seq)
                equal(found, (0, 0, sequence, sequence), "the consumer")
                check(info.cluster.leader in cluster.names, f"the leader {info.cluster.leader}")
        for jetstream in streams:
            equal([info.name for info in await jetstream.consumers_info("PULLED")], ["c"], "the list")
        await streams[2].delete_consumer("PULLED", "c")
        for jetstream in streams:
            await refused(jetstream.consumer_info("PULLED", "c"), 10014)
        await streams[2].delete_stream("PULLED")


async def test_messages_that_are_not_acknowledged(cluster: Cluster):
    """They are delivered again, also through another server than before."""
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "UNDONE", subjects=["undone"])
        await streams[0].add_consumer("UNDONE", durable_name="c", ack_policy="explicit", ack_wait=0.5)
        await streams[1].publish("undone", b"x")
        for at, jetstream in enumerate(streams):
            pull = await jetstream.pull_subscribe_bind("c", "UNDONE")
            (message,) = await fetched(pull, 1)
            equal(message.metadata.num_delivered, at + 1, "the number of the delivery")
        await message.ack_sync(timeout=SECONDS_MAX)
        equal((await streams[0].consumer_info("UNDONE", "c")).num_ack_pending, 0, "pending messages")
        await streams[0].delete_stream("UNDONE")


@pytest.mark.parametrize("at", SERVERS)
async def test_pushed_messages(cluster: Cluster, at: int):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "PUSHED", subjects=["pushed.*"])
        durable = await streams[at].subscribe("pushed.a", durable="d", manual_ack=True)
        ordered = await streams[at].subscribe("pushed.*", ordered_consumer=True)
        for number in range(60):
            await streams[number % REPLICAS].publish(f"pushed.{'ab'[number % 2]}", b"%d" % number)
        found = [int((await ordered.next_msg(SECONDS_MAX)).data) for _ in range(60)]
        equal(found, list(range(60)), "what the ordered consumer received")
        for number in range(0, 60, 2):
            message = await durable.next_msg(SECONDS_MAX)
            equal(int(message.data), number, "what was pushed")
            await message.ack_sync(timeout=SECONDS_MAX)
        equal((await streams[(at + 1) % REPLICAS].consumer_info("PUSHED", "d")).ack_floor.stream_seq, 59, "the ack floor")
        await streams[0].delete_stream("PUSHED")


async def test_buckets(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await streams[0].create_key_value(bucket="kv", history=4, replicas=REPLICAS)
        buckets = [await until_found(lambda of=of: of.key_value("kv")) for of in streams]
        watchers = [await bucket.watchall() for bucket in buckets]
        for watcher in watchers:
            equal(await watcher.updates(SECONDS_MAX), None, "the mark of an empty bucket")
        expected = []
        for at, bucket in enumerate(buckets):
            other = buckets[(at + 1) % REPLICAS]
            key = f"key{at}"
            revision = await when_responders(lambda of=bucket, key=key: of.create(key, b"1"))
            for each in buckets:
                with pytest.raises(KeyWrongLastSequenceError):
                    await each.create(key, b"no")
            second = await other.update(key, b"2", last=revision)
            with pytest.raises(KeyWrongLastSequenceError):
                await bucket.update(key, b"no", last=revision)
            third = await bucket.put(key, b"3")
            equal((second, third), (revision + 1, revision + 2), "revisions")
            for each in buckets:
                await until_value(each, key, b"3")
            await other.delete(key)
            for each in buckets:
                await until_value(each, key, None)
            expected += [(key, b"1", None), (key, b"2", None), (key, b"3", None), (key, None, "DEL")]
        for watcher in watchers:
            found = [await watcher.updates(SECONDS_MAX) for _ in expected]
            entries = [(entry.key, entry.value or None, entry.operation) for entry in found]
            equal(entries, expected, "what a watcher received")
            await watcher.stop()
        equal((await buckets[1].status()).values, 4 * REPLICAS, "the number of values")
        await streams[2].delete_key_value("kv")


async def until_value(bucket, key: str, value: bytes | None):
    """Replicas of nats-server may be behind."""

    async def has_value():
        try:
            return (await bucket.get(key)).value == value
        except KeyNotFoundError:
            return value is None

    await eventually(has_value, f"{key} is not {value}")


async def test_objects(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await streams[1].create_object_store("files", replicas=REPLICAS)
        stores = [await until_found(lambda of=of: of.object_store("files")) for of in streams]
        for at, store in enumerate(stores):
            content = bytes(range(at, 256)) * 4096
            await when_responders(lambda of=store, name=f"file{at}", content=content: of.put(name, content))
            for other in stores:
                found = await until_found(lambda of=other, name=f"file{at}": of.get(name))
                equal(found.data, content, "the object")
        equal(sorted(entry.name for entry in await stores[2].list()), [f"file{at}" for at in SERVERS], "the list")
        await streams[0].delete_object_store("files")


@pytest.mark.parametrize("origin, copy", [(1, 3), (3, 1), (3, 3)])
async def test_mirrors_and_sources(cluster: Cluster, origin: int, copy: int):
    """Copies of streams with one replica or three, with one or three. They go on after the origin has another leader."""
    async with connected(cluster) as (clients, streams):
        for name in ("ONE", "TWO"):
            await add(clients, 0, name, subjects=[f"{name}.*"], num_replicas=origin)
        count = 50

        async def publish(first: int):
            for number in range(first, first + count):
                for name in ("ONE", "TWO"):
                    await when_responders(lambda of=f"{name}.{number}": streams[number % REPLICAS].publish(of, b"x"))

        await publish(0)
        await streams[1].add_stream(name="MIRROR", mirror=StreamSource(name="ONE"), num_replicas=copy)
        both = [StreamSource(name="ONE"), StreamSource(name="TWO")]
        await streams[2].add_stream(name="BOTH", sources=both, num_replicas=copy)
        for total in (count, 2 * count):
            await until_count(streams[0], "MIRROR", total)
            await until_count(streams[1], "BOTH", 2 * total)
            if total == count:
                await clients[0].request("$JS.API.STREAM.LEADER.STEPDOWN.ONE", b"", timeout=SECONDS_MAX)
                # A message that reaches the old leader after its end remains unanswered.
                for client in clients:
                    refused = {"Nats-Expected-Stream": "none"}
                    ask = lambda of=client: of.request("ONE.probe", b"", timeout=1, headers=refused)
                    await until_answered(ask, "no answer after the step-down")
                await publish(count)
        for number in range(2 * count):
            found = await streams[2].get_msg("MIRROR", number + 1)
            equal(found.subject, f"ONE.{number}", "a copied message")
        subjects = [(await streams[0].get_msg("BOTH", number + 1)).subject for number in range(4 * count)]
        for name in ("ONE", "TWO"):
            part = [subject for subject in subjects if subject.startswith(name)]
            equal(part, [f"{name}.{number}" for number in range(2 * count)], f"the messages of {name}")
        for name in ("MIRROR", "BOTH", "ONE", "TWO"):
            await streams[1].delete_stream(name)


async def until_count(jetstream, name: str, count: int):
    async def is_complete():
        try:
            return (await jetstream.stream_info(name)).state.messages == count
        except NotFoundError:
            return False

    await eventually(is_complete, f"{name} has not {count} messages")
