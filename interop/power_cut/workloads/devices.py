"""MQTT: messages for sessions, handshakes of QoS 2, and retained messages."""

import asyncio
import itertools
import time
from collections import Counter

from mqtt import packets
from mqtt.device import Closed, Device
from mqtt.packets import PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, V4, Packet

from power_cut.clients import Place, payload
from power_cut.ledger import Broken, Ledger, Op, check
from power_cut.workloads import Workload, workload
from power_cut.workloads.lifecycle import last, possible

# A guard against hanging, not an expected time.
SECONDS_MAX = 15
LAST = b"the last one"


def connected(place: Place, client_id: str, clean=False) -> Device:
    return Device(place, V4, client_id, clean=clean)


def send_publish(device: Device, topic: str, data: bytes, qos: int, number: int, retain=False, dup=False):
    device.send(packets.publish(V4, topic, data, qos=qos, packet_id=number, retain=retain, dup=dup))


class Devices(Workload):
    """A workload of MQTT clients. Each task runs on a thread until the server is gone."""

    async def run(self, place: Place, ledger: Ledger):
        await asyncio.to_thread(self.prepare, place, ledger)
        calls = [asyncio.to_thread(self.until_closed, task, place, ledger) for task in self.tasks()]
        threads = [asyncio.create_task(call) for call in calls]
        try:
            await asyncio.gather(*(asyncio.shield(thread) for thread in threads))
        finally:
            # A thread cannot be canceled. It writes to the ledger until its connection ends.
            await asyncio.wait(threads, timeout=SECONDS_MAX)

    def until_closed(self, task, place: Place, ledger: Ledger):
        try:
            task(place, ledger)
        except (Closed, OSError):
            pass

    def prepare(self, place: Place, ledger: Ledger):
        pass

    def tasks(self) -> list:
        raise NotImplementedError

    async def check(self, place: Place, ops: list[Op]):
        await asyncio.to_thread(self.check_all, place, ops)

    def check_all(self, place: Place, ops: list[Op]):
        raise NotImplementedError

    def publish_windows(self, place: Place, ledger: Ledger, topic, retain=False, empty=0.0):
        """Publishes with QoS 1, up to 20 in flight."""
        with connected(place, f"{self.name}-publisher", clean=True) as device:
            while True:
                sent: dict[int, Op] = {}
                for number in range(1, self.random.randrange(2, 21)):
                    to = topic()
                    is_empty = self.random.random() < empty
                    size = 0 if is_empty else self.random.choice((12, 30, 200, 1500))
                    # `possible` needs a `delete`: an empty retained message removes the previous one.
                    op = ledger.begin("publish", topic=to, size=size, version=str(len(ledger.ops)), qos=1)
                    if is_empty:
                        op.what = "delete"
                    sent[number] = op
                    data = payload(op.number, size) if size else b""
                    send_publish(device, to, data, 1, number, retain)
                while sent:
                    sent.pop(device.expect(PUBACK).packet_id).finish({})
                # Limits the number of messages, all of which are read back after each cut.
                time.sleep(0.005)


@workload("retained")
class Retained(Devices):
    """The last retained message of 15 topics. An empty message removes it."""

    def tasks(self) -> list:
        return [
            lambda place, ledger: self.publish_windows(
                place, ledger, lambda: f"{self.name}/{self.random.randrange(15)}", retain=True, empty=0.15
            )
        ]

    def check_all(self, place: Place, ops: list[Op]):
        # Each publish is a version of its topic's retained message, identified by its number.
        topics: dict[str, list[Op]] = {}
        for op in ops:
            topics.setdefault(op.topic, []).append(op)
        found: dict[str, str] = {}
        may_be = {topic: possible(changes) for topic, changes in topics.items()}
        wanted = {topic for topic, versions in may_be.items() if None not in versions}
        deadline = time.monotonic() + SECONDS_MAX
        with connected(place, f"{self.name}-reader", clean=True) as device:
            device.subscribed((f"{self.name}/#", 1))
            send_publish(device, f"{self.name}/end", LAST, 1, 1)
            has_ended = False
            while not has_ended or wanted - set(found):
                device.socket.settimeout(max(0.01, deadline - time.monotonic()))
                try:
                    packet = device.packet()
                except TimeoutError:
                    break
                if packet.kind != PUBLISH:
                    continue
                device.acknowledge(packet)
                if packet.payload == LAST:
                    has_ended = True
                else:
                    found[packet.topic] = str(int(packet.payload[:11]))
        for topic, changes in topics.items():
            version = found.get(topic)
            check(
                version in may_be[topic],
                f"retained message of {topic}: found publish {version}, may be {sorted(map(str, may_be[topic]))}; "
                f"{last(changes)}",
            )


@workload("sessions")
class Sessions(Devices):
    """Messages of QoS 1 and 2 for two sessions: one is offline, one receives them immediately."""

    def prepare(self, place: Place, ledger: Ledger):
        for client_id in (f"{self.name}-away", f"{self.name}-live"):
            with connected(place, client_id) as device:
                op = ledger.begin("subscribe", client=client_id)
                device.subscribed((f"{self.name}/#", 2))
                op.finish({})
                if client_id.endswith("-away"):
                    device.leave()

    def tasks(self) -> list:
        return [
            lambda place, ledger: self.publish_windows(place, ledger, lambda: f"{self.name}/q1"),
            self.publish_exactly_once,
            self.live,
        ]

    def publish_exactly_once(self, place: Place, ledger: Ledger):
        """Publishes with QoS 2 and first completes the handshakes that the previous life of the server has left.
        In the ledger, `publish` is answered by PUBREC, and `release` by PUBCOMP."""
        with connected(place, f"{self.name}-exactly") as device:
            begun = ledger.begin("session")
            begun.finish({})
            self.complete(device, ledger)
            numbers = itertools.cycle(range(1, 5))
            while True:
                sent: dict[int, Op] = {}
                for number in itertools.islice(numbers, self.random.randrange(1, 5)):
                    op = ledger.begin("publish", topic=f"{self.name}/q2", size=100, qos=2, id=number)
                    sent[number] = op
                    send_publish(device, op.topic, payload(op.number, op.size), 2, number)
                releases: dict[int, Op] = {}
                while sent or releases:
                    packet = device.packet()
                    if packet.kind == PUBREC:
                        op = sent.pop(packet.packet_id)
                        op.finish({})
                        releases[packet.packet_id] = ledger.begin("release", target=op.number, id=packet.packet_id)
                        device.send(packets.answer(PUBREL, packet.packet_id))
                    elif packet.kind == PUBCOMP:
                        releases.pop(packet.packet_id).finish({})

    def complete(self, device: Device, ledger: Ledger):
        """Completes the unfinished handshakes, as MQTT-4.4.0-1 requires."""
        released = {op.target: op for op in ledger.ops if op.what == "release"}
        for op in [op for op in ledger.ops if op.what == "publish" and op.qos == 2]:
            release = released.get(op.number)
            if release is not None and release.is_granted:
                continue
            if release is None and op.answer is None:
                send_publish(device, op.topic, payload(op.number, op.size), 2, op.id, dup=True)
                device.answer_to(PUBREC, op.id)
                op.finish({})
            if release is None:
                release = ledger.begin("release", target=op.number, id=op.id)
            device.send(packets.answer(PUBREL, op.id))
            device.answer_to(PUBCOMP, op.id)
            release.finish({})

    def live(self, place: Place, ledger: Ledger):
        """Acknowledges everything, and reconnects now and then."""
        while True:
            with connected(place, f"{self.name}-live") as device:
                for _ in range(self.random.randrange(20, 300)):
                    self.take(device, device.packet(), ledger)
                device.reset()

    def take(self, device: Device, packet: Packet, ledger: Ledger):
        """Answers one packet. The ledger gets `received` for a PUBLISH and `completed` for a PUBREL."""
        if packet.kind == PUBLISH:
            if packet.payload != LAST:
                target = int(packet.payload[:11])
                ledger.begin("received", target=target, id=packet.packet_id, qos=packet.qos).finish({})
            if packet.qos == 1:
                device.send(packets.answer(PUBACK, packet.packet_id))
            elif packet.qos == 2:
                device.send(packets.answer(PUBREC, packet.packet_id))
        elif packet.kind == PUBREL:
            ledger.begin("completed", id=packet.packet_id).finish({})
            device.send(packets.answer(PUBCOMP, packet.packet_id))

    def check_all(self, place: Place, ops: list[Op]):
        subscribed = {op.client for op in ops if op.what == "subscribe" and op.is_granted}
        is_begun = any(op.what == "session" for op in ops)
        if is_begun:
            # Every handshake must complete, and each of these messages must be delivered once.
            with connected(place, f"{self.name}-exactly") as device:
                check(device.connack.session_present == 1, f"session {self.name}-exactly is not there")
                ledger = Ledger(ops)
                self.complete(device, ledger)
                ops = ledger.ops
        released = {op.target for op in ops if op.what == "release" and op.is_granted}
        needed = {op.number for op in ops if op.what == "publish" and op.is_granted and op.qos == 1} | released
        possible_ = {op.number for op in ops if op.what == "publish"}
        if f"{self.name}-away" in subscribed:
            self.check_away(place, needed, possible_)
        if f"{self.name}-live" in subscribed:
            self.check_live(place, ops, needed)

    def check_away(self, place: Place, needed: set[int], sent: set[int]):
        client = f"{self.name}-away"
        with connected(place, client) as device:
            check(device.connack.session_present == 1, f"session {client} is not there")
            found = self.drain(place, device, client, needed)
        repeated = [number for number, count in Counter(found).items() if count > 1]
        check(not repeated, f"session {client} gets {repeated[:5]} more than once")
        check(set(found) <= sent, f"session {client} gets {sorted(set(found) - sent)[:5]}, which was not sent")

    def check_live(self, place: Place, ops: list[Op], needed: set[int]):
        client = f"{self.name}-live"
        received = {op.target for op in ops if op.what == "received"}
        # A PUBREL refers to the last message with its packet identifier.
        by_id: dict[int, int] = {}
        completed = set()
        for op in ops:
            if op.what == "received" and op.qos == 2:
                by_id[op.id] = op.target
            elif op.what == "completed" and op.id in by_id:
                completed.add(by_id[op.id])
        with connected(place, client) as device:
            check(device.connack.session_present == 1, f"session {client} is not there")
            found = self.drain(place, device, client, needed - received)
        again = completed & set(found)
        check(not again, f"session {client} gets {sorted(again)[:5]} of QoS 2 again, whose PUBREL it has had")

    def drain(self, place: Place, device: Device, client: str, needed: set[int]) -> list[int]:
        """Receives until a last message and all `needed` ones have come. Returns the numbers of the messages."""
        ledger = Ledger()
        with connected(place, f"{client}-end", clean=True) as other:
            other.publish(f"{self.name}/end", LAST, qos=1)
        device.socket.settimeout(SECONDS_MAX)
        missing = set(needed)
        found: list[int] = []
        has_ended = False
        while missing or not has_ended:
            try:
                packet = device.packet()
            except TimeoutError:
                raise Broken(
                    f"session {client} does not get {len(missing)} acknowledged messages: {sorted(missing)[:5]}"
                ) from None
            has_ended |= packet.kind == PUBLISH and packet.payload == LAST
            self.take(device, packet, ledger)
            if packet.kind == PUBLISH and packet.payload != LAST:
                found.append(int(packet.payload[:11]))
                missing.discard(found[-1])
        return found
