"""What becomes of hostile texts: read in a process of its own, with little time and little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

# Reads {label: text} from its input and says what came of each; no more memory than 1.5 GiB above its start.
CHILD = """
import json, sys, warnings
from importlib import import_module
warnings.simplefilter("ignore")
module, _, name = sys.argv[1].partition(":")
read = import_module(module)
for part in name.split("."):
    read = getattr(read, part)
read(sys.argv[2])
if sys.platform == "linux":
    import resource
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + 3 * 2**29
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
for label, text in json.load(sys.stdin).items():
    try:
        read(text)
        outcome = "accepted"
    except BaseException as error:
        outcome = type(error).__name__
    print(json.dumps([label, outcome]), flush=True)
"""


def outcomes_of(reader: str, harmless: str, texts: Mapping[str, str]) -> dict[str, str]:
    """What became of each text within 20 seconds for all; what is missing was never finished.

    `reader` is a function, as module:name; it reads a harmless text first, so that all it needs is loaded.
    """
    command = [sys.executable, "-c", CHILD, reader, harmless]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        output, _ = child.communicate(json.dumps(texts).encode(), timeout=20)
    except subprocess.TimeoutExpired:
        child.kill()
        output, _ = child.communicate()
    return dict(json.loads(line) for line in output.splitlines())
