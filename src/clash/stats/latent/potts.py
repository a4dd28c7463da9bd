"""Coupled judges with more than two outcomes: a Potts model beside multiclass Dawid-Skene.

Given the truth y, votes have the law

    P(J | y) ~ exp(sum_j h_y[j, J_j] + sum_{j<k} w_jk 1[J_j = J_k]),

with fields of each class and couplings that the classes share: agreement of two judges beyond what the
truth explains. Without couplings it is Dawid-Skene with h = log P(vote | truth). With two outcomes it
is the class-independent Ising model of equation (3), W = 2 w. Source: ising-aggregation, footnote 1,
which names the Potts model as the way to several classes.

The law is enumerated, so that the likelihood is exact for a few judges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent.multiclass import (
    ClassFit,
    ClassPatterns,
    dawid_skene_classes,
    left_out_temperature,
    observe_classes,
)
from clash.stats.latent.patterns import MISSING
from clash.stats.logistic import softmax
from clash.stats.logistic_regression import log_sum_exp

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, VoteCodes

MOST_STATES, MOST_ENTRIES = 20_000, 5_000_000
MAX_ITER = 500
"""Iterations after which a fit gives up (``converged`` is then False)."""
FEWEST_JUDGES = 4
"""Of three judges, couplings and confusions explain any votes."""


@dataclass(frozen=True, slots=True)
class PottsPriors:
    """Pulls as shares of the items, as :class:`~clash.stats.latent.ising.IsingPriors` has them.

    Attributes:
        coupling: ridge on the couplings.
        skill: pull of what the truth does to a judge's fields towards the judges' mean.
        level: ridge on what it does not; it only fixes the scale that no vote tells.
    """

    coupling: float = 0.01
    skill: float = 0.05
    level: float = 1e-4


@dataclass(frozen=True)
class PottsLaw:
    """A law of truth and votes.

    Attributes:
        prior: (C,), P(truth).
        fields: (C, K, O), h.
        couplings: (K (K - 1) / 2,), w of each pair, in the order of ``itertools.combinations``.
    """

    prior: Floats
    fields: Floats
    couplings: Floats

    @property
    def states(self) -> VoteCodes:
        """Every vote vector, (O^K, K), the last judge's vote changing fastest."""
        _, n_judges, n_outcomes = self.fields.shape
        return all_states(n_judges, n_outcomes)

    def log_pmf(self) -> Floats:
        """Log P(votes | truth) of every vote vector, (C, O^K)."""
        energies = self.energies(vote_features(self.states, self.fields.shape[2]))
        return energies - log_sum_exp(energies)[:, None]

    def energies(self, features: Floats) -> Floats:
        """(C, S), the exponents above for states with these features."""
        n_classes = len(self.prior)
        theta = np.column_stack(
            [self.fields.reshape(n_classes, -1), np.tile(self.couplings, (n_classes, 1))]
        )
        return np.asarray(theta @ features.T)

    def confusion(self) -> Floats:
        """P(vote of a judge | truth), (K, C, O)."""
        n_classes, n_judges, n_outcomes = self.fields.shape
        of_votes = vote_features(self.states, n_outcomes)[:, : n_judges * n_outcomes]
        rates = np.exp(self.log_pmf()) @ of_votes
        return rates.reshape(n_classes, n_judges, n_outcomes).transpose(1, 0, 2)

    def log_joint(self, votes: VoteCodes) -> Floats:
        """Log P(truth, votes), (n, C); votes (n, K), a missing vote summed out.

        Raises:
            StatisticsError: too many gaps.
        """
        log_pmf = self.log_pmf()
        compatible = compatible_states(votes, self.fields.shape[2])
        return _log_of(compatible, log_pmf) + np.log(self.prior)


def all_states(n_judges: int, n_outcomes: int) -> VoteCodes:
    """Every vote vector, (O^K, K).

    Raises:
        StatisticsError: more than 20,000.
    """
    if n_outcomes**n_judges > MOST_STATES:
        most = int(np.log(MOST_STATES) / np.log(n_outcomes))
        raise StatisticsError(
            f"potts enumerates every vote vector: up to {most} judges with {n_outcomes} outcomes,"
            f" not {n_judges}"
        )
    return np.stack(
        np.unravel_index(np.arange(n_outcomes**n_judges), (n_outcomes,) * n_judges), 1
    ).astype(np.int8)


def vote_features(states: VoteCodes, n_outcomes: int) -> Floats:
    """(S, K O + pairs): who votes what, and which pairs agree."""
    indicators = (states[:, :, None] == np.arange(n_outcomes)).reshape(len(states), -1)
    pairs = [states[:, j] == states[:, k] for j, k in combinations(range(states.shape[1]), 2)]
    return np.column_stack([indicators, *pairs]).astype(np.float64)


def compatible_states(votes: VoteCodes, n_outcomes: int) -> sparse.csr_array:
    """(n, O^K), 1 where a vote vector has the votes of a row that are there.

    Raises:
        StatisticsError: so many gaps that the table would not fit.
    """
    n, n_judges = votes.shape
    powers = n_outcomes ** np.arange(n_judges - 1, -1, -1)
    gaps = votes == MISSING
    n_cells = float((float(n_outcomes) ** gaps.sum(axis=1)).sum())
    if n_cells > MOST_ENTRIES:
        raise StatisticsError("potts: too many votes are missing to sum them out")
    rows, columns = [], []
    for mask in np.unique(gaps, axis=0):
        of_mask = np.flatnonzero((gaps == mask).all(axis=1))
        first_state = np.where(mask, 0, votes[of_mask]) @ powers
        open_states = all_states(int(mask.sum()), n_outcomes) @ powers[mask] if mask.any() else [0]
        rows.append(np.repeat(of_mask, len(open_states)))
        columns.append((first_state[:, None] + np.asarray(open_states)[None, :]).ravel())
    row, column = np.concatenate(rows), np.concatenate(columns)
    shape = (n, n_outcomes**n_judges)
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape)


def potts(patterns: ClassPatterns) -> ClassFit:
    """Potts model of a few judges, by penalised exact likelihood from Dawid-Skene.

    Model: above, with one coupling for each pair, the same in all classes. Near-copies are
    discounted because their agreement is explained by w.
    Assumes that judges agree beyond the truth alike in all classes and for all outcomes. Fails as
    :func:`~clash.stats.latent.ising.ising_shared` does: with large couplings another split of the
    items than the truth may explain the votes as well.

    Args:
        patterns: the votes, from ``collapse_classes``; O^K vote vectors at most 20,000, which is 9
            judges with three outcomes.

    Raises:
        NotIdentifiedError: fewer than four judges that vote in more than one way.
        StatisticsError: too many judges, or too many gaps to sum out.
    """
    useful = sum(len(set(c[c != MISSING].tolist())) > 1 for c in patterns.votes.T)
    if useful < FEWEST_JUDGES:
        raise NotIdentifiedError(
            f"potts needs four judges that vote in more than one way; there are {useful}"
        )
    start = dawid_skene_classes(patterns)
    problem = _PottsLikelihood(patterns, PottsPriors())
    optimum = minimize(
        problem.value_and_gradient,
        problem.pack(start),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MAX_ITER, "gtol": 1e-6, "ftol": 1e-12},
    )
    law = problem.unpack(optimum.x)
    joint = _log_of(problem.compatible, law.log_pmf()) + np.log(law.prior)
    fit = ClassFit(
        "potts",
        patterns,
        observe_classes(softmax(joint), patterns.labels),
        law.prior,
        law.confusion(),
        float(patterns.counts @ problem.of_items(joint)),
        problem.n_params,
        converged=bool(optimum.success),
        n_iter=int(optimum.nit),
        residual=float(np.abs(optimum.jac).max()),
        couplings=_square(law.couplings, patterns.votes.shape[1]),
    )
    return replace(fit, temperature=left_out_temperature(patterns, law.log_joint))


class _PottsLikelihood:
    """Minus the penalised log-likelihood of an item, and its gradient."""

    def __init__(self, patterns: ClassPatterns, priors: PottsPriors) -> None:
        self._patterns, self._priors = patterns, priors
        self._shape = len(patterns.classes), patterns.votes.shape[1], patterns.n_outcomes
        n_classes, n_judges, n_outcomes = self._shape
        self._n_pairs = n_judges * (n_judges - 1) // 2
        self._features = vote_features(all_states(n_judges, n_outcomes), n_outcomes)
        self.compatible = compatible_states(patterns.votes, n_outcomes)
        self._n_items = float(patterns.counts.sum())
        self.n_params = n_classes - 1 + n_classes * n_judges * (n_outcomes - 1) + self._n_pairs
        self._has_label: Bools = np.asarray(patterns.labels != MISSING)

    def pack(self, start: ClassFit) -> Floats:
        """Dawid-Skene as a law without couplings."""
        fields = np.log(start.confusion).transpose(1, 0, 2)
        return np.concatenate([np.log(start.prior), fields.ravel(), np.zeros(self._n_pairs)])

    def unpack(self, x: Floats) -> PottsLaw:
        """The law of a parameter vector."""
        n_classes = self._shape[0]
        end = len(x) - self._n_pairs
        return PottsLaw(softmax(x[:n_classes]), x[n_classes:end].reshape(self._shape), x[end:])

    def of_items(self, joint: Floats) -> Floats:
        """(P,), log P(votes) of each pattern, or log P(votes, label) where there is a label."""
        labels = np.where(self._has_label, self._patterns.labels, 0)
        at_label = joint[np.arange(len(joint)), labels]
        return np.where(self._has_label, at_label, np.logaddexp.reduce(joint, axis=1))

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        """Both at x, a share of the items each."""
        law, counts = self.unpack(x), self._patterns.counts
        energies = law.energies(self._features)
        log_pmf = energies - log_sum_exp(energies)[:, None]
        log_mass = _log_of(self.compatible, log_pmf)
        joint = log_mass + np.log(law.prior)
        weight = counts[:, None] * observe_classes(softmax(joint), self._patterns.labels)
        total = weight.sum(axis=0)
        # Expected states given the votes, minus those of the law, class by class.
        pmf = np.exp(log_pmf)
        surplus = pmf * ((self.compatible.T @ (weight * np.exp(-log_mass))).T - total[:, None])
        slopes = surplus @ self._features
        n_fields = self._shape[1] * self._shape[2]
        penalty, of_fields, of_couplings = self._penalty(law)
        gradient = np.concatenate(
            [
                (total - self._n_items * law.prior) / self._n_items,
                slopes[:, :n_fields].ravel() / self._n_items - of_fields.ravel(),
                slopes[:, n_fields:].sum(axis=0) / self._n_items - of_couplings,
            ]
        )
        value = float(counts @ self.of_items(joint)) / self._n_items - penalty
        return -value, -gradient

    def _penalty(self, law: PottsLaw) -> tuple[float, Floats, Floats]:
        """The penalty and its gradient by fields and couplings."""
        p = self._priors
        level = law.fields.mean(axis=0, keepdims=True)
        effect = law.fields - level
        apart = effect - effect.mean(axis=1, keepdims=True)
        value = (
            p.skill * (apart**2).sum()
            + p.level * (law.fields**2).sum()
            + p.coupling * (law.couplings**2).sum()
        ) / 2
        # ``apart`` is a projection of the fields, so its gradient is itself.
        return float(value), p.skill * apart + p.level * law.fields, p.coupling * law.couplings


def _log_of(compatible: sparse.csr_array, log_pmf: Floats) -> Floats:
    """Log of the mass of the states that each row is compatible with, (n, C)."""
    mass: Floats = compatible @ np.exp(log_pmf.T)
    return np.log(np.maximum(mass, 1e-300))


def _square(couplings: Floats, n_judges: int) -> Floats:
    table = np.zeros((n_judges, n_judges))
    for (j, k), w in zip(combinations(range(n_judges), 2), couplings.tolist(), strict=True):
        table[j, k] = table[k, j] = w
    return table
