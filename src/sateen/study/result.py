"""A Result: what a study found, as it stands in the folder of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from sateen.assess.score import Score
from sateen.core.errors import InputError, StoreError
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Prediction, drawn_uniformly
from sateen.core.space import Points, Range, Space
from sateen.core.types import File
from sateen.guarantee.error_bound import ErrorBound
from sateen.guarantee.guarantee import Guarantee
from sateen.guarantee.plan import Plan
from sateen.learning.posterior import LearnedPosterior
from sateen.pipeline.folder import CachedFile, ResultFolder, read_json
from sateen.study.planning import plan_from_content
from sateen.study.stored import load

__all__ = ["FORMAT", "PropertyResult", "Result"]

FORMAT: Final = 1
_PARTS: Final = ("train", "test", "calibrate")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PropertyResult:
    """What was found about one property.

    - `formula` as text, with `end`; None where a callable decides by itself.
    - `train`, `test`, `calibrate`: the observations of each part. `calibrate` and `test` are None where the study has
      none. All three have `seconds`, `seed`, `undecided` and `reasons`; each run can be replayed.
    - `posteriors` by method, in the order of the study; each has `record` (convergence, objective by step, seconds,
      notes) and `importance()`.
    - `guarantee` is that of the posterior of the method `guaranteed`; `plan` is what it was planned to be, None where
      points and runs were given; `error_bound` bounds the mean error over θ.
    - `scores` by method, against the test runs, of 95 % credible intervals; `guarantee_score` of the guaranteed ones.
    - `predictions` by method, and `guaranteed_prediction`, at the fixed points that result.json tells: a grid of 201
      points in one dimension, 31 by 31 in two, 512 Sobol points in more. For finer pictures ask the posteriors.
    - `claims` are the promises made, strongest first: of the guarantee, or else of the first posterior (a belief);
      and of the bound on the mean error. Each is a sentence: `str(claim)`.
    - `verdict` is the answer in a sentence, for whoever reads nothing else.
    """

    name: str
    formula: str | None
    end: float | None
    train: Observations
    test: Observations | None
    calibrate: Observations | None
    posteriors: Mapping[str, LearnedPosterior]
    guarantee: Guarantee | None
    guaranteed: str | None
    plan: Plan | None
    error_bound: ErrorBound | None
    scores: Mapping[str, Score]
    guarantee_score: Score | None
    predictions: Mapping[str, Prediction]
    guaranteed_prediction: Prediction | None
    claims: tuple[Claim, ...]
    verdict: str

    def __repr__(self) -> str:
        return f"<PropertyResult {self.verdict}>"

    def _repr_html_(self) -> str:
        scores = "".join(f"<h4>{escape(method)}</h4>{own._repr_html_()}" for method, own in self.scores.items())
        return f"<p>{escape(self.verdict)}</p>{scores}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """What a study found: `properties` by name, in the order of the study.

    `model` is the model's text, or the address of the callable; `space` where θ lives. `content` is result.json as
    plain data, `provenance` is provenance.json: versions, seeds, hashes, times, the study file, the command.
    """

    name: str
    seed: int
    folder: FilePath
    model: str
    space: Space
    properties: Mapping[str, PropertyResult]
    content: Mapping[str, Any]
    provenance: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The study file as it was run."""
        return str(self.provenance.get("text", ""))

    @property
    def command(self) -> str:
        """What reproduces it."""
        return str(self.provenance.get("command", ""))

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long each stage took, also those that an earlier run made; runs and fits are measured without waiting."""
        return MappingProxyType(self.provenance.get("seconds", {}))

    @property
    def stages(self) -> Mapping[str, str]:
        """Of each stage, in order, whether the last run "made" it or it was "taken over"."""
        return MappingProxyType(self.provenance.get("stages", {}))

    @classmethod
    def load(cls, folder: File) -> Result:
        """The result in a folder that `run` has filled."""
        where = ResultFolder(FilePath(folder))
        if not where.result.is_file():
            hint = "the study has not come to its end there; run it again" if where.stages.is_dir() else "give another"
            raise InputError(f"{folder} has no result of a study; {hint}")
        about = CachedFile(where.provenance, "", read_json).value() if where.provenance.is_file() else {}
        return cls.found_in(where, about)

    @classmethod
    def found_in(cls, where: ResultFolder, about: Mapping[str, Any]) -> Result:
        """The result in a folder, `about` whose making this is told."""
        content = CachedFile(where.result, "", _content).value()
        try:
            question = content["question"]
            ranges = {name: Range(*own) if isinstance(own, list) else own for name, own in question["space"]}
            space = Space(ranges)
            found = {name: _property(where, space, name, own) for name, own in content["properties"].items()}
            model = question.get("model") or question["callable"]
            named = MappingProxyType(found)
            told = MappingProxyType(content), MappingProxyType(dict(about))
            return cls(content["study"], content["seed"], where.path, model, space, named, *told)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{where.result} makes no sense: {error!r}\n  run the study again") from error

    def made_by(self, provenance: Mapping[str, Any]) -> Result:
        """The same result, of which is told how it was made."""
        return replace(self, provenance=MappingProxyType(dict(provenance)))

    def __repr__(self) -> str:
        return f"<Result of {self.name} in {self.folder}: {', '.join(self.properties)}>"

    def _repr_html_(self) -> str:
        return "".join(own._repr_html_() for own in self.properties.values())


def _content(file: FilePath) -> dict[str, Any]:
    content = read_json(file)
    if content.get("format") != FORMAT:
        raise InputError(f"{file} is of the format {content.get('format')}, and this sateen reads {FORMAT}")
    return content


def _property(where: ResultFolder, space: Space, name: str, content: Mapping[str, Any]) -> PropertyResult:
    files = {key: where.stages / file for key, file in content["files"].items()}
    parts = {part: CachedFile(files[part], "", Observations.load).value() if part in files else None for part in _PARTS}
    train = parts["train"]
    assert train is not None
    methods = content["methods"]
    told, predicted = content["guarantee"], content["predictions"]
    posteriors = {method: CachedFile(files[f"learn.{method}"], "", load_posterior).value() for method in methods}
    guarantee = None if told is None else CachedFile(files["guarantee"], "", load_guarantee).value()
    bound = content["error_bound"]
    formula = content["formula"] or {"text": None, "end": None}
    columns = list(predicted["points"].values())
    count = len(predicted["methods"][next(iter(methods))]["mean"])
    points = Points(np.array(columns, dtype=np.float64).T if columns else np.empty((count, 0)), space, "given")
    beliefs = {method: _belief(own["learner"], predicted["level"], space) for method, own in methods.items()}
    return PropertyResult(
        name=name,
        formula=formula["text"],
        end=formula["end"],
        train=train,
        test=parts["test"],
        calibrate=parts["calibrate"],
        posteriors=MappingProxyType(posteriors),
        guarantee=guarantee,
        guaranteed=None if told is None else content["of"],
        plan=None if content["plan"] is None else plan_from_content(content["plan"]),
        error_bound=None if bound is None else ErrorBound(**{**bound, "claim": Claim.from_content(bound["claim"])}),
        scores=MappingProxyType({m: Score(**own["score"]) for m, own in methods.items() if own["score"]}),
        guarantee_score=Score(**told["score"]) if told and told["score"] else None,
        predictions=MappingProxyType(
            {m: Prediction(points, **own, level=predicted["level"], claim=beliefs[m]) for m, own in _shown(predicted)}
        ),
        guaranteed_prediction=None
        if guarantee is None
        else Prediction(points, **predicted["guarantee"], level=guarantee.level, claim=guarantee.claim),
        claims=tuple(Claim.from_content(claim) for claim in content["claims"]),
        verdict=content["verdict"],
    )


def _shown(predicted: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return list(predicted["methods"].items())


def _belief(learner: str, level: float, space: Space) -> Claim:
    """What the credible intervals of a learner say, as `predict` has it."""
    return Claim("probability", "credible", level, drawn_uniformly(space), by=learner)


def load_posterior(file: FilePath) -> LearnedPosterior:
    """The posterior in a file of a stage."""
    found = load(file)
    if isinstance(found, Guarantee):
        raise InputError(f"{file} is a guarantee, and should be a posterior")
    return found


def load_guarantee(file: FilePath) -> Guarantee:
    """The guarantee in a file of a stage."""
    found = load(file)
    if not isinstance(found, Guarantee):
        raise InputError(f"{file} is a posterior, and should be a guarantee")
    return found
