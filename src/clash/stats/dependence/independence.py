"""Are judges independent given the truth? Pair by pair, and all at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.dependence.score_tests import RestrictedScores, ScoreTest, joint_test, single_tests
from clash.stats.latent.dawid_skene import BetaPriors, DawidSkene, dawid_skene
from clash.stats.latent.fit import observe, posterior
from clash.stats.latent.patterns import MISSING, Patterns, collapse
from clash.stats.simulate.panels import IndependentPanel

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.typing import Floats, Index, VoteCodes

NEARLY_FLAT = BetaPriors(right=0.5, wrong=0.5, truth=0.5)
"""Keeps rates off 0 and 1, where a score has no variance; vanishes as items come in."""
N_SIMULATED, N_SIMULATED_OF_MANY = 20_000, 4_000
MANY_JUDGES = 20
MOST_JOINTLY = 1200
"""Pairs up to which all are tested at once: the cost grows as their third power."""


@dataclass(frozen=True)
class PairwiseIndependence:
    """Tests of W[j, k] = 0 in the model without any coupling.

    Attributes:
        pairs: (j, k) with j < k, in the order of ``tests``.
        tests: one per pair; None where the pair's dependence is not identified beside the judges'
            rates (three judges without labels, or two that never voted together).
        joint: all couplings 0 at once; None where that cannot be tested, or where there are
            more than :data:`MOST_JOINTLY`.
        posterior: shape (n_patterns,), of the model without couplings.
    """

    pairs: tuple[tuple[int, int], ...]
    tests: tuple[ScoreTest | None, ...]
    joint: ScoreTest | None
    posterior: Floats


def independence_tests(
    patterns: Patterns, rng: np.random.Generator, *, clusters: Index | None = None
) -> PairwiseIndependence:
    """Score tests of every pair, and of all pairs at once, against conditional independence.

    The truth is hidden where no label is given; its uncertainty, and that of the judges' rates,
    is in the variance of the scores. Ties count as no vote, which is the only reading under
    which votes have a likelihood. The expected information comes from votes simulated from the
    fit, gaps where the data have them.

    Args:
        patterns: the votes, with labels where known.
        rng: for that simulation.
        clusters: shape (n_items,), where several items may depend on each other.

    Raises:
        NotIdentifiedError: fewer than three different judges and no labels.
        StatisticsError: no votes.

    Source: Balasubramanian et al. (2026), appendix B; score tests of local dependence in latent
    class models: Oberski, van Kollenburg and Vermunt (2013).
    """
    decisive = without_ties(patterns)
    law = _law(dawid_skene(decisive, priors=NEARLY_FLAT).parameters)
    pairs = np.triu_indices(decisive.n_judges, 1)
    rows = _scores(law, decisive.votes, decisive.labels, pairs)
    n_simulated = N_SIMULATED if decisive.n_judges <= MANY_JUDGES else N_SIMULATED_OF_MANY
    information = simulated_information(
        decisive,
        lambda n, generator: _draw(law, n, generator),
        rng,
        n_simulated,
        lambda votes, labels: _scores(law, votes, labels, pairs),
    )
    tested_columns = np.arange(rows.shape[1] - len(pairs[0]), rows.shape[1])
    scores = RestrictedScores(rows, decisive.counts, information, tested_columns)
    singles = single_tests(scores, decisive.inverse, clusters)
    testable = np.array([test is not None for test in singles], dtype=bool)
    return PairwiseIndependence(
        tuple(zip(*(index.tolist() for index in pairs), strict=True)),
        singles,
        _joint(
            replace(scores, tested_columns=tested_columns[testable]), decisive.inverse, clusters
        ),
        observe(posterior(law, patterns.votes), patterns.labels),
    )


def without_ties(patterns: Patterns) -> Patterns:
    """The same items, a tie read as no vote."""
    return collapse(
        patterns.votes[patterns.inverse], labels=patterns.labels[patterns.inverse], ties="missing"
    )


def simulated_information(
    patterns: Patterns,
    draw: Callable[[int, np.random.Generator], tuple[VoteCodes, VoteCodes]],
    rng: np.random.Generator,
    n: int,
    scores: Callable[[VoteCodes, VoteCodes], Floats],
) -> Floats:
    """Expected information of all items: second moments of scores of simulated votes.

    Args:
        patterns: where votes and labels are known; the simulated ones are hidden alike.
        draw: simulates n items: votes (n, K) and truths (n,).
        rng: source of randomness.
        n: about how many items to simulate, at least one per item.
        scores: per item, shape (n, p).
    """
    times = max(1, n // patterns.n_items)
    rows_of_items = np.tile(patterns.inverse, times)
    votes, truths = draw(len(rows_of_items), rng)
    votes = np.where(patterns.votes[rows_of_items] == MISSING, np.int8(MISSING), votes)
    labels = np.where(patterns.labels[rows_of_items] == MISSING, np.int8(MISSING), truths)
    patterns_drawn = collapse(votes, labels=labels)
    rows = scores(patterns_drawn.votes, patterns_drawn.labels)
    return np.asarray((patterns_drawn.counts[:, None] * rows).T @ rows / times)


def _law(parameters: object) -> DawidSkene:
    if not isinstance(parameters, DawidSkene):
        raise TypeError(f"expected Dawid-Skene parameters, not {type(parameters).__name__}")
    return parameters


def _draw(law: DawidSkene, n: int, rng: np.random.Generator) -> tuple[VoteCodes, VoteCodes]:
    """Votes (n, K) and truths (n,) of independent judges."""
    sample = IndependentPanel(law.sensitivity, law.specificity, law.prior).sample(n, rng)
    return sample.votes, sample.labels


def _scores(
    law: DawidSkene, votes: VoteCodes, labels: VoteCodes, pairs: tuple[Index, Index]
) -> Floats:
    """Scores of the prior, the rates in either class, then the couplings; shape (n, p)."""
    posterior_one = observe(posterior(law, votes), labels)
    present = votes != MISSING
    rates = np.stack([1 - law.specificity, law.sensitivity])
    classes = [
        (share[:, None] * residual, residual)
        for share, residual in zip(
            (1 - posterior_one, posterior_one),
            (np.where(present, votes - rate, 0.0) for rate in rates),
            strict=True,
        )
    ]
    first, second = pairs
    couplings = sum(
        weighted_residual[:, first] * residual[:, second] for weighted_residual, residual in classes
    )
    return np.hstack(
        [
            (posterior_one - law.prior)[:, None],
            *(weighted_residual for weighted_residual, _ in classes),
            couplings,
        ]
    )


def _joint(scores: RestrictedScores, inverse: Index, clusters: Index | None) -> ScoreTest | None:
    if not 0 < len(scores.tested_columns) <= MOST_JOINTLY:
        return None
    try:
        return joint_test(scores, inverse, clusters)
    except StatisticsError:
        return None
