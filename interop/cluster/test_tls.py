"""Certificates that authorize servers on routes: `verify_and_map` and `verify_cert_and_check_known_urls`."""

import os
from dataclasses import dataclass

import pytest

from harness.certificates import authority, signed
from harness.checks import check, equal, until
from harness.client import settle
from leaf.stage import Node, Stage

from .shapes import peers

HERE = "IP:127.0.0.1"
MAP = "verify_and_map: true"
URLS = "verify_cert_and_check_known_urls: true"
NAME = "DNS:b.example"


@dataclass
class Case:
    """What the acceptor requires, and the names in the dialer's certificate."""

    is_admitted: bool
    tls: str
    user: str = ""
    names: str = NAME
    # Another server that the acceptor knows.
    known: str = ""
    # The dialer's user and password.
    login: str = ""
    subject: str = "/O=Example/CN=b"


CASES = {
    "a host name is the user": Case(True, MAP, "b.example"),
    "an email address is the user": Case(True, MAP, "b@example.org", "email:b@example.org"),
    "a URI is the user": Case(True, MAP, "spiffe://example/b", "URI:spiffe://example/b"),
    "the subject is the user": Case(True, MAP, "CN=b,O=Example"),
    "a part of the subject is not the user": Case(False, MAP, "CN=b"),
    "another user": Case(False, MAP, "c.example"),
    "no user": Case(False, MAP),
    "a password does not replace the certificate": Case(False, MAP, "ada", login="ada:secret@"),
    "a known host": Case(True, URLS, known="B.example"),
    "another host": Case(False, URLS, known="c.example"),
    "no known host": Case(False, URLS),
    "a wildcard": Case(True, URLS, names="DNS:*.example", known="b.example"),
    "a wildcard is for one label": Case(False, URLS, names="DNS:*.example", known="a.b.example"),
    "a wildcard comes first": Case(False, URLS, names="DNS:a.*.example", known="a.b.example"),
    "a known host, without the password": Case(True, URLS, "ada", known="b.example"),
    "a password does not replace a known host": Case(False, URLS, "ada", known="c.example", login="ada:secret@"),
    "both, by the host": Case(True, f"{MAP}, {URLS}", "ada", known="b.example"),
    "both, by the user": Case(True, f"{MAP}, {URLS}", "b.example", known="c.example"),
    "both, by none": Case(False, f"{MAP}, {URLS}", "ada", known="c.example"),
}


def cluster(node: Node, folder: str, certificate: tuple[str, str], routes: str, more: str = "", tls: str = "") -> str:
    pem, key = certificate
    files = f'cert_file: "{pem}", key_file: "{key}", ca_file: "{os.path.join(folder, "authority.pem")}"'
    return f"""cluster {{ name: east, listen: "127.0.0.1:{node.cluster_port}", routes: [{routes}], {more}
      tls {{ {files}, timeout: 10, {tls} }} }}"""


# The acceptor and the dialer.
@pytest.mark.parametrize("kinds", ["tt", "tr", "rt"])
@pytest.mark.parametrize("name", CASES)
def test_certificate(kinds, name):
    case = CASES[name]
    with Stage() as stage:
        one, two = [stage.tested(f"n{n}") if kind == "t" else stage.reference(f"n{n}") for n, kind in enumerate(kinds)]
        own = authority(stage.folder)
        acceptor = signed(stage.folder, own, "acceptor", "/CN=acceptor", f"DNS:localhost,{HERE}")
        dialer = signed(stage.folder, own, "dialer", case.subject, f"{case.names},{HERE}")
        # Nobody listens there.
        known = f'"nats://{case.known}:1"' if case.known else ""
        user = f'authorization {{ user: "{case.user}", password: secret }}' if case.user else ""
        one.start(cluster(one, stage.folder, acceptor, known, user, case.tls))
        two.start(cluster(two, stage.folder, dialer, f'"nats://{case.login}127.0.0.1:{one.cluster_port}"'))
        if case.is_admitted:
            until(lambda: peers(one) == {two.name}, lambda: f"no routes: {one.log()}{two.log()}")
            with one.client() as here, two.client() as there:
                settle(here, there)
                settle(there, here)
        else:
            two.said("Authorization Violation")
            one.said("Authentication Failure")
            equal(peers(one), set(), "the routes")
            check("Route Error" in two.log(), two.log())
