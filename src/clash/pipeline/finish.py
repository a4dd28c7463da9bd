"""Finish a run: compute verdicts and findings, write the report, seal the folder."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from clash.analysis.counts import count_records, too_many_failed
from clash.analysis.serialize import to_dict
from clash.config import Config
from clash.errors import AuditFailed, RunFolderError
from clash.files import run_files
from clash.pipeline.prepare import secrets_of
from clash.records import Judgment
from clash.store import layout
from clash.store.audit import changes_since_seal
from clash.store.folder import RunFolder
from clash.store.manifest import now, seals_of
from clash.store.secrecy import scan, without_secrets
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.findings import Findings
    from clash.analysis.rundata import RunData
    from clash.collect.run import CollectOutcome
    from clash.pipeline.options import Observer
    from clash.store.folder import RunWriter
    from clash.store.manifest import Manifest

INTERRUPTED, INTERRUPTED_CODE = "interrupted", 130


@dataclass(frozen=True)
class RunResult:
    """A run that has ended, one way or another.

    Attributes:
        interrupted: why it ended early, null where it did not.
        over_usd: dollars by which ``--max-cost`` was passed.
        swaps: a line for each model that another one answered for.
    """

    folder: RunFolder
    manifest: Manifest
    findings: Findings
    exit_code: int
    interrupted: str | None
    over_usd: float = 0.0
    swaps: tuple[str, ...] = ()


def finish(writer: RunWriter, manifest: Manifest, outcome: CollectOutcome) -> RunResult:
    """Compute verdicts and findings, write the report, seal the folder, choose the exit code."""
    # Imported only now: while a run judges, numpy and what stands on it would only take memory.
    from clash.analysis import served
    from clash.analysis.findings import compute_findings
    from clash.analysis.rundata import RunData

    run = RunData.load(writer)
    swaps = served.notes(run.swapped_models)
    counts = count_records(run)
    exit_code = _exit_code(run, counts, outcome)
    manifest = manifest.model_copy(
        update={
            "status": _status(run, counts, outcome),
            "ended": now(),
            "counts": {**manifest.counts, **counts},
            "stopped": outcome.stop_reasons,
            "notes": list(dict.fromkeys((*manifest.notes, *swaps))),
            "replaced": sorted(outcome.replaced_models & outcome.stop_reasons.keys()),
        }
    )
    run = replace(run, manifest=manifest)
    findings = compute_findings(run)
    manifest.cost_usd = findings.cost_usd
    manifest.cost_is_lower_bound = findings.cost_is_lower_bound
    write_report(writer, findings, run)
    secrets_scan = scan(writer.path, writer.redactor)
    if secrets_scan["hits"] and exit_code != INTERRUPTED_CODE:
        exit_code = AuditFailed.exit_code
    manifest = writer.seal(without_secrets(manifest, writer.redactor), secrets_scan=secrets_scan)
    return RunResult(
        RunFolder(writer.path),
        manifest,
        findings,
        exit_code,
        outcome.interrupted,
        float(outcome.over_usd),
        tuple(swaps),
    )


def write_report(writer: RunWriter, findings: Findings, run: RunData) -> None:
    """Write the derived files: verdicts, and the report as JSON, Markdown and HTML."""
    from clash.report import html, markdown
    from clash.report.headline import run_headline

    writer.replace(layout.VERDICTS, run.verdicts)
    record = {**to_dict(findings), "headline": run_headline(findings).as_json()}
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    writer.replace_text(layout.REPORT_JSON, text + "\n")
    writer.replace_text(layout.REPORT_MD, markdown.render_report(findings, run.verdicts))
    page = html.render_report(findings, run, writer.path)
    if page.data_html is None:
        (writer.path / layout.REPORT_DATA).unlink(missing_ok=True)
    else:
        writer.replace_text(layout.REPORT_DATA, page.data_html())
    writer.replace_text(layout.REPORT_HTML, page.html)


def rewrite_report(folder: RunFolder, findings: Findings, run: RunData, observer: Observer) -> None:
    """Rewrite the derived files and seal them; the collected files keep their seals.

    The observer hears what was changed since the last seal, and where a signature no longer holds.
    """
    for name, change in changes_since_seal(folder).items():
        end = " and is recomputed" if name in layout.DERIVED_FILES else ""
        observer.note(f"{change}{end}", "warning")
    with folder.write() as writer:
        write_report(writer, findings, run)
        before = writer.manifest()
        # The report counts the labels, so both are sealed together.
        derived_names = (*layout.DERIVED_FILES, layout.LABELS)
        seals = {name: seal for name, seal in before.files.items() if name not in derived_names}
        seals |= seals_of(writer.path, derived_names)
        manifest = before.model_copy(update={"files": seals}).with_seal()
        writer.save(manifest)
    if run_files.is_file(folder.path / layout.SIGNATURE) and manifest.seal != before.seal:
        observer.note(
            f"the signature of {folder.path} is for the run before this change:"
            f" `clash seal {folder.path} --sign KEY` signs the current state"
        )


def _exit_code(run: RunData, counts: Mapping[str, int], outcome: CollectOutcome) -> int:
    if outcome.interrupted == INTERRUPTED:
        return INTERRUPTED_CODE
    if outcome.refusals:
        return 4
    if outcome.interrupted is not None or outcome.over_usd or too_many_failed(run, counts):
        return 3
    return 0


def _status(run: RunData, counts: Mapping[str, int], outcome: CollectOutcome) -> str:
    if counts["verdicts"] == 0:
        return "failed" if outcome.interrupted is None else "partial"
    if outcome.interrupted or outcome.refusals or too_many_failed(run, counts):
        return "partial"
    return "complete"


def summary(result: RunResult) -> dict[str, Any]:
    """The JSON of ``eval``, ``validate`` and ``resume``."""
    report = to_dict(result.findings)
    manifest = result.manifest
    return {
        "run": str(result.folder.path),
        "status": manifest.status,
        "exit_code": result.exit_code,
        "winner": report["decision"]["winner"],
        "decision": report["decision"],
        "leaderboard": report["leaderboard"],
        "coverage": report["coverage"],
        "cost_usd": manifest.cost_usd,
        "cost_is_lower_bound": manifest.cost_is_lower_bound,
        "spending": report["spending"],
        "over_usd": result.over_usd,
        "usage_doubts": report["usage_doubts"],
        "judges": report["judges"],
        "aggregation": report["aggregation"],
        "stopped": manifest.stopped,
        "interrupted": result.interrupted,
        **_concordance(result.findings),
    }


class _Outcome(msgspec.Struct, gc=False):
    """Why a judgment failed; null where it did not."""

    error: str | None = None


def is_settled(folder: RunFolder, environ: Mapping[str, str], observer: Observer) -> bool:
    """Whether a run has nothing left to ask, to try again or to compute, by its seals and report.

    Every file is hashed, and none is kept in memory. Open are failed judgments of any judge, models
    that stopped, a cap that was passed, secrets of this environment in a file, labels (they may have
    grown, and the report counts them), reports of another version, and files that no seal covers. The
    observer hears what was changed since the seal. Whoever can seal can write any report: what it
    says is not to be shown before it was computed again.
    """
    manifest = folder.manifest()
    is_open = (
        manifest.status != "complete"
        or manifest.seal is None
        or manifest.stopping is not None
        or manifest.stopped
        or manifest.versions.get("clash") != __version__
        or (manifest.secrets_scan or {}).get("hits")
        or not manifest.files.keys() >= {*layout.COLLECTED_FILES, layout.REPORT_JSON}
        or run_files.is_file(folder.path / layout.LABELS)
    )
    if is_open:
        return False
    changes = changes_since_seal(folder)
    for change in changes.values():
        observer.note(change, "warning")
    if changes:
        return False
    try:
        config = Config.model_validate(manifest.config)
        cap = config.limits.max_cost if manifest.max_cost is None else manifest.max_cost
        report = json.loads(run_files.read(folder.path / layout.REPORT_JSON))
        coverage = report["coverage"]
        is_short = coverage["not_run"] or coverage["responses_failed"]
        is_over = cap is not None and report["spending"]["bound_usd"] > cap
        if is_short or is_over or scan(folder.path, secrets_of(config, environ, observer))["hits"]:
            return False
        return report["concordance"] is None and not _has_failures(folder)
    except (ValueError, LookupError, TypeError, RecursionError, OSError, RunFolderError):
        return False  # whoever sealed it, clash did not write this report


def _has_failures(folder: RunFolder) -> bool:
    """Whether a judgment failed, of an observer or of a control item too."""
    return any(part.error is not None for part in folder.table(Judgment).parts(_Outcome))


def _concordance(findings: Findings) -> dict[str, Any]:
    """Agreement with human labels, where there are some."""
    if findings.concordance is None:
        return {}
    rate = findings.concordance.headline.rate
    alone = {
        line.name: {"concordance": line.rate.of_judged.estimate, "judged": line.rate.n_judged}
        for line in findings.concordance.methods
        if line.kind == "judge" and line.rate is not None
    }
    return {
        "concordance": rate.estimate,
        "kappa": _finite(findings.concordance.kappas[0].interval.estimate),
        "kappas": {k.key: _finite(k.interval.estimate) for k in findings.concordance.kappas},
        "ci": [rate.interval.low, rate.interval.high],
        "n": rate.n,
        "judges": [
            {**judge, **alone.get(judge["judge"], {})} for judge in to_dict(findings)["judges"]
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
