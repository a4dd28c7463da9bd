"""The counts of a manifest, which follow from its records."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from clash.analysis.coverage import ResponseText
from clash.store.stored import parts
from clash.votes.ballots import outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.rundata import RunData


def count_records(run: RunData) -> dict[str, int]:
    """How many of each there are in the whole run, control items included."""
    halves = [run] if run.controls is None else [run, run.controls]
    judgments = Counter(
        (j.role == "voting", j.is_usable) for half in halves for j in outcomes(half.judgments)
    )
    return {
        "items": sum(len(half.items) for half in halves),
        "responses": sum(
            r.text is not None for half in halves for r in parts(half.responses, ResponseText)
        ),
        "judgments": judgments.total(),
        "voting_expected": sum(half.n_voting_pages for half in halves),
        "voting_usable": judgments[True, True],
        "verdicts": sum(v.is_decided for half in halves for v in half.verdicts),
        "calls": sum(use.calls for use in run.usage.values()),
        "attempts": sum(use.attempts for use in run.usage.values()),
    }


def too_many_failed(run: RunData, counts: Mapping[str, int]) -> bool:
    """Whether more voting judgments are missing than the run allows."""
    allowance = float(run.manifest.config["limits"]["max_failed"])
    missing = 1 - counts["voting_usable"] / max(1, counts["voting_expected"])
    return missing > allowance + 1e-12
