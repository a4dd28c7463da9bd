"""The study: many splits, each chosen and fitted on its own, measured on its sealed test block."""

from __future__ import annotations

import math
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.calibration.frame import FEWEST, ScoreFrame
from clash.analysis.calibration.planning import win_rate
from clash.analysis.tasks import is_spread, run_tasks
from clash.stats.intervals import Interval, mean_clustered, normal_quantile
from clash.stats.resample import RepeatMean
from clash.stats.selection import blocks, expert_pool
from clash.stats.selection.candidate_methods import SelectionSettings
from clash.stats.selection.families import FAMILIES, POOL
from clash.stats.selection.metrics import Metrics
from clash.stats.selection.model_choice import selection_penalty
from clash.stats.selection.panel import SealedRows
from clash.stats.selection.paths import PATH_RULES
from clash.stats.selection.selector import (
    DeployedModel,
    SplitOutcome,
    evaluate,
    learn,
    plain_majority,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from clash.stats.selection.candidate_methods import CandidateMethod
    from clash.stats.selection.metrics import Reliability
    from clash.stats.selection.panel import PanelVotes
    from clash.stats.selection.ppi import PoweredMean
    from clash.stats.typing import Floats, Index
    from clash.votes import Votes

    _SplitTask = tuple[blocks.RowSplit, SelectionSettings, tuple[int, ...]]


SIZES = (1, 2, 3, 4, 5, 6, 7, 10, 15, 20, 30)
_TWO_OF_THEM = 2


SplitMeans = dict[str, RepeatMean]


@dataclass(frozen=True)
class FamilyResult:
    """The best candidate of a family by validation, on the test blocks.

    Attributes:
        k: mean prefix.
        figures: by metric.
        share: its mean weight in what the splits deployed.
    """

    family: str
    kind: str
    k: float
    figures: SplitMeans
    share: float


@dataclass(frozen=True)
class MapMember:
    """A map among those deployed, and the judges it asks, in order."""

    family: str
    judges: tuple[str, ...]
    weight: float


@dataclass(frozen=True)
class CalibrationStudy:
    """The result of a study: the chosen maps, and their error on sealed test blocks.

    Attributes:
        selected: the heaviest of what is chosen on all labels.
        judges: those it asks, in order.
        members: all that is chosen on all labels, which is what a calibrator deploys.
        test: of the choices of the splits, by metric; means over splits.
        calibration_error: of one map, the mean over the maps of the splits, each measured on its
            test block, without the part that few rows add.
        majority_error: the same of plain vote shares.
        reliability: of all test blocks together, whose maps' errors partly cancel, beside chance.
        gain: accuracy minus majority's, over rows, clustered by source.
        diagnostics: of the deployed prefixes, mean over splits.
        oracle: test squared error of the best candidate of each split in hindsight: no
            selector can deploy it.
        penalty: theorem 1's, for one validation block.
        n_items: labelled items; fewer than the labelled rows where items have several.
        n_train: labelled rows to learn from, mean over splits.
        n_train_items: the same in items.
        notes: where labels were used otherwise than asked for.
        win_rate: mean label over all rows, labelled or only judged; null where all are labelled.
    """

    frame: ScoreFrame
    n_rows: int
    n_labelled: int
    n_items: int
    n_groups: int
    n_train: int
    n_train_items: int
    n_splits: int
    settings: SelectionSettings
    plan: blocks.SplitPlan
    selected: CandidateMethod
    judges: tuple[str, ...]
    members: tuple[MapMember, ...]
    test: SplitMeans
    majority: SplitMeans
    calibration_error: Interval
    majority_error: Interval
    reliability: Reliability
    gain: Interval
    families: tuple[FamilyResult, ...]
    diagnostics: SplitMeans
    oracle: RepeatMean
    penalty: float
    n_candidates: int
    guarded: int
    chosen: tuple[tuple[str, int], ...]
    win_rate: PoweredMean | None = None
    notes: tuple[str, ...] = ()
    outcomes: tuple[SplitOutcome, ...] = field(default=(), repr=False)

    @property
    def asked_judges(self) -> tuple[str, ...]:
        """Every judge that is asked, those of ``selected`` first."""
        return tuple(dict.fromkeys([*self.judges, *(j for m in self.members for j in m.judges)]))

    @property
    def chance_ece(self) -> float:
        """Expected ``ece`` of a perfectly calibrated map on as many rows."""
        return self.reliability.chance


def default_settings(votes: Votes) -> SelectionSettings:
    """The expert pool on the whole panel where labels name sides and are at most 200, else the whole menu.

    The pool is deployed without a test against majority, which it holds already: so few labels
    could not decide between them.
    """
    n_sources = len(np.unique(votes.groups[votes.labelled]))
    # Where there are no labels yet, those of such votes would name sides.
    is_binary = votes.label_kind in ("binary", None) and votes.kind != "numeric"
    if not is_binary or n_sources > expert_pool.MOST:
        return SelectionSettings()
    return SelectionSettings(
        rules=PATH_RULES[:1],
        sizes=(len(votes.judges),),
        families=(POOL,),
        combine="one",
        guard=math.inf,
        prior=((POOL, 1.0),),
    )


def sizes_for(n_judges: int, sizes: Sequence[int] = SIZES) -> tuple[int, ...]:
    """Prefix sizes of a panel: those of ``sizes`` below its size, and its size."""
    return (*(k for k in sizes if k < n_judges), n_judges)


def study(
    votes: Votes,
    *,
    settings: SelectionSettings | None = None,
    plan: blocks.SplitPlan | None = None,
    splits: int = 30,
    folds: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    on_split: Callable[[int, int], None] | None = None,
) -> CalibrationStudy:
    """Split, choose, fit and measure, many times; then choose once on all labels.

    Args:
        votes: with labels.
        settings: the menu; prefixes are fitted to the panel's size. Default: see
            :func:`default_settings`.
        plan: how rows are divided.
        splits: random splits.
        folds: cross-validation in place of random splits.
        seed: of everything random; the result does not depend on ``jobs``.
        jobs: processes; by default two where the work is worth it.
        on_split: told how many splits of how many are done.

    Raises:
        InputError: too few labels.
        StatisticsError: too few sources for the blocks.
    """
    settings, plan = settings or default_settings(votes), plan or blocks.SplitPlan()
    # A prior needs labels only to confirm it, and the pool has its own.
    fewest = FEWEST if settings.prior is None else blocks.FEWEST_GROUPS
    frame = ScoreFrame.of(votes, expert_pool.FEWEST if settings.families == (POOL,) else fewest)
    panel = frame.panel(votes)
    if settings.families != (POOL,):
        settings = replace(settings, sizes=sizes_for(panel.n_judges, settings.sizes))
    row_splits = _splits(panel, plan, splits, folds, seed)
    outcomes = tuple(_outcomes(panel, row_splits, settings, seed, jobs, on_split))
    study_result = _summary(
        frame, panel, settings, plan, outcomes, choose_on_all(panel, settings, plan, seed)
    )
    n_train_items = _items_of(panel, [split.train for split in row_splits])
    return replace(
        study_result,
        n_train_items=n_train_items,
        win_rate=win_rate(votes, panel, frame),
        notes=_label_notes(plan.labels, n_train_items, study_result.n_items),
    )


def _items_of(panel: PanelVotes, blocks_: Sequence[Index]) -> int:
    """Items of some blocks of rows, mean over blocks."""
    return round(float(np.mean([len(np.unique(panel.item[rows])) for rows in blocks_])))


def _label_notes(n_wanted: int | None, n_train: int, n_items: int) -> tuple[str, ...]:
    """Note each split whose number of training labels differs from the requested one."""
    if n_wanted is None or n_wanted == n_train:
        return ()
    text = f"--labels {n_wanted}: each split learns from {n_train} of {n_items} labelled items"
    if n_wanted > n_train and n_train >= blocks.MOST_TRAIN * n_items - 1:
        return (f"{text}, since a fifth is kept for the test",)
    return (f"{text}, since the copies of a source stay together",)


def _splits(
    panel: PanelVotes, plan: blocks.SplitPlan, splits: int, folds: int | None, seed: int
) -> tuple[blocks.RowSplit, ...]:
    if folds is not None:
        return blocks.cross_splits(panel, plan, folds, np.random.default_rng([seed, 0]))
    return tuple(
        blocks.split(panel, plan, np.random.default_rng([seed, 0, i])) for i in range(splits)
    )


def choose_on_all(
    panel: PanelVotes, settings: SelectionSettings, plan: blocks.SplitPlan, seed: int
) -> DeployedModel:
    """The model chosen on all labelled rows."""
    rng = np.random.default_rng([seed, 1])
    labelled_rows = np.flatnonzero(panel.has_label)
    roles = blocks.deal(panel.group, labelled_rows, plan, rng)
    return learn(
        panel, labelled_rows, roles, panel.votes(np.arange(panel.n_rows)), settings, rng
    ).model


def _outcomes(
    panel: PanelVotes,
    splits: Sequence[blocks.RowSplit],
    settings: SelectionSettings,
    seed: int,
    jobs: int | None,
    on_split: Callable[[int, int], None] | None,
) -> Iterator[SplitOutcome]:
    tasks = [(split, settings, (seed, 2, i)) for i, split in enumerate(splits)]
    workers = jobs or _workers(len(tasks))
    report_split = on_split or (lambda _n_splits, _total: None)
    if workers == 1 or is_spread():
        for i, outcome in enumerate(run_tasks(_evaluate_alone, panel, tasks)):
            yield outcome
            report_split(i + 1, len(tasks))
        return
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_start, initargs=(panel,)
    ) as pool:
        for i, outcome in enumerate(pool.map(_task, tasks)):
            yield outcome
            report_split(i + 1, len(tasks))


def _workers(n_tasks: int) -> int:
    return 1 if n_tasks < _WORTH_IT else min(os.cpu_count() or 1, n_tasks)


_WORTH_IT = 10
"""Splits from which on a second process saves more than its start costs."""
_panel: list[PanelVotes] = []


def _start(panel: PanelVotes) -> None:
    _panel[:] = [panel]


def _task(task: _SplitTask) -> SplitOutcome:
    return _evaluate_alone(_panel[0], task)


def _evaluate_alone(panel: PanelVotes, task: _SplitTask) -> SplitOutcome:
    split, settings, seed = task
    with _one_thread():
        return evaluate(panel, split, settings, np.random.default_rng(list(seed)))


def _one_thread() -> AbstractContextManager[object]:
    """Matrices here are small: threads of the linear algebra would only wait for each other."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits


def _summary(
    frame: ScoreFrame,
    panel: PanelVotes,
    settings: SelectionSettings,
    plan: blocks.SplitPlan,
    outcomes: tuple[SplitOutcome, ...],
    model: DeployedModel,
) -> CalibrationStudy:
    first = outcomes[0].choice
    test_blocks = [o.test_block for o in outcomes]
    plain = plain_majority(panel)
    pressures = [o.pressure for o in outcomes]
    return CalibrationStudy(
        frame=frame,
        n_rows=panel.n_rows,
        n_labelled=int(panel.has_label.sum()),
        n_items=len(np.unique(panel.item[panel.has_label])),
        n_groups=len(np.unique(panel.group[panel.has_label])),
        n_train_items=0,
        n_train=round(float(np.mean([o.n_train for o in outcomes]))),
        n_splits=len(outcomes),
        settings=settings,
        plan=plan,
        selected=model.candidate,
        judges=tuple(frame.judges[j] for j in model.judges),
        members=tuple(
            MapMember(m.family, tuple(frame.judges[j] for j in m.judges), m.weight)
            for m in model.members
        ),
        test=_figures([o.test for o in outcomes]),
        majority=_figures([o.majority for o in outcomes]),
        calibration_error=SealedRows.calibration_gap(
            test_blocks, [o.model.p for o in outcomes], np.random.default_rng(0)
        ),
        majority_error=SealedRows.calibration_gap(
            test_blocks, [plain] * len(outcomes), np.random.default_rng(0)
        ),
        reliability=_pool_test_blocks(outcomes),
        gain=_gain(panel, outcomes),
        families=tuple(_family_lines(settings, outcomes)),
        diagnostics={
            name: RepeatMean.of([getattr(p, name) for p in pressures])
            for name in ("h_k", "cell_pressure", "unseen", "v")
        },
        oracle=RepeatMean.of([float(np.nanmin(o.risks)) for o in outcomes]),
        penalty=selection_penalty(len(first.candidates), first.n_validation),
        n_candidates=len(first.candidates),
        guarded=sum(o.choice.refused_best for o in outcomes),
        chosen=tuple(Counter(o.model.candidate.family for o in outcomes).most_common()),
        outcomes=outcomes,
    )


def _figures(metrics: Sequence[Metrics]) -> SplitMeans:
    return {name: RepeatMean.of([getattr(m, name) for m in metrics]) for name in Metrics.names()}


def _pool_test_blocks(outcomes: Sequence[SplitOutcome]) -> Reliability:
    """Calibration over all test blocks: a block of a few dozen rows shows mostly noise."""
    blocks_ = [o.test_block for o in outcomes]
    p = _pad_predictions(outcomes, SealedRows.stride(blocks_))
    return SealedRows.together(blocks_).reliability(p, np.random.default_rng(0))


def _pad_predictions(outcomes: Sequence[SplitOutcome], stride: int) -> Floats:
    width = outcomes[0].model.p.shape[1]
    out = np.full((stride * len(outcomes), width), 1 / max(width, 2))
    for i, outcome in enumerate(outcomes):
        predictions = outcome.model.p[:stride]
        out[i * stride : i * stride + len(predictions)] = predictions
    return out


def _gain(panel: PanelVotes, outcomes: Sequence[SplitOutcome]) -> Interval:
    """Mean over the tested rows, each averaged over its splits first.

    Its variance is that over sources, with the splits as they are, plus that over splits: other
    rows and other labels to learn from would both have given another figure.
    """
    rows = np.concatenate([o.test_rows for o in outcomes])
    gains = np.concatenate([o.gains for o in outcomes])
    times = np.bincount(rows, minlength=panel.n_rows)
    mean = np.bincount(rows, gains, panel.n_rows) / np.maximum(times, 1)
    is_tested = times > 0
    over_sources = mean_clustered(mean[is_tested], panel.group[is_tested])
    between = RepeatMean.of([float(o.gains.mean()) for o in outcomes])
    # Folds of a cross-validation share no row, so their spread is that over sources already.
    rows_repeat = len(rows) > int(is_tested.sum())
    spread = normal_quantile(over_sources.level) * between.se if rows_repeat else 0.0
    reach = math.hypot(over_sources.half_width, spread)
    low, high = over_sources.estimate - reach, over_sources.estimate + reach
    gain = replace(over_sources, low=low, high=high, method="over rows and splits")
    return gain.within(-1.0, 1.0)


def _family_lines(
    settings: SelectionSettings, outcomes: Sequence[SplitOutcome]
) -> Iterator[FamilyResult]:
    for name in settings.families:
        winners = [o.by_family[name] for o in outcomes if name in o.by_family]
        if len(winners) < min(_TWO_OF_THEM, len(outcomes)):
            continue
        weight = sum(m.weight for o in outcomes for m in o.model.members if m.family == name)
        yield FamilyResult(
            name,
            FAMILIES[name].kind,
            float(np.mean([candidate.k for candidate, _ in winners])),
            _figures([metrics for _, metrics in winners]),
            weight / len(outcomes),
        )
