"""MQTT at QoS 1: a publisher, and a subscriber whose session outlives its connection.

QoS 1 permits that a message arrives twice. Every message must arrive at least once, and not before the previous one.
"""

import asyncio
import contextlib

from paho.mqtt.client import CallbackAPIVersion, Client

from soak.stage import Arrivals, Stage, Violation, numbers, payload

TOPIC = "soak/mqtt"
BATCH = 50
PAUSE_SECONDS = 0.02


@contextlib.contextmanager
def connected(stage: Stage, client_id: str, is_clean: bool):
    """Connects a device. Returns it with its events: pairs of a kind and a value."""
    events, loop = Arrivals(), asyncio.get_running_loop()

    def event(kind: str, value):
        loop.call_soon_threadsafe(events.queue.put_nowait, (kind, value))

    # Without manual acknowledgements, a message that a restart leaves in `events` would be acknowledged, and lost.
    device = Client(
        CallbackAPIVersion.VERSION2, client_id, clean_session=is_clean, reconnect_on_failure=False, manual_ack=True
    )
    device.max_inflight_messages_set(BATCH)
    device.on_connect = lambda _client, _data, _flags, reason, _properties: event("CONNACK", reason.value)
    device.on_subscribe = lambda _client, _data, _id, reasons, _properties: event("SUBACK", reasons[0].value)
    device.on_publish = lambda _client, _data, id_, _reason, _properties: event("PUBACK", id_)
    device.on_message = lambda _client, _data, message: event("PUBLISH", message)
    device.on_disconnect = lambda _client, _data, _flags, reason, _properties: event("closed", reason)
    device.connect("127.0.0.1", stage.mqtt_port)
    device.loop_start()
    try:
        yield device, events
    finally:
        device.disconnect()
        device.loop_stop()


class Devices:
    def __init__(self, stage: Stage):
        self.stage = stage
        # Messages are numbered from 1.
        self.acknowledged = self.received = 0

    async def play(self):
        with (
            connected(self.stage, "soak-subscriber", False) as subscriber,
            connected(self.stage, "soak-publisher", True) as publisher,
        ):
            await self.expect(*subscriber, "CONNACK", 0)
            subscriber[0].subscribe(TOPIC, 1)
            await self.expect(*subscriber, "SUBACK", 1)
            await self.expect(*publisher, "CONNACK", 0)
            while not self.stage.is_ending.is_set():
                batch = range(self.acknowledged + 1, self.acknowledged + BATCH + 1)
                ids = [publisher[0].publish(TOPIC, payload(0, number), qos=1).mid for number in batch]
                for number, id_ in zip(batch, ids):
                    await self.expect(*publisher, "PUBACK", id_)
                    self.acknowledged = number
                while self.received < self.acknowledged:
                    await self.expect(*subscriber, "PUBLISH")
                await asyncio.sleep(PAUSE_SECONDS)

    async def expect(self, device: Client, events: Arrivals, wanted: str, value=None):
        """Takes the next event. Messages of the session may arrive before a SUBACK."""
        what = f"message {self.received + 1}" if wanted == "PUBLISH" else wanted
        while True:
            kind, found = await events.next(lambda: what)
            if kind == "PUBLISH":
                self.take(found.payload)
                device.ack(found.mid, found.qos)
            if kind == wanted and value in (None, found):
                return
            if kind != "PUBLISH":
                error = Violation if kind == wanted == "PUBACK" else AssertionError
                raise error(f"{kind} {found} instead of {wanted} {value}")

    def take(self, data: bytes):
        match numbers(data):
            case (0, number) if number <= self.received:
                self.stage.add("mqtt_repeated")
            case (0, number) if number == self.received + 1:
                self.received = number
                self.stage.add("mqtt")
            case found:
                raise Violation(f"message {found} arrived after {self.received}")


def run(stage: Stage):
    asyncio.run(stage.keep_all([stage.keep("mqtt", Devices(stage).play)]))
