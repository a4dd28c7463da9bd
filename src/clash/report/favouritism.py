"""Favouritism of judges who are told the names, as a headline and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import DASH, p_phrase, p_value, percent, points
from clash.report.tables import Table, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.favouritism import Favouritism, OwnRate

TITLE = "Judges and their own"
_NOTE = (
    "share of comparisons with others that their own wins, ties half; difference: told less blind, in"
    " points, on the same pages; t: paired, clustered by prompt; Wilcoxon: signed rank over prompts;"
    " 95% intervals"
)


def headline(result: Favouritism) -> str:
    """The answer in one sentence."""
    line = (*result.families, *result.selves)[0]
    gap = line.effect.difference
    if line.effect.test.p >= 0.05:
        return f"Telling the names does not change how judges rank {_target(line)}: {_gap(line)}."
    verb = "more" if gap.estimate > 0 else "less"
    return f"Told the names, judges favour {_target(line)} {verb}: {_gap(line)}."


def _target(line: OwnRate) -> str:
    return "their own family" if line.kinship == "family" else "their own responses"


def _gap(line: OwnRate) -> str:
    return f"{points(line.effect.difference)} points"


def evidence(result: Favouritism) -> list[str]:
    """The figures behind it."""
    line = (*result.families, *result.selves)[0]
    text = (
        f"Their own wins {percent(line.blind)} blind and {percent(line.open_rate)} told, on"
        f" {plural(line.n_items, 'prompt')}; t test {p_phrase(line.effect.test)},"
        f" signed rank {p_phrase(line.signed_rank)}."
    )
    lines = [text]
    if line.people is not None:
        share = percent(line.people)
        lines.append(f"People give it {share} on {line.n_labelled} of these judgments.")
    if result.missing:
        lines.append(f"{plural(result.missing, 'judgment')} in one arm only, left out.")
    return lines


def tables(result: Favouritism) -> list[Table]:
    """By family, by judge that is a candidate, by candidate."""
    return with_rows(
        [
            _table(f"{TITLE}: candidates of the judge's family", "judge", result.families),
            _table(f"{TITLE}: the judge itself", "judge", result.selves),
            _table(f"{TITLE}: by candidate, judged by its family", "candidate", result.candidates),
        ]
    )


def _table(title: str, column: str, lines: Sequence[OwnRate]) -> Table:
    has_people = any(line.people is not None for line in lines)
    columns = [column, "prompts", "blind", "told", "difference", "p (t)", "p (Wilcoxon)"]
    columns += ["people", "blind - people", "told - people"] if has_people else []
    return Table(
        title,
        columns,
        [_row(line, column, has_people=has_people) for line in lines],
        frozenset(range(1, len(columns))),
        [_NOTE],
        optional=(1,),
    )


def _row(line: OwnRate, column: str, *, has_people: bool) -> list[str]:
    cells = [
        line.judge if column == "judge" else line.kinship,
        str(line.n_items),
        percent(line.blind),
        percent(line.open_rate),
        points(line.effect.difference),
        p_value(line.effect.test),
        p_value(line.signed_rank),
    ]
    if not has_people:
        return cells
    excesses = (line.blind_excess, line.open_excess)
    return [
        *cells,
        percent(line.people),
        *(DASH if excess is None else points(excess.difference) for excess in excesses),
    ]
