"""Fit a calibrator on the labels of a votes file or run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.calibration.calibrator import (
    CONTROL_SHARE,
    SCHEMA,
    Calibrator,
    DeployedMap,
    HeldOutSources,
    TrainingPattern,
    TrainingRecord,
)
from clash.stats.selection import blocks
from clash.stats.selection.metrics import confidence
from clash.stats.selection.selector import learn
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from clash.analysis.calibration.frame import ScoreFrame
    from clash.stats.selection.candidate_methods import SelectionSettings
    from clash.stats.selection.panel import Cells, Evidence, PanelVotes
    from clash.stats.typing import Floats
    from clash.votes import Votes


def fit(
    votes: Votes,
    frame: ScoreFrame,
    panel: PanelVotes,
    settings: SelectionSettings,
    *,
    seed: int,
    models: Mapping[str, str] | None = None,
    templates: str | None = None,
) -> Calibrator:
    """Choose and fit on seven tenths of the labelled sources; hold the rest for the risk.

    Raises:
        StatisticsError: too few sources.
    """
    rng = np.random.default_rng([seed, 3])
    labelled_rows = np.flatnonzero(panel.has_label)
    fit_part, control_part = blocks.divide(
        panel.group[labelled_rows], (1 - CONTROL_SHARE, CONTROL_SHARE), rng
    )
    train, control = labelled_rows[fit_part], labelled_rows[control_part]
    roles = blocks.deal(panel.group, train, blocks.SplitPlan(), rng)
    vote_counts = panel.votes(np.setdiff1d(np.arange(panel.n_rows), control))
    outcome = learn(panel, train, roles, vote_counts, settings, rng)
    choice, model = outcome.choice, outcome.model
    candidate, columns = model.candidate, model.all_judges
    cells = panel.cells(columns)
    return Calibrator(
        schema=SCHEMA,
        clash=__version__,
        target=frame.target,
        path=candidate.path,
        k=candidate.k,
        family=candidate.family,
        judges=list(frame.judges),
        asked=[frame.judges[j] for j in columns],
        maps=[
            DeployedMap(
                family=m.family, judges=[columns.index(j) for j in m.judges], weight=m.weight
            )
            for m in model.members
        ],
        models=None if models is None else {j: models[j] for j in frame.judges if j in models},
        templates=templates,
        low=frame.low,
        high=frame.high,
        training=TrainingRecord(
            source=votes.source.rpartition("/")[2],
            n=len(train),
            sources=len(np.unique(panel.group[train])),
            seed=seed,
            validation_risk=_finite(choice.validation_risk),
            majority_risk=_finite(choice.risks[0]),
        ),
        patterns=_patterns(cells, outcome.evidence.on(cells)),
        control=_hold_out(panel, control, model.p, rng),
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _patterns(cells: Cells, evidence: Evidence) -> list[TrainingPattern]:
    voters = np.flatnonzero(evidence.votes > 0)
    return [
        TrainingPattern(
            votes=[None if np.isnan(v) else float(v) for v in cells.values[cell]],
            n=float(evidence.n[cell]),
            s=[float(s) for s in evidence.s[cell]],
            n_rows=float(evidence.votes[cell]),
        )
        for cell in voters
    ]


def _hold_out(
    panel: PanelVotes, rows: NDArray[np.intp], p: Floats, rng: np.random.Generator
) -> HeldOutSources:
    """One row of each held source, at random: copies of a row are not exchangeable draws."""
    order = rng.permutation(rows)
    _, first = np.unique(panel.group[order], return_index=True)
    sample = panel.rows(order[first])
    confidences = confidence(p)[sample.pattern]
    wrong = sample.credits(p) < 1
    return HeldOutSources(
        n=len(first),
        wrong=sorted(float(c) for c in confidences[wrong]),
        right=sorted(float(c) for c in confidences[~wrong]),
    )
