"""The structured hypotheses of appendix B: families apart, families of equals, classes alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.dependence.independence import simulated_information
from clash.stats.dependence.restricted_ising import (
    RestrictedLikelihood,
    Restriction,
    draw,
    fit_restricted,
    scores_of,
)
from clash.stats.dependence.score_tests import RestrictedScores, ScoreTest, joint_test
from clash.stats.latent.identifiability import has_labels, informative_judges
from clash.stats.latent.ising_states import pairs

if TYPE_CHECKING:
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Bools, Floats, Index

N_SIMULATED = 20_000


@dataclass(frozen=True)
class CouplingHypothesis:
    """A restriction and what it is tested against.

    Attributes:
        name: as in a report.
        statement: the restriction, in words.
        null: what is free if it holds.
        directions: directions in the full parameters that it rules out, shape (full, r).
    """

    name: str
    statement: str
    null: Restriction
    directions: Floats


def families_independent(families: Index) -> CouplingHypothesis:
    """W = 0 between families, free within.

    Args:
        families: code of each judge's family, shape (K,).

    Raises:
        StatisticsError: all judges are of one family.
    """
    K, within = len(families), _within(families)
    if within.all():
        raise StatisticsError("all judges are of one family")
    every = np.eye(len(within))
    return CouplingHypothesis(
        "family independence",
        "judges of different families are not coupled",
        Restriction.of(K, every[:, within]),
        _couplings(K, every[:, ~within]),
    )


def exchangeable(families: Index) -> CouplingHypothesis:
    """Within each family one coupling for all pairs; between families all free.

    Args:
        families: code of each judge's family, shape (K,).

    Raises:
        StatisticsError: no family has three judges, so there are no two pairs to compare.
    """
    K, within = len(families), _within(families)
    first, _ = pairs(K)
    every = np.eye(len(within))
    commons, contrasts = [every[:, ~within]], []
    for family in np.unique(families[first[within]]):
        family_pairs = np.flatnonzero(within & (families[first] == family))
        commons.append(every[:, family_pairs].sum(axis=1, keepdims=True))
        contrasts += [every[:, [pair]] - every[:, [family_pairs[0]]] for pair in family_pairs[1:]]
    if not contrasts:
        raise StatisticsError("no family has three judges, so there are no two pairs to compare")
    return CouplingHypothesis(
        "exchangeability within family",
        "all pairs within a family have the same coupling",
        Restriction.of(K, np.hstack(commons)),
        _couplings(K, np.hstack(contrasts)),
    )


def classes_alike(n_judges: int) -> CouplingHypothesis:
    """W0 = W1: couplings shared by the classes, otherwise free."""
    every = np.eye(n_judges * (n_judges - 1) // 2)
    zero = np.zeros((1 + 2 * n_judges + len(every), len(every)))
    return CouplingHypothesis(
        "class-independent couplings",
        "judges have the same couplings in both classes (W0 = W1)",
        Restriction.of(n_judges, every),
        np.vstack([zero, every]),
    )


def score_test(
    hypothesis: CouplingHypothesis,
    patterns: Patterns,
    p: Floats,
    rng: np.random.Generator,
    *,
    clusters: Index | None = None,
) -> ScoreTest:
    """Score test of a hypothesis about couplings; the truth is hidden where no label is given.

    Args:
        hypothesis: what to test.
        patterns: the votes without ties, of at most 15 judges, with labels where known.
        p: shape (n_patterns,), P(truth = 1) where the climb to the restricted fit starts.
        rng: for the simulation of the expected information.
        clusters: shape (n_items,), where several items may depend on each other.

    Raises:
        NotIdentifiedError: without labels, more parameters than free vote counts.
        StatisticsError: more than 15 judges, too many gaps, or fewer clusters than directions.
    """
    _require_room(hypothesis, patterns)
    start = fit_restricted(RestrictedLikelihood.of(patterns, hypothesis.null, p))
    fit = fit_restricted(RestrictedLikelihood.of(patterns, hypothesis.null), start.theta)
    turn = np.hstack([hypothesis.null.free, hypothesis.directions])
    information = simulated_information(
        patterns,
        lambda n, generator: draw(fit.law, n, generator),
        rng,
        N_SIMULATED,
        lambda votes, labels: scores_of(fit.full, votes, labels) @ turn,
    )
    rows = fit.likelihood.scores(fit.theta) @ turn
    columns = np.arange(hypothesis.null.free.shape[1], turn.shape[1])
    return joint_test(
        RestrictedScores(rows, patterns.counts, information, columns), patterns.inverse, clusters
    )


def _require_room(hypothesis: CouplingHypothesis, patterns: Patterns) -> None:
    if has_labels(patterns):
        return
    n_params = hypothesis.null.free.shape[1] + hypothesis.directions.shape[1]
    free = 2 ** len(informative_judges(patterns)) - 1
    if n_params > free:
        raise NotIdentifiedError(
            f"{n_params} parameters against {free} free vote counts: labels would settle it"
        )


def _within(families: Index) -> Bools:
    first, second = pairs(len(families))
    return np.asarray(families[first] == families[second])


def _couplings(n_judges: int, columns: Floats) -> Floats:
    """Directions of shared couplings (pairs, r) as directions of all parameters."""
    before = np.zeros((1 + 2 * n_judges, columns.shape[1]))
    return np.vstack([before, columns, np.zeros_like(columns)])
