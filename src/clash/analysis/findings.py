"""Everything a report says, as plain data: computed here, once, and only shown elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from clash.analysis.concordance import Concordance, concordance
from clash.analysis.corrected import Correction, correction
from clash.analysis.coverage import Coverage, Unanimity, coverage, unanimity
from clash.analysis.decision import Decision, decide
from clash.analysis.figures import Claim, Figure, by_name, claims, concordance_figures
from clash.analysis.judges import (
    BaselineReport,
    JudgePair,
    JudgeReport,
    SelfReport,
    baseline_reports,
    judge_reports,
    pairs,
    position,
    self_reports,
)
from clash.analysis.labelled import LabelConcordance, concordance_with_labels
from clash.analysis.leaderboard import Duel, Standing, duels, standings
from clash.analysis.method_findings import MethodFindings, method_findings
from clash.analysis.pareto import Economy, Trade, economies, trades
from clash.analysis.preference import Preference, preference
from clash.analysis.prereg import Conformity, conformity
from clash.analysis.rankings.judge_aware import JudgeAwareRanking, run_strengths
from clash.analysis.redteam import Redteam, redteam
from clash.analysis.single_text import TextFindings, text_figures, text_findings
from clash.analysis.single_text.decision import decision_on_texts
from clash.analysis.spending import Spending, UsageDoubt, spending
from clash.datasets.controls import SOUND, WORSE
from clash.records import SELF
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.figures import NamedFigures
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval


@dataclass(frozen=True)
class PanelPosition:
    """How often the panel's sole first places are the response shown first."""

    json_keys: ClassVar[Mapping[str, str]] = {"expected_rate": "expected"}

    first_shown: Interval | None
    expected_rate: float | None


@dataclass(frozen=True)
class Findings:
    """The findings of a run."""

    json_keys: ClassVar[Mapping[str, str]] = {
        "stops": "stopped",
        "label_concordance": "labelled",
        "published_claims": "published",
    }

    clash: str
    run: str
    kind: str
    status: str
    panel: str
    method: str
    seed: int
    notes: list[str]
    stops: dict[str, str]
    decision: Decision
    leaderboard: list[Standing]
    duels: list[Duel]
    coverage: Coverage
    unanimity: Unanimity
    judges: list[JudgeReport]
    pairs: list[JudgePair]
    baselines: list[BaselineReport]
    position: PanelPosition
    self_evaluation: list[SelfReport]
    label_concordance: LabelConcordance | None
    correction: Correction | None
    concordance: Concordance | None
    published_claims: list[Claim]
    economies: list[Economy]
    trades: list[Trade]
    preregistration: Conformity | None
    redteam: Redteam | None
    cost_usd: float
    cost_is_lower_bound: bool
    spending: Spending
    usage_doubts: list[UsageDoubt]
    preference: Preference | None = None
    aggregation: MethodFindings | None = None
    judge_aware: JudgeAwareRanking | None = None
    single_text: TextFindings | None = None

    @property
    def json_omits(self) -> tuple[str, ...]:
        """The report of a run that ranks has no key for single texts."""
        return ("single_text",) if self.single_text is None else ()


def compute_findings(run: RunData) -> Findings:
    """Compute the report of a run that has been read."""
    board = [] if run.text_votes is not None else standings(run)
    people = correction(run, [row.candidate for row in board])
    board = _with_people(board, people)
    all_duels = duels(run, [row.candidate for row in board])
    counts = coverage(run)
    costs_by_model = economies(run)
    on_texts = text_findings(run)
    decision = decide(board, all_duels, counts)
    if on_texts is not None:
        decision = decision_on_texts(on_texts)
    cost = round(math.fsum(line.cost_usd or 0.0 for line in costs_by_model), 10)
    findings = Findings(
        clash=__version__,
        run=run.manifest.run,
        kind=run.manifest.kind,
        status=run.manifest.status,
        panel=run.manifest.panel["name"],
        method=run.rules.method_name,
        seed=run.manifest.seeds.get("seed", 0),
        notes=run.manifest.notes,
        stops=run.manifest.stopped,
        decision=decision,
        leaderboard=board,
        duels=all_duels,
        coverage=counts,
        unanimity=unanimity(run),
        judges=judge_reports(run),
        pairs=pairs(run),
        baselines=baseline_reports(run),
        position=PanelPosition(*position(run)),
        self_evaluation=self_reports(run, SELF),
        label_concordance=concordance_with_labels(run),
        correction=people,
        concordance=concordance(run),
        published_claims=[],
        economies=costs_by_model,
        trades=trades(run, board),
        preregistration=conformity(run),
        cost_usd=cost,
        redteam=redteam(run.controls or run, SOUND, WORSE),
        cost_is_lower_bound=run.n_lost > 0 or not all(line.exact for line in costs_by_model),
        spending=spending(run.manifest.forecast, cost, run.tally),
        usage_doubts=list(run.tally.doubts.values()),
        preference=preference(run, board, people),
        aggregation=method_findings(run),
        judge_aware=run_strengths(run),
        single_text=on_texts,
    )
    published_figures = [
        figure for figure in run.manifest.dataset.get("figures", []) if figure["report"] == "run"
    ]
    return (
        replace(findings, published_claims=claims(published_figures, figures(findings)))
        if published_figures
        else findings
    )


def _with_people(board: list[Standing], people: Correction | None) -> list[Standing]:
    """The leaderboard with the win rates that people would give."""
    if people is None:
        return board
    first_alone = {rate.candidate: rate.rate for rate in people.rates}
    win_rates = people.win_rates()
    return [
        replace(
            row,
            corrected_rate=first_alone.get(row.candidate),
            people_win_rate=win_rates.get(row.candidate),
        )
        for row in board
    ]


def figures(findings: Findings) -> dict[str, Figure]:
    """The numbers of one run, by name; unknown ones are absent."""
    return by_name(_named_figures(findings))


def _named_figures(findings: Findings) -> NamedFigures:
    yield from _run_figures(findings)
    if findings.single_text is not None:
        yield from text_figures(findings.single_text)
    if findings.concordance is not None:
        yield from concordance_figures(findings.concordance)


def _run_figures(findings: Findings) -> NamedFigures:
    counts = findings.coverage
    yield "unanimity", findings.unanimity.rate
    yield "confidence", findings.unanimity.mean_confidence
    cost = _cost(findings)
    yield "cost", cost
    if counts.items:
        yield "items", counts.items
        yield "cost.item", cost.over(counts.items)
        yield "coverage", (counts.n_decided + counts.n_tied) / counts.items
        yield "decided", counts.n_decided / counts.items
        yield "tied", counts.n_tied / counts.items
    if counts.n_expected:
        usable = counts.n_clean + counts.n_repaired
        yield "judgments.usable", usable / counts.n_expected
        yield "judgments.failed", 1 - usable / counts.n_expected
        yield "judgments.repaired", counts.n_repaired / counts.n_expected
    if findings.aggregation is not None:
        yield "agreement.with_borda", findings.aggregation.agreement
    yield "first_shown", findings.position.first_shown
    for row in findings.leaderboard:
        yield f"win_rate.{row.candidate}", row.win_rate
        yield f"win_rate_ties_half.{row.candidate}", row.win_rate_ties_half
        yield f"points.{row.candidate}", row.points
    if findings.correction is not None:
        for candidate, rate in findings.correction.win_rates().items():
            yield f"people_win_rate.{candidate}", rate
        for candidate, lead in findings.correction.leads().items():
            yield f"people_lead.{candidate}", lead
    for judge in findings.judges:
        yield f"agreement.{judge.judge}", judge.agreement
        yield f"flips.{judge.judge}", judge.flips
    if findings.pairs:
        lowest = min(findings.pairs, key=lambda pair: pair.agreement.estimate)
        yield "agreement.lowest", lowest.agreement


def _cost(findings: Findings) -> Figure:
    """Dollars; without an upper bound where some price or count is unknown."""
    cost_usd, exact = findings.cost_usd, not findings.cost_is_lower_bound
    if not findings.economies and findings.concordance is not None:
        # A run of another tool: its calls are not known, its cost may be.
        run_costs = findings.concordance.costs
        cost_usd, exact = (
            run_costs.cost_usd or 0.0,
            run_costs.exact and run_costs.cost_usd is not None,
        )
    return Figure(cost_usd) if exact else Figure(cost_usd, cost_usd, math.inf)
