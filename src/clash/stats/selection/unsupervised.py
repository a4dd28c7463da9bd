"""Posteriors of models of the votes alone, calibrated by the available labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.dawid_skene import WEAK, dawid_skene, one_coin, refits
from clash.stats.latent.fit import vote_share
from clash.stats.latent.identifiability import informative_judges
from clash.stats.latent.ising import IsingPriors, fit_ising
from clash.stats.latent.multiclass import ClassPatterns, dawid_skene_classes
from clash.stats.latent.patterns import MISSING, TIE, Patterns
from clash.stats.logistic import log_odds, sigmoid
from clash.stats.selection.expert_pool import ANCHOR, PoolLabels, Readings, pool
from clash.stats.selection.penalised_regression import binomial

if TYPE_CHECKING:
    from clash.stats.selection.panel import Cells, Evidence
    from clash.stats.typing import Floats, Index

TOLERANCE = 1e-2
"""Gradient per row at which the fit stops: the temperature fitted afterwards makes up for more."""
FEWEST_COMPLETE = 0.5
"""Smallest share of rows on which all judges of the prefix voted: couplings are fitted to these."""
POOL_MODELS = (one_coin, dawid_skene)
MOST_ISING = 7
"""Judges that an Ising model of a prefix may couple."""
_MOST_LABELS = 1_000_000


def dawid_skene_score(cells: Cells, evidence: Evidence) -> Floats:
    """(P, C), log-odds (posteriors, for three classes) of Dawid-Skene on the votes alone.

    Raises:
        StatisticsError: fewer than three judges that vote both ways, or votes that are scores.
    """
    if cells.target == "three":
        return _three_classes(cells, evidence)
    patterns = _patterns(cells, evidence)
    _require(patterns, 3)
    fit = refits(patterns, evidence.votes[None], priors=WEAK, tol=1e-4, max_iter=300)
    return log_odds(fit.posterior[0])[:, None]


def ising_score(cells: Cells, evidence: Evidence) -> Floats:
    """(P, 1), log-odds of the shared-coupling Ising model on the votes alone.

    Raises:
        StatisticsError: fewer than four judges that vote both ways, more than ten, three
            classes, or too many gaps.
    """
    if cells.target == "three":
        raise StatisticsError("the Ising model has two classes")
    if cells.values.shape[1] > MOST_ISING:
        raise StatisticsError(f"couplings are fitted for at most {MOST_ISING} judges")
    patterns = _patterns(cells, evidence)
    complete = patterns.present.all(axis=1) & (evidence.votes > 0)
    complete_patterns = Patterns(
        patterns.votes[complete],
        patterns.labels[complete],
        evidence.votes[complete],
        np.arange(int(complete.sum())),
    )
    if complete_patterns.weight < FEWEST_COMPLETE * evidence.votes.sum():
        raise StatisticsError("most rows lack a vote of some judge")
    _require(complete_patterns, 4)
    groups = [0] * patterns.n_judges
    fit = fit_ising("ising-shared", complete_patterns, groups, priors=IsingPriors(), tol=TOLERANCE)
    # Gaps are summed out once, after the fit, which they would slow down twentyfold.
    return log_odds(fit.posterior(patterns.votes))[:, None]


def pool_readings(cells: Cells, evidence: Evidence) -> Floats:
    """(P, 3 + K), what the expert pool reads of each pattern: log-odds of three readings, then votes.

    The readings are those that are fitted in milliseconds, since a calibrator fits its map anew
    wherever it is used: the vote share, one-coin and Dawid-Skene. One without a fit is the share.

    Raises:
        StatisticsError: the target is not a side, or votes are scores.
    """
    if cells.target != "binary":
        raise StatisticsError("the expert pool is for labels that name one of two sides")
    patterns = _patterns(cells, evidence)
    share = log_odds(vote_share(patterns))
    columns = [share]
    for model in POOL_MODELS:
        try:
            _require(patterns, 3)
            columns.append(log_odds(model(patterns).pattern_posterior))
        except StatisticsError:
            columns.append(share)
    return np.column_stack([*columns, patterns.spins])


def pool_map(scores: Floats, evidence: Evidence) -> Floats:
    """(P, 1), the expert pool on the labels: :mod:`clash.stats.selection.expert_pool`.

    Only counts by pattern are known here: every labelled row is taken for a group of its own.
    """
    readings = Readings((ANCHOR, "one-coin", "dawid-skene"), scores[:, :3], scores[:, 3:])
    rows, y = _rows_of(evidence)
    labels = PoolLabels(rows, y, np.arange(len(rows)))
    rng = np.random.default_rng(0)  # the same map wherever a calibrator is used
    return pool(readings, labels, rng, cross_fit=False).p[:, None]


def _rows_of(evidence: Evidence) -> tuple[Index, Floats]:
    """Labelled rows from counts: the pattern of each, and its target; a share is one row's."""
    if not evidence.n.sum() <= _MOST_LABELS:
        raise StatisticsError(f"the pool of experts takes {_MOST_LABELS:,} labels at most")
    rows, y = [], []
    for pattern in np.flatnonzero(evidence.n > 0):
        n, s = float(evidence.n[pattern]), float(evidence.s[pattern, 0])
        n_ones, fraction = int(s), s - int(s)
        targets = [1.0] * n_ones + [fraction] * (fraction > 0)
        targets += [0.0] * int(n - n_ones - (fraction > 0))
        rows += [pattern] * len(targets)
        y += targets
    return np.array(rows, np.intp), np.array(y, np.float64)


def temper_odds(odds: Floats, evidence: Evidence) -> Floats:
    """(P, 1), log-odds scaled (the temperature; it may be negative) and shifted to the labels.

    The shift is for panels on which the model of the votes splits the rows differently than the labels
    do: without it such a posterior could only be flattened to 1/2.
    """
    spread = np.sqrt(np.average(odds[:, 0] ** 2, weights=evidence.votes)) or 1.0
    return sigmoid(binomial(odds / spread, evidence.n, evidence.s[:, 0]))[:, None]


def _patterns(cells: Cells, evidence: Evidence) -> Patterns:
    values = cells.values
    missing = np.isnan(values)
    if not np.isin(values[~missing], (0.0, 0.5, 1.0)).all():
        raise StatisticsError("this model does not apply to votes that are scores")
    votes = np.select([missing, values == 0.5, values == 1.0], [MISSING, TIE, 1], 0)
    n = len(values)
    return Patterns(
        votes.astype(np.int8), np.full(n, MISSING, np.int8), evidence.votes, np.arange(n)
    )


def _require(patterns: Patterns, fewest: int) -> None:
    if len(informative_judges(patterns)) < fewest:
        raise StatisticsError(f"needs {fewest} different judges that vote both ways")


def _three_classes(cells: Cells, evidence: Evidence) -> Floats:
    values = cells.values
    codes = np.where(np.isnan(values), MISSING, np.nan_to_num(values) * 2).astype(np.int8)
    if not np.isin(values[~np.isnan(values)], (0.0, 0.5, 1.0)).all():
        raise StatisticsError("this model does not apply to votes that are scores")
    n = len(codes)
    patterns = ClassPatterns(
        codes, np.full(n, MISSING, np.int8), evidence.votes, np.arange(n), 3, (0, 1, 2)
    )
    fit = dawid_skene_classes(patterns, tol=1e-4, max_iter=300)
    return fit.pattern_posterior
