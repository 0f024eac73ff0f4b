"""The command `init`: a study file for a model, with comments, ready to run."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

import sateen as st
from sateen.cli.inspect import plausible_ranges
from sateen.cli.options import (
    AT,
    CONST,
    END,
    JSON,
    SEED,
    VARY,
    check_once,
    given_scale,
    property_option,
    target_option,
)
from sateen.cli.output import number, show
from sateen.cli.sources import Source, load_model, read_property
from sateen.core.errors import InputError, nearest
from sateen.core.text import plural

if TYPE_CHECKING:
    from sateen.logic.properties import Property

_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_WINDOW: Final = re.compile(r"\[[^\]]*[\])]")
_WORDS: Final = {
    **{"F": " eventually ", "G": " always ", "U": " until ", "!": " not ", "&": " and ", "|": " or "},
    **{"->": " implies ", "<->": " iff ", ">": " above ", "<": " below ", ">=": " at_least ", "<=": " at_most "},
    **{"==": " is ", "!=": " is_not ", "+": " plus ", "-": " minus ", "*": " times ", "/": " over "},
}
_SIGN: Final = re.compile(r"\b[FGU]\b|<->|->|[<>=!]=|[!&|<>+*/-]")
_LONGEST_NAME: Final = 60
_WIDTH: Final = 48  # of a line, before its comment
_GUESS: Final = (0.1, 10.0)  # for a parameter without a default
_INSIDE: Final = 0.3819660112501051  # of a range: no whole number lies there but by chance
_POINTS: Final = (128, 512, 1024, 2048, 4096)  # of the training, by how many parameters vary; powers of 2, for Sobol
_RUNS: Final = 50
_TEST: Final = (200, 1000)  # points, and runs at each
_MOST_FOR_EP: Final = 1024  # points, for ep-gp takes cubic time in them


@dataclass(frozen=True, slots=True)
class _Study:
    """What the file says."""

    name: str
    model: str  # its file, as seen from the study
    constants: Mapping[str, float]
    scale: float | str | None
    system: st.Model
    vary: Mapping[str, st.Range]
    fixed: Mapping[str, float]
    properties: Mapping[str, Property[st.Formula]]
    seed: int


@click.command()
@click.argument("model")
@VARY
@property_option("The formula that a run should satisfy; repeatable.", required=True, several=True)
@AT
@CONST
@END
@SEED
@target_option("study", "STUDY.toml", text="The file to write; by default MODEL.toml.")
@JSON
def init(
    model: str,
    vary: Mapping[str, st.Range],
    texts: Sequence[str],
    at: Mapping[str, float],
    constants: Mapping[str, float],
    end: float | None,
    seed: int,
    target: str | None,
    as_json: bool,
) -> None:
    """Write a study file for the MODEL in a file: its space, its properties, and sensible sizes, with comments.

    Names and formulas are checked against the model. Without --vary all parameters are proposed with plausible ranges,
    commented out. An existing file is not overwritten.

    \b
    sateen init examples/sir.sateen --vary beta=0.005:0.3 -p "(I > 0) U[100, 120] (I == 0)" -o sir.toml
    sateen init examples/queue.prism --const capacity=10,T=20 --vary arrival=0.5:3 -p examples/queue.props:full
    """
    source = load_model(model, constants)
    system = source.model
    check_once(vary, at)
    _check_names(system, vary, at)
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", os.path.splitext(os.path.basename(model))[0])[:60].lstrip("-") or "study"
    file = target or f"{stem}.toml"
    if os.path.lexists(file):
        raise InputError(f"{file} exists, and is not overwritten", remedy="give another name with -o")
    study = _Study(
        name=stem,
        model=os.path.relpath(model, os.path.dirname(file) or ".").replace(os.sep, "/"),
        constants={name: value for name, value in constants.items() if name not in source.constants},
        scale=given_scale(),
        system=system,
        vary=vary,
        fixed=at,
        properties=_properties(source, texts, end, vary, at),
        seed=seed,
    )
    _write(file, "".join(f"{line}\n" for line in _lines(study, file)))
    formulas = {name: str(each.formula) for name, each in study.properties.items()}
    advice = [] if vary else [f"choose in [space] what varies, then: sateen run {file}"]
    show(
        as_json,
        lambda: {"model": model, "file": file, "vary": list(vary), "properties": formulas},
        lambda: [*advice, file],
    )


def _check_names(model: st.Model, vary: Mapping[str, st.Range], at: Mapping[str, float]) -> None:
    """Every name is a parameter of the model, and is given once; and none is left without a value, if some vary."""
    known = [parameter.name for parameter in model.parameters]
    if not known:
        raise InputError(
            "this model has no parameter that could vary; write constants as parameters, or leave them open"
        )
    for name in (*vary, *at):
        if name not in known:
            hint = nearest(name, known) or f"its parameters are {', '.join(known)}"
            raise InputError(f"the model has no parameter {name}; {hint}")
    for parameter in model.parameters if vary else ():
        if parameter.default is None and parameter.name not in (*vary, *at):
            ways = f"--vary {parameter.name}=0.1:10 or --at {parameter.name}=1"
            problem = f"the parameter {parameter.name} has no value"
            raise InputError(problem, remedy=f"give it a range or a number: {ways}")


def _properties(
    source: Source, texts: Sequence[str], end: float | None, vary: Mapping[str, st.Range], at: Mapping[str, float]
) -> dict[str, Property[st.Formula]]:
    """The properties by the names that they have in the study."""
    model = source.model
    chosen = {each.name: 1.0 if each.default is None else each.default for each in model.parameters}
    chosen |= {name: one.low for name, one in vary.items()} | dict(at)
    values = model.values(chosen)
    properties: dict[str, Property[st.Formula]] = {}
    if vary:
        within = {name: one.low + _INSIDE * (one.high - one.low) for name, one in vary.items()}
        model.initial(model.values({**chosen, **within}))  # a count that only some values make whole is found here
    for text in texts:
        question = read_property(source, values, text, end)
        for name in question.formula.species:
            if model.meaning(name) is None:
                hint = nearest(name, model.readable) or f"it has {', '.join(model.readable[:10])}"
                raise InputError(f"{text}: the model has no {name}; {hint}")
        name = question.name.rpartition(":")[2] or _new_name(question.formula, properties)
        if name in properties:
            raise InputError(f"two properties are called {name}; give each once")
        properties[name] = question
    return properties


def _new_name(formula: st.Formula, taken: Mapping[str, object]) -> str:
    """A name that says what the formula is about: the words for its signs, without its windows."""
    words = _SIGN.sub(lambda found: _WORDS.get(found[0], found[0]), _WINDOW.sub(" ", str(formula)))
    name = "_".join(re.findall(r"[A-Za-z0-9_]+", words.replace(".", "p")))[:_LONGEST_NAME].rstrip("_") or "property"
    names = itertools.chain([name], (f"{name}_{n}" for n in itertools.count(2)))
    return next(each for each in names if each not in taken)


def _write(file: str, text: str) -> None:
    """Write a file that is not there; if another made it meanwhile, that one stays."""
    try:
        with open(file, "x", encoding="utf-8") as stream:
            try:
                stream.write(text)
                stream.flush()
            except OSError:
                os.unlink(file)
                raise
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from None


def _lines(study: _Study, file: str) -> Iterator[str]:
    """The study file, line by line."""
    dimension = len(study.vary) or len(study.system.parameters)
    points = _POINTS[min(dimension, len(_POINTS)) - 1]
    yield f"# {study.name}: how probable its properties are, as a function of what varies in [space]."
    yield "#"
    yield f"#     sateen run {file}"
    yield from ("", "[study]", f"name = {_quoted(study.name)}")
    yield _noted(f"seed = {study.seed}", "the same seed and budget give the same result")
    yield from ("", "[model]", _noted(f"file = {_quoted(study.model)}", "as seen from this file"))
    if study.constants:
        pairs = ", ".join(f"{_key(name)} = {number(value)}" for name, value in study.constants.items())
        yield _noted(f"constants = {{ {pairs} }}", "those that the model leaves open")
    if study.scale is not None:
        scale = _quoted(study.scale) if isinstance(study.scale, str) else number(study.scale)
        yield _noted(f"scale = {scale}", "molecules in a unit of amount")
    yield from ("", "[space]", *_space_lines(study))
    yield from ("", "[property]", *_property_lines(study.properties))
    yield from ("", "[observe]")
    train = f'train     = {{ design = "sobol", points = {points}, runs = {_RUNS} }}'
    yield _noted(train, f"for {plural(dimension, 'parameter')}; more points, finer detail")
    yield _noted(
        'calibrate = { seconds = "training" }',
        "as long as the training takes, measured once; the result names the budget that repeats it",
    )
    yield _noted(f'test      = {{ design = "uniform", points = {_TEST[0]}, runs = {_TEST[1]} }}', "for the scores only")
    yield from ("", "[learn]")
    learners, others = ["svi-gp", "ep-gp"], ["svi-bnn", "laplace-net"]
    if points > _MOST_FOR_EP:
        others.insert(0, learners.pop())
    names = ", ".join(map(_quoted, learners))
    yield _noted(f"learners = [{names}]", f"the first one is guaranteed; also {', '.join(others)}")
    yield from ("", "[guarantee]", _noted('method = "lift"', "intervals for the probability itself"))
    yield _noted("level = 0.9", "the share of the space where they hold")
    yield _noted("confidence = 0.95", "how sure that is")


def _space_lines(study: _Study) -> Iterator[str]:
    proposed = plausible_ranges(study.system)
    if not study.vary:
        yield "# Nothing varies yet. Remove the # from one or more of these lines, and set the ends."
    for parameter in study.system.parameters:
        name, default = parameter.name, parameter.default
        note = "no default" if default is None else f"the default is {number(default)}"
        if name in study.vary:
            yield _noted(f"{_key(name)} = {_range_text(study.vary[name])}", note)
        elif name in study.fixed:
            yield _noted(f"{_key(name)} = {number(study.fixed[name])}", f"fixed; {note}")
        elif (range_ := proposed[name]) is not None:
            yield _noted(f"# {_key(name)} = {_range_text(range_)}", note)
        elif default is None:
            guess = f"# {_key(name)} = [{number(_GUESS[0])}, {number(_GUESS[1])}]"
            yield _noted(guess, "no default: give it a range or a number")
        else:
            yield _noted(f"# {_key(name)} = {number(default)}", f"{note}; it suggests no range")


def _property_lines(properties: Mapping[str, Property[st.Formula]]) -> Iterator[str]:
    for name, question in properties.items():
        formula, end = _quoted(str(question.formula)), question.formula.end
        value = formula if end is None else f"{{ formula = {formula}, end = {number(end)} }}"
        notes = [question.name] if question.name else []
        if question.comparison is not None:
            notes.append(f"the question is whether P {question.comparison} {number(question.bound or 0.0)}")
        if question.formula.horizon == float("inf"):
            notes.append("without a last time: runs that take too long are undecided")
        yield _noted(f"{_key(name)} = {value}", "; ".join(notes))


def _range_text(range_: st.Range) -> str:
    ends = f"[{number(range_.low)}, {number(range_.high)}]"
    return ends if range_.scale == "linear" else f'{{ range = {ends}, scale = "log" }}'


def _noted(line: str, note: str) -> str:
    return f"{line.ljust(_WIDTH)}  # {note}" if note else line


def _key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """Text as TOML writes it: JSON's escapes are TOML's too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
