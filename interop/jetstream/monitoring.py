"""Monitoring pages about JetStream."""

from jetstream.cases import consumer, copy, create
from jetstream.publishes import ONE
from jetstream.session import Case, Monitor, Sleep, api

SOME = [*ONE, consumer(), create("T", max_bytes=1000, storage="file"), copy("M", mirror={"name": "S"}), Sleep(1)]


def asks(name, *paths):
    return Case(f"monitoring: {name}", [*SOME, *(Monitor(path) for path in paths)])


CASES = [
    asks("varz", "/varz"),
    asks("jsz", "/jsz", "/jsz?accounts=1", "/jsz?accounts=true&streams=1", "/jsz?consumers=1", "/jsz?consumers=1&config=1", "/jsz?config=1"),
    asks("jsz, options", "/jsz?acc=$G", "/jsz?acc=$G&streams=1", "/jsz?acc=NONE&streams=1", "/jsz?acc=$G&consumers=1&config=1", "/jsz?raft=1",
         "/jsz?leader-only=1&accounts=1", "/jsz?stream-leader-only=1&streams=1", "/jsz?direct-consumers=1", "/jsz?streams=1&direct-consumers=1"),
    asks("jsz, pages", "/jsz?accounts=1&offset=1", "/jsz?accounts=1&limit=1", "/jsz?accounts=1&limit=0", "/jsz?accounts=1&offset=-1",
         "/jsz?offset=x", "/jsz?limit=x", "/jsz?streams=x", "/jsz?foo=1"),
    asks("healthz", "/healthz", "/healthz?js-enabled-only=1", "/healthz?js-server-only=1", "/healthz?js-meta-only=1", "/healthz?details=1",
         "/healthz?account=$G&stream=T", "/healthz?account=$G", "/healthz?account=NONE", "/healthz?account=NONE&details=1", "/healthz?stream=S", "/healthz?consumer=c",
         "/healthz?account=$G&stream=NONE", "/healthz?account=$G&stream=NONE&details=1", "/healthz?account=NONE&stream=S&details=1",
         "/healthz?account=$G&consumer=c", "/healthz?js-enabled-only=x"),
    Case("monitoring: consumers that were paused", [
        *SOME, *(
            step for name, until in (("a", "2040-01-01T00:00:00Z"), ("b", "2020-01-01T00:00:00Z"), ("c", None))
            for step in (
                api(f"CONSUMER.CREATE.S.{name}", {"stream_name": "S", "config": {"name": name, "durable_name": name, "ack_policy": "explicit"}}),
                api(f"CONSUMER.PAUSE.S.{name}", {"pause_until": until} if until else ""), api(f"CONSUMER.INFO.S.{name}"),
            )
        ), Monitor("/jsz?consumers=1&config=1"), api("CONSUMER.PAUSE.S.a", ""), api("CONSUMER.INFO.S.a"), Monitor("/jsz?consumers=1&config=1"),
    ]),
    asks("accountz", "/accountz?acc=$G", "/accountz?acc=NONE"),
    Case("monitoring: nothing there", [Monitor("/jsz?streams=1&consumers=1"), Monitor("/varz")]),
]
