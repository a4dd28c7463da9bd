"""A run's verdicts by a calibrator: a probability each, and none where the risk forbids it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clash.analysis.calibration.calibrator import apply, check_panel, parse_calibrator
from clash.stats.selection.metrics import confidence
from clash.stats.voting.borda import borda_points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.calibration.calibrator import CalibratedRows, Calibrator, RiskLimit
    from clash.records import Verdict
    from clash.stats.typing import Floats
    from clash.votes.ballots import ItemRankings

PAIR = 2
METHOD = "calibrated"


def calibrate_verdicts(
    verdicts: Sequence[Verdict],
    rankings: Mapping[str, ItemRankings],
    calibrator: Mapping[str, Any],
    limit: RiskLimit | None,
) -> list[Verdict]:
    """Verdicts of pairs by the calibrator; others, and those without one, stay as they are.

    Side A is the first candidate by name, as in ``clash export --votes``. Where the votes have
    shifted from those the calibrator was fitted on, verdicts stay as the panel gave them, and
    with a risk to keep they all abstain.
    """
    map_ = parse_calibrator(dict(calibrator))
    pairs = [
        index
        for index, verdict in enumerate(verdicts)
        if verdict.ranking is not None and len(rankings[verdict.item_id].candidates) == PAIR
    ]
    if not pairs:
        return list(verdicts)
    votes = np.array([_votes(rankings[verdicts[index].item_id], map_) for index in pairs])
    predictions = apply(map_, votes, limit)
    results = list(verdicts)
    for row, index in enumerate(pairs):
        results[index] = _verdict(
            results[index], rankings[results[index].item_id], predictions, row, limit
        )
    return results


def _votes(rankings: ItemRankings, calibrator: Calibrator) -> list[float]:
    """(k,), votes of the calibrator's judges on a pair: 1 for its first candidate, 0.5 a tie."""
    return [
        float(borda_points(rankings.ranks[judge]).mean(axis=0)[0])
        if judge in rankings.ranks
        else np.nan
        for judge in calibrator.asked
    ]


def _verdict(
    verdict: Verdict,
    rankings: ItemRankings,
    predictions: CalibratedRows,
    row: int,
    limit: RiskLimit | None,
) -> Verdict:
    p = _by_candidate(rankings.candidates, predictions.p[row])
    confidence_of = round(float(confidence(predictions.p[row : row + 1])[0]), 9)
    if not predictions.is_answered[row]:
        return verdict.model_copy(
            update={
                "method": METHOD,
                "ranking": None,
                "winner": None,
                # Of no verdict there is no confidence; `p` tells how unsure the map was.
                "confidence": None,
                "unanimous": False,
                "p": p,
                "abstained": _reason(predictions, confidence_of, limit),
            }
        )
    if predictions.fallback:
        return verdict
    side = float(predictions.verdict[row])
    first, second = rankings.candidates
    ranking = [[first, second]] if side == 0.5 else [[first], [second]]
    ranking = ranking if side >= 0.5 else [[second], [first]]
    winner = ranking[0][0] if len(ranking) > 1 else None
    return verdict.model_copy(
        update={
            "method": METHOD,
            "ranking": ranking,
            "winner": winner,
            "confidence": confidence_of,
            "p": p,
            "unanimous": verdict.unanimous and winner == verdict.winner,
        }
    )


def _reason(predictions: CalibratedRows, confidence_of: float, limit: RiskLimit | None) -> str:
    if predictions.shift.is_shift:
        return f"for review: {predictions.shift.reasons[0]}"
    promise = "" if limit is None else f" for {limit.in_words}"
    return f"for review: probability {confidence_of:.2f} is too low{promise}"


def _by_candidate(candidates: Sequence[str], p: Floats) -> dict[str, float]:
    first, second = candidates
    if len(p) == 1:
        return {first: round(float(p[0]), 9), second: round(float(1 - p[0]), 9)}
    return {
        first: round(float(p[2]), 9),
        second: round(float(p[0]), 9),
        "tie": round(float(p[1]), 9),
    }


def check_run(
    calibrator: Calibrator,
    judges: Sequence[Mapping[str, Any]],
    templates: str,
    where: str,
) -> tuple[str, ...]:
    """Whether the judges of a run are those of the calibrator; warnings, or an error.

    Raises:
        InputError: they are not, or the prompts are others.
    """
    voting = {judge["id"]: judge["model"] for judge in judges if judge["role"] == "voting"}
    return check_panel(calibrator, list(voting), models=voting, templates=templates, where=where)


def models_of_run(manifest_panel: Mapping[str, Any]) -> dict[str, str]:
    """The model of each judge of a run."""
    return {judge["id"]: judge["model"] for judge in manifest_panel.get("judges", [])}
