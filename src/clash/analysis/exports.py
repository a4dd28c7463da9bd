"""A run as files that other programs read: votes, verdicts, judgments."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from clash.analysis.rundata import RunData
from clash.errors import InputError, MissingPackageError
from clash.escape import for_csv
from clash.extras import require
from clash.files import run_files
from clash.store import layout
from clash.votes.blinding_index import unblind
from clash.votes.from_run import vote_rows
from clash.votes.text_labels import text_truth
from clash.votes.write import pack_votes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clash.records import Judgment
    from clash.store.folder import RunFolder

Format = Literal["votes", "csv", "parquet"]
_NAMES: dict[Format, str] = {
    "votes": layout.VOTES,
    "csv": layout.VERDICTS_CSV,
    "parquet": layout.JUDGMENTS_PARQUET,
}


@dataclass(frozen=True)
class ExportedFile:
    """What was exported."""

    path: Path
    rows: int


def write(
    folder: RunFolder,
    form: Format,
    to: Path | None = None,
    *,
    observers: bool = False,
    use_labels: bool = True,
) -> ExportedFile:
    """Export a run.

    Args:
        folder: the run.
        form: votes (a line for each judge and pair of candidates), verdicts as CSV, or judgments
            as Parquet.
        to: the file; null puts it into the run folder, ``-`` on stdout (votes and CSV).
        observers: the observers' judgments too.
        use_labels: labels beside the votes and verdicts that have one.

    Raises:
        InputError: Parquet on stdout, or a file that may not be written.
    """
    if form == "parquet" and str(to) == "-":
        raise InputError("Parquet cannot be written to stdout", field="--to", hint="name a file")
    path = to or folder.path / _NAMES[form]
    data, rows = _export_bytes(folder, form, path, observers=observers, use_labels=use_labels)
    if str(to) == "-":
        _print(data)
    elif to is None:
        run_files.replace(path, data)
    else:
        _write(path, data)
    return ExportedFile(path, rows)


def outdated_exports(folder: RunFolder) -> Iterator[str]:
    """A sentence on each export in a run folder that an export of today would not write.

    An export may be older than the labels, or hold the observers too, which is not noted anywhere.
    One that cannot be compared, because the package that writes it is missing, is named too.
    """
    for form, name in _NAMES.items():
        path = folder.path / name
        if not run_files.is_file(path):
            continue
        try:
            is_current = _is_current(folder, form, path)
        except MissingPackageError as error:
            yield f"{name} is not compared: {error.message} ({error.hint})"
            continue
        if not is_current:
            yield f"{name} differs from what `clash export` writes now"


def _is_current(folder: RunFolder, form: Format, path: Path) -> bool:
    for observers, use_labels in product((False, True), (True, False)):
        data, _ = _export_bytes(folder, form, path, observers=observers, use_labels=use_labels)
        if path.lstat().st_size == len(data) and run_files.read(path, most=len(data)) == data:
            return True
    return False


def _export_bytes(
    folder: RunFolder, form: Format, path: Path, *, observers: bool, use_labels: bool
) -> tuple[bytes, int]:
    """The bytes of a file, and how many rows it has."""
    match form:
        case "votes":
            rows = list(vote_rows(folder, observers=observers))
            if not use_labels:
                rows = [replace(row, label=None) for row in rows]
            return pack_votes(rows, path), len(rows)
        case "csv":
            return _csv(RunData.load(folder), use_labels=use_labels)
        case "parquet":
            return _parquet(RunData.load(folder), observers=observers)


def _print(data: bytes) -> None:
    """Put a file on stdout as it is, whatever the encoding of stdout is."""
    if (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8":
        sys.stdout.write(data.decode())
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _write(path: Path, data: bytes) -> None:
    """Write a file that a user named, which may be a pipe or a link of theirs."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", path=path) from None


def _csv(run: RunData, *, use_labels: bool) -> tuple[bytes, int]:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    if run.text_votes is not None:
        writer.writerows(_text_lines(run, use_labels=use_labels))
        return out.getvalue().encode(), len(run.verdicts)
    head = ["item", "winner", "ranking", "confidence", "unanimous", "split", "abstained", "label"]
    writer.writerow(head)
    for verdict in run.verdicts:
        ranking = " > ".join(" = ".join(group) for group in verdict.ranking or [])
        winner = verdict.winner or ("tie" if verdict.ranking else "")
        label = run.truth.get(verdict.item_id, "") if use_labels else ""
        details = [verdict.confidence, verdict.unanimous, verdict.split, verdict.abstained]
        cells = [verdict.item_id, winner, ranking, *details, label]
        writer.writerow([for_csv(cell) if isinstance(cell, str) else cell for cell in cells])
    return out.getvalue().encode(), len(run.verdicts)


def _text_lines(run: RunData, *, use_labels: bool) -> Iterator[list[object]]:
    """The verdicts on single texts, a line each, after the names of the columns."""
    names = ["item", "candidate", "outcome", "passed", "confidence", "unanimous", "split"]
    yield [*names, "abstained", "label"]
    for verdict in run.verdicts:
        opinions = run.people_votes.get((verdict.item_id, verdict.candidate or ""), {})
        people = text_truth(opinions) if use_labels else None
        outcome = verdict.label if verdict.score is None else verdict.score
        cells = [verdict.item_id, verdict.candidate, outcome, verdict.passed, verdict.confidence]
        cells += [verdict.unanimous, verdict.split, verdict.abstained, people]
        yield [for_csv(cell) if isinstance(cell, str) else cell for cell in cells]


def _parquet(run: RunData, *, observers: bool) -> tuple[bytes, int]:
    require("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(_judgments(run, observers=observers))
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue(), len(rows)


def _judgments(run: RunData, *, observers: bool) -> Iterator[dict[str, Any]]:
    """A row for each judgment and candidate it is of."""
    for judgment in run.judgments:
        if judgment.role != "voting" and not observers:
            continue
        labels = run.blinds.labels(judgment)
        ranks = {
            name: position
            for position, group in enumerate(unblind(judgment, labels) or [], start=1)
            for name in group
        }
        for label, candidate in labels.items():
            scores = judgment.scores.get(label, {})
            yield {
                "item": judgment.item_id,
                "presentation": judgment.presentation,
                "judge": judgment.judge,
                "role": judgment.role,
                "weight": judgment.weight,
                "candidate": candidate,
                "label": label,
                "place": ranks.get(candidate),
                "mean_score": sum(scores.values()) / len(scores) if scores else None,
                "parse": judgment.parse,
                "error": judgment.error,
                **({} if run.text_votes is None else {"vote": _vote(judgment)}),
            }


def _vote(judgment: Judgment) -> str | None:
    """A label or a score as text: a column has one type."""
    return None if judgment.vote is None else str(judgment.vote)
