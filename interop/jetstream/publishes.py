"""Responses to publishes, pull requests, and acknowledgements: conditions in headers, and limits that are
reached."""

from jetstream.cases import LEVEL, SECOND, consumer, copy, create, update
from jetstream.session import Case, Fast, Several, api, publish, request

STATE = api("STREAM.INFO.S")
LAST = "Nats-Expected-Last-Subject-Sequence"


def tries(name, make, headers, before=(), topic="s.a", body="x"):
    """Returns a case that publishes with one set of headers after the other."""
    sets = [{key.replace("-", "_"): value for key, value in one.items()} for one in headers]
    return Case(name, [*make, *before, *(publish(topic, body, **one) for one in sets), STATE])


THREE = [publish("s.a", "1"), publish("s.b", "2", Nats_Msg_Id="m"), publish("s.a", "3")]

CASES = [
    Case(f"publish: {name}", [create(**config), *(publish(subject, body) for subject, body in messages), STATE])
    for name, config, messages in [
        ("max_msgs", {"max_msgs": 2}, [("s.a", "1"), ("s.b", "2"), ("s.c", "3")]),
        ("max_msgs, discard new", {"max_msgs": 2, "discard": "new"}, [("s.a", "1"), ("s.b", "2"), ("s.c", "3")]),
        ("max_bytes", {"max_bytes": 100}, [("s.a", "x" * 40), ("s.b", "x" * 40), ("s.c", "x" * 90)]),
        ("max_bytes, discard new", {"max_bytes": 100, "discard": "new"}, [("s.a", "x" * 40), ("s.b", "x" * 40), ("s.c", "x" * 90)]),
        ("max_msg_size", {"max_msg_size": 5}, [("s.a", "12345"), ("s.a", "123456"), ("s.a", "")]),
        ("max_msgs_per_subject", {"max_msgs_per_subject": 1}, [("s.a", "1"), ("s.a", "2"), ("s.b", "3")]),
        ("max_msgs_per_subject, discard new", {"max_msgs_per_subject": 1, "discard": "new"}, [("s.a", "1"), ("s.a", "2"), ("s.b", "3")]),
        ("discard_new_per_subject", {"max_msgs_per_subject": 1, "discard": "new", "discard_new_per_subject": True},
         [("s.a", "1"), ("s.a", "2"), ("s.b", "3")]),
        ("both limits, discard new", {"max_msgs_per_subject": 1, "max_msgs": 1, "discard": "new"}, [("s.a", "1"), ("s.a", "2"), ("s.b", "3")]),
        ("all limits, discard new", {"max_msgs_per_subject": 1, "max_msgs": 1, "discard": "new", "discard_new_per_subject": True},
         [("s.a", "1"), ("s.a", "2"), ("s.b", "3")]),
        ("no_ack", {"no_ack": True}, [("s.a", "1")]),
        ("interest, nobody interested", {"retention": "interest"}, [("s.a", "1")]),
    ]
] + [
    tries("publish: expected", [create()], [
        {"Nats-Expected-Stream": "S"}, {"Nats-Expected-Stream": "T"}, {"Nats-Expected-Last-Sequence": 4},
        {"Nats-Expected-Last-Sequence": 4}, {"Nats-Expected-Last-Sequence": "x"}, {"Nats-Expected-Last-Sequence": -1},
        {"Nats-Expected-Last-Sequence": 0}, {LAST: 5}, {LAST: 5}, {LAST: 0}, {LAST: "x"},
        {LAST: 2, LAST + "-Subject": "s.b"}, {LAST: 1, LAST + "-Subject": "s.b"}, {LAST: 0, LAST + "-Subject": "s.c"},
        {LAST: 6, LAST + "-Subject": "s.*"}, {LAST: 0, LAST + "-Subject": "q.*"}, {LAST: 9, LAST + "-Subject": "s.>"},
        {LAST + "-Subject": "s.b"}, {"Nats-Expected-Last-Msg-Id": "m"}, {"Nats-Expected-Last-Msg-Id": "n"},
        {"Nats-Msg-Id": "n"}, {"Nats-Expected-Last-Msg-Id": "n"}, {"Nats-Expected-Last-Msg-Id": "m"},
        {"Nats-Expected-Stream": "T", "Nats-Msg-Id": "n"}, {"Nats-Msg-Id": "n", "Nats-Expected-Last-Sequence": 0},
        {"Nats-Expected-Last-Sequence": 0, LAST: 0}, {LAST: 1, "Nats-Expected-Last-Msg-Id": "q"},
    ], THREE),
    tries("publish: duplicates", [create()], [
        {"Nats-Msg-Id": "a"}, {"Nats-Msg-Id": "a"}, {"Nats-Msg-Id": ""}, {"Nats-Msg-Id": ""}, {"Nats-Msg-Id": " a"},
        {"Nats-Msg-Id": "a "}, {"nats-msg-id": "a"},
    ]),
    tries("publish: rollups refused", [create()], [
        {"Nats-Rollup": "sub"}, {"Nats-Rollup": "all"}, {"Nats-Rollup": "x"}, {"Nats-Rollup": ""},
    ]),
    tries("publish: rollups", [create(allow_rollup_hdrs=True)], [
        {"Nats-Rollup": "x"}, {"Nats-Rollup": "sub"}, {"Nats-Rollup": "SUB"}, {"Nats-Rollup": "all"}, {"Nats-Rollup": "All"},
    ], THREE),
    tries("publish: lives refused", [create()], [
        {"Nats-TTL": value} for value in ("1", "x", "never", "0", "-1", "")
    ]),
    tries("publish: lives", [create(allow_msg_ttl=True)], [
        {"Nats-TTL": value} for value in ("100", "x", "never", "Never", "0", "-1", "", "1.5", "100s", "500ms", "1h", "1s", "99999999999", "0s")
    ]),
    tries("publish: lives with markers", [create(subject_delete_marker_ttl=10 * SECOND)], [
        {"Nats-TTL": value} for value in ("1", "9s", "10s", "100s", "never")
    ]),
    tries("publish: counters refused", [create()], [{"Nats-Incr": value} for value in ("1", "x", "")]),
    tries("publish: counters", [create(allow_msg_counter=True)], [
        {"Nats-Incr": "1"}, {"Nats-Incr": "+5"}, {"Nats-Incr": "-3"}, {"Nats-Incr": "x"}, {"Nats-Incr": ""}, {},
        {"Nats-Incr": "1.5"}, {"Nats-Incr": "100000000000000000000000"}, {"Nats-Incr": "1", "Nats-Msg-Id": "a"},
        {"Nats-Incr": "1", "Nats-Msg-Id": "a"}, {"Nats-Incr": "1", LAST: 1}, {"Nats-Incr": "1", "Nats-Rollup": "sub"},
        {"Nats-Incr": "1", "Nats-TTL": "100"}, {"Nats-Incr": "1", "Nats-Expected-Last-Sequence": 1},
        {"Nats-Incr": "0x1"}, {"Nats-Incr": "1_000"}, {"Nats-Incr": " 2"},
    ], body=""),
    tries("publish: counters with bodies", [create(allow_msg_counter=True)], [{"Nats-Incr": "1"}, {}]),
    Case("publish: a broken counter", [
        create(), publish("s.a", "x"), api("STREAM.DELETE.S"), create(allow_msg_counter=True, subjects=["s.>"]), publish("s.a", "", Nats_Incr="1"),
        api("STREAM.MSG.GET.S", {"seq": 1}),
    ]),
    tries("publish: sources", [create()], [{"Nats-Stream-Source": "x"}, {"Nats-Stream-Source": ""}]),
    tries("publish: levels", [create()], [
        {"Nats-Required-Api-Level": value} for value in ("1", "9", "x", "")
    ]),
    Case("publish: long headers", [
        create(), publish("s.a", "", A="x" * 65_500), publish("s.a", "", A="x" * 65_520), publish("s.a", "", A="x" * 65_540), STATE,
    ]),
    Case("publish: sealed", [create(), *THREE, update(sealed=True), publish("s.a", "x"), publish("s.a", "x", Nats_Expected_Stream="T"),
                             publish("s.b", "2", Nats_Msg_Id="m"), api("STREAM.MSG.DELETE.S", {"seq": 1}), api("STREAM.PURGE.S"),
                             api("STREAM.INFO.S")]),
    Case("publish: a copy has no subjects", [create("O"), copy("M", mirror={"name": "O"}), publish("m", "x"), publish("o.a", "x")]),
    Case("publish: after a change of limits", [
        create(), *THREE, update(max_msgs=1), STATE, update(max_msgs=1, discard="new"), publish("s.a", "x"), update(max_msgs_per_subject=1), STATE,
        update(max_bytes=50), publish("s.a", "x" * 60), STATE,
    ]),
    Case("publish: renamed", [
        create(subject_transform={"src": "s.*", "dest": "t.$1"}), publish("s.a", "x"), publish("s.a.b", "x"),
        publish("s.a", "x", **{LAST.replace("-", "_"): 1}), publish("s.a", "x", **{LAST.replace("-", "_"): 0}),
        api("STREAM.INFO.S", {"subjects_filter": ">"}),
    ]),
]


def atomic(subject, batch, sequence, body="x", **headers):
    return publish(subject, body, Nats_Batch_Id=batch, Nats_Batch_Sequence=sequence, **headers)


END = {"Nats_Batch_Commit": "1"}

CASES += [
    Case("atomic batch: refused", [create(), atomic("s.a", "b", 1), atomic("s.a", "b", 1, **END)]),
    Case("atomic batch: whole", [
        create(allow_atomic=True), atomic("s.a", "b", 1), atomic("s.b", "b", 2), atomic("s.c", "b", 3, **END), STATE,
        atomic("s.a", "c", 1, **END), atomic("s.a", "d", 1), atomic("s.a", "d", 2, Nats_Batch_Commit="eob"), STATE,
    ]),
    Case("atomic batch: wrong numbers", [
        create(allow_atomic=True), publish("s.a", "x", Nats_Batch_Id="b"), atomic("s.a", "b", 0), atomic("s.a", "b", "x"), atomic("s.a", "b", 2),
        atomic("s.a", "b", 1), atomic("s.a", "b", 3), atomic("s.a", "b", 2, **END), atomic("s.a", "x" * 64, 1), atomic("s.a", "x" * 65, 1),
        atomic("s.a", "c", 1), atomic("s.a", "c", 1), atomic("s.a", "c", 2, **END),
        atomic("s.a", "d", 1), atomic("s.a", "d", 2, Nats_Batch_Commit="2"), atomic("s.a", "d", 3, **END),
        atomic("s.a", "e", 1, Nats_Batch_Commit="eob"), atomic("s.a", "f", 1, Nats_Batch_Commit=""), atomic("s.a", "f", 2, **END), STATE,
    ]),
    Case("atomic batch: what headers demand", [
        create(allow_atomic=True, allow_rollup_hdrs=True), publish("s.a", "0", Nats_Msg_Id="m"),
        atomic("s.a", "a", 1, Nats_Expected_Last_Sequence=1), atomic("s.a", "a", 2, **END),
        atomic("s.a", "b", 1, Nats_Expected_Last_Sequence=1), atomic("s.a", "b", 2, **END),
        atomic("s.a", "c", 1), atomic("s.a", "c", 2, Nats_Expected_Last_Sequence=4, **END),
        atomic("s.a", "d", 1), atomic("s.a", "d", 2, Nats_Expected_Last_Msg_Id="m", **END),
        atomic("s.a", "e", 1, Nats_Msg_Id="m"), atomic("s.a", "e", 2, **END),
        atomic("s.a", "f", 1, Nats_Msg_Id="n"), atomic("s.a", "f", 2, Nats_Msg_Id="n", **END),
        atomic("s.a", "g", 1, Nats_Expected_Stream="T"), atomic("s.a", "g", 2, **END),
        atomic("s.a", "h", 1), atomic("s.b", "h", 2, **{LAST.replace("-", "_"): 0}, **END),
        atomic("s.a", "i", 1), atomic("s.a", "i", 2, **{LAST.replace("-", "_"): 3}, **END),
        atomic("s.a", "j", 1, Nats_Rollup="sub"), atomic("s.b", "j", 2, Nats_Rollup="sub", **END),
        atomic("s.a", "k", 1), atomic("s.a", "k", 2, Nats_Rollup="sub", **END),
        atomic("s.a", "l", 1), atomic("s.a", "l", 2, Nats_Rollup="all", **END),
        atomic("s.a", "m", 1, Nats_TTL="5"), atomic("s.a", "m", 2, **END), STATE,
    ]),
    Case("atomic batch: limits", [
        create(allow_atomic=True, max_msgs=2, discard="new", max_msg_size=200), atomic("s.a", "a", 1), atomic("s.a", "a", 2), atomic("s.a", "a", 3, **END),
        atomic("s.a", "b", 1, "x" * 300), atomic("s.a", "b", 2, **END), atomic("s.a", "c", 1), atomic("s.a", "c", 2, **END), STATE,
        atomic("s.a", "d", 1, **END), STATE,
    ]),
    Case("atomic batch: too many messages", [create(allow_atomic=True)] + [
        atomic("s.a", "b", number) for number in range(1, 1001)
    ] + [atomic("s.a", "b", 1001), atomic("s.a", "b", 1002, **END), STATE]),
    Case("atomic batch: too many", [create(allow_atomic=True)] + [
        atomic("s.a", f"b{number}", 1) for number in range(52)
    ] + [atomic("s.a", "b1", 2, **END), atomic("s.a", "b60", 1), atomic("s.a", "b51", 2, **END), STATE]),
    Case("fast batch: refused", [create(), Fast("s.a", "b.10.ok.1.0")]),
    Case("fast batch: whole", [
        create(allow_batched=True), Fast("s.a", "b.2.ok.1.0", 2), Fast("s.b", "b.2.ok.2.1"), Fast("s.c", "b.2.ok.3.2"), STATE,
        Fast("s.a", "c.2.ok.1.2"), Fast("s.a", "d.2.ok.1.0"), Fast("s.a", "d.2.ok.2.3"), STATE,
    ]),
    Case("fast batch: gaps and pings", [
        create(allow_batched=True), Fast("s.a", "b.2.ok.1.0"), Fast("s.a", "b.2.ok.4.1"), Fast("s.a", "b.2.ok.5.2"), Fast("s.a", "c.2.fail.1.0"),
        Fast("s.a", "c.2.fail.4.1"), Fast("s.a", "c.2.fail.5.2"), Fast("s.a", "d.2.ok.1.0"), Fast("s.a", "d.2.ok.1.4"), STATE,
    ]),
    Case("fast batch: wrong places", [create(allow_batched=True)] + [Fast("s.a", place) for place in (
        "b.2.ok.2.1", "b.2.ok.1.9", "b.2.ok.0.0", "b.x.ok.1.0", "b.2.maybe.1.0", "b.2.ok.x.0", "b.0.ok.1.0", "x" * 65 + ".2.ok.1.0", "b.2.ok.5.4",
    )] + [STATE]),
    Case("fast batch: what headers demand", [
        create(allow_batched=True), Fast("s.a", "b.2.ok.1.0"), Fast("s.a", "b.2.ok.2.1", 2, b"NATS/1.0\r\nNats-Expected-Last-Sequence: 9\r\n\r\n"),
        Fast("s.a", "b.2.ok.3.2"), STATE,
    ]),
]

AT = "@at 2040-01-01T00:00:00Z"

CASES += [
    tries("schedules refused", [create()], [
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t"}, {"Nats-Schedule": "x"}, {"Nats-Schedule-Target": "s.t"},
    ]),
    tries("schedules", [create(allow_msg_schedules=True, allow_msg_ttl=True)], [
        {"Nats-Schedule": AT}, {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t"}, {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.a"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "q.t"}, {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.*"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s..t"}, {"Nats-Schedule": "x", "Nats-Schedule-Target": "s.t"},
        {"Nats-Schedule": "@at x", "Nats-Schedule-Target": "s.t"}, {"Nats-Schedule": "@every 5m", "Nats-Schedule-Target": "s.t"},
        {"Nats-Schedule": "@every 500ms", "Nats-Schedule-Target": "s.t"}, {"Nats-Schedule": "@every x", "Nats-Schedule-Target": "s.t"},
        {"Nats-Schedule": "0 0 5 * * *", "Nats-Schedule-Target": "s.t"}, {"Nats-Schedule": "0 5 * * *", "Nats-Schedule-Target": "s.t"},
        {"Nats-Schedule": "61 0 5 * * *", "Nats-Schedule-Target": "s.t"}, {"Nats-Schedule": "@daily", "Nats-Schedule-Target": "s.t"},
        {"Nats-Schedule": "@fortnightly", "Nats-Schedule-Target": "s.t"}, {"Nats-Schedule": "", "Nats-Schedule-Target": "s.t"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-TTL": "5m"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-TTL": "x"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-Rollup": "sub"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-Rollup": "all"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-Source": "s.q"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-Source": "s.*"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-Source": "s.a"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-Source": "s.t"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-Time-Zone": "Europe/Vienna"},
        {"Nats-Schedule": "0 0 5 * * *", "Nats-Schedule-Target": "s.t", "Nats-Schedule-Time-Zone": "Europe/Vienna"},
        {"Nats-Schedule": "0 0 5 * * *", "Nats-Schedule-Target": "s.t", "Nats-Schedule-Time-Zone": "Nowhere/Else"},
        {"Nats-Schedule": "@every 5m", "Nats-Schedule-Target": "s.t", "Nats-Schedule-Time-Zone": "UTC"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Rollup": "all"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Rollup": "sub"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-TTL": "5m"},
        {"Nats-Schedule-Next": AT}, {"Nats-Scheduler": "s.a"}, {"Nats-Schedule-Next": "purge"},
        {"Nats-Scheduler": "s.a", "Nats-Schedule-Next": "purge"}, {"Nats-Scheduler": "s.b", "Nats-Schedule-Next": "purge"},
    ]),
    tries("schedules without lives", [create(allow_msg_schedules=True)], [
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-Schedule-TTL": "5m"},
        {"Nats-Schedule": AT, "Nats-Schedule-Target": "s.t", "Nats-TTL": "5m"},
    ]),
]

ONE = [create(), publish("s.a", "1"), publish("s.b", "2", A="b"), publish("s.c", "x" * 100)]


def pull(body, consumer_name="c"):
    return api(f"CONSUMER.MSG.NEXT.S.{consumer_name}", body)


CASES += [
    Case("pull: requests", [create(), consumer()] + [pull(body) for body in (
        {"no_wait": True}, "{", {"batch": "x"}, {"foo": 1, "no_wait": True}, {"batch": -1, "no_wait": True}, {"batch": 0, "no_wait": True}, "x",
        {"expires": 10_000_000}, {"expires": -1, "no_wait": True}, {"expires": 10_000_000, "no_wait": True},
        {"expires": SECOND, "idle_heartbeat": SECOND}, {"idle_heartbeat": SECOND}, {"idle_heartbeat": -1, "no_wait": True},
        {"no_wait": True, "group": "g"}, {"no_wait": True, "id": "x"}, {"no_wait": True, "min_pending": 5}, {"no_wait": True, "priority": 3},
        {"no_wait": True, "priority": 10}, {"no_wait": True, "max_bytes": 10}, {"no_wait": True, "max_bytes": -1}, {"no_wait": True, "batch": 1 << 40},
    )]),
    Case("pull: records", [*ONE, consumer(), Several(pull({"batch": 2, "no_wait": True}), 2), Several(pull({"batch": 2, "no_wait": True}), 2),
                           pull({"no_wait": True}), api("CONSUMER.INFO.S.c")]),
    Case("pull: bytes", [*ONE, consumer(), Several(pull({"batch": 9, "max_bytes": 10, "no_wait": True}), 1),
                         Several(pull({"batch": 9, "max_bytes": 150, "expires": SECOND}), 3), Several(pull({"batch": 9, "max_bytes": 150, "no_wait": True}), 2)]),
    Case("pull: limits", [
        create(), consumer(max_batch=2, max_expires=2 * SECOND, max_bytes=100, max_waiting=1), pull({"batch": 3, "no_wait": True}), pull({"expires": 3 * SECOND}),
        pull({"max_bytes": 200, "no_wait": True}), pull({"no_wait": True}), pull({"batch": 2, "no_wait": True, "max_bytes": 50}),
    ]),
    Case("pull: of a pushing one", [create(), consumer(deliver_subject="d.x"), pull("")]),
    Case("pull: groups", [
        *ONE, consumer(priority_policy="overflow", priority_groups=["g"]), pull({"no_wait": True}), pull({"no_wait": True, "group": "h"}),
        Several(pull({"no_wait": True, "group": "g"}), 1), pull({"no_wait": True, "group": "g", "min_pending": 100}),
        pull({"no_wait": True, "group": "g", "min_pending": -1}), pull({"no_wait": True, "group": "g", "min_ack_pending": 100}),
    ]),
    Case("pull: priorities", [
        *ONE, consumer(priority_policy="prioritized", priority_groups=["g"]), pull({"no_wait": True, "group": "g", "priority": 10}),
        pull({"no_wait": True, "group": "g", "priority": -1}), Several(pull({"no_wait": True, "group": "g", "priority": 9}), 1),
    ]),
    Case("pull: pinned", [
        *ONE, consumer(priority_policy="pinned_client", priority_groups=["g"]), pull({"no_wait": True, "group": "g", "id": "wrong"}),
    ]),
    Case("pull: levels", [create(), consumer()] + [
        api("CONSUMER.MSG.NEXT.S.c", {"no_wait": True}, LEVEL % level) for level in (b"5", b"6", b"x", b"")
    ]),
    Case("pull: headers only", [*ONE, consumer(headers_only=True), Several(pull({"batch": 2, "no_wait": True}), 2)]),
    Case("acknowledgements", [*ONE, consumer(), Several(pull({"batch": 3, "no_wait": True}), 3)] + [
        step for payload in ("+ACK", "-NAK", "+WPI", "+TERM why", "-NAK {\"delay\": 10000000000}", "x", "+OK", "") for step in (
            request("$JS.ACK.S.c.1.1.1.1.0", payload), request("$JS.ACK.S.c.1.2.2.1.0", payload), api("CONSUMER.INFO.S.c"),
        )
    ] + [request("$JS.ACK.S.c.1.9.9.1.0", "+ACK"), request("$JS.ACK.S.c.x", "+ACK"), request("$JS.ACK.S.c", "+ACK"), api("CONSUMER.INFO.S.c")]),
    Case("acknowledgements of all", [*ONE, consumer(ack_policy="all"), Several(pull({"batch": 3, "no_wait": True}), 3), request("$JS.ACK.S.c.1.2.2.1.0", "+ACK"),
                                     api("CONSUMER.INFO.S.c"), request("$JS.ACK.S.c.1.3.3.1.0", "-NAK"), api("CONSUMER.INFO.S.c")]),
    Case("acknowledgements, and the next", [*ONE, consumer(), pull({"no_wait": True}), request("$JS.ACK.S.c.1.1.1.1.2", "+NXT"),
                                            request("$JS.ACK.S.c.1.2.2.1.1", '+NXT {"batch":1,"no_wait":true}'),
                                            request("$JS.ACK.S.c.1.3.3.1.0", '+NXT {"no_wait":true}'), api("CONSUMER.INFO.S.c")]),
    Case("a work queue", [create(retention="workqueue"), *ONE[1:], consumer(), pull({"no_wait": True}), request("$JS.ACK.S.c.1.1.1.1.2", "+ACK"), STATE,
                          pull({"no_wait": True}), request("$JS.ACK.S.c.1.2.2.1.2", "+TERM"), STATE]),
    Case("interest", [create(retention="interest"), consumer(), *ONE[1:], pull({"no_wait": True}), request("$JS.ACK.S.c.1.1.1.1.2", "+ACK"), STATE,
                      api("CONSUMER.DELETE.S.c"), STATE]),
    Case("direct: several", [create(allow_direct=True), *ONE[1:]] + [Several(api("DIRECT.GET.S", body), count) for body, count in (
        ({"seq": 1, "batch": 2}, 3), ({"next_by_subj": "s.>", "batch": 5}, 4), ({"seq": 1, "batch": 3, "max_bytes": 30}, 3),
        ({"multi_last": ["s.>"]}, 4), ({"multi_last": ["s.a", "s.c"]}, 3), ({"multi_last": ["s.>"], "up_to_seq": 2}, 3),
        ({"multi_last": ["q.>"]}, 1), ({"multi_last": ["s.>"], "batch": 1}, 2), ({"multi_last": []}, 1), ({"seq": 9, "batch": 2}, 1),
        ({"batch": 2}, 1), ({"seq": 1, "last_by_subj": "s.a"}, 1), ({"multi_last": ["s.>"], "seq": 1}, 1), ({"up_to_seq": 2}, 1),
        ({"multi_last": ["s.a"], "up_to_seq": 1, "up_to_time": "2040-01-01T00:00:00Z"}, 1), ({"multi_last": ["s.>"], "no_hdr": True}, 4),
    )]),
]
