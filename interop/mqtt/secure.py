"""A server with TLS for MQTT, over TCP and over WebSocket."""

import os
import subprocess

from mqtt.brokers import Broker, Kind


def secured(kind: Kind) -> tuple[Broker, str]:
    """Returns a server that is not started yet, and the certificate that clients must trust."""
    own = Broker(kind)
    pem, key = certificate(own.folder.name)
    with open(own.config, encoding="utf-8") as file:
        text = file.read()
    tls = f'tls {{ cert_file: "{pem}", key_file: "{key}", timeout: 10 }}'
    with open(own.config, "w", encoding="utf-8") as file:
        file.write(text.replace("mqtt {", f"mqtt {{ {tls},").replace("no_tls: true", tls))
    return own, pem


def certificate(folder: str) -> tuple[str, str]:
    """Creates a self-signed certificate. Returns its file and that of its key."""
    files = os.path.join(folder, "server.pem"), os.path.join(folder, "server.key")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "30", "-subj", "/CN=server", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", files[1], "-out", files[0]]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return files
