"""Recommend to keep, down-weight or replace each judge, with reasons.

Every reason rests on an interval: what the data do not rule out is not held against a judge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from clash.analysis.diagnosis.judge_quality import NOISE, SIGNAL
from clash.stats.effectiveness import TARGET
from clash.stats.power import Clustering, required_two_proportions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.diagnosis.judge_quality import JudgeFacts
    from clash.stats.intervals import Interval

Action = Literal["keep", "down-weight", "replace"]
FEW = 30
MOST_FAILURES = 0.10
MOST_FLIPS = 0.25
MOST_PULL = 0.05
LOPSIDED_SHARE = 0.7
"""Where one side has more than this share, agreement has to be read beside what it would give."""
EFFECT = 0.10
_LEAST = 0.1
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
        weight: of its decisive ballots against those of the best judge, by edge; 0 where it
            should not vote.
    """

    judge: str
    action: Action
    sure: bool
    weight: float
    reasons: tuple[ActionReason, ...]
    saving: Saving | None


def recommend(facts: Sequence[JudgeFacts], icc: float) -> tuple[Recommendation, ...]:
    """An action for every judge, with the saving in runs that a replacement would bring.

    Args:
        facts: of all judges of the panel.
        icc: correlation of informative ballots of one item.
    """
    edges = [_edge(judge) for judge in facts]
    best = {
        person: max(
            (
                e
                for e, j in zip(edges, facts, strict=True)
                if _enough(j) and j.person == person and not math.isnan(e)
            ),
            default=0.0,
        )
        for person in (False, True)
    }
    recommendations = []
    for index, judge in enumerate(facts):
        reasons = tuple(_reasons(judge, [*facts[:index], *facts[index + 1 :]]))
        action: Action = max((r.action for r in reasons), key=_WORST.index, default="keep")
        sure = _enough(judge) or _fails(judge)
        if not sure:
            action = "replace" if not judge.ballots and judge.failed else "keep"
        saving = _saving(facts, edges, index, icc) if action == "replace" else None
        if _only_ties(reasons) and saving is not None and (saving.saves or 0) <= 0:
            # It decides rarely but well: another one would not do better in its place.
            action = "down-weight"
        recommendations.append(
            Recommendation(
                judge.judge,
                action,
                sure,
                _weight(action, edges[index], best[judge.person]),
                reasons,
                saving,
            )
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


def _edge(judge: JudgeFacts) -> float:
    reference = judge.reference
    return math.nan if reference is None else reference.edge


def _weight(action: Action, edge: float, best: float) -> float:
    if action == "replace":
        return 0.0
    if action == "keep" or not best > 0 or math.isnan(edge):
        return 1.0
    return round(min(1.0, max(_LEAST, edge / best)), 2)


def _reasons(judge: JudgeFacts, other_judges: Sequence[JudgeFacts]) -> list[ActionReason]:
    if not judge.ballots:
        return [ActionReason("replace", "silent", f"no usable ballot, {judge.failed} failed")]
    if not _enough(judge):
        text = f"{judge.decisive} decisive ballots are too few to say more (30 are needed)"
        failing = _failures(judge) if _fails(judge) else None
        return [*([failing] if failing else []), ActionReason("keep", "few", text)]
    candidates: list[ActionReason | None] = [
        _discrimination(judge),
        _direction(judge, other_judges),
    ]
    candidates += _against_others(judge, other_judges)
    candidates += [_failures(judge), _flips(judge), _pull(judge), _repeats(judge)]
    return [reason for reason in candidates if reason is not None]


def _discrimination(judge: JudgeFacts) -> ActionReason:
    rate = judge.discrimination
    finding = f"decides {_range(rate)} of its ballots"
    tied_labels = judge.tied_labels
    if rate.estimate < TARGET and tied_labels is not None and tied_labels.low > 0.5:
        text = f"{finding}; {_range(tied_labels)} of its ties are ties of the labels too"
        return ActionReason("keep", "equivalence", text)
    if rate.high < TARGET:
        text = f"{finding}, below the {TARGET:.0%} that a replacement should reach"
        return ActionReason("replace", "ties", text)
    if rate.estimate < TARGET:
        return ActionReason("down-weight", "ties", f"{finding}; {TARGET:.0%} is not ruled out")
    return ActionReason("keep", "decides", finding)


def _direction(judge: JudgeFacts, other_judges: Sequence[JudgeFacts]) -> ActionReason:
    reference = judge.reference
    if reference is None or math.isnan(reference.kappa.estimate):
        text = "no other judge decided the same ballots, so its direction is unknown"
        return ActionReason("keep", "alone", text)
    finding = (
        f"agrees with {judge.reference_name} on {_range(reference.share)} of {reference.n} decisive"
        f" ballots (kappa {reference.kappa.estimate:.2f} [{reference.kappa.low:.2f},"
        f" {reference.kappa.high:.2f}])"
    )
    if reference.kappa.estimate < NOISE and reference.commoner > LOPSIDED_SHARE:
        finding += f", where always naming the more common side agrees on {reference.commoner:.0%}"
    worst: Action = "replace"
    doubt = ""
    if reference is judge.rest and judge.label is not None and judge.label.kappa.high > NOISE:
        worst = "down-weight"
        doubt = f"; {judge.label.n} labelled ballots do not rule out that it is right"
    elif (
        reference is judge.rest
        and sum(other_judge.ballots > 0 for other_judge in other_judges) == 1
    ):
        worst = "down-weight"
        doubt = "; with two judges it is unknown which one it is"
    if reference.kappa.high < 0:
        return ActionReason(worst, "inverted", f"points the wrong way: {finding}{doubt}")
    if reference.kappa.high < NOISE:
        return ActionReason(worst, "noise", f"noise: {finding}{doubt}")
    if reference.kappa.estimate < NOISE:
        return ActionReason("down-weight", "weak", f"close to noise: {finding}")
    word = "signal" if reference.kappa.estimate > SIGNAL else "moderate signal"
    return ActionReason("keep", "signal", f"{word}: {finding}")


def _against_others(judge: JudgeFacts, other_judges: Sequence[JudgeFacts]) -> list[ActionReason]:
    """A judge that is clearly worse than the typical one should not weigh as much.

    By labels only: each judge has a rest of its own, so agreement with it is no common measure.
    """
    reference = judge.reference
    peers = [
        j.reference.share.estimate
        for j in other_judges
        if _enough(j) and j.reference is not None and j.reference is j.label
    ]
    if reference is None or reference is not judge.label or not peers:
        return []
    typical = median(peers)
    # Judges differ; five points below the middle, the interval included, is more than that.
    if reference.share.high < typical - 0.05:
        text = (
            f"clearly below the panel: {_range(reference.share)} against {typical:.0%} of the "
            "median"
            f" judge, by the labels"
        )
        return [ActionReason("down-weight", "below", text)]
    return []


def _failures(judge: JudgeFacts) -> ActionReason | None:
    if judge.failures.low > MOST_FAILURES:
        return ActionReason(
            "down-weight", "fails", f"fails on {_range(judge.failures)} of its ballots"
        )
    return None


def _flips(judge: JudgeFacts) -> ActionReason | None:
    flips = judge.slots.flips
    if flips is None or flips.rate.n < FEW:
        return None
    if flips.rate.low > MOST_FLIPS:
        text = f"changes its winner with the order in {_range(flips.rate)} of decided pairs"
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
        text = f"repeats itself on {_range(consistency)} of pairs of votes only"
        return ActionReason("down-weight", "inconsistent", text)
    return None


def _range(interval: Interval) -> str:
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
