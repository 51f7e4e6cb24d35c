"""Durable consumers: a message whose acknowledgement was confirmed does not come again, and no other is skipped."""

import asyncio
import time

from nats.aio.client import Client
from nats.js.errors import ServiceUnavailableError

from power_cut.clients import (
    SECONDS_MAX, Place, api, connected, parsed, payload, request, stored, stream_info,
)
from power_cut.ledger import Broken, Ledger, Op, check
from power_cut.oracle import Holding, check_stream
from power_cut.workloads import Workload, workload
from power_cut.workloads.limits import SIZES, together

SECOND_NANOS = 1_000_000_000
# How long a check waits for messages.
DELIVERED_SECONDS_MAX = 10
# Messages that a check publishes have numbers from here on, which no publish before a cut has.
NEW_FROM = 1_000_000_000


@workload("work-queue", "interest", "limits-consumer", "ack-all")
class Consumers(Workload):
    """A stream with durable consumers. Its messages are removed once they are acknowledged, or stay."""

    RETENTION = {"work-queue": "workqueue", "interest": "interest"}

    def consumers(self) -> list[str]:
        return ["a"] if self.name in ("work-queue", "ack-all") else ["a", "b"]

    async def run(self, place: Place, ledger: Ledger):
        async with self.stream(place, ledger, retention=self.RETENTION.get(self.name, "limits")) as (client, publisher):
            for consumer in self.consumers():
                await self.make(client, ledger, consumer)

            async def publish():
                while True:
                    subject = f"{self.name}.{self.random.randrange(5)}"
                    await publisher.publish(subject, size=self.random.choice(SIZES[1:6]))
                    if self.random.random() < 0.05:
                        await asyncio.sleep(0.01)

            await together(publish(), *(self.consume(client, ledger, consumer) for consumer in self.consumers()))

    async def make(self, client: Client, ledger: Ledger, consumer: str):
        """Creates a durable consumer unless it exists."""
        config = {
            "durable_name": consumer,
            "ack_policy": "all" if self.name == "ack-all" else "explicit",
            "ack_wait": SECOND_NANOS,
            "max_ack_pending": 2_000,
            "deliver_policy": "all",
        }
        subject = f"CONSUMER.CREATE.{self.name}.{consumer}"
        body = {"stream_name": self.name, "config": config}
        op = await api(client, ledger, "make consumer", subject, body, consumer=consumer)
        if op.is_refused:
            raise RuntimeError(f"consumer {consumer} cannot be made: {op.answer}")

    async def consume(self, client: Client, ledger: Ledger, consumer: str):
        subscription = await client.jetstream().pull_subscribe_bind(consumer, self.name)
        confirmations: set[asyncio.Task] = set()

        async def confirm(op: Op, message):
            await message.ack_sync(timeout=SECONDS_MAX)
            op.finish({})

        while True:
            try:
                messages = await subscription.fetch(30, timeout=0.2)
            except TimeoutError:
                continue
            if self.name == "ack-all":
                if self.random.random() < 0.7:
                    op = ledger.begin("ack", consumer=consumer, upto=messages[-1].metadata.sequence.stream)
                    await confirm(op, messages[-1])
                continue
            for message in messages:
                number = int(message.data[:11])
                drawn = self.random.random()
                if drawn < 0.4:
                    op = ledger.begin("ack", consumer=consumer, target=number)
                    task = asyncio.create_task(confirm(op, message))
                    confirmations.add(task)
                    task.add_done_callback(confirmations.discard)
                elif drawn < 0.8:
                    ledger.begin("ack", consumer=consumer, target=number)
                    await message.ack()
                elif drawn < 0.9:
                    op = ledger.begin("ack", consumer=consumer, target=number)
                    op_answer = await client.request(message.reply, b"+TERM", timeout=SECONDS_MAX)
                    op.finish(parsed(op_answer))

    async def check(self, place: Place, ops: list[Op]):
        wanted = {op.number: op for op in ops if op.what == "publish"}
        async with connected(place) as client:
            if self.name in self.RETENTION:
                await self.check_retained(client, ops)
            else:
                await check_stream(place, self.name, ops)
            made = {op.consumer for op in ops if op.what == "make consumer" and op.is_granted}
            if not made:
                return
            # A consumer whose recorded position is behind the end of its stream would skip these messages.
            new = await self.publish_more(client)
            for consumer in sorted(made):
                await self.check_delivered(client, consumer, ops, wanted, new)

    async def publish_more(self, client: Client) -> set[int]:
        numbers = set(range(NEW_FROM, NEW_FROM + 20))
        for number in numbers:
            answer = parsed(await client.request(f"{self.name}.new", payload(number, 12), timeout=SECONDS_MAX))
            check("seq" in answer, f"stream {self.name}: a publish after the cut is refused: {answer}")
        return numbers

    async def check_retained(self, client: Client, ops: list[Op]):
        """Checks that a message is removed once all consumers have acknowledged it, and not before."""
        if not any(op.is_granted for op in ops if op.what == "create"):
            return
        check(await stream_info(client, self.name), f"stream {self.name}, which was made, is not there")
        holding = Holding(self.name, ops, await stored(client, self.name))
        holding.check_found()
        asked, confirmed = acknowledgements(ops)
        for op in holding.publishes:
            is_there = op.number in holding.by_number
            if op.is_granted and not is_there:
                check(
                    all(op.number in asked.get(consumer, ()) for consumer in self.consumers()),
                    f"{holding.name(op)} is gone, and was not acknowledged by all consumers",
                )
            if is_there and all(op.number in confirmed.get(consumer, ()) for consumer in self.consumers()):
                raise Broken(f"{holding.name(op)} is back, although acknowledgements of all consumers were confirmed")

    async def check_delivered(
        self, client: Client, consumer: str, ops: list[Op], publishes: dict[int, Op], new: set[int]
    ):
        where = f"consumer {consumer} of {self.name}"
        info = await request(client, f"$JS.API.CONSUMER.INFO.{self.name}.{consumer}")
        check("error" not in info, f"{where}, which was made, is not there: {info.get('error')}")
        if self.name == "ack-all":
            upto = max((op.upto for op in ops if op.what == "ack"), default=0)
            upto_confirmed = max((op.upto for op in ops if op.what == "ack" and op.is_granted), default=0)
            asked = {op.number for op in publishes.values() if op.is_granted and op.answer["seq"] <= upto}
            confirmed = {op.number for op in publishes.values() if op.is_granted and op.answer["seq"] <= upto_confirmed}
        else:
            all_asked, all_confirmed = acknowledgements(ops)
            asked, confirmed = all_asked.get(consumer, set()), all_confirmed.get(consumer, set())
        floor = info["ack_floor"]["stream_seq"]
        needed = {op.number for op in publishes.values() if op.is_granted} - asked
        delivered = await self.drain(client, consumer, confirmed, where)
        missing = sorted(new - delivered)
        check(not missing, f"{where}: {len(missing)} of {len(new)} messages published after the cut are not delivered; "
              f"the consumer was at {info['delivered']}")
        for number in sorted(needed - delivered):
            op = publishes[number]
            raise Broken(
                f"{where}: publish {number}, acknowledged as {op.answer['seq']} and never by the consumer, is not "
                f"delivered; the consumer was at {info['delivered']}, its floor at {floor}"
            )

    async def drain(self, client: Client, consumer: str, confirmed: set[int], where: str) -> set[int]:
        """Fetches messages until the consumer has none left, and returns their numbers."""
        subscription = await client.jetstream().pull_subscribe_bind(consumer, self.name)
        delivered: set[int] = set()
        deadline = time.monotonic() + DELIVERED_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                messages = await subscription.fetch(500, timeout=0.2)
            except (TimeoutError, ServiceUnavailableError):
                messages = []
            for message in messages:
                number = int(message.data[:11])
                delivered.add(number)
                check(
                    number not in confirmed,
                    f"{where}: publish {number} at {message.metadata.sequence.stream} comes again, although its "
                    "acknowledgement was confirmed",
                )
                await message.ack()
            if not messages:
                info = await request(client, f"$JS.API.CONSUMER.INFO.{self.name}.{consumer}")
                if info["num_pending"] == 0 and info["num_ack_pending"] == 0:
                    return delivered
        raise Broken(f"{where} does not come to an end: {info}")


def acknowledgements(ops: list[Op]) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """Returns the publishes that each consumer has acknowledged: those it has sent an acknowledgement for, and
    those whose acknowledgement was confirmed."""
    asked: dict[str, set[int]] = {}
    confirmed: dict[str, set[int]] = {}
    for op in ops:
        if op.what == "ack" and "target" in op.about:
            asked.setdefault(op.consumer, set()).add(op.target)
            if op.is_granted:
                confirmed.setdefault(op.consumer, set()).add(op.target)
    return asked, confirmed
