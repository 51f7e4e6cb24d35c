"""JetStream of a cluster of servers under test: each stream is on one server, and clients of all servers use it."""

import asyncio
import json
import signal

import pytest
from nats.js.api import ConsumerConfig, Placement, StorageType, StreamConfig, StreamSource
from nats.js.errors import APIError, BadRequestError, NoKeysError, NotFoundError

from harness.checks import check, equal, until
from harness.client import request_api, settle
from leaf.stage import Node, Stage
from python.peers import SECONDS_MAX, connect

from .shapes import block, made, peers, until_meshed
from .test_jetstream import when_known, when_responders

SERVERS = 3
PLACEMENT_FAILED, OVERLAP, REPLICAS = 10005, 10065, 10074


def tags(at: int) -> str:
    return f"server_tags: [ number:{at} ]"


def started(stage: Stage) -> list[Node]:
    """Starts three servers with JetStream."""
    nodes = made(stage, "t" * SERVERS)
    for at, node in enumerate(nodes):
        node.write(block(node, nodes), tags(at), node.jetstream())
        node.start()
    until_meshed(nodes)
    return nodes


@pytest.fixture(scope="module")
def nodes():
    with Stage() as stage:
        yield started(stage)


async def connected(nodes: list[Node]):
    clients = [await connect(node) for node in nodes]
    return clients, [client.jetstream(timeout=SECONDS_MAX) for client in clients]


async def close(clients):
    for client in clients:
        await client.close()


async def refused(request, code: int):
    """Checks that a request is refused with this code."""
    with pytest.raises(APIError) as error:
        await request
    equal(error.value.err_code, code, "the code")
    return error.value.description


@pytest.mark.parametrize("owner", range(SERVERS))
async def test_stream_is_used_from_all_servers(nodes, owner):
    clients, streams = await connected(nodes)
    name = f"USED{owner}"
    info = await streams[owner].add_stream(name=name, subjects=[f"used{owner}.*"])
    equal(info.cluster.leader, nodes[owner].name, "the leader")
    for client in clients:
        await when_known(client, info)
    for at, jetstream in enumerate(streams):
        ack = await jetstream.publish(f"used{owner}.{at}", b"%d" % at, timeout=SECONDS_MAX)
        equal((ack.stream, ack.seq), (name, at + 1), "the acknowledgement")
    for at, jetstream in enumerate(streams):
        info = await jetstream.stream_info(name)
        equal((info.cluster.leader, info.state.messages), (nodes[owner].name, SERVERS), "the stream")
        pulled = await jetstream.pull_subscribe(f"used{owner}.>", durable=f"pull{at}")
        messages = await when_responders(lambda: pulled.fetch(SERVERS, timeout=SECONDS_MAX))
        equal([int(message.data) for message in messages], list(range(SERVERS)), "the pulled messages")
        for message in messages:
            await message.ack_sync(timeout=SECONDS_MAX)
        pushed = await jetstream.subscribe(f"used{owner}.>", ordered_consumer=True)
        received = [await pushed.next_msg(timeout=SECONDS_MAX) for _ in range(SERVERS)]
        equal([message.subject for message in received], [f"used{owner}.{of}" for of in range(SERVERS)], "the subjects")
        found = await jetstream.get_msg(name, 2)
        equal(found.data, b"1", "a message")
    for at in range(SERVERS):
        info = await streams[at].consumer_info(name, "pull0")
        equal((info.cluster.leader, info.num_ack_pending), (nodes[owner].name, 0), "the consumer")
    await streams[(owner + 1) % SERVERS].delete_stream(name)
    with pytest.raises(NotFoundError):
        await streams[owner].stream_info(name)
    await close(clients)


async def test_buckets_are_used_from_all_servers(nodes):
    clients, streams = await connected(nodes)
    values = await streams[0].create_key_value(bucket="shared")
    for at, jetstream in enumerate(streams):
        bucket = await until_found(lambda of=jetstream: of.key_value("shared"))
        revision = await when_responders(lambda of=bucket, key=f"k{at}": of.create(key, b"1"))
        await bucket.update(f"k{at}", b"2", last=revision)
        equal((await values.get(f"k{at}")).value, b"2", "the value")
    equal(sorted(await values.keys()), [f"k{at}" for at in range(SERVERS)], "the keys")
    await streams[1].create_object_store(bucket="files")
    content = bytes(range(256)) * 1024
    store = await until_found(lambda: streams[2].object_store("files"))
    await when_responders(lambda: store.put("file", content))
    for jetstream in streams:
        store = await until_found(lambda of=jetstream: of.object_store("files"))
        equal((await store.get("file")).data, content, "the object")
    await streams[2].delete_key_value("shared")
    await streams[0].delete_object_store("files")
    await close(clients)


async def until_found(ask):
    """Returns the result of a request, which is repeated while the server does not know the stream yet."""
    for _ in range(SECONDS_MAX * 50):
        try:
            return await ask()
        except (NotFoundError, NoKeysError):
            await asyncio.sleep(0.02)
    raise AssertionError("not found")


async def test_name_claimed_at_all_servers_is_created_once(nodes):
    clients, streams = await connected(nodes)
    for number in range(20):
        name = f"RACE{number}"
        config = StreamConfig(name=name, subjects=[f"race{number}"], storage=StorageType.MEMORY)
        infos = await asyncio.gather(*(jetstream.add_stream(config) for jetstream in streams))
        equal(len({info.cluster.leader for info in infos}), 1, "the number of leaders")
        stored = [node for node in nodes if name in stored_on(node)]
        equal([node.name for node in stored], [infos[0].cluster.leader], "the servers with the stream")
        await until_found(lambda of=name: streams[number % SERVERS].delete_stream(of))
    await close(clients)


def stored_on(node: Node) -> list[str]:
    accounts = node.monitor("jsz?streams=true")["account_details"] or []
    return [stream["name"] for account in accounts for stream in account.get("stream_detail") or []]


async def test_subjects_overlap_nowhere(nodes):
    clients, streams = await connected(nodes)
    await streams[0].add_stream(name="WIDE", subjects=["wide.>"])
    for jetstream in streams:
        await refused(jetstream.add_stream(name="NARROW", subjects=["wide.a"]), OVERLAP)
    results = await asyncio.gather(
        *(of.add_stream(name=f"AT{at}", subjects=["at.*"]) for at, of in enumerate(streams)), return_exceptions=True
    )
    refusals = [result for result in results if isinstance(result, BadRequestError)]
    equal([error.err_code for error in refusals], [OVERLAP] * (SERVERS - 1), "the refusals")
    await streams[1].add_stream(name="OTHER", subjects=["other"])
    await refused(streams[2].update_stream(name="OTHER", subjects=["wide.b"]), OVERLAP)
    await remove_all(streams[0])
    await close(clients)


async def remove_all(jetstream):
    for info in await jetstream.streams_info():
        await jetstream.delete_stream(info.config.name)


async def test_lists_contain_all_streams(nodes):
    clients, streams = await connected(nodes)
    for at, jetstream in enumerate(streams):
        await jetstream.add_stream(name=f"LIST{at}", subjects=[f"list{at}"])
    expected = [f"LIST{at}" for at in range(SERVERS)]
    for at, node in enumerate(nodes):
        infos = await streams[at].streams_info()
        found = {info.config.name: info.cluster.leader for info in infos}
        equal(found, {f"LIST{of}": nodes[of].name for of in range(SERVERS)}, "the list")
        with node.client() as client:
            equal(request_api(client, "STREAM.NAMES")["streams"], expected, "the names")
            named = request_api(client, "STREAM.NAMES", {"subject": "list1"})
            equal(named["streams"], ["LIST1"], "the names by subject")
            equal(request_api(client, "INFO")["streams"], SERVERS, "the number of streams")
    await remove_all(streams[1])
    equal(await streams[2].streams_info(), [], "the rest")
    await close(clients)


async def test_placement_and_replicas(nodes):
    clients, streams = await connected(nodes)
    for at in range(SERVERS):
        config = StreamConfig(name=f"TAG{at}", subjects=[f"tag{at}"], placement=Placement(tags=[f"NUMBER:{at}"]))
        info = await streams[(at + 1) % SERVERS].add_stream(config)
        equal(info.cluster.leader, nodes[at].name, "the server with the tag")
    nowhere = StreamConfig(name="NOWHERE", placement=Placement(tags=["moon"]))
    text = await refused(streams[0].add_stream(nowhere), PLACEMENT_FAILED)
    equal(text, "no suitable peers for placement, tags not matched ['moon']", "the reason")
    # The servers may not have agreed on the members of replicated streams yet.
    with pytest.raises(APIError) as failure:
        await streams[0].add_stream(name="TWO", num_replicas=2)
    check(failure.value.err_code in (REPLICAS, PLACEMENT_FAILED), f"the error: {failure.value}")
    await remove_all(streams[0])
    await close(clients)


async def test_mirror_of_a_stream_of_another_server(nodes):
    clients, streams = await connected(nodes)
    info = await streams[0].add_stream(name="ORIGIN", subjects=["origin"])
    for client in clients:
        await when_known(client, info)
    for number in range(100):
        await streams[2].publish("origin", b"%d" % number)
    await streams[1].add_stream(name="COPY", mirror=StreamSource(name="ORIGIN"))

    async def copied(count: int):
        for _ in range(SECONDS_MAX * 50):
            state = (await streams[2].stream_info("COPY")).state
            if state.messages == count:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"the mirror has {state}")

    await copied(100)
    await streams[2].publish("origin", b"more")
    await copied(101)
    equal((await streams[0].get_msg("COPY", 101)).data, b"more", "a copied message")
    await remove_all(streams[0])
    await close(clients)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
async def test_owner_restarts(how):
    with Stage() as stage:
        nodes = started(stage)
        clients, streams = await connected(nodes[1:])
        owner = await connect(nodes[0])
        info = await owner.jetstream().add_stream(name="STAYS", subjects=["stays"])
        await owner.jetstream().add_consumer("STAYS", ConsumerConfig(durable_name="c"))
        await when_known(clients[0], info)
        for number in range(10):
            await streams[0].publish("stays", b"%d" % number)
        await owner.close()
        nodes[0].server.signal(how)
        nodes[0].server.wait()
        until(lambda: all(nodes[0].name not in peers(node) for node in nodes[1:]), "the routes remain")
        with nodes[1].client() as client:
            equal(client.ask("stays", b"").status, 503, "of a publish while the server is away")
            absent = request_api(client, "STREAM.INFO.STAYS")
            equal(absent["error"]["err_code"], 10059, "the code while the server is away")
        nodes[0].start()
        until_meshed(nodes)
        info = await until_found(lambda: streams[1].stream_info("STAYS"))
        equal(info.state.messages, 10, "the messages after the restart")
        await when_known(clients[0], info)
        equal((await streams[0].publish("stays", b"more")).seq, 11, "the next sequence")
        pulled = await streams[1].pull_subscribe_bind("c", "STAYS")
        messages = await when_responders(lambda: pulled.fetch(11, timeout=SECONDS_MAX))
        equal(len(messages), 11, "the pulled messages")
        await close(clients)


def test_request_that_is_watched_elsewhere_is_answered_once(nodes):
    """A subscription to all requests makes them reach the other server, which must not answer them."""
    with nodes[0].client() as asking, nodes[1].client() as watching:
        watched = watching.subscribe("$JS.API.>")
        settle(watching, asking)
        answers = asking.subscribe("answers.*")
        config = json.dumps({"name": "ONCE", "subjects": ["once"], "storage": "memory"}).encode()
        requests = [("STREAM.CREATE.ONCE", config), ("STREAM.NAMES", b""), ("INFO", b""), ("STREAM.DELETE.ONCE", b"")]
        for at, (request, payload) in enumerate(requests):
            asking.publish(f"$JS.API.{request}", payload, f"answers.{at}")
            equal(asking.next(answers).subject, f"answers.{at}", "the answer")
        equal(asking.quiet(answers), [], "further answers")
        subjects = [message.subject for message in watching.quiet(watched)]
        equal(subjects, [f"$JS.API.{request}" for request, _ in requests], "the watched requests")


def test_server_with_jetstream_of_nats_server_is_refused():
    with Stage() as stage:
        nodes = made(stage, "tr")
        for node in nodes:
            node.write(block(node, nodes), node.jetstream())
            node.start()
        nodes[0].said("has JetStream of Fanline")
        equal(peers(nodes[0]), set(), "the routes")


def test_options_that_jetstream_in_a_cluster_requires():
    with Stage() as stage:
        node = stage.tested("alone")
        without_name = f'cluster {{ listen: "127.0.0.1:{node.cluster_port}" }}'
        for parts, expected in [
            ([without_name, node.jetstream()], "jetstream cluster requires `cluster.name` to be set"),
            ([block(node, []), node.jetstream(), 'mqtt { listen: "127.0.0.1:-1" }'], "MQTT is not supported"),
        ]:
            node.write(*parts)
            with pytest.raises(Exception):
                node.start()
            check(expected in node.log(), node.log())
