"""Faults of the network between the servers of a cluster, each on a host of its own: hosts that are cut off, links that
lose the packets of one direction, and slow links. Afterwards, each server must know exactly the interest that clients
have at the others, and messages must arrive once."""

import random

import pytest

from harness import network
from harness.checks import check, equal, until
from harness.client import Client, settle
from harness.server import reference_server, server_under_test
from leaf.stage import Stage

from .pods import Pod
from .shapes import until_meshed

CONFIG = "/etc/nats.conf"
PORT, CLUSTER_PORT, HTTP_PORT = 4222, 6222, 8222
# A server notices within this time that a peer is silent, and dials it again.
HEAL_SECONDS_MAX = 60
SUBJECTS = [f"churn.{number}" for number in range(40)]
ROUNDS = 4

pytestmark = pytest.mark.skipif(not network.is_available, reason="namespaces need root, and the tools of util-linux and iproute2")


def started(stage: Stage, kinds: str) -> tuple[list[network.Host], list[Pod]]:
    hosts = stage.enter_context(network.Network())
    pods = []
    for number, kind in enumerate(kinds, 1):
        binary = server_under_test() if kind == "t" else reference_server()
        pod = Pod(stage.folder, hosts.host(f"node-{number}"), binary, {})
        stage.callback(pod.close)
        pods.append(pod)
    routes = ", ".join(f'"nats://{pod.host.address}:{CLUSTER_PORT}"' for pod in pods)
    for pod in pods:
        pod.write(CONFIG, f"""
server_name: {pod.name}
port: {PORT}
http_port: {HTTP_PORT}
cluster {{
  name: east, port: {CLUSTER_PORT}, routes: [{routes}]
  # Silent peers are found soon.
  ping_interval: "1s", ping_max: 2, write_deadline: "2s"
}}
""")
        pod.start("nats-server", "-c", CONFIG)
    for pod in pods:
        pod.until_ok("healthz")
    until_meshed(pods)
    return hosts.hosts, pods


def is_unwanted(client: Client, subject: str) -> bool:
    """Returns whether a request has no responders."""
    try:
        return client.ask(subject, seconds=1).status == 503
    except TimeoutError:
        return False


class Interest:
    """The clients of each server, which subscribe and unsubscribe at random."""

    def __init__(self, stage: Stage, pods: list[Pod], seed: int):
        self.pods, self.random = pods, random.Random(seed)
        self.clients = [stage.enter_context(pod.client()) for pod in pods]
        self.held: list[dict[str, int]] = [{} for _ in pods]

    def churn(self, count: int):
        for _ in range(count):
            at = self.random.randrange(len(self.pods))
            client, held, subject = self.clients[at], self.held[at], self.random.choice(SUBJECTS)
            if subject in held:
                client.unsubscribe(held.pop(subject))
            else:
                held[subject] = client.subscribe(subject)
        for client in self.clients:
            client.flush()

    def check(self):
        """Waits until each server knows what clients of the others hold: a message from any server reaches each holder
        once, and without a holder there are no responders."""
        for publisher in self.clients:
            for subject in SUBJECTS:
                self.check_subject(publisher, subject)
        for client, held in zip(self.clients, self.held):
            client.flush()
            for number in held.values():
                check(b"once" not in [message.payload for message in client.queues[number]], "it arrives more than once")

    def check_subject(self, publisher: Client, subject: str):
        holders = [(client, held[subject]) for client, held in zip(self.clients, self.held) if subject in held]
        if not holders:
            return until(lambda: is_unwanted(publisher, subject), f"stale interest in {subject}", HEAL_SECONDS_MAX)
        for client, number in holders:
            # A server may not know the holder yet.
            attempts = iter(range(HEAL_SECONDS_MAX * 10))
            while not self.arrives(publisher, subject, (client, number)):
                check(next(attempts, None) is not None, f"nobody receives {subject}")
        publisher.publish(subject, b"once")
        for client, number in holders:
            # Probes may arrive before it.
            while client.next(number).payload != b"once":
                pass

    @staticmethod
    def arrives(publisher: Client, subject: str, holder: tuple[Client, int]) -> bool:
        client, number = holder
        publisher.publish(subject, b"probe")
        publisher.flush()
        try:
            client.next(number, 0.1)
        except TimeoutError:
            return False
        return True

    def release(self):
        """Ends all subscriptions."""
        for client, held in zip(self.clients, self.held):
            for number in held.values():
                client.unsubscribe(number)
            held.clear()
            client.flush()


def cut(hosts: list[network.Host]):
    """The first host reaches nobody."""
    hosts[0].cut()
    return hosts[0].restore


def lose_one_way(hosts: list[network.Host]):
    """The second host does not receive what the first one sends, but not the other way round."""
    hosts[0].lose(hosts[1])
    return lambda: hosts[0].find(hosts[1])


def lose_answers(hosts: list[network.Host]):
    hosts[1].lose(hosts[0])
    return lambda: hosts[1].find(hosts[0])


def slow(hosts: list[network.Host]):
    """The first host sends 20 KB in a second."""
    hosts[0].slow("160kbit")
    return hosts[0].fast


FAULTS = [cut, lose_one_way, lose_answers, slow]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kinds", ["ttt", "trt"])
def test_interest_after_faults(kinds, fault):
    """Every other fault lasts until a server has lost a peer, unless the link is only slow."""
    with Stage() as stage:
        hosts, pods = started(stage, kinds)
        interest = Interest(stage, pods, seed=len(kinds))
        interest.churn(200)
        interest.check()
        for number in range(ROUNDS):
            heal = fault(hosts)
            interest.churn(200)
            if number % 2 and fault is not slow:
                until(lambda: any(len(peers_of(pod)) < len(pods) - 1 for pod in pods), "no route is lost", HEAL_SECONDS_MAX)
                interest.churn(50)
            heal()
            interest.churn(50)
            until_meshed(pods)
            interest.check()
        interest.release()
        interest.check()


def test_silent_peer_is_lost_and_found():
    """While a host is cut off, the others lose its interest; its clients are served again afterwards."""
    with Stage() as stage:
        hosts, pods = started(stage, "ttt")
        with pods[0].client() as lost, pods[1].client() as publisher, pods[2].client() as other:
            numbers = [client.subscribe("news") for client in (lost, other)]
            settle(lost, publisher)
            settle(other, publisher)
            hosts[0].cut()
            until(lambda: "node-1" not in peers_of(pods[1]), lambda: f"the route remains: {pods[1].log()}", HEAL_SECONDS_MAX)
            publisher.publish("news", b"while it is away")
            equal(other.next(numbers[1]).payload, b"while it is away", "the message to the others")
            hosts[0].restore()
            until_meshed(pods)
            settle(lost, publisher)
            publisher.publish("news", b"again")
            equal(lost.next(numbers[0]).payload, b"again", "the message after the fault")
            equal(other.next(numbers[1]).payload, b"again", "the message to the others after the fault")


def peers_of(pod: Pod) -> set[str]:
    return {route["remote_name"] for route in pod.monitor("routez")["routes"]}


def test_slow_peer_delays_nobody_else():
    """A host with a slow link gets its messages late. The other hosts get theirs at once, and all of them."""
    with Stage() as stage:
        hosts, pods = started(stage, "ttt")
        with pods[0].client() as publisher, pods[1].client() as behind, pods[2].client() as ahead:
            slow_number, number = behind.subscribe("slow"), ahead.subscribe("fast")
            settle(behind, publisher)
            settle(ahead, publisher)
            hosts[1].cut()
            publisher.publish_all("slow", [b"x" * 10_000] * 200)
            for part in range(50):
                publisher.publish("fast", b"%d" % part)
                equal(ahead.next(number).payload, b"%d" % part, "a message to a host that can be reached")
            check(not behind.queues[slow_number], "a message crossed a cut")
