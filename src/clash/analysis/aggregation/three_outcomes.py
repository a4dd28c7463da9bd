"""A tie as an outcome of its own: three classes, for the methods that know more than two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.aggregation.methods import POTTS
from clash.errors import StatisticsError
from clash.stats import scoring
from clash.stats.hypothesis_tests import paired_difference
from clash.stats.intervals import wilson_clustered
from clash.stats.latent.multiclass import (
    collapse_classes,
    dawid_skene_classes,
    majority_classes,
)
from clash.stats.latent.patterns import MISSING
from clash.stats.latent.potts import potts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from clash.stats.intervals import Interval
    from clash.stats.latent.multiclass import ClassFit, ClassPatterns
    from clash.stats.typing import Floats
    from clash.votes.binary import MethodTable


SIDE_0, SIDE_1, LEVEL = 0, 1, 2
METHODS: dict[str, Callable[[ClassPatterns], ClassFit]] = {
    "majority": majority_classes,
    "dawid-skene": dawid_skene_classes,
    POTTS: potts,
}


def fit(name: str, table: MethodTable) -> ClassFit:
    """A method on three outcomes.

    Raises:
        StatisticsError: it knows two sides only, or is not identified from these votes.
    """
    if name not in METHODS:
        method_names = ", ".join(METHODS)
        raise StatisticsError(f"a two-sided model: for ties as an outcome, use {method_names}")
    return METHODS[name](collapse_classes(table.codes))


def verdicts(fit: ClassFit) -> Floats:
    """1, 0, or 0.5 for a tie, shape (N,): the likeliest class; level ones are a tie."""
    p = fit.tempered_posterior
    best = np.isclose(p, p.max(axis=1, keepdims=True), atol=1e-9)
    likeliest = np.where(best.sum(axis=1) > 1, LEVEL, p.argmax(axis=1))
    return np.array([0.0, 1.0, 0.5])[likeliest]


def classes(truth: Floats) -> NDArray[np.int8]:
    """Labels as class codes, shape (N,); -1 where there is none."""
    codes = np.full(len(truth), MISSING, np.int8)
    for value, code in ((0.0, SIDE_0), (1.0, SIDE_1), (0.5, LEVEL)):
        codes[truth == value] = code
    return codes


def score_figures(
    fit: ClassFit, anchor: ClassFit, table: MethodTable
) -> dict[str, float | Interval | None]:
    """The figures of a method over the labelled rows, a tie being a label like the others.

    The calibration error is that of the likeliest class.
    """
    label = classes(table.truth)
    has_label = label != MISSING
    p, truth = fit.tempered_posterior[has_label], table.truth[has_label]
    right = (verdicts(fit)[has_label] == truth).astype(float)
    anchor_right = (verdicts(anchor)[has_label] == truth).astype(float)
    recalls = [right[truth == value].mean() for value in np.unique(truth)]
    gain = (
        paired_difference(right, anchor_right, table.groups[has_label])
        if fit is not anchor
        else None
    )
    return {
        "accuracy": float(right.mean()),
        "balanced_accuracy": float(np.mean(recalls)),
        "log_loss": scoring.log_loss(p, label[has_label], clip=1e-3),
        "brier": scoring.brier(p, label[has_label]),
        "ece": scoring.ece(p.max(axis=1), right),
        "gain": gain.difference if gain else None,
        "p_gain": gain.test.p if gain else None,
        "accuracy_interval": wilson_clustered(right, table.groups[has_label]),
    }
