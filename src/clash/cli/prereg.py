from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from clash.cli.options import AsJson, ConfigFile, EnvFile, Seed

if TYPE_CHECKING:
    from clash.analysis.prereg import FrozenRegistration, Registration


def prereg(
    prompts: Annotated[
        Path | None, typer.Argument(help="The prompts file; default: that of clash.yaml.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the frozen plan is written.")
    ] = Path("prereg.json"),
    models: Annotated[
        str | None, typer.Option("--models", "-m", help="Candidates: provider/model,…")
    ] = None,
    panel: Annotated[
        str | None, typer.Option("--panel", "-p", help="Name or file of the panel.")
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="How judgments become verdicts.")
    ] = None,
    outcome: Annotated[
        str, typer.Option("--outcome", help="points, wins or concordance.")
    ] = "points",
    primary: Annotated[
        str | None, typer.Option("--primary", help="The candidate that the outcome is of.")
    ] = None,
    effect: Annotated[
        float, typer.Option("--effect", help="Smallest difference of interest.")
    ] = 0.10,
    alpha: Annotated[float, typer.Option("--alpha", help="Two-sided error rate.")] = 0.05,
    power: Annotated[float, typer.Option("--power", help="Power planned for.")] = 0.80,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Prompts to judge; default: all of the file.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help='Stopping rule, as "ci<0.1"; default: all, once.')
    ] = None,
    sequential: Annotated[
        str, typer.Option("--sequential", help="always-valid, obrien-fleming or pocock.")
    ] = "always-valid",
    looks: Annotated[
        int, typer.Option("--looks", min=1, max=50, help="Looks of --until, evenly spaced.")
    ] = 5,
    note: Annotated[
        str | None, typer.Option("--note", help="Anything else that binds you.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Only check that this plan was not changed.")
    ] = None,
    config: ConfigFile = None,
    env_file: EnvFile = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Write down panel, outcome and stopping rule before the data, and freeze them by a hash.

    `clash prereg prompts.yaml --panel supreme-court` · `clash eval … --prereg prereg.json`
    """
    from clash.analysis import prereg as registry
    from clash.errors import InputError
    from clash.files import run_files
    from clash.store.manifest import now

    if check is not None:
        _tell(registry.read(check), check, as_json=as_json)
        return
    if out.exists():
        raise InputError(
            "is there already, and a frozen plan is not overwritten",
            path=out,
            hint="choose another --out",
        )
    overrides: dict[str, Any] = {
        "candidates": [m.strip() for m in models.split(",") if m.strip()] if models else None,
        "panel": panel,
        "aggregate.method": method,
        "seed": seed,
    }
    about = {
        "outcome": outcome,
        "primary": primary,
        "effect": effect,
        "alpha": alpha,
        "power": power,
        "stopping": until or "fixed",
        "sequential": sequential if until else None,
        "looks": looks if until else None,
        "note": note,
    }
    plan = _registration(prompts, config, overrides, env_file, about, n)
    frozen = registry.freeze(plan, now())
    text = json.dumps(frozen.as_json(), indent=1, ensure_ascii=False) + "\n"
    run_files.replace(out, text.encode("utf-8"))
    _tell(frozen, out, as_json=as_json)


def registration_of(path: Path | None) -> FrozenRegistration | None:
    """The plan that a run is to be held to.

    Raises:
        InputError: it is none, or was changed after it was frozen.
    """
    from clash.analysis.prereg import read

    return None if path is None else read(path)


def _registration(
    prompts: Path | None,
    config: Path | None,
    overrides: dict[str, Any],
    env_file: Path | None,
    about: dict[str, Any],
    n: int | None,
) -> Registration:
    from clash.analysis.prereg import OUTCOMES, Registration, Seat
    from clash.cli.common import environment
    from clash.cli.observer import TerminalObserver
    from clash.collect.resolve import read_config
    from clash.errors import ConfigError
    from clash.pipeline.prepare import prepare
    from clash.pipeline.stopping import parse_rule

    if about["outcome"] not in OUTCOMES:
        raise ConfigError(
            f"no outcome {about['outcome']!r}", field="--outcome", hint=", ".join(OUTCOMES)
        )
    if about["stopping"] != "fixed":
        parse_rule(about["stopping"], cast("str", about["sequential"]))
    environ, observer = environment(env_file, None), TerminalObserver(quiet=True)
    prepared = prepare(read_config(config, overrides), environ, observer, prompts=prompts)
    plan, blinding = prepared.plan, prepared.plan.config.blinding
    candidates = {*(c.id for c in plan.candidates), *prepared.prompts.candidates}
    if about["primary"] is not None and about["primary"] not in candidates:
        raise ConfigError(
            f"no candidate {about['primary']!r}",
            field="--primary",
            hint=f"one of {', '.join(sorted(candidates))}",
        )
    return Registration(
        **about,
        panel=[Seat(id=j.id, model=j.model, role=j.role, weight=j.weight) for j in plan.judges],
        quorum=plan.quorum,
        method=plan.config.aggregate.method,
        tie_break=plan.config.aggregate.tie_break,
        candidates=sorted(candidates),
        items=n or len(plan.items),
        prompts=prepared.prompts.sha256,
        criteria=plan.config.criteria.mode,
        both_orders=blinding.both_orders,
        per_judge=blinding.per_judge,
        seed=plan.config.seed,
    )


def _tell(found: FrozenRegistration, path: Path, *, as_json: bool) -> None:
    from clash.analysis import prereg as registry
    from clash.cli.common import print_json, stdout

    if as_json:
        print_json({**found.as_json(), "path": str(path)})
        return
    plan = found.plan
    lines = [
        f"{len(plan.panel)} judges, {plan.method}; {plan.outcome}"
        + (f" of {plan.primary}" if plan.primary else ""),
        f"{plan.items} prompts; {100 * plan.effect:g} points, alpha {plan.alpha:g},"
        f" power {plan.power:.0%}; stopping: {registry.stopping(plan)}",
        f"frozen {found.frozen_at}, sha256 {found.sha256}",
        f"plan: {path}; hold a run to it with `clash eval … --prereg {path}`",
    ]
    for line in lines:
        stdout().print(line, soft_wrap=True, markup=False)
