"""Streams with three replicas are used from all servers: each answers like the one that leads the stream."""

import asyncio
import json

import pytest
from nats.errors import Error, NoRespondersError
from nats.js.api import DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.errors import APIError, NotFoundError

from cluster.test_streams import refused, until_found
from harness.checks import check, equal, until
from harness.client import Client, request_api, settle
from python.peers import SECONDS_MAX
from python.test_streams import until as eventually
from replicated.servers import REPLICAS, Cluster, add, connected

SERVERS = range(REPLICAS)
PLACEMENT_FAILED, NO_CLUSTER, IN_USE, OVERLAP, WRONG_SEQUENCE, TOO_LARGE, FULL = 10005, 10074, 10058, 10065, 10071, 10054, 10077


@pytest.mark.parametrize("at", SERVERS)
async def test_creation_and_description(cluster: Cluster, at: int):
    async with connected(cluster) as (clients, streams):
        name = f"MADE{at}"
        info = await add(clients, at, name, subjects=[f"made{at}"])
        equal((info.config.num_replicas, info.cluster.name), (REPLICAS, "east"), "replicas and cluster")
        check(info.cluster.raft_group, "the group has no name")
        leader = info.cluster.leader
        others = sorted(set(cluster.names) - {leader})
        equal([peer.name for peer in info.cluster.replicas], others, f"the replicas besides {leader}")
        cluster.until_current(name)
        for of, jetstream in enumerate(streams):
            info = await jetstream.stream_info(name)
            equal(info.cluster.leader, leader, f"the leader, from {cluster.names[of]}")
            again = await jetstream.add_stream(name=name, subjects=[f"made{at}"], num_replicas=REPLICAS)
            equal((again.config.name, again.cluster.leader), (name, leader), "the repeated creation")
            await refused(jetstream.add_stream(name=name, subjects=["else"], num_replicas=REPLICAS), IN_USE)
        await streams[(at + 1) % REPLICAS].delete_stream(name)
        for jetstream in streams:
            await until_missing(jetstream, name)


async def until_missing(jetstream, name: str):
    async def is_missing():
        try:
            await jetstream.stream_info(name)
        except NotFoundError:
            return True

    await eventually(is_missing, f"{name} is still there")


async def test_messages_from_each_server_to_each_server(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "SHARED", subjects=["shared.*"], allow_direct=True)
        for at, jetstream in enumerate(streams):
            ack = await jetstream.publish(f"shared.{at}", b"%d" % at, headers={"From": f"{at}"})
            equal((ack.stream, ack.seq), ("SHARED", at + 1), "the acknowledgement")
        for at, jetstream in enumerate(streams):
            state = (await jetstream.stream_info("SHARED", subjects_filter=">")).state
            equal((state.messages, state.first_seq, state.last_seq), (REPLICAS, 1, REPLICAS), "the state")
            equal(state.subjects, {f"shared.{of}": 1 for of in SERVERS}, "the subjects")
            for of in SERVERS:
                found = [await jetstream.get_msg("SHARED", of + 1), await jetstream.get_last_msg("SHARED", f"shared.{of}")]
                # Replicas of nats-server may be behind.
                found.append(await until_found(lambda js=jetstream, of=of: js.get_msg("SHARED", of + 1, direct=True)))
                subject = f"shared.{of}"
                found.append(await until_found(lambda js=jetstream, of=subject: js.get_msg("SHARED", None, of, direct=True)))
                parts = [(message.seq, message.subject, message.data, message.headers["From"]) for message in found]
                equal(parts, [(of + 1, f"shared.{of}", b"%d" % of, f"{of}")] * 4, "the messages that were read")
            pushed = await jetstream.subscribe("shared.*", ordered_consumer=True)
            received = [(await pushed.next_msg(SECONDS_MAX)).subject for _ in SERVERS]
            equal(received, [f"shared.{of}" for of in SERVERS], f"what an ordered consumer at {at} received")
            await pushed.unsubscribe()
        await streams[2].delete_stream("SHARED")


async def test_message_without_acknowledgement(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await add(clients, 1, "PLAIN", subjects=["plain"])
        for client in clients:
            await client.publish("plain", b"x")

        async def is_stored():
            return (await streams[0].stream_info("PLAIN")).state.messages == REPLICAS

        await eventually(is_stored, "a message is not stored")
        await streams[0].delete_stream("PLAIN")


async def test_message_ids(cluster: Cluster):
    """A message is stored once, whichever server its repetitions come through."""
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "ONCE", subjects=["once"])
        for number in range(1, 6):
            acks = [await jetstream.publish("once", b"x", headers={"Nats-Msg-Id": f"{number}"}) for jetstream in streams]
            equal([(ack.seq, bool(ack.duplicate)) for ack in acks], [(number, False)] + [(number, True)] * 2, "acks")
        equal((await streams[1].stream_info("ONCE")).state.messages, 5, "messages")
        await streams[1].delete_stream("ONCE")


async def test_message_id_published_everywhere_at_once(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "RACE", subjects=["race"])

        async def published(jetstream, number: int):
            try:
                return await jetstream.publish("race", b"x", headers={"Nats-Msg-Id": f"{number}"})
            except APIError as error:
                # The first one is not committed yet.
                equal(error.err_code, 10158, "the error")

        for number in range(1, 21):
            acks = await asyncio.gather(*(published(jetstream, number) for jetstream in streams))
            equal({ack.seq for ack in acks if ack}, {number}, "the sequence")
            equal([bool(ack.duplicate) for ack in acks if ack].count(False), 1, "the first of them")
        equal((await streams[1].stream_info("RACE")).state.messages, 20, "messages")
        await streams[1].delete_stream("RACE")


async def test_expected_sequences(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await add(clients, 2, "EXPECTED", subjects=["expected.*"])
        sequence = 0
        for at, jetstream in enumerate(streams):
            for name, subject in (("", "expected.all"), ("-Subject", f"expected.{at}")):
                header = f"Nats-Expected-Last{name}-Sequence"
                right = 0 if name else sequence
                ack = await jetstream.publish(subject, b"x", headers={header: f"{right}"})
                sequence += 1
                equal(ack.seq, sequence, "the sequence")
                for other in streams:
                    await refused(other.publish(subject, b"no", headers={header: f"{sequence + 7}"}), WRONG_SEQUENCE)
        equal((await streams[0].stream_info("EXPECTED")).state.messages, sequence, "messages")
        await streams[0].delete_stream("EXPECTED")


async def test_one_of_several_updates_wins(cluster: Cluster):
    """Publishers at all servers expect the same last sequence: one is acknowledged, and the others are refused."""
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "WINNER", subjects=["winner"])
        for number in range(20):
            header = {"Nats-Expected-Last-Sequence": f"{number}"}
            results = await asyncio.gather(
                *(jetstream.publish("winner", b"%d" % at, headers=header) for at, jetstream in enumerate(streams)),
                return_exceptions=True,
            )
            acks = [(at, result) for at, result in enumerate(results) if not isinstance(result, Exception)]
            equal([ack.seq for _, ack in acks], [number + 1], "the acknowledgements")
            codes = {result.err_code for result in results if isinstance(result, Exception)}
            check(codes <= {WRONG_SEQUENCE, 10164}, f"codes of refusals: {codes}")
            equal((await streams[1].get_msg("WINNER", number + 1)).data, b"%d" % acks[0][0], "the stored message")
        await streams[0].delete_stream("WINNER")


async def test_atomic_batches(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "BATCH", subjects=["batch"], allow_atomic=True)
        for at, client in enumerate(clients):
            headers = {"Nats-Batch-Id": f"half{at}", "Nats-Batch-Sequence": "1"}
            await client.request("batch", b"no", timeout=SECONDS_MAX, headers=headers)
            headers = {"Nats-Batch-Id": f"whole{at}"}
            for number in (1, 2, 3):
                headers["Nats-Batch-Sequence"] = f"{number}"
                if number == 3:
                    headers["Nats-Batch-Commit"] = "1"
                found = await client.request("batch", b"%d" % number, timeout=SECONDS_MAX, headers=headers)
            ack = json.loads(found.data)
            equal((ack.get("seq"), ack.get("batch"), ack.get("count")), (3 * at + 3, f"whole{at}", 3), f"the ack {ack}")
        for at, jetstream in enumerate(streams):
            equal((await jetstream.stream_info("BATCH")).state.messages, 3 * REPLICAS, "messages")
            equal((await jetstream.get_msg("BATCH", 3 * at + 2)).data, b"2", "a message of a batch")
        await streams[0].delete_stream("BATCH")


async def test_purges_and_deletions(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "LESS", subjects=["less.*"])
        for number in range(1, 31):
            await streams[number % REPLICAS].publish(f"less.{number % 3}", b"%d" % number)
        for at, change in enumerate(
            [
                lambda: streams[1].delete_msg("LESS", 5),
                lambda: streams[2].purge_stream("LESS", subject="less.1"),
                lambda: streams[0].purge_stream("LESS", seq=11),
                lambda: streams[1].purge_stream("LESS", keep=4),
            ]
        ):
            check(await change(), "the answer")
            for jetstream in streams:
                state = (await jetstream.stream_info("LESS")).state
                found = (state.messages, state.first_seq, state.last_seq)
                equal(found, [(29, 1, 30), (19, 2, 30), (14, 11, 30), (4, 26, 30)][at], f"the state after change {at}")
        await refused(streams[2].get_msg("LESS", 5), 10037)
        equal((await streams[2].get_msg("LESS", 26)).data, b"26", "the first of the rest")
        check(await streams[2].purge_stream("LESS"), "the answer")
        ack = await streams[0].publish("less.0", b"after")
        equal(ack.seq, 31, "the sequence after a purge")
        await streams[2].delete_stream("LESS")


async def test_same_name_again(cluster: Cluster):
    """A stream that is deleted and created again is empty, with each number of replicas."""
    async with connected(cluster) as (clients, streams):
        for number, replicas in enumerate((3, 3, 1, 3, 1, 1, 3)):
            at = number % REPLICAS
            await add(clients, at, "AGAIN", subjects=["again"], num_replicas=replicas)
            await streams[at].add_consumer("AGAIN", durable_name="c", ack_policy="explicit")
            for other in streams:
                await other.publish("again", b"x", headers={"Nats-Msg-Id": f"{streams.index(other)}"})
            info = await streams[(at + 1) % REPLICAS].stream_info("AGAIN")
            found = (info.config.num_replicas, info.state.messages, info.state.last_seq, info.state.consumer_count)
            equal(found, (replicas, REPLICAS, REPLICAS, 1), "the stream")
            await streams[(at + 2) % REPLICAS].delete_stream("AGAIN")
            for jetstream in streams:
                await until_missing(jetstream, "AGAIN")


async def test_limits(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "OLD", subjects=["old.*"], max_msgs=5, max_msgs_per_subject=3, max_msg_size=100)
        for number in range(12):
            await streams[number % REPLICAS].publish(f"old.{number % 2}", b"%d" % number)
        state = (await streams[1].stream_info("OLD", subjects_filter=">")).state
        found = (state.messages, state.first_seq, state.last_seq, sorted(state.subjects.values()))
        equal(found, (5, 8, 12, [2, 3]), "the state")
        await refused(streams[2].publish("old.0", b"x" * 101), TOO_LARGE)
        await add(clients, 1, "NEW", subjects=["new"], max_msgs=2, discard=DiscardPolicy.NEW)
        for at in (0, 1):
            await streams[at].publish("new", b"x")
        for jetstream in streams:
            await refused(jetstream.publish("new", b"no"), FULL)
        await streams[2].update_stream(
            name="NEW", subjects=["new"], max_msgs=3, discard=DiscardPolicy.NEW, num_replicas=REPLICAS
        )
        equal((await streams[0].publish("new", b"x")).seq, 3, "the sequence after the update")
        await add(clients, 2, "AGED", subjects=["aged"], max_age=1, duplicate_window=1)
        await streams[0].publish("aged", b"x")

        async def is_empty():
            return (await streams[1].stream_info("AGED")).state.messages == 0

        await eventually(is_empty, "the message does not expire")
        equal((await streams[2].publish("aged", b"x")).seq, 2, "the sequence after expiry")
        for name in ("OLD", "NEW", "AGED"):
            await streams[0].delete_stream(name)


async def test_other_subjects(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "MOVES", subjects=["first"])
        for at, jetstream in enumerate(streams):
            subject = f"moved{at}"
            await jetstream.update_stream(name="MOVES", subjects=[subject], num_replicas=REPLICAS)
            for other in streams:
                await until_answered(lambda js=other, of=subject: js.publish(of, b"x"), f"{subject} is not stored")
            await until_unused(clients, "first" if at == 0 else f"moved{at - 1}")
        await streams[0].delete_stream("MOVES")


async def until_answered(ask, why: str):
    """Returns the result of a request, which is repeated while the cluster cannot serve it."""

    async def answered():
        try:
            return await ask()
        except (Error, TimeoutError):
            return None

    return await eventually(answered, why)


async def until_unused(clients, subject: str):
    """Waits until a publish has no responders at any server."""
    for client in clients:

        async def is_unused(client=client):
            try:
                await client.request(subject, b"x", timeout=SECONDS_MAX)
            except NoRespondersError:
                return True

        await eventually(is_unused, f"{subject} is still stored")


async def test_names_and_lists(cluster: Cluster):
    """Streams with one replica and with three, as each server lists them."""
    async with connected(cluster) as (clients, streams):
        expected = {}
        for at in SERVERS:
            for replicas in (1, REPLICAS):
                name = f"LIST{at}{replicas}"
                await add(clients, at, name, subjects=[f"list.{at}.{replicas}"], num_replicas=replicas)
                await streams[(at + 1) % REPLICAS].publish(f"list.{at}.{replicas}", b"x")
                expected[name] = (replicas, 1)
        for at, node in enumerate(cluster.nodes):

            async def is_complete(jetstream=streams[at]):
                infos = await jetstream.streams_info()
                return {info.config.name: (info.config.num_replicas, info.state.messages) for info in infos} == expected

            await eventually(is_complete, f"{node.name} does not list {expected}")
            with Client(node.port) as client:
                equal(request_api(client, "STREAM.NAMES")["streams"], sorted(expected), "the names")
                named = request_api(client, "STREAM.NAMES", {"subject": "list.1.*"})
                equal(named["streams"], ["LIST11", "LIST13"], "the names by subject")
                equal(request_api(client, "INFO")["streams"], len(expected), "the number of streams")
            for name, (replicas, _) in expected.items():
                info = await streams[at].stream_info(name)
                equal(len(info.cluster.replicas or []), replicas - 1, f"the replicas besides the leader of {name}")
        for name in expected:
            await streams[0].delete_stream(name)


@pytest.mark.parametrize("first, second", [(3, 3), (3, 1), (1, 3)])
async def test_subjects_overlap_nowhere(cluster: Cluster, first: int, second: int):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "WIDE", subjects=["wide.>"], num_replicas=first)
        for jetstream in streams:
            await refused(jetstream.add_stream(name="NARROW", subjects=["wide.a"], num_replicas=second), OVERLAP)
        await add(clients, 1, "OTHER", subjects=["other"], num_replicas=second)
        update = {"name": "OTHER", "subjects": ["other", "wide.b"], "num_replicas": second}
        await refused(streams[2].update_stream(**update), OVERLAP)
        for name in ("WIDE", "OTHER"):
            await streams[0].delete_stream(name)
        for client in clients:
            await until_unused([client], "wide.a")


async def test_name_claimed_at_all_servers_is_created_once(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        for number in range(5):
            config = StreamConfig(name=f"CLAIM{number}", subjects=[f"claim{number}"], num_replicas=REPLICAS)
            infos = await asyncio.gather(*(jetstream.add_stream(config) for jetstream in streams))
            equal(len({info.cluster.raft_group for info in infos}), 1, "the number of groups")
            equal(len({info.created for info in infos}), 1, "the number of creations")
            await until_found(lambda of=number: streams[number % REPLICAS].delete_stream(f"CLAIM{of}"))


async def test_subject_claimed_at_all_servers_is_given_once(cluster: Cluster):
    async with connected(cluster) as (clients, streams):
        results = await asyncio.gather(
            *(of.add_stream(name=f"AT{at}", subjects=["at.*"], num_replicas=REPLICAS) for at, of in enumerate(streams)),
            return_exceptions=True,
        )
        refusals = [result.err_code for result in results if isinstance(result, APIError)]
        equal(refusals, [OVERLAP] * (REPLICAS - 1), f"the refusals of {results}")
        for at, result in enumerate(results):
            if not isinstance(result, Exception):
                await streams[0].delete_stream(f"AT{at}")


async def test_numbers_of_replicas(cluster: Cluster):
    """There are five replicas nowhere. Two are refused until groups of two exist."""
    async with connected(cluster) as (clients, streams):
        for jetstream in streams:
            text = await refused(jetstream.add_stream(name="FIVE", num_replicas=5), PLACEMENT_FAILED)
            check(text.startswith("no suitable peers for placement"), text)
            await refused(jetstream.add_stream(name="SIX", num_replicas=6), 10052)
        if cluster.is_reference:
            await add(clients, 0, "TWO", subjects=["two"], num_replicas=2)
            await streams[0].delete_stream("TWO")
        else:
            with pytest.raises(APIError) as error:
                await streams[0].add_stream(name="TWO", num_replicas=2)
            check(error.value.err_code in (PLACEMENT_FAILED, NO_CLUSTER), f"the error: {error.value}")
        equal(await streams[0].streams_info(), [], "the streams")


def test_one_answer_to_each_request(cluster: Cluster):
    """A subscription to all requests makes them reach all servers, of which one answers."""
    asking, watching = (Client(node.port) for node in cluster.nodes[:2])
    with asking, watching:
        watching.subscribe("$JS.API.>")
        settle(watching, asking)
        config = {"name": "ASKED", "subjects": ["asked"], "num_replicas": REPLICAS, "allow_direct": True}
        consumer = {"stream_name": "ASKED", "config": {"durable_name": "c", "ack_policy": "explicit"}}
        answers = asking.subscribe("answers.*")
        for at, (subject, body) in enumerate(
            [
                ("$JS.API.STREAM.CREATE.ASKED", config),
                ("$JS.API.STREAM.CREATE.ASKED", config),
                ("$JS.API.STREAM.INFO.ASKED", None),
                ("$JS.API.STREAM.NAMES", None),
                ("$JS.API.STREAM.LIST", None),
                ("$JS.API.INFO", None),
                ("asked", None),
                ("$JS.API.STREAM.MSG.GET.ASKED", {"seq": 1}),
                ("$JS.API.DIRECT.GET.ASKED", {"seq": 1}),
                ("$JS.API.CONSUMER.CREATE.ASKED.c", consumer),
                ("$JS.API.CONSUMER.INFO.ASKED.c", None),
                ("$JS.API.CONSUMER.NAMES.ASKED", None),
                ("$JS.API.CONSUMER.MSG.NEXT.ASKED.c", None),
                ("$JS.API.STREAM.UPDATE.ASKED", config | {"max_msgs": 5}),
                ("$JS.API.STREAM.PURGE.ASKED", None),
                ("$JS.API.CONSUMER.DELETE.ASKED.c", None),
                ("$JS.API.STREAM.DELETE.ASKED", None),
                ("$JS.API.STREAM.INFO.ASKED", None),
            ]
        ):
            if subject == "asked":
                until(lambda: asking.ask("asked", b"", {"Nats-Expected-Stream": "none"}).status != 503, "no interest")
            asking.publish(subject, b"" if body is None else json.dumps(body).encode(), f"answers.{at}")
            first = asking.next(answers)
            # A pull request is answered with the message and its own subject.
            equal(first.subject, "asked" if "MSG.NEXT" in subject else f"answers.{at}", f"the answer to {subject}")
            check(b'"error"' not in first.payload or at == 17, f"{subject}: {first.payload}")
        equal(asking.quiet(answers), [], "further answers")


async def test_new_leader(cluster: Cluster):
    """A leader that is asked to step down has a successor, and the stream goes on through each server."""
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "STEPS", subjects=["steps"])
        sequence = 0
        for at, client in enumerate(clients):
            cluster.until_current("STEPS")
            brief = client.jetstream(timeout=2)
            before = (await until_answered(lambda js=brief: js.stream_info("STEPS"), "no answer")).cluster.leader
            found = await client.request("$JS.API.STREAM.LEADER.STEPDOWN.STEPS", b"", timeout=SECONDS_MAX)
            equal(json.loads(found.data).get("success"), True, f"the answer {found.data}")

            async def has_other_leader(jetstream=brief, before=before):
                leader = (await jetstream.stream_info("STEPS")).cluster.leader
                return leader and leader != before

            await until_answered(has_other_leader, f"{before} is still the leader")
            for jetstream in streams:
                sequence += 1
                ack = await until_answered(lambda js=jetstream, of=f"{sequence}": publish(js, of), "no acknowledgement")
                equal(ack.seq, sequence, "the sequence")
        await streams[0].delete_stream("STEPS")


async def publish(jetstream, id: str):
    return await jetstream.publish("steps", b"x", timeout=2, headers={"Nats-Msg-Id": id})


@pytest.mark.parametrize("retention", [RetentionPolicy.WORK_QUEUE, RetentionPolicy.INTEREST])
async def test_messages_leave_when_acknowledged(cluster: Cluster, retention):
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "WORK", subjects=["work"], retention=retention)
        pulls = [await streams[1].pull_subscribe("work", "worker")]
        for number in range(30):
            await streams[number % REPLICAS].publish("work", b"%d" % number)
        pulls += [await jetstream.pull_subscribe_bind("worker", "WORK") for jetstream in (streams[0], streams[2])]
        found = []
        while len(found) < 30:
            for pull in pulls:
                for message in await pull.fetch(min(5, 30 - len(found)), timeout=SECONDS_MAX) if len(found) < 30 else []:
                    found.append(int(message.data))
                    await message.ack_sync(timeout=SECONDS_MAX)
        equal(sorted(found), list(range(30)), "the work")

        async def is_empty():
            return (await streams[2].stream_info("WORK")).state.messages == 0

        await eventually(is_empty, "what was done is still there")
        await streams[0].delete_stream("WORK")
