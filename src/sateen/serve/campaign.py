"""A campaign: rounds of runs, and after each a posterior and a frame, until it is halted. It knows nothing of HTTP.

Rounds of the design are the next points of one Sobol sequence: 32 first, then more, as fast as the runs allow. The
learner begins anew whenever the points have doubled. In between, what is slow to learn is passed on.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

import sateen as st
from sateen.core.errors import InputError
from sateen.core.posterior import FullPosterior
from sateen.core.seeds import stream_seed
from sateen.core.threads import processors
from sateen.serve.answers import error_content
from sateen.serve.decisions import around, certified, searched
from sateen.serve.documents import Question
from sateen.serve.files import Folder
from sateen.serve.frames import View, frame_of
from sateen.serve.halting import Halted, TooSlowError, Watch
from sateen.serve.record import Record, SessionFolder, round_file
from sateen.serve.saving import save_study

RUNS: Final = 20  # at each point
_FIRST: Final = 32  # points
_LARGEST: Final = 128  # points of a round
_MOST_POINTS: Final = 4096  # of the design
_ROUND_SECONDS: Final = 0.15  # of runs, which a round should take
_FEWEST_RUNS: Final = 2  # at each point, for models that are slow
_PATIENCE_FOR_RUNS: Final = 2.0  # seconds, in which half of a round should be done
_CHEAP: Final = ("svi-gp", "ep-gp")  # learners that pass on what is slow to learn
_REFINE_RUNS: Final = 1000
_PATIENCE: Final = 30.0  # seconds for a session that is opened

Command: TypeAlias = tuple[str, dict[str, Any], Callable[[object], None]]  # what, with what, and who waits for it


class Telling(Protocol):
    """Where states and frames go."""

    def tell(self, content: Mapping[str, object]) -> None:
        """Send plain data."""

    def show(self, frame: bytes) -> None:
        """Send a frame."""


class Campaign:
    """Learns one question in the folder of one session, in the thread that calls `run`."""

    def __init__(
        self, question: Question, root: Folder, folder: SessionFolder, record: Record, channel: Telling, frame: int
    ) -> None:
        self.question, self.root, self.folder, self.record = question, root, folder, record
        self.view = View.first(question.space).checked(question.space)
        self.posterior: FullPosterior | None = None
        self.observations: st.Observations | None = None
        self.restored = threading.Event()  # what the record has is loaded
        self.frame = frame - 1
        self._channel = channel
        self._commands: queue.Queue[Command] = queue.Queue()
        self._halted = threading.Event()
        self._drawing = threading.Lock()
        self._learned: FullPosterior | None = None
        self._design = question.space.sobol(_MOST_POINTS, seed=stream_seed(question.document.seed, "serve design"))
        self._pace = 0.0  # seconds of a point's runs, all processors together
        self._going = False
        self._closed = self._ended = False
        self._phase = ""
        self._active = 0.0

    # From other threads

    def close(self) -> None:
        """End the thread that learns as soon as it can be halted; then the folder is free."""
        self._closed = True
        self.command("halt", {"phase": "stopped"}, lambda _: None)

    def command(self, name: str, body: dict[str, Any], answer: Callable[[object], None]) -> None:
        """Something to do when the step that is under way is over; a halt cuts that short."""
        if self._ended:
            answer(_ended())
            return
        if name == "halt":
            self._halted.set()
        self._commands.put((name, body, answer))

    def known(self) -> FullPosterior:
        """The posterior, as soon as there is one; an InputError where nothing was learned yet."""
        self.restored.wait(_PATIENCE)
        if self.posterior is None:
            raise InputError("nothing has been learned yet", remedy="start, and wait for the first map")
        return self.posterior

    def look(self, view: View) -> None:
        """Show other axes, or another slice; no run is made."""
        self.view = view.checked(self.question.space)
        if self.posterior is not None:
            self._draw()

    # The thread that learns

    def run(self, phase: str) -> None:
        """Hold the folder, and carry out commands until it is closed; by the phase, learning goes on at once."""
        try:
            with self.folder.held.held():
                self.folder.write(self.record)
                self._guarded(self._restore)
                self.restored.set()
                if phase == "learning":
                    self._resume()
                elif self._phase != "failed":
                    self._tell(phase=phase)
                while not self._closed:
                    self._turn()
        except Exception as error:
            self._tell(phase="failed", error=error_content(error))
        finally:
            self.restored.set()
            self._ended = True
            while not self._commands.empty():
                self._commands.get()[2](_ended())

    def _turn(self) -> None:
        """The next command, or the next step; when the rounds end, what was observed last is still learned."""
        behind = self._fit_is_old() and self._phase != "failed"
        try:
            name, body, answer = self._commands.get(block=not (self._going or behind))
        except queue.Empty:
            self._guarded(self._step if self._going else self._learn)
            return
        if name == "halt":
            self._halted.clear()
            self._going = False
            self._tell(phase=body["phase"], error=None)
        elif name == "resume":
            self._resume()
        else:
            self._guarded(partial(self._act, name, body, answer))
            return
        answer({})

    def _act(self, name: str, body: dict[str, Any], answer: Callable[[object], None]) -> None:
        """A command that takes long. The answer to a halt, or to an error, is given too."""
        given: object = Halted()
        self._tell(error=None)
        try:
            before = self._phase
            given = {"refine": self._refine, "certify": self._certify, "save": self._save}[name](body)
            if not self._going:
                self._tell(phase=before if before in ("paused", "stopped") else "stopped")
        except st.SateenError as error:
            given = error
            self._tell(phase="learning" if self._going else "stopped")
        finally:
            answer(given)

    def _guarded(self, step: Callable[[], None]) -> None:
        """One step, which may be halted, and whose errors the page shows."""
        began = time.monotonic()
        try:
            step()
        except Halted:
            pass
        except Exception as error:
            self._going = False
            self._tell(phase="failed", error=error_content(error))
        finally:
            self._active += time.monotonic() - began

    def _resume(self) -> None:
        self._going = True
        self._tell(phase="learning", message=None, error=None)

    def _restore(self) -> None:
        """The complete rounds of the record, whose runs are in the store, and a posterior of them."""
        for number, round_ in enumerate(self.record.rounds[: self.record.done]):
            self._take(self._observed(number, round_))
        if self.observations is not None:
            self._counts()
            self._learn()

    def _step(self) -> None:
        """The pending round, or a new one of the design; then a posterior and a frame."""
        if self._fit_is_old():
            self._learn()
        if self.record.pending is None:
            first = sum(round_["count"] for round_ in self.record.rounds if round_["kind"] == "design")
            if first >= _MOST_POINTS:
                self._going = False
                whole = f"the design is complete, with {_MOST_POINTS:,} points: refine, certify or save"
                self._tell(phase="stopped", message=whole)
                return
            runs = next((each["runs"] for each in self.record.rounds[::-1] if each["kind"] == "design"), RUNS)
            self._begin({"kind": "design", "first": first, "count": self._next_size(first), "runs": runs})
        self._complete()

    def _next_size(self, first: int) -> int:
        """How many points the next round has: as many as there are, at most, and as the runs allow."""
        if not first:
            return _FIRST
        affordable = _LARGEST if not self._pace else int(_ROUND_SECONDS / self._pace)
        return max(1, min(first, _LARGEST, max(affordable, 4), _MOST_POINTS - first))

    def _begin(self, round_: dict[str, Any]) -> None:
        self.record = self.record.begun(round_)
        self.folder.write(self.record)

    def _complete(self) -> None:
        """Make the pending round, learn from it, and show it."""
        assert self.record.pending is not None
        try:
            new = self._observed(self.record.done, self.record.pending)
        except TooSlowError as slow:
            self._shrink(slow.share)
            self._complete()
            return
        self._take(new)
        assert self.observations is not None
        self.record = self.record.completed(int(self.observations.trials.sum()))
        self.folder.write(self.record)
        self._counts()
        self._learn()

    def _shrink(self, share: float) -> None:
        """Ask for as few runs at each point of the pending round as this model affords; a map with few is one too."""
        *before, last = self.record.rounds
        fewer = {**last, "runs": max(_FEWEST_RUNS, int(last["runs"] * share))}
        self.record = replace(self.record, rounds=(*before, fewer))
        self.folder.write(self.record)

    def _take(self, new: st.Observations) -> None:
        self.observations = new if self.observations is None else self.observations + new
        self._pace = new.seconds / max(len(new), 1) / processors()

    def _observed(self, number: int, round_: Mapping[str, Any]) -> st.Observations:
        """The runs of a round: those that are in the store, and the others, which are made."""
        question = self.question
        kind, seed = round_["kind"], stream_seed(question.document.seed, "serve runs", number)
        may_shrink = kind == "design" and round_["runs"] > _FEWEST_RUNS and number >= self.record.done
        watch = self._watch(_PATIENCE_FOR_RUNS if may_shrink else None)
        options: dict[str, Any] = {"store": self.folder.store, "progress": watch, **question.caps}
        if kind in ("file", "refine"):
            file = round_file(self.folder, number)
            if kind == "refine" and not file.is_file():
                assert self.observations is not None
                searched(question, self.observations, number, round_, options).save(file)
            return st.Observations.load(file)
        if kind == "design":
            points = self._design[round_["first"] : round_["first"] + round_["count"]]
        else:
            points = st.Points(np.array(round_["theta"], dtype=np.float64), question.space, "active")
        observed = st.observe(question.model, question.formula, points, round_["runs"], seed=seed, **options)
        assert isinstance(observed, st.Observations)
        return observed

    def _fit_is_old(self) -> bool:
        """Whether more is observed than was learned."""
        learned = 0 if self.posterior is None else len(self.posterior.training.observations)
        return self.observations is not None and len(self.observations) > learned and not self._waits_for_more()

    def _waits_for_more(self) -> bool:
        """Whether a learner that is slow has learned from half of the points, which must do for now."""
        cheap = (self.question.document.learner or _CHEAP[0]) in _CHEAP
        learned = 0 if self._learned is None else len(self._learned.training.observations)
        return not cheap and self.observations is not None and len(self.observations) < 2 * learned

    def _learn(self) -> None:
        """The posterior of all that is observed, and its frame."""
        observations, learned = self.observations, self._learned
        assert observations is not None
        if self._waits_for_more():
            self._counts()
            return
        doubled = learned is None or len(observations) >= 2 * len(learned.training.observations)
        seed = stream_seed(self.question.document.seed, "serve learn")
        if doubled or learned is None:
            posterior = st.learn(observations, self.question.learner, seed=seed, progress=self._watch())
            self._learned = posterior
        else:
            posterior = learned.updated(observations, seed=seed, progress=self._watch())
        self.posterior = posterior
        self._draw()
        self._counts()

    def _counts(self) -> None:
        seen = self.observations
        assert seen is not None
        about = {"runs": int(seen.trials.sum()), "points": len(seen), "undecided": int(seen.undecided.sum())}
        phase = {"phase": "learning"} if self._going and self._phase != "learning" else {}
        self._tell(**about, constant=self._constant(), seconds=round(self._active, 2), **phase)

    def _constant(self) -> str | None:
        """Whether all runs so far agree."""
        seen = self.observations
        if seen is None or seen.undecided.any():
            return None
        satisfied, trials = int(seen.satisfied.sum()), int(seen.trials.sum())
        return "true" if satisfied == trials else "false" if satisfied == 0 else None

    def _draw(self) -> None:
        with self._drawing:
            posterior = self.posterior
            assert posterior is not None
            self.frame += 1
            observed = posterior.training.observations
            self._channel.show(frame_of(posterior, observed, self.view, self.frame, constant=self._constant()))

    # Commands

    def _refine(self, body: dict[str, Any]) -> object:
        """A round at chosen points: around one, or where a search finds that runs teach most."""
        self.known()
        if self.record.pending is not None:
            self._complete()
        budget = body["runs"] or _REFINE_RUNS
        if body["where"] == "unsure":
            round_: dict[str, Any] = {"kind": "refine", "threshold": body["threshold"], "budget": max(budget, 200)}
        else:
            theta = around(self.question, body["where"]["theta"], self.record.done)
            round_ = {"kind": "points", "theta": theta.tolist(), "runs": max(1, budget // len(theta))}
        self._begin(round_)
        self._tell(phase="learning")
        self._complete()
        return {}

    def _certify(self, body: dict[str, Any]) -> object:
        """A claim about the frozen posterior, by fresh runs."""
        posterior, claims = self.known(), self.record.claims
        frame = self.frame
        pending = {"frame": frame, "threshold": body["threshold"], "region": body["region"], "done": False}
        pending |= {"sentence": "fresh runs are made …", "note": None, "progress": 0.0}
        told = [dict(each) for each in claims]

        def tell(progress: float) -> None:
            self._tell(claims=[*told, {**pending, "progress": progress}])

        self._tell(phase="certifying", claims=[*told, pending])
        try:
            watch = Watch(self._halted, lambda _, share: tell(share))
            claim = certified(self.question, posterior, claims, body, self.folder.store, watch)
            self.record = replace(self.record, claims=(*claims, {"frame": frame, **claim}))
            self.folder.write(self.record)
        finally:
            self._tell(claims=[dict(each) for each in self.record.claims])
            if self._going:
                self._tell(phase="learning")
        return {}

    def _save(self, body: dict[str, Any]) -> object:
        """A study, its result and its report; what it learned is shown from now on."""
        self.known()
        assert self.observations is not None
        watch = self._watch()
        saved, posterior = save_study(self.question, self.root, body["name"], self.observations, watch)
        self.posterior = self._learned = posterior
        self.record = replace(self.record, saved=saved["path"])
        self.folder.write(self.record)
        self._draw()
        self._tell(saved=saved["path"])
        return saved

    # What the page hears

    def _watch(self, patience: float | None = None) -> Watch:
        def tell(note: str, share: float) -> None:
            if note.startswith("compiling"):
                self._tell(phase="compiling")

        return Watch(self._halted, tell, patience)

    def _tell(self, **changes: object) -> None:
        if self._closed:
            return
        self._phase = str(changes.get("phase", self._phase))
        self._channel.tell({"state": changes})


def _ended() -> InputError:
    return InputError("this session has ended", remedy="open it again, or start a new one")
