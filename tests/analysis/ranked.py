"""A run with three candidates, two judges that vote, both orders, failures and a tie of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.config import Config
from clash.records import Blinding, Item, Judgment, Label, Response
from clash.store.folder import RunFolder, RunWriter
from clash.store.manifest import Manifest

if TYPE_CHECKING:
    from pathlib import Path


def ranked_run(folder: Path) -> RunFolder:
    """The run ``r`` in a folder: a judge failed on one page, an item was judged by nobody."""
    judges = [
        {"id": "j1", "role": "voting", "weight": 2.0, "family": "x", "model": "m1"},
        {"id": "j2", "role": "voting", "weight": 1.0, "family": "y", "model": "m2"},
        {"id": "o", "role": "observer", "weight": 1.0, "family": "z", "model": "m3"},
    ]
    config = Config().model_dump(mode="json")
    config["blinding"]["both_orders"] = True
    panel = {"name": "made", "judges": judges, "quorum": None}
    manifest = Manifest(run="r", kind="eval", config=config, panel=panel)
    rankings = {
        ("q1", 0): {"j1": [["A0"], ["A1"], ["A2"]], "j2": [["A1"], ["A0", "A2"]], "o": [["A2"], ["A1"], ["A0"]]},
        ("q1", 1): {"j1": [["A2"], ["A1"], ["A0"]], "j2": None},
        ("q2", 0): {"j1": [["A0"], ["A1"]], "j2": [["A0"], ["A1"]]},
    }  # fmt: skip
    order = {"q1": "abc", "q2": "ab", "q3": "ab"}
    with RunWriter.create(folder, "r", manifest) as writer:
        for item, names in order.items():
            group = None if item == "q1" else "p"
            writer.append(Item(item_id=item, prompt="?", tags=[item], group=group, label="a"))
            for name in (*names, "never") if item == "q3" else names:
                writer.append(Response(item_id=item, candidate=name, text="…", source="injected"))
            for page, text in enumerate((names, names[::-1])):
                labels = {f"A{i}": name for i, name in enumerate(text)}
                writer.append(Blinding(item_id=item, presentation=page, labels=labels))
        for (item, page), by_judge in rankings.items():
            for judge, ranking in by_judge.items():
                writer.append(
                    Judgment(
                        item_id=item,
                        presentation=page,
                        judge=judge,
                        role="observer" if judge == "o" else "voting",
                        weight=1,
                        ranking=ranking,
                        parse="clean" if ranking else "failed",
                        scores={
                            label: {"Wit": 5 - position}
                            for position, group in enumerate(ranking or [])
                            for label in group
                        },
                    )
                )
        writer.append(Label(item_id="q2", annotator="me", winner="tie"))
    return RunFolder.open(folder / "r")
