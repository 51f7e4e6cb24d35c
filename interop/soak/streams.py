"""A stream with a publisher, a reader in order, and a worker that acknowledges.

Records are numbered from 1, and each is published once, so its number is its sequence in the stream. After each restart
the publisher reads the last record, which must not be older than the last acknowledged one, and continues after it.
"""

import asyncio
import time

from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from soak.stage import SECONDS_MAX, Arrivals, Stage, Violation, numbers, payload, until, within

STREAM, SUBJECT, WORKER = "SOAK", "soak.kept", "worker"
# With this limit, memory soon stops growing: indexes have their final size after a few times as many records.
RECORDS_MAX = 10_000
# The publisher waits for readers that are behind by more, so that no record is removed unread.
AHEAD_MAX = 4_000
# All records of a batch are acknowledged before the next batch.
BATCH = 200
PAUSE_SECONDS = 0.02
# Records that the worker requests.
PULL = 500
# Time after which the worker's records are delivered again.
ACK_WAIT_SECONDS = 5
# Time limit of a wait for a record. After it, a reader checks whether it must end.
IDLE_SECONDS = 1


class Records:
    """The three loads, and their positions."""

    def __init__(self, stage: Stage):
        self.stage = stage
        # Records that the worker has received after a gap.
        self.beyond: set[int] = set()
        # Whether no further record will be published.
        self.is_complete = False

    def advance(self, name: str, to: int):
        counter = self.stage.counts[name]
        counter.value = max(counter.value, to)

    def is_done(self, name: str) -> bool:
        return self.is_complete and self.stage.get(name) >= self.stage.get("acknowledged")

    def ensure_moving(self, name: str, since: float):
        at, acknowledged = self.stage.get(name), self.stage.get("acknowledged")
        if at < acknowledged and time.monotonic() - since > SECONDS_MAX:
            raise TimeoutError(f"record {at + 1} of {acknowledged} does not arrive")

    async def publish_to_end(self):
        await self.stage.keep("stream", self.publish)
        self.is_complete = True

    async def publish(self):
        get = self.stage.get
        async with self.stage.connect("publisher") as client:
            jetstream = client.jetstream(timeout=SECONDS_MAX)
            after = 1 + await self.check_last(jetstream)
            while not self.stage.is_ending.is_set():
                if get("acknowledged") - min(get("read"), get("worked")) <= AHEAD_MAX:
                    batch = range(after, after + BATCH)
                    acks = [await jetstream.publish_async(SUBJECT, payload(0, number)) for number in batch]
                    for number, ack in zip(batch, await within(asyncio.gather(*acks), f"acknowledgements of {batch}")):
                        if ack.seq != number:
                            raise Violation(f"record {number} was acknowledged as {ack.seq}")
                    after += BATCH
                    self.advance("acknowledged", after - 1)
                await asyncio.sleep(PAUSE_SECONDS)

    async def check_last(self, jetstream) -> int:
        """Creates the stream if it does not exist. Returns the number of its last record."""
        await jetstream.add_stream(name=STREAM, subjects=[SUBJECT], max_msgs=RECORDS_MAX)
        try:
            record = await jetstream.get_last_msg(STREAM, SUBJECT)
            last = number_of(record.data, record.seq)
        except NotFoundError:
            last = 0
        if last < (acknowledged := self.stage.get("acknowledged")):
            raise Violation(f"{acknowledged} records were acknowledged, the last is {last}")
        # The last record is stored, even if its acknowledgement did not arrive.
        self.advance("acknowledged", last)
        return last

    async def read(self):
        async with self.stage.connect("reader") as client:
            jetstream = client.jetstream(timeout=SECONDS_MAX)
            await until(lambda: self.stage.get("acknowledged"), lambda: "no record is acknowledged")
            arrivals, at = Arrivals(), self.stage.get("read")
            start = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=at + 1)
            await jetstream.subscribe(SUBJECT, stream=STREAM, ordered_consumer=True, config=start, cb=arrivals.put)
            moved = time.monotonic()
            while not self.is_done("read"):
                try:
                    record = await arrivals.next(lambda: f"record {at + 1}", IDLE_SECONDS)
                except TimeoutError:
                    self.ensure_moving("read", moved)
                    continue
                number = number_of(record.data, record.metadata.sequence.stream)
                if number != at + 1:
                    raise Violation(f"record {number} follows {at}")
                at, moved = number, time.monotonic()
                self.advance("read", at)

    async def work(self):
        async with self.stage.connect("worker") as client:
            jetstream = client.jetstream(timeout=SECONDS_MAX)
            await until(lambda: self.stage.get("acknowledged"), lambda: "no record is acknowledged")
            config = ConsumerConfig(durable_name=WORKER, ack_policy=AckPolicy.EXPLICIT, ack_wait=ACK_WAIT_SECONDS)
            await jetstream.add_consumer(STREAM, config)
            subscription = await jetstream.pull_subscribe_bind(WORKER, STREAM)
            first_time, moved = 0, time.monotonic()
            while not self.is_done("worked"):
                try:
                    records = await subscription.fetch(PULL, IDLE_SECONDS)
                # Depending on what takes the time, the client raises the standard error or its own subclass.
                except TimeoutError:
                    records = []
                for record in records:
                    first_time, moved = self.take(record, first_time), time.monotonic()
                    await record.ack()
                self.ensure_moving("worked", moved)
            await client.flush(SECONDS_MAX)

    def take(self, record, first_time: int) -> int:
        """Checks that records that are delivered for the first time arrive in order on this connection."""
        number = number_of(record.data, record.metadata.sequence.stream)
        if record.metadata.num_delivered == 1:
            if number <= first_time:
                raise Violation(f"record {number} is delivered after {first_time}")
            first_time = number
        worked = self.stage.get("worked")
        if number <= worked or number in self.beyond:
            self.stage.add("redelivered")
            return first_time
        self.beyond.add(number)
        while worked + 1 in self.beyond:
            worked += 1
            self.beyond.discard(worked)
        self.advance("worked", worked)
        return first_time


def number_of(data: bytes, sequence: int) -> int:
    """Returns the number of a record. It must be equal to the record's sequence."""
    if numbers(data) != (0, sequence):
        raise Violation(f"record {sequence} holds {numbers(data)}")
    return sequence


def run(stage: Stage):
    records = Records(stage)
    readers = [stage.keep("stream", play) for play in (records.read, records.work)]
    asyncio.run(stage.keep_all([records.publish_to_end(), *readers]))
