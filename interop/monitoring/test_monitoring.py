"""Requests all monitoring pages and all data of the system account from nats-server and from the server under
test. Compares the keys and the types of their values. `differences.json` lists allowed differences, with reasons."""

import asyncio
import json
import os
import signal
import tempfile
import urllib.error
import urllib.request

import pytest

from harness.checks import check
from harness.client import Client, api
from harness.server import Server, is_reference, port_free, reference_server, server_under_test

from monitoring import tracing

with open(os.path.join(os.path.dirname(__file__), "differences.json")) as file:
    ALLOWED = [] if is_reference() else json.load(file)

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

    def connect(self):
        self.system = Client(self.server.port, "sys", "s", name="watcher")
        self.client = Client(self.server.port, "a", "a", name="watcher")
        self.client.subscribe("a.*", "q")
        self.client.publish("a.b", b"hi")
        self.client.flush()
        Client(self.server.port, "a", "a", name="watcher").close()
        self.id = self.client.peer.info["server_id"]

    def ask(self, who: str, subject: str, body: str):
        message = getattr(self, who).ask(subject.replace("<id>", self.id), body.encode())
        if message.headers:
            return message.headers.split(b"\r\n")[0].decode(), {}
        answer = message.json()
        told = shape(answer)
        error = answer.get("error")
        return (error["description"], error["code"]) if error else "", told


@pytest.fixture(scope="module")
def watched():
    with tempfile.TemporaryDirectory() as folder:
        wanted = Watched(reference_server(), os.path.join(folder, "wanted"))
        found = Watched(server_under_test(), os.path.join(folder, "found"))
        with wanted.server, found.server:
            wanted.connect()
            found.connect()
            yield wanted, found


@pytest.mark.parametrize("path", PAGES)
def test_page(watched, path):
    wanted, found = watched
    compare(get(wanted.monitor, path), get(found.monitor, path), path)


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


@pytest.mark.parametrize("who, subject, body", list(requests()))
def test_request(watched, who, subject, body):
    wanted, found = (each.ask(who, subject, body) for each in watched)
    compare(wanted, found, f"{subject} {body}".strip() + f" ({who})")


@pytest.mark.parametrize("how", ["reported", "reported without jetstream", "given"])
@pytest.mark.parametrize("program", [reference_server, server_under_test])
def test_restart(program, tmp_path, how: str):
    """A server finds its streams when it is started with the folder that it reported, as clients' test suites do."""
    binary, folder, monitor = program(), str(tmp_path), port_free()
    with Server(binary, "-js", "-sd", folder, "-m", str(monitor)) as server:
        api(Client(server.port), "STREAM.CREATE.KEPT", {"name": "KEPT", "subjects": ["kept"]})
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/jsz", timeout=15) as answer:
            reported = json.load(answer)["config"]["store_dir"]
        check(os.path.isdir(reported) and os.listdir(reported), f"there is nothing in {reported}")
        server.signal(signal.SIGTERM)
        server.wait()
    again = {"reported": reported, "reported without jetstream": reported.removesuffix("jetstream"), "given": folder}
    with Server(binary, "-js", "-sd", again[how]) as server:
        names = api(Client(server.port), "STREAM.NAMES")["streams"]
        check(names == ["KEPT"], f"found {names} in {again[how]}")


@pytest.fixture(scope="module")
def traces():
    """The answers of both servers to all messages."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for role, binary in (("wanted", reference_server()), ("found", server_under_test())):
            with Watched(binary, os.path.join(folder, role), tracing.CONFIGURATION).server as server:
                answers.append(asyncio.run(tracing.ask_all(server.port)))
    return answers


@pytest.mark.parametrize("number", range(len(tracing.MESSAGES)), ids=map(str, tracing.MESSAGES))
def test_trace(traces, number):
    wanted, found = (answers[number] for answers in traces)
    check(wanted == found, f"{found}\nnot\n{wanted}")


def compare(wanted, found, name: str):
    lines = [] if wanted[0] == found[0] else [f"answers {found[0]!r}, not {wanted[0]!r}"]
    for path in sorted(wanted[1].keys() | found[1].keys()):
        before, after = wanted[1].get(path), found[1].get(path)
        if before != after and not is_allowed(path, name):
            lines.append(f"{path}: {after or 'missing'}, not {before or 'there'}")
    check(not lines, "\n".join(lines))


def is_allowed(path: str, name: str) -> bool:
    """Returns whether an entry of `differences.json` allows a difference. The entry names the beginning of a request
    and the end of a path."""
    return any(name.startswith(entry["of"]) and path.endswith(tuple(entry["paths"])) for entry in ALLOWED)
