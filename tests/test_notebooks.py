"""In a real notebook: pictures, a bar for long work that leaves nothing behind, and names that are completed."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import sateen as st
from sateen.cli.progress import Bar, usual_progress
from sateen.core.progress import SILENT, USUAL, watcher

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

SETUP = """
import time
import sateen as st
from sateen.core.progress import USUAL, watcher, working

def work(progress=USUAL, seconds=1.6):
    bar = watcher(progress)
    with working(bar, "simulating", 100, "runs"):
        bar.note("compiling (once)")
        for _ in range(20):
            time.sleep(seconds / 20)
            bar.advance(4)
    return type(bar).__name__
"""


class Recording(nbclient.NotebookClient):  # type: ignore[misc]
    """A client that keeps every picture of what a cell shows, those that were replaced too."""

    def process_message(self, message: Any, *rest: Any) -> Any:
        if message["msg_type"] in ("display_data", "update_display_data"):
            self.__dict__.setdefault("shown", []).append(message["content"]["data"])
        return super().process_message(message, *rest)


def run(*sources: str) -> tuple[list[Any], list[dict[str, str]]]:
    """The outputs of each cell, and all that was shown meanwhile."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in (SETUP, *sources)])
    client = Recording(notebook, timeout=120, kernel_name="python3")
    client.execute()
    return [cell.outputs for cell in notebook.cells[1:]], client.__dict__.get("shown", [])


@pytest.mark.slow
def test_long_work_shows_a_bar_that_vanishes_and_short_or_silent_work_shows_none() -> None:
    (long, short, silent), shown = run("work()", "work(seconds=0.1)", "work(progress=None)")
    bars = [data["text/html"] for data in shown if "<progress" in data.get("text/html", "")]
    assert len(bars) >= 2
    assert "simulating: " in bars[0]
    assert "of 100 runs" in bars[0]
    assert "compiling (once)" in bars[0]
    assert not any("<script" in each for each in bars)
    assert [out.data["text/html"] for out in long if out.output_type == "display_data"] == [""]  # nothing stays
    assert long[-1].data["text/plain"] == "'NotebookBar'"
    assert [out.output_type for out in short] == ["execute_result"]
    assert [out.data["text/plain"] for out in silent] == ["'_Silent'"]


@pytest.mark.slow
def test_a_cell_shows_a_picture_and_a_quoted_key_is_completed() -> None:
    (shown, completed), _ = run(
        "path = st.Path(times=[0, 1], states=[[1, 2], [2, 3]], species=('wolf', 'worm'), end=3)\npath",
        "from IPython.core.completer import provisionalcompleter\n"
        "with provisionalcompleter():\n"
        "    offered = [each.text for each in get_ipython().Completer.completions('path[\"wo', 8)]\n"
        "offered",
    )
    assert "<svg" in shown[0].data["text/html"]
    assert "Path(wolf, worm" in shown[0].data["text/plain"]
    assert "wolf" in completed[0].data["text/plain"]
    assert "worm" in completed[0].data["text/plain"]


class TestWhoLooksOn:
    def test_nobody_does_in_a_test(self) -> None:
        assert watcher(USUAL) is SILENT
        assert watcher(None) is SILENT

    def test_a_terminal_has_a_bar_that_keeps_notes_back_until_it_is_there(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        bar = usual_progress()
        assert isinstance(bar, Bar)
        bar.start("simulating", 10, "runs")
        bar.note("compiling (once)")
        bar.finish()
        assert capsys.readouterr().err == ""

    def test_one_that_is_given_stays(self) -> None:
        bar = Bar()
        assert watcher(bar) is bar


def test_a_verb_takes_none_for_nobody() -> None:
    model = st.Model.parse("species A = 3\nA -> 0 @ mass_action(k)")
    points = st.Space(k=(0.1, 1)).grid(3)
    loud, silent = (st.observe(model, "F[0, 1] A == 0", points, 10, seed=1, **how) for how in ({}, {"progress": None}))
    assert loud == silent
    assert st.learn(silent, learner=st.SVIGP(inducing=4), seed=1, progress=None).space == points.space
    assert st.exact(model, "F[0, 1] A == 0", points, progress=None).shape == (3,)


def test_names_are_offered_for_what_has_columns() -> None:
    path = st.Path(times=[0], states=[[1, 2]], species=("S", "I"))
    assert path._ipython_key_completions_() == ["S", "I"]
    space = st.Space(beta=(0, 1), gamma=0.5)
    assert space._ipython_key_completions_() == ["beta", "gamma"]
    assert (space["beta"], space["gamma"]) == (st.Range(0, 1), 0.5)
    with pytest.raises(st.SpaceError, match=r"gama is not one of .*did you mean gamma"):
        space["gama"]


def test_learning_from_next_to_nothing_is_warned_of() -> None:
    seen = st.Observations.from_counts(st.Space(k=(0, 1)), {"k": [0.2, 0.8]}, [0, 1], 1)
    with pytest.warns(st.SateenWarning, match="2 runs at 2 points say next to nothing about the probability: what is"):
        st.learn(seen, learner=st.SVIGP(inducing=2), seed=1)
