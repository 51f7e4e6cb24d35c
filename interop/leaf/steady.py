"""Traffic over one leaf connection that must not be affected by other events."""

import threading
import time

from harness.checks import check, equal
from harness.client import settle

from .stage import Node, Stage

BATCH = 50
ROUNDS_MIN = 10


class Steady:
    """A publisher at one end and a subscriber at the other that exchange messages until they are stopped."""

    def __init__(self, stage: Stage, publisher: Node, subscriber: Node):
        self.publisher = publisher.client()
        self.subscriber = subscriber.client()
        self.number = self.subscriber.subscribe("steady.>")
        settle(self.subscriber, self.publisher)
        self.rounds = 0
        self.failure: Exception | None = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        stage.callback(self.stop)

    def run(self):
        try:
            while not self.stopping.is_set():
                first = self.rounds * BATCH
                wanted = [b"%d" % n for n in range(first, first + BATCH)]
                self.publisher.publish_all("steady.now", wanted)
                equal([each.payload for each in self.subscriber.take(self.number, BATCH)], wanted, "the next messages")
                self.rounds += 1
        except Exception as error:
            self.failure = error

    def more(self, rounds: int = ROUNDS_MIN):
        """Returns after this many more rounds."""
        goal = self.rounds + rounds
        while self.rounds < goal and self.failure is None:
            time.sleep(0.005)
        self.check()

    def check(self):
        check(self.failure is None, f"the link beside it suffered: {type(self.failure).__name__}: {self.failure}")

    def stop(self):
        self.stopping.set()
        self.thread.join()
