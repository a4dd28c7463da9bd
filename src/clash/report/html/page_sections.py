"""The sections of the page: tables under headings, with their pictures.

Some tables are made here, since only the page has room for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.shared_errors import FEWEST, UnknownErrors
from clash.report import concordance, retest
from clash.report.claims import claims_table
from clash.report.formats import estimate, p_value, percent
from clash.report.html import charts
from clash.report.sections import report_tables
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.dependence.dependence_findings import EffectiveNumber
    from clash.analysis.findings import Findings
    from clash.analysis.further import Further
    from clash.analysis.shared_errors import SharedErrors
    from clash.report.html.drawing import Picture

CRITERIA = "Criteria"
LENGTH = "Length"
SHARED_ERRORS = "Errors in common"
RETEST = "Test and retest"
_MOST_OPEN = 12
"""Rows of the longest table that is not folded."""
_PICTURES = {
    "Leaderboard": ("leaderboard",),
    "Pair by pair": ("win-matrix",),
    "Quality, cost and speed": ("pareto-cost", "pareto-latency"),
    "Coverage and agreement": ("outcomes",),
    "Judges": ("position",),
    "Judges among themselves": ("judge-agreement",),
    SHARED_ERRORS: ("residual-correlations", "couplings"),
    LENGTH: ("length",),
    CRITERIA: ("criteria",),
    "Agreement between runs": ("test-retest",),
    "Concordance with people": ("unanimity",),
}
_GROUPS = {
    "Registration": ("Registration",),
    "Result": ("Leaderboard", "Pair by pair", "Quality, cost and speed", "Registration"),
    "Coverage and agreement": ("Coverage and agreement", "Control group"),
    "Judges": (
        "Judges",
        "Judges among themselves",
        SHARED_ERRORS,
        "Self-evaluation",
        LENGTH,
        CRITERIA,
    ),
}


@dataclass(frozen=True)
class TableBlock:
    """A table with the pictures that belong to it; ``folded`` where few will want it."""

    table: Table
    pictures: tuple[Picture, ...]
    folded: bool


@dataclass(frozen=True)
class PageSection:
    """Blocks under one heading."""

    anchor: str
    title: str
    blocks: tuple[TableBlock, ...]


def page_sections(findings: Findings, more: Further) -> list[PageSection]:
    """The tables, each under the heading it belongs to, with its pictures."""
    drawings = {picture.name: picture for picture in charts.pictures(findings, more)}
    people = {table.title: table for table in concordance.tables(findings.concordance)}
    run_and_judge_tables = [table for table in report_tables(findings) if table.title not in people]
    run_and_judge_tables += _judge_tables(more)
    claims = claims_table(findings.published_claims).title
    groups: dict[str, list[Table]] = {title: [] for title in _GROUPS}
    remainder: list[Table] = []
    for table in run_and_judge_tables:
        group = next((g for g, names in _GROUPS.items() if _has_name(table, names)), None)
        (groups[group] if group else remainder).append(table)
    sections = [_section(title, tables, drawings) for title, tables in groups.items()]
    with_people = _section("People and panel", list(people.values()), drawings, brief=True)
    sections.insert(1 if findings.kind == "validate" else 3, with_people)
    costs = [table for table in remainder if table.title != claims]
    claims_tables = [table for table in remainder if table.title == claims]
    sections += [
        _section(RETEST, _retest_tables(more), drawings, brief=True),
        _section("Calls and cost", costs, drawings),
        _section("Published figures", claims_tables, drawings),
    ]
    return [section for section in sections if section.blocks]


def _has_name(table: Table, names: Sequence[str]) -> bool:
    """Whether the title is one of the names, or one followed by more."""
    title = table.title
    return any(title == name or title.startswith((f"{name}:", f"{name},")) for name in names)


def _section(
    title: str, tables: Sequence[Table], drawings: dict[str, Picture], *, brief: bool = False
) -> PageSection:
    blocks = tuple(
        TableBlock(
            table,
            tuple(drawings[name] for name in _PICTURES.get(table.title, ()) if name in drawings),
            folded=(brief and not table.brief) or len(table.rows) > _MOST_OPEN,
        )
        for table in tables
        if table.rows
    )
    return PageSection(anchor(title), title, blocks)


def anchor(title: str) -> str:
    """The id of a section, for links to it."""
    return title.lower().replace(" ", "-")


def _judge_tables(more: Further) -> list[Table]:
    """What only the page has room for, about the judges."""
    return [_shared_errors(more.error_overlap), _lengths(more), _criteria(more)]


def _retest_tables(more: Further) -> list[Table]:
    """The run against its parent; one row with the reason where the parent cannot be read."""
    if more.retest is None:
        return []
    if isinstance(more.retest, UnknownErrors):
        return [Table(RETEST, [""], [[more.retest.why]])]
    return retest.tables(more.retest)


def _criteria(more: Further) -> Table:
    rows = [
        [cell.candidate, cell.criterion, estimate(cell.mean, 2), f"{cell.mean.n:g}"]
        for cell in more.scores.cells
    ]
    return Table(
        CRITERIA,
        ["candidate", "criterion", "mean score, 1 to 5", "items"],
        rows,
        frozenset({2, 3}),
        ["mean over items of the voting judges' mean; 95% intervals, clustered by prompt"],
    )


def _lengths(more: Further) -> Table:
    rows = [
        [
            line.rater,
            percent(line.rate.interval),
            f"{line.rate.interval.n:g}",
            str(line.rate.left_out),
            p_value(line.rate.test),
        ]
        for line in more.lengths
    ]
    return Table(
        LENGTH,
        ["who", "puts the longer response first", "pairs", "tied, equally long or unsaid", "p"],
        rows,
        frozenset({1, 2, 3, 4}),
        ["p: of one half; longer may well be better, so read judges beside people"],
    )


def _shared_errors(errors: SharedErrors | UnknownErrors) -> Table:
    if isinstance(errors, UnknownErrors):
        return Table(SHARED_ERRORS, [""], [[f"not told: {errors.why}"]])
    rows = [
        [
            f"{pair.first} : {pair.second}",
            "same" if pair.same_family else "",
            str(pair.together),
            estimate(pair.correlation, 2, sign="+"),
            *([] if errors.couplings is None else [estimate(pair.coupling, 2, sign="+")]),
        ]
        for pair in errors.pairs
    ]
    has_couplings = errors.couplings is not None
    return Table(
        SHARED_ERRORS,
        [
            "pair",
            "family",
            "items",
            "residual correlation",
            *(["coupling"] if has_couplings else []),
        ],
        rows,
        frozenset({2, 3, 4} if has_couplings else {2, 3}),
        list(_shared_notes(errors)),
    )


def _shared_notes(errors: SharedErrors) -> Iterator[str]:
    yield _worth(errors.effective)
    if errors.truth.from_labels:
        yield f"given people's labels on {errors.truth.labelled} items"
    else:
        yield (
            f"given an estimate of the truth ({errors.truth.method}): what all judges get wrong together"
            " it takes for the truth, so these are too small; from 100 labels on these are the truth"
        )
    yield f"from {FEWEST} items on; `clash dependence RUN` tests and explains all of this"


def _worth(number: EffectiveNumber) -> str:
    worth = number.by_mean
    if worth is None:
        return f"how many independent judges these {number.judges} are worth cannot be told"
    return (
        f"these {number.judges} judges are worth {worth.estimate:.1f}"
        f" [{worth.low:.1f}, {worth.high:.1f}] independent ones"
    )
