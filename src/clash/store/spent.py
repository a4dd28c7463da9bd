"""What calls came to, without what was asked and answered: their file may be too large to parse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from clash.records import Call, Outcome, Purpose
from clash.store import journal, layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.store.folder import RunFolder


class Counted(msgspec.Struct, frozen=True):
    """Tokens of a call; null is unknown."""

    input: int | None = None
    output: int | None = None


class Spent(msgspec.Struct, frozen=True):
    """The part of a :class:`clash.records.Call` that is counted."""

    call_id: str
    attempt: int
    purpose: Purpose
    outcome: Outcome
    model: str = ""
    served_model: str | None = None
    judge: str | None = None
    candidate: str | None = None
    error_class: str | None = None
    tokens: Counted | None = None
    cost_usd: float | None = None
    cost_bound_usd: float | None = None
    usage_doubt: str | None = None
    latency_s: float | None = None
    ttft_s: float | None = None


def spent(folder: RunFolder) -> Iterator[Spent]:
    """Every attempt of every call of a run, one at a time.

    Raises:
        RunFolderError: a line is not a call.
    """
    return journal.read_part(folder.path / layout.CALLS, Spent, Call)
