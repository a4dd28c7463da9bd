"""Collect: responses and criteria, then blinding, then judgments, each stage from the run folder.

On a new folder it does everything; on an interrupted one it does what is missing. Resuming is no
mode: every stage reads first what is there.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from decimal import Decimal
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

import anyio
import anyio.lowlevel

from clash.collect.calling import Caller, Listener
from clash.collect.criteria import derive, ready_criteria
from clash.collect.fallbacks import Fallbacks
from clash.collect.history import RunHistory, read_history
from clash.collect.judge import JudgmentSlot, PromptCache, prompt_of
from clash.collect.judge import judge as judge_page
from clash.collect.pages import Duties, Pages, rubrics_of, seal_pages
from clash.collect.recorded import (
    MissingCallError,
    OtherQuestionError,
    RecordedCalls,
    run_at_once,
)
from clash.collect.respond import respond
from clash.collect.schedule import Pool, Stop, drain
from clash.errors import RunFolderError
from clash.records import Blinding, Criteria, Judgment, Response
from clash.store import layout
from clash.store.stored import ItemPart
from clash.store.table import Marks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clash.collect.blind import Presentation
    from clash.collect.calling import AnswerSource, PendingCall
    from clash.collect.judge_prompt import JudgePrompt
    from clash.collect.plan import Plan
    from clash.config import Candidate
    from clash.records import Call, Item, Record
    from clash.store.folder import RunWriter

New = Literal["batch", "live", "none"]
"""How new questions are asked: in batches, live, or not at all."""
SYNC_S = 0.2
"""Seconds between two syncs to disk: a machine that crashes loses no more than these."""


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

    def count_done(self, actor: str, *, is_failure: bool) -> None:
        """One response, set of criteria or judgment is finished, or has failed for good."""
        ...


@dataclass(frozen=True)
class _RuleAnswers:
    """Answers of rules, a page after the other: such a judge holds up nothing but the loop."""

    caller: Caller

    async def ask(self, pending: PendingCall) -> Call:
        return self.caller.answer_at_once(pending)


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
    stop_reasons: Mapping[str, str] = MappingProxyType({}),
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
        stop_reasons: models that refused for good a moment ago, and why; they are not asked again.

    Raises:
        ConfigError: a key or an address is missing; nothing has been spent then.
    """
    history = read_history(plan, folder)
    progress.count_spent(float(history.budget.spent_usd))
    caller = _caller(plan, folder, environ, progress, stop, history, new)
    fallbacks = Fallbacks(plan.judges, plan.fallback_judges)
    stages = _Stages(plan, folder, caller, fallbacks, progress, stop, history)
    for ref in plan.refs():
        caller.open(ref)
    caller.keep_stopped(stop_reasons)
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
    history: RunHistory,
    new: New | None,
) -> Caller:
    """Who makes the calls; one that knows of batches only where there are some or may be."""
    limits = plan.config.limits
    new = new or ("batch" if limits.batch else "live")
    arguments = (history.budget, limits, environ, progress, stop)
    if new == "live" and not history.batches:
        return Caller(folder.append, *arguments, past=history.calls)
    from clash.collect.batch_caller import BatchCaller

    return BatchCaller(
        folder,
        *arguments,
        past=history.calls,
        batches=history.batches,
        new=new,
    )


async def _keep_synced(folder: RunWriter) -> None:
    while True:
        await anyio.sleep(SYNC_S)
        await anyio.to_thread.run_sync(folder.sync)


# -- what was lost of earlier processes -----------------------------------------------------------


def _missing_responses(plan: Plan, folder: RunWriter, history: RunHistory) -> set[tuple[str, str]]:
    """Responses that a page shows and ``responses.jsonl`` lacks, by item and candidate.

    Their calls were answered, so that writing them again takes no call.

    Raises:
        RunFolderError: that of one is lost too.
    """
    pages = folder.table(Blinding)
    if not pages:
        return set()
    present = _response_marks(plan, folder, lambda response: response.text is not None)
    missing = {
        (page.item_id, name)
        for page in pages
        for name in page.labels.values()
        if not present.has(name, plan.positions[page.item_id])
    }
    pieces = {
        (item.item_id, candidate.id): (item, candidate)
        for item, candidate in plan.missing()
        if missing
    }
    for item_id, candidate in sorted(missing):
        piece = pieces.get((item_id, candidate))
        if piece is None or not _is_recorded(*piece, plan, history):
            raise RunFolderError(
                f"{folder.path / layout.RESPONSES}: lacks the response of {candidate!r} to"
                f" {item_id!r}, and {layout.CALLS} lacks a call that it came from"
                "\n  fix: restore one of the two from a copy of the run"
            )
    return missing


def _response_marks(plan: Plan, folder: RunWriter, counts: Callable[[Response], bool]) -> Marks:
    """The items that the last response of a candidate ``counts`` of, by candidate."""
    marks = Marks(len(plan.positions))
    for response in folder.table(Response):
        position = plan.positions.get(response.item_id)
        if position is not None:
            marks.put(response.candidate, position, counts(response))
    return marks


def _is_recorded(item: Item, candidate: Candidate, plan: Plan, history: RunHistory) -> bool:
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
    history: RunHistory

    async def prepare(self) -> None:
        """Make everything a judge's page needs. Criteria and responses do not know of each other."""
        workers = self.caller.workers
        items = self.plan.items
        by_candidate = self._open_responses()
        open_criteria = self._open_criteria()
        totals = {name: len(positions) for name, positions in by_candidate.items() if positions}
        stage = "responses and criteria" if totals else "criteria"
        if open_criteria:
            totals["criteria"] = len(open_criteria)
        if totals:
            self.progress.stage_began(stage, totals)
        pools = [
            Pool(
                zip(map(items.__getitem__, by_candidate[candidate.id]), repeat(candidate)),
                self._generate,
                workers,
                queues=True,
            )
            for candidate in self.plan.candidates
        ]
        to_criteria = (items[position] for position in open_criteria)
        criteria_pool = Pool(to_criteria, self._write_criteria, workers, queues=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain, pools, self.stop)
            tasks.start_soon(drain, [criteria_pool], self.stop)

    def _open_responses(self) -> dict[str, array[int]]:
        """Where the items are that each candidate has yet to respond to."""
        plan = self.plan
        missing = _missing_responses(plan, self.folder, self.history)
        open_positions = {candidate.id: array("q") for candidate in plan.candidates}
        if not open_positions:
            return {}
        responses = _response_marks(plan, self.folder, self.history.confirms)
        # What is sealed is judged as it is: a response that comes later would change the page.
        sealed_items = self._items_in(Blinding)
        for item, candidate in plan.missing():
            position = plan.positions[item.item_id]
            if (item.item_id, candidate.id) in missing or not (
                responses.has(candidate.id, position) or sealed_items[position]
            ):
                open_positions[candidate.id].append(position)
        return open_positions

    def _open_criteria(self) -> array[int]:
        """Where the items are whose criteria a model has to write; those of others are written."""
        items_with_criteria = self._items_in(Criteria)
        open_positions = array("q")
        for position, item in enumerate(self.plan.items):
            if items_with_criteria[position]:
                continue
            criteria = ready_criteria(item, self.plan)
            if criteria is None:
                open_positions.append(position)
            else:
                self.folder.append(criteria)
        return open_positions

    def _items_in(self, model: type[Record]) -> bytearray:
        """For each item, whether the folder has a record of it."""
        present = bytearray(len(self.plan.positions))
        for part in self.folder.table(model).parts(ItemPart):
            position = self.plan.positions.get(part.item_id)
            if position is not None:
                present[position] = 1
        return present

    async def _generate(self, piece: tuple[Item, Candidate]) -> None:
        item, candidate = piece
        response = await respond(item, candidate, self.plan, self.caller)
        self.folder.append(response)
        self.progress.count_done(candidate.id, is_failure=response.text is None)

    async def _write_criteria(self, item: Item) -> None:
        ref = self.plan.criteria_ref
        if ref is None:  # pragma: no cover - then ready_criteria() is never null
            return
        criteria = await derive(item, self.plan, ref, self.caller)
        self.folder.append(criteria)
        self.progress.count_done("criteria", is_failure=criteria.source == "fallback")

    async def judge(self) -> None:
        """Seal every page, and have each judged by every judge that may see it."""
        plan = self.plan
        duties = Duties(plan.excluded_candidates, self._stands())
        totals = dict.fromkeys((judge.id for judge in plan.judges), 0)
        # Judges of one account are at most this far apart; one that lags further may have its pages
        # made again.
        pages = Pages(plan, self.folder, 2 * plan.config.limits.concurrency)
        for page in seal_pages(plan, self.folder, pages):
            for judge in plan.judges:
                totals[judge.id] += duties.owes(judge, page)
        rubric = rubrics_of(plan, self.folder)

        def render(presentation: Presentation) -> JudgePrompt:
            position = plan.positions[presentation.blinding.item_id]
            item, _ = pages.of(position)
            return prompt_of(item, rubric(item.item_id), presentation, plan)

        prompts = PromptCache(render)

        async def fill(slot: JudgmentSlot) -> None:
            await self._fill(slot, await prompts.of(slot.presentation), self.caller)

        rules = [j for j in plan.judges if not j.fallbacks and self.caller.answers_at_once(j)]
        answers = _RuleAnswers(self.caller)

        async def fill_page(piece: tuple[Item, Presentation]) -> None:
            item, page = piece
            judges = [judge for judge in rules if duties.owes(judge, page.blinding)]
            if judges:
                prompt = await prompts.of(page)
                with self.folder.record_group():
                    for judge in judges:
                        await self._fill(JudgmentSlot(judge, item, page), prompt, answers)
            await anyio.lowlevel.checkpoint()

        self.progress.stage_began("judgments", totals)
        workers = self.caller.workers
        pools: list[Pool[Any]] = [
            Pool(duties.slots(judge, pages), fill, workers, queues=True)
            for judge in plan.judges
            if judge not in rules
        ]
        pools += [Pool(pages, fill_page, 1)] if rules else []
        await drain(pools, self.stop)

    async def _fill(self, slot: JudgmentSlot, prompt: JudgePrompt, source: AnswerSource) -> None:
        judgment = await judge_page(slot, prompt, self.plan, source, self.fallbacks)
        self.folder.append(judgment)
        self.progress.count_done(slot.judge.id, is_failure=not judgment.is_usable)

    def _stands(self) -> Callable[[str, int, str], bool]:
        """Whether the judgment of an item, presentation and judge is there, and stands."""
        positions = self.plan.positions
        standing = Marks(len(positions))
        for judgment in self.folder.records(Judgment):
            if self.history.confirms(judgment) and judgment.item_id in positions:
                key = judgment.presentation, judgment.seat
                standing.put(key, positions[judgment.item_id])
        return lambda item_id, number, judge: standing.has((number, judge), positions[item_id])
