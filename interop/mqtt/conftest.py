"""The servers of the cases. Cases that kill their server have one of their own; all others share one of each kind."""

import contextlib

import pytest

from harness.cases import call
from mqtt.brokers import Broker
from mqtt.case import UNDER_TEST

# A reference shows that a case can be passed. Several attempts are allowed, because its behavior may depend on
# timing: nats-server finds a retained message some time after its PUBACK.
REFERENCE_ATTEMPTS_MAX = 3
LOG_CHARACTERS = 2000


@pytest.fixture(scope="session")
def shared():
    """Returns a function that returns the shared server of a kind."""
    with contextlib.ExitStack() as stack:
        brokers: dict[str, Broker] = {}

        def of(kind) -> Broker:
            if kind.name not in brokers:
                brokers[kind.name] = stack.enter_context(Broker(kind))
            return brokers[kind.name]

        yield of


@pytest.fixture
def broker(request, shared):
    kind, kills = request.param
    if kills:
        with Broker(kind) as broker:
            yield broker
        return
    broker = shared(kind)
    yield broker
    # pytest shows this only after a failure.
    log = broker.server.output()[-LOG_CHARACTERS:] if broker.server else ""
    print(log)
    # One crash is only one failure.
    assert not revive(broker), "the server died of it:\n" + log


def revive(broker: Broker) -> bool:
    """Starts a server that has ended. Returns whether it had."""
    if broker.server is not None and broker.is_alive():
        return False
    broker.kill()
    broker.start()
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs a case: again with a reference that fails, never with the server under test."""
    broker = pyfuncitem.funcargs.get("broker")
    if broker is None or broker.kind is UNDER_TEST:
        return None
    for left in reversed(range(REFERENCE_ATTEMPTS_MAX)):
        try:
            call(pyfuncitem)
            break
        except Exception:
            if left == 0:
                raise
            revive(broker)
    return True
