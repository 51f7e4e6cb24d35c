"""The kinds of servers, and three servers of each kind for the cases of a module."""

import pytest

from harness.cases import call
from harness.server import is_reference
from leaf.stage import Stage
from replicated.servers import KINDS, REFERENCE, Cluster

LOG_CHARACTERS = 3000
# A reference shows that a case can be passed. nats-server alone may repeat a case: requests that are under way while
# its groups change their leaders remain unanswered.
REFERENCE_ATTEMPTS_MAX = 3
SOAK_SECONDS = 20
# Time that a soak may take beyond its length, before it counts as hanging.
MORE_SECONDS_MAX = 600


def pytest_generate_tests(metafunc):
    """Runs each case with nats-servers, and with servers under test if they are different ones."""
    if "servers" in metafunc.fixturenames:
        kinds = [REFERENCE] if is_reference() else KINDS
        metafunc.parametrize("servers", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def servers(request):
    with Stage() as stage:
        yield Cluster(stage, request.param)


@pytest.fixture
def cluster(servers):
    yield servers
    # pytest shows this only after a failure.
    print(servers.logs(LOG_CHARACTERS))
    ended = servers.revive()
    # Further cases do not fail because of one that has ended a server.
    if ended:
        servers.until_whole()
    servers.clear()
    assert not ended, f"servers that have ended: {ended}"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    cluster = pyfuncitem.funcargs.get("cluster")
    if cluster is None or not cluster.is_reference:
        return None
    for left in reversed(range(REFERENCE_ATTEMPTS_MAX)):
        try:
            call(pyfuncitem)
            break
        except Exception as error:
            if left == 0:
                raise
            pyfuncitem.user_properties.append(("repeated after", str(error)[:200]))
            cluster.revive()
            cluster.until_whole()
            cluster.clear()
    return True




def pytest_addoption(parser):
    group = parser.getgroup("replicated")
    group.addoption("--seconds", type=float, default=SOAK_SECONDS, help="length of the soak for each kind of server")
    group.addoption("--seed", type=int, default=None, help="seed of the soak; random by default")


def pytest_collection_modifyitems(config, items):
    limit = pytest.mark.timeout(config.option.seconds + MORE_SECONDS_MAX)
    for item in items:
        if item.module.__name__.endswith("soak"):
            item.add_marker(limit)


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in getattr(report, "user_properties", []):
            terminalreporter.write_line(f"{report.nodeid.rsplit('::', 1)[1]}: {name}: {value}")
