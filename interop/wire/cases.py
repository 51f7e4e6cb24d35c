"""The table of cases. Each case sends bytes and waits. The answers of nats-server are the expected ones.

Unless a case is about something else, it uses one connection, which receives its own messages.
"""

from wire.session import Case, closed, drip, pinged, quiet, read, send, settle, splits

FULL = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}\r\n'
PLAIN = b'CONNECT {"verbose":false,"pedantic":false}\r\n'
VERBOSE = b'CONNECT {"verbose":true,"pedantic":false,"headers":true,"protocol":1}\r\n'
PEDANTIC = b'CONNECT {"verbose":false,"pedantic":true,"headers":true}\r\n'
NO_ECHO = b'CONNECT {"verbose":false,"pedantic":false,"echo":false,"headers":true,"no_responders":true}\r\n'

# For messages to several subscriptions of one connection. The server decides which one receives it first, and
# which member of a queue group is chosen.
ANY_SID = [(rb"(?m)^MSG (\S+) \d+ ", rb"MSG \1 N ")]

CASES: list[Case] = []


def one(name: str, data: bytes, connect: bytes = PLAIN, **more):
    """Adds a case with one connection, one write, and a PING whose answer ends it."""
    CASES.append(Case(name, [send(connect + data), settle()], **more))


def steps(name: str, *steps, **more):
    CASES.append(Case(name, list(steps), **more))


def hpub(subject: bytes, headers: bytes, payload: bytes, reply: bytes = b"") -> bytes:
    target = subject + (b" " + reply if reply else b"")
    size = b"%d %d" % (len(headers), len(headers) + len(payload))
    return b"HPUB " + target + b" " + size + b"\r\n" + headers + payload + b"\r\n"


HEADERS = b"NATS/1.0\r\nA: 1\r\n\r\n"

# --- The greeting ---------------------------------------------------------------------------------

steps("info: first, on an open server", send(PLAIN), settle(), info=True)
steps("info: first, with user and password", settle(), info=True, server="user")
steps("info: first, with a token", settle(), info=True, server="token")
steps("info: second, after the first PING, with protocol 1", send(FULL), settle(), info=True)
steps("info: second comes once", send(FULL), settle(), settle(), settle())
steps("info: no second with protocol 0", send(b'CONNECT {"verbose":false,"protocol":0}\r\n'), settle(), settle())
steps("info: second when PING comes before CONNECT", send(b"PING\r\n" + FULL), settle(pongs=2), settle())
steps("info: second in verbose", send(VERBOSE), settle(), settle())
steps(
    "info: second with user and password",
    send(b'CONNECT {"verbose":false,"protocol":1,"user":"alice","pass":"secret"}\r\n'),
    settle(),
    info=True,
    server="user",
)
steps("info: second with a token", send(b'CONNECT {"verbose":false,"protocol":1,"auth_token":"s3cr3t"}\r\n'), settle(), info=True, server="token")
steps("ping: the server's own, after a while", send(FULL), settle(), pinged(), send(b"PONG\r\n"), settle(), pings=True)

# --- CONNECT --------------------------------------------------------------------------------------

one("connect: none at all", b"SUB foo 1\r\nPUB foo 2\r\nhi\r\n", b"")
one("connect: none, then pedantic by default", b"PUB foo.* 2\r\nhi\r\n", b"")
one("connect: none, then HPUB", hpub(b"foo", HEADERS, b"hi"), b"")
one("connect: empty object", b"", b"CONNECT {}\r\n")
one("connect: empty object, then PUB", b"SUB foo 1\r\nPUB foo 2\r\nhi\r\nPUB foo.* 2\r\nhi\r\n", b"CONNECT {}\r\n")
one("connect: no argument", b"", b"CONNECT\r\n")
one("connect: only a space", b"", b"CONNECT \r\n")
one("connect: bad JSON", b"", b"CONNECT {verbose}\r\n")
one("connect: truncated JSON", b"", b'CONNECT {"verbose":false\r\n')
one("connect: array", b"", b"CONNECT []\r\n")
one("connect: null", b"", b"CONNECT null\r\n")
one("connect: string", b"", b'CONNECT "x"\r\n')
one("connect: rubbish after the object", b"", b'CONNECT {"verbose":false} x\r\n')
one("connect: spaces after the object", b"", b'CONNECT {"verbose":false}   \r\n')
one("connect: tab before the object", b"", b'CONNECT\t{"verbose":false}\r\n')
one("connect: no space before the object", b"", b'CONNECT{"verbose":false}\r\n')
one("connect: spaces within the object", b"", b'CONNECT { "verbose" : false , "protocol" : 1 }\r\n')
one("connect: verbose is a string", b"", b'CONNECT {"verbose":"false"}\r\n')
one("connect: verbose is a number", b"", b'CONNECT {"verbose":0}\r\n')
one("connect: verbose is null", b"", b'CONNECT {"verbose":null}\r\n')
one("connect: name is a number", b"", b'CONNECT {"verbose":false,"name":7}\r\n')
one("connect: protocol is a string", b"", b'CONNECT {"verbose":false,"protocol":"1"}\r\n')
one("connect: protocol is a fraction", b"", b'CONNECT {"verbose":false,"protocol":1.5}\r\n')
one("connect: protocol 2", b"", b'CONNECT {"verbose":false,"protocol":2}\r\n')
one("connect: protocol -1", b"", b'CONNECT {"verbose":false,"protocol":-1}\r\n')
one("connect: keys in capitals", b"", b'CONNECT {"VERBOSE":false,"Protocol":1}\r\n')
one("connect: a key twice", b"", b'CONNECT {"verbose":true,"verbose":false}\r\n')
one("connect: unknown keys", b"", b'CONNECT {"verbose":false,"colour":"red","nested":{"a":[1,2]}}\r\n')
one("connect: what clients send", b"", b'CONNECT {"verbose":false,"pedantic":false,"tls_required":false,"name":"n","lang":"go","version":"1.40","protocol":1,"echo":true,"headers":true,"no_responders":true}\r\n')
one("connect: escapes in a name", b"", b'CONNECT {"verbose":false,"name":"\\u00e9\\n\\ud83d\\ude00"}\r\n')
one("connect: bytes that are not UTF-8 in a name", b"", b'CONNECT {"verbose":false,"name":"\xff\xfe"}\r\n')
one("connect: a name of 3,000 bytes", b"", b'CONNECT {"verbose":false,"name":"%s"}\r\n' % (b"n" * 3000))
one("connect: no_responders without headers", b"", b'CONNECT {"verbose":false,"no_responders":true}\r\n')
one("connect: no_responders without headers, verbose", b"", b'CONNECT {"verbose":true,"no_responders":true,"headers":false}\r\n')
one("connect: account", b"", b'CONNECT {"verbose":false,"account":"A"}\r\n')
one("connect: new_account", b"", b'CONNECT {"verbose":false,"account":"A","new_account":true}\r\n')
one("connect: credentials that nobody asked for", b"", b'CONNECT {"verbose":false,"user":"u","pass":"p","auth_token":"t"}\r\n')
one("connect: jwt that nobody asked for", b"", b'CONNECT {"verbose":false,"jwt":"x","sig":"y","nkey":"z"}\r\n')
one("connect: tls_required", b"", b'CONNECT {"verbose":false,"tls_required":true}\r\n')
one("connect: twice", FULL, FULL)
one("connect: twice, the second changes verbose", b'CONNECT {"verbose":true}\r\nSUB foo 1\r\n', FULL)
one("connect: twice, the second keeps what it leaves out", b"CONNECT {}\r\n" + b"SUB foo 1\r\n", FULL)
one("connect: twice, what was subscribed before is gone", b"SUB foo 1\r\n" + PLAIN + b"PUB foo 2\r\nhi\r\n")
one("connect: twice, subscribed again under the same sid", b"SUB foo 1\r\n" + PLAIN + b"SUB foo 1\r\nPUB foo 2\r\nhi\r\n")
one("connect: twice, another subject under the same sid", b"SUB foo 1\r\n" + VERBOSE + b"SUB bar 1\r\nPUB foo 2\r\nhi\r\nPUB bar 2\r\nho\r\n", VERBOSE)
one("connect: twice, the second turns echo off", b'SUB foo 1\r\nPUB foo 1\r\na\r\nCONNECT {"echo":false}\r\nPUB foo 1\r\nb\r\n')
one("connect: twice, the second with protocol 5", b'CONNECT {"protocol":5}\r\n')
one("connect: after a subscription", PLAIN + b"PUB foo 2\r\nhi\r\n", b"SUB foo 1\r\n")
steps("connect: second with bad JSON", send(FULL), settle(), send(b"CONNECT {\r\n"), settle())

# --- Lines ----------------------------------------------------------------------------------------

steps("lines: verbs in lower case", send(FULL + b"sub foo 1\r\npub foo 2\r\nhi\r\nunsub 1\r\nping\r\npong\r\n"), settle(pongs=2))
one("lines: verbs in mixed case", b"sUb foo 1\r\nPuB foo 2\r\nhi\r\nhPuB foo 12 14\r\nNATS/1.0\r\n\r\nhi\r\nUnSuB 1\r\n", b'cOnNeCt {"verbose":false,"headers":true}\r\n')
one("lines: bare line feeds", b"SUB foo 1\nPUB foo 2\nhi\r\nUNSUB 1\n", b'CONNECT {"verbose":false}\n')
one("lines: bare line feed after PING and PONG", b"PONG\nPONG\r\n")
steps("lines: PING with a bare line feed", send(PLAIN + b"PING\nPING\n"), read(pongs=2))
steps("lines: PING with spaces behind it", send(PLAIN + b"PING   \r\n"), settle(pongs=2))
steps("lines: PING with a word behind it", send(PLAIN + b"PING hello\r\n"), settle(pongs=2))
one("lines: PONG with a word behind it", b"PONG hello\r\n")
one("lines: empty line", b"\r\n")
one("lines: empty line with a bare line feed", b"\n")
one("lines: empty line after a subscription", b"SUB foo 1\r\n\r\n")
one("lines: leading space", b" SUB foo 1\r\n")
one("lines: leading tab", b"\tPUB foo 0\r\n\r\n")
one("lines: runs of spaces", b"SUB   foo    1  \r\nPUB   foo    2   \r\nhi\r\nUNSUB   1   \r\n")
one("lines: tabs", b"SUB\tfoo\t1\t\r\nPUB\tfoo\t2\t\r\nhi\r\nUNSUB\t1\t1\t\r\n")
one("lines: tabs and spaces mixed", b"SUB \t foo \t q \t 1\r\nPUB\t foo\t bar\t 2\r\nhi\r\n")
one("lines: carriage return within a line", b"SUB foo\r 1\r\nPUB foo 2\r\nhi\r\n")
one("lines: two carriage returns", b"SUB foo 1\r\r\nPUB foo 2\r\nhi\r\n")
one("lines: form feed in a subject", b"SUB a\x0cb 1\r\nPUB a\x0cb 2\r\nhi\r\n")
one("lines: vertical tab in a subject", b"SUB a\x0bb 1\r\nPUB a\x0bb 2\r\nhi\r\n")
one("lines: NUL in a subject", b"SUB a\x00b 1\r\nPUB a\x00b 2\r\nhi\r\n")
one("lines: bytes that are not UTF-8 in a subject", b"SUB a.\xff\xfe 1\r\nPUB a.\xff\xfe 2\r\nhi\r\n")
one("lines: UTF-8 in a subject", "SUB grüße.★ 1\r\nPUB grüße.★ 2\r\nhi\r\n".encode())
one("lines: verb cut short", b"SU foo 1\r\n")
one("lines: verb too long", b"SUBS foo 1\r\n")
one("lines: verb without its space", b"SUBfoo 1\r\n")
one("lines: PUBLISH", b"PUBLISH foo 2\r\nhi\r\n")
one("lines: garbage", b"\x00\x01\x02\xff\xfe\r\n")
one("lines: garbage without CONNECT", b"hello\r\n", b"")
one("lines: an HTTP request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"")
one("lines: a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"")
one("lines: a route's verb", b"RS+ $G foo\r\n")
one("lines: a leaf's verb", b"LS+ foo\r\n")
one("lines: an account verb", b"A+ foo\r\n")
one("lines: RMSG", b"RMSG $G foo 2\r\nhi\r\n")
one("lines: LMSG", b"LMSG foo 2\r\nhi\r\n")
one("lines: +OK from a client", b"+OK\r\nSUB foo 1\r\nPUB foo 2\r\nhi\r\n")
one("lines: +ok from a client in lower case", b"+ok\r\n")
one("lines: + and something else", b"+NO\r\n")
one("lines: -ERR from a client", b"-ERR 'x'\r\n")
one("lines: -ERR without a text", b"-ERR\r\n")
one("lines: INFO {} from a client", b"INFO {}\r\nSUB foo 1\r\nPUB foo 2\r\nhi\r\n")
one("lines: INFO with bad JSON", b"INFO {x\r\n")
one("lines: INFO without an argument", b"INFO\r\n")
one("lines: MSG from a client", b"MSG foo 1 2\r\nhi\r\n")
one("lines: HMSG from a client", b"HMSG foo 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n")
one("lines: +OK and PONG before CONNECT", b"", b"+OK\r\nPONG\r\n" + PLAIN)
one("lines: half a verb at the end", b"SUB foo 1\r\nPUB foo 2\r\nhi\r\nPU")
steps("lines: half a verb, then its rest", send(PLAIN + b"SUB foo 1\r\nPU"), quiet(), send(b"B foo 2\r\nhi\r\n"), settle())
steps("lines: half a line keeps waiting", send(PLAIN + b"SUB foo"), quiet(), send(b".bar 1\r\nPUB foo.bar 1\r\nx\r\n"), settle())
steps("lines: half a payload keeps waiting", send(PLAIN + b"SUB foo 1\r\nPUB foo 10\r\nhello"), quiet(), send(b"world\r\n"), settle())
steps("lines: payload without its end keeps waiting", send(PLAIN + b"SUB foo 1\r\nPUB foo 5\r\nhello"), quiet(), send(b"\r"), quiet(), send(b"\n"), settle())
steps("lines: close in the middle of a payload", send(PLAIN + b"SUB foo 1\r\nPUB foo 10\r\nhello"))

# --- Control lines that are too long ----------------------------------------------------------------

for size in (1000, 3000, 4000):
    one(f"long: SUB with a subject of {size} bytes", b"SUB %s 1\r\nPUB %s 2\r\nhi\r\n" % (b"s" * size, b"s" * size))
for size in (4200, 5000, 20000, 70000):
    one(f"long: SUB with a subject of {size} bytes", b"SUB %s 1\r\n" % (b"s" * size))
one("long: SUB argument of 4,096 bytes", b"SUB %s 1\r\n" % (b"s" * 4094))
one("long: SUB argument of 4,097 bytes", b"SUB %s 1\r\n" % (b"s" * 4095))
one("long: PUB argument of 4,096 bytes", b"PUB %s 0\r\n\r\n" % (b"s" * 4094))
one("long: PUB argument of 4,097 bytes", b"PUB %s 0\r\n\r\n" % (b"s" * 4095))
one("long: PUB with 5,000 bytes", b"PUB %s 0\r\n\r\n" % (b"s" * 5000))
one("long: HPUB with 5,000 bytes", b"HPUB %s 12 12\r\nNATS/1.0\r\n\r\n\r\n" % (b"s" * 5000), FULL)
one("long: UNSUB with 5,000 bytes", b"UNSUB %s\r\n" % (b"9" * 5000))
one("long: CONNECT with 5,000 bytes", b"", b'CONNECT {"verbose":false,"name":"%s"}\r\n' % (b"n" * 5000))
one("long: INFO with 5,000 bytes", b'INFO {"x":"%s"}\r\n' % (b"n" * 5000))
steps("long: PING with 5,000 bytes", send(PLAIN + b"PING %s\r\n" % (b"n" * 5000)), settle(pongs=2))
one("long: spaces count", b"SUB foo%s1\r\n" % (b" " * 5000))
steps("long: SUB in two writes", send(PLAIN + b"SUB " + b"s" * 3000), quiet(), send(b"s" * 2000 + b" 1\r\n"), settle())
steps("long: SUB without an end", send(PLAIN + b"SUB " + b"s" * 9000), closed())
steps("long: PUB without an end", send(PLAIN + b"PUB " + b"s" * 9000), closed())
steps("long: CONNECT without an end", send(b"CONNECT " + b"s" * 9000), closed())
steps("long: garbage without an end", send(PLAIN + b"x" * 9000), closed())
one("long: a second SUB, after a good one", b"SUB foo 1\r\nPUB foo 2\r\nhi\r\nSUB %s 1\r\n" % (b"s" * 5000))

# --- PUB ------------------------------------------------------------------------------------------

one("pub: to oneself", b"SUB foo 1\r\nPUB foo 5\r\nhello\r\n")
one("pub: with a reply", b"SUB foo 1\r\nPUB foo bar 5\r\nhello\r\n")
one("pub: nothing", b"SUB foo 1\r\nPUB foo 0\r\n\r\n")
one("pub: nothing, with a reply", b"SUB foo 1\r\nPUB foo bar 0\r\n\r\n")
one("pub: several in order", b"SUB foo 1\r\n" + b"".join(b"PUB foo 1\r\n%d\r\n" % n for n in range(10)))
one("pub: a payload that looks like verbs", b"SUB foo 1\r\nPUB foo 26\r\nPUB foo 2\r\nhi\r\nPING\r\n\r\n\r\n\r\n")
one("pub: a payload of line ends", b"SUB foo 1\r\nPUB foo 6\r\n\r\n\r\n\r\n\r\n")
one("pub: all byte values", b"SUB foo 1\r\nPUB foo 256\r\n" + bytes(range(256)) + b"\r\n")
one("pub: no arguments", b"PUB\r\n")
one("pub: no arguments but a space", b"PUB \r\n")
one("pub: no size", b"PUB foo\r\n")
one("pub: too many arguments", b"PUB foo bar baz 2\r\nhi\r\n")
one("pub: size is a word", b"PUB foo two\r\nhi\r\n")
one("pub: size is negative", b"PUB foo -2\r\nhi\r\n")
one("pub: size with a plus sign", b"PUB foo +2\r\nhi\r\n")
one("pub: size with leading zeros", b"SUB foo 1\r\nPUB foo 0002\r\nhi\r\n")
one("pub: size with many leading zeros", b"SUB foo 1\r\nPUB foo 00000000000000000000000002\r\nhi\r\n")
one("pub: size in hexadecimal", b"PUB foo 0x2\r\nhi\r\n")
one("pub: size with a fraction", b"PUB foo 2.0\r\nhi\r\n")
one("pub: size 2 GB", b"PUB foo 2147483648\r\n")
one("pub: size 4 GB and two", b"PUB foo 4294967298\r\nhi\r\n")
one("pub: size beyond 63 bits", b"PUB foo 9223372036854775809\r\nhi\r\n")
one("pub: size beyond 64 bits", b"PUB foo 18446744073709551618\r\nhi\r\n")
one("pub: payload too short", b"SUB foo 1\r\nPUB foo 5\r\nhi\r\nPING\r\n")
one("pub: payload too long", b"SUB foo 1\r\nPUB foo 2\r\nhello\r\n")
one("pub: payload ends with a bare line feed", b"SUB foo 1\r\nPUB foo 2\r\nhi\nPING\r\n")
one("pub: payload ends with two line feeds", b"SUB foo 1\r\nPUB foo 2\r\nhi\n\n")
one("pub: payload ends with a carriage return alone", b"SUB foo 1\r\nPUB foo 2\r\nhi\rPING\r\n")
one("pub: payload ends the wrong way round", b"SUB foo 1\r\nPUB foo 2\r\nhi\n\r")
one("pub: a bad end after good messages", b"SUB foo 1\r\nPUB foo 2\r\nok\r\nPUB foo 2\r\nhixx\r\n")
one("pub: wildcard *", b"SUB foo.* 1\r\nSUB foo.bar 2\r\nPUB foo.* 2\r\nhi\r\n", masks=ANY_SID)
one("pub: wildcard >", b"SUB foo.> 1\r\nPUB foo.> 2\r\nhi\r\nPUB > 2\r\nhi\r\n")
one("pub: wildcard in a reply", b"SUB foo 1\r\nPUB foo bar.* 2\r\nhi\r\nPUB foo > 2\r\nhi\r\n")
one("pub: empty token within", b"SUB > 1\r\nPUB foo..bar 2\r\nhi\r\n")
one("pub: empty token first", b"SUB > 1\r\nPUB .foo 2\r\nhi\r\n")
one("pub: empty token last", b"SUB > 1\r\nPUB foo. 2\r\nhi\r\n")
one("pub: a dot", b"SUB > 1\r\nSUB *.* 2\r\nPUB . 2\r\nhi\r\n", masks=ANY_SID)
one("pub: empty tokens against *", b"SUB foo.*.bar 1\r\nPUB foo..bar 2\r\nhi\r\n")
one("pub: empty token last against *", b"SUB foo.* 1\r\nSUB foo.> 2\r\nPUB foo. 2\r\nhi\r\n", masks=ANY_SID)
one("pub: 200 tokens", b"SUB > 1\r\nPUB %s 2\r\nhi\r\n" % b".".join([b"t"] * 200))
one("pub: no subscriber", b"PUB nobody 2\r\nhi\r\n")
one("pub: in verbose", b"PUB foo 2\r\nhi\r\nPUB bar 0\r\n\r\n", VERBOSE)
one("pub: pedantic, wildcard", b"SUB foo.* 1\r\nPUB foo.* 2\r\nhi\r\n", PEDANTIC)
one("pub: pedantic, >", b"SUB > 1\r\nPUB > 2\r\nhi\r\n", PEDANTIC)
one("pub: pedantic, empty token", b"SUB > 1\r\nPUB foo..bar 2\r\nhi\r\nPUB foo. 2\r\nhi\r\nPUB .foo 2\r\nhi\r\n", PEDANTIC)
one("pub: pedantic, wildcard in the reply", b"SUB foo 1\r\nPUB foo bar.* 2\r\nhi\r\n", PEDANTIC)
one("pub: pedantic, wildcard within a token", b"SUB fo* 1\r\nPUB fo* 2\r\nhi\r\n", PEDANTIC)
one("pub: pedantic and verbose", b"PUB foo.* 2\r\nhi\r\n", b'CONNECT {"verbose":true,"pedantic":true}\r\n')
one("pub: pedantic, HPUB with a wildcard", b"SUB foo.* 1\r\n" + hpub(b"foo.*", HEADERS, b"hi"), PEDANTIC)

# --- The largest payload ----------------------------------------------------------------------------

MIB = 1 << 20
one("max: exactly max_payload", b"SUB foo 1\r\nPUB foo %d\r\n%s\r\n" % (MIB, b"x" * MIB))
one("max: one byte more", b"SUB foo 1\r\nPUB foo %d\r\n" % (MIB + 1))
one("max: one byte more, in verbose", b"PUB foo %d\r\n" % (MIB + 1), VERBOSE)
one("max: one byte more, without CONNECT", b"PUB foo %d\r\n" % (MIB + 1), b"")
one("max: HPUB exactly max_payload", b"SUB foo 1\r\n" + hpub(b"foo", HEADERS, b"x" * (MIB - len(HEADERS))), FULL)
one("max: HPUB one byte more", b"HPUB foo 12 %d\r\n" % (MIB + 1), FULL)
one("max: after good messages", b"SUB foo 1\r\nPUB foo 2\r\nhi\r\nPUB foo 1048577\r\n")

# --- HPUB and headers -------------------------------------------------------------------------------

one("hpub: to oneself", b"SUB foo 1\r\n" + hpub(b"foo", HEADERS, b"hello"), FULL)
one("hpub: with a reply", b"SUB foo 1\r\n" + hpub(b"foo", HEADERS, b"hello", b"bar"), FULL)
one("hpub: no payload", b"SUB foo 1\r\n" + hpub(b"foo", HEADERS, b""), FULL)
one("hpub: no headers but their first line", b"SUB foo 1\r\n" + hpub(b"foo", b"NATS/1.0\r\n\r\n", b"hi"), FULL)
one("hpub: header size zero", b"SUB foo 1\r\nHPUB foo 0 2\r\nhi\r\n", FULL)
one("hpub: both sizes zero", b"SUB foo 1\r\nHPUB foo 0 0\r\n\r\n", FULL)
one("hpub: header text that is none", b"SUB foo 1\r\nHPUB foo 5 7\r\nHELLOhi\r\n", FULL)
one("hpub: header size within a header", b"SUB foo 1\r\nHPUB foo 3 20\r\nNATS/1.0\r\nA: 1\r\n\r\nhi\r\n", FULL)
one("hpub: header size above the total", b"HPUB foo 5 2\r\nhi\r\n", FULL)
one("hpub: header size negative", b"HPUB foo -1 2\r\nhi\r\n", FULL)
one("hpub: total negative", b"HPUB foo 2 -1\r\nhi\r\n", FULL)
one("hpub: header size a word", b"HPUB foo x 2\r\nhi\r\n", FULL)
one("hpub: total a word", b"HPUB foo 2 x\r\nhi\r\n", FULL)
one("hpub: no total", b"HPUB foo 12\r\n", FULL)
one("hpub: no sizes", b"HPUB foo\r\n", FULL)
one("hpub: no arguments", b"HPUB\r\n", FULL)
one("hpub: too many arguments", b"HPUB foo bar baz 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", FULL)
one("hpub: total 2 GB", b"HPUB foo 12 2147483648\r\n", FULL)
one("hpub: header size 2 GB", b"HPUB foo 2147483648 2147483648\r\n", FULL)
one("hpub: bad end", b"SUB foo 1\r\nHPUB foo 12 14\r\nNATS/1.0\r\n\r\nhixx\r\n", FULL)
one("hpub: without headers in CONNECT", b"SUB foo 1\r\n" + hpub(b"foo", HEADERS, b"hi"), PLAIN)
one("hpub: headers false in CONNECT", hpub(b"foo", HEADERS, b"hi"), b'CONNECT {"verbose":false,"headers":false}\r\n')
one("hpub: verbose", hpub(b"foo", HEADERS, b"hi"), VERBOSE)
one("hpub: a status line", b"SUB foo 1\r\n" + hpub(b"foo", b"NATS/1.0 404 No Messages\r\n\r\n", b""), FULL)
one("hpub: sizes with leading zeros", b"SUB foo 1\r\nHPUB foo 0012 0014\r\nNATS/1.0\r\n\r\nhi\r\n", FULL)
steps(
    "hpub: a receiver without headers gets the payload alone",
    send(PLAIN + b"SUB foo 1\r\n", "b"), settle("b"),
    send(FULL + b"SUB foo 2\r\n" + hpub(b"foo", HEADERS, b"hello", b"bar") + hpub(b"foo", HEADERS, b"")), settle(),
    settle("b"),
)
steps(
    "hpub: a receiver without headers, payload empty, with a reply",
    send(PLAIN + b"SUB foo 1\r\n", "b"), settle("b"),
    send(FULL + hpub(b"foo", HEADERS, b"", b"bar")), settle(), settle("b"),
)

# --- SUB ------------------------------------------------------------------------------------------

one("sub: verbose", b"SUB foo 1\r\nSUB foo q 2\r\n", VERBOSE)
one("sub: no arguments", b"SUB\r\n")
one("sub: no arguments but a space", b"SUB \r\n")
one("sub: no sid", b"SUB foo\r\n")
one("sub: too many arguments", b"SUB foo q 1 2\r\n")
one("sub: sid of letters", b"SUB foo abc\r\nPUB foo 2\r\nhi\r\nUNSUB abc\r\nPUB foo 2\r\nhi\r\n")
one("sub: sid of signs", b"SUB foo #$%&\r\nPUB foo 2\r\nhi\r\n")
one("sub: sid zero", b"SUB foo 0\r\nPUB foo 2\r\nhi\r\n")
one("sub: sid with leading zeros is another", b"SUB foo 01\r\nSUB foo 1\r\nPUB foo 2\r\nhi\r\nUNSUB 1\r\nPUB foo 2\r\nho\r\n", masks=ANY_SID)
one("sub: sid of 200 digits", b"SUB foo %s\r\nPUB foo 2\r\nhi\r\n" % (b"7" * 200))
one("sub: negative sid", b"SUB foo -1\r\nPUB foo 2\r\nhi\r\n")
one("sub: sid used twice, same subject", b"SUB foo 1\r\nSUB foo 1\r\nPUB foo 2\r\nhi\r\n", VERBOSE)
one("sub: sid used twice, another subject", b"SUB foo 1\r\nSUB bar 1\r\nPUB foo 2\r\nhi\r\nPUB bar 2\r\nho\r\n", VERBOSE)
one("sub: sid used again after UNSUB", b"SUB foo 1\r\nUNSUB 1\r\nSUB bar 1\r\nPUB foo 2\r\nhi\r\nPUB bar 2\r\nho\r\n")
one("sub: sid used twice with a queue", b"SUB foo q 1\r\nSUB foo 1\r\nPUB foo 2\r\nhi\r\n", VERBOSE)
one("sub: two sids on one subject", b"SUB foo 1\r\nPUB foo 2\r\nhi\r\nSUB foo 2\r\nUNSUB 1\r\nPUB foo 2\r\nho\r\n")
one("sub: wildcard *", b"SUB foo.*.baz 1\r\nPUB foo.bar.baz 1\r\na\r\nPUB foo.baz 1\r\nb\r\nPUB foo.a.b.baz 1\r\nc\r\nPUB foo.bar.bar 1\r\nd\r\n")
one("sub: wildcard >", b"SUB foo.> 1\r\nPUB foo 1\r\na\r\nPUB foo.bar 1\r\nb\r\nPUB foo.bar.baz 1\r\nc\r\nPUB fo.bar 1\r\nd\r\n")
one("sub: > alone", b"SUB > 1\r\nPUB foo 1\r\na\r\nPUB foo.bar.baz 1\r\nb\r\n")
one("sub: * alone", b"SUB * 1\r\nPUB foo 1\r\na\r\nPUB foo.bar 1\r\nb\r\n")
one("sub: *.*", b"SUB *.* 1\r\nPUB foo 1\r\na\r\nPUB foo.bar 1\r\nb\r\nPUB a.b.c 1\r\nc\r\n")
one("sub: *.>", b"SUB *.> 1\r\nPUB foo 1\r\na\r\nPUB foo.bar 1\r\nb\r\nPUB a.b.c 1\r\nc\r\n")
one("sub: > in the middle", b"SUB foo.>.bar 1\r\nPUB foo.x.bar 2\r\nhi\r\nPUB foo.>.bar 2\r\nho\r\n")
one("sub: >> is a name", b"SUB foo.>> 1\r\nPUB foo.bar 2\r\nhi\r\nPUB foo.>> 2\r\nho\r\n")
one("sub: ** is a name", b"SUB ** 1\r\nPUB foo 2\r\nhi\r\nPUB ** 2\r\nho\r\n")
one("sub: fo* is a name", b"SUB fo* 1\r\nPUB foo 2\r\nhi\r\nPUB fo* 2\r\nho\r\n")
one("sub: *a.b is a name", b"SUB *a.b 1\r\nPUB xa.b 2\r\nhi\r\nPUB *a.b 2\r\nho\r\n")
one("sub: a> is a name", b"SUB a> 1\r\nPUB a> 2\r\nho\r\nPUB a.b 2\r\nhi\r\n")
one("sub: empty token within", b"SUB foo..bar 1\r\nPUB foo..bar 2\r\nhi\r\n")
one("sub: empty token first", b"SUB .foo 1\r\nPUB .foo 2\r\nhi\r\n")
one("sub: empty token last", b"SUB foo. 1\r\nPUB foo. 2\r\nhi\r\n")
one("sub: a dot", b"SUB . 1\r\n")
one("sub: dots", b"SUB ... 1\r\n")
one("sub: invalid, in verbose", b"SUB foo..bar 1\r\nSUB foo 2\r\n", VERBOSE)
one("sub: invalid with a queue", b"SUB foo..bar q 1\r\n", VERBOSE)
one("sub: invalid, then its sid is free", b"SUB foo..bar 1\r\nSUB foo 1\r\nPUB foo 2\r\nhi\r\n")
one("sub: capitals matter", b"SUB Foo 1\r\nPUB foo 2\r\nhi\r\nPUB Foo 2\r\nho\r\n")
one("sub: a prefix is not a match", b"SUB foo 1\r\nPUB foobar 1\r\na\r\nPUB fo 1\r\nb\r\nPUB foo.bar 1\r\nc\r\n")
one("sub: $SYS as a plain name", b"SUB $SYS.foo 1\r\nPUB $SYS.foo 2\r\nhi\r\n")
one("sub: 40 tokens", b"SUB %s 1\r\nPUB %s 2\r\nhi\r\n" % (b".".join([b"*"] * 40), b".".join([b"t"] * 40)))
one("sub: literal and wildcards together", b"SUB foo.bar 1\r\nUNSUB 1\r\nSUB foo.* 2\r\nPUB foo.bar 2\r\nhi\r\nSUB foo.bar 3\r\nUNSUB 2\r\nPUB foo.bar 2\r\nho\r\nPUB foo.x 2\r\nno\r\n")
steps(
    "sub: several sids of one connection all get it",
    send(PLAIN + b"SUB foo 1\r\nSUB foo 2\r\nSUB * 3\r\nSUB > 4\r\nPUB foo 2\r\nhi\r\n"), settle(),
    masks=ANY_SID,
)

# --- UNSUB ----------------------------------------------------------------------------------------

HI = b"PUB foo 2\r\nhi\r\n"
one("unsub: at once", b"SUB foo 1\r\n" + HI + b"UNSUB 1\r\n" + HI)
one("unsub: verbose", b"SUB foo 1\r\nUNSUB 1\r\n", VERBOSE)
one("unsub: unknown sid", b"UNSUB 99\r\n", VERBOSE)
one("unsub: no arguments", b"UNSUB\r\n")
one("unsub: no arguments but a space", b"UNSUB \r\n")
one("unsub: too many arguments", b"SUB foo 1\r\nUNSUB 1 2 3\r\n")
one("unsub: max is a word", b"SUB foo 1\r\nUNSUB 1 x\r\n" + HI)
one("unsub: max is negative", b"SUB foo 1\r\nUNSUB 1 -1\r\n" + HI)
one("unsub: max zero", b"SUB foo 1\r\nUNSUB 1 0\r\n" + HI)
one("unsub: max beyond 64 bits", b"SUB foo 1\r\nUNSUB 1 18446744073709551617\r\n" + HI + HI)
one("unsub: max before deliveries", b"SUB foo 1\r\nUNSUB 1 2\r\n" + HI * 4)
one("unsub: max above what was delivered", b"SUB foo 1\r\n" + HI + b"UNSUB 1 3\r\n" + HI * 4)
one("unsub: max equal to what was delivered", b"SUB foo 1\r\n" + HI * 2 + b"UNSUB 1 2\r\n" + HI * 2)
one("unsub: max below what was delivered", b"SUB foo 1\r\n" + HI * 3 + b"UNSUB 1 2\r\n" + HI * 2)
one("unsub: max one", b"SUB foo 1\r\nUNSUB 1 1\r\n" + HI * 2)
one("unsub: max raised", b"SUB foo 1\r\nUNSUB 1 1\r\nUNSUB 1 3\r\n" + HI * 5)
one("unsub: max lowered", b"SUB foo 1\r\nUNSUB 1 5\r\n" + HI + b"UNSUB 1 2\r\n" + HI * 5)
one("unsub: max taken back by a plain UNSUB", b"SUB foo 1\r\nUNSUB 1 5\r\n" + HI + b"UNSUB 1\r\n" + HI)
one("unsub: sid free after max", b"SUB foo 1\r\nUNSUB 1 1\r\n" + HI + b"SUB bar 1\r\nPUB bar 2\r\nho\r\n" + HI)
one("unsub: max and SUB of the same sid again", b"SUB foo 1\r\nUNSUB 1 2\r\n" + HI + b"SUB foo 1\r\n" + HI * 3)
one("unsub: max in verbose", b"SUB foo 1\r\nUNSUB 1 1\r\n" + HI + HI, VERBOSE)
one("unsub: one of two", b"SUB foo 1\r\nSUB foo 2\r\nUNSUB 1\r\n" + HI, masks=ANY_SID)
one("unsub: a queue member", b"SUB foo q 1\r\nSUB foo q 2\r\nUNSUB 1\r\n" + HI * 3)
one("unsub: the last queue member", b"SUB foo q 1\r\nUNSUB 1\r\n" + HI)
one("unsub: max of a queue member", b"SUB foo q 1\r\nUNSUB 1 2\r\n" + HI * 4)
steps(
    "unsub: max counts messages from others",
    send(PLAIN + b"SUB foo 1\r\nUNSUB 1 2\r\n", "b"), settle("b"),
    send(PLAIN + HI * 4), settle(), settle("b"),
)

# --- Queue groups -----------------------------------------------------------------------------------

one("queue: one member", b"SUB foo q 1\r\n" + HI * 3)
one("queue: two members, one copy", b"SUB foo q 1\r\nSUB foo q 2\r\n" + HI * 5, masks=ANY_SID)
one("queue: two groups, a copy each", b"SUB foo q 1\r\nSUB foo r 2\r\n" + HI, masks=ANY_SID)
one("queue: group and plain", b"SUB foo q 1\r\nSUB foo 2\r\n" + HI, masks=ANY_SID)
one("queue: group over wildcards", b"SUB foo q 1\r\nSUB * q 2\r\nSUB > q 3\r\n" + HI, masks=ANY_SID)
one("queue: a wildcard as a name", b"SUB foo * 1\r\n" + HI)
one("queue: dots in a name", b"SUB foo q..x. 1\r\n" + HI)
one("queue: name and wildcard subject", b"SUB foo.* q 1\r\nPUB foo.bar 2\r\nhi\r\n")
one("queue: reserved name", b"SUB foo _sys_ 1\r\n" + HI, VERBOSE)
one("queue: reserved name, then its sid is free", b"SUB foo _sys_ 1\r\nSUB foo 1\r\n" + HI)
one("queue: echo off", b"SUB foo q 1\r\n" + HI, NO_ECHO)
steps(
    "queue: echo off, another member gets it",
    send(PLAIN + b"SUB foo q 1\r\n", "b"), settle("b"),
    send(NO_ECHO + b"SUB foo q 1\r\n" + HI * 5), settle(), settle("b"),
)
steps(
    "queue: the other member has gone",
    send(PLAIN + b"SUB foo q 1\r\n", "b"), settle("b"),
    send(PLAIN + b"SUB foo q 2\r\n"), settle(),
    send(b"UNSUB 1\r\n", "b"), settle("b"),
    send(HI * 4), settle(), settle("b"),
)

# --- Echo, order and other connections --------------------------------------------------------------

one("echo: off", b"SUB foo 1\r\n" + HI, NO_ECHO)
one("echo: on by name", b"SUB foo 1\r\n" + HI, b'CONNECT {"verbose":false,"echo":true}\r\n')
steps(
    "echo: off, others get it",
    send(PLAIN + b"SUB foo 1\r\n", "b"), settle("b"),
    send(NO_ECHO + b"SUB foo 1\r\n" + HI), settle(),
    settle("b"),
)
steps(
    "echo: off, but hears others",
    send(NO_ECHO + b"SUB foo 1\r\n", "b"), settle("b"),
    send(PLAIN + HI), settle(), settle("b"),
)
steps("order: PONG after the messages before it", send(FULL), settle(), send(b"SUB foo 1\r\n" + HI + b"PING\r\n" + HI + b"PING\r\n"), read(pongs=2), settle())
one("order: +OK before the message", b"SUB foo 1\r\n" + HI + b"SUB bar 2\r\nPUB bar 2\r\nho\r\n", VERBOSE)
steps("order: +OK and PONG", send(VERBOSE), settle(), send(b"SUB foo 1\r\nPING\r\n" + HI + b"PING\r\nUNSUB 1\r\nPING\r\n"), read(pongs=3))
steps("order: +OK, -ERR and PONG", send(VERBOSE), settle(), send(b"SUB a..b 1\r\nPING\r\nSUB foo 2\r\nPUB _R_.x 2\r\nhi\r\n"), settle(pongs=2))
steps("order: messages before the error that closes", send(PLAIN + b"SUB foo 1\r\n" + HI * 3 + b"NONSENSE\r\n"), closed())
steps(
    "order: two publishers, one after the other",
    send(PLAIN + b"SUB foo.> 1\r\n", "c"), settle("c"),
    send(PLAIN + b"PUB foo.a 1\r\n1\r\nPUB foo.a 1\r\n2\r\n"), settle(),
    send(PLAIN + b"PUB foo.b 1\r\n3\r\nPUB foo.b 1\r\n4\r\n", "b"), settle("b"),
    settle("c"),
)
steps(
    "order: a subscriber that left gets nothing more",
    send(PLAIN + b"SUB foo 1\r\n", "b"), settle("b"),
    send(PLAIN + HI), settle(), settle("b"),
    send(b"UNSUB 1\r\n", "b"), settle("b"),
    send(HI), settle(), settle("b"),
)
steps("ping: many at once", send(PLAIN + b"PING\r\n" * 50), read(pongs=50))
steps("ping: PONG unasked", send(PLAIN + b"PONG\r\n" * 50), settle())
steps("ping: before CONNECT", send(b"PING\r\n"), read(), send(FULL), settle())

# --- No responders ----------------------------------------------------------------------------------

ASK = b"PUB nobody in.1 2\r\nhi\r\n"
one("503: the exact bytes", b"SUB in.* 1\r\n" + ASK, FULL)
one("503: for HPUB", b"SUB in.* 1\r\n" + hpub(b"nobody", HEADERS, b"hi", b"in.1"), FULL)
one("503: the reply subscription is literal", b"SUB in.1 9\r\n" + ASK, FULL)
one("503: no reply, none", b"SUB in.* 1\r\nPUB nobody 2\r\nhi\r\n", FULL)
one("503: no_responders off", b"SUB in.* 1\r\n" + ASK, b'CONNECT {"verbose":false,"headers":true}\r\n')
one("503: nobody hears the reply", ASK, FULL)
one("503: the reply is heard in a queue group", b"SUB in.* q 1\r\n" + ASK, FULL)
one("503: the reply is heard twice", b"SUB in.* 1\r\nSUB in.1 2\r\n" + ASK, FULL, masks=[(rb"in\.1 \d 47", b"in.1 N 47"), (rb"in\.1 \d ", b"in.1 N ")])
one("503: verbose", b"SUB in.* 1\r\n" + ASK, b'CONNECT {"verbose":true,"headers":true,"no_responders":true}\r\n')
one("503: echo off and only oneself", b"SUB in.* 1\r\nSUB nobody 2\r\n" + ASK, NO_ECHO)
one("503: oneself responds", b"SUB in.* 1\r\nSUB nobody 2\r\n" + ASK, FULL)
one("503: after the responder left", b"SUB in.* 1\r\nSUB nobody 2\r\nUNSUB 2\r\n" + ASK, FULL)
one("503: after the responder's max", b"SUB in.* 1\r\nSUB nobody 2\r\nUNSUB 2 1\r\n" + ASK + ASK, FULL)
one("503: counts for UNSUB max", b"SUB in.* 1\r\nUNSUB 1 1\r\n" + ASK + ASK, FULL)
one("503: payload of nothing", b"SUB in.* 1\r\nPUB nobody in.1 0\r\n\r\n", FULL)
one("503: order with PONG", b"SUB in.* 1\r\n" + ASK + b"PUB in.1 2\r\nme\r\n" + ASK, FULL)
one("503: wildcard subject", b"SUB in.* 1\r\nPUB nobody.* in.1 2\r\nhi\r\n", FULL)
steps(
    "503: another connection hears the reply",
    send(FULL + b"SUB in.* 1\r\n", "b"), settle("b"),
    send(FULL + ASK), settle(), settle("b"),
)
steps(
    "503: a responder on another connection",
    send(FULL + b"SUB nobody 1\r\n", "b"), settle("b"),
    send(FULL + b"SUB in.* 1\r\n" + ASK), settle(), settle("b"),
    send(b"PUB in.1 5\r\nreply\r\n", "b"), settle("b"), settle(),
)
steps(
    "503: a responder in a queue group",
    send(FULL + b"SUB nobody q 1\r\n", "b"), settle("b"),
    send(FULL + b"SUB in.* 1\r\n" + ASK), settle(), settle("b"),
)

# --- Reserved names ---------------------------------------------------------------------------------

for name in (b"_GR_.foo", b"_GR_", b"$GR.foo", b"$NRG.foo", b"$NRG.P.x", b"_R_.foo", b"$JS.ACK.foo", b"$JS.foo", b"$SYS.foo", b"_INBOX.foo"):
    one(f"reserved: publish to {name.decode()}", b"SUB %s 1\r\nPUB %s 2\r\nhi\r\n" % (name, name), FULL)
    one(f"reserved: reply to {name.decode()}", b"SUB foo 1\r\nPUB foo %s 2\r\nhi\r\n" % name, FULL)
one("reserved: publish, in verbose", b"PUB _GR_.foo 2\r\nhi\r\nPUB foo _R_.x 2\r\nhi\r\n", VERBOSE)
one("reserved: HPUB", hpub(b"_GR_.foo", HEADERS, b"hi") + hpub(b"foo", HEADERS, b"hi", b"_R_.x"), FULL)
one("reserved: subscribe to > and publish", b"SUB > 1\r\nPUB _GR_.foo 2\r\nhi\r\nPUB ok 2\r\nhi\r\n", FULL)
one("reserved: subscribe to _GR_", b"SUB _GR_.> 1\r\nSUB _R_.> 2\r\nSUB $JS.ACK.> 3\r\nSUB $SYS.> 4\r\n", VERBOSE)

# --- Authorization ----------------------------------------------------------------------------------

GOOD = b'CONNECT {"verbose":false,"user":"alice","pass":"secret"}\r\n'
for verb, data in {
    "PING": b"PING\r\n",
    "PONG": b"PONG\r\n",
    "PUB": b"PUB foo 2\r\nhi\r\n",
    "HPUB": b"HPUB foo 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
    "SUB": b"SUB foo 1\r\n",
    "UNSUB": b"UNSUB 1\r\n",
    "+OK": b"+OK\r\n",
    "INFO": b"INFO {}\r\n",
    "-ERR": b"-ERR 'x'\r\n",
    "garbage": b"garbage\r\n",
    "an empty line": b"\r\n",
}.items():
    steps(f"auth: {verb} comes first", send(data), closed(), server="user")
one("auth: user accepted", HI, GOOD, server="user")
one("auth: user accepted, verbose", b"", b'CONNECT {"user":"alice","pass":"secret"}\r\n', server="user")
one("auth: wrong password", b"", b'CONNECT {"verbose":false,"user":"alice","pass":"wrong"}\r\n', server="user")
one("auth: wrong password, verbose", b"", b'CONNECT {"verbose":true,"user":"alice","pass":"wrong"}\r\n', server="user")
one("auth: wrong user", b"", b'CONNECT {"verbose":false,"user":"bob","pass":"secret"}\r\n', server="user")
one("auth: user in capitals", b"", b'CONNECT {"verbose":false,"user":"ALICE","pass":"secret"}\r\n', server="user")
one("auth: no password", b"", b'CONNECT {"verbose":false,"user":"alice"}\r\n', server="user")
one("auth: no credentials", b"", PLAIN, server="user")
one("auth: empty object", b"", b"CONNECT {}\r\n", server="user")
one("auth: password as auth_token", b"", b'CONNECT {"verbose":false,"auth_token":"secret"}\r\n', server="user")
one("auth: bad JSON", b"", b"CONNECT {\r\n", server="user")
one("auth: password is a number", b"", b'CONNECT {"verbose":false,"user":"alice","pass":7}\r\n', server="user")
one("auth: refused, what follows is not done", b"SUB foo 1\r\n" + HI, b'CONNECT {"verbose":false,"user":"alice","pass":"wrong"}\r\n', server="user")
one("auth: accepted, protocol 2", b"", b'CONNECT {"verbose":false,"protocol":2,"user":"alice","pass":"secret"}\r\n', server="user")
one("auth: refused, protocol 2", b"", b'CONNECT {"verbose":false,"protocol":2,"user":"alice","pass":"wrong"}\r\n', server="user")
one("auth: refused, no_responders without headers", b"", b'CONNECT {"verbose":false,"no_responders":true,"user":"alice","pass":"wrong"}\r\n', server="user")
one("auth: a second CONNECT keeps its user", PLAIN + HI, GOOD, server="user")
one("auth: a second CONNECT with a wrong password", b'CONNECT {"user":"alice","pass":"wrong"}\r\n' + HI, GOOD, server="user")
one("auth: account", b"", b'CONNECT {"verbose":false,"account":"A","user":"alice","pass":"secret"}\r\n', server="user")
one("auth: long line before CONNECT", b"", b"CONNECT %s\r\n" % (b"x" * 5000), server="user")
one("auth: PUB above max_payload first", b"", b"PUB foo 2000000\r\n", server="user")
steps("auth: nothing comes, time runs out", closed(), server="user")
steps("auth: half a CONNECT, time runs out", send(b'CONNECT {"user":"al'), closed(), server="user")
one("auth: token accepted", HI, b'CONNECT {"verbose":false,"auth_token":"s3cr3t"}\r\n', server="token")
one("auth: token wrong", b"", b'CONNECT {"verbose":false,"auth_token":"wrong"}\r\n', server="token")
one("auth: token missing", b"", PLAIN, server="token")
one("auth: token empty", b"", b'CONNECT {"verbose":false,"auth_token":""}\r\n', server="token")
one("auth: token longer", b"", b'CONNECT {"verbose":false,"auth_token":"s3cr3tx"}\r\n', server="token")
one("auth: token as a password", b"", b'CONNECT {"verbose":false,"user":"x","pass":"s3cr3t"}\r\n', server="token")
one("auth: token as a user", b"", b'CONNECT {"verbose":false,"user":"s3cr3t"}\r\n', server="token")
steps("auth: token, PUB comes first", send(b"PUB foo 2\r\nhi\r\n"), closed(), server="token")

# --- Bytes one at a time, and every way to cut a session in two ---------------------------------------

WHOLE = (
    FULL
    + b"SUB foo.* 1\r\nSUB in.1 q 2\r\nSUB in.2 3\r\nPUB foo.bar 5\r\nhello\r\n"
    + b"PUB foo.x re.ply 0\r\n\r\n"
    + hpub(b"foo.h", HEADERS, b"hi", b"back")
    + b"PUB nobody in.2 2\r\nhi\r\nUNSUB 2 1\r\nPUB in.1 1\r\nx\r\nPUB in.1 1\r\ny\r\nUNSUB 1\r\nPUB foo.bar 1\r\nz\r\n"
)
steps("split: a session in one write", send(WHOLE), settle())
steps("split: a session a byte at a time", drip(WHOLE), settle())
steps("split: a verbose session a byte at a time", drip(WHOLE.replace(b'"verbose":false', b'"verbose":true')), settle())
steps("split: a session with bare line feeds a byte at a time", drip(WHOLE.replace(b"1\r\nSUB", b"1\nSUB").replace(b"5\r\n", b"5\n")), settle())
steps("split: a session with tabs a byte at a time", drip(WHOLE.replace(b"PUB ", b"PUB\t ").replace(b"UNSUB ", b"UNSUB \t")), settle())
steps("split: every boundary of a session", splits(WHOLE))
steps("split: every boundary of a session that ends in an error", splits(PLAIN + b"SUB foo 1\r\nPUB foo 2\r\nhi\r\nPUB foo 2\r\nhixx"))
steps("split: an unknown verb a byte at a time", drip(PLAIN + b"NONSENSE\r\n"), closed())
steps("split: a bad payload end a byte at a time", drip(PLAIN + b"SUB foo 1\r\nPUB foo 2\r\nhixx"), closed())
steps("split: a long line a byte at a time", drip(PLAIN + b"SUB " + b"s" * 4200), closed())
steps("split: bad JSON a byte at a time", drip(b"CONNECT {x}\r\n"), closed())
steps("split: +OK, INFO and PONG a byte at a time", drip(PLAIN + b"+OK\r\nINFO {}\r\nPONG\r\nPING\r\n"), read())
