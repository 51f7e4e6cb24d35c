"""Enough data for many segments: checkpoints, compactions, and removed files."""

import asyncio

from power_cut.clients import Place, api
from power_cut.ledger import Ledger
from power_cut.oracle import Limits
from power_cut.workloads import Workload, workload
from power_cut.workloads.limits import together

SIZES = (60_000, 120_000, 250_000)


@workload("segments")
class Segments(Workload):
    """Large messages to a few subjects and small ones to many, so that most of each segment becomes obsolete."""

    seconds = 5.0

    async def run(self, place: Place, ledger: Ledger):
        async with self.stream(place, ledger, in_flight=20, max_msgs_per_subject=1) as (client, publisher):

            async def publish():
                while True:
                    if self.random.random() < 0.5:
                        subject = f"{self.name}.large{self.random.randrange(6)}"
                        await publisher.publish(subject, size=self.random.choice(SIZES))
                    else:
                        subject = f"{self.name}.small{self.random.randrange(300)}"
                        await publisher.publish(subject, size=self.random.choice((12, 100, 500)))

            async def purge():
                while True:
                    await asyncio.sleep(self.random.random())
                    filter_ = f"{self.name}.large{self.random.randrange(6)}"
                    about = {"filter": filter_, "keep": None, "seq": None}
                    await api(client, ledger, "purge", f"STREAM.PURGE.{self.name}", {"filter": filter_}, **about)

            await together(publish(), purge())

    def limits(self) -> Limits:
        return Limits(per_subject=1)
