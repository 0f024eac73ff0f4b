"""The command line: what it prints, what it writes, how it fails, and that it ends when told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as hs
from matplotlib.collections import PolyCollection

import sateen as st
from command_line import HEARING, USUAL, process, sateen
from sateen.plot import figures

SIR = str(Path(__file__).resolve().parents[1] / "examples" / "sir.sateen")
BIRTH_DEATH = str(Path(SIR).with_name("birth_death.sateen"))
FORMULA = "(I > 0) U[100, 120] (I == 0)"
HEADER = ["species", "first", "last", "least", "most"]


# A process that may write no file of more than 1000 bytes, as on a disk that is full.
WITH_SMALL_FILES = (
    "-c",
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    "from sateen.cli import main; main(prog_name='sateen')",
)


def infinite_as_numbers(content: Any) -> Any:
    """JSON as Python would have it: the texts inf and -inf become numbers again."""
    if isinstance(content, dict):
        return {key: infinite_as_numbers(value) for key, value in content.items()}
    if isinstance(content, list):
        return [infinite_as_numbers(value) for value in content]
    return float(content) if content in ("inf", "-inf") else content


@pytest.fixture
def doubtful(tmp_path: Path) -> str:
    """A model that is legal and never stops, with a parameter that nothing uses."""
    file = tmp_path / "doubtful.sateen"
    file.write_text("species X = 0\nparameter spare = 1\n0 -> X @ 5\nX -> 0 @ X when X > 0 and X < 99\n")
    return str(file)


class TestInspect:
    def test_it_shows_species_constants_parameters_and_reactions_in_columns(self) -> None:
        assert sateen("inspect", SIR).stdout.splitlines() == [
            "species",
            "  S  95",
            "  I  5",
            "  R  0",
            "constants",
            "  N  100",
            "parameters",
            "  gamma  0.05           perhaps 0.005 to 0.5, log",
            "  beta   needs a value",
            "reactions",
            "  infect   S + I -> 2 I  @ beta * S * I / N",
            "  recover  I -> R        @ gamma * I",
        ]

    def test_it_shows_guards_and_leaves_out_what_a_model_lacks(self, doubtful: str) -> None:
        shown = sateen("inspect", doubtful).stdout
        assert "  r2  X -> 0  @ X  when X > 0 and X < 99\n" in shown
        assert "constants" not in shown

    def test_control_characters_of_a_file_reach_no_terminal(self, tmp_path: Path) -> None:
        file = tmp_path / "a\x1b]0;b\x07.sateen"
        file.write_text("species X = 1\nX\x1b[2J -> 0 @ 1\n", encoding="utf-8")
        done = sateen("inspect", file, code=1)
        assert "X\\x1b[2J -> 0" in done.stderr
        assert "\x1b" not in done.output
        done = sateen("inspect", tmp_path / "missing\x1b.sateen", code=1)
        assert "missing\\x1b.sateen" in done.stderr
        assert "\x1b" not in done.output

    def test_warnings_are_printed_once_on_stderr(self, doubtful: str) -> None:
        done = sateen("inspect", doubtful)
        assert done.stderr == "warning: line 2: nothing uses the parameter spare\n"
        assert "warning" not in done.stdout

    def test_json_is_one_object_with_numbers_and_text(self, doubtful: str) -> None:
        assert json.loads(sateen("inspect", doubtful, "--json").stdout) == {
            "model": doubtful,
            "species": [{"name": "X", "initial": 0, "low": 0, "high": None, "whole": True}],
            "constants": [],
            "parameters": [{"name": "spare", "default": 1, "range": {"low": 0.1, "high": 10, "scale": "log"}}],
            "reactions": [
                {"name": "r1", "happens": "0 -> X", "rate": "5", "guard": None},
                {"name": "r2", "happens": "X -> 0", "rate": "X", "guard": "X > 0 and X < 99"},
            ],
            "events": [],
            "labels": [],
            "rewards": [],
            "observables": [],
            "assumptions": [],
            "open": [],
            "warnings": ["line 2: nothing uses the parameter spare"],
        }

    def test_an_initial_count_that_a_parameter_gives_is_text(self) -> None:
        assert json.loads(sateen("inspect", BIRTH_DEATH, "--json").stdout)["species"] == [
            {"name": "X", "initial": "X0", "low": 0, "high": None, "whole": True}
        ]


class TestSimulate:
    def test_without_files_it_sums_the_run_up(self) -> None:
        path = st.simulate(st.Model.load(SIR), {"beta": 0.12}, until=400, seed=1)
        lines = sateen("simulate", SIR, "--at", "beta=0.12", "--until", "400").stdout.splitlines()
        assert lines[0] == f"{SIR}, seed 1, time 0 to 400"
        assert lines[1] == "gamma = 0.05, beta = 0.12, N = 100"
        assert lines[2] == f"jumps: {len(path) - 1}; absorbed, nothing happens after {path.times[-1]:g}"
        rows = [line.split() for line in lines[4:]]
        assert rows[0] == HEADER
        assert rows[2] == ["I", *(f"{n:g}" for n in (5, path["I"][-1], path["I"].min(), path["I"].max()))]
        assert len({len(line) for line in lines[4:]}) == 1

    def test_a_run_that_could_go_on_is_said_to_be_not_absorbed(self) -> None:
        assert "jumps: 0; not absorbed\n" in sateen("simulate", BIRTH_DEATH, "--until", "0").stdout

    @pytest.mark.parametrize("seed", range(5))
    def test_json_and_csv_hold_the_path_that_the_library_makes(self, seed: int, tmp_path: Path) -> None:
        theta = {"beta": 0.12, "gamma": 0.05}
        path = st.simulate(st.Model.load(SIR), theta, until=50, seed=seed)
        file = str(tmp_path / "run.csv")
        options = ["--at", "beta=.12,gamma=5e-2", "--until", "50", "--seed", str(seed), "--csv", file, "--json"]
        content = json.loads(sateen("simulate", SIR, *options).stdout)
        assert st.Path(**content["path"]) == path
        assert st.Path.from_csv(file) == path
        assert (content["seed"], content["until"], content["files"]) == (seed, 50, [file])

    def test_the_same_seed_gives_the_same_output_in_every_process(self, tmp_path: Path) -> None:
        files = [tmp_path / "run.csv", tmp_path / "run.svg"]
        options = ["--at", "beta=.12", "--until", "150", "-p", FORMULA, "--csv", str(files[0]), "--plot", str(files[1])]
        outputs = []
        for _ in range(2):
            done = process("simulate", SIR, *options)
            assert (done.returncode, done.stderr) == (0, "")
            outputs.append((done.stdout, *(file.read_bytes() for file in files)))
            for file in files:
                file.unlink()
        assert outputs[0] == outputs[1]

    def test_another_seed_gives_another_run_and_the_output_names_it(self) -> None:
        one, two = (sateen("simulate", SIR, "--at", "beta=.12", "--until", "9", "--seed", seed).stdout for seed in "12")
        assert one != two
        assert "seed 2" in two

    @given(hs.dictionaries(hs.sampled_from(["X0", "make", "decay"]), hs.floats(0, 1e9), min_size=1), hs.booleans())
    def test_values_arrive_as_they_were_written(self, values: dict[str, float], together: bool) -> None:
        values = {name: round(value) if name == "X0" else value for name, value in values.items()}
        items = [f"{name}={value!r}" for name, value in values.items()]
        options = ["--at", ", ".join(items)] if together else [part for item in items for part in ("--at", item)]
        content = json.loads(sateen("simulate", BIRTH_DEATH, *options, "--until", "0", "--json").stdout)
        assert content["path"]["values"] == {"X0": 0, "make": 50, "decay": 0.5, "low": 80} | values

    @pytest.mark.parametrize("item", ["beta", "beta=", "=1", "beta=a", "beta:1", "", "beta=0,12"])
    def test_an_item_that_is_no_pair_is_named(self, item: str) -> None:
        done = sateen("simulate", SIR, "--at", item, "--until", "1", code=2)
        assert f"{item.split(',')[-1]!r} is not NAME=NUMBER, such as beta=0.12" in done.stderr

    def test_a_value_given_twice_is_refused(self) -> None:
        assert "beta is given twice" in sateen("simulate", SIR, "--at", "beta=1", "--at", "beta=2", code=2).stderr

    @pytest.mark.parametrize("value", ["inf", "nan"])
    def test_a_value_is_finite(self, value: str) -> None:
        done = sateen("simulate", SIR, "--at", f"beta={value}", "--until", "1", code=1)
        assert done.stderr == f"InputError: the parameter beta is {value}; it must be a finite number\n"

    def test_the_horizon_of_the_formula_is_how_long_the_run_is_by_default(self) -> None:
        content = json.loads(sateen("simulate", SIR, "--at", "beta=.12", "-p", FORMULA, "--json").stdout)
        assert content["until"] == content["horizon"] == content["path"]["end"] == 120
        cut = sateen("simulate", SIR, "--at", "beta=.12", "-p", "F[0, 90] G (S < 20)", "--end", "10", "--json")
        assert json.loads(cut.stdout)["until"] == json.loads(cut.stdout)["end"] == 10

    @pytest.mark.parametrize("formula", [[], ["-p", "G (S < 20)"]])
    def test_without_a_finite_horizon_it_asks_how_long_the_run_is(self, formula: list[str]) -> None:
        assert "Give --until T" in sateen("simulate", SIR, "--at", "beta=.12", *formula, code=2).stderr

    def test_an_end_without_a_formula_is_refused(self) -> None:
        done = sateen("simulate", SIR, "--at", "beta=.12", "--until", "9", "--end", "3", code=2)
        assert "give one with -p" in done.stderr

    def test_a_formula_is_decided_and_explained_as_by_the_library(self) -> None:
        path = st.simulate(st.Model.load(SIR), {"beta": 0.12}, until=150, seed=1)
        explanation = st.explain(st.stl(FORMULA), path)
        done = sateen("simulate", SIR, "--at", "beta=.12", "--until", "150", "-p", FORMULA)
        assert done.stdout.endswith(f"\n\n{explanation}\n")

    def test_a_run_that_is_too_short_says_how_long_it_should_be(self) -> None:
        options = ["simulate", SIR, "--at", "beta=.12", "-p", "F[0, 90] (I > 999)", "--until"]
        assert sateen(*options, "5").stdout.endswith("\nthis run is too short to tell; --until 90 decides it\n")
        assert "too short" not in sateen(*options, "90").stdout

    def test_constants_of_the_model_have_values_in_windows_and_atoms(self) -> None:
        content = json.loads(
            sateen("simulate", BIRTH_DEATH, "-p", "F[0, low] X > low", "--until", "1", "--json").stdout
        )
        assert content["formula"] == "F[0, 80] X > 80"

    def test_an_infinite_number_is_text_in_json(self) -> None:
        content = json.loads(sateen("simulate", BIRTH_DEATH, "-p", "F X > 0", "--until", "1", "--json").stdout)
        assert content["horizon"] == "inf"
        assert content["explanation"][0]["unknown"][-1]["stop"] == "inf"

    def test_json_and_text_agree_on_the_explanation(self) -> None:
        options = ["simulate", SIR, "--at", "beta=.12", "-p", FORMULA]
        content = infinite_as_numbers(json.loads(sateen(*options, "--json").stdout))
        explanation = st.explain(st.stl(FORMULA), st.Path(**content["path"]))
        assert content["verdict"] == str(explanation.verdict)
        for row, found in zip(explanation.rows, content["explanation"], strict=True):
            assert (found["formula"], found["depth"]) == (str(row.node), row.depth)
            assert [st_span(span) for span in found["holds"]] == [str(span) for span in row.holds]

    def test_files_are_named_at_the_end_the_figure_last(self, tmp_path: Path) -> None:
        csv, figure = str(tmp_path / "run.csv"), str(tmp_path / "run.png")
        done = sateen("simulate", SIR, "--at", "beta=.12", "--until", "9", "--plot", figure, "--csv", csv)
        assert done.stdout.splitlines() == [f"{SIR}, seed 1, time 0 to 9", csv, figure]
        assert Path(figure).read_bytes().startswith(b"\x89PNG")
        assert {file.name for file in tmp_path.iterdir()} == {"run.csv", "run.png"}

    def test_warnings_do_not_mix_with_json(self, doubtful: str) -> None:
        done = sateen("simulate", doubtful, "--until", "1", "--json")
        assert json.loads(done.stdout)["model"] == doubtful
        assert done.stderr == "warning: line 2: nothing uses the parameter spare\n"


def st_span(span: dict[str, Any]) -> str:
    from sateen.logic.monitor import Span

    return str(Span(**span))


class TestMonitor:
    @pytest.fixture
    def csv(self, tmp_path: Path) -> str:
        file = tmp_path / "run.csv"
        file.write_text("# end: 150\n# value beta: 0.12\ntime,I\n0,5\n110,0\n")
        return str(file)

    @pytest.mark.parametrize(
        ("formula", "verdict"), [(FORMULA, "true"), ("G I > 0", "false"), ("F[0, 151] I > 5", "unknown")]
    )
    def test_it_prints_the_verdict_and_succeeds_whatever_it_is(self, csv: str, formula: str, verdict: str) -> None:
        assert sateen("monitor", formula, csv).stdout == f"{verdict}\n"

    def test_with_explain_it_prints_the_explanation(self, csv: str) -> None:
        explanation = st.explain(st.stl(FORMULA), st.Path.from_csv(csv))
        assert sateen("monitor", FORMULA, csv, "--explain").stdout == f"{explanation}\n"

    def test_parameters_of_the_run_may_be_compared(self, csv: str) -> None:
        assert sateen("monitor", "beta < 1", csv).stdout == "true\n"

    def test_constants_give_values_to_names(self, csv: str) -> None:
        options = ["--constant", "low=100,high=120", "--constant", "none=0"]
        assert sateen("monitor", "(I > none) U[low, high] (I == none)", csv, *options).stdout == "true\n"

    def test_a_bound_without_a_value_is_told_how_to_get_one(self, csv: str) -> None:
        assert sateen("monitor", "F[0, T] I == 0", csv, code=1).stderr == (
            "FormulaError: the bound T has no value\n  F[0, T] I == 0\n       ^\n  give it one: --constant T=10\n"
        )

    def test_end_cuts_the_path(self, csv: str) -> None:
        assert sateen("monitor", "G I > 0", csv, "--end", "100").stdout == "true\n"

    def test_json_is_one_object(self, csv: str) -> None:
        content = json.loads(sateen("monitor", FORMULA, csv, "--json").stdout)
        assert (content["verdict"], content["horizon"], content["end"], content["files"]) == ("true", 120, None, [])
        holds = [{"start": 110, "stop": 150, "closed_start": True, "closed_stop": True}]
        assert content["explanation"][2]["holds"] == holds

    def test_a_figure_is_drawn_and_named_last(self, csv: str, tmp_path: Path) -> None:
        figure = str(tmp_path / "run.svg")
        assert sateen("monitor", FORMULA, csv, "--plot", figure).stdout == f"true\n{figure}\n"
        assert "<svg" in Path(figure).read_text(encoding="utf-8")

    def test_a_simulated_run_has_the_same_verdict_when_it_is_read_back(self, tmp_path: Path) -> None:
        csv = str(tmp_path / "run.csv")
        for seed in range(5):
            options = ["--at", "beta=.12,gamma=.08", "-p", FORMULA, "--seed", str(seed), "--csv", csv, "--json"]
            verdict = json.loads(sateen("simulate", SIR, *options).stdout)["verdict"]
            assert sateen("monitor", FORMULA, csv).stdout == f"{verdict}\n"

    def test_a_table_that_cannot_be_read_is_named(self, tmp_path: Path) -> None:
        missing = str(tmp_path / "none.csv")
        done = sateen("monitor", FORMULA, missing, code=1)
        assert done.stderr == f"InputError: {missing} cannot be read: No such file or directory\n"
        wrong = tmp_path / "wrong.csv"
        wrong.write_text("time,I\n0,5\n1,many\n")
        assert sateen("monitor", FORMULA, str(wrong), code=1).stderr.startswith(f"PathError: {wrong}: line 3, column I")


class TestUsage:
    @pytest.mark.parametrize("option", ["-h", "--help"])
    @pytest.mark.parametrize("command", [[], ["inspect"], ["simulate"], ["monitor"]])
    def test_every_command_has_help(self, command: list[str], option: str) -> None:
        assert sateen(*command, option).stdout.startswith("Usage: ")

    def test_help_lists_the_commands_in_the_order_of_the_work(self) -> None:
        lines = sateen("--help").stdout.partition("Commands:\n")[2].splitlines()[:3]
        assert [line.split()[0] for line in lines] == ["inspect", "init", "run"]

    def test_help_of_monitor_says_that_the_verdict_is_no_exit_code(self) -> None:
        assert "The exit code is 0 whatever the verdict." in sateen("monitor", "-h").stdout

    def test_the_version_is_the_librarys(self) -> None:
        assert sateen("--version").stdout == f"sateen {st.__version__}\n"

    @pytest.mark.parametrize(("typed", "hint"), [("simulat", "did you mean simulate?"), ("qqq", "inspect, init, run")])
    def test_an_unknown_command_is_told_the_nearest(self, typed: str, hint: str) -> None:
        assert f"there is no command {typed}; " in sateen(typed, code=2).stderr
        assert hint in sateen(typed, code=2).stderr

    @pytest.mark.parametrize(
        "arguments",
        [["simulate"], ["simulate", SIR, "--sed", "1"], ["simulate", SIR, "--seed", "-1"], ["monitor", "I > 0"]],
    )
    def test_wrong_usage_exits_with_2_and_prints_nothing_on_stdout(self, arguments: list[str]) -> None:
        done = sateen(*arguments, code=2)
        assert done.stdout == ""
        assert "Usage: " in done.stderr

    def test_a_model_that_is_not_there_exits_with_1(self) -> None:
        done = sateen("inspect", "none.sateen", code=1)
        assert (done.stdout, done.stderr) == ("", "ModelError: none.sateen cannot be read: No such file or directory\n")

    def test_a_run_that_cannot_go_on_exits_with_1_and_says_why(self, tmp_path: Path) -> None:
        file = tmp_path / "falling.sateen"
        file.write_text("species X = 3\n0 -> X @ 2 - X\n")
        done = sateen("simulate", str(file), "--until", "9", code=1)
        assert done.stderr.startswith("SimulationError: the rate of r1 is -1 at time 0, where X = 3")

    def test_help_loads_no_library_but_click(self) -> None:
        program = "import sys; before = set(sys.modules); from sateen.cli import main\n"
        program += "main(['--help'], standalone_mode=False); new = {name.partition('.')[0] for name in sys.modules}\n"
        program += "print(); print(*(new - {name.partition('.')[0] for name in before} - sys.stdlib_module_names))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert set(done.stdout.splitlines()[-1].split()) <= {"sateen", "click", "typing_extensions", "colorama"}


class TestFiles:
    RUN = ("simulate", SIR, "--at", "beta=.12", "--until", "100")

    @pytest.mark.parametrize(("option", "name"), [("--csv", "run.csv"), ("--plot", "run.svg")])
    def test_a_missing_folder_is_named_before_the_run(self, option: str, name: str, tmp_path: Path) -> None:
        folder = tmp_path / "none"
        done = sateen("simulate", BIRTH_DEATH, "--until", "1e300", option, str(folder / name), code=1)
        assert done.stderr == f"InputError: cannot write {folder / name}: there is no folder {folder}\n"

    @pytest.mark.parametrize("name", ["run.gif", "run", "svg"])
    def test_a_figure_of_another_kind_is_refused_before_the_run(self, name: str) -> None:
        done = sateen("simulate", BIRTH_DEATH, "--until", "1e300", "--plot", name, code=2)
        assert f"{name!r} is not a figure: end the name in .svg, .pdf or .png" in done.stderr

    def test_a_link_is_replaced_and_what_it_points_to_stays(self, tmp_path: Path) -> None:
        file, link = tmp_path / "run.csv", tmp_path / "link.csv"
        file.write_text("old")
        link.symlink_to(file)
        sateen(*self.RUN, "--csv", str(link))
        assert not link.is_symlink()
        assert st.Path.from_csv(link).end == 100
        assert file.read_text() == "old"
        assert {each.name for each in tmp_path.iterdir()} == {"run.csv", "link.csv"}

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        done = sateen(*self.RUN, "--csv", str(tmp_path), code=1)
        assert done.stderr == f"InputError: cannot write {tmp_path}: Is a directory\n"

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
    def test_a_full_disk_is_said(self) -> None:
        done = sateen(*self.RUN, "--csv", "/dev/full", code=1)
        assert done.stderr == "InputError: cannot write /dev/full: No space left on device\n"
        assert not os.path.isfile("/dev/full")

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
    def test_a_full_disk_under_stdout_is_said(self) -> None:
        with open("/dev/full", "w") as full:
            done = process("inspect", SIR, stdout=full)
        assert (done.returncode, done.stderr) == (1, "standard output: No space left on device\n")

    @pytest.mark.skipif(os.name != "posix", reason="only POSIX systems limit the size of files")
    @pytest.mark.parametrize(("option", "name"), [("--csv", "run.csv"), ("--plot", "run.svg")])
    def test_of_a_file_that_does_not_fit_nothing_remains_and_the_old_one_stays(
        self, option: str, name: str, tmp_path: Path
    ) -> None:
        file = tmp_path / name
        file.write_text("old")
        done = process(*self.RUN, option, str(file), start=WITH_SMALL_FILES)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"InputError: cannot write {file}: File too large\n"
        assert list(tmp_path.iterdir()) == [file]
        assert file.read_text() == "old"

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system has no /proc")
    def test_a_folder_that_takes_no_files_is_said(self) -> None:
        assert sateen(*self.RUN, "--csv", "/proc/run.csv", code=1).stderr.startswith("InputError: cannot write /proc/")

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes to read-only folders")
    def test_a_read_only_folder_is_said(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        done = sateen(*self.RUN, "--csv", str(tmp_path / "run.csv"), code=1)
        assert done.stderr == f"InputError: cannot write {tmp_path / 'run.csv'}: Permission denied\n"


class TestEnding:
    @pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
    @pytest.mark.parametrize(("number", "code", "said"), [(2, 130, "interrupted\n"), (15, 143, "terminated\n")])
    def test_ctrl_c_and_sigterm_end_a_long_run_with_one_line(
        self, doubtful: str, tmp_path: Path, number: int, code: int, said: str
    ) -> None:
        csv = tmp_path / "run.csv"
        command = [sys.executable, "-c", HEARING, "simulate", doubtful, "--until", "1e300", "--csv", str(csv)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr is not None
            assert running.stderr.readline().startswith("warning: ")  # the model is read, the run begins
            running.send_signal(number)
            stdout, stderr = running.communicate(timeout=60)
        assert (running.returncode, stdout, stderr) == (code, "", said)
        assert not csv.exists()

    def test_the_handler_of_sigterm_is_put_back(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        sateen("inspect", SIR)
        assert signal.getsignal(signal.SIGTERM) is before

    def test_too_little_memory_is_an_error_in_words(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise MemoryError("Unable to allocate 8 TiB")

        monkeypatch.setattr(st.Model, "load", fail)
        said = sateen("inspect", SIR, code=1).stderr
        assert said == "not enough memory: Unable to allocate 8 TiB\n  ask for fewer points or workers\n"

    def test_a_warning_of_sateen_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        load = st.Model.load

        def warning(*given: Any, **named: Any) -> st.Model:
            warnings.warn("the cache is damaged", st.SateenWarning, stacklevel=1)
            return load(*given, **named)

        monkeypatch.setattr(st.Model, "load", warning)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            assert sateen("inspect", SIR).stderr == "warning: the cache is damaged\n"

    def test_a_reader_that_has_seen_enough_is_no_error(self) -> None:
        command = [sys.executable, "-m", "sateen", "simulate", BIRTH_DEATH, "--until", "100", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=USUAL) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            assert running.stdout.read(1) == b"{"
            running.stdout.close()  # far more than a pipe holds is still to come
            assert running.stderr.read() == b""

    def test_an_error_goes_to_stderr_with_exit_code_1(self) -> None:
        done = process("simulate", SIR, "--until", "1")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "MissingValueError: the parameter beta has no value\n  give it one: --at beta=...\n"


class TestFigure:
    def drawn(self, formula: str, until: float = 150) -> tuple[Any, Any]:
        path = st.simulate(st.Model.load(SIR), {"beta": 0.12}, until=until, seed=1)
        figure = figures.path_with_explanation(path, st.explain(st.stl(formula), path))
        figure.draw_without_rendering()
        upper, lower = figure.axes
        return upper, lower

    def test_the_path_and_the_lanes_share_the_axis_of_time(self) -> None:
        upper, lower = self.drawn(FORMULA)
        assert upper.get_shared_x_axes().joined(upper, lower)
        assert upper.get_xlim() == lower.get_xlim() == (0, 150)
        edges = [axes.get_window_extent() for axes in (upper, lower)]
        assert edges[0].x0 == edges[1].x0
        assert edges[0].x1 == edges[1].x1

    def test_it_says_the_verdict_and_what_the_run_was_made_under(self) -> None:
        upper, lower = self.drawn(FORMULA)
        assert upper.get_title(loc="left") == "gamma = 0.05, beta = 0.12, N = 100"
        assert lower.get_title(loc="left") == "verdict at time 0: false"

    def test_every_part_has_a_label_and_labels_touch_neither_each_other_nor_the_bars(self) -> None:
        _, lower = self.drawn("F[0, 20] (G[0, 5] (S > 0) & !(I > 5) | I < 0)")
        labels = [text.get_window_extent() for text in lower.texts]
        assert len(labels) == 8
        shapes = [shape for shape in lower.collections if isinstance(shape, PolyCollection)]
        bars = [lower.transData.transform_bbox(bar.get_extents()) for shape in shapes for bar in shape.get_paths()]
        assert bars
        assert not any(a.overlaps(b) for place, a in enumerate(labels) for b in labels[:place])
        assert not any(label.overlaps(bar) for label in labels for bar in bars)

    def test_what_begins_after_the_end_leaves_no_mark_there(self) -> None:
        _, lower = self.drawn("G[0, 5] (S > 0)")
        assert not [line for line in lower.get_lines() if line.get_marker() == "D"]
        _, lower = self.drawn("F[0, 5] (S > 0)", until=0)
        assert [line for line in lower.get_lines() if line.get_marker() == "D"]
