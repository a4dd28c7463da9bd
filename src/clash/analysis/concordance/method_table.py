"""One table of everything that could have decided: chance, baselines, each judge, the panel, people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from clash.analysis.concordance.cases import CaseRate, LabelledCase, codes, concordance_of, rate
from clash.labels import TIE
from clash.stats.hypothesis_tests import Significance, paired_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance.headline import People
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval

Kind = Literal["chance", "baseline", "judge", "observer", "panel", "people", "published"]


@dataclass(frozen=True)
class Method:
    """Something that could have decided, and how often it says what people say.

    Attributes:
        rate: over all labelled items, for a baseline those that have text, for a judge those it
            was asked of; null where only a published figure is known.
        against: the panel less this, on the same items: difference, interval and paired test.
        source: where a published figure is from.
    """

    name: str
    kind: Kind
    estimate: float
    rate: CaseRate | None = None
    interval: Interval | None = None
    against: Interval | None = None
    test: Significance | None = None
    source: str = ""


def methods(run: RunData, cases: Sequence[LabelledCase], people: People | None) -> list[Method]:
    """Every line, in the order in which to read them."""
    panel = [float(case.right) for case in cases]
    # What a guess may expect is no estimate, so it has no interval.
    lines = [replace(_line("random guess", "chance", cases, _chance(cases), panel), interval=None)]
    lines += _baselines(run, cases, panel)
    for panelist in run.rules.panelists:
        kind: Kind = "judge" if panelist.role == "voting" else "observer"
        lines += _judge(panelist.id, kind, cases)
    lines.append(_panel(run, cases))
    if people is not None:
        lines.append(_person("two people, any vote", people.agreement))
        if people.decisive is not None:
            lines.append(_person("two people, votes without ties", people.decisive))
    return [*lines, *published_methods(run)]


def _panel(run: RunData, cases: Sequence[LabelledCase]) -> Method:
    panel_rate = concordance_of(cases)
    name = f"panel of {len(run.rules.voting)} ({run.rules.method})"
    return Method(name, "panel", panel_rate.estimate, panel_rate, panel_rate.interval)


def _line(
    name: str,
    kind: Kind,
    cases: Sequence[LabelledCase],
    credit: Sequence[float],
    panel: Sequence[float],
    has_verdict: Sequence[bool] | None = None,
) -> Method:
    groups = codes(cases)
    method_rate = rate(credit, groups, has_verdict)
    gap = paired_difference(panel, credit, groups)
    return Method(
        name,
        kind,
        method_rate.estimate,
        method_rate,
        method_rate.interval,
        gap.difference,
        gap.test,
    )


def _chance(cases: Sequence[LabelledCase]) -> list[float]:
    """A blind guess among the candidates; it never says tie."""
    return [0.0 if case.label == TIE else 1 / len(case.candidates) for case in cases]


def _judge(judge: str, kind: Kind, cases: Sequence[LabelledCase]) -> list[Method]:
    # An observer is compared on the items that it saw, a judge of the panel on those it was asked.
    cases = [
        case
        for case in cases
        if (judge in case.tops if kind == "observer" else judge not in case.unasked_judges)
    ]
    has_vote = [judge in case.tops for case in cases]
    if not any(has_vote):
        return []
    panel = [float(case.right) for case in cases]
    right = [float(case.tops.get(judge) == case.label) for case in cases]
    return [_line(judge, kind, cases, right, panel, has_vote)]


def _baselines(run: RunData, cases: Sequence[LabelledCase], panel: Sequence[float]) -> list[Method]:
    """The baselines, over the items that have text, and the panel less them on these alone."""
    lines = []
    for name, tops in run.baseline_tops.items():
        readable = [at for at, case in enumerate(cases) if case.item_id in tops]
        if readable:
            read_cases = [cases[at] for at in readable]
            credit = [chance_credit(tops[case.item_id], case.label) for case in read_cases]
            beside = [panel[at] for at in readable]
            lines.append(_line(f"baseline: {name}", "baseline", read_cases, credit, beside))
    return lines


def chance_credit(top: Sequence[str], label: str) -> float:
    """What a first place earns: a tie of k has a chance of 1/k to guess a winner right."""
    if label == TIE:
        return float(len(top) > 1)
    return 1 / len(top) if label in top else 0.0


def _person(name: str, interval: Interval) -> Method:
    return Method(name, "people", interval.estimate, interval=interval)


def published_methods(run: RunData) -> list[Method]:
    """Figures of other work on this data set, as its catalogue entry gives them."""
    return [
        Method(str(line["name"]), "published", float(line["value"]), source=str(line["source"]))
        for line in run.manifest.dataset.get("published", [])
    ]
