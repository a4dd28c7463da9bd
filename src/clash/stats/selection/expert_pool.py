"""Few labels: a tempered pool of experts, each a reading of the votes that the labels correct.

From 10 to 200 labels can neither fit a model of their own nor choose among many. They can say how far
the log-odds of models of the votes alone are to be believed, how far single judges depart from them,
and which of these readings to trust. With o_e the log-odds of a model e that saw no label, v_j the
vote of judge j as -1, 0 or 1, and y the labels, the experts are

    sigmoid(o_auto)                                                                              (0)
    sigmoid(t o_e),                              t ~ N(mean_e, sd_e^2)                           (1)
    sigmoid(t o_auto + b + sum_j beta_j v_j),    t as in (1), b ~ N(0, (level tau)^2),
                                                 beta_j ~ N(0, tau^2 / sqrt K)                   (2)

(1) and (2) at the maximum of the posterior, (2) once for each of three widths tau. The pool is their
mean with weights prior_e exp(ETA l_e n / rows), l_e the log marginal likelihood of the labels (Laplace's
approximation, Tierney and Kadane 1986) and n the sources among the labelled rows, so that copies of an
item count once. It is tempered, ETA below 1, since no expert is the truth (Gruenwald 2012).

What is reported of a labelled row never saw that row's label: the whole pool, weights included, is
fitted again without its fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.candidate_models import BLOCS, EQUAL, candidate_models
from clash.stats.latent.cross_validation import fit_all
from clash.stats.latent.fit import vote_share
from clash.stats.latent.model_selection import select
from clash.stats.logistic import log_odds, sigmoid, softmax
from clash.stats.logistic_regression import LogisticLoss
from clash.stats.optimise import minimise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.stats.latent.patterns import Ties
    from clash.stats.typing import Floats, Index, VoteCodes

FEWEST, MOST = 10, 200
"""Labels from which on the pool is the default, and up to which."""
CAP = 6.0
"""Log-odds beyond which no expert is taken at its word: 1 in 400."""
ETA = 0.7
"""How much of a nat of marginal likelihood counts in the weights."""
FLOOR = 1e-3
"""Probabilities that are reported are kept this far from 0 and 1."""
LEAST_SCALE = 0.02
"""Of a single method, whose verdicts a scale must not turn."""
MANY = 50
"""Labels from which on five folds do; below, ten."""
ANCHOR, SHARE = "auto", "vote share"
DECREMENT = 1e-10
CERTAIN = 1e8
"""Precision that holds a scale where its prior is."""


@dataclass(frozen=True, slots=True)
class ScalePrior:
    """What a scale is before any label, and how much its expert weighs."""

    mean: float
    sd: float
    weight: float


@dataclass(frozen=True)
class PoolPriors:
    """Priors of the pool.

    Attributes:
        scales: by expert; ``default_scale`` is for models that are not named.
        logistics: width tau of each anchored logistic, for a panel of one judge, and its weight.
        anchor_weight: weight of the anchor's log-odds as they are.
        level: standard deviation of b in equation (2), in widths.
    """

    scales: Mapping[str, ScalePrior]
    default_scale: ScalePrior
    logistics: Mapping[float, float]
    anchor_weight: float
    level: float

    def scale(self, name: str) -> ScalePrior:
        """The prior of an expert's scale."""
        return self.scales.get(name, self.default_scale)


PRIORS = PoolPriors(
    scales={
        ANCHOR: ScalePrior(1.39, 0.79, 0.082),
        SHARE: ScalePrior(1.54, 0.98, 0.044),
        "one-coin": ScalePrior(0.41, 0.22, 0.053),
        "dawid-skene": ScalePrior(0.45, 0.25, 0.060),
        "factor": ScalePrior(0.55, 0.35, 0.093),
    },
    default_scale=ScalePrior(0.6, 0.6, 0.060),
    logistics={0.15: 0.089, 0.5: 0.171, 1.5: 0.292},
    anchor_weight=0.052,
    level=0.35,
)
"""Scales and weights are those of public panels: ``benchmarks/few_labels.py --priors`` computes them.
Widths were chosen on simulated panels, the level by eight draws of labels on public ones."""


@dataclass(frozen=True)
class Readings:
    """What models that saw no label make of the votes.

    Attributes:
        names: of E models; the first is the anchor of the logistics.
        odds: (N, E), log-odds of class 1.
        spins: (N, J), votes as -1 and 1, 0 for a tie or none.
    """

    names: tuple[str, ...]
    odds: Floats = field(repr=False)
    spins: Floats = field(repr=False)

    def __post_init__(self) -> None:
        shape = (len(self.spins), len(self.names))
        if self.odds.shape != shape or not self.names:
            raise StatisticsError(f"log-odds must be {shape}, not {self.odds.shape}")
        if not np.isfinite(self.odds).all():
            raise StatisticsError("log-odds must be finite")


@dataclass(frozen=True)
class PoolLabels:
    """Rows with a label.

    Attributes:
        rows: (L,), their places.
        y: (L,), 0, 1, or a share between.
        groups: (L,), copies of one item share a group.
    """

    rows: Index
    y: Floats
    groups: Index

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, rows_of_part: Index) -> PoolLabels:
        """Some of them."""
        return PoolLabels(self.rows[rows_of_part], self.y[rows_of_part], self.groups[rows_of_part])


@dataclass(frozen=True)
class PoolFit:
    """A pool fitted to labels.

    Attributes:
        names: of the experts.
        weights: (E,), of each; they add up to one.
        p: (N,), probability of class 1 by the fit to all labels.
        held_out: (L,), the same of the labelled rows by fits that saw no label of their fold.
        scale: of the anchor's log-odds alone: below 1 the panel was too sure.
        converged: all fits met their tolerance.
    """

    names: tuple[str, ...]
    weights: Floats
    p: Floats = field(repr=False)
    held_out: Floats = field(repr=False)
    scale: float
    converged: bool

    @property
    def leading(self) -> str:
        """The expert of most weight."""
        return self.names[int(self.weights.argmax())]


@dataclass(frozen=True)
class _Expert:
    """One expert as a penalised logistic regression: log-odds ``x @ theta``, N(centre, 1 / precision)."""

    name: str
    columns: Floats
    precision: Floats
    centre: Floats
    weight: float

    def fit(self, labels: PoolLabels) -> tuple[Floats, bool]:
        """Coefficients at the maximum of the posterior, and whether they converged."""
        x = np.ascontiguousarray(self.columns[:, labels.rows])
        loss = LogisticLoss(x, np.ones(len(labels)), labels.y, self.precision, self.centre)
        minimum = minimise(loss, self.centre, decrement_tol=DECREMENT)
        return minimum.x, bool(minimum.converged)

    def predict(self, theta: Floats, rows: Index | slice = slice(None)) -> Floats:
        """Probabilities of class 1 at some rows."""
        return sigmoid(theta @ self.columns[:, rows])

    def log_evidence(self, theta: Floats, labels: PoolLabels) -> float:
        """Log marginal likelihood of the labels, by Laplace's approximation at the maximum."""
        x = self.columns[:, labels.rows]
        odds = theta @ x
        p = sigmoid(odds)
        likelihood = float(labels.y @ odds - np.logaddexp(0, odds).sum())
        departure = float(self.precision @ (theta - self.centre) ** 2)
        curvature = (x * (p * (1 - p))) @ x.T + np.diag(self.precision)
        volume = float(np.log(self.precision).sum() - np.linalg.slogdet(curvature)[1])
        return likelihood - departure / 2 + volume / 2


def pool(
    readings: Readings,
    labels: PoolLabels,
    rng: np.random.Generator,
    priors: PoolPriors = PRIORS,
    *,
    cross_fit: bool = True,
) -> PoolFit:
    """Fit the experts to the labels, weigh them, and predict every row.

    Model: equations (1) and (2). Assumes that labelled rows are drawn as the others are. Fails where
    the labels were chosen by the judges' votes, and where votes interact. One class alone among the
    labels is no obstacle: the priors keep every coefficient finite.

    Args:
        readings: of all rows.
        labels: the rows with a label.
        rng: draws the folds.
        priors: see :class:`PoolPriors`.
        cross_fit: fill ``held_out``, which takes six to eleven times as long; else it is NaN.

    Raises:
        StatisticsError: no label, or one outside [0, 1].
    """
    if not len(labels):
        raise StatisticsError("no labelled row to fit to")
    if not ((labels.y >= 0) & (labels.y <= 1)).all():
        raise StatisticsError("labels must lie between 0 and 1")
    experts = _experts(readings, priors)
    mix = _fit(experts, labels)
    held_out = np.full(len(labels), np.nan)
    fold = _folds(labels, rng)
    for k in np.unique(fold) if cross_fit else ():
        without = _fit(experts, labels.part(fold != k))
        held_out[fold == k] = without.predict(experts, labels.rows[fold == k])
    return PoolFit(
        tuple(expert.name for expert in experts),
        mix.weights,
        mix.predict(experts),
        held_out,
        float(mix.thetas[0][0]),
        mix.converged,
    )


def evidence(
    readings: Readings, labels: PoolLabels, priors: PoolPriors = PRIORS
) -> dict[str, float]:
    """What the labels say for each expert: log marginal likelihoods, as far as they count."""
    experts = _experts(readings, priors)
    fits = [expert.fit(labels) for expert in experts]
    return dict(
        zip((e.name for e in experts), _evidence(experts, fits, labels).tolist(), strict=True)
    )


def _experts(readings: Readings, priors: PoolPriors) -> list[_Expert]:
    odds = np.clip(readings.odds, -CAP, CAP).T
    experts = []
    for name, column in zip(readings.names, odds, strict=True):
        prior = priors.scale(name)
        precision, centre = np.array([prior.sd**-2]), np.array([prior.mean])
        experts.append(_Expert(name, column[None], precision, centre, prior.weight))
    certain = np.array([CERTAIN]), np.array([1.0])
    experts.append(
        _Expert(f"{readings.names[0]}, unchanged", odds[:1], *certain, priors.anchor_weight)
    )
    n_judges = readings.spins.shape[1]
    columns = np.vstack([odds[:1], np.ones((1, len(readings.spins))), readings.spins.T])
    anchor = priors.scale(readings.names[0])
    for width, weight in priors.logistics.items():
        precision = np.full(len(columns), np.sqrt(n_judges) / width**2)
        precision[:2] = anchor.sd**-2, (priors.level * width) ** -2
        centre = np.zeros(len(columns))
        centre[0] = anchor.mean
        experts.append(_Expert(f"logistic {width:g}", columns, precision, centre, weight))
    return experts


@dataclass(frozen=True)
class _Mix:
    """Fitted experts and their weights."""

    thetas: list[Floats]
    weights: Floats
    converged: bool

    def predict(self, experts: list[_Expert], rows: Index | slice = slice(None)) -> Floats:
        """Probabilities of class 1 at some rows."""
        p = [expert.predict(t, rows) for expert, t in zip(experts, self.thetas, strict=True)]
        return np.clip(self.weights @ np.stack(p), FLOOR, 1 - FLOOR)


def _fit(experts: list[_Expert], labels: PoolLabels) -> _Mix:
    """Every expert on these labels, weighed by what they say for it."""
    fits = [expert.fit(labels) for expert in experts]
    log_weights = np.log([expert.weight for expert in experts]) + _evidence(experts, fits, labels)
    converged = all(is_met for _, is_met in fits)
    return _Mix([theta for theta, _ in fits], softmax(log_weights), converged)


def _evidence(
    experts: list[_Expert], fits: list[tuple[Floats, bool]], labels: PoolLabels
) -> Floats:
    """(E,), tempered log marginal likelihoods, copies of an item counting once."""
    share = ETA * len(np.unique(labels.groups)) / max(len(labels), 1)
    pairs = zip(experts, fits, strict=True)
    return np.array([share * expert.log_evidence(theta, labels) for expert, (theta, _) in pairs])


def label_scale(odds: Floats, y: Floats) -> float:
    """The scale (1) of a method's log-odds (L,) by labels y (L,), kept positive."""
    prior, rows = PRIORS.scale(ANCHOR), np.arange(len(y))
    column = np.clip(odds, -CAP, CAP)[None]
    expert = _Expert("scale", column, np.array([prior.sd**-2]), np.array([prior.mean]), 1.0)
    return max(LEAST_SCALE, float(expert.fit(PoolLabels(rows, y, rows))[0][0]))


def _folds(labels: PoolLabels, rng: np.random.Generator) -> Index:
    """(L,), a fold for each labelled row, the same for all rows of a group."""
    names, code = np.unique(labels.groups, return_inverse=True)
    n_folds = 5 if len(names) >= MANY else 10
    return np.asarray((rng.permutation(len(names)) % n_folds)[code], dtype=np.intp)


def read_without_labels(
    votes: VoteCodes,
    rng: np.random.Generator,
    *,
    families: Sequence[object] | None = None,
    ties: Ties = "half",
    groups: Index | None = None,
) -> Readings:
    """The readings of a panel: what ``auto`` reports, the vote share, and every model that can be fitted.

    This is the slow part, a second or two, and no label changes it.

    Args:
        votes: (N, J), codes of :func:`clash.stats.latent.patterns.collapse`.
        rng: of ``auto``.
        families: of the judges.
        ties: as in ``collapse``.
        groups: (N,), copies of one item share a group.

    Raises:
        StatisticsError: no votes at all.
    """
    selection = select(votes, rng=rng, families=families, ties=ties, groups=groups)
    patterns = selection.fit.patterns
    models = candidate_models(patterns, selection.families(families))
    del models[EQUAL]  # the vote share is there itself
    models.pop(BLOCS, None)  # where it is plain, auto is this
    fits = fit_all({name: model.fit for name, model in models.items()}, patterns)[0]
    by_pattern = {ANCHOR: selection.pattern_posterior, SHARE: vote_share(patterns)}
    by_pattern |= {name: fit.pattern_posterior for name, fit in fits.items()}
    odds = np.stack([log_odds(p)[patterns.inverse] for p in by_pattern.values()], axis=1)
    return Readings(tuple(by_pattern), odds, patterns.spins[patterns.inverse])
