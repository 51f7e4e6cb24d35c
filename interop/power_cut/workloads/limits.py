"""Streams that drop old messages for new ones, or refuse new ones."""

import asyncio

from power_cut.clients import ID, Place, Publisher, api, connected
from power_cut.ledger import Ledger, Op, check
from power_cut.oracle import Limits, check_stream
from power_cut.workloads import Workload, workload

SIZES = (0, 12, 40, 100, 300, 600, 2_000, 6_000)
MINUTE_NANOS = 60_000_000_000


@workload("subjects-1", "subjects-3")
class Subjects(Workload):
    """The last messages of 20 subjects, with 50 publishes in flight."""

    def limits(self) -> Limits:
        return Limits(per_subject=int(self.name[-1]))

    async def run(self, place: Place, ledger: Ledger):
        sizes = self.random.choice([SIZES, (100,), (20, 40)])
        async with self.stream(place, ledger, max_msgs_per_subject=self.limits().per_subject) as (_, publisher):
            while True:
                subject = f"{self.name}.{self.random.randrange(20)}"
                await publisher.publish(subject, size=self.random.choice(sizes))


@workload("messages-max", "bytes-max")
class Counted(Workload):
    """A stream with a limit of messages or of bytes."""

    def limits(self) -> Limits:
        return Limits(messages=40) if self.name == "messages-max" else Limits(bytes=16_000)

    async def run(self, place: Place, ledger: Ledger):
        most = {"max_msgs": self.limits().messages or -1, "max_bytes": self.limits().bytes or -1}
        async with self.stream(place, ledger, **most) as (_, publisher):
            while True:
                subject = f"{self.name}.{self.random.randrange(5)}"
                await publisher.publish(subject, size=self.random.choice(SIZES[1:7]))


@workload("discard-new", "discard-new-per-subject")
class DiscardNew(Workload):
    """A full stream refuses new messages, which are not stored. Only deletions make room."""

    def limits(self) -> Limits:
        return Limits(messages=30) if self.name == "discard-new" else Limits(per_subject=2)

    async def run(self, place: Place, ledger: Ledger):
        limits = self.limits()
        config = {
            "discard": "new",
            "max_msgs": limits.messages or -1,
            "max_msgs_per_subject": limits.per_subject or -1,
            "discard_new_per_subject": limits.per_subject is not None,
        }
        async with self.stream(place, ledger, in_flight=20, **config) as (client, publisher):

            async def publish():
                while True:
                    subject = f"{self.name}.{self.random.randrange(20)}"
                    op = await publisher.publish(subject, size=self.random.choice(SIZES[:6]))
                    if self.random.random() < 0.02:
                        await asyncio.sleep(0.01)
                    stored.append(op)

            async def delete():
                while True:
                    await asyncio.sleep(0.002)
                    granted = [op for op in stored if op.is_granted]
                    if not granted:
                        continue
                    op = self.random.choice(granted)
                    stored.remove(op)
                    body = {"seq": op.answer["seq"], "no_erase": self.random.random() < 0.5}
                    subject = f"STREAM.MSG.DELETE.{self.name}"
                    await api(client, ledger, "delete", subject, body, target=op.number)

            deleted = {op.target for op in ledger.ops if op.what == "delete"}
            stored = [op for op in ledger.ops if op.what == "publish" and op.is_granted and op.number not in deleted]
            await together(publish(), delete())

    async def check(self, place: Place, ops: list[Op]):
        holding = await check_stream(place, self.name, ops)
        if holding:
            holding.check_gone(self.limits())


@workload("rollup")
class Rollup(Workload):
    """Messages that replace all previous ones, of their subject or of the stream."""

    async def run(self, place: Place, ledger: Ledger):
        async with self.stream(place, ledger, allow_rollup_hdrs=True) as (_, publisher):
            while True:
                subject = f"{self.name}.{self.random.randrange(10)}"
                drawn = self.random.random()
                kind = "all" if drawn < 0.01 else "sub" if drawn < 0.15 else None
                headers = {"Nats-Rollup": kind} if kind else None
                await publisher.publish(subject, headers, self.random.choice(SIZES), rollup=kind)


@workload("kv-1", "kv-5")
class KeyValue(Workload):
    """A key-value bucket: puts, deletes, and purges of 20 keys as clients send them, 50 in flight."""

    async def run(self, place: Place, ledger: Ledger):
        # The configuration that nats-py and nats.go create.
        config = {
            "name": f"KV_{self.name}",
            "subjects": [f"$KV.{self.name}.>"],
            "max_msgs_per_subject": int(self.name[-1]),
            "discard": "new",
            "deny_delete": True,
            "allow_rollup_hdrs": True,
            "duplicate_window": 2 * MINUTE_NANOS,
        }
        async with self.stream(place, ledger, **config) as (_, publisher):
            while True:
                subject = f"$KV.{self.name}.key{self.random.randrange(20)}"
                drawn = self.random.random()
                if drawn < 0.1:
                    await publisher.publish(subject, {"KV-Operation": "DEL"}, 0)
                elif drawn < 0.2:
                    headers = {"KV-Operation": "PURGE", "Nats-Rollup": "sub"}
                    await publisher.publish(subject, headers, 0, rollup="sub")
                else:
                    await publisher.publish(subject, size=self.random.choice(SIZES[1:]))

    async def check(self, place: Place, ops: list[Op]):
        stream = f"KV_{self.name}"
        history = int(self.name[-1])
        holding = await check_stream(place, stream, ops, Limits(history), probe=f"$KV.{self.name}.probe")
        if holding is None:
            return
        # A client of the bucket gets the same values.
        async with connected(place) as client:
            bucket = await client.jetstream().key_value(self.name)
            last = {message.subject: message for message in holding.found}
            for subject, message in list(last.items())[:5]:
                key = subject.rsplit(".", 1)[1]
                if "KV-Operation" in message.headers:
                    continue
                entry = await bucket.get(key)
                check(entry.revision == message.sequence, f"{stream}: key {key} is at {entry.revision}")


@workload("counter")
class Counter(Workload):
    """Counters of 10 subjects. Each answer has the sum."""

    async def run(self, place: Place, ledger: Ledger):
        async with self.stream(place, ledger, allow_msg_counter=True, max_msgs_per_subject=1) as (_, publisher):
            while True:
                subject = f"{self.name}.{self.random.randrange(10)}"
                await publisher.publish(subject, {"Nats-Incr": "+1"}, 0, content_differs=True)

    async def check(self, place: Place, ops: list[Op]):
        holding = await check_stream(place, self.name, ops, Limits(per_subject=1))
        if holding is None:
            return
        granted = {op.number: op for op in ops if op.what == "publish" and op.is_granted}
        for message in holding.found:
            op = granted.get(message.number)
            value = f'"{op.answer["val"]}"'.encode() if op else b""
            check(value in message.data, f"{self.name}: sum {message.data!r}, acknowledged {value!r}")


@workload("deduplicated")
class Deduplicated(Workload):
    """Message IDs: an acknowledged message is still known after the cut and is not stored twice."""

    async def run(self, place: Place, ledger: Ledger):
        async with self.stream(place, ledger, duplicate_window=60 * MINUTE_NANOS) as (_, publisher):
            while True:
                subject = f"{self.name}.{self.random.randrange(5)}"
                # The number of a publish is unique in its ledger.
                headers = {"Nats-Msg-Id": f"id-{len(ledger.ops)}"}
                await publisher.publish(subject, headers, self.random.choice(SIZES[1:6]))

    async def check(self, place: Place, ops: list[Op]):
        holding = await check_stream(place, self.name, ops)
        if holding is None:
            return
        # All publishes in flight are sent again, as real publishers do, and some of those that were acknowledged.
        again = [op for op in holding.publishes if not op.is_granted]
        again += self.random.sample(granted := [op for op in holding.publishes if op.is_granted], min(50, len(granted)))
        ledger = Ledger()
        async with connected(place) as client:
            publisher = await Publisher.new(client, ledger)
            sent = [
                (op, await publisher.publish(op.subject, {"Nats-Msg-Id": f"id-{op.number}", ID: str(op.number)}, 12))
                for op in again
            ]
            for _ in range(50):
                await publisher.room.acquire()
        for op, repeated in sent:
            where = f"stream {self.name}: publish {op.number}, sent again,"
            check(repeated.is_granted, f"{where} is refused: {repeated.answer}")
            found = holding.by_number.get(op.number)
            if found is not None:
                at, answer = found.sequence, repeated.answer
                check(answer.get("duplicate"), f"{where} is stored twice, at {at} and {answer['seq']}")
                check(answer["seq"] == at, f"{where} is at {at}, not {answer['seq']}")


async def together(*tasks):
    """Runs tasks until one fails or all are canceled, and ends the others."""
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(task)
