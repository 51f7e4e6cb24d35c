"""Combinations of features that other cases test separately, and effects of time."""

from jetstream.cases import SECOND, consumer, copy, create, update
from jetstream.corners import AT_REPLY, INFO
from jetstream.publishes import END, ONE, STATE, THREE, atomic, pull
from jetstream.session import Case, Fast, Heard, Sent, Several, Sleep, api, publish, request

LAST = "Nats_Expected_Last_Subject_Sequence"
HEARD_S = ("s.>",)


def info(**body):
    return api("STREAM.INFO.S", body)


def purge(**body):
    return api("STREAM.PURGE.S", body)


TEN = [publish(f"s.{number % 3}", str(number)) for number in range(10)]

CASES = [
    Case("mixture: purges", [
        create(), *TEN, purge(filter="s.0", keep=1), purge(filter="s.1", seq=5), purge(filter="s.1", seq=5, keep=1), purge(filter="s.."),
        purge(filter="q"), purge(keep=2), purge(keep=0), purge(seq=0), purge(seq=99), *TEN, purge(filter="s.*", keep=1), purge(filter=">", seq=15),
        purge(filter=""), info(deleted_details=True), api("STREAM.PURGE.S", {"seq": -1}), api("STREAM.PURGE.NONE"),
        purge(filter="s.*.>"), purge(keep=-1),
    ]),
    Case("mixture: what is told of gaps", [
        create(), *TEN, *(api("STREAM.MSG.DELETE.S", {"seq": seq, "no_erase": seq % 2 == 0}) for seq in (1, 2, 5, 9, 10, 10, 11, 0)),
        info(deleted_details=True), info(deleted_details=True, subjects_filter="s.*"), info(subjects_filter="s.1", offset=1), info(subjects_filter="s.>", offset=1),
        info(subjects_filter="s.>", offset=9), info(subjects_filter="q"), info(subjects_filter="s.."), info(offset=1), info(deleted_details="x"),
        publish("s.0", "x"), STATE,
    ]),
    Case("mixture: a counter in a batch", [
        create(allow_atomic=True, allow_msg_counter=True), atomic("s.a", "b", 1, "", Nats_Incr="1"), atomic("s.a", "b", 2, "", Nats_Incr="+4"),
        atomic("s.b", "b", 3, "", Nats_Incr="-2", **END), STATE, api("STREAM.MSG.GET.S", {"seq": 2}), atomic("s.a", "c", 1, "", Nats_Incr="1"),
        atomic("s.a", "c", 2, "", Nats_Incr="x", **END), STATE, atomic("s.a", "d", 1, "", Nats_Incr="1"), atomic("s.a", "d", 2, "", **END), STATE,
        publish("s.a", "", Nats_Incr="1"),
    ]),
    Case("mixture: schedules in a batch", [
        create(allow_atomic=True, allow_msg_schedules=True, allow_msg_ttl=True),
        atomic("s.a", "b", 1, Nats_Schedule="@at 2040-01-01T00:00:00Z", Nats_Schedule_Target="s.t"), atomic("s.a", "b", 2, **END), STATE,
        atomic("s.b", "c", 1), atomic("s.b", "c", 2, Nats_Schedule="@at 2040-01-01T00:00:00Z", Nats_Schedule_Target="q.t", **END), STATE,
        atomic("s.b", "d", 1, Nats_Schedule="x", Nats_Schedule_Target="s.t"), atomic("s.b", "d", 2, **END), STATE,
    ]),
    Case("mixture: expectations within a batch", [
        create(allow_atomic=True), *THREE,
        atomic("s.a", "a", 1, **{LAST: 3}), atomic("s.a", "a", 2, **{LAST: 4}, **END), STATE,
        atomic("s.c", "b", 1, **{LAST: 0}), atomic("s.c", "b", 2, **{LAST: 0}, **END), STATE,
        atomic("s.d", "c", 1, **{LAST: 2, LAST + "_Subject": "s.b"}), atomic("s.b", "c", 2, **END), STATE,
        atomic("s.e", "d", 1), atomic("s.f", "d", 2, **{LAST: 2, LAST + "_Subject": "s.b"}, **END), STATE,
        atomic("s.e", "e", 1, Nats_Expected_Last_Sequence="x"), atomic("s.e", "e", 2, **END),
        atomic("s.e", "f", 1, Nats_Expected_Last_Sequence=99), atomic("s.e", "f", 2, **END), STATE,
        atomic("q.e", "g", 1), atomic("s.e", "g", 1), atomic("s.e", "g", 2, Nats_Required_Api_Level="99", **END), STATE,
    ]),
    Case("mixture: limits per subject in a batch", [
        create(allow_atomic=True, max_msgs_per_subject=1, discard="new", discard_new_per_subject=True),
        atomic("s.a", "a", 1), atomic("s.a", "a", 2, **END), STATE, atomic("s.a", "b", 1), atomic("s.b", "b", 2, **END), STATE,
        atomic("s.b", "c", 1), atomic("s.c", "c", 2, **END), STATE,
    ]),
    Case("mixture: a batch with roll-up, lives and duplicates", [
        create(allow_atomic=True, allow_rollup_hdrs=True, allow_msg_ttl=True), *THREE,
        atomic("s.a", "a", 1, Nats_TTL="100"), atomic("s.a", "a", 2, Nats_TTL="x", **END), STATE,
        atomic("s.a", "b", 1, Nats_TTL="100", Nats_Msg_Id="i1"), atomic("s.a", "b", 2, Nats_Msg_Id="i2", **END), STATE,
        publish("s.a", "x", Nats_Msg_Id="i2"), atomic("s.b", "c", 1, Nats_Msg_Id="i1", **END), STATE,
        atomic("s.b", "d", 1, Nats_Rollup="sub", **END), STATE, atomic("s.b", "e", 1, Nats_Rollup="all", **END), STATE,
    ]),
    Case("mixture: a batch in a work queue and with interest", [
        create(allow_atomic=True, retention="workqueue"), consumer(), atomic("s.a", "a", 1), atomic("s.a", "a", 2, **END),
        Several(pull({"batch": 2, "no_wait": True}), 2), request("$JS.ACK.S.c.1.1.1.1.0", "+ACK"), STATE, api("STREAM.DELETE.S"),
        create(allow_atomic=True, retention="interest"), atomic("s.a", "a", 1), atomic("s.a", "a", 2, **END), STATE,
        consumer(), atomic("s.a", "b", 1), atomic("s.a", "b", 2, **END), STATE,
    ]),
    Case("mixture: a batch of a stream that goes or changes", [
        create(allow_atomic=True), atomic("s.a", "a", 1), update(), atomic("s.a", "a", 2, **END), atomic("s.a", "b", 1),
        update(allow_atomic=True, max_msgs=5), atomic("s.a", "b", 2, **END), STATE,
    ]),
    Case("mixture: schedules that come due", [
        create(allow_msg_schedules=True, allow_msg_ttl=True, subjects=["s.>", "t.>"]),
        publish("s.a", "once", A="b", Nats_Schedule="@at 2020-01-01T00:00:00Z", Nats_Schedule_Target="t.a"), Sleep(1.5),
        api("STREAM.MSG.GET.S", {"last_by_subj": "t.a"}), api("STREAM.MSG.GET.S", {"last_by_subj": "s.a"}),
        publish("s.b", "live", Nats_Schedule="@at 2020-01-01T00:00:00Z", Nats_Schedule_Target="t.b", Nats_Schedule_TTL="1m"), Sleep(1.5),
        api("STREAM.MSG.GET.S", {"last_by_subj": "t.b"}), STATE,
    ]),
    Case("mixture: schedules that come again", [
        create(allow_msg_schedules=True, subjects=["s.>", "t.>"], allow_rollup_hdrs=True, max_msgs_per_subject=1),
        publish("s.a", "again", A="b", Nats_Schedule="@every 1s", Nats_Schedule_Target="t.a"), Sleep(2.5),
        api("STREAM.MSG.GET.S", {"last_by_subj": "t.a"}), api("STREAM.PURGE.S", {"filter": "s.a"}), Sleep(1.2), api("STREAM.PURGE.S"), Sleep(1.5), info(),
    ]),
    Case("mixture: schedules with a source", [
        create(allow_msg_schedules=True, subjects=["s.>", "t.>"]), publish("s.src", "content", B="c"),
        publish("s.a", "own", A="b", Nats_Schedule="@at 2020-01-01T00:00:00Z", Nats_Schedule_Target="t.a", Nats_Schedule_Source="s.src"), Sleep(1.5),
        api("STREAM.MSG.GET.S", {"last_by_subj": "t.a"}),
        publish("s.b", "own", A="b", Nats_Schedule="@at 2020-01-01T00:00:00Z", Nats_Schedule_Target="t.b", Nats_Schedule_Source="s.none"), Sleep(1.5),
        api("STREAM.MSG.GET.S", {"last_by_subj": "t.b"}), STATE,
    ]),
    Case("mixture: markers", [
        create(subject_delete_marker_ttl=60 * SECOND, max_age=SECOND), publish("s.a", "1"), publish("s.b", "2", Nats_TTL="1s"), Sleep(2.6),
        api("STREAM.MSG.GET.S", {"last_by_subj": "s.a"}), api("STREAM.MSG.GET.S", {"last_by_subj": "s.b"}), STATE,
    ]),
    Case("mixture: no markers for what is purged or deleted", [
        create(subject_delete_marker_ttl=60 * SECOND), *THREE, api("STREAM.MSG.DELETE.S", {"seq": 2}), purge(filter="s.a"), STATE,
        publish("s.c", "3", Nats_TTL="1s"), publish("s.c", "4", Nats_TTL="100s"), Sleep(2.2), STATE, info(subjects_filter=">"),
    ]),
    Case("mixture: a life that ends, with a consumer", [
        create(allow_msg_ttl=True), consumer(), publish("s.a", "1", Nats_TTL="1s"), publish("s.a", "2"), INFO, Sleep(2.2), INFO, STATE,
        Several(pull({"batch": 2, "no_wait": True}), 2), INFO,
    ]),
    Case("mixture: republished", [
        create(republish={"src": "s.*", "dest": "r.$1"}), publish("s.a", "1", A="b"), publish("s.a", "2", Nats_Msg_Id="m"), publish("s.a", "2", Nats_Msg_Id="m"),
        publish("s.b", ""), Heard(3), update(republish={"src": "s.*", "dest": "r.$1", "headers_only": True}), publish("s.a", "123"), Heard(1),
    ], ("r.>",)),
    Case("mixture: republished batches and counters", [
        create(republish={"src": "s.*", "dest": "r.$1"}, allow_atomic=True), atomic("s.a", "a", 1), atomic("s.b", "a", 2, **END), Heard(2), api("STREAM.DELETE.S"),
        create(republish={"src": "s.*", "dest": "r.$1"}, allow_msg_counter=True), publish("s.a", "", Nats_Incr="5"), publish("s.a", "", Nats_Incr="2"), Heard(2),
    ], ("r.>",)),
    Case("mixture: limits of consumers", [
        create(consumer_limits={"inactive_threshold": 10 * SECOND, "max_ack_pending": 5}), consumer(), INFO, consumer(max_ack_pending=6), consumer(max_ack_pending=4),
        consumer(inactive_threshold=11 * SECOND), consumer(inactive_threshold=5 * SECOND), update(consumer_limits={"max_ack_pending": 3}),
        update(consumer_limits={"inactive_threshold": SECOND}), update(), INFO,
    ]),
    Case("mixture: no room for a consumer", [
        create(max_consumers=1), consumer(), api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"name": "d"}}), consumer(description="x"),
        api("CONSUMER.CREATE.S", {"stream_name": "S", "config": {"deliver_subject": "d.x"}}), update(max_consumers=2),
        api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"name": "d", "inactive_threshold": 60 * SECOND}}), api("CONSUMER.NAMES.S"),
    ]),
    Case("mixture: a work queue's consumers", [
        create(retention="workqueue"), consumer(filter_subject="s.a"),
        *(api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"name": "d", "ack_policy": "explicit"} | config}) for config in (
            {"filter_subject": "s.a"}, {"filter_subject": "s.*"}, {}, {"filter_subjects": ["s.b", "s.a"]}, {"filter_subject": "s.b", "ack_policy": "none"},
            {"filter_subject": "s.b", "deliver_policy": "new"}, {"filter_subject": "s.b", "deliver_policy": "last"}, {"filter_subject": "s.b", "ack_policy": "all"},
            {"filter_subjects": ["s.b", "s.c"]},
        )), consumer(filter_subject="s.b"), consumer(filter_subject="s.d"), publish("s.d", "1"), pull({"no_wait": True}), STATE,
    ]),
]

GROUP = {"priority_groups": ["g"]}
PINNED = GROUP | {"priority_policy": "pinned_client", "priority_timeout": 2 * SECOND}


def ask(name, **body):
    return Sent(pull({"expires": 9 * SECOND, "group": "g"} | body), f"r.{name}")


CASES += [
    Case("mixture: unpin", [
        create(), consumer(), api("CONSUMER.UNPIN.S.c", {"group": "g"}), api("CONSUMER.DELETE.S.c"), consumer(**PINNED), api("CONSUMER.UNPIN.S.c", {"group": "g"}),
        *(api("CONSUMER.UNPIN.S.c", body) for body in ({}, "", {"group": "h"}, {"group": ""}, "x", {"group": 3})),
        api("CONSUMER.UNPIN.S.d", {"group": "g"}), api("CONSUMER.UNPIN.T.c", {"group": "g"}), ask(1), publish("s.a", "1"), Heard(1), INFO,
        api("CONSUMER.UNPIN.S.c", {"group": "g"}), INFO, ask(2), publish("s.a", "2"), Heard(1), INFO,
    ], AT_REPLY),
    Case("mixture: pinned with min_pending and priority", [
        *ONE, consumer(**PINNED), ask(1, min_pending=9), ask(2, priority=1), Heard(1), INFO, ask(3, id="")
        , publish("s.a", "4"), Sleep(0.3), INFO, api("CONSUMER.UNPIN.S.c", {"group": "g"}), Heard(1), INFO,
    ], AT_REPLY),
    Case("mixture: overflow with priority and id", [
        *ONE, consumer(priority_policy="overflow", **GROUP), ask(1, priority=3), Heard(1), ask(2, id="x"), Heard(1), ask(3, min_pending=2), Sleep(0.3), ask(4, min_pending=1), Heard(1), INFO,
    ], AT_REPLY),
    Case("mixture: prioritized with what others want", [
        *ONE, consumer(priority_policy="prioritized", **GROUP), ask(1, priority=2, min_pending=9), Heard(1), ask(2, id="x"), Heard(1),
        ask(3, priority=10), Heard(1), ask(4, priority=-1), Heard(1), INFO,
    ], AT_REPLY),
    Case("mixture: policies changed", [
        *ONE, consumer(**PINNED), ask(1), Heard(1), consumer(priority_policy="overflow", **GROUP), INFO, consumer(), INFO, consumer(**PINNED), INFO,
        consumer(priority_policy="pinned_client", priority_groups=["h"]), INFO,
    ], AT_REPLY),
    Case("mixture: pauses", [
        create(), consumer(pause_until="2020-01-01T00:00:00Z"), INFO, *(api("CONSUMER.PAUSE.S.c", body) for body in (
            {"pause_until": "x"}, {"pause_until": "2020-01-01T00:00:00Z"}, {"pause_until": "2040-01-01T00:00:00+02:00"}, {"foo": 1}, "", "{}",
            {"pause_until": None}, {"pause_until": 5},
        )), api("CONSUMER.PAUSE.S.d", {}), api("CONSUMER.PAUSE.T.c", {}), consumer(pause_until="2040-01-01T00:00:00Z"), INFO, consumer(description="x"), INFO,
        api("CONSUMER.PAUSE.S.c", {"pause_until": "2040-01-01T00:00:00Z"}), consumer(description="y"), INFO,
    ]),
    Case("mixture: resets", [
        *ONE, consumer(), Several(pull({"batch": 3, "no_wait": True}), 3), *(step for body in (
            {"seq": 0}, {"seq": 99}, {"seq": -1}, "x", {"foo": 1}, {"seq": "1"}, {"seq": 3},
        ) for step in (api("CONSUMER.RESET.S.c", body), INFO)),
    ]),
    Case("mixture: bodies that are no JSON", [
        create(), *TEN, consumer(), api("CONSUMER.PAUSE.S.c", "x"), api("STREAM.PURGE.S", "x"), STATE,
    ]),
    Case("mixture: resets of what is not there", [create(), api("CONSUMER.RESET.S.d", {"seq": 1}), api("CONSUMER.RESET.T.c", {"seq": 1})]),
    Case("mixture: resets of other consumers", [
        step for config in (
            {"ack_policy": "none"}, {"ack_policy": "all"}, {"deliver_policy": "by_start_sequence", "opt_start_seq": 2}, {"deliver_policy": "new"},
            {"filter_subject": "s.b"}, {"deliver_policy": "by_start_time", "opt_start_time": "2020-01-01T00:00:00Z"},
            {"deliver_policy": "last"},
        ) for step in (
            *ONE, consumer(**config), Several(pull({"batch": 2, "no_wait": True}), 2), *(step for body in ("", {"seq": 1}, {"seq": 3}) for step in (
                api("CONSUMER.RESET.S.c", body), INFO, pull({"no_wait": True}),
            )), api("STREAM.DELETE.S"),
        )
    ]),
    Case("mixture: a reset of the last of each", [
        *ONE, consumer(deliver_policy="last_per_subject", filter_subject="s.*"), Several(pull({"batch": 2, "no_wait": True}), 2), api("CONSUMER.RESET.S.c"), INFO,
        *(pull({"no_wait": True}) for _ in range(3)), api("CONSUMER.RESET.S.c", {"seq": 1}), INFO,
    ]),
    Case("mixture: metadata", [
        create(metadata={"a": "1", "_nats.level": "9"}), update(metadata={"b": "2"}), update(), create(allow_msg_ttl=True, name="T", subjects=["t"]),
        consumer(metadata={"x": "y", "_nats.req.level": "9"}), consumer(metadata={"x": "z"}), consumer(), consumer(**PINNED), consumer(**PINNED, metadata={"_nats.server.version": "1"}),
        api("CONSUMER.LIST.S"), consumer(metadata={"a": "x" * 131072}), consumer(metadata={"a": "x" * 131069}), INFO,
    ]),
    Case("mixture: actions", [
        create(), *(consumer(beside={"action": action}, **config) for action, config in (
            ("update", {}), ("create", {}), ("create", {}), ("create", {"description": "x"}), ("update", {"description": "y"}), ("", {"description": "z"}),
            ("x", {}), (3, {}), ("update", {"ack_policy": "none"}), ("update", {"deliver_policy": "new"}), ("update", {"max_deliver": 5, "backoff": [SECOND]}),
            ("update", {"filter_subject": "s.a"}), ("update", {"replay_policy": "original"}), ("update", {"max_waiting": 5}), ("update", {"mem_storage": True}),
            ("update", {"num_replicas": 3}), ("update", {"inactive_threshold": SECOND * 60}), ("update", {"sample_freq": "50%"}), ("update", {"headers_only": True}),
        )), INFO,
    ]),
    Case("mixture: odd addresses", [
        create(), *(api(path, {"stream_name": "S", "config": {"name": "c", "durable_name": "c", "filter_subject": "s.a", "ack_policy": "explicit"}}) for path in (
            "CONSUMER.CREATE.S.c.s.a", "CONSUMER.CREATE.S.c.s.b", "CONSUMER.CREATE.S.d.s.a", "CONSUMER.CREATE.T.c.s.a", "CONSUMER.CREATE.S.c.s.>", "CONSUMER.DURABLE.CREATE.S.c",
            "CONSUMER.DURABLE.CREATE.S.d", "CONSUMER.DURABLE.CREATE.S", "CONSUMER.CREATE.S", "CONSUMER.CREATE", "CONSUMER.CREATE..c",
        )), api("CONSUMER.INFO.S"), api("CONSUMER.INFO.S.c.x"), api("STREAM.INFO"), api("STREAM.INFO.S.x"), api("CONSUMER.DELETE.S"), api("STREAM.MSG.GET"), api("FOO"), api(""),
        api("STREAM.NAMES.S"), api("CONSUMER.NAMES"), api("STREAM.TEMPLATE.NAMES"), api("STREAM.LEADER.STEPDOWN.S"), api("META.LEADER.STEPDOWN"), api("SERVER.REMOVE", {"peer": "x"}),
        api("ACCOUNT.PURGE.$G"), api("CONSUMER.LEADER.STEPDOWN.S.c"), api("STREAM.PEER.REMOVE.S", {"peer": "x"}),
    ]),
    Case("mixture: acknowledgements of other forms", [
        *ONE, consumer(), Several(pull({"batch": 3, "no_wait": True}), 3), request("$JS.ACK.S.c.1.1.1.1700000000000000000.2", "+ACK"), INFO,
        request("$JS.ACK._.x.S.c.1.2.2.1700000000000000000.1", "+ACK"), INFO, request("$JS.ACK._.x.S.c.1.3.3.1700000000000000000.1.token", "-NAK {\"delay\": 0}"), INFO,
        request("$JS.ACK.S.c.1.3.3.1700000000000000000.1", "-NAK {\"delay\": -5}"), INFO, request("$JS.ACK.S.c.9.3.3.1.0", "+ACK"), INFO,
        request("$JS.ACK.S.c.1.0.0.1.0", "+ACK"), INFO, request("$JS.ACK.S.d.1.1.1.1.0", "+ACK"),
        request("$JS.ACK.S.c.1.3.3.1.0", "+NXT 2"), request("$JS.ACK.S.c.1.3.3.1.0", "+NXT x"), request("$JS.ACK.S.c.1.3.3.1.0", "+TERM"), INFO,
    ]),
    Case("mixture: counters with direct get and a mirror", [
        create(allow_msg_counter=True, allow_direct=True), publish("s.a", "", Nats_Incr="5"), publish("s.b", "", Nats_Incr="7"), publish("s.a", "", Nats_Incr="-9"),
        api("DIRECT.GET.S.s.a"), api("DIRECT.GET.S", {"last_by_subj": "s.a"}), Several(api("DIRECT.GET.S", {"multi_last": ["s.*"]}), 3),
        copy("M", mirror={"name": "S"}), Sleep(1), api("STREAM.MSG.GET.M", {"seq": 3}), purge(filter="s.a"), publish("s.a", "", Nats_Incr="1"),
        api("STREAM.MSG.DELETE.S", {"seq": 2}), publish("s.b", "", Nats_Incr="1"),
    ]),
    Case("mixture: direct gets of records with headers", [
        create(allow_direct=True), publish("s.a", "1", A="b"), publish("s.a", "", A="c"), publish("s.b", ""), api("DIRECT.GET.S.s.a"), api("DIRECT.GET.S.s.b"),
        api("DIRECT.GET.S", {"seq": 1}), api("DIRECT.GET.S", {"seq": 1, "no_hdr": True}), Several(api("DIRECT.GET.S", {"seq": 1, "batch": 9, "no_hdr": True}), 4),
        Several(api("DIRECT.GET.S", {"seq": 2, "batch": 2, "max_bytes": 1}), 2), update(allow_direct=False), api("DIRECT.GET.S.s.a"), api("DIRECT.GET.NONE.s.a"),
    ]),
    Case("mixture: fast batches with limits and roll-ups", [
        create(allow_batched=True, max_msgs=2, discard="new"), Fast("s.a", "b.1.ok.1.0", 2), Fast("s.a", "b.1.ok.2.1", 2), Fast("s.a", "b.1.ok.3.1", 2), STATE,
        Fast("s.a", "b.1.ok.4.2"), STATE,
    ]),
    Case("mixture: pedantic consumers below nothing", [
        create(), *(consumer(beside={"pedantic": True}, **{name: -2} | kind) for name in (
            "max_deliver", "max_waiting", "ack_wait", "max_ack_pending", "max_batch", "max_expires", "max_bytes", "idle_heartbeat", "inactive_threshold",
            "priority_timeout", "rate_limit_bps", "opt_start_seq", "num_replicas",
        ) for kind in ({}, {"deliver_subject": "d.x"})), *(consumer(beside={"pedantic": True}, max_deliver=value) for value in (-1, 0)),
    ]),
    Case("mixture: levels within a batch", [
        create(allow_atomic=True), atomic("s.a", "a", 1, Nats_Required_Api_Level="99"), atomic("s.a", "a", 1), atomic("s.a", "a", 2, Nats_Required_Api_Level="99"),
        atomic("s.a", "a", 2, **END), atomic("s.a", "b", 1, Nats_Required_Api_Level="1"), atomic("s.a", "b", 2, Nats_Required_Api_Level="x"),
        atomic("s.a", "b", 3, **END), STATE,
    ]),
    Case("mixture: limits of consumers changed", [
        create(), consumer(), api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"name": "d", "max_ack_pending": 9, "ack_policy": "explicit"}}),
        update(consumer_limits={"max_ack_pending": 3}), update(consumer_limits={"max_ack_pending": 9}), update(consumer_limits={"max_ack_pending": 1000}),
        update(consumer_limits={"inactive_threshold": 3 * SECOND}), update(consumer_limits={"inactive_threshold": 5 * SECOND}), api("CONSUMER.INFO.S.d"), INFO,
    ]),
    Case("mixture: pedantic consumers", [
        create(), *(consumer(beside={"pedantic": True}, **config) for config in (
            {}, {"max_ack_pending": 5, "ack_policy": "none"}, {"ack_wait": -1}, {"max_deliver": 0}, {"backoff": [SECOND], "ack_wait": 2 * SECOND, "max_deliver": 3},
            {"max_waiting": 0}, {"inactive_threshold": -1}, {"filter_subjects": ["s.a"]}, {"foo": 1}, {"replay_policy": "original"},
        )),
    ]),
]

GONE = "2040-01-01T00:00:00Z"

CASES += [
    Case("mixture: sources that rename", [
        create("O"), publish("o.a", "1", A="b"), publish("o.b", "2"),
        copy(sources=[{"name": "O", "subject_transforms": [{"src": "o.a", "dest": "s.from.o"}]}], subjects=["s.own"]),
        Sleep(1.2), publish("s.own", "4"), STATE, api("STREAM.MSG.GET.S", {"last_by_subj": "s.from.o"}),
        api("STREAM.INFO.S", {"subjects_filter": ">"}), api("STREAM.PURGE.O"), publish("o.a", "5"), Sleep(0.7), STATE,
    ]),
    Case("mixture: a mirror with headers, lives and gaps", [
        create("O", allow_msg_ttl=True), publish("o.a", "1", A="b"), publish("o.a", "2", Nats_TTL="100s"), publish("o.b", "3", Nats_Msg_Id="m"), api("STREAM.MSG.DELETE.O", {"seq": 1}),
        copy("M", mirror={"name": "O"}), Sleep(1.2), api("STREAM.INFO.M", {"deleted_details": True}), api("STREAM.MSG.GET.M", {"seq": 2}), api("STREAM.MSG.GET.M", {"seq": 3}),
        api("STREAM.PURGE.M"), api("STREAM.MSG.DELETE.M", {"seq": 3}), publish("o.c", "4"), Sleep(0.7), api("STREAM.INFO.M"),
    ]),
    Case("mixture: duplicates on a full stream", [
        create(max_msgs=1, discard="new", duplicate_window=SECOND), publish("s.a", "1", Nats_Msg_Id="m"), publish("s.a", "1", Nats_Msg_Id="m"), publish("s.a", "2", Nats_Msg_Id="n"),
        api("STREAM.PURGE.S"), publish("s.a", "1", Nats_Msg_Id="m"), publish("s.a", "2", Nats_Msg_Id="n"), api("STREAM.PURGE.S"), Sleep(1.3), publish("s.a", "1", Nats_Msg_Id="n"), STATE,
    ]),
    Case("mixture: ages", [
        create(max_age=SECOND, duplicate_window=SECOND // 2), consumer(), publish("s.a", "1"), pull({"no_wait": True}), publish("s.b", "2"), Sleep(1.6), INFO, STATE,
        request("$JS.ACK.S.c.1.1.1.1.0", "+ACK"), INFO, publish("s.a", "3"), pull({"no_wait": True}), INFO,
    ]),
    Case("mixture: a stream that is sealed under a consumer", [
        *ONE, consumer(), pull({"no_wait": True}), update(sealed=True), request("$JS.ACK.S.c.1.1.1.1.2", "+ACK"), Several(pull({"batch": 5, "no_wait": True}), 3), INFO,
        consumer(description="x"), api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"name": "d"}}), api("CONSUMER.DELETE.S.c"), update(sealed=True, allow_direct=True),
    ]),
    Case("mixture: subjects that are taken away", [
        create(subjects=["s.>", "t.>"]), publish("s.a", "1"), publish("t.a", "2"), consumer(filter_subject="t.a"), update(), INFO, publish("t.a", "3"), pull({"no_wait": True}), STATE,
        create("T", subjects=["t.>"]), update(subjects=["s.>", "t.>"]), update(subjects=[]), update(subjects=["s.>", "s.a"]),
    ]),
    Case("mixture: interest that comes and goes", [
        create(retention="interest"), consumer(filter_subject="s.a"), publish("s.a", "1"), publish("s.b", "2"), STATE,
        api("CONSUMER.CREATE.S.d", {"stream_name": "S", "config": {"name": "d", "ack_policy": "explicit"}}), publish("s.b", "3"), STATE, consumer(filter_subject="s.b"), STATE,
        publish("s.a", "4"), STATE, pull({"no_wait": True}), api("CONSUMER.DELETE.S.d"), STATE, api("CONSUMER.DELETE.S.c"), STATE, publish("s.a", "5"), STATE,
    ]),
    Case("mixture: work that is given up", [
        create(retention="workqueue"), consumer(max_deliver=2, ack_wait=SECOND // 2), publish("s.a", "1"), publish("s.a", "2"), pull({"no_wait": True}), Sleep(0.8),
        pull({"no_wait": True}), request("$JS.ACK.S.c.2.1.2.1.0", "+TERM why"), STATE, Several(pull({"no_wait": True}), 1), INFO,
    ]),
    Case("mixture: work to the last", [
        create(retention="workqueue"), consumer(ack_policy="explicit", filter_subject="s.a"), publish("s.a", "1"), publish("s.b", "2"), publish("s.a", "3"),
        api("STREAM.MSG.DELETE.S", {"seq": 1}), pull({"no_wait": True}), api("STREAM.PURGE.S", {"filter": "s.b"}), STATE, INFO, update(max_msgs=1, retention="workqueue"), STATE,
    ]),
    Case("mixture: direct gets by time", [
        create(allow_direct=True), *THREE, *(Several(api("DIRECT.GET.S", body), count) for body, count in (
            ({"start_time": "2020-01-01T00:00:00Z", "next_by_subj": "s.b", "batch": 3}, 2), ({"start_time": GONE, "next_by_subj": "s.a", "batch": 3}, 1),
            ({"multi_last": ["s.a"], "up_to_seq": 2}, 2), ({"multi_last": ["s.a"], "up_to_seq": 1, "batch": 1}, 2), ({"multi_last": ["s.b", "s.a"], "up_to_time": GONE}, 3),
            ({"start_time": "2020-01-01T00:00:00+02:00", "batch": 1}, 2), ({"start_time": "yesterday", "batch": 1}, 1), ({"seq": 2, "next_by_subj": "s.a", "batch": 5}, 2),
        )),
    ]),
    Case("mixture: what a consumer is asked for by headers only", [
        *ONE, consumer(headers_only=True, deliver_subject="d.x"), Heard(3), INFO, consumer(headers_only=False, deliver_subject="d.x"), publish("s.a", "4"), Heard(1), INFO,
    ], ("d.x",)),
    Case("mixture: samples and terms", [
        *ONE, consumer(sample_freq="100%"), Several(pull({"batch": 2, "no_wait": True}), 2), request("$JS.ACK.S.c.1.1.1.1.0", "+ACK"), request("$JS.ACK.S.c.1.2.2.1.0", "+TERM a reason"), Heard(2),
    ], ("$JS.EVENT.METRIC.>", "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>")),
    Case("mixture: limits of streams changed under records", [
        create(), *TEN, update(max_msgs_per_subject=1), STATE, update(max_msgs=2), STATE, update(max_bytes=40), STATE, update(max_msg_size=1), publish("s.0", "12"), publish("s.0", "1"),
        update(max_age=SECOND), Sleep(1.5), STATE,
    ]),
    Case("mixture: a counter that is sourced under another subject", [
        create("O", allow_msg_counter=True), publish("o.a", "", Nats_Incr="3"),
        copy(sources=[{"name": "O", "subject_transforms": [{"src": "o.>", "dest": "s.>"}]}], allow_msg_counter=True, allow_direct=True), Sleep(1.3), publish("o.a", "", Nats_Incr="-10"), Sleep(0.7), api("STREAM.INFO.S"),
    ]),
]
