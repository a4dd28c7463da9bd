"""How often panel, judges, chance and people agree with people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import (
    DASH,
    bounds,
    estimate,
    first_names,
    money,
    p_value,
    percent,
    points,
    seconds,
    share,
)
from clash.report.tables import CLUSTERED_LABEL, MOST_ROWS, Table, cut_note
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance import Concordance
    from clash.analysis.concordance.breakdown import ConcordanceRow, Contrast
    from clash.analysis.concordance.label_noise import Ceiling
    from clash.analysis.concordance.method_table import Method
    from clash.analysis.subpanels import SubPanels
    from clash.stats.hypothesis_tests import Significance
    from clash.stats.intervals import Interval

_WILSON = "95%, Wilson"
_MOST_NAMES = 8


def headline(concordance: Concordance) -> Table:
    """Concordance, its intervals, kappas, and people among themselves."""
    head = concordance.headline
    rate = head.rate
    rows = [
        ["concordance", f"{share(rate)} = {rate.estimate:.1%}"],
        [f"  {_WILSON}", bounds(rate.wilson)],
        [f"  {CLUSTERED_LABEL} ({head.clusters} questions)", bounds(rate.interval)],
    ]
    if rate.n_judged < rate.n:
        rows += [
            [
                "  without a verdict (misses)",
                f"{len(head.no_verdict)}: {first_names(list(head.no_verdict), _MOST_NAMES)}",
            ],
            [
                "  over items with a verdict",
                f"{rate.right:g}/{rate.n_judged}: " + percent(rate.of_judged, digits=1),
            ],
        ]
    if concordance.unique is not None:
        unique = concordance.unique
        rows.append(
            ["  without exact repeats", f"{share(unique)}: {percent(unique.interval, digits=1)}"]
        )
    if head.tied:
        rows.append(["  verdicts that are a tie", str(head.tied)])
    rows += [[k.name, f"{estimate(k.interval)} {k.words}".rstrip()] for k in concordance.kappas]
    notes = [f"{k.name}: {k.over}" for k in concordance.kappas]
    if concordance.people is not None:
        crowd = concordance.people
        rows += [
            [
                f"people among themselves ({crowd.annotators} on {crowd.items} items)",
                percent(crowd.agreement, digits=1),
            ],
            ["  Krippendorff's alpha, people", estimate(crowd.alpha)],
            ["  Krippendorff's alpha, people and panel", estimate(crowd.alpha_with_panel)],
            ["  panel with a single person", percent(crowd.panel_with_person, digits=1)],
        ]
    notes.append(
        "an item without a verdict is a miss; intervals are clustered by question where "
        "questions repeat, because such items share errors and an interval that ignores this is "
        "too narrow"
    )
    return Table("Concordance with people", ["", ""], rows, notes=notes, brief=True)


def label_noise(ceiling: Ceiling | None) -> Table:
    """Concordance against the best that the labels allow, and the two parts of disagreement."""
    if ceiling is None:
        return Table("Label noise", ["", ""], [])
    split = ceiling.split
    rows = [
        ["panel, where the label is no tie", percent(ceiling.concordance, digits=1)],
        ["a perfect judge would reach (ceiling)", percent(ceiling.ceiling, digits=1)],
        ["  the panel as a share of that", f"{ceiling.of_ceiling:.0%}"],
        ["panel with a single person", percent(split.panel_person, digits=1)],
        ["  a perfect judge with a single person", percent(split.person, digits=1)],
        ["disagreement with a person: label noise", percent(split.noise, digits=1)],
        ["  and judge error", _interval_text(split.judge_error)],
        ["panel says what most people would", _interval_text(split.panel)],
    ]
    notes = [
        f"from {plural(ceiling.n, 'item')} with two votes or more that are no ties; people are taken"
        " to err alike, each by chance, on all items",
        "if some items are harder for people than others, a perfect judge agrees with a single"
        f" person less often, but no less than two people do: {split.pair_agreement.estimate:.1%}",
    ]
    return Table("Label noise", ["", ""], rows, notes=notes, brief=True)


def _interval_text(interval: Interval) -> str:
    """A figure, or a dash where nothing is known of it."""
    return DASH if interval.estimate != interval.estimate else percent(interval, digits=1)


def methods(methods: Sequence[Method]) -> Table:
    """Panel, judges, baselines and published judges beside each other."""
    rows = [
        {
            "": line.name,
            "kind": line.kind,
            "right": share(line.rate),
            "of all": f"{line.estimate:.1%}",
            CLUSTERED_LABEL: DASH if line.interval is None else bounds(line.interval),
            "of judged": DASH
            if line.rate is None
            else f"{line.rate.of_judged.estimate:.1%} of {line.rate.n_judged}",
            "panel ahead by": points(line.against),
            "p": p_value(line.test),
        }
        for line in methods
    ]
    notes = [
        "panel ahead by: percentage points on the same items, with the paired, clustered test",
        *(f"{line.name}: {line.source}" for line in methods if line.source),
    ]
    if any(line.kind == "baseline" for line in methods):
        notes.append(
            "a tied baseline scores as chance; a tied verdict is a miss, also that of a single "
            "judge"
        )
    if any(line.kind == "published" for line in methods):
        notes.append(
            "published figures are for other items of this data set, so there is no paired test"
        )
    return Table.of(
        "Agreement with human labels by judge", rows, text=("kind",), notes=notes, brief=True
    )


def rows(title: str, name: str, groups: Sequence[ConcordanceRow], *, brief: bool = False) -> Table:
    """Concordance by some property of the items."""
    rows = [
        {
            name: row.name,
            "n": row.rate.n,
            "no verdict": row.rate.n - row.rate.n_judged,
            "right": f"{row.rate.right:g}",
            "of all": f"{row.rate.estimate:.1%}",
            CLUSTERED_LABEL: bounds(row.rate.interval),
            "of judged, Wilson": f"{row.rate.of_judged.estimate:.1%} {bounds(row.rate.of_judged)}"
            if row.rate.n_judged
            else DASH,
        }
        for row in groups[:MOST_ROWS]
    ]
    return Table.of(title, rows, notes=cut_note(len(groups)), brief=brief)


def chi_square(test: Significance) -> str:
    """A chi-square statistic and its p value, as ``5.23, 0.022``."""
    return f"{test.statistic:.2f}, {p_value(test)}"


def contrasts(title: str, contrasts: Sequence[Contrast]) -> Table:
    """Two groups of items against each other."""
    small = any(line.smallest_expected < 5 for line in contrasts)
    notes = ["an expected count is below 5: use Fisher's exact test instead of chi-square"]
    rows = [
        {
            "": f"{line.first} : {line.second}",
            "items": line.over,
            "right": " : ".join(f"{right}/{right + wrong}" for right, wrong in line.table),
            "difference": points(line.difference),
            "chi-square, p": chi_square(line.chi_square),
            "with correction, p": chi_square(line.corrected_test),
            "Fisher p": p_value(line.fisher),
            "odds ratio": estimate(line.odds_ratio, 2),
        }
        for line in contrasts
    ]
    return Table.of(title, rows, text=("items",), notes=notes if small else ())


def unanimity(concordance: Concordance) -> Table:
    """Verdicts by how the panel split."""
    split = concordance.split
    rates = {"unanimous": split.unanimous, "not unanimous": split.split}
    if len(split.by_split) > 2:
        rates |= {f"  split {name}": rate for name, rate in split.by_split.items()}
    rates |= {f"  {j}, where not unanimous": rate for j, rate in split.judges_on_split.items()}
    rows = [
        {"": name, "right": share(rate), CLUSTERED_LABEL: percent(rate.interval, digits=1)}
        for name, rate in rates.items()
        if rate is not None
    ]
    notes = []
    if split.contrast is not None:
        line = split.contrast
        notes.append(
            f"unanimous less split: {points(line.difference)} points, Fisher's exact test"
            f" p = {p_value(line.fisher)}"
        )
    if split.incomplete:
        notes.append(f"{split.incomplete} verdicts of an incomplete panel count as neither")
    return Table.of("Unanimous and split verdicts", rows, notes=notes, brief=True)


def costs(concordance: Concordance) -> Table:
    """What an evaluation and a correct verdict cost."""
    spending = concordance.costs
    least = "" if spending.exact else "≥ "
    rows = [
        ["whole run", least + money(spending.cost_usd), seconds(spending.wall_s)],
        ["an evaluation", least + money(spending.per_item), seconds(spending.wall_per_item)],
        ["a correct verdict", least + money(spending.per_correct), DASH],
        ["calls of an evaluation, added up", DASH, seconds(spending.called_s)],
    ]
    return Table("Cost and time", ["", "cost", "time"], rows, frozenset({1, 2}), brief=True)


def sizes(subpanels: SubPanels | None) -> Table:
    """What each further judge adds."""
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
        for size in (subpanels.sizes if subpanels else [])
    ]
    return Table(
        "Does another judge help?",
        ["judges", "panels", "mean", "best", "worst", "gain over one judge fewer", "p"],
        rows,
        frozenset({0, 1, 2, 5, 6}),
        [
            "mean over all panels of a size; a tied verdict is a miss, so even sizes score "
            "lower; the best of many is partly luck"
        ],
    )


def subpanels(subpanels: SubPanels | None) -> Table:
    """Every sub-panel, the best first."""
    panels = list(subpanels.panels) if subpanels else []
    ranking = sorted(panels, key=lambda p: (-p.concordance.estimate, len(p.judges), p.judges))
    rows = [
        {
            "judges": ", ".join(panel.judges),
            "size": len(panel.judges),
            "concordance": f"{panel.concordance.estimate:.1%}",
            CLUSTERED_LABEL: bounds(panel.concordance),
            "tied": panel.tied,
            "no verdict": panel.undecided,
        }
        for panel in ranking[:MOST_ROWS]
    ]
    return Table.of("Every sub-panel", rows, notes=cut_note(len(panels)))
