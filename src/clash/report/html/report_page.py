"""The report as a page: a function of the findings and the records, computing nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clash import pages
from clash.analysis.further import further
from clash.escape import content_security_policy, inline_source, pack, template_environment
from clash.report.formats import plural
from clash.report.headline import run_headline
from clash.report.html import charts
from clash.report.html.answer import answer, win_rates
from clash.report.html.cost import cost
from clash.report.html.details import RETEST, anchor, details
from clash.report.html.differ import differ
from clash.report.html.heat import heat_rules
from clash.report.html.packed_items import ROOM, PackedItems, pack_items
from clash.report.html.text_report import order_words, shown_texts, text_answer
from clash.report.html.trust import trust
from clash.report.sections import report_tables
from clash.store import layout
from clash.store.stored import ItemPart, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jinja2 import Environment

    from clash.analysis.differences import Differences
    from clash.analysis.findings import Findings
    from clash.analysis.rundata import RunData
    from clash.analysis.single_text import TextFindings
    from clash.report.drawing import Picture

OF_PARENT, END_OF_PARENT = "<!--of the parent run-->", "<!--end-->"
"""Around what follows from the run that this one repeats, which an audit may be unable to check."""
_FOLDER = Path(__file__).parent
_VERSIONS = ("clash", "python", "numpy", "scipy", "openai", "anthropic", "google-genai")
"""Packages whose version the page names."""
_KINDS = {
    "eval": "Evaluation of",
    "validate": "Validation on",
    "rerun": "Second run of",
    "redteam": "Prompt injections against",
}


@dataclass(frozen=True)
class ReportPage:
    """A report as HTML.

    Attributes:
        html: the page.
        data_html: gives the parts of the page beside it that holds the items; null where they are
            all inside.
    """

    html: str
    data_html: Callable[[], Iterator[str]] | None


@dataclass(frozen=True)
class ItemFilter:
    """A choice of items: its name in the address of the page, in words, and how many there are."""

    key: str
    words: str
    count: int


class _Tagged(ItemPart, gc=False):
    """The tags of an item."""

    tags: list[str] = msgspec.field(default_factory=list)


def render_report(
    findings: Findings, run: RunData, folder: Path, *, list_url: str = ""
) -> ReportPage:
    """The report of a run.

    Args:
        findings: what the report says.
        run: the records that the findings were computed from.
        folder: the run folder, for the raw calls.
        list_url: where the list of runs is, for a page that is served: it links there, and has
            every item inside, however large it becomes.
    """
    if findings.single_text is not None:
        return _render_text_report(findings, findings.single_text, run, list_url)
    more = further(run, folder)
    items = pack_items(run, folder, more.differences.telling)
    inside = bool(list_url) or items.blocks.size <= ROOM
    css, script = stylesheet(), _script()
    terms: set[str] = set()
    frame = "'none'" if inside else "'self' file:"
    html = _templates().get_template("report.html.j2").render(
        findings=findings,
        manifest=run.manifest,
        subject=f"{_KINDS[findings.kind]} {_subject(run)}",
        answer=answer(findings, more, run),
        is_rerun=run.manifest.parent is not None,
        trust=trust(findings, more),
        differ=differ(findings, more.differences),
        cost=cost(findings, win_rates(findings)),
        folds=details(findings, more),
        retest=anchor(RETEST),
        filters=list(_filters(findings, more.differences)),
        facts=list(_facts(findings, run)),
        versions=[(n, v) for n, v in run.manifest.versions.items() if n in _VERSIONS],
        explained=terms,
        # What a rerun says of its parent may change; the rest must then read the same.
        explained_above=set() if run.manifest.parent else terms,
        title=run_headline(findings).text,
        index=items.index,
        left_out=items.left_out,
        blocks=items.blocks if inside else {},
        beside="" if inside else _data_page_address(items),
        css=css,
        script=script,
        list_url=list_url,
        policy=content_security_policy(css, script, frame=frame),
        candidates=run.candidates,
        short_names=pages.short_names(run.candidates, 22),
        tags=sorted({tag for item in parts(run.items, _Tagged) for tag in item.tags}),
        of_parent=OF_PARENT,
        end_of_parent=END_OF_PARENT,
    )  # fmt: skip
    if inside:
        return ReportPage(html, None)
    return ReportPage(html, lambda: _render_data_page(findings, items))


def _render_text_report(
    findings: Findings, texts: TextFindings, run: RunData, list_url: str
) -> ReportPage:
    """The page of a run that judges each text by itself: everything is inside."""
    css, script = stylesheet(), pages.script()
    html = _templates().get_template("text_report.html.j2").render(
        findings=findings,
        subject=f"{_KINDS[findings.kind]} {_subject(run)}",
        answer=text_answer(findings, texts),
        order_words=order_words(run),
        texts=shown_texts(run),
        vote_name=texts.mode.capitalize(),
        tables=report_tables(findings),
        facts=list(_facts(findings, run)),
        explained=set(),
        css=css,
        script=script,
        list_url=list_url,
        policy=content_security_policy(css, script),
    )  # fmt: skip
    return ReportPage(html, None)


def _subject(run: RunData) -> str:
    name = run.manifest.dataset.get("name") or run.manifest.prompts or run.manifest.run
    return Path(str(name)).name


def _filters(findings: Findings, apart: Differences) -> Iterator[ItemFilter]:
    """Which items the list can show; those that would show none are left out."""
    groups = {group.kind: group.n for group in apart.groups}
    n_failed = sum(findings.coverage.failures.values()) + findings.coverage.not_run
    choices = [
        ItemFilter("telling", "Most telling", len(apart.telling)),
        ItemFilter(
            "wrong", "Wrong" if findings.kind == "redteam" else "Against people", apart.disagree
        ),
        ItemFilter("split", "Judges split", groups.get("split", 0) + groups.get("tied", 0)),
        ItemFilter("none", "No verdict", groups.get("none", 0)),
        ItemFilter("failed", "With a failure", n_failed),
    ]
    total = findings.coverage.items
    # A choice of all items, or of none, is no choice.
    yield from (choice for choice in choices if 0 < choice.count < total)
    yield ItemFilter("all", "All", total)


def _data_page_address(items: PackedItems) -> str:
    """The file of the blocks, and the digests that each of them must have."""
    digests = items.blocks.digests
    address = {
        "file": layout.REPORT_DATA,
        "key": items.key,
        "digests": {name: digests[name] for name in items.blocks if name in digests},
    }
    return pack(json.dumps(address).encode())


def _render_data_page(findings: Findings, items: PackedItems) -> Iterator[str]:
    script = inline_source(_FOLDER / "data.js")
    return template_environment(_FOLDER).get_template("data.html.j2").generate(
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
    """Where the figures come from, at the foot of the page."""
    manifest = run.manifest
    voting = [judge.judge for judge in findings.judges if judge.role == "voting"]
    yield "Run", findings.run
    if manifest.parent:
        yield "Repeats", manifest.parent
    prompts = manifest.hashes.get("prompts", "")
    digest = f", sha256 {prompts[:6]}…{prompts[-4:]}" if prompts else ""
    name = manifest.prompts or manifest.dataset.get("name") or "the prompts"
    yield "Prompts", f"{name}, {plural(findings.coverage.items, 'prompt')}{digest}"
    yield "Panel", f"{findings.panel}: {', '.join(voting)}"
    yield "Started", f"{_date(manifest.started)}, seed {findings.seed}"
    yield "Version", f"clash {manifest.versions.get('clash', findings.clash)}"


def _date(stamp: str) -> str:
    """``22 November 2026, 09:14 UTC``; the stamp itself where it is none."""
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


@cache
def stylesheet() -> str:
    """Rules of the page, and the shades of its tables in light, dark and print."""
    dark = heat_rules("dark")
    return (
        pages.stylesheet(_FOLDER / "report.css")
        + heat_rules("light")
        + f"@media screen and (prefers-color-scheme:dark){{{dark}}}"
    )


@cache
def _script() -> str:
    return pages.script(_FOLDER / "report.js")


@cache
def _templates() -> Environment:
    return pages.templates(_FOLDER)
