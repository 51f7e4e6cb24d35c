"""Plays every case with nats-server and the server under test, and prints where their answers differ."""

import difflib
import json
import os

from harness.report import Report, is_reference, reference_server, server_under_test
from harness.server import Server
from wire.cases import CASES
from wire.session import play

SERVERS = {
    "open": (),
    "user": ("--user", "alice", "--pass", "secret"),
    "token": ("--auth", "s3cr3t"),
}
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    with open(os.path.join(HERE, "differences.json")) as file:
        differences = json.load(file)
    if is_reference():
        differences = {key: type(value)() for key, value in differences.items()}
    names = [case.name for case in CASES]
    repeated = {name for name in names if names.count(name) > 1}
    unknown = set(differences["cases"]) - set(names)
    assert not repeated and not unknown, f"repeated: {repeated}, unknown: {unknown}"

    report = Report("wire")
    servers = {}
    try:
        for kind, flags in SERVERS.items():
            for role, binary in (("wanted", reference_server()), ("found", server_under_test())):
                server = Server(binary, *flags)
                servers[kind, role] = server
                server.start()
        for case in CASES:
            if report.wants(case.name):
                compare(report, case, servers[case.server, "wanted"], servers[case.server, "found"], differences)
    finally:
        for server in servers.values():
            server.kill()
    report.end()


def compare(report: Report, case, reference: Server, under_test: Server, differences):
    try:
        wanted = play(case, reference.port)
        found = play(case, under_test.port)
    except (OSError, ValueError) as error:
        report.fail(case.name, f"{type(error).__name__}: {error}")
        revive(under_test)
        return
    if under_test.process.poll() is not None:
        report.fail(case.name, "the server died of it:\n" + under_test.output()[-2000:])
        revive(under_test)
        return
    if case.info:
        found = without_keys(found, differences["info_keys_of_our_own"])
        wanted = without_keys(wanted, differences["info_keys_left_out"])
    deliberate = differences["cases"].get(case.name)
    if deliberate and wanted != found and found == deliberate["found"]:
        report.ok(f"{case.name} (differs on purpose: {deliberate['why']})")
    elif deliberate:
        was = "differs no more" if wanted == found else "differs otherwise than recorded"
        report.fail(case.name, f"{was}: see differences.json\n" + legible(wanted, found))
    elif wanted != found:
        report.fail(case.name, legible(wanted, found))
    else:
        report.ok(case.name)


def revive(server: Server):
    """Restarts the server for the next case, so that one crash is only one failure."""
    server.kill()
    server.start()


def without_keys(transcript: list[str], keys: list[str]) -> list[str]:
    return [line for line in transcript if line.strip().split(":")[0] not in keys]


def legible(wanted: list[str], found: list[str]) -> str:
    """Returns both transcripts merged: `-` marks lines of nats-server alone, `+` lines of the server under test
    alone."""
    lines = difflib.ndiff(wanted, found)
    return "\n".join(line for line in lines if not line.startswith("?"))


main()
