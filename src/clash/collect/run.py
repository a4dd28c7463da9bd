"""The pipeline: responses and criteria, then blinding, then judgments, each stage from the files.

Run it on a new folder and it does everything; run it on an interrupted one and it does what is
missing. Resuming is not a mode: every stage asks what is there already.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import anyio

from clash.collect.blind import Presentation, presentations
from clash.collect.budget import Budget
from clash.collect.calling import Caller, Listener, call_id
from clash.collect.criteria import derive, settled
from clash.collect.fallbacks import Bench
from clash.collect.judge import Pages, Seat, judge, render
from clash.collect.respond import respond
from clash.collect.schedule import Pool, Stop, drain
from clash.errors import ErrorClass, RunFolderError
from clash.files import run_files
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from clash.collect.batch_queue import HandedIn
    from clash.collect.judge_prompt import Ballot
    from clash.collect.plan import Plan
    from clash.config import Candidate, Judge
    from clash.records import Blinding, Call, Criterion, Item, Judgment, Response
    from clash.store.folder import RunFolder, RunWriter

New = Literal["batch", "live", "none"]
"""How questions are asked that nobody has asked yet."""
SYNC_S = 0.2
"""How much of the last moments a lost machine may take with it."""

_ASK_AGAIN = frozenset(get_args(ErrorClass)) - {"blocked", "too_long"}
"""Failures that a resumed run tries again: nothing usable was paid for."""


class Progress(Listener, Protocol):
    """Someone who watches a run."""

    def spent(self, usd: float) -> None:
        """What earlier processes of this run have spent, or may have."""
        ...

    def waits(self, model: str, done: int, rows: int) -> None:
        """Batches were handed in or looked after: so many of their rows are through."""
        ...

    def stage(self, name: str, totals: Mapping[str, int]) -> None:
        """A stage begins, with so many calls for each model."""
        ...

    def done(self, who: str, *, failed: bool) -> None:
        """One response, criteria or judgment is there, or is known never to be."""
        ...


@dataclass(frozen=True)
class Collected:
    """How a run went.

    Attributes:
        stopped: models that refused for good, and why.
        interrupted: why it ended early, null where it did not.
        over_usd: dollars by which ``max_cost`` was passed.
        replaced: models that do nothing but judge, and in whose place a fallback judges.
    """

    stopped: dict[str, str]
    interrupted: str | None
    over_usd: Decimal = Decimal(0)
    replaced: frozenset[str] = frozenset()

    @property
    def refused(self) -> dict[str, str]:
        """Models that stopped and whose work nobody took over."""
        return {model: why for model, why in self.stopped.items() if model not in self.replaced}


async def collect(
    plan: Plan,
    folder: RunWriter,
    environ: Mapping[str, str],
    progress: Progress,
    stop: Stop,
    *,
    new: New | None = None,
) -> Collected:
    """Do everything of ``plan`` that is not in ``folder`` yet.

    Args:
        plan: what there is to do.
        folder: what is done.
        environ: where keys are.
        progress: watches.
        stop: ends it early.
        new: how new questions are asked: in batches, live, or not at all; by default as the plan's
            limits say.

    Raises:
        ConfigError: a key or an address is missing; nothing has been spent then.
    """
    past = _past(plan, folder)
    progress.spent(float(past.budget.spent))
    caller = _caller(plan, folder, environ, progress, stop, past, new)
    bench = Bench(plan.judges, plan.stand_ins)
    for ref in plan.refs():
        caller.open(ref)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_keep_synced, folder)
            caller.start(tasks)
            await _prepare(plan, folder, caller, progress, stop, past)
            if not (stop or caller.refused):
                await _judge(plan, folder, caller, bench, progress, stop, past)
            await caller.finish()
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await caller.aclose()
    return Collected(
        caller.stopped,
        stop.reason or caller.refused,
        past.budget.over,
        _replaced(plan, bench, caller),
    )


def _replaced(plan: Plan, bench: Bench, caller: Caller) -> frozenset[str]:
    """Models whose work a fallback took over, all of it."""
    gone = bench.replaced
    needed = {caller.label(ref) for ref in plan.refs() if ref not in gone}
    return frozenset(caller.label(judge) for judge in gone) - needed


def _caller(
    plan: Plan,
    folder: RunWriter,
    environ: Mapping[str, str],
    progress: Progress,
    stop: Stop,
    past: _Past,
    new: New | None,
) -> Caller:
    """Who makes the calls; one that knows of batches only where there are some or may be."""
    limits = plan.config.limits
    new = new or ("batch" if limits.batch else "live")
    about: dict[str, Any] = {"done": past.calls.values(), "tried": past.tried}
    if new == "live" and not past.under_way:
        return Caller(folder.append, past.budget, limits, environ, progress, stop, **about)
    from clash.collect.batch_caller import BatchCaller

    return BatchCaller(
        folder,
        past.budget,
        limits,
        environ,
        progress,
        stop,
        under_way=past.under_way,
        new=new,
        **about,
    )


async def _keep_synced(folder: RunWriter) -> None:
    while True:
        await anyio.sleep(SYNC_S)
        await anyio.to_thread.run_sync(folder.sync)


@dataclass(frozen=True)
class _Past:
    """What earlier processes of this run did: the last attempt of each call, and the money.

    Attributes:
        tried: the number of the last attempt of each call, seen to its end or not.
        under_way: batches that are with a provider, or may be.
    """

    calls: dict[str, Call]
    tried: dict[str, int]
    budget: Budget
    under_way: list[HandedIn]

    def backs(self, record: Response | Judgment) -> bool:
        """Whether a record stands: it need not be tried again, and its call is there."""
        known = record.call_id is None or record.call_id in self.calls
        return known and not _again(record.error)


def _past(plan: Plan, folder: RunWriter) -> _Past:
    limit = plan.config.limits.max_cost
    budget = Budget(Decimal(repr(limit)) if limit is not None else None)
    calls: dict[str, Call] = {}
    tried: dict[str, int] = {}
    seen: dict[tuple[str, int], bool] = {}
    for call in folder.calls():
        # The raw answers are the bulk of the file, and nothing needs them again.
        calls[call.call_id] = call.model_copy(update={"request": None, "response": None})
        tried[call.call_id] = max(call.attempt, tried.get(call.call_id, 0))
        seen[call.call_id, call.attempt] = call.outcome != "error"
        cost = call.cost_usd if call.cost_usd is not None else call.cost_bound_usd
        budget.book(Decimal(repr(cost or 0.0)), exact=call.cost_usd is not None)
    lost: dict[tuple[str, int], float] = {}
    for held in folder.reservations():
        tried[held.call_id] = max(held.attempt, tried.get(held.call_id, 0))
        if (held.call_id, held.attempt) not in seen:
            lost[held.call_id, held.attempt] = held.usd
    batches = _under_way(folder, seen, lost)
    for place in (place for batch in batches for place in batch.places.values()):
        # Nobody's loss: its answer may yet come.
        tried[place.call_id] = max(place.attempt, tried.get(place.call_id, 0))
        lost.pop((place.call_id, place.attempt), None)
        budget.hold(place.reserved)
    for usd in lost.values():
        budget.book(Decimal(repr(usd)), exact=False)
    return _Past(calls, tried, budget, batches)


def _under_way(
    folder: RunWriter, seen: Mapping[tuple[str, int], bool], held: Mapping[tuple[str, int], float]
) -> list[HandedIn]:
    """Batches that an answer may yet come of; one whose calls are all on record has ended."""
    if not run_files.is_file(folder.path / layout.BATCHES):
        return []
    from clash.collect.batch_queue import under_way

    found = under_way(folder, seen, held)
    for batch in found:
        if not batch.open:
            folder.append(batch.line("ended"))
    return [batch for batch in found if batch.open]


# -- responses and criteria ---------------------------------------------------------------------


async def _prepare(
    plan: Plan, folder: RunWriter, caller: Caller, progress: Progress, stop: Stop, past: _Past
) -> None:
    """Everything a judge's page needs. Criteria and responses do not know of each other."""
    have = {(r.item_id, r.candidate) for r in folder.responses() if past.backs(r)}
    # What is sealed is judged as it is: a response that comes later would change the page.
    sealed = {record.item_id for record in folder.blinding()}
    lost = _lost_responses(folder, past)
    todo = [
        (item, candidate)
        for item, candidate in plan.missing()
        if (item.item_id, candidate.id) in lost
        or ((item.item_id, candidate.id) not in have and item.item_id not in sealed)
    ]
    has_criteria = {record.item_id for record in folder.criteria()}
    unsettled = []
    for item in plan.items:
        if item.item_id in has_criteria:
            continue
        ready = settled(item, plan)
        if ready is None:
            unsettled.append(item)
        else:
            folder.append(ready)

    async def generate(piece: tuple[Item, Candidate]) -> None:
        item, candidate = piece
        response = await respond(item, candidate, plan.config, caller)
        folder.append(response)
        progress.done(candidate.id, failed=response.text is None)

    async def write_criteria(item: Item) -> None:
        if plan.criteria_ref is None:  # pragma: no cover - settled() left none over
            return
        criteria = await derive(item, plan, plan.criteria_ref, caller)
        folder.append(criteria)
        progress.done("criteria", failed=criteria.source == "fallback")

    workers = caller.workers
    by_candidate = {
        candidate.id: [piece for piece in todo if piece[1].id == candidate.id]
        for candidate in plan.candidates
    }
    pools = [Pool(pieces, generate, workers, queues=True) for pieces in by_candidate.values()]
    totals = {name: len(pieces) for name, pieces in by_candidate.items() if pieces}
    if unsettled:
        totals["criteria"] = len(unsettled)
    if totals:
        progress.stage("responses and criteria" if todo else "criteria", totals)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drain, pools, stop)
        tasks.start_soon(drain, [Pool(unsettled, write_criteria, workers, queues=True)], stop)


def _lost_responses(folder: RunWriter, past: _Past) -> set[tuple[str, str]]:
    """Responses that a page shows and ``responses.jsonl`` lacks, by item and candidate.

    Their calls were answered, so that writing them again takes no call.

    Raises:
        RunFolderError: that of one is lost too.
    """
    present = {(r.item_id, r.candidate) for r in folder.responses() if r.text is not None}
    shown = {(page.item_id, name) for page in folder.blinding() for name in page.labels.values()}
    lost = shown - present
    for item_id, candidate in sorted(lost):
        call = past.calls.get(call_id("generate", item_id, candidate))
        if call is None or call.outcome == "error":
            raise RunFolderError(
                f"{folder.path / layout.RESPONSES}: lacks the response of {candidate!r} to"
                f" {item_id!r}, and {layout.CALLS} lacks the call that it came from"
                "\n  fix: restore one of the two from a copy of the run"
            )
    return lost


def _again(error: str | None) -> bool:
    """Whether a failure is one that a resumed run should try again."""
    return error is not None and error.partition(":")[0] in _ASK_AGAIN


# -- judgments ----------------------------------------------------------------------------------


async def _judge(
    plan: Plan,
    folder: RunWriter,
    caller: Caller,
    bench: Bench,
    progress: Progress,
    stop: Stop,
    past: _Past,
) -> None:
    pages = _pages(plan, folder)
    rubrics = rubrics_of(folder)
    have = {(j.item_id, j.presentation, j.seat) for j in folder.judgments() if past.backs(j)}
    items = {item.item_id: item for item in plan.items}
    seats = partial(seats_of, pages=pages, items=items, have=have, excluded=plan.excluded)

    def page_of(shown: Presentation) -> Ballot:
        item_id = shown.blinding.item_id
        return render(items[item_id], rubrics[item_id], shown, plan)

    rendered = Pages(page_of, plan.config.limits.concurrency)

    async def sit(seat: Seat) -> None:
        page = await rendered.of(seat.presentation)
        judgment = await judge(seat, page, plan, caller, bench)
        folder.append(judgment)
        progress.done(seat.judge.id, failed=judgment.ranking is None)

    totals = {j.id: sum(1 for _ in seats(j)) for j in plan.judges}
    progress.stage("judgments", totals)
    await drain(
        [Pool(seats(j), sit, caller.workers, queues=True) for j in plan.judges],
        stop,
    )


def rubrics_of(folder: RunFolder) -> dict[str, tuple[Criterion, ...]]:
    """What each item is judged by. Many items share their criteria, so each set is kept once."""
    known: dict[tuple[Criterion, ...], tuple[Criterion, ...]] = {}
    return {
        record.item_id: known.setdefault(rubric, rubric)
        for record in folder.criteria()
        for rubric in [tuple(record.criteria)]
    }


def _pages(plan: Plan, folder: RunWriter) -> list[Presentation]:
    """Every presentation of every item that has something to compare, sealed before use.

    A resumed run makes the same ones again: they are a function of the seed and of the responses
    that were there when the item was sealed.
    """
    sealed = {page_key(record) for record in folder.blinding()}
    pages = list(pages_of(plan, folder))
    for page in pages:
        if page_key(page.blinding) not in sealed:
            folder.append(page.blinding)
    return pages


def pages_of(plan: Plan, folder: RunFolder) -> Iterator[Presentation]:
    """The presentations that follow from the seed, whether or not they are sealed yet."""
    sealed = {page_key(record): record.labels for record in folder.blinding()}
    names = sorted({c.id for c in plan.candidates} | {r.candidate for r in folder.responses()})
    judges = [judge.id for judge in plan.judges]
    for item_id, texts in _texts(plan, folder, sealed).items():
        yield from presentations(
            item_id,
            texts,
            judges,
            plan.config.blinding,
            plan.config.seed,
            names=names,
            excluded=plan.excluded,
        )


def _texts(
    plan: Plan, folder: RunFolder, sealed: Mapping[tuple[str, int, str | None], Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Response by candidate, for each item that has two at least, in the order of the items."""
    shown: dict[str, set[str]] = {}
    for (item_id, _, _), labels in sealed.items():
        shown.setdefault(item_id, set()).update(labels.values())
    texts: dict[str, dict[str, str]] = {item.item_id: {} for item in plan.items}
    for response in folder.responses():
        late = response.candidate not in shown.get(response.item_id, {response.candidate})
        if response.text is not None and not late:
            texts[response.item_id][response.candidate] = response.text
    return {item_id: found for item_id, found in texts.items() if len(found) > 1}


def page_key(blinding: Blinding) -> tuple[str, int, str | None]:
    """What identifies a page."""
    return blinding.item_id, blinding.presentation, blinding.judge


def seats_of(
    judge: Judge,
    *,
    pages: Iterable[Presentation],
    items: Mapping[str, Item],
    have: set[tuple[str, int, str]],
    excluded: Mapping[str, frozenset[str]],
) -> Iterator[Seat]:
    """The pages that ``judge`` has not judged yet; none with a response it is kept from."""
    own = excluded.get(judge.id)
    for page in pages:
        blinding = page.blinding
        if blinding.judge not in (None, judge.id):
            continue
        if (blinding.item_id, blinding.presentation, judge.id) in have:
            continue
        if own is not None and not own.isdisjoint(blinding.labels.values()):
            continue
        yield Seat(judge, items[blinding.item_id], page)
