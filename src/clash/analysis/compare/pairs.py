"""Two runs against each other: as experiments, and item by item where they share items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.compare.win_rate_changes import WinRateChange, win_rate_changes
from clash.analysis.concordance.cases import concordance_of, labelled_cases
from clash.analysis.leaderboard import points_table
from clash.errors import StatisticsError
from clash.labels import outcome_code
from clash.stats.hypothesis_tests import (
    PairedDifference,
    Significance,
    mcnemar,
    paired_bootstrap,
    paired_difference,
    two_proportions,
)
from clash.stats.intervals import Interval, difference, newcombe
from clash.stats.retest.ranking_stability import kendall_tau
from clash.stats.retest.repeats import InterRun, inter_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.concordance.cases import LabelledCase
    from clash.analysis.rundata import RunData


@dataclass(frozen=True)
class Experiments:
    """Two concordances as those of independent experiments.

    Attributes:
        test: the pooled two-proportion z test, over all labelled items of each.
        newcombe: interval of the difference, items taken for independent; ``clustered_difference``: by
            the clustered intervals of both.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"clustered_difference": "clustered"}

    right: tuple[float, float]
    n: tuple[int, int]
    test: Significance
    newcombe: Interval
    clustered_difference: Interval


@dataclass(frozen=True)
class SharedItems:
    """Two runs on the items that both judged, with the same prompt and candidates.

    Attributes:
        n: these items. A verdict in one run only is a difference where the judges of the other
            failed.
        verdicts: how often they say the same.
        n_labelled: shared items with a label; the tests below are over these.
        only_first: items that only the first run got right.
        mcnemar: exact; takes items for independent. ``paired_test`` and ``bootstrap`` do not.
        n_unjudged: further items that both hold, left out because a run ended before it had asked
            its judges about them.
    """

    json_keys: ClassVar[Mapping[str, str]] = {
        "n_unjudged": "unjudged",
        "n_labelled": "labelled",
        "both_right": "both",
        "paired_test": "paired",
    }

    n: int
    verdicts: InterRun
    n_labelled: int
    only_first: int
    only_second: int
    both_right: int
    mcnemar: Significance | None
    paired_test: PairedDifference | None
    bootstrap: PairedDifference | None
    n_unjudged: int = 0


@dataclass(frozen=True)
class Candidates:
    """A candidate's share of the points in two runs; each run clustered by its own questions."""

    candidate: str
    first: float
    second: float


@dataclass(frozen=True)
class RunAgainstRun:
    """Everything about two runs.

    Attributes:
        experiments: null unless both have labels.
        shared_items: null where they share no item that both judged.
        tau: Kendall's, of the leaderboards over candidates of both; null for fewer than two.
        changes: of the win rate of each candidate of both runs, the most certain first.
        n_common: items that ask the same in both runs, whoever answered them.
        p_holm: of :attr:`agreement_test`, corrected for looking at all pairs of runs.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"shared_items": "shared"}

    first: str
    second: str
    experiments: Experiments | None
    shared_items: SharedItems | None
    tau: float | None
    candidates: list[Candidates]
    changes: list[WinRateChange]
    n_common: int = 0
    p_holm: float | None = None

    @property
    def agreement_test(self) -> Significance | None:
        """That both agree with people equally often: paired where they share labelled items."""
        overlap = self.shared_items
        if overlap is not None and overlap.paired_test is not None:
            return overlap.paired_test.test
        return None if self.experiments is None else self.experiments.test


def against(
    named_first: tuple[str, RunData], named_second: tuple[str, RunData], rng: np.random.Generator
) -> RunAgainstRun:
    """Compare two runs.

    Args:
        named_first: a run, with what it is called.
        named_second: another one.
        rng: for the bootstrap.
    """
    (first_name, first), (second_name, second) = named_first, named_second
    candidates = _candidates(first, second)
    return RunAgainstRun(
        first_name,
        second_name,
        _experiments(labelled_cases(first), labelled_cases(second)),
        _compare_shared_items(first, second, rng),
        _tau(candidates),
        candidates,
        win_rate_changes(first, second),
        len(_same_questions(first, second)),
    )


def _experiments(
    first: Sequence[LabelledCase], second: Sequence[LabelledCase]
) -> Experiments | None:
    if not (first and second):
        return None
    a, b = concordance_of(first), concordance_of(second)
    return Experiments(
        (a.right, b.right),
        (a.n, b.n),
        two_proportions(a.right, a.n, b.right, b.n),
        newcombe(a.right, a.n, b.right, b.n),
        difference(a.interval, b.interval),
    )


def _compare_shared_items(
    first: RunData, second: RunData, rng: np.random.Generator
) -> SharedItems | None:
    common = same_items(first, second)
    names = [
        name
        for name in common
        if name not in first.unjudged_items and name not in second.unjudged_items
    ]
    if not names:
        return None
    order = {
        name: sorted(texts) for name, texts in _candidates_by_item(first).items() if name in names
    }
    codes = [_codes(run, names, order) for run in (first, second)]
    groups = clusters_of(first, names)
    widest = max(map(len, order.values())) + 1
    first_cases = {case.item_id: case for case in labelled_cases(first)}
    second_cases = {case.item_id: case for case in labelled_cases(second)}
    rows = [n for n, name in enumerate(names) if name in first_cases and name in second_cases]
    a = np.array([float(first_cases[names[n]].right) for n in rows])
    b = np.array([float(second_cases[names[n]].right) for n in rows])
    only_a, only_b = int(np.sum((a == 1) & (b == 0))), int(np.sum((a == 0) & (b == 1)))
    return SharedItems(
        n=len(names),
        verdicts=inter_run(codes[0], codes[1], widest, groups),
        n_labelled=len(rows),
        only_first=only_a,
        only_second=only_b,
        both_right=int(np.sum((a == 1) & (b == 1))),
        mcnemar=mcnemar(only_a, only_b) if rows else None,
        paired_test=paired_difference(a, b, groups[rows]) if rows else None,
        bootstrap=_bootstrap(a, b, groups[rows], rng) if rows else None,
        n_unjudged=len(common) - len(names),
    )


def _bootstrap(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    groups: NDArray[np.intp],
    rng: np.random.Generator,
) -> PairedDifference | None:
    try:
        return paired_bootstrap(a, b, groups, rng)
    except StatisticsError:
        return None  # one question only: nothing to draw from


def right_on_shared_items(
    runs: Sequence[RunData],
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Whether each run is right on the labelled items that all have, (n, m), and clusters (n,).

    A tie that earns a part of an item counts as wrong.
    """
    cases = [{case.item_id: case.right for case in labelled_cases(run)} for run in runs]
    ids = set(same_items(runs[0], runs[1])).intersection(*cases)
    for run in runs[2:]:
        ids &= set(same_items(runs[0], run))
    names = sorted(ids)
    right = [[float(of_run[name] == 1) for of_run in cases] for name in names]
    return np.array(right).reshape(len(names), len(runs)), clusters_of(runs[0], names)


def same_items(first: RunData, second: RunData) -> list[str]:
    """Items of one id that ask the same of the same candidates."""
    a, b = _candidates_by_item(first), _candidates_by_item(second)
    return [name for name in _same_questions(first, second) if set(a[name]) == set(b[name])]


def _same_questions(first: RunData, second: RunData) -> list[str]:
    """Items of one id that ask the same."""
    turns = {item.item_id: item.turns for item in second.items}
    return [item.item_id for item in first.items if turns.get(item.item_id) == item.turns]


def _candidates_by_item(run: RunData) -> dict[str, list[str]]:
    candidates: dict[str, list[str]] = {item.item_id: [] for item in run.items}
    for response in run.responses:
        candidates[response.item_id].append(response.candidate)
    return candidates


def _codes(
    run: RunData, names: Sequence[str], order: Mapping[str, Sequence[str]]
) -> NDArray[np.intp]:
    verdicts = {verdict.item_id: verdict for verdict in run.verdicts}
    codes = [outcome_code(verdicts[name].outcome, order[name]) for name in names]
    return np.array(codes, dtype=np.intp)


def clusters_of(run: RunData, names: Sequence[str]) -> NDArray[np.intp]:
    """The clusters of some items, as codes."""
    return np.array([run.clusters[name] for name in names], dtype=np.intp)


def _candidates(first: RunData, second: RunData) -> list[Candidates]:
    a, b = _points(first), _points(second)
    return [Candidates(name, a[name], b[name]) for name in a if name in b]


def _points(run: RunData) -> dict[str, float]:
    table = points_table(run)
    has_points = ~np.isnan(table)
    return {
        name: float(table[has_points[:, k], k].mean())
        for k, name in enumerate(run.candidates)
        if has_points[:, k].any()
    }


def _tau(candidates: Sequence[Candidates]) -> float | None:
    if len(candidates) < 2:
        return None
    return kendall_tau(
        [round(line.first, 9) for line in candidates],
        [round(line.second, 9) for line in candidates],
    )
