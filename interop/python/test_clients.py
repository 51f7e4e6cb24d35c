"""The official Python client, nats-py, with the server under test."""

import asyncio
import os
import signal

import nats
import pytest
from nats.errors import MaxPayloadError, NoRespondersError

from harness.checks import check, equal
from harness.server import Server, server_under_test
from python.peers import SECONDS_MAX, connect, flush, pair, take


@pytest.fixture(scope="module")
def server():
    with Server(server_under_test()) as server:
        yield server


async def test_publish_subscribe(server):
    sender, receiver = await pair(server)
    subscription = await receiver.subscribe("py.plain")
    await flush(receiver)
    for number in range(2000):
        await sender.publish("py.plain", b"%d" % number)
    found = [message.data for message in await take(subscription, 2000)]
    equal(found, [b"%d" % number for number in range(2000)], "payloads in order")
    await sender.publish("py.plain", b"")
    await sender.publish("py.plain", bytes(range(256)))
    found = [message.data for message in await take(subscription, 2)]
    equal(found, [b"", bytes(range(256))], "empty and binary payloads")
    await sender.close()
    await receiver.close()


async def test_wildcards(server):
    sender, receiver = await pair(server)
    star = await receiver.subscribe("py.*.c")
    tail = await receiver.subscribe("py.>")
    await flush(receiver)
    subjects = ["py.b.c", "py.b.d", "py.b.c.d", "py", "py.x.c", "px.b.c", "py.c", "py.end.c"]
    for subject in subjects:
        await sender.publish(subject, b"")
    await flush(sender)
    found = [message.subject for message in await take(star, 3)]
    equal(found, ["py.b.c", "py.x.c", "py.end.c"], "heard by py.*.c")
    found = [message.subject for message in await take(tail, 6)]
    equal(found, ["py.b.c", "py.b.d", "py.b.c.d", "py.x.c", "py.c", "py.end.c"], "heard by py.>")
    await sender.close()
    await receiver.close()


async def test_queue_group(server):
    sender = await connect(server)
    members = [await connect(server) for _ in range(4)]
    heard = [[] for _ in members]
    all_heard = asyncio.Event()
    total = 1200

    def listener(mine):
        async def listen(message):
            mine.append(int(message.data))
            if sum(map(len, heard)) >= total:
                all_heard.set()

        return listen

    for member, mine in zip(members, heard):
        await member.subscribe("py.work", queue="workers", cb=listener(mine))
        await flush(member)
    plain = await sender.subscribe("py.work")
    for number in range(total):
        await sender.publish("py.work", b"%d" % number)
    await asyncio.wait_for(all_heard.wait(), SECONDS_MAX)
    await flush(sender)
    for member in members:
        await flush(member)
    equal(sorted(sum(heard, [])), list(range(total)), "messages over all members")
    check(all(heard), f"a member got nothing: {[len(mine) for mine in heard]}")
    equal([int(message.data) for message in await take(plain, total)], list(range(total)), "the plain one")
    for client in (sender, *members):
        await client.close()


async def test_request_reply(server):
    asker, answerer = await pair(server)

    async def answer(message):
        await message.respond(message.data + b"!")

    await answerer.subscribe("py.ask", cb=answer)
    await flush(answerer)
    for number in range(200):
        found = await asker.request("py.ask", b"%d" % number, timeout=SECONDS_MAX)
        equal(found.data, b"%d!" % number, "answer")
    found = await asyncio.gather(*(asker.request("py.ask", b"%d" % n, timeout=SECONDS_MAX) for n in range(200)))
    equal([message.data for message in found], [b"%d!" % n for n in range(200)], "answers at once")
    await asker.close()
    await answerer.close()


async def test_no_responders(server):
    client = await connect(server)
    with pytest.raises(NoRespondersError):
        await client.request("py.nobody", b"", timeout=SECONDS_MAX)
    await client.close()


async def test_headers(server):
    sender, receiver = await pair(server)

    async def answer(message):
        await receiver.publish(message.reply, b"back", headers={"Echo": message.headers["Kind"]})

    await receiver.subscribe("py.headers", cb=answer)
    await flush(receiver)
    found = await sender.request("py.headers", b"there", timeout=SECONDS_MAX, headers={"Kind": "a: b", "X-Other": "ü"})
    equal((found.data, found.headers.get("Echo")), (b"back", "a: b"), "answer and its header")
    subscription = await receiver.subscribe("py.headers.only")
    await flush(receiver)
    await sender.publish("py.headers.only", b"", headers={"A": "1"})
    message = (await take(subscription, 1))[0]
    equal((message.data, message.headers), (b"", {"A": "1"}), "headers without a payload")
    await sender.close()
    await receiver.close()


async def test_headers_to_one_without(server):
    """A receiver whose CONNECT does not announce headers gets only the payload."""
    sender = await connect(server)
    receiver = nats.NATS()
    original = receiver._connect_command

    def without_headers() -> bytes:
        return original().replace(b'"headers": true', b'"headers": false').replace(b'"no_responders": true', b'"no_responders": false')

    receiver._connect_command = without_headers
    await receiver.connect(f"nats://127.0.0.1:{server.port}")
    check(b'"headers": false' in without_headers(), f"CONNECT still asks for headers: {without_headers()}")
    subscription = await receiver.subscribe("py.strip")
    await flush(receiver)
    await sender.publish("py.strip", b"payload", headers={"A": "1"})
    message = (await take(subscription, 1))[0]
    equal((message.data, message.headers), (b"payload", None), "what is left")
    await sender.close()
    await receiver.close()


async def test_drain(server):
    sender, receiver = await pair(server)
    heard = []

    async def listen(message):
        await asyncio.sleep(0)
        heard.append(int(message.data))

    subscription = await receiver.subscribe("py.drain", cb=listen)
    await flush(receiver)
    for number in range(1000):
        await sender.publish("py.drain", b"%d" % number)
    await flush(sender)
    await subscription.drain()
    equal(len(heard), 1000, "heard by a drained subscription")
    equal(heard == list(range(1000)), True, "in order")
    await sender.publish("py.drain", b"1000")
    await flush(sender)
    await flush(receiver)
    equal(len(heard), 1000, "messages after the drain")

    other = await receiver.subscribe("py.drain.all", cb=listen)
    await flush(receiver)
    for number in range(1000):
        await sender.publish("py.drain.all", b"%d" % number)
    await flush(sender)
    await receiver.drain()
    equal(len(heard), 2000, "heard by a drained connection too")
    check(receiver.is_closed and other is not None, "the drained connection is open")
    await sender.close()


async def test_reconnect(server):
    with Server(server_under_test()) as own:
        back = asyncio.Event()

        async def reconnected():
            back.set()

        sender = await connect(own, reconnect_time_wait=0.1, max_reconnect_attempts=200)
        receiver = await connect(
            own, reconnect_time_wait=0.1, max_reconnect_attempts=200, reconnected_cb=reconnected
        )
        subscription = await receiver.subscribe("py.again")
        in_queue = await receiver.subscribe("py.again.*", queue="q")
        await flush(receiver)
        for _ in range(2):
            back.clear()
            own.kill()
            own.start()
            await asyncio.wait_for(back.wait(), SECONDS_MAX)
            await flush(receiver)
            await flush(sender)
            await sender.publish("py.again", b"after")
            await sender.publish("py.again.x", b"after, in a queue")
            equal((await take(subscription, 1))[0].data, b"after", "heard after a restart")
            equal((await take(in_queue, 1))[0].data, b"after, in a queue", "heard after a restart")
        await sender.close()
        await receiver.close()


async def test_largest_payload(server):
    sender, receiver = await pair(server)
    equal(sender.max_payload, 1 << 20, "max_payload")
    subscription = await receiver.subscribe("py.large")
    await flush(receiver)
    payload = os.urandom(1 << 20)
    for _ in range(5):
        await sender.publish("py.large", payload)
        equal((await take(subscription, 1))[0].data == payload, True, "the same mebibyte")
    with pytest.raises(MaxPayloadError):
        await sender.publish("py.large", payload + b"x")
    await sender.close()
    await receiver.close()


async def test_payload_above_the_largest(server):
    """Disables the client's own check: the server must refuse the message and give the reason."""
    closed = asyncio.Event()

    async def close():
        closed.set()

    client = await connect(server, allow_reconnect=False, closed_cb=close)
    # Sends no payload. If it arrived at the closed socket, a reset could discard the server's error message.
    await client._send_command(b"PUB py.large 1048577\r\n")
    await client._flush_pending()
    await asyncio.wait_for(closed.wait(), SECONDS_MAX)
    check("maximum payload violation" in str(client.last_error).lower(), f"last error: {client.last_error!r}")


async def authorization(flags, good, bad):
    with Server(server_under_test(), *flags) as own:
        client = await connect(own, **good)
        subscription = await client.subscribe("py.auth")
        await client.publish("py.auth", b"in")
        equal((await take(subscription, 1))[0].data, b"in", "a message")
        await client.close()
        for options in (bad, {}):
            with pytest.raises(nats.errors.Error, match="(?i)authorization violation"):
                await connect(own, allow_reconnect=False, **options)


async def test_user_and_password(server):
    flags = ("--user", "alice", "--pass", "secret")
    await authorization(flags, {"user": "alice", "password": "secret"}, {"user": "alice", "password": "wrong"})


async def test_token(server):
    await authorization(("--auth", "s3cr3t"), {"token": "s3cr3t"}, {"token": "wrong"})


async def test_unsubscribe_after(server):
    sender, receiver = await pair(server)
    early, late = await receiver.subscribe("py.max"), await receiver.subscribe("py.max")
    every = await receiver.subscribe("py.max")
    await early.unsubscribe(limit=3)
    await flush(receiver)
    for number in range(2):
        await sender.publish("py.max", b"%d" % number)
    await flush(sender)
    await flush(receiver)
    await late.unsubscribe(limit=4)
    await flush(receiver)
    for number in range(2, 10):
        await sender.publish("py.max", b"%d" % number)
    await flush(sender)
    await flush(receiver)
    equal([int(message.data) for message in await take(every, 10)], list(range(10)), "heard without a limit")
    equal([int(m.data) for m in await take(early, 3)], [0, 1, 2], "limit set first")
    equal([int(m.data) for m in await take(late, 4)], [0, 1, 2, 3], "limit set after two")
    equal((early.pending_msgs, late.pending_msgs), (0, 0), "messages beyond the limit")
    await sender.close()
    await receiver.close()


async def test_echo_off(server):
    deaf, other = await connect(server, no_echo=True), await connect(server)
    own, others = await deaf.subscribe("py.echo"), await other.subscribe("py.echo")
    await flush(deaf)
    await flush(other)
    await deaf.publish("py.echo", b"mine")
    await flush(deaf)
    await other.publish("py.echo", b"yours")
    equal([m.data for m in await take(others, 2)], [b"mine", b"yours"], "heard by the other")
    equal([m.data for m in await take(own, 1)], [b"yours"], "heard by the one with echo off")
    await deaf.close()
    await other.close()


async def test_many_subscriptions(server):
    sender, receiver = await pair(server)
    total = 10_000
    heard = []
    done = asyncio.Event()

    async def listen(message):
        heard.append(message.subject)
        if message.subject == "py.done":
            done.set()

    subscriptions = [await receiver.subscribe(f"py.many.{n}", cb=listen) for n in range(total)]
    await receiver.subscribe("py.done", cb=listen)
    await flush(receiver)
    for round_ in range(2):
        heard.clear()
        done.clear()
        for n in range(total):
            await sender.publish(f"py.many.{n}", b"")
        await sender.publish("py.done", b"")
        await flush(sender)
        await asyncio.wait_for(done.wait(), SECONDS_MAX)
        await flush(receiver)
        # This client runs a task for each subscription, so their order relative to each other is up to the
        # client.
        wanted = [f"py.many.{n}" for n in range(total)] if round_ == 0 else []
        for _ in range(200):
            if len(heard) >= len(wanted) + 1:
                break
            await asyncio.sleep(0.02)
        equal(sorted(heard) == sorted(wanted + ["py.done"]), True, f"heard {len(heard)} in round {round_}, as wanted")
        if round_ == 0:
            for subscription in subscriptions:
                await subscription.unsubscribe()
            await flush(receiver)
    await sender.close()
    await receiver.close()


async def test_lame_duck(server):
    with Server(server_under_test()) as own:
        told = asyncio.Event()

        async def listen():
            told.set()

        client = await connect(own, lame_duck_mode_cb=listen)
        await flush(client)
        own.signal(signal.SIGUSR2)
        await asyncio.wait_for(told.wait(), SECONDS_MAX)
        subscription = await client.subscribe("py.lame")
        await client.publish("py.lame", b"still here")
        equal((await take(subscription, 1))[0].data, b"still here", "a message in lame duck")
        await client.close()


async def test_many_clients(server):
    """A hundred clients connect at once, and each receives from each."""
    clients = await asyncio.gather(*(connect(server) for _ in range(100)))
    subscriptions = [await client.subscribe("py.all") for client in clients]
    await asyncio.gather(*(flush(client) for client in clients))
    for number, client in enumerate(clients):
        await client.publish("py.all", b"%d" % number)
    for subscription in subscriptions:
        found = sorted(int(message.data) for message in await take(subscription, 100))
        equal(found, list(range(100)), "heard by one of them")
    await asyncio.gather(*(client.close() for client in clients))


async def test_verbose_and_pedantic(server):
    client = await connect(server, verbose=True, pedantic=True)
    subscription = await client.subscribe("py.verbose")
    await client.publish("py.verbose", b"hi")
    equal((await take(subscription, 1))[0].data, b"hi", "a message")
    await client.close()
