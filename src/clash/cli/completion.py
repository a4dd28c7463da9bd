"""What a shell completes beside commands and options: runs, panels, data sets and methods.

A shell waits for these, so each imports no more than it needs, and none of them fails.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from clash.escape import for_terminal

_MOST = 200


def complete_runs(incomplete: str) -> list[str]:
    """Ids of the runs in the folder of runs, newest first, and ``latest``."""
    from clash.store import layout

    folder = Path(os.environ.get("CLASH_OUT") or "runs")
    runs: list[tuple[float, str]] = []
    with suppress(OSError):
        runs += (
            (path.stat().st_mtime, path.name)
            for path in folder.iterdir()
            # A name from a stranger's folder is shown only where it is plain text.
            if for_terminal(path.name) == path.name and (path / layout.MANIFEST).is_file()
        )
    names = ["latest", *(name for _, name in sorted(runs, reverse=True))]
    return [name for name in names if name.startswith(incomplete)][:_MOST]


def complete_panels(incomplete: str) -> list[str]:
    """Names of the shipped panels."""
    from clash import assets

    return [name for name in assets.panels() if name.startswith(incomplete)]


def complete_datasets(incomplete: str) -> list[str]:
    """Names of the public data sets."""
    from clash.datasets.catalogue import datasets

    return [dataset.name for dataset in datasets() if dataset.name.startswith(incomplete)]


def complete_verdict_methods(incomplete: str) -> list[str]:
    """Methods that decide the verdicts of a run."""
    from typing import get_args

    from clash.config import VerdictMethod

    return [name for name in get_args(VerdictMethod) if name.startswith(incomplete)]


def complete_methods(incomplete: str) -> list[str]:
    """Methods that aggregate votes; of a list, the last one."""
    from clash.analysis.aggregation.methods import method_names
    from clash.analysis.rankings import ranking_names

    before, comma, last = incomplete.rpartition(",")
    names = dict.fromkeys(("all", "rankings", "auto", *method_names(), *ranking_names()))
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]
