"""The `nats` command with replicated streams: an account's commands, and reports for the system account."""

import json
import os
import re
import shlex
import subprocess

import pytest

from harness.checks import check, equal, until
from leaf.stage import Stage
from replicated.servers import REPLICAS, Cluster

COMMAND_SECONDS_MAX = 60
# Attempts of a command whose answer depends on a change that the servers still carry out.
SETTLE_SECONDS_MAX = 30
ACCOUNTS = """
accounts {
  SYS: { users: [{ user: sys, password: sys }] }
  APP: { jetstream: enabled, users: [{ user: app, password: app }] }
}
system_account: SYS
no_auth_user: app
"""
SYSTEM = "--user sys --password sys"


@pytest.fixture(scope="module")
def servers(request):
    with Stage() as stage:
        yield Cluster(stage, request.param, ACCOUNTS)


class Tool:
    """The command, connected to one server."""

    def __init__(self, cluster: Cluster, folder, at: int):
        self.url = f"nats://127.0.0.1:{cluster.nodes[at].port}"
        self.folder = folder

    def try_to(self, command: str) -> tuple[int, str]:
        ended = subprocess.run(
            [os.environ["NATS_CLI"], "--server", self.url, *shlex.split(command)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=COMMAND_SECONDS_MAX,
            # Contexts of the user who runs the suite must have no effect.
            env=os.environ | {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)},
        )  # fmt: skip
        return ended.returncode, ended.stdout

    def do(self, command: str) -> str:
        status, output = self.try_to(command)
        equal(status, 0, f"how `nats {command}` ended: {output}")
        return output

    def until(self, command: str, is_right, what: str) -> str:
        """Repeats a command until its output is right."""
        seen = []

        def found():
            status, output = self.try_to(command)
            seen.append(output)
            return status == 0 and is_right(output)

        until(found, lambda: f"`nats {command}`: {what}: {seen[-1]}", SETTLE_SECONDS_MAX)
        return seen[-1]


@pytest.fixture
def tools(cluster: Cluster, tmp_path):
    """The command at each server, and a stream with three replicas, two messages, and a consumer."""
    tools = [Tool(cluster, tmp_path, at) for at in range(REPLICAS)]
    tools[0].do("stream add ORDERS --subjects orders.> --replicas 3 --defaults")
    tools[1].do("consumer add ORDERS C --pull --ack explicit --replicas 3 --defaults")
    for at in (1, 2):
        tools[at].until("publish --jetstream orders.a hello", lambda output: "Sequence" in output, "no acknowledgement")
    return tools


def leader_of(tool: Tool, command: str = "stream info ORDERS") -> str:
    found = tool.until(f"{command} --json", lambda output: json.loads(output)["cluster"].get("leader"), "no leader")
    return json.loads(found)["cluster"]["leader"]


def test_streams(cluster: Cluster, tools):
    for tool in tools:
        equal(tool.do("stream ls -n").split(), ["ORDERS"], "the names")
        check("ORDERS" in tool.do("stream ls"), "the list")
        found = tool.do("stream info ORDERS")
        check(re.search(r"Replicas: 3", found) and re.search(r"Messages: 2", found), found)
        check(all(name in found for name in cluster.names), f"the replicas: {found}")
        report = tool.do("stream report")
        check("ORDERS" in report and all(name in report for name in cluster.names), report)
        leaders = tool.do("stream report --leaders")
        check(leader_of(tool) in leaders, leaders)
        check("hello" in tool.do("stream get ORDERS 2"), "a message")
        check("C" in tool.do("consumer report ORDERS"), "the report of consumers")
    tools[2].do("stream edit ORDERS --max-msgs 10 -f")
    tools[1].until("stream info ORDERS --json", lambda output: json.loads(output)["config"]["max_msgs"] == 10, "no change")
    tools[0].do("stream rmm ORDERS 1 -f")
    tools[1].do("stream purge ORDERS -f")
    check(re.search(r"Messages: 0", tools[2].do("stream info ORDERS")), "messages after a purge")
    tools[2].do("stream rm ORDERS -f")
    equal(tools[0].do("stream ls -n").split(), [], "the names after the deletion")


def test_step_down(cluster: Cluster, tools):
    for at, tool in enumerate(tools):
        cluster.until_current("ORDERS")
        before = leader_of(tool)
        found = tool.do("stream cluster step-down ORDERS")
        check(before in found, f"the output: {found}")
        after = leader_of(tools[(at + 1) % REPLICAS])
        check(after != before, f"{before} still leads")
    tools[0].do("consumer cluster step-down ORDERS C")
    check("hello" in tools[1].until("consumer next ORDERS C --ack", lambda output: "hello" in output, "no message"), "")


def test_health(cluster: Cluster, tools):
    for tool in tools:
        command = "server check stream --stream ORDERS --peer-expect 3 --peer-lag-critical 100 --peer-seen-critical 30s"
        found = tool.until(command, lambda output: "OK" in output, "not healthy")
        check("ORDERS" in found, found)
        tool.do("server check jetstream")
        tool.do("server check connection")


def test_reports_for_the_system_account(cluster: Cluster, tools):
    for tool in tools:
        found = tool.do(f"server report jetstream {SYSTEM}")
        check(all(name in found for name in cluster.names), f"the servers: {found}")
        check(all(name in tool.do(f"server ls {SYSTEM}") for name in cluster.names), "the list of servers")
        pages = tool.do(f"server request jetstream --streams --config {SYSTEM}").splitlines()
        hosts = [page["server"]["name"] for page in map(json.loads, pages) if '"ORDERS"' in json.dumps(page)]
        check(leader_of(tool) in hosts, f"servers with the stream: {hosts}")
        health = tool.do(f"server report health {SYSTEM}")
        check(all(name in health for name in cluster.names), f"the health: {health}")


def test_buckets_objects_and_backups(cluster: Cluster, tools, tmp_path):
    tools[0].do("kv add CONFIG --replicas 3 --history 2")
    tools[1].until("kv put CONFIG key one", lambda output: "one" in output, "no answer")
    for tool in tools:
        tool.until("kv get CONFIG key --raw", lambda output: output.strip() == "one", "another value")
    check(tools[2].try_to("kv create CONFIG key two")[0] != 0, "a key is created twice")
    file, backup = tmp_path / "file", tmp_path / "backup"
    file.write_bytes(bytes(range(256)) * 1000)
    tools[0].do("object add FILES --replicas 3")
    tools[1].until(f"object put FILES {file} --name file --force --no-progress", lambda output: "file" in output, "no answer")
    tools[2].do(f"object get FILES file --output {tmp_path / 'copy'} --force --no-progress")
    equal((tmp_path / "copy").read_bytes(), file.read_bytes(), "the object")
    tools[0].do(f"stream backup ORDERS {backup} --no-progress --consumers")
    tools[1].do("stream rm ORDERS -f")
    tools[2].do(f"stream restore {backup} --no-progress")
    for tool in tools:
        found = json.loads(tool.until("stream info ORDERS --json", lambda output: output.startswith("{"), "no stream"))
        equal((found["state"]["messages"], found["config"]["num_replicas"]), (2, 3), "the restored stream")
    for command in ("kv del CONFIG -f", "object del FILES -f"):
        tools[0].do(command)
