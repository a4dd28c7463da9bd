"""The comment of a gate on a pull request, as Markdown that has no effect but to be read.

Names, prompts and reasons are others' text: nothing in them mentions a person, links, loads an image
or becomes markup (:func:`clash.escape.for_markdown`), and what is drawn stands in a code block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from clash.escape import clip, for_markdown, visible
from clash.pages.names import short_names
from clash.report import gate
from clash.report.answer_chart import AnswerChart
from clash.report.formats import money, plural
from clash.report.headline import run_headline
from clash.report.table_layout import markdown_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.analysis.explanation.disagreements import Opinion, TellingDisagreement
    from clash.analysis.findings import Findings
    from clash.analysis.gate import GateCheck
    from clash.pages import Axis, ChartRow

MOST_CHARACTERS = 65_536
"""What GitHub takes as one comment."""
MARKER = "<!-- clash gate -->"
"""The first line, by which a workflow finds its comment of before and replaces it."""
MOST_DISAGREEMENTS = 3
_MOST_RULES, _MOST_ROWS, _MOST_OPINIONS = 40, 12, 7
_TRACK = 41
_PROMPT, _REASON, _NAME = 160, 160, 36
_HOST, _PART = re.compile(r"[\w.-]+"), re.compile(r"[\w.~%-]+")
"""A host name and a part of a path in which no Markdown or HTML can hide."""


@dataclass(frozen=True)
class GateComment:
    """What a comment says.

    Attributes:
        checks: the rules and whether the run passes them.
        disagreements: the most telling first.
        link: the address of the workflow's run, which has the report; null outside of one.
    """

    run: str
    findings: Findings
    checks: Sequence[GateCheck]
    disagreements: Sequence[TellingDisagreement]
    link: str | None = None


def render_comment(comment: GateComment) -> str:
    """The Markdown, within what GitHub takes; what does not fit is left out from the end."""
    parts = list(_parts(comment))
    while len(parts) > 2 and sum(len(part) + 2 for part in parts) > MOST_CHARACTERS:
        del parts[-2]
    return "\n\n".join(parts) + "\n"


def actions_link(environ: Mapping[str, str]) -> str | None:
    """The address of the run of GitHub Actions that this process is part of; null elsewhere."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, run = (environ.get(name, "") for name in names)
    url = f"{server}/{repository}/actions/runs/{run}"
    return url if repository and run and _is_plain(url) else None


def _is_plain(url: str) -> bool:
    """Whether it is ``https://host[:port]/part/part``, each of plain letters."""
    scheme, _, address = url.partition("://")
    host, *parts = address.split("/")
    name, colon, port = host.partition(":")
    has_port = not colon or (port.isascii() and port.isdigit())
    is_host = has_port and _HOST.fullmatch(name) is not None
    return scheme == "https" and is_host and all(map(_PART.fullmatch, parts))


def _parts(comment: GateComment) -> Iterator[str]:
    """The comment in paragraphs, the last of which is the foot."""
    findings, headline = comment.findings, run_headline(comment.findings)
    n_failed = sum(not check.passed for check in comment.checks)
    outcome = (
        f"failed, {n_failed} of {plural(len(comment.checks), 'rule')}" if n_failed else "passed"
    )
    yield f"{MARKER}\n### clash gate {outcome}"
    yield f"**{for_markdown(headline.text)}**"
    if headline.contradiction:
        yield f"> **{for_markdown(headline.contradiction)}**"
    if headline.evidence:
        yield for_markdown(headline.evidence)
    chart = AnswerChart.of(findings)
    if chart.rows:
        yield _chart(chart)
    yield _rules(comment.run, comment.checks)
    disagreements = comment.disagreements[:MOST_DISAGREEMENTS]
    if disagreements:
        yield "#### The most telling disagreements"
    for number, line in enumerate(disagreements, start=1):
        yield _disagreement(number, line)
    yield _foot(comment)


def _rules(run: str, checks: Sequence[GateCheck]) -> str:
    """The table of the rules, those that fail first."""
    by_outcome = sorted(checks, key=lambda check: check.passed)
    text = "\n".join(markdown_lines(gate.table(run, by_outcome[:_MOST_RULES])))
    hidden_checks = by_outcome[_MOST_RULES:]
    if not hidden_checks:
        return text
    n_failed = sum(not check.passed for check in hidden_checks)
    return f"{text}\n\nand {plural(len(hidden_checks), 'rule')} more, {n_failed} of them failed."


def _chart(chart: AnswerChart) -> str:
    """Intervals drawn with letters, in a code block, where nothing has an effect."""
    first = chart.first(_MOST_ROWS)
    rows, axis = first.rows, first.axis
    names = {
        name: _plain(short) for name, short in short_names([r.name for r in rows], _NAME).items()
    }
    width = max(map(cell_len, names.values()))
    lines = [
        f"{set_cell_size(names[row.name], width)}  {_track(row, axis)}  {row.figure:>4}  {row.bounds or row.note}".rstrip()
        for row in rows
    ]
    lines.append(f"{'':<{width}}  {_scale(axis, *chart.reference)}".rstrip())
    if len(chart.rows) > len(rows):
        lines.append(f"and {len(chart.rows) - len(rows)} more")
    body = "\n".join([f"{chart.measure}, 95% intervals", *lines])
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", body)), default=0))
    return f"{fence}text\n{body}\n{fence}"


def _scale(axis: Axis, share: float, label: str) -> str:
    """The reference under its line, and the ends of the axis where there is room for them."""
    low, high = f"{axis.low:.0%}", f"{axis.high:.0%}"
    start = min(max(_column(axis, share) - len(label) // 2, 0), _TRACK - len(label))
    line = f"{'':<{start}}{label}"
    if start > len(low):
        line = low + line[len(low) :]
    return f"{line:<{_TRACK - len(high)}}{high}" if len(line) < _TRACK - len(high) else line


def _column(axis: Axis, value: float) -> int:
    return round(axis.position(value) / 100 * (_TRACK - 1))


def _track(row: ChartRow, axis: Axis) -> str:
    cells = [" "] * _TRACK
    if axis.reference is not None:
        cells[_column(axis, axis.reference)] = "┊"
    if row.low is not None and row.high is not None:
        start, stop = _column(axis, row.low), _column(axis, row.high) + 1
        cells[start:stop] = "─" * (stop - start)
    if row.estimate is not None:
        cells[_column(axis, row.estimate)] = "●"
    return "".join(cells)


def _disagreement(number: int, line: TellingDisagreement) -> str:
    """One item: what was asked, who preferred what, and why."""
    names = {line.panel, *(opinion.first for opinion in line.opinions if opinion.first)}
    names |= {line.people} if line.people else set()
    short = short_names(sorted(names), _NAME)
    panel = _preference("The panel", line.panel, short)
    split = (
        ""
        if not line.split
        else f" ({'unanimous' if line.unanimous else for_markdown(line.split)})"
    )
    people = "" if line.people is None else f"; {_preference('people', line.people, short)}"
    head = (
        f"{number}. **{for_markdown(clip(line.item_id, _NAME))}**: {_quote(line.prompt, _PROMPT)}"
    )
    opinions = [_opinion(opinion, short) for opinion in line.opinions[:_MOST_OPINIONS]]
    return "\n".join([f"{head}  ", f"   {panel}{split}{people}.", *opinions])


def _preference(subject: str, choice: str, short: Mapping[str, str]) -> str:
    if choice == "tie":
        return f"{subject} call{'s' if subject != 'people' else ''} it a tie"
    name = for_markdown(_plain(short.get(choice, choice)))
    return f"{subject} prefer{'s' if subject != 'people' else ''} {name}"


def _opinion(opinion: Opinion, short: Mapping[str, str]) -> str:
    judge = for_markdown(clip(opinion.judge, _NAME))
    if opinion.first is None:
        return f"   - {judge} has no verdict"
    words = f"   - {_preference(judge, opinion.first, short)}"
    if opinion.reason is None:
        return words
    against = for_markdown(clip(opinion.reason.candidate, _NAME))
    return f"{words} and says of {against}: {_quote(opinion.reason.text, _REASON)}"


def _quote(text: str, most: int) -> str:
    return f'"{for_markdown(clip(text, most))}"'


def _plain(name: str) -> str:
    return visible(" ".join(name.split()))


def _foot(comment: GateComment) -> str:
    findings = comment.findings
    judges = sum(judge.role == "voting" for judge in findings.judges)
    cost = f"{'at least ' if findings.cost_is_lower_bound else ''}{money(findings.cost_usd)}"
    run = for_markdown(clip(comment.run, 100))
    facts = f"{plural(findings.coverage.items, 'item')} · {plural(judges, 'judge')} · {cost} · run {run}"
    link = "" if comment.link is None else f" · [workflow run]({comment.link})"
    return f"{facts}{link} · `clash explain RUN` says what the decision rests on"
