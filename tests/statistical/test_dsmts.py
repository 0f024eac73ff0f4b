"""The SBML discrete stochastic test suite: every case that is there, with 10,000 runs of the fast engine.

The files are not part of this repository: SATEEN_EXTERNAL_DATA says where they are.
"""

from __future__ import annotations

import os
from pathlib import Path as FilePath

import numpy as np
import pytest

from dsmts_cases import FAULTY, case_folders, dimers, scores, tables

FOLDERS = case_folders(FilePath(os.environ.get("SATEEN_EXTERNAL_DATA", "nowhere")))
LIMIT = 5.18
PUBLISHED = next((folder for folder in FOLDERS if folder.name == FAULTY), None)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDERS, reason="SATEEN_EXTERNAL_DATA names no folder with dsmts")
@pytest.mark.parametrize("folder", FOLDERS or [FilePath("no case")], ids=lambda folder: folder.name)
def test_means_and_variances_are_those_of_the_suite(folder):
    found = scores(folder)
    assert found.wrong == 0, "where the deviation is 0 every run must have the known value"
    assert np.abs(found.mean).max() < LIMIT
    assert np.abs(found.spread).max() < LIMIT


@pytest.mark.skipif(PUBLISHED is None, reason=f"SATEEN_EXTERNAL_DATA names no folder with dsmts/{FAULTY}")
def test_the_table_of_case_33_is_that_of_another_rate_of_falling_apart():
    """To all the digits that it has; so the case is compared with the table of its model instead."""
    for known, of_the_other in zip(tables(PUBLISHED), dimers(np.arange(51.0), apart_at_30=0.5), strict=True):
        for name in ("P", "P2"):
            assert known[name] == pytest.approx(of_the_other[name], abs=2e-6)
    (known, _), (true, _) = tables(PUBLISHED), dimers(np.arange(51.0))
    assert np.abs(known["P2"] - true["P2"]).max() > 0.4
