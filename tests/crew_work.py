"""What the tests have other processes do; in a module of its own, which those can import by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from sateen.core.errors import InputError


def write(folder: str, name: str) -> None:
    Path(folder, name).write_text(str(os.getpid()))


def locate(folder: str, name: str) -> None:
    Path(folder, name).write_text(str(Path.cwd()))


def fail(folder: str, name: str) -> None:
    raise InputError(f"{name} cannot be made")


def vanish(folder: str, name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(folder: str, name: str) -> None:
    write(folder, name)
    time.sleep(600)
