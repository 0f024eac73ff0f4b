"""The command `check`, its replayed runs, and the bar that watches long work."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sateen as st
from command_line import HEARING, as_json, sateen
from sateen.cli.progress import Bar
from sateen.core.progress import Progress, working
from sateen.engine.run import Runner, follow

SIR = str(Path(__file__).resolve().parents[1] / "examples" / "sir.sateen")
BIRTH_DEATH = str(Path(SIR).with_name("birth_death.sateen"))
FORMULA = "(I > 0) U[100, 120] (I == 0)"
CHECK = ["check", SIR, "--at", "beta=.12", "-p", FORMULA]
THETA = {"beta": 0.12, "gamma": 0.05}


class TestEstimate:
    def test_it_prints_what_the_library_finds(self) -> None:
        found = st.estimate(st.Model.load(SIR), st.stl(FORMULA), THETA, seed=7, runs=2000, level=0.9)
        lines = sateen(*CHECK, "--seed", "7", "--runs", "2000", "--level", "0.9").stdout.splitlines()
        assert lines[0] == f"{SIR}, seed 7, gamma = 0.05, beta = 0.12, N = 100"
        assert lines[1:3] == [FORMULA, ""]
        assert lines[3] == f"P = {found.probability:.6g}: {found.satisfied} of 2,000 runs satisfy it"
        assert lines[4] == str(found)
        assert lines[5].startswith(f"Bayes: P is from {found.bayes_lower:.4g} to {found.bayes_upper:.4g} with")
        assert lines[6].startswith(f"2,000 runs: {found.events:,} events in ")
        assert len(lines) == 7

    @pytest.mark.parametrize("stop", [{}, {"runs": 500}, {"width": 0.05}, {"test": "P<0.2"}])
    def test_json_holds_what_the_library_finds(self, stop: dict[str, Any]) -> None:
        found = st.estimate(st.Model.load(SIR), st.stl(FORMULA), THETA, seed=1, **stop)
        content = as_json(*CHECK, *(text for name, value in stop.items() for text in (f"--{name}", str(value))))
        for name in ("probability", "lower", "upper", "bayes_lower", "bayes_upper", "level", "satisfied", "undecided"):
            assert content[name] == getattr(found, name)
        for name in ("runs", "planning", "events", "decision"):
            assert content[name] == getattr(found, name)
        assert content["claim"] == found.claim.content()
        assert "\n".join(content["sentences"]) == str(found)
        assert content["at"] == {"beta": 0.12, "gamma": 0.05, "N": 100}
        assert (content["formula"], content["end"], content["horizon"], content["seed"]) == (FORMULA, None, 120, 1)
        assert content["files"] == []

    def test_undecided_runs_come_with_reason_and_remedy(self) -> None:
        shown = sateen(*CHECK, "--runs", "1000", "--max-events", "150").stdout
        content = as_json(*CHECK, "--runs", "1000", "--max-events", "150")
        satisfied, undecided = content["satisfied"], content["undecided"]
        bounds = f"P is between {satisfied / 1000:.6g} and {(satisfied + undecided) / 1000:.6g} as counted: "
        assert f"\n{bounds}{satisfied} of 1,000 runs satisfy it\n" in shown
        reason = f"{undecided} runs are undecided: they reached max_events = 150; --max-events may be raised"
        assert f"\n{reason}\n" in shown
        assert content["probability"] is None
        assert content["reasons"] == {"max_events": undecided}

    def test_a_test_is_answered_and_the_exit_code_is_0_whatever_the_answer(self) -> None:
        shown = sateen(*CHECK, "--test", "P > 0.3").stdout
        assert (
            "\nP > 0.3 is rejected: if P were 0.31 or more, this would happen with probability 0.05 at most\n" in shown
        )
        options = ["--test", "P>0.3", "--indifference", "0.1", "--error", "0.001"]
        assert (
            "if P were 0.4 or more, this would happen with probability 0.001 at most" in sateen(*CHECK, *options).stdout
        )
        assert as_json(*CHECK, "--test", "P>0.073", "--max-runs", "100")["decision"] == "undecided"

    def test_a_bayesian_test_tells_factor_belief_and_claim(self) -> None:
        options = ["--test", "P<0.05", "--bayes", "--prior", "2", "5", "--factor", "50"]
        model, asked = st.Model.load(SIR), {"test": "P<0.05", "bayes": True, "prior": (2, 5), "factor": 50}
        found = st.estimate(model, st.stl(FORMULA), THETA, seed=1, **asked)  # type: ignore[arg-type]
        assert found.bayes is not None
        content = as_json(*CHECK, *options)
        assert (content["decision"], content["runs"]) == (found.decision, found.runs)
        assert content["bayes"] == {**found.bayes.content(), "prior": [2, 5]}
        assert (content["bayes_lower"], content["bayes_upper"]) == (found.bayes_lower, found.bayes_upper)
        lines = sateen(*CHECK, *options).stdout.splitlines()
        assert lines[4] == f"P < 0.05 is rejected: {found.bayes}"
        assert lines[6].startswith("Bayes: P is from ")
        assert lines[6].endswith(" with probability 95 %, under the prior Beta(2, 5)")
        assert lines[7] == str(found.bayes.claim)
        assert as_json(*CHECK, "--test", "P>0.3")["bayes"] is None

    def test_a_bayesian_test_ends_undecided_at_the_cap_with_exit_code_0(self) -> None:
        content = as_json(*CHECK, "--test", "P>0.073", "--bayes", "--max-runs", "100")
        assert (content["decision"], content["runs"]) == ("undecided", 100)

    def test_a_property_with_a_bound_can_be_tested_in_the_bayesian_way(self) -> None:
        queue = str(Path(SIR).with_name("queue.prism"))
        constants = "capacity=5,arrival=1,T=1"
        options = ["check", queue, "--const", constants, "-p", str(Path(queue).with_suffix(".props")) + ":neglected"]
        content = as_json(*options, "--bayes")
        assert content["bayes"]["claim"]["by"] == "P <= 0.4"
        assert content["decision"] == as_json(*options)["decision"]

    def test_a_width_tells_how_many_runs_planned_it(self) -> None:
        content = as_json(*CHECK, "--width", "0.05")
        assert content["upper"] - content["lower"] <= 0.05
        planned = f"{content['runs']:,} runs and {content['planning']:,} to plan them: "
        assert planned in sateen(*CHECK, "--width", "0.05").stdout

    def test_end_cuts_the_formula(self) -> None:
        options = ["check", SIR, "--at", "beta=.12", "--runs", "300", "-p"]
        cut = as_json(*options, "F[0, 90] G (S < 90)", "--end", "10")
        assert (cut["end"], cut["horizon"]) == (10, 10)
        assert cut["satisfied"] == as_json(*options, "F[10, 10] S < 90")["satisfied"]

    def test_constants_of_the_model_may_stand_in_windows(self) -> None:
        assert as_json("check", BIRTH_DEATH, "-p", "F[0, low] X > low", "--runs", "10")["formula"] == "F[0, 80] X > 80"

    def test_compiling_is_said_on_stderr_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SATEEN_CACHE_DIR", str(tmp_path / "cache"))
        file = tmp_path / "new.sateen"
        file.write_text("species X = 6\nparameter fresh_rate = 1\nX -> 0 @ fresh_rate * X^11 / (X^9 + 1)\n")
        options = ["check", str(file), "-p", "F[0, 1] X == 0", "--runs", "10"]  # a kernel that no other test has
        first, second = sateen(*options), sateen(*options)
        assert (first.stderr, second.stderr) == ("compiling (once)\n", "")
        assert first.stdout.splitlines()[:-1] == second.stdout.splitlines()[:-1]  # all but the time it took


class TestExact:
    def test_the_exact_probability_stands_beside_the_estimate(self) -> None:
        truth = st.exact(st.Model.load(SIR), st.stl(FORMULA), THETA)[0]
        assert truth == pytest.approx(0.0729933446, abs=1e-9)
        assert sateen(*CHECK, "--exact").stdout.endswith(f"\nexact: P = {truth:.10f}, inside the interval\n")
        content = as_json(*CHECK, "--exact")
        assert (content["exact"], content["exact_refused"]) == (truth, None)
        assert content["lower"] <= truth <= content["upper"]

    def test_a_refusal_is_told_and_the_estimate_kept(self) -> None:
        options = ["check", SIR, "--at", "beta=.12", "-p", "F[0, 10] G[0, 1] I > 10", "--runs", "100", "--exact"]
        done = sateen(*options)
        assert " of 100 runs satisfy it\n" in done.stdout
        content = as_json(*options)
        assert content["exact"] is None
        assert "nest" in content["exact_refused"]
        assert done.stdout.endswith(f"\nnot exact: {content['exact_refused']}\n")

    def test_without_being_asked_it_is_not_computed(self) -> None:
        assert "exact" not in as_json(*CHECK, "--runs", "10")


class TestReplay:
    @pytest.mark.parametrize(
        ("file", "theta", "text", "caps"),
        [
            (SIR, THETA, FORMULA, {}),
            (SIR, THETA, FORMULA, {"max_events": 150}),
            (SIR, THETA, FORMULA, {"max_time": 110.0}),
            (SIR, THETA, "F[100, 120] (I == 0 & F[0, 10] I == 0)", {"max_time": 110.0}),
            (SIR, THETA, "F[0, 40] G[0, 5] (I > 20)", {}),
            (SIR, THETA, "F[0, 40] G[0, 5] (I > 20)", {"max_events": 60}),
            (SIR, THETA, "F[0, 60] (I - I(t-5) > 8)", {}),
            (SIR, THETA, "F (I == 0 & S > 20)", {}),
            (SIR, THETA, "G (I < 40)", {"max_events": 100}),
            (SIR, THETA, "F (I == 0)", {"max_time": 120.0}),
            (SIR, THETA, "S > 90", {}),
            (BIRTH_DEATH, {}, "F X > 115", {"max_events": 2000}),
            (BIRTH_DEATH, {}, "F[0, 5] (X > 60) U[1, 2] (X > 70)", {}),
        ],
    )
    def test_fifty_replayed_runs_have_the_verdicts_that_were_counted(
        self, file: str, theta: dict[str, float], text: str, caps: dict[str, Any]
    ) -> None:
        model, formula = st.Model.load(file), st.stl(text)
        values = model.values(theta)
        runner = Runner(model, (formula,))
        rows = np.tile([values[name] for name in runner.parameters], (50, 1))
        items = np.array([(0, run, 1) for run in range(50)])
        counts = runner.run(rows, items, seed=3, **caps)
        counted = [
            None if unknown else bool(satisfied)
            for satisfied, unknown in zip(counts.satisfied[0], counts.undecided[0].any(axis=0), strict=True)
        ]
        paths = [follow(model, formula, theta, seed=3, run=run, **caps) for run in range(50)]
        assert [st.monitor(formula, path) for path in paths] == [st.Verdict.of(each) for each in counted]

    def test_the_run_is_shown_as_a_table_with_its_verdict_explained(self) -> None:
        path = follow(st.Model.load(SIR), st.stl(FORMULA), THETA, seed=1, run=17)
        shown = sateen(*CHECK, "--runs", "100", "--replay", "17").stdout
        table = shown.partition("\nrun 17\n")[2].splitlines()
        assert table[0].split() == ["time", "S", "I", "R"]
        assert table[1].split() == ["0", "95", "5", "0"]
        assert table[11] == f"… {len(path) - 20} more, which --csv FILE writes …"
        assert table[21].split() == [f"{path.times[-1]:.6g}", *(f"{count:g}" for count in path.states[-1])]
        assert table[22] == ("absorbed: nothing happens any more" if path.absorbed else "known until 120")
        assert shown.endswith(f"\n\n{st.explain(st.stl(FORMULA), path)}\n")

    def test_a_short_run_is_shown_whole(self) -> None:
        shown = sateen("check", SIR, "--at", "beta=0", "-p", "F (I == 0)", "--runs", "10", "--replay", "0").stdout
        rows = shown.partition("\nrun 0\n")[2].partition("absorbed")[0].splitlines()
        assert [row.split()[2] for row in rows] == ["I", "5", "4", "3", "2", "1", "0"]

    def test_it_is_written_and_drawn_instead(self, tmp_path: Path) -> None:
        csv, figure = str(tmp_path / "run.csv"), str(tmp_path / "run.svg")
        shown = sateen(*CHECK, "--runs", "100", "--replay", "17", "--csv", csv, "--plot", figure).stdout
        assert shown.endswith(f"\n{csv}\n{figure}\n")
        assert "more, which --csv" not in shown
        path = follow(st.Model.load(SIR), st.stl(FORMULA), THETA, seed=1, run=17)
        assert st.Path.from_csv(csv) == path
        assert "<svg" in Path(figure).read_text(encoding="utf-8")

    def test_json_holds_the_path_and_the_explanation(self) -> None:
        replay = as_json(*CHECK, "--runs", "100", "--replay", "3", "--seed", "5")["replay"]
        path = follow(st.Model.load(SIR), st.stl(FORMULA), THETA, seed=5, run=3)
        assert st.Path(**replay["path"]) == path
        assert (replay["run"], replay["verdict"]) == (3, str(st.monitor(st.stl(FORMULA), path)))

    def test_a_run_beyond_those_made_is_said_to_be_none_of_them(self) -> None:
        assert "\nrun 9\n" in sateen(*CHECK, "--runs", "10", "--replay", "9").stdout
        assert "\nrun 10, which was not among them\n" in sateen(*CHECK, "--runs", "10", "--replay", "10").stdout


class TestUsage:
    def test_help_loads_nothing_heavy(self) -> None:
        program = (
            "import sys\nfrom sateen.cli import main\n"
            "try:\n    main(['check', '--help'])\nexcept SystemExit:\n    pass\n"
            "print()\nprint(*{name.partition('.')[0] for name in sys.modules})"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("Usage: ")
        assert not {"llvmlite", "numpy", "scipy", "rich", "lark", "matplotlib"} & set(
            done.stdout.splitlines()[-1].split()
        )

    @pytest.mark.parametrize("first", ["sateen.cli", "sateen.cli.check"])
    def test_the_command_is_there_whichever_module_is_loaded_first(self, first: str) -> None:
        program = f"import {first}\nfrom sateen.cli import main\nassert 'check' in main.list_commands(None)"
        subprocess.run([sys.executable, "-c", program], check=True)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--runs", "5", "--width", "0.1"], "give one of them"),
            (["--width", "0.1", "--test", "P>0.1"], "give one of them"),
            (["--csv", "run.csv"], "say which with --replay RUN"),
            (["--plot", "run.svg"], "say which with --replay RUN"),
            (["--runs", "0"], "0 is not in the range"),
            (["--replay", "-1"], "-1 is not in the range"),
            (["--replay", "1", "--plot", "run.txt"], "is not a figure"),
        ],
    )
    def test_wrong_usage_ends_with_2(self, options: list[str], words: str) -> None:
        assert words in sateen(*CHECK, *options, code=2).stderr

    def test_a_formula_is_needed(self) -> None:
        assert "Missing option '-p'" in sateen("check", SIR, code=2).stderr

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--test", "P=1"], "InputError: 'P=1' is not a test of a probability; write P > 0.3, or >=, < or <=\n"),
            (["--width", "2"], "InputError: --width is between 0 and 1, not 2.0\n"),
            (["--level", "95"], "InputError: --level is between 0 and 1, not 95.0\n"),
            (["--max-time", "0"], "InputError: max_time is a time after 0, not 0.0\n"),
            (["--at", "gama=1"], "did you mean gamma?"),
            (["--bayes"], "InputError: --bayes is a way to answer a test, and there is none\n  give a --test, such as"),
            (["--bayes", "--runs", "5"], "InputError: --bayes is a way to answer a test"),
            (["--prior", "1", "1", "--test", "P>.1"], "--prior applies only to a Bayesian test; add --bayes\n"),
            (["--factor", "9", "--test", "P>.1"], "--factor applies only to a Bayesian test; add --bayes\n"),
            (["--test", "P>.1", "--bayes", "--prior", "0", "1"], "InputError: --prior is a and b of Beta(a, b)"),
            (["--test", "P>.1", "--bayes", "--indifference", ".1"], "a Bayesian test has no --indifference"),
            (["--test", "P>.1", "--bayes", "--error", ".1", "--factor", "9"], "--factor and --error both say"),
            (["--test", "P>1", "--bayes"], "InputError: a test asks about a threshold between 0 and 1, not 1\n"),
        ],
    )
    def test_what_cannot_be_used_ends_with_1_and_a_sentence(self, options: list[str], words: str) -> None:
        assert words in sateen(*CHECK, *options, code=1).stderr

    def test_a_bound_without_value_gets_the_remedy_of_the_command_line(self) -> None:
        done = sateen("check", SIR, "--at", "beta=.12", "-p", "F[0, T] I == 0", code=1)
        assert done.stderr.endswith("give it one: --const T=10\n")

    @pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent the POSIX way")
    def test_ctrl_c_ends_a_long_check_with_one_line(self, tmp_path: Path) -> None:
        file = tmp_path / "doubtful.sateen"
        file.write_text("species X = 99\nparameter k = 1, spare = 1\nX -> 0 @ mass_action(k)\n")
        options = ["check", str(file), "-p", "F[0, 1] X == 0", "--runs"]
        sateen(*options, "1")  # compiles it
        # Some libraries swallow a signal that comes while they load.
        program = "import llvmlite, sateen.sampling.estimate, sateen.model.reactions\n" + HEARING
        command = [sys.executable, "-c", program, *options, "1000000000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr is not None
            assert running.stderr.readline().startswith("warning: ")
            time.sleep(1.0)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=300)
        assert (running.returncode, out, err) == (130, "", "interrupted\n")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class TestBar:
    @pytest.fixture(autouse=True)
    def capable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            monkeypatch.delenv(name, raising=False)

    def test_it_is_a_watcher(self) -> None:
        assert isinstance(Bar(), Progress)

    def test_long_work_on_a_terminal_shows_label_share_rate_and_time_left(self) -> None:
        stream = Terminal()
        bar = Bar(stream, patience=0.0)
        bar.start("simulating", 200, "runs")
        bar.advance(50)
        bar.note("a [note]")
        bar.advance(100)
        bar.finish()
        shown = stream.getvalue()
        for words in ("simulating", "75%", "runs/s", "time left", "a [note]"):
            assert words in shown

    def test_ctrl_c_while_it_is_first_drawn_does_not_leave_it_there(self) -> None:
        class Pressing(Terminal):
            """A terminal on which somebody presses Ctrl-C as soon as there is a bar."""

            def write(self, text: str) -> int:
                if "time left" in text and "time left" not in self.getvalue():
                    signal.raise_signal(signal.SIGINT)
                return super().write(text)

        before, handler = sys.stderr, signal.signal(signal.SIGINT, signal.default_int_handler)
        stream = Pressing()
        bar = Bar(stream, patience=0.0)
        try:
            with pytest.raises(KeyboardInterrupt), working(bar, "simulating", 200, "runs"):
                bar.advance(50)
        finally:
            signal.signal(signal.SIGINT, handler)
        assert sys.stderr is before
        assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("\x1b[?25l")  # the cursor is back

    def test_short_work_shows_nothing(self) -> None:
        stream = Terminal()
        bar = Bar(stream)
        bar.start("simulating", 200, "runs")
        bar.advance(200)
        bar.finish()
        assert stream.getvalue() == ""

    def test_away_from_a_terminal_only_notes_are_written(self) -> None:
        stream = io.StringIO()
        bar = Bar(stream, patience=0.0)
        bar.start("simulating", 200, "runs")
        bar.note("compiling (once)")
        bar.advance(200)
        bar.finish()
        assert stream.getvalue() == "compiling (once)\n"

    def test_work_that_is_done_at_its_first_step_shows_nothing(self) -> None:
        stream = Terminal()
        bar = Bar(stream, patience=0.0)
        bar.start("compiling", 1, "kernel")
        bar.advance(1)
        bar.finish()
        assert stream.getvalue() == ""

    def test_one_bar_watches_several_pieces_of_work(self) -> None:
        stream = Terminal()
        bar = Bar(stream, patience=0.0)
        for label in ("planning", "counting"):
            bar.start(label, 10, "runs")
            bar.advance(5)
            bar.advance(5)
            bar.finish()
        assert "planning" in stream.getvalue()
        assert "counting" in stream.getvalue()
