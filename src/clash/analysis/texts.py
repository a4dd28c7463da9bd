"""The responses behind votes: of a run, or from a file of pairs beside them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from clash.documents import read_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from clash.analysis.rundata import RunData


@dataclass(frozen=True)
class Texts:
    """The two responses of a row of votes, first side first."""

    first: str
    second: str


def run_texts(run: RunData) -> dict[str, Texts]:
    """The responses behind the rows of a run's votes, named as these are; two blank ones are none."""
    texts_by_row = {}
    for item_id, by_candidate in run.texts.items():
        names = sorted(by_candidate)
        for a, b in combinations(names, 2):
            if not (by_candidate[a].strip() or by_candidate[b].strip()):
                continue
            row = item_id if len(names) == 2 else f"{item_id}#{a}|{b}"
            texts_by_row[row] = Texts(by_candidate[a], by_candidate[b])
    return texts_by_row


def read_pairs(path: Path) -> dict[str, Texts]:
    """The responses of a pairs file (JSONL, plain or .gz), by item id and by ``subset/id``.

    Raises:
        InputError: no such file, or a line without ``item_id``, ``response_a``, ``response_b``.
    """
    texts_by_row = {}
    for record in read_jsonl(path):
        pair = record.value
        if not {"response_a", "response_b"} <= pair.keys():
            raise record.error(
                "is not a pair of responses",
                hint='a line is {"item_id": …, "response_a": …, "response_b": …}',
            )
        texts = Texts(str(pair["response_a"]), str(pair["response_b"]))
        name = str(pair.get("item_id", pair.get("item")))
        texts_by_row[name] = texts
        if pair.get("subset") is not None:
            texts_by_row[f"{pair['subset']}/{name}"] = texts
    return texts_by_row
