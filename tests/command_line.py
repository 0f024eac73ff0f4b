"""The command line as tests call it: in this process, for speed, or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from click.testing import CliRunner, Result

from sateen.cli import main

# As users have it: without PYTHONUNBUFFERED, under which a write that fails half-way goes unnoticed.
USUAL = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
# Where tests run in the background, SIGINT may be ignored from birth: so it is set first. And numpy.random, which loads
# when it is first needed, would swallow a signal that comes just then.
HEARING = (
    "import signal, numpy.random; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from sateen.cli import main; main(prog_name='sateen')"
)


def sateen(*arguments: object, code: int = 0) -> Result:
    """What a command prints, which must end with this exit code."""
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done


def as_json(*arguments: object) -> dict[str, Any]:
    """The JSON object that a command prints with --json."""
    content = json.loads(sateen(*arguments, "--json").stdout)
    assert isinstance(content, dict)
    return content


def words(done: Result) -> str:
    """What a command printed on stderr, however its lines were broken."""
    return " ".join(done.stderr.split())


def process(
    *arguments: str, start: Sequence[str] = ("-m", "sateen"), **options: Any
) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, *start, *arguments]
    options = {"stdout": subprocess.PIPE, "env": USUAL, **options}
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=120, **options)


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a command, which must succeed."""
    program = (
        "import sys\nfrom sateen.cli import main\n"
        "try:\n    main(sys.argv[1:], prog_name='sateen')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print()\nprint(*sys.modules)"
    )
    done = process(*arguments, start=("-c", program))
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())
