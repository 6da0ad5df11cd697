"""A client of another make (pika), which does one thing until it is killed.

    client.py URL publish QUEUE [confirms]
    client.py URL consume QUEUE PREFETCH ack|reject|requeue|republish [INTO]
"""
import sys
import time

import pika

url, what, queue, *options = sys.argv[1:]
parameters = pika.URLParameters(url)
parameters.client_properties = {"connection_name": " ".join([what, queue, *options])}
connection = pika.BlockingConnection(parameters)
channel = connection.channel()

if what == "publish":
    if options == ["confirms"]:
        channel.confirm_delivery()
    while True:
        channel.basic_publish("", queue, b"x")
        connection.process_data_events(0.2)

prefetch, how, *into = options
channel.basic_qos(prefetch_count=int(prefetch))
for method, properties, body in channel.consume(queue):
    # Otherwise the two of a loop would keep a core busy.
    time.sleep(0.05)
    if how == "republish":
        channel.basic_publish("", into[0], body, properties)
    if how in ("ack", "republish"):
        channel.basic_ack(method.delivery_tag)
    elif how == "reject":
        channel.basic_nack(method.delivery_tag, requeue=False)
    else:
        channel.basic_nack(method.delivery_tag, requeue=True)
