"""Run folders made by hand: who judged what how, written as a run and read back."""

from __future__ import annotations

from clash.analysis.run_verdicts import verdicts
from clash.analysis.rundata import RunData
from clash.config import Config
from clash.records import Blinding, Criteria, Item, Judgment, Label, Response
from clash.store import layout
from clash.store.folder import RunFolder, RunWriter
from clash.store.manifest import Manifest


def run(
    out,
    items,
    *,
    name="made",
    judges=("j1", "j2", "j3"),
    observers=(),
    candidates=(),
    families=None,
    kind="validate",
    cost=None,
    seed=1,
    dataset=None,
):
    """A run folder, read.

    Args:
        items: dicts of ``id``, ``label`` (null for none), ``says`` (by judge: a candidate, ``tie``,
            or null where it failed), and optionally ``texts`` (by candidate), ``group``, ``tags``,
            ``people`` (by annotator), ``flip`` (the second candidate is shown first).
        candidates: dicts of what is known of them, as a manifest has it.
    """
    seats = [(j, "voting", 1) for j in judges] + [(j, "observer", 0) for j in observers]
    panel = [
        {"id": j, "role": role, "weight": w, "family": (families or {}).get(j, j), "model": j}
        for j, role, w in seats
    ]
    config = Config.model_validate({"criteria": {"mode": "none"}}).model_dump(mode="json")
    manifest = Manifest(
        run=name,
        kind=kind,
        config=config,
        panel={"name": "panel", "quorum": None, "ties": True, "judges": panel},
        candidates=list(candidates),
        dataset=dataset or {},
        seeds={"seed": seed},
        cost_usd=cost,
        started="2026-01-01T00:00:00Z",
    )
    with RunWriter.create(out, name, manifest) as writer:
        for item in items:
            for record in _records(item, seats):
                writer.append(record)
        writer.replace(layout.VERDICTS, verdicts(writer))
        writer.seal(writer.manifest(), status="complete")
    return RunData.load(RunFolder(out / name))


def _records(item, seats):
    texts = item.get("texts") or {"a": "short", "b": "rather longer"}
    first, *rest = texts
    page_order = [*rest, first] if item.get("flip") else [first, *rest]
    labels = {f"A{n}": name for n, name in enumerate(page_order)}
    yield Item(
        item_id=item["id"],
        prompt=item.get("prompt", f"prompt of {item['id']}"),
        label=item.get("label"),
        group=item.get("group"),
        tags=item.get("tags", []),
    )
    for name, text in texts.items():
        yield Response(item_id=item["id"], candidate=name, text=text, source="injected")
    yield Blinding(item_id=item["id"], presentation=0, labels=labels)
    yield Criteria(item_id=item["id"], source="none", criteria=[])
    for judge, role, weight in seats:
        if judge in item["says"]:
            yield _judgment(item["id"], judge, role, weight, item["says"][judge], labels)
    for annotator, winner in item.get("people", {}).items():
        yield Label(item_id=item["id"], annotator=annotator, winner=winner)


def _judgment(item_id, judge, role, weight, reply, labels):
    by_name = {name: label for label, name in labels.items()}
    ranking = None
    if reply == "tie":
        ranking = [sorted(labels)]
    elif reply is not None:
        other_labels = sorted(label for label in labels if label != by_name[reply])
        ranking = [[by_name[reply]], *[[label] for label in other_labels]]
    return Judgment(
        item_id=item_id,
        presentation=0,
        judge=judge,
        role=role,
        weight=weight,
        ranking=ranking,
        parse="failed" if ranking is None else "clean",
        error="it failed" if ranking is None else None,
    )


def pairs(rows, **more):
    """Items from ``(label, what j1, j2, j3 say)``: letters of candidates, ``t`` tie, ``-`` failed."""
    word = {"a": "a", "b": "b", "t": "tie", "-": None}
    return [
        {
            "id": f"i{n}",
            "label": word[label],
            "says": {f"j{k}": word[c] for k, c in enumerate(answer, start=1)},
            **{key: value[n] for key, value in more.items()},
        }
        for n, (label, answer) in enumerate(rows)
    ]
