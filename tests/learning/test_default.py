"""`learn`: which recipe it takes, and that it says so."""

from __future__ import annotations

import numpy as np
import pytest

import sateen as st
from sateen.core.progress import SILENT
from sateen.learning import default
from sateen.learning.default import _chosen


def counted(parameters: int, points: int, relevant: int | None = None, undecided: int = 0) -> st.Observations:
    """Counts of an f that falls with the first parameter; only the first `relevant` matter."""
    space = st.Space(**{f"k{place}": (0.1, 1.0) for place in range(parameters)})
    drawn = space.uniform(points, seed=1)
    satisfied = np.random.default_rng(2).binomial(20 - undecided, 1.0 - 0.9 * drawn.theta[:, 0])
    names = space.names[: parameters if relevant is None else relevant]
    return st.Observations(drawn, satisfied, undecided, 20, relevant=names)


@pytest.mark.parametrize(
    ("observations", "recipe", "why"),
    [
        (counted(4, 20), "SVIGP", "20 points, 4 parameters that matter; with up to 4 a Gaussian process"),
        (counted(20, 1000, relevant=1), "SVIGP", "1,000 points, 1 parameter that matters; with up to 4"),
        (counted(20, 150), "SVIGP", "150 points, 20 parameters that matter; a network needs at least 200 points"),
        (counted(8, 1280), "LaplaceNet", "1,280 points, 8 parameters that matter; with 8 or more networks are"),
        (counted(6, 100_000), "LaplaceNet", "100,000 points, 6 parameters that matter; with this many points networks"),
    ],
    ids=["few parameters", "one that matters", "few points", "many parameters", "many points"],
)
def test_dimension_and_size_choose_a_recipe_and_say_why(observations: st.Observations, recipe: str, why: str) -> None:
    found, reason = _chosen(observations, 1, SILENT)
    assert type(found).__name__ == recipe
    assert found == type(found)()
    assert reason.startswith(why)


def test_points_without_a_decided_run_do_not_count() -> None:
    _, reason = _chosen(counted(1, 30, undecided=20), 1, SILENT)
    assert reason.startswith("0 points")


@pytest.mark.parametrize(
    ("process", "network", "recipe"),
    [(-2.0, -2.5, st.SVIGP()), (-2.5, -2.0, st.LaplaceNet())],
    ids=["process", "network"],
)
def test_between_them_held_out_counts_decide(
    process: float, network: float, recipe: st.Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {"the Gaussian process": process, "the network": network}
    monkeypatch.setattr(default, "_held_out_scores", lambda ways, *_: {name: scores[name] for name in ways})
    found, reason = _chosen(counted(5, 300), 1, SILENT)
    assert found == recipe
    assert reason.endswith(
        f"{max(scores, key=scores.__getitem__)} predicts held-out counts better, by 0.5 in log score a point"
    )


def test_the_better_of_two_ways_predicts_held_out_counts_better() -> None:
    observations, hid = counted(2, 200), []

    def exactly(seen: st.Observations, hidden: np.ndarray, *_: object) -> np.ndarray:
        hid.append(hidden)
        return 1.0 - 0.9 * seen.theta[hidden, 0]

    def by_half(seen: st.Observations, hidden: np.ndarray, *_: object) -> np.ndarray:
        hid.append(hidden)
        return np.full(hidden.sum(), 0.5)

    scores = default._held_out_scores({"exactly": exactly, "by half": by_half}, observations, 1, SILENT)
    assert scores["exactly"] > scores["by half"] + 1.0
    assert hid[0].sum() == 20
    assert np.array_equal(*hid)  # both are judged by the same counts


@pytest.mark.parametrize("way", [default._by_process, default._by_network])
def test_hidden_counts_teach_nothing_and_the_others_do(way: default.HeldOutMean) -> None:
    """Other counts in the hidden rows change no bit of what is said there, and what is said is near f."""
    seen = counted(2, 400)
    hidden = np.arange(400) % 10 == 0
    altered = np.where(hidden, 20 - seen.satisfied, seen.satisfied)
    other = st.Observations(seen.points, altered, 0, 20, relevant=seen.relevant)
    one, two = (way(each, hidden, 1, SILENT) for each in (seen, other))
    assert np.array_equal(one, two)
    f = 1.0 - 0.9 * seen.theta[hidden, 0]
    assert np.sqrt(np.mean((one - f) ** 2)) < 0.05


@pytest.mark.slow
def test_the_process_and_the_network_are_compared_by_fits() -> None:
    found, reason = _chosen(counted(5, 300), 1, SILENT)
    named = "the Gaussian process" if isinstance(found, st.SVIGP) else "the network"
    assert f"{named} predicts held-out counts better, by" in reason


def test_the_notes_say_what_was_taken_and_what_was_left_out() -> None:
    posterior = st.learn(counted(2, 40, relevant=1), seed=1)
    assert posterior.record.notes[0].startswith("svi-gp: 40 points, 1 parameter that matters; with up to 4")
    assert any("k1" in note for note in posterior.record.notes[1:])


def test_what_are_no_observations_are_refused() -> None:
    with pytest.raises(st.InputError, match="a fit takes Observations, not a list"):
        st.learn([1, 2], seed=1)  # type: ignore[arg-type]
