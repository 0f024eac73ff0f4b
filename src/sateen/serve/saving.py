"""From a session to a study that reproduces what is seen, and from a study to a document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final

import sateen as st
from sateen.core.errors import InputError
from sateen.core.posterior import FullPosterior
from sateen.core.progress import Progress
from sateen.files.atomic import write_text
from sateen.model.readers import READERS
from sateen.sampling.observe import MAX_EVENTS
from sateen.serve.documents import CAPS, LEARNER, SUFFIXES, Question, constants_of
from sateen.serve.files import Folder, is_study, language_of
from sateen.serve.record import Record, SessionFolder, round_file
from sateen.study.file import StudyFile

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,59}")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
PROPERTY: Final = "property"
# Of a study file the page carries these keys, all of [space], and the first property and learner.
CARRIED: Final[Mapping[str, tuple[str, ...]]] = {
    "study": ("seed",),
    "model": ("text", "file", "callable", "constants", "scale", "split"),
    "observe": CAPS,
    "learn": ("learners",),
}
# These do not matter to it: it names its sessions, chooses its points and goes on from those of a result, certifies
# regions in the place of intervals, asks for thresholds on the map, and works on this machine.
REPLACED: Final[Mapping[str, tuple[str, ...]]] = {"study": ("name",), "observe": ("train", "test", "calibrate")}
REPLACED_TABLES: Final = ("guarantee", "decide", "run")
_RUN_AGAIN: Final = "run it again, or remove its folder of results"
_HEAD: Final = """# {name}: learned on the page of `sateen serve`, refined points included.
#
#     sateen run {name}.toml
"""


def save_study(
    question: Question, folder: Folder, name: str, observations: st.Observations, progress: Progress
) -> tuple[dict[str, str], FullPosterior]:
    """Write NAME.toml and what it needs, and run it: its report says what the page shows. Whatever was saved under the
    name before is replaced, unless it is another study's."""
    if not _NAME.fullmatch(name):
        problem = f"{name[:100]!r} cannot be part of the name of a file"
        raise InputError(problem, remedy="take letters, digits, _ and -, at most 60")
    root = folder.root
    study = root / f"{name}.toml"
    train = f"{name}-train.safetensors"
    for file in (study.name, train, f"{name}-result"):
        folder.path(file)
    if study.exists() and not study.read_text(encoding="utf-8").startswith(_HEAD.format(name=name)):
        raise InputError(f"{study.name} is a study of yours, which is not replaced", remedy="choose another name")
    observations.save(root / train)
    write_text(study, _text(question, folder, name, train))
    result = st.Study.load(study).run(progress=progress)
    (answer,) = result.properties.values()
    (posterior,) = answer.posteriors.values()
    files = {"path": study.name, "result": result.folder.name, "report": f"{result.folder.name}/report.html"}
    return files, posterior


def _text(question: Question, folder: Folder, name: str, train: str) -> str:
    """The text of the study."""
    document = question.document
    lines = [_HEAD.format(name=name), "[study]", f"name = {_quoted(name)}", f"seed = {document.seed}", ""]
    lines += ["[model]", *_model_lines(question, folder, name), "", "[space]"]
    for key, value in question.space.parameters:
        if isinstance(value, st.Range):
            ends = f"[{value.low!r}, {value.high!r}]"
            ends = f'{{ range = {ends}, scale = "log" }}' if value.scale == "log" else ends
        else:
            ends = repr(value)
        lines.append(f"{_key(key)} = {ends}")
    if question.formula is not None:
        formula, end = _quoted(str(question.formula)), question.formula.end
        asked = formula if end is None else f"{{ formula = {formula}, end = {end!r} }}"
        lines += ["", "[property]", f"{PROPERTY} = {asked}"]
    lines += ["", "[observe]", f"train = {{ file = {_quoted(train)} }}", *_lines(question.caps)]
    learner = document.learner or LEARNER
    lines += ["", "[learn]", f"learners = [{_quoted(learner)}]"]
    if question.settings:
        lines += [f"[learn.{_key(learner)}]", *_lines(question.settings)]
    return "\n".join([*lines, ""])


def _model_lines(question: Question, folder: Folder, name: str) -> list[str]:
    document = question.document
    if document.black_box:
        return [f"callable = {_quoted(document.source or '')}"]
    text = document.text
    same = document.source is not None and (text is None or folder.text(document.source) == text)
    if same and document.source is not None:
        lines = [f"file = {_quoted(document.source)}"]
    elif document.language == "sateen":
        return [f"text = {_long(text or '')}"]
    else:
        file = f"{name}{SUFFIXES[document.language]}"
        if (folder.root / file).exists() and folder.text(file) != text:
            raise InputError(f"there is another file {file}, which is not replaced", remedy="choose another name")
        write_text(folder.root / file, text or "")
        lines = [f"file = {_quoted(file)}"]
    if READERS[SUFFIXES[document.language]].takes_scale:
        lines += [] if document.scale is None else [f"scale = {_written(document.scale)}"]
        lines += [] if document.split else ["split = false"]
    if document.language == "prism":
        whole = folder.text(document.source) if text is None and document.source else text or ""
        if given := constants_of(document, whole):
            told = ", ".join(f"{_key(key)} = {_number(each)}" for key, each in given.items())
            lines.append(f"constants = {{ {told} }}")
    return lines


def document_of(path: str, folder: Folder) -> dict[str, Any]:
    """The document of a model or of a study, as the page edits it; a study gives its first property and learner."""
    if not is_study(path):
        return {"language": language_of(path), "text": folder.shown(path), "source": path, **_plain()}
    study, model = _read(path, folder)
    (formula, *_), space = study.properties.values(), dict(study.space.parameters)
    ranges = [
        {"name": key, "low": value.low, "high": value.high, "log": value.scale == "log"}
        for key, value in space.items()
        if isinstance(value, st.Range)
    ]
    fixed = {key: value for key, value in space.items() if not isinstance(value, st.Range)}
    learner, settings = next(iter(study.settings.items()))
    return {
        **_model_of(model, path, folder, fixed),
        "scale": model.get("scale"),
        "split": model.get("split", True),
        "constants": list(model.get("constants") or ()),
        "formula": "" if formula is None else str(formula),
        "end": None if formula is None else formula.end,
        "negate": False,
        "ranges": ranges,
        "fixed": fixed,
        "learner": None if learner in (LEARNER, "default") else learner,
        "settings": _plain_settings(settings, path, learner),
        "caps": dict(study.caps),
        "seed": study.seed,
        "name": FilePath(path).stem,
        "note": _note(path, study),
    }


def _read(path: str, folder: Folder) -> tuple[st.Study, Mapping[str, Any]]:
    """A study and its table [model]; refused unread if it names code, or a file outside of the folder."""
    text = folder.text(path)
    content: Mapping[str, Any] = StudyFile(text, FilePath(path).name).content

    def named(table: str, key: str) -> str:
        value = content.get(table)
        found = value.get(key) if isinstance(value, dict) else None
        if isinstance(found, dict):
            found = found.get("file")
        elif isinstance(found, list):
            found = next(iter(found), None)
        return found if isinstance(found, str) else ""

    if address := named("model", "callable"):
        folder.black_box(_beside(address, path, folder))
    for file in filter(None, (named("model", "file"), named("observe", "train"))):
        folder.beside(path, file)
    folder.learner(named("learn", "learners"))
    return st.Study.parse(text, file=folder.path(path)), content["model"]


def _beside(address: str, path: str, folder: Folder) -> str:
    """The address, from the folder on, of a black box that a study names: its file is next to the study."""
    file, _, name = address.rpartition(":")
    return f"{folder.beside(path, file)}:{name}" if file.endswith(".py") else address


def _plain_settings(settings: Mapping[str, object], path: str, learner: str) -> dict[str, object]:
    """The settings of a learner; refused where JSON has no word for one."""
    for key, value in settings.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise InputError(f"{path} sets {key} of {learner} to {value}, which the page does not carry") from None
    return dict(settings)


def _note(path: str, study: st.Study) -> str | None:
    """What of a study the page leaves aside."""
    (_, *properties), (_, *learners) = study.properties, study.learners
    rest = [("property", "properties", properties), ("learner", "learners", learners)]
    parts = [
        f"{len(names)} more {one if len(names) == 1 else many}: {', '.join(names)}"
        for one, many, names in rest
        if names
    ]
    return f"{path} has {'; and '.join(parts)}" if parts else None


def has_result(path: str, folder: Folder) -> bool:
    """Whether a study was run, so that there are observations to go on from."""
    return is_study(path) and (_result(path, folder) / "result.json").is_file()


def _result(path: str, folder: Folder) -> FilePath:
    """The folder of the result of a study."""
    study, _ = _read(path, folder)
    return folder.path(folder.beside(path, study.folder.name))


def with_training(record: Record, session: SessionFolder, folder: Folder, path: str, question: Question) -> Record:
    """The record of a session that begins with what a study observed of its first property."""
    result = st.Result.load(_result(path, folder))
    train = next(iter(result.properties.values())).train
    asked: dict[str, object] = {"max_events": MAX_EVENTS, "max_time": None, "max_population": None, **question.caps}
    asked["formula"] = None if question.formula is None else str(question.formula)
    asked["end"] = None if question.formula is None else question.formula.end
    if isinstance(question.model, st.Model):
        asked["model"] = str(question.model)
    others = [key for key, value in asked.items() if train.provenance.get(key, value) != value]
    if train.space != question.space or others:
        other = ", ".join(others) or "ranges"
        raise InputError(f"{path} has changed since it was run: its result has another {other}", remedy=_RUN_AGAIN)
    session.held.stages.mkdir(parents=True, exist_ok=True)
    train.save(round_file(session, 0))
    return record.begun({"kind": "file"}).completed(int(train.trials.sum()))


def _model_of(model: Mapping[str, Any], path: str, folder: Folder, fixed: dict[str, float]) -> dict[str, Any]:
    if "callable" in model:
        source = folder.black_box(_beside(model["callable"], path, folder))
        return {"language": "black-box", "text": None, "source": source}
    if "file" not in model:
        return {"language": "sateen", "text": model["text"], "source": None}
    fixed.update({name: float(value) for name, value in (model.get("constants") or {}).items()})
    source = folder.beside(path, model["file"])
    return {"language": language_of(source), "text": folder.shown(source), "source": source}


def _plain() -> dict[str, Any]:
    return {"formula": "", "negate": False, "ranges": [], "fixed": {}, "learner": None, "seed": 1}


def _lines(values: Mapping[str, object]) -> list[str]:
    """The lines of a table of TOML."""
    return [f"{_key(key)} = {_written(value)}" for key, value in values.items()]


def _written(value: object) -> str:
    """A value of TOML: but for tables, and a character, it is one of JSON too."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_lines(value))} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """A string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _long(text: str) -> str:
    """A text of several lines; as it stands, if that is possible."""
    plain = "\\" not in text and '"""' not in text and not text.endswith('"')
    if plain and all(mark >= " " or mark in "\n\t" for mark in text) and "\x7f" not in text:
        return f'"""\n{text}"""'
    return _quoted(text)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
