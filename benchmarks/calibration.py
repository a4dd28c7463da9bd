"""How long `clash calibrate` takes: the whole menu on 2000 items, over splits, by processes.

    python benchmarks/calibration.py [--items 2000] [--judges 7] [--splits 30] [--jobs 1,2]

The menu is 4 paths x 7 prefixes x every family, chosen in five rotations and refitted in each
split. Votes are drawn by a fixed seed; a tenth are ties or missing, so that patterns are many. CPU
time is that of all processes, their start included; wall time depends on what else runs, and the
load is printed beside it.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np

from clash.analysis.calibration.study import study
from clash.stats.selection.candidate_methods import SelectionSettings
from clash.stats.selection.families import FAMILIES
from clash.stats.selection.paths import PATH_RULES
from clash.votes import VoteRow, Votes, encode

SIZES = (1, 2, 3, 4, 5, 6, 7)


def votes(items: int, judges: int, target: str, seed: int = 0) -> Votes:
    """A panel of unequal judges that err together on one item in five."""
    rng = np.random.default_rng(seed)
    values = {"binary": (0, 1), "three": ("B", "tie", "A"), "scalar": (1, 2, 3, 4, 5)}[target]
    truth = rng.integers(0, len(values), items)
    hard = rng.random(items) < 0.2
    skill = np.linspace(0.6, 0.85, judges)
    rows = []
    for item in range(items):
        decoy = rng.integers(0, len(values))
        for judge in range(judges):
            right = rng.random() < (0.5 if hard[item] else skill[judge])
            wrong_value = decoy if hard[item] else rng.integers(0, len(values))
            vote = values[truth[item] if right else wrong_value]
            if rng.random() < 0.1:
                vote = "tie" if target == "binary" and rng.random() < 0.5 else None
            rows.append(VoteRow(f"q{item}", f"j{judge}", vote, values[truth[item]]))
    return encode(rows)


def cpu_s() -> float:
    """User and system time of this process and of those it has waited for."""
    usage = [
        resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(record.ru_utime + record.ru_stime for record in usage)


def measure(panel: Votes, splits: int, jobs: int) -> str:
    """A row of the table."""
    load = os.getloadavg()[0]
    cpu, wall = cpu_s(), time.perf_counter()
    study_result = study(
        panel, settings=SelectionSettings(sizes=SIZES), splits=splits, seed=1, jobs=jobs
    )
    wall, cpu = time.perf_counter() - wall, cpu_s() - cpu
    cells = [
        study_result.frame.target,
        jobs,
        splits,
        study_result.n_candidates,
        f"{cpu:.1f}",
        f"{wall:.1f}",
    ]
    return "| " + " | ".join(map(str, [*cells, f"{load:.1f}"])) + " |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--judges", type=int, default=7)
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--targets", default="binary")
    options = parser.parse_args()
    print(
        f"{options.items} items, {options.judges} judges; {len(PATH_RULES)} paths, {len(SIZES)}"
        f" prefixes, {len(FAMILIES)} families\n"
    )
    print("| target | processes | splits | candidates | CPU s | wall s | load before |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for target in options.targets.split(","):
        panel = votes(options.items, options.judges, target)
        for jobs in options.jobs.split(","):
            print(measure(panel, options.splits, int(jobs)), flush=True)


if __name__ == "__main__":
    main()
