"""Whether a run follows from its calls: repeat it with the answers on record.

Every page is shuffled, masked and rendered again, every question is put to the record instead of a
model, every answer is read again. A question that differs from the one on record was asked about
something else: another response, prompt, template, label or option.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clash.collect.calling import call_id
from clash.collect.criteria import FALLBACK, derive, ready_criteria
from clash.collect.judge import ask_judge, prompt_of
from clash.collect.load import recorded_prompts
from clash.collect.pages import Duties, Pages, presentation_key, rubrics_of
from clash.collect.plan import Plan, make_plan
from clash.collect.recorded import (
    MissingCallError,
    OtherQuestionError,
    RecordedCalls,
    run_at_once,
)
from clash.collect.resolve import criteria_model
from clash.collect.respond import respond, response_request
from clash.collect.templates import Templates
from clash.config import Config, Panel
from clash.errors import RunFolderError
from clash.records import Blinding, Criteria, Judgment, Response
from clash.store import layout
from clash.store.audit import BROKEN, AuditGap, broken, finding
from clash.store.manifest import other_versions
from clash.store.stored import OfItem, StoredCalls
from clash.store.table import ItemRows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from clash.collect.conversation import Script
    from clash.collect.judge import JudgmentSlot
    from clash.collect.judge_prompt import JudgePrompt
    from clash.config import Candidate
    from clash.records import Item, Record
    from clash.store.audit import AuditFinding
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest

    RecordKey = tuple[str, int, str | None]

T = TypeVar("T", bound=OfItem)
_CHECK = "the run follows from its calls"


def reread(folder: RunFolder) -> list[AuditFinding]:
    """Repeat a run from its calls, and compare every record with the one in the folder."""
    try:
        manifest = folder.manifest()
        if not manifest.config.get("panel"):
            return [finding(_CHECK, _gaps_of_import(folder))]
        unless = other_versions(manifest)
        repetition = _Repetition(folder, manifest)
    except BROKEN as error:
        return [broken(_CHECK, error)]
    checks = {
        "panel, candidates and seed follow from the configuration": repetition.settings(),
        "pages follow from seed and responses": repetition.pages(),
        "responses follow from the answers": repetition.responses(),
        "criteria follow from the answers": repetition.criteria(),
        "judgments follow from the answers": repetition.judgments(),
    }
    return [finding(name, results, unless=unless) for name, results in checks.items()]


def recorded_plan(folder: RunFolder, manifest: Manifest) -> Plan:
    """What a run had to do, from its folder alone; no key is needed.

    Raises:
        RunFolderError: the manifest names no panel.
    """
    config = Config.model_validate({**manifest.config, "repeat": 1})
    if not isinstance(config.panel, Panel):
        raise RunFolderError(f"{folder.path / layout.MANIFEST}: names no panel")
    prompts = recorded_prompts(folder, Path(layout.ITEMS))
    dynamic = config.criteria.mode == "dynamic"
    return make_plan(
        config,
        config.panel,
        prompts,
        Templates.from_manifest(manifest.templates),
        criteria_ref=criteria_model(config.criteria, config.panel) if dynamic else None,
        secret=manifest.secret,
        shard=manifest.shard,
    )


def _gaps_of_import(folder: RunFolder) -> Iterator[AuditGap]:
    """The gap of a run by another tool, which kept other records."""
    bare = sum(judgment.call_id is None for judgment in folder.records(Judgment))
    yield AuditGap(
        f"the run names no panel that clash can run, and {bare} judgments have no raw answer"
    )


@dataclass(frozen=True)
class _Repetition:
    """A run that is repeated from its calls. Each method yields the differences it finds."""

    folder: RunFolder
    manifest: Manifest

    @cached_property
    def plan(self) -> Plan:
        """What the run had to do."""
        return recorded_plan(self.folder, self.manifest)

    @cached_property
    def record(self) -> RecordedCalls:
        """The last attempt of each call; the raw answers are the bulk, and nothing needs them."""
        return RecordedCalls(
            StoredCalls(self.folder.path / layout.CALLS), frozenset(self.manifest.stopped.values())
        )

    @cached_property
    def shown_pages(self) -> Pages:
        """The pages of the run; what is plain in the first pass is not searched in the second."""
        return Pages(self.plan, self.folder)

    def settings(self) -> Iterator[str]:
        """What the manifest lists beside the configuration that it follows from."""
        manifest, config = self.manifest, self.plan.config
        if manifest.panel != self.plan.panel_record:
            yield "the panel of manifest.json differs from its configuration"
        if manifest.seeds.get("seed") != config.seed:
            yield "the seed of manifest.json differs from its configuration"
        models = [candidate.model_dump(mode="json") for candidate in config.candidates]
        if manifest.candidates[: len(models)] != models:
            yield "the candidates of manifest.json differ from its configuration"
        calls = self.record.calls.values() if manifest.stopped else ()
        errors = {f"{call.error_class}: {call.error}" for call in calls if call.error}
        for model, reason in manifest.stopped.items():
            if reason not in errors:
                yield f"manifest.json says that {model} stopped, but no call shows why"

    def pages(self) -> Iterator[str]:
        """Every shuffle and every mask."""
        pages = _OpenRecords(self.folder.records(Blinding), self.plan.positions, presentation_key)
        for _, presentation in self.shown_pages:
            blinding = presentation.blinding
            record = pages.pop(presentation_key(blinding)) or blinding
            if differences := _differences(record, blinding):
                yield f"the page of {record.item_id!r} {differences}"
        for record in pages:
            yield f"the page of {record.item_id!r} shows responses that do not exist"

    def responses(self) -> Iterator[str]:
        """Every response that a model gave."""
        candidates = {candidate.id: candidate for candidate in self.plan.candidates}
        for response in self.folder.records(Response):
            if response.source == "injected":
                continue
            title = f"the response of {response.candidate} to {response.item_id!r}"
            if response.candidate not in candidates:
                yield f"{title} is by a candidate that was not asked"
                continue
            candidate = candidates[response.candidate]
            item = self._item(response)
            script = self._script(item, candidate)
            repetition = respond(item, candidate, self.plan, self.record, script)
            yield from _compare(title, response, repetition, empty=response.text is None)

    def _item(self, record: OfItem) -> Item:
        return self.plan.items[self.plan.positions[record.item_id]]

    def _script(self, item: Item, candidate: Candidate) -> Script:
        """The turns of an item, or all in one call where the run was made so."""
        script = self.plan.script(item)
        if len(script.parts) == 1:
            return script
        call = self.record.calls.get(call_id("generate", item.item_id, candidate.id))
        request = response_request(script.at_once.parts[0], item, candidate, self.plan.config)
        is_at_once = call is not None and call.request_hash == request.hash(candidate.model)
        return script.at_once if is_at_once else script

    def criteria(self) -> Iterator[str]:
        """Criteria that a model wrote, and those that needed none; not those of an earlier run."""
        if self.plan.config.criteria.reuse is not None:
            return  # they are part of every page, whose question is compared
        for record in self.folder.records(Criteria):
            title, item = f"criteria of {record.item_id!r}", self._item(record)
            ready = ready_criteria(item, self.plan)
            if ready is not None:
                if (record.source, record.criteria) != (ready.source, ready.criteria):
                    yield f"{title} differ from the configuration"
            elif self.plan.criteria_ref is not None:
                repetition = derive(item, self.plan, self.plan.criteria_ref, self.record)
                yield from _compare(title, record, repetition, empty=_is_fallback(record))

    def judgments(self) -> Iterator[str]:
        """Every judgment; of a complete run there is one for each slot."""
        records = _OpenRecords(
            self.folder.records(Judgment),
            self.plan.positions,
            lambda judgment: (judgment.item_id, judgment.presentation, judgment.seat),
        )
        judges = {judge.id: judge for judge in self.plan.all_judges}
        for slot, prompt in self._slots():
            judgment = records.pop(slot.key)
            title = f"{slot.judge.id} on {slot.item.item_id!r}"
            if judgment is None:
                if self.manifest.status == "complete":
                    yield f"{title}: the run is complete, but this judgment is missing"
            elif prompt is None:
                yield f"{title}: there is a judgment, but no criteria to judge by"
            elif judgment.judge not in judges:
                yield f"{title}: {judgment.judge} is not a judge of the panel"
            else:
                # A fallback may have taken the judge's place.
                repetition = self._judge(replace(slot, judge=judges[judgment.judge]), prompt)
                yield from _compare(title, judgment, repetition, empty=not judgment.is_usable)
        for judgment in records:
            yield f"{judgment.judge} on {judgment.item_id!r} judged a page that does not exist"

    async def _judge(self, slot: JudgmentSlot, prompt: JudgePrompt) -> Judgment:
        judgment, _ = await ask_judge(slot, prompt, self.plan, self.record)
        return judgment

    def _slots(self) -> Iterator[tuple[JudgmentSlot, JudgePrompt | None]]:
        """Page by page, so that each is rendered once; no prompt where criteria are missing.

        A run that is stopped while responses are written has pages before it has criteria.
        """
        rubric = rubrics_of(self.plan, self.folder)
        judged_by = {record.item_id for record in self.folder.records(Criteria)}
        duties = Duties(self.plan.excluded_candidates)
        for item, presentation in self.shown_pages:
            prompt = None
            if item.item_id in judged_by:
                prompt = prompt_of(item, rubric(item.item_id), presentation, self.plan)
            for judge in self.plan.judges:
                for slot in duties.slots(judge, [(item, presentation)]):
                    yield slot, prompt


class _OpenRecords(Generic[T]):
    """Records that have not been compared yet: some bytes each, whatever they hold.

    Args:
        records: each with another key.
        positions: the items of the run.
        key: what identifies a record, its item first.
    """

    def __init__(
        self, records: Sequence[T], positions: Mapping[str, int], key: Callable[[T], RecordKey]
    ) -> None:
        self._records, self._key = records, key
        self._of_item = ItemRows(records, positions)
        self._is_left = bytearray(b"\1") * len(records)
        self._places = lru_cache(1)(self._places_of)

    def _places_of(self, item_id: str) -> dict[RecordKey, int]:
        return {self._key(self._records[n]): n for n in self._of_item.rows(item_id)}

    def pop(self, key: RecordKey) -> T | None:
        """The record with a key, once."""
        position = self._places(key[0]).get(key)
        if position is None or not self._is_left[position]:
            return None
        self._is_left[position] = False
        return self._records[position]

    def __iter__(self) -> Iterator[T]:
        return (self._records[n] for n, is_left in enumerate(self._is_left) if is_left)


def _is_fallback(record: Criteria) -> bool:
    return record.source == "fallback" and record.criteria == list(FALLBACK)


def _compare(
    title: str, record: Record, repetition: Coroutine[Any, Any, Record], *, empty: bool
) -> Iterator[str]:
    """How ``record`` differs from what the calls give.

    Args:
        title: what it is, for the message.
        record: the one in the folder.
        repetition: asks the calls on record again.
        empty: ``record`` says that there is nothing, which needs no call: the model had stopped.
    """
    try:
        expectation = run_at_once(repetition)
    except MissingCallError as error:
        if not empty:
            yield f"{title}: there is no call {error}"
    except OtherQuestionError as error:
        yield f"{title}: {error} asked a different question"
    else:
        if differences := _differences(record, expectation):
            yield f"{title}: has another {', '.join(differences)} than follows"


_WORDED_FIELDS = frozenset({"error", "repairs", "flags"})
"""Fields of sentences. Another version may word them differently, so only their number counts."""


def _differences(record: Record, expectation: Record) -> list[str]:
    if record.__dict__ == expectation.__dict__:
        return []
    return [
        name
        for name in type(record).model_fields
        if _fact(record, name) != _fact(expectation, name)
    ]


def _fact(record: Record, name: str) -> object:
    value = getattr(record, name)
    if isinstance(record, Blinding) and name == "scrubbed":
        # In the order in which responses came, which is another one in a merged run.
        return sorted(record.scrubbed, key=lambda scrub: (scrub.candidate, scrub.start))
    if name not in _WORDED_FIELDS:
        return value
    return len(value) if isinstance(value, list) else value is None
