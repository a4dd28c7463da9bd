"""Writes docs/tables/calibration.md: what labels are worth on every labelled panel of a folder.

    python docs/tables/calibration.py DATA [--only NAME ...] [--splits 10] [--budgets 50,100,200]
    python docs/tables/calibration.py DATA --cold-start --budgets 16,64 --splits 6

DATA holds files that end in .votes.jsonl.gz. Figures are kept in calibration.json beside this file,
panel by panel, so that a slice (``--only``) can be made anew without the rest; no vote is in it.
The summary in docs/statistics.md is written too.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from calibration_page import write

from clash.analysis.calibration.frame import ScoreFrame
from clash.analysis.calibration.study import CalibrationStudy, study
from clash.stats.resample import RepeatMean
from clash.stats.selection import blocks
from clash.stats.selection.candidate_methods import SelectionSettings
from clash.stats.selection.families import FAMILIES, MENU
from clash.stats.selection.metrics import Metrics
from clash.stats.selection.prior import experience, pool_experience, prior_of_task
from clash.stats.selection.selector import evaluate
from clash.votes import read_votes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.panel import PanelVotes
    from clash.stats.selection.selector import SplitOutcome

HERE = Path(__file__).resolve().parent
KEPT = HERE / "calibration.json"
PANELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llmbar-casestudy, Vanilla": (
        "llmbar-casestudy",
        {"judges": "*/Vanilla", "presentation": "orig"},
    ),
    "llmbar-casestudy": ("llmbar-casestudy", {"presentation": "orig"}),
    "llmbar-processed": ("llmbar-processed", {"presentation": "orig"}),
    "rb2-replicates, one sample": ("rb2-replicates", {"judges": "*#s0"}),
    "rb2-replicates, near-copies": ("rb2-replicates", {"judges": "gpt-5.4-nano#*,*#s0"}),
    "ta-feedback": ("ta-feedback", {}),
    "llmfao, decisive": ("llmfao", {"judges": "gpt-*,heuristic*", "decisive": True}),
    "llmfao, ties": ("llmfao", {"judges": "gpt-*,heuristic*"}),
    "pandalm": ("pandalm", {"judges": "gpt-*,PandaLM*,heuristic*"}),
    "arena-claude4": ("arena-claude4", {}),
    "agentclash-mtbench100": ("agentclash-mtbench100", {}),
    "agentclash-arena100": ("agentclash-arena100", {}),
    "amel-llmbar": ("amel-llmbar", {}),
    "mtbench-panel, decisive": ("mtbench-panel", {"decisive": True}),
    "mtbench-panel, ties": ("mtbench-panel", {}),
    "mtbench-human": ("mtbench-human", {}),
    "llm-rubric": ("llm-rubric", {"judges": "gpt-*"}),
}
BUDGETS = (50, 100, 200)
TRAIN = 0.75
MOST_COLD = 9
"""Judges of a panel in the cold-start table, which fits everything seven times."""


def figures(values: dict[str, RepeatMean]) -> dict[str, list[float]]:
    """Mean and standard error by metric."""
    return {name: [values[name].mean, values[name].se] for name in Metrics.names()}


def chosen(outcome: SplitOutcome, kinds: Sequence[str], *, is_whole: bool = False) -> float:
    """Test squared error of the candidate of these kinds that validation likes best."""
    menu = outcome.choice.candidates
    most = max(c.k for c in menu)
    places = [
        i
        for i, c in enumerate(menu)
        if FAMILIES[c.family].kind in kinds and (c.k == most or not is_whole)
    ]
    best_place = outcome.choice.best_of(places)
    return float("nan") if best_place is None else float(outcome.risks[best_place])


def against(outcomes: Sequence[SplitOutcome]) -> dict[str, list[float]]:
    """Scalar families against the table, at their own prefix and at the whole panel."""
    groups = {"table": ("table",), "scalar": ("scalar",), "full": ("table", "scalar", "middle")}
    figures = {
        f"{name}{' K=all' if is_whole else ''}": [
            chosen(o, kinds, is_whole=is_whole) for o in outcomes
        ]
        for name, kinds in groups.items()
        for is_whole in (True, False)
    }
    figures["gap"] = list(np.subtract(figures["table"], figures["scalar"]))
    return {name: [RepeatMean.of(x).mean, RepeatMean.of(x).se] for name, x in figures.items()}


def at(votes: Any, labels: int, splits: int, jobs: int) -> tuple[CalibrationStudy, dict[str, Any]]:
    """The figures of one budget."""
    study_result = study(
        votes, plan=blocks.SplitPlan(labels=labels), splits=splits, seed=1, jobs=jobs
    )
    return study_result, {
        "selected": {
            **figures(study_result.test),
            "ece": [study_result.reliability.ece, study_result.test["ece"].se],
        },
        "error": [
            getattr(study_result.calibration_error, end) for end in ("estimate", "low", "high")
        ],
        "chance": study_result.chance_ece,
        "majority": figures(study_result.majority),
        "gain": [study_result.gain.estimate, study_result.gain.low, study_result.gain.high],
        "oracle": [study_result.oracle.mean, study_result.oracle.se],
        "against": against(study_result.outcomes),
    }


def measured(
    file: Path, filters: dict[str, Any], splits: int, budgets: Sequence[int], jobs: int
) -> Any:
    """Everything of a panel: each budget, and family by family at the largest."""
    votes = read_votes(file, **filters)
    most = int(TRAIN * len(np.unique(votes.groups[votes.labelled])))
    curve: dict[str, Any] = {}
    for labels in [*(n for n in budgets if n < 0.8 * most), most]:
        results, curve[str(labels)] = at(votes, labels, splits, jobs)
    return {
        "target": results.frame.target,
        "judges": len(results.frame.judges),
        "labelled": results.n_labelled,
        "sources": results.n_groups,
        "splits": splits,
        "curve": curve,
        "families": {
            line.family: {"k": line.k, "weight": line.share, **figures(line.figures)}
            for line in results.families
        },
    }


def cold(panels: dict[str, PanelVotes], labels: int, splits: int) -> dict[str, Any]:
    """Appendix C.2: each panel in turn is the new task, the others are what went before."""
    experience_tables = {
        name: experience(panel, labels, np.random.default_rng([7, labels]))
        for name, panel in panels.items()
    }
    out = {}
    for name, panel in panels.items():
        other_panels = [
            record
            for alternative, record in experience_tables.items()
            if family_of(alternative) != family_of(name)
        ]
        earlier = pool_experience(other_panels, np.random.default_rng(7))
        out[name] = {"prior": earlier.family, **_ways(panel, labels, splits, earlier.weights)}
    return out


def family_of(name: str) -> str:
    """Panels of one file are one task."""
    return name.partition(",")[0].partition("-")[0]


def _ways(panel: PanelVotes, labels: int, splits: int, earlier: Any) -> dict[str, list[float]]:
    families = tuple(name for name in MENU if name != "ising-temperature")
    sizes = tuple(sorted({1, 2, 3, 5, panel.n_judges}))
    base = SelectionSettings(rules=("information-first",), sizes=sizes, families=families)
    task = prior_of_task(panel.target).weights
    ways = {
        "task prior": _with(base, combine="one", prior=task, guard=np.inf),
        "pooled prior": _with(base, combine="one", prior=earlier, guard=np.inf),
        "naive": _with(base, combine="one", guard=-np.inf),
        "guarded, task": _with(base, combine="one", prior=task),
        "guarded, pooled": _with(base, combine="one", prior=earlier),
        "average": base,
        "average, pooled": _with(base, prior=earlier),
    }
    losses_by_way: dict[str, list[float]] = {name: [] for name in ("majority", *ways)}
    for i in range(splits):
        split = blocks.split(panel, blocks.SplitPlan(labels=labels), np.random.default_rng([8, i]))
        for name, settings in ways.items():
            outcome = evaluate(panel, split, settings, np.random.default_rng([9, i]))
            losses_by_way[name].append(outcome.test.mse)
        losses_by_way["majority"].append(outcome.majority.mse)
    return {name: [RepeatMean.of(x).mean, RepeatMean.of(x).se] for name, x in losses_by_way.items()}


def _with(settings: SelectionSettings, **changes: Any) -> SelectionSettings:
    from dataclasses import replace

    return replace(settings, **changes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(PANELS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--budgets", type=lambda s: tuple(map(int, s.split(","))), default=BUDGETS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cold-start", action="store_true")
    options = parser.parse_args()
    results: dict[str, Any] = {"panels": {}, "cold": {}}
    if KEPT.exists():
        results = json.loads(KEPT.read_text(encoding="utf-8"))
    if options.cold_start:
        for labels in options.budgets:
            results["cold"][str(labels)] = _cold(options.data, labels, options.splits)
    for name in [] if options.cold_start else options.only or list(PANELS):
        stem, filters = PANELS[name]
        began = time.monotonic()
        (file,) = sorted(options.data.glob(f"{stem}*.votes.jsonl*"))
        results["panels"][name] = measured(
            file, filters, options.splits, options.budgets, options.jobs
        )
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
        _keep(results)
    _keep(results)
    write(results, list(PANELS))


def _cold(data: Path, labels: int, splits: int) -> dict[str, Any]:
    """Panels of two sides and few judges."""
    panels = {}
    for name, (stem, filters) in PANELS.items():
        (file,) = sorted(data.glob(f"{stem}*.votes.jsonl*"))
        votes = read_votes(file, **filters)
        frame = ScoreFrame.of(votes)
        if frame.target == "binary" and len(frame.judges) <= MOST_COLD:
            panels[name] = frame.panel(votes)
    return cold(panels, labels, splits)


def _keep(results: dict[str, Any]) -> None:
    """A line for each panel, so that a slice made anew is a line that differs."""
    lines = []
    for kind, panels in results.items():
        inside = [f"{json.dumps(k)}: {json.dumps(_rounded(v))}" for k, v in panels.items()]
        lines.append(f"{json.dumps(kind)}: {{\n" + ",\n".join(inside) + "\n}")
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return None if np.isnan(value) else round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
