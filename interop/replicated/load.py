"""Clients that use a stream while servers fail: publishers that repeat each message until it is acknowledged, probes that
do not, counters whose messages expect the last one, and workers that request a confirmation of each acknowledgement."""

import asyncio
import json
import time
from collections import Counter

from nats.errors import Error
from nats.js.errors import NotFoundError

from harness.checks import check, until
from harness.client import Client, api
from replicated.history import (
    Delivery,
    Publish,
    Stored,
    differences,
    outage,
    problems_of_consumer,
    problems_of_counter,
    problems_of_stream,
)
from replicated.servers import HEAL_SECONDS_MAX, Cluster, answer, connect_to_all

# Messages that a publisher sends before it waits for their acknowledgements. One alone shows the order of each.
WINDOWS = (1, 1, 8)
PUBLISH_SECONDS_MAX = 1
# Delay after a refusal, and between messages.
AGAIN_SECONDS, PAUSE_SECONDS = 0.02, 0.004
# Probes show when the stream can be used again.
PROBE_SECONDS = 0.05
COUNT_SECONDS = 0.02
PULL, PULL_SECONDS = 50, 1
ACK_WAIT_SECONDS = 2
CONFIRM_AGAIN_SECONDS = 0.5
NANOSECONDS = 10**9
COUNTER = "counter"
NO_MESSAGE = 10037


class Load:
    """All clients of one stream. Each client of a kind begins with another server."""

    def __init__(self, cluster: Cluster, stream: str):
        self.cluster, self.stream = cluster, stream
        self.publishes: list[Publish] = []
        self.acknowledged = 0
        self.is_ending = False
        self.is_complete = False
        # The highest acknowledged number of a counter, and how many lower ones were read afterwards.
        self.counted, self.stale = 0, 0
        # Refusals by reason, and the attempts of probes by server.
        self.errors: Counter = Counter()
        self.attempts: dict[str, list[tuple[float, float, bool]]] = {}
        self.workers: list[Worker] = []
        # All messages of the stream after the last publish.
        self.content: list[Stored] = []
        self.clients = []

    def create(self):
        """Creates the stream and the consumers."""
        subjects = [f"{self.stream}.*"]
        config = {"name": self.stream, "subjects": subjects, "num_replicas": 3, "duplicate_window": 600 * NANOSECONDS}
        with Client(self.cluster.nodes[0].port) as client:
            until(lambda: is_done(answer(client, f"STREAM.CREATE.{self.stream}", config)), "no stream", HEAL_SECONDS_MAX)
            for name in self.worker_names():
                consumer = {"durable_name": name, "ack_policy": "explicit", "ack_wait": ACK_WAIT_SECONDS * NANOSECONDS}
                consumer |= {"max_ack_pending": 1000}
                body = {"stream_name": self.stream, "config": consumer}
                request = f"CONSUMER.DURABLE.CREATE.{self.stream}.{name}"
                until(lambda: is_done(answer(client, request, body)), "no consumer", HEAL_SECONDS_MAX)
        self.cluster.until_current(self.stream)

    def worker_names(self) -> list[str]:
        return [f"worker-{name}" for name in self.cluster.names[:2]]

    async def run(self, trouble):
        """Runs all clients during `trouble`, a function for a thread of its own, and until all work is done."""
        nodes = self.cluster.nodes
        clients = [await connect_to_all(self.cluster, at % len(nodes)) for at in range(len(WINDOWS) + 2 * len(nodes))]
        publishers = [
            asyncio.create_task(self.publish(client, f"p{at}", window))
            for at, (client, window) in enumerate(zip(clients, WINDOWS))
        ]
        for kind, first in ((self.probe, len(WINDOWS)), (self.count, len(WINDOWS) + len(nodes))):
            names = enumerate(self.cluster.names, first)
            publishers += [asyncio.create_task(kind(clients[at], name)) for at, name in names]
        for at, name in enumerate(self.worker_names()):
            self.workers.append(Worker(self, await connect_to_all(self.cluster, at), name))
        working = [asyncio.create_task(worker.run()) for worker in self.workers]
        tasks = [*publishers, *working]
        try:
            await asyncio.to_thread(trouble, self)
            self.is_ending = True
            await finished(publishers, "publishers")
            self.content = await asyncio.to_thread(self.stored)
            self.is_complete = True
            await finished(working, "workers")
        finally:
            self.is_ending = self.is_complete = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for client in [*clients, *(worker.client for worker in self.workers)]:
                await client.close()

    def further(self, count: int = 100):
        """Waits until this many further messages are acknowledged, and the load makes progress. For other threads."""
        before = self.acknowledged
        until(
            lambda: self.acknowledged >= before + count,
            lambda: f"{self.acknowledged - before} of {count} messages are acknowledged; refusals: {self.errors}",
            HEAL_SECONDS_MAX,
        )

    # --- Publishers

    async def publish(self, client, name: str, window: int):
        number = 0
        while not self.is_ending:
            batch = [self.next(f"{name}-{number + at}") for at in range(window)]
            number += window
            await asyncio.gather(*(self.until_acknowledged(client, publish) for publish in batch))
            await asyncio.sleep(PAUSE_SECONDS * window)

    def next(self, id: str, payload: bytes | None = None) -> Publish:
        # Payloads of several sizes.
        payload = payload or id.encode() * (1 + len(self.publishes) % 50)
        publish = Publish(id, payload, time.monotonic())
        self.publishes.append(publish)
        return publish

    async def until_acknowledged(self, client, publish: Publish):
        while not await self.attempt(client, publish):
            await asyncio.sleep(AGAIN_SECONDS)

    async def attempt(self, client, publish: Publish, subject: str = "", **headers) -> bool:
        """Publishes a message once. Returns whether it was acknowledged."""
        subject = f"{self.stream}.{subject or publish.id}"
        headers = {name.replace("_", "-"): value for name, value in headers.items()} | {"Nats-Msg-Id": publish.id}
        try:
            found = await client.request(subject, publish.payload, timeout=PUBLISH_SECONDS_MAX, headers=headers)
        except (Error, TimeoutError, OSError) as error:
            self.errors[type(error).__name__] += 1
            return False
        ack = json.loads(found.data)
        if "error" in ack:
            self.errors[ack["error"].get("err_code")] += 1
            return False
        if publish.acknowledged is None:
            publish.acknowledged = time.monotonic()
            self.acknowledged += 1
        publish.sequences.add(ack["seq"])
        return True

    async def probe(self, client, name: str):
        attempts = self.attempts[name] = []

        async def once(publish: Publish):
            is_good = await self.attempt(client, publish)
            attempts.append((publish.sent, time.monotonic(), is_good))

        under_way, number = set(), 0
        while not self.is_ending:
            under_way.add(asyncio.create_task(once(self.next(f"probe-{name}-{number}"))))
            number += 1
            await asyncio.sleep(PROBE_SECONDS)
            under_way = {task for task in under_way if not task.done()}
        await asyncio.gather(*under_way)

    async def count(self, client, name: str):
        """Publishes the number after the last one, if no other client has published it."""
        attempts = 0
        while not self.is_ending:
            known = self.counted
            last = await self.last_count(client)
            if last is not None:
                sequence, value = last
                self.stale += value < known
                publish = self.next(f"{COUNTER}-{name}-{attempts}", b"%d" % (value + 1))
                attempts += 1
                if await self.attempt(client, publish, COUNTER, Nats_Expected_Last_Subject_Sequence=f"{sequence}"):
                    self.counted = max(self.counted, value + 1)
            await asyncio.sleep(COUNT_SECONDS)

    async def last_count(self, client) -> tuple[int, int] | None:
        """Returns the sequence and the number of the last message of the counters."""
        try:
            jetstream = client.jetstream(timeout=PUBLISH_SECONDS_MAX)
            found = await jetstream.get_last_msg(self.stream, f"{self.stream}.{COUNTER}")
        except NotFoundError as error:
            return (0, 0) if error.err_code == NO_MESSAGE else None
        except (Error, TimeoutError, OSError):
            return None
        return found.seq, int(found.data)

    # --- Results

    def problems(self) -> list[str]:
        """Returns all broken promises."""
        found = problems_of_stream(self.publishes, self.content)
        found += problems_of_counter([int(each.payload) for each in self.content if each.id.startswith(COUNTER)])
        for worker in self.workers:
            found += [f"{worker.name}: {problem}" for problem in problems_of_consumer(self.content, worker.deliveries)]
        return found

    def problems_under_another_leader(self) -> list[str]:
        """Reads the stream again under another leader, and compares."""
        self.change_leader()
        return differences(self.content, self.stored())

    def change_leader(self):
        before = self.cluster.leader(self.stream)
        with Client(self.cluster.nodes[0].port) as client:

            def is_changed() -> bool:
                answer(client, f"STREAM.LEADER.STEPDOWN.{self.stream}")
                return self.cluster.leader(self.stream) is not before

            until(is_changed, f"{before.name} still leads {self.stream}", HEAL_SECONDS_MAX)

    def summary(self) -> str:
        again = sum(len(worker.deliveries) - 2 * len(worker.confirmed) for worker in self.workers)
        outages = ", ".join(f"{name} {outage(attempts):.2f} s" for name, attempts in self.attempts.items())
        return (
            f"{self.acknowledged} of {len(self.publishes)} messages acknowledged, {again} deliveries repeated, "
            f"counted to {self.counted}, {self.stale} old numbers read, refusals {dict(self.errors)}; "
            f"longest outage through {outages}"
        )

    def stored(self) -> list[Stored]:
        """Returns all messages of the stream, as its leader has them."""
        with Client(self.cluster.nodes[0].port) as client:
            count = self.cluster.info(self.stream)["state"]["messages"]
            inbox = f"{client.inbox}-all"
            number = client.subscribe(inbox)
            client.flush()
            config = {"deliver_subject": inbox, "ack_policy": "none", "inactive_threshold": 30 * NANOSECONDS}
            api(client, f"CONSUMER.CREATE.{self.stream}", {"stream_name": self.stream, "config": config})
            messages = client.take(number, count)
        return [
            Stored(sequence_of(self.stream, message.reply), message.header("Nats-Msg-Id") or "", message.payload)
            for message in messages
        ]


class Worker:
    """Pulls messages of a durable consumer, and acknowledges each until that is confirmed. One subscription receives
    messages and confirmations, so that their order is the order of arrival."""

    def __init__(self, load: Load, client, name: str):
        self.load, self.client, self.name = load, client, name
        self.inbox = client.new_inbox()
        self.deliveries: list[Delivery] = []
        self.confirmed: set[int] = set()
        # Subjects for acknowledgements by sequence.
        self.open: dict[int, str] = {}
        self.pulled = 0
        self.is_pull_over = asyncio.Event()

    async def run(self):
        await self.client.subscribe(f"{self.inbox}.*", cb=self.receive)
        confirming = asyncio.create_task(self.confirm_again())
        try:
            while not self.is_done():
                await self.pull()
        finally:
            confirming.cancel()

    def is_done(self) -> bool:
        return self.load.is_complete and not self.open and self.confirmed >= {each.sequence for each in self.load.content}

    async def pull(self):
        self.pulled = 0
        self.is_pull_over.clear()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.load.stream}.{self.name}"
        request = json.dumps({"batch": PULL, "expires": PULL_SECONDS * NANOSECONDS}).encode()
        try:
            await self.client.publish(subject, request, reply=f"{self.inbox}.pull")
            await asyncio.wait_for(self.is_pull_over.wait(), PULL_SECONDS + CONFIRM_AGAIN_SECONDS)
        except (Error, TimeoutError, OSError):
            await asyncio.sleep(AGAIN_SECONDS)

    async def receive(self, message):
        status = (message.headers or {}).get("Status")
        last = message.subject.rsplit(".", 1)[1]
        if last.isdigit():
            # Without a leader an acknowledgement has no responders.
            if status is None and not message.data and int(last) not in self.confirmed:
                self.confirmed.add(int(last))
                self.open.pop(int(last), None)
                self.deliveries.append(Delivery(int(last), is_confirmed=True))
        elif status is not None:
            await asyncio.sleep(AGAIN_SECONDS if status == "503" else 0)
            self.is_pull_over.set()
        else:
            sequence = sequence_of(self.load.stream, message.reply)
            self.deliveries.append(Delivery(sequence, message.data))
            self.open[sequence] = message.reply
            await self.acknowledge(sequence)
            self.pulled += 1
            if self.pulled == PULL:
                self.is_pull_over.set()

    async def acknowledge(self, sequence: int):
        try:
            await self.client.publish(self.open[sequence], b"+ACK", reply=f"{self.inbox}.{sequence}")
        except (Error, OSError):
            self.load.errors["acknowledgement"] += 1

    async def confirm_again(self):
        while True:
            waiting = list(self.open)
            await asyncio.sleep(CONFIRM_AGAIN_SECONDS)
            for sequence in waiting:
                if sequence in self.open:
                    await self.acknowledge(sequence)


def sequence_of(stream: str, reply: str) -> int:
    tokens = reply.split(".")
    return int(tokens[tokens.index(stream) + 3])


def is_done(found: dict | None) -> bool:
    return found is not None and "error" not in found


async def finished(tasks: list, what: str):
    """Waits until tasks end, and raises the error of one that fails."""
    done, open = await asyncio.wait(tasks, timeout=HEAL_SECONDS_MAX)
    for task in done:
        task.result()
    check(not open, f"{len(open)} of {len(tasks)} {what} do not finish")
