"""JetStream of another account: responses to an account that imports all or a part of the API."""

import json

from harness.peer import CONNECT, Peer
from jetstream.session import ANSWER_SECONDS_MAX, Case, Several, answers, api, clear, publish, request, steps

CONFIGURATION = """
jetstream {{ store_dir: "{folder}" }}
accounts {{
  JS {{
    jetstream: enabled, users [ {{ user: js, password: p }} ]
    exports [
      {{ service: "$JS.API.>", response: stream }}, {{ service: "$JS.ACK.>" }}, {{ service: "s.>" }}
    ]
  }}
  ALL {{
    users [ {{ user: all, password: p }} ]
    imports [ {all}, {{ service: {{ account: JS, subject: "s.>" }} }}, {{ service: {{ account: JS, subject: "$JS.ACK.>" }} }} ]
  }}
  INFO {{ users [ {{ user: info, password: p }} ], imports [ {info}, {stream} ] }}
  SOME {{ users [ {{ user: some, password: p }} ], imports [ {stream}, {direct}, {pull} ] }}
  OWN {{ jetstream: enabled, users [ {{ user: own, password: p }} ], imports [ {direct}, {pull} ] }}
  NAMED {{ users [ {{ user: named, password: p }} ], imports [ {named} ] }}
  NONE {{ users [ {{ user: none, password: p }} ] }}
}}
"""
USERS = ("all", "info", "some", "own", "named", "none")


def imported(subject: str, more: str = "") -> str:
    return f'{{ service: {{ account: JS, subject: "$JS.API.{subject}" }}{more} }}'


def configuration(folder: str) -> str:
    return CONFIGURATION.format(
        folder=folder, all=imported(">"), info=imported("INFO"), stream=imported("STREAM.INFO.S"), direct=imported("DIRECT.GET.S"),
        pull=imported("CONSUMER.MSG.NEXT.S.c"), named=imported(">", ', to: "other.>"'),
    )


# State before each case, in the exporting account.
BEFORE = [
    api("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"], "storage": "memory", "allow_direct": True}),
    api("CONSUMER.CREATE.S.c", {"stream_name": "S", "config": {"durable_name": "c", "ack_policy": "explicit"}}), publish("s.a", "1"),
]
ASKED = [
    api("INFO"), api("STREAM.NAMES"), api("STREAM.INFO.NONE"), api("CONSUMER.INFO.S.c"), api("DIRECT.GET.S.s.a"), api("DIRECT.GET.NONE"),
    api("CONSUMER.MSG.NEXT.S.none", {"no_wait": True}), api("STREAM.MSG.GET.S", {"seq": 1}), api("CONSUMER.CREATE.S", "{}"), api("NONE"),
    publish("s.b", "2", A="b"), api("DIRECT.GET.S", {"seq": 2}), api("CONSUMER.MSG.NEXT.S.c", {"no_wait": True}),
    request("$JS.ACK.S.c.1.1.1.1.0", "+ACK"), request("other.STREAM.NAMES"),
]
# The account's own API refuses the request, and the other account responds. Their order is not defined.
TWICE = [Several(api("STREAM.INFO.S"), 2)]
CASES = [Case(f"accounts: {user}", ASKED + (TWICE if user == "some" else [api("STREAM.INFO.S")])) for user in USERS]
CASES += [Case("accounts: named: nobody answers", [request("other.DIRECT.GET.NONE")])]


def play(case: Case, port: int, monitor: int) -> list[str]:
    user = case.name.split(": ")[1]
    with Peer(port, login("js")) as owner, Peer(port, login(user)) as peer:
        for client in (owner, peer):
            client.socket.settimeout(ANSWER_SECONDS_MAX)
            client.send(b"SUB _INBOX.case.* 1\r\n")
        clear(owner)
        for number, step in enumerate(BEFORE):
            answers(owner, number, step)
        transcript = []
        for number, step in enumerate(case.steps):
            lines = steps(peer, peer, monitor, number, step)
            transcript += sorted(lines) if isinstance(step, Several) else lines
        clear(owner)
        return transcript


def login(user: str) -> bytes:
    options = json.loads(CONNECT[len(b"CONNECT ") :]) | {"user": user, "pass": "p"}
    return b"CONNECT " + json.dumps(options).encode() + b"\r\n"
