"""Checks and waits of cases."""

import time

# Protects against hanging; not a measurement.
WAIT_SECONDS_MAX = 30
# Interval between two checks of a condition that becomes true later.
AGAIN_SECONDS = 0.02


def check(condition, why: str):
    __tracebackhide__ = True
    if not condition:
        raise AssertionError(why)


def equal(found, wanted, what: str):
    __tracebackhide__ = True
    check(found == wanted, f"{what}: found {found!r}, wanted {wanted!r}")


def until(condition, why, seconds: float = WAIT_SECONDS_MAX):
    """Waits until a condition is true, and returns its value. `why` is the text of the failure, or a function that
    returns it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(why() if callable(why) else why)
        time.sleep(AGAIN_SECONDS)
    return found
