"""Judge effectiveness: discrimination, agreement, biases, thresholds and recommendations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.diagnosis.judge_quality import (
    JudgeFacts,
    LengthBias,
    judge_facts,
    length_biases,
)
from clash.analysis.diagnosis.panel_quality import PanelFacts, Thresholds, panel_facts, thresholds
from clash.analysis.diagnosis.recommendations import Recommendation, recommend
from clash.analysis.diagnosis.response_diversity import Equivalence, equivalence
from clash.analysis.diagnosis.summary import summary
from clash.analysis.judge_edges import judge_edges
from clash.analysis.power.pilot import ASSUMED_ICC
from clash.errors import StatisticsError
from clash.stats.icc import random_intercept

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.diagnosis.known_gaps import JudgeCurve
    from clash.analysis.diagnosis.run_judges import RunFacts
    from clash.analysis.judge_edges import PanelEdges
    from clash.analysis.semantic import Encoder
    from clash.analysis.texts import Texts
    from clash.stats.intervals import Interval
    from clash.votes import LabelUse, Votes


@dataclass(frozen=True)
class Diagnosis:
    """Measures, thresholds and recommendations for every judge of a panel.

    Attributes:
        labels: how many rows have a label, and whether the labels are used.
        edges: how much better than chance each judge is, by labels or by agreement.
        summary: how good the judges are and what panel they make, in sentences.
        icc: correlation of decisive ballots of one item, for the saving in runs.
        run: what only a run folder tells: cost, length, scores, candidates; null for votes.
        equivalence: ties against the diversity of the responses; null without these.
        lengths: what length does to each judge; empty without the responses.
        calibration: psychometric curves, where the run judged calibration pairs.
    """

    source: str
    labels: LabelUse
    edges: PanelEdges
    summary: tuple[str, ...]
    panel: PanelFacts
    judges: tuple[JudgeFacts, ...]
    recommendations: tuple[Recommendation, ...]
    thresholds: Thresholds
    icc: Interval
    run: RunFacts | None
    equivalence: Equivalence | None
    lengths: tuple[LengthBias, ...]
    calibration: tuple[JudgeCurve, ...]
    notes: tuple[str, ...]


def diagnose(
    votes: Votes,
    *,
    candidates: int = 2,
    simulate: bool = False,
    replications: int = 400,
    seed: int = 0,
    run: RunFacts | None = None,
    texts: Mapping[str, Texts] | None = None,
    encoder: Encoder | None = None,
    calibration: tuple[JudgeCurve, ...] = (),
) -> Diagnosis:
    """Diagnose every judge and the panel.

    Args:
        votes: sides and ties.
        candidates: K of the thresholds.
        simulate: whether to check by simulation what removing each judge does.
        replications: of that simulation.
        seed: of bootstraps and simulations.
        run: what a run folder adds.
        texts: responses by item id of the votes, for the split of ties.
        encoder: an embedding model for their likeness; without one, TF-IDF.
        calibration: psychometric curves.

    Raises:
        StatisticsError: scores instead of sides, or no vote at all.
    """
    if votes.kind == "numeric":
        raise StatisticsError(
            "a diagnosis needs outcomes of pairs, and these are scores"
            "\n  fix: give a run folder, or votes that are A, B or tie"
        )
    if np.isnan(votes.matrix).all():
        raise StatisticsError(
            "every judge failed on every item: there is nothing to diagnose"
            "\n  fix: `clash resume` asks the failed calls of a run again"
        )
    facts, edges = judge_facts(votes), judge_edges(votes, seed)
    icc = _icc(votes)
    icc_is_known = not math.isnan(icc.estimate)
    standings = thresholds(
        [judge for judge in facts if judge.ballots],
        {edge.judge: edge for edge in edges.judges},
        candidates,
        simulate=simulate,
        replications=replications,
        seed=seed,
    )
    advice = recommend(facts, edges, standings, icc.estimate if icc_is_known else ASSUMED_ICC)
    notes = _notes(votes, facts, icc_is_known=icc_is_known)
    panel = panel_facts(votes, seed)
    return Diagnosis(
        source=votes.source,
        labels=votes.label_use,
        edges=edges,
        summary=tuple(
            summary(edges, panel, votes.label_use, has_people=any(judge.person for judge in facts))
        ),
        panel=panel,
        judges=facts,
        recommendations=advice,
        thresholds=standings,
        icc=icc,
        run=run,
        equivalence=_equivalence(votes, texts, advice, encoder, seed, notes),
        lengths=length_biases(votes, texts) if texts else (),
        calibration=calibration,
        notes=tuple(notes),
    )


def _equivalence(
    votes: Votes,
    texts: Mapping[str, Texts] | None,
    advice: Sequence[Recommendation],
    encoder: Encoder | None,
    seed: int,
    notes: list[str],
) -> Equivalence | None:
    if not texts:
        return None
    standard = [
        recommendation.judge
        for recommendation in advice
        if recommendation.action == "keep" and recommendation.sure
    ]
    try:
        return equivalence(votes, texts, standard=standard or None, encoder=encoder, seed=seed)
    except StatisticsError as error:
        notes.append(f"ties are not split by cause: {error}")
        return None


def _icc(votes: Votes) -> Interval:
    """On the scale of outcomes; NaN where the ballots do not tell."""
    decisive = np.isin(votes.matrix, (0.0, 1.0))
    row, judge = np.nonzero(decisive)
    if not len(row):
        return random_intercept([0], [1]).observed
    groups = votes.groups[row]
    trials = np.bincount(groups)
    wins = np.bincount(groups, weights=votes.matrix[row, judge])
    return random_intercept(wins, trials).observed


def _notes(votes: Votes, facts: tuple[JudgeFacts, ...], *, icc_is_known: bool) -> list[str]:
    notes = []
    if len(facts) == 1:
        notes.append("one judge: agreement and comparison with a panel need at least two")
    if not icc_is_known:
        notes.append(
            f"the correlation of ballots of one item cannot be estimated: {ASSUMED_ICC:g} is"
            " assumed for savings"
        )
    if all(presentation == "orig" for presentation in votes.presentations):
        notes.append(
            "one order only: position bias is measured against the reference, not by swapping"
        )
    return notes
