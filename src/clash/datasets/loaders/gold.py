"""Sets with a right answer by construction: RewardBench 1 and 2, LLMBar, JudgeBench.

Schemas: ``allenai/reward-bench`` (``prompt``, ``chosen``, ``rejected``, ``chosen_model``,
``rejected_model``, ``subset``, ``id``); ``allenai/reward-bench-2`` (``id``, ``prompt``, lists
``chosen`` and ``rejected``, ``num_correct``, ``subset``); ``princeton-nlp/LLMBar`` (``input``,
``output_1``, ``output_2``, ``label`` 1 or 2); ``ScalerLab/JudgeBench`` (``pair_id``, ``source``,
``question``, ``response_model``, ``response_A``, ``response_B``, ``label`` as ``A>B``).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clash.datasets.pairs import Builder, Dataset
from clash.datasets.pairs import names as distinct
from clash.records import Label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clash.datasets.tables import Row

REWARDBENCH = frozenset({"prompt", "chosen", "rejected", "chosen_model", "rejected_model"})
REWARDBENCH_2 = frozenset({"prompt", "chosen", "rejected", "num_correct"})
LLMBAR = frozenset({"input", "output_1", "output_2", "label"})
JUDGEBENCH = frozenset({"pair_id", "question", "response_A", "response_B", "label"})


def read_rewardbench(rows: Iterable[Row], builder: Builder) -> Dataset:
    """RewardBench: the chosen and the rejected response, in an order that does not tell which.

    Raises:
        InputError: a record is not of this schema.
    """
    for row in rows:
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
    return builder.build()


def read_rewardbench_2(rows: Iterable[Row], builder: Builder) -> Dataset:
    """RewardBench 2: one right response among four. Rows with several right ones are left out.

    Raises:
        InputError: a record is not of this schema.
    """
    for row in rows:
        item_id, chosen, rejected = row.text("id"), row.get("chosen"), row.get("rejected")
        if not isinstance(chosen, list) or not isinstance(rejected, list) or not rejected:
            raise row.error("expected lists of responses", "chosen")
        if len(chosen) != 1:
            builder.exclude(item_id, "several right responses, so no single winner")
            continue
        texts = [*chosen, *rejected]
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
    return builder.build()


def read_llmbar(rows: Iterable[Row], builder: Builder) -> Dataset:
    """LLMBar; the subset is the name of the folder.

    Raises:
        InputError: a record is not of this schema.
    """
    for row in rows:
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
    return builder.build()


def read_judgebench(rows: Iterable[Row], builder: Builder) -> Dataset:
    """JudgeBench: two responses of one model, of which one is right.

    Raises:
        InputError: a record is not of this schema.
    """
    for row in rows:
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
    return builder.build()


def _add(
    builder: Builder,
    row: Row,
    item_id: str,
    prompt: str,
    texts: Sequence[str | None],
    *,
    models: Sequence[str | None],
    right: int,
    tag: str,
    shuffle: bool = False,
) -> None:
    places = range(len(texts))
    order = sorted(places, key=lambda i: _hash(item_id, i)) if shuffle else list(places)
    called = distinct([models[i] for i in order])
    label = called[order.index(right)]
    builder.add(
        row,
        item_id,
        prompt,
        dict(zip(called, (texts[i] for i in order), strict=True)),
        label=label,
        labels=[Label(item_id=item_id, annotator="gold", winner=label)],
        tags=[tag],
    )


def _hash(item_id: str, place: int) -> bytes:
    return hashlib.sha256(f"{item_id}\x1f{place}".encode()).digest()
