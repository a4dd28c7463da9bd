"""Where the verdicts of a study's arms differ: prompts, responses, rubric, shuffle, the judges."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.leaderboard import placed_above
from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import PairedDifference, paired_difference
from clash.stats.variance_components import Change, Component, variance_components

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats
    from clash.stats.variance_components import Effect

FACTORS = ("responses", "author", "rubric", "shuffle")
"""What arms differ in; an author's rubric is another rubric too. Arms that are equal in all of them
differ in the judges' own noise."""
PROMPTS, NOISE = "prompts", "noise"
_NESTING = ((FACTORS.index("rubric"), FACTORS.index("author")),)

Outcome = dict[str, float]
"""The share of the others that a candidate is placed above, ties half, by item."""


@dataclass(frozen=True)
class StudyArm:
    """One run of a study, and its level of each factor, in their order."""

    name: str
    levels: tuple[int, ...]
    run: RunData


@dataclass(frozen=True)
class VarianceSource:
    """What one source adds.

    Attributes:
        source: ``prompts``, ``noise``, a factor, or factors that work together: ``rubric x shuffle``.
        variance: of one verdict, of which the candidate's share is between 0 and 1.
        share: of the total variance.
        error: its standard error in the win rate of one run.
        change: share of verdicts that differ when this alone is drawn anew, the judges' own noise
            included; null for prompts and for factors that work together.
    """

    source: str
    variance: Interval
    share: Interval
    error: float
    change: Interval | None


@dataclass(frozen=True)
class VarianceSplit:
    """The variance of one candidate's outcomes, by the panel or by one judge.

    Attributes:
        rater: ``panel``, or a judge.
        mean: the win rate over all arms.
        confounds: sources that the design cannot tell from noise, which holds them.
        missing: outcomes that are not there, of items times arms.
    """

    candidate: str
    rater: str
    mean: float
    total: Interval
    sources: tuple[VarianceSource, ...]
    confounds: tuple[str, ...]
    n_items: int
    missing: int


@dataclass(frozen=True)
class AuthorEffect:
    """Criteria by another model against those of the run's own: win rate and verdicts.

    Attributes:
        author: the other model.
        difference: win rate of the candidate with criteria by ``author``, less that with the run's.
        n: items with a verdict under both.
    """

    author: str
    candidate: str
    difference: PairedDifference
    n: int


@dataclass(frozen=True)
class VarianceStudy:
    """A crossed study of what moves a result.

    Attributes:
        arms: their names, the run itself first.
        panel: a split for each candidate, for the first of two only: the other's is the same.
        judges: for each voting judge, of the first candidate of ``panel``.
        authors: the effect of each author of criteria besides the run's own.
    """

    arms: tuple[str, ...]
    panel: tuple[VarianceSplit, ...]
    judges: tuple[VarianceSplit, ...]
    authors: tuple[AuthorEffect, ...]


def variance_study(arms: Sequence[StudyArm], authors: Sequence[str]) -> VarianceStudy:
    """Split the variance of the verdicts of arms.

    Args:
        arms: runs of the same items, the first of them the run that is studied.
        authors: who writes criteria, by level of the factor ``author``; the first is the run's own.

    Raises:
        StatisticsError: fewer than two arms, or too few verdicts.
    """
    if len(arms) < 2:
        raise StatisticsError("one arm tells nothing about what moves a result")
    candidates = _by_win_rate(arms)
    names = candidates[:1] if len(candidates) == 2 else candidates
    splits = [_split_or_none(arms, name, "panel", _panel) for name in names]
    panel = tuple(split for split in splits if split is not None)
    if not panel:
        raise StatisticsError("no candidate was judged on two prompts, in two arms each")
    names = [split.candidate for split in panel]
    judges = tuple(
        split
        for seat in arms[0].run.rules.seats
        if (split := _split_or_none(arms, names[0], seat.id, _judge(seat.id))) is not None
    )
    effects = tuple(
        _author_effect(arms, number, author, names[0])
        for number, author in enumerate(authors)
        if number and any(arm.levels[FACTORS.index("author")] == number for arm in arms)
    )
    return VarianceStudy(tuple(arm.name for arm in arms), panel, judges, effects)


def _by_win_rate(arms: Sequence[StudyArm]) -> list[str]:
    totals: Counter[str] = Counter()
    for arm in arms:
        for verdict in arm.run.verdicts:
            if verdict.ranking is not None:
                totals.update(placed_above(verdict.ranking))
    if not totals:
        raise StatisticsError("no arm has a verdict")
    return sorted(totals, key=lambda name: (-totals[name], name))


# -- outcomes -------------------------------------------------------------------------------------


def _panel(run: RunData, candidate: str) -> Outcome:
    return {
        verdict.item_id: shares[candidate]
        for verdict in run.verdicts
        if verdict.ranking is not None and candidate in (shares := placed_above(verdict.ranking))
    }


def _judge(judge: str) -> Callable[[RunData, str], Outcome]:
    def outcomes(run: RunData, candidate: str) -> Outcome:
        values = {
            item: ballots.share_above(judge, candidate)
            for item, ballots in run.ballots.items()
            if ballots.has_ranked(judge, candidate)
        }
        return {item: value for item, value in values.items() if not np.isnan(value)}

    return outcomes


def _table(
    arms: Sequence[StudyArm], candidate: str, outcomes: Callable[[RunData, str], Outcome]
) -> tuple[Floats, list[int]]:
    """Outcomes of items by arms, (n, A), and the cluster of each item."""
    items = [item.item_id for item in arms[0].run.items]
    clusters = arms[0].run.clusters
    columns = [outcomes(arm.run, candidate) for arm in arms]
    table = np.array([[column.get(item, np.nan) for column in columns] for item in items])
    return table, [clusters[item] for item in items]


def _split(
    arms: Sequence[StudyArm],
    candidate: str,
    rater: str,
    outcomes: Callable[[RunData, str], Outcome],
) -> VarianceSplit:
    table, clusters = _table(arms, candidate, outcomes)
    levels = np.array([arm.levels for arm in arms])
    result = variance_components(table, levels, clusters, nesting=_NESTING)
    changes = {_changed_factor(change): change.rate for change in result.changes}
    sources = [_source(result.items, PROMPTS, {})]
    sources += [_source(part, _name(part.effect), changes) for part in result.components]
    return VarianceSplit(
        candidate,
        rater,
        result.mean,
        result.total,
        tuple(sources),
        tuple(_name(effect) for effect in result.confounds),
        result.n_items,
        int(np.isnan(table).sum()),
    )


def _split_or_none(
    arms: Sequence[StudyArm],
    candidate: str,
    rater: str,
    outcomes: Callable[[RunData, str], Outcome],
) -> VarianceSplit | None:
    """The split of a candidate by one rater; null where there is too little of it to tell."""
    try:
        return _split(arms, candidate, rater, outcomes)
    except StatisticsError:
        return None


def _source(part: Component, name: str, changes: Mapping[str, Interval]) -> VarianceSource:
    return VarianceSource(name, part.variance, part.share, part.error, changes.get(name))


def _name(effect: Effect) -> str:
    return " x ".join(FACTORS[column] for column in sorted(effect)) or NOISE


def _changed_factor(change: Change) -> str:
    """The factor that alone differs: where the author does, the rubric follows."""
    names = [FACTORS[column] for column in sorted(change.effect)]
    return "author" if "author" in names else names[0] if names else NOISE


def _author_effect(
    arms: Sequence[StudyArm], number: int, author: str, candidate: str
) -> AuthorEffect:
    column = FACTORS.index("author")
    table, clusters = _table(arms, candidate, _panel)
    own_arms, other_arms = (
        np.array([arm.levels[column] == level for arm in arms]) for level in (0, number)
    )
    present = (~np.isnan(table[:, own_arms])).any(axis=1) & (~np.isnan(table[:, other_arms])).any(
        axis=1
    )
    rows = table[present]
    difference = paired_difference(
        np.nanmean(rows[:, other_arms], axis=1),
        np.nanmean(rows[:, own_arms], axis=1),
        np.array(clusters)[present],
    )
    return AuthorEffect(author, candidate, difference, int(present.sum()))
