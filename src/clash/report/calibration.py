"""A calibration study on the terminal and as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import to_plain
from clash.report.formats import DASH, percent, round_figure
from clash.report.tables import Table, with_rows

if TYPE_CHECKING:
    from clash.analysis.calibration.calibrated_votes import CalibratedVotes
    from clash.analysis.calibration.planning import LabelPlan
    from clash.analysis.calibration.study import CalibrationStudy, SplitMean, SplitMeans
    from clash.stats.selection.metrics import Reliability
    from clash.stats.selection.ppi import PoweredMean
    from clash.stats.selection.prior import Prior

FIGURES = ("accuracy", "balanced_accuracy", "mse", "nll", "ece", "pearson", "spearman")


def as_json(study: CalibrationStudy) -> dict[str, Any]:
    """The contract of ``clash calibrate --json``."""
    return {
        "n": study.n_labelled,
        "n_rows": study.n_rows,
        "n_sources": study.n_groups,
        "n_train": study.n_train,
        "target": study.frame.target,
        "splits": study.n_splits,
        "candidates": study.n_candidates,
        "selected": {
            "path": study.selected.path,
            "k": study.selected.k,
            "family": study.selected.family,
            "judges": list(study.judges),
        },
        "combine": study.settings.combine,
        "asked": list(study.asked_judges),
        "members": [
            {"family": m.family, "judges": list(m.judges), "weight": round_figure(m.weight)}
            for m in study.members
        ],
        "test": {
            **_figures(study.test),
            "ece_by_split": round_figure(study.test["ece_by_split"].mean),
            "ece_chance": round_figure(study.reliability.chance),
            "ece_chance_high": round_figure(study.reliability.chance_high),
            "ece_debiased": round_figure(study.reliability.root_mean_gap),
        },
        "majority": _figures(study.majority),
        "gain": {
            "accuracy": round_figure(study.gain.estimate),
            "low": round_figure(study.gain.low),
            "high": round_figure(study.gain.high),
        },
        "diagnostics": {name: round_figure(f.mean) for name, f in study.diagnostics.items()},
        "oracle": {"mse": round_figure(study.oracle.mean), "deployable": False},
        "theorem_1_penalty": round_figure(study.penalty),
        "guarded_splits": study.guarded,
        "chosen": dict(study.chosen),
        "families": {
            line.family: {
                "kind": line.kind,
                "k": round_figure(line.k),
                "share": round_figure(line.share),
                **_figures(line.figures),
            }
            for line in study.families
        },
        "win_rate": _rate_json(study.win_rate),
        "notes": list(study.notes),
    }


def _figures(figures: SplitMeans) -> dict[str, Any]:
    return {
        **{name: round_figure(figures[name].mean) for name in FIGURES},
        "se": {name: round_figure(figures[name].se) for name in FIGURES},
    }


def applied_json(calibrated_votes: CalibratedVotes) -> dict[str, Any]:
    """A calibrator among the methods of ``clash aggregate --json``."""
    test, shift = calibrated_votes.test, calibrated_votes.rows.shift
    names = {"log_loss": "nll", "brier": "mse"}
    figures = ("accuracy", "balanced_accuracy", "log_loss", "brier", "ece")
    return {
        "status": "ok",
        "converged": True,
        **{
            name: None if test is None else round_figure(getattr(test, names.get(name, name)))
            for name in figures
        },
        "answered": int(calibrated_votes.rows.answered.sum()),
        "rows": len(calibrated_votes.rows.answered),
        "wrong_among_answered": None
        if calibrated_votes.wrong is None
        else round_figure(calibrated_votes.wrong),
        "fallback": calibrated_votes.rows.fallback,
        "shift": {
            "found": shift.is_shift,
            "distance": round_figure(shift.distance),
            "p": round_figure(shift.p),
            "unseen": round_figure(shift.unseen),
            "flips": round_figure(shift.flips),
            "expected_flips": round_figure(shift.expected_flips),
        },
        "notes": list(calibrated_votes.warnings),
    }


def applied_line(calibrated_votes: CalibratedVotes) -> str:
    """Rows answered, errors and fit of a calibrator, in one sentence."""
    answers, test = calibrated_votes.rows.answered, calibrated_votes.test
    text = f"calibrated: {int(answers.sum())} of {len(answers)} rows answered"
    if calibrated_votes.wrong is not None:
        text += f", {calibrated_votes.wrong:.1%} of the labelled ones among them wrong"
    if test is not None:
        text += f"; all rows: accuracy {test.accuracy:.1%}, NLL {test.nll:.3f}, ECE {test.ece:.3f}"
    return text


def plan_json(plan: LabelPlan) -> dict[str, Any]:
    """The contract of ``clash calibrate --plan --json``."""
    return {
        "items": list(plan.items),
        "way": plan.way,
        "why": plan.why,
        "imagined": plan.imagined,
        "labelled": plan.labelled,
        "curve": [
            {
                "labels": step.labels,
                "mse_active": round_figure(step.active),
                "mse_random": round_figure(step.random),
                "saved": round_figure(step.saved.estimate),
                "saved_low": round_figure(step.saved.low),
                "saved_high": round_figure(step.saved.high),
            }
            for step in plan.curve
        ],
        "win_rate": _rate_json(plan.win_rate),
    }


def _rate_json(rate: PoweredMean | None) -> dict[str, Any] | None:
    if rate is None:
        return None
    return {
        "estimate": round_figure(rate.interval.estimate),
        "low": round_figure(rate.interval.low),
        "high": round_figure(rate.interval.high),
        "labels_only": [round_figure(rate.labels_only.low), round_figure(rate.labels_only.high)],
        "judges_only": round_figure(rate.judges_mean),
        "power": round_figure(rate.power),
    }


def plan_tables(plan: LabelPlan) -> list[Table]:
    """The items to label next, the error that more labels save, and the win rate."""
    active = plan.way == "active"
    items = Table(
        f"Label these {len(plan.items)} next",
        ["", "item"],
        [[str(rank), item] for rank, item in enumerate(plan.items, start=1)],
        frozenset({0}),
        [
            f"{'chosen, the most useful first' if active else 'drawn at random'}: {plan.why}",
            "labels chosen so are no random sample: they fit a map, but promise no risk and no"
            " win rate"
            if active
            else "a random sample fits a map, promises a risk and gives a win rate",
        ],
    )
    curve = Table(
        "What labels buy (test squared error, "
        + ("labels drawn from the vote shares)" if plan.imagined else "replayed on the labels)"),
        ["labels", "active", "random", "saved by active"],
        [
            [
                str(step.labels),
                f"{step.active:.4f}",
                f"{step.random:.4f}",
                f"{step.saved.estimate:+.4f} [{step.saved.low:+.4f}, {step.saved.high:+.4f}]",
            ]
            for step in plan.curve
        ],
        frozenset(range(4)),
    )
    return with_rows([items, curve, *_win_rate(plan.win_rate)])


def _win_rate(rate: PoweredMean | None) -> list[Table]:
    if rate is None:
        return []
    rows = [
        ["labels and judges (PPI++)", percent(rate.interval, digits=1)],
        ["labels alone", percent(rate.labels_only, digits=1)],
        ["judges alone, uncorrected", f"{rate.judges_mean:.1%}"],
    ]
    notes = ["valid where the labelled rows are a random sample of all"]
    return [Table("Win rate of side A", ["from", "rate"], rows, frozenset({1}), notes)]


def tables(study: CalibrationStudy) -> list[Table]:
    """The choice against majority, then family by family."""
    return [_headline(study), *_win_rate(study.win_rate), _families(study)]


def in_words(study: CalibrationStudy) -> str:
    """Which maps and judges to use, in one sentence."""
    selection, judges_to_ask = study.selected, study.asked_judges
    judges = f"{len(judges_to_ask)} judges: {', '.join(judges_to_ask)}"
    if len(study.members) == 1:
        return f"use {selection.family} ({selection.path}) on {judges}"
    by_family: dict[str, float] = {}
    for m in study.members:
        by_family[m.family] = by_family.get(m.family, 0.0) + m.weight
    most = sorted(by_family.items(), key=lambda pair: -pair[1])
    shares = ", ".join(f"{name} {weight:.0%}" for name, weight in most[:_MOST_SHARES])
    return (
        f"use the weighted mean of {len(study.members)} maps ({shares}{', …' * (len(most) > _MOST_SHARES)})"
        f" on {judges}"
    )


_MOST_SHARES = 4


def _headline(study: CalibrationStudy) -> Table:
    rows = [
        ["selected", *(_mean_and_error(study.test[name]) for name in FIGURES[:5])],
        ["majority", *(_mean_and_error(study.majority[name]) for name in FIGURES[:5])],
    ]
    gain = [100 * x for x in (study.gain.estimate, study.gain.low, study.gain.high)]
    d = study.diagnostics
    notes = [
        f"mean ± standard error over {study.n_splits} splits, {study.n_train} labelled rows to"
        " learn from; ECE of all test blocks together, " + _by_chance(study.reliability),
        f"accuracy against majority: {gain[0]:+.1f} points [{gain[1]:+.1f}, {gain[2]:+.1f}]",
        f"patterns: effective {d['h_k'].mean:.1f}, cell pressure {d['cell_pressure'].mean:.3f},"
        f" unseen {d['unseen'].mean:.1%}, V {d['v'].mean:.3f}",
        f"menu of {study.n_candidates}; its best in hindsight has MSE {_mean_and_error(study.oracle)}"
        f" (not deployable); theorem 1 allows {study.penalty:.2f} more than the best",
    ]
    return Table(
        f"{study.n_labelled} labelled rows of {study.n_groups} sources,"
        f" {len(study.frame.judges)} judges, {study.frame.target} target",
        ["", "accuracy", "balanced", "MSE", "NLL", "ECE"],
        rows,
        frozenset(range(1, 6)),
        notes,
        brief=True,
    )


def _by_chance(reliability: Reliability) -> str:
    text = f"where a perfect map would show {reliability.chance:.3f} (95% below {reliability.chance_high:.3f})"
    # Without two sources in a bin there is no variance to subtract.
    return (
        text
        if math.isnan(reliability.root_mean_gap)
        else f"{text}; without bias {reliability.root_mean_gap:.3f}"
    )


def _families(study: CalibrationStudy) -> Table:
    rows = [
        [
            line.family,
            f"{line.k:.1f}",
            *(_mean_and_error(line.figures[name]) for name in ("accuracy", "mse", "nll")),
            f"{line.share:.0%}",
        ]
        for line in sorted(study.families, key=lambda line: line.figures["mse"].mean)
    ]
    return Table(
        "Families, each with its own best path and prefix by validation",
        ["family", "K", "accuracy", "MSE", "NLL", "deployed"],
        rows,
        frozenset(range(1, 6)),
        ["deployed: mean weight in what the splits deployed"],
    )


def _mean_and_error(figure: SplitMean) -> str:
    if math.isnan(figure.mean):
        return DASH
    return (
        f"{figure.mean:.3f} ± {figure.se:.3f}" if math.isfinite(figure.se) else f"{figure.mean:.3f}"
    )


def prior_json(prior: Prior) -> dict[str, Any]:
    """Which family was trusted before any label, and how many earlier panels that rests on."""
    return {
        "family": prior.family,
        "panels": prior.panels,
        "labels": prior.labels,
        "weights": {family: to_plain(weight) for family, weight in prior.weights},
    }


def prior_line(prior: Prior) -> str:
    """The prior in one sentence."""
    if not prior.panels:
        return f"prior: {prior.family}, for targets of this kind"
    weights = ", ".join(f"{family} {weight:.0%}" for family, weight in prior.weights[:3])
    return (
        f"prior: {weights}; from {prior.panels} earlier panels with {prior.labels} labelled sources"
        " each"
    )
