"""What clients have requested and what was confirmed to them, with times of the clock that the journal uses, too.

For a cut at some time only the requests that were sent and the answers that were received by then count.
"""

import json
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any


class Broken(AssertionError):
    """A promise was not kept."""


def check(condition: Any, promise: str):
    if not condition:
        raise Broken(promise)


def now() -> int:
    """Returns nanoseconds of the clock that `forgetful.c` reads."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@dataclass
class Op:
    """One request."""

    number: int
    what: str
    about: dict[str, Any]
    # Both taken before the request was sent; `unix` is the clock by which messages expire.
    at: int
    unix: float
    # The time and the content of the answer. While they are None the request is in flight: it took effect or not.
    done: int | None = None
    answer: dict[str, Any] | None = None

    def finish(self, answer: dict[str, Any] | None = None):
        self.done = now()
        self.answer = answer or {}

    @property
    def is_granted(self) -> bool:
        return self.answer is not None and "error" not in self.answer

    @property
    def is_refused(self) -> bool:
        return self.answer is not None and "error" in self.answer

    def __getattr__(self, name: str) -> Any:
        # Called only for names that are no field.
        try:
            return self.__dict__["about"][name]
        except KeyError:
            raise AttributeError(name) from None


class Ledger:
    """The requests of one workload, in the order in which they were sent."""

    def __init__(self, ops: Iterable[Op] = ()):
        self.ops = list(ops)
        self.lock = threading.Lock()

    def begin(self, what: str, **about: Any) -> Op:
        # Numbers have the order of times. So what was known at any time is a prefix of the list.
        with self.lock:
            op = Op(len(self.ops), what, about, now(), time.time())
            self.ops.append(op)
        return op

    def until(self, nanos: int) -> "Ledger":
        """Returns what was known at a time."""
        known = [op for op in self.ops if op.at <= nanos]
        is_early = [op.done is not None and op.done <= nanos for op in known]
        return Ledger(
            replace(op) if early else replace(op, done=None, answer=None)
            for op, early in zip(known, is_early)
        )

    def to_json(self) -> list[dict]:
        return [asdict(op) for op in self.ops]

    @classmethod
    def from_json(cls, ops: list[dict]) -> "Ledger":
        return cls(Op(**op) for op in ops)


def save(ledgers: dict[str, Ledger], path: str):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({name: ledger.to_json() for name, ledger in ledgers.items()}, file)


def load(path: str) -> dict[str, Ledger]:
    with open(path, encoding="utf-8") as file:
        return {name: Ledger.from_json(ops) for name, ops in json.load(file).items()}
