"""Effects of time and of several consumers: records that expire, consumers that wait, that deliver by push, or
that share messages."""

from jetstream.cases import SECOND, consumer, copy, create, update
from jetstream.publishes import ONE, STATE, pull
from jetstream.session import Case, Heard, Sent, Several, Sleep, api, publish, request

SUBJECTS = api("STREAM.INFO.S", {"subjects_filter": ">", "deleted_details": True})
INFO = api("CONSUMER.INFO.S.c")
FIVE = [publish(f"s.{name}", name, N=number) for number, name in enumerate("abaca")]
AT_REPLY = ("r.>",)


def records(*sequences):
    return [api("STREAM.MSG.GET.S", {"seq": sequence}) for sequence in sequences]


def ack(delivered, stream, consumer_sequence, payload="+ACK", name="c", pending=0):
    return request(f"$JS.ACK.S.{name}.{delivered}.{stream}.{consumer_sequence}.1.{pending}", payload)


CASES = [
    Case("purge: parts", [
        step
        for body in (
            {"filter": "s.a"}, {"filter": "s.a", "keep": 1}, {"filter": "s.a", "keep": 9}, {"filter": "s.a", "seq": 4},
            {"filter": "s.*", "keep": 2}, {"filter": "s.*", "seq": 3}, {"filter": "s.."}, {"filter": "s b"}, {"keep": 0}, {"seq": 0},
            {"keep": 2}, {"keep": 9}, {"seq": 3}, {"seq": 9}, {"seq": 6}, {"filter": ""}, {"filter": ">"}, {"keep": -1}, {"seq": -1},
            {"filter": "s.a", "seq": 4, "keep": 1},
        )
        for step in (create(), *FIVE, api("STREAM.PURGE.S", body), SUBJECTS, publish("s.a", "6"), api("STREAM.DELETE.S"))
    ]),
    Case("delete: the first, the last and all", [
        create(), *FIVE, *(step for sequence in (1, 5, 2, 3, 4) for step in (api("STREAM.MSG.DELETE.S", {"seq": sequence}), SUBJECTS)),
        publish("s.a", "6"), SUBJECTS,
    ]),
    Case("duplicates: a window that ends", [
        create(duplicate_window=SECOND // 2), publish("s.a", "1", Nats_Msg_Id="a"), publish("s.a", "1", Nats_Msg_Id="a"), Sleep(1.2),
        publish("s.a", "1", Nats_Msg_Id="a"), update(duplicate_window=SECOND), publish("s.a", "1", Nats_Msg_Id="a"),
        api("STREAM.PURGE.S"), publish("s.a", "1", Nats_Msg_Id="a"),
    ]),
    Case("lives: they end", [
        create(allow_msg_ttl=True), publish("s.a", "1", Nats_TTL="1"), publish("s.b", "1", Nats_TTL="1s"), publish("s.a", "2"), Sleep(2.5), SUBJECTS,
    ]),
    Case("lives: with markers", [
        create(subject_delete_marker_ttl=10 * SECOND), publish("s.a", "1", Nats_TTL="1"), publish("s.b", "1"), publish("s.c", "1", Nats_TTL="1"),
        publish("s.c", "2"), Sleep(2.5), SUBJECTS, *records(1, 2, 3, 4, 5, 6),
    ]),
    Case("lives: an age, with markers", [
        create(subject_delete_marker_ttl=10 * SECOND, max_age=SECOND), publish("s.a", "1"), publish("s.b", "1", Nats_TTL="never"), Sleep(2.5),
        SUBJECTS, *records(1, 2, 3, 4),
    ]),
    Case("lives: purged and deleted, with markers", [
        create(subject_delete_marker_ttl=10 * SECOND), *FIVE, api("STREAM.MSG.DELETE.S", {"seq": 2}), api("STREAM.PURGE.S", {"filter": "s.a"}), SUBJECTS,
        *records(6, 7), api("STREAM.PURGE.S"), SUBJECTS,
    ]),
    Case("lives: a marker's own", [
        create(subject_delete_marker_ttl=SECOND), publish("s.a", "1", Nats_TTL="1"), Sleep(3.5), SUBJECTS,
    ]),
    Case("lives: rolled up", [
        create(subject_delete_marker_ttl=10 * SECOND), *FIVE, publish("s.a", "", Nats_Rollup="sub", Nats_TTL="1", KV_Operation="PURGE"), Sleep(2.5), SUBJECTS,
        *records(6, 7),
    ]),
    Case("an age", [create(max_age=SECOND), *FIVE, Sleep(2), SUBJECTS, publish("s.a", "6"), SUBJECTS]),
    Case("schedules: they come", [
        create(allow_msg_schedules=True, allow_msg_ttl=True),
        publish("s.a", "once", Nats_Schedule="@at 2020-01-01T00:00:00Z", Nats_Schedule_Target="s.t", A="b", Nats_Schedule_TTL="5m"),
        Sleep(1.5), SUBJECTS, *records(1, 2),
    ]),
    Case("schedules: they come from elsewhere", [
        create(allow_msg_schedules=True, allow_msg_ttl=True), publish("s.source", "from there"),
        publish("s.b", "kept", Nats_Schedule="@at 2020-01-01T00:00:00Z", Nats_Schedule_Target="s.u", Nats_Schedule_Source="s.source"),
        Sleep(1.5), SUBJECTS, *records(2, 3),
    ]),
    Case("schedules: a second one takes the place of the first", [
        create(allow_msg_schedules=True), publish("s.a", "1", Nats_Schedule="@at 2040-01-01T00:00:00Z", Nats_Schedule_Target="s.t"),
        publish("s.a", "2", Nats_Schedule="@at 2040-01-01T00:00:00Z", Nats_Schedule_Target="s.t"), SUBJECTS, *records(1, 2),
        publish("s.a", "3"), SUBJECTS,
    ]),
    Case("counters: copied", [
        create("O", allow_msg_counter=True), publish("o.a", "", Nats_Incr="2"), publish("o.a", "", Nats_Incr="3"),
        copy("S", sources=[{"name": "O"}], allow_msg_counter=True), Sleep(1), *records(1, 2),
    ]),
    Case("interest: two of them", [
        create(retention="interest"), consumer(), api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"durable_name": "d", "ack_policy": "explicit"}}),
        *FIVE, Several(pull({"batch": 5, "no_wait": True}), 5), ack(1, 1, 1), ack(1, 2, 2), STATE, Several(pull({"batch": 1, "no_wait": True}, "d"), 1),
        ack(1, 1, 1, name="d"), STATE, api("STREAM.MSG.DELETE.S", {"seq": 3}), api("CONSUMER.DELETE.S.d"), STATE, INFO, ack(1, 4, 4, "+TERM"), STATE, INFO,
    ]),
    Case("interest: parts", [
        create(retention="interest"), consumer(filter_subject="s.a"), *FIVE, STATE,
        api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"durable_name": "d", "ack_policy": "none", "filter_subject": "s.b"}}), *FIVE, STATE,
        Several(pull({"batch": 5, "no_wait": True}, "d"), 1), STATE, Several(pull({"batch": 1, "no_wait": True}), 1), ack(1, 1, 1), STATE,
        consumer(filter_subject="s.b"), STATE,
    ]),
    Case("interest: all until then", [
        create(retention="interest"), consumer(ack_policy="all"), *FIVE, Several(pull({"batch": 5, "no_wait": True}), 5), ack(1, 3, 3), STATE, INFO,
        ack(1, 5, 5), STATE, INFO,
    ]),
    Case("interest: an update", [
        create(), *FIVE, consumer(), Several(pull({"batch": 2, "no_wait": True}), 2), ack(1, 1, 1), STATE, update(retention="interest"), STATE,
        update(retention="limits"), publish("s.z", "6"), STATE,
    ]),
    Case("a work queue: given up and terminated", [
        create(retention="workqueue"), *FIVE, consumer(max_deliver=1, ack_wait=SECOND // 2), Several(pull({"batch": 2, "no_wait": True}), 2),
        ack(1, 1, 1, "+TERM"), Sleep(1.5), STATE, api("STREAM.MSG.DELETE.S", {"seq": 2}), STATE,
        Several(pull({"batch": 9, "no_wait": True}), 4), STATE,
    ]),
    Case("a work queue: full", [
        create(retention="workqueue", max_msgs=2, discard="new"), *FIVE[:3], consumer(), pull({"no_wait": True}), ack(1, 1, 1), *FIVE[:1], STATE,
    ]),
    Case("a work queue: a consumer that goes", [
        create(retention="workqueue"), *FIVE, consumer(filter_subject="s.a"), Several(pull({"batch": 2, "no_wait": True}), 2), ack(1, 1, 1), STATE,
        api("CONSUMER.DELETE.S.c"), STATE, consumer(), INFO, pull({"no_wait": True}),
    ]),
]


def starts(name, **config):
    return Case(f"starts: {name}", [
        create(), *FIVE, consumer(**config), INFO, Several(pull({"batch": 9, "no_wait": True}), 9), INFO, publish("s.a", "6"), pull({"no_wait": True}), INFO,
    ])


CASES += [
    starts("all"), starts("last", deliver_policy="last"), starts("last of a part", deliver_policy="last", filter_subject="s.b"),
    starts("new", deliver_policy="new"), starts("last per subject", deliver_policy="last_per_subject", filter_subject="s.>"),
    starts("last per subject of two", deliver_policy="last_per_subject", filter_subjects=["s.a", "s.b"]),
    starts("a sequence", deliver_policy="by_start_sequence", opt_start_seq=3), starts("a sequence to come", deliver_policy="by_start_sequence", opt_start_seq=9),
    starts("a time", deliver_policy="by_start_time", opt_start_time="2020-01-01T00:00:00Z"),
    starts("a time to come", deliver_policy="by_start_time", opt_start_time="2040-01-01T00:00:00Z"),
    starts("no acknowledgements", ack_policy="none"), starts("two parts", filter_subjects=["s.a", "s.c"]),
    starts("few at once", max_ack_pending=2), starts("headers only", headers_only=True),
]

CASES += [
    Case("waiting: one that ends", [
        *ONE, consumer(filter_subject="s.z"), Several(pull({"batch": 3, "expires": SECOND}), 1),
        Several(pull({"batch": 3, "expires": SECOND, "idle_heartbeat": SECOND // 4}), 4), Several(pull({"batch": 3, "max_bytes": 100, "expires": SECOND}), 1),
    ]),
    Case("waiting: served later", [
        create(), consumer(), Sent(pull({"batch": 2, "expires": 5 * SECOND}), "r.1"), INFO, publish("s.a", "1"), publish("s.a", "2"), Heard(2), INFO,
        publish("s.a", "3"), STATE, pull({"no_wait": True}),
    ], AT_REPLY),
    Case("waiting: no_wait that waits", [
        create(), consumer(), publish("s.a", "1"), Sent(pull({"batch": 2, "expires": SECOND, "no_wait": True}), "r.1"), Heard(2),
        Sent(pull({"batch": 2, "expires": SECOND, "no_wait": True}), "r.2"), Heard(1),
    ], AT_REPLY),
    Case("waiting: in turn", [
        create(), consumer(), Sent(pull({"batch": 2, "expires": 5 * SECOND}), "r.1"), Sent(pull({"batch": 2, "expires": 5 * SECOND}), "r.2"),
        *(step for name in "abcd" for step in (publish("s.a", name), Heard(1))),
    ], AT_REPLY),
    Case("waiting: too many", [
        create(), consumer(max_waiting=2), *(Sent(pull({"expires": 5 * SECOND}), f"r.{number}") for number in range(3)), Heard(1), INFO,
        Sent(pull({"no_wait": True}), "r.4"), Heard(1),
    ], AT_REPLY),
    Case("waiting: nobody is left", [
        create(), consumer(), Sent(pull({"expires": 30 * SECOND}), "r.1"), Sleep(0.3), INFO, Sent(pull({"expires": 30 * SECOND}), "nobody.there"), Sleep(0.3), INFO,
    ], AT_REPLY),
    Case("waiting: a consumer that goes", [
        create(), consumer(), Sent(pull({"expires": 30 * SECOND}), "r.1"), api("CONSUMER.DELETE.S.c"), Heard(1),
        consumer(), Sent(pull({"expires": 30 * SECOND}), "r.1"), api("STREAM.DELETE.S"), Heard(1),
    ], AT_REPLY),
    Case("waiting: a consumer that is changed", [
        create(), consumer(), Sent(pull({"expires": 30 * SECOND}), "r.1"), consumer(filter_subject="s.b"), publish("s.a", "1"), publish("s.b", "2"), Heard(1), INFO,
        Sent(pull({"expires": 30 * SECOND}), "r.1"), consumer(filter_subject="s.b", deliver_subject="d.x"), Heard(1), INFO,
    ], AT_REPLY),
    Case("waiting: paused", [
        *ONE, consumer(), api("CONSUMER.PAUSE.S.c", {"pause_until": "2040-01-01T00:00:00Z"}), pull({"no_wait": True}),
        pull({"no_wait": True, "expires": SECOND // 2}), Several(pull({"batch": 2, "expires": SECOND // 2}), 1), INFO,
    ]),
    Case("waiting: resumed", [
        *ONE, consumer(), api("CONSUMER.PAUSE.S.c", {"pause_until": "2040-01-01T00:00:00Z"}), Sent(pull({"expires": 5 * SECOND}), "r.1"), Sleep(0.3), INFO,
        api("CONSUMER.PAUSE.S.c", {}), Heard(1), INFO, consumer(pause_until="2040-01-01T00:00:00Z"), INFO,
    ], AT_REPLY),
    Case("waiting: a change to fewer at once", [
        *ONE, consumer(), pull({"no_wait": True}), consumer(max_ack_pending=1), INFO, Sent(pull({"expires": 5 * SECOND}), "r.1"), Sleep(0.3), INFO,
        request("$JS.ACK.S.c.1.1.1.1.0", "+ACK"), Heard(1),
    ], AT_REPLY),
    Case("waiting: reset", [
        *ONE, consumer(), Several(pull({"batch": 3, "no_wait": True}), 3), ack(1, 1, 1), api("CONSUMER.RESET.S.c", {"seq": 2}), INFO,
        Several(pull({"batch": 3, "no_wait": True}), 3), INFO, api("CONSUMER.RESET.S.c", ""), INFO, api("CONSUMER.RESET.S.c", {"seq": 1}), INFO,
    ]),
    Case("waiting: bytes", [
        *ONE, consumer(), Sent(pull({"batch": 9, "max_bytes": 60, "expires": SECOND}), "r.1"), Heard(2), INFO,
        Sent(pull({"batch": 9, "max_bytes": 1000, "expires": SECOND}), "r.2"), Heard(2),
    ], AT_REPLY),
    Case("again: after a while", [
        *ONE, consumer(ack_wait=SECOND // 2), Several(pull({"batch": 2, "no_wait": True}), 2), INFO, Sleep(1.2),
        Several(pull({"batch": 9, "no_wait": True}), 4), INFO, ack(2, 1, 3), INFO, ack(1, 2, 2), INFO,
    ]),
    Case("again: after several whiles", [
        *ONE[:2], consumer(backoff=[SECOND // 2, SECOND], max_deliver=3), pull({"no_wait": True}), Sleep(0.2), pull({"no_wait": True}), Sleep(0.8),
        pull({"no_wait": True}), Sleep(0.6), pull({"no_wait": True}), Sleep(1), pull({"no_wait": True}), INFO,
    ]),
    Case("again: refused with a delay", [
        *ONE, consumer(), pull({"no_wait": True}), ack(1, 1, 1, '-NAK {"delay": 700000000}'), pull({"no_wait": True}), Sleep(1.3), pull({"no_wait": True}), INFO,
        ack(2, 1, 3, "-NAK"), pull({"no_wait": True}), INFO, ack(1, 2, 2, "-NAK x"), Several(pull({"batch": 5, "no_wait": True}), 3), INFO,
    ]),
    Case("again: still at work", [
        *ONE, consumer(ack_wait=SECOND), pull({"no_wait": True}), Sleep(0.7), ack(1, 1, 1, "+WPI"), Sleep(0.7), pull({"no_wait": True}), INFO,
        Sleep(0.7), pull({"no_wait": True}), INFO,
    ]),
    Case("again: what is deleted meanwhile", [
        *ONE, consumer(ack_wait=SECOND // 2), Several(pull({"batch": 2, "no_wait": True}), 2), api("STREAM.MSG.DELETE.S", {"seq": 1}), INFO,
        api("STREAM.PURGE.S", {"seq": 3}), INFO, Sleep(1), Several(pull({"batch": 5, "no_wait": True}), 2), INFO, api("STREAM.PURGE.S"), INFO,
    ]),
    Case("again: few at once", [
        *ONE, consumer(max_ack_pending=1), Sent(pull({"batch": 3, "expires": 5 * SECOND}), "r.1"), Heard(1), INFO, ack(1, 1, 1), Heard(1), INFO,
    ], AT_REPLY),
    Case("unused for a while", [
        create(), consumer(inactive_threshold=SECOND // 2), api("CONSUMER.CREATE.S", {"stream_name": "S", "config": {"name": "e", "inactive_threshold": SECOND // 2}}),
        Sleep(2), api("CONSUMER.NAMES.S"),
    ]),
    Case("pinned: in turn", [
        *ONE, consumer(priority_policy="pinned_client", priority_groups=["g"], priority_timeout=SECOND),
        Sent(pull({"expires": 9 * SECOND, "group": "g"}), "r.1"), Heard(1), Sent(pull({"expires": 9 * SECOND, "group": "g"}), "r.2"), Sleep(0.3), INFO,
        Sent(pull({"expires": 9 * SECOND, "group": "g", "id": "wrong"}), "r.3"), Heard(1), Sleep(1.5), Heard(1), INFO,
        api("CONSUMER.UNPIN.S.c", {"group": "g"}), Sent(pull({"expires": 9 * SECOND, "group": "g"}), "r.4"), Heard(1), INFO,
    ], AT_REPLY),
    Case("overflow: when there is more", [
        *ONE, consumer(priority_policy="overflow", priority_groups=["g"]), Sent(pull({"expires": 9 * SECOND, "group": "g", "min_pending": 4}), "r.1"),
        INFO, publish("s.a", "4"), publish("s.a", "5"), Heard(1), Sent(pull({"expires": 9 * SECOND, "group": "g", "min_ack_pending": 1}), "r.2"), Heard(1),
        Sent(pull({"expires": SECOND, "group": "g", "min_ack_pending": 3}), "r.3"), Heard(1), INFO,
    ], AT_REPLY),
    Case("prioritized: the first first", [
        create(), consumer(priority_policy="prioritized", priority_groups=["g"]), Sent(pull({"expires": 9 * SECOND, "group": "g", "priority": 5}), "r.5"),
        Sent(pull({"expires": 9 * SECOND, "group": "g", "priority": 1}), "r.1"), Sent(pull({"expires": 9 * SECOND, "group": "g"}), "r.0"),
        *(step for name in "abc" for step in (publish("s.a", name), Heard(1))),
    ], AT_REPLY),
]

PUSHED = ("d.x", "d.y")


def pushes(name, steps, before=tuple(FIVE), **config):
    return Case(f"pushed: {name}", [create(), *before, consumer(deliver_subject="d.x", **config), *steps, INFO], PUSHED)


CASES += [
    pushes("all", [Heard(5)]), pushes("no acknowledgements", [Heard(5)], ack_policy="none"), pushes("headers only", [Heard(5)], headers_only=True),
    pushes("few at once", [Heard(2), INFO, ack(1, 1, 1), Heard(1)], max_ack_pending=2), pushes("a part", [Heard(3)], filter_subject="s.a"),
    pushes("as it came", [Heard(5)], replay_policy="original"), pushes("again", [Heard(1), Heard(1), Heard(1)], before=FIVE[:1], ack_wait=SECOND // 2),
    pushes("signs of life", [Heard(1), Heard(1), publish("s.a", "1"), Heard(1), Heard(1)], before=[], idle_heartbeat=SECOND // 2),
    pushes("signs of life with flow control", [Heard(1), Heard(1)], before=[], idle_heartbeat=SECOND // 2, flow_control=True, ack_policy="none"),
    pushes("a group without members", [Sleep(0.3), INFO], deliver_group="g"),
    pushes("slowly", [Heard(1), Heard(1)], before=FIVE[:2], rate_limit_bps=1 << 20),
    pushes("refused", [Heard(1), ack(1, 1, 1, "-NAK"), Heard(1), ack(2, 1, 2, "+TERM"), Sleep(0.3)], before=FIVE[:1]),
    pushes("to elsewhere", [Heard(5), consumer(deliver_subject="d.y"), publish("s.a", "6"), Heard(1), INFO, api("CONSUMER.DELETE.S.c"), Sleep(0.3), publish("s.a", "7")]),
    pushes("a pause", [Heard(5), api("CONSUMER.PAUSE.S.c", {"pause_until": "2040-01-01T00:00:00Z"}), publish("s.a", "6"), INFO, api("CONSUMER.PAUSE.S.c"), Heard(1)]),
    pushes("new ones", [publish("s.z", "6"), Heard(1)], deliver_policy="new"),
    pushes("the last of each", [Heard(3)], deliver_policy="last_per_subject", filter_subject="s.>"),
    Case("pushed: nobody listens", [create(), *FIVE, consumer(deliver_subject="nobody"), INFO, publish("s.a", "6"), INFO]),
    Case("pushed: who watches is not meant", [create(), *FIVE, consumer(deliver_subject="d.x"), Sleep(0.3), INFO], ("d.>", "*.x")),
    Case("pushed: two of one name", [
        create(), consumer(deliver_subject="d.x"), consumer(deliver_subject="d.y"), INFO, publish("s.a", "1"), Heard(1),
        api("CONSUMER.CREATE.S.c", {"stream_name": "S", "config": {"name": "c", "deliver_subject": "d.z"}}),
    ], PUSHED),
]

MANY = [publish(f"s.{number}", "x" * number) for number in range(8)]

CASES += [
    Case("direct: pages", [create(allow_direct=True), *MANY, api("STREAM.MSG.DELETE.S", {"seq": 4})] + [
        Several(api("DIRECT.GET.S", body), count) for body, count in (
            ({"multi_last": ["s.*"], "batch": 3}, 4), ({"multi_last": ["s.*"], "batch": 3, "seq": 4}, 4), ({"multi_last": ["s.*"], "batch": 9, "seq": 8}, 2),
            ({"multi_last": ["s.*"], "max_bytes": 50}, 2), ({"multi_last": ["s.*"], "up_to_time": "2040-01-01T00:00:00Z"}, 8),
            ({"multi_last": ["s.*"], "up_to_time": "2020-01-01T00:00:00Z"}, 1), ({"multi_last": ["s.1", "s.*"]}, 8), ({"multi_last": ["s.1", "q.*"]}, 2),
            ({"start_time": "2020-01-01T00:00:00Z", "batch": 2}, 3), ({"start_time": "2040-01-01T00:00:00Z", "batch": 2}, 1),
            ({"next_by_subj": "s.*", "seq": 3, "batch": 2}, 3), ({"next_by_subj": "s.3", "batch": 2}, 1), ({"seq": 4}, 1), ({"seq": 4, "batch": 1}, 2),
            ({"seq": 1, "batch": 0}, 1), ({"seq": 1, "batch": -1}, 1), ({"seq": 1, "batch": 2000, "max_bytes": 1}, 2), ({"seq": 1, "max_bytes": 30}, 1),
            ({"last_by_subj": "s.1", "batch": 2}, 1), ({"multi_last": [""]}, 1), ({"multi_last": ["s.."]}, 1), ({"multi_last": ["s.*"], "up_to_seq": 99}, 8),
            ({"start_time": "2020-01-01T00:00:00Z", "seq": 3}, 1), ({"next_by_subj": "s.*", "start_time": "2020-01-01T00:00:00Z", "batch": 1}, 2),
            ({"last_by_subj": "s.*"}, 1), ({"last_by_subj": ">"}, 1), ({"last_by_subj": ""}, 1), ({"last_by_subj": "s.."}, 1), ({"next_by_subj": "s.."}, 1),
            ({"seq": 7, "batch": 5}, 3), ({"up_to_seq": 3, "seq": 1, "batch": 2}, 1), ({"no_hdr": True}, 1),
        )
    ] + [api("DIRECT.GET.S.s.1", body) for body in ("", {"seq": 1}, "{")] + [api("DIRECT.GET.S.s.*"), api("DIRECT.GET.S.>")]),
    Case("direct: too many", [create(allow_direct=True)] + [publish(f"s.{number}", "") for number in range(1026)] + [
        api("DIRECT.GET.S", {"multi_last": ["s.*"]}), api("DIRECT.GET.S", {"multi_last": ["s.*"], "batch": 1}),
    ]),
    Case("direct: of a mirror", [
        create("O", allow_direct=True), copy("M", mirror={"name": "O"}, mirror_direct=True), publish("o.a", "1"), Sleep(1.5), api("DIRECT.GET.M", {"seq": 1}),
        # O or M may respond to a direct get from O; which one is random.
        api("DIRECT.GET.M.o.a"), api("STREAM.INFO.M"), api("STREAM.INFO.O"),
    ]),
    Case("message: by odd subjects", [create(), *FIVE] + [api("STREAM.MSG.GET.S", body) for body in (
        {"last_by_subj": ">"}, {"last_by_subj": ""}, {"last_by_subj": "s.."}, {"next_by_subj": "s.."}, {"next_by_subj": ""}, {"next_by_subj": "s.*", "seq": 2},
        {"seq": -1}, {"seq": 1.5}, {"seq": "1"}, {"last_by_subj": 1}, {"start_time": "x"}, {"next_by_subj": "s.a", "start_time": "2040-01-01T00:00:00Z"},
        {"up_to_seq": 1}, {"last_by_subj": "s.a", "no_hdr": True}, {"next_by_subj": "s.a", "no_hdr": True},
    )]),
    Case("pages: many streams", [
        *(api(f"STREAM.CREATE.P{number}", {"name": f"P{number}", "subjects": [f"p.{number}"], "storage": "memory"}) for number in range(260)),
        api("STREAM.NAMES", {"offset": 250}), api("STREAM.LIST", {"offset": 258}), api("STREAM.NAMES", {"subject": "p.*", "offset": 258}),
        api("STREAM.LIST", {"subject": "p.25*"}), api("STREAM.LIST", {"subject": "p.255"}), api("STREAM.LIST", {"offset": -1, "subject": "p.1"}),
    ]),
    Case("account", [api("INFO"), create(), consumer(), api("INFO"), create("B", storage="memory", max_bytes=1000), api("INFO"), api("INFO", "x"), api("INFO", {"foo": 1})]),
    Case("copies: changed", [
        create("O"), publish("o.a", "1"), publish("o.b", "2"), copy("C", sources=[{"name": "O", "filter_subject": "o.a"}]), Sleep(1), api("STREAM.INFO.C"),
        api("STREAM.UPDATE.C", {"name": "C", "storage": "memory", "sources": [{"name": "O", "filter_subject": "o.b"}]}), Sleep(1), api("STREAM.INFO.C"),
        api("STREAM.UPDATE.C", {"name": "C", "storage": "memory", "subjects": ["c.x"]}), api("STREAM.INFO.C"), publish("c.x", "3"),
    ]),
    Case("copies: a mirror that becomes a stream", [
        create("O"), publish("o.a", "1"), copy("M", mirror={"name": "O"}), Sleep(1), publish("m.x", "x"),
        api("STREAM.UPDATE.M", {"name": "M", "storage": "memory", "subjects": ["m.>"]}), publish("m.x", "x"), publish("o.a", "2"), Sleep(0.5), api("STREAM.INFO.M"),
    ]),
    Case("copies: of what goes away", [
        create("O"), publish("o.a", "1"), copy("M", mirror={"name": "O"}), Sleep(1), api("STREAM.DELETE.O"), api("STREAM.INFO.M"), create("O"),
    ]),
    Case("copies: of what nobody else is interested in", [
        create("O", retention="interest"), copy("C", sources=[{"name": "O"}]), copy("M", mirror={"name": "O"}), Sleep(1), publish("o.a", "1"), publish("o.b", "2"),
        Sleep(4), api("STREAM.MSG.GET.O", {"seq": 1}), api("STREAM.MSG.GET.C", {"seq": 2}), api("STREAM.MSG.GET.M", {"seq": 2}),
    ]),
    Case("copies: of streams that do not exist", [
        copy("M", mirror={"name": "NONE"}), copy("S", sources=[{"name": "NONE"}, {"name": "FAR", "external": {"api": "$JS.far.API"}}]),
        Sleep(1), api("STREAM.INFO.M"), api("STREAM.INFO.S"), api("STREAM.LIST"),
    ]),
    Case("copies: two ways from one origin", [
        create("O"), copy("M", mirror={"name": "O"}), copy("N", mirror={"name": "O"}), copy("S", sources=[{"name": "M"}, {"name": "N"}]),
        copy("T", sources=[{"name": "O"}, {"name": "M"}]), copy("U", sources=[{"name": "M"}, {"name": "O"}]),
        copy("V", sources=[{"name": "S"}, {"name": "O"}]), copy("W", sources=[{"name": "S"}, {"name": "M"}]),
    ]),
    Case("copies: a work queue", [
        create("O", retention="workqueue"), publish("o.a", "1"), copy("C", sources=[{"name": "O"}]), Sleep(1), api("STREAM.INFO.O"), api("STREAM.INFO.C"),
    ]),
]

# Payloads of acknowledgements, for a consumer without acknowledgements, one with them, a deleted one, and one
# that never existed.
PAYLOADS = ("+ACK", "", "+WPI", "-NAK", "+NXT", '+NXT {"batch":1,"no_wait":true}', "+TERM", "junk")
PLACES = ("1.1.1.1.0", "1.x.1.1.0", "1.9.9.1.0", "1.1.1.1", "1.1.1.1.0.more")

CASES += [
    Case(f"acknowledged: {policy}", [
        create(), *FIVE, consumer(ack_policy=policy), Several(pull({"batch": 2, "no_wait": True}), 2),
        *(ack(1, 1, 1, payload) for payload in PAYLOADS), *(request(f"$JS.ACK.S.c.{place}", "+ACK") for place in PLACES), request("$JS.FC.S.c.x"),
        api("CONSUMER.DELETE.S.c"), ack(1, 1, 1), ack(1, 1, 1, "+NXT"), ack(1, 1, 1, name="none"), request("$JS.ACK.NONE.c.1.1.1.1.0", "+ACK"),
    ]) for policy in ("none", "all", "explicit")
]
CASES += [
    Case("acknowledged: pushed without acknowledgements", [
        create(), *FIVE, consumer(deliver_subject="d.x", ack_policy="none"), Heard(5), *(ack(1, 1, 1, payload) for payload in PAYLOADS),
        request("$JS.FC.S.c.x"),
    ], PUSHED),
    Case("acknowledged: flow control", [
        create(), consumer(deliver_subject="d.x", ack_policy="none", flow_control=True, idle_heartbeat=30 * SECOND), request("$JS.FC.S.c.x"),
        request("$JS.FC.S.c"), request("$JS.FC.S.none.x"),
    ], PUSHED),
]

PURGED = [publish(f"s.{name}", "x") for name in ("a", "a.x", "a.y", "b.x", "a.x")]
GONE = (
    {"KV_Operation": "PURGE"}, {"KV_Operation": "DEL"}, {"Nats_Marker_Reason": "mine"}, {"Nats_Marker_Reason": ""}, {"kv_operation": "PURGE"},
    {"KV_Operation": "purge"},
)

CASES += [
    Case("lives: of what says that it is gone", [
        create(subject_delete_marker_ttl=2 * SECOND, allow_rollup_hdrs=True),
        *(publish(f"s.{number}", "x", Nats_TTL="2", **headers) for number, headers in enumerate(GONE)), Sleep(3), SUBJECTS, *records(*range(7, 12)),
    ]),
    Case("lives: shorter than a marker's", [
        step for count in (1, 2)
        for step in (create(subject_delete_marker_ttl=10 * SECOND, max_msgs_per_subject=count), publish("s.a", "x", Nats_TTL="1"), *records(1), api("STREAM.DELETE.S"))
    ]),
    Case("rollups: of what a subject matches", [
        step for subject in ("s.a.*", "s.*", "s.>", "s.*.x")
        for step in (create(allow_rollup_hdrs=True), *PURGED, publish(subject, "last", Nats_Rollup="sub"), SUBJECTS, publish("s.a", "6"), SUBJECTS, api("STREAM.DELETE.S"))
    ]),
    Case("waiting: an answer while acknowledgements are missing", [
        create(), consumer(max_ack_pending=2), *FIVE,
        Sent(pull({"batch": 9, "no_wait": True, "expires": 5 * SECOND, "idle_heartbeat": SECOND // 2}), "r.1"), Heard(2), Sleep(0.8), Heard(1),
        ack(1, 1, 1), Sleep(0.3), INFO,
    ], AT_REPLY),
    Case("waiting: a heartbeat that is too long", [
        create(), consumer(), *(
            pull(body) for body in (
                {"expires": SECOND, "idle_heartbeat": SECOND // 2 + 1}, {"idle_heartbeat": 1}, {"no_wait": True, "idle_heartbeat": SECOND},
                {"no_wait": True, "expires": SECOND, "idle_heartbeat": SECOND}, {"expires": -1, "idle_heartbeat": 1},
            )
        ), Several(pull({"expires": SECOND, "idle_heartbeat": SECOND // 2}), 2),
    ]),
]
