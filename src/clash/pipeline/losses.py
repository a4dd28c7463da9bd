"""Whether a run folder still holds what a resumed run cannot make again.

Criteria, responses that a candidate wrote, pages and judgments follow from the calls, so that a
line of theirs that was lost is written again without a call. Items, given responses and calls
follow from nothing else in the folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.errors import RunFolderError
from clash.files import run_files
from clash.store import layout
from clash.store.manifest import seal_file

if TYPE_CHECKING:
    from clash.records import Criteria, Judgment, Response
    from clash.store.folder import RunFolder


def check_inputs(folder: RunFolder) -> None:
    """Refuse to resume a run that lost its inputs.

    Raises:
        RunFolderError: names the file, how much of it is lost, and what can be done.
    """
    counts = folder.manifest().counts
    n_responses = sum(response.source == "injected" for response in folder.responses())
    present = {
        layout.ITEMS: (len(folder.items()), counts.get("items"), "items"),
        layout.RESPONSES: (n_responses, counts.get("injected"), "given responses"),
        layout.POOL: (len(folder.pool()), counts.get("pool"), "items"),
    }
    for name, (number, total, noun) in present.items():
        if total is not None and number < total:
            raise _loss_error(folder, name, f"holds {number} of {total} {noun}")


def check_calls(folder: RunFolder) -> None:
    """Refuse to pay again for answers that no crash can have lost.

    A run that had ended lost none. One that lost its machine may have lost those that were in
    flight in the last moments, and asks them again.

    Raises:
        RunFolderError: as :func:`check_inputs`.
    """
    path, manifest = folder.path / layout.CALLS, folder.manifest()
    number = seal_file(path).lines if run_files.is_file(path) else 0
    seal = manifest.files.get(layout.CALLS)
    if seal is not None and number < seal.lines:
        raise _loss_error(folder, layout.CALLS, f"holds {number} of {seal.lines} calls")
    missing_calls = _named_calls(folder) - {call.call_id for call in folder.call_summaries()}
    in_flight = manifest.config.get("limits", {}).get("concurrency", 0)
    if seal is None and len(missing_calls) > (in_flight if number else 0):
        raise _loss_error(
            folder, layout.CALLS, f"lacks {len(missing_calls)} calls that other files speak of"
        )


def _named_calls(folder: RunFolder) -> set[str]:
    """The calls that responses, criteria and judgments come from."""
    records: tuple[Response | Criteria | Judgment, ...]
    records = (*folder.responses(), *folder.criteria(), *folder.judgments())
    return {record.call_id for record in records if record.call_id is not None}


def _loss_error(folder: RunFolder, name: str, count: str) -> RunFolderError:
    calls = sum(1 for _ in run_files.lines(folder.path / layout.CALLS))
    if calls or name == layout.CALLS:
        hint = f"restore {name} from a copy of the run; do not remove the folder, it holds {calls} calls"
    else:
        hint = "no call was made; remove the folder and start the run again"
    return RunFolderError(f"{folder.path / name}: {count}; the rest is lost\n  fix: {hint}")
