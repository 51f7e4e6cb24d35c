"""Core messages to subscribers of an exact subject, of a wildcard, and to a queue group; and subscribers that do not
read, which the server must disconnect without an effect on others."""

import asyncio
import contextlib
import functools
import itertools

from soak.crowd import opened
from soak.stage import SECONDS_MAX, Arrivals, Stage, Violation, numbers, payload

# Publishers, each with its own subscribers.
PUBLISHERS = 2
# All messages of a batch must arrive before the next batch.
BATCH = 256
PAUSE_SECONDS = 0.01
# Members of the queue group.
MEMBERS = 2
SLOW_SUBJECT = "soak.slow"
SLOW_BYTES = 64 * 1024
# Far more messages than the server queues and the kernel buffers.
SLOW_MESSAGES = 400
SLOW_PAUSE_SECONDS = 2


async def core(stage: Stage, index: int, epochs):
    # Messages of earlier connections may be lost, but must not arrive on the current ones.
    epoch, plain, job = next(epochs), f"soak.core.{index}.all", f"soak.core.{index}.job"
    exact, wild, jobs = Arrivals(), Arrivals(), Arrivals()
    subscribers = [(plain, "", exact.put), (f"soak.*.{index}.all", "", wild.put)]

    async def received(member: int, message):
        await jobs.put((member, numbers(message.data)))

    subscribers += [(job, "workers", functools.partial(received, member)) for member in range(MEMBERS)]
    async with contextlib.AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(stage.connect("core"))
        for filter_, queue, callback in subscribers:
            client = await stack.enter_async_context(stage.connect("subscriber"))
            await client.subscribe(filter_, queue, cb=callback)
            await client.flush(SECONDS_MAX)
        for first in itertools.count(step=BATCH):
            if stage.is_ending.is_set():
                break
            batch = range(first, first + BATCH)
            for number in batch:
                await publisher.publish(plain, payload(epoch, number))
                await publisher.publish(job, payload(epoch, number))
            for arrivals, number in itertools.product((exact, wild), batch):
                message = await arrivals.next(lambda: f"message {number}")
                if (found := numbers(message.data)) != (epoch, number):
                    raise Violation(f"{message.subject}: {found} arrived instead of {(epoch, number)}")
            await check_jobs(jobs, epoch, set(batch))
            stage.add("core", 3 * BATCH)
            await asyncio.sleep(PAUSE_SECONDS)


async def check_jobs(jobs: Arrivals, epoch: int, missing: set[int]):
    """Checks that each message of a batch arrives once, and that each member receives its messages in order."""
    last = [-1] * MEMBERS
    while missing:
        member, found = await jobs.next(lambda: f"one of the jobs {sorted(missing)}")
        if not found or found[0] != epoch or found[1] not in missing:
            raise Violation(f"job {found} was not due")
        missing.remove(found[1])
        if found[1] < last[member]:
            raise Violation(f"job {found[1]} is out of order")
        last[member] = found[1]


async def slow(stage: Stage):
    async with stage.connect("to the slow") as publisher:
        while not stage.is_ending.is_set():
            async with opened(stage, f"SUB {SLOW_SUBJECT} 1\r\n") as (reader, _):
                for _ in range(SLOW_MESSAGES):
                    await publisher.publish(SLOW_SUBJECT, b"x" * SLOW_BYTES)
                await publisher.flush(SECONDS_MAX)
                received = 0
                # The kernel may report a reset instead of a close while data is in transit.
                with contextlib.suppress(ConnectionError):
                    while data := await asyncio.wait_for(reader.read(SLOW_BYTES), SECONDS_MAX):
                        received += len(data)
                        if received >= SLOW_MESSAGES * SLOW_BYTES:
                            raise AssertionError("a subscriber that did not read received everything")
            stage.add("dropped")
            await asyncio.sleep(SLOW_PAUSE_SECONDS)


def run(stage: Stage):
    epochs = [itertools.count(1) for _ in range(PUBLISHERS)]
    loads = [stage.keep("core", functools.partial(core, stage, *each)) for each in enumerate(epochs)]
    asyncio.run(stage.keep_all([*loads, stage.keep("slow", functools.partial(slow, stage))]))
