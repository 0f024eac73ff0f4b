"""Observations: the counts add up, files give back what was put in, and no run is ever counted twice."""

from __future__ import annotations

import copy
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs

import sateen as st
from sateen.core.observations import Failure, Observations
from sateen.core.progress import SILENT, Progress
from sateen.core.space import Points, Range, Space

SPACE = Space(beta=(0.005, 0.3), gamma=Range(0.005, 0.2, scale="log"), k=0.05)


def made(seed: int | None = 2, n: int = 6, **changes: Any) -> Observations:
    rng = np.random.default_rng(7)
    undecided = rng.integers(0, 3, n)
    given: dict[str, Any] = {
        "points": SPACE.uniform(n, seed=1) if n else SPACE.points(np.empty((0, 2))),
        "satisfied": rng.integers(0, 40, n),
        "undecided": undecided,
        "trials": 50,
        "seed": seed,
        "provenance": {"model": "A -> 0 @ k", "formula": "F[0, 1] A == 0", "end": None, "created": "2026-11-15"},
        "relevant": ("gamma",),
        "reasons": {"max_events": undecided // 2, "failed": undecided - undecided // 2},
        "failures": (Failure({"beta": 0.1}, 2, 3, 4, "ValueError: äöü\n"),),
        "seconds": 0.25,
    }
    return Observations(**given | changes)


@hs.composite
def observations(draw: hs.DrawFn) -> Observations:
    n = draw(hs.integers(0, 8))
    name = hs.text(hs.characters(categories=("L", "N"), codec="utf-8"), min_size=1, max_size=6)
    reserved = {"satisfied", "undecided", "trials", "seed", "point"}
    names = draw(hs.lists(name.filter(lambda text: text not in reserved), min_size=1, max_size=3, unique=True))
    ranges: dict[str, Any] = {each: Range(0.5, 2.0, draw(hs.sampled_from(["linear", "log"]))) for each in names}
    if draw(hs.booleans()):
        ranges["fixed 1"] = draw(hs.floats(-1e300, 1e300))
    space = Space(ranges)
    column = hs.lists(hs.floats(0.5, 2.0), min_size=n, max_size=n)
    theta = np.array([draw(column) for _ in names]).T.reshape(n, len(names))
    counts = hs.lists(hs.integers(0, 2**40), min_size=n, max_size=n)
    satisfied, short, failed, violated = (np.array(draw(counts), np.int64).reshape(n) for _ in range(4))
    origin = np.array([[draw(hs.integers(-1, 2**63 - 1)), draw(hs.integers(0, 9))] for _ in range(n)], np.int64)
    return Observations(
        Points(theta, space, draw(hs.sampled_from(["uniform", "given"]))),
        satisfied,
        short + failed,
        satisfied + short + failed + violated,
        seed=5,
        origin=draw(hs.sampled_from([None, origin.reshape(n, 2)])),
        provenance={"model": draw(hs.text(max_size=20)), "formula": draw(hs.none() | hs.text(max_size=20))},
        relevant=draw(hs.lists(hs.sampled_from(names), unique=True)),
        reasons={"short path": short, "failed": failed},
        failures=[Failure({"x": 1.5}, 1, 2, 3, draw(hs.text(max_size=20)))] * draw(hs.integers(0, 2)),
        seconds=draw(hs.floats(0, 1e6)),
    )


def same(one: Observations, other: Observations) -> bool:
    """Equal in everything, also in what equality leaves out."""
    parts = ("origin", "relevant", "failures", "seconds")
    exact = all(np.array_equal(getattr(one, part), getattr(other, part)) for part in parts[:1])
    exact &= all(getattr(one, part) == getattr(other, part) for part in parts[1:])
    exact &= dict(one.provenance) == dict(other.provenance) and list(one.reasons) == list(other.reasons)
    exact &= all(np.array_equal(one.reasons[reason], other.reasons[reason]) for reason in one.reasons)
    return one == other and one.fingerprint == other.fingerprint and exact


class TestCounts:
    def test_satisfied_violated_and_undecided_make_up_the_trials(self) -> None:
        obs = made()
        assert np.array_equal(obs.satisfied + obs.violated + obs.undecided, obs.trials)
        assert obs.trials.tolist() == [50] * 6

    def test_a_frequency_is_not_a_number_where_a_run_is_undecided_or_none_was_made(self) -> None:
        obs = Observations.from_counts(Space(k=(0, 1)), {"k": [0, 0.5, 1]}, [3, 3, 0], [10, 10, 0], [0, 1, 0])
        assert obs.frequency[0] == 0.3
        assert np.isnan(obs.frequency[1:]).all()

    def test_bounds_hold_what_the_undecided_runs_may_say_and_everything_without_runs(self) -> None:
        obs = Observations.from_counts(Space(k=(0, 1)), {"k": [0, 0.5, 1]}, [3, 3, 0], [10, 10, 0], [0, 4, 0])
        assert obs.frequency_bounds.tolist() == [[0.3, 0.3], [0.3, 0.7], [0.0, 1.0]]

    def test_everything_is_read_only(self) -> None:
        obs = made()
        arrays = [obs.satisfied, obs.undecided, obs.trials, obs.origin, obs.violated, obs.frequency, obs.theta]
        for array in [*arrays, obs.frequency_bounds, *obs.reasons.values()]:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        with pytest.raises(AttributeError):
            obs.seconds = 1.0  # type: ignore[misc]
        with pytest.raises(TypeError):
            obs.provenance["model"] = ""  # type: ignore[index]

    def test_counts_that_are_given_are_copied(self) -> None:
        satisfied = np.array([1, 2])
        obs = Observations.from_counts(Space(k=(0, 1)), {"k": [0, 1]}, satisfied, 5)
        satisfied[0] = 4
        assert obs.satisfied.tolist() == [1, 2]

    def test_counts_of_ones_own_need_no_more_than_a_space(self) -> None:
        space = Space(k=(0, 1), c=3)
        obs = Observations.from_counts(space, np.array([[0.2], [0.4]]), [1.0, 2.0], 5, undecided=1, design="uniform")
        assert obs.satisfied.dtype == np.int64
        assert (obs.seed, obs.seeds, obs.points.iid) == (None, (), True)
        assert obs.reasons["unknown"].tolist() == [1, 1]
        assert obs.relevant == ("k",)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"satisfied": 51}, "row 0 has 51 satisfied and 0 undecided runs of 50"),
            ({"satisfied": [1, 2]}, r"satisfied has the shape \(2,\); 6 points need 6 numbers"),
            ({"satisfied": 1.5}, "satisfied must be whole numbers"),
            ({"satisfied": [True] * 6}, "satisfied must be whole numbers"),
            ({"trials": [50] * 5 + [-1]}, r"trials is -1 in row 5"),
            ({"trials": float("inf")}, "trials is inf"),
            ({"trials": 2**63}, "trials is 9223372036854775808"),
            ({"reasons": {"x": 1}}, "undecided runs, but reasons for 1 of them"),
            ({"relevant": ("k",)}, "k cannot be relevant: it does not vary"),
            ({"origin": [[0, 0]]}, "origin needs a seed and a point index for each of 6 points"),
            ({"seconds": -1.0}, "seconds is a duration, not -1"),
            ({"points": [[0.1, 0.1]]}, "observations are made at Points, not at a list"),
        ],
    )
    def test_what_cannot_be_is_refused(self, change: dict[str, Any], words: str) -> None:
        with pytest.raises(st.InputError, match=words):
            made(**{"undecided": 0, "reasons": None} | change)

    def test_a_point_outside_the_space_is_refused(self) -> None:
        with pytest.raises(st.SpaceError, match="outside its range"):
            Observations.from_counts(Space(k=(0, 1)), {"k": [2.0]}, 1, 5)

    def test_it_says_what_it_is_in_a_line_and_in_a_table(self) -> None:
        obs = made(undecided=0, reasons=None, satisfied=7)
        assert repr(obs) == "<Observations: 6 points, 300 runs: 42 satisfied F[0, 1] A == 0>"
        assert "11 undecided" in repr(made(undecided=[1, 2, 2, 2, 2, 2], reasons=None, satisfied=1))
        html = made(n=20, provenance={"formula": "A < 1 & B > 2"})._repr_html_()
        assert "A &lt; 1 &amp; B" in html
        assert html.count("<tr>") == 9
        assert "the first 8" in html


class TestIdentity:
    def test_the_fingerprint_covers_question_points_counts_and_seed(self) -> None:
        obs = made()
        other_space = Space(beta=(0.005, 0.4), gamma=Range(0.005, 0.2, scale="log"), k=0.05)
        changes: list[dict[str, Any]] = [
            {"satisfied": obs.satisfied + 1},
            {"trials": 60},
            {"undecided": 0, "reasons": None},
            {"seed": 3},
            {"provenance": {**obs.provenance, "model": "B -> 0 @ k"}},
            {"provenance": {**obs.provenance, "formula": "F[0, 2] A == 0"}},
            {"provenance": {**obs.provenance, "end": 5.0}},
            {"points": Points(obs.theta[::-1], SPACE, "uniform")},
            {"points": Points(obs.theta, other_space, "uniform")},
        ]
        prints = {obs.fingerprint, *(made(**change).fingerprint for change in changes)}
        assert len(prints) == 1 + len(changes)
        assert not any(made(**change) == obs for change in changes)

    def test_the_fingerprint_covers_neither_time_nor_versions(self) -> None:
        changed = made(seconds=9.0, provenance={**made().provenance, "created": "later", "versions": {"llvmlite": "1"}})
        assert changed.fingerprint == made().fingerprint
        assert changed == made()
        assert hash(changed) == hash(made())

    def test_the_order_of_fixed_parameters_does_not_matter(self) -> None:
        one, other = (Space(a=(0, 1), **fixed) for fixed in ({"x": 1, "y": 2}, {"y": 2, "x": 1}))
        prints = [Observations.from_counts(space, {"a": [0.5]}, 1, 2).fingerprint for space in (one, other)]
        assert prints[0] == prints[1]

    def test_a_copy_is_equal_and_read_only(self) -> None:
        twin = copy.deepcopy(made())
        assert same(twin, made())
        assert not twin.satisfied.flags.writeable

    def test_the_seed_is_a_number_or_several_or_unknown(self) -> None:
        assert made(seed=2).seed == 2
        assert made(seed=None).seed is None
        assert (made(seed=7) + made(seed=3)).seed == (7, 3)


class TestRows:
    def test_a_slice_keeps_the_design_and_the_place_of_every_row(self) -> None:
        part = made()[2:5]
        assert len(part) == 3
        assert part.points.design == "uniform"
        assert part.origin.tolist() == [[2, 2], [2, 3], [2, 4]]
        assert part.satisfied.tolist() == made().satisfied[2:5].tolist()
        assert part.reasons.keys() <= made().reasons.keys()
        assert part.seconds == pytest.approx(0.125)

    def test_a_mask_may_have_looked_so_its_rows_are_no_sample(self) -> None:
        obs = made()
        assert obs[obs.satisfied > 20].points.design == "given"
        assert obs[[4, 1]].origin[:, 1].tolist() == [4, 1]

    def test_failures_go_with_their_rows(self) -> None:
        assert len(made()[3:4].failures) == 1
        assert made()[:3].failures == ()

    def test_a_row_chosen_twice_is_refused(self) -> None:
        with pytest.raises(st.InputError, match="its runs would count twice"):
            made()[[1, 1]]

    def test_a_single_row_is_a_slice(self) -> None:
        with pytest.raises(st.InputError, match=r"write obs\[3:4\]"):
            made()[3]
        with pytest.raises(st.InputError, match=r"write obs\[-1:\]"):
            made()[-1]

    def test_parts_that_are_joined_again_are_the_whole(self) -> None:
        obs = made()
        joined = obs[:2] + obs[2:]
        assert joined.fingerprint == obs.fingerprint
        assert joined.points.iid
        assert joined.seconds == pytest.approx(obs.seconds)
        assert joined.failures == obs.failures
        assert dict(joined.provenance) == dict(obs.provenance)

    def test_the_same_runs_are_not_added_twice(self) -> None:
        with pytest.raises(st.InputError, match=r"runs of seed 2 at point 0.*\n.*another seed"):
            made() + made()
        with pytest.raises(st.InputError, match="runs of seed 2 at point 3"):
            made()[:4] + made()[3:]

    def test_equal_points_with_other_seeds_stay_separate_rows_and_are_no_sample(self) -> None:
        joined = made(seed=1) + made(seed=2)
        assert len(joined) == 12
        assert not joined.points.iid
        assert joined.trials.tolist() == [50] * 12

    def test_independent_draws_with_other_points_stay_independent_draws(self) -> None:
        assert (made(seed=1) + made(seed=2, points=SPACE.uniform(6, seed=9))).points.iid

    def test_counts_without_a_seed_may_be_added_to_any(self) -> None:
        given = Observations.from_counts(SPACE, made().points, 1, 2)
        joined = made() + given
        assert joined.seed == 2
        assert "model" not in joined.provenance

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"provenance": {**made().provenance, "formula": "F[0, 9] A == 0"}}, "different formulas"),
            ({"provenance": {**made().provenance, "model": "B -> 0 @ k"}}, "different models"),
            ({"provenance": {**made().provenance, "end": 5.0}}, "a different end"),
            ({"points": Space(beta=(0.005, 0.3), gamma=(0.005, 0.2), k=0.06).uniform(6, seed=1)}, "different param"),
            (
                {"points": Space(beta=(0.005, 0.3), gamma=(0.005, 0.2), k=0.05).uniform(6, seed=1)},
                "gamma has the scale",
            ),
        ],
    )
    def test_what_answers_another_question_is_not_added(self, change: dict[str, Any], words: str) -> None:
        with pytest.raises(st.InputError, match=words):
            made() + made(seed=3, **change)

    def test_spaces_that_differ_in_extent_are_joined_to_the_smallest_that_holds_both(self) -> None:
        wide = Space(beta=(0.1, 0.9), gamma=Range(0.001, 0.1, scale="log"), k=0.05)
        joined = made() + made(seed=3, points=wide.uniform(6, seed=1))
        assert joined.space == Space(beta=(0.005, 0.9), gamma=Range(0.001, 0.2, scale="log"), k=0.05)
        assert not joined.points.iid

    def test_reasons_and_relevant_parameters_are_joined(self) -> None:
        joined = made(undecided=1, reasons={"x": 1}) + made(seed=3, undecided=2, reasons={"y": 2}, relevant=("beta",))
        assert {reason: counts.tolist() for reason, counts in joined.reasons.items()} == {
            "x": [1] * 6 + [0] * 6,
            "y": [0] * 6 + [2] * 6,
        }
        assert joined.relevant == ("beta", "gamma")


class TestFiles:
    @given(obs=observations())
    def test_a_saved_file_gives_back_everything(
        self, tmp_path_factory: pytest.TempPathFactory, obs: Observations
    ) -> None:
        file = tmp_path_factory.getbasetemp() / "round.npz"
        obs.save(file)
        assert same(Observations.load(file), obs)

    @given(obs=observations())
    def test_a_csv_file_gives_back_everything(
        self, tmp_path_factory: pytest.TempPathFactory, obs: Observations
    ) -> None:
        file = tmp_path_factory.getbasetemp() / "round.csv"
        obs.to_csv(file)
        assert same(Observations.from_csv(file), obs)

    @given(obs=observations())
    def test_a_data_frame_gives_back_the_counts(self, obs: Observations) -> None:
        twin = Observations.from_frame(obs.frame(), obs.space)
        assert np.array_equal(twin.theta, obs.theta)
        for column in ("satisfied", "undecided", "trials"):
            assert np.array_equal(getattr(twin, column), getattr(obs, column))

    def test_the_same_observations_give_the_same_bytes(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            made().save(tmp_path / name)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_a_saved_file_is_plain_arrays_that_safetensors_reads(self, tmp_path: Path) -> None:
        from safetensors import safe_open

        made().save(tmp_path / "a")
        with safe_open(tmp_path / "a", framework="numpy") as stored:
            assert np.array_equal(stored.get_tensor("satisfied"), made().satisfied)
            assert json.loads(stored.metadata()["content"])["design"] == "uniform"

    def test_saving_replaces_the_whole_file_or_nothing(self, tmp_path: Path) -> None:
        file = tmp_path / "a.npz"
        made().save(file)
        before = file.read_bytes()
        with pytest.raises(st.InputError, match="is of type object"):
            made(provenance={"model": object()}).save(file)
        assert file.read_bytes() == before
        assert [each.name for each in tmp_path.iterdir()] == ["a.npz"]

    def test_a_file_that_is_missing_or_a_folder_says_so_itself(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            Observations.load(tmp_path / "none.npz")
        with pytest.raises(st.InputError, match=r"cannot write .*none"):
            made().save(tmp_path / "none" / "a.npz")

    def test_no_damaged_byte_goes_unnoticed(self, tmp_path: Path) -> None:
        made(n=3).save(tmp_path / "a.npz")
        whole = (tmp_path / "a.npz").read_bytes()
        rng = np.random.default_rng(1)
        for place in rng.choice(len(whole), 400, replace=False).tolist():
            damaged = bytearray(whole)
            damaged[place] ^= 1 << int(rng.integers(8))
            (tmp_path / "b.npz").write_bytes(damaged)
            with pytest.raises(st.InputError):
                Observations.load(tmp_path / "b.npz")

    def test_a_file_cut_short_is_refused(self, tmp_path: Path) -> None:
        made().save(tmp_path / "a.npz")
        whole = (tmp_path / "a.npz").read_bytes()
        for length in range(0, len(whole), 97):
            (tmp_path / "b.npz").write_bytes(whole[:length])
            with pytest.raises(st.InputError, match=r"b\.npz is (damaged|empty|not a safetensors)"):
                Observations.load(tmp_path / "b.npz")

    def test_foreign_files_are_refused_and_no_pickle_is_read(self, tmp_path: Path) -> None:
        class Trap:
            def __reduce__(self) -> Any:
                return (Path(tmp_path / "sprung").touch, ())

        trap = np.array([Trap()], dtype=object)
        np.savez(tmp_path / "pickle.npz", about=trap)
        np.save(tmp_path / "pickle.npy", trap, allow_pickle=True)
        np.savez(tmp_path / "arrays.npz", x=np.zeros(3))
        np.savez(tmp_path / "words.npz", about=np.frombuffer(b"[1, 2]", np.uint8))
        (tmp_path / "text.npz").write_text("beta,satisfied\n1,2\n")
        with zipfile.ZipFile(tmp_path / "other.npz", "w") as other:
            other.writestr("about.txt", "nothing")
        for file in sorted(tmp_path.iterdir()):
            with pytest.raises(st.InputError, match=file.name):
                Observations.load(file)
        assert not (tmp_path / "sprung").exists()

    def test_counts_that_cannot_be_are_refused_even_with_a_right_checksum(self, tmp_path: Path) -> None:
        from sateen.files.container import read_container, write_container

        made().save(tmp_path / "a.safetensors")
        kind, number, content, arrays = read_container(tmp_path / "a.safetensors")
        assert kind == "observations"
        for change in ({"satisfied": arrays["trials"] + 1}, {"theta": arrays["theta"][:2]}):
            write_container(tmp_path / "b", kind, number, content, {**arrays, **change})
            with pytest.raises(st.InputError, match="holds no valid observations"):
                Observations.load(tmp_path / "b")
        write_container(tmp_path / "b", kind, number + 1, content, arrays)
        with pytest.raises(st.InputError, match=f"of format {number + 1}, and this sateen reads format {number}"):
            Observations.load(tmp_path / "b")


class TestTables:
    def test_a_table_has_parameters_and_counts_and_comments_say_the_rest(self, tmp_path: Path) -> None:
        made(undecided=0, reasons=None, failures=()).to_csv(tmp_path / "a.csv")
        lines = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
        comments = [line for line in lines if line.startswith("#")]
        assert lines[len(comments)] == "beta,gamma,satisfied,undecided,trials"
        assert "# seed: 2" in comments
        assert len(lines) == len(comments) + 7

    def test_a_table_of_ones_own_needs_a_space(self, tmp_path: Path) -> None:
        file = tmp_path / "own.csv"
        file.write_text("trials, k, satisfied\n# a remark: yes\n50,0.25,10\n\n20,0.5,20\n", encoding="utf-8")
        obs = Observations.from_csv(file, Space(k=(0, 1), c=3))
        assert (obs.theta[:, 0].tolist(), obs.satisfied.tolist(), obs.trials.tolist()) == (
            [0.25, 0.5],
            [10, 20],
            [50, 20],
        )
        with pytest.raises(st.InputError, match=r"own\.csv: the file does not state its space\n  pass space="):
            Observations.from_csv(file)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "there is no column k"),
            ("k,satisfied\n0.5,1\n", "there is no column trials"),
            ("k,satisfied,trials\n0.5,1\n", "line 2: 2 values under 3 columns"),
            ("k,satisfied,trials\n0.5,x,2\n", "line 2, column satisfied: 'x' is not a whole number"),
            ("k,satisfied,trials\n0.5,1.5,2\n", "line 2, column satisfied: '1.5' is not a whole number"),
            ("# note\nk,satisfied,trials\nx,1,2\n", "line 3, column k: 'x' is not a number"),
            ("k,satisfied,trials\n0.5,3,2\n", "row 0 has 3 satisfied"),
            ("k,satisfied,trials\n5,1,2\n", "k is 5 in row 0, outside its range"),
            ("# sateen observations: 2\nk,satisfied,trials\n0.5,1,2\n", "a later version of sateen"),
            (
                "# sateen observations: 1\n# space: {\nk,satisfied,trials\n0.5,1,2\n",
                "comments before the table are damaged",
            ),
            ("# sateen observations: 1\nk,satisfied,trials\n0.5,1,2\n", "comments before the table are damaged"),
            (
                "k,satisfied,trials\n0.5," + "9" * 5000 + ",2\n",
                "line 2, column satisfied: '9{40}' is not a whole number",
            ),
            ("k,satisfied,trials\n0.5,1,99999999999999999999\n", "is not a whole number, or is too large"),
            (",".join(f"c{n}" for n in range(100)), r"there is no column k; the columns are c0, .*, … \(100 in all\)"),
        ],
    )
    def test_a_wrong_table_is_refused_with_its_place(self, tmp_path: Path, text: str, words: str) -> None:
        (tmp_path / "wrong.csv").write_text(text, encoding="utf-8")
        with pytest.raises(st.InputError, match=rf"wrong\.csv: .*{words}"):
            Observations.from_csv(tmp_path / "wrong.csv", Space(k=(0, 1)))

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("space", None),
            ("space", "7"),
            ("space", '[["k"]]'),
            ("space", '[["k", [0, 1, "cubic"]]]'),
            ("space", "[" * 100_000),
            ("seed", '""'),
            ("seed", str(2**70)),
            ("seed", "Infinity"),
            ("provenance", '["x"]'),
            ("seconds", "1" + "0" * 400),
            ("seconds", "9" * 5000),
            ("reasons", '{"a": 1}'),
            ("failures", "[7]"),
            ("relevant", "[1]"),
            ("design", "null"),
        ],
    )
    def test_comments_of_a_table_that_say_something_else_are_refused(
        self, tmp_path: Path, key: str, value: str | None
    ) -> None:
        file = tmp_path / "a.csv"
        made().to_csv(file)
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith(f"# {key}:")]
        lines[1:1] = [] if value is None else [f"# {key}: {value}"]
        file.write_text("\n".join(lines), encoding="utf-8")
        with pytest.raises(st.InputError, match=r"a\.csv: (.|\n)*(restore the file|pass space)"):
            Observations.from_csv(file)

    def test_a_parameter_with_the_name_of_a_column_needs_the_other_file(self, tmp_path: Path) -> None:
        obs = Observations.from_counts(Space(trials=(0, 1)), {"trials": [0.5]}, 1, 2)
        with pytest.raises(st.InputError, match="a parameter called trials looks like a column of counts"):
            obs.to_csv(tmp_path / "a.csv")
        obs.save(tmp_path / "a.npz")
        assert Observations.load(tmp_path / "a.npz") == obs

    def test_a_data_frame_without_a_column_says_which(self) -> None:
        frame = made().frame().drop(columns="trials")
        with pytest.raises(st.InputError, match="the data frame has no column trials"):
            Observations.from_frame(frame, SPACE)

    def test_a_data_frame_has_the_fixed_parameters_too(self) -> None:
        assert list(made().frame().columns) == ["beta", "gamma", "k", "satisfied", "undecided", "trials"]


class TestPictures:
    def test_one_parameter_is_an_axis_and_undecided_points_are_hollow(self) -> None:
        space = Space(k=Range(0.1, 10, scale="log"))
        obs = Observations.from_counts(space, {"k": [0.5, 1, 2, 4]}, [1, 5, 8, 0], [10, 10, 10, 0], [0, 3, 0, 0])
        axes = obs.plot()
        certain, doubtful = axes.get_lines()
        assert certain.get_xydata().tolist() == [[0.5, 0.1], [2.0, 0.8]]
        assert doubtful.get_xydata().tolist() == [[1.0, 0.65]]
        assert axes.get_xscale() == "log"
        assert axes.get_xlabel() == "k"
        axes.figure.draw_without_rendering()

    def test_the_bars_are_wilsons_intervals(self) -> None:
        from scipy.stats import binomtest

        obs = Observations.from_counts(Space(k=(0, 1)), {"k": [0, 0.5, 1]}, [0, 3, 40], [10, 10, 40])
        _, bars = obs.plot().collections
        drawn = [segment[:, 1].tolist() for segment in bars.get_segments()]
        for (low, high), k, n in zip(drawn, [0, 3, 40], [10, 10, 40], strict=True):
            wilson = binomtest(k, n).proportion_ci(0.95, method="wilson")
            assert (low, high) == pytest.approx((wilson.low, wilson.high), abs=1e-12)

    def test_two_parameters_are_a_plane_of_colours(self) -> None:
        axes = made().plot()
        (cloud,) = axes.collections
        assert len(cloud.get_offsets()) == 6
        assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("beta", "gamma", "log")
        axes.figure.draw_without_rendering()

    def test_more_parameters_make_no_picture(self) -> None:
        space = Space(a=(0, 1), b=(0, 1), c=(0, 1))
        with pytest.raises(st.InputError, match="a picture shows one or two parameters, and here 3 vary"):
            Observations.from_counts(space, [[0, 0, 0]], 1, 2).plot()


def test_silence_is_a_progress() -> None:
    assert isinstance(SILENT, Progress)
    SILENT.start("observe", 10, "runs")
    SILENT.note("compiling (once)")
    SILENT.advance(10)
    SILENT.finish()
