"""How alike judges vote: correlations, blocs, and judges that cannot be told from copies."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats

LEAST_VARIANCE = 1e-12
LEAST_ERROR = 1e-9
"""Bootstrap error below which a difference does not vary at all: the rest is rounding."""
ROOM = 0.35
"""Share of the room above the median correlation by which the judges of a bloc exceed it."""
GAP = 0.15
"""Drop in the correlation with a model's classes that sets the judges who carry it apart."""
CLOSE = 0.7
"""Mean correlation from which interchangeable judges count as copies: 92% right each, were they
independent."""
BORNE_OUT = 0.5
"""Share of what judges that err alone would have in common with the others that copies may have at most."""
REPLICATES, LEVEL = 60, 0.05
"""Bootstrap replicates behind the errors of correlations, and the level of the test on them."""


def vote_correlations(patterns: Patterns, counts: Floats | None = None) -> Floats:
    """Correlations of the judges' votes, shape (K, K), over the items both voted on.

    NaN where two share no items, or one of them never varies on those. A tie is a spin of 0.

    Args:
        patterns: the votes.
        counts: of the patterns, shape (n_patterns,), in place of their own.
    """
    spins, present = patterns.spins, patterns.present.astype(np.float64)
    weight = (patterns.counts if counts is None else counts)[:, None]
    together = np.maximum((weight * present).T @ present, 1e-300)
    mean = (weight * spins).T @ present / together
    variance = (weight * spins**2).T @ present / together - mean**2
    covariance = (weight * spins).T @ spins / together - mean * mean.T
    product = variance * variance.T
    defined_pairs = (product > LEAST_VARIANCE) & (together > 1e-200)
    out = np.full_like(covariance, np.nan)
    np.divide(
        covariance, np.sqrt(np.where(defined_pairs, product, 1.0)), out=out, where=defined_pairs
    )
    return out


def mean_correlation(patterns: Patterns) -> float:
    """Mean correlation between two judges' votes, weighted by the items both voted on; 0 if none."""
    present = patterns.present.astype(np.float64)
    together = (patterns.counts[:, None] * present).T @ present
    upper = np.triu_indices(patterns.n_judges, 1)
    values, weight = vote_correlations(patterns)[upper], together[upper]
    is_defined = ~np.isnan(values)
    return (
        float(np.average(values[is_defined], weights=weight[is_defined]))
        if is_defined.any()
        else 0.0
    )


def correlated_blocs(patterns: Patterns) -> tuple[int, ...]:
    """A group for each judge: branches of a tree of correlations that stand out from the rest.

    Average linkage, cut where the correlation falls below the median by less than
    :data:`ROOM` of what is left to 1. Good judges among bad ones look like a bloc as well: what
    explains the votes better, a bloc or a class, is for the likelihood to say.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    if patterns.n_judges < 2:
        return (0,) * patterns.n_judges
    values = vote_correlations(patterns.without_ties())[np.triu_indices(patterns.n_judges, 1)]
    if np.isnan(values).all():
        return tuple(range(patterns.n_judges))
    median = float(np.nanmedian(values))
    tree = linkage(1 - np.where(np.isnan(values), median, values), "average")
    cut = 1 - (median + ROOM * (1 - median))
    return tuple(fcluster(tree, cut, "distance").tolist())


def class_carriers(patterns: Patterns, p: Floats) -> tuple[int, ...]:
    """The judges that a model's classes hang on, if some stand apart from the rest; else none.

    Args:
        patterns: the votes.
        p: shape (n_patterns,), the model's P(truth = 1).

    Returns:
        The columns above the widest gap in the correlations between votes and p, where it is
        at least :data:`GAP`.
    """
    along = np.array([correlation_with(patterns, p, judge) for judge in range(patterns.n_judges)])
    order = np.argsort(-along)
    drops = -np.diff(along[order])
    if not len(drops) or drops.max() < GAP:
        return ()
    return tuple(sorted(order[: int(drops.argmax()) + 1].tolist()))


def correlation_with(patterns: Patterns, p: Floats, judge: int) -> float:
    """Correlation of a judge's votes with P(truth = 1); 0 where either does not vary."""
    weight = patterns.counts * patterns.present[:, judge]
    if not weight.any():
        return 0.0
    share = weight / weight.sum()
    vote, truth = patterns.spins[:, judge], p
    vote, truth = vote - share @ vote, truth - share @ truth
    spread = float((share @ vote**2) * (share @ truth**2))
    return float(share @ (vote * truth)) / spread**0.5 if spread > LEAST_VARIANCE else 0.0


def are_near_copies(patterns: Patterns, judges: Sequence[int], rng: np.random.Generator) -> bool:
    """Whether these judges agree closely and cannot be told from copies of one another.

    Copies vote 1 equally often and correlate equally with every other judge; independent judges
    of different skill do not. The judges are copies if the largest of these differences, in
    bootstrap errors, is below what as many differences reach one time in twenty.

    Args:
        patterns: the votes.
        judges: at least two columns.
        rng: for the bootstrap.
    """
    patterns = patterns.without_ties()  # copies may tie on their own
    within = vote_correlations(patterns)[np.ix_(judges, judges)][np.triu_indices(len(judges), 1)]
    if not np.nanmean(within) >= CLOSE:
        return False
    estimate = _contrasts(patterns, patterns.counts, judges)
    replicates = np.stack(
        [_contrasts(patterns, c, judges) for c in patterns.resample(REPLICATES, rng)]
    )
    largest, n_contrasts = largest_contrast(estimate, replicates)
    return largest < contrast_threshold(n_contrasts, LEVEL)


def are_borne_out(patterns: Patterns, judges: Sequence[int], rng: np.random.Generator) -> bool:
    """Whether the other judges agree with these as they would if these erred alone.

    What two others have in common is then the class that these see: within times between others is
    the product of what either has in common with these (Spearman's tetrads). Copies of one source
    err together, and the product is smaller by the square of the source's correlation with the class.

    Args:
        patterns: the votes.
        judges: those that agree closely; there must be two others, or nothing bears them out.
        rng: for the bootstrap.

    Returns:
        Whether the product exceeds :data:`BORNE_OUT` of that by one bootstrap standard error.
    """
    patterns, members = patterns.without_ties(), list(judges)
    outsiders = [k for k in range(patterns.n_judges) if k not in members]
    pairs, own_pairs = np.triu_indices(len(outsiders), 1), np.triu_indices(len(members), 1)

    def excess(counts: Floats) -> float:
        correlations = np.nan_to_num(vote_correlations(patterns, counts))
        within = correlations[np.ix_(members, members)][own_pairs]
        along = correlations[np.ix_(members, outsiders)].mean(axis=0)
        between = correlations[np.ix_(outsiders, outsiders)][pairs]
        product = (along[:, None] * along)[pairs]
        return float((product - BORNE_OUT * within.mean() * between).sum())

    replicates = [excess(counts) for counts in patterns.resample(REPLICATES, rng)]
    return excess(patterns.counts) > float(np.std(replicates, ddof=1))


def largest_contrast(estimate: Floats, replicates: Floats) -> tuple[float, int]:
    """The largest of some differences, in bootstrap standard errors, and how many there were.

    Differences that are undefined anywhere or do not vary are left out; 0 and 1 where all are.

    Args:
        estimate: shape (c,).
        replicates: shape (B, c), bootstrap values.
    """
    is_defined = np.isfinite(replicates).all(axis=0) & np.isfinite(estimate)
    error = replicates[:, is_defined].std(axis=0, ddof=1)
    varying = error > LEAST_ERROR
    if not varying.any():
        return 0.0, 1
    size = np.abs(estimate[is_defined][varying]) / error[varying]
    return float(size.max()), len(size)


def contrast_threshold(n_contrasts: int, level: float) -> float:
    """What the largest of as many normal differences exceeds with at most this probability.

    Bonferroni: the differences are correlated, and a bound that allows for any correlation errs
    towards taking judges for copies.
    """
    return NormalDist().inv_cdf(1 - level / (2 * n_contrasts))


def _contrasts(patterns: Patterns, counts: Floats, judges: Sequence[int]) -> Floats:
    """Vote rates and correlations with every other judge, less their mean over these judges."""
    members = list(judges)
    outsiders = [k for k in range(patterns.n_judges) if k not in members]
    across = vote_correlations(patterns, counts)[np.ix_(members, outsiders)]
    n_votes = np.maximum(counts @ patterns.present, 1e-300)
    rates = (counts @ patterns.for_one / n_votes)[members]
    return np.concatenate([(across - across.mean(axis=0)).ravel(), rates - rates.mean()])
