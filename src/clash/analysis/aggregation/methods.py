"""The methods by name, each as a function of collapsed votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.aggregation.ising_methods import FORMS, RidgeChoice, fit_ising
from clash.errors import StatisticsError
from clash.stats.latent.dawid_skene import DawidSkene, dawid_skene, one_coin, position_bias
from clash.stats.latent.factor import factor, factor_family
from clash.stats.latent.factor_laplace import factor_laplace
from clash.stats.latent.fit import LatentFit
from clash.stats.latent.model_selection import select
from clash.stats.latent.patterns import TIE, Patterns, collapse
from clash.stats.latent.temperature_scaling import blend, temper, temperature
from clash.stats.latent.vote_counting import majority, weighted_majority
from clash.stats.logistic import log_odds, sigmoid
from clash.stats.selection.expert_pool import FEWEST, PoolLabels, pool, read_without_labels
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.typing import Floats
    from clash.votes.binary import MethodTable


Fitter = Callable[[Patterns], LatentFit]
POSITION = "position-bias"
WEIGHTED_MAJORITY = "weighted-majority"
BORDA = "borda"
POTTS = "potts"
_MOST_SHOWN, _MOST_NAMED = 20, 3
FAMILIES = ("ising-family", "factor-family")
EXPERT_POOL = "expert-pool"
APART = 0.05
"""Share of items decided otherwise from which an optimum is another reading."""


def method_names() -> list[str]:
    """The names that ``--method`` takes."""
    plain = list(_fitters(None))
    at = plain.index("factor")
    specs = [*plain[:at], *FORMS, *plain[at:], POSITION, WEIGHTED_MAJORITY, BORDA, POTTS]
    return ["auto", *specs, EXPERT_POOL]


def _fitters(families: Sequence[object] | None) -> dict[str, Fitter]:
    family_of = families if families is not None else []
    return {
        "majority": majority,
        "one-coin": one_coin,
        "dawid-skene": dawid_skene,
        "factor": factor,
        "factor-2": partial(factor, rank=2),
        "factor-3": partial(factor_laplace, rank=3),
        "factor-family": partial(factor_family, families=family_of),
    }


@dataclass(frozen=True)
class MethodFit:
    """The fit of a method; ``p`` is null where the method was refused.

    Attributes:
        scale: by what labels multiply the log-odds of the votes alone; null where none was used.
        is_cross_fitted: ``p`` of a labelled row did not see its label.
    """

    method: str
    p: Floats | None
    fit: LatentFit | None = None
    selected: str | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    refusal: str | None = None
    notes: tuple[str, ...] = ()
    scale: float | None = None
    is_cross_fitted: bool = False


MethodRunner = Callable[[Patterns], MethodFit]


def method_runner(
    name: str,
    table: MethodTable,
    seed: int,
    weights: Floats | None = None,
    ridge: RidgeChoice = None,
) -> MethodRunner:
    """The method of that name, as a function of patterns alone.

    Args:
        name: of :func:`method_names`.
        table: the votes.
        seed: of the folds of cross-validation.
        weights: (J,), of the weighted majority; by default those that one-coin implies.
        ridge: on the couplings of the Ising models.
    """
    if name == WEIGHTED_MAJORITY:
        return partial(_fit_weighted, weights=weights)
    if name == BORDA:
        return _fit_borda
    if name == POTTS:
        return _refuse_two_sides
    if name == "auto":
        return partial(_fit_auto, table=table, seed=seed)
    if name == EXPERT_POOL:
        return partial(_fit_pool, table=table, seed=seed)
    if name == POSITION:
        return partial(_fit_position_bias, table=table)
    if name in FAMILIES and table.families is None:
        return partial(_refuse, name)
    if name in FORMS:
        return partial(_fit_ising, name, table=table, ridge=ridge, seed=seed)
    fitter = _fitters(table.families)[name]
    return partial(_fit_tempered, name, fitter)


def _refuse(name: str, patterns: Patterns) -> MethodFit:  # noqa: ARG001 - a rule takes patterns
    raise StatisticsError("the votes do not say which family each judge is of")


def _refuse_two_sides(patterns: Patterns) -> MethodFit:  # noqa: ARG001 - a rule takes patterns
    raise StatisticsError(
        "a model of three outcomes: --ties outcome; of two sides it is ising-shared"
    )


def _fit_position_bias(patterns: Patterns, *, table: MethodTable) -> MethodFit:  # noqa: ARG001 - copies, not patterns, know their order
    copies = table.presentation_rows
    if copies is None:
        raise StatisticsError("the votes do not say in which order the responses were shown")
    if table.ties == "half" and (copies.codes == TIE).any():
        raise StatisticsError("this model cannot use ties: --ties missing leaves them out")
    fit = temper(position_bias(copies.codes, copies.is_reversed))
    odds = log_odds(fit.patterns.expand(blend(fit)))
    # An item seen in both orders was judged twice by the same judges: their mean, not their sum.
    count = np.bincount(copies.row, minlength=len(table.items))
    p = sigmoid(np.bincount(copies.row, odds, minlength=len(table.items)) / count)
    return MethodFit(POSITION, p, fit, warnings=fit.warnings)


def _fit_borda(patterns: Patterns) -> MethodFit:
    """With two sides the better one earns a point and a tie half: that is the majority."""
    method_fit = _fit_tempered("majority", majority, patterns)
    return replace(
        method_fit, method=BORDA, notes=("with two sides the Borda count equals the majority",)
    )


def _fit_weighted(patterns: Patterns, *, weights: Floats | None) -> MethodFit:
    """Equation 12: the sum of the votes, each times the log-odds of its judge's accuracy."""
    if weights is None:
        law = one_coin(patterns).parameters
        # It weighs votes of 0 and 1, which are twice the log-odds apart.
        weights = law.weights / 2 if isinstance(law, DawidSkene) else np.ones(patterns.n_judges)
    fit = weighted_majority(patterns, weights)
    if fit.parameters is not None:
        fit = replace(fit, temperature=temperature(fit.parameters, patterns))
    listing = ", ".join(f"{weight:.2f}" for weight in weights[:_MOST_SHOWN].tolist())
    more = ", …" if len(weights) > _MOST_SHOWN else ""
    notes = (f"weights of the judges, in the order of their names: {listing}{more}",)
    return MethodFit(WEIGHTED_MAJORITY, patterns.expand(blend(fit)), fit, notes=notes)


def _fit_tempered(name: str, fitter: Fitter, patterns: Patterns) -> MethodFit:
    fit = temper(fitter(patterns))
    p = fit.item_posterior if name == "majority" else patterns.expand(blend(fit))
    return MethodFit(name, p, fit, warnings=fit.warnings, notes=_readings(fit))


def _readings(fit: LatentFit) -> tuple[str, ...]:
    """Other optima of a fit that decide otherwise."""
    best_start = next((start for start in fit.starts if start.name == fit.start), None)
    return tuple(
        f"another solution (from {start.name}) decides {start.differs:.0%} of the items "
        "differently; penalised log-likelihood an item "
        f"{(start.objective - best_start.objective) / fit.patterns.weight:+.3f}"
        for start in fit.starts
        if best_start is not None and start.differs >= APART
    )


def _fit_ising(
    name: str, patterns: Patterns, *, table: MethodTable, ridge: RidgeChoice, seed: int
) -> MethodFit:
    fit, notes = fit_ising(name, patterns, table, ridge, seed)
    return MethodFit(name, patterns.expand(blend(fit)), fit, warnings=fit.warnings, notes=notes)


def _fit_auto(patterns: Patterns, *, table: MethodTable, seed: int) -> MethodFit:
    labels = patterns.labels[patterns.inverse] if table.uses_labels else None
    selection = select(
        table.codes,
        rng=np.random.default_rng(seed),
        families=table.families,
        labels=labels,
        ties=table.ties,
        groups=table.groups,
    )
    return MethodFit(
        "auto",
        selection.item_posterior,
        selection.fit,
        selected=selection.method,
        reason=selection.reason,
        warnings=selection.warnings,
    )


def enough_labels(table: MethodTable) -> bool:
    """Whether the labels that name a side are enough for the expert pool; copies count once."""
    return len(np.unique(table.groups[table.decisive])) >= FEWEST


def refuse_labels(patterns: Patterns) -> MethodFit:  # noqa: ARG001 - a rule takes patterns
    """The expert pool where labels are left out."""
    raise StatisticsError("it reads labels, and they are left out (--no-labels)")


def _fit_pool(patterns: Patterns, *, table: MethodTable, seed: int) -> MethodFit:  # noqa: ARG001 - labels by row, not by pattern
    rows = np.flatnonzero(table.decisive)
    if not enough_labels(table):
        raise StatisticsError(f"needs {FEWEST} labels that name a side, there are {len(rows)}")
    rng = np.random.default_rng(seed)
    readings = read_without_labels(
        table.codes, rng, families=table.families, ties=table.ties, groups=table.groups
    )
    # Folds are drawn by the names of items: the order of lines in a file says nothing.
    order = np.argsort(table.groups_by_name[rows], kind="stable")
    rows = rows[order]
    fit = pool(readings, PoolLabels(rows, table.truth[rows], table.groups_by_name[rows]), rng)
    p = fit.p.copy()
    p[rows] = fit.held_out
    votes = collapse(table.codes, ties=table.ties)
    first = np.unique(votes.inverse, return_index=True)[1]
    heaviest = [fit.names[i] for i in np.argsort(-fit.weights, kind="stable")[:_MOST_NAMED]]
    return MethodFit(
        EXPERT_POOL,
        p,
        LatentFit(EXPERT_POOL, votes, None, fit.p[first], None, 0, fit.converged),
        selected=EXPERT_POOL,
        reason=f"{plural(len(rows), 'label')} correct what the votes alone say",
        notes=(
            f"{plural(len(rows), 'label')} weigh the experts, the heaviest {', '.join(heaviest)}; "
            f"they multiply auto's log-odds by {fit.scale:.2f}; p of a labelled row did not see "
            "its label",
        ),
        scale=fit.scale,
        is_cross_fitted=True,
    )


def attempt(name: str, method: MethodRunner, patterns: Patterns) -> MethodFit:
    """Run a method; a refusal is a result."""
    try:
        return method(patterns)
    except StatisticsError as refusal:
        return MethodFit(name, None, refusal=str(refusal))
