"""The formats that are text: models, formulas, properties, studies and tables."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final
from zlib import crc32

import sateen as st
from fuzz.judging import SECRET, Format, promise
from fuzz.mutators import SWELLERS, spoilt, swollen
from sateen.core.errors import TextError
from sateen.language.grammar import parse_condition, parse_expression
from sateen.logic.csl import read_properties
from sateen.model.model import Model
from sateen.model.prism import read_prism
from sateen.model.readers import READERS

HERE: Final = Path(__file__).resolve().parent
EXAMPLES: Final = HERE.parents[1] / "examples"
CASE: Final = "case"  # the name of every input, before the suffix
# What a study or a model may name, and no reader may run or show.
CANARY: Final = "import builtins\nbuiltins.sateen_canary = 'code was run'\ndef ruined(theta, rng): return True\n"


def seeds_of(name: str, *examples: str) -> list[bytes]:
    """The valid inputs of a format: those in its folder, and some of the examples."""
    own = sorted((HERE / "seeds" / name).iterdir())
    return [file.read_bytes() for file in (*own, *(EXAMPLES / each for each in examples))]


def text_of(data: bytes) -> str:
    """The text; wrong bytes become surrogates, as in names of files."""
    return data.decode("utf-8", "surrogateescape")


def written(data: bytes, folder: Path, suffix: str) -> Path:
    file = folder / f"{CASE}{suffix}"
    file.write_bytes(data)
    return file


def text_format(
    name: str,
    kind: str,
    examples: tuple[str, ...],
    tokens: str,
    read: Callable[[bytes, Path], None],
    in_ci: int,
    suffix: str = "",
) -> Format:
    """A format whose seeds are texts."""
    words = (HERE / "tokens" / f"{tokens}.txt").read_text().split()
    words = [each.replace("␣", " ").replace("⏎", "\n") for each in words]

    def prepare(folder: Path) -> list[bytes]:
        for other in ("secret.txt", "secret.ant", "secret.xml", "secret.toml"):
            (folder / other).write_text(f"{SECRET} = {SECRET} {SECRET}\n")
        for script in ("canary.py", "ruin.py"):
            (folder / script).write_text(CANARY)
        for example in ("sir.sateen", "birth_death.sateen", "queue.prism", "epidemic.ant", "gene_switch.xml"):
            (folder / example).write_bytes((EXAMPLES / example).read_bytes())
        return seeds_of(name, *examples)

    def mutate(rng: Random, seeds: list[bytes]) -> bytes:
        return spoilt(rng, seeds, words, kind)

    return Format(
        prepare,
        mutate,
        lambda data, _, folder: read(data, folder),
        in_ci,
        lambda seeds: seeds[0],
        suffix and f"{CASE}{suffix}",
        {how: partial(swollen, how) for how in SWELLERS},
    )


def check_model(model: Model) -> None:
    """A model is what its text says."""
    promise(Model.parse(str(model)) == model, f"str(model) reads back as another model\n{str(model)[:300]}")
    repr(model)
    model._repr_html_()


def read_model(data: bytes, folder: Path, suffix: str, constants: dict[str, object] | None = None) -> None:
    """The model in a file; of the files that are not UTF-8, half are read as text with surrogates."""
    try:
        data.decode()
    except UnicodeDecodeError:
        if crc32(data) % 2:
            reader = READERS[suffix]
            text = text_of(data)
            try:
                check_model(reader.read(text, constants=constants) if reader.takes_constants else reader.read(text))
            except TextError as error:
                if error.text:  # without, it is about the whole text, and there is no file to name
                    raise
            return
    check_model(Model.load(written(data, folder, suffix), constants=constants))


def read_formula(data: bytes, folder: Path) -> None:
    text = text_of(data)
    formula = st.stl(text)
    promise(st.stl(str(formula)) == formula, f"str(formula) reads back as another: {str(formula)[:300]!a}")
    promise(formula.horizon >= 0, "a negative horizon")


def read_expression(data: bytes, folder: Path) -> None:
    """A number, or else a condition."""
    text, parse = text_of(data), parse_expression
    try:
        expression = parse(text)
    except st.SateenError:
        parse = parse_condition
        expression = parse(text)
    promise(parse(str(expression)) == expression, f"reads back as another: {str(expression)[:300]!a}")


def read_prism_model(data: bytes, folder: Path) -> None:
    constants = {"capacity": 10} if b"capacity" in data else {}
    read_model(data, folder, ".prism", constants)


def read_prism_properties(data: bytes, folder: Path) -> None:
    model = read_prism((folder / "queue.prism").read_text(), constants={"capacity": 10})
    constants = {"T": 20} if b"const double T" in data else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", st.SateenWarning)  # which says what the errors below say
        properties = read_properties(text_of(data), model, constants=constants)
    for each in properties.read.values():
        if isinstance(each.formula, st.Reward):
            promise(set(each.formula.names) <= set(model.model.names), f"reads other names: {each.formula!s:.300}")
            continue
        end = each.formula.end
        promise(st.stl(str(each.formula), end=end) == each.formula, f"reads back as another: {each.formula!s:.300}")
    for error in properties.refused.values():
        raise error


def read_study(data: bytes, folder: Path) -> None:
    study = st.Study.load(written(data, folder, ".toml"))
    repr(study)
    study._repr_html_()
    json.dumps(study.content())
    json.dumps(study.question(), allow_nan=False)


def read_observations(data: bytes, folder: Path) -> None:
    observations = st.Observations.from_csv(written(data, folder, ".csv"))
    check_observations(observations)
    again = folder / "again.csv"
    observations.to_csv(again)
    promise(st.Observations.from_csv(again) == observations, "the table reads back as other observations")


def check_observations(observations: st.Observations) -> None:
    """Counts that runs can have, at points of the space."""
    import numpy as np

    promise(np.isfinite(observations.theta).all(), "a parameter is not finite")
    decided = observations.satisfied + observations.undecided
    promise((observations.satisfied >= 0).all() and (observations.undecided >= 0).all(), "a negative count")
    promise((decided <= observations.trials).all(), "more verdicts than runs")
    repr(observations)
    observations._repr_html_()


def read_path(data: bytes, folder: Path) -> None:
    path = st.Path.from_csv(written(data, folder, ".csv"))
    repr(path)
    path._repr_html_()
    again = folder / "again.csv"
    path.to_csv(again)
    promise(st.Path.from_csv(again) == path, "the table reads back as another path")


TEXTS: Final[dict[str, Format]] = {
    "model": text_format(
        "model",
        "text",
        ("sir.sateen", "birth_death.sateen"),
        "model",
        lambda data, folder: read_model(data, folder, ".sateen"),
        350,
        ".sateen",
    ),
    "formula": text_format("formula", "text", (), "formula", read_formula, 350),
    "expression": text_format("expression", "text", (), "formula", read_expression, 350),
    "sbml": text_format(
        "sbml",
        "xml",
        ("gene_switch.xml",),
        "sbml",
        lambda data, folder: read_model(data, folder, ".xml"),
        200,
        ".xml",
    ),
    "antimony": text_format(
        "antimony",
        "text",
        ("epidemic.ant",),
        "antimony",
        lambda data, folder: read_model(data, folder, ".ant"),
        20,
        ".ant",
    ),
    "prism": text_format("prism", "text", ("queue.prism",), "prism", read_prism_model, 200, ".prism"),
    "properties": text_format("properties", "text", ("queue.props",), "prism", read_prism_properties, 170),
    "study": text_format(
        "study",
        "toml",
        ("sir.toml", "ruin.toml", "birth_death.toml", "queue.toml"),
        "study",
        read_study,
        200,
        ".toml",
    ),
    "observations": text_format("observations", "csv", (), "csv", read_observations, 200, ".csv"),
    "path": text_format("path", "csv", (), "csv", read_path, 200, ".csv"),
}
