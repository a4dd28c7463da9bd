"""The names of single texts, and what people say of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clash.config import JudgingConfig
    from clash.records import Item, Label

TextKey = tuple[str, str]
"""Item and candidate."""


def text_names(texts: Iterable[TextKey]) -> dict[TextKey, str]:
    """The name of each text in votes and reports: its item, with the candidate where it has several."""
    keys = list(texts)
    sizes = Counter(item_id for item_id, _ in keys)
    return {
        (item_id, name): item_id if sizes[item_id] == 1 else f"{item_id}#{name}"
        for item_id, name in keys
    }


def people_votes(
    texts: Sequence[TextKey], items: Iterable[Item], labels: Iterable[Label], judging: JudgingConfig
) -> dict[TextKey, dict[str, str | float]]:
    """What each person says of each labelled text: people's own labels, else those of the file.

    A label without a candidate is of the item's only text. What no judge could say is left out.
    """
    keys, sole = set(texts), dict(texts)
    sizes = Counter(item_id for item_id, _ in texts)
    opinions: dict[TextKey, dict[str, str | float]] = defaultdict(dict)
    for record in labels:
        vote = None if record.vote is None else judging.outcome(record.vote)
        name = record.candidate or (
            sole.get(record.item_id) if sizes[record.item_id] == 1 else None
        )
        if vote is not None and name is not None and (record.item_id, name) in keys:
            opinions[record.item_id, name][record.annotator] = vote
    for item in items:
        in_file = dict(item.text_labels or {})
        if item.label is not None and sizes[item.item_id] == 1:
            in_file.setdefault(sole[item.item_id], item.label)
        for name, label in in_file.items():
            vote = judging.outcome(label)
            key = item.item_id, name
            if vote is not None and key in keys and key not in opinions:
                opinions[key] = {"": vote}
    return dict(opinions)


def text_truth(opinions: Mapping[str, str | float]) -> str | float | None:
    """What people say of a text: the label of most, null where two are level; the mean score."""
    values = list(opinions.values())
    scores = [value for value in values if isinstance(value, float)]
    if scores:
        return sum(scores) / len(scores)
    counts = Counter(values).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]
