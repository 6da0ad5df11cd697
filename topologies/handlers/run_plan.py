"""Runs a plan of pipelines.yaml: here it only says what it would do."""

import json
import sys

plan = json.load(sys.stdin)
for step in sorted(plan["steps"], key=lambda step: step["step_number"]):
    # 6379.0 is an integer in JSON Schema, and a float in Python.
    port = f" at port {int(step['port'])}" if "port" in step else ""
    print(f"{plan['target_environment']}: {step['command']}{port}")
