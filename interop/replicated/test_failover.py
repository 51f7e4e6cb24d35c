"""A stream with three replicas while its servers fail: nothing acknowledged is lost, and nothing is stored twice."""

import asyncio
import base64
import signal

import pytest

from harness.checks import check, equal, until
from harness.client import Client
from replicated.load import Load
from replicated.servers import HEAL_SECONDS_MAX, Cluster, answer
from replicated.trouble import TROUBLE

UNAVAILABLE = 10008
# Attempts to publish without a majority, and their time limit.
ATTEMPTS, ATTEMPT_SECONDS = 5, 1


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble(cluster: Cluster, record_property, name: str):
    judge(cluster, record_property, Load(cluster, f"T{list(TROUBLE).index(name)}"), TROUBLE[name])


def judge(cluster: Cluster, record_property, load: Load, trouble):
    load.create()
    try:
        asyncio.run(load.run(trouble))
    finally:
        record_property(load.stream, load.summary())
    problems = load.problems()
    if not problems:
        problems = load.problems_under_another_leader()
    if cluster.is_reference:
        record_property(f"{load.stream}: problems of nats-server", problems[:5])
    else:
        equal(problems[:20], [], f"the first of {len(problems)} problems; {load.summary()}")


def test_loss_is_found(cluster: Cluster):
    """A message that is deleted while the load runs is what a lost message looks like."""
    load = Load(cluster, "PLANTED")
    load.create()

    def trouble(load: Load):
        load.further()
        with Client(cluster.nodes[0].port) as client:
            found = answer(client, f"STREAM.MSG.DELETE.{load.stream}", {"seq": 50})
            check(found and found.get("success"), f"the deletion: {found}")

    asyncio.run(load.run(trouble))
    problems = load.problems()
    check(any("is acknowledged as 50, which holds nothing" in problem for problem in problems), f"problems: {problems}")


@pytest.mark.parametrize("is_leader_left", [True, False])
def test_one_of_three_is_not_enough(cluster: Cluster, is_leader_left: bool):
    """The last server confirms nothing, also if it has led the stream. With a second one the stream goes on."""
    name = f"ALONE{is_leader_left}"
    nodes = cluster.nodes
    with Client(nodes[0].port) as client:
        config = {"name": name, "subjects": [name], "num_replicas": 3}
        found = answer(client, f"STREAM.CREATE.{name}", config)
        check(found and "error" not in found, f"the creation: {found}")
    cluster.until_current(name)
    leader = cluster.leader(name)
    left = leader if is_leader_left else next(node for node in nodes if node is not leader)
    ended = [node for node in nodes if node is not left]
    with Client(left.port) as client:
        sequence = 0
        for number in range(10):
            sequence = publish(client, name, f"before-{number}").get("seq") or sequence
        equal(sequence, 10, "the sequence")
        for node in ended:
            node.server.signal(signal.SIGKILL)
        for node in ended:
            node.server.wait()
        for number in range(ATTEMPTS):
            found = publish(client, name, f"alone-{number}")
            check("error" in found or not found, f"a message is acknowledged without a majority: {found}")
        found = answer(client, f"STREAM.INFO.{name}")
        code = (found or {}).get("error", {}).get("err_code")
        # A leader of nats-server answers until it notices that it is alone.
        is_answered = found is not None and code is None and cluster.is_reference
        check(found is None or code == UNAVAILABLE or is_answered, f"the answer without a majority: {found}")
        created = answer(client, "STREAM.CREATE.NEW", {"name": "NEW", "subjects": ["new"], "num_replicas": 3})
        check(created is None or "error" in created, f"a stream is created without a majority: {created}")
        ended[0].start()
        cluster.leader(name, ended[1])
        until_stored(client, name, "two")
        ended[1].start()
        cluster.until_whole()
        cluster.until_current(name)
        last = until_stored(client, name, "three")
        stored = [id_at(client, name, at) for at in range(1, last + 1)]
        equal(stored[:10], [f"before-{number}" for number in range(10)], "the first messages")
        equal(stored[-2:], ["two", "three"], "the last messages")
        # Without an acknowledgement a message may be stored, once.
        between = stored[10:-2]
        check(set(between) <= {f"alone-{number}" for number in range(ATTEMPTS)}, f"stored meanwhile: {between}")
        equal(len(set(between)), len(between), "different messages")


def publish(client: Client, subject: str, id: str) -> dict:
    """Returns the acknowledgement, or an error, or nothing if there is no answer."""
    try:
        found = client.ask(subject, b"x", {"Nats-Msg-Id": id}, ATTEMPT_SECONDS)
    except TimeoutError:
        return {}
    return {} if found.status == 503 else found.json()


def until_stored(client: Client, subject: str, id: str) -> int:
    return until(lambda: publish(client, subject, id).get("seq"), f"{id} is not acknowledged", HEAL_SECONDS_MAX)


def id_at(client: Client, stream: str, sequence: int) -> str:
    found = answer(client, f"STREAM.MSG.GET.{stream}", {"seq": sequence})
    headers = base64.b64decode(found["message"]["hdrs"]).decode()
    return headers.split("Nats-Msg-Id:")[1].split("\r\n")[0].strip()
