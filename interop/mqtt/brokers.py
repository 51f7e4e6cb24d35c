"""The server under test and the references: how to start each of them, and its capabilities."""

import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass

from harness.server import Server, is_reference, port_free, reference_server, server_under_test, wait_until_listening
from mqtt.packets import V4, V5

FANLINE = "fanline"
NATS = "nats-server"
MOSQUITTO = "mosquitto"


@dataclass(frozen=True)
class Kind:
    """A server program."""

    name: str
    binary: str
    versions: tuple[int, ...]
    # Whether NATS clients can connect.
    nats: bool
    # Whether acknowledged messages survive SIGKILL.
    durable: bool
    websocket_path: str


def kinds() -> tuple[Kind, list[Kind]]:
    """Returns the program under test, and the references."""
    nats = Kind(NATS, reference_server(), (V4,), nats=True, durable=True, websocket_path="/mqtt")
    mosquitto = Kind(MOSQUITTO, mosquitto_binary(), (V4, V5), nats=False, durable=False, websocket_path="/mqtt")
    match os.environ.get("AGAINST"):
        case "mosquitto":
            return mosquitto, []
        case _ if is_reference():
            return nats, []
    binary = server_under_test()
    return Kind(FANLINE, binary, (V4, V5), nats=True, durable=True, websocket_path="/mqtt"), [nats, mosquitto]


def mosquitto_binary() -> str:
    # Debian installs it to a folder that is not in the path of users.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    binary = shutil.which("mosquitto", path=path)
    if not binary:
        raise SystemExit("mosquitto is not there: apt-get install mosquitto mosquitto-clients")
    return binary


class Broker:
    """A server process with a temporary folder, which survives restarts of the process."""

    def __init__(self, kind: Kind, more: str = "", mqtt: str = ""):
        """`more` is added to the configuration of servers with NATS, `mqtt` to its `mqtt` block."""
        self.kind = kind
        self.folder = tempfile.TemporaryDirectory(prefix="interop-mqtt-")
        self.port, self.mqtt_port, self.websocket_port = port_free(), port_free(), port_free()
        self.config = os.path.join(self.folder.name, "server.conf")
        text = self.mosquitto_config() if kind.name == MOSQUITTO else self.nats_config(more, mqtt)
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)
        self.server: Server | Mosquitto | None = None

    def __enter__(self) -> "Broker":
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()

    def nats_config(self, more: str, mqtt: str) -> str:
        return f"""
server_name: interop
jetstream {{ store_dir: "{self.folder.name}/store" }}
mqtt {{ listen: "127.0.0.1:{self.mqtt_port}", {mqtt} }}
websocket {{ listen: "127.0.0.1:{self.websocket_port}", no_tls: true }}
{more}
"""

    def mosquitto_config(self) -> str:
        return f"""
user root
allow_anonymous true
persistence true
persistence_location {self.folder.name}/
max_queued_messages 0
set_tcp_nodelay true
listener {self.mqtt_port} 127.0.0.1
listener {self.websocket_port} 127.0.0.1
protocol websockets
"""

    def start(self):
        if self.kind.name == MOSQUITTO:
            self.server = Mosquitto(self.kind.binary, self.config, self.mqtt_port)
        else:
            self.server = Server(self.kind.binary, "-c", self.config, port=self.port)
        self.server.start()
        wait_until_listening(self.mqtt_port, self.server.process, self.server.output)

    def kill(self):
        if self.server is not None:
            self.server.kill()
            self.server = None

    def restart_after_kill(self):
        """Kills the server and starts it, as after a crash."""
        self.kill()
        self.start()

    def restart(self):
        """Stops the server with SIGTERM and starts it, as for an upgrade."""
        self.server.signal(signal.SIGTERM)
        self.server.wait()
        self.start()

    def is_alive(self) -> bool:
        return self.server.process.poll() is None

    def environment(self) -> dict[str, str]:
        """Returns the environment for test programs in other languages."""
        return os.environ | {
            "MQTT_PORT": str(self.mqtt_port),
            "MQTT_WEBSOCKET": f"ws://127.0.0.1:{self.websocket_port}{self.kind.websocket_path}",
            "MQTT_VERSIONS": " ".join(map(str, self.kind.versions)),
            "MQTT_BROKER": self.kind.name,
        }


class Mosquitto(Server):
    """A server process with mosquitto's flags."""

    def __init__(self, binary: str, config: str, port: int):
        super().__init__(binary, "-c", config, port=port)

    def start(self):
        command = [self.binary, *self.flags]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_until_listening(self.port, self.process, self.output)
