"""Requests message traces (`Nats-Trace-Dest`) from nats-server and the server under test, and compares them.

Fanline reports its shards like servers of a cluster. Their routes are not compared.
"""

import json

from nats.aio.client import Client

from harness.checks import WAIT_SECONDS_MAX

CONFIGURATION = """
accounts {
  SYS { users [ { user: sys, password: s } ] }
  A {
    users [ { user: a, password: a } ], jetstream: enabled
    exports [ { service: "ask.open", allow_trace: true }, { service: "ask.closed" }, { stream: "news.>" } ]
    mappings { "old.*": "new.{{wildcard(1)}}" }
  }
  B {
    users [ { user: b, password: b } ]
    imports [
      { service: { account: A, subject: "ask.open" }, to: "open" }
      { service: { account: A, subject: "ask.closed" }, to: "closed" }
      { stream: { account: A, subject: "news.>" }, prefix: "p" }
    ]
  }
  C {
    users [ { user: c, password: c } ], msg_trace: "all.traces"
    imports [ { stream: { account: A, subject: "news.>" }, allow_trace: true } ]
  }
  D { users [ { user: d, password: d, permissions: { publish: ["may", "t"] } } ] }
}
system_account: SYS
"""

SAMPLED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TO = {"Nats-Trace-Dest": "t"}
ONLY = TO | {"Nats-Trace-Only": "true"}

# The publisher, the subject, and the headers of each message.
MESSAGES = [
    ("a", "x", TO),
    ("a", "x", ONLY),
    ("a", "x", TO | {"Nats-Trace-Only": "1", "b": "c"}),
    ("a", "x", TO | {"Nats-Trace-Only": "no"}),
    ("a", "nobody", TO),
    ("a", "old.1", TO),
    ("a", "news.1", TO),
    ("a", "news.1", ONLY),
    ("a", "kept.1", TO),
    ("a", "kept.1", ONLY),
    ("b", "open", TO),
    ("b", "open", ONLY),
    ("b", "closed", TO),
    ("c", "x", {"traceparent": SAMPLED}),
    ("c", "x", {"Traceparent": SAMPLED[:-1] + "0"}),
    ("a", "x", {"traceparent": SAMPLED}),
    ("d", "may", TO),
    ("d", "not", TO),
    ("d", "may", {"Nats-Trace-Dest": "elsewhere"}),
    ("a", "x", {"Nats-Trace-Dest": "a..b"}),
    ("a", "x", {"Nats-Trace-Dest": "a.*"}),
    ("a", "x", {"nats-trace-dest": "t"}),
]

SUBSCRIPTIONS = {
    "a": [("x", ""), ("x", "group"), ("new.*", ""), ("ask.*", "")],
    "b": [("p.news.*", "")],
    "c": [("news.*", "")],
    "d": [("may", "")],
}


async def ask_all(port: int):
    """Returns the trace events and the receivers of each message."""
    clients, told, got, errors = {}, [], [], []

    async def note_error(error):
        errors.append(str(error))

    def told_to(name):
        async def note(message):
            told.append((name, message.subject, json.loads(message.data)))

        return note

    def got_by(name):
        async def note(message):
            # The trace destination may change on the way to another account; this is not compared.
            got.append((name, message.subject, message.data))

        return note

    for name, subscriptions in SUBSCRIPTIONS.items():
        client = clients[name] = Client()
        await client.connect(f"nats://{name}:{name}@127.0.0.1:{port}", error_cb=note_error)
        for subject in ("t", "all.traces"):
            await client.subscribe(subject, cb=told_to(name))
        for subject, queue in subscriptions:
            await client.subscribe(subject, queue, cb=got_by(name))
    jetstream = clients["a"].jetstream()
    await jetstream.add_stream(name="KEPT", subjects=["kept.*"])
    answers = []
    marks = await clients["a"].subscribe("mark")

    async def flush():
        for client in clients.values():
            await client.flush()

    for name, subject, headers in MESSAGES:
        told.clear(), got.clear(), errors.clear()
        await clients[name].publish(subject, b"hi", headers=headers)
        await flush()
        # Servers trace in order, and streams store in order: the trace of a later record is the last one.
        await jetstream.publish("kept.mark", headers={"Nats-Trace-Dest": "mark"})
        await marks.next_msg(WAIT_SECONDS_MAX)
        await flush()
        kept = (await jetstream.stream_info("KEPT")).state.messages
        answers.append((events(told), sorted(got), errors[:], kept))
    for client in clients.values():
        await client.close()
    return answers


def events(told):
    """Returns trace events without times, connection ids, and routes."""
    lines = set()
    for name, subject, trace in told:
        for event in trace["events"]:
            if event.get("kind") == 1:
                continue
            event = {key: value for key, value in event.items() if key not in ("ts", "cid")}
            lines.add((name, subject, json.dumps(event, sort_keys=True), trace["request"]["msgsize"]))
    return sorted(lines)
