"""The paper's work in small: which tasks there are, that they are computed once, and what comes out of them."""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from sateen.core.errors import Interrupted
from sateen.paper.cases.configurations import CONFIGURATIONS, Design
from sateen.paper.cases.models import VARIANTS, lacz, phosphorelay
from sateen.paper.cases.random_ctmc import KINDS, informative_networks, random_network
from sateen.paper.presets import PRESETS
from sateen.paper.published import DIMENSIONS, Figures
from sateen.paper.questions import NETWORKS, TRUTH_RUNS, questions
from sateen.paper.reproduction import Findings, Reproduction
from sateen.pipeline.folder import write_checksummed
from watchers import Watcher

SMALL = {"learners": ("svi-gp", "default"), "seeds": 2, "share": 0.03, "workers": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paper")


@pytest.fixture(scope="module")
def done(folder: Path) -> Reproduction:
    """Configuration (a) with 15 training and 30 test points, done."""
    work = Reproduction(["a"], folder, **SMALL)
    work.write(work.run())
    return work


def files(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted((folder / "pieces" / "stages").iterdir())}


def test_a_configuration_asks_what_the_paper_does():
    (question,) = questions(["l"])
    assert (question.train, question.test) == (Design("latin", 1_000_000, 20), Design("latin", 4096, 1000))
    assert question.truth_runs == TRUTH_RUNS["phosphorelay"] == 50_000
    assert len(question.points("test")) == 4096


def test_fits_of_a_learner_of_ones_own_depend_on_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    keys = []
    for level in (1, 2):
        sys.modules.pop("paper_learner", None)  # as in a new process
        Path("paper_learner.py").write_text(f"class Mine:\n    def fit(self, observations, *, seed): {level}\n")
        work = Reproduction(["a"], tmp_path / "r", **{**SMALL, "learners": ("svi-gp", "paper_learner:Mine")})
        keys.append({task.name: task.key for task in work.pipeline.tasks if task.stage.startswith("fits")})
    changed = {name for name in keys[0] if keys[0][name] != keys[1][name]}
    assert changed == {name for name in keys[0] if "paper_learner" in name}
    assert changed


def test_sets_are_independent_and_repeatable():
    (h,), (i,) = questions(["h"], share=0.01), questions(["i"], share=0.01)
    seeds = [h.run_seed("train", 1), h.run_seed("train", 2), h.run_seed("test"), h.run_seed("truth")]
    seeds += [h.run_seed("held-out"), i.run_seed("train", 1)]
    assert len(set(seeds)) == len(seeds)
    assert h.points("train", 1) == h.points("train", 1) != h.points("train", 2)
    assert h.points("truth") == h.points("test") != h.points("train", 1)[: len(h.points("test"))]


def test_a_share_keeps_grids_square_and_truths_from_growing():
    (c,), (g,) = questions(["c"], share=0.1), questions(["g"], share=0.001)
    assert (c.train.points, c.test.points, c.truth_runs) == (16**2, 6**2, None)
    assert (g.train.points, g.test.points, g.truth_runs) == (4**2, 4**2, 200)
    assert questions(["g"], share=1.0) == questions(["g"])
    with pytest.raises(st.InputError, match="above 0 and is at most 1, not 0"):
        questions(["c"], share=0)


def test_there_are_three_networks_of_every_size_and_three_properties_of_each():
    asked = questions(["random"])
    assert [question.dimension for question in asked] == [rates for rates in DIMENSIONS for _ in range(3)]
    for question in asked:
        assert [name.split("/")[-1] for name in question.formulas] == list(KINDS)
        assert {formula.horizon for formula in question.formulas.values()} == {10.0}
        used = set().union(*(formula.species for formula in question.formulas.values()))
        assert used <= set(question.model.species)
        assert (question.train.points, question.test.points) == (5000 * question.dimension, 100 * question.dimension)


@pytest.mark.slow
@pytest.mark.parametrize("rates", [2, 3, 4, 8])
def test_the_networks_are_the_first_with_informative_properties(rates: int):
    found = islice(informative_networks(rates), 3)
    for (seed, properties), row, question in zip(found, NETWORKS[rates], questions([f"r{rates:02d}"]), strict=True):
        assert (seed, list(properties)) == (row[0], list(question.formulas.values()))


def test_as_stated_is_another_question_only_where_the_paper_prints_another():
    usual, stated = (questions([*CONFIGURATIONS, "r02"], variant=name) for name in VARIANTS)
    same = [one.name for one, other in zip(usual, stated, strict=True) if one == other]
    assert same == ["a", "b", "c", "r02/m1", "r02/m2", "r02/m3"]
    d, e = stated[3:5]
    assert (d.name, d.part, d.is_published, d.train) == ("d/as-stated", "d", False, usual[3].train)
    assert d.formulas == {"d/as-stated": lacz.formula("as-stated")}
    assert e.space == st.Space(k2=(10, 1e4), k7=(0.45, 4500))
    assert d.run_seed("train", 1) != usual[3].run_seed("train", 1)
    with pytest.raises(st.InputError, match="did you mean as-stated"):
        questions(["d"], variant="as-state")


# Files of results that took long and must be found again, as long as the version is this one.
KEPT = (
    "train1.d.7713bf39b6067bdc.safetensors",
    "exact.a.69847a9a0ac5c2c2.json",
    "test.r02-m1.7079cab2f1bbd067.safetensors",
)


def test_the_tasks_of_paper_data_keep_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sateen.pipeline.tasks.VERSION", "0.1.0")
    usual, stated = (Reproduction(["a", "d", "r02"], tmp_path, variant=name).pipeline.tasks for name in VARIANTS)
    assert {task.file.name for task in usual} >= set(KEPT)
    shared = {task.file for task in usual} & {task.file for task in stated}
    assert shared == {task.file for task in usual if " d" not in task.name.replace(" default", "")}


def test_properties_as_the_paper_prints_them_are_compared_with_nothing(tmp_path: Path):
    work = Reproduction(["f"], tmp_path, learners=("svi-gp",), seeds=1, share=0.02, workers=1, variant="as-stated")
    findings = work.run()
    (row,) = findings.rows
    assert (row.part, row.published, row.worse) == ("f", Figures(), ())
    assert findings.labels["f"].published_width is None
    assert findings.content()["variant"] == "as-stated"
    assert "Variant as-stated" in findings.text
    (file,) = work.draw(findings)
    assert file.name == "paper-f-as-stated.svg"
    assert "(f) as the paper states it" in file.read_text()
    (test,) = work.by_question["f/as-stated"].test.value().values()
    assert test.provenance["formula"] == str(phosphorelay.formula("as-stated"))


def test_networks_of_another_size_are_searched_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small = {"learners": ("svi-gp",), "share": 0.002, "workers": 1}
    work = Reproduction(["r01"], tmp_path, **small)
    assert [task.name for task in work.pipeline.tasks[:2]] == ["networks r01", "train1 r01/m1"]
    with pytest.raises(st.InputError, match="the network of r01/m1 is not found yet"):
        _ = work.questions[0].asked
    findings = work.run()
    (row,) = findings.dimensions
    assert (row.part, row.fits, row.published) == ("1", 9, Figures())
    (figure,) = work.draw(findings)
    assert figure.name == "paper-random.svg"
    found = work.searches[1].value()
    expected = list(islice(informative_networks(1), 3))
    assert [(network.seed, network.properties) for network in found] == expected
    second = work.by_question["r01/m2"].test.value()["r01/m2/phi1"]
    assert second.provenance["formula"] == str(expected[1][1][0])
    assert second.provenance["model"] == str(random_network(1, expected[1][0]).model)
    monkeypatch.setattr("sateen.paper.networks.informative_networks", None)  # a second search would fail
    more = Reproduction(["r01"], tmp_path, **{**small, "seeds": 2})
    assert {task.name.split()[0] for task in more.pipeline.pending()} == {"train2", "fit"}
    assert Reproduction(["r1"], tmp_path, **small).run() == findings


def test_a_size_of_the_paper_means_its_networks(tmp_path: Path):
    assert questions(["r8"]) == questions(["r08"])
    assert not Reproduction(["r8"], tmp_path).searches
    asked = questions(["random", "r06", "r02"])
    assert [question.dimension for question in asked[::3]] == [2, 3, 4, 6, 8, 12, 16, 20]
    assert (asked[9].train.points, asked[9].test.points, asked[9].space.dimension) == (30_000, 600, 6)


def test_every_task_is_a_file_and_is_computed_once(done: Reproduction, folder: Path):
    assert not done.pipeline.pending()
    before = files(folder)
    assert {name.split(".")[0] for name in before} == {
        *("train1", "train2", "test", "exact", "fit", "plan", "held-out", "lift")
    }
    assert [name[:15] for name in before if name.startswith("fit.") and name.endswith(".safetensors")] == [
        "fit.a.default.1"  # the posterior that is calibrated
    ]
    again = Reproduction(["a"], folder, **SMALL)
    assert again.forecast() == {}
    assert again.run() == done.run()
    assert files(folder) == before


def test_another_question_computes_only_what_it_adds(done: Reproduction, folder: Path):
    more = Reproduction(["a"], folder, **{**SMALL, "seeds": 3})
    assert [task.name for task in more.pipeline.pending()] == ["train3 a", "fit a svi-gp 3", "fit a default 3"]
    other = Reproduction(["a"], folder, **SMALL, preset="faithful")
    assert {task.name.split()[2] for task in other.pipeline.pending()} == {
        "svi-gp-faithful"
    }  # the default is the same under every preset
    both = Reproduction(["a"], folder, **SMALL, preset=("fast", "as-run"))
    assert {task.name.split()[2] for task in both.pipeline.pending()} == {"svi-gp-as-run"}
    assert len(Reproduction(["a"], folder, **{**SMALL, "share": 0.05}).pipeline.pending()) == len(done.pipeline.tasks)


def test_what_is_finished_can_be_shown_without_the_rest(done: Reproduction, folder: Path, tmp_path: Path):
    shown = Reproduction(["a", "b"], folder, **{**SMALL, "seeds": 3}, preset=("fast", "faithful"), finished=True)
    assert not shown.pipeline.pending()
    assert shown.run().rows == done.run().rows
    assert shown.run().lifts == done.run().lifts
    beside = Reproduction(["a", "r06"], folder, **SMALL, finished=True)
    assert not beside.pipeline.pending()  # nor are networks searched for
    with pytest.raises(st.InputError, match=r"no fit of these parts and learners is finished in .*; compute one first"):
        Reproduction(["a"], tmp_path, finished=True).run()


def test_the_table_has_what_the_tasks_computed(done: Reproduction, folder: Path):
    findings = done.run()
    rows = {row.learner: row for row in findings.rows}
    assert list(rows) == ["svi-gp", "default"]
    ours = rows["default"]
    assert ours.kinds == ("svi-gp",)
    assert ours.figures["rmse"] == rows["svi-gp"].figures["rmse"]  # the default is that learner here
    assert 0.005 < ours.figures["rmse_truth"] < 0.06
    assert ours.figures["rmse_truth"] < ours.figures["rmse"]
    (question,) = done.questions
    truth = done.by_question["a"].truth.value()["a"]
    exact = st.exact(question.model, question.formulas["a"], question.points("test"))
    assert np.array_equal(truth, exact)
    assert findings.labels["a"].noise == pytest.approx(float(np.sqrt(np.mean(exact * (1 - exact) / 1000))))
    told = json.loads((folder / "table.json").read_text())
    assert told["rows"][1]["figures"]["rmse"] == ours.figures["rmse"]
    assert told["share"] == 0.03
    assert (folder / "table.txt").read_text() == findings.text
    assert findings.text.startswith("Tried with a share of 0.03 of the points")
    assert (folder / "table.tex").read_text().startswith("% Tried with a share")


def test_the_lift_covers_the_truth_as_often_as_it_promises(done: Reproduction):
    lift = done.run().lifts["a"]
    assert (len(lift.coverages), lift.level, lift.confidence) == (20, 0.9, 0.95)
    assert lift.p > 1e-6
    assert lift.points * lift.runs <= 2000
    held_out = done.by_question["a"].held_out.value()
    assert len(held_out) == 20 * lift.points
    assert len(np.unique(held_out.theta)) == len(held_out)  # no calibration sees the points of another


def test_curves_are_drawn_with_thirty_test_points(done: Reproduction, tmp_path: Path):
    (file,) = done.draw(done.run(), ".svg")
    assert file.name == "paper-a.svg"
    text = file.read_text()
    assert all(word in text for word in ("SVI-GP", "sateen", "beta", "1,000 test runs"))


def test_maps_are_drawn_for_two_parameters(tmp_path: Path):
    work = Reproduction(["c"], tmp_path, learners=("svi-gp",), seeds=1, share=0.02, workers=1)
    (file,) = work.draw(work.run(), ".svg")
    text = file.read_text()
    assert file.name == "paper-c.svg"
    assert all(word in text for word in ("truth", "SVI-GP", "gamma", "mean less truth"))


def test_a_refusal_is_a_dash_with_its_reason(done: Reproduction, folder: Path):
    work = Reproduction(["a"], folder, **{**SMALL, "learners": ("ep-gp", "default"), "seeds": 1})
    (missing,) = work.pipeline.pending()
    write_checksummed(missing.file, {"refused": "EPGP needs 12 GB"})
    try:
        findings = work.run()
        assert findings.rows[0].refused == "EPGP needs 12 GB"
        assert "a, EP-GP: EPGP needs 12 GB" in findings.text
        (figure,) = work.draw(findings)
        assert "EP-GP" not in figure.read_text()
    finally:
        missing.file.unlink()


def test_a_learner_that_cannot_learn_from_a_set_is_kept_as_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    work = Reproduction(["a"], tmp_path, learners=("ep-gp",), seeds=1, share=0.02, workers=1)
    learn = st.learn
    monkeypatch.setattr(st, "learn", lambda seen, name, **options: learn(seen, st.EPGP(memory=100.0), **options))
    findings = work.run()
    assert findings.rows[0].refused.startswith("EPGP needs")
    assert not work.pipeline.pending()
    assert work.draw(findings) == []


@pytest.mark.parametrize("stop", [1, 4, 8, 11])
def test_after_ctrl_c_the_same_goes_on_to_the_same(stop: int, done: Reproduction, tmp_path: Path, folder: Path):
    with pytest.raises(Interrupted, match=r"what is finished is in .*; run the same again to resume"):
        Reproduction(["a"], tmp_path, **SMALL, progress=Watcher(at=stop)).run()
    assert not list((tmp_path / "pieces" / "stages").glob(".*.part"))
    work = Reproduction(["a"], tmp_path, **SMALL)
    assert work.pipeline.pending()
    if stop > 9:
        found, wanted = work.run(), done.run()
        assert timeless(found) == timeless(wanted)
        assert found.lifts == wanted.lifts
        assert set(files(tmp_path)) == set(files(folder))  # and nothing is left over


def timeless(findings: Findings) -> list[dict]:
    """What does not depend on how fast the machine is."""
    return [{**row.content()["figures"], "seconds": 0, "evaluation": 0} for row in findings.rows]


def test_two_workers_find_the_same_and_go_on_after_ctrl_c(done: Reproduction, tmp_path: Path, folder: Path):
    with pytest.raises(Interrupted, match="run the same again to resume"):
        # While two fits are made.
        Reproduction(["a"], tmp_path, **{**SMALL, "workers": 2}, progress=Watcher(at=7)).run()
    work = Reproduction(["a"], tmp_path, **{**SMALL, "workers": 2})
    assert {"fits", "plans of calibrations"} <= {task.stage for task in work.pipeline.pending()}
    found, wanted = work.run(), done.run()
    assert timeless(found) == timeless(wanted)
    assert found.lifts == wanted.lifts
    assert set(files(tmp_path)) == set(files(folder))


def test_what_a_killed_run_left_behind_is_cleared_away(done: Reproduction, folder: Path):
    left = done.pipeline.tasks[0].file.with_suffix(".db")
    left.write_bytes(b"")
    done.run()
    assert not left.exists()


def test_a_damaged_result_is_named_and_not_used(done: Reproduction, folder: Path):
    file = done.pipeline["fit a svi-gp 1"].file
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"rmse", b"rmsf", 1))
    try:
        with pytest.raises(st.StoreError, match=r"fit\.a\.svi-gp\.1.* is damaged"):
            done.run()
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"parts": ["z"]}, "the paper has no part 'z'; there are a, b, c, d, e, f, g, h, i, l, r02"),
        ({"parts": ["randon"]}, "did you mean random"),
        ({"parts": []}, "at least one part"),
        ({"learners": ("svi",)}, "there is no learner 'svi'; did you mean svi-gp"),
        ({"learners": ()}, "one learner"),
        ({"preset": "slow"}, "there is no preset 'slow'; there are fast, faithful, as-run"),
        ({"preset": ()}, "one preset"),
        ({"seeds": 0}, "one training set"),
        ({"first": -1}, "numbered from 0 up"),
        ({"share": 1.5}, "at most 1, not 1.5"),
        ({"variant": "as-state"}, "did you mean as-stated"),
        ({"parts": ["r00"]}, "a whole number of rates from 1 to 40, not '00'"),
        ({"parts": ["r41"]}, "a whole number of rates from 1 to 40, not '41'"),
    ],
)
def test_what_cannot_be_done_is_refused(wrong: dict, message: str, tmp_path: Path):
    with pytest.raises(st.InputError, match=message):
        Reproduction(**{"parts": ["a"], "folder": tmp_path, **wrong})


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("part", ["a", "c", "e", "l", "r02", "r06", "r20", "r40"])
def test_every_task_has_a_forecast(part: str, preset: str, tmp_path: Path):
    work = Reproduction([part], tmp_path, preset=preset)
    assert all(task.seconds > 0 for task in work.pipeline.tasks)
    assert sum(work.forecast().values()) == pytest.approx(sum(task.seconds for task in work.pipeline.tasks))


def test_more_workers_make_runs_faster_and_fits_side_by_side(tmp_path: Path):
    one, four = (Reproduction(["e"], tmp_path, workers=workers).pipeline.tasks for workers in (1, 4))
    for alone, shared in zip(one, four, strict=True):
        assert (shared.seconds < alone.seconds) == (alone.runs > 0 or alone.stage in ("fits", "plans of calibrations"))


def test_the_papers_settings_take_weeks_on_large_data_and_the_fast_ones_do_not(tmp_path: Path):
    large = Reproduction(["l"], tmp_path, preset="faithful", learners=("svi-gp",), seeds=1, workers=1)
    assert sum(large.forecast().values()) > 30 * 86_400
    assert sum(Reproduction(["l"], tmp_path, seeds=1).forecast().values()) < 1800


@pytest.mark.slow
def test_networks_share_their_runs_and_are_averaged_by_dimension(tmp_path: Path):
    work = Reproduction(["r02"], tmp_path, learners=("svi-gp",), share=0.01, workers=1)
    findings = work.run()
    (row,) = findings.dimensions
    assert (row.part, row.fits, findings.rows) == ("2", 9, ())
    assert row.halves["rmse"] > 0
    question = work.questions[0]
    sets = list(work.by_question[question.name].test.value().values())
    assert len({one.points for one in sets}) == 1
    assert len({one.provenance["seed"] for one in sets}) == 1
    (file,) = work.draw(findings)
    text = file.read_text()
    assert "SVI-GP, the paper" in text
    assert "(SMC)" in text
