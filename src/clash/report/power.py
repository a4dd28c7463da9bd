"""Sample sizes as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import pick
from clash.report.formats import DASH, estimate, number, percent
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.power.pilot import Addition, Pilot
    from clash.analysis.power.scenarios import PowerCell, PowerQuestion, Scenario
    from clash.reproduction.power_tables import PublishedTables
    from clash.stats.intervals import Interval


def scenario_table(scenario: Scenario) -> Table:
    """A row for each correlation, the panels side by side; one below the other where that is wide."""
    if len(scenario.panels) > 1 and len(_columns(scenario.cells[0])) > 3:
        return _long_table(scenario)
    indices: list[int | None] = [*range(len(scenario.panels))] if scenario.panels else [None]
    rows = [
        [f"{icc:g}", *(text for index in indices for text in _cell(scenario.cell(index, icc)))]
        for icc in dict.fromkeys(cell.icc for cell in scenario.cells)
    ]
    columns = ["ICC"]
    for index in indices:
        suffix = "" if index is None or len(indices) == 1 else f" ({_letter(index)})"
        columns += [f"{name}{suffix}" for name in _columns(scenario.cells[0])]
    if len(indices) > 1:
        columns.append("saved")
        rows = [[*row, _savings(scenario, float(row[0]))] for row in rows]
    notes = [*(_panel(scenario, index) for index in range(len(scenario.panels))), *scenario.notes]
    return Table(
        _title(scenario.ask, scenario.unit), columns, rows, _right(columns), notes, brief=True
    )


def headline(scenario: Scenario) -> str:
    """What the question needs with each panel, over the correlations that were named."""
    parts, by_icc = [], ""
    for index in range(len(scenario.panels)) if scenario.panels else (None,):
        sizes = [cell.needed for cell in scenario.cells if cell.panel == index]
        text = f"{min(sizes):,}"
        if max(sizes) > min(sizes):
            text, by_icc = f"{text} to {max(sizes):,}", " (by the ICC)"
        parts.append(f"{text} with panel {_letter(index)}" if len(scenario.panels) > 1 else text)
    return f"{_title(scenario.ask, scenario.unit)}: {', '.join(parts)}{by_icc}."


def _long_table(scenario: Scenario) -> Table:
    """A row for each panel and correlation."""
    columns = ["panel", "ICC", *_columns(scenario.cells[0])]
    rows = [[_letter(cell.panel), f"{cell.icc:g}", *_cell(cell)] for cell in scenario.cells]
    notes = [*(_panel(scenario, index) for index in range(len(scenario.panels))), *scenario.notes]
    right = _right(columns) - {0}
    return Table(_title(scenario.ask, scenario.unit), columns, rows, right, notes, brief=True)


def _letter(panel: int | None) -> str:
    return DASH if panel is None else chr(65 + panel)


def _right(columns: list[str]) -> frozenset[int]:
    return frozenset(range(len(columns)))


def _columns(cell: PowerCell) -> list[str]:
    names = ["DEFF", "observations", "needed"]
    if cell.power_at_n is not None:
        names += ["power at n", "detects, points"]
    return [*names, "simulated"] if cell.checked is not None else names


def _cell(cell: PowerCell) -> list[str]:
    texts = [f"{cell.design_effect:.2f}", f"{cell.observations:.0f}", str(cell.needed)]
    if cell.power_at_n is not None:
        detectable = None if cell.detectable is None else 100 * cell.detectable
        texts += [f"{cell.power_at_n:.0%}", number(detectable, ".1f")]
    if cell.checked is not None:
        simulation = cell.checked
        width = "" if simulation.half_width is None else f", ±{simulation.half_width:.3f}"
        texts.append(
            f"{simulation.simulated:.1%} [{100 * simulation.low:.0f}, {100 * simulation.high:.0f}]"
            f" (claimed {simulation.claimed:.1%}){width}"
        )
    return texts


def _savings(scenario: Scenario, icc: float) -> str:
    first, last = scenario.cell(0, icc), scenario.cell(len(scenario.panels) - 1, icc)
    return f"{1 - last.exact / first.exact:.0%}"


def _panel(scenario: Scenario, index: int) -> str:
    panel = scenario.panels[index]
    rates = ", ".join(f"{rate:.1%}" for rate in panel.discrimination)
    many = f"judges that decide {rates}, " if len(panel.discrimination) > 1 else ""
    name = f"{_letter(index)}: " if len(scenario.panels) > 1 else ""
    return (
        f"{name}{many}mean discrimination {panel.mean:.1%}, {panel.ballots:g} ballots,"
        f" {panel.informative:.2f} of them informative"
    )


def _title(question: PowerQuestion, unit: str) -> str:
    level = question.level
    if question.question in ("compare", "paired"):
        return (
            f"{unit[0].upper()}{unit[1:]} for {level.power:.0%} power at a"
            f" {100 * question.effect:g}-point difference, alpha {level.alpha:g}"
        )
    quantity = {
        "concordance": f"concordance of {question.expected:.0%}",
        "kappa": f"kappa of {question.expected:g}",
        "retest": f"agreement of {question.expected:.0%} over {question.runs} runs",
    }[question.question]
    return (
        f"{unit[0].upper()}{unit[1:]} for a {1 - level.alpha:.0%} interval of ±{question.half_width:g}"
        f" around a {quantity}"
    )


def published_tables(paper_tables: PublishedTables) -> list[Table]:
    """The paper's tables and claims beside ours."""
    rows = [
        {
            "table": cell.table,
            "ICC": f"{cell.icc:g}",
            "published": cell.published,
            "its own steps": cell.as_printed,
            "": "same" if cell.is_same else "differs",
            "exact": f"{cell.exact:.2f}",
            "needed": cell.needed,
        }
        for cell in paper_tables.cells
    ]

    notes = [
        "paper's steps: 388 ballots, the design effect to two digits, the nearest integer; "
        "needed: rounded up, since the nearest integer can give too little power",
    ]
    claims = [
        {
            "where": claim.where,
            "published": claim.published,
            "ours": claim.ours,
            "": "" if claim.agrees else "differs",
            "why": claim.why,
        }
        for claim in paper_tables.claims
    ]
    return [
        Table.of(
            "Published sample sizes (10 points, m = 7.1 and 9.8)", rows, text=("",), notes=notes
        ),
        Table.of("Published figures around them", claims, text=("published", "ours", "", "why")),
    ]


def pilot_tables(pilot: Pilot) -> list[Table]:
    """The estimates of the pilot, the prompts they imply, and what another judge would save."""
    unit = "informative ballots" if pilot.question == "compare" else "ballots"
    need = f"{pilot.needed} ({pilot.needed_low} to {pilot.needed_high} over the ICC's interval)"
    detectable = (
        DASH if pilot.detectable_now is None else f"{100 * pilot.detectable_now:.1f} points"
    )
    rows = [
        ["prompts (clusters)", str(pilot.clusters)],
        ["ballots", str(pilot.ballots)],
        ["discrimination", percent(pilot.discrimination, digits=1)],
        [_base(pilot), percent(pilot.base, digits=1)],
        [f"{unit} a prompt", f"{pilot.size:.2f} (variation {pilot.cv:.2f})"],
        ["ICC, latent (random intercept)", _ratio(pilot.model.latent)],
        ["ICC, observed (random intercept)", _ratio(pilot.model.observed)],
        ["ICC, observed (analysis of variance)", _ratio(pilot.anova)],
        ["ICC in the design effect", f"{_ratio(pilot.icc)}: {pilot.icc.method}"],
        ["design effect", f"{pilot.design_effect:.2f}"],
        ["power now", f"{pilot.power_now:.0%}"],
        ["detectable now", detectable],
        ["prompts needed", need],
    ]
    adds = [
        {
            "judge": rate.judge,
            "discrimination": percent(rate.discrimination),
            "ballots a prompt": f"{rate.ballots:.2f}",
            "edge": estimate(extra.edge, 2),
            "prompts needed with it": DASH if extra.needed is None else str(extra.needed),
            "saves": _saves(extra),
        }
        for rate, extra in zip(pilot.judges, pilot.additions, strict=True)
    ]
    question = "two conditions" if pilot.question == "compare" else "two candidates, same prompts"
    of = "" if pilot.pair is None else f" of {pilot.pair.name}"
    return [
        Table(
            f"Pilot: {question}, {pilot.outcome}{of}", ["", ""], rows, notes=pilot.notes, brief=True
        ),
        Table.of("Another judge like …", adds),
    ]


def _saves(addition: Addition) -> str:
    """Clusters saved, and whether that is ground to add such a judge."""
    if addition.saves is None:
        return "none: it hides the difference"
    if addition.saves > 0 and not addition.advised:
        return f"{addition.saves}, if it is better than a coin"
    return str(addition.saves)


def pair_line(pilot: Pilot) -> dict[str, Any]:
    """The main figures of one pair as plain data."""
    keys = ("pair", "clusters", "discrimination", "base", "icc", "needed", "more", "power_now")
    return pick(pilot, *keys)


def pairs_tables(pilot: Pilot, beside: Sequence[Pilot], pairs: int) -> list[Table]:
    """The pilot of every pair; no table where there is one pair only."""
    if pilot.pair is None or not beside:
        return []
    rows = [
        [
            pilot_of_pair.pair.name if pilot_of_pair.pair else DASH,
            str(pilot_of_pair.clusters),
            percent(pilot_of_pair.discrimination),
            percent(pilot_of_pair.base),
            f"{pilot_of_pair.icc.estimate:.2f}",
            f"{pilot_of_pair.power_now:.0%}",
            str(pilot_of_pair.needed),
            str(pilot_of_pair.more),
        ]
        for pilot_of_pair in (pilot, *beside)
    ]
    notes = [
        f"above: {pilot.pair.name}, the two best; --pair a,b selects two others",
        "pairs share prompts: enough prompts for the most demanding pair are enough for all",
    ]
    if pairs > len(rows):
        notes.append(f"{pairs} pairs were judged; the others were left out or never decided")
    columns = ["pair", "prompts", "discrimination", "first wins", "ICC", "power now", "needed"]
    return [Table("Each pair", [*columns, "more"], rows, frozenset(range(1, 8)), notes)]


def _base(pilot: Pilot) -> str:
    if pilot.outcome == "wins" and pilot.pair is not None:
        return f"{pilot.pair.first} wins, of decisive ballots"
    if pilot.outcome == "wins":
        return "first side wins, of decisive ballots"
    return "agrees with the label, of decisive ballots"


def _ratio(interval: Interval) -> str:
    """A ratio and its interval; the method says why there is none."""
    text = estimate(interval)
    return f"{text} ({interval.method})" if text == DASH else text
