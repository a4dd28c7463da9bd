"""The methods by name, each as a function of collapsed votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.auto import select
from clash.stats.latent.dawid_skene import dawid_skene, one_coin, position_bias
from clash.stats.latent.factor import factor, factor_family
from clash.stats.latent.fit import LatentFit, log_odds, sigmoid
from clash.stats.latent.ising import ising_class, ising_family, ising_shared
from clash.stats.latent.majority import majority
from clash.stats.latent.patterns import TIE, Patterns
from clash.stats.latent.temper import blend, temper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clash.analysis.aggregation.table import Table

    Floats = NDArray[np.float64]

Fitter = Callable[[Patterns], LatentFit]
POSITION = "position-bias"
FAMILIES = ("ising-family", "factor-family")


def known_methods() -> list[str]:
    """The names that ``--method`` takes."""
    return ["auto", *_fitters(None), POSITION]


def _fitters(families: Sequence[object] | None) -> dict[str, Fitter]:
    named = families if families is not None else []
    return {
        "majority": majority,
        "one-coin": one_coin,
        "dawid-skene": dawid_skene,
        "ising-shared": ising_shared,
        "ising-class": ising_class,
        "ising-family": partial(ising_family, families=named),
        "factor": factor,
        "factor-family": partial(factor_family, families=named),
    }


@dataclass(frozen=True)
class Fitted:
    """What a method made of the votes; ``p`` is null where it was refused."""

    method: str
    p: Floats | None
    fit: LatentFit | None = None
    selected: str | None = None
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    refusal: str | None = None


Rule = Callable[[Patterns], Fitted]


def rule(name: str, table: Table, seed: int) -> Rule:
    """The method of that name, as a function of patterns alone."""
    if name == "auto":
        return partial(_auto, table=table, seed=seed)
    if name == POSITION:
        return partial(_by_position, table=table)
    if name in FAMILIES and table.families is None:
        return partial(_refuse, name)
    fitter = _fitters(table.families)[name]
    return partial(_tempered, name, fitter)


def _refuse(name: str, patterns: Patterns) -> Fitted:  # noqa: ARG001 - a rule takes patterns
    raise StatisticsError("the votes do not say which family each judge is of")


def _by_position(patterns: Patterns, *, table: Table) -> Fitted:  # noqa: ARG001 - copies, not patterns, know their order
    shown = table.shown
    if shown is None:
        raise StatisticsError("the votes do not say in which order the responses were shown")
    if table.ties == "half" and (shown.codes == TIE).any():
        raise StatisticsError("ties have no place in this model: --ties missing leaves them out")
    fit = temper(position_bias(shown.codes, shown.swapped))
    odds = log_odds(fit.patterns.expand(blend(fit)))
    # An item seen in both orders was judged twice by the same judges: their mean, not their sum.
    count = np.bincount(shown.row, minlength=len(table.items))
    p = sigmoid(np.bincount(shown.row, odds, minlength=len(table.items)) / count)
    return Fitted(POSITION, p, fit, warnings=fit.warnings)


def _tempered(name: str, fitter: Fitter, patterns: Patterns) -> Fitted:
    fit = temper(fitter(patterns))
    p = fit.item_posterior if name == "majority" else patterns.expand(blend(fit))
    return Fitted(name, p, fit, warnings=fit.warnings)


def _auto(patterns: Patterns, *, table: Table, seed: int) -> Fitted:
    labels = patterns.labels[patterns.inverse] if table.given else None
    found = select(
        table.codes,
        rng=np.random.default_rng(seed),
        families=table.families,
        labels=labels,
        ties=table.ties,
        groups=table.groups,
    )
    return Fitted(
        "auto",
        found.item_posterior,
        found.fit,
        selected=found.selected,
        reason=found.reason,
        warnings=found.warnings,
    )


def attempt(name: str, method: Rule, patterns: Patterns) -> Fitted:
    """Run a method; a refusal is a result."""
    try:
        return method(patterns)
    except StatisticsError as refusal:
        return Fitted(name, None, refusal=str(refusal))
