"""Auth callout: forged, replayed, and misdirected responses, and requests by clients."""

import contextlib
import json
import os
import threading
import time

import pytest

from attacks.access_kit import Client, Target, jwt, reply_of, unb64
from harness.cases import named
from harness.checks import check, equal, until
from harness.nkeys import Key
from harness.peer import Closed

ISSUER, STRANGER = Key("A"), Key("A")
CONFIG = f"""
accounts {{
  AUTH {{ users: [ {{ user: service, password: p }}, {{ user: spy, password: p }} ] }}
  ROOT {{ users: [ {{ user: root, password: p }} ] }}
  BIRDS {{}}
  OTHER {{}}
}}
authorization {{
  timeout: 2
  auth_callout {{ issuer: {ISSUER.public}, account: AUTH, auth_users: [ service, spy ], allowed_accounts: [ BIRDS ] }}
}}
"""


def user(asked: dict, issuer: Key = ISSUER, nats: dict | None = None, **more) -> str:
    body = {"type": "user", "subs": -1, "data": -1, "payload": -1, **(nats or {})}
    return jwt(issuer, more.pop("subject", asked["nats"]["user_nkey"]), body, **({"aud": "BIRDS"} | more))


def answer(asked: dict, token: str = "", issuer: Key = ISSUER, error: str = "", **more) -> str:
    body = {"type": "authorization_response"} | ({"jwt": token} if token else {}) | ({"error": error} if error else {})
    subject = more.pop("subject", asked["nats"]["user_nkey"])
    return jwt(issuer, subject, body, **({"aud": asked["nats"]["server_id"]["id"]} | more))


class Service:
    """Responds to each request with the result of `make`, in the background."""

    def __init__(self, target: Target, make):
        self.client = Client(target.port, user="service", **{"pass": "p"})
        self.client.sub("$SYS.REQ.USER.AUTH")
        self.client.barrier()
        self.make, self.seen, self.ends = make, [], False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(Closed, OSError):
            while not self.ends:
                for message in self.client.barrier():
                    text = message[1].rpartition(b"\r\n\r\n")[2].decode()
                    asked = json.loads(unb64(text.split(".")[1]))
                    self.seen.append(asked)
                    if made := self.make(asked):
                        self.client.pub(reply_of(message), made.encode())
                time.sleep(0.005)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join(10)
        self.client.close()


FIRST: dict = {}


def replayed(asked: dict) -> str:
    """Returns the response to the first request, also for later requests."""
    FIRST.setdefault("answer", answer(asked, user(asked)))
    return FIRST["answer"]


ANSWERS = {
    "signed by a stranger": lambda a: answer(a, user(a), STRANGER),
    "with a user whom a stranger has signed": lambda a: answer(a, user(a, STRANGER)),
    "signed by a stranger in the issuer's name": lambda a: jwt(
        ISSUER, a["nats"]["user_nkey"], {"type": "authorization_response", "jwt": user(a)}, signer=STRANGER, aud=a["nats"]["server_id"]["id"]
    ),
    "for another server": lambda a: answer(a, user(a), aud=Key("N").public),
    "for no server": lambda a: answer(a, user(a), aud=""),
    "for another client": lambda a: answer(a, user(a), subject=Key("U").public),
    "with the user of another client": lambda a: answer(a, user(a, subject=Key("U").public)),
    "that has expired": lambda a: answer(a, user(a), exp=1_500_000_000),
    "that is not valid yet": lambda a: answer(a, user(a), nbf=4_000_000_000),
    "with a user that has expired": lambda a: answer(a, user(a, exp=1_500_000_000)),
    "with an error and a user": lambda a: answer(a, user(a), error="no"),
    "with neither a user nor an error": lambda a: answer(a),
    "that puts the user in another account": lambda a: answer(a, user(a, aud="OTHER")),
    "that puts the user in the service's account": lambda a: answer(a, user(a, aud="AUTH")),
    "that puts the user in the system account": lambda a: answer(a, user(a, aud="$SYS")),
    "that puts the user in no account": lambda a: answer(a, user(a, aud="")),
    "that puts the user in an unknown account": lambda a: answer(a, user(a, aud="NONE")),
    "that is the user's token itself": lambda a: user(a),
    "that is the request": lambda a: "x",
    "for WebSocket only": lambda a: answer(a, user(a, nats={"allowed_connection_types": ["WEBSOCKET"]})),
    "for another network": lambda a: answer(a, user(a, nats={"src": ["10.0.0.0/8"]})),
    "for proxies": lambda a: answer(a, user(a, nats={"proxy_required": True})),
    "without a signature": lambda a: answer(a, user(a)).rpartition(".")[0] + ".",
}


@pytest.mark.anonymous
@pytest.mark.parametrize("make", named(ANSWERS))
def test_forged_answer(make):
    with Target(CONFIG) as target, Service(target, make) as service:
        check(target.refuses(user="eve", **{"pass": "eve"}), "it was let in")
        check(service.seen, "the service was not asked")


SEALED = CONFIG.replace("allowed_accounts", f"xkey: {Key('X').public}, allowed_accounts")
UNSEALED = {
    "in clear": lambda: answer(FORGED, user(FORGED)).encode(),
    "that is empty": lambda: b"",
    "that is only the mark of a sealed one": lambda: b"xkv1",
    "that is sealed with nothing": lambda: b"xkv1" + bytes(24),
    "that is sealed with a wrong key": lambda: b"xkv1" + os.urandom(24 + 16 + 400),
}
FORGED = {"nats": {"user_nkey": Key("U").public, "server_id": {"id": Key("N").public}}}


@pytest.mark.client
@pytest.mark.parametrize("make", named(UNSEALED))
def test_unsealed_answer(make):
    """Sends an unsealed response although the requests are sealed. Clients of the service's account cannot read
    them."""
    with Target(SEALED) as target, Client(target.port, user="service", **{"pass": "p"}) as service:
        service.sub("$SYS.REQ.USER.AUTH")
        service.barrier()
        refused = []
        thread = threading.Thread(target=lambda: refused.append(target.refuses(user="eve", **{"pass": "eve"})))
        thread.start()
        found = until(service.barrier, "no request arrives at the service")
        check(b"eyJ" not in found[0][1], "the request can be read")
        service.pub(reply_of(found[0]), make())
        service.barrier()
        thread.join(20)
        equal(refused, [True], "refused")


@pytest.mark.anonymous
def test_an_answer_that_has_let_another_client_in():
    FIRST.clear()
    with Target(CONFIG) as target, Service(target, replayed):
        target.client("ada", "ada").close()
        check(target.refuses(user="eve", **{"pass": "eve"}), "it was let in")


@pytest.mark.client
def test_a_request_by_somebody_whom_the_service_has_let_in_or_its_own_accounts_other_user():
    with Target(CONFIG) as target, Service(target, lambda a: answer(a, user(a))) as service:
        with target.client("ada", "ada") as ada, target.client("spy", "p") as spy:
            seen = len(service.seen)
            for eve in (ada, spy):
                eve.pub("$SYS.REQ.USER.AUTH", b"forged", "_INBOX.x")
                eve.barrier()
            check(spy.errors, "spy may ask")
            equal(len(service.seen), seen, "requests that came")


@pytest.mark.client
def test_a_client_in_the_services_account_that_answers_before_the_service_does():
    # Clients of the account may receive requests and their reply subjects. Only a signature of the issuer is
    # valid.
    with Target(CONFIG) as target, Client(target.port, user="spy", **{"pass": "p"}) as spy:
        with Service(target, lambda a: None):
            spy.sub("$SYS.REQ.USER.AUTH")
            spy.barrier()
            let_in = []
            thread = threading.Thread(target=lambda: let_in.append(target.refuses(user="eve", **{"pass": "eve"})))
            thread.start()
            found = until(spy.barrier, "no request arrives at the spy")
            asked = json.loads(unb64(found[0][1].rpartition(b"\r\n\r\n")[2].decode().split(".")[1]))
            spy.pub(reply_of(found[0]), answer(asked, user(asked, STRANGER), STRANGER).encode())
            spy.barrier()
            thread.join(20)
            equal(let_in, [True], "refused")


@pytest.mark.anonymous
def test_nobody_comes_in_while_the_service_is_away():
    with Target(CONFIG) as target:
        check(target.refuses(user="eve", **{"pass": "eve"}), "it was let in")
        check(target.refuses(), "it was let in")
        check(target.refuses(user="service", **{"pass": "wrong"}), "it was let in")


@pytest.mark.client
def test_two_requests_that_have_reply_subjects_or_keys_in_common():
    with Target(CONFIG) as target, Service(target, lambda a: answer(a, user(a))) as service:
        for _ in range(8):
            target.client("ada", "ada").close()
        keys = [asked["nats"]["user_nkey"] for asked in service.seen]
        equal(len(set(keys)), len(keys), "different keys")
        prefixes = {key[1:9] for key in keys}
        equal(len(prefixes), len(keys), "different beginnings")
