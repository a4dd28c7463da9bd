"""The verdicts on single texts beside what people say of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash import baselines
from clash.analysis.concordance.cases import CaseRate, rate
from clash.config import PROMPT
from clash.errors import StatisticsError
from clash.stats.agreement import Kappa, cohen_kappa
from clash.stats.hypothesis_tests import paired_difference
from clash.stats.intervals import Interval, mean_clustered, wilson_clustered
from clash.stats.selection.ppi import powered_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.analysis.rundata import RunData
    from clash.config import JudgingConfig
    from clash.stats.typing import Floats, Index

FEWEST_LABELS = 20
"""Labelled sources below which no estimate is made of what people would say of all texts."""
RaterKind = Literal["constant", "baseline", "judge", "observer", "panel", "people"]


@dataclass(frozen=True)
class TextRater:
    """Something that could have has_verdict the labelled texts.

    Attributes:
        rate: how often it says what people say; a missing vote is a miss.
        against: the panel less this, on the same texts; null for the panel and for people.
    """

    name: str
    kind: RaterKind
    rate: Interval
    against: Interval | None = None
    p: float | None = None


@dataclass(frozen=True)
class TextPeople:
    """How far the panel says what people say.

    Attributes:
        rate: of the labelled texts, those on which it does; no verdict is a miss. Scores agree
            where they are the same whole number.
        kappa: beyond chance, over labelled texts with a verdict; of scores with quadratic weights.
        within_one: of scores, at most one point apart.
        error: of scores, the mean distance; ``bias`` is the mean of panel less people.
        confusion: texts by what people say (rows) and what the panel says (columns, the last for no
            verdict); empty for scores.
        raters: the panel, its judges, baselines and people, in the order in which to read them.
    """

    n: int
    n_annotators: int
    rate: CaseRate
    kappa: Interval
    within_one: Interval | None
    error: Interval | None
    bias: Interval | None
    confusion: list[list[int]]
    raters: list[TextRater]


def agreement_with_people(
    run: RunData, judging: JudgingConfig, outcomes: Floats
) -> TextPeople | None:
    """The verdicts beside the labels of people; null without labels.

    Args:
        run: the run.
        judging: what was asked.
        outcomes: (N,), code or score of each verdict; NaN where there is none.
    """
    votes = run.all_text_votes
    truth = run.people_values(votes)
    rows = np.flatnonzero(~np.isnan(truth))
    if not len(rows):
        return None
    people, panel, groups = truth[rows], outcomes[rows], votes.clusters[rows]
    right = matches(people, panel)
    has_verdict = ~np.isnan(panel)
    kappa = agreement_beyond_chance(
        people[has_verdict], panel[has_verdict], groups[has_verdict], judging
    )
    return TextPeople(
        n=len(rows),
        n_annotators=len({name for opinions in run.people_votes.values() for name in opinions}),
        rate=rate(right.tolist(), groups, has_verdict.tolist()),
        kappa=kappa.interval,
        within_one=_within_one(people, panel, groups, judging),
        error=_distance(np.abs(panel - people)[has_verdict], groups[has_verdict], judging),
        bias=_bias((panel - people)[has_verdict], groups[has_verdict], judging),
        confusion=_confusion(people, panel, judging),
        raters=list(_raters(run, judging, rows, to_whole(people), right)),
    )


def _within_one(
    people: Floats, panel: Floats, groups: Index, judging: JudgingConfig
) -> Interval | None:
    if judging.mode != "score":
        return None
    near = np.nan_to_num(np.abs(people - panel), nan=np.inf) <= 1 + 1e-9
    return wilson_clustered(near.astype(float), groups)


def _distance(gaps: Floats, groups: Index, judging: JudgingConfig) -> Interval | None:
    if judging.mode != "score" or not len(gaps):
        return None
    low, high = judging.bounds
    return mean_clustered(gaps, groups).within(0.0, high - low)


def _bias(gaps: Floats, groups: Index, judging: JudgingConfig) -> Interval | None:
    if judging.mode != "score" or not len(gaps):
        return None
    width = judging.bounds[1] - judging.bounds[0]
    return mean_clustered(gaps, groups).within(-width, width)


def _confusion(people: Floats, panel: Floats, judging: JudgingConfig) -> list[list[int]]:
    n = len(judging.labels)
    columns = np.where(np.isnan(panel), n, np.nan_to_num(panel)).astype(np.intp)
    table = np.zeros((n, n + 1), dtype=int)
    if n:
        np.add.at(table, (people.astype(np.intp), columns), 1)
    return table.tolist()


def _raters(
    run: RunData, judging: JudgingConfig, rows: Index, people: Floats, panel: Floats
) -> Iterator[TextRater]:
    votes = run.all_text_votes
    groups = votes.clusters[rows]

    def line(name: str, kind: RaterKind, credit: Floats) -> TextRater:
        gap, p = paired_gap(panel, credit, groups, widest=1.0)
        return TextRater(name, kind, wilson_clustered(credit, groups), gap, p)

    between = _between_people(run, rows, judging)
    if between is not None:
        yield TextRater("another person", "people", between)
    yield TextRater("the panel", "panel", wilson_clustered(panel, groups))
    for column, seat in enumerate(votes.seats):
        kind: RaterKind = "judge" if run.panelist(seat).role == "voting" else "observer"
        yield line(seat, kind, matches(votes.says[rows, column], people))
    values, counts = np.unique(people, return_counts=True)
    common = float(values[int(np.argmax(counts))])
    yield line(f"always {_word(common, judging)}", "constant", (people == common).astype(float))
    for name in baselines.BASELINES:
        outcomes = np.array(
            [_baseline_value(run, name, votes.texts[row], judging) for row in rows.tolist()]
        )
        yield line(f"baseline: {name}", "baseline", (outcomes == people).astype(float))


def _word(value: float, judging: JudgingConfig) -> str:
    return f'"{list(judging.labels)[int(value)]}"' if judging.mode == "label" else f"{value:g}"


def _baseline_value(
    run: RunData, name: str, text: tuple[str, str], judging: JudgingConfig
) -> float:
    """What a baseline says of a text: the code of a label, or a score."""
    item_id, candidate = text
    criteria = run.criteria.get(item_id)
    body = run.texts[item_id].get(candidate, "")
    turns = () if candidate == PROMPT else run.item(item_id).turns
    case = baselines.Case(turns, {"A0": body}, criteria.criteria if criteria else ())
    value = baselines.measure_text(name, case).value
    if judging.mode == "score":
        low, high = judging.bounds
        return float(baselines.step(value, high - low + 1) + low)
    n = len(judging.labels)
    return float(n - 1 - baselines.step(value, n))


def _between_people(run: RunData, rows: Index, judging: JudgingConfig) -> Interval | None:
    """How often two people say the same of a text that both labelled, each text counting once."""
    votes = run.all_text_votes
    rates, groups = [], []
    for row in rows.tolist():
        opinions = list(run.people_votes[votes.texts[row]].values())
        if len(opinions) > 1:
            if judging.mode == "score":
                opinions = to_whole(np.array(opinions, dtype=float)).tolist()
            pairs = [float(a == b) for a, b in combinations(opinions, 2)]
            rates.append(sum(pairs) / len(pairs))
            groups.append(int(votes.clusters[row]))
    return wilson_clustered(rates, groups) if rates else None


def corrected_mean(
    people: Floats, verdicts: Floats, groups: Index, bounds: tuple[int, int] | None = None
) -> Interval | None:
    """What people would say of all texts on average, from labels and verdicts; null without enough.

    Valid where the labelled texts are a random sample of all (prediction-powered inference).

    Args:
        people: (N,), a share or score by people; NaN where there is no label.
        verdicts: (N,), the same by the panel; a missing score counts as the mean of the others.
        groups: (N,), clusters.
        bounds: the ends of the scale; null for shares.
    """
    has_label = ~np.isnan(people)
    if len(np.unique(groups[has_label])) < FEWEST_LABELS or np.isnan(verdicts).all():
        return None
    scores = np.where(np.isnan(verdicts), np.nanmean(verdicts), verdicts)
    try:
        estimate = powered_mean(people, scores, groups, are_shares=bounds is None)
        least, most = bounds or (0, 1)
        return estimate.interval.within(least, most)
    except StatisticsError:
        return None


def paired_gap(
    first: Floats, second: Floats, groups: Index, *, widest: float
) -> tuple[Interval, float]:
    """The mean of first less second, and the p value of no difference, clustered by source.

    Where every source has the same difference, the interval still has a length, and p is that of all
    signs alike.
    """
    gap = paired_difference(first, second, groups)
    return gap.difference.within(-widest, widest), gap.test.p


def matches(first: Floats, second: Floats) -> Floats:
    """1 where two say the same: one label by its code, or one score as a whole number."""
    agreements: Floats = (to_whole(first) == to_whole(second)).astype(float)
    return agreements


def to_whole(scores: Floats) -> Floats:
    """Scores as whole numbers, halves upwards; NaN stays."""
    numbers: Floats = np.floor(scores + 0.5)
    return numbers


def agreement_beyond_chance(
    first: Floats, second: Floats, clusters: Index, judging: JudgingConfig
) -> Kappa:
    """Cohen's kappa, (n,) codes of labels or scores; of scores with quadratic weights."""
    if judging.mode == "label":
        a, b = first.astype(np.intp), second.astype(np.intp)
        return cohen_kappa(a, b, len(judging.labels), clusters=clusters)
    low, high = judging.bounds
    codes = [(to_whole(part) - low).astype(np.intp) for part in (first, second)]
    n = high - low + 1
    return cohen_kappa(codes[0], codes[1], n, weighting="quadratic", clusters=clusters)
