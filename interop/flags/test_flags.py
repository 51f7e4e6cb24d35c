"""Starts the server under test by a symbolic link named `nats-server`, and checks its behavior from outside."""

import contextlib
import glob
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

from flags import tokens
from harness.certificates import self_signed
from harness.checks import check, equal, until
from harness.peer import CONNECT, Closed, Peer
from harness.server import Server, is_reference, port_free, server_under_test

SECONDS_MAX = 20
VERSION = "2.15.2"
LOG_LINE = re.compile(r"^\[(\d+)\] \d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} \[(INF|WRN|ERR|FTL|DBG|TRC)\] (.*)$")

# Keys that dashboards, exporters, and readiness probes read.
VARZ_KEYS = """
    connections cores cpu go host http_host http_port in_bytes in_msgs max_connections
    max_control_line max_payload max_pending mem now out_bytes out_msgs ping_interval ping_max port
    proto remotes routes server_id server_name slow_consumers start subscriptions total_connections
    uptime version write_deadline
""".split()
PLAIN, SIGNING = (tokens.OPERATOR, tokens.ACCOUNT), (tokens.SIGNING_OPERATOR, tokens.BYSIGNING)
REFUSED = "-ERR 'Authorization Violation'"
DENIED = "in: -ERR 'Permissions Violation for Publish to \"no\"'"


class Under:
    """A temporary directory with the link, and the processes started by it."""

    def __init__(self, directory: str):
        self.directory = directory
        self.binary = os.path.join(directory, "nats-server")
        os.symlink(server_under_test(), self.binary)
        self.processes: list[subprocess.Popen] = []

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def once(self, *flags: str) -> subprocess.CompletedProcess:
        """Runs a command that ends by itself."""
        return subprocess.run(
            [self.binary, *flags], capture_output=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL
        )

    def start(self, *flags: str) -> subprocess.Popen:
        with open(self.path("stderr"), "w") as stderr, open(self.path("stdout"), "w") as stdout:
            process = subprocess.Popen(
                [self.binary, *flags], stderr=stderr, stdout=stdout, stdin=subprocess.DEVNULL
            )
        self.processes.append(process)
        return process

    def listen(self, *flags: str, host: str = "127.0.0.1", log: str = "stderr") -> tuple[subprocess.Popen, int]:
        """Starts the server on a free port, and waits until it is ready. Returns the process and the port."""
        port = port_free()
        process = self.start("-a", host, "-p", str(port), *flags)
        self.ready(log)
        return process, port

    def write(self, name: str, text: str):
        with open(self.path(name), "w") as file:
            file.write(text)

    def read(self, name: str) -> str:
        with open(self.path(name)) as file:
            return file.read()

    def ready(self, name: str = "stderr") -> list[str]:
        """Waits until the log reports that the server is ready. Returns its lines."""
        self.until(lambda: os.path.exists(self.path(name)) and "Server is ready\n" in self.read(name), f"no `Server is ready` in {name}")
        return self.read(name).splitlines()

    def until(self, condition, why: str):
        until(condition, lambda: f"{why}; stderr: {self.read('stderr')}")


@pytest.fixture
def stage():
    with tempfile.TemporaryDirectory() as directory:
        stage = Under(directory)
        try:
            yield stage
        finally:
            for process in stage.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()


@pytest.mark.parametrize("flag", ["-v", "--version", "-version", "version"])
def test_version(stage: Under, flag: str):
    done = stage.once(flag)
    equal(done.stdout, f"nats-server: v{VERSION}\n", "standard output")
    equal(done.returncode, 0, "exit code")


def test_help_text(stage: Under):
    done = stage.once("--help")
    equal(done.returncode, 0, "exit code")
    text = done.stdout + done.stderr
    for flag in ("--addr", "--port", "--pid", "--ports_file_dir", "--http_port", "--user", "--pass", "--auth", "--log"):
        check(flag in text, f"{flag} is not in the help")


def test_unknown_flag(stage: Under):
    # nats-server prints its usage and exits with 0. The case requires only that the server ends and names the
    # cause.
    done = stage.once("-a", "127.0.0.1", "-p", str(port_free()), "--no_such_flag")
    check("no_such_flag" in done.stdout + done.stderr, f"the flag is not named: {done.stderr}")


def test_unknown_word(stage: Under):
    done = stage.once("frobnicate")
    equal(done.returncode, 1, "exit code")
    check('unrecognized command: "frobnicate"' in done.stderr, done.stderr)


def test_bad_value(stage: Under):
    done = stage.once("-p", "many")
    check("many" in done.stdout + done.stderr, f"the value is not named: {done.stderr}")


def test_port_taken(stage: Under):
    _, port = stage.listen()
    done = stage.once("-a", "127.0.0.1", "-p", str(port))
    equal(done.returncode, 1, "exit code")
    check(re.search(r"\[FTL\] .*address already in use", done.stderr), f"no [FTL] line: {done.stderr}")


def test_ports_file(stage: Under):
    process = stage.start("-a", "127.0.0.1", "-p", "-1", "-m", "-1", "--ports_file_dir", stage.directory)
    stage.ready()
    name = f"nats-server_{process.pid}.ports"
    stage.until(lambda: os.path.exists(stage.path(name)), f"no {name} in {os.listdir(stage.directory)}")
    ports = json.loads(stage.read(name))
    equal(sorted(ports), ["monitoring", "nats"], "keys")
    client = re.fullmatch(r"nats://127\.0\.0\.1:(\d+)", ports["nats"][0])
    monitoring = re.fullmatch(r"http://127\.0\.0\.1:(\d+)", ports["monitoring"][0])
    check(client and monitoring, f"URLs: {ports}")
    with Peer(int(client[1]), CONNECT) as peer:
        peer.flush()
    varz(int(monitoring[1]))
    process.send_signal(signal.SIGTERM)
    equal(process.wait(SECONDS_MAX), 0, "exit code")
    equal(glob.glob(stage.path("*.ports")), [], "ports files left")


def test_ports_file_without_monitoring(stage: Under):
    port = port_free()
    process = stage.start("--addr=127.0.0.1", f"--port={port}", f"--ports_file_dir={stage.directory}")
    name = f"nats-server_{process.pid}.ports"
    stage.ready()
    stage.until(lambda: os.path.exists(stage.path(name)), f"no {name}")
    equal(json.loads(stage.read(name)), {"nats": [f"nats://127.0.0.1:{port}"]}, "ports file")


def test_ports_file_of_everything(stage: Under):
    """The ports file has one URL per interface, and the scheme shows whether TLS is used."""
    pem, key = self_signed(stage.directory, "server")
    tls = f"tls {{ cert_file: '{pem}', key_file: '{key}' }}"
    for secure, schemes in ((False, ("nats", "http", "ws")), (True, ("tls", "https", "wss"))):
        monitoring = "https_port: -1" if secure else "http_port: -1"
        websocket = f"websocket {{ listen: '0.0.0.0:-1', {tls if secure else 'no_tls: true'} }}"
        lines = ["listen: '0.0.0.0:-1'", monitoring, websocket, tls if secure else "", f"ports_file_dir: '{stage.directory}'"]
        stage.write("ports.conf", "\n".join(lines))
        process = stage.start("-c", stage.path("ports.conf"))
        name = f"nats-server_{process.pid}.ports"
        stage.until(lambda: os.path.exists(stage.path(name)) and stage.read(name), f"no {name}")  # noqa: B023
        ports = json.loads(stage.read(name))
        equal(sorted(ports), ["monitoring", "nats", "websocket"], "keys")
        for key, scheme in zip(("nats", "monitoring", "websocket"), schemes, strict=True):
            port = ports[key][0].rsplit(":", 1)[1]
            check(f"{scheme}://127.0.0.1:{port}" in ports[key], f"{key}: {ports[key]}")
            check(all(url.startswith(f"{scheme}://") for url in ports[key]), f"{key}: {ports[key]}")
        process.send_signal(signal.SIGTERM)
        equal(process.wait(SECONDS_MAX), 0, "exit code")


def test_all_interfaces(stage: Under):
    """`0.0.0.0` includes IPv6, and IPv4 clients keep their address."""
    check(os.path.exists("/proc/net/if_inet6") or os.uname().sysname != "Linux", "this host has no IPv6")
    monitor = port_free()
    _, port = stage.listen("-m", str(monitor), host="0.0.0.0")
    for host in ("127.0.0.1", "::1"):
        with socket.create_connection((host, port), SECONDS_MAX) as stream:
            info = json.loads(stream.makefile("rb").readline()[len("INFO ") :])
            equal((info["host"], info["client_ip"]), ("0.0.0.0", host), f"INFO at {host}")
            found = [each["ip"] for each in get(monitor, "/connz")["connections"]]
            equal(found, [host], "/connz")
        stage.until(lambda: not get(monitor, "/connz")["connections"], "the connection is still there")
        with socket.create_connection((host, monitor), SECONDS_MAX):
            pass


def test_pid_file(stage: Under):
    process = stage.start("-a", "127.0.0.1", "-p", "-1", "-P", stage.path("pid"))
    stage.ready()
    equal(stage.read("pid"), str(process.pid), "pid file")


def test_single_dashes(stage: Under):
    port = port_free()
    stage.start("-addr", "127.0.0.1", "-port", str(port), "-user=alice", "-pass", "secret")
    stage.ready()
    connect = b'CONNECT {"verbose":false,"user":"alice","pass":"secret"}\r\n'
    with Peer(port, connect) as peer:
        peer.flush()
    with Peer(port, CONNECT) as peer:
        with pytest.raises(AssertionError, match="Authorization Violation"):
            peer.flush()


@pytest.mark.parametrize("to_file", [False, True])
def test_log(stage: Under, to_file: bool):
    port = port_free()
    flags = ("-l", stage.path("log")) if to_file else ()
    process = stage.start("-a", "127.0.0.1", "-p", str(port), *flags)
    lines = stage.ready("log" if to_file else "stderr")
    messages = []
    for line in lines:
        parts = LOG_LINE.match(line)
        check(parts, f"not a log line of nats-server's: {line!r}")
        equal(parts[1], str(process.pid), "process id in the log")
        messages.append(f"[{parts[2]}] {parts[3]}")
    check(f"[INF] Listening for client connections on 127.0.0.1:{port}" in messages, f"not listening: {messages}")
    equal(messages[-1], "[INF] Server is ready", "last line")
    check(any(VERSION in message for message in messages), f"no version: {messages}")
    equal(stage.read("stdout"), "", "standard output")
    if to_file:
        equal(stage.read("stderr"), "", "standard error")


def test_log_times_off(stage: Under):
    process = stage.start("-a", "127.0.0.1", "-p", "-1", "-T=false")
    equal(stage.ready()[-1], f"[{process.pid}] [INF] Server is ready", "last line")


@pytest.mark.parametrize("flags, debug", [(("-V",), False), (("-DV",), True), (("-D", "-V"), True)])
def test_trace(stage: Under, flags: tuple[str, ...], debug: bool):
    _, port = stage.listen("-l", stage.path("log"), *flags, log="log")
    with Peer(port, b'CONNECT {"verbose":false,"pass":"s3cr3t","auth_token":"s3cr3t","sig":"s3cr3t"}\r\n') as peer:
        peer.send(b"SUB foo 1\r\nPUB foo 5\r\nhello\r\n")
        peer.message()
        peer.flush()
    wanted = (
        '<<- [CONNECT {', "<<- [SUB foo 1]", "<<- [PUB foo 5]", '<<- MSG_PAYLOAD: ["hello"]',
        "->> [MSG foo 1 5]", '->> MSG_PAYLOAD: ["hello"]', "<<- [PING]", "->> [PONG]",
    )
    # Lines are in the log before the client receives its response.
    found = stage.read("log")
    missing = [text for text in wanted if text not in found]
    check(not missing, f"the trace lacks {missing}: {found}")
    for line in found.splitlines():
        parts = LOG_LINE.match(line)
        check(parts, f"not a log line of nats-server's: {line!r}")
        if " [PUB " in line:
            check(re.match(r"127\.0\.0\.1:\d+ - cid:\d+ - ", parts[3]) and parts[2] == "TRC", line)
    check("s3cr3t" not in found, f"a secret is in the log: {found}")
    equal("[DBG] 127.0.0.1:" in found, debug, "debug lines")


def test_jetstream(stage: Under):
    _, port = stage.listen("-js", "-sd", stage.path("store"))
    with Peer(port, CONNECT) as peer:
        peer.flush()
        equal(peer.info.get("jetstream"), True, "jetstream in INFO")


# nats-server has this option only in its configuration file.
@pytest.mark.skipif(is_reference(), reason="no flag of nats-server")
@pytest.mark.parametrize("flags", ["--max_payload 2048", "-max_payload 2KB", "-max_payload=2048", "--max_payload=2k"])
def test_max_payload(stage: Under, flags: str):
    port = port_free()
    stage.start("-a", "127.0.0.1", *flags.split(), "-p", str(port))
    stage.ready()
    with Peer(port, CONNECT) as peer:
        equal(peer.info["max_payload"], 2048, "max_payload in INFO")
        peer.send(b"PUB foo 2048\r\n" + bytes(2048) + b"\r\n")
        peer.flush()
        peer.send(b"PUB foo 2049\r\n")
        check(b"-ERR 'Maximum Payload Violation'" in peer.until_closed(), "no error for one byte more")


def get(port: int, path: str):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS_MAX) as answer:
        equal(answer.status, 200, path)
        check(answer.headers["Content-Type"].startswith("application/json"), f"{path}: {answer.headers}")
        return json.loads(answer.read())


def varz(port: int) -> dict:
    found = get(port, "/varz")
    missing = [key for key in VARZ_KEYS if key not in found]
    check(not missing, f"/varz lacks {missing}")
    equal(found["version"], VERSION, "version")
    return found


def test_monitoring(stage: Under):
    http = port_free()
    _, port = stage.listen("-m", str(http))
    before = varz(http)
    equal((before["port"], before["connections"], before["in_msgs"]), (port, 0, 0), "port, connections, in_msgs")
    equal((before["max_payload"], before["max_control_line"]), (1 << 20, 4096), "limits")
    with Peer(port, CONNECT) as peer:
        peer.send(b"SUB foo 1\r\nPUB foo 5\r\nhello\r\n")
        peer.message()
        peer.flush()
        # Counters may be updated a moment later.
        wanted = {"connections": 1, "in_msgs": 1, "out_msgs": 1, "in_bytes": 5, "out_bytes": 5}
        stage.until(lambda: wanted.items() <= varz(http).items(), f"/varz never showed {wanted}")
    stage.until(lambda: varz(http)["connections"] == 0, "/varz still counts a closed connection")
    equal(varz(http)["total_connections"], 1, "total_connections")
    equal(get(http, "/healthz"), {"status": "ok"}, "/healthz")


def test_connz(stage: Under):
    http = port_free()
    _, port = stage.listen("-m", str(http))
    connect = b'CONNECT {"verbose":false,"name":"me","lang":"py","version":"1"}\r\nSUB foo.* 1\r\n'
    with Peer(port, connect) as peer:
        peer.flush()
        found = get(http, "/connz?subs=1")
        equal((found["num_connections"], found["total"]), (1, 1), "num_connections, total")
        connection = found["connections"][0]
        for key, value in {
            "cid": peer.info["client_id"], "ip": "127.0.0.1", "name": "me", "lang": "py", "version": "1",
            "subscriptions": 1, "subscriptions_list": ["foo.*"], "port": peer.socket.getsockname()[1],
        }.items():
            equal(connection.get(key), value, key)
        equal(get(http, "/subsz")["num_subscriptions"] >= 1, True, "/subsz num_subscriptions")


def test_unknown_path(stage: Under):
    http = port_free()
    stage.start("-a", "127.0.0.1", "-p", "-1", "-m", str(http))
    stage.ready()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{http}/nothing", timeout=SECONDS_MAX)
    equal(refused.value.code, 404, "status")
    refused.value.close()


def test_info(stage: Under):
    _, port = stage.listen("-n", "west-1")
    with Peer(port, CONNECT) as peer:
        found = peer.info
    for key, value in {
        "version": VERSION, "server_name": "west-1", "proto": 1, "headers": True, "max_payload": 1 << 20,
        "host": "127.0.0.1", "port": port, "client_ip": "127.0.0.1",
    }.items():
        equal(found.get(key), value, key)
    check(re.fullmatch("N[A-Z2-7]{55}", found["server_id"]), f"server_id: {found['server_id']}")


@pytest.mark.parametrize("by_flag", [False, True])
def test_cluster_name(stage: Under, by_flag: bool):
    port, monitor = port_free(), port_free()
    stage.write("cluster.conf", "" if by_flag else "cluster { name: east }")
    flags = ("--cluster_name", "east") if by_flag else ("-c", stage.path("cluster.conf"))
    stage.start("-a", "0.0.0.0", "-p", str(port), "-m", str(monitor), *flags)
    stage.ready()
    with Peer(port, CONNECT) as peer:
        equal(peer.info.get("cluster"), "east", "INFO")
        # No other servers were announced.
        equal(peer.info.get("connect_urls"), None, "connect_urls")
    equal(varz(monitor)["cluster"].get("name"), "east", "/varz")


def test_fewer_connections(stage: Under):
    """A reload with a lower limit closes the connections above it; which ones is not defined."""
    port = port_free()

    def write(most: int):
        stage.write("few.conf", f"listen: '127.0.0.1:{port}', max_connections: {most}")

    write(10)
    process = stage.start("-c", stage.path("few.conf"))
    stage.ready()
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(Peer(port, CONNECT)) for _ in range(5)]
        for peer in peers:
            peer.flush()
        write(2)
        process.send_signal(signal.SIGHUP)
        stage.until(lambda: "Closed 3 connections" in stage.read("stderr"), "nothing was closed")
        told = []
        for peer in peers:
            try:
                peer.flush()
                told.append("stays")
            except (AssertionError, Closed) as error:
                told.append("maximum connections exceeded" if "maximum" in str(error) else str(error))
        equal(sorted(told), ["maximum connections exceeded"] * 3 + ["stays"] * 2, "what they are told")


@pytest.mark.parametrize(
    "operator, account, user, wanted",
    [
        pytest.param(*PLAIN, tokens.USER, DENIED, id="a user"),
        pytest.param(*PLAIN, tokens.SIGNED_USER, "in: MSG no 1 2", id="a user of a signing key"),
        pytest.param(*PLAIN, tokens.EXPIRED, REFUSED, id="a user that has expired"),
        pytest.param(*PLAIN, tokens.NOBEARER, REFUSED, id="a user that signs nothing"),
        pytest.param(*SIGNING, tokens.USER, REFUSED, id="a user that was revoked"),
    ],
)
def test_old_tokens(stage: Under, operator: str, account: str, user: str, wanted: str):
    """Tokens of version 1 are accepted or refused like with nats-server, and their permissions apply."""
    port = port_free()
    preload = f"resolver_preload {{ {tokens.A}: {account} }}"
    stage.write("operator.conf", f"listen: '127.0.0.1:{port}'\noperator: {operator}\nresolver: MEMORY\n{preload}\n")
    stage.start("-c", stage.path("operator.conf"))
    stage.ready()
    with Peer(port, b'CONNECT {"verbose":false,"jwt":"%s"}\r\nPING\r\n' % user.encode()) as peer:
        found = "in" if (line := peer.line()) == "PONG" else line
        if found == "in":
            peer.send(b"SUB no 1\r\nPUB no 2\r\nhi\r\nPING\r\n")
            lines = []
            while "PONG" not in lines and not any("Payload" in line for line in lines):
                lines.append(peer.line())
            found = f"in: {lines[0] if not lines[0].startswith('INFO') else lines[1]}"
    equal(found, wanted, "what comes of it")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends(stage: Under, number: int):
    process, port = stage.listen()
    with Peer(port, CONNECT) as peer:
        peer.flush()
        process.send_signal(number)
        equal(process.wait(SECONDS_MAX), 0, "exit code")
        peer.until_closed()
    # The port is free at once, so a second server can use it.
    stage.start("-a", "127.0.0.1", "-p", str(port))
    stage.ready()


def test_reopen_log(stage: Under):
    process = stage.start("-a", "127.0.0.1", "-p", "-1", "-l", stage.path("log"))
    stage.ready("log")
    os.rename(stage.path("log"), stage.path("log.old"))
    process.send_signal(signal.SIGUSR1)
    stage.until(lambda: os.path.exists(stage.path("log")), "the log was not opened again")
    equal(process.poll(), None, "exit code")


def test_lame_duck(stage: Under):
    process, port = stage.listen()
    with Peer(port, CONNECT) as peer, Peer(port, b'CONNECT {"verbose":false,"protocol":0}\r\n') as old:
        old.flush()
        peer.flush()
        peer.line()  # the second INFO
        process.send_signal(signal.SIGUSR2)
        line = peer.line()
        check(line.startswith("INFO "), line)
        equal(json.loads(line[len("INFO ") :]).get("ldm"), True, "ldm")
        # Connected clients may continue; new ones are refused.
        peer.send(b"SUB foo 1\r\nPUB foo 5\r\nhello\r\n")
        equal(peer.message()[1], b"hello", "a message during lame duck")
        old.send(b"PING\r\n")
        equal(old.line(), "PONG", "what a client of protocol 0 gets, to whom no INFO is sent")
        with pytest.raises((ConnectionRefusedError, Closed)):
            Peer(port).close()
        # nats-server ignores SIGTERM during lame duck mode, so that an orchestrator's stop does not shorten it.
        process.send_signal(signal.SIGTERM)
        peer.send(b"PUB foo 5\r\nagain\r\n")
        equal(peer.message()[1], b"again", "a message after SIGTERM")
        equal(process.poll(), None, "exit code")
        process.send_signal(signal.SIGINT)
        equal(process.wait(SECONDS_MAX), 0, "exit code after SIGINT")


def test_lame_duck_alone(stage: Under):
    process = stage.start("-a", "127.0.0.1", "-p", "-1")
    stage.ready()
    process.send_signal(signal.SIGUSR2)
    equal(process.wait(SECONDS_MAX), 0, "exit code")


def test_signal_by_pid(stage: Under):
    process = stage.start("-a", "127.0.0.1", "-p", "-1", "-P", stage.path("pid"))
    stage.ready()
    done = stage.once("--signal", f"quit={stage.path('pid')}")
    equal(done.returncode, 0, f"exit code of the signaller ({done.stderr})")
    equal(process.wait(SECONDS_MAX), 0, "exit code")


def test_killed(stage: Under):
    """A server is killed with SIGKILL and started on the same port, as a supervisor would do."""
    server = Server(stage.binary)
    with server:
        for _ in range(3):
            with Peer(server.port, CONNECT) as peer:
                peer.flush()
                server.kill()
                peer.until_closed()
            server.start()
