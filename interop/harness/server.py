"""The server programs, and one server process on the loopback interface."""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 20


# Lanes of CI and processes of pytest-xdist have ports of their own: a case may start a server long after it has chosen
# its port.
LANE, LANES = map(int, os.environ.get("LANE", "0/1").split("/"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) * LANES
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) * LANES + LANE
PORTS = range(12_000 + 19_000 * WORKER // WORKERS, 12_000 + 19_000 * (WORKER + 1) // WORKERS)
# The last port returned. Each process starts at a random port, so two processes rarely choose the same.
last_port = random.choice(PORTS)


def server_under_test() -> str:
    binary = os.environ.get("SERVER")
    if not binary:
        here = os.path.dirname(os.path.abspath(__file__))
        binary = os.path.join(here, "..", "..", "target", "release", "fanline")
    if not os.access(binary, os.X_OK):
        sys.exit(f"no server to test at {binary}: build it or set SERVER")
    return os.path.abspath(binary)


def reference_server() -> str:
    binary = os.environ.get("NATS_SERVER", "")
    if not os.access(binary, os.X_OK):
        sys.exit("NATS_SERVER must name a nats-server binary")
    return os.path.abspath(binary)


def is_reference() -> bool:
    """Returns whether the server under test is nats-server itself, to check the tests."""
    reference = os.environ.get("NATS_SERVER", "")
    return os.path.exists(reference) and os.path.samefile(reference, server_under_test())


def port_free() -> int:
    """Returns a port without a listener. It is different at each call, because the caller may listen only after
    it has requested further ports.

    The port is below the range that the kernel uses for outgoing connections. When a server is killed and
    restarted on its port, no client can have taken this port.
    """
    global last_port
    for _ in PORTS:
        last_port = last_port + 1 if last_port + 1 in PORTS else PORTS.start
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", last_port))
            except OSError:
                continue
            return last_port
    raise RuntimeError("no free port")


def compiled(source: str, folder: str) -> str:
    """Compiles a C file into a library that servers can preload. Returns its path."""
    library = os.path.join(folder, f"{os.path.basename(source).removesuffix('.c')}.so")
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", library, source, "-ldl"], check=True)
    return library


class Server:
    """A server process with nats-server's flags."""

    def __init__(self, binary: str, *flags: str, port: int | None = None, environment: dict[str, str] | None = None):
        """`environment` is added to the environment of this process."""
        self.binary = binary
        self.environment = os.environ | (environment or {})
        self.port = port or port_free()
        self.flags = flags
        self.process: subprocess.Popen | None = None
        self.log = tempfile.TemporaryFile()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self.log.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self):
        command = [self.binary, "-a", "127.0.0.1", "-p", str(self.port), *self.flags]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.environment
        )
        wait_until_listening(self.port, self.process, self.output)

    def output(self) -> str:
        # A seek would change the position at which the process writes, so this reads with pread.
        number = self.log.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode(errors="replace")

    def signal(self, number: int):
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(STOP_SECONDS_MAX)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def rss_bytes(self) -> int:
        with open(f"/proc/{self.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_until_listening(port: int, process: subprocess.Popen, output):
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"server ended with {process.returncode}: {output()}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    process.kill()
    raise RuntimeError(f"server does not listen on {port}: {output()}")
