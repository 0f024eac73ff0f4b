"""[decide] in a study: what it may say, what its tasks leave, and that a killed run leaves the same bits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from sateen.core.errors import StoreError, TextError
from sateen.core.progress import SILENT
from sateen.decision.goals import Error, Optimum, Threshold, Width
from sateen.study.decided import DecisionResult
from sateen.study.stages import study_tasks
from small_studies import BEST, DECIDE, SMALL, TWO, WITHOUT, changed

MISTAKES = [
    # what is written in [decide]; the key that is named; what is said; the remedy
    ("above = 0.5", "decide", "budget is missing", "see [decide] with"),
    ("budget = 6000", "decide", "there is no threshold", "above = 0.1 asks where"),
    ("budget = 6000\nabove = 0.5\nbelow = 0.5", "decide.below", "above and below are both given", "above = 0.1"),
    ("budget = 6000\nabove = 1.5", "decide.above", "above is a number between 0 and 1, such as 0.1, not 1.5", ""),
    ("budget = 6000\nbelow = 0", "decide.below", "below is a number between 0 and 1, such as 0.1, not 0.0", ""),
    ("budget = 6000\nabove = '0.5'", "decide.above", "a number is needed, not '0.5'", ""),
    ("budget = 6000\nabvoe = 0.5", "decide.abvoe", "there is no such key", "did you mean above?"),
    ("budget = 20\nabove = 0.5", "decide.budget", "a whole number not below 200 is needed, not 20", ""),
    ("budget = 6000\nabove = 0.5\nundecided = 2", "decide.undecided", "undecided is a number between 0 and 1", ""),
    ("budget = 6000\nabove = 0.5\nlevel = 0", "decide.level", "level is a number between 0 and 1", ""),
    ("budget = 6000\nabove = 0.5\nwidth = 0.1", "decide.width", 'it is for the goal "width", and the goal is', ""),
    ('budget = 6000\ngoal = "width"', "decide", "width is missing, the aim of this goal", "add width = 0.05"),
    ('budget = 6000\ngoal = "error"\nwidth = 0.1', "decide.width", 'it is for the goal "width"', "change one"),
    ('budget = 6000\ngoal = "treshold"', "decide.goal", "'treshold' is not known here", "did you mean threshold?"),
    ('budget = 6000\nabove = 0.5\nproperty = "gnoe"', "decide.property", "'gnoe' is not in the table", "mean gone?"),
    ('budget = 6000\ngoal = "width"\nwidth = 0.1\ncertificate = {}', "decide.certificate", "it is for the goal", ""),
    ("budget = 6000\nabove = 0.5\ncertificate = 3", "decide.certificate", "a table is needed here, not 3", "see ["),
    (
        'budget = 6000\nabove = 0.5\ncertificate = { by = "luck" }',
        "decide.certificate.by",
        "'luck' is not known here",
        "there are fresh, cells",
    ),
    (
        "budget = 6000\nabove = 0.5\ncertificate = { wrogn = 0.1 }",
        "decide.certificate.wrogn",
        "there is no such key",
        "did you mean wrong?",
    ),
    (
        "budget = 6000\nabove = 0.5\ncertificate = { wrong = 0 }",
        "decide.certificate.wrong",
        "wrong is a number between 0 and 1",
        "",
    ),
    (
        "budget = 6000\nabove = 0.5\ncertificate = { cells = 10 }",
        "decide.certificate.cells",
        'it is for by = "cells", and this is by = "fresh"',
        "change one of the two",
    ),
    (
        'budget = 6000\nabove = 0.5\ncertificate = { by = "cells", wrong = 0.1 }',
        "decide.certificate.wrong",
        'it is for by = "fresh"',
        "",
    ),
    (
        'budget = 6000\nabove = 0.5\ncertificate = { by = "cells", monotone = { kk = "+" } }',
        "decide.certificate.monotone.kk",
        "no such parameter varies",
        "did you mean k?",
    ),
    (
        'budget = 6000\nabove = 0.5\ncertificate = { by = "cells", seconds = 3 }',
        "decide.certificate.seconds",
        "does not depend on the clock",
        "give cells = 20000",
    ),
    (
        "budget = 6000\nabove = 0.5\nbounds = { seconds = 3 }",
        "decide.bounds.seconds",
        "does not depend on the clock",
        "give cells = 20000",
    ),
    (
        'budget = 6000\ngoal = "optimum"\nwithin = { kk = 0.1 }',
        "decide.within.kk",
        "no such parameter varies",
        "did you mean k?",
    ),
    ('budget = 6000\ngoal = "optimum"\nworst = true', "decide.worst", "about the box of tolerances", "give within"),
    (
        'budget = 6000\ngoal = "optimum"\nsubject_to = { gone = "<= 0.5" }',
        "decide.subject_to.gone",
        "it is what is optimised",
        "there are none",
    ),
    (
        'budget = 6000\ngoal = "optimum"\ncertificate = { attempt = 2 }',
        "decide.certificate.attempt",
        "it is for the goal",
        "here are by, wrong, confidence",
    ),
]


@pytest.mark.parametrize(("written", "key", "said", "remedy"), MISTAKES)
def test_a_mistake_is_told_at_its_key_with_what_would_do(written: str, key: str, said: str, remedy: str) -> None:
    with pytest.raises(TextError) as error:
        st.Study.parse(f"{WITHOUT}\n[decide]\n{written}\n")
    message = str(error.value)
    assert f"the study: {key}: " in message
    assert said in message
    assert remedy in message
    assert "(line " in message


@pytest.mark.parametrize(
    ("limit", "said"),
    [('"= 0.1"', 'a limit is "<=" or ">="'), ('"<= 2"', "a number between 0 and 1"), ("0.1", "text in quotes")],
)
def test_a_limit_is_a_comparison_and_a_probability(limit: str, said: str) -> None:
    with pytest.raises(TextError, match=r"decide\.subject_to") as error:
        st.Study.parse(changed(('"<= 0.5"', limit), text=TWO + BEST))
    assert said in str(error.value)


def test_of_several_properties_one_is_named() -> None:
    with pytest.raises(TextError, match="about which property"):
        st.Study.parse(TWO + DECIDE)


@pytest.mark.parametrize(
    ("written", "goal"),
    [
        ("above = 0.3\nundecided = 0.02\nlevel = 0.9", Threshold(0.3, 0.02, 0.9)),
        ('goal = "width"\nwidth = 0.1\nshare = 0.8', Width(0.1, 0.8)),
        ('goal = "error"\nerror = 0.02', Error(0.02)),
        ('goal = "optimum"\ngap = 0.1\nminimise = true\nwithin = { k = 0.2 }', Optimum(0.03, True, {"k": 0.2})),
    ],
)
def test_each_goal_is_read_and_told_as_plain_data(written: str, goal: object) -> None:
    from sateen.study.decide_table import goal_from

    study = st.Study.parse(f"{WITHOUT}\n[decide]\nbudget = 900\n{written}\n")
    assert study.decide is not None
    told = json.loads(json.dumps(study.decide.content()))
    assert goal_from(told) == study.decide.goal
    assert repr(study.decide.goal) == repr(goal)
    assert study.decide.about == "gone"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> st.Result:
    return st.Study.parse(WITHOUT + DECIDE).run(tmp_path_factory.mktemp("decide") / "result")


def decision_of(result: st.Result) -> DecisionResult:
    decision = result.properties["gone"].decision
    assert decision is not None
    return decision


class TestOfAThreshold:
    def test_the_result_has_every_part_that_was_asked_for(self, done: st.Result) -> None:
        decision = decision_of(done)
        assert decision.refinement is not None
        assert decision.regions is not None
        assert decision.certificate is not None
        assert decision.bounds is not None
        assert decision.box is not None
        assert decision.best is None
        assert list(done.stages) == [
            *("train gone", "learn gone svi-gp", "score gone"),
            *("refine gone", "decide gone", "certify gone", "sensitivity gone", "bounds gone"),
        ]

    def test_the_training_is_the_start_of_the_refinement(self, done: st.Result) -> None:
        own, decision = done.properties["gone"], decision_of(done)
        assert decision.refinement is not None
        observed = decision.refinement.observations
        assert np.array_equal(observed.theta[: len(own.train)], own.train.theta)
        assert decision.refinement.rounds[0].runs == int(own.train.trials.sum())
        assert observed.points.design == "active"
        assert decision.refinement.figure <= 0.08

    def test_it_is_what_the_verbs_give(self, done: st.Result) -> None:
        study, decision = st.Study.parse(WITHOUT + DECIDE), decision_of(done)
        regions = st.decide(decision.posterior, above=0.5, level=0.95, seed=study.seed_of("decide"))
        assert decision.regions is not None
        assert (regions.above, regions.below, regions.undecided) == (
            decision.regions.above,
            decision.regions.below,
            decision.regions.undecided,
        )
        assert regions.fingerprint == decision.regions.fingerprint
        assert regions.box() == decision.box

    def test_the_truth_is_on_the_side_that_is_claimed_and_inside_the_bounds(self, done: st.Result) -> None:
        decision = decision_of(done)
        points = done.space.grid(41)
        truth = (1.0 - np.exp(-2.0 * points.theta[:, 0])) ** 5  # all of five have decayed by time 2
        assert decision.regions is not None
        assert decision.bounds is not None
        sides = decision.regions.of(points)
        assert (truth[sides == "above"] >= 0.49).all()
        assert (truth[sides == "below"] <= 0.51).all()
        lower, upper = decision.bounds.at(points)
        assert (lower <= truth + 1e-9).all()
        assert (truth <= upper + 1e-9).all()

    def test_the_verdict_and_the_claims_have_it(self, done: st.Result) -> None:
        own, decision = done.properties["gone"], decision_of(done)
        assert own.verdict.endswith(decision.sentence)
        assert "Decided: by its 95 % bands, svi-gp puts " in decision.sentence
        assert decision.sentence.endswith("Not certified: any one given parameter.")
        assert set(decision.claims) <= set(own.claims)
        assert decision.certificate is not None
        assert decision.certificate.claim in decision.claims

    def test_the_certificate_can_be_checked_by_others(self, done: st.Result) -> None:
        (file,) = (done.folder / "stages").glob("certify.*.certificate")
        certificate = st.load(file)
        assert isinstance(certificate, st.Certificate)
        assert certificate.check(replay=10).holds

    def test_loading_it_gives_the_same(self, done: st.Result) -> None:
        again, decision = decision_of(st.Result.load(done.folder)), decision_of(done)
        assert again.sentence == decision.sentence
        assert again.claims == decision.claims
        assert again.sensitivity is not None
        assert decision.sensitivity is not None
        assert dict(again.sensitivity.total) == dict(decision.sensitivity.total)

    def test_a_forecast_lists_the_steps_with_their_runs(self, tmp_path: Path) -> None:
        study = st.Study.parse(WITHOUT + DECIDE)
        forecast = study.forecast(tmp_path)
        steps = {step.stage: step.about for step in forecast.steps}
        assert steps["refine gone"] == "up to 6,000 runs"
        assert steps["certify gone"] == "by fresh, as many runs as its forecast says"
        assert forecast.runs == 24 * 20 + 6000

    def test_a_file_that_was_changed_is_refused(self, done: st.Result, tmp_path: Path) -> None:
        folder = tmp_path / "result"
        shutil.copytree(done.folder, folder)
        (file,) = (folder / "stages").glob("refine.*.safetensors")
        file.write_bytes(file.read_bytes()[:-1] + b"\0\1")
        with pytest.raises(StoreError, match=r"refine\.gone"):
            st.Result.load(folder)

    def test_another_certificate_makes_no_other_refinement(self, done: st.Result, tmp_path: Path) -> None:
        folder = tmp_path / "result"
        shutil.copytree(done.folder, folder)
        text = changed(("wrong = 0.1", "wrong = 0.2"), text=WITHOUT + DECIDE)
        states = {step.stage: step.state for step in st.Study.parse(text).forecast(folder).steps}
        assert {stage for stage, state in states.items() if state == "pending"} == {"certify gone"}


def test_a_study_without_it_has_the_tasks_and_seeds_that_it_had(tmp_path: Path) -> None:
    result = st.Study.parse(SMALL).run(tmp_path / "result")
    assert result.properties["gone"].decision is None
    assert "decision" not in result.content["properties"]["gone"]
    assert not any(stage.split()[0] in ("refine", "decide", "certify") for stage in result.stages)
    assert "refine" not in result.provenance["seeds"]


@pytest.mark.parametrize("goal", ['goal = "width"\nwidth = 0.15', 'goal = "error"\nerror = 0.03'])
def test_a_goal_without_a_threshold_refines_and_decides_nothing(goal: str, tmp_path: Path) -> None:
    result = st.Study.parse(f"{WITHOUT}\n[decide]\nbudget = 8000\nsensitivity = false\n{goal}\n").run(tmp_path / "x")
    decision = decision_of(result)
    assert decision.refinement is not None
    assert decision.refinement.reached
    assert decision.regions is None
    assert decision.sentence.splitlines()[1].startswith("Refined: the goal is reached")
    assert (result.folder / "report.html").is_file()


@pytest.fixture(scope="module")
def best(tmp_path_factory: pytest.TempPathFactory) -> st.Result:
    return st.Study.parse(TWO + BEST).run(tmp_path_factory.mktemp("best") / "result")


class TestOfAnOptimum:
    def test_the_best_point_respects_its_limit_and_its_value_is_covered(self, best: st.Result) -> None:
        found = decision_of(best).best
        assert found is not None
        k = found.theta["k"]
        gone, early = ((1.0 - np.exp(-time * k)) ** 5 for time in (2.0, 1.0))
        assert early <= 0.5
        assert found.lower <= gone <= found.upper  # it covers in 90 % of trainings; this is one fixed seed
        assert found.constraints["early"].holds

    def test_loading_it_gives_the_same(self, best: st.Result) -> None:
        again, found = decision_of(st.Result.load(best.folder)).best, decision_of(best).best
        assert again is not None
        assert found is not None
        assert str(again) == str(found)
        assert again.rounds == found.rounds

    def test_only_the_property_that_is_optimised_has_a_decision(self, best: st.Result) -> None:
        assert best.properties["early"].decision is None
        verdict = best.properties["gone"].verdict
        assert "early <= 0.5 holds; " in verdict
        found = decision_of(best).best
        assert found is not None
        assert ("nothing is claimed" in verdict) == (found.regret is None)


class Stopped(Exception):
    """In the place of kill -9: nothing of the process goes on."""


@pytest.mark.parametrize("task", ["refine gone", "certify gone"])
def test_what_was_stopped_in_the_middle_leaves_the_same_bits(done: st.Result, task: str, tmp_path: Path) -> None:
    """Stopped after some of the runs of a task are in the store; tests/faults kills whole processes."""
    study, folder = st.Study.parse(WITHOUT + DECIDE), tmp_path / "result"
    shutil.copytree(done.folder, folder)
    tasks = study_tasks(study, folder)
    stage = tasks.pipeline[task]
    for file in (stage.file, *stage.extra, folder / "result.json", folder / "provenance.json"):
        file.unlink()
    for file in (folder / "stages").glob("runs.db*"):
        file.unlink()
    calls = []

    class Breaking:
        """Lets two pieces of work pass."""

        def start(self, label: str, total: int, unit: str) -> None:
            calls.append(label)

        def advance(self, n: int) -> None:
            if n > 0 and len(calls) > 2:
                raise Stopped

        def note(self, text: str) -> None:
            calls.append(text)

        def finish(self) -> None: ...

    with pytest.raises(Stopped):
        study.run(folder, workers=1, progress=Breaking())
    assert not stage.finished
    result = study.run(folder, workers=1, progress=SILENT)
    assert (folder / "result.json").read_bytes() == (done.folder / "result.json").read_bytes()
    assert decision_of(result).sentence == decision_of(done).sentence
    assert not [file.name for file in (folder / "stages").iterdir() if ".db." in file.name]
