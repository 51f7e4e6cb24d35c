"""Forged, stolen, expired, and revoked tokens for a server in operator mode; nkeys without such a server."""

import json
import time

import pytest

from attacks.access_kit import (
    Client, Refused, Target, account_jwt, jwt, unb64, user_jwt,
)
from harness.cases import named
from harness.checks import check, equal
from harness.nkeys import Key, b64, checked
from harness.peer import Closed

PAST, FUTURE = 1_500_000_000, 4_000_000_000


class World:
    """An operator, the accounts A and B, a scoped and an ordinary signing key of A, and a user's key."""

    def __init__(self):
        self.operator, self.stranger = Key("O"), Key("O")
        self.a, self.b, self.system = Key("A"), Key("A"), Key("A")
        self.signing, self.scoped, self.eve = Key("A"), Key("A"), Key("U")
        self.revoked = Key("U")

    def config(self, **of_a) -> str:
        template = {"pub": {"allow": ["u.{{name()}}", "t.{{tag(t)}}"]}, "sub": {"allow": ["u.{{name()}}"]}, "subs": -1, "data": -1, "payload": -1}
        scope = {"kind": "user_scope", "key": self.scoped.public, "role": "r", "template": template}
        nats = {"signing_keys": [self.signing.public, scope], "revocations": {self.revoked.public: int(time.time()) + 60}}
        tokens = {
            self.a.public: account_jwt(self.operator, self.a.public, nats | of_a.pop("nats", {}), **of_a),
            self.b.public: account_jwt(self.operator, self.b.public),
            self.system.public: account_jwt(self.operator, self.system.public),
        }
        preload = "\n".join(f"{name}: {token}" for name, token in tokens.items())
        return (
            f"operator: {jwt(self.operator, self.operator.public, {'type': 'operator'})}\n"
            f"system_account: {self.system.public}\nresolver: MEMORY\nresolver_preload {{\n{preload}\n}}\n"
        )


WORLD = World()
USER = WORLD.eve.public


def good(**more) -> str:
    return user_jwt(WORLD.a, USER, **more)


def changed(token: str, place: int, change) -> str:
    """Returns the token with one part changed: header (0), claims (1), or signature (2)."""
    parts = token.split(".")
    parts[place] = change(parts[place])
    return ".".join(parts)


def claims(**more):
    return lambda part: b64(json.dumps(json.loads(unb64(part)) | more).encode())


def by(issuer: Key, nats: dict | None = None, is_template: bool = False, **more) -> str:
    return user_jwt(issuer, USER, {"issuer_account": WORLD.a.public} | (nats or {}), is_template, **more)


# Name of the attack, and a token that must be refused although the client has the user's key.
TOKENS = {
    "signed with the algorithm none": lambda: changed(good(), 0, claims(alg="none")),
    "signed with HS256": lambda: changed(good(), 0, claims(alg="HS256")),
    "without a signature": lambda: changed(good(), 2, lambda _: ""),
    "with a signature of zeros": lambda: changed(good(), 2, lambda _: b64(bytes(64))),
    "with its claims changed": lambda: changed(good(), 1, claims(name="root")),
    "signed by a stranger in the account's name": lambda: jwt(WORLD.a, USER, {"type": "user"}, signer=Key("A")),
    "of an account that nobody knows": lambda: user_jwt(Key("A"), USER),
    "of an account that a stranger has signed": lambda: by(Key("A")),
    "signed by the user itself": lambda: user_jwt(WORLD.eve, USER),
    "signed by the operator": lambda: user_jwt(WORLD.operator, USER),
    "signed by account B in the name of A": lambda: by(WORLD.b),
    "of A's signing key without the account's name": lambda: user_jwt(WORLD.signing, USER),
    "of A's signing key in the name of B": lambda: user_jwt(WORLD.signing, USER, {"issuer_account": WORLD.b.public}),
    "that has expired": lambda: good(exp=PAST),
    "that is not valid yet": lambda: good(nbf=FUTURE),
    "of an account, as a user's": lambda: account_jwt(WORLD.operator, WORLD.a.public),
    "of an activation, as a user's": lambda: jwt(WORLD.a, USER, {"type": "activation", "kind": "stream", "subject": ">"}),
    "of another user": lambda: user_jwt(WORLD.a, Key("U").public),
    "for WebSocket only": lambda: good(nats={"allowed_connection_types": ["WEBSOCKET"]}),
    "for unknown kinds of connections only": lambda: good(nats={"allowed_connection_types": ["PIGEON"]}),
    "for another network": lambda: good(nats={"src": ["10.0.0.0/8"]}),
    "for networks that are none": lambda: good(nats={"src": ["everywhere"]}),
    "for no time of the day": lambda: good(nats={"times": [{"start": "00:00:00", "end": "00:00:00"}]}),
    "for a time in a place that is none": lambda: good(nats={"times": [{"start": "00:00:00", "end": "23:59:59"}], "times_location": "No/Where"}),
    "that needs a proxy": lambda: good(nats={"proxy_required": True}),
    "of the scoped key with permissions of its own": lambda: by(WORLD.scoped, {"pub": {"allow": [">"]}}, is_template=True),
    "of the scoped key with limits of its own": lambda: by(WORLD.scoped, {"subs": -1}, is_template=True),
    "of the scoped key as a bearer's": lambda: by(WORLD.scoped, {"bearer_token": True}, is_template=True),
    "of version 3": lambda: jwt(WORLD.a, USER, {"type": "user", "version": 3}),
    "of no version": lambda: jwt(WORLD.a, USER, {"type": "user", "version": 0}),
    "with more parts": lambda: good() + ".e30",
    "with claims twice": lambda: ".".join([good().split(".")[0], b64(b'{"sub":"%s","sub":"%s","iss":"%s","nats":{"version":2,"type":"user"}}' % (USER.encode(), USER.encode(), WORLD.a.public.encode())), b64(bytes(64))]),
}


@pytest.mark.client
@pytest.mark.parametrize("make", named(TOKENS))
def test_wrong_token(make):
    with Target(WORLD.config()) as target:
        Client(target.port, sign=WORLD.eve.proves(jwt=good())).close()
        check(target.refuses(sign=WORLD.eve.proves(jwt=make())), "it was taken")

SIGNATURES = {
    "no signature of the nonce": lambda nonce: {},
    "an empty signature": lambda nonce: {"sig": ""},
    "a signature of another nonce": lambda nonce: {"sig": b64(WORLD.eve.sign(b"another nonce!!"))},
    "a signature of nothing": lambda nonce: {"sig": b64(WORLD.eve.sign(b""))},
    "another's signature": lambda nonce: {"sig": b64(Key("U").sign(nonce.encode()))},
    "the nonce as a signature": lambda nonce: {"sig": b64(nonce.encode())},
    "another's key beside its token": lambda nonce: {"nkey": (key := Key("U")).public, "sig": b64(key.sign(nonce.encode()))},
    "a name and a password beside it": lambda nonce: {"user": "root", "pass": "p", "auth_token": "t"},
}


@pytest.mark.anonymous
@pytest.mark.parametrize("sign", named(SIGNATURES))
def test_stolen_token(sign):
    with Target(WORLD.config()) as target:
        token = good()
        check(target.refuses(sign=lambda nonce: {"jwt": token} | sign(nonce)), "it was taken")


@pytest.mark.anonymous
def test_a_signature_that_was_seen_on_another_connection():
    with Target(WORLD.config()) as target:
        token, seen = good(), []
        prove = WORLD.eve.proves(jwt=token)
        Client(target.port, sign=lambda nonce: seen.append(prove(nonce)) or seen[0]).close()
        check(target.refuses(sign=lambda nonce: seen[0]), "it was taken")


@pytest.mark.client
def test_a_revoked_user_by_its_key():
    with Target(WORLD.config()) as target:
        token = user_jwt(WORLD.a, WORLD.revoked.public)
        check(target.refuses(sign=WORLD.revoked.proves(jwt=token)), "it was taken")


@pytest.mark.client
def test_a_token_issued_in_the_future_past_a_revocation_of_all():
    with Target(WORLD.config(nats={"revocations": {"*": int(time.time()) + 60}})) as target:
        check(target.refuses(sign=WORLD.eve.proves(jwt=good())), "it was taken")


@pytest.mark.client
def test_a_user_of_an_account_whose_own_token_has_expired():
    # The server may accept this configuration, as nats-server does, or refuse to start.
    try:
        with Target(WORLD.config(exp=PAST)) as target:
            check(target.refuses(sign=WORLD.eve.proves(jwt=good())), "it was taken")
    except RuntimeError as error:
        check("expired" in str(error).lower(), str(error))


@pytest.mark.anonymous
def test_a_bearers_token_where_the_account_forbids_them():
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
    with Target(WORLD.config(nats={"limits": limits | {"disallow_bearer": True}})) as target:
        check(target.refuses(jwt=good(nats={"bearer_token": True})), "it was taken")
        Client(target.port, sign=WORLD.eve.proves(jwt=good())).close()


@pytest.mark.client
@pytest.mark.parametrize("name, tags, subjects", named([
    ("a wildcard as a name", "*", [], ["u.other"]),
    ("all wildcards as a name", ">", [], ["u.other", "u.other.x"]),
    ("a queue in the name", "x q", [], ["u.other", "u.x q"]),
    ("a name of more tokens with a wildcard", "x.>", [], ["u.x.y"]),
    ("a queue as a tag", "n", ["t:x q"], ["t.other", "t.x"]),
    ("no tag and no name", "", [], ["u.", "u.other", "t.other", "other"]),
]))
def test_leaves_the_scope_of_a_signing_key_by(name: str, tags: list[str], subjects: list[str]):
    """The holder of a scoped signing key chooses name and tags of a user. They must not widen the scope."""
    token = by(WORLD.scoped, {"tags": tags}, is_template=True, name=name)
    with Target(WORLD.config()) as target:
        owner = Client(target.port, sign=WORLD.eve.proves(jwt=good()))
        try:
            eve = Client(target.port, sign=WORLD.eve.proves(jwt=token))
        except (Refused, Closed):
            return
        with owner, eve:
            owner.sub(">")
            owner.barrier()
            for subject in subjects:
                eve.pub(subject)
                eve.sub(subject, subject)
            eve.barrier()
            equal([line for line, _ in owner.barrier()], [], "what was published")
            for subject in subjects:
                owner.pub(subject)
            owner.barrier()
            equal([line for line, _ in eve.barrier()], [], "what was heard")


IMPORTED = {
    "no activation": lambda w, other: "",
    "an activation for another account": lambda w, other: jwt(w.b, other.public, {"type": "activation", "kind": "stream", "subject": "secret.>"}),
    "an activation that a stranger has signed": lambda w, other: jwt(other, w.a.public, {"type": "activation", "kind": "stream", "subject": "secret.>", "issuer_account": w.b.public}),
    "an activation that the importer has signed": lambda w, other: jwt(w.a, w.a.public, {"type": "activation", "kind": "stream", "subject": "secret.>", "issuer_account": w.b.public}),
    "an activation for a narrower subject": lambda w, other: jwt(w.b, w.a.public, {"type": "activation", "kind": "stream", "subject": "secret.other"}),
    "an activation of a service": lambda w, other: jwt(w.b, w.a.public, {"type": "activation", "kind": "service", "subject": "secret.>"}),
    "an activation that has expired": lambda w, other: jwt(w.b, w.a.public, {"type": "activation", "kind": "stream", "subject": "secret.>"}, exp=PAST),
    "an activation that is not valid yet": lambda w, other: jwt(w.b, w.a.public, {"type": "activation", "kind": "stream", "subject": "secret.>"}, nbf=FUTURE),
}


@pytest.mark.owner
@pytest.mark.parametrize("make", named(IMPORTED))
def test_wrong_activation(make):
    imported(make)


def imported(make, is_allowed: bool = False, revocations: dict[str, int] | None = None):
    """B exports `secret.>` to accounts with an activation token. A imports it with the token that `make` returns."""
    w, other = WORLD, Key("A")
    token = make(w, other)
    imports = [{"name": "i", "subject": "secret.>", "account": w.b.public, "type": "stream", "token": token}]
    exports = [{"name": "e", "subject": "secret.>", "type": "stream", "token_req": True, "revocations": revocations or {}}]
    tokens = {
        w.a.public: account_jwt(w.operator, w.a.public, {"imports": imports}),
        w.b.public: account_jwt(w.operator, w.b.public, {"exports": exports}),
        w.system.public: account_jwt(w.operator, w.system.public),
    }
    preload = "\n".join(f"{name}: {token}" for name, token in tokens.items())
    config = w.config().partition("resolver_preload")[0] + f"resolver_preload {{\n{preload}\n}}\n"
    try:
        target = Target(config).__enter__()
    except RuntimeError:
        check(not is_allowed, "it does not start")
        return
    try:
        b_user = Key("U")
        with Client(target.port, sign=b_user.proves(jwt=user_jwt(w.b, b_user.public))) as b:
            try:
                a = Client(target.port, sign=w.eve.proves(jwt=good()))
            except (Refused, Closed):
                check(not is_allowed, "the importer is refused")
                return
            with a:
                a.sub(">")
                a.barrier()
                b.pub("secret.x", b"SECRET")
                b.barrier()
                equal(len(a.barrier()), int(is_allowed), "messages that came")
    finally:
        target.__exit__()


@pytest.mark.owner
def test_imports_a_stream_that_needs_an_activation_with_one_that_the_exporter_has_revoked():
    def activation(w, _):
        return jwt(w.b, w.a.public, {"type": "activation", "kind": "stream", "subject": "secret.>"})

    imported(activation, is_allowed=True)
    imported(activation, revocations={WORLD.a.public: int(time.time()) + 60})


NKEYS = {
    "no signature": lambda key, nonce: {"nkey": key.public},
    "another's signature": lambda key, nonce: {"nkey": key.public, "sig": b64(Key("U").sign(nonce.encode()))},
    "a signature of another nonce": lambda key, nonce: {"nkey": key.public, "sig": b64(key.sign(b"x"))},
    "the key as a name": lambda key, nonce: {"user": key.public},
    "the key as a name with its signature as a password": lambda key, nonce: {"user": key.public, "pass": b64(bytes(64))},
    "the key as a token": lambda key, nonce: {"auth_token": key.public},
    "a signature of zeros": lambda key, nonce: {"nkey": key.public, "sig": b64(bytes(64))},
    "an unknown key with its signature": lambda key, nonce: {"nkey": (own := Key("U")).public, "sig": b64(own.sign(nonce.encode()))},
    "the key in lower case": lambda key, nonce: {"nkey": key.public.lower(), "sig": b64(key.sign(nonce.encode()))},
}


@pytest.mark.anonymous
@pytest.mark.parametrize("show", named(NKEYS))
def test_wrong_nkey(show):
    key = Key("U")
    with Target(f"authorization {{ users: [ {{ nkey: {key.public} }}, {{ user: ada, password: p }} ] }}") as target:
        Client(target.port, sign=key.proves(nkey=key.public)).close()
        check(target.refuses(sign=lambda nonce: show(key, nonce)), "it was taken")


@pytest.mark.anonymous
def test_a_key_of_low_order_with_a_signature_that_fits_everything():
    # With the neutral element as key, S = 0 and R = the neutral element form a valid signature of every message,
    # unless the server refuses such keys.
    neutral = bytes([1]) + bytes(31)
    public = checked(bytes([20 << 3]) + neutral)
    forged = b64(neutral + bytes(32))
    try:
        with Target(f"authorization {{ users: [ {{ nkey: {public} }} ] }}") as target:
            # An operator that configures such a key has no security left. The server must only not panic.
            target.refuses(sign=lambda nonce: {"nkey": public, "sig": forged})
            check(target.process.poll() is None, "the server has ended")
    except RuntimeError:
        pass
