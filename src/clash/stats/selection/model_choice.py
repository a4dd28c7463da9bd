"""Choose from the menu on validation rows: weights for all candidates, or the best of them.

With few labels the best of hundreds of candidates is best partly by luck. The average of all,
weighted by how each predicted held-out rows, is better than most of them, and better calibrated than
any. Where a single candidate must be deployed, a *guard* asks for evidence before it replaces *home*,
the candidate to beat: majority, or the first choice of a prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import ratio_variance
from clash.stats.selection.candidate_methods import MethodFitter, on_most_judges
from clash.stats.selection.families import FAMILY_MEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.blocks import RowRoles
    from clash.stats.selection.candidate_methods import CandidateMethod, SelectionSettings
    from clash.stats.selection.metrics import Loss
    from clash.stats.selection.panel import PanelVotes
    from clash.stats.typing import Bools, Floats, Index

FEW, FIRM, EASY = 200, 2.0, 1.0
"""Labelled sources below which the guard is firm, and standard errors that either guard asks.

A hundred rows that choose one of hundreds of candidates flatter the winner: the largest of M
normal errors is up to sqrt(2 log M) of them on average (3.4 for M = 300), less as far as candidates
of one menu err together. With more sources an error is a smaller loss, and so is a wrong choice.
"""
DRAWS = 200
"""Bayesian bootstrap draws of the sources."""
PRIOR_SHARE = 1 / 3
"""Weight, before any label, of majority, of the average of families on the whole panel, and of
everything else together."""
DEPLOYED_SHARE = 0.99
"""Share of the weight that is deployed; the tail of the menu would cost time and change nothing."""


@dataclass(frozen=True)
class ModelChoice:
    """A choice from the menu, and the validation losses behind it.

    Attributes:
        candidates: the menu.
        losses: (M, n), loss of each candidate on each validation row; NaN where it was refused.
        rows: (n,), the validation rows.
        weights: (M,), of each candidate in the deployed model; all on one where one is deployed.
        heaviest: index of the candidate with the most weight.
        best: index of the candidate with the least risk, deployed or not.
        gain: mean loss of majority minus that of the best.
        gain_se: its standard error, clustered by source.
        n_validation: sources in one validation block, for theorem 1.
    """

    candidates: Sequence[CandidateMethod]
    losses: Floats = field(repr=False)
    rows: Index = field(repr=False)
    weights: Floats = field(repr=False)
    heaviest: int
    best: int
    gain: float
    gain_se: float
    n_validation: int

    @property
    def risks(self) -> Floats:
        """(M,), mean loss; NaN where refused."""
        return np.asarray(self.losses.mean(axis=1))

    @property
    def validation_risk(self) -> float:
        """Weighted mean loss of the deployed: an upper bound of the loss of their mean, by convexity."""
        has_weight = self.weights > 0
        return float(self.weights[has_weight] @ self.risks[has_weight])

    @property
    def candidate(self) -> CandidateMethod:
        """The deployed candidate, or the heaviest of several."""
        return self.candidates[self.heaviest]

    @property
    def refused_best(self) -> bool:
        """Whether the guard kept the best from being deployed on its own."""
        return float(self.weights[self.heaviest]) == 1.0 and self.heaviest != self.best

    def best_of(self, indices: Sequence[int]) -> int | None:
        """The one of these candidates with the least risk; None where all were refused."""
        risks = self.risks[list(indices)]
        return None if np.isnan(risks).all() else int(indices[int(np.nanargmin(risks))])


def choose(
    panel: PanelVotes,
    roles: Sequence[RowRoles],
    votes: Floats,
    settings: SelectionSettings,
    rng: np.random.Generator,
    fitter: MethodFitter | None = None,
) -> ModelChoice:
    """Choose from the menu on the validation rows of all rotations.

    Args:
        panel: the panel.
        roles: rotations.
        votes: (P,), rows of each pattern whose votes models of votes alone may use.
        settings: the menu.
        rng: of random paths, and of the bootstrap behind the weights.
        fitter: of the same panel and settings, for its cached scores.

    Raises:
        StatisticsError: not even majority can be fitted.
    """
    fitter = fitter or MethodFitter(panel, settings)
    candidates = settings.candidates(panel.n_judges)
    parts = [_rotation(panel, role, votes, fitter, candidates, rng) for role in roles]
    losses = np.concatenate([part.losses for part in parts], axis=1)
    row_credits = np.concatenate([part.credits for part in parts], axis=1)
    rows = np.concatenate([role.validation for role in roles])
    risks = losses.mean(axis=1)
    if np.isnan(risks).all():
        raise StatisticsError("no candidate method can be fitted to these votes")
    best = int(np.nanargmin(risks))
    groups = panel.group[rows]
    usable = ~np.isnan(risks)
    if settings.combine == "one":
        home = _home(candidates, usable, settings)
        weights = _weight_one(losses, row_credits, groups, best, home, settings)
    else:
        prior_shares = prior_weights(candidates, usable, settings.prior)
        weights = posterior_weights(losses, groups, prior_shares, settings.loss, rng)
    gain, error = clustered_mean(losses[0] - losses[best], groups)
    sizes = [len(np.unique(panel.group[role.validation])) for role in roles]
    heaviest = int(np.argmax(weights))
    return ModelChoice(candidates, losses, rows, weights, heaviest, best, gain, error, min(sizes))


def _home(candidates: Sequence[CandidateMethod], usable: Bools, settings: SelectionSettings) -> int:
    """Index of the candidate to beat: majority, or the prior's first usable family."""
    names = [name for name, _ in settings.prior or ()]
    indices = (on_most_judges(candidates, usable, name) for name in names)
    return next((index for index in indices if index is not None), 0)


def _weight_one(
    losses: Floats,
    row_credits: Floats,
    groups: Index,
    best: int,
    home: int,
    settings: SelectionSettings,
) -> Floats:
    """(M,), all weight on the candidate that passes the guard."""
    guard = settings.guard
    if guard == -np.inf:
        index = best
    elif guard is None and settings.prior is not None:
        index = published_guard(losses, groups, home, best)
    else:
        usual = FIRM if len(np.unique(groups)) < FEW else EASY
        index = _paired_guard(losses, row_credits, groups, usual if guard is None else guard, home)
    weights = np.zeros(len(losses))
    weights[index] = 1.0
    return weights


def _paired_guard(
    losses: Floats, row_credits: Floats, groups: Index, errors: float, home: int
) -> int:
    """The candidate with the least risk if its gain over home exceeds the noise; else home.

    With d_i = loss_home,i - loss_first,i the paired difference of row i, the gain is the mean of d
    and its error the clustered standard error of that mean; the winner must have

        gain > errors * error

    An easy guard (``errors`` up to ``EASY``) considers only candidates whose verdicts are right as
    often as home's. A firm one considers all, and also tests the winner's verdicts, by one standard
    error of the paired difference in credit: of hundreds of candidates some are right more often by
    luck, and a better probability is no reason to overturn verdicts.

    The guard of the paper (appendix C.2, :func:`published_guard`) asks that the one-error intervals of
    the two risks do not overlap, a gain above error(home) + error(first). That is never less than
    the error of the difference (the triangle inequality for standard deviations), and far more where
    the same rows are hard for both. For verdicts, with b rows won and c lost of n in sources of their
    own, gain over error is (b - c) / sqrt(b + c - (b - c)^2 / n), nearly the root of McNemar's
    chi-square; where no verdict changes, both sides of the test are 0 and it passes.
    """
    firm = errors > EASY
    usable = ~np.isnan(losses).any(axis=1)
    if not firm:
        usable &= row_credits.mean(axis=1) >= row_credits[home].mean() - 1e-12
    first = int(np.argmin(np.where(usable, losses.mean(axis=1), np.inf)))
    gain, error = clustered_mean(losses[home] - losses[first], groups)
    more, noise = clustered_mean(row_credits[first] - row_credits[home], groups)
    is_better = gain > errors * error and (not firm or more >= noise)
    return first if is_better else home


@dataclass(frozen=True)
class _ValidationScores:
    """Losses and credits of all candidates on one rotation's validation rows.

    Attributes:
        losses: (M, n), of each candidate on each row; NaN where refused.
        credits: (M, n), credit of its verdicts, which only the guard uses; else (0, n).
    """

    losses: Floats
    credits: Floats


def _rotation(
    panel: PanelVotes,
    role: RowRoles,
    votes: Floats,
    fitter: MethodFitter,
    candidates: Sequence[CandidateMethod],
    rng: np.random.Generator,
) -> _ValidationScores:
    """Fit the menu on selection and calibration rows, and score it on validation rows."""
    settings = fitter.settings
    selection = panel.rows(role.selection).evidence(panel.n_patterns)
    paths = fitter.paths(selection, len(role.calibration), rng)
    evidence = panel.rows(role.calibration).evidence(panel.n_patterns, votes)
    validation = panel.rows(role.validation)
    predictions = fitter.predictions(candidates, paths, evidence)
    losses = np.full((len(predictions), len(validation.pattern)), np.nan)
    row_credits = losses[:0] if settings.combine == "average" else losses.copy()
    for i, p in enumerate(predictions):
        if p is not None:
            losses[i] = validation.losses(p, settings.loss)
            if len(row_credits):
                row_credits[i] = validation.credits(p)
    return _ValidationScores(losses, row_credits)


def clustered_mean(values: Floats, groups: Index) -> tuple[float, float]:
    """Mean of the values of rows, (n,), and its standard error, clustered by source.

    The error is infinite where all rows are of one source; both are NaN where a value is.
    """
    names, codes = np.unique(groups, return_inverse=True)
    mean = float(values.mean())
    if len(names) < 2:
        return mean, math.inf
    return mean, math.sqrt(ratio_variance(values - mean, codes, len(names))) / len(values)


def published_guard(losses: Floats, groups: Index, home: int, best: int) -> int:
    """The paper's guard (appendix C.2): leave home only where one-error intervals do not overlap.

    Args:
        losses: (M, n), of each candidate on each validation row.
        groups: (n,), source of each row.
        home: index of the prior's candidate.
        best: index of the candidate with the least risk.

    Returns:
        ``best`` where its upper end is below home's lower end, else ``home``.
    """
    mean, error = clustered_mean(losses[best], groups)
    mean_home, error_home = clustered_mean(losses[home], groups)
    return best if mean + error < mean_home - error_home else home


def selection_penalty(candidates: int, validation: float, delta: float = 0.05) -> float:
    """Theorem 1, equation (3): the most that the chosen candidate's risk exceeds the best one's.

    2 sqrt(log(2 |C| / delta) / (2 n_V)), with probability 1 - delta over a validation block of n_V
    independent rows, for a loss in [0, 1]: Hoeffding's inequality and a union bound over the menu C.
    It holds for any menu, so actual excess risks are far smaller. Infinite without rows or menu.
    """
    if validation <= 0 or candidates <= 0:
        return math.inf
    return 2 * math.sqrt(math.log(2 * candidates / delta) / (2 * validation))


_PER_SOURCE: dict[Loss, float] = {"nll": 1.0, "mse": 2.0}
"""Factor from loss to negative log-likelihood. A squared error counts as in a normal distribution of
variance 1/4, whose negative log-likelihood is 2 (p - y)^2 plus a constant."""


def prior_weights(
    candidates: Sequence[CandidateMethod],
    usable: Bools,
    earlier: Sequence[tuple[str, float]] | None = None,
) -> Floats:
    """(M,), weights before any validation row; 0 where a candidate was refused.

    A third goes to majority, a third to the average of families on the most judges, and a third is
    shared by the menu; this protects against a lucky candidate. The share of a part whose candidates
    are all refused is spread over the rest.

    Args:
        candidates: the menu, majority first.
        usable: (M,), whether a candidate was not refused.
        earlier: families and weights that share the second third instead, each on the most judges.
    """
    weights = np.where(usable, PRIOR_SHARE / max(int(usable.sum()), 1), 0.0)
    if usable[0]:
        weights[0] += PRIOR_SHARE
    for family, weight in earlier or ((FAMILY_MEAN, 1.0),):
        index = on_most_judges(candidates, usable, family)
        if index is not None:
            weights[index] += PRIOR_SHARE * weight
    return np.asarray(weights / weights.sum())


def posterior_weights(
    losses: Floats,
    groups: Index,
    prior: Floats,
    loss: Loss,
    rng: np.random.Generator,
) -> Floats:
    """(M,), pseudo-BMA+: the prior times exp(-total loss), averaged over bootstraps of sources.

    The bootstrap keeps a candidate that won by a few rows from taking all the weight. A source
    counts once, however many rows it has. Source: Yao, Vehtari, Simpson and Gelman, Using Stacking to
    Average Bayesian Predictive Distributions (2018), section 3.4, with validation losses for
    leave-one-out ones.

    Args:
        losses: (M, n), of each candidate on each validation row; NaN where refused.
        groups: (n,), source of each row.
        prior: (M,), 0 where refused.
        loss: the kind of ``losses``.
        rng: of the bootstrap.
    """
    usable = prior > 0
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order[0]] - 1))
    counts = np.diff(np.append(starts, len(order)))
    by_source = np.add.reduceat(losses[usable][:, order], starts, axis=1) / counts
    n = len(starts)
    draws = rng.dirichlet(np.ones(n), DRAWS)
    logs = np.log(prior[usable]) - _PER_SOURCE[loss] * n * (draws @ by_source.T)
    share = np.exp(logs - logs.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    weights = np.zeros(len(prior))
    weights[usable] = share.mean(axis=0)
    return _keep_heaviest(weights)


def _keep_heaviest(weights: Floats) -> Floats:
    """The heaviest, up to ``KEPT`` of the weight."""
    order = np.argsort(-weights, kind="stable")
    n_deployed = int(np.searchsorted(np.cumsum(weights[order]), DEPLOYED_SHARE)) + 1
    heaviest = np.zeros_like(weights)
    heaviest[order[:n_deployed]] = weights[order[:n_deployed]]
    return np.asarray(heaviest / heaviest.sum())
