"""A peer of `scripts/bench publish`: confirmed publishes by aio-pika.

  publish_aio_pika.py URL QUEUE COUNT BYTES WINDOW

Persistent and mandatory, at most WINDOW messages without a confirm. Ends with 0 only if
each one was confirmed and none came back.
"""

import asyncio
import os
import sys

import aio_pika


async def main(url, queue, count, size, window):
    connection = await aio_pika.connect(url)
    channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
    exchange = channel.default_exchange
    body = b"x" * size
    left = iter(range(count))

    async def one_after_the_other():
        for _ in left:
            message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            # Raises what says that it was refused or came back.
            await exchange.publish(message, queue, mandatory=True)

    try:
        await asyncio.gather(*(one_after_the_other() for _ in range(window)))
    except Exception as error:
        print(f"publish_aio_pika.py: {error!r}", file=sys.stderr, flush=True)
        # A connection with a failure behind it may wait for itself for ever (8.2.5).
        os._exit(69)
    await connection.close()


asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])))
