"""Everything behind the figures: each table of the report in a fold, with its charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.shared_errors import FEWEST, UnknownErrors
from clash.pages import interval_chart, share_axis
from clash.report import concordance, retest
from clash.report.claims import claims_table
from clash.report.formats import estimate, p_value, percent, plural
from clash.report.html import charts
from clash.report.html.blocks import PageFigure
from clash.report.html.chart_kinds import Forest, Matrix
from clash.report.html.heat import heat_table
from clash.report.html.words import share_row
from clash.report.judge_aware_tables import RELIABILITY, STRENGTHS, STYLE
from clash.report.sections import report_tables
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.dependence.dependence_findings import EffectiveNumber
    from clash.analysis.findings import Findings
    from clash.analysis.further import Further
    from clash.analysis.shared_errors import SharedErrors
    from clash.report.html.chart_kinds import Chart

CRITERIA = "Criteria"
LENGTH = "Length"
SHARED_ERRORS = "Errors in common"
RETEST = "Test and retest"
CHARTS = {
    "Pair by pair": ("win-matrix",),
    "Judges": ("position",),
    "Judges among themselves": ("judge-agreement",),
    SHARED_ERRORS: ("residual-correlations", "couplings"),
    LENGTH: ("length",),
    CRITERIA: ("criteria",),
    "Agreement between runs": ("test-retest",),
}
_GROUPS = {
    "Registration": ("Registration",),
    "Result": (
        "Leaderboard",
        "Method beside Borda",
        "Where method and Borda differ",
        "Pair by pair",
        STRENGTHS,
        "Quality, cost and speed",
    ),
    "Coverage": ("Coverage and agreement", "Control group"),
    "Judges": ("Judges", "Judges among themselves", RELIABILITY, "Self-evaluation"),
    SHARED_ERRORS: (SHARED_ERRORS,),
    "Biases and criteria": (STYLE, LENGTH, CRITERIA),
}


@dataclass(frozen=True)
class DetailTable:
    """A table with the charts that belong to it; its heading is left out where the fold has it."""

    table: Table
    figures: tuple[PageFigure, ...]
    has_heading: bool


@dataclass(frozen=True)
class Fold:
    """Tables under one heading, and what is in them."""

    anchor: str
    title: str
    contents: str
    tables: tuple[DetailTable, ...]


def details(findings: Findings, more: Further) -> list[Fold]:
    """The folds that have a table, those of the greatest interest first."""
    figures = {chart.name: chart for chart in charts.charts(findings, more)}
    people = concordance.tables(findings.concordance)
    titles = {table.title for table in people}
    claims = claims_table(findings.published_claims).title
    groups: dict[str, list[Table]] = {title: [] for title in _GROUPS}
    costs: list[Table] = []
    claim_tables: list[Table] = []
    every = [table for table in report_tables(findings) if table.title not in titles]
    for table in [*every, _shared_errors(more.error_overlap), _lengths(more), _criteria(more)]:
        group = next((g for g, names in _GROUPS.items() if _has_name(table, names)), None)
        (groups[group] if group else claim_tables if table.title == claims else costs).append(table)
    folds = [
        *groups.items(),
        (RETEST, _retest_tables(more)),
        ("Calls and cost", costs),
        ("Published figures", claim_tables),
    ]
    position = 1 if findings.kind == "validate" else 2
    folds.insert(position, ("People and panel", people))
    return [_fold(title, tables, figures) for title, tables in folds if any(t.rows for t in tables)]


def _has_name(table: Table, names: Sequence[str]) -> bool:
    """Whether the title is one of the names, or one followed by more."""
    title = table.title
    return any(title == name or title.startswith((f"{name}:", f"{name},")) for name in names)


def _fold(title: str, tables: Sequence[Table], figures: dict[str, Chart]) -> Fold:
    nonempty = [table for table in tables if table.rows]
    blocks = tuple(
        DetailTable(
            table,
            tuple(
                figure_of(figures[name])
                for name in CHARTS.get(table.title, ())
                if name in figures and has_rows(figures[name])
            ),
            has_heading=len(nonempty) > 1 or table.title != title,
        )
        for table in nonempty
    )
    return Fold(anchor(title), title, _contents(title, nonempty), blocks)


def _contents(title: str, tables: Sequence[Table]) -> str:
    """What is in a fold: the titles of its tables, or its size where it is one table."""
    if len(tables) == 1 and tables[0].title == title:
        return plural(len(tables[0].rows), "row")
    names = [table.title.partition(":")[0].partition(" (")[0] for table in tables]
    names = [names[0], *(name[:1].lower() + name[1:] for name in names[1:])]
    beginning = ", ".join(names[:3])
    return f"{beginning} and {len(names) - 3} more" if len(names) > 3 else beginning


def anchor(title: str) -> str:
    """The id of a section, for links to it."""
    return title.lower().replace(" ", "-")


def has_rows(chart: Chart) -> bool:
    """Whether a chart compares anything: one bar, or two points, do not."""
    if isinstance(chart, Forest):
        return len(chart.rows) > 1
    return isinstance(chart, Matrix)


def figure_of(chart: Chart) -> PageFigure:
    """A chart as HTML."""
    if isinstance(chart, Matrix):
        return PageFigure(chart.title, heat_table(chart))
    if not isinstance(chart, Forest):
        raise TypeError(f"{chart.name} has no form on the page")
    rows = [share_row(name, interval) for name, interval in chart.rows]
    reference = 0.5 if chart.mark is None else chart.mark
    label = f"{reference:.0%}" + (f" = {chart.mark_name}" if chart.mark_name else "")
    axis = share_axis(rows, reference=reference, label=label)
    return PageFigure(chart.title, interval_chart(rows, axis, label=chart.title))


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
        ["who", "puts the longer response first", "pairs", "tied, equally long or missing", "p"],
        rows,
        frozenset({1, 2, 3, 4}),
        ["p: of one half; longer may well be better, so read judges beside people"],
    )


def _shared_errors(errors: SharedErrors | UnknownErrors) -> Table:
    if isinstance(errors, UnknownErrors):
        return Table(SHARED_ERRORS, [""], [[f"not measured: {errors.why}"]])
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
        yield f"given human labels on {errors.truth.labelled} items"
    else:
        yield (
            f"given an estimate of the truth ({errors.truth.method}), in which shared errors are mistaken"
            " for the truth: these correlations are too small. With 100 labels they are given the labels instead"
        )
    yield f"measured from {FEWEST} items on; `clash dependence RUN` tests and explains all of this"


def _worth(number: EffectiveNumber) -> str:
    worth = number.by_mean
    if worth is None:
        return f"how many independent judges these {number.judges} are worth is unknown"
    estimate, low, high = (
        min(value, number.judges) for value in (worth.estimate, worth.low, worth.high)
    )
    return (
        f"these {number.judges} judges carry as much information as {estimate:.1f}"
        f" [{low:.1f}, {high:.1f}] independent judges"
    )
