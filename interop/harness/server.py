"""Starting, restarting and ending one server process on the loopback interface."""

import os
import random
import signal
import socket
import subprocess
import tempfile
import time

START_SECONDS_MAX = 20
STOP_SECONDS_MAX = 20


PORTS = range(12_000, 31_000)
# Where the last one was. Each process begins somewhere else, so that two at once rarely meet.
last_port = random.choice(PORTS)


def port_free() -> int:
    """A port that nobody listens on, and that nobody here was given lately: what it is for may listen
    only after the next one was asked for.

    Taken from below the range that the kernel gives to outgoing connections, so that a server which
    is killed and restarted on its port cannot find a client sitting there.
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


class Server:
    """One process that takes nats-server's flags."""

    def __init__(self, binary: str, *flags: str, port: int | None = None, environment: dict[str, str] | None = None):
        """`environment` is added to that of this process."""
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
        # The process writes where a seek of ours would leave the file.
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
