"""The registry of commands: what is listed and loaded, commands of other packages, and arguments named as options."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from command_line import loaded_by, sateen, words
from sateen.cli import COMMANDS, main
from sateen.cli.options import as_option

ROOT = Path(__file__).resolve().parents[1]
SIR = str(ROOT / "examples" / "sir.sateen")
STUDY = str(ROOT / "examples" / "sir.toml")
HEAVY = {"jax", "llvmlite", "scipy.stats", "matplotlib"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with two commands, one of which cannot be loaded, and one that is not a command."""
    folder = tmp_path / "site"
    about = folder / "other-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[sateen.commands]\ngreet = other.commands:greet\nbroken = other.nowhere:command\nodd = other.commands:NUMBER\n"
    )
    (folder / "other").mkdir()
    (folder / "other" / "__init__.py").write_text("")
    (folder / "other" / "commands.py").write_text(
        "import click\nfrom sateen.core.errors import InputError\nNUMBER = 1\n"
        "@click.command()\n@click.option('--often', type=int, default=1)\n"
        "def greet(often):\n"
        "    '''Say hello.'''\n"
        "    if often > 2:\n"
        "        raise InputError('{often} is at most 2', argument='often', remedy='pass {often=2}')\n"
        "    click.echo('hello ' * often)\n"
    )
    monkeypatch.syspath_prepend(folder)
    return folder


class TestRegistry:
    def test_a_line_of_the_registry_is_all_that_lists_a_command(self) -> None:
        lines = sateen("--help").stdout.partition("Commands:\n")[2].splitlines()
        listed = [line.split()[0] for line in lines if line.startswith("  ") and line.split()]
        assert listed[: len(COMMANDS.builtin)] == list(COMMANDS.builtin)

    @pytest.mark.parametrize("name", COMMANDS.builtin)
    def test_every_command_has_its_name_help_and_json(self, name: str) -> None:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert command.name == name
        if name != "serve":  # which has no result, but runs until it is told to end
            assert "--json" in [option for parameter in command.params for option in parameter.opts]
        assert all(option.help for option in command.params if isinstance(option, click.Option) and not option.hidden)

    def test_help_imports_no_command(self) -> None:
        loaded = {name for name in loaded_by("--help") if name.startswith("sateen.cli.")}
        assert loaded == {"sateen.cli.options", "sateen.cli.output"}


@pytest.mark.usefixtures("package")
class TestCommandsOfOthers:
    def test_one_is_listed_and_runs(self) -> None:
        assert "  greet              Added by other." in sateen("--help").stdout.splitlines()
        assert sateen("greet", "--often", "2").stdout == "hello hello \n"
        assert "Say hello." in sateen("greet", "--help").stdout

    def test_its_errors_are_sentences_that_name_its_options(self) -> None:
        assert sateen("greet", "--often", "3", code=1).stderr == "InputError: --often is at most 2\n  pass --often 2\n"

    def test_it_is_recognised_when_it_is_misspelt(self) -> None:
        assert "there is no command gret; did you mean greet?" in sateen("gret", code=2).stderr

    def test_one_that_cannot_be_loaded_is_an_error_of_its_own_and_of_no_other(self) -> None:
        assert "the command broken cannot be loaded: No module named 'other.nowhere'" in words(sateen("broken", code=1))
        assert "other.commands:NUMBER is not a click command" in words(sateen("odd", code=1))
        assert sateen("inspect", SIR).stdout


class TestArgumentsAsOptions:
    @pytest.mark.parametrize(
        ("command", "name", "value", "text"),
        [
            ("calibrate", "level", None, "--level"),
            ("calibrate", "allow_trivial", "True", "--allow-trivial"),
            ("calibrate", "rank", "2", "--rank 2"),
            ("calibrate", "method", "'icp'", "--method icp"),
            ("calibrate", "confidence", "None", "--marginal"),
            ("calibrate", "held_out", None, "HELD_OUT"),
            ("calibrate", "density", None, "density"),
            ("calibrate", "density", "1", "density=1"),
            ("check", "constants", '{"T": 10}', "--const T=10"),
            ("learn", "space", "Space(...)", "--space a=0:1"),
        ],
    )
    def test_an_argument_of_the_library_is_an_option_of_the_command(
        self, command: str, name: str, value: str | None, text: str
    ) -> None:
        assert as_option(main.get_command(click.Context(main), command), name, value) == text

    def test_the_old_name_of_an_option_says_the_new_one(self) -> None:
        done = sateen("learn", "runs.csv", "--method", "ep-gp", "-o", "f.safetensors", code=2)
        assert "--method is now called --learner: write --learner ep-gp" in words(done)


class TestLight:
    @pytest.mark.parametrize("command", ["", *COMMANDS.builtin])
    def test_help_loads_nothing_heavy(self, command: str) -> None:
        assert not loaded_by(*command.split(), "--help") & HEAVY

    @pytest.mark.parametrize("arguments", [("inspect", SIR), ("inspect", STUDY), ("run", "--dry-run", STUDY)])
    def test_what_only_reads_loads_nothing_heavy(self, arguments: tuple[str, ...]) -> None:
        assert not loaded_by(*arguments) & HEAVY

    def test_init_loads_nothing_heavy(self, tmp_path: Path) -> None:
        target = str(tmp_path / "sir.toml")
        assert not loaded_by("init", SIR, "--vary", "beta=0.1:1", "-p", "F[0, 9] I == 0", "-o", target) & HEAVY
