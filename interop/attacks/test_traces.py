"""Places where secrets could be visible: response times, errors, files, logs, pages, and output."""

import os
import stat
import statistics
import subprocess
import time

import pytest

from attacks.access_kit import Client, Refused, Target, account_jwt, jwt, user_jwt
from harness.checks import check, equal
from harness.nkeys import Key
from harness.peer import Closed, Peer
from harness.server import server_under_test

SECRET, TOKEN = "s3cret-Pa55", "t0ken-t0ken"
# bcrypt of "a" with cost 6.
HASH = "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe"
USERS = f'authorization {{ users: [ {{ user: ada, password: "{SECRET}" }}, {{ user: bea, password: "{HASH}" }} ] }}\n'
FULL = (
    'jetstream { store_dir: "SERVER_DIR/js", key: "s3cret-Pa55-store" }\nhttp: 127.0.0.1:HTTP_PORT\nlog_file: "SERVER_DIR/server.log"\n'
    'pid_file: "SERVER_DIR/server.pid"\nports_file_dir: "SERVER_DIR"\ndebug: true\ntrace: true\nlogtime: false\n' + USERS
)


def refusal(target: Target, **shown: str) -> bytes:
    with Peer(target.port) as peer:
        peer.line()
        fields = ",".join(f'"{key}":"{value}"' for key, value in shown.items())
        peer.send(f'CONNECT {{"verbose":false,{fields}}}\r\nPING\r\n'.encode())
        return peer.until_closed()


@pytest.mark.anonymous
def test_an_error_that_differs_between_an_unknown_user_and_a_wrong_password():
    with Target(USERS) as target:
        shown = [
            {"user": "ada", "pass": "wrong"}, {"user": "nobody", "pass": "wrong"}, {"user": "bea", "pass": "wrong"},
            {"user": "ada"}, {"auth_token": "wrong"}, {"user": "ada", "pass": SECRET[:-1]}, {"nkey": Key("U").public, "sig": "AAAA"},
        ]
        found = {refusal(target, **fields) for fields in shown}
        equal(found, {b"-ERR 'Authorization Violation'\r\n"}, "answers")


@pytest.mark.anonymous
def test_an_unknown_user_that_is_refused_sooner_than_one_with_a_hashed_password():
    users = "authorization { users: [ { user: bea, password: \"%s\" } ] }\n" % HASH.replace("$06$", "$08$")
    with Target(users) as target:

        def median(name: str) -> float:
            times = []
            for _ in range(9):
                begin = time.perf_counter()
                refusal(target, user=name, **{"pass": "wrong"})
                times.append(time.perf_counter() - begin)
            return statistics.median(times)

        known, unknown = median("bea"), median("nobody")
        # A check of a hash with cost 8 takes many times as long as a refusal without one.
        check(unknown > known / 3, f"known {known:.4f} s, unknown {unknown:.4f} s")


def files_below(folder: str):
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            yield os.path.join(path, name)


@pytest.mark.disk
def test_modes():
    before = os.umask(0o022)
    try:
        target = Target(FULL).__enter__()
    finally:
        os.umask(before)
    try:
        with target.client("ada", SECRET) as ada:
            ada.made("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s"]})
            ada.request("s", b"x")
        wrong = []
        store = os.path.join(target.folder.name, "js")
        for path in [store, *files_below(target.folder.name)]:
            mode = stat.S_IMODE(os.stat(path).st_mode)
            is_stored = path.startswith(store)
            if mode & 0o022 or is_stored and mode & 0o007:
                wrong.append(f"{path.removeprefix(target.folder.name)} {mode:o}")
        equal(wrong, [], "modes")
    finally:
        target.__exit__()


def secrets() -> list[str]:
    return [SECRET, TOKEN, HASH, "s3cret-Pa55-store"]


@pytest.mark.disk
def test_secrets_in_a_log_with_traces_of_everything():
    key = Key("U")
    with Target(FULL) as target:
        with target.client("ada", SECRET) as ada:
            ada.made("$JS.API.STREAM.CREATE.S", {"name": "S", "subjects": ["s"]})
        refusal(target, user="ada", **{"pass": SECRET + "x"})
        refusal(target, auth_token=TOKEN)
        refusal(target, jwt="eyJ0eXAi.s3cret-Pa55.x", nkey=key.public, sig="s3cret-Pa55")
        refusal(target, user="x", **{"pass ": "1", "pass": SECRET})
        # This is not JSON, so the server cannot know where the password is.
        with Peer(target.port) as peer:
            peer.line()
            peer.send(f'CONNECT {{"user":"ada","pass":"{SECRET}",\r\n'.encode())
            peer.until_closed()
        target.signal(15)
        target.wait()
        with open(os.path.join(target.folder.name, "server.log"), encoding="utf-8") as file:
            text = file.read() + target.output()
        found = [line for line in text.splitlines() if any(secret in line for secret in secrets())]
        equal(found, [], "lines")


PAGES = ["varz", "connz?auth=1&subs=detail", "connz?state=any&auth=1", "accountz", "jsz?config=1&streams=1&consumers=1", "subsz?subs=1", "metrics", "debug/vars", "", "healthz", "routez", "leafz", "gatewayz", "accstatz"]


@pytest.mark.anonymous
@pytest.mark.parametrize("name", PAGES)
def test_secrets_of_a_page(name: str):
    with Target(FULL) as target, target.client("ada", SECRET) as ada:
        ada.barrier()
        refusal(target, user="ada", **{"pass": SECRET + "x"})
        refusal(target, auth_token=TOKEN)
        _, found = target.http(f"GET /{name}")
        equal([secret for secret in secrets() if secret in found], [], "secrets")


@pytest.mark.operator
def test_secrets_in_config_show():
    with Target(FULL) as target:
        output = subprocess.run([server_under_test(), "config", "show", target.conf], capture_output=True, text=True, timeout=60)
        text = output.stdout + output.stderr
        check(output.stdout, f"nothing is shown: {output.stderr}")
        equal([secret for secret in secrets() if secret in text], [], "secrets")


@pytest.mark.operator
def test_a_secret_in_the_error_of_a_wrong_configuration():
    # A password that is no string, or is next to an unknown field, must not be printed.
    for text in (f'authorization {{ users: [ {{ user: a, password: "{SECRET}", pasword: "{SECRET}" }} ] }}',
                 f'authorization {{ token: "{TOKEN}", users: [ {{ user: a, password: "{SECRET}" }} ] }}',
                 f'authorization {{ user: a, password: [ "{SECRET}" ] }}',
                 'jetstream { key: [ "s3cret-Pa55-store" ] }'):
        try:
            with Target(text + "\n") as target:
                found = target.output()
        except RuntimeError as error:
            found = str(error)
        equal([secret for secret in secrets() if secret in found], [], f"secrets of {text}")


@pytest.mark.client
def test_a_password_in_what_other_clients_or_the_system_account_hear_of_a_connection():
    config = (
        f'accounts {{ A {{ users: [ {{ user: ada, password: "{SECRET}" }} ] }}, SYS {{ users: [ {{ user: s, password: p }} ] }} }}\n'
        "system_account: SYS\n"
    )
    with Target(config) as target, target.client("s", "p") as system:
        system.sub(">")
        system.barrier()
        target.client("ada", SECRET).close()
        refusal(target, user="ada", **{"pass": SECRET + "x"})
        _, found = system.request("$SYS.REQ.SERVER.PING.CONNZ", {"auth": True, "state": 2})
        text = found + b"".join(content for _, content in system.barrier())
        check(SECRET.encode() not in text, "the password was told")


@pytest.mark.anonymous
def test_an_account_that_is_known_told_from_one_that_is_not_by_a_users_token():
    operator, known, system, eve = Key("O"), Key("A"), Key("A"), Key("U")
    preload = "\n".join(f"{a.public}: {account_jwt(operator, a.public)}" for a in (known, system))
    config = (
        f"operator: {jwt(operator, operator.public, {'type': 'operator'})}\nsystem_account: {system.public}\n"
        f"resolver: MEMORY\nresolver_preload {{\n{preload}\n}}\n"
    )
    with Target(config) as target:
        errors = set()
        for issuer in (known, Key("A"), system):
            # The token names the account as issuer, but has a wrong signature.
            token = user_jwt(issuer, eve.public)[:-8] + "AAAAAAAA"
            try:
                Client(target.port, sign=eve.proves(jwt=token)).close()
                errors.add("let in")
            except (Refused, Closed) as error:
                errors.add(str(error))
        equal(len(errors), 1, f"answers: {errors}")
        check("let in" not in errors, "let in")
