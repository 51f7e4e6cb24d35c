"""Containers on hosts of a network: each has its own addresses, ports, and files, as a pod of Kubernetes."""

import json
import os
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from config import helm
from harness.checks import until
from harness.client import Client
from harness.network import Host

# The folders of this machine that a container sees. On merged systems some of them are links into `/usr`.
FOLDERS = ["usr", "bin", "sbin", "lib", "lib64", "dev", "proc"]
PROGRAM = "/opt/nats/nats-server"
STOP_SECONDS_MAX = 60
# Its mounts end with it, because they are in a namespace of its own.
SCRIPT = """
set -e
root=$1 binary=$2; shift 2
for folder in %s; do
    if [ -d "$root/$folder" ] && [ ! -h "$root/$folder" ]; then mount --rbind "/$folder" "$root/$folder"; fi
done
mount --bind "$binary" "$root%s"
exec chroot "$root" "$@"
""" % (" ".join(FOLDERS), PROGRAM)


class Pod:
    """A container that runs a server, which takes the program's name `nats-server`."""

    def __init__(self, folder: str, host: Host, binary: str, environment: dict[str, str]):
        self.host, self.name, self.binary = host, host.name, binary
        self.environment = environment | {"PATH": f"{os.path.dirname(PROGRAM)}:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.root = os.path.join(folder, self.name)
        self.process: subprocess.Popen | None = None
        self.output = tempfile.TemporaryFile()
        for name in (name for name in FOLDERS if os.path.exists(f"/{name}")):
            link = os.path.islink(f"/{name}") and os.readlink(f"/{name}")
            path = os.path.join(self.root, name)
            os.symlink(link, path) if link else os.makedirs(path)
        for name in ("data", "tmp"):
            os.makedirs(os.path.join(self.root, name))
        self.write(PROGRAM, "")
        self.write(helm.PID_FILE, "")
        os.remove(self.root + helm.PID_FILE)

    def write(self, path: str, text: str):
        """Writes a file of the container."""
        path = self.root + path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def command(self, *command: str) -> list[str]:
        """Returns a command that runs a command in the container."""
        mounted = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh", self.root, self.binary]
        return self.host.command(*mounted, *command)

    def run(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.command(*command), env=self.environment, capture_output=True, text=True, timeout=STOP_SECONDS_MAX
        )

    def start(self, *command: str):
        # All programs on the way to the server replace each other, so the process is the server.
        self.process = subprocess.Popen(
            self.command(*command), env=self.environment, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output
        )

    def wait(self) -> int:
        return self.process.wait(STOP_SECONDS_MAX)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self.output.close()

    def log(self) -> str:
        number = self.output.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode(errors="replace")

    def get(self, page: str) -> tuple[int, bytes]:
        """Returns the status and the body of a page; status 0 if the server does not listen."""
        with self.host.entered():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{helm.HTTP_PORT}/{page}", timeout=10) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                return error.code, error.read()
            except OSError:
                return 0, b""

    def monitor(self, page: str) -> dict:
        return json.loads(self.get(page)[1])

    def until_ok(self, page: str):
        """Waits until a probe of Kubernetes succeeds."""
        until(lambda: self.get(page)[0] == 200, lambda: f"{page} of {self.name}: {self.get(page)} {self.log()}", 60)

    def client(self) -> Client:
        with self.host.entered():
            return Client(helm.PORT)
