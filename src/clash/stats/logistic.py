"""The logistic function, its inverse, and their counterpart for several classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clash.stats.typing import Floats


def sigmoid(x: Floats | float) -> Floats:
    """1 / (1 + exp(-x)), elementwise and without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * np.asarray(x, np.float64))))


def logit(p: Floats | float) -> Floats:
    """log(p / (1 - p)), elementwise; finite for 0 < p < 1."""
    p = np.asarray(p, np.float64)
    return np.asarray(np.log(p) - np.log1p(-p))


def log_odds(p: Floats) -> Floats:
    """Log-odds of a posterior, bounded at what a float can tell from certainty (about +-36)."""
    return logit(np.clip(p, 1e-16, 1 - 1.2e-16))


def softmax(log_weights: Floats, axis: int = -1) -> Floats:
    """exp(log_weights), scaled to add up to 1 along an axis; same shape.

    The largest log-weight is subtracted first: its exponential is then 1, so that nothing
    overflows and the sum is never 0.
    """
    weights = np.exp(log_weights - log_weights.max(axis=axis, keepdims=True))
    return np.asarray(weights / weights.sum(axis=axis, keepdims=True))
