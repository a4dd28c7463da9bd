"""What a run says that judges each text by itself: shares of labels or mean scores, with intervals.

A share is of all texts, those without a verdict included: they have no label. A mean score is over
the texts that have one. Intervals are clustered by prompt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.analysis.single_text.people import (
    TextPeople,
    agreement_beyond_chance,
    agreement_with_people,
    corrected_mean,
    matches,
    paired_gap,
)
from clash.errors import StatisticsError
from clash.stats.agreement import krippendorff_alpha
from clash.stats.hypothesis_tests import holm
from clash.stats.intervals import Interval, mean_clustered, wilson_clustered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.analysis.figures import NamedFigures
    from clash.analysis.method_verdicts import MethodUse
    from clash.analysis.rundata import RunData
    from clash.config import JudgingConfig
    from clash.records import Verdict
    from clash.stats.typing import Bools, Floats, Index
    from clash.votes.text_votes import TextVotes

ALL_TEXTS = "all texts"
_SEED = 0
_FEWEST_SOURCES = 8
"""Sources below which a bootstrap of alpha has too few to draw from, and there is no interval."""
Measure = Literal["passes", "score", "label"]


@dataclass(frozen=True)
class TextGroup:
    """The texts of one candidate, or all.

    Attributes:
        shares: of all its texts, by label.
        score: the mean over the texts that have one.
        pass_rate: share of all its texts that pass; null where nothing says what passes.
        people_shares, people_score, people_pass_rate: the same as people would say, from labels and
            verdicts together; empty and null without enough labels.
    """

    candidate: str
    n: int
    n_decided: int
    shares: dict[str, Interval]
    score: Interval | None
    pass_rate: Interval | None
    people_shares: dict[str, Interval]
    people_score: Interval | None
    people_pass_rate: Interval | None


@dataclass(frozen=True)
class TextContrast:
    """Two candidates on the items that both have a text for.

    Attributes:
        measure: what is compared: ``passes``, the ``score``, or the first label's share.
        difference: of the first less the second, paired by item.
        p_holm: p_values over all pairs.
    """

    first: str
    second: str
    n: int
    measure: Measure
    difference: Interval
    p: float
    p_holm: float


@dataclass(frozen=True)
class TextJudge:
    """One judge.

    Attributes:
        n_judged: texts with a usable vote of it.
        shares: of these texts, by the label that it gives.
        score: its mean score.
        agreement: how often it says what the verdict says; it has a say in it itself.
        first_listed: how often its label is the one that the page lists first.
        flips: how often the other order of the labels changes what it says.
    """

    judge: str
    role: str
    weight: float
    n_judged: int
    shares: dict[str, Interval]
    score: Interval | None
    agreement: Interval | None
    first_listed: Interval | None
    first_expected: float | None
    flips: Interval | None


@dataclass(frozen=True)
class TextJudgePair:
    """Two judges on the texts that both judged; scores as whole numbers.

    Attributes:
        kappa: Cohen's; of scores with quadratic weights.
    """

    first: str
    second: str
    n: int
    agreement: Interval
    kappa: Interval


@dataclass(frozen=True)
class TextFindings:
    """Everything about the texts of a run.

    Attributes:
        passing: the labels, or the least score, with which a text passes.
        groups: all texts first, then by candidate where there are several.
        alpha: Krippendorff's, over the voting judges.
        people: the panel beside the labels; null without labels.
        method: how a method that fits a model decided; null for majority, mean and median.
    """

    mode: str
    question: str | None
    labels: list[str]
    scale: list[int]
    passing: list[str] | float | None
    n_texts: int
    n_decided: int
    groups: list[TextGroup]
    contrasts: list[TextContrast]
    judges: list[TextJudge]
    pairs: list[TextJudgePair]
    alpha: Interval
    people: TextPeople | None
    method: MethodUse | None = None

    @property
    def candidates(self) -> list[TextGroup]:
        """The groups of single candidates; empty where there is one."""
        return self.groups[1:]


def text_findings(run: RunData) -> TextFindings | None:
    """The findings of a run; null where it ranks responses."""
    judging, votes = run.rules.judging, run.text_votes
    if judging is None or votes is None:
        return None
    outcomes = np.array([verdict_value(v, judging) for v in run.verdicts], dtype=float)
    people = run.people_values(votes)
    names = sorted({name for _, name in votes.texts})
    parts = [(ALL_TEXTS, np.ones(len(votes.texts), dtype=bool))]
    if len(names) > 1:
        parts += [(name, np.array([key[1] == name for key in votes.texts])) for name in names]
    everyone = run.all_text_votes
    return TextFindings(
        mode=judging.mode,
        question=judging.question,
        labels=list(judging.labels),
        scale=list(judging.bounds) if judging.mode == "score" else [],
        passing=judging.passing,
        n_texts=len(votes.texts),
        n_decided=int(np.sum(~np.isnan(outcomes))),
        groups=[
            _group(name, judging, outcomes, people, votes.clusters, rows) for name, rows in parts
        ],
        contrasts=_contrasts(judging, outcomes, votes),
        judges=[_judge(run, everyone, k, outcomes, judging) for k in range(len(everyone.seats))],
        pairs=list(_pairs(everyone, judging)),
        alpha=_alpha(votes, judging),
        people=agreement_with_people(run, judging, outcomes),
        method=run.method_use,
    )


def verdict_value(verdict: Verdict, judging: JudgingConfig) -> float:
    """The code of a verdict's label, or its score; NaN without a verdict."""
    if judging.mode == "score":
        return math.nan if verdict.score is None else verdict.score
    return math.nan if verdict.label is None else float(list(judging.labels).index(verdict.label))


def passes(values: Floats, judging: JudgingConfig) -> Floats:
    """1 where a label's code or a score passes, 0 where not or without a verdict, shape of values."""
    if isinstance(judging.passing, list):
        codes = [code for code, name in enumerate(judging.labels) if name in judging.passing]
        return np.isin(values, codes).astype(float)
    least = math.inf if judging.passing is None else judging.passing
    return (np.nan_to_num(values, nan=-math.inf) >= least).astype(float)


# -- candidates ------------------------------------------------------------------------------------


def _group(
    name: str,
    judging: JudgingConfig,
    outcomes: Floats,
    people: Floats,
    clusters: Index,
    rows: Bools,
) -> TextGroup:
    values, truth, groups = outcomes[rows], people[rows], clusters[rows]
    has_verdict = ~np.isnan(values)
    flags = {label: (values == code).astype(float) for code, label in enumerate(judging.labels)}
    people_flags = {
        label: np.where(np.isnan(truth), np.nan, truth == code)
        for code, label in enumerate(judging.labels)
    }
    by_people = {
        label: interval
        for label in flags
        if (interval := corrected_mean(people_flags[label], flags[label], groups)) is not None
    }
    pass_rate = people_pass_rate = score = people_score = None
    if judging.passing is not None:
        pass_rate = wilson_clustered(passes(values, judging), groups)
        people_passes = np.where(np.isnan(truth), np.nan, passes(truth, judging))
        people_pass_rate = corrected_mean(people_passes, passes(values, judging), groups)
    if judging.mode == "score":
        score = mean_score(values[has_verdict], groups[has_verdict], judging.bounds)
        people_score = corrected_mean(truth, values, groups, judging.bounds)
    return TextGroup(
        candidate=name,
        n=len(values),
        n_decided=int(has_verdict.sum()),
        shares={label: wilson_clustered(flag, groups) for label, flag in flags.items()},
        score=score,
        pass_rate=pass_rate,
        people_shares=by_people,
        people_score=people_score,
        people_pass_rate=people_pass_rate,
    )


def mean_score(scores: Floats, clusters: Index, bounds: tuple[int, int]) -> Interval | None:
    """The mean of some scores; null without any.

    A t interval, cut at the ends of the scale. Where all scores are equal it would have no width,
    and where they are of one source no end: then it is that of the widest spread that the scale
    allows, Wilson's.
    """
    if not len(scores):
        return None
    low, high = bounds
    interval = mean_clustered(scores, clusters)
    if interval.half_width > 0 and math.isfinite(interval.half_width):
        return interval.within(low, high)
    share = wilson_clustered((scores - low) / (high - low), clusters)
    return share.transform(lambda end: low + end * (high - low))


def _contrasts(judging: JudgingConfig, outcomes: Floats, votes: TextVotes) -> list[TextContrast]:
    """Every two candidates, paired by item."""
    measure, values = comparable(judging, outcomes)
    if measure is None:
        return []
    by_candidate: dict[str, dict[str, tuple[float, int]]] = {}
    for (item_id, name), value, cluster in zip(
        votes.texts, values.tolist(), votes.clusters.tolist(), strict=True
    ):
        if not math.isnan(value):
            by_candidate.setdefault(name, {})[item_id] = value, cluster
    lines = []
    for first, second in combinations(sorted(by_candidate), 2):
        item_ids = [item for item in by_candidate[first] if item in by_candidate[second]]
        if not item_ids:
            continue
        a, b = (np.array([by_candidate[name][i][0] for i in item_ids]) for name in (first, second))
        groups = np.array([by_candidate[first][i][1] for i in item_ids], dtype=np.intp)
        widest = judging.bounds[1] - judging.bounds[0] if measure == "score" else 1
        lines.append((first, second, len(item_ids), *paired_gap(a, b, groups, widest=widest)))
    p_values = holm([line[-1] for line in lines]).tolist() if lines else []
    return [
        TextContrast(first, second, n, measure, difference, p, p_holm)
        for (first, second, n, difference, p), p_holm in zip(lines, p_values, strict=True)
    ]


def comparable(judging: JudgingConfig, outcomes: Floats) -> tuple[Measure | None, Floats]:
    """What candidates are compared by, and its value for each text; NaN leaves a text out.

    Whether it passes, where the run says so; else the score, or whether it has the first of two labels.
    """
    if judging.passing is not None:
        return "passes", passes(outcomes, judging)
    if judging.mode == "score":
        return "score", outcomes
    if len(judging.labels) == 2:
        return "label", (outcomes == 0).astype(float)
    return None, outcomes


# -- judges ----------------------------------------------------------------------------------------


def _judge(
    run: RunData, votes: TextVotes, column: int, outcomes: Floats, judging: JudgingConfig
) -> TextJudge:
    panelist = run.panelist(votes.seats[column])
    opinions, clusters = votes.says[:, column], votes.clusters
    has_vote = votes.has_vote[:, column]
    has_both = ~np.isnan(outcomes) & has_vote
    shares: dict[str, Interval] = {}
    score = None
    if judging.mode == "label":
        part = np.nan_to_num(votes.shares[has_vote, column])
        shares = {
            name: wilson_clustered(part[:, code], clusters[has_vote])
            for code, name in enumerate(judging.labels)
            if has_vote.any()
        }
    else:
        score = mean_score(opinions[has_vote], clusters[has_vote], judging.bounds)
    return TextJudge(
        judge=panelist.id,
        role=panelist.role,
        weight=panelist.weight,
        n_judged=int(has_vote.sum()),
        shares=shares,
        score=score,
        agreement=_rate(matches(opinions, outcomes), clusters, has_both),
        first_listed=_first_listed(votes, column),
        first_expected=1 / len(judging.labels) if judging.labels else None,
        flips=_flips(votes, column),
    )


def _rate(values: Floats, clusters: Index, rows: Bools) -> Interval | None:
    return wilson_clustered(values[rows], clusters[rows]) if rows.any() else None


def _first_listed(votes: TextVotes, column: int) -> Interval | None:
    codes, first_codes = votes.votes[:, column], votes.first_shown[:, column]
    rows, pages = np.nonzero(~np.isnan(codes) & ~np.isnan(first_codes))
    if not len(rows):
        return None
    hits = (codes[rows, pages] == first_codes[rows, pages]).astype(float)
    return wilson_clustered(hits, votes.clusters[rows])


def _flips(votes: TextVotes, column: int) -> Interval | None:
    if votes.votes.shape[2] < 2:
        return None
    pages = votes.votes[:, column, :2]
    has_both = np.asarray(~np.isnan(pages).any(axis=1))
    return _rate((pages[:, 0] != pages[:, 1]).astype(float), votes.clusters, has_both)


def _pairs(votes: TextVotes, judging: JudgingConfig) -> Iterator[TextJudgePair]:
    opinions = votes.says
    for a, b in combinations(range(len(votes.seats)), 2):
        has_both = ~np.isnan(opinions[:, a]) & ~np.isnan(opinions[:, b])
        rate = _rate(matches(opinions[:, a], opinions[:, b]), votes.clusters, has_both)
        if rate is not None:
            kappa = agreement_beyond_chance(
                opinions[has_both, a], opinions[has_both, b], votes.clusters[has_both], judging
            )
            yield TextJudgePair(
                votes.seats[a], votes.seats[b], int(has_both.sum()), rate, kappa.interval
            )


def _alpha(votes: TextVotes, judging: JudgingConfig) -> Interval:
    scale: Literal["nominal", "interval"] = "nominal" if judging.mode == "label" else "interval"
    enough = len(np.unique(votes.clusters)) >= _FEWEST_SOURCES
    rng = np.random.default_rng(_SEED) if enough else None
    try:
        return krippendorff_alpha(votes.says, scale, rng=rng, clusters=votes.clusters)
    except StatisticsError:
        return Interval(math.nan, -1.0, 1.0, 0.95, 0, 0, "no interval")


# -- figures ---------------------------------------------------------------------------------------


def text_figures(findings: TextFindings) -> NamedFigures:
    """The numbers that a gate tests, by name: ``share.relevant``, ``score``, ``pass_rate``."""
    yield "texts", findings.n_texts
    for group in findings.groups:
        end = "" if group.candidate == ALL_TEXTS else f".{group.candidate}"
        for label, share in group.shares.items():
            yield f"share.{label}{end}", share
        for label, share in group.people_shares.items():
            yield f"people_share.{label}{end}", share
        yield f"score{end}", group.score
        yield f"pass_rate{end}", group.pass_rate
        yield f"people_score{end}", group.people_score
        yield f"people_pass_rate{end}", group.people_pass_rate
    yield "alpha", findings.alpha
    if findings.people is not None:
        yield "concordance", findings.people.rate.interval
        yield "concordance.judged", findings.people.rate.of_judged
        yield "kappa", findings.people.kappa
        yield "score.error", findings.people.error
    for judge in findings.judges:
        yield f"agreement.{judge.judge}", judge.agreement
        yield f"flips.{judge.judge}", judge.flips
    if findings.pairs:
        lowest = min(findings.pairs, key=lambda pair: pair.agreement.estimate)
        yield "agreement.lowest", lowest.agreement
