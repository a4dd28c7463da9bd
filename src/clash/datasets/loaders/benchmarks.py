"""Benchmarks of judges: with a right answer by construction, or with several annotators.

Schemas: ``allenai/reward-bench`` (``prompt``, ``chosen``, ``rejected``, ``chosen_model``,
``rejected_model``, ``subset``, ``id``); ``allenai/reward-bench-2`` (``id``, ``prompt``, lists
``chosen`` and ``rejected``, ``num_correct``, ``subset``); ``princeton-nlp/LLMBar`` (``input``,
``output_1``, ``output_2``, ``label`` 1 or 2); ``ScalerLab/JudgeBench`` (``pair_id``, ``source``,
``question``, ``response_model``, ``response_A``, ``response_B``, ``label`` as ``A>B``).

With annotators: PandaLM's ``testset-v1.json`` (``idx``, ``motivation_app``, ``cmp_key`` as
``model1_model2``, ``instruction``, ``input``, ``response1``, ``response2``, ``annotator1`` to
``annotator3``: 0 tie, 1, 2); ``mteb/summeval`` (``id``, ``text``, ``machine_summaries`` and, one
for each, ``relevance``, ``coherence``, ``fluency``, ``consistency``: experts' means, 1 to 5).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clash.datasets.dataset import Dataset, DatasetBuilder, distinct_names, majority, row_by_row
from clash.labels import TIE
from clash.records import Label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clash.datasets.record_files import SourceRow


REWARDBENCH = frozenset({"prompt", "chosen", "rejected", "chosen_model", "rejected_model"})
REWARDBENCH_2 = frozenset({"prompt", "chosen", "rejected", "num_correct"})
LLMBAR = frozenset({"input", "output_1", "output_2", "label"})
JUDGEBENCH = frozenset({"pair_id", "question", "response_A", "response_B", "label"})


@row_by_row
def read_rewardbench(row: SourceRow, builder: DatasetBuilder) -> None:
    """RewardBench: the chosen and the rejected response, in an order that does not tell which."""
    subset = row.text("subset")
    _add(
        builder,
        row,
        f"{subset}-{row.text('id')}",
        row.text("prompt"),
        [row.verbatim("chosen"), row.verbatim("rejected")],
        models=[row.optional("chosen_model"), row.optional("rejected_model")],
        right=0,
        tag=subset,
        shuffle=True,
    )


@row_by_row
def read_rewardbench_2(row: SourceRow, builder: DatasetBuilder) -> None:
    """RewardBench 2: one right response among four. Rows with several right ones are left out."""
    item_id, better_text, worse_text = row.text("id"), row.get("chosen"), row.get("rejected")
    if not isinstance(better_text, list) or not isinstance(worse_text, list) or not worse_text:
        raise row.error("expected lists of responses", "chosen")
    if len(better_text) != 1:
        builder.exclude(item_id, "several correct responses, so no single winner")
        return
    texts = [*better_text, *worse_text]
    _add(
        builder,
        row,
        item_id,
        row.text("prompt"),
        texts,
        models=[None] * len(texts),
        right=0,
        tag=row.text("subset"),
        shuffle=True,
    )


@row_by_row
def read_llmbar(row: SourceRow, builder: DatasetBuilder) -> None:
    """LLMBar; the subset is the name of the folder."""
    subset, label = row.path.parent.name, row.text("label")
    if label not in ("1", "2"):
        raise row.error(f"expected 1 or 2, found {label!r}", "label")
    _add(
        builder,
        row,
        f"{subset}-{row.number - 1:03d}",
        row.text("input"),
        [row.verbatim("output_1"), row.verbatim("output_2")],
        models=[None, None],
        right=int(label) - 1,
        tag=subset,
    )


@row_by_row
def read_judgebench(row: SourceRow, builder: DatasetBuilder) -> None:
    """JudgeBench: two responses of one model, of which one is right."""
    label = row.text("label")
    if label not in ("A>B", "B>A"):
        raise row.error(f"expected A>B or B>A, found {label!r}", "label")
    _add(
        builder,
        row,
        row.text("pair_id"),
        row.text("question"),
        [row.verbatim("response_A"), row.verbatim("response_B")],
        models=[row.optional("response_model")] * 2,
        right=0 if label == "A>B" else 1,
        tag=row.text("source"),
    )


def _add(
    builder: DatasetBuilder,
    row: SourceRow,
    item_id: str,
    prompt: str,
    texts: Sequence[str | None],
    *,
    models: Sequence[str | None],
    right: int,
    tag: str,
    shuffle: bool = False,
) -> None:
    positions = range(len(texts))
    order = sorted(positions, key=lambda i: _hash(item_id, i)) if shuffle else list(positions)
    names = distinct_names([models[i] for i in order])
    label = names[order.index(right)]
    builder.add(
        row,
        item_id,
        prompt,
        dict(zip(names, (texts[i] for i in order), strict=True)),
        label=label,
        labels=[Label(item_id=item_id, annotator="gold", winner=label)],
        tags=[tag],
    )


def _hash(item_id: str, position: int) -> bytes:
    return hashlib.sha256(f"{item_id}\x1f{position}".encode()).digest()


PANDALM = frozenset({"instruction", "response1", "response2", "annotator1"})
SUMMEVAL = frozenset({"text", "machine_summaries", "coherence", "consistency"})
_DIMENSIONS = ("relevance", "coherence", "fluency", "consistency")


@row_by_row
def read_pandalm(row: SourceRow, builder: DatasetBuilder) -> None:
    """PandaLM; the label is the majority of the annotators."""
    item_id = f"panda-{int(row.text('idx')):04d}"
    parts = (row.optional("cmp_key") or "").split("_")
    models = distinct_names(parts if len(parts) == 2 else [None, None])
    winners = list(_votes(row, models))
    builder.add(
        row,
        item_id,
        "\n\n".join(filter(None, (row.text("instruction"), row.optional("input")))),
        dict(zip(models, (row.verbatim("response1"), row.verbatim("response2")), strict=True)),
        label=majority(winners),
        labels=[
            Label(item_id=item_id, annotator=f"annotator{n}", winner=winner)
            for n, winner in enumerate(winners, start=1)
        ],
        tags=[row.text("motivation_app")],
    )


def _votes(row: SourceRow, models: list[str]) -> Iterator[str]:
    winners = {"0": TIE, "1": models[0], "2": models[1]}
    for number in range(1, 10):
        vote = row.optional(f"annotator{number}")
        if vote is None:
            return
        if vote not in winners:
            raise row.error(f"expected 0, 1 or 2, found {vote!r}", f"annotator{number}")
        yield winners[vote]


def read_summeval(rows: Iterable[SourceRow], builder: DatasetBuilder) -> Dataset:
    """SummEval as pairs of summaries: a text's first with its second, its third with its fourth.

    Each summary stands in one pair, so that no summary counts twice. The better one has the
    higher mean of the four dimensions; equal means are a tie.

    Raises:
        InputError: a record is not of this schema.
    """
    for row in rows:
        summaries, means = row.get("machine_summaries"), _means(row)
        if not isinstance(summaries, list) or len(summaries) != len(means):
            raise row.error("expected as many scores as summaries", "machine_summaries")
        for at in range(0, len(summaries) - 1, 2):
            pair = {f"system-{n + 1:02d}": summaries[n] for n in (at, at + 1)}
            first, second = pair
            gap = means[at] - means[at + 1]
            label = first if gap > 0 else second if gap < 0 else TIE
            item_id = f"{row.text('id')}-{at + 1:02d}"
            builder.add(
                row,
                item_id,
                f"Summarize the following text.\n\n{row.text('text')}",
                pair,
                label=label,
                labels=[Label(item_id=item_id, annotator="experts", winner=label)],
                group=row.text("id"),
            )
    return builder.build("systems are named by their position in the file's list of summaries")


def _means(row: SourceRow) -> list[float]:
    columns = []
    for name in _DIMENSIONS:
        scores = row.get(name)
        if not isinstance(scores, list) or not all(isinstance(s, int | float) for s in scores):
            raise row.error("expected a list of numbers", name)
        columns.append([float(score) for score in scores])
    if len({len(column) for column in columns}) != 1:
        raise row.error("the dimensions differ in length", _DIMENSIONS[0])
    # Rounded because the sources are means of whole numbers: 1/3 + 2/3 must equal 1.
    return [round(sum(scores) / len(scores), 9) for scores in zip(*columns, strict=True)]
