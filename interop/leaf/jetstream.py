"""JetStream over a leaf connection: streams of one domain, used and copied from another domain."""

import datetime
import time

from harness.checks import check, equal, until
from harness.client import WAIT_SECONDS_MAX, Client, Message, api, settle

from .shapes import Shape
from .stage import Node, Stage, remote
from .streams import absent, add, answered, caught_up, contents, each_once, fill, numbers, origin, same, state, store

NEAR, FAR = "edge", "hub"
RECORDS = 2_000
# A pull request ends after two seconds. If there is no response for longer, the request was lost.
PULL_SECONDS_MAX = 4


class Domains:
    """A client in each of two domains, and names for streams."""

    def __init__(self, near: Client, far: Client, near_domain: str, far_domain: str):
        self.near = near
        self.far = far
        self.near_domain = near_domain
        self.far_domain = far_domain

    @property
    def far_api(self) -> str:
        return f"$JS.{self.far_domain}.API"

    def name(self, name: str) -> str:
        """Returns a name that differs in the two directions."""
        return f"{name}_{self.far_domain}"


def spoke(stage: Stage) -> Shape:
    return linked(stage.reference("hub"), stage.tested("spoke"))


def hub(stage: Stage) -> Shape:
    return linked(stage.tested("hub"), stage.reference("spoke"))


def both(stage: Stage) -> Shape:
    return linked(stage.tested("hub"), stage.tested("spoke"))


def linked(above: Node, below: Node) -> Shape:
    above.write(above.jetstream(FAR), above.leafnodes(listen=True))
    below.write(below.jetstream(NEAR), below.leafnodes(remote(above.leaf_port)))
    above.start()
    below.start()
    return Shape(below, above)


def spoke_of_cluster(stage: Stage) -> Shape:
    nodes = stage.cluster(FAR)
    below = stage.tested("spoke")
    below.start(below.jetstream(NEAR), below.leafnodes(remote(*(node.leaf_port for node in nodes))))
    return Shape(below, nodes[1])


SHAPES = {
    "JetStream, spoke": spoke,
    "JetStream, hub": hub,
    "JetStream, hub and spoke": both,
    "JetStream, spoke of a cluster": spoke_of_cluster,
}


def in_both_directions(shape: Shape, case):
    with shape.near.client() as near, shape.far.client() as far:
        settle(near, far)
        settle(far, near)
        case(Domains(near, far, NEAR, FAR))
        case(Domains(far, near, FAR, NEAR))


def domains(at: Domains):
    equal(api(at.near, "INFO").get("domain"), at.near_domain, "the domain by the plain prefix")
    equal(api(at.near, "INFO", None, f"$JS.{at.near_domain}.API").get("domain"), at.near_domain, "by its own")
    equal(api(at.near, "INFO", None, at.far_api).get("domain"), at.far_domain, "by the other's")


def apart(at: Domains):
    """Requests with the plain prefix never reach the other domain."""
    name = at.name("APART")
    add(at.far, name, subjects=[f"apart.{at.far_domain}"])
    check(name not in (api(at.near, "STREAM.NAMES")["streams"] or []), "the other domain's stream is listed")
    absent(at.near, name)


def published_from_there(at: Domains):
    """A stream is created, filled, and read from the other domain."""
    name, subject = at.name("REMOTE"), f"remote.{at.far_domain}"
    add(at.near, name, at.far_api, subjects=[subject])
    settle(at.far, at.near)
    answers = [store(at.near, subject, payload) for payload in numbers(0, 50)]
    wanted = [{"stream": name, "domain": at.far_domain, "seq": n + 1} for n in range(50)]
    equal(answers, wanted, "the acknowledgements")
    each_once(contents(at.near, name, at.far_api), numbers(0, 50))
    api(at.near, f"STREAM.PURGE.{name}", None, at.far_api)
    equal(state(at.far, name)["messages"], 0, "what is left")
    api(at.near, f"STREAM.DELETE.{name}", None, at.far_api)
    absent(at.far, name)


def consumed_from_there(at: Domains):
    name, subject = at.name("WORK"), f"work.{at.far_domain}"
    add(at.far, name, subjects=[subject])
    fill(at.far, subject, 0, 300)
    config = {"durable_name": "worker", "ack_policy": "explicit"}
    api(at.near, f"CONSUMER.CREATE.{name}.worker", {"stream_name": name, "config": config}, at.far_api)
    inbox = f"{at.near.inbox}.pulled"
    number = at.near.subscribe(inbox)
    at.near.flush()
    found = []
    for _ in range(3):
        for message in pull(at, name, inbox, number, 100):
            found.append(message.payload)
            at.near.publish(message.reply, b"+ACK")
    equal(found, numbers(0, 300), "what was pulled")

    def info():
        return api(at.far, f"CONSUMER.INFO.{name}.worker")

    until(lambda: info()["ack_floor"]["stream_seq"] == 300, lambda: f"acknowledgements got lost: {info()}")
    # An acknowledgement that is sent as a request receives a response.
    fill(at.far, subject, 300, 1)
    [message] = pull(at, name, inbox, number, 1)
    equal(at.near.ask(message.reply, b"+ACK").payload, b"", "the answer to an acknowledgement")


def pull(at: Domains, name: str, inbox: str, number: int, count: int) -> list[Message]:
    """Pulls messages, and sends further requests for missing ones, like official clients. In a cluster, a
    consumer may exist before every server knows where to send requests for its messages."""
    found: list[Message] = []
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while len(found) < count:
        check(time.monotonic() < deadline, f"{len(found)} of {count} messages came")
        request = b'{"batch":%d,"expires":2000000000}' % (count - len(found))
        at.near.publish(f"{at.far_api}.CONSUMER.MSG.NEXT.{name}.worker", request, inbox)
        while len(found) < count:
            try:
                message = at.near.next(number, PULL_SECONDS_MAX)
            except TimeoutError:
                break
            if message.status != 0:
                equal(message.status, 408, "the status")
                break
            found.append(message)
    return found


def bucket(at: Domains):
    """A key-value bucket of the other domain, used like official clients do with a domain."""
    name = at.name("KV_PRICES")
    key = name.removeprefix("KV_")
    config = {"subjects": [f"$KV.{key}.>"], "max_msgs_per_subject": 5, "allow_direct": True, "allow_rollup_hdrs": True}
    add(at.near, name, at.far_api, **config, deny_delete=True, discard="new")
    for n in range(20):
        answer = store(at.near, f"{at.far_api}.$KV.{key}.tea.{n % 2}", b"%d" % n)
        equal(answer.get("seq"), n + 1, f"the acknowledgement {answer}")
    found = answered(at.near, f"{at.far_api}.DIRECT.GET.{name}.$KV.{key}.tea.1")
    equal((found.payload, found.header("Nats-Sequence")), (b"19", "20"), "the value")
    equal(answered(at.far, f"$JS.API.DIRECT.GET.{name}.$KV.{key}.tea.0").payload, b"18", "the value at its own server")


def mirrored(at: Domains):
    name, copy, subject = at.name("ORIGIN"), at.name("MIRROR"), f"origin.{at.far_domain}"
    add(at.far, name, subjects=[f"{subject}.>"])
    fill(at.far, f"{subject}.a", 0, RECORDS // 2)
    add(at.near, copy, mirror=origin(name, at.far_domain))
    fill(at.far, f"{subject}.b", RECORDS // 2, RECORDS // 2)
    caught_up(at.near, copy, RECORDS)
    same(contents(at.near, copy), contents(at.far, name))
    info = api(at.near, f"STREAM.INFO.{copy}")["mirror"]
    equal((info["name"], info["lag"]), (name, 0), "what the mirror says of its origin")
    check(info["active"] >= 0, f"the origin was never heard of: {info}")


def mirrored_from(at: Domains):
    """A mirror that starts at a sequence; one with some of the subjects; and one with other subjects."""
    name, subject = at.name("LONG"), f"long.{at.far_domain}"
    add(at.far, name, subjects=[f"{subject}.>"])
    for n in range(10):
        fill(at.far, f"{subject}.{'ab'[n % 2]}", n * 10, 10)
    add(at.near, at.name("LATE"), mirror=origin(name, at.far_domain, opt_start_seq=51))
    caught_up(at.near, at.name("LATE"), 100)
    each_once(contents(at.near, at.name("LATE")), numbers(50, 50))
    add(at.near, at.name("SOME"), mirror=origin(name, at.far_domain, filter_subject=f"{subject}.b"))
    caught_up(at.near, at.name("SOME"), 100)
    wanted = [payload for n in range(1, 10, 2) for payload in numbers(n * 10, 10)]
    each_once(contents(at.near, at.name("SOME")), wanted)
    transforms = [{"src": f"{subject}.a", "dest": f"short.{at.far_domain}"}]
    add(at.near, at.name("SHORT"), mirror=origin(name, at.far_domain, subject_transforms=transforms))
    until(lambda: state(at.near, at.name("SHORT"))["messages"] == 50, "not all of them came")
    found = {each.subject for each in contents(at.near, at.name("SHORT"))}
    equal(found, {f"short.{at.far_domain}"}, "the subjects")


def sourced(at: Domains):
    """A stream with two sources of the other domain and one of its own."""
    near, far = at.near, at.far
    for part in "ab":
        add(far, at.name(f"PART{part}"), subjects=[f"part.{part}.{at.far_domain}"])
    add(near, at.name("PARTc"), subjects=[f"part.c.{at.far_domain}"])
    sources = [origin(at.name(f"PART{part}"), at.far_domain) for part in "ab"] + [{"name": at.name("PARTc")}]
    add(near, at.name("WHOLE"), sources=sources)
    for first in range(0, RECORDS // 2, 100):
        fill(far, f"part.a.{at.far_domain}", first, 100)
        fill(far, f"part.b.{at.far_domain}", first, 100)
        fill(near, f"part.c.{at.far_domain}", first, 100)
    caught_up(near, at.name("WHOLE"), RECORDS // 2 * 3)
    records = contents(near, at.name("WHOLE"))
    for part in "abc":
        of_part = [each for each in records if each.subject == f"part.{part}.{at.far_domain}"]
        each_once(of_part, numbers(0, RECORDS // 2))
        name = at.name(f"PART{part}")
        check(all(name in (each.source or "") for each in of_part), "one does not say where it is from")


def bucket_mirrored(at: Domains):
    """A bucket that is written in the other domain, and read from a local mirror."""
    name, copy = at.name("KV_FAR"), at.name("KV_NEAR")
    key = name.removeprefix("KV_")
    config = {"max_msgs_per_subject": 1, "allow_direct": True, "allow_rollup_hdrs": True}
    add(at.far, name, subjects=[f"$KV.{key}.>"], **config, deny_delete=True, discard="new")
    for n in range(100):
        store(at.far, f"$KV.{key}.key{n % 10}", b"%d" % n)
    add(at.near, copy, mirror=origin(name, at.far_domain), mirror_direct=True, **config)
    caught_up(at.near, copy, 100)
    for n in range(10):
        found = answered(at.near, f"$JS.API.DIRECT.GET.{copy}.$KV.{key}.key{n}")
        equal(found.payload, b"%d" % (90 + n), f"the value of key{n}")


def object_mirrored(at: Domains):
    """A mirror of an object store: records of 128 KiB and one with the object's metadata."""
    name, copy = at.name("OBJ_FAR"), at.name("OBJ_NEAR")
    objects = name.removeprefix("OBJ_")
    add(at.far, name, subjects=[f"$O.{objects}.C.>", f"$O.{objects}.M.>"], allow_rollup_hdrs=True, discard="new")
    chunks = [bytes((n * 7 + at_byte) & 255 for at_byte in range(131_072)) for n in range(8)]
    for chunk in chunks:
        store(at.far, f"$O.{objects}.C.one", chunk)
    store(at.far, f"$O.{objects}.M.b25l", b'{"name":"one","chunks":8}', {"Nats-Rollup": "sub"})
    add(at.near, copy, mirror=origin(name, at.far_domain))
    caught_up(at.near, copy, 9)
    found = [each.payload for each in contents(at.near, copy)]
    check(found[:8] == chunks and found[8].startswith(b'{"name":"one"'), "the copy is another object")


def stands_in(at: Domains):
    """Direct reads of the origin are answered by its mirror, even if the mirror does not allow direct reads of
    itself."""
    name, copy, subject = at.name("READ"), at.name("READER"), f"read.{at.far_domain}"
    add(at.far, name, subjects=[subject])
    fill(at.far, subject, 0, 3)
    add(at.near, copy, mirror=origin(name, at.far_domain), mirror_direct=True)
    caught_up(at.near, copy, 3)
    found = answered(at.near, f"$JS.API.DIRECT.GET.{name}.{subject}")
    equal((found.payload, found.header("Nats-Stream")), (b"2", copy), "the last record, and who tells of it")
    equal(at.near.ask(f"$JS.API.DIRECT.GET.{copy}.{subject}").status, 503, "by its own name")


def mirrored_by_time(at: Domains):
    name, subject = at.name("TIMED"), f"timed.{at.far_domain}"
    add(at.far, name, subjects=[subject])
    fill(at.far, subject, 0, 10)
    time.sleep(0.01)
    begins = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    time.sleep(0.01)
    fill(at.far, subject, 10, 10)
    for kind, config in (("MIRROR", "mirror"), ("SOURCE", "sources")):
        copy = at.name(f"SINCE_{kind}")
        taken = origin(name, at.far_domain, opt_start_time=begins)
        add(at.near, copy, **{config: taken if config == "mirror" else [taken]})
        until(lambda copy=copy: state(at.near, copy)["messages"] == 10, f"{kind}: not all of them came")
        each_once(contents(at.near, copy), numbers(10, 10))


def promoted(at: Domains):
    """A mirror that becomes an ordinary stream continues its sequences."""
    name, copy, subject = at.name("OLD"), at.name("NEW"), f"old.{at.far_domain}"
    add(at.far, name, subjects=[subject])
    fill(at.far, subject, 0, 20)
    add(at.near, copy, mirror=origin(name, at.far_domain))
    caught_up(at.near, copy, 20)
    config = {"name": copy, "storage": "file", "num_replicas": 1, "subjects": [f"new.{at.far_domain}"]}
    api(at.near, f"STREAM.UPDATE.{copy}", config)
    fill(at.far, subject, 20, 5)
    fill(at.near, f"new.{at.far_domain}", 100, 5)
    each_once(contents(at.near, copy), numbers(0, 20) + numbers(100, 5))


def purged(at: Domains):
    """Records that are purged at the origin stay in the mirror, and later records have the origin's sequences."""
    name, copy, subject = at.name("PURGED"), at.name("KEPT"), f"purged.{at.far_domain}"
    add(at.far, name, subjects=[subject])
    fill(at.far, subject, 0, 10)
    add(at.near, copy, mirror=origin(name, at.far_domain))
    caught_up(at.near, copy, 10)
    api(at.far, f"STREAM.PURGE.{name}")
    fill(at.far, subject, 10, 10)
    api(at.far, f"STREAM.MSG.DELETE.{name}", {"seq": 15})
    caught_up(at.near, copy, 20)
    records = contents(at.near, copy)
    each_once([each for each in records if each.sequence != 15], numbers(0, 14) + numbers(15, 5))


CASES = {
    "domains": domains,
    "domains are apart": apart,
    "a stream made and filled from the other domain": published_from_there,
    "a consumer used from the other domain": consumed_from_there,
    "a bucket used from the other domain": bucket,
    "a mirror": mirrored,
    "a mirror from a number, of some, under other names": mirrored_from,
    "sources": sourced,
    "a mirror of a bucket": bucket_mirrored,
    "a mirror of an object store": object_mirrored,
    "a mirror stands in for its origin": stands_in,
    "copies from a time on": mirrored_by_time,
    "a mirror is promoted": promoted,
    "a mirror of what was purged": purged,
}
