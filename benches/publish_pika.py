"""A peer of `scripts/bench publish`: confirmed publishes by pika's BlockingConnection.

  publish_pika.py URL QUEUE COUNT BYTES 1

Persistent and mandatory. It waits for each confirm, as this connection of pika does:
there is no other window than 1. Ends with 0 only if each one was confirmed and none
came back.
"""

import sys

import pika

url, queue, count, size, window = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
if window != 1:
    sys.exit("publish_pika.py: no other window than 1")
connection = pika.BlockingConnection(pika.URLParameters(url))
channel = connection.channel()
channel.confirm_delivery()
body = b"x" * size
properties = pika.BasicProperties(delivery_mode=2)
for _ in range(count):
    # Raises what says that it was refused or came back.
    channel.basic_publish("", queue, body, properties, mandatory=True)
connection.close()
