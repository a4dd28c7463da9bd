"""Whether judgments follow from the answers: every page is rendered and read once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.collect.ballots import page_code
from clash.collect.parsing import parse
from clash.store.audit import BROKEN, broken, finding
from clash.store.manifest import other_versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clash.records import Blinding, Call, Criteria, Judgment
    from clash.store.audit import Finding
    from clash.store.folder import RunFolder

CHECK = "judgments follow from the answers"


def reread(folder: RunFolder) -> list[Finding]:
    """Parse every judge's answer anew and compare with the judgment that was written."""
    try:
        unless = other_versions(folder.manifest())
    except BROKEN as error:
        return [broken(CHECK, error)]
    return [finding(CHECK, _differing(folder), unless=unless)]


def _differing(folder: RunFolder) -> Iterator[str]:
    manifest = folder.manifest()
    ties = bool(manifest.panel.get("ties", True))
    criteria = {record.item_id: record for record in folder.criteria()}
    pages = {(b.item_id, b.presentation, b.judge): b for b in folder.blinding()}
    wanted: dict[str, Judgment] = {
        j.call_id: j for j in folder.judgments() if j.call_id is not None and j.ranking is not None
    }
    for call in folder.calls():
        judgment = wanted.get(call.call_id)
        if judgment is None or call.outcome != "ok":
            continue
        if not _follows(judgment, call, criteria, pages, ties=ties, secret=manifest.secret):
            yield f"{judgment.judge} on {judgment.item_id!r} said otherwise in {call.call_id}"


def _follows(
    judgment: Judgment,
    call: Call,
    criteria: Mapping[str, Criteria],
    pages: Mapping[tuple[str, int, str | None], Blinding],
    *,
    ties: bool,
    secret: str | None,
) -> bool:
    key = (judgment.item_id, judgment.presentation)
    page = pages.get((*key, judgment.seat)) or pages[(*key, None)]
    rubric = criteria.get(judgment.item_id)
    names = [criterion.name for criterion in rubric.criteria] if rubric else []
    said = parse(
        call.text or "",
        list(page.labels),
        names,
        ties=ties,
        code=None if secret is None else page_code(secret, "ballot", page),
        enforced=call.structured == "schema",
    )
    return said.ranking == judgment.ranking and said.scores == judgment.scores
