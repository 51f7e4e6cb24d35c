"""Permanent connections, which must answer every *roll call*, a message to all of them; and connections that come and
go, of which half unsubscribe and shut down, and the others only close the socket."""

import asyncio
import contextlib
import functools
import itertools

from soak.stage import SECONDS_MAX, Stage, Violation, until

SUBJECT = "soak.roll"
CONNECT = 'CONNECT {"verbose":false,"pedantic":false,"name":"soak"}\r\n'
# Permanent connections that are being opened at the same time.
OPENING_MAX = 1_000
ROLL_SECONDS = 3
# Short-lived connections that are opened together.
BATCH = 8
# The pause limits them to 80 per second, because the system reserves the address of each for a minute.
PAUSE_SECONDS = 0.1
# Subscriptions of each of them.
SUBSCRIPTIONS = 10


@contextlib.asynccontextmanager
async def opened(stage: Stage, more: str):
    """Opens a connection, sends `more` after CONNECT, and waits for the PONG."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.nats_port)
    try:
        writer.write(f"{CONNECT}{more}PING\r\n".encode())
        async with asyncio.timeout(SECONDS_MAX):
            async for line in lines(reader, writer):
                if line == b"PONG":
                    break
        yield reader, writer
    finally:
        writer.close()


async def lines(reader, writer):
    """Yields the server's lines, and answers pings."""
    while line := await reader.readline():
        line = line.rstrip()
        if line == b"PING":
            writer.write(b"PONG\r\n")
        if line.startswith(b"-ERR"):
            raise AssertionError(f"the server sent {line.decode()}")
        yield line
    raise ConnectionError("the server closed a connection")


class Crowd:
    def __init__(self, stage: Stage, count: int):
        self.stage, self.count = stage, count
        self.opening = asyncio.Semaphore(OPENING_MAX)
        self.call = self.answers = 0

    async def member(self):
        async with contextlib.AsyncExitStack() as stack:
            async with self.opening:
                reader, writer = await stack.enter_async_context(opened(self.stage, f"SUB {SUBJECT} 1\r\n"))
            self.stage.add("present")
            stack.callback(self.stage.add, "present", -1)
            async for line in lines(reader, writer):
                # A payload is on a line of its own. It is the number of the roll call.
                if line == b"%d" % self.call:
                    self.answers += 1

    async def roll_call(self):
        async with self.stage.connect("caller") as client:
            while not self.stage.is_ending.is_set():
                present = functools.partial(self.stage.get, "present")
                await until(lambda: present() == self.count, lambda: f"{present()} of {self.count} connections opened")
                self.call, self.answers = self.call + 1, 0
                await client.publish(SUBJECT, b"%d" % self.call)
                why = lambda: f"{self.answers} of {self.count} connections have answered"  # noqa: E731
                await until(lambda: self.answers >= self.count, why)
                if self.answers > self.count:
                    raise Violation(why())
                self.stage.add("roll_calls")
                await asyncio.sleep(ROLL_SECONDS)


async def churn(stage: Stage, ids):
    while not stage.is_ending.is_set():
        for number in itertools.islice(ids, BATCH):
            filters = (f"SUB soak.churn.{number}.{sid}.* {sid}\r\n" for sid in range(1, SUBSCRIPTIONS + 1))
            async with opened(stage, "".join(filters)) as (_, writer):
                writer.write(f"PUB soak.churn.{number}.1.a 2\r\nhi\r\n".encode())
                if number % 2 == 0:
                    writer.write(b"UNSUB 1\r\n")
                    writer.write_eof()
        stage.add("came_and_went", BATCH)
        await asyncio.sleep(PAUSE_SECONDS)


async def keep(stage: Stage, count: int):
    crowd = Crowd(stage, count)
    members = (stage.keep("live", crowd.member) for _ in range(count))
    goers = stage.keep("churn", functools.partial(churn, stage, itertools.count(1)))
    await stage.keep_all([stage.keep("live", crowd.roll_call), goers], background=members)


def run(stage: Stage, count: int):
    asyncio.run(keep(stage, count))
