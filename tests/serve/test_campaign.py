"""A campaign without its process: all that it tells, of which a page sees only the newest."""

from __future__ import annotations

import threading
from itertools import count, pairwise

import pytest

from sateen.serve.campaign import Campaign
from sateen.serve.documents import Document, question_of, read_body
from sateen.serve.files import Folder
from sateen.serve.record import Record, session_folder
from serving import document, wait_until

_NUMBERS = count()


class Recorder:
    """A channel that keeps all states and frames."""

    def __init__(self):
        self.states, self.frames = [], []

    def tell(self, content):
        self.states.append(content["state"])

    def show(self, frame):
        self.frames.append(frame)

    @property
    def phases(self):
        return [state["phase"] for state in self.states if "phase" in state]


def model_of(links):
    """A chain that no other test has: this process keeps what it compiled, whatever the names and numbers are."""
    names = [f"A{k}" for k in range(links)]
    rates = [f"{one} -> {other} @ k * {one} * (2 + {other}) / (3 + {one} * {one})" for one, other in pairwise(names)]
    return "\n".join([f"species {names[0]} = 7, {', '.join(f'{name} = 0' for name in names[1:])}", *rates])


@pytest.fixture
def learning(tmp_path, monkeypatch):
    """A campaign that learns, in a cache where nothing is compiled, and what it has told."""
    monkeypatch.setenv("SATEEN_CACHE_DIR", str(tmp_path / "cache"))
    told, root = Recorder(), Folder(tmp_path)
    doc = document(formula="F[0, 2] A0 == 0", text=model_of(4 + next(_NUMBERS)))
    question = question_of(read_body(Document, doc), root)
    campaign = Campaign(question, root, session_folder(tmp_path, "one"), Record(doc), told, 1)
    thread = threading.Thread(target=campaign.run, args=("learning",), daemon=True)
    thread.start()
    yield campaign, told
    campaign.close()
    thread.join()


def test_a_campaign_says_that_it_compiles_and_then_that_it_learns(learning):
    _, told = learning
    wait_until(lambda: bool(told.frames))
    assert "compiling" in told.phases
    wait_until(lambda: told.phases[-1] == "learning")


def test_a_command_that_begins_takes_the_error_of_the_one_before_away(learning):
    campaign, told = learning
    wait_until(lambda: bool(told.frames))
    answers = []
    for threshold in (0.999, 0.4):
        asked = {"threshold": threshold, "region": "above", "confidence": 0.9, "runs": 1}
        campaign.command("certify", asked, answers.append)
    campaign.command("halt", {"phase": "paused"}, answers.append)
    wait_until(lambda: len(answers) == 3)
    assert told.states.count({"error": None}) == 2
    assert {"phase": "paused", "error": None} in told.states
