"""What is wrong with a published evaluation, as a headline and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import DASH, estimate, p_value, percent, points
from clash.report.tables import Table, cut_note, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from clash.analysis.published import Flaw, PublishedAudit

TITLE = "Audit of published evaluations"
NAMES = {
    "repeats": "repeated pairs",
    "retries": "retries counted twice",
    "slot-ties": "ties broken by the slot",
    "pseudo-replication": "pseudo-replication",
    "kappa": "kappa that is 2p - 1",
    "dropped-failures": "dropped failures",
    "baselines": "missing baselines",
}
_MOST_ROWS = 12


def headline(audit: PublishedAudit) -> str:
    """The answer in one sentence."""
    return (
        f"{audit.name}: {plural(audit.n_present, 'flaw')};"
        f" {percent(audit.published_headline, digits=1)} as published, {percent(audit.corrected_headline, digits=1)} corrected."
    )


def tables(audit: PublishedAudit, *, verbose: bool) -> list[Table]:
    """The flaws, the baselines, and with ``verbose`` the rows of every flaw."""
    rows = [_rows(flaw) for flaw in audit.flaws] if verbose else []
    return with_rows([_flaws(audit), _baselines(audit), *rows])


def _flaws(audit: PublishedAudit) -> Table:
    lines = [
        {
            "flaw": NAMES[flaw.name],
            "there": {"present": "yes", "absent": "no", "unknown": "cannot tell"}[flaw.status],
            "put right alone": percent(flaw.headline, digits=1)
            if flaw.status != "absent"
            else DASH,
            "what": flaw.sentence,
        }
        for flaw in audit.flaws
    ]
    notes = [
        f"published: {audit.basis}, {plural(round(audit.published_headline.n), 'record')} as if"
        " independent; corrected: each pair once, its last evaluation, a split panel worth half, a"
        f" failure a miss, {plural(round(audit.corrected_headline.n), 'pair')}, 95% interval clustered by question",
        f"kappa of the corrected verdicts {estimate(audit.kappa.interval)}"
        + ("" if audit.published_kappa is None else f", published {audit.published_kappa:.3f}"),
    ]
    return Table.of("Flaws", lines, text=("there", "what"), notes=notes)


def _baselines(audit: PublishedAudit) -> Table:
    rows = [
        {
            "rule": line.name,
            "agreement": percent(line.rate, digits=1),
            "evaluation less this": points(line.difference.difference),
            "p": p_value(line.difference.test),
        }
        for line in audit.baselines
    ]
    return Table.of(
        "Baselines",
        rows,
        notes=["on the corrected pairs, where the best judge was chosen too; paired t, clustered"],
    )


def _rows(flaw: Flaw) -> Table:
    """The records that show a flaw."""
    rows = [[row] for row in flaw.rows[:_MOST_ROWS]] if flaw.status == "present" else []
    notes = cut_note(len(flaw.rows), _MOST_ROWS, "the JSON of --json")
    return Table(f"Rows: {NAMES[flaw.name]}", ["record"], rows, notes=notes)
