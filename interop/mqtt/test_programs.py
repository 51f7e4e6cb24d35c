"""Clients in other languages: MQTT.js and rumqttc. Each is a program with its own cases."""

import os
import re
import subprocess

from harness.checks import check
from mqtt.case import case, differs
from mqtt.secure import secured

MANY = differs(mosquitto="2.0.11 ends or stalls with hundreds of messages of QoS 2 of one client under way")
GROUP = "programs"

INTEROP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SECONDS_MAX = 300
NODE = ("node", "--test", "--test-force-exit", "--test-reporter=tap")
# The last lines of both programs.
PASSED = re.compile(r"^# pass [1-9]|^end .*: [1-9]\d* passed, 0 failed$", re.MULTILINE)


def play(broker, folder: str, *command: str, **environment: str):
    """Runs a program. Fails if one of its cases failed, or if there was none."""
    done = subprocess.run(
        command, cwd=os.path.join(INTEROP, folder), env=broker.environment() | environment, capture_output=True, text=True,
        timeout=SECONDS_MAX,
    )
    print(done.stdout, done.stderr)
    check(done.returncode == 0, f"it ended with {done.returncode}")
    check(PASSED.search(done.stdout), "it ran no case")


@case(GROUP, differs=MANY)
def test_mqtt_js(broker):
    play(broker, "javascript", *NODE, "mqtt.mjs")


@case(GROUP, nats=True)
def test_mqtt_js_within_tls(broker):
    """Runs all cases of MQTT.js with `mqtts` and `wss`."""
    own, pem = secured(broker.kind)
    with own:
        play(
            own, "javascript", *NODE, "mqtt.mjs", NODE_EXTRA_CA_CERTS=pem,
            MQTT_URL=f"mqtts://localhost:{own.mqtt_port}",
            MQTT_WEBSOCKET=f"wss://localhost:{own.websocket_port}{own.kind.websocket_path}",
        )


@case(GROUP, differs=MANY)
def test_rumqttc(broker):
    play(broker, "rust", os.path.join("target", "debug", "fanline-interop"), "mqtt")
