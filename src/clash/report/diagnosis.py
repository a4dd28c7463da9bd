"""A diagnosis of judges as tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.report import psychometric_curves
from clash.report.formats import DASH, estimate, first_names, money, number, percent, points
from clash.report.tables import Table, with_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.diagnosis import Diagnosis
    from clash.analysis.diagnosis.judge_quality import Agreement, JudgeFacts
    from clash.analysis.diagnosis.panel_quality import ThresholdStanding
    from clash.analysis.diagnosis.recommendations import Recommendation
    from clash.analysis.diagnosis.run_judges import ScoreScale
    from clash.stats.bias import BiasRate
    from clash.stats.effectiveness import Removal
    from clash.stats.retest.repeats import FlipRate


_ACTIONS = ("replace", "down-weight", "keep")
_MOST_NAMES = 8


def headlines(diagnosis: Diagnosis) -> list[str]:
    """How good the panel is, what to do with each judge, then what to beware of."""
    answer, *remarks = diagnosis.summary
    return [answer, *_advice(diagnosis), *remarks]


def _advice(diagnosis: Diagnosis) -> list[str]:
    """Such as: Replace a, b. Keep c. Judges of whom nothing is known are left out."""
    sentences = []
    recommendations = [r for r in diagnosis.recommendations if r.sure and _is_measured(r)]
    for action in _ACTIONS:
        names = [r.judge for r in recommendations if r.action == action]
        if names:
            sentences.append(f"{action.capitalize()} {first_names(names, _MOST_NAMES)}.")
    return [" ".join(sentences)] if sentences else []


def _is_measured(recommendation: Recommendation) -> bool:
    """Whether something is known of how good the judge is."""
    return all(reason.code != "alone" for reason in recommendation.reasons)


def tables(diagnosis: Diagnosis, *, verbose: bool = True) -> list[Table]:
    """The recommendations first, then, with ``verbose``, the figures behind them."""
    answers = [
        psychometric_curves.curves_table(diagnosis),
        psychometric_curves.hits_table(diagnosis),
        _recommendations(diagnosis, verbose=verbose),
    ]
    if not verbose:
        return with_rows(answers)
    return with_rows(
        [
            *answers,
            _judges(diagnosis),
            _agreements(diagnosis),
            _orders(diagnosis),
            _lengths(diagnosis),
            _panel(diagnosis),
            _thresholds(diagnosis),
            _diversity(diagnosis),
            _run_judges(diagnosis),
            _effects(diagnosis),
        ]
    )


def _recommendations(diagnosis: Diagnosis, *, verbose: bool) -> Table:
    # Where no judge has enough ballots, the recommendations say so.
    sure = [r for r in diagnosis.recommendations if r.sure] or list(diagnosis.recommendations)
    rows = [
        {
            "judge": r.judge,
            "do": r.action,
            "weight": _weight(r),
            **({"saves": _saving(r)} if verbose else {}),
            "because": _reason(r, verbose=verbose),
        }
        for r in sorted(sure, key=lambda r: (_ACTIONS.index(r.action), r.judge))
    ]
    few = len(diagnosis.recommendations) - len(sure)
    weight = (
        "weight: what its decisive votes should count beside the best judge's (log-odds of being "
        "right), with its interval"
    )
    saves = (
        "; saves: runs in each of two conditions for a 10-point difference (80% power), if a judge "
        "that decides 40% or more and errs like the median judge replaced it"
    )
    notes = [weight + saves * verbose, *diagnosis.notes]
    if few:
        notes.append(f"{few} judge(s) have too few ballots to assess; --json has them all")

    return Table.of("What to do", rows, text=("do", "saves", "because"), notes=notes, brief=True)


def _weight(recommendation: Recommendation) -> str:
    interval = recommendation.weight_interval
    return DASH if interval is None else estimate(interval, 2)


def _saving(recommendation: Recommendation) -> str:
    if recommendation.saving is None or recommendation.saving.after is None:
        return DASH
    if recommendation.saving.now is None or recommendation.saving.saves is None:
        return f"{recommendation.saving.after} instead of an unlimited number"
    return f"{recommendation.saving.saves} of {recommendation.saving.now}"


def _reason(recommendation: Recommendation, *, verbose: bool) -> str:
    """The reasons for the action; every reason where none names it.

    Without ``verbose`` a judge that is kept is not praised for how many ballots it decides.
    """
    speaking = [
        reason.text for reason in recommendation.reasons if reason.action == recommendation.action
    ]
    aside = [reason.text for reason in recommendation.reasons if reason.code == "side"]
    texts = speaking or [reason.text for reason in recommendation.reasons]
    if recommendation.action == "keep" and not verbose:
        texts = texts[-1:]
    return "; ".join(dict.fromkeys([*texts, *aside]))


def _judges(diagnosis: Diagnosis) -> Table:
    rows = [
        {
            "judge": judge.judge,
            "ballots": judge.ballots,
            "failed": judge.failed,
            "ties": f"{judge.ties.estimate:.1%}" if judge.ballots else DASH,
            "decides": percent(judge.discrimination, digits=1),
            "informative a prompt": f"{judge.informative:.2f}",
        }
        for judge in _judges_with_enough_ballots(diagnosis)
    ]

    notes = [
        "decides: the discrimination rate, ballots that are not ties; informative a prompt: such "
        "ballots for each prompt (or group, or run of a study) that it saw",
    ]
    return Table.of("Judges", rows, notes=notes, brief=True)


def _agreements(diagnosis: Diagnosis) -> Table:
    edges = {edge.judge: edge for edge in diagnosis.edges.judges}
    judges = _judges_with_enough_ballots(diagnosis)
    by_label = any(judge.label for judge in judges)
    rows = []
    for judge in judges:
        edge = edges[judge.judge]
        if edge.accuracy is None and judge.rest is None:
            continue
        source = DASH if edge.accuracy is None else edge.source or DASH
        cells = [judge.judge, percent(edge.accuracy), source, *_agreement(judge.rest)]
        rows.append([*cells, *(_agreement(judge.label) if by_label else [])])
    columns = ["judge", "right", "by", "with the rest", "kappa"]
    columns += ["with labels", "kappa"] if by_label else []
    notes = [
        "right: share of its decisive ballots, by labels where 30 of them have one, else estimated"
        " from agreement, which assumes independent errors",
        "on ballots where both decide; the rest: the majority of judges of other families. Low"
        " agreement is an alarm about the panel, no verdict on a judge: independent judges that"
        " are right on 70% agree with kappa 0.16",
    ]
    right = frozenset(range(1, len(columns))) - {2}
    return Table("Judges: how often right, and agreement", columns, rows, right, notes, brief=True)


def _agreement(agreement: Agreement | None) -> list[str]:
    if agreement is None:
        return [DASH, DASH]
    return [f"{percent(agreement.share)} of {agreement.n}", estimate(agreement.kappa, 2)]


def _orders(diagnosis: Diagnosis) -> Table:
    facts = _judges_with_enough_ballots(diagnosis)
    consistent = any(judge.consistency for judge in facts)
    flips = any(judge.slots.flips for judge in facts)
    rows = [
        {
            "judge": judge.judge,
            "first shown wins": _bias(judge.slots.first),
            "pull": points(judge.slots.pull, digits=0),
            **({"flips": _flips(judge.slots.flips)} if flips else {}),
            **({"repeats itself": percent(judge.consistency)} if consistent else {}),
        }
        for judge in facts
        if judge.slots.first is not None or judge.consistency is not None
    ]
    notes = [
        "pull: wins of the first response beyond those of the labels (or of the other judges) on "
        "the same ballots, in points",
    ]
    return Table.of("Judges: order and repetition", rows, notes=notes, brief=True)


def _bias(rate: BiasRate | None) -> str:
    return DASH if rate is None else percent(rate.interval)


def _flips(rate: FlipRate | None) -> str:
    return DASH if rate is None else percent(rate.rate)


def _judges_with_enough_ballots(diagnosis: Diagnosis) -> list[JudgeFacts]:
    """Judges with enough ballots; all of them where none has."""
    sure = {r.judge for r in diagnosis.recommendations if r.sure}
    return [judge for judge in diagnosis.judges if judge.judge in sure or not sure]


def _lengths(diagnosis: Diagnosis) -> Table:
    judges = {judge.judge for judge in _judges_with_enough_ballots(diagnosis)}
    rows = [
        {
            "judge": line.judge,
            "longer wins": f"{percent(line.longer.interval)} of {line.longer.interval.n:g}",
            "pull": points(line.pull, digits=0),
            "against": line.pull_by,
        }
        for line in diagnosis.lengths
        if line.judge in judges
    ]
    notes = [
        "of decisive ballots on responses of different length, in words; pull: wins of the "
        "longer response beyond those of the reference on the same ballots, in points"
    ]

    return Table.of("Judges: length", rows, text=("against",), notes=notes, brief=True)


def _panel(diagnosis: Diagnosis) -> Table:
    panel = diagnosis.panel
    heavy = "no end" if math.isinf(panel.attenuation) else f"{panel.attenuation:.2f} times"
    rows = [
        ["items, judges, ballots", f"{panel.items}, {panel.judges}, {panel.ballots}"],
        ["ties", percent(panel.ties, digits=1)],
        ["discrimination", percent(panel.discrimination, digits=1)],
        ["effects look smaller with ties as half wins", f"by {heavy}"],
        ["side A wins, ties half", percent(panel.half, digits=1)],
        ["side A wins, corrected (decisive ballots)", percent(panel.corrected, digits=1)],
        ["Krippendorff's alpha, all ballots", estimate(panel.alpha, 2)],
        ["Krippendorff's alpha, decisive ballots", estimate(panel.alpha_decisive, 2)],
        [
            "effective number of judges"
            + (f", of {panel.effective_of}" if panel.effective_of else ""),
            f"{estimate(panel.effective, 2)} ({panel.effective_by})",
        ],
        ["ICC of decisive ballots of an item", estimate(diagnosis.icc, 2)],
    ]
    return Table("Panel", ["", ""], rows, brief=True)


def _thresholds(diagnosis: Diagnosis) -> Table:
    limits = diagnosis.thresholds
    sure = {judge.judge for judge in _judges_with_enough_ballots(diagnosis)}
    simulation = any(judge.removals for judge in limits.judges)
    rows = [
        {
            "judge": judge.judge,
            "decides": f"{judge.discrimination:.1%}",
            "edge": estimate(judge.edge, 2),
            "signal": f"{judge.signal:.2f}",
            "break-even": f"{judge.break_even:.2f}",
            "margin": estimate(judge.margin, 2, sign="+"),
            "with one vote it": _contribution(judge),
            **(_removals(judge.removals) if simulation else {}),
        }
        for judge in limits.judges
        if judge.judge in sure
    ]
    notes = [
        "edge: rates of being right on either side, less 1; 0 tosses a coin, -1 inverts the truth",
        "signal: decides times edge; break-even: S (sqrt(J/(J-1)) - 1), where S is the sum of the"
        " others' signals: from there on a judge with one vote adds power where ties are half"
        " wins, whatever the number of candidates; margin: signal less break-even",
    ]
    if any(judge.edge is None for judge in limits.judges):
        notes.append("a judge whose edge is not known is taken to be as good as the others' mean")
    if simulation:
        notes.append(
            "without it: simulated change of power when the judge is removed, in points, each judge"
            " with its own edge"
        )
    return Table.of("What each judge contributes", rows, text=("with one vote it",), notes=notes)


def _contribution(judge: ThresholdStanding) -> str:
    if judge.takes_away:
        return "takes away"
    if judge.margin is None:
        return "is not known"
    return "adds" if judge.margin.low > 0 else "may add or take away"


def _removals(removals: Sequence[Removal]) -> dict[str, str]:
    changes = {removal.analysis: points(removal.change, digits=0) for removal in removals}
    return {
        "without it, ties half": changes.get("half", DASH),
        "without it, ties modelled": changes.get("davidson", DASH),
    }


_READING = {
    "equivalence": "judges decide where responses differ: ties are mostly equivalence",
    "mixed": "responses explain part of the ties",
    "failure": "ties do not depend on the responses: they show the judges, not equivalence",
}


def _diversity(diagnosis: Diagnosis) -> Table | None:
    equivalence = diagnosis.equivalence
    if equivalence is None:
        return None
    explained_share = number(equivalence.explained, ".2f")
    rows = [
        ["items with texts", str(equivalence.items)],
        ["R² of discrimination on diversity (adjusted)", estimate(equivalence.r2, 2)],
        [
            "the highest possible value with so few ballots an item",
            number(equivalence.ceiling, ".2f"),
        ],
        [
            "share of the highest possible value",
            f"{explained_share}: {_READING[equivalence.reading]}",
        ],
        ["by the published bands on R² (0.2, 0.4)", equivalence.published],
    ]
    rows += [
        [f"odds of deciding, {slope.feature} one sd up (mean {mean:.2f})", estimate(slope.odds, 2)]
        for slope, mean in zip(equivalence.slopes, equivalence.means, strict=True)
    ]
    if equivalence.shares is not None:
        rows += [
            ["ties: equivalence", percent(equivalence.shares.equivalence)],
            ["ties: conservatism", percent(equivalence.shares.conservatism)],
            ["ties: unguided", percent(equivalence.shares.unguided)],
        ]
    notes = [
        f"semantic similarity: {equivalence.semantic} ({equivalence.semantic_version})",
        *equivalence.notes,
    ]
    return Table("Judge failure or genuine equivalence", ["", ""], rows, notes=notes)


def _run_judges(diagnosis: Diagnosis) -> Table | None:
    if diagnosis.run is None:
        return None
    rows = [
        {
            "judge": judge.judge,
            "cost": money(judge.cost_usd),
            "a decided pair": money(judge.cost_per_informative),
            "longer wins": _bias(judge.longer),
            **_scale(judge.scale),
        }
        for judge in diagnosis.run.judges
    ]
    notes = [
        "two neighbours: share of its two most common neighbouring scores; at 80% or more "
        "it does not use a scale"
    ]
    return Table.of("Judges: cost, length, scale", rows, notes=notes)


def _scale(scale: ScoreScale | None) -> dict[str, str]:
    names = ("scores 1-5", "mean", "sd", "two neighbours", "against the others")
    if scale is None:
        return dict.fromkeys(names, DASH)
    spread = f"{scale.two:.0%}{' restricted' if scale.restricted else ''}"
    counts = " ".join(str(count) for count in scale.counts)
    cells = [counts, f"{scale.mean:.2f}", f"{scale.sd:.2f}", spread, estimate(scale.anchor, 2)]
    return dict(zip(names, cells, strict=True))


def _effects(diagnosis: Diagnosis) -> Table | None:
    if diagnosis.run is None:
        return None
    rows = [
        {
            "candidate": e.candidate,
            "ties half": estimate(e.half, 2),
            "ties modelled": estimate(e.corrected, 2),
            "ties half, by discrimination": estimate(e.weighted, 2),
        }
        for e in sorted(diagnosis.run.effects, key=lambda e: -e.corrected.estimate)
    ]

    notes = [
        "log strengths against the mean (Bradley-Terry, Davidson); by discrimination: each judge's"
        " ballots count by how often it decides"
    ]
    return Table.of("Effects and their attenuation", rows, notes=notes)
