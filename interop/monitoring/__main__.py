"""Requests all monitoring pages and all data of the system account from nats-server and from the server under
test. Compares the keys and the types of their values. `differences.json` lists allowed differences, with reasons."""

import asyncio
import json
import os
import signal
import tempfile
import urllib.error
import urllib.request

from harness.peer import CONNECT, Peer
from harness.report import Report, check, is_reference, reference_server, server_under_test
from harness.server import Server, port_free

from . import tracing

HERE = os.path.dirname(os.path.abspath(__file__))

PAGES = [
    "/varz",
    "/connz",
    "/connz?subs=1",
    "/connz?subs=detail",
    "/connz?auth=1",
    "/connz?state=closed",
    "/connz?state=all&sort=cid&limit=1&offset=1&acc=A&auth=1",
    "/connz?sort=foo",
    "/connz?sort=stop",
    "/connz?state=foo",
    "/connz?limit=x",
    "/connz?cid=999",
    "/connz?acc=NONE",
    "/connz?acc=A&auth=1",
    "/connz?user=a&auth=1",
    "/connz?mqtt_client=x",
    "/routez",
    "/routez?subs=1",
    "/gatewayz",
    "/gatewayz?accs=1",
    "/leafz",
    "/leafz?subs=1",
    "/subsz",
    "/subsz?subs=1",
    "/subsz?subs=1&acc=A",
    "/subsz?subs=1&test=a.b",
    "/subsz?test=a.*",
    "/subscriptionsz?subs=1&limit=1&offset=1",
    "/accountz",
    "/accountz?acc=A",
    "/accountz?acc=NONE",
    "/accstatz",
    "/accstatz?unused=1",
    "/jsz",
    "/jsz?accounts=1",
    "/jsz?acc=A&streams=1&consumers=1&config=1",
    "/healthz",
    "/healthz?js-enabled-only=true",
    "/healthz?js-server-only=true",
    "/healthz?account=NONE",
    "/healthz?account=NONE&details=1",
    "/raftz",
    "/ipqueuesz",
    "/nothing",
]

SERVER_REQUESTS = [
    ("IDZ", ""),
    ("STATSZ", ""),
    ("VARZ", ""),
    ("SUBSZ", ""),
    ("SUBSZ", '{"subscriptions":true,"account":"A"}'),
    ("CONNZ", ""),
    ("CONNZ", '{"sort":"xx"}'),
    ("CONNZ", '{"state":1,"limit":1}'),
    ("CONNZ", '{"auth":true,"subscriptions":true,"acc":"A"}'),
    ("ROUTEZ", ""),
    ("GATEWAYZ", ""),
    ("LEAFZ", ""),
    ("ACCOUNTZ", ""),
    ("ACCOUNTZ", '{"account":"A"}'),
    ("ACCOUNTZ", '{"account":"NONE"}'),
    ("JSZ", '{"accounts":true}'),
    ("HEALTHZ", ""),
    ("HEALTHZ", '{"account":"NONE"}'),
    ("PROFILEZ", ""),
    ("PROFILEZ", '{"name":"zork"}'),
    ("EXPVARZ", ""),
    ("RAFTZ", ""),
]
ONE_SERVER_REQUESTS = [("KICK", '{"cid":999}'), ("LDM", '{"cid":999}'), ("KICK", "{}"), ("RELOAD", "")]
ACCOUNT_REQUESTS = ["SUBSZ", "CONNZ", "LEAFZ", "JSZ", "INFO", "STATZ", "CONNS"]
OF_EVERY_ACCOUNT = [
    "$SYS.REQ.USER.INFO",
    "$SYS.REQ.ACCOUNT.PING.CONNZ",
    "$SYS.REQ.ACCOUNT.PING.STATZ",
    "$SYS.REQ.SERVER.PING.CONNZ",
]

CONFIGURATION = """
accounts {
  SYS { users [ { user: sys, password: s } ] }
  A { jetstream: enabled, users [ { user: a, password: a } ], mappings { "old.*": "new.$1" } }
}
system_account: SYS
server_tags: [ssd, "eu west"]
server_metadata { rack: "7" }
leafnodes { host: 127.0.0.1, port: -1 }
websocket { host: 127.0.0.1, port: -1, no_tls: true, allowed_origins: ["http://a.example"], compression: true }
"""

# Maps whose keys are names that may differ.
MAPS = {"http_req_stats", "feature_flags"}


def shape(value, path=""):
    """Returns each path in a value, with the type found there."""
    if isinstance(value, dict):
        found = {path or ".": "object"}
        for key, inner in value.items():
            if path.split(".")[-1] not in MAPS:
                found |= shape(inner, f"{path}.{key}")
        return found
    if isinstance(value, list):
        found = {path or ".": "array"}
        for inner in value:
            found |= shape(inner, f"{path}[]")
        return found
    name = {bool: "bool", int: "number", float: "number", str: "string", type(None): "null"}[type(value)]
    return {path or ".": name}


def get(port: int, path: str):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=15) as answer:
            status, body = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        status, body = error.code, error.read().decode()
    try:
        return status, shape(json.loads(body))
    except ValueError:
        return status, {"text": body.strip()}


class Client:
    def __init__(self, port: int, user: str, password: str):
        login = {"user": user, "pass": password} if user else {}
        connect = json.loads(CONNECT[len(b"CONNECT ") :]) | login | {"name": "watcher"}
        self.peer = Peer(port, b"CONNECT " + json.dumps(connect).encode() + b"\r\n")
        self.peer.send(b"SUB inbox.* 1\r\nPING\r\n")
        while self.peer.line() != "PONG":
            pass

    def ask(self, subject: str, body: str = ""):
        self.peer.send(f"PUB {subject} inbox.x {len(body)}\r\n{body}\r\n".encode())
        while True:
            words = self.peer.line().split()
            if words[0] in ("MSG", "HMSG"):
                payload = self.peer.take(int(words[-1]) + 2)[:-2]
                if words[0] == "HMSG":
                    return payload.split(b"\r\n")[0].decode()
                return json.loads(payload)
            if words[0] == "PING":
                self.peer.send(b"PONG\r\n")


class Watched:
    """A server with connected clients."""

    def __init__(self, binary: str, folder: str, configuration: str = CONFIGURATION):
        self.monitor = port_free()
        os.makedirs(folder)
        path = os.path.join(folder, "server.conf")
        with open(path, "w") as file:
            file.write(configuration)
        flags = ("-c", path, "-js", "-sd", os.path.join(folder, "store"), "-m", str(self.monitor))
        self.server = Server(binary, *flags)

    def start(self):
        self.server.start()
        self.system = Client(self.server.port, "sys", "s")
        self.client = Client(self.server.port, "a", "a")
        self.client.peer.send(b"SUB a.* q 2\r\nPUB a.b 2\r\nhi\r\nPING\r\n")
        while self.client.peer.line() != "PONG":
            pass
        Client(self.server.port, "a", "a").peer.close()
        self.id = self.client.peer.info["server_id"]

    def ask(self, who: str, subject: str, body: str):
        answer = getattr(self, who).ask(subject.replace("<id>", self.id), body)
        if isinstance(answer, str):
            return answer, {}
        told = shape(answer)
        error = answer.get("error")
        return (error["description"], error["code"]) if error else "", told


def main():
    with open(os.path.join(HERE, "differences.json")) as file:
        allowed = [] if is_reference() else json.load(file)
    report = Report("monitoring")
    with tempfile.TemporaryDirectory() as folder:
        wanted = Watched(reference_server(), os.path.join(folder, "wanted"))
        found = Watched(server_under_test(), os.path.join(folder, "found"))
        try:
            wanted.start()
            found.start()
            for path in PAGES:
                report.run(path, compare, get(wanted.monitor, path), get(found.monitor, path), path, allowed)
            for who, subject, body in requests():
                name = f"{subject} {body}".strip() + f" ({who})"
                report.run(name, ask_both, wanted, found, who, subject, body, name, allowed)
        finally:
            wanted.server.kill()
            found.server.kill()
        trace_both(report, folder)
        for name, binary in (("nats-server", reference_server()), ("the server under test", server_under_test())):
            for how in ("reported", "reported without jetstream", "given"):
                case = f"a restart of {name} with the store_dir that was {how}"
                report.run(case, restart, binary, os.path.join(folder, f"{name} {how}".replace(" ", "-")), how)
    report.end()


def restart(binary: str, folder: str, how: str):
    """A server finds its streams when it is started with the folder that it reported, as clients' test suites do."""
    monitor = port_free()
    body = json.dumps({"name": "KEPT", "subjects": ["kept"]})
    with Server(binary, "-js", "-sd", folder, "-m", str(monitor)) as server:
        made = Client(server.port, "", "").ask("$JS.API.STREAM.CREATE.KEPT", body)
        check("error" not in made, f"the stream is refused: {made}")
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/jsz", timeout=15) as answer:
            reported = json.load(answer)["config"]["store_dir"]
        check(os.path.isdir(reported) and os.listdir(reported), f"there is nothing in {reported}")
        server.signal(signal.SIGTERM)
        server.wait()
    again = {"reported": reported, "reported without jetstream": reported.removesuffix("jetstream"), "given": folder}
    with Server(binary, "-js", "-sd", again[how]) as server:
        names = Client(server.port, "", "").ask("$JS.API.STREAM.NAMES")["streams"]
        check(names == ["KEPT"], f"found {names} in {again[how]}")


def trace_both(report: Report, folder: str):
    """Compares message traces."""
    answers = []
    for binary, name in ((reference_server(), "traced-wanted"), (server_under_test(), "traced-found")):
        watched = Watched(binary, os.path.join(folder, name), tracing.CONFIGURATION)
        watched.server.start()
        try:
            answers.append(asyncio.run(tracing.ask_all(watched.server.port)))
        finally:
            watched.server.kill()
    for (who, subject, headers), wanted, found in zip(tracing.MESSAGES, *answers, strict=True):
        report.run(f"trace: {subject} of {who} with {headers}", same, wanted, found)


def same(wanted, found):
    check(wanted == found, f"{found}\nnot\n{wanted}")


def requests():
    for name, body in SERVER_REQUESTS:
        yield "system", f"$SYS.REQ.SERVER.PING.{name}", body
        yield "system", f"$SYS.REQ.SERVER.<id>.{name}", body
    for name, body in ONE_SERVER_REQUESTS:
        yield "system", f"$SYS.REQ.SERVER.<id>.{name}", body
    for name in ACCOUNT_REQUESTS:
        yield "system", f"$SYS.REQ.ACCOUNT.A.{name}", ""
    for subject in OF_EVERY_ACCOUNT:
        yield "client", subject, ""
    yield "system", "$SYS.REQ.USER.INFO", ""
    yield "system", "$SYS.REQ.SERVER.PING.NONE", ""
    yield "client", "$SYS.REQ.SERVER.PING.VARZ", ""


def ask_both(wanted: Watched, found: Watched, who: str, subject: str, body: str, name: str, allowed):
    compare(wanted.ask(who, subject, body), found.ask(who, subject, body), name, allowed)


def compare(wanted, found, name: str, allowed):
    lines = [] if wanted[0] == found[0] else [f"answers {found[0]!r}, not {wanted[0]!r}"]
    for path in sorted(wanted[1].keys() | found[1].keys()):
        before, after = wanted[1].get(path), found[1].get(path)
        if before != after and not is_allowed(path, name, allowed):
            lines.append(f"{path}: {after or 'missing'}, not {before or 'there'}")
    check(not lines, "\n".join(lines))


def is_allowed(path: str, name: str, allowed) -> bool:
    """Returns whether an entry allows a difference. The entry names the beginning of a request and the end of a
    path."""
    return any(
        name.startswith(entry["of"]) and any(path.endswith(end) for end in entry["paths"]) for entry in allowed
    )


if __name__ == "__main__":
    main()
