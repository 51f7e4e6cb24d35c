"""Runs every case: first with the references that it applies to, then with the server under test.

A case lists servers that behave differently (`differs`), so a case that no server passes is visible. Words on the
command line select cases whose title contains them.
"""

import asyncio
import inspect
import sys

from harness.report import Report, check
from mqtt.brokers import FANLINE, Broker, kinds
from mqtt.case import CASES, Case
from mqtt.cases import load
from mqtt.conformance import problems

# Protects against hanging; not a measurement.
CASE_SECONDS_MAX = 120

# A reference shows that a case can be passed. Several attempts are allowed, because its behavior may depend on
# timing: nats-server finds a retained message some time after its PUBACK.
REFERENCE_ATTEMPTS_MAX = 3


def main():
    load()
    titles = [case.title() for case in CASES]
    repeated = {title for title in titles if titles.count(title) > 1}
    assert not repeated, f"repeated: {repeated}"

    report = Report("mqtt")
    report.run("docs/reference/mqtt-conformance.md has every statement, and tests that there are", coverage, titles)
    under_test, references = kinds()
    shared: dict[str, Broker] = {}
    try:
        for kind in (*references, under_test):
            shared[kind.name] = Broker(kind)
            shared[kind.name].start()
        for case in CASES:
            for kind in (*references, under_test):
                if case.is_for(kind):
                    play(report, case, shared[kind.name], under_test.name)
                elif kind is under_test and FANLINE in case.differs and report.wants(case.title()):
                    print(f"      left out: {case.title()}: {case.differs[FANLINE]}", flush=True)
    finally:
        for broker in shared.values():
            broker.__exit__()
    report.end()


def coverage(titles: list[str]):
    found = problems(titles)
    check(not found, "; ".join(found))


def play(report: Report, case: Case, broker: Broker, under_test: str):
    own = broker.kind.name == under_test
    title = case.title() if own else f"{case.title()} [{broker.kind.name}]"
    if not report.wants(title):
        return
    failed = report.failed
    report.run(title, run, case, broker, attempts=1 if own else REFERENCE_ATTEMPTS_MAX)
    if broker.server is None or not broker.is_alive():
        # Restarts the server, so that one crash is only one failure.
        report.fail(title, "the server died of it:\n" + (broker.server.output()[-2000:] if broker.server else ""))
        broker.kill()
        broker.start()
    elif report.failed > failed and own and broker.kind.name == FANLINE:
        print(indented(broker.server.output()[-600:]), file=sys.stdout, flush=True)


def run(case: Case, broker: Broker):
    if case.kills:
        with Broker(broker.kind) as own:
            call(case, own)
    else:
        call(case, broker)


def call(case: Case, broker: Broker):
    result = case.run(broker, *([case.version] if case.version else []))
    if inspect.iscoroutine(result):
        asyncio.run(asyncio.wait_for(result, CASE_SECONDS_MAX))


def indented(text: str) -> str:
    return "\n".join(f"      | {line}" for line in text.splitlines())


main()
