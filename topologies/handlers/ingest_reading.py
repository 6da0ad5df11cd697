"""Stores a reading of telemetry.yaml.

The readings of the device `db-fail` go to a database that the file named by
TELEMETRY_DATABASE stands for: while it is not there, the database is down.
"""

import json
import os
import sys

DOWNSTREAM_DOWN = 69

# mq has held it against the schema: every field is there.
reading = json.load(sys.stdin)
database = os.environ.get("TELEMETRY_DATABASE", "")
if reading["device_id"] == "db-fail" and not os.path.exists(database):
    print("downstream down: the database does not answer", file=sys.stderr)
    sys.exit(DOWNSTREAM_DOWN)
print("stored", reading["device_id"], reading["temperature"])
