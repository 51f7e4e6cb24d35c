"""Requests that are sent to both servers. Wrong fields are tested one by one, in an otherwise valid
configuration."""

from jetstream.session import Case, api, request

SECOND = 1_000_000_000
LEVEL = b"NATS/1.0\r\nNats-Required-Api-Level: %s\r\n\r\n"


def stream(name="S", **fields):
    # In memory, because a stream on disk may find remains of a stream with the same name that was just deleted.
    return {"name": name, "subjects": [name.lower() + ".>"], "storage": "memory"} | fields


def create(name="S", **fields):
    return api(f"STREAM.CREATE.{name}", stream(name, **fields))


def copy(name="S", **fields):
    """Creates a stream without subjects of its own."""
    return api(f"STREAM.CREATE.{name}", {"name": name, "storage": "memory"} | fields)


def update(name="S", **fields):
    return api(f"STREAM.UPDATE.{name}", stream(name, **fields))


def consumer(on="S", beside=None, **config):
    config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"} | config
    config = {key: value for key, value in config.items() if value != "-"}
    body = {"stream_name": on, "config": config} | (beside or {})
    return api(f"CONSUMER.CREATE.{on}.c", body)


def each(name, make, fields, before=(), after=()):
    """Returns a case that sends a request for each set of fields, separately."""
    steps = list(before)
    for one in fields:
        steps += [make(**one), *after]
    return Case(name, steps)


DELETE = (api("STREAM.DELETE.S"),)
FORGET = (api("CONSUMER.DELETE.S.c"),)
NUMBERS = [-2, -1, 0, 1, 2, 50_000_000, 1 << 31, "x", 1.5]

CASES = [
    each(f"stream: {name}", create, [{name: value} for value in NUMBERS], after=DELETE)
    for name in (
        "max_consumers", "max_msgs", "max_bytes", "max_age", "max_msgs_per_subject", "max_msg_size",
        "num_replicas", "duplicate_window", "subject_delete_marker_ttl",
    )
] + [
    each(f"pedantic stream: {name}", create, [{"pedantic": True, name: value} for value in (-2, 0, 1)], after=DELETE)
    for name in ("max_consumers", "max_msgs", "max_bytes", "max_age", "max_msgs_per_subject", "max_msg_size")
] + [
    each(f"stream: {name}", create, [{name: value} for value in ("", "x", "Limits", 3, True)], after=DELETE)
    for name in ("retention", "discard", "storage", "compression", "persist_mode")
] + [
    each("stream: first_seq", create, [{"first_seq": value} for value in (-1, 0, 1, 5, "x")], after=DELETE),
    each("stream: subjects", create, [{"subjects": subjects} for subjects in (
        [], [""], ["s.."], ["s b"], [">"], ["*"], ["s.>", "s.a"], ["s.*", "s.a"], ["s.a", "s.a"], ["o.x"], ["o.>"],
        ["*.x"], ["$JS.>"], ["$JS.API.x"], ["$JS.EVENT.ADVISORY.x"], ["$SYS.>"],
        ["$SYS.ACCOUNT.>"], ["$JSC.>"], ["$NRG.x"], ["$KV.a.>"], ["_INBOX.>"],
    )], before=[create("O")], after=DELETE),
    each("stream: subjects without acknowledgements", create, [{"subjects": subjects, "no_ack": True} for subjects in (
        ["$JS.EVENT.x"], ["*"], ["s.>"],
    )], after=DELETE),
    Case("stream: names", [
        create("a*"), create("a/b"), create("a\\b"), create("x" * 255), create("x" * 256),
        api("STREAM.CREATE.S", stream("Z")), api("STREAM.CREATE.S", {"subjects": ["s"]}), api("STREAM.CREATE.S"),
        api("STREAM.CREATE.S", "{"), api("STREAM.CREATE.S", "[]"), api("STREAM.CREATE.S", "3"),
        api("STREAM.CREATE.S", "null"), api("STREAM.CREATE.S", stream(foo=1)),
    ]),
    each("stream: texts", create, [
        {"description": "x" * 4096}, {"description": "x" * 4097}, {"metadata": {"a": "x" * 131071}},
        {"metadata": {"a": "x" * 131072}}, {"metadata": {"a": 1}}, {"metadata": {"_nats.x": "1", "_nats.ver": "y"}},
    ], after=DELETE),
    each("stream: times", create, [
        {"duplicate_window": 100_000_000, "max_age": 200_000_000}, {"duplicate_window": SECOND, "max_age": 100_000_000},
        {"max_age": SECOND}, {"pedantic": True, "max_age": SECOND},
    ], after=DELETE),
    each("stream: flags", create, [
        {"placement": {}}, {"placement": {"cluster": "x", "tags": ["a"]}}, {"placement": {"preferred": "x"}},
        {"discard_new_per_subject": True}, {"discard_new_per_subject": True, "discard": "new"},
        {"discard_new_per_subject": True, "discard": "new", "max_msgs_per_subject": 1}, {"sealed": True},
        {"deny_purge": True, "allow_rollup_hdrs": True}, {"mirror_direct": True},
        {"persist_mode": "async", "storage": "file"}, {"persist_mode": "async"},
        {"persist_mode": "async", "storage": "file", "allow_atomic": True},
        {"persist_mode": "async", "storage": "file", "num_replicas": 3},
        {"allow_atomic": True}, {"allow_batched": True}, {"allow_direct": True},
        {"consumer_limits": {"inactive_threshold": -1}}, {"consumer_limits": {"max_ack_pending": 5, "q": 1}},
    ], after=DELETE),
    each("stream: markers, counters, schedules", create, [
        {"subject_delete_marker_ttl": SECOND, "deny_purge": True},
        {"subject_delete_marker_ttl": SECOND, "deny_purge": True, "allow_rollup_hdrs": True},
        {"pedantic": True, "subject_delete_marker_ttl": SECOND},
        {"pedantic": True, "subject_delete_marker_ttl": SECOND, "allow_msg_ttl": True},
        {"allow_msg_counter": True}, {"allow_msg_counter": True, "retention": "workqueue"},
        {"allow_msg_counter": True, "discard": "new"}, {"allow_msg_counter": True, "allow_msg_ttl": True},
        {"allow_msg_counter": True, "allow_msg_schedules": True},
        {"allow_msg_counter": True, "subject_delete_marker_ttl": SECOND},
        {"allow_msg_schedules": True}, {"allow_msg_schedules": True, "discard": "new"},
        {"allow_msg_schedules": True, "deny_purge": True}, {"pedantic": True, "allow_msg_schedules": True},
    ], after=DELETE),
    each("stream: transforms", create, [{"subject_transform": {"src": src, "dest": dest}} for src, dest in (
        ("s.*", "t.$1"), ("x.*", "t.$1"), ("", "t.>"), ("s.>", ""), ("s.*", "t.{{partition(10)}}"), ("s.*", "o.$1"),
        ("s.*", "t.$2"), ("s..", "t"), ("s.*", "t.{{foo(1)}}"), ("s.*", "t.{{wildcard(1,2)}}"),
        ("s.*", "t.{{split(1)}}"), ("s.*", "t.{{wildcard()}}"), ("s.*", "t.{{wildcard(x)}}"), ("s.*", "t.*"),
        ("s.>", "t.a"), ("s.*", "t.>"),
    )], after=DELETE),
    each("stream: republish", create, [{"republish": {"src": src, "dest": dest}} for src, dest in (
        (">", "t.>"), ("", "t.>"), ("x.>", "t.>"), ("s.*", ""), ("s.*", "t"), ("s.>", "s.>"), ("s.*", "t.$2"),
        ("s.*", "s.x.$1"), ("s..", "t"), ("s.*", ">"), ("s.a", "s.b"),
    )] + [{"pedantic": True, "republish": {"dest": "t.>"}}], after=DELETE),
]

ORIGINS = [
    {}, {"name": "S"}, {"name": ""}, {"name": "a.b"}, {"name": "NONE"}, {"filter_subject": "q"},
    {"filter_subject": "a b"}, {"filter_subject": "o.a", "subject_transforms": [{"src": "o.a", "dest": "x"}]},
    {"subject_transforms": [{"src": "o..", "dest": "x"}]}, {"subject_transforms": [{"src": "o.*", "dest": "$3"}]},
    {"subject_transforms": [{"src": "o.*", "dest": "a"}, {"src": "o.a", "dest": "x"}]},
    {"external": {"api": "$JS.x.API", "deliver": "d.*"}}, {"external": {"api": "$JS.API", "deliver": ""}},
    {"external": {"api": "a b", "deliver": ""}}, {"consumer": {}}, {"consumer": {"name": "x"}},
    {"consumer": {"name": "x.y", "deliver_subject": "d"}}, {"consumer": {"name": "x", "deliver_subject": "d.*"}},
    {"consumer": {"name": "x", "deliver_subject": "d"}, "opt_start_seq": 3},
    {"consumer": {"name": "x", "deliver_subject": "d"}, "filter_subject": "q"},
    {"foo": 1}, {"opt_start_time": "x"}, {"opt_start_time": "2024-01-02T03:04:05.678+02:00"},
]

CASES += [
    each("stream: mirrors", copy, [{"mirror": {"name": "O"} | origin} for origin in ORIGINS] + [
        {"mirror": {"name": "O"}} | fields for fields in (
            {"subjects": ["s"]}, {"sources": [{"name": "O"}]}, {"first_seq": 3}, {"allow_msg_counter": True},
            {"allow_atomic": True}, {"allow_batched": True}, {"allow_msg_schedules": True}, {"allow_msg_ttl": True},
            {"mirror_direct": True}, {"max_msg_size": 10}, {"duplicate_window": SECOND},
            {"subject_delete_marker_ttl": SECOND},
        )
    ], before=[create("O", max_msg_size=1000)], after=DELETE),
    each("stream: sources", copy, [{"sources": [{"name": "O"} | origin]} for origin in ORIGINS] + [
        {"sources": [{"name": "O"}, {"name": "O"}]},
        {"sources": [{"name": "O", "filter_subject": "o.a"}, {"name": "O", "filter_subject": "o.b"}]},
        {"sources": [{"name": "O"}], "max_msg_size": 10}, {"sources": [{"name": "O"}], "allow_msg_schedules": True},
        {"sources": [{"name": "O"}], "subjects": ["o.x"]}, {"sources": [{"name": "O"}], "first_seq": 10},
    ], before=[create("O", max_msg_size=1000)], after=DELETE),
    Case("stream: a circle of sources", [
        copy("A", sources=[{"name": "B"}]), copy("B", sources=[{"name": "A"}]), copy("B", sources=[{"name": "C"}]),
    ]),
] + [
    Case(f"update: {was} to {becomes}", [create(**was), update(**becomes), api("STREAM.INFO.S")])
    for was, becomes in [
        ({}, {"description": "x"}), ({}, {"storage": "file"}), ({}, {"retention": "interest"}),
        ({}, {"retention": "workqueue"}), ({"retention": "workqueue"}, {}), ({"max_consumers": 3}, {"max_consumers": 5}),
        ({}, {"sealed": True}), ({"max_age": SECOND}, {"sealed": True, "max_age": SECOND}), ({"deny_delete": True}, {}),
        ({"deny_purge": True}, {}), ({}, {"mirror": {"name": "O"}, "subjects": []}), ({"first_seq": 5}, {"first_seq": 7}),
        ({"allow_msg_ttl": True}, {}), ({}, {"allow_msg_counter": True}), ({"allow_msg_schedules": True}, {}),
        ({"storage": "file"}, {"storage": "file", "persist_mode": "async"}), ({}, {"num_replicas": 3}), ({"allow_atomic": True}, {}),
        ({}, {"compression": "s2"}), ({}, {"subjects": ["q.>"]}), ({}, {"subjects": []}), ({}, {"name": "T"}),
        ({}, {"mirror_direct": True}), ({"subject_delete_marker_ttl": SECOND}, {}), ({}, {"metadata": {"a": "b"}}),
        ({}, {"pedantic": True}), ({}, {"max_age": SECOND}),
    ]
] + [
    Case("update: what is not there", [
        api("STREAM.UPDATE.NONE", {"name": "NONE"}), create(), api("STREAM.UPDATE.S", {"name": "Q"}),
        api("STREAM.UPDATE.S"),
    ]),
    Case("update: a mirror", [
        create("O"), copy("M", mirror={"name": "O"}),
        api("STREAM.UPDATE.M", {"name": "M", "storage": "memory", "mirror": {"name": "O", "filter_subject": "x"}}),
        api("STREAM.UPDATE.M", {"name": "M", "storage": "memory", "mirror": {"name": "O"}, "subjects": ["m"]}),
        api("STREAM.UPDATE.M", {"name": "M", "storage": "memory", "subjects": ["m"]}),
    ]),
    Case("update: sealed", [
        create(), request("s.a", "x"), update(sealed=True), update(), update(sealed=True, description="x"),
        api("STREAM.PURGE.S"), api("STREAM.MSG.DELETE.S", {"seq": 1}), request("s.a", "x"),
    ]),
    Case("create again", [
        create(), create(), create(max_msgs=5), create(metadata={"a": "b"}), create(max_msgs=-1, storage="memory"), create(storage="file"),
    ]),
]

PUSH = {"deliver_subject": "d.x"}
FLOW = PUSH | {"flow_control": True, "idle_heartbeat": SECOND, "max_ack_pending": 10}

CASES += [
    each(f"consumer: {name}", consumer, [
        kind | {name: value} for value in (-2, -1, 0, 1, 1_000_000, 50_000_000, SECOND, "x") for kind in ({}, PUSH)
    ], before=[create()], after=FORGET)
    for name in (
        "ack_wait", "max_deliver", "rate_limit_bps", "max_waiting", "max_ack_pending", "max_batch", "max_expires",
        "max_bytes", "idle_heartbeat", "opt_start_seq", "priority_timeout",
    )
] + [
    each("consumer: inactive_threshold", consumer, [
        kind | {"inactive_threshold": value} for value in (-2, -1, 0, 50 * SECOND, "x") for kind in ({}, PUSH)
    ], before=[create()], after=FORGET)
] + [
    each(f"consumer: {name}", consumer, [{name: value} for value in ("", "x", 3)], before=[create()], after=FORGET)
    for name in ("deliver_policy", "ack_policy", "replay_policy", "priority_policy")
] + [
    each(f"consumer: deliver {policy}", consumer, [{"deliver_policy": policy} | fields for fields in (
        {}, {"opt_start_seq": 3}, {"opt_start_time": "2024-01-01T00:00:00Z"}, {"filter_subject": "s.a"},
        {"opt_start_seq": 3, "opt_start_time": "2024-01-01T00:00:00Z"},
    )], before=[create()], after=FORGET)
    for policy in ("all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject")
] + [
    each(f"consumer: ack {policy}", consumer, [{"ack_policy": policy} | fields for fields in (
        {}, {"max_ack_pending": 5}, {"ack_wait": SECOND}, PUSH, FLOW, FLOW | {"max_deliver": 2},
        FLOW | {"ack_wait": SECOND}, FLOW | {"backoff": [SECOND]}, {"backoff": [SECOND], "max_deliver": 3},
    )], before=[create()], after=FORGET)
    for policy in ("none", "all", "explicit", "flow_control")
] + [
    each(f"consumer: priority {policy}", consumer, [{"priority_policy": policy} | fields for fields in (
        {}, {"priority_groups": ["g"]}, {"priority_groups": ["g", "h"]}, {"priority_groups": [""]},
        {"priority_groups": ["a b"]}, {"priority_groups": ["a" * 17]}, {"priority_groups": []},
        {"priority_groups": ["g"], "priority_timeout": SECOND}, {"priority_groups": ["g"]} | PUSH,
        {"priority_groups": ["g"], "ack_policy": "none"},
    )], before=[create()], after=FORGET)
    for policy in ("none", "overflow", "pinned_client", "prioritized")
] + [
    each("consumer: backoff", consumer, [
        {"backoff": [SECOND]}, {"backoff": [SECOND, SECOND], "max_deliver": 2},
        {"backoff": [SECOND, SECOND], "max_deliver": 1}, {"backoff": [-1], "max_deliver": 3},
        {"backoff": [SECOND], "ack_wait": 5 * SECOND},
        {"backoff": [SECOND], "ack_wait": 5 * SECOND, "beside": {"pedantic": True}},
    ], before=[create()], after=FORGET),
    each("consumer: filters", consumer, [
        {"filter_subject": "s.a", "filter_subjects": ["s.b"]}, {"filter_subjects": ["s.a", "s.a"]},
        {"filter_subjects": ["s.a", "s.*"]}, {"filter_subjects": ["s.a", ""]}, {"filter_subjects": [""]},
        {"filter_subject": "q"}, {"filter_subject": "s.."}, {"filter_subject": ">"}, {"filter_subjects": ["s.a"]},
        {"filter_subjects": []}, {"filter_subjects": ["s..", "s.a"]},
    ], before=[create()], after=FORGET),
    each("consumer: pushing", consumer, [{"deliver_subject": to} for to in (
        "d.*", "d.>", "d..", "a b", "s.x", "$SYS.x", "_INBOX.a",
    )] + [
        {"flow_control": True}, {"flow_control": True} | PUSH, {"deliver_group": "g"}, {"deliver_group": "g"} | PUSH,
        FLOW | {"idle_heartbeat": SECOND}, {"headers_only": True}, {"mem_storage": True},
    ], before=[create()], after=FORGET),
    each("consumer: direct and sourcing", consumer, [
        {"direct": True}, {"direct": True} | PUSH, {"sourcing": True}, {"sourcing": True} | PUSH,
    ], before=[create()], after=FORGET),
    each("consumer: samples", consumer, [{"sample_freq": value} for value in (
        "30%", "30", "x", "-1%", "101%", "0", "1.5",
    )], before=[create()], after=FORGET),
    each("consumer: replicas, pauses, texts", consumer, [
        {"num_replicas": -1}, {"num_replicas": 1}, {"num_replicas": 3}, {"pause_until": "2040-01-01T00:00:00Z"},
        {"pause_until": "2020-01-01T00:00:00Z"}, {"pause_until": "0001-01-01T00:00:00Z"}, {"pause_until": "x"},
        {"description": "x" * 4097}, {"metadata": {"a": "x" * 131072}}, {"metadata": {"_nats.q": "1"}}, {"foo": 1},
        {"priority_groups": ["g"]}, {"priority_timeout": SECOND},
    ], before=[create()], after=FORGET),
    Case("consumer: names", [create()] + [
        step
        for path, config in (
            ("S.c", {"name": "a.b", "durable_name": "a.b"}), ("S.a*", {"name": "a*"}), ("S.a/b", {"name": "a/b"}),
            ("S.a\\b", {"name": "a\\b"}), ("S.a", {"name": "a", "durable_name": "b"}),
            ("S.b", {"name": "a"}), ("S.b", {"durable_name": "a"}), ("S.b", {}), ("S", {"durable_name": "a"}),
            ("S", {"name": "a"}), ("S.c.s.a", {"filter_subject": "s.a"}), ("S.c.s.a", {"filter_subject": "s.b"}),
            ("S.c.s.a", {}), ("S.c.s.a", {"filter_subjects": ["s.a"]}), ("S.c.s.>", {"filter_subject": "s.>"}),
        )
        for step in (
            api(f"CONSUMER.CREATE.{path}", {"stream_name": "S", "config": config}),
            api("CONSUMER.DELETE.S.a"), api("CONSUMER.DELETE.S.b"), api("CONSUMER.DELETE.S.c"),
        )
    ]),
    Case("consumer: a long name", [create()] + [
        api(f"CONSUMER.CREATE.S.{name}", {"stream_name": "S", "config": {"name": name}}) for name in ("x" * 255, "y" * 256)
    ]),
    Case("consumer: the old way for durables", [create()] + [
        api("CONSUMER.DURABLE.CREATE.S.c", {"stream_name": "S", "config": config}) for config in (
            {"durable_name": "c"}, {"durable_name": "d"}, {"name": "c"}, {}, {"durable_name": "c", "name": "c"},
        )
    ]),
    Case("consumer: requests", [
        create(), api("CONSUMER.CREATE.S.c", {"stream_name": "X", "config": {"name": "c"}}),
        api("CONSUMER.CREATE.NONE.c", {"stream_name": "NONE", "config": {"name": "c"}}), api("CONSUMER.CREATE.S.c"),
        api("CONSUMER.CREATE.S.c", {}), api("CONSUMER.CREATE.S.c", {"stream_name": "S"}),
        api("CONSUMER.CREATE.S.c", "{"), consumer(beside={"action": "destroy"}), consumer(beside={"action": "update"}),
        consumer(beside={"action": "create"}), consumer(beside={"action": "create"}, description="x"),
    ]),
    each("consumer: under limits of its stream", lambda **config: consumer(on="S", **config), [
        {}, {"max_ack_pending": 100}, {"inactive_threshold": 20 * SECOND}, {"max_ack_pending": -1},
        {"ack_policy": "none"}, {"beside": {"pedantic": True}},
    ], before=[create(consumer_limits={"inactive_threshold": 10 * SECOND, "max_ack_pending": 50}, max_consumers=1)], after=FORGET),
    Case("consumer: one is enough", [
        create(max_consumers=1), consumer(), api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"name": "d"}}),
    ]),
    each("consumer: of a work queue", consumer, [
        {}, {"ack_policy": "none"}, {"ack_policy": "all"}, {"ack_policy": "all"} | PUSH, {"ack_policy": "none"} | PUSH,
        {"deliver_policy": "new"}, {"deliver_policy": "last"}, {"deliver_policy": "by_start_sequence", "opt_start_seq": 1},
    ], before=[create(retention="workqueue")], after=FORGET),
    Case("consumer: several of a work queue", [create(retention="workqueue")] + [
        api(f"CONSUMER.CREATE.S.{name}", {"stream_name": "S", "config": {"durable_name": name, "ack_policy": "explicit"} | config})
        for name, config in (
            ("c", {"filter_subject": "s.a"}), ("d", {}), ("d", {"filter_subject": "s.*"}), ("d", {"filter_subject": "s.b"}),
            ("e", {"filter_subjects": ["s.b", "s.c"]}), ("e", {"filter_subjects": ["s.e", "s.f"]}),
        )
    ]),
] + [
    Case(f"change of a consumer: {was} to {becomes}", [
        create(), consumer(**was), consumer(**(was | becomes)), api("CONSUMER.INFO.S.c"),
        consumer(beside={"action": "create"}, **was),
    ])
    for was, becomes in [
        ({}, {"description": "x"}), ({}, {"ack_wait": SECOND}), ({}, {"max_deliver": 5}), ({}, {"max_ack_pending": 3}),
        ({}, {"max_waiting": 5}), ({}, {"filter_subject": "s.a"}), ({}, {"inactive_threshold": SECOND}),
        ({}, {"metadata": {"a": "b"}}), ({}, {"num_replicas": 1}), ({}, {"mem_storage": True}), ({}, {"ack_policy": "none"}),
        ({}, {"deliver_policy": "new"}), ({}, {"replay_policy": "original"}), ({}, PUSH), (PUSH, {"deliver_subject": "d.y"}),
        (PUSH, {"deliver_subject": "-"}), (PUSH, {"rate_limit_bps": 5}), (PUSH, {"idle_heartbeat": SECOND}),
        ({}, {"pause_until": "2040-01-01T00:00:00Z"}), ({"pause_until": "0001-01-01T00:00:00Z"}, {"description": "x"}), ({}, {"sourcing": True}),
    ]
]

FILLED = [create(), create("T")] + [
    request(f"s.{number % 3}", f"hello {number}", b"NATS/1.0\r\nA: b\r\n\r\n" if number % 2 else b"") for number in range(5)
] + [consumer()]
DIRECT = [create(allow_direct=True)] + FILLED[2:-1]


def asks(name, endpoint, bodies, before=FILLED):
    return Case(f"{endpoint}: {name}", [*before, *(api(endpoint, body) for body in bodies)])


CASES += [
    Case("a stream on disk", [
        create("DISK", storage="file"), request("disk.a", "x"), request("disk.b", "y", b"NATS/1.0\r\nA: b\r\n\r\n"),
        api("STREAM.INFO.DISK", {"subjects_filter": ">"}), api("STREAM.PURGE.DISK"), api("STREAM.INFO.DISK"),
    ]),
    Case("what is not there", [create()] + [api(path) for path in (
        "STREAM.INFO.NONE", "STREAM.DELETE.NONE", "STREAM.PURGE.NONE", "STREAM.MSG.GET.NONE", "STREAM.MSG.DELETE.NONE",
        "CONSUMER.INFO.S.none", "CONSUMER.INFO.NONE.c", "CONSUMER.DELETE.S.none", "CONSUMER.DELETE.NONE.c",
        "CONSUMER.NAMES.NONE", "CONSUMER.LIST.NONE", "CONSUMER.PAUSE.S.none", "CONSUMER.PAUSE.NONE.c",
        "STREAM.SNAPSHOT.NONE",
    )] + [api("CONSUMER.MSG.NEXT.S.none"), request("$JS.ACK.S.none.1.1.1.1.0", "+ACK")]),
    Case("what nobody answers", [api(path) for path in ("FOO", "STREAM.INFO.S.x", "STREAM.INFO")]),
    Case("what needs a cluster", [api(path, {"peer": "x"}) for path in (
        "STREAM.LEADER.STEPDOWN.S", "STREAM.PEER.REMOVE.S", "STREAM.PEER.EVACUATE.S", "STREAM.CANCEL_MOVE.S",
        "CONSUMER.LEADER.STEPDOWN.S.c", "CONSUMER.PEER.REMOVE.S.c", "CONSUMER.PEER.EVACUATE.S.c",
    )]),
    asks("pages", "STREAM.NAMES", [
        "", {"offset": 1}, {"offset": 100}, {"offset": -1}, {"subject": "s.a"}, {"subject": "s.*"}, {"subject": ">"},
        {"subject": "none"}, "{", {"foo": 1}, {"offset": "x"},
    ]),
    asks("pages", "STREAM.LIST", ["", {"offset": 1}, {"offset": 5}, {"subject": "none"}, {"foo": 1}]),
    asks("pages", "CONSUMER.NAMES.S", ["", {"offset": 5}, {"foo": 1}, "{"]),
    asks("pages", "CONSUMER.LIST.S", ["", {"offset": 5}, {"foo": 1}, "{"]),
    asks("subjects", "STREAM.INFO.S", [
        "", {"subjects_filter": ">"}, {"subjects_filter": "s.1"}, {"subjects_filter": "none"},
        {"subjects_filter": ">", "offset": 1}, {"subjects_filter": ">", "offset": 9}, {"subjects_filter": "s.."},
        {"deleted_details": True}, {"foo": 1}, "{",
    ]),
    asks("selectors", "STREAM.MSG.GET.S", [
        "", "{}", {"seq": 1}, {"seq": 2}, {"seq": 2, "no_hdr": True}, {"seq": 99}, {"seq": 0}, {"last_by_subj": "s.1"},
        {"last_by_subj": "s.*"}, {"last_by_subj": "s.9"}, {"last_by_subj": "s.1", "seq": 1}, {"next_by_subj": "s.1"},
        {"next_by_subj": "s.1", "seq": 3}, {"next_by_subj": "s.>", "seq": 4}, {"next_by_subj": "s.1", "seq": 30},
        {"start_time": "2020-01-01T00:00:00Z"}, {"start_time": "2040-01-01T00:00:00Z"},
        {"start_time": "2020-01-01T00:00:00Z", "seq": 2}, {"next_by_subj": "s.2", "start_time": "2020-01-01T00:00:00Z"},
        {"seq": 1, "batch": 3}, {"seq": 1, "max_bytes": 3}, {"multi_last": ["s.1"]}, {"foo": 1},
        {"last_by_subj": "s.1", "next_by_subj": "s.1"}, "{",
    ]),
    Case("STREAM.MSG.DELETE and PURGE", FILLED + [
        api("STREAM.MSG.DELETE.S", body) for body in ({"seq": 99}, "", "{}", {"seq": 3}, {"seq": 3}, {"seq": 2, "no_erase": True}, {"foo": 2})
    ] + [api("STREAM.INFO.S", {"deleted_details": True}), api("STREAM.MSG.GET.S", {"seq": 3})] + [
        api("STREAM.PURGE.S", body) for body in ({"seq": 2, "keep": 1}, {"filter": "none"}, {"foo": 1}, "{", {"seq": 2}, {"keep": 1}, "", "null")
    ] + [api("STREAM.INFO.S"), api("STREAM.DELETE.T", "x"), api("STREAM.DELETE.T", "{}")]),
    Case("denied", [
        create(deny_delete=True, deny_purge=True), request("s.a", "x"), api("STREAM.MSG.DELETE.S", {"seq": 1}),
        api("STREAM.PURGE.S"),
    ]),
    Case("DIRECT.GET", DIRECT + [api("DIRECT.GET.S", body) for body in (
        "", "{", "{}", {"seq": 1}, {"seq": 2}, {"seq": 2, "no_hdr": True}, {"seq": 99}, {"last_by_subj": "s.1"},
        {"next_by_subj": "s.1", "seq": 3}, {"last_by_subj": "s.9"}, {"start_time": "2020-01-01T00:00:00Z"}, {"foo": 1},
    )] + [api("DIRECT.GET.S.s.1"), api("DIRECT.GET.S.s.9"), api("DIRECT.GET.NONE", {"seq": 1})]),
    Case("DIRECT.GET where it is not allowed", [create(), api("DIRECT.GET.S", {"seq": 1})]),
    asks("bodies", "CONSUMER.INFO.S.c", ["", "x", "{}"]),
    asks("times", "CONSUMER.PAUSE.S.c", [
        "", {"pause_until": "2040-01-01T00:00:00Z"}, {"pause_until": "2000-01-01T00:00:00Z"}, {"pause_until": "x"}, {"foo": 1}, "{}",
    ]),
    Case("CONSUMER.PAUSE: shown", FILLED + [
        api("CONSUMER.PAUSE.S.c", {"pause_until": "2040-01-01T00:00:00Z"}), api("CONSUMER.INFO.S.c"),
        api("CONSUMER.PAUSE.S.c"), api("CONSUMER.INFO.S.c"),
    ]),
    Case("CONSUMER.UNPIN", FILLED + [
        api("CONSUMER.UNPIN.S.c", body) for body in ({"group": "g"}, {"group": ""}, "{")
    ] + [
        api("CONSUMER.CREATE.S.p", {"stream_name": "S", "config": {"name": "p", "priority_policy": "pinned_client", "priority_groups": ["g"]}}),
        api("CONSUMER.UNPIN.S.p", {"group": "g"}), api("CONSUMER.UNPIN.S.p", {"group": "h"}),
        api("CONSUMER.UNPIN.S.none", {"group": "g"}), api("CONSUMER.UNPIN.NONE.c", {"group": "g"}),
    ]),
    asks("sequences", "CONSUMER.RESET.S.c", ["", {"seq": 3}, {"seq": 100}, "{", {"seq": -3}]),
    Case("STREAM.SNAPSHOT and RESTORE", FILLED + [
        api("STREAM.SNAPSHOT.S", body) for body in ("", "{}", {"deliver_subject": "a b"}, "{", {"foo": 1})
    ] + [
        api("STREAM.RESTORE.S"), api("STREAM.RESTORE.S", {"config": {"name": "S"}}),
        api("STREAM.RESTORE.Q", {"config": {"name": "S"}}), api("STREAM.RESTORE.Q", "{"),
        api("STREAM.RESTORE.Q", {"config": {"name": "Q"}, "state": {}}),
    ]),
    Case("levels", [create(allow_direct=True), consumer()] + [
        api("STREAM.NAMES", "", LEVEL % level) for level in (b"5", b"6", b"x", b"-1", b"")
    ] + [
        api(path, body, LEVEL % b"9") for path, body in (
            ("STREAM.CREATE.N", {"name": "N"}), ("CONSUMER.CREATE.S.c", {"stream_name": "S", "config": {"name": "c"}}),
            ("DIRECT.GET.S", {"seq": 5}), ("STREAM.MSG.GET.S", {"seq": 5}), ("CONSUMER.MSG.NEXT.S.c", ""), ("STREAM.INFO.S", ""),
        )
    ]),
]
