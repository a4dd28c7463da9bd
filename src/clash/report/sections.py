"""The tables of a run's report, in the order of interest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report import (
    concordance,
    costs,
    judge_aware_tables,
    redteam,
    registration,
    run_tables,
    single_text,
)
from clash.report.claims import claims_table
from clash.report.tables import with_rows

if TYPE_CHECKING:
    from clash.analysis.findings import Findings
    from clash.report.tables import Table


def report_tables(findings: Findings) -> list[Table]:
    """The tables that have a row: what the kind of the run asks first, then the rest."""
    if findings.single_text is not None:
        return with_rows(
            [
                *single_text.tables(findings, findings.single_text),
                single_text.coverage(findings),
                registration.table(findings.preregistration),
                costs.calls(findings),
                costs.forecast(findings),
            ]
        )
    concordance_tables = concordance.tables(findings.concordance)
    redteam_tables = [] if findings.redteam is None else redteam.tables(findings.redteam)
    return with_rows(
        [
            *(redteam_tables if findings.kind == "redteam" else []),
            *(concordance_tables if findings.kind == "validate" else []),
            registration.table(findings.preregistration),
            run_tables.leaderboard(findings),
            run_tables.method(findings),
            run_tables.method_disagreements(findings),
            run_tables.duels(findings),
            *judge_aware_tables.tables(findings.judge_aware),
            run_tables.coverage(findings),
            run_tables.baselines(findings),
            run_tables.judges(findings),
            run_tables.judge_pairs(findings),
            run_tables.self_evaluation(findings),
            costs.trade_offs(findings),
            costs.calls(findings),
            costs.forecast(findings),
            *([] if findings.kind == "validate" else concordance_tables),
            *([] if findings.kind == "redteam" else redteam_tables),
            claims_table(findings.published_claims),
        ]
    )
