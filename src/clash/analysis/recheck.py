"""Whether manifest, verdicts and report follow from the records: all recomputed, offline."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.analysis import exports, prereg
from clash.analysis.counts import count_records, too_many_failed
from clash.analysis.findings import compute_findings
from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.files import run_files
from clash.records import Verdict
from clash.store import layout
from clash.store.audit import BROKEN, AuditGap, broken, finding
from clash.store.manifest import other_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from clash.analysis.findings import Findings
    from clash.store.audit import AuditFinding
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest

    Redraw = Callable[[RunFolder, RunData, Findings], Iterable[AuditFinding]]

_TOLERANCE = 1e-6
"""Relative; between two builds of what fits models, not between two results."""

_LARGEST = 1 << 28
"""Bytes of a ``report.json``: a hundred times that of 100,000 items."""


def recheck(folder: RunFolder, redraw: Redraw | None = None) -> list[AuditFinding]:
    """Compare what stands in the folder with what follows from it.

    Args:
        folder: the run.
        redraw: compares its pages, which are not drawn here.
    """
    try:
        return list(_checks(folder, redraw))
    except BROKEN as error:
        return [broken("manifest, verdicts and report follow from the records", error)]


def _checks(folder: RunFolder, redraw: Redraw | None) -> Iterator[AuditFinding]:
    run = RunData.load(folder)
    run = run.with_labels(folder.labels(_sealed_labels(run.manifest)))
    findings = compute_findings(run)
    yield finding("the manifest's sums follow from the records", _sums(run, findings))
    yield finding("verdicts follow from the judgments", _verdicts(folder, run))
    yield finding("the report follows from the records", _report(folder, run, findings))
    if any(run_files.is_file(folder.path / name) for name in layout.EXPORT_FILES):
        yield finding("exports follow from the records", _exports(folder))
    if redraw is not None:
        yield from redraw(folder, run, findings)


def _sealed_labels(manifest: Manifest) -> int | None:
    """Lines of ``labels.jsonl`` that the report was computed from; null where all of them.

    A clash that wrote no chain did not seal labels either.
    """
    seal = manifest.files.get(layout.LABELS)
    if seal is not None:
        return seal.lines
    return None if manifest.seal is None or manifest.chain is None else 0


def _sums(run: RunData, findings: Findings) -> Iterator[str | AuditGap]:
    """Counts, cost and status; a run that has not ended has none yet."""
    manifest = run.manifest
    if manifest.seal is None:
        yield AuditGap("the run has not ended, so its counts and its cost are not written")
        return
    counts = count_records(run)
    for name, count in counts.items():
        manifest_count = manifest.counts.get(name)
        if manifest_count is None:
            yield AuditGap(f"manifest.json has no count of {name}")
        elif manifest_count != count:
            yield f"manifest.json counts {manifest_count} {name}, the records have {count}"
    yield from _cost(run, findings)
    if manifest.status == "failed" and counts["verdicts"]:
        yield "manifest.json says that the run failed, but there are verdicts"
    stand_ins = any(p.stands_in_for is not None for p in run.rules.panelists)
    stopped_models = set(manifest.stopped) - set(manifest.replaced if stand_ins else ())
    if manifest.status == "complete" and (
        not counts["verdicts"] or stopped_models or too_many_failed(run, counts)
    ):
        yield "manifest.json says that the run is complete, but the records show that it is not"
    if manifest.registration is not None:
        registration = prereg.parse(manifest.registration)
        if registration.sha256 != manifest.preregistration:
            yield (
                "the registration of manifest.json has a different hash than at the start of "
                "the run"
            )


def _cost(run: RunData, findings: Findings) -> Iterator[str | AuditGap]:
    manifest = run.manifest
    if not run.usage and manifest.cost_usd:
        yield AuditGap(f"no calls add up to cost_usd {manifest.cost_usd}")
        return
    if manifest.cost_usd != findings.cost_usd:
        yield f"manifest.json says {manifest.cost_usd} USD, the calls add up to {findings.cost_usd}"
    if manifest.cost_is_lower_bound != findings.cost_is_lower_bound:
        yield "cost_is_lower_bound of manifest.json does not follow from the calls"


def _verdicts(folder: RunFolder, run: RunData) -> Iterator[str | AuditGap]:
    on_disk = folder.records(Verdict)
    if not on_disk and run.manifest.seal is None:
        yield AuditGap("the run has not ended, so no verdict is written")
        return
    if len(on_disk) != len(run.verdicts):
        yield f"{len(on_disk)} verdicts are on disk, {len(run.verdicts)} follow"
        return
    # A fit is the same in the same versions, up to rounding; another version may fit otherwise.
    elsewhere = other_versions(run.manifest) if run.method_use is not None else None
    for verdict, follows in zip(on_disk, run.verdicts, strict=True):
        different = [] if verdict == follows else _different_fields(verdict, follows)
        if not different:
            continue
        sentence = (
            f"item {verdict.item_id!r}:"
            f" written {verdict.winner or verdict.abstained or 'tie'!r},"
            f" follows {follows.winner or follows.abstained or 'tie'!r}"
        )
        if verdict.winner == follows.winner and verdict.ranking == follows.ranking:
            sentence += f" ({', '.join(different)})"
        if elsewhere is not None and _FITTED_FIELDS.issuperset(different):
            yield AuditGap(f"{sentence} ({elsewhere})")
        else:
            yield sentence


_FITTED_FIELDS = frozenset(
    {
        "method", "model", "ranking", "winner", "confidence", "unanimous", "split", "abstained",
        "p", "borda", "fallback",
    }
)  # fmt: skip
"""What a fit decides of a verdict; the scores are the judges' points, whoever decides."""


def _different_fields(record: Verdict, follows: Verdict) -> list[str]:
    """The fields in which two verdicts differ; numbers up to rounding, and not in their words."""
    before, after = _comparable(record), _comparable(follows)
    return [name for name in before if not _is_same(before[name], after[name])]


def _comparable(verdict: Verdict) -> dict[str, Any]:
    """The fields, with whether there is a reason instead of it, which another version may word."""
    fields = verdict.model_dump()
    return fields | {name: bool(fields[name]) for name in ("abstained", "fallback")}


def _is_same(value: object, follows: object) -> bool:
    if isinstance(value, dict) and isinstance(follows, dict):
        return value.keys() == follows.keys() and all(
            _is_same(value[name], follows[name]) for name in value
        )
    return value == follows or _near(value, follows)


def _exports(folder: RunFolder) -> Iterator[AuditGap]:
    """A difference is a gap: an export may be of another day, or of another version of pyarrow."""
    for sentence in exports.outdated_exports(folder):
        yield AuditGap(sentence)


# -- report.json --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Difference:
    """A place where two reports differ.

    Attributes:
        wording: only its words differ, or one report has a field that the other has not: what
            another version of clash may do.
    """

    where: str
    wording: bool


def _report(folder: RunFolder, run: RunData, findings: Findings) -> Iterator[str | AuditGap]:
    path = folder.path / layout.REPORT_JSON
    if not run_files.is_file(path):
        yield from no_report(run, layout.REPORT_JSON)
        return
    on_disk = json.loads(run_files.read(path, most=_LARGEST))
    on_disk.pop("headline", None)  # words, which are compared with the pages
    # Through JSON and back, so that tuples are lists on both sides.
    follows = json.loads(json.dumps(to_dict(findings)))
    if on_disk == follows:
        return
    author = on_disk.pop("clash", None)
    elsewhere = other_versions(run.manifest)
    if author != follows.pop("clash"):
        elsewhere = f"written by clash {author}, this is {findings.clash}"
    for difference in _differences(on_disk, follows, _names(run)):
        if difference.wording and elsewhere is not None:
            yield AuditGap(f"{difference.where} of report.json ({elsewhere})")
        else:
            yield f"report.json differs in {difference.where}"


def no_report(run: RunData, name: str) -> Iterator[str | AuditGap]:
    """What a file of the report that is not there means."""
    if run.manifest.seal is None:
        yield AuditGap(f"the run has not ended, so there is no {name}")
    elif name in run.manifest.files:
        yield f"{name} is missing"
    else:
        yield AuditGap(f"{name} was never written")


def _names(run: RunData) -> frozenset[str]:
    """Words that say who or what is meant, whichever clash writes them."""
    judges = (panelist.id for panelist in run.rules.panelists)
    items = (item.item_id for item in run.items)
    return frozenset({*run.candidates, *judges, *items, run.rules.method, "tie"})


def _differences(
    on_disk: Any,  # noqa: ANN401 - any JSON value
    follows: Any,  # noqa: ANN401 - any JSON value
    names: frozenset[str],
    where: str = "",
) -> Iterator[_Difference]:
    """Where ``on_disk`` differs from ``follows``; counts exactly, other numbers up to rounding.

    The last digits of a sum depend on how many comparisons are summed at a time, and on the machine.
    """
    if isinstance(on_disk, dict) and isinstance(follows, dict):
        for key in {**on_disk, **follows}:
            inner = f"{where}.{key}" if where else key
            if key in on_disk and key in follows:
                yield from _differences(on_disk[key], follows[key], names, inner)
            else:
                yield _Difference(inner, wording=True)
    elif isinstance(on_disk, list) and isinstance(follows, list) and len(on_disk) == len(follows):
        for number, pair in enumerate(zip(on_disk, follows, strict=True)):
            yield from _differences(*pair, names, f"{where}[{number}]")
    elif isinstance(on_disk, str) and isinstance(follows, str):
        if on_disk != follows:
            yield _Difference(where, wording=not names & {on_disk, follows})
    elif not (on_disk == follows or _near(on_disk, follows)):
        yield _Difference(where, wording=False)


def _near(on_disk: object, follows: object) -> bool:
    """Whether two numbers that are no counts are the same up to rounding."""
    if not (isinstance(on_disk, float) and isinstance(follows, float)):
        return False
    return math.isclose(on_disk, follows, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
