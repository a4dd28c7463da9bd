"""Which law describes the votes: independent judges, coupled judges, or a shared factor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, mean_clustered
from clash.stats.latent.cross_validation import fit_all, score_by_refits
from clash.stats.latent.dawid_skene import dawid_skene
from clash.stats.latent.factor import factor
from clash.stats.latent.ising import ising_class, ising_family, ising_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.latent.cross_validation import HeldOutScores
    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats, Index

CI = "independent (CI)"
MOST_COUPLED, MOST_BY_CLASS = 15, 12
"""Judges up to which the fully coupled models are refitted for every fold."""


@dataclass(frozen=True, slots=True)
class ModelScore:
    """How a law of the votes fares.

    Attributes:
        name: the model.
        n_params: free parameters.
        log_likelihood: of all votes (and given labels).
        bic: Bayesian information criterion, smaller is better.
        held_out: mean held-out log-likelihood of an item.
        gain: held-out log-likelihood of an item over that of independent judges, paired.
        refusal: why it was not fitted, or empty; the numbers are then None.
    """

    name: str
    n_params: int | None = None
    log_likelihood: float | None = None
    bic: float | None = None
    held_out: float | None = None
    gain: Interval | None = None
    refusal: str = ""


def compare_models(
    patterns: Patterns,
    fold: Index,
    *,
    families: Sequence[object] | None = None,
    clusters: Index | None = None,
) -> tuple[ModelScore, ...]:
    """CI, Ising and factor models side by side, each by BIC and on held-out items.

    Args:
        patterns: the votes, with labels where known.
        fold: shape (n_items,), the fold in which each item is held out.
        families: the family of each judge; adds the family-block model.
        clusters: shape (n_items,), for the intervals of the gains.
    """
    models: dict[str, Callable[..., LatentFit]] = {CI: dawid_skene}
    if families is not None:
        models["Ising within families"] = partial(ising_family, families=families)
    models |= {
        "Ising, shared couplings": partial(_fit_up_to, ising_shared, MOST_COUPLED),
        "Ising, couplings by class": partial(_fit_up_to, ising_class, MOST_BY_CLASS),
        "latent factor": factor,
    }
    fits, refusals = fit_all(models, patterns)
    held_out = {
        name: score_by_refits(name, models[name], fit, patterns, fold) for name, fit in fits.items()
    } | refusals
    base = held_out[CI].scores
    return tuple(_score(name, fits.get(name), held_out[name], base, clusters) for name in models)


def _score(
    name: str,
    fit: LatentFit | None,
    held_out: HeldOutScores,
    base: Floats | None,
    clusters: Index | None,
) -> ModelScore:
    if fit is None or held_out.scores is None:
        return ModelScore(name, refusal=held_out.refusal)
    return ModelScore(
        name,
        fit.n_params,
        fit.log_likelihood,
        fit.bic,
        held_out.mean,
        None if base is None else mean_clustered(held_out.scores - base, clusters),
    )


def cluster_folds(clusters: Index, n_folds: int, rng: np.random.Generator) -> Index:
    """A random fold for each cluster, spread over its items; shape (n_items,)."""
    n_clusters = int(clusters.max()) + 1
    return np.asarray((rng.permutation(n_clusters) % n_folds)[clusters], dtype=np.intp)


def _fit_up_to(
    fit: Callable[..., LatentFit],
    most: int,
    patterns: Patterns,
    **options: Any,  # noqa: ANN401 - passed on
) -> LatentFit:
    if patterns.n_judges > most:
        raise StatisticsError(f"refitted for every fold only up to {most} judges")
    return fit(patterns, **options)
