"""Where do they differ? The items by how the judges split, and what people say of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.pages import Part, StackRow, stack_chart
from clash.report.formats import plural
from clash.report.html.blocks import PageFigure, Question

if TYPE_CHECKING:
    from clash.analysis.differences import Differences, SplitGroup
    from clash.analysis.findings import Findings


def differ(findings: Findings, apart: Differences) -> Question:
    """The section, but for the list of items."""
    return Question(
        anchor="differ",
        title="Where do they differ?",
        nav="Differences",
        answer=_against_people(findings, apart)
        if apart.labelled
        else _among_judges(findings, apart),
        aside="",
        figure=_picture(findings, apart),
    )


def _n(apart: Differences, *kinds: str) -> int:
    return sum(group.n for group in apart.groups if group.kind in kinds)


def _voting(findings: Findings) -> int:
    return sum(judge.role == "voting" for judge in findings.judges)


def _against_people(findings: Findings, apart: Differences) -> str:
    if not apart.disagree:
        return f"Nowhere that people looked: they agree on {_all_of(apart.labelled, 'labelled prompt')}."
    start = f"People disagree with the panel on {apart.disagree} of"
    start += f" {plural(apart.labelled, 'labelled prompt')}."
    n_unanimous = sum(g.disagree for g in apart.groups if g.kind == "unanimous")
    if _voting(findings) < 2:
        return start
    if n_unanimous == 0:
        return (
            f"Only where the judges differ too. {start} On none of these were the judges unanimous."
        )
    if n_unanimous == apart.disagree:
        return f"Even where the judges agree. {start} On all of these the judges were unanimous."
    return f"{start} On {n_unanimous} of these the judges were unanimous."


def _all_of(n: int, noun: str) -> str:
    return f"all {plural(n, noun)}" if n > 1 else f"the one {noun}"


def _among_judges(findings: Findings, apart: Differences) -> str:
    total = findings.coverage.items
    if _voting(findings) < 2:
        return f"One judge decides, so it differs with nobody. {plural(total, 'prompt')} in all."
    unanimous, open_ = _n(apart, "unanimous"), _n(apart, "none")
    text = f"The judges are unanimous on {unanimous} of {plural(total, 'prompt')}."
    split, tied = _n(apart, "split"), _n(apart, "tied")
    remainder = [
        words
        for n, words in (
            (split, f"split on {split}"),
            (tied, f"level on {tied}"),
            (open_, f"without a verdict on {open_}"),
        )
        if n
    ]
    return f"{text} They are {', '.join(remainder)}." if remainder else text


def _picture(findings: Findings, apart: Differences) -> PageFigure | None:
    rows = [
        _row(group, _voting(findings), has_labels=bool(apart.labelled)) for group in apart.groups
    ]
    if len(rows) < 2:
        return None
    chart = stack_chart(rows, label="Prompts by how the judges split")
    title = "Prompts by how the judges split"
    return PageFigure(title, chart, has_key=bool(apart.labelled))


def _row(group: SplitGroup, n_judges: int, *, has_labels: bool) -> StackRow:
    judges = "both judges" if n_judges == 2 else f"all {n_judges} judges"
    name = {
        "unanimous": f"{judges} agree" if n_judges > 1 else "decided",
        "split": "a majority decides" if n_judges > 1 else "decided",
        "tied": "level",
        "none": "no verdict",
    }[group.kind]
    parts = (
        Part("disagree", group.disagree),
        Part("agree", group.agree),
        Part("unknown", group.unlabelled),
    )
    figure = f"{group.n:,}"
    with_label = group.disagree + group.agree
    note = (
        f"people disagree on {group.disagree} of {with_label}" if has_labels and with_label else ""
    )
    return StackRow(name, parts, figure, note)
