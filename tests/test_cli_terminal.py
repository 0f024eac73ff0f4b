"""What the command line writes on a terminal: lines that fit, and no warning again and again."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

from command_line import sateen
from sateen.cli.output import _parts, wrapped
from small_studies import changed


class TestTheWidthOfATerminal:
    """Lines fit the terminal that they are written to."""

    PROSE = "warning: line 4: nothing uses the parameter gamma, which is declared but never read; was it meant by gama?"

    @staticmethod
    def on_terminal(columns: int, *arguments: str) -> list[str]:
        """The lines that a command writes on a terminal that is so wide."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {**os.environ, "TERM": "dumb"}
        environment.pop("COLUMNS", None)
        program = [sys.executable, "-m", "sateen", *arguments]
        process = subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
            while part := os.read(ours, 4096):
                shown += part
        process.wait(timeout=300)
        os.close(ours)
        return shown.decode().replace("\r\n", "\n").splitlines()

    def test_sentences_are_wrapped_at_it_and_tables_and_carets_stay(self, tmp_path: Path) -> None:
        model = tmp_path / "doubt.sateen"
        model.write_text("species A = 3\nparameter gamma = 1\nA -> 0 @ mass_action(gama_of_a_rather_long_name)\n")
        check = ("check", str(model), "-p", "F[0, 1] A == 0", "--at", "gama_of_a_rather_long_name=1", "--runs", "100")
        sateen(*check)  # so that neither compiles
        narrow, wide = (self.on_terminal(columns, *check) for columns in (60, 400))
        prose = [line for line in narrow if str(model) not in line]
        assert max(map(len, prose)) <= 60
        assert len(narrow) > len(wide)
        same = [" ".join(" ".join(each).split()).split(" events in ")[0] for each in (narrow, wide)]  # then come times
        assert same[0] == same[1]

    def test_a_word_that_is_longer_than_a_line_stays_whole(self) -> None:
        assert _parts(f"see {'x' * 80} there", 40) == ["see", f"  {'x' * 80}", "  there"]

    def test_a_table_stays_as_it_is(self) -> None:
        row = "  learner        RMSE  accuracy  Wilson   width  log score"
        assert _parts(row, 20) == [row]

    def test_what_is_piped_is_not_wrapped(self) -> None:
        assert wrapped(self.PROSE, io.StringIO()) == self.PROSE


def test_a_studys_model_is_warned_of_until_there_is_a_result(tmp_path: Path) -> None:
    study = tmp_path / "decay.toml"
    study.write_text(changed(("species A = 5\n", "species A = 5\nparameter spare = 2\n")))
    warning = "warning: line 2: nothing uses the parameter spare"
    assert warning in sateen("inspect", study).stderr
    assert warning in sateen("run", study, "--dry-run").stderr
    assert warning in sateen("run", study).stderr
    for again in (("run", study), ("inspect", study), ("report", tmp_path / "decay-result")):
        assert warning not in sateen(*again).stderr
    study.write_text(changed(("species A = 5\n", "species A = 6\nparameter spare = 2\n")))
    assert warning in sateen("run", study).stderr
