"""Hosts of a small network on this machine: network namespaces that are joined by a switch. Needs root, on Linux.

Each host has an address of its own, so servers on different hosts may use the same ports. No packet of these hosts
leaves the machine, because the switch is in a namespace, too. A namespace ends with the process that holds it, and the
latter with the test's process.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator

CLONE_NEWNET = 0x40000000
# Addresses that are reserved for examples.
ADDRESS_OF_FIRST = "192.0.2.1"
PREFIX_LENGTH = 24
NOWHERE = "02:00:00:00:00:01"

is_available = os.name == "posix" and os.geteuid() == 0 and all(map(shutil.which, ("ip", "unshare", "nsenter", "tc")))
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace."""

    def __init__(self):
        # It ends when its input does.
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.holder.stdout.readline()
        self.path = f"/proc/{self.holder.pid}/ns/net"
        self.ip("link", "set", "lo", "up")

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()

    def command(self, *command: str) -> list[str]:
        """Returns a command that runs a command in this namespace."""
        return ["nsenter", f"--net={self.path}", *command]

    def run(self, *command: str):
        done = subprocess.run(self.command(*command), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")

    def ip(self, *arguments: str):
        self.run("ip", *arguments)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Within this context, sockets that this thread creates belong to this namespace."""
        with open("/proc/thread-self/ns/net") as before, open(self.path) as inside:
            _enter(inside.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())


def _enter(namespace: int):
    if _libc.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class Host(Namespace):
    """A host with one interface, `eth0`."""

    def __init__(self, switch: Namespace, name: str, address: str):
        super().__init__()
        self.name, self.address, self.switch = name, address, switch
        switch.ip("link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        switch.ip("link", "set", "dev", name, "master", "switch", "up")
        self.ip("address", "add", f"{address}/{PREFIX_LENGTH}", "dev", "eth0")
        self.ip("link", "set", "eth0", "up")

    def cut(self):
        """Loses all packets from and to this host."""
        self.switch.ip("link", "set", "dev", self.name, "nomaster")

    def restore(self):
        self.switch.ip("link", "set", "dev", self.name, "master", "switch")

    def lose(self, other: "Host"):
        """Loses the packets from this host to another one, but not those in the other direction."""
        # They are sent to an interface that does not exist.
        self.ip("neigh", "replace", other.address, "lladdr", NOWHERE, "nud", "permanent", "dev", "eth0")

    def find(self, other: "Host"):
        """Ends the effect of `lose`."""
        self.ip("neigh", "delete", other.address, "dev", "eth0")

    def slow(self, rate: str):
        """Limits what this host sends, for example to `1mbit` in a second."""
        self.run("tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "16kb", "latency", "1s")

    def fast(self):
        """Ends the effect of `slow`."""
        self.run("tc", "qdisc", "delete", "dev", "eth0", "root")


class Network(contextlib.ExitStack):
    """A switch and its hosts, which are removed at the end."""

    def __init__(self):
        super().__init__()
        self.hosts: list[Host] = []
        self.switch = Namespace()
        self.callback(self.switch.close)
        self.switch.ip("link", "add", "switch", "type", "bridge")
        self.switch.ip("link", "set", "switch", "up")

    def host(self, name: str) -> Host:
        network, first = ADDRESS_OF_FIRST.rsplit(".", 1)
        host = Host(self.switch, name, f"{network}.{int(first) + len(self.hosts)}")
        self.callback(host.close)
        self.hosts.append(host)
        return host
