"""A Python client of the price feed, with the official library: pip install nats-py

    python client.py [nats://127.0.0.1:4222] [how many ticks]
"""

import asyncio
import json
import sys

import nats


async def main(server="nats://127.0.0.1:4222", count="20"):
    client = await nats.connect(server)

    # What was missed, from the log of the program: the last tick of each symbol.
    stream = client.jetstream()
    config = nats.js.api.ConsumerConfig(deliver_policy=nats.js.api.DeliverPolicy.LAST_PER_SUBJECT)
    missed = await stream.subscribe("ticks.*", stream="TICKS", ordered_consumer=True, config=config)
    print("last:", json.loads((await missed.next_msg(timeout=10)).data))

    # What follows, and what the strategy in the program makes of it.
    ticks = await client.subscribe("ticks.*")
    orders = await client.subscribe("orders.*")
    await client.flush()
    for _ in range(int(count)):
        message = await ticks.next_msg(timeout=10)
        tick = json.loads(message.data)
        print(f"{message.subject}  {tick['cents'] / 100:.2f}")
    while orders.pending_msgs:
        message = await orders.next_msg(timeout=10)
        print(message.subject, json.loads(message.data))
    await client.close()


asyncio.run(main(*sys.argv[1:]))
