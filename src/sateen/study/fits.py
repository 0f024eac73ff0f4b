"""The task of one fit of a study, which a worker elsewhere can make too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Final, Unpack

from sateen.core.errors import SateenError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, fit_learner
from sateen.core.prediction import Learner
from sateen.learning.registry import OwnLearner, find_learner
from sateen.pipeline.context import RunContext
from sateen.pipeline.elsewhere import Elsewhere
from sateen.pipeline.folder import ResultFolder
from sateen.pipeline.tasks import Save, Task, TaskOptions, folder_task
from sateen.study.loading import load_posterior

_ARRAYS: Final = ".safetensors"
_ADDRESS: Final = "sateen.study.fits:fit_in"


def fit_task(
    folder: ResultFolder,
    name: str,
    learner: tuple[str, Mapping[str, object], Learner],
    train: Task[Observations],
    seed: int,
    **options: Unpack[TaskOptions],
) -> Task[FullPosterior]:
    """What a learner, given by its name, its settings and itself, learns of a property.

    A learner of the user's own is not elsewhere: its code is here.
    """
    learner_name, settings, fitted = learner

    def make(context: RunContext) -> Save:
        posterior = fit_learner(
            fitted, train.value(), seed=seed, progress=context.progress, checkpoint=context.checkpoint
        )
        if posterior.record.interrupted:
            raise KeyboardInterrupt
        return posterior.save

    code = fitted.code.digest or None if isinstance(fitted, OwnLearner) else None
    if not isinstance(fitted, OwnLearner):
        given = (name, learner_name, dict(settings), seed, train.file.name, train.key)
        options["elsewhere"] = Elsewhere(_ADDRESS, given)
    return folder_task(
        folder,
        f"learn {name} {learner_name}",
        {"learner": learner_name, "settings": settings, "code": code, "seed": seed},
        make,
        read=load_posterior,
        needs=(train,),
        suffix=_ARRAYS,
        **options,
    )


def fit_in(
    path: str, name: str, learner: str, settings: Mapping[str, object], seed: int, train_file: str, train_key: str
) -> Task[FullPosterior]:
    """The same task in a folder of a worker, to which the file of the training is sent."""

    def make(context: RunContext) -> Save:
        raise SateenError(f"the training of {name} is missing")

    folder = ResultFolder(FilePath(path))
    train = Task(f"train {name}", train_key, folder.named(train_file), make, Observations.load)
    return fit_task(folder, name, (learner, settings, find_learner(learner, settings)), train, seed)
