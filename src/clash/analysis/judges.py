"""How each judge sat: what it answered, whom it agrees with, which place on the page it favours."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash import baselines
from clash.analysis.concordance.method_table import chance_credit
from clash.analysis.coverage import cause
from clash.stats.intervals import Interval, wilson_clustered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.rundata import RunData
    from clash.records import Judgment
    from clash.votes.from_run import ItemRankings


@dataclass(frozen=True)
class JudgeReport:
    """One judge.

    Attributes:
        n_judged: items with a usable ranking of it.
        failures: judgments that failed, by cause.
        ties: share of its judgments that tie the first place.
        agreement: of its first place with the verdict, over items that have a winner and a
            judgment of it. It has a say in the verdict itself, so this is no accuracy.
        first_shown: how often its sole first place is the response shown first (label A0).
        first_expected: what that would be if order had no influence.
        stands_in_for: the judge of the panel whose model had stopped; null for judges of the panel.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_judged": "judged", "failures": "failed"}

    judge: str
    role: str
    weight: float
    model: str
    n_judged: int
    failures: dict[str, int]
    ties: Interval | None
    agreement: Interval | None
    first_shown: Interval | None
    first_expected: float | None
    flips: Interval | None
    stands_in_for: str | None = None


@dataclass(frozen=True)
class BaselineReport:
    """What a non-LLM baseline would have said.

    Attributes:
        agreement: of its first place with the verdict, over items that have a winner and text;
            a tie it cannot break earns its share of chance.
        concordance: the same with the label, where there are labels.
    """

    baseline: str
    statement: str
    agreement: Interval | None
    concordance: Interval | None


@dataclass(frozen=True)
class SelfReport:
    """A candidate that judged, blind, among others its own response.

    Attributes:
        own_first: how often it put itself alone in first place.
        panel_first: how often the panel did, on the same items.
    """

    candidate: str
    own_first: Interval
    panel_first: Interval


@dataclass(frozen=True)
class JudgePair:
    """Agreement of two judges on first place, over items both judged."""

    first: str
    second: str
    agreement: Interval


def judge_reports(run: RunData) -> list[JudgeReport]:
    """Every judge, in the order of the panel."""
    return [_report(run, p.id) for p in run.rules.panelists]


def _report(run: RunData, judge: str) -> JudgeReport:
    panelist = run.panelist(judge)
    judgments = [j for j in run.judgments if j.judge == judge]
    usable = [j for j in judgments if j.is_usable]
    failures: dict[str, int] = {}
    for judgment in judgments:
        if not judgment.is_usable:
            failures[cause(judgment)] = failures.get(cause(judgment), 0) + 1
    sole = [j for j in usable if j.ranking and len(j.ranking[0]) == 1]
    sizes = [len(run.blinds.labels(j)) for j in sole]
    return JudgeReport(
        judge=judge,
        role=panelist.role,
        weight=panelist.weight,
        model=panelist.model,
        n_judged=len({j.item_id for j in usable}),
        failures=failures,
        ties=_rate(run, {_key(j): float(len(j.ranking[0]) > 1) for j in usable if j.ranking}),
        agreement=_rate(
            run,
            _agreement(run, judge),
        ),
        first_shown=_rate(run, {_key(j): float((j.ranking or [[]])[0] == ["A0"]) for j in sole}),
        first_expected=sum(1 / size for size in sizes) / len(sizes) if sizes else None,
        flips=_flips(run, usable),
        stands_in_for=panelist.stands_in_for,
    )


def _key(judgment: Judgment) -> tuple[str, int]:
    return judgment.item_id, judgment.presentation


def _rate(
    run: RunData, values: Mapping[str, float] | Mapping[tuple[str, int], float]
) -> Interval | None:
    """A proportion over items (or items and presentations), clustered by prompt."""
    if not values:
        return None
    clusters = [run.clusters[key if isinstance(key, str) else key[0]] for key in values]
    return wilson_clustered(list(values.values()), clusters)


def _agreement(run: RunData, judge: str) -> dict[str, float]:
    """1 where the first place is the verdict's winner, 0 else; a tied first place is no match.

    Items whose winner the judge does not judge are left out.
    """
    winners = {v.item_id: v.winner for v in run.verdicts if v.winner is not None}
    return {
        item: float(ballots.top(judge) == winners[item])
        for item, ballots in run.ballots.items()
        if item in winners and ballots.ranked(judge, winners[item])
    }


def _flips(run: RunData, usable: list[Judgment]) -> Interval | None:
    """How often the winner changes when the order is reversed."""
    if run.rules.presentations < 2:
        return None
    firsts: dict[str, list[list[str]]] = {}
    for judgment in (j for j in usable if j.ranking is not None):
        labels = run.blinds.labels(judgment)
        top = sorted(labels[label] for label in (judgment.ranking or [[]])[0])
        firsts.setdefault(judgment.item_id, []).append(top)
    flips = {item: float(tops[0] != tops[1]) for item, tops in firsts.items() if len(tops) == 2}
    return _rate(run, flips)


def baseline_reports(run: RunData) -> list[BaselineReport]:
    """The control group: every baseline beside the panel, and beside people where there are labels."""
    reports = []
    winners = {v.item_id: v.winner for v in run.verdicts if v.winner is not None}
    for name, baseline in baselines.BASELINES.items():
        tops = run.baseline_tops[name]
        reports.append(
            BaselineReport(
                baseline=name,
                statement=baseline.statement,
                agreement=_rate(run, _credit(tops, winners)),
                concordance=_rate(run, _credit(tops, run.truth)),
            )
        )
    return reports


def _credit(tops: Mapping[str, list[str]], truth: Mapping[str, str]) -> dict[str, float]:
    """Credit by item that has text: see :func:`..concordance.method_table.chance_credit`."""
    return {item: chance_credit(tops[item], label) for item, label in truth.items() if item in tops}


def self_reports(run: RunData, prefix: str) -> list[SelfReport]:
    """Candidates that judged themselves; ``prefix`` marks their judge ids."""
    reports = []
    for panelist in run.rules.panelists:
        name = panelist.id.removeprefix(prefix)
        if name == panelist.id:
            continue
        own_ballots = {
            item: ballots
            for item, ballots in run.ballots.items()
            if ballots.ranked(panelist.id, name)
        }
        winners = {v.item_id: v.winner for v in run.verdicts}
        own_rate = _rate(
            run, {item: float(b.top(panelist.id) == name) for item, b in own_ballots.items()}
        )
        panel = _rate(run, {item: float(winners[item] == name) for item in own_ballots})
        if own_rate is not None and panel is not None:
            reports.append(SelfReport(name, own_rate, panel))
    return reports


def pairs(run: RunData) -> list[JudgePair]:
    """Agreement of every two judges."""
    agreements = []
    for a, b in combinations([p.id for p in run.rules.panelists], 2):
        agreement_by_item = {
            n: _same_top(ballot, a, b)
            for n, ballot in run.ballots.items()
            if {a, b} <= set(ballot.ranks) and _same_field(ballot, a, b)
        }
        rate = _rate(run, agreement_by_item)
        if rate is not None:
            agreements.append(JudgePair(a, b, rate))
    return agreements


def _same_field(ballots: ItemRankings, a: str, b: str) -> bool:
    """Whether two judges ranked the same candidates."""
    first_absent, second_absent = (np.isnan(ballots.ranks[judge]).any(axis=0) for judge in (a, b))
    return bool(np.all(first_absent == second_absent))


def _same_top(ballots: ItemRankings, a: str, b: str) -> float:
    return float(ballots.top(a) == ballots.top(b))


def position(run: RunData) -> tuple[Interval | None, float | None]:
    """How often the panel's sole first places are the response shown first, and the expectation."""
    voting = {p.id for p in run.rules.voting}
    sole = [j for j in run.judgments if j.judge in voting and j.ranking and len(j.ranking[0]) == 1]
    if not sole:
        return None, None
    values = np.array([float((j.ranking or [[]])[0] == ["A0"]) for j in sole])
    clusters = np.array([run.clusters[j.item_id] for j in sole])
    expected_rate = float(np.mean([1 / len(run.blinds.labels(j)) for j in sole]))
    return wilson_clustered(values, clusters), expected_rate
