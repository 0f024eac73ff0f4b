"""A format whose reader does all that no reader may do, to show that the fuzzer notices."""

from __future__ import annotations

import builtins
import os
import subprocess
import warnings
from pathlib import Path
from random import Random
from typing import Final

from fuzz.judging import SECRET, Broken, Format
from sateen.core.errors import InputError, ModelError, ModelWarning

FAULTS: Final = {  # and how the complaint begins
    "a foreign error": "KeyError at",
    "no text": "empty text",
    "an escape": "raw '\\x1b' in the text",
    "a surrogate": "raw '\\ud800' in the text",
    "no end": "long text",
    "a secret": "tells another file's content",
    "no place": "no place",
    "no file": "no file name",
    "a broken promise": "broken promise",
    "a foreign warning": "DeprecationWarning",
    "code": "code was run",
    "a program": "does what no reader does",
    "a file elsewhere": "does what no reader does",
    "output": "a library prints",
    "too slow": "too slow",
    "too much": "takes more than",
    "a crash": "the process died",
}
FAULTLESS: Final = ("read", "refused with the name", "refused with the place", "own warning")
WAYS: Final = (*FAULTLESS, *FAULTS)


class _Raw(InputError):
    """An error that shows its message as it is."""

    def __str__(self) -> str:
        return str(self.args[0])


def _read(data: bytes, prepared: None, folder: Path) -> None:
    way = data.decode()
    errors = {
        "a foreign error": KeyError("x"),
        "no text": InputError(" "),
        "an escape": _Raw("case.txt: \x1b[31m"),
        "a surrogate": _Raw("case.txt: \ud800"),
        "no end": _Raw("case.txt: " + 20_000 * "x"),
        "a secret": InputError(f"case.txt: {SECRET}"),
        "no place": ModelError("something is wrong"),
        "no file": InputError("something is wrong"),
        "a broken promise": Broken("it is another"),
        "refused with the name": InputError("case.txt is empty"),
        "refused with the place": ModelError("wrong", "a text", 3),
    }
    if way in errors:
        raise errors[way]
    if way == "own warning":
        warnings.warn("doubtful", ModelWarning, stacklevel=1)
    elif way == "a foreign warning":
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    elif way == "code":
        builtins.sateen_canary = True  # type: ignore[attr-defined]
    elif way == "a program":
        subprocess.run(["true"], check=True)
    elif way == "a file elsewhere":
        (folder.parent / "elsewhere").write_text("x")
    elif way == "output":
        os.write(2, b"careful!\n")
    elif way == "too slow":
        while True:
            pass
    elif way == "too much":
        bytearray(600 * 2**20)[::4096] = bytes(600 * 2**8)
    elif way == "a crash":
        os.abort()


def _mutate(rng: Random, prepared: None) -> bytes:
    return b"read"


PLANTED: Final = Format(lambda folder: None, _mutate, _read, 0, lambda prepared: b"read", "case.txt")
