"""Plays every case with nats-server and the server under test, and prints where their answers differ."""

import difflib
import json
import os
import tempfile

from harness.report import Report, is_reference, reference_server, server_under_test
from harness.server import Server, port_free, wait_until_listening
from websocket.cases import CASES
from websocket.session import Case, play

ATTEMPTS = 5
HERE = os.path.dirname(os.path.abspath(__file__))
# For each kind of server: settings inside the `websocket` block next to its address, and settings outside of it.
SERVERS = {
    "plain": ("", ""),
    "deflate": ("compression: true", ""),
    "same": ("same_origin: true", ""),
    "allowed": ('allowed_origins: ["http://a.example", "https://b.example:8443"]', ""),
    "leaf": ("", "leafnodes { host: 127.0.0.1, port: -1 }"),
    "mqtt": ("", "mqtt { host: 127.0.0.1, port: -1 }\nserver_name: one\njetstream { store_dir: STORE }"),
    "small": ("compression: true", "max_payload: 100"),
    "cookies": ("user_cookie: u, pass_cookie: p", "authorization { user: alice, password: secret }"),
    "headers": ('headers { X-One: "1", X-Two: "a b" }', ""),
    "advertise": ("advertise: 'w.example:443'", "client_advertise: 'c.example:4222'"),
}


class Listener:
    """A server with a WebSocket listener."""

    def __init__(self, binary: str, kind: str, folder: str):
        inside, beside = SERVERS[kind]
        self.port = port_free()
        os.makedirs(folder)
        path = os.path.join(folder, "server.conf")
        with open(path, "w") as file:
            file.write(f"websocket {{ host: 127.0.0.1, port: {self.port}, no_tls: true\n{inside} }}\n")
            file.write(beside.replace("STORE", os.path.join(folder, "store")))
        self.server = Server(binary, "-c", path)

    def start(self):
        self.server.start()
        wait_until_listening(self.port, self.server.process, self.server.output)


def main():
    with open(os.path.join(HERE, "differences.json")) as file:
        differences = {} if is_reference() else json.load(file)
    names = [case.name for case in CASES]
    repeated = {name for name in names if names.count(name) > 1}
    unknown = set(differences.get("cases", {})) - set(names)
    assert not repeated and not unknown, f"repeated: {repeated}, unknown: {unknown}"
    report = Report("websocket")
    binaries = {"wanted": reference_server(), "found": server_under_test()}
    listeners: dict[tuple[str, str], Listener] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for case in CASES:
                if not report.wants(case.name):
                    continue
                for role, binary in binaries.items():
                    key = (case.server, role)
                    if key not in listeners:
                        listeners[key] = Listener(binary, case.server, os.path.join(folder, "-".join(key)))
                        listeners[key].start()
                compare(report, case, listeners[case.server, "wanted"], listeners[case.server, "found"], differences)
        finally:
            for listener in listeners.values():
                listener.server.kill()
    report.end()


def compare(report: Report, case: Case, reference: Listener, under_test: Listener, differences):
    try:
        found = play(case, under_test.port)
        # nats-server may close before it has written everything. The order of the two is random.
        for _ in range(ATTEMPTS):
            wanted = play(case, reference.port)
            if wanted == found:
                break
    except (OSError, ValueError) as error:
        report.fail(case.name, f"{type(error).__name__}: {error}")
        return
    if under_test.server.process.poll() is not None:
        report.fail(case.name, "the server died of it:\n" + under_test.server.output()[-2000:])
        under_test.start()
        return
    if case.info:
        left_out = differences.get("info_keys", [])
        wanted, found = ([line for line in lines if key_of(line) not in left_out] for lines in (wanted, found))
    deliberate = differences.get("cases", {}).get(case.name)
    if deliberate and wanted != found and found == deliberate["found"]:
        report.ok(f"{case.name} (differs on purpose: {deliberate['why']})")
    elif deliberate:
        was = "differs no more" if wanted == found else "differs otherwise than recorded"
        report.fail(case.name, f"{was}: see differences.json\n" + legible(wanted, found))
    elif is_cut_short(wanted, found):
        report.ok(f"{case.name} (differs on purpose: it says why before it closes)")
    elif wanted != found:
        report.fail(case.name, legible(wanted, found))
    else:
        report.ok(case.name)


def is_cut_short(wanted: list[str], found: list[str]) -> bool:
    """Returns whether the reference closed before it sent everything that the server under test sends."""
    ends_alike = wanted[-1:] == found[-1:] == ["closed"]
    return ends_alike and wanted[:-1] == found[: len(wanted) - 1]


def key_of(line: str) -> str:
    return line.strip().split(":")[0]


def legible(wanted: list[str], found: list[str]) -> str:
    """Returns both transcripts merged: `-` marks lines of nats-server alone, `+` lines of the server under test
    alone."""
    return "\n".join(line for line in difflib.ndiff(wanted, found) if not line.startswith("?"))


main()
