"""The conclusion of a run on single texts: how many pass, or which candidate is better."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from clash.analysis.decision import Decision, p_text
from clash.analysis.diagnosis.recommendations import percent_range
from clash.analysis.settling import ALPHA
from clash.wording import plural

if TYPE_CHECKING:
    from clash.analysis.single_text import TextContrast, TextFindings, TextGroup

_MEASURES = {
    "passes": "passes more often",
    "score": "has higher scores",
    "label": "is {} more often",
}


def decision_on_texts(findings: TextFindings) -> Decision:
    """Word the decision.

    Of several candidates the one with the highest value is tested against each other one, paired by
    item, with Holm's correction over all pairs. ``share`` is then the difference to the closest.
    """
    if not findings.n_decided:
        reason = f"No decision: none of {plural(findings.n_texts, 'text')} could be judged."
        return Decision("none", None, None, None, None, None, reason)
    if not findings.contrasts:
        return Decision(
            "decided", None, None, None, None, None, _summary(findings, findings.groups[0])
        )
    leader = max(findings.candidates, key=lambda group: (_value(findings, group), group.candidate))
    rivals = [_seen_from(leader.candidate, c) for c in findings.contrasts]
    against = [contrast for contrast in rivals if contrast is not None]
    if not against:
        return Decision(
            "decided", None, None, None, None, None, _summary(findings, findings.groups[0])
        )
    # Over all its texts a candidate may lead one that is ahead on the items that both have.
    closest = max(
        against, key=lambda c: (c.difference.estimate <= 0, c.p_holm, -c.difference.estimate)
    )
    status: Literal["decided", "leading", "tied"]
    is_ahead = closest.difference.estimate > 0
    verb = _MEASURES[closest.measure].format(f'"{findings.labels[0]}"' if findings.labels else "")
    gap = f"{_gap(closest)}, {p_text(closest.p_holm)}"
    if is_ahead and closest.p_holm <= ALPHA and len(against) == len(findings.candidates) - 1:
        sentence = f"{closest.first} {verb} than {closest.second} ({gap})."
        status = "decided"
    elif is_ahead:
        sentence = f"No clear difference: {closest.first} leads {closest.second}, {gap}."
        status = "leading"
    elif closest.difference.estimate < 0 and closest.p_holm <= ALPHA:
        sentence = (
            f"No decision: {closest.first} leads over all its texts, {closest.second} on the items"
            f" that both have ({gap})."
        )
        status = "tied"
    else:
        sentence = f"No clear difference between {closest.first} and {closest.second} ({gap})."
        status = "tied"
    return Decision(
        status,
        closest.first if status != "tied" else None,
        closest.second,
        closest.difference,
        closest.p_holm,
        None,
        sentence,
    )


def _value(findings: TextFindings, group: TextGroup) -> float:
    interval = group.pass_rate or group.score or group.shares.get(next(iter(findings.labels), ""))
    return -1.0 if interval is None or interval.estimate != interval.estimate else interval.estimate


def _seen_from(name: str, contrast: TextContrast) -> TextContrast | None:
    """The contrast with this candidate first; null where it compares two others."""
    if contrast.first == name:
        return contrast
    if contrast.second != name:
        return None
    return replace(
        contrast, first=name, second=contrast.first, difference=contrast.difference.negative()
    )


def _gap(contrast: TextContrast) -> str:
    gap = contrast.difference
    if contrast.measure == "score":
        # Rounded, and 0 added: a difference of -0.001 is no "-0.00".
        middle, low, high = (round(end, 2) + 0.0 for end in (gap.estimate, gap.low, gap.high))
        return f"{middle:+.2f} points [{low:+.2f}, {high:+.2f}]"
    return f"{round(100 * gap.estimate):+d} points [{100 * gap.low:+.0f}, {100 * gap.high:+.0f}]"


def _summary(findings: TextFindings, group: TextGroup) -> str:
    """The share that passes, the mean score, or the share of each label."""
    texts = plural(findings.n_texts, "text")
    if group.pass_rate is not None:
        return f"{percent_range(group.pass_rate)} of {texts} pass: {passing_words(findings)}."
    if group.score is not None:
        score, (low, high) = group.score, findings.scale
        return (
            f"Mean score of {texts}: {score.estimate:.2f} [{score.low:.2f}, {score.high:.2f}]"
            f" on a scale from {low} to {high}."
        )
    first, *rest_of_labels = sorted(group.shares.items(), key=lambda pair: -pair[1].estimate)
    parts = [f"{first[0]} {percent_range(first[1])}"]
    parts += [
        f"{name} {share.estimate:.0%}" for name, share in rest_of_labels if share.estimate > 0
    ][:2]
    if group.n > group.n_decided:
        parts.append(f"no verdict {1 - group.n_decided / group.n:.0%}")
    return f"{texts.capitalize()}: {', '.join(parts)}."


def passing_words(findings: TextFindings) -> str:
    """What passes: ``relevant``, or ``4 or more``."""
    if isinstance(findings.passing, list):
        return " or ".join(findings.passing)
    return f"a score of {findings.passing:g} or more"
