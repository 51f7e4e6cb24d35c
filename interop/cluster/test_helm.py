"""Servers under test in place of nats-server in the StatefulSet of its Helm chart, whose configuration, environment,
arguments, probes, and stop command they get unchanged."""

import contextlib
import json
import os

import pytest

from config import helm
from harness import network
from harness.certificates import self_signed
from harness.checks import check, equal, until
from harness.client import Client, request_api, settle
from harness.server import reference_server, server_under_test
from leaf.stage import Stage

from .pods import Pod
from .shapes import until_meshed

CONFIG = "/etc/nats-config/nats.conf"
PROBES = ["healthz", "healthz?js-server-only=true", "healthz?js-enabled-only=true"]

pytestmark = pytest.mark.skipif(not network.is_available, reason="namespaces need root, and the tools of util-linux and iproute2")


def pods(stage: Stage, text: str, kinds: str) -> list[Pod]:
    """Returns the pods of a release, each with a server under test or a nats-server."""
    hosts = stage.enter_context(network.Network())
    made = []
    for name, kind in zip(helm.PODS, kinds):
        binary = server_under_test() if kind == "t" else reference_server()
        pod = Pod(stage.folder, hosts.host(name), binary, helm.environment(name))
        stage.callback(pod.close)
        for file, content in {"nats.conf": text, **helm.FILES}.items():
            pod.write(f"/etc/nats-config/{file}", content)
        made.append(pod)
    names = [f"{pod.host.address} {' '.join(helm.hosts(pod.name))}\n" for pod in made]
    certificate, key = self_signed(stage.folder, "tls", ",".join(f"DNS:{pod}.nats-headless" for pod in helm.PODS))
    for pod in made:
        pod.write("/etc/hosts", "".join(["127.0.0.1 localhost\n", *names]))
        pod.write("/etc/nsswitch.conf", "hosts: files\n")
        for name, path in [("tls.crt", certificate), ("ca.crt", certificate), ("tls.key", key)]:
            with open(path, encoding="utf-8") as file:
                pod.write(f"{helm.CERTIFICATES}/{name}", file.read())
    return made


def started(stage: Stage, text: str, kinds: str) -> list[Pod]:
    nodes = pods(stage, text, kinds)
    for pod in nodes:
        done = pod.run("nats-server", "-t", "--config", CONFIG)
        equal(done.returncode, 0, f"the exit code of -t ({done.stdout}{done.stderr})")
        pod.start("nats-server", "--config", CONFIG)
    for pod in nodes:
        for probe in PROBES:
            pod.until_ok(probe)
    until_meshed(nodes)
    return nodes


def stops_and_starts(pod: Pod, nodes: list[Pod]):
    """The stop command of the StatefulSet ends the server, and a new one joins the cluster."""
    with open(pod.root + helm.PID_FILE, encoding="utf-8") as file:
        equal(int(file.read()), pod.process.pid, "the process in the pid file")
    done = pod.run("nats-server", f"-sl=ldm={helm.PID_FILE}")
    equal(done.returncode, 0, f"the exit code of the signal ({done.stdout}{done.stderr})")
    pod.wait()
    check("lame duck" in pod.log().lower(), pod.log())
    pod.start("nats-server", "--config", CONFIG)
    pod.until_ok(PROBES[0])
    until_meshed(nodes)


def each_to_each(stage: contextlib.ExitStack, nodes: list[Pod]) -> list[Client]:
    clients = [stage.enter_context(pod.client()) for pod in nodes]
    for one in clients:
        for other in clients:
            if one is not other:
                settle(one, other)
    return clients


@pytest.mark.parametrize("kinds", ["ttt", "trt"])
@pytest.mark.parametrize("name", helm.WITHOUT_JETSTREAM)
def test_cluster(name, kinds):
    with Stage() as stage:
        nodes = started(stage, helm.WITHOUT_JETSTREAM[name], kinds)
        equal([pod.monitor("varz")["server_name"] for pod in nodes], helm.PODS, "the names")
        with contextlib.ExitStack() as clients:
            each_to_each(clients, nodes)
        stops_and_starts(nodes[-1], nodes)
        with contextlib.ExitStack() as clients:
            each_to_each(clients, nodes)


@pytest.mark.parametrize("name", helm.WITH_JETSTREAM)
def test_cluster_with_jetstream(name):
    """A stream that one pod's client creates is used from all, and still there after a restart of its server."""
    with Stage() as stage:
        nodes = started(stage, helm.WITH_JETSTREAM[name], "ttt")
        with contextlib.ExitStack() as stack:
            first, *others = clients = each_to_each(stack, nodes)
            config = {"name": "ORDERS", "subjects": ["orders.*"]}
            created = until(lambda: answered(first, "STREAM.CREATE.ORDERS", config), "the stream is not created", 60)
            owner = next(pod for pod in nodes if pod.name == created["cluster"]["leader"])
            for client in clients:
                until(lambda of=client: of.ask("orders.new", b"1").status == 0, "the stream is not known")
            equal(request_api(others[-1], "STREAM.INFO.ORDERS")["state"]["messages"], len(nodes), "stored messages")
        check(os.path.isdir(os.path.join(owner.root, "data", "jetstream")), "nothing is stored below store_dir")
        stops_and_starts(owner, nodes)
        with owner.client() as client:
            found = until(lambda: answered(client, "STREAM.INFO.ORDERS"), "the stream does not come back", 60)
            equal(found["state"]["messages"], len(nodes), "messages after the restart")


def answered(client: Client, name: str, body: dict | None = None) -> dict | None:
    """Returns a response without an error; `None` if there is none yet."""
    found = client.ask(f"$JS.API.{name}", json.dumps(body or {}).encode())
    return None if found.status or "error" in found.json() else found.json()
