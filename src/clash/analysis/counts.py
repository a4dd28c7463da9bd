"""The counts of a manifest, which follow from its records."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.rundata import RunData


def count_records(run: RunData) -> dict[str, int]:
    """How many of each there are in the whole run, control items included."""
    parts = [run] if run.controls is None else [run, run.controls]
    judgments = Counter((j.role == "voting", j.is_usable) for part in parts for j in part.judgments)
    return {
        "items": sum(len(part.items) for part in parts),
        "responses": sum(r.text is not None for part in parts for r in part.responses),
        "judgments": judgments.total(),
        "voting_expected": sum(part.n_voting_pages for part in parts),
        "voting_usable": judgments[True, True],
        "verdicts": sum(v.is_decided for part in parts for v in part.verdicts),
        "calls": sum(use.calls for use in run.usage.values()),
        "attempts": sum(use.attempts for use in run.usage.values()),
    }


def too_many_failed(run: RunData, counts: Mapping[str, int]) -> bool:
    """Whether more voting judgments are missing than the run allows."""
    allowance = float(run.manifest.config["limits"]["max_failed"])
    missing = 1 - counts["voting_usable"] / max(1, counts["voting_expected"])
    return missing > allowance + 1e-12
