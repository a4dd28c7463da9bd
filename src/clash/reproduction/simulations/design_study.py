"""How the choice of a model without labels does on twelve kinds of simulated panels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.tasks import run_tasks
from clash.errors import StatisticsError
from clash.reproduction.simulations.experiment import DesignCell, Simulation
from clash.reproduction.simulations.vote_readings import MARGIN, Telling, read_panel
from clash.stats.intervals import mean_clustered
from clash.stats.latent.cross_validation import folds
from clash.stats.latent.fit import vote_share
from clash.stats.latent.model_selection import choose_model, weigh_models
from clash.stats.latent.patterns import collapse
from clash.stats.scoring import log_loss
from clash.stats.simulate.designs import DESIGNS, Design

if TYPE_CHECKING:
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats

SIZES = (300, 1000, 3000)
SIGNIFICANT = 1.96
N_FOLDS = 5


@dataclass(frozen=True, slots=True)
class PanelResult:
    """What rules come to on one panel.

    Attributes:
        right: which items each rule has right, a tie half, shape (n_items,) each.
        log_loss: auto's less that of the vote share.
        method: what auto chose.
        telling: whether that many votes tell which reading is right.
        best_reading: the reading that is right most often, were there items without end.
    """

    right: dict[str, Floats]
    log_loss: float
    method: str
    telling: Telling
    best_reading: str


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
        name: np.array([panel.right[name].mean() for panel in panels])
        for name in panels[0].right
        if all(name in panel.right for panel in panels)
    }
    member = max((m for m in right if m not in ("auto", "oracle")), key=lambda m: right[m].mean())
    behind = [_paired_z(panel.right["auto"] - panel.right["majority"]) for panel in panels]
    telling = [panel.telling for panel in panels]
    gaps_where_told = [_against_best_reading(p) for p in panels if p.telling is Telling.YES]
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
        log_loss_against_share=mean_clustered([panel.log_loss for panel in panels]),
        panels_below=sum(z < -SIGNIFICANT for z in behind),
        panels_above=sum(z > SIGNIFICANT for z in behind),
        chosen=dict(Counter(panel.method for panel in panels).most_common()),
        panels_that_tell=telling.count(Telling.YES),
        panels_that_do_not_tell=telling.count(Telling.NO),
        against_member_where_votes_tell=_difference(np.array(gaps_where_told))
        if len(gaps_where_told) > 1
        else None,
    )


def _against_best_reading(panel: PanelResult) -> float:
    """Accuracy of auto less that of the reading that is best with items without end, on this panel.

    Less majority's, where that reading is fitted to the law alone or was refused on this panel.
    """
    rule = panel.best_reading if panel.best_reading in panel.right else "majority"
    return float((panel.right["auto"] - panel.right[rule]).mean())


def _panel(case: tuple[Design, int], seed: list[int]) -> PanelResult:
    """A panel of a design: its votes, every rule on them, and whether they can tell."""
    (design, n), rng = case, np.random.default_rng(seed)
    panel = design.draw_panel(rng)
    sample = panel.sample(n, rng)
    patterns = collapse(sample.votes)
    challenge, refusals = weigh_models(patterns, None, folds(n, N_FOLDS, rng))
    if challenge is None:
        raise StatisticsError(f"no model fits a panel of the design {design.name!r}")
    selection = choose_model(challenge, refusals, rng)
    share = patterns.expand(vote_share(patterns))
    posteriors = {"majority": share, "auto": selection.item_posterior, "oracle": sample.oracle}
    fits = challenge.fits | challenge.by_class
    posteriors |= {name: fit.item_posterior for name, fit in fits.items()}
    truth = sample.truth.astype(np.float64)
    right = {
        name: np.where(np.abs(p - 0.5) < 1e-9, 0.5, (p > 0.5) == (truth == 1))
        for name, p in posteriors.items()
    }
    gap = log_loss(selection.item_posterior, truth) - log_loss(share, truth)
    readings = read_panel(panel, rng)
    return PanelResult(right, float(gap), selection.method, readings.telling(n), readings.best.name)


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
    cells_that_tell = [c for c in cells if c.against_member_where_votes_tell is not None]
    behind_where_told = [
        f"{c.design} at {c.n_items}"
        for c in cells_that_tell
        if c.against_member_where_votes_tell is not None
        and c.against_member_where_votes_tell.estimate < -MARGIN
    ]
    n_tell, n_silent = (
        sum(c.panels_that_tell for c in cells),
        sum(c.panels_that_do_not_tell for c in cells),
    )
    return (
        f"auto is significantly below majority in {len(below)} of {len(cells)} rows"
        f"{': ' + ', '.join(below) if below else ''}, above in {len(above)}; of the single panels "
        f"{sum(c.panels_below for c in cells)} of {n_panels} are below and "
        f"{sum(c.panels_above for c in cells)} above (a difference of 1.96 standard errors).",
        "Its mean is more than a point behind the best member, known only in hindsight, in "
        f"{len(behind)} of {len(cells)} rows{': ' + ', '.join(behind) if behind else ''}.",
        f"The votes tell on {n_tell} of {n_panels} panels, and do not on {n_silent}; on the others majority is "
        "as good as any model. Where they tell, auto's mean is more than a point behind the best "
        f"reading in {len(behind_where_told)} of {len(cells_that_tell)} rows with two such panels or more"
        f"{': ' + ', '.join(behind_where_told) if behind_where_told else ''}.",
        "Its log-loss is significantly above that of the smoothed vote share in "
        f"{len(worse)} of {len(cells)} rows{': ' + ', '.join(worse) if worse else ''}.",
    )
