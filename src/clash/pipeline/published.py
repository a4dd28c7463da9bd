"""Read published evaluations, ours or others', in whatever form they come."""

from __future__ import annotations

import hashlib
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

from clash.analysis.published import TIE, PairEvaluation, PublishedFigures, audit_evaluations
from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.errors import ConfigError, InputError, StatisticsError
from clash.files import run_files
from clash.files.inputs import check_unpacks
from clash.labels import ranks_of, side, truths
from clash.reproduction.conversion import convert
from clash.store import layout
from clash.store.folder import RunFolder
from clash.votes.blinding_index import BlindingIndex, unblind
from clash.votes.from_run import require_rankings
from clash.votes.lines import NamedVoteLine, line_number, read_lines
from clash.votes.matrix import pair_item

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from clash.analysis.published import PublishedAudit
    from clash.datasets.foreign_run import ForeignRun
    from clash.records import Groups, Item, Judgment, Label, Response

_RETRIES, _LOG = "-retries", "-log"
"""Ends of the names of runs that hold earlier evaluations, and the same ones once more."""
_MOST_LINES = 5000
"""Records whose line is looked up, which reads the file again; the others are counted."""


class EvaluationLine(NamedVoteLine, gc=False):
    """A line of a votes file or judgments table, with what was published of the pair.

    Attributes:
        verdict: the published outcome, ``A``, ``B`` or ``tie``.
        first: the side in the first slot.
        prompt: its text, with ``response_a`` and ``response_b``.
    """

    verdict: str | float | None = None
    first: str | None = None
    prompt: str | None = None
    response_a: str | None = None
    response_b: str | None = None

    example: ClassVar[str] = '{"item": "q1", "judge": "gpt", "vote": "A", "label": "B"}'


def audit_published(path: Path, figures: PublishedFigures) -> list[PublishedAudit]:
    """Audit the evaluations that a file or folder holds.

    Args:
        path: a run folder, another tool's results, or a votes file.
        figures: what is published of it; other tools' results may hold their own.

    Raises:
        InputError: it is none of these, or a line is wrong.
        StatisticsError: nothing in it has a label.
    """
    if run_files.is_file(path / layout.MANIFEST):
        folder = RunFolder.open(path)
        claims = _figures(folder.manifest().dataset.get("figures", []), figures)
        rows = list(_of_run(folder))
        return [audit_evaluations(path.name, rows, claims, has_baselines=True)]
    if path.is_dir() or path.suffix == ".json":
        return _audit_results(path, figures)
    if not path.is_file():
        raise InputError(
            "no such file or folder",
            path=path,
            hint="a run folder, another tool's results, or votes",
        )
    check_unpacks(path)
    return [audit_evaluations(path.name, _of_votes(path), figures)]


def audits_json(audits: Iterable[PublishedAudit]) -> dict[str, Any]:
    """What ``clash audit --json`` prints of them."""
    return {"evaluations": [{**to_dict(audit), "n_present": audit.n_present} for audit in audits]}


def parse_figures(texts: Iterable[str]) -> PublishedFigures:
    """``concordance=0.88`` and the like.

    Raises:
        ConfigError: another name, or no number in its range.
    """
    values: dict[str, Any] = {}
    ranges = {"concordance": (0, 1), "kappa": (-1, 1), "n": (1, 10**9)}
    for figure_text in texts:
        name, _, text = figure_text.partition("=")
        if name not in ranges:
            raise ConfigError(
                f"{name!r} is no figure", field="--published", hint="concordance, kappa or n"
            )
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        low, high = ranges[name]
        if not low <= value <= high:
            raise ConfigError(
                f"{name} lies between {low} and {high}, not {text!r}",
                field="--published",
                hint=f"--published {name}={(low + high) / 2 if name != 'n' else 100:g}",
            )
        values[name] = int(value) if name == "n" else value
    return PublishedFigures(**values)


def _figures(claims: Iterable[Mapping[str, Any]], figures: PublishedFigures) -> PublishedFigures:
    """What the person says, else what the makers are known to say of the one run."""
    claim_values: dict[str, float] = {}
    for claim in claims:
        if claim.get("report") == "run" and claim.get("figure") in ("concordance", "kappa"):
            claim_values.setdefault(claim["figure"], claim["value"])
    return PublishedFigures(
        figures.concordance if figures.concordance is not None else claim_values.get("concordance"),
        figures.kappa if figures.kappa is not None else claim_values.get("kappa"),
        figures.n,
    )


# -- a run, ours or another tool's ----------------------------------------------------------------


def _audit_results(path: Path, figures: PublishedFigures) -> list[PublishedAudit]:
    runs = {run.name: run for run in convert(path).runs}
    audits = []
    for name, run in runs.items():
        if name.endswith((_RETRIES, _LOG)):
            continue
        rows = list(_of_foreign(run))
        for earlier_name in (f"{name}{_RETRIES}", f"{name}{_LOG}{_RETRIES}"):
            if earlier_name in runs:
                rows += [*_of_foreign(runs[earlier_name], is_earlier=True)]
        try:
            audits.append(audit_evaluations(name, rows, _figures(run.claims, figures)))
        except StatisticsError:
            continue  # this one of several has no label
    if not audits:
        raise StatisticsError(f"{path}: no evaluation in it has a label")
    return audits


def _of_foreign(run: ForeignRun, *, is_earlier: bool = False) -> Iterator[PairEvaluation]:
    outcomes: dict[str, Groups] = {}
    for verdict in run.verdicts:
        winners = [] if verdict.winner is None else [verdict.winner]
        if names := verdict.ranking or winners:
            outcomes[verdict.item_id] = [[name] for name in names]
    records = (run.items, run.responses, run.judgments, run.labels)
    yield from _evaluations(
        *records, BlindingIndex.of(run.blinding), outcomes, is_earlier=is_earlier
    )


def _of_run(folder: RunFolder) -> Iterator[PairEvaluation]:
    run = RunData.load(folder)
    require_rankings(run.manifest, "clash audit")
    outcomes = {v.item_id: v.ranking for v in run.verdicts if v.ranking is not None}
    records = (run.items, run.responses, run.judgments, run.labels)
    yield from _evaluations(*records, run.blinds, outcomes, is_earlier=False)


def _evaluations(
    items: Sequence[Item],
    responses: Iterable[Response],
    judgments: Iterable[Judgment],
    labels: Iterable[Label],
    blinds: BlindingIndex,
    outcomes: Mapping[str, Groups],
    *,
    is_earlier: bool,
) -> Iterator[PairEvaluation]:
    """The pairs of a run: of an item of K candidates each two of them, which share its question."""
    texts: dict[str, dict[str, str | None]] = {item.item_id: {} for item in items}
    for response in responses:
        texts[response.item_id][response.candidate] = response.text
    pages = {page.item_id: page.labels for page in reversed(blinds.records)}
    rankings: dict[str, dict[str, list[dict[str, int]]]] = {item.item_id: {} for item in items}
    for judgment in judgments:
        if judgment.role == "voting":
            ranking = unblind(judgment, blinds.labels(judgment)) or []
            of_judges = rankings[judgment.item_id]
            of_judges.setdefault(judgment.seat, []).append(ranks_of(ranking))
    people = truths(items, labels)
    for item in items:
        names = sorted(texts[item.item_id])
        slots = {name: slot for slot, name in enumerate(_in_order(pages.get(item.item_id, {})))}
        for pair in combinations(names, 2):
            truth = people.get(item.item_id)
            pair_texts = {name: texts[item.item_id][name] for name in pair}
            key = pair_item(item.item_id, *pair, len(names))
            yield PairEvaluation(
                row=key,
                item=key,
                cluster=_question(item),
                label=None if truth is None else truth.side(*pair),
                verdict=_published_side(outcomes.get(item.item_id), pair),
                votes={j: _one_say(rs, pair) for j, rs in rankings[item.item_id].items()},
                content=_content(item, pair_texts),
                first=side(slots, *pair) or "A",
                longer=_longer(list(pair_texts.values())),
                is_earlier=is_earlier,
            )


def _one_say(rankings: Iterable[Mapping[str, int]], pair: tuple[str, str]) -> str | None:
    """What a judge says of a pair over all pages that it saw; a tie where they contradict."""
    sides = [
        side_of_ranks for ranks in rankings if (side_of_ranks := side(ranks, *pair)) is not None
    ]
    lead = sides.count("A") - sides.count("B")
    return None if not sides else TIE if lead == 0 else "A" if lead > 0 else "B"


def _in_order(page: Mapping[str, str]) -> list[str]:
    """The candidates of a page in the order that it shows them."""
    return [page[label] for label in sorted(page, key=lambda label: int(label[1:]))]


def _published_side(ranking: Groups | None, pair: tuple[str, str]) -> str | None:
    """The side that a published ranking puts first; a winner alone is better than all others."""
    ranks = ranks_of(ranking or [])
    if ranks:
        ranks = {name: ranks.get(name, len(ranks)) for name in pair if ranks.keys() & set(pair)}
    return side(ranks, *pair)


def _question(item: Item) -> str:
    """What the errors of an item are shared with: its group, its prompt, or nothing but itself."""
    prompt = [turn.content for turn in item.turns if turn.content.strip()]
    return item.cluster if item.group or not prompt else _digest(prompt)


def _content(item: Item, texts: Mapping[str, str | None]) -> str:
    if any(text is None for text in texts.values()):
        return ""
    return _digest([*(turn.content for turn in item.turns), *sorted(map(str, texts.values()))])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _longer(texts: Sequence[str | None]) -> str | None:
    first, second = texts
    if first is None or second is None or len(first) == len(second):
        return None
    return "A" if len(first) > len(second) else "B"


# -- votes ----------------------------------------------------------------------------------------


def _of_votes(path: Path) -> list[PairEvaluation]:
    """Votes by pair; a judge that votes twice on a pair, undeclared, begins a new evaluation."""
    drafts: dict[tuple[str, str, int], list[tuple[int, EvaluationLine]]] = {}
    attempts: dict[tuple[str, str, str], int] = {}
    number = 0
    for chunk in read_lines(path, EvaluationLine):
        for line in chunk:
            copy = "/".join(str(x) for x in (line.presentation, line.repeat) if x is not None)
            key = (str(line.item), copy, str(line.judge))
            attempts[key] = attempts.get(key, -1) + 1
            drafts.setdefault((str(line.item), copy, attempts[key]), []).append((number, line))
            number += 1
    exact = number <= _MOST_LINES
    return [_of_lines(path, key, lines, exact=exact) for key, lines in drafts.items()]


def _of_lines(
    path: Path,
    key: tuple[str, str, int],
    lines: Sequence[tuple[int, EvaluationLine]],
    *,
    exact: bool,
) -> PairEvaluation:
    at, head = lines[0]
    item, copy, _ = key
    row = f"{path.name}:{line_number(path, at)} ({item})" if exact else f"record {at + 1} ({item})"
    texts = (head.prompt, head.response_a, head.response_b)
    has_texts = None not in texts
    return PairEvaluation(
        row=row,
        item=item,
        cluster=str(head.group) if head.group is not None else item,
        label=_first_side(path, lines, "label"),
        verdict=_first_side(path, lines, "verdict"),
        votes={str(line.judge): _side(path, at, line.vote, "vote") for at, line in lines},
        content=_digest([str(head.prompt), *sorted(map(str, texts[1:]))]) if has_texts else "",
        copy=copy,
        first=_side(path, at, head.first, "first") or ("B" if head.presentation == "swap" else "A"),
        longer=_longer((head.response_a, head.response_b)),
    )


def _first_side(path: Path, lines: Sequence[tuple[int, EvaluationLine]], field: str) -> str | None:
    """What the first line that says it says of a pair."""
    sides = (_side(path, at, getattr(line, field), field) for at, line in lines)
    return next((side for side in sides if side is not None), None)


def _side(path: Path, at: int, value: object, field: str) -> str | None:
    """A vote, label or verdict as a side.

    Raises:
        InputError: it is none.
    """
    if value is None:
        return None
    text = str(value).strip().lower()
    sides = {"a": "A", "b": "B", "tie": "tie", "1": "A", "0": "B", "1.0": "A", "0.0": "B"}
    sides |= {"true": "A", "false": "B", "0.5": "tie", "": ""}
    if text not in sides:
        raise InputError(
            f"{value!r} is no side",
            path=path,
            line=line_number(path, at),
            field=field,
            hint="A, B or tie",
        )
    return sides[text] or None
