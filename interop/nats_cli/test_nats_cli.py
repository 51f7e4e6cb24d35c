"""Compares the output of the `nats` command with nats-server and with the server under test."""

import difflib
import json
import os
import re
import shlex
import socket
import subprocess
import tempfile
import time

import pytest

from harness.checks import check, equal
from harness.server import Server, reference_server, server_under_test

from nats_cli.cases import CASES

COMMAND_SECONDS_MAX = 30
# Interval and number of repetitions of commands whose result takes time.
ASKED_AGAIN_SECONDS = 0.25
ASKED_MAX = 80
# Size of a file that is stored in several chunks.
OBJECT_BYTES = 300_000

CONFIG = """
server_name: S
jetstream {{ store_dir: "{store}" }}
accounts {{
  SYS: {{ users: [{{ user: sys, password: sys }}] }}
  APP: {{ jetstream: enabled, users: [{{ user: app, password: app }}] }}
}}
system_account: SYS
no_auth_user: app
"""

# Texts that differ in each run.
CHANCE = [
    (r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", "TIME"),
    (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "TIME"),
    (r"\b(\d+h)?(\d+m)?\d+(\.\d+)?(ns|µs|us|ms|s|m|h)\b", "DURATION"),
    (r"(time|duration)=[\d.]+s", r"\1=DURATION"),
    (r"[\d.]+[KM]?/s", "RATE"),
    (r'"active": \d+', "SINCE"),
    (r"_INBOX[.\w]+", "INBOX"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"cid:\d+", "cid:ID"),
    (r"\b[A-Z0-9]{56}\b", "KEY"),
    (r"\b[A-Za-z0-9]{22}\b", "NUID"),
    # The width of a table depends on its content.
    (r"[─-╿]+", "-"),
    (r" +", " "),
]


class Tool:
    """The command with one server, and with its own files."""

    def __init__(self, folder: str, binary: str):
        self.folder = folder
        config = self.path("server.conf")
        with open(config, "w") as file:
            file.write(CONFIG.format(store=self.path("store")))
        with open(self.path("file"), "wb") as file:
            file.write(bytes(at % 251 for at in range(OBJECT_BYTES)))
        self.server = Server(binary, "-c", config)
        self.beside: list[subprocess.Popen] = []

    def __enter__(self) -> "Tool":
        self.server.start()
        with socket.create_connection(("127.0.0.1", self.server.port)) as peer, peer.makefile() as lines:
            self.server_id = json.loads(lines.readline().removeprefix("INFO "))["server_id"]
        return self

    def __exit__(self, *_):
        for process in self.beside:
            process.kill()
            process.wait()
        self.server.kill()

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def begin(self, command: str, output) -> subprocess.Popen:
        names = {
            "file": self.path("file"),
            "copy": self.path("copy"),
            "folder": self.folder,
            "server": self.server_id,
        }
        arguments = shlex.split(command.format(**names))
        return subprocess.Popen(
            [os.environ["NATS_CLI"], "--server", f"nats://127.0.0.1:{self.server.port}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            # Contexts of the user who runs the suite must have no effect.
            env=os.environ | {"HOME": self.folder, "XDG_CONFIG_HOME": self.folder},
        )

    def type(self, command: str) -> tuple[int, list[str]]:
        """Runs a command. Returns its exit code and output."""
        process = self.begin(command, subprocess.PIPE)
        try:
            text, _ = process.communicate(timeout=COMMAND_SECONDS_MAX)
        finally:
            process.kill()
        # The tool's library for differences picks one of two kinds of spaces at random.
        text = text.replace("\u00a0", " ").replace(self.folder, "FOLDER").replace(self.server_id, "SERVER")
        return process.returncode, [without_chance(line) for line in text.splitlines()]

    def go_on(self, command: str):
        self.beside.append(self.begin(command, subprocess.DEVNULL))


def without_chance(line: str) -> str:
    for pattern, name in CHANCE:
        line = re.sub(pattern, name, line)
    return line.strip()


@pytest.mark.parametrize("case", CASES)
def test_nats_cli(case: str):
    with tempfile.TemporaryDirectory() as wanted_folder, tempfile.TemporaryDirectory() as found_folder:
        with Tool(wanted_folder, reference_server()) as wanted, Tool(found_folder, server_under_test()) as found:
            for line in CASES[case].strip().splitlines():
                mark, command = line.strip().split(" ", 1)
                if mark == "&":
                    wanted.go_on(command)
                    found.go_on(command)
                else:
                    play_one(mark, command, wanted, found)
            if case == "objects":
                with open(found.path("file"), "rb") as put, open(found.path("copy"), "rb") as got:
                    check(put.read() == got.read(), "another object came back")


def play_one(mark: str, command: str, wanted: Tool, found: Tool):
    for left in reversed(range(ASKED_MAX if mark == "@" else 1)):
        try:
            compare(mark, command, wanted.type(command), found.type(command))
        except AssertionError:
            if left == 0:
                raise
            time.sleep(ASKED_AGAIN_SECONDS)
        else:
            return


def compare(mark: str, command: str, wanted: tuple[int, list[str]], found: tuple[int, list[str]]):
    (wanted_status, wanted_lines), (found_status, found_lines) = wanted, found
    check(not any("--help" in line for line in wanted_lines), f"the tool does not know `nats {command}`: {wanted_lines}")
    if mark == "~":
        wanted_lines, found_lines = sorted(wanted_lines), sorted(found_lines)
    if mark != "?" and wanted_lines != found_lines:
        lines = difflib.unified_diff(wanted_lines, found_lines, "nats-server", "found", lineterm="", n=0)
        raise AssertionError(f"nats {command}\n" + "\n".join(lines))
    equal(found_status, wanted_status, f"how `nats {command}` ended: {found_lines[-3:]}")
