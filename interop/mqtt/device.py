"""A client that sends raw packets. It acknowledges messages only on request."""

import itertools
import socket

from harness.checks import check, equal
from harness.peer import Closed, Peer
from mqtt import packets
from mqtt.packets import (
    CONNACK, DISCONNECT, PINGRESP, PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, SUBACK, UNSUBACK, V5, Packet,
)

__all__ = ["Closed", "Device", "Unconnected", "fresh", "kept", "two_seconds_pass"]


class Unconnected(Peer):
    """A connection without CONNECT."""

    def __init__(self, broker, version: int):
        super().__init__(broker.mqtt_port)
        self.version = version

    def packet(self) -> Packet:
        """Reads the next packet."""
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
        """Returns all packets up to the server's close."""
        found = []
        try:
            while True:
                found.append(self.packet())
        except Closed:
            check(not self.buffer, f"part of a packet before the close: {bytes(self.buffer)!r}")
            return found

    def end_reason(self) -> int | None:
        """Reads up to the close. Returns the reason of the last DISCONNECT, or the code of a CONNACK that
        refuses."""
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
        """Closes the connection by a reset, like a crashed device."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()


class Device(Unconnected):
    """A connected client. It counts its own packet identifiers."""

    def __init__(self, broker, version: int, client_id: str, **options):
        super().__init__(broker, version)
        self.ids = itertools.cycle(range(1, 65536))
        # Packets that were read while another one was awaited.
        self.waiting: list[Packet] = []
        self.client_id = client_id
        self.send(packets.connect(version, client_id, **options))
        self.connack = self.expect(CONNACK)
        equal(self.connack.code, 0, "the answer to CONNECT")

    def subscribe(self, *filters, **properties) -> list[int]:
        """Subscribes to filters, or to pairs of filter and options. Messages that arrive before the SUBACK are
        stored."""
        pairs = [pair if isinstance(pair, tuple) else (pair, 0) for pair in filters]
        number = next(self.ids)
        self.send(packets.subscribe(self.version, number, pairs, properties))
        found = self.answer_to(SUBACK, number)
        equal(len(found.codes), len(pairs), "codes of SUBACK")
        return found.codes

    def subscribed(self, *filters, **properties):
        """Subscribes like `subscribe`, and fails if a filter fails."""
        for code in self.subscribe(*filters, **properties):
            check(code < 0x80, f"a subscription failed with {code:#04x}")

    def unsubscribe(self, *filters) -> list[int]:
        number = next(self.ids)
        self.send(packets.unsubscribe(self.version, number, filters))
        return self.answer_to(UNSUBACK, number).codes

    def answer_to(self, kind: int, number: int) -> Packet:
        """Waits for the acknowledgement of a packet. Other packets are stored in their order."""
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
        """Publishes a message and completes the handshake of its QoS. Returns the reason."""
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

    def publish_numbers(self, topic: str, count: int, *levels: int):
        """Publishes the numbers below `count`, with the levels of QoS in turn."""
        for number, qos in zip(range(count), itertools.cycle(levels)):
            self.publish(topic, b"%d" % number, qos=qos)

    def message(self, acknowledges=True) -> Packet:
        """Returns the next message. By default, completes its acknowledgement."""
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
        """Returns the next packet, or None if the server closed the connection."""
        try:
            return self.packet()
        except Closed:
            return None

    def ping(self):
        """Sends PINGREQ. No packet may arrive before PINGRESP."""
        self.send(packets.PINGREQ_BYTES)
        self.expect(PINGRESP)

    def leave(self, reason: int | None = None, **properties):
        """Sends DISCONNECT, and waits until the server closes the connection."""
        with_reason = self.version == V5 and (reason is not None or properties)
        self.send(packets.disconnect(reason or 0, properties) if with_reason else packets.DISCONNECT_BYTES)
        self.until_closed()
        self.close()


NUMBERS = itertools.count(1)


def fresh(prefix: str) -> str:
    """Returns a name that no other case uses."""
    return f"{prefix}{next(NUMBERS)}"


def kept(version: int, seconds: int = 3600) -> dict:
    """Returns options of a client with a persistent session, which it resumes if it exists."""
    return {"clean": False} | ({"properties_": {"session_expiry": seconds}} if version == V5 else {})


def two_seconds_pass(broker, version: int):
    """Waits until the server closes a connection for its keep-alive of two seconds."""
    with Device(broker, version, fresh("c"), keep_alive=2) as device:
        device.until_end()
