"""The quality gate of code-processing.yaml.

Valid code is the result. Code that does not parse is mended as far as can be,
and what comes of that is the body of the next attempt (`--retry-body result`).
"""

import ast
import json
import os
import re
import sys

FAILED_ATTEMPT = 75

BLOCK = re.compile(r"^\s*(async\s+def|def|class|if|elif|else|for|while|try|except|finally|with)\b")


def mended(code):
    """The code with the colon that a block's first line lacks."""
    lines = []
    for line in code.splitlines():
        bare = line.rstrip()
        lines.append(bare + ":" if BLOCK.match(bare) and not bare.endswith(":") else line)
    return "\n".join(lines)


task = json.load(sys.stdin)
task["attempt"] = int(os.environ["MQ_ATTEMPT"])
task["max_attempts"] = int(os.environ["MQ_MAX_ATTEMPTS"])
try:
    ast.parse(task["code"])
except SyntaxError as error:
    task["code"] = mended(task["code"])
    json.dump(task, sys.stdout)
    print(f"line {error.lineno}: {error.msg}", file=sys.stderr)
    sys.exit(FAILED_ATTEMPT)
json.dump(task, sys.stdout)
