"""The command line: it reads, calls, and prints. One file per command.

A command is imported when it is called, so that `sateen --help` answers at once. A new command is a new file and a line
in COMMANDS. Other packages add a click command by an entry point in the group `sateen.commands`.
"""

from __future__ import annotations

import atexit
import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any, Final

import click

from sateen.cli.options import as_option
from sateen.cli.output import say_code, warn, wrapped
from sateen.core.code import watching_code
from sateen.core.errors import InputError, SateenError, SateenWarning, nearest
from sateen.core.printable import printable
from sateen.core.registry import Registry
from sateen.core.version import VERSION

__all__ = ["COMMANDS", "Commands", "main"]

# In the order of the work: where each command is, and its line in the help.
_BUILT_IN: Final = {
    "inspect": ("sateen.cli.inspect:inspect", "Show a model, properties, a study, or what was learned."),
    "init": ("sateen.cli.init:init", "Write a commented study file for a model."),
    "run": ("sateen.cli.run:run", "Run a study: simulate, learn, calibrate, score, report."),
    "merge": ("sateen.cli.merge:merge", "Join the parts of a study that were run separately."),
    "report": ("sateen.cli.report:report", "Write the HTML page and the figures of a result."),
    "simulate": (
        "sateen.cli.simulate:simulate",
        "Make one run of a model, or show the spread of many runs.",
    ),
    "monitor": ("sateen.cli.monitor:monitor", "Check whether a run in a table satisfies a formula."),
    "check": ("sateen.cli.check:check", "Estimate the probability that a run satisfies a formula."),
    "learn": ("sateen.cli.learn:learn", "Learn the probability over a space of parameters."),
    "predict": ("sateen.cli.predict:predict", "Predict the probability at points."),
    "plan": ("sateen.cli.plan:plan", "Plan the runs that a guarantee needs, before making them."),
    "calibrate": ("sateen.cli.calibrate:calibrate", "Give a posterior intervals with a guarantee."),
    "refine": ("sateen.cli.refine:refine", "Run a model where runs tell most about a goal."),
    "decide": ("sateen.cli.decide:decide", "Say where the probability is above a threshold."),
    "certify": ("sateen.cli.certify:certify", "Certify where it is above or below a threshold."),
    "check-certificate": ("sateen.cli.check_certificate:check_certificate", "Check every number in a certificate."),
    "optimise": ("sateen.cli.optimise:optimise", "Find where the probability is largest."),
    "sensitivity": ("sateen.cli.sensitivity:sensitivity", "Say which parameters matter."),
    "bounds": ("sateen.cli.bounds:bounds", "Bound the probability at every parameter."),
    "serve": ("sateen.cli.serve:serve", "Show the probability in a web app, as it is learned."),
    "paper": ("sateen.cli.paper:paper", "Reproduce the paper's tables and figures."),
}
COMMANDS: Final[Registry[object]] = Registry(
    "command", "sateen.commands", {name: address for name, (address, _) in _BUILT_IN.items()}
)


class _Failure(click.ClickException):
    """An error that ends the program; its message goes to stderr as it is."""

    def show(self, file: IO[str] | None = None) -> None:
        click.echo(printable(wrapped(self.message, sys.stderr)), file=file, err=True)


class _Interrupted(_Failure):
    """Ctrl-C."""

    exit_code = 130


class _Terminated(_Failure):
    """SIGTERM, as from `kill`, or from a cluster whose time is over."""

    exit_code = 143


class Commands(click.Group):
    """The commands of the registry. Every error is one sentence, in which arguments are named as options."""

    def invoke(self, ctx: click.Context) -> object:
        terminated: list[int] = []
        try:
            with watching_code(say_code), _plain_warnings(), _heeding_sigterm(terminated):
                return super().invoke(ctx)
        except InputError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand) if ctx.invoked_subcommand else None
            words = error.worded(lambda name, value: as_option(command, name, value))
            raise _Failure(f"{type(error).__name__}: {words}") from None
        except SateenError as error:
            raise _Failure(f"{type(error).__name__}: {error}") from None
        except MemoryError as error:
            reason = f": {error}" if str(error) else ""
            raise _Failure(f"not enough memory{reason}\n  ask for fewer points or workers") from None
        except KeyboardInterrupt:
            if terminated:
                raise _Terminated("terminated") from None
            raise _Interrupted("\n" * sys.stderr.isatty() + "interrupted") from None  # below the ^C of a terminal
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # the reader of the output has closed it: click ends without a message
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (what is left cannot be written)
            raise _Failure(f"{error.filename or 'standard output'}: {error.strerror or error}") from None
        finally:
            atexit.unregister(_ignore_interrupts)  # in tests, one process runs many commands
            atexit.register(_ignore_interrupts)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS.names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        try:
            command = COMMANDS[cmd_name]
        except (ImportError, AttributeError) as error:
            raise InputError(f"the command {cmd_name} cannot be loaded: {error}") from None
        if not isinstance(command, click.Command):
            address = COMMANDS.address(cmd_name)
            raise InputError(f"the command {cmd_name} cannot be loaded: {address} is not a click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS:
            names = COMMANDS.names()
            ctx.fail(f"there is no command {name}; {nearest(name, names) or 'the commands are ' + ', '.join(names)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line per command; none is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _line(name)) for name in COMMANDS.names()])


def _ignore_interrupts() -> None:
    """Ctrl-C no longer counts: the command has ended, and what is left is Python's own end, which may take a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _heeding_sigterm(came: list[int]) -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does, with what is finished kept and said; the list tells that it `came`."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):  # Ctrl-C is ignored, as in the background
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings of sateen are one line on stderr; those of others stay as they are."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, SateenWarning):
                warn(str(message))
            else:
                usual(message, category, *place)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _line(name: str) -> str:
    return _BUILT_IN[name][1] if name in _BUILT_IN else f"Added by {COMMANDS.address(name).partition('.')[0]}."


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 for success, 1 for a problem with the input, 2 for wrong usage, 130 after Ctrl-C. "
    'In JSON an infinite number is the text "inf" or "-inf", and an unknown one null.',
)
@click.version_option(VERSION, prog_name="sateen", message="%(prog)s %(version)s")
def main() -> None:
    """Stochastic models, and the temporal properties of their runs."""
