"""Everything a report says, as plain data: computed here, once, and only shown elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from clash.analysis.concordance import Concordance, concordance
from clash.analysis.corrected import Correction, correction
from clash.analysis.coverage import Coverage, Unanimity, coverage, unanimity
from clash.analysis.decision import Decision, decide
from clash.analysis.figures import Claim, claims, figures
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
from clash.analysis.pareto import Economy, Trade, economies, trades
from clash.analysis.prereg import Conformity, conformity
from clash.analysis.redteam import Redteam, redteam
from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.analysis.spending import Spending, UsageDoubt, spending
from clash.datasets.controls import SOUND, WORSE
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.stats.intervals import Interval
    from clash.store.folder import RunFolder

SELF = "self:"


@dataclass(frozen=True)
class PanelPosition:
    """How often the panel's sole first places are the response shown first."""

    json_keys: ClassVar[Mapping[str, str]] = {"expected_rate": "expected"}

    first_shown: Interval | None
    expected_rate: float | None


@dataclass(frozen=True)
class Findings:
    """What there is to say about a run."""

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

    def as_json(self) -> dict[str, Any]:
        """Plain data; what is not a number (NaN, an endless interval) becomes null."""
        return to_dict(self)


def read_findings(folder: RunFolder) -> Findings:
    """Compute the report of a run."""
    return compute_findings(RunData.load(folder))


def compute_findings(run: RunData) -> Findings:
    """Compute the report of a run that has been read."""
    board = standings(run)
    people = correction(run, [row.candidate for row in board])
    board = _with_people(board, people)
    all_duels = duels(run, [row.candidate for row in board])
    counts = coverage(run)
    costs_by_model = economies(run)
    cost = round(math.fsum(line.cost_usd or 0.0 for line in costs_by_model), 10)
    findings = Findings(
        clash=__version__,
        run=run.manifest.run,
        kind=run.manifest.kind,
        status=run.manifest.status,
        panel=run.manifest.panel["name"],
        method=run.rules.method,
        seed=run.manifest.seeds.get("seed", 0),
        notes=run.manifest.notes,
        stops=run.manifest.stopped,
        decision=decide(board, all_duels, counts),
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
    )
    entries = [
        entry for entry in run.manifest.dataset.get("figures", []) if entry["report"] == "run"
    ]
    return (
        replace(findings, published_claims=claims(entries, figures(findings)))
        if entries
        else findings
    )


def _with_people(board: list[Standing], people: Correction | None) -> list[Standing]:
    """The leaderboard with the win rates that people would give."""
    rates = {} if people is None else {rate.candidate: rate.rate for rate in people.rates}
    return [replace(row, corrected_rate=rates.get(row.candidate)) for row in board]
