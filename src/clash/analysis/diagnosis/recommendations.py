"""Recommend to keep, down-weight or replace each judge, with reasons.

Every reason rests on an interval: what the data do not rule out is not held against a judge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from clash.stats.effectiveness import TARGET, break_even
from clash.stats.power.comparisons import required_two_proportions
from clash.stats.power.design import Clustering

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.diagnosis.judge_quality import JudgeFacts
    from clash.analysis.diagnosis.panel_quality import Thresholds, ThresholdStanding
    from clash.analysis.judge_edges import JudgeEdge, PanelEdges
    from clash.stats.intervals import Interval

Action = Literal["keep", "down-weight", "replace"]
FEW = 30
MOST_FAILURES = 0.10
MOST_FLIPS = 0.25
MOST_PULL = 0.05
LOPSIDED_SHARE = 0.7
"""Where one side has more than this share, agreement has to be read beside what it would give."""
EFFECT = 0.10
COIN = 0.2
"""An edge surely below this and not surely above 0 is that of a coin: right on under 60%."""
_WORST: tuple[Action, ...] = ("keep", "down-weight", "replace")


@dataclass(frozen=True)
class ActionReason:
    """A reason for an action.

    Attributes:
        code: one word for programs.
    """

    action: Action
    code: str
    text: str


@dataclass(frozen=True)
class Saving:
    """Runs needed in each of two conditions, as it is and with the judge replaced.

    The replacement decides as often as this judge, at least 40% of its ballots, and has the
    median edge of the other judges. Ten points, 80% power, alpha 5%.

    Attributes:
        now: null where the panel, as it is, would never show the difference.
        after: with the replacement; ``saves`` is now minus after.
    """

    now: int | None
    after: int | None
    saves: int | None


@dataclass(frozen=True)
class Recommendation:
    """The action recommended for a judge.

    Attributes:
        sure: enough decisive ballots (30), ties or failures to say so.
        weight: of its decisive votes against the best judge's, by the log-odds of being right
            (as in :class:`ThresholdStanding`); 0 for a judge no better than a coin.
        weight_interval: at the ends of the interval of its edge; null where that is not known.
    """

    judge: str
    action: Action
    sure: bool
    weight: float
    weight_interval: Interval | None
    reasons: tuple[ActionReason, ...]
    saving: Saving | None


@dataclass(frozen=True)
class _Case:
    """One judge with what is known of it and of the others."""

    facts: JudgeFacts
    edge: JudgeEdge
    standing: ThresholdStanding | None
    colleagues: tuple[JudgeEdge, ...]


def recommend(
    facts: Sequence[JudgeFacts],
    edges: PanelEdges,
    thresholds: Thresholds,
    icc: float,
) -> tuple[Recommendation, ...]:
    """An action for every judge, with the saving in runs that a replacement would bring.

    Args:
        facts: of all judges of the panel.
        edges: of the same judges.
        thresholds: what each judge contributes.
        icc: correlation of informative ballots of one item.
    """
    estimates = [edge.estimate for edge in edges.judges]
    standings = {standing.judge: standing for standing in thresholds.judges}
    recommendations = []
    for index, judge in enumerate(facts):
        colleagues = tuple(
            edge
            for edge, colleague in zip(edges.judges, facts, strict=True)
            if colleague is not judge and _enough(colleague)
        )
        case = _Case(judge, edges.judges[index], standings.get(judge.judge), colleagues)
        reasons = tuple(_reasons(case, edges))
        action: Action = max((r.action for r in reasons), key=_WORST.index, default="keep")
        sure = _enough(judge) or _fails(judge)
        if not sure:
            action = "replace" if not judge.ballots and judge.failed else "keep"
        saving = _saving(facts, estimates, index, icc) if action == "replace" else None
        if _only_ties(reasons) and saving is not None and (saving.saves or 0) <= 0:
            # It decides rarely but well: another one would not do better in its place.
            action = "down-weight"
        weight = 1.0 if case.standing is None else case.standing.weight
        interval = None if case.standing is None else case.standing.weight_interval
        recommendations.append(
            Recommendation(judge.judge, action, sure, weight, interval, reasons, saving)
        )
    return tuple(recommendations)


def _only_ties(reasons: Sequence[ActionReason]) -> bool:
    return {r.code for r in reasons if r.action == "replace"} == {"ties"}


def _enough(judge: JudgeFacts) -> bool:
    """Decisive ballots, or so many ballots that their rarity is itself the finding."""
    if judge.decisive >= FEW or judge.ballots >= 2 * FEW:
        return True
    return judge.ballots >= FEW and judge.discrimination.high < TARGET


def _fails(judge: JudgeFacts) -> bool:
    """Whether its failures alone are enough for a recommendation."""
    return judge.failed >= FEW and judge.failures.low > MOST_FAILURES


def _reasons(case: _Case, edges: PanelEdges) -> list[ActionReason]:
    judge = case.facts
    if not judge.ballots:
        return [ActionReason("replace", "silent", f"no usable ballot, {judge.failed} failed")]
    if not _enough(judge):
        text = f"{judge.decisive} decisive ballots are too few to say more (30 are needed)"
        failing = _failures(judge) if _fails(judge) else None
        return [*([failing] if failing else []), ActionReason("keep", "few", text)]
    candidates = [
        _discrimination(judge),
        _direction(case, edges),
        _against_others(case),
        _failures(judge),
        _flips(judge),
        _pull(judge),
        _repeats(judge),
    ]
    return [reason for reason in candidates if reason is not None]


def _discrimination(judge: JudgeFacts) -> ActionReason:
    rate = judge.discrimination
    finding = f"decides {percent_range(rate)} of its ballots"
    tied_labels = judge.tied_labels
    if rate.estimate < TARGET and tied_labels is not None and tied_labels.low > 0.5:
        text = f"{finding}; {percent_range(tied_labels)} of its ties are ties of the labels too"
        return ActionReason("keep", "equivalence", text)
    if rate.high < TARGET:
        text = f"{finding}, below the {TARGET:.0%} that a replacement should reach"
        return ActionReason("replace", "ties", text)
    if rate.estimate < TARGET:
        return ActionReason("down-weight", "ties", f"{finding}; {TARGET:.0%} is not ruled out")
    return ActionReason("keep", "decides", finding)


def _direction(case: _Case, edges: PanelEdges) -> ActionReason:
    """Whether the judge is better than a coin, and whether an equal vote of it helps the panel.

    Agreement with the others is never held against a judge by itself: good judges of hard items
    agree little too. What is held against it is an edge that is surely not above chance.
    """
    edge, standing = case.edge, case.standing
    if edge.edge is None or edge.accuracy is None:
        return ActionReason("keep", "alone", f"how good it is cannot be told: {edges.unknown}")
    finding = _finding(case)
    low, high = edge.edge.low, edge.edge.high
    takes_away = standing is not None and standing.takes_away
    worst: Action = "replace" if edge.evidence else "down-weight"
    doubt = "" if edge.evidence else "; the judges err together, so that labels should confirm it"
    if high < 0:
        return ActionReason(worst, "inverted", f"points the wrong way: {finding}{doubt}")
    if low <= 0 and (takes_away or high < COIN):
        return ActionReason(worst, "noise", f"no better than a coin: {finding}{doubt}")
    # Rare decisions are judged by their own rule; here the decisions have to be bad ones.
    if takes_away and edge.evidence and high < break_even(_estimates(case.colleagues)):
        text = f"too weak for a full vote: {finding}; the panel is better without it"
        return ActionReason("down-weight", "weak", f"{text}, or with the weight beside it")
    if low <= 0:
        return ActionReason("keep", "unsure", f"may be no better than a coin: {finding}")
    return ActionReason("keep", "signal", f"better than a coin: {finding}")


def _estimates(edges: Sequence[JudgeEdge]) -> list[float]:
    return [edge.estimate for edge in edges if edge.edge is not None]


def _finding(case: _Case) -> str:
    """How often the judge is right, by what, and on how many ballots."""
    edge, label = case.edge, case.facts.label
    if edge.edge is None or edge.accuracy is None:
        return ""
    right = f"right on {percent_range(edge.accuracy)}"
    if edge.source == "agreement":
        return f"{right} of its decisive ballots, estimated from agreement alone"
    finding = f"{right} of {edge.accuracy.n:g} decisive ballots with a label"
    if label is not None and label.commoner > LOPSIDED_SHARE:
        finding += (
            f", where always naming the more common side is right on {label.commoner:.0%}"
            f" (both sides alike: {percent_range(edge.edge.transform(lambda end: (1 + end) / 2))})"
        )
    return finding


def _against_others(case: _Case) -> ActionReason | None:
    """A judge that is clearly worse than the typical one should not weigh as much.

    By labels only: they measure all judges by the same thing.
    """
    edge = case.edge
    peers = [o.accuracy.estimate for o in case.colleagues if o.source == "labels" and o.accuracy]
    if edge.source != "labels" or edge.accuracy is None or not peers:
        return None
    typical = median(peers)
    # Judges differ; five points below the middle, the interval included, is more than that.
    if edge.accuracy.high < typical - 0.05:
        text = (
            f"clearly below the panel: {percent_range(edge.accuracy)} against {typical:.0%} of the median"
            " judge, by the labels"
        )
        return ActionReason("down-weight", "below", text)
    return None


def _failures(judge: JudgeFacts) -> ActionReason | None:
    if judge.failures.low > MOST_FAILURES:
        return ActionReason(
            "down-weight", "fails", f"fails on {percent_range(judge.failures)} of its ballots"
        )
    return None


def _flips(judge: JudgeFacts) -> ActionReason | None:
    flips = judge.slots.flips
    if flips is None or flips.rate.n < FEW:
        return None
    if flips.rate.low > MOST_FLIPS:
        text = f"changes its winner with the order in {percent_range(flips.rate)} of decided pairs"
        return ActionReason("down-weight", "flips", text)
    return None


def _pull(judge: JudgeFacts) -> ActionReason | None:
    pull = judge.slots.pull
    if pull is None or pull.n < FEW:
        return None
    if pull.high >= -MOST_PULL and pull.low <= MOST_PULL:
        return None
    slot = "first" if pull.estimate > 0 else "second"
    ends = sorted((abs(100 * pull.low), abs(100 * pull.high)))
    text = (
        f"picks the response shown {slot} {abs(100 * pull.estimate):.0f} points"
        f" [{ends[0]:.0f}, {ends[1]:.0f}] more often than {judge.slots.pull_by} on the same ballots"
    )
    if judge.slots.both_orders:
        return ActionReason("down-weight", "position", text)
    # A judge that likes what stands there by chance or by name does the same.
    return ActionReason(
        "keep", "side", f"{text}; one order alone cannot separate position from preference"
    )


def _repeats(judge: JudgeFacts) -> ActionReason | None:
    consistency = judge.consistency
    if consistency is None or consistency.n < FEW:
        return None
    if consistency.high < 0.75:
        text = f"repeats itself on {percent_range(consistency)} of pairs of votes only"
        return ActionReason("down-weight", "inconsistent", text)
    return None


def percent_range(interval: Interval) -> str:
    """A share and its interval, in whole percent."""
    return f"{interval.estimate:.0%} [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def _saving(
    facts: Sequence[JudgeFacts], edges: Sequence[float], index: int, icc: float
) -> Saving | None:
    """Runs now, and with a replacement for one judge."""
    other_edges = [e for i, e in enumerate(edges) if i != index and not math.isnan(e) and e > 0]
    if not other_edges:
        return None
    typical = median(other_edges)
    rates = [judge.discrimination.estimate for judge in facts]
    share = [1.0 if math.isnan(e) else min(1.0, e / typical) for e in edges]
    prompts = max(1, max(judge.prompts for judge in facts))
    ballots_per_prompt = [judge.ballots / prompts for judge in facts]
    now = _runs(ballots_per_prompt, rates, share, icc)
    rates[index], share[index] = max(TARGET, rates[index]), 1.0
    after = _runs(ballots_per_prompt, rates, share, icc)
    gap = None if now is None or after is None else now - after
    return Saving(now, after, gap)


def _runs(
    ballots_per_prompt: Sequence[float], rates: Sequence[float], share: Sequence[float], icc: float
) -> int | None:
    """Runs in each condition for ten points as a judge of the typical edge sees them."""
    informative = [b * d for b, d in zip(ballots_per_prompt, rates, strict=True)]
    size = sum(informative)
    if size <= 0:
        return None
    visible_share = sum(m * s for m, s in zip(informative, share, strict=True)) / size
    if visible_share <= 0.02:
        return None
    effect = min(EFFECT * visible_share, 0.99)
    return required_two_proportions(effect, 0.5, Clustering(size, icc)).clusters
