"""A small disk that tests fill up and empty again: a tmpfs, which only root on Linux mounts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """A disk of 32 MB."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"

    def fill(self, free: int) -> None:
        """Leave so many kB free."""
        room = os.statvfs(self.folder)
        with open(self._ballast, "wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, room.f_bavail * room.f_frsize - free * 1024)

    def empty(self) -> None:
        """Make room again."""
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """A disk in a new folder; the test is skipped where it cannot be mounted."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root on Linux mounts a small disk")
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", folder], check=False).returncode:
        pytest.skip("this root may not mount")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", folder], check=True)
