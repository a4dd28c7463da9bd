"""Sets that several annotators judged: PandaLM (three on pairs), SummEval (experts' scores).

Schemas: PandaLM's ``testset-v1.json`` (``idx``, ``motivation_app``, ``cmp_key`` as
``model1_model2``, ``instruction``, ``input``, ``response1``, ``response2``, ``annotator1`` to
``annotator3``: 0 tie, 1, 2); ``mteb/summeval`` (``id``, ``text``, ``machine_summaries`` and, one
for each, ``relevance``, ``coherence``, ``fluency``, ``consistency``: experts' means, 1 to 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.datasets.pairs import Builder, Dataset, majority
from clash.datasets.pairs import names as distinct
from clash.labels import TIE
from clash.records import Label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clash.datasets.tables import Row

PANDALM = frozenset({"instruction", "response1", "response2", "annotator1"})
SUMMEVAL = frozenset({"text", "machine_summaries", "coherence", "consistency"})
_DIMENSIONS = ("relevance", "coherence", "fluency", "consistency")


def read_pandalm(rows: Iterable[Row], builder: Builder) -> Dataset:
    """PandaLM; the label is the majority of the annotators.

    Raises:
        InputError: a record is not of this schema.
    """
    for row in rows:
        item_id = f"panda-{int(row.text('idx')):04d}"
        parts = (row.optional("cmp_key") or "").split("_")
        models = distinct(parts if len(parts) == 2 else [None, None])
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
    return builder.build()


def _votes(row: Row, models: list[str]) -> Iterator[str]:
    said = {"0": TIE, "1": models[0], "2": models[1]}
    for number in range(1, 10):
        vote = row.optional(f"annotator{number}")
        if vote is None:
            return
        if vote not in said:
            raise row.error(f"expected 0, 1 or 2, found {vote!r}", f"annotator{number}")
        yield said[vote]


def read_summeval(rows: Iterable[Row], builder: Builder) -> Dataset:
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
        for one in range(0, len(summaries) - 1, 2):
            pair = {f"system-{n + 1:02d}": summaries[n] for n in (one, one + 1)}
            first, second = pair
            gap = means[one] - means[one + 1]
            label = first if gap > 0 else second if gap < 0 else TIE
            item_id = f"{row.text('id')}-{one + 1:02d}"
            builder.add(
                row,
                item_id,
                f"Summarize the following text.\n\n{row.text('text')}",
                pair,
                label=label,
                labels=[Label(item_id=item_id, annotator="experts", winner=label)],
                group=row.text("id"),
            )
    return builder.build("systems are named by their place in the file's list of summaries")


def _means(row: Row) -> list[float]:
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
