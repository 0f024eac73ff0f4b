"""--on, SATEEN_ON and [run] on: where the work is done is said, checked, and no part of any result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import sateen as st
from sateen.cli import main
from sateen.study.stages import study_tasks
from watchers import Watcher

STUDY = """
study = { name = "decay", seed = 1 }
model = { text = "species A = 10\\nA -> 0 @ mass_action(k)" }
space = { k = [0.1, 2] }
property = { gone = "F[0, 2] A == 0" }
observe = { train = { points = 64, runs = 20 } }
learn = { learners = ["svi-gp"] }
"""


def sateen(*arguments: object, on: str | None = None) -> Result:
    environment = {} if on is None else {"SATEEN_ON": on}
    return CliRunner().invoke(main, [str(each) for each in arguments], env=environment)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "decay.toml"
    file.write_text(STUDY)
    return file


def test_a_forecast_counts_the_workers_there_are(study: Path, tmp_path: Path) -> None:
    done = sateen("run", study, "--dry-run", "--json", "-o", tmp_path / "r", "--on", "local:3")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["workers"] == 3
    told = sateen("run", study, "--dry-run", "-o", tmp_path / "r", on="local:2")
    assert "2 workers now; it is unknown how many would help, until some runs of the study are made" in told.stdout
    assert "workers now" not in sateen("run", study, "--dry-run", "-o", tmp_path / "r").stdout


COIN = """
study = { name = "coin", seed = 1 }
model = { callable = "coin.py:coin" }
space = { p = [0, 1] }
observe = { train = { points = 64, runs = 20 }, test = { points = 16, runs = 10 } }
learn = { learners = ["svi-gp"] }
"""


@pytest.mark.parametrize(("text", "total"), [(STUDY, 64 * 20), (COIN, 64 * 20 + 16 * 10)])
def test_a_forecast_counts_the_runs_of_a_stage_that_was_stopped(text: str, total: int, tmp_path: Path) -> None:
    (tmp_path / "coin.py").write_text("def coin(theta, rng):\n    return rng.random() < theta['p']\n")
    study = st.Study.parse(text, file=tmp_path / "study.toml")

    class Stopping(Watcher):
        def advance(self, n: int) -> None:
            super().advance(n)
            if self.done >= 100:
                raise KeyboardInterrupt

    watcher = Stopping()
    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path / "r", progress=watcher, workers=1)
    forecast = study.forecast(tmp_path / "r")
    other = st.Study.parse(text.replace("seed = 1", "seed = 2"), file=tmp_path / "study.toml")
    assert 100 <= total - forecast.runs < total
    assert 0 < forecast.seconds < 60
    assert other.forecast(tmp_path / "r").runs == total


def test_a_forecast_is_of_the_seconds_of_one_worker(tmp_path: Path) -> None:
    (tmp_path / "coin.py").write_text(
        "import time\n\ndef coin(theta, rng):\n    time.sleep(0.01)\n    return rng.random() < theta['p']\n"
    )
    study = st.Study.parse(COIN.replace("runs = 20", "runs = 4"), file=tmp_path / "study.toml")
    result = study.run(tmp_path / "r", executor="local:4")
    longer = st.Study.parse(COIN.replace("runs = 20", "runs = 4").replace("16", "32"), file=tmp_path / "study.toml")
    assert next(iter(result.properties.values())).train.seconds > 256 * 0.01
    assert longer.forecast(tmp_path / "r").seconds > 320 * 0.01


def test_a_study_says_itself_where_it_runs_and_that_decides_nothing(study: Path, tmp_path: Path) -> None:
    there = st.Study.parse(STUDY + 'run = { on = "local:5" }\n')
    here = st.Study.parse(STUDY)
    assert (there.on, here.on) == ("local:5", None)
    keys = [[task.key for task in study_tasks(each, tmp_path).pipeline.tasks] for each in (there, here)]
    assert keys[0] == keys[1]
    study.write_text(STUDY + 'run = { on = "local:5" }\n')
    assert "5 workers now" in sateen("run", study, "--dry-run", "-o", tmp_path / "r").stdout
    told = sateen("run", study, "--dry-run", "-o", tmp_path / "r", "--on", "local:4").stdout
    assert "4 workers now" in told  # the command line has the last word
    assert "workers now" not in sateen("run", study, "--dry-run", "-o", tmp_path / "r", "--on", "here").stdout
    empty = sateen("run", study, "--dry-run", "-o", tmp_path / "r", "--on", "")
    assert (empty.exit_code, "--on is '', which is not an address" in empty.stderr) == (2, True)


def test_a_mistake_in_an_address_names_the_place_where_it_is(study: Path, tmp_path: Path) -> None:
    run = ("run", study, "-o", tmp_path / "r")
    assert "Error: --on is 'tpc://x', which is not an address" in sateen(*run, "--on", "tpc://x").stderr
    assert "Error: SATEEN_ON is 'tpc://x', which is not an address" in sateen(*run, on="tpc://x").stderr
    assert "Error: --on is 'tpc://y', which is not" in sateen(*run, "--on", "tpc://y", on="tpc://x").stderr
    study.write_text(STUDY + 'run = { on = "tpc://x" }\n')
    assert "Error: [run] on is 'tpc://x', which is not an address" in sateen(*run).stderr
    assert not (tmp_path / "r").exists()


def test_the_file_of_a_scheduler_is_looked_for_beside_the_study(study: Path, tmp_path: Path) -> None:
    text = STUDY + 'run = { on = "dask:sch.json" }\n'
    assert st.Study.parse(text, file=study).on == f"dask:{tmp_path / 'sch.json'}"
    assert st.Study.parse(text.replace("sch", "/tmp/sch"), file=study).on == "dask:/tmp/sch.json"
    assert st.Study.parse(text).on == "dask:sch.json"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('run = { on = "" }', "run.on: the address is empty"),
        ("run = { on = 3 }", "run.on"),
        ("run = { at = 3 }", "run"),
    ],
)
def test_a_table_run_that_says_nothing_is_refused(line: str, words: str) -> None:
    with pytest.raises(st.InputError, match=words):
        st.Study.parse(f"{STUDY}{line}\n")


@pytest.mark.parametrize("command", [("run", "{study}"), ("refine", "{study}"), ("paper", "a", "--yes")])
def test_an_open_port_is_refused_on_the_command_line(command: tuple[str, ...], study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY + "decide = { above = 0.5, budget = 5000 }\n")
    words = [each.format(study=study) for each in command]
    folder = ["--folder" if command[0] == "refine" else "-o", str(tmp_path / "r")]
    done = sateen(*words, *folder, "--on", "tcp://192.0.2.1:8786")
    assert done.exit_code == 2
    assert "tcp://192.0.2.1:8786 is not encrypted, and beyond this machine" in done.stderr
    assert "use tls://; or, if every machine of that network is trusted, --insecure" in done.stderr


def test_a_part_is_made_on_this_machine_and_cannot_be_sent_elsewhere(study: Path, tmp_path: Path) -> None:
    done = sateen("run", study, "--part", "1/4", "--on", "local:2", "-o", tmp_path / "r")
    assert done.exit_code == 2
    assert "--part makes a part on this machine, and --on sends work to others: leave out one" in done.stderr
    assert not (tmp_path / "r").exists()
    study.write_text(STUDY + 'run = { on = "tcp://127.0.0.1:1" }\n')  # where nobody is
    for rest, on in (("--dry-run",), None), ((), "tcp://127.0.0.1:1"):
        done = sateen("run", study, "--part", "1/4", *rest, "-o", tmp_path / "r", on=on)
        assert done.exit_code == 0, done.output
        assert "workers now" not in done.stdout
    assert "part 1/4 is in" in done.stdout
