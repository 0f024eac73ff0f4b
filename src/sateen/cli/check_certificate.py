"""The command `check-certificate`: every number recomputed, and a part of the runs made again."""

from __future__ import annotations

from dataclasses import asdict

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.output import show
from sateen.cli.progress import Bar
from sateen.cli.sources import reading
from sateen.core.errors import InputError


@click.command()
@click.argument("file", metavar="FILE.certificate")
@click.option(
    "--replay", type=click.IntRange(0), default=50, show_default=True, metavar="N", help="Make N counts again."
)
@click.option("--all", "everything", is_flag=True, help="Make every run again.")
@click.option("--choice", type=click.IntRange(0), metavar="N", help="A number of yours that chooses what is replayed.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Also repeat the whole test with a seed of your own.")
@shared.NO_CODE
@shared.JSON
@click.pass_context
def check_certificate(
    ctx: click.Context,
    /,
    file: str,
    replay: int,
    everything: bool,
    choice: int | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Check a certificate, whoever made it: every number is recomputed, and some of its runs are made again. Of cells,
    every bound is recomputed, and that they fill what is certified.

    The exit code is 1 where something does not agree. What a replay of some runs can miss is said.

    \b
    sateen check-certificate sir.certificate
    sateen check-certificate sir.certificate --replay 500 --choice 8123
    sateen check-certificate sir.certificate --all --seed 5
    """
    with reading(file):
        loaded: object = st.load(file)
    if not isinstance(loaded, st.Certificate):
        raise InputError(f"{file} holds no certificate, but a {type(loaded).__name__}")
    found = loaded.check(replay, everything, seed, Bar(), choice=choice)
    claim = {"claim": loaded.claim.content(), "as_asked": loaded.holds}
    told = {**asdict(found), "repeated": found.repeated and found.repeated.content()}
    show(as_json, lambda: {"file": file, **claim, **told}, lambda: [f"{file}: {loaded}", "", str(found)])
    if not found.holds:
        ctx.exit(1)
