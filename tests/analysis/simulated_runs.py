"""Simulated runs: what each judge says of each item, as the records of a run folder."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from clash.analysis.rundata import RunData
from clash.analysis.verdicts import VerdictRules, verdict
from clash.config import Config
from clash.records import Blinding, Item, Judgment, Response
from clash.store.manifest import Manifest
from clash.votes.ballots import unblind_rankings
from clash.votes.blinding_index import BlindingIndex
from clash.votes.from_run import Panelist

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.records import Verdict

    Groups = list[list[str]]

NAMES = ("ada", "bob", "cyd", "dan", "eve")


def rules(
    weights: Mapping[str, float],
    *,
    observers: Sequence[str] = (),
    quorum: float | None = None,
    tie_break: str = "none",
    presentations: int = 1,
) -> VerdictRules:
    """A panel of judges by weight."""
    judges = [Panelist(name, "voting", weight, name, name) for name, weight in weights.items()]
    judges += [Panelist(name, "observer", 0.0, name, name) for name in observers]
    return VerdictRules(tuple(judges), quorum, tie_break, "borda", presentations)


def grouped(ranks: Sequence[int], names: Sequence[str]) -> Groups:
    """Names by rank, best first; equal ranks are a tie."""
    return [
        [name for name, rank in zip(names, ranks, strict=True) if rank == target_rank]
        for target_rank in sorted(set(ranks))
    ]


def records(
    item_id: str,
    reply: Mapping[str, Groups | Sequence[Groups | None] | None],
    seed: int = 0,
    *,
    scores: Mapping[str, Mapping[str, int]] | None = None,
) -> tuple[list[Judgment], list[Blinding]]:
    """Judgments and pages of one item: each judge's ranking, or one for each page; null failed."""
    pages = max(len(_each(groups)) for groups in reply.values())
    names = sorted(
        {n for by in reply.values() for g in _each(by) for group in g or [] for n in group}
    )
    order = list(names)
    random.Random(seed).shuffle(order)
    blinding = [
        Blinding(
            item_id=item_id,
            presentation=page,
            labels={f"A{i}": name for i, name in enumerate(order if page == 0 else order[::-1])},
        )
        for page in range(pages)
    ]
    judgments = []
    for judge, rankings in reply.items():
        for page, groups in enumerate(_each(rankings)):
            label = {name: label for label, name in blinding[page].labels.items()}
            marks = (scores or {}).get(judge, {}) if groups is not None else {}
            judgments.append(
                Judgment(
                    item_id=item_id,
                    presentation=page,
                    judge=judge,
                    role="voting",
                    weight=1,
                    ranking=None if groups is None else [[label[n] for n in g] for g in groups],
                    scores={label[name]: {"Wit": mark} for name, mark in marks.items()},
                    parse="failed" if groups is None else "clean",
                    error="refusal: no" if groups is None else None,
                )
            )
    return judgments, blinding


def _each(groups: object) -> list[Groups | None]:
    """One ranking, or several: the innermost lists tell."""
    if groups is None:
        return [None]
    assert isinstance(groups, list | tuple)
    several = groups and (groups[0] is None or (groups[0] and isinstance(groups[0][0], list)))
    return list(groups) if several else [groups]  # type: ignore[list-item]


def decided(reply: Mapping, by: VerdictRules, seed: int = 0, **more: object) -> Verdict:
    """The verdict on one item."""
    judgments, pages = records("q", reply, seed, **more)
    rankings = unblind_rankings(judgments, BlindingIndex.of(pages), by.presentations)
    return verdict("q", rankings.get("q"), by)


def run_data(
    table: Sequence[Mapping[str, Groups | None]],
    candidates: Sequence[str],
    *,
    clusters: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    missing: Sequence[tuple[int, str]] = (),
    seed: int = 42,
) -> RunData:
    """A run: what each judge said of each item.

    Args:
        table: by item, each judge's ranking of the candidates; null failed.
        candidates: who should have answered every item.
        clusters: the prompt of each item; each its own where not given.
        weights: of the judges; 1 each where not given.
        missing: responses that could not be had, as (item, candidate).
        seed: of the report's bootstrap.
    """
    judges = list(dict.fromkeys(judge for row in table for judge in row))
    by = rules(weights or dict.fromkeys(judges, 1.0))
    ids = [f"q{i}" for i in range(len(table))]
    group = clusters or ids
    every = [records(name, row, i) for i, (name, row) in enumerate(zip(ids, table, strict=True))]
    judgments = [judgment for value, _ in every for judgment in value]
    blinds = BlindingIndex.of(page for _, pages in every for page in pages)
    rankings = unblind_rankings(judgments, blinds)
    missing_ranks = {(ids[i], name) for i, name in missing}
    return RunData(
        manifest=Manifest(
            run="made",
            kind="eval",
            config=Config().model_dump(mode="json"),
            panel={"name": "made"},
            seeds={"seed": seed},
        ),
        rules=by,
        items=tuple(
            Item(item_id=name, prompt="?", group=g) for name, g in zip(ids, group, strict=True)
        ),
        responses=tuple(
            Response(
                item_id=name,
                candidate=candidate,
                text=None if (name, candidate) in missing_ranks else f"{candidate} on {name}",
                source="injected",
            )
            for name in ids
            for candidate in candidates
        ),
        criteria={},
        judgments=tuple(judgments),
        blinds=blinds,
        ballots=rankings,
        verdicts=tuple(verdict(name, rankings.get(name), by) for name in ids),
        labels=(),
        usage={},
    )
