"""Runs every case with nats-server and with the server under test, and prints the differences."""

import difflib
import json
import os
import tempfile

from harness.report import Report, is_reference, reference_server, server_under_test
from harness.server import Server, port_free
from jetstream import accounts, cases, corners, events, fields, mixtures, monitoring, publishes
from jetstream.session import play

# Results of concurrent requests depend on timing in both servers. For example, nats-server sometimes loses an event
# of a stream that is deleted at the same time as a consumer. If answers differ, the case is played again on nats-server
# alone. It passes only if nats-server then answers as the server under test did at its one play.
REFERENCE_PLAYS_MAX = 5
CASES = cases.CASES + fields.CASES + publishes.CASES + corners.CASES + mixtures.CASES + events.CASES + monitoring.CASES
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    with open(os.path.join(HERE, "differences.json")) as file:
        differences = {} if is_reference() else json.load(file)
    names = [case.name for case in CASES + accounts.CASES]
    repeated = {name for name in names if names.count(name) > 1}
    unknown = set(differences) - set(names)
    assert not repeated and not unknown, f"repeated: {repeated}, unknown: {unknown}"

    report = Report("jetstream")
    with tempfile.TemporaryDirectory() as folder:
        servers = [
            monitored(binary, os.path.join(folder, role))
            for role, binary in (("wanted", reference_server()), ("found", server_under_test()))
        ]
        try:
            for server in servers:
                server.start()
            for case in CASES:
                if report.wants(case.name):
                    compare(report, case, *servers, differences)
            for server in servers:
                configure(server, os.path.join(folder, f"accounts-{server.port}"))
            for case in accounts.CASES:
                if report.wants(case.name):
                    compare(report, case, *servers, differences, accounts.play)
        finally:
            for server in servers:
                server.kill()
    report.end()


def configure(server: Server, folder: str):
    """Restarts a server with several accounts."""
    os.makedirs(folder)
    path = os.path.join(folder, "server.conf")
    with open(path, "w") as file:
        file.write(accounts.configuration(os.path.join(folder, "store")))
    server.kill()
    server.flags = ("-c", path, "-m", str(server.monitor))
    server.start()


def monitored(binary: str, folder: str) -> Server:
    port = port_free()
    server = Server(binary, "-js", "-sd", folder, "-m", str(port))
    server.monitor = port
    return server


def compare(report: Report, case, reference: Server, under_test: Server, differences, play=play):
    try:
        found = play(case, under_test.port, under_test.monitor)
        plays = 1
        while (wanted := play(case, reference.port, reference.monitor)) != found:
            if plays == REFERENCE_PLAYS_MAX or case.name in differences:
                break
            plays += 1
    except (OSError, ValueError, AssertionError) as error:
        report.fail(case.name, f"{type(error).__name__}: {error}")
        revive(under_test)
        return
    if under_test.process.poll() is not None:
        report.fail(case.name, "the server died of it:\n" + under_test.output()[-2000:])
        revive(under_test)
        return
    deliberate = differences.get(case.name)
    if deliberate and wanted != found:
        report.ok(f"{case.name} (differs on purpose: {deliberate})")
    elif deliberate:
        report.fail(case.name, "differs no more: see differences.json")
    elif wanted != found:
        report.fail(case.name, "\n".join(differing(wanted, found)))
    else:
        report.ok(case.name if plays == 1 else f"{case.name} (play {plays} of nats-server)")


def differing(wanted, found):
    """Yields the lines that differ, each after the request that it belongs to."""
    asked = None
    for line in difflib.ndiff(wanted, found):
        if line.startswith("  ") and not line.startswith("    "):
            asked = line
        elif line.startswith(("- ", "+ ")):
            if asked:
                yield asked
            asked = None
            yield line


def revive(server: Server):
    """Restarts the server, so that one crash is only one failure."""
    server.kill()
    server.start()


main()
