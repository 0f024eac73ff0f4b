"""The group of commands: failures are sentences, and misspelt names are recognised."""

from __future__ import annotations

import errno
import os
import sys
from typing import IO, Any

import click

from sateen.core.errors import SateenError, nearest

__all__ = ["Commands"]


class _Failure(click.ClickException):
    """Something that ends the program, told on stderr in its own words."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=True)


class _Interrupted(_Failure):
    """Ctrl-C."""

    exit_code = 130


class Commands(click.Group):
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
