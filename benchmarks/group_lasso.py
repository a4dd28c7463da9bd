"""A group lasso on the couplings of the Ising model, by blocks of families, beside the ridge.

    python benchmarks/group_lasso.py --votes FOLDER

For each panel, with couplings shared by the classes: held-out log-likelihood per item (three
folds) of the best penalty on a grid of each kind, and what the fit with it scores against labels
(accuracy, log-loss after tempering). The lasso's norm is smoothed below 1e-3, so that the same
optimiser serves; a block below that is counted as empty. See docs/decisions/group-lasso.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from clash.stats import scoring
from clash.stats.hypothesis_tests import paired_difference
from clash.stats.latent.cross_validation import folds, votes_held_out
from clash.stats.latent.identifiability import group_codes
from clash.stats.latent.ising import IsingModel, IsingPriors
from clash.stats.latent.ising_states import pairs
from clash.stats.latent.marginal_likelihood import GaussianPenalty, fit_from
from clash.stats.latent.temperature_scaling import blend, temper
from clash.votes import read_votes
from clash.votes.binary import MethodTable

SMOOTH = 1e-3
GRID = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
PANELS = (
    ("agentclash-arena100", None, None),
    ("llmbar-casestudy", "*/Vanilla", "orig"),
    ("llmbar-processed", None, "orig"),
    ("rb2-replicates", "gpt-5.4-nano#*,*#s0", None),
    ("rb2-replicates", "*#s0,*#s1", None),
    ("ta-feedback.part1", None, None),
)


@dataclass(frozen=True)
class GroupLasso:
    """The ridge's prior on everything else, and on each block of couplings the norm itself."""

    rest: GaussianPenalty
    blocks: tuple[np.ndarray, ...]
    weight: float

    @property
    def centre(self):
        return self.rest.centre

    def of(self, theta):
        value, gradient = self.rest.of(theta)
        for block in self.blocks:
            norm = float(np.sqrt(theta[block] @ theta[block] + SMOOTH**2))
            pull = self.weight * np.sqrt(len(block))
            value += pull * (norm - SMOOTH)
            gradient[block] += pull * theta[block] / norm
        return value, gradient


def blocks_of(families, k):
    """Indices in the parameter vector of the couplings of each pair of families."""
    codes = np.asarray(group_codes(families, k))
    first, second = pairs(k)
    lower, upper = np.minimum(codes[first], codes[second]), np.maximum(codes[first], codes[second])
    at = 1 + 2 * k + np.arange(len(first))
    return tuple(
        at[(lower == a) & (upper == b)] for a, b in sorted(set(zip(lower, upper, strict=True)))
    )


def fitter(kind, weight, families):
    """A fit of patterns with one of the penalties."""

    def fit(patterns, **more):
        k = patterns.n_judges
        ridge = weight if kind == "ridge" else 0.0
        model = IsingModel.of(patterns, [0] * k, False, IsingPriors(coupling=ridge))
        if kind == "lasso":
            lasso = GroupLasso(model.penalty, blocks_of(families, k), weight * patterns.weight)
            model = replace(model, penalty=lasso)
        warm = more.get("warm")
        return fit_from(
            kind, model, patterns, {"equal skill": model.start(patterns)}, tol=1e-4, warm=warm
        )

    return fit


def best(kind, patterns, families, fold):
    """The weight with the best held-out likelihood, and its score."""
    scores = {
        weight: votes_held_out(kind, fitter(kind, weight, families), patterns, fold)
        for weight in GRID
    }
    return max(scores.items(), key=lambda pair: pair[1].mean)


def told(panel, folder):
    """A line of the table."""
    name, judges, presentation = panel
    votes = read_votes(folder / f"{name}.votes.jsonl.gz", judges=judges, presentation=presentation)
    table = MethodTable.of(votes)
    patterns, families = table.patterns(), table.families or votes.judges
    fold = folds(patterns.n_items, 3, np.random.default_rng(0))
    cells, right, held_out_losses = [], {}, {}
    for kind in ("ridge", "lasso"):
        weight, held_out_losses[kind] = best(kind, patterns, families, fold)
        fit = temper(fitter(kind, weight, families)(patterns))
        p = patterns.expand(blend(fit))[table.decisive]
        truth = table.truth[table.decisive]
        right[kind] = ((p > 0.5) == truth).astype(float)
        loss = scoring.log_loss(p, truth, clip=1e-3)
        cells += [
            f"{weight:g}",
            f"{held_out_losses[kind].mean:.4f}",
            f"{100 * right[kind].mean():.1f}",
            f"{loss:.3f}",
        ]
        if kind == "lasso":
            blocks = blocks_of(families, patterns.n_judges)
            empty = sum(np.linalg.norm(fit.theta[block]) < SMOOTH for block in blocks)
            cells.append(f"{empty} of {len(blocks)}")
    gap = paired_difference(right["lasso"], right["ridge"], table.groups[table.decisive]).difference
    cells.append(f"{100 * gap.estimate:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]")
    title = f"{name}, {patterns.n_judges} judges"
    return f"| {title} | {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=Path, required=True)
    folder = parser.parse_args().votes
    print(
        "| panel | ridge | held out | right | log-loss | lasso | held out | right | log-loss | empty blocks | lasso - ridge |"
    )
    print("| --- |" + " --- |" * 10)
    for panel in PANELS:
        print(told(panel, folder), flush=True)


if __name__ == "__main__":
    main()
