"""The options of a run, and its results."""

import csv
import os
import resource
import tempfile

import pytest

from soak.director import COLUMNS, Plan, direct

# Time that a run may take beyond its length, before it counts as hanging.
MORE_SECONDS_MAX = 600


def pytest_addoption(parser):
    group = parser.getgroup("soak")
    group.addoption("--minutes", type=float, default=1.6, help="length of the run")
    group.addoption(
        "--connections", type=int, default=2_000,
        help="permanent connections; fewer if the limit on open files does not allow them",
    )  # fmt: skip


def pytest_collection_modifyitems(config, items):
    limit = pytest.mark.timeout(config.option.minutes * 60 + MORE_SECONDS_MAX)
    for item in items:
        item.add_marker(limit)


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in getattr(report, "user_properties", []):
            terminalreporter.write_line(f"{name}: {value}")


@pytest.fixture(scope="session")
def run(pytestconfig):
    """Runs all loads, and returns what was observed."""
    files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    plan = Plan.of(pytestconfig.option.minutes * 60, pytestconfig.option.connections, files_max)
    with tempfile.TemporaryDirectory(prefix="soak-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        observed = direct(plan, folder)
    if report := pytestconfig.option.xmlpath:
        with open(f"{report.removesuffix('.xml')}.csv", "w", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *observed.samples])
    return observed
