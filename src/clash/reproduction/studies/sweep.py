"""Accuracy on held-out items by number of training items and of judges: the second paper's design.

Every trial keeps a fifth of the sources for the test, and orders the others and the judges at
random. A model is fitted without labels to the first n items and the first K judges of that order, so
that a point of a curve differs from the next by what was added, not by another draw.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.tasks import run_tasks
from clash.errors import StatisticsError
from clash.reproduction.studies.trials import over_items
from clash.stats.latent.candidate_models import WEAKER
from clash.stats.latent.dawid_skene import dawid_skene, one_coin
from clash.stats.latent.factor import factor
from clash.stats.latent.ising import ising_class, ising_shared
from clash.stats.latent.ising_pseudo import ising_pseudo
from clash.stats.latent.patterns import collapse
from clash.stats.latent.vote_counting import majority
from clash.stats.resample import RepeatMean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.intervals import Interval
    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats, Index, VoteCodes

    ModelFit = Callable[[Patterns], LatentFit]

TEST_SHARE = 0.2
FEWEST_SOURCES = 30
FEWEST_TRAIN = 20
_EDGE = 1e-3
"""Probabilities are kept this far from 0 and 1 in a log-loss, for one item not to decide it."""


def _pseudo(patterns: Patterns, *, by_class: bool) -> LatentFit:
    return ising_pseudo(patterns, rng=np.random.default_rng(0), class_dependent=by_class)


WEIGHTED_METHOD, UNIFORM_METHOD = "dawid-skene", "majority"
MODELS: dict[str, ModelFit] = {
    "ising-class": partial(ising_class, priors=WEAKER),
    "ising-shared": ising_shared,
    "ising-pseudo-class": partial(_pseudo, by_class=True),
    "ising-pseudo": partial(_pseudo, by_class=False),
    "factor": factor,
    "one-coin": one_coin,
    WEIGHTED_METHOD: dawid_skene,
    UNIFORM_METHOD: majority,
}
"""Models of the second paper and near ones; the pseudo-likelihood is its own algorithm."""
USUAL = tuple(name for name in MODELS if "pseudo" not in name)
"""Without the pseudo-likelihood, which takes a hundred times as long as the exact one."""


@dataclass(frozen=True)
class PanelData:
    """Votes of a panel and what is known of the truth.

    Attributes:
        codes: int8 (N, J), as ``collapse`` takes them.
        truth: (N,), 0 or 1, NaN where unknown; such rows may train and are never tested.
        groups: (N,), source of each row; a source is on one side of a split.
    """

    codes: VoteCodes
    truth: Floats
    groups: Index


@dataclass(frozen=True)
class SweepPoint:
    """Where a model is fitted: so many training items, so many judges."""

    n_train: int
    n_judges: int


@dataclass(frozen=True)
class SweepCell:
    """One model at one point, over trials.

    Attributes:
        method: of ``MODELS``.
        n_trials: trials, fitted or not.
        n_fitted: trials in which the model could be fitted; the figures are of these.
        n_converged: trials in which the optimiser met its tolerance.
        accuracy: over items and trials; a posterior of 1/2 is half right.
        by_trial: accuracy as the paper prints it, mean and standard error over trials.
        balanced_accuracy: mean over classes and trials.
        log_loss: of the model's own posterior.
        against_weighted: accuracy minus that of Dawid-Skene, paired by item.
        against_uniform: minus that of the uniform majority.
        refusal: why it was not fitted, most often; empty where it always was.
    """

    method: str
    n_train: int
    n_judges: int
    n_trials: int
    n_fitted: int
    n_converged: int
    accuracy: Interval | None
    by_trial: RepeatMean
    balanced_accuracy: RepeatMean
    log_loss: RepeatMean
    against_weighted: Interval | None
    against_uniform: Interval | None
    refusal: str = ""


@dataclass(frozen=True)
class _Trial:
    """What one model did in one trial."""

    rows: Index
    credit: Floats
    balanced_accuracy: float
    log_loss: float
    converged: bool


def sweep(
    data: PanelData,
    points: Sequence[SweepPoint],
    methods: Sequence[str],
    trials: int,
    seed: int,
    on_trial: Callable[[int], None] = lambda _n: None,
) -> list[SweepCell]:
    """Every model at every point, a cell each, in the order of points and then methods.

    Args:
        data: the panel.
        points: training items and judges; at most four fifths of the rows and all judges.
        methods: names of ``MODELS``; both majorities are computed whatever they are.
        trials: at least 1.
        seed: trial t depends on ``[seed, t]`` alone, so more trials keep the first ones.
        on_trial: told how many trials are done.

    Raises:
        StatisticsError: fewer than 30 sources, or a model of no such name.
    """
    unknown = [name for name in methods if name not in MODELS]
    if unknown:
        raise StatisticsError(f"there is no model {unknown[0]!r}; there are {', '.join(MODELS)}")
    n_sources = len(np.unique(data.groups))
    if n_sources < FEWEST_SOURCES:
        raise StatisticsError(
            f"{n_sources} sources are too few to train and test on: 30 are needed"
        )
    names = list(dict.fromkeys([*methods, WEIGHTED_METHOD, UNIFORM_METHOD]))
    runs: dict[tuple[int, str], list[_Trial | str]] = {}
    seeds = [[seed, t] for t in range(trials)]
    for t, measurements in enumerate(run_tasks(_measure_all, (data, points, names), seeds)):
        for key, measurement in measurements.items():
            runs.setdefault(key, []).append(measurement)
        on_trial(t + 1)
    return [_cell(runs, i, point, name, data) for i, point in enumerate(points) for name in methods]


def _measure_all(
    setting: tuple[PanelData, Sequence[SweepPoint], Sequence[str]], seed: list[int]
) -> dict[tuple[int, str], _Trial | str]:
    """One trial: every model at every point."""
    data, points, names = setting
    draw = _Draw.of(data, np.random.default_rng(seed))
    return {
        (i, name): draw.measure(data, point, name)
        for i, point in enumerate(points)
        for name in names
    }


@dataclass(frozen=True)
class _Draw:
    """The random part of a trial: training rows and judges in order, and the test rows."""

    train: Index
    test: Index
    judges: Index

    @classmethod
    def of(cls, data: PanelData, rng: np.random.Generator) -> _Draw:
        sources = rng.permutation(np.unique(data.groups))
        n_test = max(1, round(TEST_SHARE * len(sources)))
        rank = np.empty(int(data.groups.max()) + 1, np.intp)
        rank[sources] = np.arange(len(sources))
        turn = rank[data.groups]
        order = np.argsort(turn, kind="stable")
        is_test = (turn < n_test) & ~np.isnan(data.truth)
        return cls(
            order[turn[order] >= n_test],
            np.flatnonzero(is_test),
            rng.permutation(data.codes.shape[1]),
        )

    def measure(self, data: PanelData, point: SweepPoint, name: str) -> _Trial | str:
        """The model on the test rows, or why it could not be fitted."""
        judges = self.judges[: point.n_judges]
        codes = data.codes[:, judges]
        try:
            fit = MODELS[name](collapse(codes[self.train[: point.n_train]]))
        except StatisticsError as refusal:
            return str(refusal)
        p, truth = fit.posterior(codes[self.test]), data.truth[self.test]
        side = np.sign(np.round(p - 0.5, 9))
        credit = np.where(side == 0, 0.5, (side > 0) == (truth == 1))
        by_class = [credit[truth == y].mean() for y in (0, 1) if (truth == y).any()]
        chance = np.clip(np.where(truth == 1, p, 1 - p), _EDGE, 1.0)
        return _Trial(
            self.test,
            credit,
            float(np.mean(by_class)) if by_class else float("nan"),
            float(-np.log(chance).mean()) if len(chance) else float("nan"),
            fit.converged,
        )


def _cell(
    runs: dict[tuple[int, str], list[_Trial | str]],
    i: int,
    point: SweepPoint,
    name: str,
    data: PanelData,
) -> SweepCell:
    outcomes = runs[i, name]
    fits = [o for o in outcomes if isinstance(o, _Trial) and len(o.rows)]
    refusals = Counter(o for o in outcomes if isinstance(o, str))
    return SweepCell(
        name,
        point.n_train,
        point.n_judges,
        len(outcomes),
        len(fits),
        sum(o.converged for o in fits),
        over_items([o.rows for o in fits], [o.credit for o in fits], data.groups, share=True)
        if fits
        else None,
        RepeatMean.of([float(o.credit.mean()) for o in fits]),
        RepeatMean.of([o.balanced_accuracy for o in fits]),
        RepeatMean.of([o.log_loss for o in fits]),
        _against(outcomes, runs[i, WEIGHTED_METHOD], data) if name != WEIGHTED_METHOD else None,
        _against(outcomes, runs[i, UNIFORM_METHOD], data) if name != UNIFORM_METHOD else None,
        refusals.most_common(1)[0][0] if refusals else "",
    )


def _against(
    first: Sequence[_Trial | str], second: Sequence[_Trial | str], data: PanelData
) -> Interval | None:
    """Credit minus credit on the same items, in the trials where both were fitted."""
    pairs = [
        (a, b)
        for a, b in zip(first, second, strict=True)
        if isinstance(a, _Trial) and isinstance(b, _Trial) and len(a.rows)
    ]
    if not pairs:
        return None
    return over_items(
        [a.rows for a, _ in pairs], [a.credit - b.credit for a, b in pairs], data.groups, least=-1.0
    )
