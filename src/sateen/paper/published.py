"""The figures that the paper published, as data.

From L. Bortolussi, F. Cairoli, G. Carbone, P. Pulcini, "Scalable Stochastic Parametric Verification with Stochastic
Variational Smoothed Model Checking". TABLE_1 is its table of RMSE, accuracy and uncertainty. RANDOM is its figure on
random networks, of which no text has the numbers: they are the means over the nine data sets of a dimension, three
networks with three properties, of the arrays that the authors' public plotting script draws (RANDOM_SOURCE). All
figures are fractions (the table prints RMSE in hundredths and accuracy in percent) and hours on an A100; None is what
was not published or could not be run.

The arrays are taken as they stand. Their hours are written as hours.minutes, and the script averages them as decimals;
so do we, to show what the figure shows: read as hours and minutes, every mean would be up to 0.3 hours longer.

Both compare with noisy labels, frequencies over 1000 runs, so no method can bring their RMSE to 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Method: TypeAlias = Literal["ep-gp", "svi-gp", "svi-bnn"]
METHODS: Final[tuple[Method, ...]] = ("ep-gp", "svi-gp", "svi-bnn")
DIMENSIONS: Final = (2, 3, 4, 8, 12, 16, 20)  # of the random networks: reactions, and so rates
RANDOM_SOURCE: Final = "ailab-units/SV-smMC, random_results.py"  # a public repository of the authors, and the file


@dataclass(frozen=True, slots=True)
class Figures:
    """How well one method did.

    `rmse` is the root mean squared distance between posterior mean and test frequency; `accuracy` the share of test
    points where the 95 % credible interval meets the 95 % interval of the frequency; `uncertainty` the mean width of
    the credible interval; `hours` the time of training.
    """

    rmse: float | None = None
    accuracy: float | None = None
    uncertainty: float | None = None
    hours: float | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """What is known of one configuration: its row of Table 1, and what simulating its test set again gives.

    `test_width` is the mean width 2·1.96·sqrt(p(1-p)/1000) of the intervals of the test frequencies p, as published;
    `simulated_width` the same from new simulations of the variant paper-data. That they agree is how the variant was
    found.
    """

    test_width: float
    simulated_width: float
    figures: Mapping[Method, Figures] = field(hash=False)


_Row: TypeAlias = tuple[float | None, float | None, float | None]


def _row(test_width: float, simulated_width: float, rmse: _Row, accuracy: _Row, uncertainty: _Row) -> Published:
    """A row of the table, each group of columns in the order of METHODS."""
    figures = map(Figures, rmse, accuracy, uncertainty)
    by_method = dict(zip(METHODS, figures, strict=True))
    return Published(test_width, simulated_width, MappingProxyType(by_method))


TABLE_1: Final[Mapping[str, Published]] = MappingProxyType(
    {
        "a": _row(0.044, 0.0441, (0.0141, 0.0138, 0.0143), (1.0, 0.988, 1.0), (0.044, 0.032, 0.097)),
        "b": _row(0.018, 0.0186, (0.0102, 0.0084, 0.0096), (0.778, 0.773, 0.926), (0.018, 0.012, 0.058)),
        "c": _row(0.019, 0.0198, (0.0125, 0.0120, 0.0099), (0.7275, 0.8575, 0.9225), (0.042, 0.019, 0.047)),
        "d": _row(0.039, 0.0396, (0.0534, 0.0583, 0.0551), (0.9375, 0.94, 0.975), (0.030, 0.037, 0.080)),
        "e": _row(0.043, 0.0434, (0.0648, 0.0344, 0.0206), (0.7825, 0.8925, 0.95), (0.021, 0.056, 0.093)),
        "f": _row(0.058, 0.0582, (0.0225, 0.0199, 0.0178), (0.997, 0.992, 1.0), (0.059, 0.046, 0.100)),
        "g": _row(0.055, 0.0555, (0.0295, 0.0231, 0.0189), (0.9925, 0.9625, 0.9975), (0.108, 0.037, 0.093)),
        "h": _row(0.050, 0.0508, (0.0697, 0.0230, 0.0201), (0.998, 0.937, 1.0), (0.340, 0.030, 0.121)),
        "i": _row(0.050, 0.0509, (0.1063, 0.0244, 0.0267), (0.9902, 0.9365, 0.9992), (0.682, 0.030, 0.150)),
        "l": _row(0.049, 0.0497, (None, 0.0187, 0.0156), (None, 0.9702, 0.998), (None, 0.028, 0.087)),
    }
)

_Series: TypeAlias = tuple[float | None, ...]
_OUT_OF_MEMORY: Final[_Series] = (None,) * 4  # where EP-GP could not be run: from dimension 8 on


def _series(rmse: _Series, accuracy: _Series, uncertainty: _Series, hours: _Series) -> Mapping[int, Figures]:
    """The figures of one method, each series in the order of DIMENSIONS."""
    figures = map(Figures, rmse, accuracy, uncertainty, hours)
    return MappingProxyType(dict(zip(DIMENSIONS, figures, strict=True)))


RANDOM: Final[Mapping[Method, Mapping[int, Figures]]] = MappingProxyType(
    {
        "ep-gp": _series(
            rmse=(0.046, 0.059, 0.091, *_OUT_OF_MEMORY),
            accuracy=(0.485, 0.55, 0.62, *_OUT_OF_MEMORY),
            uncertainty=(0.015, 0.070, 0.165, *_OUT_OF_MEMORY),
            hours=(2, 5, 9, *_OUT_OF_MEMORY),
        ),
        "svi-gp": _series(
            rmse=(0.016, 0.023, 0.031, 0.027, 0.047, 0.053, 0.058),
            accuracy=(0.67, 0.61, 0.53, 0.59, 0.52, 0.60, 0.59),
            uncertainty=(0.019, 0.024, 0.027, 0.023, 0.065, 0.043, 0.059),
            hours=(5, 5, 6, 9, 14, 19, 21),
        ),
        "svi-bnn": _series(
            rmse=(0.028, 0.024, 0.027, 0.027, 0.030, 0.036, 0.029),
            accuracy=(0.96, 0.97, 0.95, 0.97, 0.93, 0.93, 0.94),
            uncertainty=(0.113, 0.112, 0.117, 0.113, 0.105, 0.113, 0.120),
            hours=(2.5, 3.3, 4.2, 10, 12, 17, 21),
        ),
    }
)
