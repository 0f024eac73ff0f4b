"""The Gaussian-process learners: their settings and checks. Light to import; `fit` loads the inference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.registry import load_object
from sateen.learning.settings import Device, InputScale, KernelName, Link, Precision, Recipe, check_settings, is_number

if TYPE_CHECKING:
    import numpy.typing as npt

Hyperparameters: TypeAlias = Literal["subset", "joint"]
Selection: TypeAlias = Literal["greedy", "random"]
Rows: TypeAlias = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EPGP(Recipe):
    """A Gaussian process with probit link, fitted by expectation propagation.

    `kernel` is "matern" (5/2) or "rbf". At most `inducing` points carry the process: by default 100, 200 or 500 for
    one, two or more parameters. Inputs are scaled to length 2, on a log or linear scale as `inputs` says. With "auto",
    the evidence decides. It also gives the length scales and the variance, unless they are given: `length_scales` is a
    number, or one for each varying parameter. With `split`, all of these are learned from a random share of the points,
    and the posterior from the others, so that `kl()` is meaningful. A fit that needs more than `memory` bytes is
    refused.

    >>> EPGP(kernel="mattern")
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: kernel is 'matern' or 'rbf', not 'mattern'; did you mean matern?
    """

    inference: ClassVar[str] = "sateen.learning.gp.ep_gp:fit"
    posterior_class: ClassVar[str] = "sateen.learning.gp.posterior:GPPosterior"
    kernel: KernelName = "matern"
    inducing: int | None = None
    inputs: InputScale = "auto"
    length_scales: float | tuple[float, ...] | None = None
    variance: float | None = None
    split: float | None = None
    memory: float = 4e9
    floor: bool = True

    def __post_init__(self) -> None:
        _check_prior(self, "memory")
        _check_memory(self.memory)

    @classmethod
    def faithful(cls, **settings: Any) -> FaithfulEPGP:
        """The paper's own EP-GP, with the full covariance of all points; for comparison, because its memory is N²."""
        return FaithfulEPGP(**settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaithfulEPGP(Recipe):
    """The paper's EP-GP: a Gaussian process of mean 0, by expectation propagation with the full covariance.

    The kernel is "rbf", with one length scale for all parameters and a variance. The evidence of at most 4,000 points
    finds them, with the weak priors of EPGP where it is flat, unless `length_scales`, a number, or `variance` is given.
    No inducing points stand for others: every point has a latent value of its own. The covariance of N points has N²
    numbers, so a fit that could need more than `memory` bytes is refused. `inputs` and `split` are as in EPGP.

    >>> FaithfulEPGP(variance=0)
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: variance is a number above 0, not 0
    """

    inference: ClassVar[str] = "sateen.learning.gp.full:fit"
    posterior_class: ClassVar[str] = "sateen.learning.gp.posterior:GPPosterior"
    inputs: InputScale = "linear"
    length_scales: float | None = None
    variance: float | None = None
    split: float | None = None
    memory: float = 4e9

    def __post_init__(self) -> None:
        check_settings(self, apart=("split", "memory"))
        _check_split(self.split)
        _check_memory(self.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class SVIGP(Recipe):
    """A Gaussian process fitted by natural-gradient variational inference.

    `kernel` is "matern" (5/2) or "rbf", `link` "probit" or "logit". At most `inducing` points carry the process: by
    default 100, 200 or 500 for one, two or more parameters. They are chosen among the data: where the process is least
    known, or at random with `selection="random"`. With `optimise_inducing` they are then moved to the best places. Or
    give them as `inducing_points`, rows of parameter values.

    Every step uses all data, which are read in blocks if there are many points. With `batch`, a step uses a random
    batch of that many points. `passes` limits the passes over the data: by default 50 steps, 1 pass over data read in
    blocks, or 10 with batches.

    Inputs are scaled to length 2, on a log or linear scale as `inputs` says. With "auto", the evidence decides. It also
    gives the length scales and the variance, unless they are given: `length_scales` is a number, or one for each
    varying parameter. This uses at most 4,000 points, or all of them with `hyperparameters="joint"`. With `split`, all
    of these are learned from a random share of the points, and the posterior from the others, so that `kl()` is
    meaningful.

    With `floor`, no interval is much narrower than the runs of the whole training support: see docs/learning.md.

    With `device="cpu"` NumPy does all of the work. With "gpu", or "auto" for the best device that JAX finds, JAX reads
    the rows, where they are more than 4,000, and predicts, in double precision.

    >>> SVIGP(batch=-5)
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: batch is a whole number from 1 up, not -5
    """

    inference: ClassVar[str] = "sateen.learning.gp.svi_gp:fit"
    posterior_class: ClassVar[str] = "sateen.learning.gp.posterior:GPPosterior"
    kernel: KernelName = "matern"
    link: Link = "probit"
    inducing: int | None = None
    inducing_points: Rows | None = None
    selection: Selection = "greedy"
    optimise_inducing: bool = False
    batch: int | None = None
    passes: int | None = None
    inputs: InputScale = "auto"
    length_scales: float | tuple[float, ...] | None = None
    variance: float | None = None
    hyperparameters: Hyperparameters = "subset"
    split: float | None = None
    device: Device = "cpu"
    floor: bool = True

    def __post_init__(self) -> None:
        _check_prior(self)
        if self.inducing_points is not None:
            self._check_points(self.inducing_points)
        if self.selection == "random" and (self.optimise_inducing or self.inducing_points is not None):
            other = "optimise_inducing moves them" if self.optimise_inducing else "inducing_points gives them"
            raise InputError(
                f"selection='random' fixes the inducing points, but {other}; leave one of the two out",
                argument="selection",
            )

    @classmethod
    def sparse_vi(cls, inducing_points: npt.ArrayLike | None = None, **settings: Any) -> SVIGP:
        """Sparse variational inference with inducing points that are fixed beforehand, and all data at once.

        They are rows of parameter values; by default a random part of the training points. The baseline of Piho and
        Hillston (2021).
        """
        if inducing_points is None:
            return cls(selection="random", **settings)
        return cls(inducing_points=_rows(inducing_points), **settings)

    @classmethod
    def faithful(cls, **settings: Any) -> FaithfulSVIGP:
        """The paper's own SVI-GP, by Adam over mini-batches; for comparison, because it takes minutes to weeks."""
        return FaithfulSVIGP(**settings)

    @classmethod
    def as_run(cls) -> FaithfulSVIGP:
        """The paper's SVI-GP with the settings of its authors' scripts."""
        return FaithfulSVIGP.as_run()

    def _check_points(self, points: object) -> None:
        table = _rows(points)
        if not table or len({len(row) for row in table}) > 1:
            raise InputError("inducing_points are rows of parameter values, at least one, and all of one length")
        if self.inducing is not None or self.optimise_inducing:
            what = "inducing" if self.inducing is not None else "optimise_inducing"
            raise InputError(f"inducing_points are fixed, so {what} has nothing to choose; leave one of the two out")
        object.__setattr__(self, "inducing_points", table)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaithfulSVIGP(Recipe):
    """The paper's SVI-GP: `epochs` of Adam over mini-batches of `batch` points, at `learning_rate`.

    At most `inducing` points are taken from the training set, at random where it has more, and moved with all the rest
    if `optimise_inducing`; but with `fix_training_points` they stay where the whole training set is among them.
    Expectations are taken at `nodes` Gauss-Hermite nodes. `jitter` is added to the diagonal of
    K_mm; how fast Adam climbs depends on it, and it is that of GPyTorch, which the paper used. With
    `precision="float32"` all but K_mm and its Cholesky factor is in single precision. Ask `forecast` how long a fit
    will take. A fit with more `epochs` resumes from the checkpoint of one with fewer.

    >>> FaithfulSVIGP(epochs=0)
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: epochs is a whole number from 1 up, not 0
    """

    inference: ClassVar[str] = "sateen.learning.gp.faithful:fit"
    posterior_class: ClassVar[str] = "sateen.learning.gp.posterior:GPPosterior"
    epochs: int = 2000
    batch: int = 100
    learning_rate: float = 0.001
    inducing: int = 1000
    optimise_inducing: bool = True
    fix_training_points: bool = False
    nodes: int = 20
    jitter: float = 1e-4
    inputs: InputScale = "linear"
    device: Device = "auto"
    precision: Precision = "float64"

    def __post_init__(self) -> None:
        check_settings(self)

    @classmethod
    def as_run(cls) -> FaithfulSVIGP:
        """The settings in the scripts of the paper's authors: ten times the text's rate, and inducing points that stay
        at the training points up to 1000 of these.
        """
        return cls(learning_rate=0.01, fix_training_points=True)

    def forecast(self, observations: Observations) -> float:
        """The seconds that `fit` will take on this machine, estimated from a few steps of it."""
        forecast: Callable[..., float] = load_object("sateen.learning.gp.faithful:forecast")  # type: ignore[assignment]
        return forecast(self, observations)


def _check_prior(recipe: EPGP | SVIGP, *apart: str) -> None:
    """Refuse settings that cannot be, and what no prior can be made of."""
    check_settings(recipe, apart=("length_scales", "split", *apart))
    if recipe.length_scales is not None:
        given = recipe.length_scales if isinstance(recipe.length_scales, tuple) else (recipe.length_scales,)
        if not all(is_number(scale) and 0 < scale < np.inf for scale in given):
            expected = "a positive number, or a tuple of one for each varying parameter"
            raise InputError(f"length_scales is {expected}, not {recipe.length_scales!r}", argument="length_scales")
    _check_split(recipe.split)


def _check_split(split: object) -> None:
    if split is not None and not (is_number(split) and 0 < split < 1):
        share = "the share of points that the prior is learned from, such as 0.3"
        raise InputError(f"split is {share}, not {split}", argument="split")


def _check_memory(memory: object) -> None:
    if not (is_number(memory) and memory > 0):
        raise InputError(f"memory is a number of bytes, such as 4e9, not {memory!r}", argument="memory")


def _rows(points: object) -> Rows:
    try:
        table = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2:
        raise InputError("inducing_points are rows of parameter values, such as [[0.1, 2.0], [0.2, 3.0]]")
    return tuple(tuple(row) for row in table.tolist())
