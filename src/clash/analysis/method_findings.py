"""How a run's method decided, beside the Borda count: where they agree, and who wins by either."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from clash.analysis.coverage import coverage
from clash.analysis.decision import decide
from clash.analysis.leaderboard import duels, standings
from clash.analysis.run_verdicts import decide_verdicts
from clash.analysis.verdicts import BORDA
from clash.stats.intervals import wilson_clustered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.decision import Decision
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval


@dataclass(frozen=True)
class MethodDisagreement:
    """An item that the method decides otherwise than the Borda count.

    Attributes:
        winner: by the method; ``borda`` by the Borda count; a candidate or ``tie``.
        confidence: of the method.
    """

    item: str
    winner: str
    borda: str
    confidence: float | None


@dataclass(frozen=True)
class MethodFindings:
    """A run's method beside the Borda count.

    Attributes:
        run_method: the method of the run.
        method: that decided: the same, or ``borda`` where that could not.
        model: what ``auto`` selected; ``reason`` says why.
        converged: of the fit; null without one.
        fallback: why the method of the run did not decide; null where it did.
        items: that it decided, as far as the Borda count decides them too.
        rows: pairs of candidates whose votes it read.
        agreement: the share of items with the same winner, or a tie by both; null without items.
        disagreements: the items where they differ.
        borda_decision: of the run, had the Borda count decided it; null where it did.
        borda_rates: win rate of each candidate then.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"borda_decision": "decision_by_borda"}

    run_method: str
    method: str
    model: str | None
    reason: str | None
    converged: bool | None
    fallback: str | None
    items: int
    rows: int
    agreement: Interval | None
    disagreements: list[MethodDisagreement]
    borda_decision: Decision | None
    borda_rates: dict[str, Interval | None]


def method_findings(run: RunData) -> MethodFindings | None:
    """How the method decided; null for the Borda count, and for a run that ranks nothing."""
    use = run.method_use
    if use is None or run.text_votes is not None:
        return None
    borda_run = _by_borda(run)
    outcomes, clusters, disagreements = [], [], []
    for verdict, by_borda in zip(run.verdicts, borda_run.verdicts, strict=True):
        winner, borda_winner = verdict.outcome, by_borda.outcome
        if winner is None or borda_winner is None:
            continue
        outcomes.append(float(winner == borda_winner))
        clusters.append(run.clusters[verdict.item_id])
        if winner != borda_winner:
            disagreements.append(
                MethodDisagreement(verdict.item_id, winner, borda_winner, verdict.confidence)
            )
    has_decided = use.fallback is None
    decision, rates = _conclusion(borda_run) if has_decided else (None, {})
    return MethodFindings(
        run_method=run.rules.method,
        method=use.method,
        model=use.model,
        reason=use.reason,
        converged=use.converged,
        fallback=use.fallback,
        items=len(outcomes),
        rows=use.n_rows,
        agreement=wilson_clustered(outcomes, clusters) if outcomes else None,
        disagreements=disagreements,
        borda_decision=decision,
        borda_rates=rates,
    )


def _by_borda(run: RunData) -> RunData:
    """The run as the Borda count decides it."""
    rules = replace(run.rules, method=BORDA)
    outcome = decide_verdicts(rules, run.items, run.responses, run.judgments, run.ballots)
    return replace(run, rules=rules, verdicts=outcome.verdicts, method_use=None)


def _conclusion(run: RunData) -> tuple[Decision, dict[str, Interval | None]]:
    board = standings(run)
    pairs = duels(run, [row.candidate for row in board])
    rates = {row.candidate: row.win_rate_ties_half for row in board}
    return decide(board, pairs, coverage(run)), rates
