"""Encodes and decodes the packets of both versions. As in the protocol, version 4 is 3.1.1."""

from dataclasses import dataclass, field

V4 = 4
V5 = 5

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = range(8, 16)
NAMES = (
    "reserved CONNECT CONNACK PUBLISH PUBACK PUBREC PUBREL PUBCOMP SUBSCRIBE SUBACK UNSUBSCRIBE UNSUBACK "
    "PINGREQ PINGRESP DISCONNECT AUTH"
).split()

# Properties by name, each with its number and encoding.
PROPERTIES = {
    "payload_format": (1, "byte"),
    "message_expiry": (2, "four"),
    "content_type": (3, "text"),
    "response_topic": (8, "text"),
    "correlation_data": (9, "binary"),
    "subscription_id": (11, "variable"),
    "session_expiry": (17, "four"),
    "assigned_id": (18, "text"),
    "server_keep_alive": (19, "two"),
    "authentication_method": (21, "text"),
    "authentication_data": (22, "binary"),
    "request_problem": (23, "byte"),
    "will_delay": (24, "four"),
    "request_response": (25, "byte"),
    "response_information": (26, "text"),
    "server_reference": (28, "text"),
    "reason_string": (31, "text"),
    "receive_maximum": (33, "two"),
    "alias_maximum": (34, "two"),
    "alias": (35, "two"),
    "maximum_qos": (36, "byte"),
    "retain_available": (37, "byte"),
    "user": (38, "pair"),
    "maximum_packet": (39, "four"),
    "wildcards_available": (40, "byte"),
    "identifiers_available": (41, "byte"),
    "shared_available": (42, "byte"),
}
NAME_OF = {number: (name, kind) for name, (number, kind) in PROPERTIES.items()}
WIDTHS = {"byte": 1, "two": 2, "four": 4}


def variable(number: int) -> bytes:
    out = bytearray()
    while True:
        number, low = divmod(number, 128)
        out.append(low | (128 if number else 0))
        if not number:
            return bytes(out)


def binary(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def text(string: str | bytes) -> bytes:
    return binary(string if isinstance(string, bytes) else string.encode())


def two(number: int) -> bytes:
    return number.to_bytes(2, "big")


def value(kind: str, content) -> bytes:
    match kind:
        case "text":
            return text(content)
        case "binary":
            return binary(content)
        case "pair":
            return text(content[0]) + text(content[1])
        case "variable":
            return variable(content)
        case _:
            return content.to_bytes(WIDTHS[kind], "big")


def properties(version: int, pairs) -> bytes:
    """Encodes properties with their length; 3.1.1 has none. Bytes are used unchanged."""
    if version < V5:
        return b""
    if isinstance(pairs, bytes):
        block = pairs
    else:
        items = pairs.items() if isinstance(pairs, dict) else pairs
        block = b"".join(bytes([PROPERTIES[name][0]]) + value(PROPERTIES[name][1], content) for name, content in items)
    return variable(len(block)) + block


def packet(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes([first]) + variable(len(body)) + body


@dataclass
class Will:
    topic: str
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False
    properties: dict = field(default_factory=dict)


def connect(
    version: int, client_id: str, *, clean=True, keep_alive=60, will: Will | None = None, user=None,
    password=None, properties_=(), name="MQTT", level=None, flags=0,
) -> bytes:
    """Encodes CONNECT. `flags` are set in addition to those that follow from the other arguments."""
    flags |= clean << 1 | (user is not None) << 7 | (password is not None) << 6
    parts = [properties(version, properties_), text(client_id)]
    if will:
        flags |= 0x04 | will.qos << 3 | will.retain << 5
        parts += [properties(version, will.properties), text(will.topic), binary(will.payload)]
    parts += [text(part) for part in (user, password) if part is not None]
    head = text(name) + bytes([version if level is None else level, flags]) + two(keep_alive)
    return packet(0x10, head, *parts)


def publish(version, topic, payload=b"", *, qos=0, packet_id=1, retain=False, dup=False, properties_=()) -> bytes:
    number = two(packet_id) if qos else b""
    return packet(0x30 | dup << 3 | qos << 1 | retain, text(topic), number, properties(version, properties_), payload)


def subscribe(version, packet_id, filters, properties_=()) -> bytes:
    """Encodes SUBSCRIBE. `filters` are pairs of a filter and its options byte."""
    pairs = [text(name) + bytes([options]) for name, options in filters]
    return packet(0x82, two(packet_id), properties(version, properties_), *pairs)


def unsubscribe(version, packet_id, filters, properties_=()) -> bytes:
    return packet(0xA2, two(packet_id), properties(version, properties_), *[text(name) for name in filters])


def answer(kind: int, packet_id: int, reason: int | None = None) -> bytes:
    """Encodes PUBACK, PUBREC, PUBREL, or PUBCOMP."""
    flags = 2 if kind == PUBREL else 0
    return packet(kind << 4 | flags, two(packet_id), b"" if reason is None else bytes([reason]))


PINGREQ_BYTES = packet(PINGREQ << 4)
DISCONNECT_BYTES = packet(DISCONNECT << 4)


def disconnect(reason: int, properties_=()) -> bytes:
    return packet(DISCONNECT << 4, bytes([reason]), properties(V5, properties_))


class Reader:
    """Decodes the body of a packet."""

    def __init__(self, data: bytes):
        self.data = data

    def take(self, count: int) -> bytes:
        if len(self.data) < count:
            raise AssertionError(f"a packet is cut off: {self.data!r}")
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def variable(self) -> int:
        number = shift = 0
        while True:
            byte = self.number(1)
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def binary(self) -> bytes:
        return self.take(self.number(2))

    def text(self) -> str:
        return self.binary().decode()

    def value(self, kind: str):
        match kind:
            case "text":
                return self.text()
            case "binary":
                return self.binary()
            case "pair":
                return self.text(), self.text()
            case "variable":
                return self.variable()
            case _:
                return self.number(WIDTHS[kind])

    def properties(self) -> list:
        block = Reader(self.take(self.variable()))
        found = []
        while block.data:
            name, kind = NAME_OF[block.number(1)]
            found.append((name, block.value(kind)))
        return found


@dataclass
class Packet:
    """A packet from a server. Fields that its kind does not have stay at their default."""

    kind: int
    flags: int = 0
    packet_id: int = 0
    # Reason or return codes: a SUBACK has one per filter, other packets have one or none.
    codes: list[int] = field(default_factory=list)
    session_present: int = 0
    topic: str = ""
    payload: bytes = b""
    properties: list = field(default_factory=list)
    # Size including the fixed header.
    size: int = 0

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3

    @property
    def retain(self) -> bool:
        return bool(self.flags & 1)

    @property
    def dup(self) -> bool:
        return bool(self.flags & 8)

    @property
    def code(self) -> int:
        return self.codes[0] if self.codes else 0

    def property(self, name: str, default=None):
        return next((content for found, content in self.properties if found == name), default)

    def all(self, name: str) -> list:
        return [content for found, content in self.properties if found == name]

    def __str__(self):
        codes = " ".join(f"{code:#04x}" for code in self.codes)
        return f"{NAMES[self.kind]} {codes} {self.topic} {self.payload[:40]!r}".rstrip()


def parse(version: int, first: int, body: bytes) -> Packet:
    """Decodes a packet from a server."""
    found = Packet(first >> 4, first & 15)
    read = Reader(body)
    match found.kind:
        case 2:
            found.session_present = read.number(1)
            found.codes = [read.number(1)]
            # A refusal may be in the form of 3.1.1 for clients of any version.
            if version == V5 and read.data:
                found.properties = read.properties()
        case 3:
            found.topic = read.text()
            if found.qos:
                found.packet_id = read.number(2)
            if version == V5:
                found.properties = read.properties()
            found.payload, read.data = read.data, b""
        case 4 | 5 | 6 | 7:
            found.packet_id = read.number(2)
            rest(version, read, found)
        case 9 | 11:
            found.packet_id = read.number(2)
            if version == V5:
                found.properties = read.properties()
            found.codes, read.data = list(read.data), b""
        case 14 | 15:
            rest(version, read, found)
        case 13:
            pass
        case other:
            raise AssertionError(f"a server does not send {NAMES[other]}")
    if read.data:
        raise AssertionError(f"{NAMES[found.kind]} with more than it has: {read.data!r}")
    return found


def rest(version: int, read: Reader, found: Packet):
    """Decodes reason and properties, which may both be missing in 5.0."""
    if version == V5 and read.data:
        found.codes = [read.number(1)]
        if read.data:
            found.properties = read.properties()
