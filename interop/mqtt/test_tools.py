"""mosquitto_pub, mosquitto_sub, and mosquitto_rr, which many scripts use."""

import signal
import subprocess
import tempfile
import threading

from harness.checks import check, equal
from mqtt.case import BOTH, case, differs
from mqtt.device import Device, fresh
from mqtt.packets import V5

GROUP = "mosquitto's tools"

SECONDS_MAX = 30
VERSIONS = {4: "mqttv311", 5: "mqttv5"}


def command(tool: str, broker, version: int, *arguments: str) -> list[str]:
    return [tool, "-h", "127.0.0.1", "-p", str(broker.mqtt_port), "-V", VERSIONS[version], *arguments]


def publish(broker, version, *arguments: str, data: bytes = b""):
    tool = command("mosquitto_pub", broker, version, "-d", *arguments)
    with subprocess.Popen(tool, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            output, _ = process.communicate(data, SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
    ended = process.returncode == 0 or missed_its_end(output.decode(), data)
    check(ended, f"mosquitto_pub ended with {process.returncode}: {output[-1000:].decode()}")


def missed_its_end(output: str, lines: bytes) -> bool:
    """Returns whether the tool sent all lines with QoS 0 but no DISCONNECT, so that it waits for ever. One of its threads
    reads the end of the lines while the other one sends the last line, and each may miss what the other has noted."""
    count = lines.count(b"\n")
    return f"sending PUBLISH (d0, q0, r0, m{count}," in output and "sending DISCONNECT" not in output


class Subscriber:
    """A mosquitto_sub that has subscribed. Its output has one line per message."""

    def __init__(self, broker, version, *arguments: str):
        self.process = subprocess.Popen(
            # With -d the tool also reports when it has subscribed, so lines of messages begin with a mark.
            # Without stdbuf its output would be buffered.
            ["stdbuf", "-oL"]
            + command("mosquitto_sub", broker, version, "-d", "-F", "message %t %q %r %p", *arguments),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self.guard = threading.Timer(SECONDS_MAX, self.process.kill)
        self.guard.start()
        self.wait_for(b"Subscribed (mid")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.guard.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def wait_for(self, text: bytes) -> bytes:
        for line in self.process.stdout:
            if text in line:
                return line
        raise AssertionError(f"mosquitto_sub ended before {text}")

    def messages(self, count: int) -> list[str]:
        return [self.wait_for(b"message ").decode().split("message ", 1)[1].rstrip("\n") for _ in range(count)]


@case(GROUP, *BOTH)
def test_publish_and_subscribe(broker, version):
    topic = fresh("tool")
    with Subscriber(broker, version, "-t", topic + "/#", "-q", "2") as subscriber:
        for qos in range(3):
            publish(broker, version, "-t", f"{topic}/a", "-q", str(qos), "-m", f"with {qos}")
        wanted = [f"{topic}/a {qos} 0 with {qos}" for qos in range(3)]
        equal(sorted(subscriber.messages(3)), wanted, "messages")


@case(GROUP, *BOTH, differs=differs(mosquitto="ends its own tool in 5.0"))
def test_many_lines(broker, version):
    topic = fresh("tool")
    lines = b"".join(b"line %d\n" % number for number in range(500))
    for qos in range(3):
        with Subscriber(broker, version, "-t", topic, "-q", "2") as subscriber:
            publish(broker, version, "-t", topic, "-q", str(qos), "-l", data=lines)
            equal(subscriber.messages(500), [f"{topic} {qos} 0 line {number}" for number in range(500)], f"QoS {qos}")


@case(GROUP, *BOTH)
def test_files_and_retained_messages(broker, version):
    topic = fresh("tool")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * 200_000)
        file.flush()
        publish(broker, version, "-t", topic, "-q", "1", "-r", "-f", file.name)
    with Subscriber(broker, version, "-t", topic, "-q", "1") as subscriber:
        equal(subscriber.messages(1), [f"{topic} 1 1 " + "x" * 200_000], "retained")
    publish(broker, version, "-t", topic, "-q", "1", "-r", "-n")
    with Subscriber(broker, version, "-t", topic, "-q", "1") as subscriber:
        publish(broker, version, "-t", topic, "-q", "1", "-m", "next")
        equal(subscriber.messages(1), [f"{topic} 1 0 next"], "the first message")


@case(GROUP, *BOTH)
def test_wills(broker, version):
    topic = fresh("tool")
    will = ("--will-topic", topic, "--will-payload", "gone", "--will-qos", "1")
    with Subscriber(broker, version, "-t", topic, "-q", "1") as watcher:
        with Subscriber(broker, version, "-t", fresh("tool"), *will) as gone:
            gone.process.send_signal(signal.SIGKILL)
            equal(watcher.messages(1), [f"{topic} 1 0 gone"], "the will")
        with Subscriber(broker, version, "-t", fresh("tool"), *will) as leaves:
            # On SIGTERM the tool disconnects; in 5.0 with the reason 0x04, which requests the will.
            leaves.process.send_signal(signal.SIGTERM)
            leaves.process.wait(SECONDS_MAX)
        if version == V5:
            equal(watcher.messages(1), [f"{topic} 1 0 gone"], "the will of one who asked for it")
        publish(broker, version, "-t", topic, "-q", "1", "-m", "next")
        equal(watcher.messages(1), [f"{topic} 1 0 next"], "where no will is due")


@case(GROUP, *BOTH)
def test_sessions(broker, version):
    topic, client_id = fresh("tool"), fresh("tool")
    kept = ["-c", "-i", client_id, "-t", topic, "-q", "1"] + (["-x", "3600"] if version == V5 else [])
    once = subprocess.run(command("mosquitto_sub", broker, version, *kept, "-E"), timeout=SECONDS_MAX)
    equal(once.returncode, 0, "mosquitto_sub -E")
    for number in range(10):
        publish(broker, version, "-t", topic, "-q", "1", "-m", str(number))
    done = subprocess.run(
        command("mosquitto_sub", broker, version, *kept, "-C", "10"), capture_output=True, timeout=SECONDS_MAX
    )
    equal(done.stdout.split(), [b"%d" % number for number in range(10)], "messages")


@case(GROUP, V5)
def test_properties(broker, version):
    topic = fresh("tool")
    with Device(broker, version, fresh("c")) as device:
        device.subscribed((topic, 1))
        publish(
            broker, version, "-t", topic, "-q", "1", "-m", "x", "-D", "publish", "user-property", "a", "1",
            "-D", "publish", "content-type", "text/plain", "-D", "publish", "user-property", "b", "2",
        )
        found = device.message()
        wanted = [("a", "1"), ("b", "2")], "text/plain"
        equal((found.all("user"), found.property("content_type")), wanted, "properties")


@case(GROUP, V5)
def test_requests(broker, version):
    """mosquitto_rr sends a request and prints the response."""
    topic = fresh("tool")
    with Device(broker, version, fresh("c")) as device:
        device.subscribed((topic, 1))
        asking = subprocess.Popen(
            command("mosquitto_rr", broker, version, "-t", topic, "-e", topic + "/answer", "-m", "question", "-q", "1"),
            stdout=subprocess.PIPE,
        )
        found = device.message()
        correlation = {"correlation_data": found.property("correlation_data")} if found.property("correlation_data") else {}
        device.publish(found.property("response_topic"), b"answer to " + found.payload, qos=1, **correlation)
        out, _ = asking.communicate(timeout=SECONDS_MAX)
        equal(out.strip(), b"answer to question", "what it prints")
