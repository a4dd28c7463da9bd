"""Writes docs/tables/studies.md and docs/images/study-*.svg: the papers' experiments on public panels.

    python docs/tables/studies.py DATA [--only NAME ...] [--trials 20] [--splits 30] [--seed 0]

DATA holds files that end in .votes.jsonl.gz. Of a panel with more rows, a random 1,500 are used.
Sections of panels that are not made anew stay as they are.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibration import PANELS
from clash.errors import InputError
from clash.report.markdown import render_table
from clash.report.plots import svg
from clash.report.studies import (
    fcps_answer,
    fcps_figures,
    fcps_setting,
    fcps_tables,
    ising_answer,
    ising_figures,
    ising_setting,
    ising_tables,
)
from clash.reproduction.studies.fcps_study import FcpsPlan, fcps_study
from clash.reproduction.studies.ising_study import IsingPlan, ising_study
from clash.votes import read_votes

if TYPE_CHECKING:
    from clash.report.tables import Table
    from clash.reproduction.studies.fcps_records import FcpsStudy
    from clash.reproduction.studies.ising_study import IsingStudy

HERE = Path(__file__).resolve().parent
PAGE, IMAGES = HERE / "studies.md", HERE.parent / "images"
MOST = 1500
SHOWN = "rb2-replicates, near-copies"
"""The panel whose figures are drawn."""
NAMES = tuple(name for name in PANELS if name != "mtbench-human")
HEAD = """# The papers' experiments on public panels

Written by `docs/tables/studies.py`: `clash study ising` and `clash study fcps` on every public panel
with labels. Of more than {most} rows, a random {most} are used. Panels are filtered as in
[calibration.md](calibration.md), so that no row counts the same vote twice.

## In short

{ising}

{fcps}

*ising-class*, *ising-shared*, *dawid-skene* and *majority* are the second paper's Class-Dep. Ising,
Class-Indep. Ising, CI-WMV and CI-UMV; the Ising models are fitted by exact likelihood. In the second
paper the Ising models beat both majorities by 6 to 25 points on three sets of votes that are not public. On
these panels one of them is clearly right more often than the uniform majority once (near-copies, by 0.9
points) and clearly less often eight times, although the fits converge: without labels, another split of the
items than people's explains the votes better. `clash aggregate --method auto` asks for evidence against
such a split ([how](../statistics-latent.md#twelve-designs)).

`mtbench-human` is left out: its labels are the majority of its own votes.
"""


def section(name: str, file: Path, filters: dict[str, Any], options: argparse.Namespace) -> str:
    """Both studies of a panel."""
    votes = read_votes(file, **filters)
    command = "".join(f" --{key}" + ("" if value is True else f" '{value}'")
                      for key, value in filters.items())  # fmt: skip
    parts = [f"## {name}", f"`{file.name}{command}`"]
    try:
        ising = ising_study(votes, IsingPlan(options.trials, most_items=MOST), options.seed)
        parts += ising_part(name, ising)
    except InputError as refusal:
        parts.append(f"`study ising`: {refusal.message}")
    try:
        fcps = fcps_study(votes, FcpsPlan(options.splits, most_items=MOST), options.seed)
        parts += fcps_part(name, fcps)
    except InputError as refusal:
        parts.append(f"`study fcps`: {refusal.message}")
    return "\n\n".join(parts)


def _table(table: Table) -> str:
    """Under the heading of the panel."""
    return render_table(table).replace("## ", "### ", 1)


def ising_part(name: str, study: IsingStudy) -> list[str]:
    """Table 1 and figure 3."""
    parts = [
        ising_answer(study),
        *map(_table, ising_tables(study)),
        f"{ising_setting(study)}.",
    ]
    return parts + (_images(ising_figures(study)) if name == SHOWN else [])


def fcps_part(name: str, study: FcpsStudy) -> list[str]:
    """Tables 2, 3 and 7 to 11."""
    parts = [fcps_answer(study), *map(_table, fcps_tables(study)), f"{fcps_setting(study)}."]
    return parts + (_images(fcps_figures(study)) if name == SHOWN else [])


def _images(figures: dict[str, Any]) -> list[str]:
    for name, figure in figures.items():
        (IMAGES / f"study-{name}.svg").write_text(svg(figure), encoding="utf-8")
    return [f"![{name}](../images/study-{name}.svg)" for name in figures]


def summary(sections: dict[str, str]) -> tuple[str, str]:
    """Over panels: models that differ from majority, and contests won by scalar families."""
    counted_sections = list(sections.values())
    ising = [
        tuple(map(int, m.groups()))
        for text in counted_sections
        if (m := re.search(r"majority: (\d+) of (\d+) models .*?less often: (\d+)", text))
    ]
    fcps = [
        tuple(map(int, m.groups()))
        for text in counted_sections
        if (m := re.search(
            r"joint table at (\d+) of (\d+) budgets;.*?zero at (\d+), (\d+) of them", text
        ))
    ]  # fmt: skip
    more, models, less = (sum(row[i] for row in ising) for i in range(3))
    n_won, budgets, clear, scalar = (sum(row[i] for row in fcps) for i in range(4))
    return (
        f"Without labels, on {len(ising)} panels: of {models} fits of a model to a panel, {more} are"
        f" clearly right more often than the uniform majority, and {less} clearly less often.",
        f"With labels, on {len(fcps)} panels: the scalar family has less test error than the joint"
        f" table in {n_won} of {budgets} pairs of panel and budget; the 95% interval over items and splits"
        f" excludes zero in {clear}, {scalar} of them for the scalar family. The paper: 16 of 20, and"
        " 11 by an interval over splits alone.",
    )


def earlier() -> dict[str, str]:
    """Sections that the page has."""
    if not PAGE.exists():
        return {}
    parts = re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section_by_title = {
        part.partition("\n")[0].removeprefix("## "): part.strip() for part in parts[1:]
    }
    return {name: section_by_title[name] for name in NAMES if name in section_by_title}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=NAMES)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sections = earlier()
    for name in options.only or NAMES:
        began = time.monotonic()
        stem, filters = PANELS[name]
        (file,) = sorted(options.data.glob(f"{stem}*.votes.jsonl*"))
        sections[name] = section(name, file, filters, options)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
        sections_in_order = {key: sections[key] for key in NAMES if key in sections}
        ising, fcps = summary(sections_in_order)
        head = HEAD.format(most=f"{MOST:,}", ising=ising, fcps=fcps)
        PAGE.write_text(
            "\n\n".join([head.strip(), *sections_in_order.values()]) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
