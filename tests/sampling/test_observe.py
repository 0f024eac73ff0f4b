"""observe: right counts, whatever makes them and however the work is cut; wrong questions get a word of advice."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import sateen as st
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.model import Event, Model
from watchers import Watcher

DATA = Path(__file__).resolve().parents[1] / "data"

DECAY = Model.parse("species A = 10\nA -> 0 @ mass_action(k)")
EMPTY = st.stl("F[0, 1] A == 0")
HALF = st.stl("F[0, 1] A <= 5")
SPACE = st.Space(k=(0.5, 4.0))
POINTS = SPACE.uniform(30, seed=1)


def decayed(k: np.ndarray) -> np.ndarray:
    return (1 - np.exp(-k)) ** 10


class Shuffled(Executor):
    """Hands tasks to its one thread in a random order, and only when it has a few to choose from."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.news = threading.Condition()
        self.order: list[int] = []
        self.count = 0
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self.news:
            future.number = self.count  # type: ignore[attr-defined]
            self.count += 1
            self.waiting.append((future, fn, args))
            self.news.notify()
        return future

    def _work(self) -> None:
        while True:
            with self.news:
                self.news.wait_for(lambda: len(self.waiting) >= 4, timeout=0.02)
                if not self.waiting:
                    continue
                future, fn, args = self.waiting.pop(int(self.rng.integers(len(self.waiting))))
            self.order.append(future.number)  # type: ignore[attr-defined]
            if future.set_running_or_notify_cancel():
                future.set_result(fn(*args))


@pytest.fixture(scope="module")
def reference() -> st.Observations:
    return st.observe(DECAY, EMPTY, POINTS, 200, seed=2, workers=1)


class TestDistribution:
    def test_pure_death_agrees_with_its_closed_form(self, reference: st.Observations) -> None:
        from scipy.stats import binomtest

        for k, n, p in zip(reference.satisfied, reference.trials, decayed(reference.theta[:, 0]), strict=True):
            assert binomtest(int(k), int(n), float(p)).pvalue > 1e-6 / 30
        everything = int(reference.satisfied.sum()), float(decayed(reference.theta[:, 0]).sum() * 200)
        assert abs(everything[0] - everything[1]) < 5 * math.sqrt(everything[1])

    def test_the_epidemic_agrees_with_the_exact_oracle(self) -> None:
        from scipy.stats import binomtest

        from sateen.paper.cases import sir

        with open(DATA / "sir_exact.csv", encoding="utf-8") as stream:
            rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))[::20]
        space = st.Space(beta=(0.001, 1), gamma=(0.001, 1))
        theta = {name: [float(row[name]) for row in rows] for name in ("beta", "gamma")}
        formula = st.stl("(I > 0) U[100, 120] (I == 0)")
        obs = st.observe(sir.model(), formula, space.points(theta), 20_000, seed=1)
        assert obs.trials.sum() == 20_000 * len(rows)
        for k, row in zip(obs.satisfied.tolist(), rows, strict=True):
            assert binomtest(k, 20_000, float(row["p"])).pvalue > 1e-6 / len(rows)

    def test_runs_of_different_points_and_seeds_are_different(self) -> None:
        points = SPACE.points({"k": [0.7] * 50})
        one, other = (st.observe(DECAY, HALF, points, 40, seed=seed) for seed in (1, 2))
        assert len(set(one.satisfied.tolist())) > 3
        assert one.satisfied.tolist() != other.satisfied.tolist()


class TestDeterminism:
    @pytest.mark.parametrize("workers", [1, 2, 8])
    @pytest.mark.parametrize("chunk", [None, 1, 7, 199, 200, 201, 10**6])
    def test_counts_do_not_depend_on_workers_and_chunks(
        self, reference: st.Observations, workers: int, chunk: int | None
    ) -> None:
        points, runs = (POINTS[:3], 200) if chunk == 1 else (POINTS, 200)
        obs = st.observe(DECAY, EMPTY, points, runs, seed=2, workers=workers, chunk=chunk)
        assert obs == reference[: len(points)]
        assert obs.fingerprint == reference[: len(points)].fingerprint

    @settings(max_examples=25)
    @given(hs.lists(hs.integers(0, 30), min_size=5, max_size=5), hs.integers(1, 60), hs.integers(1, 3))
    def test_fewer_runs_at_a_point_are_the_first_of_more(self, runs: list[int], chunk: int, workers: int) -> None:
        points = POINTS[:5]
        most = [st.observe(DECAY, EMPTY, points, n, seed=3, workers=1).satisfied for n in range(0, 31, 1)]
        obs = st.observe(DECAY, EMPTY, points, runs, seed=3, chunk=chunk, workers=workers)
        assert obs.trials.tolist() == runs
        assert obs.satisfied.tolist() == [int(most[n][row]) for row, n in enumerate(runs)]

    @pytest.mark.parametrize("seed", range(3))
    def test_counts_do_not_depend_on_the_order_in_which_chunks_are_made(
        self, reference: st.Observations, seed: int
    ) -> None:
        executor = Shuffled(seed)
        obs = st.observe(DECAY, EMPTY, POINTS, 200, seed=2, executor=executor, workers=4, chunk=113)
        assert obs.fingerprint == reference.fingerprint
        assert executor.order != sorted(executor.order)

    def test_an_executor_that_is_handed_in_stays_open(self, reference: st.Observations) -> None:
        with ThreadPoolExecutor(3) as executor:
            for _ in range(2):
                assert st.observe(DECAY, EMPTY, POINTS, 200, seed=2, executor=executor, chunk=500) == reference

    def test_several_formulas_at_once_count_as_each_by_itself(self, reference: st.Observations) -> None:
        both = st.observe(DECAY, {"none left": EMPTY, "half": HALF, "again": EMPTY}, POINTS, 200, seed=2, chunk=450)
        assert list(both) == ["none left", "half", "again"]
        assert both["none left"].fingerprint == both["again"].fingerprint == reference.fingerprint
        alone = st.observe(DECAY, HALF, POINTS, 200, seed=2)
        assert both["half"].fingerprint == alone.fingerprint
        assert both["half"].provenance["formula"] == str(HALF)

    def test_formulas_that_differ_in_their_end_alone_are_different(self) -> None:
        texts = {"cut": st.stl("G A > 0", end=0.5), "longer": st.stl("G A > 0", end=1.0)}
        obs = st.observe(DECAY, texts, POINTS, 50, seed=2)
        assert (obs["cut"].provenance["end"], obs["longer"].provenance["end"]) == (0.5, 1.0)
        assert (obs["cut"].satisfied >= obs["longer"].satisfied).all()
        assert obs["cut"].satisfied.sum() > obs["longer"].satisfied.sum()

    def test_other_processes_count_the_same(self, reference: st.Observations, tmp_path: Path) -> None:
        script = tmp_path / "script.py"
        script.write_text(
            textwrap.dedent("""
                from concurrent.futures import ProcessPoolExecutor
                import sateen as st

                def coin(theta, rng):
                    return rng.random() < theta["k"] / 4

                if __name__ == "__main__":
                    model = st.Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
                    points = st.Space(k=(0.5, 4.0)).uniform(30, seed=1)
                    with ProcessPoolExecutor(2) as executor:
                        formula = st.stl("F[0, 1] A == 0")
                        print(st.observe(model, formula, points, 200, seed=2, executor=executor, chunk=999).fingerprint)
                        there = st.observe(coin, None, points, 20, seed=2, executor=executor)
                        print(there == st.observe(coin, None, points, 20, seed=2))
                        for odd in (lambda theta, rng: True, type("Local", (), {"__call__": lambda *_: True})()):
                            try:
                                st.observe(odd, None, points, 20, seed=2, executor=executor)
                            except st.InputError as error:
                                print(error)
            """),
            encoding="utf-8",
        )
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=300)
        lines = done.stdout.splitlines()
        assert lines[:2] == [reference.fingerprint, "True"]
        assert done.stdout.count("the black box cannot be sent to other processes") == 2


class TestRuns:
    def test_each_point_may_have_its_own_number_of_runs_and_none(self) -> None:
        runs = np.arange(30) % 5 * 10
        obs = st.observe(DECAY, EMPTY, POINTS, runs, seed=2, chunk=17)
        assert obs.trials.tolist() == runs.tolist()
        assert np.isnan(obs.frequency[runs == 0]).all()
        assert obs.satisfied[runs == 0].sum() == 0

    @pytest.mark.parametrize(("points", "runs"), [(POINTS, 0), (POINTS[:0], 10), (POINTS[:0], [])])
    def test_nothing_to_run_is_nothing_counted(self, points: st.Points, runs: Any) -> None:
        watcher = Watcher()
        obs = st.observe(DECAY, EMPTY, points, runs, seed=2, progress=watcher)
        assert obs.trials.sum() == 0
        assert len(obs) == len(points)
        assert watcher.updates == []

    def test_one_point_with_many_runs_is_shared_between_workers(self) -> None:
        watcher = Watcher()
        points = SPACE.points({"k": [2.0]})
        obs = st.observe(DECAY, EMPTY, points, 5000, seed=2, workers=2, chunk=1000, progress=watcher)
        assert sorted(told[1] for told in watcher.updates if told[0] == "advance") == [1, 999, 1000, 1000, 1000, 1000]
        assert obs == st.observe(DECAY, EMPTY, points, 5000, seed=2, workers=1)

    def test_parameters_come_from_the_space_or_from_the_defaults_of_the_model(self) -> None:
        model = Model.parse("species A = n\nparameter n = 10, k = 9\nA -> 0 @ mass_action(k)")
        fixed = st.Space(k=(0.5, 4.0), n=10)
        there = st.observe(DECAY, EMPTY, POINTS, 50, seed=2)
        for space in (SPACE, fixed):
            obs = st.observe(model, EMPTY, space.points({"k": POINTS.theta[:, 0]}), 50, seed=2)
            assert obs.satisfied.tolist() == there.satisfied.tolist()
        fewer = st.observe(model, EMPTY, st.Space(k=(0.5, 4.0), n=1).points({"k": POINTS.theta[:, 0]}), 50, seed=2)
        assert fewer.satisfied.sum() > 2 * there.satisfied.sum()

    def test_a_model_without_parameters_has_one_point_of_no_dimension(self) -> None:
        model = Model.parse("species A = 10\nA -> 0 @ mass_action(2)")
        obs = st.observe(model, EMPTY, st.Space().points({}), 500, seed=2)
        assert (len(obs), obs.theta.shape, obs.relevant) == (1, (1, 0), ())
        assert abs(obs.frequency[0] - decayed(np.array(2.0))) < 5 * math.sqrt(0.25 / 500)


class TestUndecided:
    GROWTH = Model.parse("species X = 1\nX -> 2 X @ mass_action(b)\nX -> 0 @ mass_action(d)")

    @pytest.mark.parametrize(
        ("caps", "reason"),
        [
            ({"max_events": 50}, "max_events"),
            ({"max_time": 0.5}, "max_time"),
            ({"max_population": 20}, "max_population"),
        ],
    )
    def test_a_run_that_a_cap_stops_is_undecided_and_says_which(self, caps: dict[str, Any], reason: str) -> None:
        points = st.Space(b=(1.0, 3.0), d=(0.1, 1.0)).uniform(20, seed=1)
        obs = st.observe(self.GROWTH, st.stl("F X == 0"), points, 100, seed=2, **caps)
        assert np.array_equal(obs.satisfied + obs.violated + obs.undecided, obs.trials)
        assert obs.undecided.sum() > 0
        assert obs.violated.sum() == 0  # nobody can say of a run that it never dies out
        assert list(obs.reasons) == [reason]
        assert obs.provenance[reason] == next(iter(caps.values()))
        assert np.isnan(obs.frequency[obs.undecided > 0]).all()

    def test_a_cap_makes_every_parameter_relevant(self) -> None:
        model = Model.parse("species A = 10, B = 0\nA -> 0 @ mass_action(k)\n0 -> B @ birth")
        points = st.Space(k=(0.5, 4.0), birth=(1.0, 100.0)).uniform(20, seed=1)
        assert st.observe(model, EMPTY, points, 20, seed=2).relevant == ("k",)
        capped = st.observe(model, EMPTY, points, 20, seed=2, max_events=30)
        assert capped.undecided.sum() > 0
        assert capped.relevant == ("k", "birth")


class TestProgress:
    def test_it_is_told_what_begins_what_is_done_and_that_it_is_over(self) -> None:
        watcher = Watcher()
        st.observe(DECAY, EMPTY, POINTS, 100, seed=2, workers=2, chunk=500, progress=watcher)
        assert watcher.updates[0] == ("start", "observe", 3000, "runs")
        assert watcher.updates[-1] == ("finish",)
        assert sum(told[1] for told in watcher.updates if told[0] == "advance") == 3000
        assert [told[0] for told in watcher.updates].count("start") == 1

    def test_it_is_told_that_a_kernel_is_compiled_and_only_once(self, tmp_path: Path) -> None:
        script = f"""
import os
import sys
os.environ["SATEEN_CACHE_DIR"] = {str(tmp_path)!r}
sys.path.append({str(DATA.parent)!r})
import sateen as st
from watchers import Watcher
model = st.Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
points = st.Space(k=(0.5, 4.0)).uniform(1, seed=1)
for _ in range(2):
    watcher = Watcher()
    st.observe(model, st.stl("F[0, 1] A == 0"), points, 1, seed=2, progress=watcher)
    for kind, *what in watcher.updates:
        if kind != "advance":
            print(what[0] if kind == "note" else kind)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
        assert done.stdout.split("\n") == ["start", "compiling (once)", "finish", "start", "finish", ""]

    def test_it_is_over_after_an_error_too(self) -> None:
        watcher = Watcher()
        model = Model.parse("species A = 10\nA -> 0 @ k * A * (A - 5.5)")
        with pytest.raises(st.SimulationError, match=r"rate of .* is -\d"):
            st.observe(model, EMPTY, POINTS, 10, seed=2, progress=watcher)
        assert watcher.updates[-1] == ("finish",)


class TestProvenance:
    def test_it_tells_what_was_asked_and_with_what_it_was_made(self, reference: st.Observations) -> None:
        told = reference.provenance
        assert Model.parse(told["model"]) == DECAY
        assert st.stl(told["formula"]) == EMPTY
        assert (told["end"], told["seed"], told["max_events"], told["max_time"]) == (None, 2, 1_000_000, None)
        assert told["versions"].keys() == {"sateen", "numpy", "llvmlite", "python"}
        assert reference.seconds > 0
        assert reference.seed == 2

    def test_any_run_can_be_replayed_from_where_it_is_counted(self, reference: st.Observations) -> None:
        from sateen.engine.run import replay

        part = reference[7:9]
        for row in range(2):
            seed, point = part.origin[row].tolist()
            theta = part.points[row]
            paths = [replay(DECAY, theta, until=1.0, seed=seed, point=point, run=run) for run in range(200)]
            verdicts = [st.monitor(EMPTY, path) is st.Verdict.TRUE for path in paths]
            assert sum(verdicts) == part.satisfied[row]


class TestErrors:
    def ask(self, **changes: Any) -> Any:
        given: dict[str, Any] = {"model": DECAY, "formula": EMPTY, "points": POINTS, "runs": 10, "seed": 1}
        return st.observe(**given | changes)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"formula": "F[0, 1] A =="}, r"F\[0, 1\] A =="),
            ({"formula": 3}, r"formula is a Formula or text, such as 'F\[0, 5\] I > 3', not a int"),
            ({"formula": {"x": 3}}, r"formula\['x'\] is a Formula or text, .*, not a int"),
            ({"formula": {}}, "the dict of formulas is empty"),
            ({"formula": None}, "formula=None is for black boxes that return bool"),
            (
                {"model": "A -> 0 @ k"},
                r"a Model or a callable, not text\n  st\.Model\.parse\(text\) reads the",
            ),
            ({"model": "sir.sateen"}, r"not the name of a file\n  st\.Model\.load\('sir\.sateen'\) reads the model in"),
            ({"model": Path("sir.xml")}, r"not the name of a file\n  st\.Model\.load\('sir\.xml'\)"),
            ({"model": Model}, "not the class Model"),
            ({"points": [[1.0]]}, r"points are Points of a Space, not a list; write space\.points"),
            ({"runs": -1}, "runs is -1; it must be from 0"),
            ({"runs": 2.5}, "runs must be whole numbers"),
            ({"runs": [1, 2]}, r"runs has the shape \(2,\); 30 points need 30 numbers"),
            ({"seed": -1}, r"seed is a whole number from 0 to 2\^63 - 1, not -1"),
            ({"seed": 2**63}, "seed is a whole number"),
            ({"seed": 1.0}, "seed is a whole number"),
            ({"seed": True}, "seed is a whole number"),
            ({"workers": 0}, "workers is a whole number from 1 up, not 0"),
            ({"chunk": 0}, "chunk is a whole number from 1 up, not 0"),
            (
                {"executor": 4},
                "executor is a concurrent.futures.Executor, a dask Client, a Pool or an address, not a int",
            ),
            ({"max_events": 0}, "max_events is a whole number"),
            ({"max_time": 0.0}, "max_time is a time after 0"),
            ({"max_population": -1}, r"max_population is a count, .* not -1"),
            ({"points": st.Space(k=(1, 2), kk=(1, 2)).uniform(3, seed=1)}, "has no parameter kk; did you mean k"),
            ({"points": st.Space(A=(1, 2), k=1).uniform(3, seed=1)}, "A is a species"),
            ({"points": st.Space(q=(1, 2)).uniform(3, seed=1)}, "has no parameter q"),
            (
                {"points": st.Space().points({})},
                r"the parameter k has no value\n  give it a range or a number in the Space: Space\(\.\.\., k=\.\.\.\)",
            ),
            ({"formula": st.stl("F[0, 1] B == 0")}, "B is neither a species nor a parameter"),
        ],
    )
    def test_a_wrong_question_is_answered_with_advice(self, change: dict[str, Any], words: str) -> None:
        with pytest.raises(st.InputError, match=words):
            self.ask(**change)

    def test_text_is_read_as_a_formula(self) -> None:
        text = str(EMPTY)
        assert self.ask(formula=text) == self.ask(formula=EMPTY)
        both = self.ask(formula={"empty": text, "again": EMPTY})
        assert both["empty"] == both["again"]

    def test_a_point_that_cannot_be_simulated_is_found_before_the_first_run(self) -> None:
        model = Model.parse("species A = n\nA -> 0 @ mass_action(k)")
        points = st.Space(n=(1.0, 20.0), k=1.0).points({"n": [10.0] * 50 + [10.5]})
        watcher = Watcher()
        with pytest.raises(st.InputError, match=r"A starts at 10\.5 \(from n\); it needs a whole number"):
            self.ask(model=model, points=points, progress=watcher)
        assert watcher.updates == []

    def test_a_run_that_an_event_stops_names_the_event(self) -> None:
        event = Event("dose", (("A", parse_expression("A - 100")),), trigger=parse_condition("time >= 0.001"))
        model = Model(DECAY.variables, DECAY.transitions, DECAY.parameters, events=(event,))
        with pytest.raises(st.SimulationError, match="the event dose takes A to -"):
            self.ask(model=model)

    @pytest.mark.parametrize("workers", [1, 4])
    def test_a_run_that_cannot_go_on_stops_everything_and_says_how_to_replay_it(self, workers: int) -> None:
        model = Model.parse("species A = 10\nA -> 0 @ k * A * (A - 5.5)")
        with pytest.raises(st.SimulationError, match=r"replay it with seed 1, point \d+, run \d+"):
            self.ask(model=model, workers=workers, chunk=5, runs=100)
