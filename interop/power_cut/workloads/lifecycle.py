"""Streams and consumers that are created, changed, and deleted."""

import asyncio

from nats.aio.client import Client

from power_cut.clients import SECONDS_MAX, Place, api, connected, parsed, payload, request, stored, stream_info
from power_cut.ledger import Broken, Ledger, Op, check
from power_cut.workloads import Workload, workload
from power_cut.workloads.limits import together


def possible(ops: list[Op]) -> set[str | None]:
    """Returns the versions that an object may have: that of the last acknowledged change, or of any later change
    that is in flight. None means that it may not exist."""
    granted = [op for op in ops if op.is_granted]
    found: set[str | None] = set() if granted else {None}
    for op in ops:
        is_last = bool(granted) and op is granted[-1]
        is_later = op.answer is None and (not granted or op.number > granted[-1].number)
        if is_last or is_later:
            found.add(None if op.what == "delete" else op.version)
    return found


class Changing(Workload):
    """Several named objects. One task for each creates, changes, and deletes it in turn."""

    NAMES = 4

    async def run(self, place: Place, ledger: Ledger):
        async with connected(place) as client:
            await self.prepare(client, ledger)
            await together(*(self.change(client, ledger, f"{self.name}-{n}") for n in range(self.NAMES)))

    async def prepare(self, client: Client, ledger: Ledger):
        pass

    async def change(self, client: Client, ledger: Ledger, name: str):
        raise NotImplementedError


@workload("streams")
class Streams(Changing):
    """A deleted stream does not come back, nor do its messages in a new stream of the same name."""

    async def change(self, client: Client, ledger: Ledger, name: str):
        is_there = await stream_info(client, name) is not None
        while True:
            version = str(len(ledger.ops))
            config = {
                "name": name,
                "subjects": [f"{name}.>"],
                "description": version,
                "allow_direct": True,
                "max_msgs": self.random.choice([-1, 50, 1000]),
            }
            about = {"name": name, "version": version}
            if not is_there:
                await api(client, ledger, "create", f"STREAM.CREATE.{name}", config, **about)
                is_there = True
            elif self.random.random() < 0.5:
                await api(client, ledger, "update", f"STREAM.UPDATE.{name}", config, **about)
            else:
                await api(client, ledger, "delete", f"STREAM.DELETE.{name}", name=name)
                is_there = False
                continue
            for _ in range(self.random.randrange(10)):
                op = ledger.begin("publish", name=name)
                answer = await client.request(f"{name}.x", payload(op.number, 50), timeout=SECONDS_MAX)
                op.finish(parsed(answer))

    async def check(self, place: Place, ops: list[Op]):
        async with connected(place) as client:
            for number in range(self.NAMES):
                name = f"{self.name}-{number}"
                await self.check_one(client, name, [op for op in ops if op.about.get("name") == name])

    async def check_one(self, client: Client, name: str, ops: list[Op]):
        changes = [op for op in ops if op.what != "publish"]
        may_be = possible(changes)
        info = await stream_info(client, name)
        found = info["config"]["description"] if info else None
        check(found in may_be, f"stream {name} is found as version {found}, may be {may_be}; {last(changes)}")
        if info is None:
            # The stream can be created again.
            answer = await request(client, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "subjects": [f"{name}.>"]})
            check("error" not in answer, f"stream {name} cannot be made again: {answer.get('error')}")
            check(answer["state"]["messages"] == 0, f"stream {name} is made again, with messages of another")
            return
        numbers = [message.number for message in await stored(client, name)]
        # The request that created this stream: the last creation up to the version found.
        born = [op.number for op in changes if op.what == "create" and op.number <= int(found)]
        begin = max(born, default=0)
        early = [number for number in numbers if number < begin]
        check(not early, f"stream {name}, made by request {begin}, has messages {early} of one that was deleted")
        # If no later deletion was requested, everything acknowledged since is there.
        wanted = [op.number for op in ops if op.what == "publish" and op.is_granted and op.number > begin]
        if not any(op.what == "delete" and op.number > begin for op in changes):
            # The stream may have had a limit of 50 messages.
            missing = sorted(set(wanted[-40:]) - set(numbers))
            check(not missing, f"stream {name} lacks acknowledged messages {missing[:5]}")


@workload("consumers")
class Consumers(Changing):
    """Durable consumers of one stream. Each change sets another description and filter."""

    async def prepare(self, client: Client, ledger: Ledger):
        config = {"name": self.name, "subjects": [f"{self.name}.>"], "allow_direct": True}
        if await stream_info(client, self.name) is None:
            await api(client, ledger, "make stream", f"STREAM.CREATE.{self.name}", config)
            for number in range(20):
                await client.request(f"{self.name}.{number % 3}", payload(number, 20), timeout=SECONDS_MAX)

    async def change(self, client: Client, ledger: Ledger, name: str):
        found = await request(client, f"$JS.API.CONSUMER.INFO.{self.name}.{name}")
        is_there = "error" not in found
        while True:
            await asyncio.sleep(0)
            version = str(len(ledger.ops))
            config = {
                "durable_name": name,
                "description": version,
                "ack_policy": "explicit",
                "filter_subject": f"{self.name}.{self.random.randrange(3)}",
            }
            body = {"stream_name": self.name, "config": config, "action": "update" if is_there else "create"}
            subject = f"CONSUMER.CREATE.{self.name}.{name}.{config['filter_subject']}"
            about = {"name": name, "version": version}
            if is_there and self.random.random() < 0.4:
                await api(client, ledger, "delete", f"CONSUMER.DELETE.{self.name}.{name}", name=name)
                is_there = False
            else:
                what = "update" if is_there else "create"
                await api(client, ledger, what, subject, body, **about)
                is_there = True

    async def check(self, place: Place, ops: list[Op]):
        async with connected(place) as client:
            if not any(op.is_granted for op in ops if op.what == "make stream"):
                return
            check(await stream_info(client, self.name), f"stream {self.name}, which was made, is not there")
            for number in range(self.NAMES):
                name = f"{self.name}-{number}"
                changes = [op for op in ops if op.about.get("name") == name]
                info = await request(client, f"$JS.API.CONSUMER.INFO.{self.name}.{name}")
                found = info["config"]["description"] if "error" not in info else None
                may_be = possible(changes)
                check(found in may_be, f"consumer {name} is found as version {found}, may be {may_be}; {last(changes)}")


def last(ops: list[Op]) -> str:
    return "the last requests: " + ", ".join(
        f"{op.what} {op.about.get('version', '')} {'granted' if op.is_granted else op.answer or 'in flight'}"
        for op in ops[-3:]
    )


@workload("pauses")
class Pauses(Changing):
    """Consumers that are paused and resumed. Both requests are acknowledged."""

    NAMES = 2

    async def prepare(self, client: Client, ledger: Ledger):
        config = {"name": self.name, "subjects": [f"{self.name}.>"], "allow_direct": True}
        if await stream_info(client, self.name) is None:
            await api(client, ledger, "make stream", f"STREAM.CREATE.{self.name}", config)

    async def change(self, client: Client, ledger: Ledger, name: str):
        body = {"stream_name": self.name, "config": {"durable_name": name, "ack_policy": "explicit"}}
        op = await api(client, ledger, "create", f"CONSUMER.CREATE.{self.name}.{name}", body, name=name, version="-")
        if op.is_refused:
            raise Broken(f"consumer {name} cannot be made: {op.answer}")
        while True:
            version = f"2040-01-01T00:00:{self.random.randrange(60):02}Z" if self.random.random() < 0.7 else "-"
            about = {"name": name, "version": version}
            body = {} if version == "-" else {"pause_until": version}
            await api(client, ledger, "pause", f"CONSUMER.PAUSE.{self.name}.{name}", body, **about)
            await asyncio.sleep(0.005)

    async def check(self, place: Place, ops: list[Op]):
        async with connected(place) as client:
            for number in range(self.NAMES):
                name = f"{self.name}-{number}"
                changes = [op for op in ops if op.about.get("name") == name]
                info = await request(client, f"$JS.API.CONSUMER.INFO.{self.name}.{name}")
                found = None if "error" in info else info["config"].get("pause_until") or "-"
                may_be = possible(changes)
                # Each life of the server creates the consumer again, which does not change its pause.
                if any(op.what == "create" for op in changes[1:]):
                    may_be = {op.version for op in changes} | may_be
                check(found in may_be, f"consumer {name} is paused until {found}, may be {may_be}; {last(changes)}")
