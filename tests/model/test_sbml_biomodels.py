"""Curated models of BioModels: how many are read, and that libroadrunner has the same rates and stoichiometries.

The files are not part of this repository: SATEEN_EXTERNAL_DATA says where they are. SATEEN_ROADRUNNER is a Python that
has libroadrunner (pip install libroadrunner).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import sateen as st

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
FILES = sorted(Path(os.environ.get("SATEEN_EXTERNAL_DATA", "nowhere"), "biomodels").glob("*.xml"))
PEER = os.environ.get("SATEEN_ROADRUNNER", "")
# Split, scaled, both, neither; with rules, functions, sizes other than 1, events and local parameters.
COMPARED = ("002", "004", "012", "016", "022", "048", "122", "148", "150")

pytestmark = [
    pytest.mark.skipif(not FILES, reason="SATEEN_EXTERNAL_DATA names no folder with biomodels"),
    pytest.mark.filterwarnings("ignore::sateen.ModelWarning"),
]


@pytest.fixture(scope="module")
def biomodels():
    sys.path.append(str(BENCHMARKS))
    return pytest.importorskip("biomodels")


@pytest.mark.slow
def test_most_curated_models_are_read(biomodels):
    rows = [biomodels.looked_at(file, "") for file in FILES]
    refused = {row["model"][-3:]: row["why"] for row in rows if row["how"] != "read"}
    assert len(rows) - len(refused) >= 50, refused
    for why in refused.values():
        assert "rate rule" in why


@pytest.mark.skipif(not PEER, reason="SATEEN_ROADRUNNER names no Python that has libroadrunner")
@pytest.mark.parametrize("number", COMPARED)
def test_rates_and_stoichiometries_are_those_of_libroadrunner(biomodels, number):
    file = next(each for each in FILES if each.stem.endswith(number))
    model, scale = biomodels.loaded(file)
    assert isinstance(model, st.Model)
    found = biomodels.compared(file, model, scale or 1.0, PEER)
    assert found["rate_error"] < 1e-9
    assert found["changes_equal"]
