"""Runs coroutine functions as tests."""

import inspect

import pytest

from harness.cases import call


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    call(pyfuncitem)
    return True
