"""All kinds of load at once on one server, which is stopped and killed in the meantime.

One run, and a case for each condition that must hold at its end. `-- --minutes 240` sets its length.
"""

import pytest

from harness.cases import named
from harness.checks import check, equal
from soak import stage as stages
from soak.director import ROUNDS, SOCKETS_SLACK, Plan, Run, growth
from soak.stage import Stage, Violation

# Growth per round that is ignored. Segments of the stream fill up in about a round, and their indexes differ by as much.
GROWTH_BYTES_MAX = 1 << 20
# For example, a stream opens a segment, or a timer exists for a while.
FILES_SLACK = 4
KIB = 1 << 10


def test_server_ends_only_on_request(run: Run, record_property, pytestconfig):
    record_property("restarts", f"killed {run.kills} times, stopped {run.stops} times")
    # Fewer connections than requested: a process may not have enough descriptors (`ulimit -Hn`).
    record_property("connections", f"{run.plan.connections:,} of {pytestconfig.option.connections:,}")
    check(not run.ended, f"the server ended {run.ended}")
    check(run.kills > 0, "the server was never killed")
    equal(run.faults["processes"], [], "processes of loads that did not end with 0")


# The name of a load, its counter, and other results.
LOADS = {
    "core messages: none lost, none out of order": ("core", "core", ()),
    "stream: no acknowledged record lost, each once and in order": (
        "stream", "acknowledged", ("read", "worked", "redelivered"),
    ),
    "MQTT, QoS 1: no acknowledged message lost, none out of order": ("mqtt", "mqtt", ("mqtt_repeated",)),
    "live connections: all answer, also after each restart": ("live", "roll_calls", ()),
    "connections that come and go": ("churn", "came_and_went", ()),
    "slow subscribers are disconnected": ("slow", "dropped", ()),
}  # fmt: skip


@pytest.mark.parametrize("load, counter, others", named(LOADS))
def test_load(run: Run, record_property, load: str, counter: str, others):
    for name in (counter, *others):
        record_property(name, f"{run.stage.get(name):,}")
    equal(run.faults[load], [], "faults")
    check(run.stage.get(counter) > 0, f"{counter}: none")


@pytest.mark.parametrize("reader", ["read", "worked"])
def test_every_acknowledged_record_arrives(run: Run, reader: str):
    count, acknowledged = run.stage.get(reader), run.stage.get("acknowledged")
    check(count >= acknowledged, f"{count} of {acknowledged} records")


@pytest.mark.parametrize("measure", ["live bytes", "resident bytes"])
def test_memory_is_flat(run: Run, record_property, measure: str):
    lowest, more = steady(run, measure)
    record_property(measure, f"{lowest / KIB:,.0f} KiB, {more / KIB:+,.0f} KiB in each of {ROUNDS} rounds without restarts")
    check(lowest > 0, "the server does not use the allocator of the C library")
    most = GROWTH_BYTES_MAX
    check(more <= most, f"{measure} grow by {more / KIB:,.0f} KiB per round, more than {most / KIB:,.0f} KiB")


def test_open_files_do_not_grow(run: Run, record_property):
    lowest, more = steady(run, "files")
    record_property("open files", f"{lowest}, {more:+} in each of {ROUNDS} rounds without restarts")
    check(more <= FILES_SLACK, f"{more} more files are open after each round")


def steady(run: Run, column: str) -> tuple[float, float]:
    found = run.steady(column)
    check(found, "the run ended before this check")
    return found


def test_no_socket_stays_open(run: Run, record_property):
    record_property("sockets", f"{run.sockets_before} before the first client, {run.sockets_after} after the last")
    check(run.sockets_after is not None, "the run ended before this check")
    check(run.sockets_after <= run.sockets_before + SOCKETS_SLACK, "sockets stay open after all clients have left")


# --- The suite itself ------------------------------------------------------------------------------


@pytest.mark.parametrize("minutes", [1.6, 3, 10, 60, 1440])
def test_plan_has_restarts_and_steady_part(minutes: float):
    plan = Plan.of(minutes * 60, 10, 1 << 20)
    check(plan.restart_interval * 3 <= plan.trouble_until, f"too few restarts: {plan}")
    check(plan.length - plan.steady_from >= plan.length / 4, f"the steady part is short: {plan}")


@pytest.mark.parametrize("files_max, connections", [(1 << 20, 10_000), (4096, 4096 - 512), (100, 0)])
def test_limit_on_files_reduces_connections(files_max: int, connections: int):
    equal(Plan.of(180, 10_000, files_max).connections, connections, "connections")


STEADY = [50, 54, 51, 50, 58, 50] * 10


@pytest.mark.parametrize(
    "values, more",
    [
        (STEADY, 0),
        ([value + 100 * (number > 25) for number, value in enumerate(STEADY)], 0),
        ([value + number for number, value in enumerate(STEADY)], 10),
        ([value - number for number, value in enumerate(STEADY)], -10),
    ],
    ids=["backlogs", "one step", "a leak", "shrinking"],
)
def test_growth_finds_leaks_only(values: list[int], more: int):
    equal(growth(list(enumerate(values)))[1], pytest.approx(more, abs=1), "growth")


def test_growth_needs_all_rounds():
    equal([growth(points) for points in ([], [(1, 1)], [(1, 1), (2, 1)])], [None] * 3, "growth")


def test_payloads_round_trip():
    data = stages.payload(3, 1 << 40)
    equal(stages.numbers(data), (3, 1 << 40), "numbers")
    equal([stages.numbers(wrong) for wrong in (data[:-1] + b"!", b"short")], [None, None], "numbers of others")


def test_restart_excuses_errors_but_not_losses():
    stage = Stage(1, 1)
    check(not stage.record("load", 0, ConnectionError("closed")), "an error without a restart is excused")
    stage.begin_or_end_restart()
    check(stage.record("load", 0, ConnectionError("closed")), "an error during a restart is recorded")
    check(not stage.record("load", 0, Violation("7 is lost")), "a loss is excused")
    faults = [stage.faults.get(timeout=stages.SECONDS_MAX) for _ in range(2)]
    equal([text for _, text in faults], ["ConnectionError: closed", "Violation: 7 is lost"], "faults")
