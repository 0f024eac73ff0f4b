"""The command line: `inspect`, `simulate`, `monitor`; `check` in a file of its own. It reads, calls, and prints.

What takes time to load is imported inside the commands, so that `sateen --help` answers at once.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any, Final

import click

from sateen import __version__
from sateen.core.errors import FormulaError, InputError, ModelWarning, SateenError, nearest

if TYPE_CHECKING:
    from sateen.core.expression import Expression
    from sateen.core.path import Path
    from sateen.logic.formula import Formula
    from sateen.logic.monitor import Explanation
    from sateen.model.model import Model

__all__ = ["main"]


class _Failure(click.ClickException):
    """Something that ends the program, told on stderr in its own words."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=True)


class _Interrupted(_Failure):
    """Ctrl-C."""

    exit_code = 130


class _Commands(click.Group):
    """Commands whose failures are sentences, and whose misspelt names are recognised."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SateenError as error:
            raise _Failure(f"{type(error).__name__}: {error}") from None
        except KeyboardInterrupt:
            raise _Interrupted("\n" * sys.stderr.isatty() + "interrupted") from None  # below the ^C of a terminal
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # whoever read the output has seen enough, and click ends in silence
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (what is left over fits nowhere)
            raise _Failure(f"{error.filename or 'standard output'}: {error.strerror or error}") from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order of the work

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            hint = nearest(name, self.commands) or f"the commands are {', '.join(self.commands)}"
            ctx.fail(f"there is no command {name}; {hint}")
        return super().resolve_command(ctx, args)


def _pairs(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """The numbers in `a=1,b=2`, by name."""
    values: dict[str, float] = {}
    for item in (item for text in texts for item in text.split(",")):
        name, _, number = (part.strip(" `") for part in item.rpartition("="))
        try:
            value = float(number)
        except ValueError:
            name = ""
        if not name:
            raise click.BadParameter(f"{item.strip()!r} is not NAME=NUMBER, such as beta=0.12")
        if name in values:
            raise click.BadParameter(f"{name} is given twice")
        values[name] = value
    return values


def _output(ctx: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """A file that can be written as far as its name tells; said before a long run, not after."""
    if file is not None:
        if option.name == "plot" and not file.lower().endswith((".svg", ".pdf", ".png")):
            raise click.BadParameter(f"{file!r} is no figure: end the name in .svg, .pdf or .png")
        if not os.path.isdir(folder := os.path.dirname(file) or "."):
            raise InputError(f"cannot write {file}: there is no folder {folder}")
    return file


_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
_END: Final = click.option("--end", type=float, metavar="T", help="Read the formula on the path cut at time T.")
_PLOT: Final = click.option("--plot", callback=_output, metavar="FILE", help="Draw it as .svg, .pdf or .png.")


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 for success, 1 for a problem with what was given, 2 for wrong usage, 130 after Ctrl-C. "
    'In JSON an infinite number is the text "inf" or "-inf".',
)
@click.version_option(__version__, prog_name="sateen", message="%(prog)s %(version)s")
def main() -> None:
    """Stochastic models, and the temporal properties of their runs."""


@main.command(short_help="What a model says.")
@click.argument("model")
@_JSON
def inspect(model: str, as_json: bool) -> None:
    """Show what a MODEL file says: species, constants, parameters, reactions, and what is doubtful."""
    system = _load(model)
    if as_json:
        _print_json({"model": model, **_described(system), "warnings": list(system.warnings)})
    else:
        _print_description(_described(system))
    _warn(system)


@main.command(short_help="One run of a model, and whether it satisfies a formula.")
@click.argument("model")
@click.option("--at", multiple=True, callback=_pairs, metavar="a=1,b=2", help="Values of parameters; repeatable.")
@click.option("--until", type=float, metavar="T", help="How long the run is; by default, the horizon of the formula.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default="1", metavar="N", help="Same seed, same run.")
@click.option("-p", "--property", "text", metavar="FORMULA", help="Say whether the run satisfies it, and why.")
@_END
@click.option("--csv", callback=_output, metavar="FILE", help="Write the run as a table, which `monitor` reads.")
@_PLOT
@_JSON
def simulate(
    model: str,
    at: Mapping[str, float],
    until: float | None,
    seed: int,
    text: str | None,
    end: float | None,
    csv: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Make one run of the MODEL in a file.

    A formula given with -p may name the constants of the model, in its windows too.

    \b
    sateen simulate examples/sir.sateen --at beta=0.12 --until 150
    sateen simulate examples/sir.sateen --at beta=0.12 -p "(I > 0) U[100, 120] (I == 0)" --plot sir.svg
    """
    from sateen.engine.simulate import simulate as run
    from sateen.logic.monitor import explain, monitor

    if end is not None and text is None:
        raise click.UsageError("--end says how a formula is read; give one with -p")
    system = _load(model)
    _warn(system)
    values = system.values(at)
    formula = None
    if text is not None:
        constants = {each.name: values[each.name] for each in system.constants if math.isfinite(values[each.name])}
        formula = _formula(text, constants, end, "name a constant of the model, or write a number")
    until = _length(until, formula)
    if formula is not None:
        monitor(formula, run(system, at, until=0, seed=seed))  # a name that nothing bears is found before the run
    path = run(system, at, until=until, seed=seed)
    explanation = None if formula is None else explain(formula, path)
    if path.end < until:
        click.echo(f"warning: the run was stopped at time {path.end:g}, after {len(path) - 1} jumps", err=True)

    files = _write(path, explanation, csv, plot)
    if as_json:
        content = {"model": model, "seed": seed, "until": until, "path": _path_content(path)}
        _print_json({**content, **_explanation_content(explanation), "files": files})
        return
    click.echo(f"{model}, seed {seed}, time 0 to {path.end:g}")
    if not files:
        _print_summary(path)
    if explanation is not None:
        click.echo(f"\n{explanation}")
        if str(explanation.verdict) == "unknown":
            horizon = explanation.formula.horizon
            enough = f"--until {horizon:g} decides it" if until < horizon < math.inf else "a longer one may decide it"
            click.echo(f"\nthis run is too short to tell; {enough}")
    for file in files:
        click.echo(file)


@main.command(short_help="Whether a run in a table satisfies a formula.")
@click.argument("formula")
@click.argument("path", metavar="PATH.csv")
@_END
@click.option("--constant", multiple=True, callback=_pairs, metavar="T=10", help="The value of a name; repeatable.")
@click.option("--explain", "explained", is_flag=True, help="Show for every part of FORMULA when it holds.")
@_PLOT
@_JSON
def monitor(
    formula: str,
    path: str,
    end: float | None,
    constant: Mapping[str, float],
    explained: bool,
    plot: str | None,
    as_json: bool,
) -> None:
    """Say whether the run in PATH.csv satisfies FORMULA: true, false, or unknown where it is too short to tell.

    The exit code is 0 whatever the verdict. The table has a column `time`, then one for each species; a state holds
    until the next row. A line `# end: 150` says how far the run is known, beyond its last row; `# absorbed: true` says
    for ever.

    \b
    sateen monitor "F[0, T] I == 0" run.csv --constant T=120 --explain
    """
    from sateen.core.path import Path
    from sateen.logic.monitor import explain
    from sateen.logic.monitor import monitor as decide

    asked = _formula(formula, constant, end, "give it one, as in --constant T=10")
    try:
        known = Path.from_csv(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    explanation = explain(asked, known) if explained or plot or as_json else None
    files = _write(known, explanation, None, plot)
    if as_json:
        _print_json({**_explanation_content(explanation), "files": files})
        return
    click.echo("\n".join([str(explanation if explained else decide(asked, known)), *files]))


def _load(file: str) -> Model:
    """The model in a file; its doubts are kept for `_warn`."""
    import warnings

    from sateen.model.model import Model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return Model.load(file)


def _warn(model: Model) -> None:
    for doubt in model.warnings:
        click.echo(f"warning: {doubt}", err=True)


def _formula(text: str, constants: Mapping[str, float], end: float | None, remedy: str) -> Formula:
    """The formula; a bound without a value gets the remedy of the command line, not that of Python."""
    from sateen.logic.parser import stl

    try:
        return stl(text, constants=constants, end=end)
    except FormulaError as error:
        if "constants=" not in error.remedy:
            raise
        raise FormulaError(error.message, error.text, error.position, remedy) from None


def _length(until: float | None, formula: Formula | None) -> float:
    """How long a run is: as long as was said, or as the formula looks ahead."""
    if until is not None:
        return until
    if formula is None or math.isinf(formula.horizon):
        raise click.UsageError("how long is the run? Give --until T, or -p with a formula of finite horizon")
    return formula.horizon


def _write(path: Path, explanation: Explanation | None, csv: str | None, plot: str | None) -> list[str]:
    """Write what was asked for, the figure last, and return the names."""
    if csv:
        with _replacing(csv) as temporary:
            path.to_csv(temporary)
    if plot:
        from sateen.show import figures

        drawn = path.plot() if explanation is None else figures.path_with_explanation(path, explanation)
        with _replacing(plot) as temporary:
            figures.save(drawn, temporary)
    return [file for file in (csv, plot) if file]


@contextmanager
def _replacing(file: str) -> Iterator[str]:
    """A temporary name beside `file`, which takes its place once it is whole; of a failure nothing remains."""
    from tempfile import TemporaryDirectory

    try:
        if os.path.exists(file) and not os.path.isfile(file):
            yield file  # a device or a pipe is written to, not replaced
            return
        target = os.path.realpath(file)
        with TemporaryDirectory(prefix=".sateen-", dir=os.path.dirname(target)) as folder:
            temporary = os.path.join(folder, os.path.basename(target))
            yield temporary
            os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from None


def _described(model: Model) -> dict[str, list[dict[str, Any]]]:
    """What the model says, as plain data: numbers where they are known, and text."""
    from sateen.model.written import happens

    return {
        "species": [{"name": each.name, "initial": _known(each.initial)} for each in model.variables],
        "constants": [{"name": each.name, "value": _known(each.value)} for each in model.constants],
        "parameters": [{"name": each.name, "default": each.default} for each in model.parameters],
        "reactions": [
            {"name": one.name, "happens": happens(one), "rate": str(one.rate), "guard": one.guard and str(one.guard)}
            for one in model.transitions
        ],
    }


def _known(expression: Expression) -> float | str:
    return str(expression) if expression.names else float(expression.evaluate({}))


def _print_description(described: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """A table for each kind of thing that the model has."""
    words = {"default": lambda value: "needs a value" if value is None else _text(value)}
    words |= {"rate": lambda rate: f"@ {rate}", "guard": lambda guard: f"when {guard}" if guard else ""}
    for kind, things in described.items():
        if things:
            click.secho(kind, bold=True)
            for line in _aligned([[words.get(key, _text)(each[key]) for key in each] for each in things]):
                click.echo(f"  {line}")


def _print_summary(path: Path) -> None:
    """What the run was made under, how many jumps it has, and the counts of every species."""
    if path.values:
        click.echo(", ".join(f"{name} = {_text(value)}" for name, value in path.values.items()))
    ending = f"absorbed, nothing happens after {path.times[-1]:g}" if path.absorbed else "not absorbed"
    click.echo(f"jumps: {len(path) - 1}; {ending}\n")  # the initial state is none
    rows = [["species", "first", "last", "least", "most"]]
    for name in path.species:
        counts = path.column(name)
        rows.append([name, *map(_text, (counts[0], counts[-1], counts.min(), counts.max()))])
    for line in _aligned(rows, str.rjust):
        click.echo(line)


def _text(value: float | str) -> str:
    from sateen.core.expression import number_text

    return value if isinstance(value, str) else number_text(float(value))


def _aligned(rows: Sequence[Sequence[str]], justify: Callable[[str, int], str] = str.ljust) -> Iterator[str]:
    """The rows as lines of columns; `justify` says how all but the first column stand."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        rest = (justify(cell, width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  ".join([row[0].ljust(widths[0]), *rest]).rstrip()


def _path_content(path: Path) -> dict[str, Any]:
    table = {"species": path.species, "times": path.times.tolist(), "states": path.states.tolist()}
    return {**table, "end": path.end, "absorbed": path.absorbed, "values": dict(path.values)}


def _explanation_content(explanation: Explanation | None) -> dict[str, Any]:
    if explanation is None:
        return {}
    rows = [
        {"formula": str(row.node), "depth": row.depth}
        | {when: [asdict(span) for span in getattr(row, when)] for when in ("holds", "unknown")}
        for row in explanation.rows
    ]
    formula = explanation.formula
    asked = {"formula": str(formula), "end": formula.end, "horizon": formula.horizon}
    return {**asked, "verdict": str(explanation.verdict), "explanation": rows}


def _print_json(content: Mapping[str, Any]) -> None:
    # Python writes Infinity, which is no JSON.
    words = {"Infinity": "inf", "-Infinity": "-inf"}
    finite = json.loads(json.dumps(content), parse_constant=words.__getitem__)
    click.echo(json.dumps(finite, allow_nan=False))


import sateen.cli_check  # noqa: E402, F401 (the command `check`, which uses what stands above)
