"""A client that speaks raw packets: it acknowledges what it is told to, and no more."""

import itertools
import socket

from harness.peer import Closed, Peer
from harness.report import check, equal
from mqtt import packets
from mqtt.packets import (
    CONNACK, DISCONNECT, PINGRESP, PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, SUBACK, UNSUBACK, V5, Packet,
)

__all__ = ["Closed", "Device", "Unconnected", "fresh", "kept"]


class Unconnected(Peer):
    """A socket on which nothing was said."""

    def __init__(self, broker, version: int):
        super().__init__(broker.mqtt_port)
        self.version = version

    def packet(self) -> Packet:
        """The next packet."""
        first = self.take(1)[0]
        length = shift = 0
        while True:
            byte = self.take(1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        found = packets.parse(self.version, first, self.take(length))
        found.size = 1 + shift // 7 + length
        return found

    def expect(self, kind: int) -> Packet:
        found = self.packet()
        check(found.kind == kind, f"found {found}, wanted {packets.NAMES[kind]}")
        return found

    def until_end(self) -> list[Packet]:
        """Every packet up to the close by the server."""
        found = []
        try:
            while True:
                found.append(self.packet())
        except Closed:
            check(not self.buffer, f"part of a packet before the close: {bytes(self.buffer)!r}")
            return found

    def end_reason(self) -> int | None:
        """Reads up to the close; the reason of the DISCONNECT, or of a refusing CONNACK, before it."""
        all_ = self.until_end()
        for packet in all_[:-1]:
            check(packet.kind != DISCONNECT, f"{all_[-1]} behind a DISCONNECT")
        found = [packet for packet in all_ if packet.kind in (DISCONNECT, CONNACK)]
        if not found:
            return None
        if found[-1].kind == DISCONNECT:
            check(found[-1].property("session_expiry") is None, "a session expiry in a server's DISCONNECT")
        return found[-1].code

    def reset(self):
        """Ends without a word, as a crashed device does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()


class Device(Unconnected):
    """One that has been let in. Packet identifiers are its own to count."""

    def __init__(self, broker, version: int, client_id: str, **options):
        super().__init__(broker, version)
        self.ids = itertools.cycle(range(1, 65536))
        # Read while something else was waited for.
        self.waiting: list[Packet] = []
        self.client_id = client_id
        self.send(packets.connect(version, client_id, **options))
        self.connack = self.expect(CONNACK)
        equal(self.connack.code, 0, "the answer to CONNECT")

    def subscribe(self, *filters, **properties) -> list[int]:
        """Filters, or pairs of filter and options. Messages that come before the answer wait."""
        pairs = [pair if isinstance(pair, tuple) else (pair, 0) for pair in filters]
        number = next(self.ids)
        self.send(packets.subscribe(self.version, number, pairs, properties))
        found = self.answer_to(SUBACK, number)
        equal(len(found.codes), len(pairs), "codes of SUBACK")
        return found.codes

    def subscribed(self, *filters, **properties):
        """The same, and none may fail."""
        for code in self.subscribe(*filters, **properties):
            check(code < 0x80, f"a subscription failed with {code:#04x}")

    def unsubscribe(self, *filters) -> list[int]:
        number = next(self.ids)
        self.send(packets.unsubscribe(self.version, number, filters))
        return self.answer_to(UNSUBACK, number).codes

    def answer_to(self, kind: int, number: int) -> Packet:
        """That packet, whatever comes before it; the rest waits in its order."""
        for place, found in enumerate(self.waiting):
            if (found.kind, found.packet_id) == (kind, number):
                return self.waiting.pop(place)
        while True:
            found = super().packet()
            if (found.kind, found.packet_id) == (kind, number):
                return found
            check(found.kind != DISCONNECT, f"found {found}, wanted {packets.NAMES[kind]}")
            self.waiting.append(found)

    def packet(self) -> Packet:
        return self.waiting.pop(0) if self.waiting else super().packet()

    def publish(self, topic: str, payload: bytes = b"", qos=0, retain=False, **properties) -> int:
        """Publishes, and returns the reason when it is acknowledged as its QoS asks."""
        number = next(self.ids) if qos else 0
        self.send(
            packets.publish(
                self.version, topic, payload, qos=qos, packet_id=number, retain=retain, properties_=properties
            )
        )
        if qos == 0:
            return 0
        if qos == 1:
            return self.answer_to(PUBACK, number).code
        received = self.answer_to(PUBREC, number)
        if received.code >= 0x80:
            return received.code
        self.send(packets.answer(PUBREL, number))
        return self.answer_to(PUBCOMP, number).code

    def message(self, acknowledges=True) -> Packet:
        """The next message, acknowledged to the end unless told otherwise."""
        found = self.expect(PUBLISH)
        if acknowledges:
            self.acknowledge(found)
        return found

    def acknowledge(self, message: Packet):
        if message.qos == 1:
            self.send(packets.answer(PUBACK, message.packet_id))
        elif message.qos == 2:
            self.send(packets.answer(PUBREC, message.packet_id))
            self.answer_to(PUBREL, message.packet_id)
            self.send(packets.answer(PUBCOMP, message.packet_id))

    def payloads(self, count: int) -> list[bytes]:
        return [self.message().payload for _ in range(count)]

    def packet_or_none(self) -> Packet | None:
        """The next packet; None when the server closed instead."""
        try:
            return self.packet()
        except Closed:
            return None

    def ping(self):
        """A round trip, in which nothing else may come."""
        self.send(packets.PINGREQ_BYTES)
        self.expect(PINGRESP)

    def leave(self, reason: int | None = None, **properties):
        """Takes leave as one should, and waits for the server's end of it."""
        with_reason = self.version == V5 and (reason is not None or properties)
        self.send(packets.disconnect(reason or 0, properties) if with_reason else packets.DISCONNECT_BYTES)
        self.until_closed()
        self.close()


NUMBERS = itertools.count(1)


def fresh(prefix: str) -> str:
    """A name that no other case has."""
    return f"{prefix}{next(NUMBERS)}"


def kept(version: int, seconds: int = 3600) -> dict:
    """Options of a client whose session outlives its connection, and goes on if there is one."""
    return {"clean": False} | ({"properties_": {"session_expiry": seconds}} if version == V5 else {})
