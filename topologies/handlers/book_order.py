"""Books an order of order-process.yaml: a line in the file named by ORDER_BOOK.

Booking twice would charge twice, so the worker runs with --dedupe.
"""

import json
import os
import sys

order = json.load(sys.stdin)
line = "%s %s\n" % (order["order_id"], order["amount"])
book = os.open(os.environ["ORDER_BOOK"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.write(book, line.encode())
os.fsync(book)
