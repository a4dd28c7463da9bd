"""The files of a run folder, and the record on each of their lines."""

from __future__ import annotations

from clash.records import (
    Batch,
    Blinding,
    Call,
    Criteria,
    Item,
    Judgment,
    Label,
    PoolItem,
    Record,
    Reservation,
    Response,
    Verdict,
)

MANIFEST = "manifest.json"
ITEMS = "items.jsonl"
RESPONSES = "responses.jsonl"
BLINDING = "blinding.jsonl"
CRITERIA = "criteria.jsonl"
CALLS = "calls.jsonl"
JUDGMENTS = "judgments.jsonl"
VERDICTS = "verdicts.jsonl"
LABELS = "labels.jsonl"
PACKED_CALLS = "calls.jsonl.zst"
"""Older lines of the calls, in a run that compresses them."""
RESERVATIONS = "reservations.jsonl"
BATCHES = "batches.jsonl"
POOL = "pool.jsonl"
REPORT_JSON = "report.json"
REPORT_MD = "report.md"
REPORT_HTML = "report.html"
REPORT_DATA = "report.data.html"
"""The items of a report that is too large for a single page."""
PUBLISHED_VERDICTS = "published.jsonl"
"""In a converted run: what the original tool said of each item."""
RETEST_JSON = "retest.json"
RETEST_MD = "retest.md"
"""A rerun compared with its parent and siblings; written after the seal, as it covers other runs."""
VOTES = "votes.jsonl"
VERDICTS_CSV = "verdicts.csv"
JUDGMENTS_PARQUET = "judgments.parquet"
SIGNATURE = "manifest.json.sig"
"""An SSH signature over the manifest."""
LOCK = ".lock"

RECORDS: dict[str, type[Record]] = {
    ITEMS: Item,
    RESPONSES: Response,
    BLINDING: Blinding,
    CRITERIA: Criteria,
    CALLS: Call,
    RESERVATIONS: Reservation,
    BATCHES: Batch,
    JUDGMENTS: Judgment,
    VERDICTS: Verdict,
    LABELS: Label,
    POOL: PoolItem,
}

FILE_OF = {model: name for name, model in RECORDS.items()}
"""The file of each kind of record."""

COLLECTED_FILES = (ITEMS, RESPONSES, BLINDING, CRITERIA, CALLS, RESERVATIONS, JUDGMENTS)
"""Written while a run is in progress; sealed when it ends."""

OPTIONAL_FILES = (POOL, BATCHES)
"""Written by some runs only; sealed when the run ends."""

DERIVED_FILES = (VERDICTS, REPORT_JSON, REPORT_MD, REPORT_HTML, REPORT_DATA)
"""Can be recomputed from the collected files and the labels at any time."""

SEALED_FILES = (*COLLECTED_FILES, *OPTIONAL_FILES, *DERIVED_FILES, LABELS, PUBLISHED_VERDICTS)
"""Covered by the seal, as far as they exist; labels may grow after it."""

EXPORT_FILES = (VOTES, VERDICTS_CSV, JUDGMENTS_PARQUET)
"""Written by ``clash export`` at any time; never sealed."""

KNOWN_FILES = frozenset(
    {
        *RECORDS,
        *DERIVED_FILES,
        *EXPORT_FILES,
        MANIFEST,
        PUBLISHED_VERDICTS,
        RETEST_JSON,
        RETEST_MD,
        SIGNATURE,
        PACKED_CALLS,
        LOCK,
    }
)
"""Every file name that clash uses in a run folder; anything else does not belong to the run."""
