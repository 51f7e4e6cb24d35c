"""Users, accounts, permissions, and options, which apply to clients of both protocols."""

import contextlib
import ssl

from harness.checks import check, equal
from harness.peer import Closed, Peer
from mqtt import packets
from mqtt.brokers import Broker
from mqtt.case import BOTH, case, differs
from mqtt.test_connecting import refused
from mqtt.device import Device, Unconnected, fresh, kept
from mqtt.packets import PUBACK, PUBCOMP, PUBREC, PUBREL, V4, V5
from mqtt.secure import secured

GROUP = "permissions"

NOT_AUTHORIZED = {V4: (4, 5), V5: (0x86, 0x87)}

USERS = """
accounts {
  A {
    jetstream: enabled
    users: [
      { user: ada, password: pa }
      { user: bea, password: pb, permissions {
          publish { allow: ["out.>", "both.>"], deny: ["both.not"] }, subscribe { allow: ["in.>", "both", "both.>"] } } }
      { user: cleo, password: pc, allowed_connection_types: ["MQTT"] }
      { user: dora, password: pd, allowed_connection_types: ["STANDARD"] }
    ]
  }
  B { jetstream: enabled, users: [ { user: eve, password: pe } ] }
}
"""


def users(broker) -> Broker:
    return Broker(broker.kind, more=USERS)


@case(GROUP, *BOTH, nats=True)
def test_only_those_who_are_known_are_let_in(broker, version):
    """MQTT-3.1.4-2, 3.2.2-7 (3.1.1: 3.2.2-5)."""
    with users(broker) as own:
        for options in ({}, {"user": "ada"}, {"user": "ada", "password": "wrong"}, {"user": "nobody", "password": "pa"}):
            told = refused(own, version, packets.connect(version, fresh("c"), **options))
            check(told in NOT_AUTHORIZED[version], f"{options}: told {told}")
        Device(own, version, fresh("c"), user="ada", password="pa").leave()


@case(GROUP, *BOTH, nats=True)
def test_what_may_not_be_published_is_not(broker, version):
    with users(broker) as own:
        with Device(own, version, fresh("c"), user="ada", password="pa") as listener:
            listener.subscribed(("#", 0))
            for qos in (0, 1, 2):
                with Device(own, version, fresh("c"), user="bea", password="pb") as device:
                    for topic in ("other/a", "both/not", "in/a"):
                        with contextlib.suppress(Closed, AssertionError):
                            device.publish(topic, b"forbidden", qos=qos)
                with Device(own, version, fresh("c"), user="bea", password="pb") as device:
                    for topic in ("out/a", "both/yes"):
                        device.publish(topic, b"allowed", qos=qos)
                found = [listener.message() for _ in range(2)]
                equal([packet.topic for packet in found], ["out/a", "both/yes"], f"with QoS {qos}")


@case(GROUP, V5, nats=True)
def test_a_publisher_is_told_that_he_may_not(broker, version):
    """5.0, 3.4.2.1: reason 0x87; the connection stays."""
    with users(broker) as own:
        with Device(own, version, fresh("c"), user="bea", password="pb") as device:
            equal([device.publish("other/a", b"", qos=qos) for qos in (1, 2)], [0x87, 0x87], "reasons")
            device.ping()


@case(GROUP, *BOTH, nats=True)
def test_what_may_not_be_subscribed_to_fails(broker, version):
    """MQTT-3.8.4-7 (3.1.1: 3.8.4-5): only the denied filter fails."""
    with users(broker) as own:
        with Device(own, version, fresh("c"), user="bea", password="pb") as device:
            codes = device.subscribe(("in/a", 1), ("other/a", 1), ("both/#", 2), ("#", 0), ("in/+", 0))
            failed = 0x80 if version == V4 else 0x87
            equal(codes, [1, failed, 2, failed, 0], "codes")


@case(GROUP, V5, nats=True)
def test_an_identifier_is_free_after_a_refusal(broker, version):
    """MQTT-4.3.3-9: after a PUBREC of 0x80 or more, a PUBLISH with the same identifier is another message."""
    with users(broker) as own:
        with Device(own, version, fresh("c"), user="ada", password="pa") as listener:
            listener.subscribed(("#", 2))
            with Device(own, version, fresh("c"), user="bea", password="pb") as device:
                device.send(packets.publish(version, "other/a", b"not this", qos=2, packet_id=7))
                equal(device.answer_to(PUBREC, 7).code, 0x87, "reason")
                device.send(packets.publish(version, "out/a", b"this", qos=2, packet_id=7))
                equal(device.answer_to(PUBREC, 7).code, 0, "reason")
                device.send(packets.answer(PUBREL, 7))
                equal(device.answer_to(PUBCOMP, 7).code, 0, "reason")
                equal(listener.message().payload, b"this", "message")


@case(GROUP, *BOTH, nats=True, differs=differs(nats="looks at the filter alone"))
def test_what_may_not_be_received_is_not(broker, version):
    """A filter may match subjects that the user may not receive. Their messages are not delivered: with every
    QoS, by a group, and if they are retained."""
    may = 'subscribe { allow: ["in.>", "both", "both.>"]'
    more = USERS.replace(may, may + ', deny: ["both.secret"]')
    with Broker(broker.kind, more=more) as own:
        filters = ["both/+", "both/#"] + (["$share/g/both/+"] if version == V5 else [])
        with Device(own, version, fresh("c"), user="ada", password="pa") as sender:
            sender.publish("both/secret", b"retained", qos=1, retain=True)
            for name in filters:
                for granted in range(3):
                    with Device(own, version, fresh("c"), user="bea", password="pb") as device:
                        device.subscribed((name, granted))
                        for qos in range(3):
                            sender.publish("both/secret", b"secret", qos=qos)
                        sender.publish("both/open", b"open", qos=granted)
                        equal(device.message().payload, b"open", f"{name}, QoS {granted}")


OTHERS = """
accounts { A {
  jetstream: enabled
  mappings { "old.*": "new.{{wildcard(1)}}" }
  users: [
    { user: ada, password: pa }
    { user: fay, password: pf, permissions { subscribe: "ask.>", publish: "none", allow_responses: true } }
    { user: gil, password: pg, permissions { publish: "old.>" } }
    { user: hal, password: ph, permissions { publish: "new.>" } }
  ]
} }
"""


@case(GROUP, V5, nats=True)
def test_who_may_answer_answers(broker, version):
    """`allow_responses`: the client may publish once to the response topic of a message, and to no other topic."""
    with Broker(broker.kind, more=OTHERS) as own, Device(own, version, fresh("c"), user="ada", password="pa") as asks:
        with Device(own, version, fresh("c"), user="fay", password="pf") as fay:
            asks.subscribed(("answer/+", 2))
            fay.subscribed(("ask/+", 2))
            equal(fay.publish("answer/0", b"unasked", qos=1), 0x87, "unasked")
            for asked in range(3):
                for answered in range(3):
                    asks.publish("ask/a", b"?", qos=asked, response_topic="answer/here")
                    topic = fay.message().property("response_topic")
                    for payload in (b"first", b"second"):
                        reason = fay.publish(topic, payload, qos=answered)
                        equal(reason, 0x87 if answered and payload == b"second" else 0, f"{payload} with QoS {answered}")
                    # A permission that was used once is not cached.
                    fay.publish(topic, b"third")
                    fay.ping()
                    equal(asks.message().payload, b"first", f"QoS {asked}, answered with {answered}")


@case(GROUP, *BOTH, nats=True, differs=differs(nats="keeps under a first name what has QoS above 0"))
def test_what_is_renamed_is_permitted_by_its_other_name(broker, version):
    """Permissions apply to the subject after `mappings`, as for NATS clients: to messages of each QoS, and to
    wills."""
    with Broker(broker.kind, more=OTHERS) as own:
        for granted in (0, 2):
            with Device(own, version, fresh("c"), user="ada", password="pa") as ada:
                ada.subscribed(("new/+", granted))
                for qos in range(3):
                    will = packets.Will("old/a", b"forbidden will", qos)
                    gil = Device(own, version, fresh("c"), user="gil", password="pg", will=will)
                    reason = gil.publish("old/a", b"forbidden", qos=qos)
                    equal(reason, 0x87 if version == V5 and qos else 0, "reason")
                    gil.ping()
                    gil.reset()
                    with Device(own, version, fresh("c"), user="hal", password="ph") as hal:
                        hal.publish("old/a", b"%d" % qos, qos=qos)
                        equal(ada.message().payload, b"%d" % qos, f"with QoS {qos} at {granted}")
                ada.ping()


@case(GROUP, *BOTH, nats=True, differs=differs(nats="says nothing"))
def test_a_full_disk_is_told(broker, version):
    """3.1.1 MQTT-4.8.0-2: the connection ends, because 3.1.1 has no code for it; in 5.0 the reason is 0x97."""
    topic = fresh("t")
    with Broker(broker.kind, more="") as own:
        with open(own.config, encoding="utf-8") as file:
            text = file.read()
        own.kill()
        with open(own.config, "w", encoding="utf-8") as file:
            file.write(text.replace("jetstream {", "jetstream { max_file_store: 1MB,"))
        own.start()
        away = Device(own, version, fresh("c"), **kept(version))
        away.subscribed((topic, 1))
        away.leave()
        with Device(own, version, fresh("c")) as device:
            for number in range(1, 100):
                device.send(packets.publish(version, topic, b"x" * 50_000, qos=1, packet_id=number))
                answer = device.packet_or_none()
                if answer is None or answer.code >= 0x80:
                    break
            if version == V4:
                check(answer is None, f"{answer} when the disk is full")
            else:
                equal((answer.kind, answer.code), (PUBACK, 0x97), "the answer")


@case(GROUP, *BOTH, nats=True)
def test_wills_are_under_the_same_rules(broker, version):
    with users(broker) as own:
        with Device(own, version, fresh("c"), user="ada", password="pa") as listener:
            listener.subscribed(("#", 0))
            for topic in ("other/a", "out/will"):
                will = packets.Will(topic, b"gone")
                with contextlib.suppress(AssertionError, Closed):
                    Device(own, version, fresh("c"), user="bea", password="pb", will=will).reset()
            equal(listener.message().topic, "out/will", "the first will")


@case(GROUP, *BOTH, nats=True)
def test_accounts_do_not_see_each_other(broker, version):
    """Client identifiers are separate in each account."""
    client_id, topic = fresh("c"), fresh("t")
    with users(broker) as own:
        with Device(own, version, client_id, user="ada", password="pa", **kept(version)) as ada:
            ada.subscribed((topic, 1))
            ada.publish(topic + "/kept", b"of A", qos=1, retain=True)
            with Device(own, version, client_id, user="eve", password="pe", **kept(version)) as eve:
                equal(eve.connack.session_present, 0, "session present")
                eve.subscribed((topic, 1), (topic + "/kept", 1))
                ada.publish(topic, b"of A", qos=1)
                eve.publish(topic, b"of B", qos=1)
                equal(eve.message().payload, b"of B", "at B")
                equal(ada.message().payload, b"of A", "at A")
                ada.ping()


@case(GROUP, *BOTH, nats=True)
def test_users_may_be_of_one_protocol(broker, version):
    """`allowed_connection_types` restricts users to a protocol."""
    with users(broker) as own:
        Device(own, version, fresh("c"), user="cleo", password="pc").leave()
        told = refused(own, version, packets.connect(version, fresh("c"), user="dora", password="pd"))
        check(told in NOT_AUTHORIZED[version], f"told {told}")

        def at_nats(user, password) -> bytes:
            with Peer(own.port) as peer:
                peer.line()
                peer.send(b'CONNECT {"verbose":false,"user":"%s","pass":"%s"}\r\nPING\r\n' % (user, password))
                return peer.line().encode()

        equal(at_nats(b"dora", b"pd"), b"PONG", "the other way round")
        check(at_nats(b"cleo", b"pc").startswith(b"-ERR"), "MQTT only, at NATS")


@case(GROUP, *BOTH, nats=True)
def test_the_block_may_have_users_of_its_own(broker, version):
    """`mqtt { authorization {} }` replaces the server's users."""
    with Broker(broker.kind, mqtt='authorization { username: "m", password: "p" }') as own:
        Device(own, version, fresh("c"), user="m", password="p").leave()
        told = refused(own, version, packets.connect(version, fresh("c")))
        check(told in NOT_AUTHORIZED[version], f"told {told}")


@case(GROUP, *BOTH, nats=True)
def test_nobody_may_be_a_user(broker, version):
    """`mqtt { no_auth_user }` is the user of clients without credentials."""
    with Broker(broker.kind, more=USERS, mqtt="no_auth_user: eve") as own:
        with Device(own, version, fresh("c")) as nobody, Device(own, version, fresh("c"), user="eve", password="pe") as eve:
            eve.subscribed("a")
            nobody.publish("a", b"of B")
            equal(eve.message().payload, b"of B", "message")


@case(GROUP, *BOTH, nats=True)
def test_qos_2_may_be_turned_off(broker, version):
    """`reject_qos2_publish` and `downgrade_qos2_subscribe`; 5.0: 3.2.2-9, -11, -12."""
    with Broker(broker.kind, mqtt="reject_qos2_publish: true, downgrade_qos2_subscribe: true") as own:
        with Device(own, version, fresh("c")) as device:
            equal(device.subscribe(("a", 2)), [1], "granted")
            device.publish("a", b"x", qos=1)
            equal(device.message().qos, 1, "QoS")
            device.send(packets.publish(version, "a", b"", qos=2))
            equal(device.end_reason(), 0x9B if version == V5 else None, "reason")
        told = refused(own, version, packets.connect(version, fresh("c"), will=packets.Will("a", qos=2)))
        # nats-server has a separate return code for it in 3.1.1.
        check(told in ((0x9B,) if version == V5 else (5, 0x10)), f"told {told}")


@case(GROUP, *BOTH, nats=True)
def test_no_more_than_max_ack_pending_is_under_way(broker, version):
    """The option limits messages in flight; in 5.0 the client may set a lower limit."""
    topic = fresh("t")
    with Broker(broker.kind, mqtt="max_ack_pending: 4") as own:
        with Device(own, version, fresh("c")) as sender, Device(own, version, fresh("c")) as listener:
            listener.subscribed((topic, 1))
            sender.publish_numbers(topic, 20, 1)
            waiting = [listener.message(acknowledges=False) for _ in range(4)]
            listener.ping()
            got = []
            while len(got) < 20:
                first = waiting.pop(0)
                got.append(first.payload)
                listener.acknowledge(first)
                if len(got) + len(waiting) < 20:
                    waiting.append(listener.message(acknowledges=False))
            equal(got, [b"%d" % number for number in range(20)], "messages")


@case(GROUP, *BOTH, nats=True)
def test_payloads_have_a_limit(broker, version):
    """The server's `max_payload` applies."""
    with Broker(broker.kind, more="max_payload: 1000") as own:
        with Device(own, version, fresh("c")) as device:
            device.subscribed("a")
            device.publish("a", b"x" * 900)
            equal(len(device.message().payload), 900, "bytes")
            with contextlib.suppress(Closed):
                device.publish("a", b"x" * 2000)
            reason = device.end_reason()
            check(reason in ((0x95, 0x81, 0x97) if version == V5 else (None,)), f"told {reason}")


class Secure(Device):
    """A device whose connection uses TLS."""

    def __init__(self, broker, version, client_id, context: ssl.SSLContext):
        self.context = context
        super().__init__(broker, version, client_id)

    def send(self, data: bytes):
        if not isinstance(self.socket, ssl.SSLSocket):
            self.socket = self.context.wrap_socket(self.socket, server_hostname="localhost")
        super().send(data)


@case(GROUP, *BOTH, nats=True)
def test_it_works_within_tls(broker, version):
    topic = fresh("t")
    own, pem = secured(broker.kind)
    with own:
        context = ssl.create_default_context(cafile=pem)
        with Secure(own, version, fresh("c"), context) as device:
            device.subscribed((topic, 1))
            for size in (0, 100, 20_000, 500_000):
                device.publish(topic, b"x" * size, qos=1)
                equal(len(device.message().payload), size, "bytes")
            device.leave()
        # A connection without TLS is refused.
        with Unconnected(own, version) as plain:
            plain.send(packets.connect(version, fresh("c")))
            plain.until_closed()
