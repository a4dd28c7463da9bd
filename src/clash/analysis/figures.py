"""Every headline number of a run under one flat name: what gates test and published figures meet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.analysis.concordance import CaseRate, Concordance
    from clash.analysis.findings import Findings
    from clash.stats.intervals import Interval

    NamedFigures = Iterator[tuple[str, "Figure"]]


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
    def of(cls, interval: Interval) -> Figure:
        """An estimate."""
        return cls(interval.estimate, interval.low, interval.high)


@dataclass(frozen=True)
class Claim:
    """A published figure beside ours.

    Attributes:
        table: where it is published.
        says: what it is of.
        ours: null where the runs at hand cannot tell.
        same: ours, rounded as the published one is, equals it.
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


def claims(entries: Sequence[Mapping[str, object]], found: Mapping[str, Figure]) -> list[Claim]:
    """Published figures beside those of a report."""
    made = []
    for entry in entries:
        name, digits = str(entry["figure"]), int(str(entry.get("digits", 0)))
        published = float(str(entry["value"]))
        ours = found[name].value if name in found else None
        same = ours is not None and math.isclose(
            round_half_up(ours, digits), published, abs_tol=1e-9
        )
        made.append(
            Claim(
                str(entry["table"]),
                str(entry["says"]),
                name,
                published,
                ours,
                same,
                digits,
                str(entry.get("why", "")),
            )
        )
    return made


def round_half_up(value: float, digits: int) -> float:
    """Rounded as print does it: halves away from zero, not to even."""
    scale = 10**digits
    return math.copysign(math.floor(abs(value) * scale + 0.5 + 1e-9) / scale, value)


def figures(found: Findings) -> dict[str, Figure]:
    """The numbers of one run, by name; what is not known or not a number is absent."""
    named = [*_run(found)]
    if found.concordance is not None:
        named += _concordance(found.concordance)
    return dict(finite_figures(named))


def finite_figures(named: Sequence[tuple[str, Figure]]) -> NamedFigures:
    """Those that are numbers."""
    return ((name, figure) for name, figure in named if math.isfinite(figure.value))


def _run(found: Findings) -> NamedFigures:
    covered = found.coverage
    yield "unanimity", Figure.of(found.unanimity.rate)
    if found.unanimity.mean_confidence is not None:
        yield "confidence", Figure(found.unanimity.mean_confidence)
    cost = _cost(found)
    yield "cost", cost
    if covered.items:
        yield "items", Figure(covered.items)
        yield "cost.item", cost.over(covered.items)
        yield "coverage", Figure((covered.n_decided + covered.n_tied) / covered.items)
        yield "decided", Figure(covered.n_decided / covered.items)
        yield "tied", Figure(covered.n_tied / covered.items)
    if covered.n_expected:
        usable = covered.n_clean + covered.n_repaired
        yield "judgments.usable", Figure(usable / covered.n_expected)
        yield "judgments.failed", Figure(1 - usable / covered.n_expected)
        yield "judgments.repaired", Figure(covered.n_repaired / covered.n_expected)
    if found.position.first_shown is not None:
        yield "first_shown", Figure.of(found.position.first_shown)
    for row in found.leaderboard:
        yield f"win_rate.{row.candidate}", Figure.of(row.win_rate)
        if row.points is not None:
            yield f"points.{row.candidate}", Figure.of(row.points)
    for judge in found.judges:
        for name, interval in (("agreement", judge.agreement), ("flips", judge.flips)):
            if interval is not None:
                yield f"{name}.{judge.judge}", Figure.of(interval)
    if found.pairs:
        yield (
            "agreement.lowest",
            min((Figure.of(pair.agreement) for pair in found.pairs), key=lambda f: f.value),
        )


def _cost(found: Findings) -> Figure:
    """Dollars; without an upper bound where some price or count is unknown."""
    spent, exact = found.cost_usd, not found.cost_is_lower_bound
    if not found.economies and found.concordance is not None:
        # A run of another tool: its calls are not known, its cost may be.
        told = found.concordance.costs
        spent, exact = told.cost_usd or 0.0, told.exact and told.cost_usd is not None
    return Figure(spent) if exact else Figure(spent, spent, math.inf)


def _concordance(found: Concordance) -> NamedFigures:
    head = found.headline
    yield "concordance", Figure.of(head.rate.interval)
    yield "concordance.judged", Figure.of(head.rate.of_judged)
    yield "concordance.wilson", Figure.of(head.rate.wilson)
    yield from _bounds("concordance.wilson", head.rate.wilson)
    yield from _count("labelled", head.rate)
    for kappa in found.kappas:
        yield kappa.key, Figure.of(kappa.interval)
        yield from _bounds(kappa.key, kappa.interval)
    for line in found.methods:
        if line.rate is not None and line.kind != "panel":
            yield f"method.{line.name}", Figure.of(line.rate.interval)
            yield f"method.{line.name}.judged", Figure.of(line.rate.of_judged)
        if line.kind == "judge" and line.against is not None:
            yield f"ahead.{line.name}", Figure.of(line.against)
    if found.people is not None:
        yield "people", Figure.of(found.people.agreement)
        yield "alpha", Figure.of(found.people.alpha)
    for kind, rows in (("winner", found.by_winner), ("tier", found.by_tier), ("tag", found.by_tag)):
        for row in rows:
            yield from _count(f"{kind}.{row.name}", row.rate)
    yield from _tests(found)
    yield from _biases(found)
    for name, value in (
        ("cost.correct", found.costs.per_correct),
        ("cost.labelled_run", found.costs.cost_usd),
        ("cost.evaluation", found.costs.per_item),
        ("seconds", found.costs.wall_s),
        ("seconds.item", found.costs.wall_per_item),
    ):
        if value is not None:
            yield name, Figure(value)


def _bounds(name: str, interval: Interval) -> NamedFigures:
    yield f"{name}.low", Figure(interval.low)
    yield f"{name}.high", Figure(interval.high)


def _count(name: str, rate: CaseRate) -> NamedFigures:
    yield f"{name}.n", Figure(rate.n)
    yield f"{name}.judged.n", Figure(rate.n_judged)
    yield f"{name}.right", Figure(rate.right)
    if name != "labelled":
        yield f"{name}.concordance", Figure.of(rate.interval)
        yield f"{name}.concordance.judged", Figure.of(rate.of_judged)


def _tests(found: Concordance) -> NamedFigures:
    for line in found.contrasts[:1]:
        yield "contrast.chi_square", Figure(line.chi_square.statistic)
        yield "contrast.chi_square.p", Figure(line.chi_square.p)
        yield "contrast.chi_square.corrected", Figure(line.corrected_test.statistic)
        yield "contrast.fisher.p", Figure(line.fisher.p)
        yield "contrast.odds_ratio", Figure.of(line.odds_ratio)
    split = found.split
    for name, rate in (("unanimous", split.unanimous), ("split", split.split)):
        if rate is not None:
            yield from _count(name, rate)
    yield "disagreements", Figure(len(found.disagreements))
    for way in found.directions:
        name = f"direction.{way.scale.partition(' ')[0]}"
        yield f"{name}.stronger", Figure(way.stronger)
        yield f"{name}.weaker", Figure(way.weaker)
        yield f"{name}.level", Figure(way.level)
        yield f"{name}.unknown", Figure(way.unknown)
        yield f"{name}.gap", Figure(way.mean_gap)
        yield f"{name}.p", Figure(way.test.p)
    for pair in found.chronic:
        yield f"missed.{pair.pair}", Figure(pair.misses)
        yield f"missed.{pair.pair}.share", Figure.of(pair.share)


def _biases(found: Concordance) -> NamedFigures:
    for family in found.families:
        yield f"family.{family.rater}.{family.family}.picks", Figure(family.picks)
        yield f"family.{family.rater}.{family.family}.people", Figure(family.people)
    for line in found.self_rates:
        yield f"self.{line.judge}.n", Figure(line.n)
        yield f"self.{line.judge}.own", Figure.of(line.own_rate)
        yield f"self.{line.judge}.people", Figure.of(line.people)
        yield f"self.{line.judge}.difference", Figure.of(line.test.difference)
    for length in found.lengths:
        yield f"longer_wins.{length.rater}", Figure.of(length.rate.interval)
    for position in found.positions:
        yield f"first_wins.{position.rater}", Figure.of(position.rate.interval)
