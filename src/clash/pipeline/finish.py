"""From the last call to what a user sees: verdicts, report, seal, exit code, and the telling."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clash.analysis.counts import count_records, too_many_failed
from clash.cli.common import print_json, say, stdout
from clash.errors import AuditFailed
from clash.report.costs import usage_warning
from clash.report.formats import money
from clash.report.terminal import print_report
from clash.store import layout
from clash.store.folder import RunFolder
from clash.store.manifest import now
from clash.store.secrecy import scan, without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.findings import Findings
    from clash.analysis.rundata import RunData
    from clash.collect.run import CollectOutcome
    from clash.store.folder import RunWriter
    from clash.store.manifest import Manifest

INTERRUPTED, INTERRUPTED_CODE = "interrupted", 130


@dataclass(frozen=True)
class Finished:
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


def conclude(writer: RunWriter, manifest: Manifest, collected: CollectOutcome) -> Finished:
    """Verdicts, report and seal."""
    # Only now: while a run judges, numpy and what stands on it would only take memory.
    from clash.analysis import served
    from clash.analysis.findings import findings_of
    from clash.analysis.rundata import RunData

    data = RunData.load(writer)
    swaps = served.notes(data.swapped)
    covered = count_records(data)
    code = _exit_code(data, covered, collected)
    manifest = manifest.model_copy(
        update={
            "status": _status(data, covered, collected),
            "ended": now(),
            "counts": {**manifest.counts, **covered},
            "stopped": collected.stop_reasons,
            "notes": list(dict.fromkeys((*manifest.notes, *swaps))),
            "replaced": sorted(collected.replaced_models & collected.stop_reasons.keys()),
        }
    )
    found = findings_of(replace(data, manifest=manifest))
    manifest.cost_usd, manifest.cost_is_lower_bound = found.cost_usd, found.cost_is_lower_bound
    write_report(writer, found, replace(data, manifest=manifest))
    searched = scan(writer.path, writer.redactor)
    if searched["hits"] and code != INTERRUPTED_CODE:
        code = AuditFailed.exit_code
    sealed = writer.seal(without_secrets(manifest, writer.redactor), secrets_scan=searched)
    over = float(collected.over_usd)
    folder, why = RunFolder(writer.path), collected.interrupted
    return Finished(folder, sealed, found, code, why, over, tuple(swaps))


def write_report(writer: RunWriter, found: Findings, data: RunData) -> None:
    """The derived files, whole."""
    from clash.report import html, markdown

    verdicts = list(data.verdicts)
    writer.replace(layout.VERDICTS, verdicts)
    text = json.dumps(found.as_json(), indent=1, ensure_ascii=False, allow_nan=False)
    writer.replace_text(layout.REPORT_JSON, text + "\n")
    writer.replace_text(layout.REPORT_MD, markdown.render_report(found, verdicts))
    page = html.render_report(found, data, writer.path)
    if page.data_html is None:
        (writer.path / layout.REPORT_DATA).unlink(missing_ok=True)
    else:
        writer.replace_text(layout.REPORT_DATA, page.data_html)
    writer.replace_text(layout.REPORT_HTML, page.html)


def _exit_code(data: RunData, counts: Mapping[str, int], collected: CollectOutcome) -> int:
    if collected.interrupted == INTERRUPTED:
        return INTERRUPTED_CODE
    if collected.refusals:
        return 4
    if collected.interrupted is not None or collected.over_usd or too_many_failed(data, counts):
        return 3
    return 0


def _status(data: RunData, counts: Mapping[str, int], collected: CollectOutcome) -> str:
    if counts["verdicts"] == 0:
        return "failed" if collected.interrupted is None else "partial"
    if collected.interrupted or collected.refusals or too_many_failed(data, counts):
        return "partial"
    return "complete"


def tell(finished: Finished, *, as_json: bool, whole: bool, quiet: bool) -> None:
    """Print how it went, and where it is."""
    found, path = finished.findings, finished.folder.path
    if as_json:
        print_json(summary(finished))
    else:
        print_report(stdout(), found, brief=not whole)
        stdout().print(f"\nrun: {path}", style="bold", soft_wrap=True)
        if not quiet and not whole:
            say(f"everything: {path / layout.REPORT_HTML}, or `clash report {path}`")
    for line in (*finished.swaps, *_warnings(finished), *_afterword(finished)):
        say(line, style="yellow")
    for line in _about_secrets(finished):
        say(line, style="bold red")


def _afterword(finished: Finished) -> list[str]:
    path = finished.folder.path
    match finished.exit_code:
        case 130:
            return [
                f"interrupted; `clash resume {path}` goes on from here and pays nothing twice",
                *_with_providers(finished.folder),
            ]
        case 4:
            models = "; ".join(f"{m}: {why}" for m, why in finished.manifest.stopped.items())
            return [f"refused for good: {models}", f"fix that, then `clash resume {path}`"]
        case 3:
            if finished.interrupted is not None:
                more = " --max-cost USD" if "budget" in finished.interrupted else ""
                return [
                    finished.interrupted,
                    f"`clash resume {path}{more}` goes on",
                    *_with_providers(finished.folder),
                ]
            if finished.over_usd:
                return []
            return [f"incomplete (see coverage); `clash resume {path}` tries what is missing"]
        case _:
            return []


def _about_secrets(finished: Finished) -> list[str]:
    """Files that hold a secret all the same: of an earlier version, or put there by somebody."""
    searched = finished.manifest.secrets_scan or {"hits": {}}
    return [
        f"error: {finished.folder.path / name} holds the value of {', '.join(variables)}\n"
        "  fix: do not share this folder, and replace that key"
        for name, variables in searched["hits"].items()
    ]


def _warnings(finished: Finished) -> list[str]:
    """Stand-ins, a cap that was passed, a forecast that failed, usage that is not believed."""
    lines = [
        f"{judge.judge} judged {judge.judged} items in place of {judge.stands_in_for}, whose model had"
        " stopped or was down"
        for judge in finished.findings.judges
        if judge.stands_in_for is not None
    ]
    if finished.over_usd:
        spending = finished.findings.spending
        lines.append(
            f"error: the run spent {money(spending.bound_usd)}, {money(finished.over_usd)} more than"
            " --max-cost allows: a provider charged more than the list price of what it was asked"
        )
    if finished.findings.spending.warning is not None:
        lines.append(f"warning: {finished.findings.spending.warning}")
    return [
        *lines,
        *(f"warning: {usage_warning(doubt)}" for doubt in finished.findings.usage_doubts),
    ]


def _with_providers(folder: RunFolder) -> list[str]:
    """Batches that go on without us."""
    batches = [batch for batch in folder.batches() if batch.state != "ended"]
    if not batches:
        return []
    rows = sum(len(batch.rows) for batch in batches)
    one = len(batches) == 1
    return [
        f"{len(batches)} batch{'' if one else 'es'} of {rows} rows"
        f" {'stays' if one else 'stay'} with the provider: `clash resume {folder.path}` fetches"
        f" {'it' if one else 'them'}, with --cancel-batches only what is through by now"
    ]


def summary(finished: Finished) -> dict[str, Any]:
    """What ``--json`` says of a run."""
    report = finished.findings.as_json()
    return {
        "run": str(finished.folder.path),
        "status": finished.manifest.status,
        "exit_code": finished.exit_code,
        "winner": report["decision"]["winner"],
        "decision": report["decision"],
        "leaderboard": report["leaderboard"],
        "coverage": report["coverage"],
        "cost_usd": finished.manifest.cost_usd,
        "cost_is_lower_bound": finished.manifest.cost_is_lower_bound,
        "spending": report["spending"],
        "over_usd": finished.over_usd,
        "usage_doubts": report["usage_doubts"],
        "judges": report["judges"],
        "stopped": finished.manifest.stopped,
        "interrupted": finished.interrupted,
        **_concordance(finished.findings),
    }


def _concordance(found: Findings) -> dict[str, Any]:
    """What is added where people have spoken."""
    if found.concordance is None:
        return {}
    rate = found.concordance.headline.rate
    alone = {
        line.name: {"concordance": line.rate.of_judged.estimate, "judged": line.rate.judged}
        for line in found.concordance.methods
        if line.kind == "judge" and line.rate is not None
    }
    return {
        "concordance": rate.estimate,
        "kappa": _finite(found.concordance.kappas[0].interval.estimate),
        "kappas": {k.key: _finite(k.interval.estimate) for k in found.concordance.kappas},
        "ci": [rate.clustered.low, rate.clustered.high],
        "n": rate.n,
        "judges": [
            {**judge, **alone.get(judge["judge"], {})} for judge in found.as_json()["judges"]
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
