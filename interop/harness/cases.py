"""Tables of cases, and how a case is run."""

import asyncio
import inspect

import pytest

# Protects against hanging; not a measurement.
CASE_SECONDS_MAX = 120


def named(cases) -> list:
    """Returns parameters with names as ids. `cases` is a map from names to one value, or to a tuple of values, or it is
    a sequence of tuples that begin with the name."""
    if isinstance(cases, dict):
        cases = [(name, *(value if isinstance(value, tuple) else (value,))) for name, value in cases.items()]
    return [pytest.param(*values, id=name) for name, *values in cases]


def call(item: pytest.Function):
    """Runs the function of a test, which may be a coroutine function."""
    arguments = {name: item.funcargs[name] for name in inspect.signature(item.obj).parameters}
    result = item.obj(**arguments)
    if inspect.iscoroutine(result):
        asyncio.run(asyncio.wait_for(result, CASE_SECONDS_MAX))
