"""How each judge sat: what it answered, whom it agrees with, which place on the page it favours."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash import baselines
from clash.analysis.concordance.method_table import chance_credit
from clash.analysis.coverage import cause
from clash.stats.intervals import Interval, wilson_clustered
from clash.votes.ballots import outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.rundata import RunData
    from clash.votes.ballots import JudgmentOutcome
    from clash.votes.from_run import Panelist


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
    tallies = {p.id: _JudgeTally() for p in run.rules.panelists}
    for judgment in outcomes(run.judgments):
        if judgment.judge in tallies:
            tallies[judgment.judge].add(run, judgment)
    return [_report(run, p, tallies[p.id]) for p in run.rules.panelists]


class _PageValues:
    """A value of each page, in the order of the judgments; of a page judged twice, the last."""

    def __init__(self) -> None:
        self._keys, self._values = array("q"), array("d")

    def add(self, item: int, presentation: int, value: float) -> None:
        self._keys.append(presentation << 40 | item)
        self._values.append(value)

    def rate(self, run: RunData) -> Interval | None:
        """A proportion over pages, clustered by prompt."""
        if not self._values:
            return None
        keys, values = np.asarray(self._keys), np.asarray(self._values)
        if len(np.unique(keys)) < len(keys):
            last = dict(zip(keys.tolist(), values.tolist(), strict=True))
            keys, values = np.array([*last]), np.array([*last.values()])
        return wilson_clustered(values, run.cluster_codes[keys & ((1 << 40) - 1)])


@dataclass
class _JudgeTally:
    """What is counted of a judge's judgments."""

    failures: Counter[str] = field(default_factory=Counter)
    items: array[int] = field(default_factory=lambda: array("i"))
    ties: _PageValues = field(default_factory=_PageValues)
    first_shown: _PageValues = field(default_factory=_PageValues)
    sizes: array[int] = field(default_factory=lambda: array("i"))
    firsts: dict[str, list[list[str]]] = field(default_factory=dict)

    def add(self, run: RunData, judgment: JudgmentOutcome) -> None:
        if not judgment.is_usable:
            self.failures[cause(judgment)] += 1
            return
        page = run.rows[judgment.item_id], judgment.presentation
        self.items.append(page[0])
        labels = run.blinds.labels(judgment)
        if judgment.ranking:
            self.ties.add(*page, float(len(judgment.ranking[0]) > 1))
            if len(judgment.ranking[0]) == 1:
                self.first_shown.add(*page, float(judgment.ranking[0] == ["A0"]))
                self.sizes.append(len(labels))
        if judgment.ranking is not None and run.rules.presentations > 1:
            top = sorted(labels[label] for label in (judgment.ranking or [[]])[0])
            self.firsts.setdefault(judgment.item_id, []).append(top)


def _report(run: RunData, panelist: Panelist, tally: _JudgeTally) -> JudgeReport:
    sizes = tally.sizes
    return JudgeReport(
        judge=panelist.id,
        role=panelist.role,
        weight=panelist.weight,
        model=panelist.model,
        n_judged=len(np.unique(tally.items)),
        failures=dict(tally.failures),
        ties=tally.ties.rate(run),
        agreement=_rate(run, _agreement(run, panelist.id)),
        first_shown=tally.first_shown.rate(run),
        first_expected=sum(1 / size for size in sizes) / len(sizes) if sizes else None,
        flips=_flips(run, tally.firsts),
        stands_in_for=panelist.stands_in_for,
    )


def _rate(run: RunData, values: Mapping[str, float]) -> Interval | None:
    """A proportion over items, clustered by prompt."""
    if not values:
        return None
    clusters = [run.clusters[item_id] for item_id in values]
    return wilson_clustered(list(values.values()), clusters)


def _agreement(run: RunData, judge: str) -> dict[str, float]:
    """1 where the first place is the verdict's winner, 0 else; a tied first place is no match.

    Items whose winner the judge does not judge are left out.
    """
    winners = {v.item_id: v.winner for v in run.verdicts if v.winner is not None}
    return {
        item: float(ballots.top(judge) == winners[item])
        for item, ballots in run.ballots.items()
        if item in winners and ballots.has_ranked(judge, winners[item])
    }


def _flips(run: RunData, firsts: Mapping[str, list[list[str]]]) -> Interval | None:
    """How often the winner changes when the order is reversed."""
    if run.rules.presentations < 2:
        return None
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
            if ballots.has_ranked(panelist.id, name)
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
            n: float(ballot.top(a) == ballot.top(b))
            for n, ballot in run.ballots.items()
            if a in ballot.ranks and b in ballot.ranks and ballot.fields[a] == ballot.fields[b]
        }
        rate = _rate(run, agreement_by_item)
        if rate is not None:
            agreements.append(JudgePair(a, b, rate))
    return agreements


def position(run: RunData) -> tuple[Interval | None, float | None]:
    """How often the panel's sole first places are the response shown first, and the expectation."""
    voting = {p.id for p in run.rules.voting}
    values, clusters, shares = array("d"), array("q"), array("d")
    for j in outcomes(run.judgments):
        if j.judge in voting and j.ranking and len(j.ranking[0]) == 1:
            values.append(float(j.ranking[0] == ["A0"]))
            clusters.append(run.clusters[j.item_id])
            shares.append(1 / len(run.blinds.labels(j)))
    if not values:
        return None, None
    return wilson_clustered(values, clusters), float(np.mean(shares))
