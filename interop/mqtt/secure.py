"""A server with TLS for MQTT, over TCP and over WebSocket."""

from harness.certificates import self_signed
from mqtt.brokers import Broker, Kind


def secured(kind: Kind) -> tuple[Broker, str]:
    """Returns a server that is not started yet, and the certificate that clients must trust."""
    own = Broker(kind)
    pem, key = self_signed(own.folder.name, "server")
    with open(own.config, encoding="utf-8") as file:
        text = file.read()
    tls = f'tls {{ cert_file: "{pem}", key_file: "{key}", timeout: 10 }}'
    with open(own.config, "w", encoding="utf-8") as file:
        file.write(text.replace("mqtt {", f"mqtt {{ {tls},").replace("no_tls: true", tls))
    return own, pem
