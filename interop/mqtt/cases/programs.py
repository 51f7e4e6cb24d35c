"""Clients in other languages: MQTT.js and rumqttc. Each is a program with its own cases."""

import os
import subprocess

from harness.report import check
from mqtt.case import case, differs
from mqtt.secure import secured

MANY = differs(mosquitto="2.0.11 ends or stalls with hundreds of messages of QoS 2 of one client under way")
GROUP = "programs"

INTEROP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SECONDS_MAX = 300


def play(broker, folder: str, *command: str, **environment: str):
    """Runs a program and prints its output. Fails if one of its cases failed, or if its last line is missing."""
    done = subprocess.run(
        command, cwd=os.path.join(INTEROP, folder), env=broker.environment() | environment, capture_output=True, text=True,
        timeout=SECONDS_MAX,
    )
    lines = done.stdout.splitlines()
    for line in lines:
        print(f"      {line}", flush=True)
    failed = [line for line in lines if line.startswith("FAIL")]
    check(not failed, f"{len(failed)} failed: {failed[:3]}")
    ended = lines and lines[-1].startswith("end ") and not lines[-1].startswith("end   MQTT.js: 0 ")
    check(ended and done.returncode == 0, f"it ended early: {done.stderr[-500:]}")


@case(GROUP, differs=MANY)
def mqtt_js(broker):
    play(broker, "javascript", "node", "mqtt.mjs")


@case(GROUP, nats=True)
def mqtt_js_within_tls(broker):
    """Runs all cases of MQTT.js with `mqtts` and `wss`."""
    own, pem = secured(broker.kind)
    with own:
        play(
            own, "javascript", "node", "mqtt.mjs", NODE_EXTRA_CA_CERTS=pem,
            MQTT_URL=f"mqtts://localhost:{own.mqtt_port}",
            MQTT_WEBSOCKET=f"wss://localhost:{own.websocket_port}{own.kind.websocket_path}",
        )


@case(GROUP, differs=MANY)
def rumqttc(broker):
    play(broker, "rust", os.path.join("target", "debug", "fanline-interop"), "mqtt")
