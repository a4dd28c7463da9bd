"""Writes docs/tables/simulations.md and docs/images/simulation-*.svg: the papers, rerun.

    python docs/tables/simulations.py [--factor 5] [--seed 0] [--votes FILE ...]

``--factor`` multiplies the default replications. Table 23 of the calibration paper needs real votes:
without ``--votes`` it is left as it stands.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from clash.report.markdown import render_table as markdown
from clash.report.plots import svg
from clash.report.regime_figures import regime_figure
from clash.report.simulations import figure, setting, table
from clash.reproduction.simulations import EXPERIMENTS, ON_VOTES
from clash.votes import read_votes

if TYPE_CHECKING:
    from clash.reproduction.simulations.experiment import Simulation

NAMES = (
    "three-judges",
    "independent",
    "zero-field",
    "curie-weiss",
    "latent-factor",
    "sweep",
    "weak-factor",
    "calibration-growth",
    "aggregator-regimes",
    "interaction-strength",
    "regime-map",
)
BEGIN, END = "<!-- semi-real: begin -->", "<!-- semi-real: end -->"
ROOT = Path(__file__).resolve().parents[2]
HEAD = """# The papers' simulations, rerun

Written by `docs/tables/simulations.py --factor {factor} --seed {seed}`. "apart by": distance beyond
rounding in standard errors of both sides; up to 3 it counts as agreement. What differs, and why, is
in [simulations.md](../simulations.md).
"""


def section(simulation: Simulation, images: Path) -> str:
    """Table, setting, pictures, findings."""
    parts = [markdown(table(simulation)), f"\n{setting(simulation)}.\n"]
    for plot in simulation.plots:
        name = f"simulation-{plot.name}.svg"
        (images / name).write_text(svg(figure(plot)), encoding="utf-8")
        parts.append(f"![{plot.name}](../images/{name})\n")
    for regime_map in simulation.maps:
        name = f"simulation-{regime_map.name}.svg"
        (images / name).write_text(
            svg(regime_figure(regime_map.maps, regime_map.titles)), encoding="utf-8"
        )
        parts.append(f"![{regime_map.name}](../images/{name})\n")
    parts += [f"- {finding}" for finding in simulation.findings]
    return "\n".join(parts)


def semi_real(options: argparse.Namespace, images: Path, out: Path) -> str:
    """Table 23 on the given votes, or as it stands."""
    if not options.votes:
        text = out.read_text(encoding="utf-8")
        return text.partition(BEGIN)[2].partition(END)[0].strip("\n")
    experiment = ON_VOTES["semi-real"]
    replications = experiment.replications * options.factor
    votes = [read_votes(file) for file in options.votes]
    return section(experiment.run(options.seed, replications, votes), images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--factor", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--votes", type=Path, nargs="+", default=[])
    options = parser.parse_args()
    images = ROOT / "docs" / "images"
    sections = [
        section(e.run(options.seed, e.replications * options.factor), images)
        for e in (EXPERIMENTS[name] for name in NAMES)
    ]
    out = ROOT / "docs" / "tables" / "simulations.md"
    sections.append(f"{BEGIN}\n{semi_real(options, images, out)}\n{END}")
    head = HEAD.format(factor=options.factor, seed=options.seed)
    out.write_text("\n\n".join([head.strip(), *sections]) + "\n", encoding="utf-8")
    print(f"wrote {out.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
