"""Account owners that try to read from another account, or to act in it."""

import json

import pytest

from attacks.access_kit import Target, asks, permissions, reply_of
from harness.checks import check, equal

TWO = """
server_name: here
jetstream { store_dir: "SERVER_DIR/js" }
http: 127.0.0.1:HTTP_PORT
accounts {
  A { jetstream: enabled, users: [ { user: a, password: p } ],
      imports: [ { service: { account: B, subject: svc } }, { stream: { account: B, subject: "open.>" } } ] }
  B { jetstream: enabled, users: [ { user: b, password: p }, { user: low, password: p, LOW } ],
      exports: [ { service: svc }, { stream: "open.>" } ] }
  SYS { users: [ { user: s, password: p } ] }
}
system_account: SYS
""".replace("LOW", permissions(["x"], [">"]))

# Requests to the system account that an account may send about itself. The attacks ask about another account.
SUBJECTS = ["$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.ACCOUNT.PING.STATZ", "$SYS.REQ.USER.INFO"]
FOREIGN = ["$SYS.REQ.ACCOUNT.B.CONNZ", "$SYS.REQ.ACCOUNT.B.INFO", "$SYS.REQ.USER.B.INFO", "$SYS.REQ.ACCOUNT.B.SUBSZ", "$SYS.REQ.SERVER.PING.JSZ"]
PAYLOADS = [{"acc": "B"}, {"accounts": ["B"]}, {"user": "b", "auth": True}, {"filter_subject": ">"}, {"state": 2}, {"acc": "B", "acc ": "A"}]


@pytest.mark.owner
@pytest.mark.parametrize("subject", SUBJECTS + FOREIGN)
def test_request_about_another_account(subject: str):
    with Target(TWO) as target, target.client("b", "p", name="bobs-name") as b, target.client("a", "p") as a:
        b.sub("bobs.secret")
        b.barrier()
        cid = {"cid": b.info["client_id"], "auth": True, "subscriptions_detail": True}
        for payload in [*PAYLOADS, cid]:
            for headers in ("", 'Nats-Request-Info: {"acc":"B","user":"b"}'):
                _, found = a.request(subject, payload, headers, seconds=0.3)
                text = found.rpartition(b"\r\n\r\n")[2]
                for secret in (b"bobs-name", b"bobs.secret", b'"B"'):
                    check(secret not in text, f"{payload} {headers}: {text!r}")


@pytest.mark.owner
def test_an_asker_that_says_it_is_another_account():
    with Target(TWO) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        b.sub("svc")
        b.barrier()
        for name in ("Nats-Request-Info", "nats-request-info", "NATS-REQUEST-INFO"):
            a.pub("svc", b"x", "r", f'{name}: {{"acc":"B","user":"root"}}')
            a.pub("svc", b"x", "", f'{name}: {{"acc":"B","user":"root"}}')
        a.barrier()
        found = b.barrier()
        check(found, "nothing came")
        for _, content in found:
            check(b'"root"' not in content, f"{content!r}")


@pytest.mark.client
@pytest.mark.parametrize("who", [
    pytest.param("low", id="a client of the responder's account that may not publish there"),
    pytest.param("a", id="a client of the asker's own account"),
    pytest.param("s", id="a client of the system account"),
])
def test_service_request_answered_by(who: str):
    """Sends a response to A's request from a client that did not receive the request, but knows or guesses the
    reply subject."""
    with Target(TWO) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        with target.client("low", "p") as low, target.client("s", "p") as system:
            reply = asks(a, b, "mine")
            forger = {"low": low, "a": a, "s": system}[who]
            for subject in (reply, reply[:-1] + ("0" if reply[-1] != "0" else "1"), reply.upper(), reply + ".x"):
                forger.pub(subject, b"forged")
            forger.barrier()
            equal(a.barrier(), [], "what came")


@pytest.mark.owner
def test_a_second_answer_after_the_only_one():
    with Target(TWO) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        reply = asks(a, b, "mine")
        for text in (b"one", b"two"):
            b.pub(reply, text)
        b.barrier()
        equal([content for _, content in a.barrier()], [b"one"], "answers")


@pytest.mark.owner
def test_an_answer_that_leads_to_a_subject_that_the_asker_may_not_publish_to():
    # The response goes to the requester's account only, whatever the reply subject is there.
    with Target(TWO) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        b.sub("svc")
        b.sub("victim")
        b.barrier()
        a.pub("svc", b"?", "victim")
        a.barrier()
        request = b.barrier()[0]
        b.pub(reply_of(request), b"answer")
        b.barrier()
        equal(b.barrier(), [], "what came in the other account")


@pytest.mark.owner
def test_a_message_published_to_the_subject_of_an_imported_stream_reaches_its_exporter():
    with Target(TWO) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        b.sub(">")
        b.barrier()
        for subject in ("open.x", "other", "_R_.0.1", "$JS.API.INFO"):
            a.pub(subject, b"forged")
        a.barrier()
        found = [line for line, content in b.barrier() if b"forged" in content]
        equal(found, [], "what came")


@pytest.mark.owner
def test_hears_another_account_by_every_wildcard():
    with Target(TWO) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        for sid, subject in enumerate([">", "*", "*.*", "*.>", "$SYS.>", "$JS.>", "_R_.>", "_INBOX.>", "B.>", "$MQTT.>"]):
            a.sub(subject, sid)
        a.barrier()
        for subject in ("secret", "secret.x", "_INBOX.x", "$JS.EVENT.x", "$MQTT.x", "svc"):
            b.pub(subject, b"SECRET")
        b.barrier()
        equal(a.barrier(), [], "what came")


@pytest.mark.owner
def test_a_trace_that_shows_what_becomes_of_a_message_in_another_account():
    with Target(TWO) as target, target.client("b", "p", name="bobs-name") as b, target.client("a", "p") as a:
        b.sub("svc")
        b.barrier()
        a.sub("trace")
        a.pub("svc", b"?", "mine", "Nats-Trace-Dest: trace")
        a.barrier()
        text = b"".join(content for _, content in a.barrier())
        check(b"bobs-name" not in text, f"{text!r}")


@pytest.mark.owner
def test_a_stream_that_copies_another_accounts_by_a_name_of_its_api():
    with Target(TWO) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        b.made("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s"]})
        check(b"seq" in b.request("s", b"SECRET")[1], "not stored")
        for number, external in enumerate([None, {"api": "$JS.API"}, {"api": "$JS.B.API"}, {"api": "$JS.here.API", "deliver": "s"}]):
            source = {"name": "S"} | ({"external": external} if external else {})
            a.asked(f"$JS.API.STREAM.CREATE.M{number}", {"name": f"M{number}", "mirror": source})
            found = a.asked(f"$JS.API.STREAM.INFO.M{number}")
            equal(found.get("state", {}).get("messages", 0), 0, f"records by {external}")
            check("S" not in (a.asked("$JS.API.STREAM.NAMES")["streams"] or []), "the stream is known")


ADMIN = ["$JS.API.ACCOUNT.PURGE.B", "$JS.API.SERVER.REMOVE", "$JS.API.META.LEADER.STEPDOWN", "$JS.API.ACCOUNT.STREAM.MOVE.B.S"]


@pytest.mark.owner
@pytest.mark.parametrize("subject", ADMIN)
def test_administration_by_an_account(subject: str):
    with Target(TWO) as target, target.client("b", "p") as b, target.client("a", "p") as a:
        b.made("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s"]})
        _, found = a.request(subject, {}, seconds=0.3)
        check(not found or b"error" in found or b" 503" in found, f"{found!r}")
        equal(b.asked("$JS.API.STREAM.NAMES")["streams"], ["S"], "streams")


# The dashboard shows users their own account. These requests name another account.
PAGES = [
    "connz?acc=B&auth=1&subs=detail", "connz?acc=A&acc=B&auth=1", "connz?cid=CID&auth=1&subs=detail", "connz?user=b&auth=1",
    "connz?state=any&acc=B", "subsz?acc=B&subs=1", "subsz?subs=1&test=bobs.secret", "accountz?acc=B", "accountz", "accstatz",
    "jsz?acc=B&streams=1", "overview", "connz?Acc=B&auth=1", "connz?%61cc=B&auth=1",
]


class Page:
    """A client that is signed in to the dashboard."""

    def __init__(self, target: Target, user: str, password: str = "p"):
        self.target = target
        self.headers = {"fanline-dashboard": "1"}
        body = json.dumps({"user": user, "password": password}).encode()
        self.status, found = target.http("POST /dashboard/api/session", self.headers, body)
        if self.status == 200:
            self.session = json.loads(found)["session"]
            self.headers["Authorization"] = f"Bearer {self.session}"

    def get(self, name: str) -> tuple[int, str]:
        return self.target.http(f"GET /dashboard/api/{name}", self.headers)


@pytest.mark.client
@pytest.mark.parametrize("name", PAGES)
def test_dashboard_page_of_another_account(name: str):
    with Target(TWO) as target, target.client("b", "p", name="bobs-name") as b:
        b.sub("bobs.secret")
        b.barrier()
        page = Page(target, "a")
        equal(page.status, 200, "the sign-in")
        _, found = page.get(name.replace("CID", str(b.info["client_id"])))
        for secret in ("bobs-name", "bobs.secret", '"account_name": "B"'):
            check(secret not in found, found)


@pytest.mark.client
def test_a_kick_of_another_accounts_connection_from_the_dashboard():
    with Target(TWO) as target, target.client("b", "p") as b:
        page = Page(target, "a")
        status, _ = target.http(f"POST /dashboard/api/kick?cid={b.info['client_id']}", page.headers)
        equal(status, 403, "the status")
        b.barrier()


@pytest.mark.client
def test_ticket_of_another():
    with Target(TWO) as target:
        page = Page(target, "low")
        first, second = (target.http("POST /dashboard/api/ticket", page.headers)[1] for _ in range(2))
        check(first != second, "tickets repeat")
        check(page.session not in first + second, "a ticket shows the session")
