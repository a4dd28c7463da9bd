"""From a logged evaluation to blinding and judgments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.errors import InputError
from clash.records import Blinding, Judgment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clash.reproduction.agent_clash.files import Evaluation, JudgeRow

_LABELS = ("A0", "A1")


@dataclass(frozen=True)
class LoggedJudgments:
    """One evaluation of one item.

    Attributes:
        time: when it was logged.
        slot: the published winner's label.
    """

    blinding: Blinding
    judgments: tuple[Judgment, ...]
    time: str
    cost_usd: float
    winner: str
    slot: str

    @property
    def tally(self) -> Counter[str]:
        """Voting judges by the candidate that they put first."""
        firsts = (
            self.blinding.labels[j.ranking[0][0]]
            for j in self.judgments
            if j.role == "voting" and j.ranking is not None
        )
        return Counter(firsts)

    @property
    def is_undecided(self) -> bool:
        """The voting judges are split evenly, so the published winner is a tie-break's."""
        most = self.tally.most_common(2)
        return len(most) == 2 and most[0][1] == most[1][1]


def voting_judges(evaluations: Iterable[Evaluation]) -> list[str]:
    """The judges whose rankings decide, in order of appearance."""
    rows = (row for evaluation in evaluations for row in evaluation.judge_matrix)
    return list(dict.fromkeys(row.judge_model for row in rows if row.is_supreme))


def read_judgments(evaluation: Evaluation, item_id: str, voting: Sequence[str]) -> LoggedJudgments:
    """The judgments of one evaluation; a voting judge that is missing is one that failed.

    A candidate that judged carries its name as a candidate, so that its own response is known.

    Raises:
        InputError: the winner's label and the ranking of models do not agree.
    """
    labels = _labels(evaluation)
    judgments = [_judgment(row, item_id, labels) for row in evaluation.judge_matrix]
    judges = {judgment.judge for judgment in judgments}
    absent = [missing_judgment(item_id, judge) for judge in voting if judge not in judges]
    return LoggedJudgments(
        blinding=Blinding(item_id=item_id, presentation=0, labels=labels),
        judgments=(*judgments, *absent),
        time=evaluation.timestamp,
        cost_usd=evaluation.summary.total_cost,
        winner=evaluation.ai_winner,
        slot=evaluation.summary.winner.anon_id,
    )


def missing_judgment(item_id: str, judge: str) -> Judgment:
    """A voting judge whose ranking was not published."""
    return Judgment(
        item_id=item_id,
        presentation=0,
        judge=judge,
        role="voting",
        weight=1,
        ranking=None,
        parse="failed",
        error="no ranking of this judge was published for this item",
    )


def _labels(evaluation: Evaluation) -> dict[str, str]:
    """The candidate under each label: the log names the winner's, the ranking names the other."""
    winner = evaluation.summary.winner
    other_models = [model for model in evaluation.ai_ranking if model != winner.model]
    if (
        winner.anon_id not in _LABELS
        or len(other_models) != 1
        or winner.model != evaluation.ai_winner
    ):
        raise InputError(
            f"evaluation {evaluation.eval_id}: winner and ranking do not agree",
            field="summary.winner",
        )
    loser = _LABELS[1 - _LABELS.index(winner.anon_id)]
    models = {winner.anon_id: winner.model, loser: other_models[0]}
    return {label: models[label] for label in _LABELS}


def _judgment(row: JudgeRow, item_id: str, labels: dict[str, str]) -> Judgment:
    order = list(dict.fromkeys(label for label in row.ranking if label in labels))
    is_repaired = order != row.ranking
    is_complete = len(order) == len(labels)
    return Judgment(
        item_id=item_id,
        presentation=0,
        judge=row.judge_model if row.is_supreme else _candidate(row.judge_model, labels),
        role="voting" if row.is_supreme else "observer",
        weight=1,
        ranking=[[label] for label in order] if is_complete else None,
        parse="failed" if not is_complete else "repaired" if is_repaired else "clean",
        repairs=["a label appeared twice; its first position counts"]
        if is_repaired and is_complete
        else [],
        error=None if is_complete else f"the ranking {row.ranking} does not name every response",
    )


def _candidate(judge: str, labels: dict[str, str]) -> str:
    """The name under which a judging candidate responds."""
    short = judge.rpartition("/")[2]
    return next((name for name in labels.values() if name in (judge, short)), judge)
