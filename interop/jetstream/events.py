"""Messages that are published without a request: events of streams and consumers, metrics, copies of records, and
the audit."""

from jetstream.cases import SECOND, consumer, copy, create, update
from jetstream.publishes import ONE, atomic, pull
from jetstream.session import Case, Heard, Several, Sleep, api, publish, request

EVENTS = ("$JS.EVENT.ADVISORY.STREAM.>", "$JS.EVENT.ADVISORY.CONSUMER.>", "$JS.EVENT.METRIC.>")
FIRST, SECOND_ONE = "$JS.ACK.S.c.1.1.1.1.2", "$JS.ACK.S.c.1.2.2.1.1"


def source(name, **config):
    """Returns a case with a stream that copies from another one, and its content."""
    origin = create("O", subjects=["o.>"])
    records = [publish("o.a", "1"), publish("o.b", "2", A="b", Nats_Msg_Id="m"), publish("o.c.d", "3")]
    return Case(f"copies: {name}", [
        origin, copy("C", **config), *records, Sleep(1.5),
        *(api("STREAM.MSG.GET.C", {"seq": sequence}) for sequence in (1, 2, 3)), api("STREAM.INFO.C"),
    ])


CASES = [
    Case("events: a stream", [
        create(), Heard(1), update(description="x"), Heard(1), update(description="x"), create(description="x"), api("STREAM.PURGE.S"),
        api("STREAM.DELETE.S"), Heard(2),
    ], EVENTS),
    Case("events: a consumer", [
        create(), Heard(1), consumer(), Heard(1), consumer(description="x"), Heard(1), consumer(description="x"),
        api("CONSUMER.PAUSE.S.c", {"pause_until": "2040-01-01T00:00:00Z"}), Heard(1), api("CONSUMER.PAUSE.S.c"), Heard(1),
        api("CONSUMER.DELETE.S.c"), Heard(1), api("CONSUMER.CREATE.S", {"stream_name": "S", "config": {"name": "e"}}), Heard(1),
        api("STREAM.DELETE.S"), Heard(2),
    ], EVENTS),
    Case("events: acknowledgements", [
        *ONE, consumer(sample_freq="100%"), Heard(2), Several(pull({"batch": 3, "no_wait": True}), 3), request(FIRST, "+ACK"), Heard(1),
        request(SECOND_ONE, "-NAK"), Heard(1), request("$JS.ACK.S.c.1.3.3.1.0", "+TERM enough of it"), Heard(1),
        pull({"no_wait": True}), request("$JS.ACK.S.c.2.2.4.1.0", "+TERM"), Heard(1),
    ], EVENTS),
    Case("events: delivered too often", [
        *ONE, consumer(max_deliver=1, ack_wait=SECOND // 5), Heard(2), pull({"no_wait": True}), Heard(1), api("CONSUMER.INFO.S.c"),
    ], EVENTS),
    Case("events: refused too often", [
        *ONE, consumer(max_deliver=1), Heard(2), pull({"no_wait": True}), request(FIRST, "-NAK"), Heard(2), api("CONSUMER.INFO.S.c"),
    ], EVENTS),
    Case("events: pinned", [
        *ONE, consumer(priority_policy="pinned_client", priority_groups=["g"]), Heard(2), pull({"no_wait": True, "group": "g"}), Heard(1),
        api("CONSUMER.UNPIN.S.c", {"group": "g"}), Heard(1),
    ], EVENTS),
    Case("events: a batch given up", [
        create(allow_atomic=True), Heard(1), atomic("s.a", "b", 1), atomic("s.a", "b", 3), Heard(1),
    ], EVENTS),
    Case("events: a backup", [
        *ONE, Heard(1), api("STREAM.SNAPSHOT.S", {"deliver_subject": "backup.x"}), Heard(1),
    ], EVENTS),
    Case("events: the audit", [create(), Heard(1), api("STREAM.INFO.NONE", {}), Heard(1), api("STREAM.NAMES"), Heard(1)], ("$JS.EVENT.ADVISORY.API",)),
    Case("events: a domain of nobody", [create(), consumer(on="NONE")], EVENTS),
    Case("republished", [
        create(republish={"src": "s.>", "dest": "r.>"}), publish("s.a", "1"), Heard(1), publish("s.a", "2", A="b", Nats_Msg_Id="x"), Heard(1),
        publish("s.b", ""), Heard(1),
    ], ("r.>",)),
    Case("republished: headers only", [
        create(republish={"src": "s.*", "dest": "r.$1", "headers_only": True}), publish("s.a", "12345"), Heard(1), publish("s.a", "2", A="b"), Heard(1),
    ], ("r.>",)),
    source("a mirror", mirror={"name": "O"}),
    source("a mirror of a part", mirror={"name": "O", "filter_subject": "o.b"}),
    source("a mirror with another name", mirror={"name": "O", "subject_transforms": [{"src": "o.*", "dest": "x.$1"}]}),
    source("all", sources=[{"name": "O"}]),
    source("a part", sources=[{"name": "O", "filter_subject": "o.*"}]),
    source("another name", sources=[{"name": "O", "subject_transforms": [{"src": "o.*", "dest": "x.$1"}]}]),
    source("two other names", sources=[{"name": "O", "subject_transforms": [{"src": "o.a", "dest": "x.a"}, {"src": "o.b", "dest": ""}]}]),
    source("from a sequence", sources=[{"name": "O", "opt_start_seq": 2}]),
]
