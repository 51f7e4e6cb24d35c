"""Mirrors and sources: they end up with every message of their origins, once."""

import asyncio
import time
from collections import Counter

from power_cut.clients import Place, Publisher, connected, make_stream, stored, stream_info
from power_cut.ledger import Broken, Ledger, Op, check
from power_cut.oracle import check_stream
from power_cut.workloads import Workload, workload
from power_cut.workloads.limits import SIZES

# A guard against hanging, not an expected time.
CAUGHT_UP_SECONDS_MAX = 20


@workload("copies")
class Copies(Workload):
    """One mirror, and one stream with two sources."""

    async def run(self, place: Place, ledger: Ledger):
        origins = [f"{self.name}-a", f"{self.name}-b"]
        async with connected(place) as client:
            for name in origins:
                config = {"name": name, "subjects": [f"{name}.>"], "allow_direct": True}
                await make_stream(client, ledger, config)
            mirror = {"name": f"{self.name}-mirror", "mirror": {"name": origins[0]}, "allow_direct": True}
            await make_stream(client, ledger, mirror)
            sources = [{"name": name} for name in origins]
            await make_stream(
                client, ledger, {"name": f"{self.name}-all", "sources": sources, "allow_direct": True}
            )
            publisher = await Publisher.new(client, ledger)
            while True:
                subject = f"{self.random.choice(origins)}.{self.random.randrange(5)}"
                await publisher.publish(subject, size=self.random.choice(SIZES[1:6]), origin=subject.split(".")[0])
                if self.random.random() < 0.02:
                    await asyncio.sleep(0.01)

    async def check(self, place: Place, ops: list[Op]):
        held: dict[str, set[int]] = {}
        sequences: dict[int, int] = {}
        for origin in (f"{self.name}-a", f"{self.name}-b"):
            own = [op for op in ops if op.about.get("origin", op.about.get("stream")) == origin]
            holding = await check_stream(place, origin, own)
            held[origin] = set(holding.by_number) if holding else set()
            if holding:
                sequences |= {number: message.sequence for number, message in holding.by_number.items()}
        made = {op.stream for op in ops if op.what == "create" and op.is_granted}
        if f"{self.name}-mirror" in made:
            await self.catches_up(place, f"{self.name}-mirror", held[f"{self.name}-a"], sequences)
        if f"{self.name}-all" in made:
            await self.catches_up(place, f"{self.name}-all", held[f"{self.name}-a"] | held[f"{self.name}-b"], None)

    async def catches_up(self, place: Place, name: str, wanted: set[int], sequences: dict[int, int] | None):
        deadline = time.monotonic() + CAUGHT_UP_SECONDS_MAX
        async with connected(place) as client:
            check(await stream_info(client, name), f"stream {name}, which was made, is not there")
            while True:
                found = await stored(client, name)
                numbers = [message.number for message in found]
                repeated = [number for number, count in Counter(numbers).items() if count > 1]
                check(not repeated, f"stream {name} holds {repeated[:5]} more than once")
                surplus = set(numbers) - wanted
                check(not surplus, f"stream {name} holds {sorted(surplus)[:5]}, which its origin does not")
                if set(numbers) == wanted:
                    break
                if time.monotonic() > deadline:
                    missing = sorted(wanted - set(numbers))
                    raise Broken(f"stream {name} does not get {len(missing)} messages of its origins: {missing[:5]}")
                await asyncio.sleep(0.05)
            if sequences is not None:
                for message in found:
                    check(
                        sequences[message.number] == message.sequence,
                        f"mirror {name} holds {message.number} at {message.sequence}, not {sequences[message.number]}",
                    )


@workload("queue-source")
class QueueSource(Workload):
    """A stream whose source is a work queue: no message is lost between them."""

    async def run(self, place: Place, ledger: Ledger):
        queue, copy = f"{self.name}-queue", f"{self.name}-copy"
        async with connected(place) as client:
            config = {"name": queue, "subjects": [f"{queue}.>"], "retention": "workqueue", "allow_direct": True}
            await make_stream(client, ledger, config)
            await make_stream(client, ledger, {"name": copy, "sources": [{"name": queue}], "allow_direct": True})
            publisher = await Publisher.new(client, ledger)
            while True:
                subject = f"{queue}.{self.random.randrange(5)}"
                await publisher.publish(subject, size=self.random.choice(SIZES[1:6]))
                if self.random.random() < 0.05:
                    await asyncio.sleep(0.01)

    async def check(self, place: Place, ops: list[Op]):
        queue, copy = f"{self.name}-queue", f"{self.name}-copy"
        made = {op.stream for op in ops if op.what == "create" and op.is_granted}
        if copy not in made:
            return
        needed = {op.number for op in ops if op.what == "publish" and op.is_granted}
        deadline = time.monotonic() + CAUGHT_UP_SECONDS_MAX
        async with connected(place) as client:
            for stream in made:
                check(await stream_info(client, stream), f"stream {stream}, which was made, is not there")
            while True:
                left = {message.number for message in await stored(client, queue)}
                found = [message.number for message in await stored(client, copy)]
                repeated = len(found) - len(set(found))
                check(not repeated, f"stream {copy} holds {repeated} messages more than once")
                # A message that was copied may still be in the queue. This is so with nats-server, too.
                missing = sorted((needed | left) - set(found))
                if not missing:
                    return
                if time.monotonic() > deadline:
                    raise Broken(
                        f"stream {copy} does not get {len(missing)} messages: {missing[:5]}, of which "
                        f"{sorted(set(missing) - left)[:5]} are not in {queue} either"
                    )
                await asyncio.sleep(0.05)
