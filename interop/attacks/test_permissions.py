"""Clients with few rights that try to publish to, subscribe to, and read what they may not."""

import json

import pytest

from attacks.access_kit import Client, Target, asks, permissions, subject_of
from harness.cases import named
from harness.checks import check, equal, until
from harness.peer import Closed

JETSTREAM = 'jetstream { store_dir: "SERVER_DIR/js" }\n'


def users(**rights: str) -> str:
    """Returns users with the password `p`, and the user `root` without restrictions."""
    lines = ["{ user: root, password: p }"] + [f"{{ user: {name}, password: p, {text} }}" for name, text in rights.items()]
    return "authorization { users: [\n" + "\n".join(lines) + "\n] }\n"


# Name, permissions, subscription with its queue group, published subjects, and how often each may arrive.
LISTENING = [
    ("a subscription wider than what is allowed", {"subscribe": ["a.*"]}, ("a.>", ""), {"a.b": 1, "a.b.c": 0}),
    ("a queue's pattern beside a plain one", {"subscribe": ["foo.*", "foo.> q1"]}, ("foo.>", ""), {"foo.a": 1, "foo.a.b": 0}),
    ("another queue's pattern", {"subscribe": ["foo.* q1", "foo.> q2"]}, ("foo.>", "q1"), {"foo.a": 1, "foo.a.b": 0}),
    ("a plain pattern beside one for the queue", {"subscribe": ["foo.>", "foo.* q1"]}, ("foo.>", "q1"), {"foo.a": 1}),
    ("a wildcard over a denied subject", {"subscribe": (None, ["a.secret"])}, ("a.*", ""), {"a.open": 1, "a.secret": 0}),
    ("a full wildcard over a denied wildcard", {"subscribe": (None, ["a.*.secret"])}, (">", ""), {"a.open": 1, "a.x.secret": 0}),
    ("a queue over a denied subject", {"subscribe": (None, ["a.secret"])}, ("a.*", "q"), {"a.open": 1, "a.secret": 0}),
    ("a queue over what only plain subscriptions are denied", {"subscribe": (None, ["> q*"])}, ("a.*", "q"), {"a.open": 1}),
    ("a wildcard that crosses a denied wildcard", {"subscribe": (None, ["*.secret.>"])}, ("a.*.x", ""), {"a.b.x": 1, "a.secret.x": 0}),
]


@pytest.mark.client
@pytest.mark.parametrize("rights, subscription, published", named(LISTENING))
def test_hears_more_by(rights: dict, subscription: tuple[str, str], published: dict[str, int]):
    with Target(users(eve=permissions(**rights))) as target:
        with target.client("eve", "p") as eve, target.client("root", "p") as root:
            eve.sub(subscription[0], 1, subscription[1])
            eve.barrier()
            for subject in published:
                root.pub(subject)
            root.barrier()
            found = [subject_of(message) for message in eve.barrier()]
            forbidden = [subject for subject in found if not published.get(subject)]
            equal(forbidden, [], "what came and is not allowed")


# Name, publish permissions, bytes that publish to a denied subject, and the subjects to watch.
SPEAKING = [
    ("a wildcard as a subject", ["a.b"], b"PUB a.* 1\r\nx\r\nPUB > 1\r\nx\r\n", [">"]),
    ("tabs for spaces", ["a"], b"PUB\tb\t1\r\nx\r\n", ["b"]),
    ("headers", ["a"], b"HPUB b 12 13\r\nNATS/1.0\r\n\r\nx\r\n", ["b"]),
    ("a run of messages after an allowed one", ["a"], b"PUB a 1\r\nx\r\nPUB b 1\r\nx\r\nPUB a 1\r\nx\r\nPUB b 1\r\nx\r\n", ["b"]),
    ("a subject that begins like an allowed one", ["a.b"], b"PUB a.bc 1\r\nx\r\nPUB a.b.c 1\r\nx\r\nPUB a 1\r\nx\r\n", ["a", "a.bc", "a.b.c"]),
    ("an empty token", ["a.*"], b"PUB a..b 1\r\nx\r\nPUB .a.b 1\r\nx\r\n", ["a.>", ">"]),
    ("a denied subject below an allowed wildcard", (["a.>"], ["a.x"]), b"PUB a.x 1\r\nx\r\n", ["a.x"]),
    ("an answer to what it was not asked", (["a"], None), b"PUB _INBOX.x 1\r\nx\r\n", ["_INBOX.x"]),
    ("a subject in other case", ["a"], b"PUB A 1\r\nx\r\n", ["A"]),
    ("a trace to a subject", ["a"], b"HPUB a 32 33\r\nNATS/1.0\r\nNats-Trace-Dest: b\r\n\r\nx\r\n", ["b"]),
    ("a trace alone", ["a"], b"HPUB a 55 56\r\nNATS/1.0\r\nNats-Trace-Dest: b\r\nNats-Trace-Only: true\r\n\r\nx\r\n", ["b"]),
]


@pytest.mark.client
@pytest.mark.parametrize("rights, data, subjects", named(SPEAKING))
def test_publishes_by(rights, data: bytes, subjects: list[str]):
    with Target(users(eve=permissions(publish=rights))) as target:
        with target.client("root", "p") as root, target.client("eve", "p") as eve:
            for sid, subject in enumerate(subjects):
                root.sub(subject, sid)
            root.barrier()
            eve.send(data)
            eve.barrier()
            found = [subject_of(message) for message in root.barrier()]
            equal([subject for subject in found if subject != "a"], [], "what was published")
            check(eve.errors, "nothing was refused")


@pytest.mark.client
def test_answers_twice_where_one_answer_is_allowed():
    config = users(eve=permissions(["none"], ["svc"], "allow_responses: { max: 1, expires: \"1m\" }"))
    with Target(config) as target, target.client("eve", "p") as eve, target.client("root", "p") as root:
        reply = asks(root, eve, "inbox.1")
        for _ in range(3):
            eve.pub(reply, b"answer")
        eve.barrier()
        equal(len(root.barrier()), 1, "answers")
        equal(len(eve.errors), 2, "refusals")


@pytest.mark.client
def test_answers_where_another_client_was_asked():
    config = users(eve=permissions(["none"], ["svc"], "allow_responses: true"))
    with Target(config) as target, target.client("eve", "p") as asked, target.client("eve", "p") as eve, target.client("root", "p") as root:
        asked.sub("svc", 1, "q")
        asked.barrier()
        root.sub("inbox.1")
        root.pub("svc", b"?", "inbox.1")
        root.barrier()
        eve.pub("inbox.1", b"forged")
        eve.barrier()
        equal(root.barrier(), [], "what came")


@pytest.mark.client
def test_a_reserved_reply_subject_in_a_request():
    config = users(eve=permissions(["a"], ["_INBOX.>"]))
    with Target(config) as target, target.client("root", "p") as root, target.client("eve", "p") as eve:
        root.sub("a")
        root.barrier()
        for reply in ("_R_.0.1", "$JS.ACK.S.C.1.1.1.1.1", "_GR_.x.y", "$GR.x"):
            eve.pub("a", b"x", reply)
        eve.barrier()
        equal(root.barrier(), [], "what came")
        equal(len(eve.errors), 4, "refusals")


@pytest.mark.client
@pytest.mark.parametrize("line, is_closed", [
    pytest.param(b'CONNECT {"verbose":false,"user":"eve","pass":"p"}\r\n', False, id="as a user with fewer rights"),
    pytest.param(b'CONNECT {"verbose":false,"user":"eve","pass":"wrong"}\r\n', True, id="with a wrong password"),
])
def test_subscriptions_over_a_second_connect(line: bytes, is_closed: bool):
    """A client that sends CONNECT again must neither keep subscriptions of the first user nor combine the rights
    of both."""
    config = users(eve=permissions(["a"], ["a"]))
    with Target(config) as target, target.client("root", "p") as root, target.client("root", "p") as eve:
        eve.sub("secret")
        eve.barrier()
        eve.send(line)
        try:
            eve.barrier()
        except Closed:
            check(is_closed, "closed")
            return
        check(not is_closed, "it stays")
        root.sub("b")
        root.barrier()
        root.pub("secret")
        root.barrier()
        eve.pub("b")
        equal(eve.barrier(), [], "what the second user hears")
        equal(root.barrier(), [], "what the second user says")


@pytest.mark.client
def test_gets_rights_by_a_second_connect_without_credentials():
    config = users(eve=permissions(["a"], ["a"]), guest=permissions(["g"], ["g"])).replace(
        "authorization {", "no_auth_user: guest\nauthorization {"
    )
    with Target(config) as target, target.client("root", "p") as root, target.client("eve", "p") as eve:
        root.sub("b")
        root.barrier()
        eve.send(b'CONNECT {"verbose":false,"user":"","pass":""}\r\n')
        eve.pub("b")
        eve.barrier()
        equal(root.barrier(), [], "what came")


# Payloads that name another record or stream than the request's subject, which is the only allowed one.
READING = [
    ("seq", {"seq": 1}),
    ("last_by_subj", {"last_by_subj": "secret.a"}),
    ("next_by_subj", {"seq": 1, "next_by_subj": "secret.a"}),
    ("multi_last", {"multi_last": ["secret.a"]}),
    ("a batch", {"seq": 1, "next_by_subj": ">", "batch": 9}),
    ("a time", {"start_time": "2000-01-01T00:00:00Z", "batch": 9}),
]
FILTERS = [
    {"filter_subject": "secret.a"},
    {"filter_subjects": ["secret.a"]},
    {"filter_subject": "open.a", "filter_subjects": ["secret.a"]},
    {"filter_subject": ">"},
    {"filter_subject": ""},
    {"filter_subjects": []},
    {"filter_subject": "open.a", "FILTER_SUBJECT": "secret.a"},
    {"filter_subject": "open.a", "FILTER_SUBJECTS": ["secret.a"]},
]
ONLY = [
    "$JS.API.DIRECT.GET.S.open.a",
    "$JS.API.CONSUMER.CREATE.S.*.open.a",
    "$JS.API.CONSUMER.MSG.NEXT.S.*",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.UPDATE.MINE",
    "$JS.API.STREAM.RESTORE.MINE",
    "$JS.API.CONSUMER.CREATE.MINE",
    "$JS.API.CONSUMER.DURABLE.CREATE.MINE.d",
]


class Store:
    """A stream with an open and a secret record, and a user `eve` that may publish to the subjects of `ONLY`."""

    def __enter__(self) -> "Store":
        self.target = Target(JETSTREAM + users(eve=permissions(ONLY, ["_INBOX.>"]))).__enter__()
        self.root = self.target.client("root", "p")
        stream = {"name": "S", "subjects": ["open.>", "secret.>"], "allow_direct": True}
        self.root.made("$JS.API.STREAM.CREATE.S", stream)
        for subject in ("secret.a", "open.a"):
            check(b"seq" in self.root.request(subject, b"SECRET" if subject == "secret.a" else b"open")[1], "not stored")
        self.eve = self.target.client("eve", "p")
        return self

    def __exit__(self, *_):
        self.eve.close()
        self.root.close()
        self.target.__exit__()

    def names(self) -> list[str]:
        return self.root.asked("$JS.API.STREAM.NAMES")["streams"] or []


@pytest.mark.client
@pytest.mark.parametrize("payload", named(READING))
def test_direct_get_of_a_denied_subject(payload: dict):
    with Store() as store:
        _, found = store.eve.request(ONLY[0], payload)
        # Further responses would arrive before the response to the next request.
        _, next_ = store.eve.request(ONLY[0])
        check(b"SECRET" not in found + next_, f"found {found!r}")


@pytest.mark.client
@pytest.mark.parametrize("config", FILTERS, ids=json.dumps)
def test_consumer_with_a_denied_filter(config: dict):
    with Store() as store:
        config = {"name": "c", "ack_policy": "none", "deliver_policy": "all", **config}
        found = store.eve.asked("$JS.API.CONSUMER.CREATE.S.c.open.a", {"stream_name": "S", "config": config})
        check("error" in found, f"it was made: {found}")
        _, content = store.eve.request("$JS.API.CONSUMER.MSG.NEXT.S.c", {"batch": 1, "no_wait": True})
        check(b"SECRET" not in content, "read")

RENAMED = [
    (ONLY[3], {"name": "OTHER", "subjects": ["o.x"]}),
    (ONLY[4], {"name": "S", "subjects": ["open.>"], "allow_direct": True}),
    (ONLY[5], {"config": {"name": "OTHER", "subjects": ["o"], "storage": "file"}, "state": {"messages": 0}}),
    (ONLY[6], {"stream_name": "S", "config": {"ack_policy": "none"}}),
    (ONLY[7], {"stream_name": "S", "config": {"durable_name": "d", "ack_policy": "explicit"}}),
]


@pytest.mark.client
@pytest.mark.parametrize("subject, payload", RENAMED)
def test_another_name_in_the_payload(subject: str, payload: dict):
    with Store() as store:
        check("error" in store.eve.asked(subject, payload), "it was done")
        equal(store.names(), ["S"], "streams")
        equal(store.root.asked("$JS.API.CONSUMER.NAMES.S").get("consumers") or [], [], "consumers")


# JetStream publishes with its own rights. A client must not make it publish JetStream requests.


@pytest.mark.client
def test_a_consumer_that_delivers_to_jetstreams_api():
    rights = permissions(["in.>", "$JS.API.CONSUMER.CREATE.S.>"], ["_INBOX.>"])
    with Target(JETSTREAM + users(eve=rights)) as target, target.client("root", "p") as root, target.client("eve", "p") as eve:
        root.made("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["in.>"]})
        root.made("$JS.API.STREAM.CREATE.V", {"name": "V", "subjects": ["v"]})
        config = {"name": "c", "deliver_subject": "$JS.API.STREAM.DELETE.V", "ack_policy": "none"}
        eve.asked("$JS.API.CONSUMER.CREATE.S.c", {"stream_name": "S", "config": config})
        eve.pub("in.x", b"")
        eve.barrier()
        # A second consumer receives the record after the first one. When it has, the first delivery was made.
        root.made("$JS.API.CONSUMER.CREATE.S.w", {"stream_name": "S", "config": {"name": "w", "deliver_subject": "w", "ack_policy": "none"}})
        root.sub("w")
        until(root.barrier, "nothing comes")
        equal(sorted(root.asked("$JS.API.STREAM.NAMES")["streams"]), ["S", "V"], "streams")


REPUBLISHED = ["$JS.API.STREAM.DELETE.V", "$JS.API.>", "$SYS.REQ.SERVER.PING"]


@pytest.mark.client
@pytest.mark.parametrize("dest", REPUBLISHED)
def test_stream_that_republishes_to(dest: str):
    rights = permissions(["in.>", "$JS.API.STREAM.*.S"], ["_INBOX.>"])
    with Target(JETSTREAM + users(eve=rights)) as target, target.client("root", "p") as root, target.client("eve", "p") as eve:
        root.made("$JS.API.STREAM.CREATE.V", {"name": "V", "subjects": ["v"]})
        eve.asked("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["in.>"], "republish": {"src": "in.*.>", "dest": dest}})
        eve.asked("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["in.>"], "republish": {"src": ">", "dest": dest}})
        eve.pub("in.STREAM.DELETE.V", b"", "_INBOX.r")
        eve.barrier()
        root.request("in.z")
        check("V" in root.asked("$JS.API.STREAM.NAMES")["streams"], "the stream is gone")


@pytest.mark.client
def test_a_stream_that_takes_the_subjects_of_jetstreams_api_acknowledgements_or_inboxes():
    with Target(JETSTREAM) as target, Client(target.port) as eve:
        for number, subject in enumerate(["$JS.API.>", "$JS.>", ">", "$SYS.>", "$JS.ACK.>", "*.API.>"]):
            found = eve.asked(f"$JS.API.STREAM.CREATE.E{number}", {"name": f"E{number}", "subjects": [subject]})
            taken = subject in ("$JS.ACK.>",)
            check("error" in found or taken, f"{subject}: {found}")


@pytest.mark.client
def test_an_imported_streams_mapping_that_leads_to_a_subject_that_is_denied():
    config = 'mappings { "open.>": "secret.>", "secret.in": "open.out" }\n' + users(eve=permissions((None, ["secret.>"]), ["none"]))
    with Target(config) as target, target.client("root", "p") as root, target.client("eve", "p") as eve:
        root.sub("secret.>")
        root.sub("open.>", 2)
        root.barrier()
        eve.pub("secret.in")
        eve.pub("secret.x")
        eve.pub("open.x")
        eve.barrier()
        found = [subject_of(message) for message in root.barrier()]
        check(len(eve.errors) >= 1 and "secret.x" not in found[:-1], f"came: {found}, refused: {eve.errors}")
