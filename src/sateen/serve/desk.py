"""What a worker does with each command: at once, in turn, or in the thread that learns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

import sateen as st
from sateen.core.errors import InputError
from sateen.serve.answers import error_content, refusal
from sateen.serve.campaign import Campaign, Telling
from sateen.serve.clicks import Clicks, SupersededError, Way
from sateen.serve.decisions import CertifyAsked, RefineAsked, Share, Theta, check_threshold
from sateen.serve.documents import Document, Question, check_formula, check_model, question_of, read_body
from sateen.serve.examples import EXAMPLES, example
from sateen.serve.files import Folder, is_study
from sateen.serve.frames import LEVEL, View, preview
from sateen.serve.halting import CompilingError, Halted, Impatient
from sateen.serve.record import Record, free_name, session_folder
from sateen.serve.saving import document_of, has_result, with_training

Answer = dict[str, Any]
_SMALL: Final = "species A = 1\nA -> 0 @ k * A"
_MOST_POINTS: Final = 20_000  # of a prediction


@dataclass(frozen=True, slots=True)
class Asked:
    """A document alone."""

    doc: Document


@dataclass(frozen=True, slots=True)
class RunAsked:
    """One reference run, of a document."""

    doc: Document
    theta: Theta
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class RunsAsked:
    """A batch of runs at a point."""

    doc: Document
    theta: Theta
    count: int = 20
    batch: Annotated[int, Meta(ge=0, le=10**9)] = 0


@dataclass(frozen=True, slots=True)
class ThatRunAsked:
    """One run of a batch, made `by` the simulator that made the batch."""

    doc: Document
    theta: Theta
    run: int
    by: Way
    batch: Annotated[int, Meta(ge=0, le=10**9)] = 0


@dataclass(frozen=True, slots=True)
class CampaignAsked:
    """A new campaign, in a session with a name; `frame` is the number of its first frame. Without a name
    it gets one like its title. It goes on from the training of a `study`, if one is named."""

    doc: Document
    frame: int
    name: str | None = None
    study: str | None = None


@dataclass(frozen=True, slots=True)
class ReopenAsked:
    """A session that is there; `view` is what the page looks at, and `phase` how it goes on."""

    name: str
    frame: int
    phase: Literal["learning", "paused", "stopped"] = "stopped"
    view: View | None = None


@dataclass(frozen=True, slots=True)
class SaveAsked:
    """The name of a study."""

    name: str


@dataclass(frozen=True, slots=True)
class PointsAsked:
    """Points of a prediction."""

    points: Annotated[list[Theta], Meta(min_length=1, max_length=_MOST_POINTS)]
    level: Share = LEVEL


@dataclass(frozen=True, slots=True)
class OpenAsked:
    """A file, an example or a session."""

    path: str | None = None
    example: str | None = None
    session: str | None = None


class Desk:
    """Answers commands: the clicks and keystrokes in the main thread, and the campaign in its own."""

    def __init__(self, setup: Mapping[str, Any], channel: Telling) -> None:
        self.folder = Folder(FilePath(setup["folder"]), tuple(setup["black_boxes"]), tuple(setup["learners"]))
        self.channel = channel
        self.campaign: Campaign | None = None
        self._clicks = Clicks()
        self._learning: threading.Thread | None = None
        self._then: threading.Thread | None = None
        self._waiting = 0  # commands for the main thread, the one under way among them
        self._newest: dict[str, int | None] = {}
        self._questions: dict[str, Question] = {}
        self._answers: dict[str, Callable[[int | None, Answer], object]] = {
            "check/model": lambda _, body: check_model(read_body(Asked, body).doc, self.folder),
            "check/formula": lambda _, body: check_formula(read_body(Asked, body).doc, self.folder),
            "run": self._run,
            "that run": self._that_run,
            "runs": self._runs,
            "preview": self._preview,
            "document": self._document,
            "campaign": self._begin,
            "reopen": self._reopen,
            "leave": self._leave,
            "view": self._look,
            "predict": self._predict,
        }

    def warm_up(self) -> None:
        """Load what the first commands would have to wait for; nothing is compiled."""
        model, formula = st.Model.parse(_SMALL), st.stl("F[0, 1] A == 0")
        space, theta = st.Space(k=(0.5, 1.5)), {"k": 1.0}
        st.explain(formula, st.simulate(model, theta, until=1, seed=1))
        seen = st.Observations.from_counts(space, {"k": [0.5, 1.0, 1.5]}, [1, 2, 3], 5)
        st.SVIGP(inducing=8).fit(seen, seed=1, progress=None).predict(space.grid(3))
        with suppress(CompilingError):
            st.observe(model, formula, space.sobol(8, seed=1), 5, seed=1, workers=1, progress=Impatient())
            st.replay(model, theta, until=1, seed=1, progress=Impatient())

    def at_once(self, message: Answer) -> bool:
        """In the thread that reads: hand commands of the campaign on; False for what the main thread answers."""
        name, body, number = message["command"], message["body"], message["id"]
        if name in ("runs", "preview"):
            self._newest[name] = number
        kinds: dict[str, type] = {"refine": RefineAsked, "certify": CertifyAsked, "save": SaveAsked}
        if name not in (*kinds, "halt", "resume"):
            self._waiting += 1
            return False
        campaign = self.campaign
        if campaign is None:
            self._send(number, {"error": refusal("input", "nothing has been started yet")})
            return True
        try:
            if name in kinds:
                body = asdict(self._checked(campaign, read_body(kinds[name], body)))
        except InputError as error:
            self._send(number, {"error": error_content(error)})
            return True
        if name in ("refine", "certify"):  # these take long: the state tells how far they are
            self._send(number, {"value": {}})
            campaign.command(name, body, lambda given: self._tell_fault(given))
        else:
            campaign.command(name, body, lambda given: self._give(number, given))
        return True

    @staticmethod
    def _checked(campaign: Campaign, asked: Any) -> Any:
        if campaign.restored.is_set():
            campaign.known()
        if not isinstance(asked, SaveAsked):
            check_threshold(asked.threshold)
        if isinstance(asked, RefineAsked) and asked.where != "unsure":
            if list(asked.where) != ["theta"]:
                raise InputError("where is 'unsure', or has theta")
            campaign.question.values(asked.where["theta"])
        return asked

    def answer(self, message: Answer) -> None:
        """Carry a command out, and send its answer, or the error."""
        number = message["id"]
        try:
            self._give(number, self._answers[message["command"]](number, message["body"]))
        except Exception as error:
            self._give(number, error)
        finally:
            self._waiting -= 1
        then, self._then = self._then, None
        if then is not None:
            then.start()

    def _give(self, number: int | None, given: object) -> None:
        if isinstance(given, SupersededError):
            self._send(number, {"error": refusal("busy", "a newer click came first")})
        elif isinstance(given, Halted):
            self._send(number, {"error": refusal("busy", "it was stopped")})
        elif isinstance(given, Exception):
            self._send(number, {"error": error_content(given)})
        else:
            self._send(number, {"value": given})

    def _tell_fault(self, given: object) -> None:
        if isinstance(given, Exception):
            self.channel.tell({"state": {"error": error_content(given)}})

    def _send(self, number: int | None, content: Answer) -> None:
        if number is not None:
            self.channel.tell({"id": number, **content})

    # Clicks and keystrokes

    def _question(self, document: Document) -> Question:
        """The question of a document, which is not read again for every click."""
        key = repr(document)
        known = self._questions.get(key)
        if known is None:
            known = question_of(document, self.folder)
            self._questions = {key: known}
        return known

    def _run(self, number: int | None, body: Answer) -> Answer:
        asked = read_body(RunAsked, body)
        return self._clicks.reference(self._question(asked.doc), asked.theta, asked.seed)

    def _runs(self, number: int | None, body: Answer) -> Answer:
        asked = read_body(RunsAsked, body)

        def superseded() -> bool:
            return self._newest.get("runs") != number

        return self._clicks.batch(self._question(asked.doc), asked.theta, asked.count, asked.batch, superseded)

    def _that_run(self, number: int | None, body: Answer) -> Answer:
        asked = read_body(ThatRunAsked, body)
        return self._clicks.one(self._question(asked.doc), asked.theta, asked.run, asked.batch, asked.by)

    def _preview(self, number: int | None, body: Answer) -> Answer:
        asked = read_body(CampaignAsked, body)
        question = self._question(asked.doc)
        frame = preview(question, asked.frame, lambda: self._waiting > 1)
        if frame is not None:
            self.channel.show(frame)
        again = frame is None and self._waiting > 1
        if not again:
            self._clicks.compile_soon(question)
        return {"shown": not again}

    def _document(self, number: int | None, body: Answer) -> Answer:
        asked = read_body(OpenAsked, body)
        given = {name: value for name, value in asdict(asked).items() if value is not None}
        if len(given) != 1:
            raise InputError("give one of path, example and session")
        ((kind, name),) = given.items()
        if kind == "session":
            record = session_folder(self.folder.root, name).read()
            return {"doc": record.document, "session": name, "study": None}
        if kind == "example":
            if name not in EXAMPLES:
                raise InputError(f"there is no example {name[:100]!r}; there are {', '.join(EXAMPLES)}")
            return {"doc": example(name), "session": None, "study": None}
        session = self._session_of(name)
        study = name if session is None and has_result(name, self.folder) else None
        return {"doc": document_of(name, self.folder), "session": session, "study": study}

    def _session_of(self, path: str) -> str | None:
        """The session that saved a study."""
        for folder in self.folder.sessions() if is_study(path) else ():
            session = session_folder(self.folder.root, folder.name.removesuffix("-session"))
            try:
                if session.read().saved == path:
                    return session.name
            except st.SateenError:
                continue
        return None

    # The campaign

    def _begin(self, number: int | None, body: Answer) -> Answer:
        asked = read_body(CampaignAsked, body)
        question = question_of(asked.doc, self.folder)
        name = free_name(self.folder.root, asked.doc.title) if asked.name is None else asked.name
        folder = session_folder(self.folder.root, name)
        if folder.path.exists():
            raise InputError(f"there is a session {name} already", remedy="open it, or choose another name")
        record, phase = Record(body["doc"]), "learning"
        if asked.study is not None:
            record, phase = with_training(record, folder, self.folder, asked.study, question), "stopped"
        self._launch(Campaign(question, self.folder, folder, record, self.channel, asked.frame), phase)
        return {"session": name, "phase": phase, "runs": record.runs}

    def _reopen(self, number: int | None, body: Answer) -> Answer:
        asked = read_body(ReopenAsked, body)
        folder = session_folder(self.folder.root, asked.name)
        record = folder.read()
        question = question_of(read_body(Document, record.document), self.folder)
        campaign = Campaign(question, self.folder, folder, record, self.channel, asked.frame)
        if asked.view is not None:
            campaign.look(asked.view)
        self._launch(campaign, asked.phase)
        claims = [dict(each) for each in record.claims]
        told = {"session": folder.name, "phase": asked.phase, "runs": record.runs}
        return {**told, "claims": claims, "saved": record.saved}

    def _leave(self, number: int | None, body: Answer) -> Answer:
        """End the campaign that is there; nothing more is heard of it."""
        if self.campaign is not None and self._learning is not None:
            self.campaign.close()
            self._learning.join()
        self.campaign = None
        return {}

    def _launch(self, campaign: Campaign, phase: str) -> None:
        """Let a campaign begin, once the answer has gone out: then no state comes before it."""
        self._leave(None, {})
        self.campaign = campaign
        self._learning = threading.Thread(target=campaign.run, args=(phase,), name="learn", daemon=True)
        self._then = self._learning

    def _look(self, number: int | None, body: Answer) -> Answer:
        campaign = self._loaded()
        campaign.look(read_body(View, body))
        return {"frame": campaign.frame}

    def _predict(self, number: int | None, body: Answer) -> Answer:
        asked = read_body(PointsAsked, body)
        campaign = self._loaded()
        posterior, frame = campaign.known(), campaign.frame
        space = posterior.space
        names = dict(space.parameters)
        for each in asked.points:
            if missing := [name for name in space.names if name not in each]:
                raise InputError(f"{missing[0]} is missing in a point")
        rows = {
            name: [each[name] for each in asked.points] for name in names if all(name in each for each in asked.points)
        }
        predicted = posterior.predict(space.points(rows), level=asked.level)
        arrays = {
            "mean": predicted.mean,
            "lower": predicted.lower,
            "upper": predicted.upper,
            "deviation": predicted.std,
        }
        return {"frame": frame, **{name: array.tolist() for name, array in arrays.items()}}

    def _loaded(self) -> Campaign:
        if self.campaign is None:
            raise InputError("nothing has been started yet", remedy="press Start first")
        return self.campaign
