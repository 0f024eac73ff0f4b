"""A Study: one question about a model, from the file that asks it to the folder with the answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from sateen.core.code import Code, refuse_code, watching_code
from sateen.core.errors import InputError
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.reading import read_text
from sateen.core.types import File
from sateen.pools.pool import Executing, opened
from sateen.study.reading import read_study
from sateen.study.spec import RETURNED, StudySpec

if TYPE_CHECKING:
    from sateen.sampling.parts import Part
    from sateen.study.parts import PartResult
    from sateen.study.result import Result
    from sateen.study.stages import Forecast

_MOST_BYTES: Final = 2**18  # of a study file


@dataclass(frozen=True, slots=True, repr=False)
class Study(StudySpec):
    """One question: a model over a space, properties, what to observe, how to learn, what to guarantee.

    `load` reads it from a TOML file, and `run` answers it.

    >>> study = Study.parse('''
    ...     study = { name = "decay", seed = 1 }
    ...     model = { text = "species A = 10\\\\nA -> 0 @ mass_action(k)" }
    ...     space = { k = [0.1, 2] }
    ...     property = { gone = "F[0, 2] A == 0" }
    ...     observe = { train = { points = 64, runs = 20 } }
    ...     learn = { learners = ["svi-gp"] }
    ... ''')
    >>> study
    <Study decay: gone over Space(k=(0.1, 2)), by svi-gp>
    """

    @classmethod
    def load(cls, file: File) -> Study:
        """The study in a TOML file; files that it names are looked for next to it. No code that it names is run."""
        path = FilePath(file)
        try:
            if path.suffix.lower() != ".toml":
                raise InputError(f"{file} is not a study: a study is a TOML file, whose name ends in .toml")
            text = read_text(path, _MOST_BYTES)
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
        return cls.parse(text, file=path)

    @classmethod
    def parse(cls, text: str, *, file: File | None = None) -> Study:
        """The study in a TOML text; `file` is its place, next to which other files are looked for."""
        if len(text) > _MOST_BYTES:
            raise InputError(f"a study of {len(text):,} characters; at most {_MOST_BYTES:,} are read")
        return read_study(cls, text, None if file is None else FilePath(file))

    def run(
        self,
        folder: File | None = None,
        *,
        workers: int | None = None,
        executor: Executing | None = None,
        progress: Progress | None = USUAL,
        code: bool = True,
    ) -> Result:
        """Compute what is pending, and return the result, which is also written to the folder.

        The folder keeps the result of every task under a fingerprint of everything that it depends on. So a run that
        was stopped, by Ctrl-C, kill -9 or a full disk, resumes when it is run again. When the study has changed, only
        what depends on the change is recomputed. Several learners and properties are fitted in parallel processes. The
        result is the same to the last bit, however often the run was interrupted, and for any number of `workers`.

        `executor` says where runs are made and learners fitted: an Executor, a dask Client, a Pool, or an address such
        as "local:4" or "tls://host:8786"; by default `on` in the table [run] of the study, or else this machine.

        A callable, and learners of your own, are Python code. They are loaded before anything is simulated, and
        `progress` first gets a note that names them. With `code=False`, a study that needs such code is refused.
        """
        progress = watcher(progress)
        from sateen.study.result import run_study
        from sateen.study.stages import check_computable, load_code

        path = self.folder if folder is None else FilePath(folder)
        with watching_code(partial(_tell, progress) if code else refuse_code):
            load_code(self, path)
            check_computable(self, path)
            with opened(self.on if executor is None else executor) as pool:
                return run_study(self, path, workers, progress, pool)

    def run_part(
        self,
        part: Part,
        folder: File | None = None,
        *,
        workers: int | None = None,
        progress: Progress | None = USUAL,
        code: bool = True,
    ) -> PartResult:
        """Make the runs of one part, such as (3, 40), the third of forty, for machines that cannot talk to each other.

        The parts are disjoint and cost about the same. They cover the stages that need no fit: training, test, and the
        calibration if the study gives its points and runs. `merge` joins the folders of the parts. `run` then continues
        in the merged folder, and gives the same result as without parts. A part that was stopped resumes when it is run
        again. By default its folder is `<name>-part-3-of-40`, next to the study.
        """
        progress = watcher(progress)
        from sateen.study.parts import run_part

        path = self._part_folder(part) if folder is None else FilePath(folder)
        with watching_code(partial(_tell, progress) if code else refuse_code):
            return run_part(self, path, part, workers, progress)

    def forecast(self, folder: File | None = None, *, part: Part | None = None) -> Forecast:
        """What `run` or `run_part` would do now, task by task; nothing is written, and no runs are made.

        It says how long the missing runs take if the folder already has some runs of the study.
        """
        from sateen.study.parts import forecast_part
        from sateen.study.stages import forecast_study

        if part is not None:
            return forecast_part(self, self._part_folder(part) if folder is None else FilePath(folder), part)
        return forecast_study(self, self.folder if folder is None else FilePath(folder))

    def _part_folder(self, part: Part) -> FilePath:
        from sateen.sampling.parts import check_part

        number, parts = check_part(part)
        digits = len(str(parts))  # so that a listing has them in order
        return self.folder.with_name(f"{self.name}-part-{number:0{digits}}-of-{parts}")

    def __repr__(self) -> str:
        return f"<Study {self.name}: {', '.join(self.properties)} over {self.space!r}, by {', '.join(self.learners)}>"

    def _repr_html_(self) -> str:
        shown = {name: RETURNED if formula is None else str(formula) for name, formula in self.properties.items()}
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in shown.items())
        return f"<table><caption>{escape(repr(self))}</caption>{rows}</table>"


def _tell(progress: Progress, code: Code) -> None:
    from sateen.pipeline.tasks import tell

    tell(progress, f"running code of yours: {code}")
