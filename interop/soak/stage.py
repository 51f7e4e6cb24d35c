"""The state that the loads share, in all their processes.

If the server was restarted in the meantime, an error of a load is excused, and the load resumes at its position. A
message that is lost, repeated, or out of order is never excused.
"""

import asyncio
import collections
import contextlib
import multiprocessing
import struct
import time

import nats

# Time limit of a wait, unless the server is restarted in the meantime.
SECONDS_MAX = 30
# Time limit for the loads to end: some waits in a row.
ENDING_SECONDS_MAX = 4 * SECONDS_MAX
# Interval between two checks of a condition, and of the state of the run.
POLL_SECONDS = 0.02
# Delay before a load that has failed starts again, if the server was not restarted.
RETRY_SECONDS = 1
PAYLOAD_BYTES = 512

# A process for each kind of load shares the values of its parent.
fork = multiprocessing.get_context("fork")


class Violation(Exception):
    """A lost, repeated, or reordered message."""


def payload(epoch: int, number: int) -> bytes:
    """Returns a payload with the number of its connection, and the number of the message on that connection."""
    return struct.pack(">QQ", epoch, number).ljust(PAYLOAD_BYTES, b".")


def numbers(data: bytes) -> tuple[int, int] | None:
    """Returns the two numbers of a payload, or None if `payload` has not created it."""
    if len(data) != PAYLOAD_BYTES:
        return None
    found = struct.unpack_from(">QQ", data)
    return found if data == payload(*found) else None


async def until(condition, why):
    """Waits until a condition is true. `why` returns the text of the failure."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(why())
        await asyncio.sleep(POLL_SECONDS)


async def within(awaitable, what: str):
    """Waits for the result of `awaitable`. `what` is its name in the failure."""
    try:
        return await asyncio.wait_for(awaitable, SECONDS_MAX)
    except TimeoutError as error:
        raise TimeoutError(f"{what}: more than {SECONDS_MAX} s, {error}") from None


class Arrivals:
    """Items in their order of arrival."""

    def __init__(self):
        self.queue = asyncio.Queue()

    async def put(self, item):
        self.queue.put_nowait(item)

    async def next(self, what, seconds: float = SECONDS_MAX):
        """Returns the next item. `what` returns the name of the item in the failure."""
        if self.queue.empty():
            try:
                return await asyncio.wait_for(self.queue.get(), seconds)
            except TimeoutError:
                raise TimeoutError(f"{what()} does not arrive") from None
        return self.queue.get_nowait()


class Stage:
    def __init__(self, nats_port: int, mqtt_port: int):
        self.nats_port, self.mqtt_port = nats_port, mqtt_port
        # The number of restarts that have begun, plus those that have ended. It is odd while the server is down.
        self.transitions = fork.RawValue("Q")
        self.is_ending = fork.Event()
        self.faults = fork.Queue()
        # Each counter is changed by one process.
        names = "core acknowledged read worked redelivered mqtt mqtt_repeated roll_calls came_and_went dropped present"
        self.counts = {name: fork.RawValue("Q") for name in names.split()}
        # What loads play, and the value of `transitions` at its start.
        self.playing: dict[asyncio.Task, int] = {}
        # Errors that clients of this process have reported.
        self.heard = collections.deque(maxlen=3)

    def add(self, name: str, more: int = 1):
        self.counts[name].value += more

    def get(self, name: str) -> int:
        return self.counts[name].value

    def begin_or_end_restart(self):
        self.transitions.value += 1

    def record(self, load: str, transitions: int, error: BaseException) -> bool:
        """Records the error of a load that has started after `transitions`. Returns whether it is excused instead."""
        is_excused = self.transitions.value != transitions and not isinstance(error, Violation)
        if not is_excused:
            heard = f" (clients reported: {'; '.join(self.heard)})" if self.heard else ""
            self.faults.put((load, f"{type(error).__name__}: {error}{heard}"))
        return is_excused

    @contextlib.asynccontextmanager
    async def connect(self, name: str):
        """Connects an official client, which does not reconnect by itself."""

        async def hear(error):
            self.heard.append(f"{name}: {error}")

        client = await nats.connect(
            f"nats://127.0.0.1:{self.nats_port}", name=f"soak {name}", allow_reconnect=False,
            connect_timeout=SECONDS_MAX, error_cb=hear,
        )  # fmt: skip
        try:
            yield client
        finally:
            # It may wait for a server that was killed.
            await within(client.close(), "closing")

    async def keep(self, name: str, play):
        """Runs a load until the end of the run, and starts it again after errors when the server is up."""
        while not self.is_ending.is_set():
            transitions = self.transitions.value
            if transitions % 2 == 1:
                await asyncio.sleep(POLL_SECONDS)
                continue
            task = asyncio.create_task(play())
            self.playing[task] = transitions
            await asyncio.wait([task])
            del self.playing[task]
            error = None if task.cancelled() else task.exception()
            if error and not self.record(name, transitions, error):
                await asyncio.sleep(RETRY_SECONDS)

    async def keep_all(self, loads, background=()):
        """Runs loads, which are calls of `keep`, and cancels those in the background at the end.

        A restart cancels what they have begun to play before it: a client may not notice it. What has begun after it is
        not cancelled, because a client that is cancelled while it connects may go on without a connection. A load that
        does not end is a fault.
        """
        deadline = None
        main, other = ({asyncio.create_task(load) for load in each} for each in (loads, background))
        seen = self.transitions.value
        while main:
            _, main = await asyncio.wait(main, timeout=POLL_SECONDS)
            if seen != self.transitions.value:
                seen = self.transitions.value
                for task, transitions in self.playing.items():
                    if transitions != seen:
                        task.cancel()
            if self.is_ending.is_set():
                deadline = deadline or time.monotonic() + ENDING_SECONDS_MAX
                if time.monotonic() > deadline:
                    stacks = "; ".join(str(task.get_stack()) for task in self.playing)
                    self.faults.put(("processes", f"a load does not end: {stacks}"))
                    break
        for task in [*other, *self.playing]:
            task.cancel()
        await asyncio.gather(*other, *self.playing, return_exceptions=True)
