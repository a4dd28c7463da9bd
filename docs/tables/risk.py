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
class Kept:
    """By repetition and risk: share of the answers that is wrong, and share that is answered."""

    wrong: np.ndarray
    answered: np.ndarray


def repeat(votes: Votes, labels: int, repetitions: int) -> Kept:
    """Fit on a random part and count on the rest."""
    frame = ScoreFrame.of(votes)
    whole = frame.panel(votes)
    settings = replace(MENU, sizes=sizes_for(whole.n_judges))
    y = frame.scale(votes.labels)
    known = np.flatnonzero(whole.has_label)
    wrong, answered = [], []
    for repetition in range(repetitions):
        rng = np.random.default_rng([11, repetition])
        chosen = rng.permutation(np.unique(whole.group[known]))[:labels]
        ours = np.isin(whole.group, chosen)
        panel = PanelVotes.of(
            frame.scale(votes.matrix), np.where(ours, y, np.nan), whole.group, frame.target
        )
        found = fit(votes, frame, panel, settings, seed=repetition)
        rest = known[~ours[known]]
        columns = [frame.judges.index(judge) for judge in found.asked]
        row = [apply(found, votes.matrix[rest][:, columns], RiskLimit(risk)) for risk in RISKS]
        errors = [1 - credits_of(one.p, y[rest][:, None])[one.answered] for one in row]
        wrong.append([e.mean() if len(e) else 0.0 for e in errors])
        answered.append([one.answered.mean() for one in row])
    return Kept(np.array(wrong), np.array(answered))


def draw(found: dict[str, Kept]) -> None:
    """Allowed against found, the mean over repetitions with two standard errors."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, kept), marker in zip(found.items(), "os^", strict=True):
        error = 2 * kept.wrong.std(axis=0, ddof=1) / np.sqrt(len(kept.wrong))
        left.errorbar(RISKS, kept.wrong.mean(axis=0), error, marker=marker, capsize=2, lw=1)
        right.plot(RISKS, kept.answered.mean(axis=0), marker=marker, lw=1, label=name)
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
    found = {}
    for name, (file, filters) in PANELS.items():
        votes = read_votes(options.data / f"{file}.votes.jsonl.gz", **filters)
        kept = found[name] = repeat(votes, options.labels, options.repetitions)
        mean, error = kept.wrong.mean(axis=0), kept.wrong.std(axis=0) / np.sqrt(len(kept.wrong))
        cells = [
            f"{m:.3f} ± {e:.3f} of {a:.0%}"
            for m, e, a in zip(mean, error, kept.answered.mean(axis=0), strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    draw(found)


if __name__ == "__main__":
    main()
