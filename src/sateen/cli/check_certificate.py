"""The command `check-certificate`: every number is recomputed, and some of the runs are repeated."""

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
@click.option("--all", "everything", is_flag=True, help="Make every run again, not only N counts.")
@click.option(
    "--choice", type=click.IntRange(0), metavar="N", help="A number that you choose; it selects what is replayed."
)
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
    """Check a certificate that you were given: recompute every number in it, and make some of its runs again. For a
    certificate by cells, recompute every bound, and check that the cells fill the certified region.

    The exit code is 1 if something does not agree. The output says what a replay of only some runs can miss.

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
