"""The report as HTML: a function of the findings and the records, computing nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from clash.analysis.further import further
from clash.escape import content_security_policy, inline_source, pack, template_environment
from clash.report import concordance, published
from clash.report.html import charts, more
from clash.report.html.draw import style, svg
from clash.report.html.payload import ROOM, Payload, payload
from clash.report.tables import Table, percent, tables
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jinja2 import Environment

    from clash.analysis.findings import Findings
    from clash.analysis.further import Further
    from clash.analysis.rundata import RunData
    from clash.report.html.draw import Picture

_HERE = Path(__file__).parent
_MOST_OPEN = 12
_KEPT = ("clash", "python", "numpy", "scipy", "openai", "anthropic", "google-genai")
_PICTURES = {
    "Leaderboard": ("leaderboard",),
    "Pair by pair": ("win-matrix",),
    "Quality, cost and speed": ("pareto-cost", "pareto-latency"),
    "Coverage and agreement": ("outcomes",),
    "Judges": ("position",),
    "Judges among themselves": ("judge-agreement",),
    more.SHARED: ("residual-correlations", "couplings"),
    more.LENGTH: ("length",),
    more.CRITERIA: ("criteria",),
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
        more.SHARED,
        "Self-evaluation",
        more.LENGTH,
        more.CRITERIA,
    ),
}


@dataclass(frozen=True)
class Block:
    """A table with the pictures that belong to it; ``folded`` where few will want it."""

    table: Table
    pictures: tuple[Picture, ...]
    folded: bool


@dataclass(frozen=True)
class Section:
    """Blocks under one heading."""

    key: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        page: the whole page.
        data: the page beside it that holds the items; null where they are all inside.
    """

    page: str
    data: str | None


def document(found: Findings, data: RunData, folder: Path) -> Document:
    """The report of a run.

    Args:
        found: what there is to say.
        data: the run it was computed from.
        folder: the run folder, for the raw calls.
    """
    held = payload(data, folder)
    inside = held.size <= ROOM
    page = _page(found, data, folder, held, inside=inside)
    return Document(page, None if inside else _beside(found, held))


def _page(found: Findings, data: RunData, folder: Path, held: Payload, *, inside: bool) -> str:
    deep = further(data, folder)
    css, script = stylesheet(), inline_source(_HERE / "report.js")
    return _templates().get_template("report.html.j2").render(
        found=found,
        manifest=data.manifest,
        versions={name: v for name, v in data.manifest.versions.items() if name in _KEPT},
        facts=_facts(found, data),
        sections=sections(found, deep),
        index=held.index,
        blocks=held.blocks if inside else {},
        beside="" if inside else _directions(held),
        css=css,
        script=script,
        policy=content_security_policy(css, script) if inside else content_security_policy(css, script, frame="'self' file:"),
        candidates=data.candidates,
        tags=sorted({tag for item in data.items for tag in item.tags}),
        labelled=bool(data.truth),
    )  # fmt: skip


def _directions(held: Payload) -> str:
    """Where the blocks are, and what they must be."""
    found = {"file": layout.REPORT_DATA, "key": held.key, "digests": held.digests}
    return pack(json.dumps(found).encode())


def _beside(found: Findings, held: Payload) -> str:
    script = inline_source(_HERE / "data.js")
    return _templates().get_template("data.html.j2").render(
        run=found.run,
        report=layout.REPORT_HTML,
        key=held.key,
        blocks=held.blocks,
        script=script,
        policy=content_security_policy("", script),
    )  # fmt: skip


def pictures(found: Findings, data: RunData, folder: Path) -> list[Picture]:
    """Every picture of the report."""
    return charts.pictures(found, further(data, folder))


def sections(found: Findings, deep: Further) -> list[Section]:
    """The tables, each under the heading it belongs to, with its pictures."""
    drawn = {picture.name: picture for picture in charts.pictures(found, deep)}
    people = {table.title: table for table in concordance.tables(found.concordance)}
    rest = [table for table in tables(found) if table.title not in people]
    rest += more.tables(deep)
    claims = published.claims_table(found.published).title
    groups: dict[str, list[Table]] = {title: [] for title in _GROUPS}
    last: list[Table] = []
    for table in rest:
        home = next((g for g, names in _GROUPS.items() if _named(table.title, names)), None)
        (groups[home] if home else last).append(table)
    made = [_section(title, held, drawn) for title, held in groups.items()]
    with_people = _section("People and panel", list(people.values()), drawn, brief=True)
    made.insert(1 if found.kind == "validate" else 3, with_people)
    made.append(_section(more.RETEST, more.again(deep), drawn, brief=True))
    made.append(_section("Calls and cost", [t for t in last if t.title != claims], drawn))
    made.append(_section("Published figures", [t for t in last if t.title == claims], drawn))
    return [section for section in made if section.blocks]


def _named(title: str, names: Sequence[str]) -> bool:
    return any(title == name or title.startswith((f"{name}:", f"{name},")) for name in names)


def _section(
    title: str, held: Sequence[Table], drawn: dict[str, Picture], *, brief: bool = False
) -> Section:
    blocks = tuple(
        Block(
            table,
            tuple(drawn[name] for name in _PICTURES.get(table.title, ()) if name in drawn),
            folded=(brief and not table.brief) or len(table.rows) > _MOST_OPEN,
        )
        for table in held
        if table.rows
    )
    return Section(key(title), title, blocks)


def key(title: str) -> str:
    """What a section is addressed by."""
    return title.lower().replace(" ", "-")


def _facts(found: Findings, data: RunData) -> Iterator[tuple[str, str]]:
    manifest = data.manifest
    voting = [judge for judge in found.judges if judge.role == "voting"]
    yield "run", f"{found.run} ({found.kind}, {found.status})"
    if manifest.parent:
        yield "repeats", manifest.parent
    yield "panel", f"{found.panel}: {', '.join(judge.judge for judge in voting)}"
    yield "items", f"{found.coverage.items} from {manifest.prompts or 'the prompts'}"
    yield "unanimous", percent(found.unanimity.rate)
    yield "method", f"{found.method}, seed {found.seed}"
    yield "time", f"{manifest.started} to {manifest.ended or 'now'}"


@cache
def stylesheet() -> str:
    """Rules of the page, and the tones of its pictures in light, dark and print."""
    dark = style("dark")
    return (
        inline_source(_HERE / "report.css")
        + style("light")
        + f"@media screen and (prefers-color-scheme:dark){{{dark}}}"
    )


@cache
def _templates() -> Environment:
    made = template_environment(_HERE)
    made.filters["svg"] = svg
    return made
