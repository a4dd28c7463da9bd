"""Texts that people labelled one by one: the three tasks of the Ising paper.

Schemas: ``microsoft/wiki_qa`` (``question_id``, ``question``, ``answer``, ``label`` 0 or 1: a row for
each sentence); ``test_private_expanded.csv`` of the competition *Jigsaw Unintended Bias in Toxicity
Classification* (``id``, ``comment_text``, ``toxicity``: share of the annotators,
``toxicity_annotator_count``); the summarization benchmark of Arize Phoenix (``document``, ``summary``,
``user_feedback``: true for a good summary).

A data set here has one response for each item, under the name ``response``, or none where the
prompt itself is the text; its label is a class, not a winner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.config import SOLE
from clash.datasets.dataset import row_by_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clash.datasets.dataset import Dataset, DatasetBuilder
    from clash.datasets.record_files import SourceRow

WIKIQA = frozenset({"question_id", "question", "answer", "label"})
JIGSAW = frozenset({"comment_text", "toxicity", "toxicity_annotator_count"})
PHOENIX = frozenset({"document", "summary", "user_feedback"})
FEWEST_ANNOTATORS, FEWEST_CHARS = 5, 100
BUCKETS = ("0-0.25", "0.25-0.5", "0.5-0.75", "0.75-1")
TOXIC_FROM = 0.5
_TRUE, _FALSE = ("1", "1.0", "true", "good"), ("0", "0.0", "false", "bad")


def read_wikiqa(rows: Iterable[SourceRow], builder: DatasetBuilder) -> Dataset:
    """WikiQA as passages (appendix H.1): the sentences of a question, relevant if one answers it.

    Raises:
        InputError: a record is not of this schema.
    """
    first: dict[str, SourceRow] = {}
    sentences: dict[str, list[str]] = {}
    relevant: set[str] = set()
    for row in rows:
        question = row.text("question_id")
        first.setdefault(question, row)
        sentences.setdefault(question, []).append(row.verbatim("answer") or "")
        if _is_true(row, "label"):
            relevant.add(question)
    for question, row in first.items():
        builder.add(
            row,
            question,
            row.text("question"),
            {SOLE: " ".join(text for text in sentences[question] if text.strip())},
            label="relevant" if question in relevant else "irrelevant",
            is_class=True,
        )
    return builder.build()


@row_by_row
def read_jigsaw(row: SourceRow, builder: DatasetBuilder) -> None:
    """Comments with five annotators and 100 characters at least (appendix H.2), tagged by bucket."""
    item_id, text = row.text("id"), row.verbatim("comment_text") or ""
    if _number(row, "toxicity_annotator_count") < FEWEST_ANNOTATORS:
        builder.exclude(item_id, f"fewer than {FEWEST_ANNOTATORS} annotators")
        return
    if len(text) < FEWEST_CHARS:
        builder.exclude(item_id, f"shorter than {FEWEST_CHARS} characters")
        return
    toxicity = _number(row, "toxicity")
    if not 0 <= toxicity <= 1:
        raise row.error(f"expected a share from 0 to 1, found {toxicity:g}", "toxicity")
    builder.add(
        row,
        item_id,
        text,
        {},
        label="toxic" if toxicity >= TOXIC_FROM else "not toxic",
        tags=[BUCKETS[min(int(4 * toxicity), 3)]],
        is_class=True,
    )


@row_by_row
def read_phoenix(row: SourceRow, builder: DatasetBuilder) -> None:
    """Summaries of news texts, right ones and ones with errors put in."""
    builder.add(
        row,
        row.optional("id") or f"summary-{row.number:04d}",
        row.text("document"),
        {SOLE: row.verbatim("summary")},
        label="good" if _is_true(row, "user_feedback") else "bad",
        is_class=True,
    )


@row_by_row
def read_coherence(row: SourceRow, builder: DatasetBuilder) -> None:
    """SummEval one summary at a time, its label the experts' mean coherence from 1 to 5."""
    summaries, scores = row.get("machine_summaries"), row.get("coherence")
    if (
        not isinstance(summaries, list)
        or not isinstance(scores, list)
        or len(summaries) != len(scores)
    ):
        raise row.error("expected a score for each summary", "machine_summaries")
    source = row.text("id")
    for number, (text, score) in enumerate(zip(summaries, scores, strict=True), start=1):
        if not isinstance(score, int | float) or not 1 <= score <= 5:
            raise row.error(f"expected a score from 1 to 5, found {score!r}", "coherence")
        builder.add(
            row,
            f"{source}-{number:02d}",
            row.text("text"),
            {SOLE: text},
            label=f"{round(score, 6):g}",
            group=source,
            is_class=True,
        )


def _is_true(row: SourceRow, field: str) -> bool:
    text = row.text(field).strip().lower()
    if text not in (*_TRUE, *_FALSE):
        raise row.error(f"expected 1 or 0, found {text!r}", field)
    return text in _TRUE


def _number(row: SourceRow, field: str) -> float:
    text = row.text(field)
    try:
        return float(text)
    except ValueError:
        raise row.error(f"expected a number, found {text!r}", field) from None
