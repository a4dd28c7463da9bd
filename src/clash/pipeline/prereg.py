"""Preregister a study: freeze its plan before the data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from clash.errors import ConfigError, InputError, one_of
from clash.files import run_files
from clash.pipeline.prepare import prepare
from clash.pipeline.stopping import parse_rule
from clash.store.manifest import now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clash.analysis.prereg import FrozenRegistration, Registration
    from clash.config import Config
    from clash.pipeline.options import Observer


@dataclass(frozen=True)
class StudyPlan:
    """What a registration says beside the configuration of the run.

    Attributes:
        outcome: ``points``, ``wins`` or ``concordance``; ``primary`` the candidate it is of.
        effect: the smallest difference of interest.
        stopping: the stopping rule, or ``fixed``.
        sequential: how looks are paid for; null without a stopping rule, as ``looks`` is.
        note: anything else that binds.
    """

    outcome: str
    primary: str | None
    effect: float
    alpha: float
    power: float
    stopping: str
    sequential: str | None
    looks: int | None
    note: str | None


def register(
    study: StudyPlan,
    config: Config,
    environ: Mapping[str, str],
    observer: Observer,
    path: Path,
    *,
    prompts: Path | None = None,
    n: int | None = None,
) -> FrozenRegistration:
    """Freeze the plan of a study and write it to ``path``.

    Args:
        study: the outcome, and what it takes to find it.
        config: panel, candidates and aggregation.
        environ: where keys and addresses are looked up.
        observer: hears notes of the preparation.
        path: the file; none may be there.
        prompts: the prompts file; null is that of the configuration.
        n: prompts to judge; null is all.

    Raises:
        ConfigError: there is no such outcome, candidate or stopping rule.
        InputError: the file is there already.
    """
    from clash.analysis.prereg import freeze

    if path.exists():
        raise InputError(
            "exists already; a frozen plan is never overwritten",
            path=path,
            hint="choose another --out",
        )
    plan = freeze(_registration(study, config, environ, observer, prompts, n), now())
    text = json.dumps(plan.as_json(), indent=1, ensure_ascii=False) + "\n"
    run_files.replace(path, text.encode("utf-8"))
    return plan


def read_plan(path: Path | None) -> FrozenRegistration | None:
    """The plan that a run is to be held to; null where there is none.

    Raises:
        InputError: the file is no plan, or was changed after it was frozen.
    """
    from clash.analysis.prereg import read

    return None if path is None else read(path)


def _registration(
    study: StudyPlan,
    config: Config,
    environ: Mapping[str, str],
    observer: Observer,
    prompts: Path | None,
    n: int | None,
) -> Registration:
    from clash.analysis.prereg import OUTCOMES, Registration, Seat

    if study.outcome not in OUTCOMES:
        raise ConfigError(
            f"no outcome {study.outcome!r}", field="--outcome", hint=", ".join(OUTCOMES)
        )
    if study.stopping != "fixed" and study.sequential is not None:
        parse_rule(study.stopping, study.sequential)
    run = prepare(config, environ, observer, prompts=prompts)
    plan, blinding = run.plan, run.plan.config.blinding
    candidates = {*(c.id for c in plan.candidates), *run.prompts.candidates}
    if study.primary is not None and study.primary not in candidates:
        raise ConfigError(
            f"no candidate {study.primary!r}",
            field="--primary",
            hint=one_of(study.primary, sorted(candidates)),
        )
    return Registration(
        **asdict(study),
        panel=[Seat(id=j.id, model=j.model, role=j.role, weight=j.weight) for j in plan.judges],
        quorum=plan.quorum,
        method=plan.config.aggregate.method,
        tie_break=plan.config.aggregate.tie_break,
        min_confidence=plan.config.aggregate.min_confidence,
        candidates=sorted(candidates),
        items=n or len(plan.items),
        prompts=run.prompts.sha256,
        criteria=plan.config.criteria.mode,
        both_orders=blinding.both_orders,
        per_judge=blinding.per_judge,
        seed=plan.config.seed,
    )
