"""A diagnosis of dependence as tables and heat maps; computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import DASH, estimate, number, p_cell
from clash.report.plots import heat_map, save
from clash.report.tables import Table, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from pathlib import Path

    from clash.analysis.dependence.dependence_findings import Dependence, JudgeFinding, PairFinding


def headline(dependence: Dependence) -> str:
    """Judges, rows, missing votes and the kind of truth, in one sentence."""
    panel, truth = dependence.panel, dependence.truth
    rows = f"{panel.rows} rows" + (
        f" in {plural(panel.clusters, 'group')}" if panel.clusters < panel.rows else ""
    )
    stands = "labels" if truth.from_labels else f"estimated by {truth.method}"
    return (
        f"{len(panel.judges)} judges, {rows}, {panel.missing:.1%} of the votes missing; "
        f"truth: {stands} ({truth.reason}); labels: {panel.labels.sentence}"
    )


def tables(dependence: Dependence, *, verbose: bool = False) -> list[Table]:
    """What the panel is worth and its blocs; with ``verbose`` every figure behind them."""
    answers = [_worth(dependence), _blocs(dependence)]
    if not verbose:
        return with_rows(answers)
    return with_rows(
        [
            *answers,
            _judges(dependence),
            _families(dependence),
            _tests(dependence),
            _pairs(dependence),
            _models(dependence),
        ]
    )


def write_plots(dependence: Dependence, folder: Path) -> list[Path]:
    """Heat maps of residual correlations and couplings, as SVG and PNG; the paths written.

    Judges that err together stand together; near-copies are framed.
    """
    import numpy as np

    order, frames = _arrange(dependence)
    names = [dependence.panel.judges[k] for k in order]
    grid = np.ix_(order, order)
    diagonal = np.eye(len(names), dtype=bool)
    condition = (
        "the label" if dependence.truth.from_labels else f"{dependence.truth.method}'s estimate"
    )
    correlations = np.where(diagonal, np.nan, dependence.correlations[grid])
    paths = save(
        heat_map(
            correlations,
            names,
            title=f"Shared errors, given {condition}",
            unit="residual correlation",
            frames=frames,
        ),
        folder,
        "residual-correlations",
    )
    if dependence.couplings is not None:
        couplings = np.where(diagonal, np.nan, dependence.couplings[grid])
        figure = heat_map(
            couplings,
            names,
            title=f"Couplings, given {condition}",
            unit="W (log odds ratio)",
            frames=frames,
        )
        paths += save(figure, folder, "couplings")
    return paths


def _arrange(dependence: Dependence) -> tuple[list[int], list[tuple[int, int]]]:
    """Judges with those of a bloc side by side, and where sets of near-copies begin and end."""
    blocs = sorted(dependence.blocs, key=lambda bloc: -len(bloc.judges))
    position = {judge: k for k, judge in enumerate(dependence.panel.judges)}

    def sort_key(judge: str) -> tuple[int, ...]:
        # Order by the first judge of each bloc that holds it, the widest bloc first.
        firsts = [min(map(position.__getitem__, b.judges)) for b in blocs if judge in b.judges]
        return (*firsts, position[judge])

    judges = sorted(position, key=sort_key)
    order = [position[judge] for judge in judges]
    spans = []
    for bloc in dependence.blocs:
        at = sorted(judges.index(judge) for judge in bloc.judges)
        if bloc.near_copies and at[-1] - at[0] == len(at) - 1:
            spans.append((at[0], at[-1] + 1))
    return order, spans


def _worth(dependence: Dependence) -> Table:
    effective = dependence.effective
    rows = [
        [
            "by how their votes average out, K / (1 + (K - 1) r)",
            estimate(effective.by_mean, 2),
        ],
        ["by the directions in which they vary, K² / Σ r²", estimate(effective.by_spectrum, 2)],
        ["by the accuracy of the majority", estimate(effective.by_accuracy, 2)],
        ["mean residual correlation r", estimate(effective.mean_correlation, 3)],
        ["accuracy of a judge, mean", f"{effective.mean_accuracy:.1%}"],
        ["accuracy of the majority", f"{effective.majority_accuracy:.1%}"],
    ]
    notes = [
        "by accuracy: the number of independent judges of the same mean accuracy whose majority "
        "is right as often"
    ]
    if not dependence.truth.from_labels:
        notes.append("accuracies are against the estimated truth, which makes them look higher")
    return Table(
        f"{effective.judges} judges are worth", ["", ""], rows, frozenset({1}), notes, brief=True
    )


def _blocs(dependence: Dependence) -> Table:
    rows = [
        {
            "err together": ", ".join(bloc.judges),
            "within": f"{bloc.within:.2f}",
            "with others": f"{bloc.outside:.2f}",
            "judges": f"{len(bloc.judges)}",
            "worth": f"{bloc.worth:.1f}",
            "": "near-copies" if bloc.near_copies else "",
        }
        for bloc in dependence.blocs
    ]
    notes = [
        "judges whose errors correlate more with each other than with the rest, by more than a "
        "search among equally correlated judges shows one time in twenty; near-copies also have "
        "the same rates and the same correlations with all other judges, and each beyond the "
        "first adds less than a quarter of a judge"
    ]

    return Table.of("Blocs", rows, text=("",), notes=notes)


def _judges(dependence: Dependence) -> Table:
    by_labels = dependence.truth.from_labels
    rows = [
        {
            "judge": judge.judge,
            "family": judge.family,
            "accuracy": number(judge.accuracy, ".1%"),
            "predicted": number(judge.redundancy, ".0%"),
            "bits": estimate(judge.bits, 3),
            "flips": number(judge.flips, ".1%"),
            **(_label_losses(judge) if by_labels else {}),
            "": "no measurable contribution" if judge.is_idle else "",
        }
        for judge in dependence.judges
    ]
    notes = [
        "predicted: share of its votes' uncertainty that the others' votes remove, on held-out "
        "rows; bits: information of its vote about the truth beyond theirs; flips: verdicts that "
        "change without it",
    ]
    if by_labels:
        notes.append(
            "log-loss without: rise of the held-out log-loss of a model of the labels when this "
            "judge is removed; AUC lost: the same for the area under the curve"
        )
    return Table.of("What each judge adds", rows, text=("family", ""), notes=notes)


def _label_losses(judge: JudgeFinding) -> dict[str, str]:
    return {
        "log-loss without": estimate(judge.log_loss, 4, sign="+"),
        "AUC lost": number(judge.auc, "+.4f"),
    }


def _families(dependence: Dependence) -> Table:
    rows = [
        {
            "pairs": row.name,
            "n": row.pairs,
            "residual correlation": estimate(row.correlation, 2),
            "coupling W": estimate(row.coupling, 2),
        }
        for row in dependence.families
    ]

    return Table.of("By family", rows)


def _tests(dependence: Dependence) -> Table:
    rows = [
        {
            "hypothesis": test.says,
            "χ²": number(test.statistic, ".1f"),
            "df": DASH if test.df is None else str(test.df),
            "p": p_cell(test.p),
            "not tested because": test.refusal,
        }
        for test in dependence.tests
    ]
    notes = ["score tests of the restricted fit; a small p is evidence against the hypothesis"]
    return Table.of("Hypotheses", rows, text=("not tested because",), notes=notes)


def _pairs(dependence: Dependence) -> Table:
    pairs = [pair for pair in dependence.pairs if pair.correlation is not None]
    order = sorted(pairs, key=_strength)
    columns = ["", "", "together", "residual correlation", "p (Holm)"]
    if dependence.couplings is not None:
        columns += ["coupling W", "s.e.", "p W=0 (Holm)"]
    notes = ["p: score test of independence given the truth"]
    if dependence.couplings is not None:
        method = (
            "sandwich s.e. of the pseudo-likelihood, p by Wald"
            if dependence.coupling_method == "pseudo-likelihood"
            else "s.e. by Wald, p by likelihood ratio"
        )
        notes.append(
            "W: log odds ratio given the truth and all other judges, interval by the bootstrap,"
            f" {method}"
        )
    rows = [_pair(pair, with_coupling=dependence.couplings is not None) for pair in order]
    return Table("Pairs", columns, rows, frozenset(range(2, len(columns))), notes)


def _strength(pair: PairFinding) -> float:
    return 0.0 if pair.correlation is None else -abs(pair.correlation.estimate)


def _pair(pair: PairFinding, *, with_coupling: bool) -> list[str]:
    cells = [
        pair.first,
        pair.second,
        str(pair.together),
        estimate(pair.correlation, 2),
        p_cell(pair.p_holm),
    ]
    if with_coupling:
        cells += [
            estimate(pair.coupling, 2),
            number(pair.coupling_error, ".2f"),
            p_cell(pair.p_wald_holm if pair.p_ratio_holm is None else pair.p_ratio_holm),
        ]
    return cells


def _models(dependence: Dependence) -> Table:
    best = min((model.bic for model in dependence.models if model.bic is not None), default=0.0)
    rows = [
        {
            "model of the votes": model.name,
            "parameters": DASH if model.bic is None else model.n_params,
            "BIC above best": DASH if model.bic is None else f"{model.bic - best:.0f}",
            "held-out gain": DASH if model.bic is None else estimate(model.gain, 3),
            "": "" if model.bic is not None else model.refusal,
        }
        for model in dependence.models
    ]
    notes = [
        "held-out gain: log-likelihood of a held-out row's votes (and label) over that of"
        " independent judges, in nats",
        "fits use a prior, so BIC is approximate; compare it with the held-out column",
    ]
    return Table.of("Models", rows, text=("",), notes=notes)
