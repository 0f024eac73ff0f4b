"""The command `certify`: a certificate that a region is right, in a file that anyone can check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import sateen as st
from sateen.cli import options as shared
from sateen.cli.deciding import (
    ABOVE,
    BAND,
    BELOW,
    BUDGET,
    FOLDER,
    STORE,
    WORKERS,
    check_decides,
    from_study,
    is_study,
    refuse_study_options,
    saying_what_is_stored,
)
from sateen.cli.output import show
from sateen.cli.progress import Bar
from sateen.cli.sources import caps_of, load_learned, load_study, question_of

if TYPE_CHECKING:
    from sateen.decision.planning import CertificatePlan

_OF_CELLS: Final = ("monotone", "undecided", "cells", "seconds")


def _signs(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    """The directions in `k1=+,k2=-`, by name."""
    form = "NAME=+ or NAME=-, such as beta=+"
    signs = shared.texts_by_name((item for text in texts for item in text.split(",")), form)
    if wrong := [f"{name}={sign}" for name, sign in signs.items() if sign not in ("+", "-")]:
        raise click.BadParameter(f"{wrong[0]!r} is not {form}")
    return signs or None


@click.command()
@click.argument("file", metavar="STUDY.toml|POSTERIOR.safetensors")
@ABOVE
@BELOW
@BAND
@shared.target_option("certificate", "FILE.certificate")
@click.option(
    "--by", type=click.Choice(["fresh", "cells"]), default="fresh", show_default=True, help="The method of proof."
)
@click.option("--wrong", type=float, metavar="W", help="The share of the region that may be wrong; by default 0.01.")
@click.option("--confidence", type=float, metavar="C", help="The confidence in that; by default 0.95.")
@click.option("--tolerance", type=float, metavar="T", help="Claim f >= P - T, or f <= P + T, which is cheaper.")
@click.option(
    "--monotone",
    multiple=True,
    callback=_signs,
    metavar="k1=+,k2=-",
    help="Declare that f never falls (+) or never rises (-) in a parameter; for cells.",
)
@click.option("--attempt", type=shared.COUNT, metavar="K", help="The number of this attempt; by default 1.")
@BUDGET
@click.option(
    "--undecided",
    type=float,
    metavar="U",
    help="For cells: the share of the space that may stay undecided; by default 0.05.",
)
@click.option("--cells", type=shared.COUNT, metavar="N", help="For cells: the largest number of bounds to compute.")
@click.option("--seconds", type=float, metavar="S", help="For cells: how long they may take.")
@click.option("--dry-run", is_flag=True, help="Print what it would cost, and spend nothing.")
@shared.SEED
@STORE
@FOLDER
@WORKERS
@shared.on_option
@shared.NO_CODE
@shared.JSON
@click.pass_context
def certify(
    ctx: click.Context,
    /,
    file: str,
    above: float | None,
    below: float | None,
    level: float | None,
    target: str | None,
    dry_run: bool,
    seed: int,
    store: str | None,
    folder: str | None,
    workers: int | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Certify that the probability is at least, or at most, P on the region where the posterior in a file puts it.

    By fresh points, for any model: with the given confidence, all but a share --wrong of the region is right; nothing
    is said about one single parameter. By cells, for finite chains: every parameter of the certified part is right. The
    certificate goes to a file that `sateen check-certificate` checks. If you try again, say so with --attempt.

    \b
    sateen certify sir.safetensors --below 0.1 --dry-run
    sateen certify sir.safetensors --below 0.1 --wrong 0.01 --confidence 0.95 -o sir.certificate
    sateen certify sir.safetensors --below 0.1 --by cells --undecided 0.1 -o sir.certificate
    """
    options = {name: value for name, value in asked.items() if value is not None}
    if is_study(file):
        if dry_run:
            _show_plan(file, _study_plan(file, folder), as_json)
            return
        _, decision = from_study(ctx, file, "certificate", folder, workers, ("target",))
        certificate = decision.certificate
        assert certificate is not None
        if target is not None:
            certificate.save(target)
    else:
        refuse_study_options(ctx)
        certificate = _fresh(ctx, file, above, below, level, target, dry_run, seed, store, workers, as_json, options)
        if certificate is None:
            return
    files = [target] if target else []
    show(
        as_json,
        lambda: {"file": file, **_content(certificate), "files": files},
        lambda: [file, str(certificate), *_flag_lines(certificate), *files],
    )


def _fresh(
    ctx: click.Context,
    file: str,
    above: float | None,
    below: float | None,
    level: float | None,
    target: str | None,
    dry_run: bool,
    seed: int,
    store: str | None,
    workers: int | None,
    as_json: bool,
    options: Mapping[str, Any],
) -> st.Certificate | None:
    """The certificate of what a file holds; none where only its cost is asked for."""
    if options["by"] == "fresh" and (strangers := shared.given(ctx, _OF_CELLS)):
        raise click.UsageError(f"{strangers[0]} is for --by cells")
    if (above is None) == (below is None):
        raise click.UsageError("which threshold? Give one of --above P and --below P")
    if target is None and not dry_run:
        raise click.UsageError("give -o FILE.certificate, where it goes; or --dry-run")
    learned = load_learned(file)
    regions = st.decide(learned, above=above, below=below, level=level, seed=seed)
    training = regions.posterior.training.observations
    model, formula = question_of(training, "certify it from Python, where the model is available: st.certify")
    if dry_run:
        if options["by"] == "cells":
            raise click.UsageError("--dry-run: cells make no runs; bound them with --seconds or --cells")
        names = ("wrong", "confidence", "tolerance", "attempt", "budget")
        planned = st.plan_certificate(regions, seed=seed, **{name: options[name] for name in names if name in options})
        _show_plan(file, planned, as_json)
        return None
    with saying_what_is_stored(store):
        made = st.certify(
            regions,
            model,
            formula,
            seed=seed,
            store=store,
            workers=workers,
            executor=shared.pool_here(),
            progress=Bar(),
            **caps_of(training),
            **options,
        )
    assert target is not None
    made.save(target)
    return made


def _study_plan(file: str, folder: str | None) -> CertificatePlan:
    """What the certificate of a study will cost, if its refinement is there."""
    from sateen.study.decisions import planned_certificate
    from sateen.study.stages import study_tasks

    study = load_study(file, folder)
    check_decides(study, file, "certificate")
    assert study.decide is not None
    tasks = study_tasks(study, study.folder if folder is None else Path(folder))
    decision = tasks.properties[study.decide.about].decision
    assert decision is not None
    return planned_certificate(study, decision)


def _show_plan(file: str, plan: CertificatePlan, as_json: bool) -> None:
    from dataclasses import asdict

    show(as_json, lambda: {"file": file, "plan": asdict(plan)}, lambda: [file, str(plan), "nothing was spent"])


def _content(certificate: st.Certificate) -> dict[str, object]:
    from sateen.study.decided import certificate_content

    return certificate_content(certificate)


def _flag_lines(certificate: st.Certificate) -> Iterator[str]:
    """The points at which the claim was not shown."""
    from sateen.cli.deciding import values_line
    from sateen.study.decided import flags_of

    if flags := flags_of(certificate):
        yield f"not shown at {len(flags)} of the points:"
        for flag in flags[:20]:
            theta = {name: value for name, value in flag.items() if name != "runs"}
            yield f"  {values_line(theta)}, after {int(flag['runs']):,} runs"
        if len(flags) > 20:
            yield f"  and {len(flags) - 20:,} more, which the file has"
