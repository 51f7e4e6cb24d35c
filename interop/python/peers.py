"""Clients for the cases of the Python suites."""

import nats

from harness.server import Server

# A guard against hanging, not an expected time.
SECONDS_MAX = 30


async def ignore(error):
    """Ignores an error, which the client would log: the cases check for errors themselves."""


async def connect(server: Server, **options):
    options = {"error_cb": ignore, "connect_timeout": 10, **options}
    return await nats.connect(f"nats://127.0.0.1:{server.port}", **options)


async def flush(client):
    """Returns once the server has received everything that was published.

    This client sends its PING immediately, before messages that are still in its own buffer. When the answer comes,
    those messages are written, so the second PING comes after them.
    """
    await client.flush(SECONDS_MAX)
    await client.flush(SECONDS_MAX)


async def pair(server: Server):
    return await connect(server), await connect(server)


async def take(subscription, count: int) -> list:
    return [await subscription.next_msg(timeout=SECONDS_MAX) for _ in range(count)]
