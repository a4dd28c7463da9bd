from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import environment, print_json, print_line
from clash.cli.observer import TerminalObserver
from clash.cli.options import (
    AsJson,
    ConfigFile,
    EnvFile,
    Looks,
    Method,
    MinConfidence,
    Models,
    PanelName,
    Seed,
    Sequential,
    Until,
)

if TYPE_CHECKING:
    from clash.analysis.prereg import FrozenRegistration


def prereg(
    prompts: Annotated[
        Path | None, typer.Argument(help="The prompts file; default: that of clash.yaml.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write the frozen plan to.")
    ] = Path("prereg.json"),
    models: Models = None,
    panel: PanelName = None,
    method: Method = None,
    min_confidence: MinConfidence = None,
    outcome: Annotated[
        str, typer.Option("--outcome", help="points, wins or concordance.")
    ] = "points",
    primary: Annotated[
        str | None, typer.Option("--primary", help="The candidate whose outcome is tested.")
    ] = None,
    effect: Annotated[
        float, typer.Option("--effect", help="Smallest difference of interest.")
    ] = 0.10,
    alpha: Annotated[float, typer.Option("--alpha", help="Two-sided error rate.")] = 0.05,
    power: Annotated[float, typer.Option("--power", help="Power to plan for.")] = 0.80,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Number of prompts to judge; default: all.")
    ] = None,
    until: Until = None,
    sequential: Sequential = "always-valid",
    looks: Looks = 5,
    note: Annotated[
        str | None, typer.Option("--note", help="Any other commitment, in words.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Only check that this plan has not been changed.")
    ] = None,
    config: ConfigFile = None,
    env_file: EnvFile = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Preregister: fix panel, outcome and stopping rule before the data, and freeze them by a hash.

    `clash prereg prompts.yaml --panel supreme-court` · `clash eval … --prereg prereg.json`
    """
    from clash.analysis.prereg import read
    from clash.collect.resolve import read_config
    from clash.pipeline.prereg import StudyPlan, register

    if check is not None:
        _print_plan(read(check), check, as_json=as_json)
        return
    settings = {
        "candidates": [m.strip() for m in models.split(",") if m.strip()] if models else None,
        "panel": panel,
        "aggregate.method": method,
        "aggregate.min_confidence": min_confidence,
        "seed": seed,
    }
    study = StudyPlan(
        outcome,
        primary,
        effect,
        alpha,
        power,
        until or "fixed",
        sequential if until else None,
        looks if until else None,
        note,
    )
    plan = register(
        study,
        read_config(config, settings),
        environment(env_file, None),
        TerminalObserver(quiet=True),
        out,
        prompts=prompts,
        n=n,
    )
    _print_plan(plan, out, as_json=as_json)


def _print_plan(registration: FrozenRegistration, path: Path, *, as_json: bool) -> None:
    from clash.analysis.prereg import stopping

    if as_json:
        print_json({**registration.as_json(), "path": str(path)})
        return
    plan = registration.plan
    lines = [
        f"{len(plan.panel)} judges, {plan.method}; {plan.outcome}"
        + (f" of {plan.primary}" if plan.primary else ""),
        f"{plan.items} prompts; {100 * plan.effect:g} points, alpha {plan.alpha:g},"
        f" power {plan.power:.0%}; stopping: {stopping(plan)}",
        f"frozen {registration.frozen_at}, sha256 {registration.sha256}",
        f"plan: {path}; check a run against it with `clash eval … --prereg {path}`",
    ]
    for line in lines:
        print_line(line)
