"""Batches: an atomic batch is stored whole or not at all; of a fast batch, everything acknowledged is stored."""

import asyncio
import json

from nats.aio.client import Client
from nats.aio.msg import Msg

from power_cut.clients import SECONDS_MAX, Place, parsed, payload
from power_cut.ledger import Ledger, Op, check
from power_cut.oracle import Limits, check_stream
from power_cut.workloads import Workload, workload
from power_cut.workloads.limits import SIZES, together

MEMBERS_MAX = 30
UNACKNOWLEDGED_MAX = 30


class Batches(Workload):
    """Several batches at a time. If its name ends in `-1`, the stream holds only the last message of each subject."""

    # The option of a stream that allows these batches.
    feature: str
    at_once: int

    def limits(self) -> Limits:
        return Limits(per_subject=1 if self.name.endswith("-1") else None)

    async def run(self, place: Place, ledger: Ledger):
        config = {self.feature: True, "max_msgs_per_subject": self.limits().per_subject or -1}
        async with self.stream(place, ledger, **config) as (client, _):

            async def publish():
                while True:
                    await self.batch(client, ledger)

            await together(*(publish() for _ in range(self.at_once)))

    async def batch(self, client: Client, ledger: Ledger):
        raise NotImplementedError


@workload("atomic", "atomic-1")
class Atomic(Batches):
    """Atomic batches."""

    feature, at_once = "allow_atomic", 6

    async def batch(self, client: Client, ledger: Ledger):
        """Publishes one batch without waiting, so that the ledger has the stream's order."""
        count = self.random.randrange(2, MEMBERS_MAX)
        answer = asyncio.get_running_loop().create_future()
        inbox = client.new_inbox()

        async def answered(message: Msg):
            if not answer.done():
                answer.set_result(parsed(message))

        subscription = await client.subscribe(inbox, cb=answered)
        members: list[Op] = []
        id_ = f"{len(ledger.ops)}"
        for number in range(1, count + 1):
            op = ledger.begin(
                "publish",
                subject=f"{self.name}.{self.random.randrange(40)}",
                size=self.random.choice(SIZES[1:6]),
                batch=id_,
                count=count,
            )
            members.append(op)
            headers = {"Nats-Batch-Id": id_, "Nats-Batch-Sequence": str(number)}
            if number == count:
                headers["Nats-Batch-Commit"] = "1"
            reply = inbox if number == count else ""
            await client.publish(op.subject, payload(op.number, op.size), reply, headers)
        found = await asyncio.wait_for(answer, SECONDS_MAX)
        for number, op in enumerate(members):
            op.finish(found if "error" in found else {"seq": found["seq"] - count + 1 + number})
        await subscription.unsubscribe()

    async def check(self, place: Place, ops: list[Op]):
        holding = await check_stream(place, self.name, ops, self.limits(), probe=f"{self.name}.probe")
        if holding is None:
            return
        members: dict[str, list[Op]] = {}
        for op in holding.publishes:
            members.setdefault(op.batch, []).append(op)
        there = {op.batch for op in holding.publishes if op.number in holding.by_number}
        for id_ in there:
            sent = members[id_]
            check(
                len(sent) == sent[0].count,
                f"stream {self.name}: batch {id_} is there, of which {len(sent)} of {sent[0].count} were sent",
            )
        try:
            holding.check_missing(self.limits(), lambda op: op.batch in there)
        except AssertionError as error:
            raise type(error)(f"a batch is there in part: {error}") from None


@workload("fast", "fast-1")
class Fast(Batches):
    """Fast ingest: the server acknowledges parts of each batch."""

    feature, at_once = "allow_batched", 3

    async def batch(self, client: Client, ledger: Ledger):
        members: list[Op] = []
        room = asyncio.Event()
        finished = asyncio.get_running_loop().create_future()
        acknowledged = 0

        async def answered(message: Msg):
            nonlocal acknowledged
            answer = json.loads(message.data)
            if answer.get("type") == "ack":
                until = answer["seq"]
            elif "type" in answer or "error" in answer:
                if not finished.done():
                    finished.set_exception(RuntimeError(f"fast batch: {answer}"))
                return
            else:
                until = answer["count"]
                if not finished.done():
                    finished.set_result(None)
            for op in members[acknowledged:until]:
                op.finish({})
            acknowledged = max(acknowledged, until)
            room.set()

        inbox = client.new_inbox()
        subscription = await client.subscribe(f"{inbox}.>", cb=answered)
        count = self.random.randrange(2, 100)
        id_ = f"{len(ledger.ops)}"
        for number in range(1, count + 1):
            while number - acknowledged > UNACKNOWLEDGED_MAX:
                room.clear()
                await asyncio.wait_for(room.wait(), SECONDS_MAX)
            op = ledger.begin(
                "publish",
                subject=f"{self.name}.{self.random.randrange(40)}",
                size=self.random.choice(SIZES[1:6]),
                is_batch_part=True,
            )
            members.append(op)
            operation = 2 if number == count else 0 if number == 1 else 1
            reply = f"{inbox}.{id_}.10.fail.{number}.{operation}.$FI"
            await client.publish(op.subject, payload(op.number, op.size), reply)
        await asyncio.wait_for(finished, SECONDS_MAX)
        await subscription.unsubscribe()
