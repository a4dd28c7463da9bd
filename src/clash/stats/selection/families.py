"""Every family of maps from the votes of some judges to the target, by name (section 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.selection.anchored import anchored_logistic
from clash.stats.selection.joint_table import (
    ALPHA,
    hierarchical_backoff,
    joint_table,
    residual_shrinkage,
)
from clash.stats.selection.panel import Cells, Evidence
from clash.stats.selection.scalar import (
    isotonic,
    logistic,
    majority,
    mean_vote,
    normalise,
    one_coin_score,
    ridge_score,
)
from clash.stats.selection.unsupervised import (
    MOST_ISING,
    dawid_skene_score,
    ising_score,
    pool_map,
    pool_readings,
    temper_odds,
)
from clash.stats.typing import Floats

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

FamilyFit = Callable[[Cells, Evidence], Floats]
FamilyKind = Literal["scalar", "table", "middle"]
ANCHOR = "majority"
FAMILY_MEAN = "averaged"
POOL = "expert-pool"
"""The only family from 10 to 200 labels, on the whole panel."""
MOST_PRODUCTS = 12
MOST_ANCHORED = 40
"""Judges beyond which the Hessian takes seconds."""


@dataclass(frozen=True, slots=True)
class MapFamily:
    """A way to map votes to a target: by ``fit``, by ``latent`` and ``calibrate``, or by ``members``.

    Attributes:
        name: as on the command line.
        shows: description in one line.
        fit: patterns and evidence to predictions (P, C).
        kind: ``scalar`` weights judges, ``table`` looks patterns up, ``middle`` does both.
        uses_order: the order of the judges matters, not only which they are.
        latent: a model of the votes alone; its scores are shared by fits of the same votes to other
            labels.
        calibrate: maps the scores of ``latent`` to the labels.
        most: largest number of judges it can be fitted to; null for any.
        members: families whose mean it is.
        on_menu: whether it is on the menu by default.
    """

    name: str
    shows: str
    fit: FamilyFit | None
    kind: FamilyKind
    uses_order: bool = False
    latent: FamilyFit | None = None
    calibrate: Callable[[Floats, Evidence], Floats] | None = None
    most: int | None = None
    members: tuple[str, ...] = ()
    on_menu: bool = True


def _ridge(cells: Cells, evidence: Evidence) -> Floats:
    return isotonic(ridge_score(cells, evidence), evidence)


def _ridge_products(cells: Cells, evidence: Evidence) -> Floats:
    return isotonic(ridge_score(cells, evidence, products=True), evidence)


def _one_coin(cells: Cells, evidence: Evidence) -> Floats:
    return isotonic(one_coin_score(cells, evidence), evidence)


def _table(cells: Cells, evidence: Evidence) -> Floats:
    return normalise(joint_table(cells, evidence, fallback="lower-prefix"))


def _published_table(cells: Cells, evidence: Evidence) -> Floats:
    return normalise(joint_table(cells, evidence, alpha=ALPHA))


def _backoff(cells: Cells, evidence: Evidence) -> Floats:
    return normalise(hierarchical_backoff(cells, evidence))


def _hybrid(cells: Cells, evidence: Evidence) -> Floats:
    scalar = _ridge(cells, evidence) if cells.target == "scalar" else logistic(cells, evidence)
    return normalise(residual_shrinkage(cells, evidence, scalar))


def _logistic_products(cells: Cells, evidence: Evidence) -> Floats:
    return logistic(cells, evidence, products=True)


def _mean(cells: Cells, evidence: Evidence) -> Floats:
    return isotonic(mean_vote(cells), evidence)


_FAMILIES = (
    MapFamily(ANCHOR, "majority, one temperature", majority, "scalar"),
    MapFamily("mean-isotonic", "mean vote, isotonic", _mean, "scalar"),
    MapFamily("one-coin-isotonic", "votes weighed by accuracy, isotonic", _one_coin, "scalar"),
    MapFamily(
        "dawid-skene-isotonic",
        "Dawid-Skene on votes alone, isotonic",
        None,
        "scalar",
        latent=dawid_skene_score,
        calibrate=isotonic,
    ),
    MapFamily("ridge-isotonic", "least squares, isotonic", _ridge, "scalar"),
    MapFamily("logistic", "logistic regression", logistic, "scalar"),
    MapFamily(
        "anchored-logistic",
        "logistic regression shrunk to majority",
        anchored_logistic,
        "scalar",
        most=MOST_ANCHORED,
    ),
    MapFamily(
        "ridge-pairwise",
        "least squares with products, isotonic",
        _ridge_products,
        "scalar",
        most=MOST_PRODUCTS,
    ),
    MapFamily(
        "logistic-pairwise",
        "logistic regression with products",
        _logistic_products,
        "scalar",
        most=MOST_PRODUCTS,
    ),
    MapFamily(
        "ising-temperature",
        "Ising posterior of votes alone, one temperature",
        None,
        "scalar",
        latent=ising_score,
        calibrate=temper_odds,
        most=MOST_ISING,
    ),
    MapFamily("joint-table", "smoothed mean of each pattern", _table, "table", uses_order=True),
    MapFamily(
        "joint-table-global",
        "the same as published: alpha 0.5, the base rate where unseen",
        _published_table,
        "table",
        on_menu=False,
    ),
    MapFamily(
        "hierarchical-backoff",
        "cells shrunk to shorter prefixes",
        _backoff,
        "middle",
        uses_order=True,
    ),
    MapFamily("residual-shrinkage", "logistic plus shrunk residuals", _hybrid, "middle"),
    MapFamily(
        POOL,
        "a pool of experts for few labels",
        None,
        "scalar",
        latent=pool_readings,
        calibrate=pool_map,
        on_menu=False,
    ),
    MapFamily(
        FAMILY_MEAN,
        "mean of six that weigh judges",
        None,
        "scalar",
        members=(
            "mean-isotonic",
            "one-coin-isotonic",
            "dawid-skene-isotonic",
            "ridge-isotonic",
            "logistic",
            "anchored-logistic",
        ),
    ),
)
FAMILIES = {family.name: family for family in _FAMILIES}
MENU = tuple(family.name for family in _FAMILIES if family.on_menu)
"""The families to choose from unless others are named."""


def fit_family(
    family: MapFamily,
    cells: Cells,
    evidence: Evidence,
    scores: MutableMapping[str, Floats | StatisticsError] | None = None,
) -> Floats:
    """Predictions (P, C) of a family, at least 1 / (2 (n + 2)) from 0 and 1 with n labelled rows.

    Args:
        family: one of ``FAMILIES``.
        cells: the patterns of a prefix.
        evidence: the labelled rows.
        scores: cache of the scores of latent models on these cells and votes, by family.

    Raises:
        StatisticsError: the family has no model for these judges or votes, or nothing is
            labelled.
    """
    if evidence.size == 0:
        raise StatisticsError("no labelled row to fit to")
    if family.most is not None and cells.values.shape[1] > family.most:
        raise StatisticsError(f"{family.name} is available for up to {family.most} judges")
    p = _predict(family, cells, evidence, {} if scores is None else scores)
    edge = 1 / (2 * (evidence.size + 2))
    return normalise(np.clip(p, edge, 1 - edge))


def _predict(
    family: MapFamily,
    cells: Cells,
    evidence: Evidence,
    scores: MutableMapping[str, Floats | StatisticsError],
) -> Floats:
    if family.fit is not None:
        return family.fit(cells, evidence)
    if family.members:
        return _mean_of(family.members, cells, evidence, scores)
    if family.latent is None or family.calibrate is None:
        raise StatisticsError(f"{family.name} is not a family")
    if family.name not in scores:
        try:
            scores[family.name] = family.latent(cells, evidence)
        except StatisticsError as refusal:
            scores[family.name] = refusal
    score = scores[family.name]
    if isinstance(score, StatisticsError):
        raise score
    return family.calibrate(score, evidence)


def _mean_of(
    names: tuple[str, ...],
    cells: Cells,
    evidence: Evidence,
    scores: MutableMapping[str, Floats | StatisticsError],
) -> Floats:
    predictions: list[Floats | None] = []
    for name in names:
        try:
            predictions.append(fit_family(FAMILIES[name], cells, evidence, scores))
        except StatisticsError:
            predictions.append(None)
    mean = mean_prediction(predictions)
    if mean is None:
        raise StatisticsError("none of the families to average has a model for these votes")
    return mean


def mean_prediction(predictions: Sequence[Floats | None]) -> Floats | None:
    """The mean of the predictions that are not None; None without any.

    Chance in the labels affects the maps differently, so the mean errs less than most of them and is
    less overconfident.
    """
    fits = [p for p in predictions if p is not None]
    return np.asarray(np.mean(fits, axis=0)) if fits else None
