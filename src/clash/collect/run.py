"""Collect: responses and criteria, then blinding, then judgments, each stage from the run folder.

On a new folder it does everything; on an interrupted one it does what is missing. Resuming is no
mode: every stage reads first what is there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import anyio

from clash.collect.blind import Presentation, presentations
from clash.collect.budget import Budget
from clash.collect.calling import Caller, Listener
from clash.collect.criteria import derive, ready_criteria
from clash.collect.fallbacks import Fallbacks
from clash.collect.judge import JudgmentSlot, PromptCache, judge, prompt_of
from clash.collect.recorded import (
    MissingCallError,
    OtherQuestionError,
    RecordedCalls,
    run_at_once,
)
from clash.collect.respond import respond
from clash.collect.schedule import Pool, Stop, drain
from clash.errors import ErrorClass, RunFolderError
from clash.files import run_files
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from clash.collect.batch_queue import RunBatch
    from clash.collect.judge_prompt import JudgePrompt
    from clash.collect.plan import Plan
    from clash.config import Candidate, Judge
    from clash.records import AnsweredTurn, Blinding, Call, Criterion, Item, Judgment, Response
    from clash.store.folder import RunFolder, RunWriter

New = Literal["batch", "live", "none"]
"""How new questions are asked: in batches, live, or not at all."""
SYNC_S = 0.2
"""Seconds between two syncs to disk: a machine that crashes loses no more than these."""

_ASK_AGAIN = frozenset(get_args(ErrorClass)) - {"blocked", "too_long"}
"""Failures that a resumed run tries again: nothing usable was paid for."""


class Progress(Listener, Protocol):
    """Is told how a run proceeds: a progress line, bars, a callback."""

    def count_spent(self, usd: float) -> None:
        """Earlier processes of this run have spent so much, or may have."""
        ...

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """Batches of a model were submitted or polled: so many of their rows are done."""
        ...

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        """A stage begins; ``totals`` is the number of its calls by candidate or judge."""
        ...

    def count_done(self, actor: str, *, failed: bool) -> None:
        """One response, set of criteria or judgment is finished, or has failed for good."""
        ...


@dataclass(frozen=True)
class CollectOutcome:
    """How collecting ended.

    Attributes:
        stop_reasons: models that refused for good, and why.
        interrupted: why it ended early, null where it did not.
        over_usd: dollars by which ``max_cost`` was passed.
        replaced_models: models that do nothing but judge, and in whose place a fallback judges.
    """

    stop_reasons: dict[str, str]
    interrupted: str | None
    over_usd: Decimal = Decimal(0)
    replaced_models: frozenset[str] = frozenset()

    @property
    def refusals(self) -> dict[str, str]:
        """Models that stopped and whose work nobody took over, and why they stopped."""
        return {
            model: reason
            for model, reason in self.stop_reasons.items()
            if model not in self.replaced_models
        }


async def collect(
    plan: Plan,
    folder: RunWriter,
    environ: Mapping[str, str],
    progress: Progress,
    stop: Stop,
    *,
    new: New | None = None,
    stopped: Mapping[str, str] = MappingProxyType({}),
) -> CollectOutcome:
    """Do everything of ``plan`` that is not in ``folder`` yet.

    Args:
        plan: what there is to do.
        folder: the run, with what is done.
        environ: where keys are.
        progress: is told how far it is.
        stop: ends it early.
        new: how new questions are asked: in batches, live, or not at all; by default as the plan's
            limits say.
        stopped: models that refused for good a moment ago, and why; they are not asked again.

    Raises:
        ConfigError: a key or an address is missing; nothing has been spent then.
    """
    history = _read_history(plan, folder)
    progress.count_spent(float(history.budget.spent_usd))
    caller = _caller(plan, folder, environ, progress, stop, history, new)
    fallbacks = Fallbacks(plan.judges, plan.fallback_judges)
    stages = _Stages(plan, folder, caller, fallbacks, progress, stop, history)
    for ref in plan.refs():
        caller.open(ref)
    caller.keep_stopped(stopped)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_keep_synced, folder)
            caller.start(tasks)
            await stages.prepare()
            if not (stop or caller.refusal):
                await stages.judge()
            await caller.finish()
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await caller.aclose()
    return CollectOutcome(
        caller.stop_reasons,
        stop.reason or caller.refusal,
        history.budget.over,
        _replaced_models(plan, fallbacks, caller),
    )


def _replaced_models(plan: Plan, fallbacks: Fallbacks, caller: Caller) -> frozenset[str]:
    """Models whose work a fallback took over, all of it."""
    judges = fallbacks.replaced_judges
    models_in_use = {caller.label(ref) for ref in plan.refs() if ref not in judges}
    return frozenset(caller.label(judge) for judge in judges) - models_in_use


def _caller(
    plan: Plan,
    folder: RunWriter,
    environ: Mapping[str, str],
    progress: Progress,
    stop: Stop,
    history: _RunHistory,
    new: New | None,
) -> Caller:
    """Who makes the calls; one that knows of batches only where there are some or may be."""
    limits = plan.config.limits
    new = new or ("batch" if limits.batch else "live")
    arguments = (history.budget, limits, environ, progress, stop)
    calls, numbers = history.calls.values(), history.attempt_numbers
    if new == "live" and not history.batches:
        return Caller(folder.append, *arguments, calls=calls, attempt_numbers=numbers)
    from clash.collect.batch_caller import BatchCaller

    return BatchCaller(
        folder,
        *arguments,
        calls=calls,
        attempt_numbers=numbers,
        batches=history.batches,
        new=new,
    )


async def _keep_synced(folder: RunWriter) -> None:
    while True:
        await anyio.sleep(SYNC_S)
        await anyio.to_thread.run_sync(folder.sync)


# -- earlier processes of the run -----------------------------------------------------------------


@dataclass(frozen=True)
class _RunHistory:
    """What earlier processes of this run did.

    Attributes:
        calls: the last attempt of each call, by id.
        attempt_numbers: the number of the last attempt of each call, whether or not it ended.
        budget: with the money that they spent, or may have.
        batches: those that are with a provider, or may be.
    """

    calls: dict[str, Call]
    attempt_numbers: dict[str, int]
    budget: Budget
    batches: list[RunBatch]

    def confirms(self, record: Response | Judgment) -> bool:
        """Whether a record stands: it need not be tried again, and its call is there."""
        has_call = record.call_id is None or record.call_id in self.calls
        return has_call and not _is_retried(record.error)


def _read_history(plan: Plan, folder: RunWriter) -> _RunHistory:
    budget = Budget(plan.max_cost)
    calls: dict[str, Call] = {}
    attempt_numbers: dict[str, int] = {}
    answers: dict[tuple[str, int], bool] = {}
    for call in folder.calls():
        # The raw answers are the bulk of the file, and nothing needs them again.
        calls[call.call_id] = call.model_copy(update={"request": None, "response": None})
        attempt_numbers[call.call_id] = max(call.attempt, attempt_numbers.get(call.call_id, 0))
        answers[call.call_id, call.attempt] = call.outcome != "error"
        cost = call.cost_usd if call.cost_usd is not None else call.cost_bound_usd
        budget.book(Decimal(repr(cost or 0.0)), exact=call.cost_usd is not None)
    # Money of attempts without a record: the process was killed before they ended.
    open_usd: dict[tuple[str, int], float] = {}
    for reservation in folder.reservations():
        number, name = reservation.attempt, reservation.call_id
        attempt_numbers[name] = max(number, attempt_numbers.get(name, 0))
        if (name, number) not in answers:
            open_usd[name, number] = reservation.usd
    batches = _unfinished_batches(folder, answers, open_usd)
    for entry in (entry for batch in batches for entry in batch.entries.values()):
        # This money is not lost: the answer may yet come.
        attempt_numbers[entry.call_id] = max(entry.attempt, attempt_numbers.get(entry.call_id, 0))
        open_usd.pop((entry.call_id, entry.attempt), None)
        budget.hold(entry.reservation)
    for usd in open_usd.values():
        budget.book(Decimal(repr(usd)), exact=False)
    return _RunHistory(calls, attempt_numbers, budget, batches)


def _unfinished_batches(
    folder: RunWriter,
    answers: Mapping[tuple[str, int], bool],
    open_usd: Mapping[tuple[str, int], float],
) -> list[RunBatch]:
    """Batches that an answer may yet come of; one whose calls are all on record has ended."""
    if not run_files.is_file(folder.path / layout.BATCHES):
        return []
    from clash.collect.batch_queue import unfinished_batches

    batches = unfinished_batches(folder, answers, open_usd)
    for batch in batches:
        if not batch.n_open:
            folder.append(batch.record("ended"))
    return [batch for batch in batches if batch.n_open]


def _is_retried(error: str | None) -> bool:
    """Whether a failure is one that a resumed run tries again."""
    return error is not None and error.partition(":")[0] in _ASK_AGAIN


def _missing_responses(plan: Plan, folder: RunWriter, history: _RunHistory) -> set[tuple[str, str]]:
    """Responses that a page shows and ``responses.jsonl`` lacks, by item and candidate.

    Their calls were answered, so that writing them again takes no call.

    Raises:
        RunFolderError: that of one is lost too.
    """
    present = {(r.item_id, r.candidate) for r in folder.responses() if r.text is not None}
    on_pages = {(page.item_id, name) for page in folder.blinding() for name in page.labels.values()}
    missing = on_pages - present
    pieces = {(item.item_id, who.id): (item, who) for item, who in plan.missing() if missing}
    for item_id, candidate in sorted(missing):
        piece = pieces.get((item_id, candidate))
        if piece is None or not _is_recorded(*piece, plan, history):
            raise RunFolderError(
                f"{folder.path / layout.RESPONSES}: lacks the response of {candidate!r} to"
                f" {item_id!r}, and {layout.CALLS} lacks a call that it came from"
                "\n  fix: restore one of the two from a copy of the run"
            )
    return missing


def _is_recorded(item: Item, candidate: Candidate, plan: Plan, history: _RunHistory) -> bool:
    """Whether every call of a response was answered."""
    try:
        response = run_at_once(respond(item, candidate, plan, RecordedCalls(history.calls)))
    except (MissingCallError, OtherQuestionError):
        return False
    return response.text is not None


# -- the two stages -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stages:
    """First responses and criteria, then judgments; each stage reads the folder for what is done."""

    plan: Plan
    folder: RunWriter
    caller: Caller
    fallbacks: Fallbacks
    progress: Progress
    stop: Stop
    history: _RunHistory

    async def prepare(self) -> None:
        """Make everything a judge's page needs. Criteria and responses do not know of each other."""
        workers = self.caller.workers
        by_candidate = self._open_responses()
        open_criteria = self._open_criteria()
        totals = {name: len(pieces) for name, pieces in by_candidate.items() if pieces}
        stage = "responses and criteria" if totals else "criteria"
        if open_criteria:
            totals["criteria"] = len(open_criteria)
        if totals:
            self.progress.stage_began(stage, totals)
        pools = [
            Pool(pieces, self._generate, workers, queues=True) for pieces in by_candidate.values()
        ]
        criteria_pool = Pool(open_criteria, self._write_criteria, workers, queues=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain, pools, self.stop)
            tasks.start_soon(drain, [criteria_pool], self.stop)

    def _open_responses(self) -> dict[str, list[tuple[Item, Candidate]]]:
        """The responses that are to be generated, by candidate."""
        responses = {
            (r.item_id, r.candidate) for r in self.folder.responses() if self.history.confirms(r)
        }
        # What is sealed is judged as it is: a response that comes later would change the page.
        sealed_items = {record.item_id for record in self.folder.blinding()}
        missing = _missing_responses(self.plan, self.folder, self.history)
        pieces: dict[str, list[tuple[Item, Candidate]]] = {
            candidate.id: [] for candidate in self.plan.candidates
        }
        for item, candidate in self.plan.missing():
            key = (item.item_id, candidate.id)
            if key in missing or (key not in responses and item.item_id not in sealed_items):
                pieces[candidate.id].append((item, candidate))
        return pieces

    def _open_criteria(self) -> list[Item]:
        """The items whose criteria a model has to write; those of the others are written down."""
        items_with_criteria = {record.item_id for record in self.folder.criteria()}
        items = []
        for item in self.plan.items:
            if item.item_id in items_with_criteria:
                continue
            criteria = ready_criteria(item, self.plan)
            if criteria is None:
                items.append(item)
            else:
                self.folder.append(criteria)
        return items

    async def _generate(self, piece: tuple[Item, Candidate]) -> None:
        item, candidate = piece
        response = await respond(item, candidate, self.plan, self.caller)
        self.folder.append(response)
        self.progress.count_done(candidate.id, failed=response.text is None)

    async def _write_criteria(self, item: Item) -> None:
        ref = self.plan.criteria_ref
        if ref is None:  # pragma: no cover - then ready_criteria() is never null
            return
        criteria = await derive(item, self.plan, ref, self.caller)
        self.folder.append(criteria)
        self.progress.count_done("criteria", failed=criteria.source == "fallback")

    async def judge(self) -> None:
        """Seal every page, and have each judged by every judge that may see it."""
        plan = self.plan
        presentations = _seal_presentations(plan, self.folder)
        rubrics = rubrics_of(self.folder)
        finished_keys = {
            (j.item_id, j.presentation, j.seat)
            for j in self.folder.judgments()
            if self.history.confirms(j)
        }
        items = {item.item_id: item for item in plan.items}
        slots = partial(
            open_slots,
            presentations=presentations,
            items=items,
            finished_keys=finished_keys,
            excluded_candidates=plan.excluded_candidates,
        )

        def render(presentation: Presentation) -> JudgePrompt:
            item_id = presentation.blinding.item_id
            return prompt_of(items[item_id], rubrics[item_id], presentation, plan)

        prompts = PromptCache(render, plan.config.limits.concurrency)

        async def fill(slot: JudgmentSlot) -> None:
            prompt = await prompts.of(slot.presentation)
            judgment = await judge(slot, prompt, plan, self.caller, self.fallbacks)
            self.folder.append(judgment)
            self.progress.count_done(slot.judge.id, failed=not judgment.is_usable)

        totals = {j.id: sum(1 for _ in slots(j)) for j in plan.judges}
        self.progress.stage_began("judgments", totals)
        workers = self.caller.workers
        pools = [Pool(slots(j), fill, workers, queues=True) for j in plan.judges]
        await drain(pools, self.stop)


# -- pages and who judges them --------------------------------------------------------------------


def rubrics_of(folder: RunFolder) -> dict[str, tuple[Criterion, ...]]:
    """What each item is judged by. Many items share their criteria, so each set is kept once."""
    rubrics: dict[tuple[Criterion, ...], tuple[Criterion, ...]] = {}
    return {
        record.item_id: rubrics.setdefault(rubric, rubric)
        for record in folder.criteria()
        for rubric in [tuple(record.criteria)]
    }


def _seal_presentations(plan: Plan, folder: RunWriter) -> list[Presentation]:
    """Every presentation of every item that has something to compare, sealed before use.

    A resumed run makes the same ones again: they are a function of the seed and of the responses
    that were there when the item was sealed.
    """
    sealed_keys = {presentation_key(record) for record in folder.blinding()}
    presentations = list(presentations_of(plan, folder))
    for presentation in presentations:
        if presentation_key(presentation.blinding) not in sealed_keys:
            folder.append(presentation.blinding)
    return presentations


def presentations_of(plan: Plan, folder: RunFolder) -> Iterator[Presentation]:
    """The presentations that follow from the seed, whether or not they are sealed yet."""
    judges = [judge.id for judge in plan.judges]
    turns: dict[str, dict[str, list[AnsweredTurn]]] = defaultdict(dict)
    for response in folder.responses():
        if response.turns:
            turns[response.item_id][response.candidate] = response.turns
    for item_id, texts in _texts(plan, folder).items():
        yield from presentations(
            item_id,
            texts,
            judges,
            plan.config.blinding,
            plan.config.seed,
            names=plan.names,
            excluded_candidates=plan.excluded_candidates,
            turns={name: t for name, t in turns[item_id].items() if name in texts},
            judging=plan.config.judging,
        )


def _texts(plan: Plan, folder: RunFolder) -> dict[str, dict[str, str]]:
    """Response by candidate, for each item that has enough of them, in the order of the items.

    Of an item that is sealed, only the candidates on its pages: a later response is not judged.
    """
    candidates_on_pages: dict[str, set[str]] = {}
    for page in folder.blinding():
        candidates_on_pages.setdefault(page.item_id, set()).update(page.labels.values())
    texts: dict[str, dict[str, str]] = {item.item_id: {} for item in plan.items}
    for response in folder.responses():
        candidates = candidates_on_pages.get(response.item_id, {response.candidate})
        if response.text is not None and response.candidate in candidates:
            texts[response.item_id][response.candidate] = response.text
    least = 1 if plan.config.judging.is_single else 2
    return {item_id: responses for item_id, responses in texts.items() if len(responses) >= least}


def presentation_key(blinding: Blinding) -> tuple[str, int, str | None]:
    """What identifies a page."""
    return blinding.item_id, blinding.presentation, blinding.judge


def open_slots(
    judge: Judge,
    *,
    presentations: Iterable[Presentation],
    items: Mapping[str, Item],
    finished_keys: set[tuple[str, int, str]],
    excluded_candidates: Mapping[str, frozenset[str]],
) -> Iterator[JudgmentSlot]:
    """The judgments that ``judge`` still owes.

    Args:
        judge: the judge.
        presentations: the pages of the run.
        items: by id.
        finished_keys: keys of the judgments that stand.
        excluded_candidates: whose responses a judge is not shown, by judge.
    """
    hidden_candidates = excluded_candidates.get(judge.id, frozenset())
    for presentation in presentations:
        blinding = presentation.blinding
        if blinding.judge not in (None, judge.id):
            continue
        if (blinding.item_id, blinding.presentation, judge.id) in finished_keys:
            continue
        if not hidden_candidates.isdisjoint(blinding.labels.values()):
            continue
        yield JudgmentSlot(judge, items[blinding.item_id], presentation)
