"""What is sent over WebSocket, byte by byte. The answers of nats-server are the expected ones."""

from websocket.session import (
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    PING,
    PONG,
    TEXT,
    Case,
    deflated,
    frame,
    random_bytes,
    request,
)

CASES: list[Case] = []
CONNECT_LINE = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"protocol":1}\r\n'
CONNECT = frame(BINARY, CONNECT_LINE)
HI = b"SUB a 1\r\nPUB a 2\r\nhi\r\n"
RSV1, RSV2, RSV3 = 0x40, 0x20, 0x10


def asked(name: str, bytes_: bytes, writes: tuple[bytes, ...] = (CONNECT,), **options):
    """Adds a case about the upgrade request. After an upgrade, a PING follows."""
    CASES.append(Case(f"handshake: {name}", list(writes), bytes_, **options))


def sent(name: str, *writes: bytes, upgrade: bytes = request(), **options):
    """Adds a case that sends frames after a CONNECT."""
    CASES.append(Case(name, [CONNECT, *writes], upgrade, **options))


def closing(name: str, *writes: bytes, **options):
    """Adds a case whose frames close the connection or get no answer."""
    sent(name, *writes, settles=False, **options)


def message(data: bytes, **options) -> bytes:
    return frame(BINARY, data, **options)


# --- The request -------------------------------------------------------------------------------------

asked("as it should be", request(), info=True)
asked("with another path", request("/some/where"))
asked("with a query", request("/?a=b&c=d"))
asked("with a whole URL", request("http://127.0.0.1/"))
asked("with a star for a path", request("*"))
asked("POST", request(method="POST"))
asked("POST with a body", request(method="POST", extra="Content-Length: 2\r\n") + b"hi")
asked("HEAD", request(method="HEAD"))
asked("OPTIONS", request(method="OPTIONS"))
asked("a method in small letters", request(method="get"))
asked("HTTP/1.0", request(version="HTTP/1.0"))
asked("HTTP/2.0", request(version="HTTP/2.0"))
asked("without Host", request(Host=None))
asked("with an empty Host", request(Host=""))
asked("with two Hosts", request(extra="Host: b.example\r\n"))
asked("without Upgrade", request(Upgrade=None))
asked("Upgrade to something else", request(Upgrade="h2c"))
asked("Upgrade in capitals", request(Upgrade="WebSocket"))
asked("Upgrade to several", request(Upgrade="h2c, websocket"))
asked("without Connection", request(Connection=None))
asked("Connection: keep-alive", request(Connection="keep-alive"))
asked("Connection: keep-alive, Upgrade", request(Connection="keep-alive, Upgrade"))
asked("Connection in small letters", request(Connection="upgrade"))
asked("Connection in two lines", request(Connection="keep-alive", extra="Connection: Upgrade\r\n"))
asked("without a key", request(Sec_WebSocket_Key=None))
asked("an empty key", request(Sec_WebSocket_Key=""))
asked("a key that is too short", request(Sec_WebSocket_Key="dGhlIHNhbXBsZQ=="))
asked("a key that is too long", request(Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZSBpcyBsb25n"))
asked("a key that is not base64", request(Sec_WebSocket_Key="!" * 24))
asked("a key without padding", request(Sec_WebSocket_Key=KEY.rstrip("=")))
asked("without a version", request(Sec_WebSocket_Version=None))
asked("version 8", request(Sec_WebSocket_Version="8"))
asked("versions 8 and 13", request(Sec_WebSocket_Version="8, 13"))
asked("header names in small letters", request().replace(b"Sec-WebSocket-", b"sec-websocket-").replace(b"Host", b"host"))
asked("header names in capitals", request().replace(b"Sec-WebSocket-", b"SEC-WEBSOCKET-").replace(b"Upgrade:", b"UPGRADE:"))
asked("spaces around values", request(Upgrade="  websocket  "))
asked("a space before a colon", request().replace(b"Upgrade: w", b"Upgrade : w"))
asked("lines that end with a line feed", request().replace(b"\r\n", b"\n"))
asked("a header without a colon", request(extra="nonsense\r\n"))
asked("a header of 5,000 bytes", request(extra="X-Long: " + "x" * 5000 + "\r\n"))
asked("forty headers", request(extra="".join(f"X-{n}: {n}\r\n" for n in range(40))))
asked("byte by byte", request(), drips=True)
asked("garbage", b"\x00\x01\x02\x03\r\n\r\n")
asked("NATS in place of HTTP", b"CONNECT {}\r\nPING\r\n\r\n")
asked("a body that nobody wants", request(extra="Content-Length: 0\r\n"))
asked("User-Agent of a browser", request(User_Agent="Mozilla/5.0 (X11; Linux x86_64)"))
asked("User-Agent of Safari", request(User_Agent="Mozilla/5.0 Version/17 Safari/605"))
asked("X-Forwarded-For", request(X_Forwarded_For="10.1.2.3"), info=True)
asked("X-Forwarded-For with two", request(X_Forwarded_For="10.1.2.3, 10.4.5.6"), info=True)
asked("X-Forwarded-For that is no address", request(X_Forwarded_For="nobody"), info=True)
asked("no masking", request(Nats_No_Masking="true"), (frame(BINARY, CONNECT_LINE, mask=None),), mask=None)
asked("no masking in capitals", request(Nats_No_Masking="TRUE"))
asked("masking said to be there", request(Nats_No_Masking="false"))

# --- Paths and sub-protocols --------------------------------------------------------------------------

asked("the path of leaf nodes without them", request("/leafnode"))
asked("a browser at the path of leaf nodes without them", request("/leafnode", User_Agent="Mozilla/5.0"))
asked("the path of leaf nodes", request("/leafnode"), (), server="leaf", settles=False, stays=True)
asked("a path that ends like that of leaf nodes", request("/a/leafnode"), (), server="leaf", settles=False, stays=True)
asked("the path of MQTT without it", request("/mqtt"))
asked("the path of MQTT", request("/mqtt"), (), server="mqtt", settles=False, stays=True)
asked("the path of MQTT with its sub-protocol", request("/mqtt", Sec_WebSocket_Protocol="mqtt"), (), server="mqtt", settles=False, stays=True)
asked("another path beside MQTT", request("/other"), server="mqtt")
asked("the sub-protocol of MQTT at another path", request(Sec_WebSocket_Protocol="mqtt"), (), server="mqtt", settles=False, stays=True)
asked("the sub-protocol of MQTT without it", request(Sec_WebSocket_Protocol="mqtt"))
asked("a sub-protocol", request(Sec_WebSocket_Protocol="nats"))
asked("several sub-protocols", request(Sec_WebSocket_Protocol="chat, superchat"))

# --- Origins ------------------------------------------------------------------------------------------

asked("an origin where all may", request(Origin="http://evil.example"))
for server, origins in (
    (
        "same",
        (None, "http://127.0.0.1", "http://127.0.0.1:80", "https://127.0.0.1", "http://localhost", "null", "nonsense", ""),
    ),
    (
        "allowed",
        (
            None,
            "http://a.example",
            "http://A.EXAMPLE",
            "http://a.example:80",
            "https://a.example",
            "https://b.example:8443",
            "https://b.example",
            "http://c.example",
        ),
    ),
):
    for origin in origins:
        asked(f"origin {origin!r} ({server})", request(Origin=origin), server=server)
asked("same origin with a port", request(Host="h.example:99", Origin="http://h.example:99"), server="same")
asked("same origin with another port", request(Host="h.example:99", Origin="http://h.example:98"), server="same")
asked("Sec-WebSocket-Origin in place of it", request(Sec_WebSocket_Origin="http://c.example"), server="allowed")

# --- Compression --------------------------------------------------------------------------------------

asked("compression where it is off", request(Sec_WebSocket_Extensions="permessage-deflate"))
for offer in (
    "permessage-deflate",
    "permessage-deflate; client_max_window_bits",
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    "permessage-deflate; client_max_window_bits=15",
    "permessage-deflate; server_max_window_bits=10",
    "permessage-deflate; server_max_window_bits=10, permessage-deflate",
    "permessage-deflate; nonsense",
    "x-webkit-deflate-frame",
    "x-webkit-deflate-frame, permessage-deflate",
    "PERMESSAGE-DEFLATE",
    "",
):
    asked(f"extensions {offer!r}", request(Sec_WebSocket_Extensions=offer), server="deflate")

PACKED = request(Sec_WebSocket_Extensions="permessage-deflate")
LONG = b"SUB a 1\r\nPUB a 5000\r\n" + b"x" * 5000 + b"\r\n"


def packed(name: str, *writes: bytes, **options):
    sent(f"compressed: {name}", *writes, upgrade=PACKED, server=options.pop("server", "deflate"), **options)


packed("a message", frame(BINARY, deflated(HI), reserved=RSV1))
packed("a text message", frame(TEXT, deflated(HI), reserved=RSV1))
packed("a message that is not", message(HI))
packed("a long message", frame(BINARY, deflated(LONG), reserved=RSV1))
packed("an empty message", frame(BINARY, b"\x00", reserved=RSV1), message(HI))
packed("no bytes at all", frame(BINARY, b"", reserved=RSV1), message(HI))
packed(
    "in two frames",
    frame(BINARY, deflated(HI)[:5], final=False, reserved=RSV1) + frame(CONTINUATION, deflated(HI)[5:]),
)
packed(
    "in frames with a ping between",
    frame(BINARY, deflated(HI)[:5], final=False, reserved=RSV1) + frame(PING, b"x") + frame(CONTINUATION, deflated(HI)[5:]),
)
packed("a verb over two messages", frame(BINARY, deflated(HI[:9]), reserved=RSV1), frame(BINARY, deflated(HI[9:]), reserved=RSV1))
packed("garbage", frame(BINARY, b"\xff\xfe\xfd\xfc", reserved=RSV1), settles=False)
packed("a continuation that says so", frame(BINARY, b"", final=False) + frame(CONTINUATION, deflated(HI), reserved=RSV1), settles=False)
packed("a ping that says so", frame(PING, b"x", reserved=RSV1), settles=False)
packed("an empty last frame", frame(BINARY, deflated(HI), final=False, reserved=RSV1) + frame(CONTINUATION))
packed("a bomb", frame(BINARY, deflated(b"+OK\r\n" * 20_000_000), reserved=RSV1), settles=False)
closing("compressed: not agreed", frame(BINARY, deflated(HI), reserved=RSV1))

# --- Messages -----------------------------------------------------------------------------------------

sent("message: binary", message(HI))
sent("message: text", frame(TEXT, HI))
sent("message: text that is not UTF-8", frame(TEXT, b"SUB \xff\xfe 1\r\nPUB \xff\xfe 2\r\nhi\r\n"))
sent("message: empty", message(b""), message(HI))
sent("message: a byte each", *[message(bytes([byte])) for byte in HI])
sent("message: several in one write", message(HI[:9]) + message(HI[9:12]) + message(HI[12:]))
sent("message: a frame byte by byte", message(HI), drips=True)
sent("message: another mask", message(HI, mask=b"\xff\x00\xaa\x55"))
sent("message: a mask of zeros", message(HI, mask=b"\0\0\0\0"))
sent("message: a length of 16 bits that fits 7", message(HI, length=16))
sent("message: a length of 64 bits that fits 7", message(HI, length=64))
sent("message: a length of 64 bits that fits 16", message(LONG, length=64))
for size, count in ((125, 103), (126, 104)):
    sent(f"message: {size} bytes", message(b"SUB a 1\r\nPUB a %d\r\n" % count + b"x" * count + b"\r\n"))
sent("message: 70,000 bytes", message(b"SUB a 1\r\nPUB a 70000\r\n" + random_bytes(70000).hex().encode()[:70000] + b"\r\n"))
closing("message: without a mask", message(HI, mask=None))
closing("message: masked where it was agreed not to", message(HI), upgrade=request(Nats_No_Masking="true"))
closing("message: unknown opcode 3", frame(3, HI))
closing("message: unknown opcode 7", frame(7, HI))
closing("message: unknown opcode 11", frame(11, b""))
closing("message: RSV1 without compression", message(HI, reserved=RSV1))
closing("message: RSV2", message(HI, reserved=RSV2))
closing("message: RSV3", message(HI, reserved=RSV3))
closing("message: all reserved bits", message(HI, reserved=RSV1 | RSV2 | RSV3))
closing("message: a length of more than 63 bits", b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04")
closing("message: half a head", b"\x82", stays=True)
closing("message: half a payload", message(HI)[:-4], stays=True)
closing("message: a payload above the limit", message(b"PUB a 200\r\n" + b"x" * 200 + b"\r\n"), server="small")
closing("message: a frame of 100 MB announced", b"\x82\xff" + (100_000_000).to_bytes(8, "big") + b"\x01\x02\x03\x04")
closing("message: a control line that is too long", message(b"SUB " + b"x" * 5000 + b" 1\r\n"))
closing("message: an unknown verb", message(b"NONSENSE\r\n"))

# --- Fragments ----------------------------------------------------------------------------------------

sent("fragments: two", frame(BINARY, HI[:9], final=False) + frame(CONTINUATION, HI[9:]))
sent("fragments: in two writes", frame(BINARY, HI[:9], final=False), frame(CONTINUATION, HI[9:]))
sent("fragments: many", frame(BINARY, b"", final=False) + b"".join(frame(CONTINUATION, bytes([b]), final=False) for b in HI) + frame(CONTINUATION))
sent("fragments: an empty last one", frame(BINARY, HI, final=False) + frame(CONTINUATION))
sent("fragments: with a ping between", frame(BINARY, HI[:9], final=False) + frame(PING, b"x") + frame(CONTINUATION, HI[9:]))
sent("fragments: with a pong between", frame(BINARY, HI[:9], final=False) + frame(PONG, b"x") + frame(CONTINUATION, HI[9:]))
sent("fragments: the first is taken before the last", frame(BINARY, HI, final=False), frame(CONTINUATION))
closing("fragments: a continuation of nothing", frame(CONTINUATION, HI))
closing("fragments: a continuation of a whole message", message(HI) + frame(CONTINUATION, HI))
closing("fragments: a message within another", frame(BINARY, HI, final=False) + message(HI))
closing("fragments: a text within a binary message", frame(BINARY, HI, final=False) + frame(TEXT, HI))
closing("fragments: a close between", frame(BINARY, HI[:9], final=False) + frame(CLOSE, b"\x03\xe8"))

# --- Pings and pongs ----------------------------------------------------------------------------------

sent("ping: empty", frame(PING))
sent("ping: with a payload", frame(PING, b"hello"))
sent("ping: 125 bytes", frame(PING, b"p" * 125))
sent("ping: ten in a row", b"".join(frame(PING, b"%d" % n) for n in range(10)))
sent("ping: ten in ten writes", *[frame(PING, b"%d" % n) for n in range(10)])
sent("ping: a hundred in a row", b"".join(frame(PING, b"%d" % n) for n in range(100)))
sent("ping: before and behind data", frame(PING, b"a") + message(HI) + frame(PING, b"b"))
sent("ping: byte by byte", frame(PING, b"slow"), drips=True)
sent("pong: that nobody asked for", frame(PONG, b"x"))
closing("ping: 126 bytes", frame(PING, b"p" * 126))
closing("ping: in fragments", frame(PING, b"x", final=False))
closing("ping: without a mask", frame(PING, b"x", mask=None))
closing("ping: RSV1", frame(PING, b"x", reserved=RSV1))
closing("pong: 126 bytes", frame(PONG, b"p" * 126))

# --- Closing ------------------------------------------------------------------------------------------

closing("close: without a code", frame(CLOSE))
closing("close: a single byte", frame(CLOSE, b"\x03"))
for code in (0, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1014, 1015, 1016, 2999, 3000, 4000, 4999, 5000):
    closing(f"close: {code}", frame(CLOSE, code.to_bytes(2, "big")))
closing("close: with a reason", frame(CLOSE, b"\x03\xe8that is all"))
closing("close: with a reason of 123 bytes", frame(CLOSE, b"\x03\xe8" + b"r" * 123))
closing("close: with a reason in UTF-8", frame(CLOSE, b"\x0f\xa0" + "grüße".encode()))
closing("close: with a reason that is not UTF-8", frame(CLOSE, b"\x03\xe8\xff\xfe"))
closing("close: 126 bytes", frame(CLOSE, b"\x03\xe8" + b"r" * 124))
closing("close: in fragments", frame(CLOSE, b"\x03\xe8", final=False))
closing("close: without a mask", frame(CLOSE, b"\x03\xe8", mask=None))
closing("close: behind data", message(HI) + frame(CLOSE, b"\x03\xe8"))
closing("close: before data", frame(CLOSE, b"\x03\xe8") + message(HI))
closing("close: behind a ping", frame(PING, b"last") + frame(CLOSE, b"\x03\xe8"))
closing("close: twice", frame(CLOSE, b"\x03\xe8") + frame(CLOSE, b"\x03\xe9"))

# --- Credentials, headers and addresses ---------------------------------------------------------------

asked("cookies with a user", request(Cookie="u=alice; p=secret"), server="cookies")
asked("cookies in another order", request(Cookie="p=secret;u=alice"), server="cookies")
asked("cookies in two headers", request(extra="Cookie: u=alice\r\nCookie: p=secret\r\n"), server="cookies")
asked("cookies in quotes", request(Cookie='u="alice"; p="secret"'), server="cookies")
asked("cookies with another password", request(Cookie="u=alice; p=wrong"), server="cookies", settles=False)
asked("no cookies", request(), server="cookies", settles=False)
asked("headers of the server's own", request(), server="headers")
asked("an address that is advertised", request(), server="advertise", info=True)
