"""Even points are scipy's, to the bit, without scipy.stats."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import qmc

from sateen.core import sobol
from sateen.core.sobol import latin_cube, sobol_cube


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 20, 40, 300])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 100, 1000])
def test_points_are_those_of_scipy(dimension: int, n: int) -> None:
    for seed in range(3):
        sequence = qmc.Sobol(dimension, rng=np.random.default_rng(seed))
        theirs = sequence.random_base2((n - 1).bit_length())[:n]
        assert np.array_equal(sobol_cube(dimension, n, np.random.default_rng(seed)), theirs)
        hypercube = qmc.LatinHypercube(dimension, rng=np.random.default_rng(seed)).random(n)
        assert np.array_equal(latin_cube(dimension, n, np.random.default_rng(seed)), hypercube)


@pytest.mark.slow
def test_the_last_dimension_of_the_table_and_many_points_are_those_of_scipy() -> None:
    for dimension, n in [(21201, 4), (3, 2**18)]:
        theirs = qmc.Sobol(dimension, rng=np.random.default_rng(5)).random_base2(n.bit_length() - 1)
        assert np.array_equal(sobol_cube(dimension, n, np.random.default_rng(5)), theirs)


def test_without_the_table_the_sequence_is_scipys_own(monkeypatch: pytest.MonkeyPatch) -> None:
    known = sobol_cube(3, 50, np.random.default_rng(1))
    monkeypatch.setattr(sobol, "_table", lambda: None)
    assert np.array_equal(sobol_cube(3, 50, np.random.default_rng(1)), known)


@pytest.mark.parametrize("n", [0, 2**30 + 1])
def test_a_sequence_has_at_most_as_many_points_as_its_bits_tell_apart(n: int) -> None:
    with pytest.raises(ValueError, match="a Sobol sequence has from 1"):
        sobol_cube(2, n, np.random.default_rng(1))


def test_designs_do_not_load_scipy_stats() -> None:
    code = (
        "import sys, sateen as st; space = st.Space(a=(0, 1)); space.sobol(8, seed=1); space.latin(8, seed=1); "
        "sys.exit(any(name.startswith('scipy') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
