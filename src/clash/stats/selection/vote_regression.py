"""What people would say of each row, by a regression on each judge's vote that did not see its label.

Model: label = c + a panel + sum_j b_j vote_j. The slope a of the panel's mean is drawn to 1/2, each
b_j to 0: with few labels it is the panel, with many a least-squares fit. How far the b_j are drawn
is averaged over ``PENALTIES``, weighted by how well each predicts labels that are left out
(n^-1 times the sum of squares to the power of -n / 2, a pseudo-marginal likelihood).

Cross-fitting (Zrnic and Candès, Cross-prediction-powered inference, 2024): labels are predicted by
fits without their fold, so that what the fits leave is not too small, however many judges there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.logistic import softmax

if TYPE_CHECKING:
    from clash.stats.typing import Floats, Index

FOLDS = 10
PENALTIES = (1e9, 32.0, 8.0, 2.0)
"""Labels that the prior of the judges' slopes is worth; the first leaves the panel alone."""
PRIOR_WEIGHTS = (0.5, 1 / 6, 1 / 6, 1 / 6)
PRIOR_POWER, PRIOR_ROWS = 0.5, 4.0
"""The slope on the panel that is assumed before any label, and how many labels it is worth."""
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Predictions (N,): of all rows by the mean of the fits, and of labelled rows without them.

    Attributes:
        everywhere: by fits to all folds but one, averaged.
        held_out: of a labelled row by the fit without its fold; 0 elsewhere.
    """

    everywhere: Floats
    held_out: Floats


def cross_fit(y: Floats, panel: Floats, votes: Floats, weights: Floats, source: Index) -> CrossFit:
    """Fit and predict.

    Args:
        y: (N,), labels in [0, 1]; any finite value where there is none.
        panel: (N,), the panel's mean, in [0, 1].
        votes: (N, J), in [0, 1]; NaN where a judge has none, which then says nothing.
        weights: (N,), of the labelled rows, which sum to 1; 0 elsewhere.
        source: (N,), codes; rows of a source share a fold.
    """
    design = _Design.of(panel, votes)
    rows = np.flatnonzero(weights > 0)
    names, code = np.unique(source[rows], return_inverse=True)
    fold = code % min(FOLDS, len(names))
    held_out, mean = np.zeros(len(y)), np.zeros(design.x.shape[1])
    for k in range(int(fold.max()) + 1):
        inside, outside = rows[fold != k], rows[fold == k]
        theta = design.fit(inside, y[inside], weights[inside])
        held_out[outside] = design.x[outside] @ theta
        mean += weights[outside].sum() * theta
    return CrossFit(np.asarray(design.x @ mean, np.float64), held_out)


@dataclass(frozen=True, slots=True)
class _Design:
    """Columns of the regression.

    Attributes:
        x: (N, 2 + J), one, the panel and the votes, the latter two less their means.
        centre: (2 + J,), the prior's coefficients.
        spread: (2,), variance of the panel's column and mean variance of the votes'.
    """

    x: Floats
    centre: Floats
    spread: tuple[float, float]

    @classmethod
    def of(cls, panel: Floats, votes: Floats) -> _Design:
        has_vote = ~np.isnan(votes)
        means = np.where(has_vote, votes, 0.0).sum(axis=0) / np.maximum(has_vote.sum(axis=0), 1)
        deviations = np.where(has_vote, votes - means, 0.0)
        x = np.column_stack([np.ones(len(panel)), panel - panel.mean(), deviations])
        centre = np.zeros(x.shape[1])
        centre[1] = PRIOR_POWER
        spread = float(panel.var()), float((deviations**2).mean()) if deviations.size else 0.0
        return cls(x, centre, spread)

    def fit(self, rows: Index, y: Floats, weights: Floats) -> Floats:
        """(2 + J,), coefficients by some labels, averaged over the penalties."""
        x, n = self.x[rows], len(rows)
        w = weights * n / weights.sum()
        excess = y - x @ self.centre
        inverses = np.linalg.inv((x * w[:, None]).T @ x + self._ridges())
        thetas = inverses @ (x.T @ (w * excess))
        levers = w * ((x @ inverses) * x).sum(axis=2)
        left_out = (excess - thetas @ x.T) / np.maximum(1 - levers, _TINY)
        scores = np.log(PRIOR_WEIGHTS) - n / 2 * np.log(left_out**2 @ w / n + _TINY)
        mean: Floats = self.centre + softmax(scores) @ thetas
        return mean

    def _ridges(self) -> Floats:
        """(P, 2 + J, 2 + J), diagonal, by penalty."""
        ridges = np.outer(PENALTIES, np.full(len(self.centre), self.spread[1])) + _TINY
        ridges[:, :2] = 0.0, PRIOR_ROWS * self.spread[0] + _TINY
        return np.asarray(ridges[:, None] * np.eye(len(self.centre)), np.float64)
