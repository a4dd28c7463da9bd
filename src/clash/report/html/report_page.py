"""The report as a page: a function of the findings and the records, computing nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from clash.analysis.further import further
from clash.escape import content_security_policy, inline_source, pack, template_environment
from clash.report.formats import percent
from clash.report.html import charts
from clash.report.html.drawing import style, svg
from clash.report.html.packed_items import ROOM, PackedItems, pack_items
from clash.report.html.page_sections import page_sections
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment

    from clash.analysis.findings import Findings
    from clash.analysis.rundata import RunData
    from clash.report.html.drawing import Picture

_FOLDER = Path(__file__).parent
_VERSIONS = ("clash", "python", "numpy", "scipy", "openai", "anthropic", "google-genai")
"""Packages whose version the page names."""


@dataclass(frozen=True)
class ReportPage:
    """A report as HTML.

    Attributes:
        html: the page.
        data_html: the page beside it that holds the items; null where they are all inside.
    """

    html: str
    data_html: str | None


def render_report(findings: Findings, run: RunData, folder: Path) -> ReportPage:
    """The report of a run.

    Args:
        findings: what the report says.
        run: the records that the findings were computed from.
        folder: the run folder, for the raw calls.
    """
    items = pack_items(run, folder)
    inside = items.size <= ROOM
    html = _render_page(findings, run, folder, items, inside=inside)
    return ReportPage(html, None if inside else _render_data_page(findings, items))


def _render_page(
    findings: Findings, run: RunData, folder: Path, items: PackedItems, *, inside: bool
) -> str:
    css, script = stylesheet(), inline_source(_FOLDER / "report.js")
    versions = run.manifest.versions
    return _templates().get_template("report.html.j2").render(
        findings=findings,
        manifest=run.manifest,
        versions={name: version for name, version in versions.items() if name in _VERSIONS},
        facts=_facts(findings, run),
        sections=page_sections(findings, further(run, folder)),
        index=items.index,
        blocks=items.blocks if inside else {},
        beside="" if inside else _data_page_address(items),
        css=css,
        script=script,
        policy=content_security_policy(css, script) if inside else content_security_policy(css, script, frame="'self' file:"),
        candidates=run.candidates,
        tags=sorted({tag for item in run.items for tag in item.tags}),
        labelled=bool(run.truth),
    )  # fmt: skip


def _data_page_address(items: PackedItems) -> str:
    """The file of the blocks, and the digests that each of them must have."""
    address = {"file": layout.REPORT_DATA, "key": items.key, "digests": items.digests}
    return pack(json.dumps(address).encode())


def _render_data_page(findings: Findings, items: PackedItems) -> str:
    script = inline_source(_FOLDER / "data.js")
    return _templates().get_template("data.html.j2").render(
        run=findings.run,
        report=layout.REPORT_HTML,
        key=items.key,
        blocks=items.blocks,
        script=script,
        policy=content_security_policy("", script),
    )  # fmt: skip


def pictures(findings: Findings, run: RunData, folder: Path) -> list[Picture]:
    """Every picture of the report."""
    return charts.pictures(findings, further(run, folder))


def _facts(findings: Findings, run: RunData) -> Iterator[tuple[str, str]]:
    manifest = run.manifest
    voting = [judge for judge in findings.judges if judge.role == "voting"]
    yield "run", f"{findings.run} ({findings.kind}, {findings.status})"
    if manifest.parent:
        yield "repeats", manifest.parent
    yield "panel", f"{findings.panel}: {', '.join(judge.judge for judge in voting)}"
    yield "items", f"{findings.coverage.items} from {manifest.prompts or 'the prompts'}"
    yield "unanimous", percent(findings.unanimity.rate)
    yield "method", f"{findings.method}, seed {findings.seed}"
    yield "time", f"{manifest.started} to {manifest.ended or 'now'}"


@cache
def stylesheet() -> str:
    """Rules of the page, and the tones of its pictures in light, dark and print."""
    dark = style("dark")
    return (
        inline_source(_FOLDER / "report.css")
        + style("light")
        + f"@media screen and (prefers-color-scheme:dark){{{dark}}}"
    )


@cache
def _templates() -> Environment:
    templates = template_environment(_FOLDER)
    templates.filters["svg"] = svg
    return templates
