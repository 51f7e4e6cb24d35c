"""The command-line tools of `fanline` with nats-server, whichever server is under test."""

import json
import os
import signal
import subprocess
import tempfile

import pytest

from harness.checks import check, equal, until
from harness.server import Server, reference_server

PROGRAM = os.environ["FANLINE"]
SECONDS_MAX = 30
OBJECT_BYTES = 5_000_000


class Tool:
    """The program with one server."""

    def __init__(self, server: Server, folder: str):
        self.environment = os.environ | {"FANLINE_URL": f"nats://127.0.0.1:{server.port}"}
        self.folder = folder

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def ended(self, *words: str, data: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            [PROGRAM, *words], env=self.environment, input=data, capture_output=True, text=True, timeout=SECONDS_MAX
        )

    def type(self, *words: str, data: str = "") -> str:
        """Runs a command that must succeed. Returns its output without the last line end."""
        done = self.ended(*words, data=data)
        equal(done.returncode, 0, f"the exit code of {words} ({done.stderr})")
        return done.stdout.rstrip("\n")

    def json(self, *words: str):
        return json.loads(self.type(*words, "--json"))

    def refused(self, *words: str) -> tuple[int, str]:
        done = self.ended(*words)
        return done.returncode, done.stderr.strip()

    def listen(self, *words: str) -> subprocess.Popen:
        """Starts a command and waits until it reports that it has subscribed."""
        with open(self.path("err"), "w") as error:
            process = subprocess.Popen(
                [PROGRAM, *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=error, text=True
            )

        def has_subscribed():
            with open(self.path("err")) as error:
                said = error.read()
            return "Subscribed" in said or "Answering" in said

        until(has_subscribed, f"{words} does not subscribe")
        return process


@pytest.fixture
def tool(tmp_path):
    with tempfile.TemporaryDirectory() as store, Server(reference_server(), "-js", "-sd", store) as server:
        yield Tool(server, str(tmp_path))


def test_pub_and_sub(tool):
    listener = tool.listen("sub", "a.>", "--count", "3")
    tool.type("pub", "-q", "a.b", "hello", "-H", "K: v", "--reply", "r")
    tool.type("pub", "-q", "a.lines", "--lines", data="one\ntwo\n")
    said, _ = listener.communicate(timeout=SECONDS_MAX)
    equal(listener.returncode, 0, "the exit code")
    wanted = (
        '[#1] Received on "a.b" with reply "r"\nK: v\n\nhello\n\n'
        '[#2] Received on "a.lines"\none\n\n[#3] Received on "a.lines"\ntwo'
    )
    equal(said.rstrip("\n"), wanted, "the output")


def test_request_and_reply(tool):
    wanted = (3, "fanline: no responders: the subject has no subscribers")
    equal(tool.refused("request", "nobody.home", "x"), wanted, "no responders")
    once = tool.listen("reply", "upper", "--count", "1", "--command", "tr a-z A-Z")
    equal(tool.type("request", "upper", "hello", "--raw"), "HELLO", "the answer of --command")
    equal(once.wait(SECONDS_MAX), 0, "the exit code of --count 1")
    echo = tool.listen("reply", "echo", "--echo")
    equal(tool.type("request", "echo", "a b", "--raw"), "a b", "the answer of --echo")
    equal(tool.type("request", "echo", "x", "--raw", "--replies", "0", "--timeout", "300ms"), "x", "all answers")
    echo.send_signal(signal.SIGINT)
    equal(echo.wait(SECONDS_MAX), 0, "the exit code after SIGINT")


def test_rtt_and_bench(tool):
    equal(sum(line.startswith("RTT: ") for line in tool.type("rtt", "--count", "2").splitlines()), 2, "times")
    rows = [line.split() for line in tool.type("bench", "pubsub", "b", "--msgs", "1000", "--pub", "2", "--sub", "4").splitlines()]
    found = [(row[0], row[2]) for row in rows if row and row[0].startswith(("publish", "subscribe"))]
    equal(found, [("publish", "1000"), ("subscribe", "4000")], "bench pubsub")
    rows = [line.split() for line in tool.type("bench", "request", "b", "--msgs", "100").splitlines()]
    equal([row[2] for row in rows if row and row[0].startswith("request")], ["100"], "bench request")


def orders(tool):
    """Creates a stream with six messages."""
    tool.type("stream", "add", "ORDERS", "--subjects", "orders.>", "--max-age", "7d", "--max-msgs", "100")
    for number in range(1, 7):
        tool.type("pub", "-q", f"orders.{number % 2}", f"{number}")


def test_streams(tool):
    orders(tool)
    equal(tool.json("stream", "info", "ORDERS")["config"]["max_age"], 604_800_000_000_000, "max_age")
    tool.type("stream", "edit", "ORDERS", "--max-msgs", "50", "--force")
    equal(tool.json("stream", "info", "ORDERS")["config"]["max_msgs"], 50, "max_msgs")
    equal(tool.type("stream", "ls", "--names"), "ORDERS", "stream ls")
    equal(tool.json("stream", "subjects", "ORDERS")["orders.1"], 3, "stream subjects")
    equal(tool.type("stream", "get", "ORDERS", "2", "--raw"), "2", "stream get")
    equal(tool.type("stream", "get", "ORDERS", "--last-for", "orders.0", "--raw"), "6", "stream get --last-for")
    equal(tool.type("stream", "view", "ORDERS", "--raw").split(), list("123456"), "stream view")
    tool.type("stream", "rmm", "ORDERS", "3", "--force")
    purged = tool.ended("stream", "purge", "ORDERS", "--subject", "orders.0", "--force")
    equal((purged.stdout + purged.stderr).strip(), "Purged 3 messages from ORDERS", "stream purge")
    check(tool.type("stream", "report").splitlines()[-1].startswith("1 stream"), "stream report")


def test_consumers(tool):
    orders(tool)
    tool.type("stream", "rmm", "ORDERS", "3", "--force")
    tool.type("consumer", "add", "ORDERS", "work", "--filter", "orders.1", "--wait", "1m")
    equal(tool.type("consumer", "next", "ORDERS", "work", "--raw"), "1", "consumer next")
    info = tool.json("consumer", "info", "ORDERS", "work")
    equal((info["num_pending"], info["ack_floor"]["stream_seq"]), (1, 1), "consumer info")
    tool.type("consumer", "pause", "ORDERS", "work", "1h", "--force")
    equal(tool.json("consumer", "info", "ORDERS", "work")["paused"], True, "paused")
    tool.type("consumer", "resume", "ORDERS", "work", "--force")


def test_backups(tool):
    orders(tool)
    tool.type("consumer", "add", "ORDERS", "work", "--filter", "orders.1", "--wait", "1m")
    for number in ("1", "3"):
        equal(tool.type("consumer", "next", "ORDERS", "work", "--raw"), number, "consumer next")
    tool.type("stream", "backup", "ORDERS", tool.path("backup"))
    tool.type("stream", "rm", "ORDERS", "--force")
    equal(tool.refused("stream", "info", "ORDERS"), (1, "fanline: stream not found (10059)"), "stream rm")
    tool.type("stream", "restore", tool.path("backup"))
    equal(tool.type("stream", "view", "ORDERS", "--raw").split(), list("123456"), "stream restore")
    equal(tool.type("consumer", "next", "ORDERS", "work", "--raw"), "5", "a consumer that was restored")


def test_buckets(tool):
    tool.type("kv", "add", "prices", "--history", "5")
    tool.type("kv", "put", "prices", "tea", "2.00")
    equal(tool.type("kv", "get", "prices", "tea", "--raw"), "2.00", "kv put and get")
    tool.type("kv", "update", "prices", "tea", "2.10", "1")
    equal(tool.refused("kv", "update", "prices", "tea", "2.20", "1")[0], 1, "the exit code of a kv update")
    tool.type("kv", "create", "prices", "cake", "3.50")
    tool.type("kv", "del", "prices", "cake", "--force")
    equal(tool.type("kv", "ls", "prices"), "tea", "kv ls")
    equal([entry["operation"] for entry in tool.json("kv", "history", "prices", "cake")], ["PUT", "DEL"], "kv history")
    check('"tea"' in tool.type("kv", "watch", "prices", "tea", "--count", "1", "--json"), "kv watch")
    tool.type("kv", "rm", "prices", "--force")


def test_objects(tool):
    large = os.urandom(OBJECT_BYTES)
    with open(tool.path("large"), "wb") as file:
        file.write(large)
    tool.type("object", "add", "files")
    tool.type("object", "put", "files", tool.path("large"), "--name", "large")
    tool.type("object", "get", "files", "large", "--output", tool.path("back"))
    with open(tool.path("back"), "rb") as file:
        check(file.read() == large, "another object came back")
    equal(tool.type("object", "ls", "files", "--names"), "large", "object ls")
    tool.type("object", "del", "files", "large", "--force")
    equal(tool.type("object", "ls", "files", "--names"), "", "object del")
