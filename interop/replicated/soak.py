"""Faults by a seed, for a time: servers are killed, stopped, and paused, one or several at once, while clients use a
stream. The seed decides about the faults, and not about their effects."""

import random
import signal
import time

from harness.client import Client
from leaf.stage import Node
from replicated.load import Load
from replicated.servers import LAG_MAX, Cluster, answer

# Bounds of the time that a server does not run.
AWAY_SECONDS = (0.0, 3.0)
# Bounds of the time between two faults.
QUIET_SECONDS = (0.0, 1.5)


class Soak:
    def __init__(self, seed: int, seconds: float):
        self.random = random.Random(seed)
        self.seconds = seconds
        self.done: list[str] = []

    def __call__(self, load: Load):
        """Causes faults, for a thread of its own. In the end, all servers run."""
        load.further()
        end = time.monotonic() + self.seconds
        faults = [self.kill_one, self.kill_one, self.stop_one, self.pause_one, self.kill_two, self.kill_all, self.change_leader]
        while time.monotonic() < end:
            fault = self.random.choice(faults)
            fault(load)
            time.sleep(self.random.uniform(*QUIET_SECONDS))
            # Without this, a later fault can begin before the stream has recovered. That is wanted, but not always.
            if self.random.random() < 0.7:
                load.cluster.until_current(load.stream, LAG_MAX)
                load.further(20)
        load.cluster.until_whole()
        load.cluster.until_current(load.stream, LAG_MAX)
        load.further()

    def note(self, what: str, nodes: list[Node]):
        self.done.append(what + " " + " ".join(node.name for node in nodes))

    def pick(self, cluster: Cluster, count: int) -> list[Node]:
        return self.random.sample(cluster.nodes, count)

    def away(self):
        time.sleep(self.random.uniform(*AWAY_SECONDS))

    def end(self, load: Load, count: int, how: int):
        nodes = self.pick(load.cluster, count)
        self.note("kill" if how == signal.SIGKILL else "stop", nodes)
        for node in nodes:
            node.server.signal(how)
        for node in nodes:
            node.server.wait()
        self.away()
        for node in nodes:
            node.start()
            if self.random.random() < 0.3:
                self.away()

    def kill_one(self, load: Load):
        self.end(load, 1, signal.SIGKILL)

    def stop_one(self, load: Load):
        self.end(load, 1, signal.SIGTERM)

    def kill_two(self, load: Load):
        self.end(load, 2, signal.SIGKILL)

    def kill_all(self, load: Load):
        self.end(load, 3, signal.SIGKILL)

    def pause_one(self, load: Load):
        (node,) = nodes = self.pick(load.cluster, 1)
        self.note("pause", nodes)
        node.server.signal(signal.SIGSTOP)
        self.away()
        node.server.signal(signal.SIGCONT)

    def change_leader(self, load: Load):
        (node,) = nodes = self.pick(load.cluster, 1)
        self.note("step down, through", nodes)
        with Client(node.port) as client:
            answer(client, f"STREAM.LEADER.STEPDOWN.{load.stream}")
