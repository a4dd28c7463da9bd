"""A matrix of numbers as a table whose cells are shaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.escape import for_html
from clash.pages import short_names
from clash.report.drawing import palette

if TYPE_CHECKING:
    from markupsafe import Markup

    from clash.pages.tokens import Theme
    from clash.report.html.chart_kinds import Matrix


def heat_table(chart: Matrix) -> Markup:
    """The matrix as HTML; it scrolls inside itself."""
    from markupsafe import Markup

    names = short_names([*chart.rows, *chart.columns], 24)
    head = "".join(f'<th scope="col">{for_html(names[column])}</th>' for column in chart.columns)
    body = "".join(_row(chart, row, names[row]) for row in chart.rows)
    return Markup(  # noqa: S704 - every text in it went through for_html
        f'<div class="wide" role="region" aria-label="{for_html(chart.title)}"><table class="heat">'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        '<p class="hint" aria-hidden="true">Scroll sideways to see all columns →</p>'
    )


def _row(chart: Matrix, row: str, name: str) -> str:
    cells = []
    for column in chart.columns:
        value = chart.cells.get((row, column))
        if value is None:
            cells.append("<td></td>")
        else:
            cells.append(
                f'<td class="{chart.shade(value)}">{for_html(chart.form.format(value))}</td>'
            )
    return f'<tr><th scope="row"><bdi>{for_html(name)}</bdi></th>{"".join(cells)}</tr>'


def heat_rules(theme: Theme) -> str:
    """The shades as rules of a style sheet, each with a colour that can be read on it."""
    tones = palette(theme)
    return "".join(
        f".heat .{tone}{{background:{tones[tone]};color:{tones[f'{tone}-text']}}}"
        for tone in tones
        if f"{tone}-text" in tones
    )
