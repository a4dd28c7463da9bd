"""Sample sizes as tables and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import to_dict
from clash.report.formats import NONE, estimate, number, percent
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.power import Pilot, Scenario
    from clash.analysis.power.scenarios import Ask, Cell
    from clash.reproduction.power_tables import Published
    from clash.stats.intervals import Interval


def as_json(found: Scenario | Published | Pilot) -> dict[str, Any]:
    """Plain data; what is not a number becomes null."""
    return to_dict(found)


def scenario_table(found: Scenario) -> Table:
    """A row for each correlation, the panels side by side; one below the other where that is wide."""
    if len(found.panels) > 1 and len(_columns(found.cells[0])) > 3:
        return _long_table(found)
    indices: list[int | None] = [*range(len(found.panels))] if found.panels else [None]
    rows = [
        [f"{icc:g}", *(text for index in indices for text in _cell(found.cell(index, icc)))]
        for icc in dict.fromkeys(cell.icc for cell in found.cells)
    ]
    columns = ["ICC"]
    for index in indices:
        suffix = "" if index is None or len(indices) == 1 else f" ({_letter(index)})"
        columns += [f"{name}{suffix}" for name in _columns(found.cells[0])]
    if len(indices) > 1:
        columns.append("saved")
        rows = [[*row, _saved(found, float(row[0]))] for row in rows]
    notes = [*(_panel(found, index) for index in range(len(found.panels))), *found.notes]
    return Table(_title(found.ask, found.unit), columns, rows, _right(columns), notes, brief=True)


def _long_table(found: Scenario) -> Table:
    """A row for each panel and correlation."""
    columns = ["panel", "ICC", *_columns(found.cells[0])]
    rows = [[_letter(cell.panel), f"{cell.icc:g}", *_cell(cell)] for cell in found.cells]
    notes = [*(_panel(found, index) for index in range(len(found.panels))), *found.notes]
    right = _right(columns) - {0}
    return Table(_title(found.ask, found.unit), columns, rows, right, notes, brief=True)


def _letter(panel: int | None) -> str:
    return NONE if panel is None else chr(65 + panel)


def _right(columns: list[str]) -> frozenset[int]:
    return frozenset(range(len(columns)))


def _columns(cell: Cell) -> list[str]:
    names = ["DEFF", "observations", "needed"]
    if cell.power_at_n is not None:
        names += ["power at n", "detects, points"]
    return [*names, "simulated"] if cell.checked is not None else names


def _cell(cell: Cell) -> list[str]:
    texts = [f"{cell.design_effect:.2f}", f"{cell.observations:.0f}", str(cell.needed)]
    if cell.power_at_n is not None:
        detectable = None if cell.detectable is None else 100 * cell.detectable
        texts += [f"{cell.power_at_n:.0%}", number(detectable, ".1f")]
    if cell.checked is not None:
        done = cell.checked
        width = "" if done.half_width is None else f", ±{done.half_width:.3f}"
        texts.append(
            f"{done.simulated:.1%} [{100 * done.low:.0f}, {100 * done.high:.0f}]"
            f" (claimed {done.claimed:.1%}){width}"
        )
    return texts


def _saved(found: Scenario, icc: float) -> str:
    first, last = found.cell(0, icc), found.cell(len(found.panels) - 1, icc)
    return f"{1 - last.exact / first.exact:.0%}"


def _panel(found: Scenario, index: int) -> str:
    panel = found.panels[index]
    rates = ", ".join(f"{rate:.1%}" for rate in panel.discrimination)
    many = f"judges that decide {rates}, " if len(panel.discrimination) > 1 else ""
    name = f"{_letter(index)}: " if len(found.panels) > 1 else ""
    return (
        f"{name}{many}mean discrimination {panel.mean:.1%}, {panel.ballots:g} ballots,"
        f" {panel.informative:.2f} of them informative"
    )


def _title(ask: Ask, unit: str) -> str:
    level = ask.level
    if ask.question in ("compare", "paired"):
        return (
            f"{unit[0].upper()}{unit[1:]} for {level.power:.0%} power at a"
            f" {100 * ask.effect:g}-point difference, alpha {level.alpha:g}"
        )
    about = {
        "concordance": f"concordance of {ask.expected:.0%}",
        "kappa": f"kappa of {ask.expected:g}",
        "retest": f"agreement of {ask.expected:.0%} over {ask.runs} runs",
    }[ask.question]
    return (
        f"{unit[0].upper()}{unit[1:]} for a {1 - level.alpha:.0%} interval of ±{ask.half_width:g}"
        f" around a {about}"
    )


def published_tables(found: Published) -> list[Table]:
    """The paper's tables and claims beside ours."""
    rows = [
        [
            cell.table,
            f"{cell.icc:g}",
            str(cell.published),
            str(cell.as_printed),
            "same" if cell.same else "differs",
            f"{cell.exact:.2f}",
            str(cell.needed),
        ]
        for cell in found.cells
    ]
    columns = ["table", "ICC", "published", "its own steps", "", "exact", "needed"]
    notes = [
        "its own steps: 388 ballots, the design effect to two digits, the nearest integer; needed:"
        " rounded up, since the nearest integer can fall short of the power",
    ]
    claims = [
        [claim.where, claim.published, claim.ours, "" if claim.agrees else "differs", claim.why]
        for claim in found.claims
    ]
    return [
        Table(
            "Published sample sizes (10 points, m = 7.1 and 9.8)",
            columns,
            rows,
            frozenset({1, 2, 3, 5, 6}),
            notes,
        ),
        Table("Published figures around them", ["where", "published", "ours", "", "why"], claims),
    ]


def pilot_tables(found: Pilot) -> list[Table]:
    """What the pilot says, and what follows."""
    unit = "informative ballots" if found.question == "compare" else "ballots"
    need = f"{found.needed} ({found.needed_low} to {found.needed_high} over the ICC's interval)"
    detectable = (
        NONE if found.detectable_now is None else f"{100 * found.detectable_now:.1f} points"
    )
    rows = [
        ["prompts (clusters)", str(found.clusters)],
        ["ballots", str(found.ballots)],
        ["discrimination", percent(found.discrimination, digits=1)],
        [_base(found), percent(found.base, digits=1)],
        [f"{unit} a prompt", f"{found.size:.2f} (variation {found.cv:.2f})"],
        ["ICC, latent (random intercept)", _ratio(found.model.latent)],
        ["ICC, observed (random intercept)", _ratio(found.model.observed)],
        ["ICC, observed (analysis of variance)", _ratio(found.anova)],
        ["ICC in the design effect", f"{_ratio(found.icc)}: {found.icc.method}"],
        ["design effect", f"{found.design_effect:.2f}"],
        ["power now", f"{found.power_now:.0%}"],
        ["detectable now", detectable],
        ["prompts needed", need],
    ]
    adds = [
        [
            rate.judge,
            percent(rate.discrimination),
            f"{rate.ballots:.2f}",
            str(extra.needed),
            str(extra.saves),
        ]
        for rate, extra in zip(found.judges, found.additions, strict=True)
    ]
    asked = "two conditions" if found.question == "compare" else "two candidates, same prompts"
    of = "" if found.pair is None else f" of {found.pair.name}"
    return [
        Table(
            f"Pilot: {asked}, {found.outcome}{of}", ["", ""], rows, notes=found.notes, brief=True
        ),
        Table(
            "A further judge like …",
            ["judge", "discrimination", "ballots a prompt", "prompts needed with it", "saves"],
            adds,
            frozenset({1, 2, 3, 4}),
        ),
    ]


def pair_line(found: Pilot) -> dict[str, Any]:
    """A pair as plain data, for a list of them."""
    kept = ("pair", "clusters", "discrimination", "base", "icc", "needed", "more", "power_now")
    made = as_json(found)
    return {name: made[name] for name in kept}


def pairs_tables(found: Pilot, beside: Sequence[Pilot], pairs: int) -> list[Table]:
    """Every pair that was worked out; none where there is one only."""
    if found.pair is None or not beside:
        return []
    rows = [
        [
            one.pair.name if one.pair else NONE,
            str(one.clusters),
            percent(one.discrimination),
            percent(one.base),
            f"{one.icc.estimate:.2f}",
            f"{one.power_now:.0%}",
            str(one.needed),
            str(one.more),
        ]
        for one in (found, *beside)
    ]
    notes = [
        f"above: {found.pair.name}, the two with most points; --pair a,b asks about two others",
        "pairs share prompts: prompts enough for the most demanding pair are enough for all",
    ]
    if pairs > len(rows):
        notes.append(f"{pairs} pairs met; the others were left out, or never decided")
    columns = ["pair", "prompts", "discrimination", "first wins", "ICC", "power now", "needed"]
    return [Table("Each pair", [*columns, "more"], rows, frozenset(range(1, 8)), notes)]


def _base(found: Pilot) -> str:
    if found.outcome == "wins" and found.pair is not None:
        return f"{found.pair.first} wins, of decisive ballots"
    if found.outcome == "wins":
        return "first side wins, of decisive ballots"
    return "agrees with the label, of decisive ballots"


def _ratio(interval: Interval) -> str:
    """A ratio and its interval; the method says why there is none."""
    text = estimate(interval)
    return f"{text} ({interval.method})" if text == NONE else text
