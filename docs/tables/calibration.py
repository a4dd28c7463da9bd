"""Makes the table of docs/calibration.md: calibration on every labelled panel of a data folder.

python docs/tables/calibration.py DATA [--labels 100] [--splits 30] > table.md

DATA holds files that end in .votes.jsonl.gz, or any votes files.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from clash.analysis.calibration.study import Study, study
from clash.analysis.encode import read_votes
from clash.stats.selection.blocks import Plan

PANELS = (
    ("llmbar-casestudy", {"judges": "*/Vanilla", "presentation": "orig"}),
    ("llmbar-casestudy", {"presentation": "orig"}),
    ("llmbar-processed", {"presentation": "orig"}),
    ("rb2-replicates", {"judges": "*#s0"}),
    ("rb2-replicates", {"judges": "gpt-5.4-nano#*,*#s0"}),
    ("ta-feedback", {}),
    ("llmfao", {"judges": "gpt-*,heuristic*", "decisive": True}),
    ("llmfao", {"judges": "gpt-*,heuristic*"}),
    ("pandalm", {"judges": "gpt-*,PandaLM*,heuristic*"}),
    ("arena-claude4", {}),
    ("agentclash-mtbench100", {}),
    ("agentclash-arena100", {}),
    ("amel-llmbar", {}),
    ("mtbench-panel", {}),
    ("mtbench-human", {}),
    ("llm-rubric", {}),
)


def line(name: str, options: dict, found: Study) -> str:
    gain = [100 * x for x in (found.gain.estimate, found.gain.low, found.gain.high)]
    families = [f for f in found.families if f.family != "majority"]
    best = max(families, key=lambda f: f.figures["accuracy"].mean)
    judges = options.get("judges", "all").replace("*", "\\*")
    cells = [
        f"{name} ({judges}{', decisive' if options.get('decisive') else ''})",
        f"{found.frame.target}, {len(found.frame.judges)}",
        f"{found.n_train}",
        f"{100 * found.majority['accuracy'].mean:.1f}",
        f"{100 * found.test['accuracy'].mean:.1f}",
        f"{gain[0]:+.1f} [{gain[1]:+.1f}, {gain[2]:+.1f}]",
        f"{100 * best.figures['accuracy'].mean:.1f} ({best.family})",
        f"{found.majority['nll'].mean:.2f} / {found.test['nll'].mean:.2f}",
        f"{found.test['ece'].mean:.3f} ({found.chance_ece:.3f})",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--labels", type=int)
    parser.add_argument("--folds", type=int)
    parser.add_argument("--splits", type=int, default=30)
    options = parser.parse_args()
    print(
        "| panel (judges) | target, judges | labels | majority % | selected % | gain, points"
        " | best family % | NLL majority / selected | ECE (by chance) |"
    )
    print("| --- | --- | ---: | ---: | ---: | --- | --- | --- | --- |", flush=True)
    for name, filters in PANELS:
        for file in sorted(options.data.glob(f"{name}*.gz")):
            found = study(
                read_votes(file, **filters),
                plan=Plan(labels=options.labels),
                splits=options.splits,
                folds=options.folds,
                seed=1,
                jobs=1,
            )
            print(line(name, filters, found), flush=True)


if __name__ == "__main__":
    sys.exit(main())
