"""Certificates in files: they come back whole, anyone can check them, and what was altered is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.certified import DECAY, EMPTY, LINE, RATES, Line, believed, coin

import sateen as st
from sateen.files.container import read_container, write_container

Change = Callable[[dict[str, Any], dict[str, Any]], None]


@pytest.fixture(scope="module")
def learned() -> Any:
    seen = st.observe(DECAY, EMPTY, RATES.sobol(200, seed=1), runs=100, seed=2)
    return st.EPGP().fit(seen, seed=3)


@pytest.fixture(scope="module")
def certificate(learned: Any) -> Any:
    return st.certify(st.decide(learned, above=0.5, seed=1), DECAY, EMPTY, wrong=0.05, seed=5)


@pytest.fixture(scope="module")
def file(certificate: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("certificates") / "decay.certificate"
    certificate.save(where)
    return where


def altered(file: Path, change: Change, to: Path) -> Path:
    """The certificate with a change, in a file whose checksum is right."""
    kind, number, content, arrays = read_container(file)
    content, arrays = deepcopy(content), {name: array.copy() for name, array in arrays.items()}
    change(content, arrays)
    if "sentence" in content["claim"]:  # a forger keeps the sentence in step with the claim
        told = {name: value for name, value in content["claim"].items() if name != "sentence"}
        content["claim"]["sentence"] = str(st.Claim(**told))
    write_container(to, kind, number, content, arrays)
    return to


class TestRoundTrip:
    def test_what_comes_back_is_the_same(self, certificate: Any, file: Path):
        read = st.load(file)
        assert str(read) == str(certificate)
        assert read.claim == certificate.claim
        assert read.plan == certificate.plan
        assert read.holds == certificate.holds
        assert read.runs == certificate.runs
        assert read.asked == certificate.asked
        assert read.regions.fingerprint == certificate.regions.fingerprint
        assert str(read.model) == str(DECAY)
        assert read.formula == EMPTY

    def test_the_same_certificate_is_the_same_file(self, certificate: Any, file: Path, tmp_path: Path):
        st.load(file).save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == file.read_bytes()

    def test_every_number_agrees_and_every_run_can_be_made_again(self, file: Path):
        result = st.load(file).check(all=True)
        assert result.holds
        assert result.faults == ()
        assert result.chance_of_missing_an_altered_count == 0.0
        assert "The certificate is valid." in str(result)
        assert any("probability 100 %" in line for line in result.lines)

    def test_a_partial_replay_says_what_it_might_miss(self, certificate: Any, file: Path):
        entries = sum(np.count_nonzero(look.trials) for look in certificate.evidence.outcome.looks)
        result = st.load(file).check(replay=10, choice=77)
        assert result.holds
        assert result.chance_of_missing_an_altered_count == pytest.approx(1 - 10 / entries)
        assert any("choice 77" in line for line in result.lines)
        assert any("a forger can know this choice" in line for line in st.load(file).check(replay=10).lines)
        assert st.load(file).check(replay=0).chance_of_missing_an_altered_count == 1.0

    def test_the_checkers_own_seed_repeats_the_whole_test(self, certificate: Any, file: Path):
        one, other = (st.load(file).check(replay=0, seed=seed) for seed in (1, 2))
        assert one.holds
        assert one.repeated.confidence == 0.95
        assert one.repeated.measure.startswith(
            "drawn uniformly from the region where ep-gp puts the probability above 0.5"
        )
        assert any("the checker's own test with the seed 1" in line for line in one.lines)
        assert one.lines[-1] != other.lines[-1]

    @pytest.mark.parametrize("name", ["replay", "seed", "choice"])
    def test_what_is_no_number_is_refused(self, certificate: Any, name: str):
        with pytest.raises(st.InputError, match=f"{name} is a whole number"):
            certificate.check(**{name: -1})

    def test_a_guarantee_and_a_box_come_back(self, learned: Any, tmp_path: Path):
        held_out = st.observe_held_out(DECAY, EMPTY, RATES, 200, 100, seed=9)
        regions = st.decide(st.calibrate(learned, held_out, seed=1), below=0.5, seed=1)
        for number, options in enumerate(({}, {"box": st.Space(k=(0.1, 0.8)), "tolerance": 0.05})):
            made = st.certify(regions, DECAY, EMPTY, wrong=0.1, seed=5, **options)
            made.save(tmp_path / f"{number}")
            read = st.load(tmp_path / f"{number}")
            assert str(read) == str(made)
            assert read.check(replay=5, choice=1).holds

    def test_a_black_box_is_checked_as_far_as_a_file_can(self, tmp_path: Path):
        seen = st.observe(coin, None, LINE.grid(41), runs=100, seed=1)
        regions = st.decide(st.EPGP().fit(seen, seed=1), above=0.5, seed=1)
        made = st.certify(regions, coin, None, wrong=0.1, seed=2)
        assert made.check(all=True).chance_of_missing_an_altered_count == 0.0  # here the function is at hand
        made.save(tmp_path / "coin")
        result = st.load(tmp_path / "coin").check(all=True, seed=1)
        assert result.holds
        assert result.chance_of_missing_an_altered_count == 1.0
        assert any("black box tests.certified.coin is a Python function" in line for line in result.lines)
        assert any("cannot be repeated without the black box" in line for line in result.lines)

    def test_corners_come_back(self, tmp_path: Path):
        regions = st.decide(believed(Line()), above=0.5, seed=1)
        made = st.certify(regions, coin, None, by="cells", monotone={"k": "+"}, seed=2)
        assert made.check(all=True, seed=4).holds
        made.save(tmp_path / "corners")
        read = st.load(tmp_path / "corners")
        assert str(read) == str(made)
        assert read.check().holds


class TestStrangers:
    def test_the_code_of_a_learner_is_not_run_by_a_check(self, tmp_path: Path):
        made = st.certify(st.decide(believed(Line()), above=0.5, seed=1), coin, None, wrong=0.1, seed=2)
        made.save(tmp_path / "line")
        read = st.load(tmp_path / "line")
        result = read.check()
        assert not read.regions.posterior.ready
        assert result.holds
        assert any("the region was not recomputed" in line for line in result.lines)
        read.regions.posterior.predict({"k": 0.5})  # somebody chose to run it
        assert any("the points follow" in line or "points follow" in line for line in read.check().lines)

    def test_a_model_is_text_that_is_parsed_and_never_run(self, file: Path, tmp_path: Path):
        witness = tmp_path / "witness"

        def change(content: dict[str, Any], arrays: dict[str, Any]) -> None:
            content["asked"]["model"] = f"species A = __import__('os').system('touch {witness}')"

        with pytest.raises(st.InputError, match="holds no valid certificate"):
            st.load(altered(file, change, tmp_path / "evil"))
        assert not witness.exists()

    def test_a_file_that_claims_endless_work_is_not_worked_on(self, file: Path, tmp_path: Path):
        def change(content: dict[str, Any], arrays: dict[str, Any]) -> None:
            arrays["trials"] += 2**40

        result = st.load(altered(file, change, tmp_path / "endless")).check(all=True, seed=1)
        assert not result.holds
        assert result.repeated is None

        def points(content: dict[str, Any], arrays: dict[str, Any]) -> None:
            content["regions"]["points"] = 10**15

        with pytest.raises(st.InputError, match="too many points"):
            st.load(altered(file, points, tmp_path / "points"))

    @pytest.mark.parametrize("name", ["theta", "bet", "trials", "satisfied", "undecided"])
    def test_arrays_that_do_not_fit_are_refused(self, file: Path, tmp_path: Path, name: str):
        def shorter(content: dict[str, Any], arrays: dict[str, Any]) -> None:
            arrays[name] = arrays[name][..., :-1]

        def missing(content: dict[str, Any], arrays: dict[str, Any]) -> None:
            del arrays[name]

        for change in (shorter, missing):
            with pytest.raises(st.InputError, match="holds no valid certificate"):
                st.load(altered(file, change, tmp_path / "shape"))


def put(*path: str, value: Any) -> Change:
    """A change of one word."""

    def change(content: dict[str, Any], arrays: dict[str, Any]) -> None:
        place: Any = content
        for name in path[:-1]:
            place = place[name]
        assert place[path[-1]] != value
        place[path[-1]] = value

    return change


def move(name: str, by: Any, row: int = 0) -> Change:
    """A change of one number of an array."""

    def change(content: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[name].reshape(-1)[row] += by

    return change


def drop_points(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Keep only the first points, as if no more had been drawn."""
    for name in ("theta", "bet"):
        arrays[name] = arrays[name][:-5]
    for name in ("trials", "satisfied", "undecided"):
        arrays[name] = arrays[name][:, :-5]


def drop_look(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    content["looks"] = content["looks"][:-1]
    for name in ("trials", "satisfied", "undecided"):
        arrays[name] = arrays[name][:-1]


def better(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    """One more satisfied run where most were violated, so that it changes no flag, and only a replay can find it."""
    violated = arrays["trials"][0] - arrays["satisfied"][0] - arrays["undecided"][0]
    arrays["satisfied"][0, np.argmax(violated)] += 1


def in_doubt(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    """A violated run told as undecided, which is no better for the claim."""
    place = np.argwhere((arrays["satisfied"] + arrays["undecided"] < arrays["trials"])[0])[0, 0]
    arrays["undecided"][0, place] += 1


CHANGES: dict[str, Change] = {
    "threshold": put("regions", "threshold", value=0.55),
    "side": put("regions", "side", value="below"),
    "level of the bands": put("regions", "level", value=0.9),
    "volume of the regions": put("regions", "above", value=0.99),
    "belief": put("belief", "level", value=0.99),
    "margin": put("margin", value=2.5),
    "tolerance": put("tolerance", value=0.05),
    "box": put("box", value=[["k", [1.5, 3.0, "linear"]]]),
    "formula": put("asked", "formula", value="F[0, 3] A == 0"),
    "end": put("asked", "end", value=1.0),
    "model": put("asked", "model", value="species A = 9\nA -> 0 @ mass_action(k)"),
    "caps": put("asked", "max_events", value=3),
    "wrong": put("wrong", value=0.04),
    "confidence": put("confidence", value=0.99),
    "attempt": put("attempt", value=2),
    "seed of the forecast": put("seed", value=6),
    "volume": put("volume", value=0.9),
    "seed of the draw": put("draw", value=7),
    "seed of a look": put("looks", value=[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "alpha": put("alpha", value=0.35),
    "cap": put("cap", value=777),
    "budget": put("budget", value=100),
    "error": put("error", value=0.1),
    "planned points": put("plan", "points", value=50),
    "planned flags": put("plan", "flags", value=7),
    "planned alpha": put("plan", "alpha", value=0.35),
    "planned chance": put("plan", "chance", value=0.5),
    "planned runs": put("plan", "runs", value=1),
    "planned error": put("plan", "error", value=0.1),
    "claimed level": put("claim", "level", value=0.999),
    "claimed confidence": put("claim", "confidence", value=0.999),
    "claimed statement": put("claim", "by", value="the probability is at least 0.9"),
    "claimed region": put("claim", "measure", value="drawn uniformly from the space (k in [0.1, 3])"),
    "claimed assumption": put("claim", "assuming", value="nothing"),
    "a point": move("theta", 1e-6),
    "a bet": move("bet", 1e-3),
    "trials": move("trials", 1),
    "satisfied": better,
    "undecided": in_doubt,
    "points dropped": drop_points,
    "a look dropped": drop_look,
    "an array of the posterior": move("predictor/learned/mean", 1e-3),
    "a count of the training": move("predictor/training/satisfied", 1, row=100),
    "a point of the training": move("predictor/training/theta", 1e-6),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_altered_is_found(file: Path, tmp_path: Path, what: str):
    try:
        read = st.load(altered(file, CHANGES[what], tmp_path / "altered"))
    except st.InputError as error:
        assert "holds no valid certificate" in str(error)  # noqa: PT017 (either way it is found)
        return
    result = read.check(all=True)
    assert not result.holds
    assert result.faults
    assert "NOT" in str(result)


@pytest.fixture(scope="module")
def cells(learned: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("cells") / "decay.certificate"
    st.certify(st.decide(learned, above=0.5, seed=1), DECAY, EMPTY, by="cells", seed=5).save(where)
    return where


def undecided_told_as_above(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    place = np.flatnonzero(arrays["cells/status"] == 0)[0]
    arrays["cells/status"][place], arrays["cells/bound"][place] = 1, 0.6


def larger(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    """A certified cell reaches further than its bound was computed for."""
    place = np.flatnonzero(arrays["cells/status"] == 1)[0]
    arrays["cells/low"][place] *= 0.9


def without_undecided(content: dict[str, Any], arrays: dict[str, Any]) -> None:
    kept = arrays["cells/status"] != 0
    for name in [name for name in arrays if name.startswith("cells/")]:
        arrays[name] = arrays[name][kept]


CELL_CHANGES: dict[str, Change] = {
    "a bound": lambda content, arrays: move(
        "cells/bound", 1e-3, row=int(np.flatnonzero(arrays["cells/status"] == 1)[0])
    )(content, arrays),
    "a status": undecided_told_as_above,
    "an end": larger,
    "a corner": move("cells/corner_low", 2.0**-20, row=1),
    "the cells that are undecided": without_undecided,
    "threshold": put("regions", "threshold", value=0.6),
    "formula": put("asked", "formula", value="F[0, 3] A == 0"),
    "reached": put("cells", "reached", value=False),
    "volume": put("volume", value=0.9),
    "claimed mode": put("claim", "by", value="the probability is at least 0.9"),
    "claimed region": put("claim", "measure", value="drawn uniformly from the space (k in [0.1, 3])"),
    "assumption": put("monotone", value={"k": "+"}),
    "undecided": put("undecided", value=0.001),
}


def test_cells_come_back_and_every_bound_is_recomputed(cells: Path):
    result = st.load(cells).check(seed=1)
    assert result.holds
    assert result.chance_of_missing_an_altered_count is None
    assert result.repeated is None
    assert any("were computed again" in line for line in result.lines)


@pytest.mark.parametrize("what", CELL_CHANGES)
def test_what_was_altered_in_cells_is_found(cells: Path, tmp_path: Path, what: str):
    try:
        read = st.load(altered(cells, CELL_CHANGES[what], tmp_path / "altered"))
    except st.InputError as error:
        assert "holds no valid certificate" in str(error)  # noqa: PT017 (either way it is found)
        return
    assert not read.check().holds


def test_a_sentence_that_the_claim_does_not_say_is_refused(file: Path, tmp_path: Path):
    kind, number, content, arrays = read_container(file)
    content["claim"]["sentence"] = "everything is fine"
    write_container(tmp_path / "sentence", kind, number, content, arrays)
    with pytest.raises(st.InputError, match="the sentence of its claim is not what the claim says"):
        st.load(tmp_path / "sentence")


@pytest.mark.slow
def test_a_small_replay_finds_an_altered_count_as_often_as_it_says(learned: Any, tmp_path: Path):
    """Of a certificate with few points, because each check computes all its numbers again."""
    box = st.Space(k=(0.8, 2.8))  # on a part of it f is far from 1, so that some runs are violated
    few = st.certify(st.decide(learned, above=0.1, seed=1), DECAY, EMPTY, wrong=0.2, box=box, seed=5)
    few.save(tmp_path / "few")
    read = st.load(altered(tmp_path / "few", better, tmp_path / "altered"))
    assert read.check(replay=0).holds  # no number disagrees, so the replay alone can find it
    entries = sum(np.count_nonzero(look.trials) for look in read.evidence.outcome.looks)
    assert entries >= 20  # so that a half of them, rounded down, is a chance of 47.5 % or more
    found = sum(not read.check(replay=int(entries) // 2, choice=choice).holds for choice in range(22))
    assert 1 <= found <= 21  # about a half; both extremes together have a chance below 1e-6


def test_the_words_of_a_file_are_plain(file: Path):
    _, _, content, _ = read_container(file)
    assert json.dumps(content)
    assert content["asked"]["model"] == str(DECAY)


def test_a_posterior_that_no_file_can_hold_is_certified_but_not_saved(tmp_path: Path):
    class Inside(Line):
        pass

    made = st.certify(st.decide(believed(Inside()), above=0.5, seed=1), coin, None, wrong=0.1, seed=2)
    assert made.check(replay=3, choice=1).holds
    with pytest.raises(st.InputError, match="a class inside a function"):
        made.save(tmp_path / "inside")
