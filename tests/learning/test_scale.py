"""On which scale learners look at parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.space import Range, Space
from sateen.learning.gp.recipes import EPGP, SVIGP, FaithfulEPGP, FaithfulSVIGP
from sateen.learning.networks.recipes import SVIBNN, LaplaceNet
from sateen.learning.scale import choose_inputs, scales_differ


def observed(space, latent, points=150, relevant=None):
    """Counts at uniform points, for a latent function of the columns."""
    drawn = space.uniform(points, seed=3)
    counts = np.random.default_rng(4).binomial(50, ndtr(latent(*drawn.theta.T)))
    return Observations(drawn, counts, 0, 50, relevant=relevant)


DECADES = Space(k=(0.001, 1.0))


def test_a_function_of_the_logarithm_gets_log_inputs():
    inputs, notes, _ = choose_inputs(observed(DECADES, lambda k: np.sin(3 * np.log10(k))), "auto", 1)
    assert inputs.scales == ("log",)
    assert "log scale, whose log evidence is" in notes[0]


def test_a_function_that_is_smooth_only_linearly_gets_linear_inputs():
    inputs, notes, _ = choose_inputs(observed(Space(k=(0.001, 1.0)), lambda k: np.sin(30 * k), 300), "auto", 1)
    assert inputs.scales == ("linear",)
    assert "linear scale, whose log evidence is" in notes[0]


def test_where_nothing_tells_the_scales_apart_it_is_log():
    inputs, notes, _ = choose_inputs(observed(Space(k=(1.0, 1.2)), lambda k: k - 1.1), "auto", 1)
    assert inputs.scales == ("log",)
    assert len(notes) == 1


def test_a_range_from_0_stays_linear_beside_a_log_one():
    space = Space(k=(0.001, 1.0), c=(0.0, 1.0))
    inputs, notes, _ = choose_inputs(observed(space, lambda k, c: np.sin(3 * np.log10(k)) + c), "auto", 1)
    assert inputs.scales == ("log", "linear")
    assert "(but c linear" in notes[0]


def test_a_declared_log_scale_stands_whatever_the_evidence_of_the_others():
    space = Space(k=Range(0.001, 1.0, scale="log"), c=(0.001, 1.0))
    inputs, notes, _ = choose_inputs(observed(space, lambda k, c: np.sin(20 * c) + 0 * k, 300), "auto", 1)
    assert inputs.scales == ("log", "linear")
    assert "(but k on a log scale, as declared)" in notes[0]


def test_without_a_positive_range_nothing_is_compared():
    obs = observed(Space(c=(-1.0, 1.0)), lambda c: c)
    assert not scales_differ(obs)
    inputs, notes, kernel = choose_inputs(obs, "auto", 1)
    assert (inputs.scales, notes, kernel) == (("linear",), (), None)


def test_what_is_told_is_done_without_looking():
    obs = observed(DECADES, lambda k: np.sin(3 * np.log10(k)))
    assert choose_inputs(obs, "linear", 1)[0].scales == ("linear",)
    assert choose_inputs(obs, "log", 1) == (choose_inputs(obs, "log", 2)[0], (), None)


def test_a_logarithm_of_0_is_refused_by_name():
    with pytest.raises(InputError, match=r"inputs='log' needs positive parameters, and c goes from \[0, 1\]"):
        choose_inputs(observed(Space(c=(0.0, 1.0)), lambda c: c), "log", 1)


def test_parameters_that_cannot_matter_are_left_out_and_named():
    space = Space(a=(0.1, 1.0), b=(0.0, 1.0), c=(0.0, 1.0))
    inputs, notes, _ = choose_inputs(observed(space, lambda a, b, c: a, relevant=("a",)), "log", 1)
    assert inputs.names == ("a",)
    assert notes == ("b and c cannot affect the verdict and are left out",)
    _, notes, _ = choose_inputs(observed(space, lambda a, b, c: a, relevant=("a", "b")), "linear", 1)
    assert notes == ("c cannot affect the verdict and is left out",)


def test_no_parameter_may_matter_at_all():
    inputs, notes, _ = choose_inputs(observed(DECADES, lambda k: 0 * k, relevant=()), "auto", 1)
    assert inputs.dimension == 0
    assert notes == ("k cannot affect the verdict and is left out",)


def test_only_some_of_many_rows_are_looked_at_and_the_seed_says_which():
    obs = observed(DECADES, lambda k: np.sin(3 * np.log10(k)), 2000)
    first, again, other = (choose_inputs(obs, "auto", seed)[1] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_an_unknown_scale_is_refused_with_a_hint():
    for recipe in (EPGP, SVIGP, FaithfulEPGP, FaithfulSVIGP, SVIBNN, LaplaceNet):
        with pytest.raises(InputError, match="did you mean linear"):
            recipe(inputs="lineer")
