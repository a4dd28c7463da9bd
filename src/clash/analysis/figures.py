"""Headline numbers under flat names, which gates test and published figures are compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from clash.stats.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.analysis.concordance import Concordance
    from clash.analysis.concordance.biases import SelfRate
    from clash.analysis.concordance.cases import CaseRate
    from clash.analysis.rundata import RunData

    NamedFigures = Iterator[tuple[str, "Interval | Figure | float | None"]]


FIXED_NAMES = frozenset(
    [
        "agreement.lowest",
        "alpha",
        "concordance",
        "concordance.judged",
        "concordance.wilson",
        "confidence",
        "contrast.chi_square",
        "contrast.chi_square.corrected",
        "contrast.chi_square.p",
        "contrast.fisher.p",
        "contrast.odds_ratio",
        "cost",
        "cost.correct",
        "cost.evaluation",
        "cost.item",
        "cost.labelled_run",
        "coverage",
        "decided",
        "disagreements",
        "first_shown",
        "items",
        "judgments.failed",
        "judgments.repaired",
        "judgments.usable",
        "people",
        "seconds",
        "seconds.item",
        "pass_rate",
        "people_pass_rate",
        "people_score",
        "score",
        "score.error",
        "texts",
        "tied",
        "unanimity",
    ]
)
"""Figures that a run may have, whatever its candidates and judges are called."""
FAMILIES = (
    *("agreement.", "ahead.", "concordance.wilson.", "direction.", "family.", "first_wins."),
    *(
        "flips.",
        "kappa",
        "labelled.",
        "longer_wins.",
        "method.",
        "missed.",
        "pass_rate.",
        "people_lead.",
        "people_pass_rate.",
        "people_score.",
        "people_share.",
        "people_win_rate.",
        "points.",
        "score.",
        "self.",
        "share.",
    ),
    *(
        "split.",
        "tag.",
        "tier.",
        "unanimous.",
        "unique.",
        "win_rate.",
        "win_rate_ties_half.",
        "winner.",
    ),
)
"""Beginnings of figures whose names go on with that of a candidate, a judge or a group."""


def is_figure_name(name: str) -> bool:
    """Whether some run has a figure of this name; a given run need not have it."""
    return name in FIXED_NAMES or name.startswith(FAMILIES)


@dataclass(frozen=True)
class Figure:
    """A number, and its interval where it is an estimate."""

    value: float
    low: float | None = None
    high: float | None = None

    def over(self, n: float) -> Figure:
        """The figure for each of ``n``."""
        low, high = (None if bound is None else bound / n for bound in (self.low, self.high))
        return Figure(self.value / n, low, high)

    @classmethod
    def of(cls, figure: Interval | Figure | float) -> Figure:
        """An estimate with its interval, or a number."""
        if isinstance(figure, Figure):
            return figure
        if isinstance(figure, Interval):
            return cls(figure.estimate, figure.low, figure.high)
        return cls(figure)


@dataclass(frozen=True)
class Claim:
    """A published figure beside ours.

    Attributes:
        table: where it is published.
        says: what it is of.
        own_value: null where the runs at hand cannot tell.
        is_same: our value, rounded as the published one is, equals it.
        why: the reason for a difference, or how the figure comes about.
    """

    json_keys: ClassVar[Mapping[str, str]] = {
        "published_value": "published",
        "own_value": "ours",
        "is_same": "same",
    }

    table: str
    says: str
    figure: str
    published_value: float
    own_value: float | None
    is_same: bool
    digits: int
    why: str


def published_entries(runs: Sequence[RunData], report: str) -> list[dict[str, Any]]:
    """What the catalogue holds of a report over exactly these runs, in this order."""
    names = [run.manifest.run for run in runs]
    figures = [figure for run in runs for figure in run.manifest.dataset.get("figures", [])]
    return [e for e in figures if e["report"] == report and e["runs"] == names]


def claims(
    published_figures: Sequence[Mapping[str, object]], figures: Mapping[str, Figure]
) -> list[Claim]:
    """Published figures beside those of a report."""
    comparisons = []
    for published_figure in published_figures:
        name, digits = str(published_figure["figure"]), int(str(published_figure.get("digits", 0)))
        published_value = float(str(published_figure["value"]))
        own_value = _value(name, figures)
        is_same = own_value is not None and math.isclose(
            round_half_up(own_value, digits), published_value, abs_tol=1e-9
        )
        comparisons.append(
            Claim(
                str(published_figure["table"]),
                str(published_figure["says"]),
                name,
                published_value,
                own_value,
                is_same,
                digits,
                str(published_figure.get("why", "")),
            )
        )
    return comparisons


def _value(name: str, figures: Mapping[str, Figure]) -> float | None:
    """A figure, or with ``.low`` or ``.high`` after its name an end of its interval; null for none."""
    if name in figures:
        return figures[name].value
    base, _, end = name.rpartition(".")
    if base not in figures or end not in ("low", "high"):
        return None
    return figures[base].low if end == "low" else figures[base].high


def round_half_up(value: float, digits: int) -> float:
    """Rounded as in print: halves away from zero, not to even."""
    scale = 10**digits
    return math.copysign(math.floor(abs(value) * scale + 0.5 + 1e-9) / scale, value)


def by_name(figures: NamedFigures) -> dict[str, Figure]:
    """Intervals and numbers as figures; what is null or no finite number is left out."""
    pairs = ((name, Figure.of(figure)) for name, figure in figures if figure is not None)
    return {name: figure for name, figure in pairs if math.isfinite(figure.value)}


def concordance_figures(concordance: Concordance) -> NamedFigures:
    """The numbers of a labelled run beside people's, by name."""
    head = concordance.headline
    yield "concordance", head.rate.interval
    yield "concordance.judged", head.rate.of_judged
    yield "concordance.wilson", head.rate.wilson
    yield from _bounds("concordance.wilson", head.rate.wilson)
    yield from _count("labelled", head.rate)
    if concordance.unique is not None:
        yield from _count("unique", concordance.unique)
    for kappa in concordance.kappas:
        yield kappa.key, kappa.interval
        yield from _bounds(kappa.key, kappa.interval)
    for line in concordance.methods:
        if line.rate is not None and line.kind != "panel":
            yield f"method.{line.name}", line.rate.interval
            yield f"method.{line.name}.judged", line.rate.of_judged
        if line.kind == "judge":
            yield f"ahead.{line.name}", line.against
    if concordance.people is not None:
        yield "people", concordance.people.agreement
        yield "alpha", concordance.people.alpha
    for kind, rows in (
        ("winner", concordance.by_winner),
        ("tier", concordance.by_tier),
        ("tag", concordance.by_tag),
    ):
        for row in rows:
            yield from _count(f"{kind}.{row.name}", row.rate)
    yield from _tests(concordance)
    yield from _biases(concordance)
    costs = concordance.costs
    yield "cost.correct", costs.per_correct
    yield "cost.labelled_run", costs.cost_usd
    yield "cost.evaluation", costs.per_item
    yield "seconds", costs.wall_s
    yield "seconds.item", costs.wall_per_item


def _bounds(name: str, interval: Interval) -> NamedFigures:
    yield f"{name}.low", interval.low
    yield f"{name}.high", interval.high


def _count(name: str, rate: CaseRate) -> NamedFigures:
    yield f"{name}.n", rate.n
    yield f"{name}.judged.n", rate.n_judged
    yield f"{name}.right", rate.right
    if name != "labelled":
        yield f"{name}.concordance", rate.interval
        yield f"{name}.concordance.judged", rate.of_judged


def _tests(concordance: Concordance) -> NamedFigures:
    for line in concordance.contrasts[:1]:
        yield "contrast.chi_square", line.chi_square.statistic
        yield "contrast.chi_square.p", line.chi_square.p
        yield "contrast.chi_square.corrected", line.corrected_test.statistic
        yield "contrast.fisher.p", line.fisher.p
        yield "contrast.odds_ratio", line.odds_ratio
    split = concordance.split
    for name, rate in (("unanimous", split.unanimous), ("split", split.split)):
        if rate is not None:
            yield from _count(name, rate)
    yield "disagreements", len(concordance.disagreements)
    for way in concordance.directions:
        name = f"direction.{way.scale.partition(' ')[0]}"
        yield f"{name}.stronger", way.stronger
        yield f"{name}.weaker", way.weaker
        yield f"{name}.level", way.level
        yield f"{name}.unknown", way.unknown
        yield f"{name}.gap", way.mean_gap
        yield f"{name}.p", way.test.p
    for pair in concordance.chronic:
        yield f"missed.{pair.pair}", pair.misses
        yield f"missed.{pair.pair}.share", pair.share


def _biases(concordance: Concordance) -> NamedFigures:
    for family in concordance.families:
        yield f"family.{family.rater}.{family.family}.picks", family.picks
        yield f"family.{family.rater}.{family.family}.people", family.people
    for line in concordance.self_rates:
        yield from self_figures(line)
    for length in concordance.lengths:
        yield f"longer_wins.{length.rater}", length.rate.interval
    for position in concordance.positions:
        yield f"first_wins.{position.rater}", position.rate.interval


def self_figures(rate: SelfRate) -> NamedFigures:
    """How often a judge prefers itself, beside people."""
    yield f"self.{rate.judge}.n", rate.n
    yield f"self.{rate.judge}.own", rate.own_rate
    yield f"self.{rate.judge}.people", rate.people
    yield f"self.{rate.judge}.difference", rate.test.difference
