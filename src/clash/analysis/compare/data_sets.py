"""Candidates and the panel over several data sets: runs, or the parts of runs that share a tag."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.concordance.cases import concordance_of, labelled_cases
from clash.analysis.coverage import unanimity
from clash.analysis.leaderboard import points_table
from clash.analysis.win_rates import pair_outcomes
from clash.errors import ConfigError, one_of
from clash.stats.hypothesis_tests import Significance, holm
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.logistic import sigmoid
from clash.stats.meta_analysis import RandomEffects, random_effects, share_effects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.concordance.cases import CaseRate
    from clash.analysis.rundata import RunData
    from clash.records import Item

FEWEST = 5
"""Items on which two candidates must have met in a data set: of fewer a share is mostly prior."""
_LINE = 21
"""Points of the curve of a gradient."""


@dataclass(frozen=True)
class DataSetLine:
    """One data set: the items of a run, or those of them with a tag, that no earlier one has.

    Attributes:
        questions: clusters of the items.
        split: share of the verdicts that were not unanimous.
        concordance: null without labels.
        difficulty: as it was stated; by default the estimate of ``split``, null for one judge and
            where there is no verdict.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_items": "items"}

    name: str
    run: str
    tag: str | None
    n_items: int
    questions: int
    split: Interval | None
    concordance: CaseRate | None
    difficulty: float | None


@dataclass(frozen=True)
class PooledShare:
    """A share over data sets, by random effects on its log-odds.

    Attributes:
        share: in a typical data set, whose log-odds are the mean.
        prediction: in another data set of the same kind; null for fewer than three.
        tau2: variance of the log-odds between data sets; ``i2`` its part of the whole, 0 to 1.
        heterogeneity: Cochran's Q, the test that they do not differ.
        test: that the share is one half.
    """

    share: Interval
    prediction: Interval | None
    tau2: Interval
    i2: Interval
    heterogeneity: Significance
    test: Significance
    k: int
    converged: bool

    @classmethod
    def of(cls, effects: RandomEffects) -> PooledShare:
        """From effects that are log-odds."""
        return cls(
            _as_share(effects.mean),
            None if effects.prediction is None else _as_share(effects.prediction),
            effects.tau2,
            effects.i2,
            effects.heterogeneity,
            effects.test,
            effects.k,
            effects.converged,
        )


@dataclass(frozen=True)
class PooledDuel:
    """Two candidates over the data sets in which both were judged, the better one first.

    Attributes:
        by_set: how often the first is preferred in each, ties counting half, by its name.
        p_holm: of the pooled test, corrected for looking at all pairs.
    """

    first: str
    second: str
    pooled: PooledShare
    by_set: dict[str, Interval]
    p_holm: float = 1.0


@dataclass(frozen=True)
class Gradient:
    """How agreement with people falls with difficulty, over labelled data sets.

    Attributes:
        measure: of difficulty, in words.
        points: difficulty and agreement of each data set, the easiest first.
        curve: fitted agreement over the same range; empty for fewer than three data sets.
        slope: log-odds of agreement for one unit of difficulty; null likewise.
        test: that it is 0.
    """

    measure: str
    points: list[tuple[str, float, Interval]]
    curve: list[tuple[float, float]]
    slope: Interval | None
    test: Significance | None


@dataclass(frozen=True)
class AcrossDataSets:
    """What several data sets say together.

    Attributes:
        n_repeated: records of items that an earlier data set has, and that count there alone.
        n_untagged: items without a tag that was asked for.
        concordance: of the panel and people; null for fewer than two labelled data sets.
        duels: every two candidates that met on five items in two data sets or more, the most
            certain first.
        gradient: null for fewer than two labelled data sets whose difficulty differs.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"sets": "data_sets"}

    sets: list[DataSetLine]
    n_repeated: int
    n_untagged: int
    concordance: PooledShare | None
    duels: list[PooledDuel]
    gradient: Gradient | None


@dataclass(frozen=True)
class DataSetRule:
    """How runs are taken apart.

    Attributes:
        tags: wildcards; an item belongs to the first of its tags that one of them matches. None
            takes each run as one data set.
        difficulty: stated by the names of data sets; where none is, the share of split verdicts.
    """

    tags: tuple[str, ...] = ()
    difficulty: Mapping[str, float] | None = None


def across_data_sets(
    named_runs: Sequence[tuple[str, RunData]], rule: DataSetRule
) -> AcrossDataSets | None:
    """Combine the data sets of runs; null where there are fewer than two.

    Raises:
        ConfigError: a difficulty names no data set.
    """
    parts, n_repeated, n_untagged = _parts(named_runs, rule)
    names = [line.name for line, _ in parts]
    for name in rule.difficulty or {}:
        if name not in names:
            raise ConfigError(
                f"there is no data set {name!r}", field="--difficulty", hint=one_of(name, names)
            )
    if len(parts) < 2:
        return None
    lines = [line for line, _ in parts]
    with_labels = [line for line in lines if line.concordance is not None]
    return AcrossDataSets(
        lines,
        n_repeated,
        n_untagged,
        _pooled_share([line.concordance.interval for line in with_labels if line.concordance]),
        _duels(parts),
        _gradient(with_labels, is_stated=bool(rule.difficulty)),
    )


def _parts(
    named_runs: Sequence[tuple[str, RunData]], rule: DataSetRule
) -> tuple[list[tuple[DataSetLine, RunData]], int, int]:
    """The data sets in order, and the counts of :class:`AcrossDataSets`."""
    owners: set[tuple[str, str]] = set()
    n_repeated = n_untagged = 0
    parts = []
    for name, run in named_runs:
        ids: dict[str | None, list[str]] = {}
        for item in run.items:
            tag = _tag(item, rule.tags)
            if rule.tags and tag is None:
                n_untagged += 1
            elif (key := (item.item_id, str(item.turns))) in owners:
                n_repeated += 1
            else:
                owners.add(key)
                ids.setdefault(tag, []).append(item.item_id)
        for tag in sorted(ids, key=str):
            part = run.only(set(ids[tag]))
            title = name if tag is None else tag if len(named_runs) == 1 else f"{name}/{tag}"
            parts.append((_line(title, name, tag, part, rule), part))
    return parts, n_repeated, n_untagged


def _tag(item: Item, patterns: Sequence[str]) -> str | None:
    return next((t for t in item.tags if any(fnmatchcase(t, p) for p in patterns)), None)


def _line(name: str, run: str, tag: str | None, part: RunData, rule: DataSetRule) -> DataSetLine:
    cases = labelled_cases(part)
    split = None
    if len(part.rules.voting) > 1 and part.verdicts:
        split = unanimity(part).rate.complement()
    difficulty = None if split is None else split.estimate
    if rule.difficulty:
        difficulty = rule.difficulty.get(name)
    return DataSetLine(
        name,
        run,
        tag,
        len(part.items),
        len({part.clusters[item.item_id] for item in part.items}),
        split,
        concordance_of(cases) if cases else None,
        difficulty,
    )


def _pooled_share(shares: Sequence[Interval]) -> PooledShare | None:
    if len(shares) < 2:
        return None
    return PooledShare.of(random_effects(*share_effects(shares)))


def _duels(parts: Sequence[tuple[DataSetLine, RunData]]) -> list[PooledDuel]:
    shares: dict[tuple[str, str], dict[str, Interval]] = {}
    for line, part in parts:
        clusters, names = part.cluster_codes, part.candidates
        for pair in pair_outcomes(points_table(part)):
            key = names[pair.first], names[pair.second]
            if len(pair.rows) < FEWEST:
                continue
            share = wilson_clustered(pair.outcomes, clusters[pair.rows])
            shares.setdefault(key, {})[line.name] = share
    duels = []
    for (first, second), by_set in sorted(shares.items()):
        summary = _pooled_share(list(by_set.values()))
        if summary is None:
            continue
        duel = PooledDuel(first, second, summary, by_set)
        duels.append(_mirror_image(duel) if summary.share.estimate < 0.5 else duel)
    if not duels:
        return []
    p_values = holm(np.array([duel.pooled.test.p for duel in duels])).tolist()
    duels = [replace(duel, p_holm=p) for duel, p in zip(duels, p_values, strict=True)]
    return sorted(duels, key=lambda duel: (duel.p_holm, duel.pooled.test.p, duel.first))


def _mirror_image(duel: PooledDuel) -> PooledDuel:
    """The same two with the second first."""
    summary = duel.pooled
    prediction = summary.prediction
    return replace(
        duel,
        first=duel.second,
        second=duel.first,
        pooled=replace(
            summary,
            share=summary.share.complement(),
            prediction=None if prediction is None else prediction.complement(),
            test=replace(summary.test, statistic=-summary.test.statistic),
        ),
        by_set={name: share.complement() for name, share in duel.by_set.items()},
    )


def _gradient(lines: Sequence[DataSetLine], *, is_stated: bool) -> Gradient | None:
    rows = [
        (line.name, line.difficulty, line.concordance.interval)
        for line in lines
        if line.difficulty is not None and line.concordance is not None
    ]
    rows.sort(key=lambda row: row[1])
    if len(rows) < 2 or rows[0][1] == rows[-1][1]:
        return None
    measure = "difficulty as stated" if is_stated else "share of verdicts that are split"
    if len(rows) == 2:
        return Gradient(measure, rows, [], None, None)
    x = np.array([difficulty for _, difficulty, _ in rows])
    effects, variances = share_effects([share for _, _, share in rows])
    fit = random_effects(effects, variances, moderator=x)
    if fit.slope is None:
        return Gradient(measure, rows, [], None, None)
    grid = np.linspace(x[0], x[-1], _LINE)
    agreement = sigmoid(fit.mean.estimate + fit.slope.estimate * (grid - x.mean()))
    curve = list(zip(grid.tolist(), agreement.tolist(), strict=True))
    return Gradient(measure, rows, curve, fit.slope, fit.slope_test)


def _as_share(log_odds: Interval) -> Interval:
    """The interval of log-odds as one of shares."""
    return log_odds.transform(lambda value: float(sigmoid(value)))
