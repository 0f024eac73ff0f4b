"""The command `serve`: a web app on this machine that shows f as it is learned."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from sateen.cli.output import say
from sateen.core.errors import InputError
from sateen.core.extras import install_command
from sateen.core.registry import load_object
from sateen.learning.registry import find_learner

_MISSING: Final = "sateen serve needs Starlette and uvicorn, which are not installed"
_SERVER: Final = "sateen.serve.app:serve"
_CODE: Final = ".py:"


@click.command()
@click.argument("target", metavar="[FOLDER | MODEL | STUDY.toml | FILE.py:NAME]", default=".")
@click.option(
    "--learner", "learners", metavar="MODULE:CLASS", multiple=True, help="Allow a learner of your own, which is code."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; by default one that is free.")
@click.option("--browser/--no-browser", default=True, help="Open the app in the browser.", show_default=True)
def serve(target: str, learners: tuple[str, ...], port: int, browser: bool) -> None:
    """Show how the probability depends on the parameters, in a web app on this machine, while runs are made.

    The app shows models and studies below FOLDER, by default the current one, and keeps what it learns there. Only
    programs on this machine can reach it, and only with the token in the address that is printed; over ssh, use `ssh -L
    PORT:127.0.0.1:PORT` with --port. Python code, a function or a learner, is run only if it is named here, or by the
    study that is named.

    \b
    sateen serve
    sateen serve examples/sir.toml
    sateen serve --port 8765 --no-browser
    """
    from sateen.serve.files import Folder

    for each in learners:
        find_learner(each)  # whose code is not run
    folder, name, allowed, named = _read(target)
    try:
        run: Callable[..., None] = load_object(_SERVER)  # type: ignore[assignment]
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise InputError(_MISSING, remedy=f"install them with  {install_command('serve')}") from None

    def announce(address: str) -> None:
        say(f"serving {folder.resolve()}; Ctrl-C ends it")
        click.echo(address)
        if browser:
            webbrowser.open(address)

    run(Folder(folder, allowed, tuple(dict.fromkeys((*learners, *named)))), name, port, announce)


def _read(target: str) -> tuple[Path, str | None, tuple[str, ...], tuple[str, ...]]:
    """The folder, what in it is to be opened, and which black boxes and learners may run."""
    if _CODE in target:
        file, _, name = target.rpartition(":")
        path = Path(file)
        if not path.is_file():
            raise InputError(f"there is no file {file}")
        address = f"{path.name}:{name}"
        return path.parent, address, (address,), ()
    path = Path(target)
    if path.is_dir():
        return path, None, (), ()
    if not path.is_file():
        raise InputError(f"there is no file or folder {target}")
    return path.parent, path.name, *_code_of(path)


def _code_of(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The black box and the learners, each by its address, of a study that the command line names."""
    if path.suffix.lower() != ".toml":
        return (), ()
    import sateen as st

    study = st.Study.load(path)
    return (study.address,) if study.address else (), tuple(name for name in study.learners if ":" in name)
