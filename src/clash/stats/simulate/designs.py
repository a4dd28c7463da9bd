"""Twelve kinds of panels, drawn at random with a known truth, and the best that votes can do on each.

A design is a distribution of panels: every draw has judges, skills and dependence of its own, so that
a rule cannot be fitted to one panel. The law that drew the votes gives the exact P(truth | votes),
which no rule can beat on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.latent.dawid_skene import DawidSkene
from clash.stats.latent.fit import posterior
from clash.stats.latent.ising import IsingLaw
from clash.stats.latent.patterns import MISSING
from clash.stats.latent.quadrature import FactorLaw
from clash.stats.logistic import sigmoid
from clash.stats.simulate.panels import IndependentPanel, SimulatedSample, draw_labels
from clash.stats.simulate.spins import IsingPanel

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.latent.fit import VoteLaw
    from clash.stats.typing import Floats, VoteCodes

NODES = 41
"""Gauss-Hermite nodes behind the exact posterior of a factor law."""
PANEL_SIZES = (5, 7, 9)


@dataclass(frozen=True, slots=True)
class DesignSample:
    """A panel of a design.

    Attributes:
        votes: shape (n_items, n_judges), 0, 1, or -1 where the judge did not vote.
        truth: int8 of shape (n_items,).
        oracle: P(truth = 1 | votes) under the law that drew the votes, shape (n_items,).
    """

    votes: VoteCodes
    truth: VoteCodes
    oracle: Floats


@dataclass(frozen=True, slots=True)
class CopiedSources:
    """Sources that vote independently, each repeated by judges that slip now and then.

    Attributes:
        prior: P(truth = 1).
        accuracy: of each source, shape (n_sources,).
        copies: how many judges repeat each source; with one, the judge is the source.
        slip: how often a copy reverses its source.
    """

    prior: float
    accuracy: Floats
    copies: tuple[int, ...]
    slip: float

    @property
    def n_params(self) -> int:
        """Accuracies, the slip and the prior."""
        return len(self.accuracy) + 2

    def sample(self, n: int, rng: np.random.Generator) -> SimulatedSample:
        """``n`` items."""
        truth = draw_labels(self.prior, n, rng)
        right = rng.random((n, len(self.accuracy))) < self.accuracy
        verdicts = np.where(right, truth[:, None], 1 - truth[:, None])
        answers = np.repeat(verdicts, self.copies, axis=1)
        slips = rng.random(answers.shape) < self._slips()
        return SimulatedSample(np.where(slips, 1 - answers, answers).astype(np.int8), truth)

    def log_likelihoods(self, votes: VoteCodes) -> Floats:
        """Log P(votes | truth = 0 and 1), shape (n, 2); the sources' verdicts summed out."""
        total, at, slips = np.zeros((len(votes), 2)), 0, self._slips()
        for accuracy, times in zip(self.accuracy, self.copies, strict=True):
            copies, slip = votes[:, at : at + times], slips[at : at + times]
            log_p = [np.log(np.where(copies == v, 1 - slip, slip)).sum(axis=1) for v in (0, 1)]
            for y in (0, 1):
                right, wrong = log_p[y] + np.log(accuracy), log_p[1 - y] + np.log1p(-accuracy)
                total[:, y] += np.logaddexp(right, wrong)
            at += times
        return total

    def _slips(self) -> Floats:
        lone = np.repeat(np.asarray(self.copies) == 1, self.copies)
        return np.where(lone, 1e-12, self.slip)


Sampler = tuple["VoteLaw", "Callable[[int, np.random.Generator], SimulatedSample]"]


@dataclass(frozen=True)
class DesignPanel:
    """A panel that a design drew: its judges, before they vote.

    Attributes:
        law: the law of truth and votes.
        draw: draws votes (n, n_judges) and their truths.
        missing: share of the votes that are missing, at random.
    """

    law: VoteLaw
    draw: Callable[[int, np.random.Generator], SimulatedSample]
    missing: float = 0.0

    def sample(self, n: int, rng: np.random.Generator) -> DesignSample:
        """Votes on n items; every item has at least one."""
        sample = self.draw(n, rng)
        votes = sample.votes
        if self.missing:
            absent = rng.random(votes.shape) < self.missing
            absent[np.arange(n), rng.integers(0, votes.shape[1], n)] = False
            votes = np.where(absent, MISSING, votes).astype(np.int8)
        return DesignSample(votes, sample.labels, posterior(self.law, votes))


@dataclass(frozen=True)
class Design:
    """A kind of panel.

    Attributes:
        name: as in the tables.
        shows: what the judges are like.
        panel: draws a panel: its law, and a sampler of votes and truths.
        missing: share of the votes that are missing, at random.
    """

    name: str
    shows: str
    panel: Callable[[np.random.Generator], Sampler]
    missing: float = 0.0

    def draw_panel(self, rng: np.random.Generator) -> DesignPanel:
        """A panel of this kind."""
        return DesignPanel(*self.panel(rng), self.missing)

    def sample(self, n: int, rng: np.random.Generator) -> DesignSample:
        """A panel of this kind, and its votes on n items."""
        return self.draw_panel(rng).sample(n, rng)


def _size(rng: np.random.Generator) -> int:
    return int(rng.choice(PANEL_SIZES))


def _lone(prior: float, sensitivity: Floats, specificity: Floats | None = None) -> Sampler:
    """Judges that err alone."""
    specificity = sensitivity if specificity is None else specificity
    law = DawidSkene(sensitivity, specificity, prior, 2 * len(sensitivity) + 1)
    return law, IndependentPanel(sensitivity, specificity, prior).sample


def _factor_sampler(law: FactorLaw) -> Sampler:
    """Judges moved by normal factors: shared (by class or not), or one of each group."""

    def draw(n: int, rng: np.random.Generator) -> SimulatedSample:
        truth = draw_labels(law.prior, n, rng)
        side = 2.0 * truth[:, None] - 1
        slope = law.loadings[:, 0] if law.loadings.size else np.zeros(len(law.lean))
        slope = slope + side * (0.0 if law.contrast is None else law.contrast[:, 0])
        level = law.lean + side * law.skill + slope * rng.normal(size=(n, 1))
        if law.groups:
            factors = rng.normal(size=(n, max(law.groups) + 1))
            level = level + law.own_loadings * factors[:, list(law.groups)]
        votes = (rng.random(level.shape) < sigmoid(level)).astype(np.int8)
        return SimulatedSample(votes, truth)

    return law, draw


def _factor_law(
    skill: Floats,
    *,
    loadings: Floats | None = None,
    contrast: Floats | None = None,
    own_loadings: Floats | None = None,
    groups: tuple[int, ...] = (),
) -> FactorLaw:
    k = len(skill)
    return FactorLaw(
        prior=0.5,
        lean=np.zeros(k),
        skill=skill,
        loadings=np.zeros((k, 0)) if loadings is None else loadings[:, None],
        own_loadings=np.zeros(k) if own_loadings is None else own_loadings,
        groups=groups,
        nodes=NODES,
        n_params=2 * k + 1,
        contrast=None if contrast is None else contrast[:, None],
    )


def _independent(rng: np.random.Generator) -> Sampler:
    return _lone(0.5, rng.uniform(0.58, 0.9, _size(rng)))


def _equal(rng: np.random.Generator) -> Sampler:
    return _lone(0.5, np.full(_size(rng), rng.uniform(0.65, 0.85)))


def _blocs(rng: np.random.Generator) -> Sampler:
    k = _size(rng)
    size = int(rng.integers(2, k // 2 + 1))
    groups = tuple(min(j // size, 2) if j < 2 * size else j - 2 * size + 2 for j in range(k))
    own_loadings = np.where(np.arange(k) < 2 * size, rng.uniform(1.5, 3.0), 0.0)
    return _factor_sampler(
        _factor_law(rng.uniform(0.5, 1.8, k), own_loadings=own_loadings, groups=groups)
    )


def _class_dependent(rng: np.random.Generator) -> Sampler:
    k = int(rng.choice((6, 7, 8)))
    size = k // 2
    couplings = np.zeros((2, k, k))
    couplings[0, :size, :size] = rng.uniform(0.8, 2.2)
    couplings[1, size : 2 * size, size : 2 * size] = rng.uniform(0.8, 2.2)
    couplings[:, range(k), range(k)] = 0
    skill = rng.uniform(0.25, 0.55, k)
    fields = np.stack([-skill, skill])
    law = IsingLaw(0.5, fields, couplings, (tuple(range(k)),), 1)
    # The panel is in votes of 0 and 1: W = 4 w, H_j = 2 h_j - 2 sum_k w_jk.
    return law, IsingPanel.of(2 * fields - 2 * couplings.sum(axis=2), 4 * couplings).sample


def _one_sided(rng: np.random.Generator) -> Sampler:
    k = _size(rng)
    slope = rng.uniform(1.0, 2.5, k) / 2
    side = float(rng.choice((-1.0, 1.0)))
    law = _factor_law(rng.uniform(0.6, 1.6, k), loadings=slope, contrast=side * slope)
    return _factor_sampler(law)


def _shared_factor(rng: np.random.Generator) -> Sampler:
    k = _size(rng)
    return _factor_sampler(_factor_law(rng.uniform(0.6, 1.8, k), loadings=rng.uniform(0.3, 2.0, k)))


def _expert(rng: np.random.Generator) -> Sampler:
    rates = rng.uniform(0.53, 0.63, _size(rng))
    rates[int(rng.integers(len(rates)))] = rng.uniform(0.88, 0.96)
    return _lone(0.5, rates)


def _adversary(rng: np.random.Generator) -> Sampler:
    k = int(rng.choice((7, 9)))
    rates = rng.uniform(0.68, 0.85, k)
    rates[:2] = rng.uniform(0.2, 0.38, 2)
    return _lone(0.5, rng.permutation(rates))


def _near_copies(rng: np.random.Generator) -> Sampler:
    times, n_singles = int(rng.integers(3, 5)), int(rng.integers(3, 6))
    accuracy = np.concatenate([rng.uniform(0.6, 0.8, 1), rng.uniform(0.68, 0.9, n_singles)])
    law = CopiedSources(0.5, accuracy, (times, *[1] * n_singles), rng.uniform(0.02, 0.08))
    return law, law.sample


def _imbalance(rng: np.random.Generator) -> Sampler:
    k = _size(rng)
    return _lone(0.9, rng.uniform(0.7, 0.95, k), rng.uniform(0.6, 0.9, k))


def _missing(rng: np.random.Generator) -> Sampler:
    return _lone(0.5, rng.uniform(0.6, 0.92, int(rng.choice((5, 7)))))


def _many(rng: np.random.Generator) -> Sampler:
    k = 24
    groups = tuple(int(j) for j in np.sort(rng.integers(0, 8, k)))
    own_loadings = np.full(k, rng.uniform(0.5, 2.0))
    return _factor_sampler(
        _factor_law(rng.uniform(0.2, 1.5, k), own_loadings=own_loadings, groups=groups)
    )


DESIGNS = (
    Design("independent", "judges of unequal skill that err alone", _independent),
    Design("equal skill", "judges of one skill that err alone", _equal),
    Design("blocs", "two blocs, each moved by a factor of its own", _blocs),
    Design("class-dependent", "one bloc couples in class 0, another in class 1", _class_dependent),
    Design("one-sided factor", "a factor moves the judges in one class alone", _one_sided),
    Design("shared factor", "a factor moves all judges in both classes", _shared_factor),
    Design("expert", "one good judge among some near chance", _expert),
    Design("adversary", "two judges that are mostly wrong", _adversary),
    Design("near-copies", "three or four copies of one judge among others", _near_copies),
    Design("imbalance", "90% of the items in one class, judges that lean", _imbalance),
    Design("missing", "60% of the votes missing at random", _missing, missing=0.6),
    Design("many judges", "24 judges in eight families of unequal size", _many),
)
