"""Starts, stops, and kills the server, runs the loads, and takes samples.

Restarts occur in the first part of the run. The second part has none, so that memory and descriptors of one process can
be observed over time.

The measure of memory is the number of bytes of the heap that are in use (`live_bytes.c`). Resident memory also contains
what the C library retains: after a start that has read a segment of a stream at once, glibc retains up to twice as much
at the top of every heap, and leaks fill this space first.
"""

import collections
import contextlib
import itertools
import mmap
import os
import queue
import signal
import statistics
import struct
import time
from dataclasses import dataclass, field

from harness.checks import AGAIN_SECONDS, until
from harness.server import Server, compiled, port_free, server_under_test
from soak import core, crowd, devices, streams
from soak.stage import ENDING_SECONDS_MAX, SECONDS_MAX, Stage, fork

# Share of the run in which restarts occur, and their number in a short run.
TROUBLE_SHARE = 0.4
RESTARTS_MIN = 3
RESTART_SECONDS_MAX = 600
# Time after the last restart until memory is observed. In this time connections return, and caches and buffers reach
# their final size.
SETTLING_SECONDS_MIN = 15
SETTLING_SHARE = 0.1
# The part after it consists of rounds of equal length.
ROUNDS = 6
SAMPLES_MAX = 600
SAMPLE_SECONDS_MIN = 0.25
# Descriptors that are reserved for other loads, files, and the programs themselves.
DESCRIPTORS_RESERVED = 512
# Time limit for the permanent connections to open, before the other loads begin.
OPENING_SECONDS_MAX = 60
# Time limit for the server to close its sockets after clients have disconnected.
LEAVING_SECONDS_MAX = 10
# Sockets that monitoring may keep open. A leak would be thousands.
SOCKETS_SLACK = 16
LIVE_SOURCE = os.path.join(os.path.dirname(__file__), "live_bytes.c")
LIVE = struct.Struct("q")
# Faults of a load that are stored.
FAULTS_MAX = 20
CONFIG = """
server_name: soak
# Subscribers that do not read reach it soon.
max_pending: 4MB
# By default, the record of closed connections grows for minutes after each start.
max_closed_clients: 100
jetstream {{ store_dir: "{folder}/store" }}
mqtt {{ listen: "127.0.0.1:{mqtt_port}" }}
"""


@dataclass
class Plan:
    """The schedule of a run, in seconds from its start."""

    length: float
    connections: int
    trouble_until: float
    restart_interval: float
    steady_from: float
    sample_interval: float

    @classmethod
    def of(cls, length: float, connections: int, files_max: int) -> "Plan":
        trouble = length * TROUBLE_SHARE
        return cls(
            length=length,
            connections=max(0, min(connections, files_max - DESCRIPTORS_RESERVED)),
            trouble_until=trouble,
            restart_interval=min(trouble / RESTARTS_MIN, RESTART_SECONDS_MAX),
            steady_from=trouble + max(length * SETTLING_SHARE, SETTLING_SECONDS_MIN),
            sample_interval=max(length / SAMPLES_MAX, SAMPLE_SECONDS_MIN),
        )


# Open descriptors are those other than sockets. Connections are the permanent ones.
COLUMNS = ("seconds", "connections", "live bytes", "files", "resident bytes")


@dataclass
class Run:
    """Everything that was observed."""

    stage: Stage
    plan: Plan
    # Samples as in COLUMNS.
    samples: list[tuple[float, int, int, int, int]] = field(default_factory=list)
    kills: int = 0
    stops: int = 0
    sockets_before: int = 0
    sockets_after: int | None = None
    # How the server ended unexpectedly, if it did.
    ended: str = ""
    # The first faults of each load.
    faults: dict[str, list[str]] = field(default_factory=lambda: collections.defaultdict(list))

    def steady(self, column: str) -> tuple[float, float] | None:
        """Returns minimum and growth of a column, from when all connections are open again on."""
        samples = [sample for sample in self.samples if sample[0] >= self.plan.steady_from]
        samples = list(itertools.dropwhile(lambda sample: sample[1] < self.plan.connections, samples))
        return growth([(sample[0], sample[COLUMNS.index(column)]) for sample in samples])


def growth(points: list[tuple[float, float]]) -> tuple[float, float] | None:
    """Returns the lowest value, and the growth per round. None if a round is empty.

    The value of a round is its minimum, because backlogs come and go. The growth is the median of the steps between
    rounds: a leak adds to each of them, and a table that doubles adds to one.
    """
    if not points:
        return None
    first, last = points[0][0], points[-1][0]
    rounds = collections.defaultdict(list)
    for time_, value in points:
        rounds[min(int((time_ - first) * ROUNDS / ((last - first) or 1)), ROUNDS - 1)].append(value)
    if len(rounds) < ROUNDS:
        return None
    lowest = [min(rounds[number]) for number in range(ROUNDS)]
    return min(lowest), statistics.median(after - before for before, after in itertools.pairwise(lowest))


def descriptors(pid: int) -> tuple[int, int]:
    """Returns the numbers of open sockets, and of other descriptors."""
    targets = []
    for name in os.listdir(folder := f"/proc/{pid}/fd"):
        # A descriptor may be closed between the listing and the read.
        with contextlib.suppress(FileNotFoundError):
            targets.append(os.readlink(f"{folder}/{name}"))
    sockets = sum(target.startswith("socket:") for target in targets)
    return sockets, len(targets) - sockets


def direct(plan: Plan, folder: str) -> Run:
    """Runs the whole soak test."""
    stage = Stage(port_free(), port_free())
    run = Run(stage, plan)
    config = os.path.join(folder, "soak.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(folder=folder, mqtt_port=stage.mqtt_port))
    live = os.path.join(folder, "live")
    with open(live, "wb") as file:
        file.write(bytes(LIVE.size))
    preloaded = {"LD_PRELOAD": compiled(LIVE_SOURCE, folder), "LIVE_BYTES": live}
    with (
        open(live, "rb") as file,
        mmap.mmap(file.fileno(), LIVE.size, prot=mmap.PROT_READ) as counter,
        Server(server_under_test(), "-c", config, port=stage.nats_port, environment=preloaded) as server,
    ):
        run.sockets_before = descriptors(server.pid)[0]
        loads = [start(crowd.run, stage, plan.connections)]
        try:
            why = f"{plan.connections} connections are not opened"
            until(lambda: stage.get("present") == plan.connections, why, OPENING_SECONDS_MAX)
            loads += [start(load.run, stage) for load in (core, streams, devices)]
            watch(run, server, counter)
            stage.is_ending.set()
            end(run, loads)
            if not run.ended:
                deadline = time.monotonic() + LEAVING_SECONDS_MAX
                while (left := descriptors(server.pid)[0]) > run.sockets_before and time.monotonic() < deadline:
                    time.sleep(AGAIN_SECONDS)
                run.sockets_after = left
                stop(server)
        finally:
            for load in loads:
                load.kill()
    return run


def start(target, *arguments):
    process = fork.Process(target=target, args=arguments, name=target.__module__, daemon=True)
    process.start()
    return process


def stop(server: Server):
    server.signal(signal.SIGTERM)
    server.wait()


def watch(run: Run, server: Server, counter: mmap.mmap):
    """Takes samples, and restarts the server at the planned times, until the run is over."""
    plan, stage, began = run.plan, run.stage, time.monotonic()
    restart_at = plan.restart_interval
    while (at := time.monotonic() - began) < plan.length:
        if server.process.poll() is not None:
            run.ended = f"after {at:.0f} s with {server.process.returncode}: {server.output()[-2000:]}"
            return
        if restart_at <= plan.trouble_until and at >= restart_at:
            restart_at += plan.restart_interval
            restart(run, server)
        # If the server has just ended, the next check reports it.
        with contextlib.suppress(OSError):
            files = descriptors(server.pid)[1]
            run.samples.append((at, stage.get("present"), *LIVE.unpack(counter), files, server.rss_bytes()))
        collect(run)
        time.sleep(plan.sample_interval)


def restart(run: Run, server: Server):
    """Restarts the server. Ends the old process by a kill and by a regular stop, alternately."""
    run.stage.begin_or_end_restart()
    if run.kills == run.stops:
        server.kill()
        run.kills += 1
    else:
        stop(server)
        run.stops += 1
    server.start()
    run.stage.begin_or_end_restart()


def collect(run: Run):
    with contextlib.suppress(queue.Empty):
        while True:
            load, text = run.stage.faults.get_nowait()
            if len(run.faults[load]) < FAULTS_MAX:
                run.faults[load].append(text)


def end(run: Run, loads: list):
    """Waits until all loads have ended, and closes their connections."""
    deadline = time.monotonic() + ENDING_SECONDS_MAX + SECONDS_MAX
    for load in loads:
        while load.is_alive() and time.monotonic() < deadline:
            # A process ends only when its faults were taken from the queue.
            load.join(timeout=0.1)
            collect(run)
        if load.exitcode != 0:
            run.faults["processes"].append(f"{load.name}: {load.exitcode}")
    collect(run)
