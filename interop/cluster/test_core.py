"""Clients of a server without JetStream, in a cluster whose servers under test have it: they create, list, change, and
delete streams, buckets, and object stores like clients of the other servers."""

import asyncio
import json
import os
import subprocess

import pytest
from nats.js.errors import BucketNotFoundError, NotFoundError

from harness.checks import check, equal
from harness.client import request_api, settle
from leaf.stage import Node, Stage
from python import test_streams
from python.peers import SECONDS_MAX, connect

from .shapes import block, made, until_meshed
from .test_jetstream import patient, when_responders  # noqa: F401
from .test_streams import remove_all

JETSTREAM_SERVERS = 3
ACCOUNTS = """
accounts {
  A { jetstream: enabled, users: [ { user: a, password: a } ] }
  B { users: [ { user: b, password: b } ] }
  $SYS { users: [ { user: sys, password: sys } ] }
}
"""
NOT_FOUND = 10059


def started(stage: Stage, kinds: str, more: str = "", domain: str = "") -> list[Node]:
    """Starts servers, of which the last one has no JetStream."""
    nodes = made(stage, kinds)
    for node in nodes:
        node.write(block(node, nodes), more, node.jetstream(domain) if node in nodes[:JETSTREAM_SERVERS] else "")
        node.start()
    until_meshed(nodes)
    # Then the last server knows that the others answer requests.
    with nodes[-1].client("a", "a") as client:
        for node in nodes[:JETSTREAM_SERVERS]:
            with node.client("a", "a") as other:
                settle(other, client)
    return nodes


# The last server is one under test, or a nats-server.
@pytest.fixture(scope="module", params=["tttt", "tttr"])
def nodes(request):
    with Stage() as stage:
        yield started(stage, request.param)


@pytest.mark.parametrize("case", test_streams.CASES)
async def test_client(patient, nodes, case):  # noqa: F811
    client = await connect(nodes[-1])
    await case(client, client.jetstream(timeout=SECONDS_MAX))
    await client.close()


async def test_creation_is_known_at_once(nodes):
    """The creator's server knows the stream when it passes the answer on, whichever server has the stream."""
    client = await connect(nodes[-1])
    jetstream = client.jetstream(timeout=SECONDS_MAX)
    await remove_all(jetstream)
    leaders = set()
    for number in range(20):
        name = f"NEW{number}"
        leaders.add((await jetstream.add_stream(name=name, subjects=[f"new.{number}"])).cluster.leader)
        equal((await jetstream.publish(f"new.{number}", b"1")).seq, 1, "the sequence")
        await jetstream.subscribe(f"new.{number}", stream=name, durable="durable")
        equal((await jetstream.stream_info(name)).state.consumer_count, 1, "the consumers")
    check(len(leaders) > 1, f"all streams are on {leaders}")
    names = sorted([info.config.name for info in await jetstream.streams_info()])
    equal(names, sorted(f"NEW{number}" for number in range(20)), "the list")
    for name in names:
        check(await jetstream.delete_stream(name), name)
        with pytest.raises(NotFoundError):
            await jetstream.stream_info(name)
    await client.close()


async def test_what_does_not_exist_is_not_found(nodes):
    client = await connect(nodes[-1])
    jetstream = client.jetstream(timeout=SECONDS_MAX)
    for request in [
        lambda: jetstream.stream_info("NONE"),
        lambda: jetstream.consumer_info("NONE", "c"),
        lambda: jetstream.delete_stream("NONE"),
        lambda: jetstream.object_store("none"),
    ]:
        with pytest.raises(NotFoundError):
            await request()
    with pytest.raises(BucketNotFoundError):
        await jetstream.key_value("none")
    await client.close()


def test_requests_are_answered_once(nodes):
    with nodes[-1].client() as client:
        answers = client.subscribe("answers.*")
        config = json.dumps({"name": "ONCE", "subjects": ["once"], "storage": "memory"}).encode()
        requests = ["STREAM.CREATE.ONCE", "STREAM.INFO.ONCE", "STREAM.NAMES", "STREAM.LIST", "INFO", "STREAM.INFO.NONE"]
        # Another server than that of the stream may learn of the deletion before it learns that it need not answer.
        for part in (requests, ["STREAM.CREATE.ONCE", "STREAM.DELETE.ONCE"], ["STREAM.CREATE.ONCE", "STREAM.DELETE.ONCE"]):
            for at, request in enumerate(part):
                client.publish(f"$JS.API.{request}", config if "CREATE" in request else b"", f"answers.{at}")
                equal(client.next(answers).subject, f"answers.{at}", "the answer")
            equal(client.quiet(answers), [], f"further answers to {part}")
        equal(request_api(client, "STREAM.NAMES")["streams"], None, "the streams at the end")


async def test_streams_of_all_servers_are_listed(nodes):
    clients = [await connect(node) for node in nodes]
    streams = [client.jetstream(timeout=SECONDS_MAX) for client in clients]
    await remove_all(streams[-1])
    for at, jetstream in enumerate(streams):
        await jetstream.add_stream(name=f"LIST{at}", subjects=[f"list{at}"])
    for jetstream in streams:
        equal(sorted(info.config.name for info in await jetstream.streams_info()), [f"LIST{at}" for at in range(4)], "names")
    for at in range(len(nodes)):
        await when_responders(lambda of=at: streams[-1].delete_stream(f"LIST{of}"))
    await asyncio.gather(*(client.close() for client in clients))


async def test_tool(nodes, tmp_path):
    """The `nats` command against the server without JetStream."""
    client = await connect(nodes[-1])
    await remove_all(client.jetstream(timeout=SECONDS_MAX))
    await client.close()
    environment = os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}

    def nats(*arguments: str) -> str:
        command = [os.environ["NATS_CLI"], "--server", f"nats://127.0.0.1:{nodes[-1].port}", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX)
        equal(done.returncode, 0, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    nats("stream", "add", "TOOL", "--subjects=tool.>", "--defaults")
    nats("publish", "tool.a", "hello", "--jetstream")
    nats("consumer", "add", "TOOL", "c", "--pull", "--defaults")
    check("hello" in nats("consumer", "next", "TOOL", "c"), "no message")
    equal(nats("stream", "ls", "--names").split(), ["TOOL"], "the names")
    check("TOOL" in nats("stream", "report"), "no report")
    nats("stream", "edit", "TOOL", "--subjects=tool.>,more.>", "--force")
    nats("kv", "add", "bucket")
    nats("kv", "put", "bucket", "key", "value")
    equal(nats("kv", "get", "bucket", "key", "--raw").strip(), "value", "the value")
    equal(nats("kv", "ls", "bucket").split(), ["key"], "the keys")
    nats("object", "add", "files")
    (tmp_path / "file").write_text("content" * 100_000)
    nats("object", "put", "files", str(tmp_path / "file"), "--name=file", "--force", "--no-progress")
    nats("object", "get", "files", "file", f"--output={tmp_path / 'copy'}", "--force", "--no-progress")
    equal((tmp_path / "copy").read_text(), (tmp_path / "file").read_text(), "the object")
    check("bucket" in nats("kv", "ls") and "files" in nats("object", "ls"), "the lists of buckets")
    nats("kv", "del", "bucket", "--force")
    nats("object", "del", "files", "--force")
    nats("stream", "rm", "TOOL", "--force")
    equal(nats("stream", "ls", "--names", "--all").split(), [], "the names at the end")


@pytest.mark.parametrize("last", ["t", "r"])
def test_accounts_and_domains(last):
    """Each account has its own streams, and one without JetStream has none. Requests may name the domain."""
    with Stage() as stage:
        nodes = started(stage, "ttt" + last, ACCOUNTS, domain="hub")
        with nodes[-1].client("a", "a") as client, nodes[-1].client("b", "b") as other:
            created = request_api(client, "STREAM.CREATE.MINE", {"name": "MINE", "subjects": ["mine"]})
            check("error" not in created, created)
            equal(request_api(client, "STREAM.NAMES")["streams"], ["MINE"], "the streams of the account")
            equal(client.ask("$JS.hub.API.STREAM.NAMES").json()["streams"], ["MINE"], "the same by the domain")
            equal(client.ask("$JS.hub.API.STREAM.INFO.NONE").json()["error"]["err_code"], NOT_FOUND, "the code")
            equal(other.ask("$JS.API.STREAM.NAMES").status, 503, "of an account without JetStream")
