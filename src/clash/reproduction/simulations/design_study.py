"""How the choice of a model without labels does on twelve kinds of simulated panels."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.tasks import run_tasks
from clash.reproduction.simulations.experiment import DesignCell, Simulation
from clash.stats.intervals import mean_clustered
from clash.stats.latent.candidate_models import candidate_models, class_dependent_models
from clash.stats.latent.cross_validation import fit_all
from clash.stats.latent.fit import vote_share
from clash.stats.latent.model_selection import select
from clash.stats.latent.patterns import collapse
from clash.stats.scoring import log_loss
from clash.stats.simulate.designs import DESIGNS, Design

if TYPE_CHECKING:
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats

SIZES = (300, 1000, 3000)
SIGNIFICANT = 1.96
MARGIN = 0.01
"""How far auto may be behind the best member where the votes tell."""


def designs(seed: int, replications: int, sizes: tuple[int, ...] = SIZES) -> Simulation:
    """Every design at every size, as many panels of each as asked for.

    Args:
        seed: of the panels; panel r of a design at a size is the same whatever else is run.
        replications: panels of each design and size, at least 2.
        sizes: numbers of items.
    """
    cells = tuple(
        _cell(design, index, n, seed, replications)
        for index, design in enumerate(DESIGNS)
        for n in sizes
    )
    return Simulation(
        name="designs",
        title="Without labels: auto on twelve kinds of panels",
        source="no paper: our own study of `clash aggregate --method auto`",
        setting={
            "items": ", ".join(map(str, sizes)),
            "panels of each design and size": str(replications),
            "accuracy": "in %, a tie half right; differences in points with 95% intervals over panels",
        },
        rows=(),
        findings=_findings(cells),
        seed=seed,
        replications=replications,
        cells=cells,
    )


def _cell(design: Design, index: int, n: int, seed: int, replications: int) -> DesignCell:
    seeds = [[seed, index, n, r] for r in range(replications)]
    panels = list(run_tasks(_panel, (design, n), seeds))
    right = {
        name: np.array([panel[0][name].mean() for panel in panels])
        for name in panels[0][0]
        if all(name in panel[0] for panel in panels)
    }
    member = max((m for m in right if m not in ("auto", "oracle")), key=lambda m: right[m].mean())
    behind = [_paired_z(rights["auto"] - rights["majority"]) for rights, _, _ in panels]
    return DesignCell(
        design=design.name,
        n_items=n,
        n_panels=replications,
        majority=float(right["majority"].mean()),
        dawid_skene=float(right["dawid-skene"].mean()),
        auto=float(right["auto"].mean()),
        best_member=member,
        best_member_accuracy=float(right[member].mean()),
        oracle=float(right["oracle"].mean()),
        against_majority=_difference(right["auto"] - right["majority"]),
        against_member=_difference(right["auto"] - right[member]),
        log_loss_against_share=mean_clustered([loss for _, loss, _ in panels]),
        panels_below=sum(z < -SIGNIFICANT for z in behind),
        panels_above=sum(z > SIGNIFICANT for z in behind),
        chosen=dict(Counter(method for _, _, method in panels).most_common()),
    )


def _panel(case: tuple[Design, int], seed: list[int]) -> tuple[dict[str, Floats], float, str]:
    """Which items each rule has right, auto's log-loss less the vote share's, and auto's choice."""
    (design, n), rng = case, np.random.default_rng(seed)
    sample = design.sample(n, rng)
    patterns = collapse(sample.votes)
    share = patterns.expand(vote_share(patterns))
    selection = select(sample.votes, rng=rng)
    models = {name: model.fit for name, model in candidate_models(patterns, None).items()}
    fits, _ = fit_all(models | class_dependent_models(patterns), patterns)
    posteriors = {"majority": share, "auto": selection.item_posterior, "oracle": sample.oracle}
    posteriors |= {name: fit.item_posterior for name, fit in fits.items()}
    truth = sample.truth.astype(np.float64)
    right = {
        name: np.where(np.abs(p - 0.5) < 1e-9, 0.5, (p > 0.5) == (truth == 1))
        for name, p in posteriors.items()
    }
    gap = log_loss(selection.item_posterior, truth) - log_loss(share, truth)
    return right, float(gap), selection.method


def _difference(values: Floats) -> Interval:
    """The mean difference of two accuracies; no interval reaches beyond what one can be."""
    interval = mean_clustered(values)
    return replace(interval, low=max(interval.low, -1.0), high=min(interval.high, 1.0))


def _paired_z(difference: Floats) -> float:
    """A mean over its standard error; 0 where nothing differs."""
    spread = float(difference.std(ddof=1))
    return float(difference.mean() / spread * len(difference) ** 0.5) if spread else 0.0


def _findings(cells: tuple[DesignCell, ...]) -> tuple[str, ...]:
    below = [f"{c.design} at {c.n_items}" for c in cells if c.against_majority.high < 0]
    above = [c for c in cells if c.against_majority.low > 0]
    n_panels = sum(c.n_panels for c in cells)
    worse = [f"{c.design} at {c.n_items}" for c in cells if c.log_loss_against_share.low > 0]
    behind = [f"{c.design} at {c.n_items}" for c in cells if c.against_member.estimate < -MARGIN]
    return (
        f"auto is significantly below majority in {len(below)} of {len(cells)} rows"
        f"{': ' + ', '.join(below) if below else ''}, above in {len(above)}; of the single panels "
        f"{sum(c.panels_below for c in cells)} of {n_panels} are below and "
        f"{sum(c.panels_above for c in cells)} above (a difference of 1.96 standard errors).",
        "Its mean is more than a point behind the best member, known only in hindsight, in "
        f"{len(behind)} of {len(cells)} rows{': ' + ', '.join(behind) if behind else ''}.",
        "Its log-loss is significantly above that of the smoothed vote share in "
        f"{len(worse)} of {len(cells)} rows{': ' + ', '.join(worse) if worse else ''}.",
    )
