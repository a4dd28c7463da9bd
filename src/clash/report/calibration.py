"""A calibration study on the terminal and as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import pick, to_dict, to_plain
from clash.report.formats import DASH, JSON_DIGITS, percent, points
from clash.report.tables import Table, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.calibration.calibrated_votes import CalibratedVotes
    from clash.analysis.calibration.planning import LabelPlan
    from clash.analysis.calibration.risk import AnsweredShare, RiskByLabels, RiskStep
    from clash.analysis.calibration.study import CalibrationStudy, SplitMeans
    from clash.stats.intervals import Interval
    from clash.stats.resample import RepeatMean
    from clash.stats.selection.ppi import PoweredMean
    from clash.stats.selection.prior import Prior

FIGURES = ("accuracy", "balanced_accuracy", "mse", "nll", "ece", "pearson", "spearman")


def as_json(study: CalibrationStudy) -> dict[str, Any]:
    """The contract of ``clash calibrate --json``."""
    # A map of its own: grouped by what is asked of a study, and without splits and settings.
    record: dict[str, Any] = {
        "n": study.n_labelled,
        "n_rows": study.n_rows,
        "n_sources": study.n_groups,
        "n_train": study.n_train,
        "n_items": study.n_items,
        "n_train_items": study.n_train_items,
        "target": study.frame.target,
        "splits": study.n_splits,
        "candidates": study.n_candidates,
        "selected": {**to_dict(study.selected), "judges": study.judges},
        "combine": study.settings.combine,
        "asked": study.asked_judges,
        "members": study.members,
        "test": {
            **_figures(study.test),
            **_error_json(study.calibration_error),
            "ece_debiased": study.calibration_error.estimate,
            "ece_by_split": study.test["ece"].mean,
            **pick(
                study.reliability,
                ece_pooled="ece",
                ece_chance="chance",
                ece_chance_high="chance_high",
            ),
        },
        "majority": {**_figures(study.majority), **_error_json(study.majority_error)},
        "gain": pick(study.gain, "low", "high", accuracy="estimate"),
        "diagnostics": {name: figure.mean for name, figure in study.diagnostics.items()},
        "oracle": {"mse": study.oracle.mean, "deployable": False},
        "theorem_1_penalty": study.penalty,
        "guarded_splits": study.guarded,
        "chosen": dict(study.chosen),
        "families": {
            line.family: {**pick(line, "kind", "k", "share"), **_figures(line.figures)}
            for line in study.families
        },
        "win_rate": _rate_json(study.win_rate),
        "notes": study.notes,
    }
    return to_plain(record, JSON_DIGITS)  # type: ignore[no-any-return]


def _figures(figures: SplitMeans) -> dict[str, Any]:
    return {
        **{name: figures[name].mean for name in FIGURES},
        "se": {name: figures[name].se for name in FIGURES},
    }


def _error_json(error: Interval) -> dict[str, float]:
    return {"ece": error.estimate, "ece_low": error.low, "ece_high": error.high}


def applied_json(calibrated_votes: CalibratedVotes) -> dict[str, Any]:
    """A calibrator among the methods of ``clash aggregate --json``."""
    rows = calibrated_votes.rows
    record = {
        "status": "ok",
        "converged": True,
        **pick(
            calibrated_votes.test,
            "accuracy",
            "balanced_accuracy",
            "ece",
            log_loss="nll",
            brier="mse",
        ),
        "answered": int(rows.is_answered.sum()),
        "rows": len(rows.is_answered),
        "wrong_among_answered": calibrated_votes.wrong,
        "fallback": rows.fallback,
        "shift": pick(
            rows.shift, "distance", "p", "unseen", "flips", "expected_flips", found="is_shift"
        ),
        "notes": calibrated_votes.warnings,
    }
    return to_plain(record, JSON_DIGITS)  # type: ignore[no-any-return]


def applied_line(calibrated_votes: CalibratedVotes) -> str:
    """Rows answered, errors and fit of a calibrator, in one sentence."""
    answers, test = calibrated_votes.rows.is_answered, calibrated_votes.test
    text = f"calibrated: {int(answers.sum())} of {len(answers)} rows answered"
    if calibrated_votes.wrong is not None:
        text += f", {calibrated_votes.wrong:.1%} of the labelled ones among them wrong"
    if test is not None:
        text += f"; all rows: accuracy {test.accuracy:.1%}, NLL {test.nll:.3f}, ECE {test.ece:.3f}"
    return text


def plan_json(plan: LabelPlan) -> dict[str, Any]:
    """The contract of ``clash calibrate --plan --json``."""
    curve = [
        {**to_dict(step), **pick(step.saved, saved="estimate", saved_low="low", saved_high="high")}
        for step in plan.curve
    ]
    record = {**to_dict(plan), "curve": curve, "win_rate": _rate_json(plan.win_rate)}
    return to_plain(record, JSON_DIGITS)  # type: ignore[no-any-return]


def _rate_json(rate: PoweredMean | None) -> dict[str, Any] | None:
    if rate is None:
        return None
    return {
        **pick(rate.interval, "estimate", "low", "high"),
        "labels_only": [rate.labels_only.low, rate.labels_only.high],
        **pick(rate, "power", judges_only="judges_mean"),
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
            "labels chosen this way are not a random sample: they can fit a calibrator, but "
            "guarantee neither a risk nor a win rate"
            if active
            else "a random sample can fit a calibrator, guarantee a risk and estimate a win rate",
        ],
    )
    curve = Table(
        "Effect of more labels (test squared error, "
        + (
            "labels simulated from the vote shares)" if plan.imagined else "replayed on the labels)"
        ),
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


def headlines(study: CalibrationStudy, risk: RiskByLabels) -> list[str]:
    """How good the calibrated panel is beside the majority, what it can answer, what is deployed."""
    return [_comparison(study), *_promise(risk), f"{in_words(study)}."]


def _comparison(study: CalibrationStudy) -> str:
    start = f"Calibrated with {plural(study.n_train_items, 'label')}, the panel"
    panel, majority = study.test["accuracy"].mean, study.majority["accuracy"].mean
    if math.isnan(panel):  # scores
        errors = study.test["mse"].mean, study.majority["mse"].mean
        return (
            f"{start} has a squared error of {errors[0]:.3f} on other items, the mean of the "
            f"judges {errors[1]:.3f}."
        )
    # The means above are over splits; here an item counts once, however many splits tested it.
    gain = "gain by item" if study.gain.excludes(0.0) else "no significant gain by item"
    return (
        f"{start} is right on {panel:.0%} of other items, the majority on {majority:.0%} "
        f"({gain}: {points(study.gain)} points)."
    )


_USUAL_RISK = 0.1


def _promise(curve: RiskByLabels) -> list[str]:
    """The share of items answered where at most a tenth of the answers may be wrong."""
    for step in curve.steps:
        if step.labels == curve.labels and math.isclose(step.max_risk, _USUAL_RISK):
            answer = f"it can answer {step.on_average:.0%} of the items"
            if step.on_average < _LEAST_SHARE:
                answer = "it can answer almost no item"
            return [f"With at most {_USUAL_RISK:.0%} of its answers wrong on average, {answer}."]
    return []


def tables(study: CalibrationStudy, risk: RiskByLabels, *, verbose: bool = True) -> list[Table]:
    """The choice against majority.

    Args:
        study: of the panel.
        risk: by number of labels.
        verbose: also the risk that labels allow, and family by family.
    """
    details = [_risk(risk), _families(study)] if verbose else []
    return [_headline(study, verbose=verbose), *_win_rate(study.win_rate), *details]


def _risk(curve: RiskByLabels) -> Table:
    """Share of rows answered, by labels and risk."""
    risks = sorted({step.max_risk for step in curve.steps})
    rows = []
    for labels in sorted({step.labels for step in curve.steps}):
        steps = {step.max_risk: step for step in curve.steps if step.labels == labels}
        mark = " (here)" if labels == curve.labels else ""
        rows.append([f"{labels}{mark}", *(_answered_share(steps[max_risk]) for max_risk in risks)])
    requirements = ", ".join(f"{max_risk:.0%}: {curve.fewest[max_risk]}" for max_risk in risks)
    return Table(
        "Share of rows answered, by labels and by the share of them that may be wrong",
        ["labels", *(f"at most {max_risk:.0%} wrong" for max_risk in risks)],
        rows,
        frozenset(range(len(risks) + 1)),
        [
            f"on average / with {curve.level:.0%} confidence: `--max-risk`, and with"
            " `--risk-confidence`, where a calibrator decides (`clash eval --calibrator`,"
            f" `clash aggregate --calibrator`); {DASH} where no promise is possible",
            f"fewest labels for a promise with {curve.level:.0%} confidence, without an error among "
            f"the three tenths that are held out: {requirements}",
            "for this map as it is: more labels also improve the map",
        ],
    )


def _answered_share(step: RiskStep) -> str:
    parts = (step.on_average, step.with_confidence)
    return " / ".join(f"{share:.0%}" if share >= _LEAST_SHARE else DASH for share in parts)


_LEAST_SHARE = 0.005
"""Share answered below which nothing is."""


def risk_json(curve: RiskByLabels) -> dict[str, Any]:
    """The curve, and the fewest labels of each risk."""
    fewest = {f"{max_risk:g}": labels for max_risk, labels in curve.fewest.items()}
    record = {
        **pick(curve, "labels", confidence="level"),
        "fewest_labels": fewest,
        "curve": [to_dict(step) for step in curve.steps],
    }
    return to_plain(record, JSON_DIGITS)  # type: ignore[no-any-return]


def answered_tables(shares: Sequence[AnsweredShare]) -> list[Table]:
    """What a written calibrator answers of these rows, by risk."""
    risks = sorted({share.limit.max_risk for share in shares})
    levels = list(dict.fromkeys(share.limit.level for share in shares))
    by_limit = {(share.limit.max_risk, share.limit.level): share for share in shares}
    rows = [
        [f"{max_risk:.0%}", *(f"{by_limit[max_risk, level].share:.0%}" for level in levels)]
        for max_risk in risks
    ]
    columns = [
        "on average" if level is None else f"with {level:.0%} confidence" for level in levels
    ]
    whys = list(dict.fromkeys(share.why for share in shares if share.why))
    title = "The written calibrator answers of these rows"
    return [Table(title, ["at most wrong", *columns], rows, frozenset(range(3)), whys)]


def answered_json(shares: Sequence[AnsweredShare]) -> list[dict[str, Any]]:
    """A record for each promise."""
    return [
        {
            "max_risk": share.limit.max_risk,
            "confidence": share.limit.level,
            "answered": to_plain(share.share, JSON_DIGITS),
            "why": share.why or None,
        }
        for share in shares
    ]


def in_words(study: CalibrationStudy) -> str:
    """Which maps and judges to use, in one sentence."""
    selection, judges_to_ask = study.selected, study.asked_judges
    judges = f"{len(judges_to_ask)} judges: {', '.join(judges_to_ask)}"
    if len(study.members) == 1:
        return f"Use {selection.family} ({selection.path}) on {judges}"
    by_family: dict[str, float] = {}
    for m in study.members:
        by_family[m.family] = by_family.get(m.family, 0.0) + m.weight
    most = sorted(by_family.items(), key=lambda pair: -pair[1])
    shares = ", ".join(f"{name} {weight:.0%}" for name, weight in most[:_MOST_SHARES])
    return (
        f"Use the weighted mean of {len(study.members)} maps "
        f"({shares}{', …' * (len(most) > _MOST_SHARES)})"
        f" on {judges}"
    )


_MOST_SHARES = 4


def _headline(study: CalibrationStudy, *, verbose: bool) -> Table:
    rows = [
        [
            name,
            *(_mean_and_error(figures[metric]) for metric in FIGURES[:4]),
            _error(error),
        ]
        for name, figures, error in (
            ("selected", study.test, study.calibration_error),
            ("majority", study.majority, study.majority_error),
        )
    ]
    gain = [100 * x for x in (study.gain.estimate, study.gain.low, study.gain.high)]
    d = study.diagnostics
    notes = [
        f"mean ± standard error over {study.n_splits} splits, {_training(study)} to learn from",
        "calibration error: of one map, root mean square, without the part that few rows add;"
        " 95% interval",
        *study.notes,
    ]
    details = [
        f"accuracy against majority: {gain[0]:+.1f} points [{gain[1]:+.1f}, {gain[2]:+.1f}]",
        f"patterns: effective {d['h_k'].mean:.1f}, cell pressure {d['cell_pressure'].mean:.3f},"
        f" unseen {d['unseen'].mean:.1%}, V {d['v'].mean:.3f}",
        f"menu of {study.n_candidates}; its best in hindsight has MSE "
        f"{_mean_and_error(study.oracle)}"
        f" (not deployable); theorem 1 allows {study.penalty:.2f} more than the best",
    ]
    return Table(
        f"{_label_counts(study)}, {len(study.frame.judges)} judges, {study.frame.target} target",
        ["", "accuracy", "balanced", "MSE", "NLL", "calibration error"],
        rows,
        frozenset(range(1, 6)),
        [*notes, *details] if verbose else notes,
        brief=True,
    )


def _label_counts(study: CalibrationStudy) -> str:
    text = f"{study.n_items} labelled items"
    if study.n_labelled != study.n_items:
        text += f" ({study.n_labelled} rows)"
    return text if study.n_groups == study.n_items else f"{text} of {study.n_groups} sources"


def _training(study: CalibrationStudy) -> str:
    """How many labels a split learns from; rows too where items have several."""
    items = f"{study.n_train_items} labelled items"
    return items if study.n_train == study.n_train_items else f"{items} ({study.n_train} rows)"


def _error(error: Interval) -> str:
    if math.isnan(error.estimate):
        return DASH
    return f"{error.estimate:.3f} [{error.low:.3f}, {error.high:.3f}]"


def _families(study: CalibrationStudy) -> Table:
    rows = [
        {
            "family": line.family,
            "K": f"{line.k:.1f}",
            "accuracy": _mean_and_error(line.figures["accuracy"]),
            "MSE": _mean_and_error(line.figures["mse"]),
            "NLL": _mean_and_error(line.figures["nll"]),
            "deployed": f"{line.share:.0%}",
        }
        for line in sorted(study.families, key=lambda line: line.figures["mse"].mean)
    ]
    notes = ["deployed: mean weight in the methods that the splits chose"]
    title = "Families, each with the path and prefix that validation chose"
    return Table.of(title, rows, notes=notes)


def _mean_and_error(figure: RepeatMean) -> str:
    if math.isnan(figure.mean):
        return DASH
    return (
        f"{figure.mean:.3f} ± {figure.se:.3f}" if math.isfinite(figure.se) else f"{figure.mean:.3f}"
    )


def prior_json(prior: Prior) -> dict[str, Any]:
    """Which family was trusted before any label, and how many earlier panels that rests on."""
    weights = {family: to_plain(weight) for family, weight in prior.weights}
    return {**pick(prior, "family", "panels", "labels"), "weights": weights}


def prior_line(prior: Prior) -> str:
    """The prior in one sentence."""
    if not prior.panels:
        return f"prior: {prior.family}, for targets of this kind"
    weights = ", ".join(f"{family} {weight:.0%}" for family, weight in prior.weights[:3])
    return (
        f"prior: {weights}; from {prior.panels} earlier panels with {prior.labels} labelled sources"
        " each"
    )
