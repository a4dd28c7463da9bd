"""The concordance report as tables of words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.report.tables import NONE, Table, money, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance import Concordance, Contrast, Method, Rate, Row
    from clash.analysis.subpanels import SubPanels
    from clash.stats.intervals import Interval
    from clash.stats.tests import Significance

_CLUSTERED = "95%, clustered"
_WILSON = "95%, Wilson"
_MOST_ROWS = 40


def tables(found: Concordance | None) -> list[Table]:
    """Everything worth a table, in the order of interest; empty ones are left out."""
    if found is None:
        return []
    made = [
        _headline(found),
        _methods(found.methods),
        _rows("Concordance by tier of the winner", "tier", found.by_tier, brief=True),
        _contrasts("Tiers against each other", found.contrasts),
        _rows("Concordance by what people chose", "people's winner", found.by_winner),
        _rows("Concordance by tag", "tag", found.by_tag),
        _unanimity(found),
        _sizes(found.subpanels),
        _subpanels(found.subpanels),
        _disagreements(found),
        _directions(found),
        _gaps(found),
        _chronic(found),
        _families(found),
        _selves(found),
        _lengths(found),
        _equal_length(found),
        _positions(found),
        _costs(found),
    ]
    return [table for table in made if table.rows]


def p_value(test: Significance | None) -> str:
    """A p value with as many digits as matter."""
    if test is None:
        return NONE
    return f"{test.p:.1e}" if test.p < 0.001 else f"{test.p:.3f}"


def points(gap: Interval | None) -> str:
    """A difference of two shares, in percentage points."""
    if gap is None or math.isnan(gap.estimate):
        return NONE
    bounds = (
        f" [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]" if math.isfinite(gap.half_width) else ""
    )
    return f"{100 * gap.estimate:+.1f}{bounds}"


def number(interval: Interval | None, digits: int = 3) -> str:
    """A coefficient and its interval."""
    if interval is None or math.isnan(interval.estimate):
        return NONE
    return f"{interval.estimate:.{digits}f} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


def share(rate: Rate | None) -> str:
    """``71/74``, with a decimal only where ties earn half."""
    return NONE if rate is None else f"{rate.right:g}/{rate.n}"


def bounds(interval: Interval) -> str:
    """An interval alone, in percent."""
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _headline(found: Concordance) -> Table:
    head = found.headline
    rate = head.rate
    rows = [
        ["concordance", f"{share(rate)} = {rate.estimate:.1%}"],
        [f"  {_WILSON}", bounds(rate.wilson)],
        [f"  {_CLUSTERED} ({head.clusters} questions)", bounds(rate.clustered)],
    ]
    if rate.judged < rate.n:
        rows += [
            ["  without a verdict (misses)", _some(list(head.no_verdict))],
            [
                "  over items with a verdict",
                f"{rate.right:g}/{rate.judged}: " + percent(rate.of_judged, digits=1),
            ],
        ]
    if head.tied:
        rows.append(["  verdicts that are a tie", str(head.tied)])
    rows += [[k.name, f"{number(k.interval)} {k.words}".rstrip()] for k in found.kappas]
    notes = [f"{k.name}: {k.over}" for k in found.kappas]
    if found.people is not None:
        crowd = found.people
        rows += [
            [
                f"people among themselves ({crowd.annotators} on {crowd.items} items)",
                percent(crowd.agreement, digits=1),
            ],
            ["  Krippendorff's alpha, people", number(crowd.alpha)],
            ["  Krippendorff's alpha, people and panel", number(crowd.alpha_with_panel)],
            ["  panel with a single person", percent(crowd.panel_with_person, digits=1)],
        ]
    notes.append(
        "an item without a verdict is a miss; intervals are clustered by question where questions"
        " repeat, for their errors are shared and an interval that ignores it is too narrow"
    )
    return Table("Concordance with people", ["", ""], rows, notes=notes, brief=True)


def _some(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{len(names)}: {', '.join(names[:most])}{more}"


def _methods(found: Sequence[Method]) -> Table:
    rows = [
        [
            line.name,
            line.kind,
            share(line.rate),
            f"{line.estimate:.1%}",
            NONE if line.interval is None else bounds(line.interval),
            NONE
            if line.rate is None
            else f"{line.rate.of_judged.estimate:.1%} of {line.rate.judged}",
            points(line.against),
            p_value(line.test),
        ]
        for line in found
    ]
    notes = [
        "panel ahead by: percentage points on the same items, with the paired, clustered test",
        *(f"{line.name}: {line.source}" for line in found if line.source),
    ]
    if any(line.kind == "baseline" for line in found):
        notes.append(
            "a tie of a baseline earns its chance; a tied verdict is a miss, as is a judge's"
        )
    if any(line.kind == "published" for line in found):
        notes.append("published figures are of other items of this set: no paired test")
    return Table(
        "Who would say what people say",
        ["", "kind", "right", "of all", _CLUSTERED, "of judged", "panel ahead by", "p"],
        rows,
        frozenset({2, 3, 4, 5, 6, 7}),
        notes,
        brief=True,
    )


def _rows(title: str, name: str, found: Sequence[Row], *, brief: bool = False) -> Table:
    rows = [
        [
            row.name,
            str(row.rate.n),
            str(row.rate.n - row.rate.judged),
            f"{row.rate.right:g}",
            f"{row.rate.estimate:.1%}",
            bounds(row.rate.clustered),
            f"{row.rate.of_judged.estimate:.1%} {bounds(row.rate.of_judged)}"
            if row.rate.judged
            else NONE,
        ]
        for row in found[:_MOST_ROWS]
    ]
    notes = [f"{len(found) - _MOST_ROWS} more in report.json"] if len(found) > _MOST_ROWS else []
    return Table(
        title,
        [name, "n", "no verdict", "right", "of all", _CLUSTERED, "of judged, Wilson"],
        rows,
        frozenset({1, 2, 3, 4, 5, 6}),
        notes,
        brief=brief,
    )


def contrast_row(line: Contrast) -> list[str]:
    """One line of :func:`contrast_table`."""
    (a, b), (c, d) = line.table
    return [
        f"{line.first} : {line.second}",
        line.over,
        f"{a}/{a + b} : {c}/{c + d}",
        points(line.difference),
        f"{line.chi_square.statistic:.2f}, {p_value(line.chi_square)}",
        f"{line.corrected.statistic:.2f}, {p_value(line.corrected)}",
        p_value(line.fisher),
        number(line.odds_ratio, 2),
    ]


def _contrasts(title: str, found: Sequence[Contrast]) -> Table:
    small = any(line.smallest_expected < 5 for line in found)
    return Table(
        title,
        [
            "",
            "items",
            "right",
            "difference",
            "chi-square, p",
            "with correction, p",
            "Fisher p",
            "odds ratio",
        ],
        [contrast_row(line) for line in found],
        frozenset({2, 3, 4, 5, 6, 7}),
        ["an expected count is below 5: read Fisher's exact test, not chi-square"] if small else [],
    )


def _unanimity(found: Concordance) -> Table:
    split = found.split
    rows = [
        [name, share(rate), percent(rate.clustered, digits=1)]
        for name, rate in (("unanimous", split.unanimous), ("not unanimous", split.split))
        if rate is not None
    ]
    rows += [
        [f"  split {name}", share(rate), percent(rate.clustered, digits=1)]
        for name, rate in split.by_split.items()
        if len(split.by_split) > 2
    ]
    rows += [
        [f"  {judge}, where not unanimous", share(rate), percent(rate.clustered, digits=1)]
        for judge, rate in split.judges_on_split.items()
    ]
    notes = []
    if split.contrast is not None:
        line = split.contrast
        notes.append(
            f"unanimous less split: {points(line.difference)} points, Fisher's exact test"
            f" p = {p_value(line.fisher)}"
        )
    if split.incomplete:
        notes.append(f"{split.incomplete} verdicts of an incomplete panel are neither")
    return Table(
        "Unanimous and split verdicts",
        ["", "right", _CLUSTERED],
        rows,
        frozenset({1, 2}),
        notes,
        brief=True,
    )


def _sizes(found: SubPanels | None) -> Table:
    rows = [
        [
            str(size.size),
            str(size.tried) if size.tried == size.possible else f"{size.tried} of {size.possible}",
            f"{size.mean:.1%}",
            f"{size.best.concordance.estimate:.1%} {', '.join(size.best.judges)}",
            f"{size.worst.concordance.estimate:.1%} {', '.join(size.worst.judges)}",
            points(size.gain),
            p_value(size.test),
        ]
        for size in (found.sizes if found else [])
    ]
    return Table(
        "Does adding a judge pay?",
        ["judges", "panels", "mean", "best", "worst", "gain over one fewer", "p"],
        rows,
        frozenset({0, 1, 2, 5, 6}),
        [
            "mean over all panels of a size; a tied verdict is a miss, so even sizes fall behind;"
            " the best of many is partly luck"
        ],
    )


def _subpanels(found: SubPanels | None) -> Table:
    panels = list(found.panels) if found else []
    ordered = sorted(panels, key=lambda p: (-p.concordance.estimate, len(p.judges), p.judges))
    rows = [
        [
            ", ".join(panel.judges),
            str(len(panel.judges)),
            f"{panel.concordance.estimate:.1%}",
            bounds(panel.concordance),
            str(panel.tied),
            str(panel.undecided),
        ]
        for panel in ordered[:_MOST_ROWS]
    ]
    more = len(panels) - _MOST_ROWS
    return Table(
        "Every sub-panel",
        ["judges", "size", "concordance", _CLUSTERED, "tied", "no verdict"],
        rows,
        frozenset({1, 2, 3, 4, 5}),
        [f"{more} more in report.json"] if more > 0 else [],
    )


def _disagreements(found: Concordance) -> Table:
    lines = found.disagreements
    rows = [
        [
            line.item_id,
            " : ".join(line.candidates),
            line.label,
            line.said,
            f"{line.split or ''}{' unanimous' if line.unanimous else ''}",
            NONE if line.confidence is None else f"{line.confidence:.2f}",
            NONE if line.elo_gap is None else f"{line.elo_gap:+.0f}",
        ]
        for line in lines[:_MOST_ROWS]
    ]
    more = len(lines) - _MOST_ROWS
    return Table(
        f"Disagreements ({len(lines)})",
        ["item", "candidates", "people", "panel", "split", "confidence", "rating gap"],
        rows,
        frozenset({5, 6}),
        [f"{more} more in report.json"] if more > 0 else [],
    )


def _directions(found: Concordance) -> Table:
    rows = [
        [
            line.scale,
            str(line.stronger),
            str(line.weaker),
            str(line.level),
            str(line.unknown),
            percent(line.share),
            NONE if math.isnan(line.mean_gap) else f"{line.mean_gap:+.3g}",
            p_value(line.test),
        ]
        for line in found.directions
    ]
    return Table(
        "Direction of the disagreements",
        ["stronger by", "to stronger", "to weaker", "level", "unknown", "share", "mean gap", "p"],
        rows,
        frozenset({1, 2, 3, 4, 5, 6, 7}),
        [
            "to stronger: the panel chose the stronger of the two than people did; p: exact sign test"
        ],
    )


def _gaps(found: Concordance) -> Table:
    rows = [
        [
            f"{line.low:g} to {line.high:g}" if math.isfinite(line.high) else f"{line.low:g} on",
            share(line.rate),
            percent(line.rate.clustered, digits=1),
            str(line.stronger),
            str(line.weaker),
        ]
        for line in found.gaps
    ]
    return Table(
        "Concordance by rating gap",
        ["gap (Elo)", "right", _CLUSTERED, "misses to stronger", "to weaker"],
        rows,
        frozenset({1, 2, 3, 4}),
    )


def _chronic(found: Concordance) -> Table:
    rows = [
        [line.pair, str(line.misses), str(line.n), percent(line.share), ", ".join(line.items)]
        for line in found.chronic[:_MOST_ROWS]
    ]
    return Table(
        "Pairs missed more than once",
        ["pair", "missed", "of", "share", "items"],
        rows,
        frozenset({1, 2, 3}),
        ["chosen by looking: of many pairs some are missed often by chance"],
    )


def _families(found: Concordance) -> Table:
    rows = [
        [
            line.who,
            line.family,
            str(line.picked),
            str(line.people),
            str(line.n),
            points(line.test.difference),
            p_value(line.test.test),
        ]
        for line in found.families
    ]
    return Table(
        "Family favouritism",
        ["who", "family", "picks", "people's", "can show it", "difference", "p"],
        rows,
        frozenset({2, 3, 4, 5, 6}),
        [
            "picks: items that the family wins, of all judged; the difference is over items where"
            " the family stands against another one"
        ],
    )


def _selves(found: Concordance) -> Table:
    rows = [
        [
            line.judge,
            str(line.n),
            percent(line.own, digits=1),
            percent(line.people, digits=1),
            points(line.test.difference),
            p_value(line.test.test),
        ]
        for line in found.self_rates
    ]
    return Table(
        "Self-evaluation, blind, against people",
        ["judge and candidate", "n", "puts itself first", "people do", "difference", "p"],
        rows,
        frozenset({1, 2, 3, 4, 5}),
    )


def _lengths(found: Concordance) -> Table:
    rows = [
        [
            line.who,
            percent(line.rate.interval, digits=1),
            str(int(line.rate.interval.n)),
            str(line.rate.left_out),
            p_value(line.rate.test),
        ]
        for line in found.lengths
    ]
    return Table(
        "The longer response wins",
        ["who", "rate", "n", "tied or missing", "p"],
        rows,
        frozenset({1, 2, 3, 4}),
        ["people's rate is the reference: longer may well be better; p: against one half"],
    )


def _equal_length(found: Concordance) -> Table:
    rows = [
        [
            line.candidate,
            percent(line.fit.raw),
            percent(line.fit.controlled),
            percent(line.people),
            p_value(line.fit.slope_test) + ("" if line.fit.converged else " (not converged)"),
        ]
        for line in found.equal_length
    ]
    return Table(
        "Win rates at equal length",
        ["candidate", "panel", "panel, equal length", "people", "p of length"],
        rows,
        frozenset({1, 2, 3, 4}),
        ["a logistic regression on the length difference (Dubois et al. 2024)"],
    )


def _positions(found: Concordance) -> Table:
    rows = [
        [
            line.who,
            percent(line.rate.interval, digits=1),
            f"{line.rate.fair:.1%}",
            str(int(line.rate.interval.n)),
            p_value(line.rate.test),
        ]
        for line in found.positions
    ]
    return Table(
        "The response shown first wins",
        ["who", "rate", "fair", "n", "p"],
        rows,
        frozenset({1, 2, 3, 4}),
    )


def _costs(found: Concordance) -> Table:
    spent = found.costs
    least = "" if spent.exact else "≥ "
    rows = [
        ["whole run", least + money(spent.cost_usd), seconds(spent.wall_s)],
        ["an evaluation", least + money(spent.per_item), seconds(spent.wall_per_item)],
        ["a correct verdict", least + money(spent.per_correct), NONE],
        ["calls of an evaluation, added up", NONE, seconds(spent.called_s)],
    ]
    return Table("Cost and time", ["", "cost", "time"], rows, frozenset({1, 2}), brief=True)
