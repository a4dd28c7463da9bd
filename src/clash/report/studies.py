"""The papers' experiments on anyone's votes, as tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.report.formats import DASH, estimate, number, percent, points
from clash.report.plots import PlotCurve, curves, save
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from clash.reproduction.studies.fcps_records import (
        FcpsStudy,
        MethodRisk,
        PathPoint,
        PrefixPoint,
        PressureChecks,
        Spread,
    )
    from clash.reproduction.studies.ising_study import IsingStudy
    from clash.reproduction.studies.sweep import SweepCell
    from clash.stats.intervals import Interval
    from clash.stats.resample import RepeatMean

_MOST_DOTS = 400
"""Dots of a scatter plot; of more, every so many-th."""


def _mean(figure: RepeatMean, digits: int = 3, scale: float = 1.0) -> str:
    """As the papers print it: mean ± standard error over trials."""
    if np.isnan(figure.mean):
        return DASH
    error = "" if np.isnan(figure.se) else f" ± {scale * figure.se:.{digits}f}"
    return f"{scale * figure.mean:.{digits}f}{error}"


# -- the second paper ------------------------------------------------------------------------------


def ising_tables(study: IsingStudy) -> list[Table]:
    """Table 1, and the numbers of figure 3."""
    return [
        _table_1(study),
        _by_size(study.by_train, "Accuracy in % by training items", lambda c: c.n_train),
        _by_size(study.by_judges, "Accuracy in % by judges", lambda c: c.n_judges),
    ]


def ising_answer(study: IsingStudy) -> str:
    """How many models beat the uniform majority, in a sentence."""
    gaps = [cell.against_uniform for cell in study.table if cell.against_uniform is not None]
    more = sum(gap.low > 0 for gap in gaps)
    less = sum(gap.high < 0 for gap in gaps)
    return (
        f"Clearly right more often than the uniform majority: {more} of {len(gaps)} models fitted"
        f" without labels; clearly less often: {less} (95%, paired, over items and trials)."
    )


def ising_setting(study: IsingStudy) -> str:
    """What was read and drawn, in one sentence."""
    return "; ".join(
        [
            f"{study.n_rows} rows of {study.n_sources} sources",
            f"{study.n_labelled} labelled, {study.positive:.0%} of them side 1",
            f"{len(study.judges)} judges",
            f"{study.trials} trials, seed {study.seed}, a fifth of the sources tested in each",
            *study.notes,
        ]
    )


def _table_1(study: IsingStudy) -> Table:
    rows = [
        {
            "": cell.method,
            "accuracy %": _mean(cell.by_trial, 1, 100),
            "95% interval": percent(cell.accuracy, digits=1),
            "- weighted": points(cell.against_weighted),
            "- uniform": points(cell.against_uniform),
            "balanced": number(100 * cell.balanced_accuracy.mean, ".1f"),
            "log-loss": number(cell.log_loss.mean, ".3f"),
            "fitted": _fit_counts(cell),
        }
        for cell in study.table
    ]
    first = study.table[0]

    notes = [
        "accuracy: mean ± standard error over trials, as in the paper; 95%: over items and trials",
        "weighted: dawid-skene (CI-WMV); uniform: majority (CI-UMV); differences are paired by item",
        "fitted: trials in which the model could be fitted, and of these in how many it converged",
        *_refusals(study.table),
    ]
    title = f"Test accuracy, {first.n_judges} judges, {first.n_train} training items (table 1)"
    return Table.of(
        title, rows, notes=notes, optional=("log-loss", "balanced", "fitted", "- uniform")
    )


def _fit_counts(cell: SweepCell) -> str:
    text = f"{cell.n_fitted} of {cell.n_trials}"
    return text if cell.n_converged == cell.n_fitted else f"{text}, {cell.n_converged} converged"


def _refusals(cells: Iterable[SweepCell]) -> list[str]:
    return [f"{cell.method}, where not fitted: {cell.refusal}" for cell in cells if cell.refusal]


def _by_size(cells: Sequence[SweepCell], title: str, size: Callable[[SweepCell], int]) -> Table:
    sizes = sorted({size(cell) for cell in cells})
    methods = list(dict.fromkeys(cell.method for cell in cells))
    at = {(cell.method, size(cell)): cell for cell in cells}
    rows = [[name, *(_share_fitted(at[name, x]) for x in sizes)] for name in methods]
    n_train, n_judges = {c.n_train for c in cells}, {c.n_judges for c in cells}
    constant = (
        f"{n_judges.pop()} judges" if len(n_judges) == 1 else f"{n_train.pop()} training items"
    )
    notes = ["a number in brackets: trials in which the model could be fitted, where not in all"]
    columns = ["", *map(str, sizes)]
    return Table(
        f"{title}, {constant} (figure 3)", columns, rows, frozenset(range(1, len(sizes) + 1)), notes
    )


def _share_fitted(cell: SweepCell) -> str:
    text = _mean(cell.by_trial, 1, 100)
    return text if cell.n_fitted == cell.n_trials else f"{text} ({cell.n_fitted})"


def ising_figures(study: IsingStudy) -> dict[str, Figure]:
    """Figure 3 by file name."""
    return {
        "ising-train": _accuracy_figure(
            study.by_train, "training items", lambda c: c.n_train, log_x=True
        ),
        "ising-judges": _accuracy_figure(study.by_judges, "judges", lambda c: c.n_judges),
    }


def _accuracy_figure(
    cells: Sequence[SweepCell],
    x_label: str,
    size: Callable[[SweepCell], int],
    *,
    log_x: bool = False,
) -> Figure:
    lines = []
    for name in dict.fromkeys(cell.method for cell in cells):
        curve = [c for c in cells if c.method == name and c.n_fitted]
        errors = [0.0 if np.isnan(c.by_trial.se) else c.by_trial.se for c in curve]
        xs, ys = [size(c) for c in curve], [c.by_trial.mean for c in curve]
        lines.append(PlotCurve(name, xs, ys, errors, "joined"))
    title = "mean and standard error over trials"
    return curves([lines], titles=[title], x_label=x_label, y_label="test accuracy", log_x=log_x)


# -- the fourth paper ------------------------------------------------------------------------------


def fcps_setting(study: FcpsStudy) -> str:
    """What was read and drawn, in one sentence."""
    select, validate, test = study.blocks
    return "; ".join(
        [
            f"{study.n_labelled} labelled rows of {study.n_sources} sources",
            f"{study.target} target",
            f"judges {', '.join(study.judges)}",
            f"{study.splits} splits, seed {study.seed}",
            f"{select} rows to select, {validate} to validate, {test} to test",
            *study.notes,
        ]
    )


def fcps_tables(study: FcpsStudy) -> list[Table]:
    """Tables 2, 3, 8 to 11, 17, 26 and 27."""
    most = study.budgets[-1]
    return [
        _contests(study),
        _risks(study.baselines, f"Joint tables, {most} labels (tables 3 and 7)"),
        _risks(study.scalars, f"Scalar families, all judges, {most} labels (table 8)"),
        _family_choices(study),
        _risks(study.ablation, f"Prefix against family, {most} labels (table 10)"),
        _pressure(study),
        checks_table(study.checks),
    ]


def checks_table(checks: PressureChecks) -> Table:
    """Tables 17, 26 and 27: whether sparse cells go with risk, and foretell the scalar family."""
    rows = [
        [
            name,
            number(slope.estimate, "+.3f"),
            *(number(x, ".3f") for x in (slope.se, slope.clustered_se)),
        ]
        for name, slope in (
            ("H / n to test MSE, within groups (table 26)", checks.by_pressure),
            ("unseen share to test MSE, within groups", checks.by_unseen),
        )
    ]
    rows.append(
        [
            f"mean correlation in {checks.groups} groups (table 27)",
            number(checks.correlation, "+.3f"),
            "",
            f"{number(checks.positive, '.0%')} positive",
        ]
    )
    if checks.score is not None:
        score = checks.score
        rows += [
            [
                "score to scalar family wins, AUC (table 17)",
                f"{score.auc.estimate:.3f}",
                "",
                f"{_ends(score.auc)}, p {score.p:.3f}",
            ],
            [
                "score where it wins, less elsewhere",
                f"{score.gap.estimate:+.3f}",
                "",
                _ends(score.gap),
            ],
        ]
    return Table(
        "Pressure, risk and winner (tables 17, 26 and 27)",
        ["", "estimate", "s.e., independent", "clustered"],
        rows,
        frozenset({1, 2, 3}),
        [
            "groups: budget and path rule of a panel; slopes standardised; clustered by split, whose"
            " prefixes share rows",
            "score: H / n, unseen share and gain of products of two judges, each standardised, added;"
            " p by permuting winners within clusters",
        ],
    )


def _ends(interval: Interval) -> str:
    return f"[{interval.low:.3f}, {interval.high:.3f}]"


def fcps_answer(study: FcpsStudy) -> str:
    """Who wins, in a sentence."""
    gaps = [contest.gap for contest in study.contests]
    scalar = sum(gap.estimate > 0 for gap in gaps)
    clear = [gap for gap in gaps if gap.excludes(0.0)]
    for_scalar = sum(gap.estimate > 0 for gap in clear)
    return (
        f"The scalar family has less test error than the joint table at {scalar} of {len(gaps)}"
        f" budgets; the 95% interval over items and splits excludes zero at {len(clear)},"
        f" {for_scalar} of them for the scalar family."
    )


def _risks(lines: Sequence[MethodRisk], title: str) -> Table:
    rows = [
        {
            "": line.name,
            "test MSE": _mean(line.by_split),
            "95%": estimate(line.risk),
            "K": f"{line.k:.2f}",
        }
        for line in lines
    ]
    note = (
        "test MSE: mean ± standard error over splits, as in the paper; 95%: over items and splits"
    )
    return Table.of(title, rows, notes=[note])


def _contests(study: FcpsStudy) -> Table:
    rows = [
        [
            str(c.budget),
            c.rule,
            f"{c.table:.4f}",
            f"{c.scalar:.4f}",
            estimate(c.gap, 4, sign="+"),
            f"{c.by_split.mean - 1.96 * c.by_split.se:+.4f} to"
            f" {c.by_split.mean + 1.96 * c.by_split.se:+.4f}",
        ]
        for c in study.contests
    ]
    columns = ["labels", "table's path", "table", "scalar", "table - scalar", "over splits"]
    notes = [
        "test MSE; a positive difference favours the scalar family, with 95% over items and splits",
        "table's path: least validation risk over splits; over splits: 95% as the paper computes"
        " it, too short, because splits share items",
    ]
    return Table(
        "Joint table against scalar family (table 11)",
        columns,
        rows,
        frozenset({0, 2, 3, 4, 5}),
        notes,
        optional=(5, 1),
    )


def _family_choices(study: FcpsStudy) -> Table:
    rows = [
        [str(c.budget), f"{c.family} ({c.share:.2f})", f"{c.k:.2f}", _mean(c.by_split)]
        for c in study.chosen
    ]
    note = "in brackets: share of the splits that choose the family chosen most"
    columns = ["labels", "family", "K", "test MSE"]
    return Table(
        "Scalar family by validation (table 9)", columns, rows, frozenset({0, 2, 3}), [note]
    )


def _pressure(study: FcpsStudy) -> Table:
    rows = [
        [
            str(a.budget),
            f"{a.k:.2f}",
            *(f"{x:.4f}" for x in (a.cells, a.unseen, a.pressure, a.proxy, a.table, a.scalar)),
        ]
        for a in study.pressure
    ]
    columns = ["labels", "K", "sum p/N", "unseen", "V cell", "V proxy", "table", "scalar"]
    note = "of the joint table that validation chooses; sum p/N + unseen = V cell (equation 7)"
    return Table(
        "Cell pressure (table 2)", columns, rows, frozenset(range(8)), [note], optional=(5, 2)
    )


def fcps_figures(study: FcpsStudy) -> dict[str, Figure]:
    """Figures 1 to 10 by file name; those that show one thing twice are one."""
    most = study.budgets[-1]
    title = f"{most} labels; bars: 10% to 90% of splits"
    return {
        "fcps-risk-by-k": _spread_figure(
            study.prefixes, lambda p: p.test, title, "judges K", "test MSE"
        ),
        "fcps-validation-by-k": _spread_figure(
            study.prefixes, lambda p: p.validation or p.test, title, "judges K", "validation MSE"
        ),
        "fcps-selected-k": _spread_figure(
            study.sizes,
            lambda p: p.test,
            "bars: 10% to 90% of splits",
            "calibration labels",
            "selected K",
            log_x=True,
        ),
        "fcps-risk-by-pressure": _scatter(study, lambda p: p.h_k / p.budget, "H / n"),
        "fcps-risk-by-unseen": _scatter(study, lambda p: p.unseen, "unseen share"),
        "fcps-marginal": _marginal(study),
        "fcps-selected-pressure": _selected_pressure(study),
    }


def _spread_figure(
    path_points: Sequence[PathPoint],
    spread: Callable[[PathPoint], Spread],
    title: str,
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
) -> Figure:
    lines = []
    for rule in dict.fromkeys(p.path for p in path_points):
        spreads = [(p.at, spread(p)) for p in path_points if p.path == rule]
        below = [max(0.0, s.mean - s.low) for _, s in spreads]
        above = [max(0.0, s.high - s.mean) for _, s in spreads]
        xs, ys = [x for x, _ in spreads], [s.mean for _, s in spreads]
        lines.append(PlotCurve(rule, xs, ys, (below, above), "joined"))
    return curves([lines], titles=[title], x_label=x_label, y_label=y_label, log_x=log_x)


def _scatter(study: FcpsStudy, x: Callable[[PrefixPoint], float], x_label: str) -> Figure:
    """A panel for each path rule (figures 4, 5 and 7)."""
    rules = list(dict.fromkeys(p.path for p in study.points))
    panels = []
    for rule in rules:
        tables = [p for p in study.points if p.path == rule]
        dots = tables[:: max(1, len(tables) // _MOST_DOTS)]
        panels.append(
            [
                PlotCurve(
                    f"{budget} labels",
                    [x(p) for p in dots if p.budget == budget],
                    [p.test for p in dots if p.budget == budget],
                    style="points",
                )
                for budget in study.budgets
            ]
        )
    return curves(panels, titles=rules, x_label=x_label, y_label="test MSE")


def _marginal(study: FcpsStudy) -> Figure:
    """Figure 8: what the next judge adds to pressure, and to risk."""
    at = {(p.split, p.budget, p.path, p.k): p for p in study.points}
    lines = []
    for budget in study.budgets:
        steps = [
            (p, after)
            for (split, n, path, k), p in at.items()
            if n == budget and (after := at.get((split, n, path, k + 1)))
        ]
        steps = steps[:: max(1, len(steps) // (_MOST_DOTS // len(study.budgets)))]
        lines.append(
            PlotCurve(
                f"{budget} labels",
                [(after.h_k - p.h_k) / budget for p, after in steps],
                [after.test - p.test for p, after in steps],
                style="points",
            )
        )
    level = PlotCurve("no change", (), (0.0,), style="level")
    return curves(
        [[*lines, level]],
        titles=["one judge more; below 0 it helps"],
        x_label="increase of H / n",
        y_label="change of test MSE",
    )


def _selected_pressure(study: FcpsStudy) -> Figure:
    """Figure 6: size and pressure of what validation chooses, by labels."""
    xs = [a.budget for a in study.pressure]
    panels = [
        [PlotCurve("selected K", xs, [a.k for a in study.pressure], style="joined")],
        [
            PlotCurve("sum p/N", xs, [a.cells for a in study.pressure], style="joined"),
            PlotCurve("unseen share", xs, [a.unseen for a in study.pressure], style="joined"),
        ],
    ]
    titles = ["chosen joint table", "its sparse cells"]
    return curves(panels, titles=titles, x_label="calibration labels", y_label="", log_x=True)


def write_figures(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Each figure as SVG and PNG; the paths written."""
    return [path for name, figure in figures.items() for path in save(figure, folder, name)]
