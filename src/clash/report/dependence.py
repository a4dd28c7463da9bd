"""A diagnosis of dependence as tables, JSON and heat maps; computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.analysis.plain import record
from clash.report.plots import heat_map, save
from clash.report.tables import NONE, Table

if TYPE_CHECKING:
    from pathlib import Path

    from clash.analysis.dependence import Dependence
    from clash.analysis.dependence.findings import JudgeFinding, PairFinding
    from clash.stats.dependence import ModelScore
    from clash.stats.intervals import Interval

STRONGEST = 10


def as_json(found: Dependence) -> dict[str, Any]:
    """Everything there is, matrices included; what is undefined is null."""
    return record(found)


def headline(found: Dependence) -> str:
    """What was read, in a line."""
    panel, truth = found.panel, found.truth
    rows = f"{panel.rows} rows" + (
        f" in {panel.clusters} groups" if panel.clusters < panel.rows else ""
    )
    stands = "labels" if truth.known else f"estimated by {truth.method}"
    return (
        f"{len(panel.judges)} judges, {rows}, {panel.missing:.1%} of the votes missing; "
        f"truth: {stands} ({truth.reason})"
    )


def tables(found: Dependence, *, whole: bool = False) -> list[Table]:
    """The tables, in the order of interest; ``whole`` for every pair, else the strongest."""
    made = [
        _worth(found),
        _blocs(found),
        _judges(found),
        _families(found),
        _tests(found),
        _pairs(found, whole=whole),
        _models(found),
    ]
    return [table for table in made if table.rows]


def write_plots(found: Dependence, folder: Path) -> list[Path]:
    """Heat maps of residual correlations and couplings, as SVG and PNG; the paths written.

    Judges that err together stand together; near-copies are framed.
    """
    import numpy as np

    order, frames = _arranged(found)
    names = [found.panel.judges[k] for k in order]
    grid = np.ix_(order, order)
    diagonal = np.eye(len(names), dtype=bool)
    given = "the label" if found.truth.known else f"{found.truth.method}'s estimate"
    correlations = np.where(diagonal, np.nan, found.correlations[grid])
    written = save(
        heat_map(
            correlations,
            names,
            title=f"Errors in common, given {given}",
            unit="residual correlation",
            frames=frames,
        ),
        folder,
        "residual-correlations",
    )
    if found.couplings is not None:
        couplings = np.where(diagonal, np.nan, found.couplings[grid])
        figure = heat_map(
            couplings,
            names,
            title=f"Couplings, given {given}",
            unit="W (log odds ratio)",
            frames=frames,
        )
        written += save(figure, folder, "couplings")
    return written


def _arranged(found: Dependence) -> tuple[list[int], list[tuple[int, int]]]:
    """Judges with those of a bloc side by side, and where sets of near-copies begin and end."""
    blocs = sorted(found.blocs, key=lambda bloc: -len(bloc.judges))
    place = {judge: k for k, judge in enumerate(found.panel.judges)}

    def key(judge: str) -> tuple[int, ...]:
        # Beside the first judge of each bloc it is in, the widest bloc first.
        firsts = [min(map(place.__getitem__, b.judges)) for b in blocs if judge in b.judges]
        return (*firsts, place[judge])

    judges = sorted(place, key=key)
    order = [place[judge] for judge in judges]
    spans = []
    for bloc in found.blocs:
        at = sorted(judges.index(judge) for judge in bloc.judges)
        if bloc.near_copies and at[-1] - at[0] == len(at) - 1:
            spans.append((at[0], at[-1] + 1))
    return order, spans


def _worth(found: Dependence) -> Table:
    number = found.effective
    rows = [
        ["by how votes average out, K / (1 + (K - 1) r)", _interval(number.by_mean, 2)],
        ["by directions they vary in, K² / Σ r²", _interval(number.by_spectrum, 2)],
        ["by the accuracy of the majority", _interval(number.by_accuracy, 2)],
        ["mean residual correlation r", _interval(number.mean_correlation, 3)],
        ["accuracy of a judge, mean", f"{number.mean_accuracy:.1%}"],
        ["accuracy of the majority", f"{number.majority_accuracy:.1%}"],
    ]
    notes = [
        "by accuracy: the jury of independent judges, each as good as these are on average, whose"
        " majority is right as often"
    ]
    if not found.truth.known:
        notes.append("accuracies are against the estimated truth, which flatters them")
    return Table(
        f"{number.judges} judges are worth", ["", ""], rows, frozenset({1}), notes, brief=True
    )


def _blocs(found: Dependence) -> Table:
    rows = [
        [
            ", ".join(bloc.judges),
            f"{bloc.within:.2f}",
            f"{bloc.outside:.2f}",
            f"{len(bloc.judges)}",
            f"{bloc.worth:.1f}",
            "near-copies" if bloc.near_copies else "",
        ]
        for bloc in found.blocs
    ]
    notes = [
        "judges whose errors correlate more with each other than with the rest, by more than a search"
        " among equally correlated judges finds one time in twenty; near-copies also have the same"
        " rates and the same correlations with everybody else, and each beyond the first is worth"
        " less than a quarter of a judge"
    ]
    columns = ["err together", "within", "with others", "judges", "worth", ""]
    return Table("Blocs", columns, rows, frozenset({1, 2, 3, 4}), notes)


def _judges(found: Dependence) -> Table:
    rows = [_judge(judge, labelled=found.truth.known) for judge in found.judges]
    columns = ["judge", "family", "accuracy", "foreseen", "bits", "flips"]
    notes = [
        "foreseen: share of its votes' uncertainty that the others' votes remove, on held-out rows;"
        " bits: what its vote tells of the truth beyond theirs; flips: verdicts that change without"
        " it",
    ]
    if found.truth.known:
        columns += ["log-loss without", "AUC lost"]
        notes.append(
            "log-loss without: rise of the held-out log-loss of votes stacked on labels when it is"
            " taken away; AUC lost: the same for the area under the curve"
        )
    numeric = frozenset(range(2, len(columns)))
    return Table("What each judge adds", [*columns, ""], rows, numeric, notes)


def _judge(judge: JudgeFinding, *, labelled: bool) -> list[str]:
    cells = [
        judge.judge,
        judge.family,
        NONE if judge.accuracy is None else f"{judge.accuracy:.1%}",
        NONE if judge.redundancy is None else f"{judge.redundancy:.0%}",
        _interval(judge.bits, 3),
        NONE if judge.flips is None else f"{judge.flips:.1%}",
    ]
    if labelled:
        cells += [_interval(judge.log_loss, 4, sign="+"), _figure(judge.auc, "+.4f")]
    return [*cells, "" if judge.adds else "adds nothing that shows"]


def _families(found: Dependence) -> Table:
    rows = [
        [row.name, str(row.pairs), _interval(row.correlation, 2), _interval(row.coupling, 2)]
        for row in found.families
    ]
    columns = ["pairs", "n", "residual correlation", "coupling W"]
    return Table("By family", columns, rows, frozenset({1, 2, 3}))


def _tests(found: Dependence) -> Table:
    rows = [
        [
            test.says,
            _figure(test.statistic, ".1f"),
            NONE if test.df is None else str(test.df),
            _p(test.p),
            test.refusal,
        ]
        for test in found.tests
    ]
    notes = ["score tests of the restricted fit; a small p speaks against the hypothesis"]
    return Table(
        "Hypotheses",
        ["hypothesis", "χ²", "df", "p", "not tested because"],
        rows,
        frozenset({1, 2, 3}),
        notes,
    )


def _pairs(found: Dependence, *, whole: bool) -> Table:
    known = [pair for pair in found.pairs if pair.correlation is not None]
    order = sorted(known, key=_strength)
    shown = order if whole else order[:STRONGEST]
    columns = ["", "", "together", "residual correlation", "p (Holm)"]
    if found.couplings is not None:
        columns += ["coupling W", "s.e.", "p W=0 (Holm)"]
    notes = ["p: score test of independence given the truth"]
    if found.couplings is not None:
        how = (
            "sandwich s.e. of the pseudo-likelihood, p by Wald"
            if found.coupling_method == "pseudo-likelihood"
            else "s.e. by Wald, p by likelihood ratio"
        )
        notes.append(
            "W: log odds ratio given the truth and all other judges, interval by the bootstrap,"
            f" {how}"
        )
    title = (
        "Pairs" if len(shown) == len(order) else f"The {len(shown)} closest of {len(order)} pairs"
    )
    rows = [_pair(pair, coupled=found.couplings is not None) for pair in shown]
    return Table(title, columns, rows, frozenset(range(2, len(columns))), notes)


def _strength(pair: PairFinding) -> float:
    return 0.0 if pair.correlation is None else -abs(pair.correlation.estimate)


def _pair(pair: PairFinding, *, coupled: bool) -> list[str]:
    cells = [
        pair.first,
        pair.second,
        str(pair.together),
        _interval(pair.correlation, 2),
        _p(pair.p_holm),
    ]
    if coupled:
        cells += [
            _interval(pair.coupling, 2),
            _figure(pair.coupling_error, ".2f"),
            _p(pair.p_wald_holm if pair.p_ratio_holm is None else pair.p_ratio_holm),
        ]
    return cells


def _models(found: Dependence) -> Table:
    fitted = [model.bic for model in found.models if model.bic is not None]
    best = min(fitted, default=0.0)
    rows = [_model(model, best) for model in found.models]
    notes = [
        "held-out gain: log-likelihood of a held-out row's votes (and label) over that of"
        " independent judges, in nats",
        "fits carry a prior, so that BIC is approximate; read it beside the held-out column",
    ]
    columns = ["model of the votes", "parameters", "BIC above best", "held-out gain", ""]
    return Table("Models", columns, rows, frozenset({1, 2, 3}), notes)


def _model(model: ModelScore, best: float) -> list[str]:
    if model.bic is None:
        return [model.name, NONE, NONE, NONE, model.refusal]
    return [
        model.name,
        str(model.n_params),
        f"{model.bic - best:.0f}",
        _interval(model.gain, 3),
        "",
    ]


def _interval(interval: Interval | None, digits: int, sign: str = "") -> str:
    if interval is None:
        return NONE
    form = f"{sign}.{digits}f"
    ends = interval.estimate, interval.low, interval.high
    # Adding 0.0 takes the sign off what is printed as zero.
    middle, low, high = (f"{round(end, digits) + 0.0:{form}}" for end in ends)
    return f"{middle} [{low}, {high}]"


def _figure(value: float | None, form: str) -> str:
    return NONE if value is None else f"{value:{form}}"


def _p(value: float | None) -> str:
    if value is None:
        return NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}"
