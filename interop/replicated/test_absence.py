"""Changes while one of three servers does not run. When it is back, it leads the stream, and has missed nothing."""

import asyncio

import pytest
from nats.js.errors import NotFoundError

from cluster.test_streams import until_found
from harness.checks import check, equal, until
from harness.client import Client
from leaf.stage import Node
from python.peers import SECONDS_MAX, connect
from replicated.servers import HEAL_SECONDS_MAX, REPLICAS, Cluster, add, answer, connected, end
from replicated.test_consumers import fetched
from replicated.test_streams import until_answered

FEW, MANY = 10, 3000


class Absence:
    """The last server is killed in the beginning, and returns in the end."""

    def __init__(self, cluster: Cluster):
        self.cluster, self.absent = cluster, cluster.nodes[-1]
        end(self.absent)

    async def __aenter__(self):
        self.clients = [await connect(node) for node in self.cluster.nodes[:-1]]
        # Requests to groups that have just lost their leader may remain unanswered.
        self.streams = [client.jetstream(timeout=2) for client in self.clients]
        return self

    async def __aexit__(self, *_):
        for client in self.clients:
            await client.close()

    async def until(self, ask, why: str = "no answer"):
        return await until_answered(ask, why)

    async def come_back(self, *names: str):
        self.absent.start()
        await asyncio.to_thread(self.cluster.until_whole)
        for name in names:
            await asyncio.to_thread(self.cluster.until_current, name)
            await asyncio.to_thread(lead, self.cluster, name, self.absent)


def lead(cluster: Cluster, stream: str, node: Node):
    """Waits until a server leads a stream."""
    with Client(node.port) as client:

        def is_leader() -> bool:
            if cluster.leader(stream) is node:
                return True
            answer(client, f"STREAM.LEADER.STEPDOWN.{stream}", {"placement": {"preferred": node.name}})
            return False

        until(is_leader, f"{node.name} does not lead {stream}", HEAL_SECONDS_MAX)


@pytest.mark.parametrize("count", [FEW, MANY])
async def test_messages(cluster: Cluster, count: int):
    async with connected(cluster) as (clients, _):
        await add(clients, 0, "MISSED", subjects=["missed"], max_msgs_per_subject=-1)
        await clients[0].jetstream().publish("missed", b"first")
    cluster.until_current("MISSED")
    async with Absence(cluster) as absence:
        jetstream = absence.streams[0]
        for first in range(0, count, 100):
            numbers = range(first, min(first + 100, count))
            await asyncio.gather(*(publish(absence, f"{number}") for number in numbers))
        await absence.until(lambda: jetstream.delete_msg("MISSED", 1))
        before = [(await absence.until(lambda of=at: jetstream.get_msg("MISSED", of))).data for at in range(2, FEW + 2)]
        await absence.come_back("MISSED")
    async with connected(cluster) as (_, streams):
        state = (await streams[0].stream_info("MISSED")).state
        equal((state.messages, state.first_seq, state.last_seq), (count, 2, count + 1), "the state")
        after = [(await streams[2].get_msg("MISSED", at)).data for at in range(2, FEW + 2)]
        equal(after, before, "the first messages")
        ack = await streams[1].publish("missed", b"again", headers={"Nats-Msg-Id": "5"})
        check(ack.duplicate, f"the new leader does not know an id: {ack}")
        equal((await streams[1].publish("missed", b"more")).seq, count + 2, "the next sequence")


async def publish(absence: Absence, id: str):
    headers = {"Nats-Msg-Id": id}
    await absence.until(lambda: absence.streams[0].publish("missed", b"message " + id.encode(), headers=headers))


async def test_deletions(cluster: Cluster):
    """What is deleted meanwhile does not come back."""
    async with connected(cluster) as (clients, streams):
        for name in ("PURGED", "DELETED", "REPLACED", "LIMITED"):
            await add(clients, 0, name, subjects=[f"{name}.*"])
            for number in range(20):
                await streams[number % REPLICAS].publish(f"{name}.{number}", b"old")
            cluster.until_current(name)
    async with Absence(cluster) as absence:
        one, two = absence.streams
        await absence.until(lambda: one.purge_stream("PURGED", keep=3))
        await absence.until(lambda: two.delete_msg("PURGED", 19))
        await gone(absence, "DELETED")
        await gone(absence, "REPLACED")
        await absence.until(lambda: two.add_stream(name="REPLACED", subjects=["REPLACED.*"], num_replicas=REPLICAS))
        ack = await absence.until(lambda: one.publish("REPLACED.0", b"new", headers={"Nats-Msg-Id": "new"}))
        equal(ack.seq, 1, "the sequence in the new stream")
        await absence.until(
            lambda: one.update_stream(name="LIMITED", subjects=["LIMITED.*", "more"], max_msgs=7, num_replicas=REPLICAS)
        )
        await absence.until(lambda: two.publish("more", b"more", headers={"Nats-Msg-Id": "more"}))
        await absence.come_back("PURGED", "REPLACED", "LIMITED")
    async with connected(cluster) as (_, streams):
        for jetstream in streams:
            names = sorted(info.config.name for info in await jetstream.streams_info())
            equal(names, ["LIMITED", "PURGED", "REPLACED"], "the streams")
            with pytest.raises(NotFoundError):
                await jetstream.stream_info("DELETED")
            states = {}
            for name in names:
                state = (await jetstream.stream_info(name)).state
                states[name] = (state.messages, state.first_seq, state.last_seq)
            expected = {"LIMITED": (7, 15, 21), "PURGED": (2, 18, 20), "REPLACED": (1, 1, 1)}
            equal(states, expected, "the states")
            equal((await jetstream.get_msg("REPLACED", 1)).data, b"new", "the message of the new stream")


async def gone(absence: Absence, name: str):
    """Deletes a stream. An answer may be lost."""

    async def is_gone():
        try:
            return await absence.streams[1].delete_stream(name)
        except NotFoundError:
            return True

    await absence.until(is_gone, f"{name} is not deleted")


async def test_creations(cluster: Cluster):
    """Streams and consumers can be created, and are used, while one of three servers is away."""
    async with connected(cluster) as (clients, _):
        await add(clients, 0, "BEFORE", subjects=["before"])
    cluster.until_current("BEFORE")
    async with Absence(cluster) as absence:
        one, two = absence.streams
        await absence.until(lambda: one.add_stream(name="MADE", subjects=["made"], num_replicas=REPLICAS))
        for subject, stream in (("before", "BEFORE"), ("made", "MADE")):
            await absence.until(lambda of=stream: two.add_consumer(of, durable_name="c", ack_policy="explicit"))
            for number in range(20):
                headers = {"Nats-Msg-Id": f"{number}"}
                await absence.until(lambda of=subject, headers=headers: two.publish(of, b"x", headers=headers))
            pull = await absence.until(lambda of=stream: one.pull_subscribe_bind("c", of))
            for message in await fetched(pull, 10):
                await message.ack_sync(timeout=SECONDS_MAX)
        await absence.come_back("BEFORE", "MADE")
    async with connected(cluster) as (_, streams):
        for stream in ("BEFORE", "MADE"):
            info = await until_found(lambda of=stream: streams[2].consumer_info(of, "c"))
            found = (info.num_pending + info.num_ack_pending, info.ack_floor.stream_seq)
            equal(found, (10, 10), f"the consumer of {stream}")
            pull = await streams[2].pull_subscribe_bind("c", stream)
            found = [message.metadata.sequence.stream for message in await fetched(pull, 10)]
            equal(sorted(found), list(range(11, 21)), "the rest")


async def test_waiting_pull_ends_with_its_leader(cluster: Cluster):
    """A pull request that waits at a leader gets a status when another server leads, or when the consumer is deleted."""
    async with connected(cluster) as (clients, streams):
        await add(clients, 0, "WAITED", subjects=["waited"])
        for change in ("step down", "delete"):
            await until_answered(lambda: streams[1].add_consumer("WAITED", durable_name="c", ack_policy="explicit"), "none")
            client = clients[2]
            inbox = client.new_inbox()
            subscription = await client.subscribe(inbox)
            request = b'{"batch": 5, "expires": 60000000000}'
            await client.publish("$JS.API.CONSUMER.MSG.NEXT.WAITED.c", request, reply=inbox)
            await until_waiting(streams[0])
            if change == "delete":
                await streams[1].delete_consumer("WAITED", "c")
            else:
                for kind in ("STREAM.LEADER.STEPDOWN.WAITED", "CONSUMER.LEADER.STEPDOWN.WAITED.c"):
                    await client.request(f"$JS.API.{kind}", b"", timeout=SECONDS_MAX)
            message = await subscription.next_msg(timeout=SECONDS_MAX)
            equal(message.headers["Status"], "409", f"the status: {message.headers}")


async def until_waiting(jetstream):
    async def is_waiting():
        return (await jetstream.consumer_info("WAITED", "c")).num_waiting == 1

    await until_answered(is_waiting, "the pull request does not wait")
