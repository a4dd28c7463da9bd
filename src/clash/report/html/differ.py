"""Where do they differ? The items by how the judges split, and what people say of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.pages import Part, StackRow, stack_chart
from clash.report.formats import plural
from clash.report.html.blocks import PageFigure, Question

if TYPE_CHECKING:
    from clash.analysis.differences import Differences, SplitGroup
    from clash.analysis.findings import Findings
    from clash.pages.bars import Kind


def differ(findings: Findings, apart: Differences) -> Question:
    """The section, but for the list of items."""
    return Question(
        anchor="differ",
        title="Where do they differ?",
        nav="Differences",
        answer=_answer(findings, apart),
        aside="",
        figure=_picture(findings, apart),
    )


def _answer(findings: Findings, apart: Differences) -> str:
    if findings.kind == "redteam":
        items = plural(apart.n_labelled, "control item")
        return f"The panel is wrong on {apart.disagree} of {items}."
    return _against_people(findings, apart) if apart.n_labelled else _among_judges(findings, apart)


def _n(apart: Differences, *kinds: str) -> int:
    return sum(group.n for group in apart.groups if group.kind in kinds)


def _voting(findings: Findings) -> int:
    return sum(judge.role == "voting" for judge in findings.judges)


def _against_people(findings: Findings, apart: Differences) -> str:
    if not apart.disagree:
        return f"Nowhere that people looked: they agree on {_all_labelled(apart.n_labelled)}."
    start = f"People disagree with the panel on {apart.disagree} of"
    start += f" {plural(apart.n_labelled, 'labelled prompt')}."
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


def _all_labelled(n: int) -> str:
    return f"all {plural(n, 'labelled prompt')}" if n > 1 else "the one labelled prompt"


def _among_judges(findings: Findings, apart: Differences) -> str:
    total = findings.coverage.items
    if _voting(findings) < 2:
        return f"One judge decides, so it differs with nobody. {plural(total, 'prompt')} in all."
    unanimous, open_ = _n(apart, "unanimous"), _n(apart, "none")
    text = f"The judges are unanimous on {unanimous:,} of {plural(total, 'prompt')}."
    split, tied = _n(apart, "split"), _n(apart, "tied")
    remainder = [
        words
        for n, words in (
            (split, f"split on {split:,}"),
            (tied, f"level on {tied:,}"),
            (open_, f"without a verdict on {open_:,}"),
        )
        if n
    ]
    return f"{text} They are {', '.join(remainder)}." if remainder else text


def _picture(findings: Findings, apart: Differences) -> PageFigure | None:
    verb = "wrong on" if findings.kind == "redteam" else "people disagree on"
    n_judges, has_labels = _voting(findings), bool(apart.n_labelled)
    rows = [_row(group, n_judges, verb, has_labels=has_labels) for group in apart.groups]
    if len(rows) < 2:
        return None
    chart = stack_chart(rows, label="Prompts by how the judges split")
    title = "Prompts by how the judges split"
    return PageFigure(title, chart, key=_key(findings, apart))


def _key(findings: Findings, apart: Differences) -> tuple[tuple[Kind, str], ...]:
    """What the parts of the bars mean; empty without labels, where all are alike."""
    if not apart.n_labelled:
        return ()
    words: list[tuple[Kind, str]] = [("disagree", "people disagree"), ("agree", "people agree")]
    if findings.kind == "redteam":
        words = [("disagree", "wrong"), ("agree", "right")]
    if any(group.n_unlabelled for group in apart.groups):
        words.append(("unknown", "no label"))
    return tuple(words)


def _row(group: SplitGroup, n_judges: int, verb: str, *, has_labels: bool) -> StackRow:
    judges = "both judges" if n_judges == 2 else f"all {n_judges} judges"
    name = {
        "unanimous": f"{judges} agree" if n_judges > 1 else "decided",
        "split": "a majority decides" if n_judges > 1 else "decided",
        "tied": "level",
        "none": "no verdict",
    }[group.kind]
    remainder: Kind = "unknown" if has_labels else "agree"
    parts = (
        Part("disagree", group.disagree),
        Part("agree", group.agree),
        Part(remainder, group.n_unlabelled),
    )
    figure = f"{group.n:,}"
    with_label = group.disagree + group.agree
    note = f"{verb} {group.disagree} of {with_label}" if with_label else ""
    return StackRow(name, parts, figure, note)
