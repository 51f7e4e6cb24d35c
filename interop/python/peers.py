"""Clients for the cases of the Python suites."""

import nats

from harness.server import Server

# A guard against hanging, not a measure.
SECONDS_MAX = 30


async def ignore(error):
    """Errors show in what a case checks; the client would log each as well."""


async def connect(server: Server, **options):
    options = {"error_cb": ignore, "connect_timeout": 10, **options}
    return await nats.connect(f"nats://127.0.0.1:{server.port}", **options)


async def flush(client):
    """Returns once the server has everything that was published.

    This client writes its PING at once, ahead of messages that still wait in its own buffer; by the
    time of the answer they are written, so the second PING is behind them.
    """
    await client.flush(SECONDS_MAX)
    await client.flush(SECONDS_MAX)


async def pair(server: Server):
    return await connect(server), await connect(server)


async def take(subscription, count: int) -> list:
    return [await subscription.next_msg(timeout=SECONDS_MAX) for _ in range(count)]
