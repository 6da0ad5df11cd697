"""Keeps the state of an agent's task of antigravity-state.yaml.

What a schema does not know is judged here: a state may be well formed and
still be of no use to anybody.
"""

import json
import sys

POISON = 65

state = json.load(sys.stdin)
if state["payload"].get("status") == "invalid":
    print("payload.status is invalid", file=sys.stderr)
    sys.exit(POISON)
print(state["task_id"], "is with", state["current_agent"])
