"""The design of figure 3 on panels whose law is known: accuracy by training items and by judges."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from clash.reproduction.simulations.experiment import (
    CurvePlot,
    PaperComparison,
    RiskCurve,
    Simulation,
)
from clash.reproduction.studies.sweep import USUAL, PanelData, SweepPoint, sweep
from clash.stats.simulate.spins import IsingPanel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.reproduction.studies.sweep import SweepCell
    from clash.stats.typing import Floats

N_ITEMS, JUDGES = 3000, 10
TRAIN, SIZES = (50, 100, 200, 500, 1000, 2400), (4, 6, 8, 10)
HELD_JUDGES, HELD_TRAIN = 6, 500


def _panel(coupling: tuple[float, float]) -> IsingPanel:
    """Four judges coupled to each other, six on their own; either class as far from 1/2."""
    bloc = np.zeros((JUDGES, JUDGES))
    bloc[:4, :4] = 1.0 - np.eye(4)
    couplings = np.stack([strength * bloc for strength in coupling])
    lean = np.outer((-1.0, 1.0), np.r_[np.full(4, 0.4), np.linspace(0.5, 1.3, 6)])
    # Votes are 0 and 1, so that couplings lean to 1 unless the fields hold against them.
    return IsingPanel(lean - couplings.sum(axis=2) / 2, couplings, 0.5)


PANELS = {
    "the same couplings in both classes": _panel((1.5, 1.5)),
    "couplings in class 1 alone": _panel((0.0, 1.5)),
}


def simulated_sweep(seed: int, replications: int) -> Simulation:
    """Every usual model of ``clash study ising``, trials of random items and judges."""
    rows: list[PaperComparison] = []
    by_train: list[tuple[RiskCurve, ...]] = []
    by_judges: list[tuple[RiskCurve, ...]] = []
    for number, (name, panel) in enumerate(PANELS.items()):
        sample = panel.sample(N_ITEMS, np.random.default_rng([seed, number]))
        data = PanelData(sample.votes, sample.labels.astype(float), np.arange(N_ITEMS))
        left = [SweepPoint(n, HELD_JUDGES) for n in TRAIN]
        right = [SweepPoint(HELD_TRAIN, k) for k in SIZES]
        cells = sweep(data, [*left, *right], USUAL, replications, seed)
        cut = len(left) * len(USUAL)
        best = {k: _bayes_accuracy(panel, k) for k in (HELD_JUDGES, *SIZES)}
        rows += [_row(name, cell) for cell in cells[-len(USUAL) :] if cell.n_fitted]
        level = RiskCurve("Bayes' rule", (), (best[HELD_JUDGES],), level=True)
        by_train.append((*_curves(cells[:cut], lambda c: c.n_train), level))
        bayes = RiskCurve("Bayes' rule", SIZES, tuple(best[k] for k in SIZES))
        by_judges.append((*_curves(cells[cut:], lambda c: c.n_judges), bayes))
        rows += [PaperComparison(f"{name}: Bayes' rule, {k} judges", best[k]) for k in SIZES[-1:]]
    return Simulation(
        "sweep",
        "Test accuracy without labels, by training items and by judges",
        "the design of figure 3 and section 4.1",
        {
            "items": f"{N_ITEMS} of each panel, a fifth tested in each trial",
            "judges": f"{JUDGES}, of whom four are coupled",
            "by items": f"{HELD_JUDGES} judges",
            "by judges": f"{HELD_TRAIN} training items",
        },
        tuple(rows),
        (
            "Bayes' rule knows the law; the models see votes without labels. --plots and --json have"
            " every size; `clash study ising VOTES` is the same on votes of your own.",
        ),
        seed,
        replications,
        (
            _plot("sweep-train", by_train, "training items", log_x=True),
            _plot("sweep-judges", by_judges, "judges"),
        ),
    )


def _bayes_accuracy(panel: IsingPanel, k: int) -> float:
    """Of Bayes' rule on k of the judges, the mean over all panels of k; exact."""
    states, pmf = panel.states, panel.pmf()
    accuracies = []
    for judges in combinations(range(JUDGES), k):
        code = states[:, judges].astype(np.intp) @ (1 << np.arange(k))
        joint = [
            weight * np.bincount(code, p, minlength=1 << k)
            for weight, p in zip((1 - panel.prevalence, panel.prevalence), pmf, strict=True)
        ]
        accuracies.append(np.maximum(*joint).sum())
    return float(np.mean(accuracies))


def _row(name: str, cell: SweepCell) -> PaperComparison:
    trials = "" if cell.n_fitted == cell.n_trials else f", fitted in {cell.n_fitted} trials"
    size = f"{cell.n_train} items, {cell.n_judges} judges"
    quantity = f"{name}: {cell.method}, {size}{trials}"
    return PaperComparison(quantity, cell.by_trial.mean, se=cell.by_trial.se)


def _curves(cells: Sequence[SweepCell], size: Callable[[SweepCell], int]) -> tuple[RiskCurve, ...]:
    lines = []
    for colour, method in enumerate(USUAL):
        points = [cell for cell in cells if cell.method == method and cell.n_fitted]
        errors: Floats = np.nan_to_num([cell.by_trial.se for cell in points])
        xs, ys = tuple(float(size(c)) for c in points), tuple(c.by_trial.mean for c in points)
        lines.append(RiskCurve(method, xs, ys, tuple(errors.tolist()), colour=colour))
    return tuple(lines)


def _plot(
    name: str, panels: Sequence[tuple[RiskCurve, ...]], x_label: str, *, log_x: bool = False
) -> CurvePlot:
    return CurvePlot(name, tuple(PANELS), tuple(panels), x_label, "test accuracy", log_x=log_x)
