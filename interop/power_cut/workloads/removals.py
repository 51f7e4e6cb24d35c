"""Messages that clients remove, and messages that expire."""

import asyncio

from power_cut.clients import Place, api
from power_cut.ledger import Ledger, Op
from power_cut.oracle import Limits, check_stream
from power_cut.workloads import Workload, workload
from power_cut.workloads.limits import SIZES, together

HOUR_NANOS = 3_600_000_000_000


@workload("removals", "purges")
class Removals(Workload):
    """Deletions and purges of every kind, during publishes."""

    async def run(self, place: Place, ledger: Ledger):
        async with self.stream(place, ledger, in_flight=20) as (client, publisher):

            async def publish():
                while True:
                    subject = f"{self.name}.{self.random.randrange(10)}"
                    await publisher.publish(subject, size=self.random.choice(SIZES))
                    if self.random.random() < 0.1:
                        await asyncio.sleep(0.002)

            async def remove():
                while True:
                    await asyncio.sleep(self.random.random() * 0.02)
                    drawn = self.random.random()
                    if self.name == "removals" and drawn < 0.8:
                        await delete()
                    elif drawn < 0.9:
                        filter_ = f"{self.name}.{self.random.randrange(10)}"
                        more = self.random.choice([{}, {}, {"keep": 2}, {"seq": max(1, last() - 10)}])
                        await purge({"filter": filter_} | more)
                    else:
                        await purge(self.random.choice([{}, {}, {"keep": 5}, {"seq": max(1, last() - 10)}]))

            def granted() -> list[Op]:
                return [op for op in ledger.ops[-200:] if op.what == "publish" and op.is_granted]

            def last() -> int:
                return max((op.answer["seq"] for op in granted()), default=1)

            async def delete():
                if candidates := granted():
                    op = self.random.choice(candidates)
                    body = {"seq": op.answer["seq"], "no_erase": self.random.random() < 0.5}
                    subject = f"STREAM.MSG.DELETE.{self.name}"
                    await api(client, ledger, "delete", subject, body, target=op.number)

            async def purge(body: dict):
                about = {"filter": body.get("filter", ""), "keep": body.get("keep"), "seq": body.get("seq")}
                await api(client, ledger, "purge", f"STREAM.PURGE.{self.name}", body, **about)

            await together(publish(), remove(), remove())


@workload("ttl", "ttl-markers")
class TimesToLive(Workload):
    """The last message of each subject, some of which expire after a second or two. In `ttl-markers` a marker
    replaces an expired message."""

    # The shortest time to live is one second.
    seconds = 3.0

    async def run(self, place: Place, ledger: Ledger):
        leaves_marker = self.name == "ttl-markers"
        config = {
            "allow_msg_ttl": True,
            "allow_rollup_hdrs": leaves_marker,
            "subject_delete_marker_ttl": HOUR_NANOS if leaves_marker else 0,
            "max_msgs_per_subject": 1,
        }
        async with self.stream(place, ledger, **config) as (_, publisher):
            while True:
                subject = f"{self.name}.{self.random.randrange(200)}"
                ttl = self.random.choice([1, 1, 2, 3600, None])
                headers = {"Nats-TTL": str(ttl)} if ttl else None
                about = {"ttl": ttl, "leaves_marker": leaves_marker} if ttl else {}
                await publisher.publish(subject, headers, self.random.choice(SIZES[1:6]), **about)
                # Pauses leave many subjects without a new message for a second, so that messages expire.
                await asyncio.sleep(self.random.choice([0, 0, 0, 0, 0.01, 0.02]))

    async def check(self, place: Place, ops: list[Op]):
        await check_stream(place, self.name, ops, Limits(per_subject=1))
