"""Draws docs/images/risk.svg and prints its table: is the share of wrong answers what was promised?

    python docs/tables/risk.py DATA [--repetitions 200] [--labels 300]

In each repetition a calibrator is chosen and fitted on so many labelled sources, three tenths of
which it holds out for the risk, and is applied with each --max-risk to all other rows, as `clash
aggregate --calibrator` does. DATA holds files that end in .votes.jsonl.gz; no vote is kept.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from clash.analysis.calibration.calibrator import RiskLimit, apply
from clash.analysis.calibration.fitting import fit
from clash.analysis.calibration.frame import ScoreFrame
from clash.analysis.calibration.study import sizes_for
from clash.stats.selection.candidate_methods import SelectionSettings
from clash.stats.selection.metrics import credits_of
from clash.stats.selection.panel import PanelVotes
from clash.votes import Votes, read_votes

PICTURE = Path(__file__).resolve().parents[1] / "images" / "risk.svg"
RISKS = (0.02, 0.05, 0.1, 0.2, 0.3)
PANELS = {
    "rb2-replicates, one sample": ("rb2-replicates", {"judges": "*#s0"}),
    "llmbar-processed": ("llmbar-processed", {"presentation": "orig"}),
    "llmfao, decisive": ("llmfao", {"judges": "gpt-*,heuristic*", "decisive": True}),
}
MENU = SelectionSettings(
    rules=("information-first",),
    families=("majority", "mean-isotonic", "one-coin-isotonic", "logistic", "anchored-logistic"),
)
"""Enough of the menu to overfit; the promise holds for any map."""


@dataclass(frozen=True)
class RiskShares:
    """By repetition and risk: share of the answers that is wrong, and share that is answered."""

    wrong: np.ndarray
    answered: np.ndarray


def repeat(votes: Votes, labels: int, repetitions: int) -> RiskShares:
    """Fit on a random part and count on the rest."""
    frame = ScoreFrame.of(votes)
    full_panel_data = frame.panel(votes)
    settings = replace(MENU, sizes=sizes_for(full_panel_data.n_judges))
    y = frame.scale(votes.labels)
    indices = np.flatnonzero(full_panel_data.has_label)
    wrong, is_answered = [], []
    for repetition in range(repetitions):
        rng = np.random.default_rng([11, repetition])
        label_groups = rng.permutation(np.unique(full_panel_data.group[indices]))[:labels]
        is_labelled = np.isin(full_panel_data.group, label_groups)
        panel = PanelVotes.of(
            frame.scale(votes.matrix),
            np.where(is_labelled, y, np.nan),
            full_panel_data.group,
            frame.target,
        )
        fit_result = fit(votes, frame, panel, settings, seed=repetition)
        unlabelled_rows = indices[~is_labelled[indices]]
        columns = [frame.judges.index(judge) for judge in fit_result.asked]
        row = [
            apply(fit_result, votes.matrix[unlabelled_rows][:, columns], RiskLimit(risk))
            for risk in RISKS
        ]
        errors = [
            1 - credits_of(record.p, y[unlabelled_rows][:, None])[record.answered] for record in row
        ]
        wrong.append([e.mean() if len(e) else 0.0 for e in errors])
        is_answered.append([record.answered.mean() for record in row])
    return RiskShares(np.array(wrong), np.array(is_answered))


def draw(repetitions: dict[str, RiskShares]) -> None:
    """Allowed against found, the mean over repetitions with two standard errors."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, repetition), marker in zip(repetitions.items(), "os^", strict=True):
        error = 2 * repetition.wrong.std(axis=0, ddof=1) / np.sqrt(len(repetition.wrong))
        left.errorbar(RISKS, repetition.wrong.mean(axis=0), error, marker=marker, capsize=2, lw=1)
        right.plot(RISKS, repetition.answered.mean(axis=0), marker=marker, lw=1, label=name)
    left.plot([0, max(RISKS)], [0, max(RISKS)], "k:", lw=1)
    left.set(xlabel="--max-risk", ylabel="wrong among answered")
    right.set(xlabel="--max-risk", ylabel="answered", ylim=(0, 1.02))
    right.legend(fontsize=7, frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--labels", type=int, default=300)
    options = parser.parse_args()
    print("| panel | " + " | ".join(f"{risk:g}" for risk in RISKS) + " |")
    print("| --- |" + " --- |" * len(RISKS), flush=True)
    results = {}
    for name, (file, filters) in PANELS.items():
        votes = read_votes(options.data / f"{file}.votes.jsonl.gz", **filters)
        repetition = results[name] = repeat(votes, options.labels, options.repetitions)
        mean, error = (
            repetition.wrong.mean(axis=0),
            repetition.wrong.std(axis=0) / np.sqrt(len(repetition.wrong)),
        )
        cells = [
            f"{m:.3f} ± {e:.3f} of {a:.0%}"
            for m, e, a in zip(mean, error, repetition.answered.mean(axis=0), strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    draw(results)


if __name__ == "__main__":
    main()
