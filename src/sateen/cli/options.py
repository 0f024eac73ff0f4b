"""Options that several commands have, and how their values are read."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import click
from click.core import ParameterSource

import sateen as st
from sateen.core.code import refuse_code, watching_code
from sateen.core.errors import InputError, SpaceError
from sateen.pools.pool import Pool, opened

if TYPE_CHECKING:
    from click.decorators import FC


class Whole(click.IntRange):
    """A whole number in a range, which may be written as 1e4."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        with suppress(ValueError, OverflowError):
            number = float(value)
            value = int(number) if re.search("[.eE]", str(value)) and number.is_integer() else value
        return super().convert(value, param, ctx)


COUNT: Final = Whole(1)
_OTHERWISE: Final = {"theta": "at"}  # options that are not called as the library's arguments are
_SCALE_KEY: Final = "sateen.scale"
_RANGE: Final = "NAME=LOW:HIGH or NAME=LOW:HIGH:log, such as beta=0.005:0.3"


def texts_by_name(texts: Iterator[str], form: str) -> dict[str, str]:
    """What stands behind the last `=` of each text, by the name before it; `form` says what a text should be."""
    values: dict[str, str] = {}
    for text in texts:
        name, _, value = (part.strip(" `") for part in text.rpartition("="))
        if not name:
            raise click.BadParameter(f"{text.strip()!r} is not {form}")
        if name in values:
            raise click.BadParameter(f"{name} is given twice")
        values[name] = value
    return values


def _items(texts: tuple[str, ...]) -> Iterator[str]:
    return (item for text in texts for item in text.split(","))


def pairs(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """The numbers in `a=1,b=2`, by name."""
    form = "NAME=NUMBER, such as beta=0.12"
    values: dict[str, float] = {}
    for name, text in texts_by_name(_items(texts), form).items():
        try:
            values[name] = float(text)
        except ValueError:
            raise click.BadParameter(f"'{name}={text}' is not {form}") from None
    return values


def constants(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, float]:
    """The numbers in `N=5,fast=true`, by name; true is 1, and false is 0."""
    words = {"true": "1", "false": "0"}
    return pairs(
        ctx, option, tuple(re.sub(r"(?<==)\s*(true|false)\b", lambda word: words[word[1]], text) for text in texts)
    )


def _keep_scale(ctx: click.Context, option: click.Parameter, text: str | None) -> None:
    """Keeps the scale in the context, for the one place that reads models."""
    if text is not None:
        try:
            ctx.meta[_SCALE_KEY] = text if text == "units" else float(text)
        except ValueError:
            raise click.BadParameter(f"'{text}' is not a number of molecules, such as 1000, and not 'units'") from None


def given_scale() -> float | str | None:
    """The scale of amounts that the command line gives, if it gives one."""
    context = click.get_current_context(silent=True)
    scale: float | str | None = None if context is None else context.meta.get(_SCALE_KEY)
    return scale


def ranges_or_numbers(
    ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, st.Range | float]:
    """The ranges in `a=1:2,b=0.1:10:log,c=5`, by name, and the numbers of parameters that are fixed."""
    return {name: _range_or_number(name, text) for name, text in texts_by_name(_items(texts), _RANGE).items()}


def _range_or_number(name: str, text: str) -> st.Range | float:
    *ends, last = (part.strip() for part in text.split(":"))
    scale = last if last in ("log", "linear") else ""
    try:
        numbers = [float(part) for part in (ends if scale else [*ends, last])]
        if len(numbers) == 1 and not scale:
            return numbers[0]
        low, high = numbers
        return st.Range(low, high, "log" if scale == "log" else "linear")
    except SpaceError as error:
        raise click.BadParameter(f"'{name}={text}': {error}") from None
    except ValueError:
        raise click.BadParameter(f"'{name}={text}' is not {_RANGE}") from None


def _ranges(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, st.Range]:
    values = ranges_or_numbers(ctx, option, texts)
    for name, value in values.items():
        if isinstance(value, float):
            raise click.BadParameter(f"{name} has one value and does not vary: write {_RANGE}, or fix it with --at")
    return {name: value for name, value in values.items() if not isinstance(value, float)}


def _or_default(ctx: click.Context, option: click.Parameter, value: float | None) -> float | Literal["default"]:
    return "default" if value is None else value


def written(ctx: click.Context, option: click.Parameter, file: str | None) -> str | None:
    """The name of a file to write; what is wrong with it is said before a long run, not after."""
    if file is not None:
        if option.name == "plot" and not file.lower().endswith((".svg", ".pdf", ".png")):
            raise click.BadParameter(f"{file!r} is not a figure: end the name in .svg, .pdf or .png")
        if not os.path.isdir(folder := os.path.dirname(file) or "."):
            raise InputError(f"cannot write {file}: there is no folder {folder}")
    return file


def target_option(
    holds: str, metavar: str, *, required: bool = False, text: str = "The file to write."
) -> Callable[[FC], FC]:
    """The option -o for a file that holds a posterior, a guarantee or a study, whose suffix the metavar shows."""
    suffix = os.path.splitext(metavar)[1]

    def checked(ctx: click.Context, option: click.Parameter, file: str | None) -> str | None:
        if file is not None and not file.lower().endswith(suffix):
            raise click.BadParameter(f"{file!r} is to hold a {holds}: end the name in {suffix}")
        return written(ctx, option, file)

    return click.option("-o", "--output", "target", required=required, callback=checked, metavar=metavar, help=text)


def property_option(text: str, *, required: bool = False, several: bool = False) -> Callable[[FC], FC]:
    """The option -p: a formula, or a property of a file."""
    return click.option(
        "-p",
        "--property",
        "texts" if several else "text",
        required=required,
        multiple=several,
        metavar="FORMULA|FILE[:NAME]",
        help=text,
    )


def as_option(command: click.Command | None, name: str, value: str | None) -> str:
    """An argument of the library as the command line names it; as in Python where the command has no such option."""
    parameters = {parameter.name: parameter for parameter in (command.params if command else ())}
    if (name, value) == ("confidence", "None") and "marginal" in parameters:
        return "--marginal"
    parameter = parameters.get(name) or parameters.get(_OTHERWISE.get(name, name))
    if isinstance(parameter, click.Argument):
        return (parameter.metavar or name.upper()).strip("[]")
    if not isinstance(parameter, click.Option):
        return name if value is None else f"{name}={value}"
    option = max(parameter.opts, key=len)
    if value is None or parameter.is_flag:
        return option
    try:
        literal = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return f"{option} {parameter.metavar}"  # such as Space(...)
    if isinstance(literal, dict):
        values = {key: "..." if each is ... else each for key, each in literal.items()}
        return f"{option} {','.join(f'{key}={each}' for key, each in values.items())}"
    return f"{option} {literal}"


@contextmanager
def usage(**names: str) -> Iterator[None]:
    """Makes an error about an argument of the library one about the usage of the command; `names` are its options."""
    try:
        yield
    except InputError as error:
        command = click.get_current_context().command
        words = error.worded(lambda name, value: names.get(name) or as_option(command, name, value))
        raise click.UsageError(words) from None


def given(ctx: click.Context, names: tuple[str, ...]) -> list[str]:
    """Those of these options that are on the command line, as they are written there."""
    options = {option.name: max(option.opts, key=len) for option in ctx.command.params}
    return [options[name] for name in names if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT]


def check_once(vary: Mapping[str, object], at: Mapping[str, object]) -> None:
    """Refuse a parameter that is given a range and a value."""
    if twice := [name for name in at if name in vary]:
        raise click.UsageError(f"{twice[0]} is in --vary and in --at: either it varies or it is fixed")


def check_files(files: Mapping[str, str | None]) -> None:
    """Refuse to read and write one file under two options, or to write it twice."""
    seen: dict[str, str] = {}
    for option, file in files.items():
        if file is not None and (other := seen.setdefault(os.path.realpath(file), option)) != option:
            raise click.UsageError(f"{other} and {option} are the same file, {file}; give them different names")


def _without_code(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        ctx.with_resource(watching_code(refuse_code))


def on_option(command: FC) -> FC:
    """The options --on and --insecure, which `pool_here` opens."""

    def keep(ctx: click.Context, option: click.Parameter, value: object) -> None:
        ctx.meta[f"sateen {option.name}"] = value

    kept: dict[str, Any] = {"expose_value": False, "callback": keep}
    insecure = click.option(
        "--insecure", is_flag=True, help="Allow --on tcp://… beyond this machine, where anyone may listen.", **kept
    )
    on = click.option(
        "--on",
        metavar="ADDRESS",
        envvar="SATEEN_ON",
        help="Workers that do the work: local:4, tls://host:8786, dask:scheduler.json; or here, for none.",
        **kept,
    )
    return on(insecure(command))


def pool_here(default: str | None = None) -> Pool | None:
    """What --on names, or else a study (`default`), opened until the command ends; None for nothing."""
    ctx = click.get_current_context()
    address, said = ctx.meta.get("sateen on"), "--on"
    if address is None:
        address, said = default, "[run] on"
    elif ctx.get_parameter_source("on") is ParameterSource.ENVIRONMENT:
        said = "SATEEN_ON"
    with usage(executor=said):
        pool = ctx.with_resource(opened(address, insecure=bool(ctx.meta.get("sateen insecure"))))
    if page := getattr(pool, "dashboard", ""):
        click.echo(f"what the workers do: {page}", err=True)
    return pool


AT: Final = click.option(
    "--at", multiple=True, callback=pairs, metavar="a=1,b=2", help="Values of parameters; repeatable."
)
VARY: Final = click.option(
    "--vary", multiple=True, callback=_ranges, metavar="a=0:1", help="A range, or a=0.1:10:log; repeatable."
)
_CONSTANTS: Final = click.option(
    "--const",
    "constants",
    multiple=True,
    callback=constants,
    metavar="N=5,T=2",
    help="Constants that a PRISM model or a property leaves open; repeatable.",
)
_SCALE: Final = click.option(
    "--scale",
    callback=_keep_scale,
    expose_value=False,  # `load_model` asks for it by `given_scale`
    metavar="N",
    help="Molecules in a unit of amount of SBML or Antimony, or `units`.",
)


def CONST(command: FC) -> FC:
    """The options of every command that reads a model."""
    return _CONSTANTS(_SCALE(command))


SEED: Final = click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="The random seed; the same seed gives the same result.",
)
END: Final = click.option("--end", type=float, metavar="T", help="Read the formula on the path cut at time T.")
MAX_EVENTS: Final = click.option(
    "--max-events", type=COUNT, default=1_000_000, metavar="N", help="A run is undecided after N jumps."
)
OBSERVATIONS: Final = click.option(
    "--observations", callback=written, metavar="FILE", help="Keep the observations, as .csv or else .safetensors."
)
PLOT: Final = click.option("--plot", callback=written, metavar="FILE", help="Draw it as .svg, .pdf or .png.")
LEVEL: Final = click.option(
    "--level", type=float, callback=_or_default, metavar="L", help="The share of θ that is covered; by default 0.9."
)
CONFIDENCE: Final = click.option(
    "--confidence",
    type=float,
    callback=_or_default,
    metavar="C",
    help="The share of calibrations that reach the level; for lift, by default 0.95.",
)
MARGINAL: Final = click.option(
    "--marginal", is_flag=True, help="Without confidence: on average over calibrations, which is narrower."
)
NO_CODE: Final = click.option(
    "--no-code",
    "code",
    is_flag=True,
    is_eager=True,  # before the options that name code
    expose_value=False,
    callback=_without_code,
    help="Refuse to run code of yours: a learner that is not sateen's own.",
)
JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
