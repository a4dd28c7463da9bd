"""What a diagnosis says first: how good the judges are, and what panel they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.diagnosis.recommendations import percent_range
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.analysis.diagnosis.panel_quality import PanelFacts
    from clash.analysis.judge_edges import PanelEdges
    from clash.stats.intervals import Interval
    from clash.votes import LabelUse

ALARM = 0.3
"""Krippendorff's alpha on decisive ballots below which a panel agrees too little to be trusted
unseen. It says nothing about any one judge."""


def summary(
    edges: PanelEdges, panel: PanelFacts, labels: LabelUse, *, has_people: bool = False
) -> Iterator[str]:
    """The findings a reader should leave with, the most important first.

    Args:
        edges: how good the judges are.
        panel: what they are together.
        labels: how many rows have one, and whether they are used.
        has_people: whether some of the judges are people.
    """
    yield _panel_sentence(edges, panel)
    if edges.unknown and has_people:
        yield f"Not every judge can be measured: {edges.unknown}."
    elif edges.unknown:
        yield (
            f"Not every judge can be measured: {edges.unknown}. Labels for 30 of a judge's votes"
            " that are no ties would tell."
        )
    elif edges.source == "agreement" and edges.is_dependent:
        yield (
            f"These judges err together (independence is rejected, p = {edges.p_independent:.2g}):"
            " accuracies from agreement alone are then too high, and so is the panel's. No judge is"
            " replaced on this ground; labels on 30 items would tell."
        )
    elif edges.source == "agreement":
        yield (
            "Estimated from agreement alone: it assumes that judges err independently, that most of"
            " them are better than a coin, and that they lean to neither side on average."
            f" {_test_note(edges)}"
        )
    if panel.alpha_decisive.estimate < ALARM and panel.judges > 1:
        yield (
            f"Alarm: the panel agrees little (Krippendorff's alpha {_number(panel.alpha_decisive)}"
            f" on decisive ballots, below {ALARM:g}). That is no verdict on any one judge:"
            " items may be hard, or a judge may point the wrong way; the accuracies tell which."
        )
    note = " They do not measure people, of whose votes labels are made." if has_people else ""
    use = labels.sentence if has_people else edges.label_use(labels)
    yield f"Labels: {use}.{note}"


def _panel_sentence(edges: PanelEdges, panel: PanelFacts) -> str:
    judges = [judge for judge in edges.judges if judge.accuracy is not None]
    if not judges or edges.mean_accuracy is None:
        return "How good the judges are cannot be told from the votes alone."
    count = plural(len(judges), "judge")
    verb = "are" if len(judges) > 1 else "is"
    right = f"{count} of {panel.judges}" if len(judges) < panel.judges else f"Your {count}"
    start = f"{right} {verb} right on {edges.mean_accuracy:.0%} of their votes on average"
    if len(judges) == 1:
        return f"{right} {verb} right on {edges.mean_accuracy:.0%} of its votes."
    if edges.accuracy is None:
        return f"{start}."
    by = "by the labels" if edges.source == "labels" else "if they err independently"
    return (
        f"{start} and make a panel that is right on {percent_range(edges.accuracy)} of items, {by}."
    )


def _test_note(edges: PanelEdges) -> str:
    if edges.p_independent is None:
        return "Three judges cannot test the first of these."
    return f"The votes do not contradict the first of these (p = {edges.p_independent:.2g})."


def _number(interval: Interval) -> str:
    return f"{interval.estimate:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
