"""Whether a run follows from its calls: it is gone through again, with the answers on record.

Every page is shuffled, masked and rendered anew, every question put to the record instead of a
model, every answer read anew. A question that is not the one on record was asked of something
else: of another response, prompt, template, label or option.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clash.collect.criteria import FALLBACK, derive, settled
from clash.collect.judge import hear, render
from clash.collect.load import Prompts
from clash.collect.plan import Plan, plan
from clash.collect.resolve import criteria_model
from clash.collect.respond import respond
from clash.collect.run import page_key, pages_of, rubrics_of, seats_of
from clash.collect.templates import Templates
from clash.config import Config, Panel
from clash.errors import RunFolderError
from clash.store import layout
from clash.store.audit import BROKEN, AuditGap, broken, finding
from clash.store.manifest import other_versions

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping

    from clash.collect.calling import Ask
    from clash.collect.judge import Seat
    from clash.collect.judge_prompt import Ballot
    from clash.records import Call, Criteria, Judgment, Record
    from clash.store.audit import AuditFinding
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest

T = TypeVar("T")
_CHECK = "the run follows from its calls"


def reread(folder: RunFolder) -> list[AuditFinding]:
    """Go through a run again and compare every record with the one that is written."""
    try:
        manifest = folder.manifest()
        if not manifest.config.get("panel"):
            return [finding(_CHECK, _published(folder))]
        unless = other_versions(manifest)
        again = _Again(folder, manifest)
    except BROKEN as error:
        return [broken(_CHECK, error)]
    checks = {
        "panel, candidates and seed follow from the configuration": again.settings(),
        "pages follow from seed and responses": again.pages(),
        "responses follow from the answers": again.responses(),
        "criteria follow from the answers": again.criteria(),
        "judgments follow from the answers": again.judgments(),
    }
    return [finding(name, results, unless=unless) for name, results in checks.items()]


def _published(folder: RunFolder) -> Iterator[AuditGap]:
    """A run of another tool, which kept other records."""
    bare = sum(judgment.call_id is None for judgment in folder.judgments())
    yield AuditGap(
        f"the run names no panel that clash can call, and {bare} judgments have no raw answer"
    )


class _NotRecorded(Exception):
    """There is no such call: the model had stopped, or the run had ended."""


class _AskedOtherwise(Exception):
    """The call on record has another question."""


@dataclass(frozen=True)
class _Record:
    """The calls of a run, in place of its models."""

    calls: Mapping[str, Call]

    async def ask(self, ask: Ask) -> Call:
        """The last attempt on record.

        Raises:
            _NotRecorded: there is none.
            _AskedOtherwise: it asked something else.
        """
        call = self.calls.get(ask.call_id)
        if call is None:
            raise _NotRecorded(ask.call_id)
        if call.request_hash != ask.request.hash(ask.ref.model) or call.model != ask.ref.model:
            raise _AskedOtherwise(ask.call_id)
        return call


@dataclass(frozen=True)
class _Again:
    """A run that is gone through again."""

    folder: RunFolder
    manifest: Manifest

    @cached_property
    def plan(self) -> Plan:
        """What the run was to do, from its folder alone; no key is needed for it."""
        config = Config.model_validate({**self.manifest.config, "repeat": 1})
        if not isinstance(config.panel, Panel):
            raise RunFolderError(f"{self.folder.path / layout.MANIFEST}: names no panel")
        given = tuple(r for r in self.folder.responses() if r.source == "injected")
        prompts = Prompts(Path(layout.ITEMS), tuple(self.folder.items()), given, "")
        dynamic = config.criteria.mode == "dynamic"
        return plan(
            config,
            config.panel,
            prompts,
            Templates.recorded(self.manifest.templates),
            criteria_ref=criteria_model(config.criteria, config.panel) if dynamic else None,
            secret=self.manifest.secret,
        )

    @cached_property
    def record(self) -> _Record:
        """The last attempt of each call; the raw answers are the bulk, and nothing needs them."""
        bare = {"request": None, "response": None}
        return _Record({c.call_id: c.model_copy(update=bare) for c in self.folder.calls()})

    def settings(self) -> Iterator[str]:
        """What the manifest lists beside the configuration that it follows from."""
        manifest, config = self.manifest, self.plan.config
        if manifest.panel != self.plan.panel_record:
            yield "the panel of manifest.json is not that of its configuration"
        if manifest.seeds.get("seed") != config.seed:
            yield "the seed of manifest.json is not that of its configuration"
        models = [candidate.model_dump(mode="json") for candidate in config.candidates]
        if manifest.candidates[: len(models)] != models:
            yield "the candidates of manifest.json are not those of its configuration"
        errors = {f"{c.error_class}: {c.error}" for c in self.record.calls.values() if c.error}
        for model, reason in manifest.stopped.items():
            if reason not in errors:
                yield f"manifest.json says that {model} stopped, and no call says why"

    def pages(self) -> Iterator[str]:
        """Every shuffle and every mask."""
        written = {page_key(record): record for record in self.folder.blinding()}
        for page in pages_of(self.plan, self.folder):
            record = written.pop(page_key(page.blinding), page.blinding)
            if record != page.blinding:
                yield f"the page of {record.item_id!r} {_differing(record, page.blinding)}"
        for record in written.values():
            yield f"the page of {record.item_id!r} shows responses that are not there"

    def responses(self) -> Iterator[str]:
        """Every response that a model gave."""
        items = {item.item_id: item for item in self.plan.items}
        candidates = {candidate.id: candidate for candidate in self.plan.candidates}
        for response in self.folder.responses():
            if response.source == "injected":
                continue
            who = f"the response of {response.candidate} to {response.item_id!r}"
            if response.candidate not in candidates:
                yield f"{who} is of nobody who was asked"
                continue
            candidate = candidates[response.candidate]
            asked = respond(items[response.item_id], candidate, self.plan.config, self.record)
            yield from _compared(who, response, asked, empty=response.text is None)

    def criteria(self) -> Iterator[str]:
        """Criteria that a model wrote, and those that needed none; not those of an earlier run."""
        if self.plan.config.criteria.reuse is not None:
            return  # they are part of every page, whose question is compared
        items = {item.item_id: item for item in self.plan.items}
        for record in self.folder.criteria():
            who, item = f"criteria of {record.item_id!r}", items[record.item_id]
            ready = settled(item, self.plan)
            if ready is not None:
                if (record.source, record.criteria) != (ready.source, ready.criteria):
                    yield f"{who} are not those of the configuration"
            elif self.plan.criteria_ref is not None:
                asked = derive(item, self.plan, self.plan.criteria_ref, self.record)
                yield from _compared(who, record, asked, empty=_is_fallback(record))

    def judgments(self) -> Iterator[str]:
        """Every judgment; of a complete run there is one for each seat."""
        written = {(j.item_id, j.presentation, j.seat): j for j in self.folder.judgments()}
        sitters = {sitter.id: sitter for sitter in self.plan.sitters}
        for seat, ballot in self._seats():
            judgment = written.pop(seat.key, None)
            who = f"{seat.judge.id} on {seat.item.item_id!r}"
            if judgment is None:
                if self.manifest.status == "complete":
                    yield f"{who}: the run is complete, and there is no judgment"
            elif judgment.judge not in sitters:
                yield f"{who}: {judgment.judge} is no judge of the panel"
            else:
                sitter = replace(seat, judge=sitters[judgment.judge])
                asked = self._heard(sitter, ballot)
                yield from _compared(who, judgment, asked, empty=judgment.ranking is None)
        for judgment in written.values():
            yield f"{judgment.judge} on {judgment.item_id!r} judged a page that there was not"

    async def _heard(self, seat: Seat, ballot: Ballot) -> Judgment:
        judgment, _ = await hear(seat, ballot, self.plan, self.record)
        return judgment

    def _seats(self) -> Iterator[tuple[Seat, Ballot]]:
        """Page by page, so that each is rendered once."""
        items = {item.item_id: item for item in self.plan.items}
        rubrics = rubrics_of(self.folder)
        for page in pages_of(self.plan, self.folder):
            item_id = page.blinding.item_id
            ballot = render(items[item_id], rubrics[item_id], page, self.plan)
            for judge in self.plan.judges:
                about: dict[str, Any] = {"have": set(), "excluded": self.plan.excluded}
                for seat in seats_of(judge, pages=[page], items=items, **about):
                    yield seat, ballot


def _is_fallback(record: Criteria) -> bool:
    return record.source == "fallback" and record.criteria == list(FALLBACK)


def _compared(
    who: str, written: Record, asked: Coroutine[Any, Any, Record], *, empty: bool
) -> Iterator[str]:
    """How ``written`` differs from what the record gives.

    Args:
        who: what it is, for the message.
        written: what stands in the folder.
        asked: what asks the record.
        empty: ``written`` says that there is nothing, which needs no call: the model had stopped.
    """
    try:
        follows = _at_once(asked)
    except _NotRecorded as missing:
        if not empty:
            yield f"{who}: there is no call {missing}"
    except _AskedOtherwise as call:
        yield f"{who}: {call} asked something else"
    else:
        if written != follows:
            yield f"{who}: {_differing(written, follows)}"


def _differing(written: Record, follows: Record) -> str:
    fields = (n for n in type(written).model_fields if getattr(written, n) != getattr(follows, n))
    return f"has another {', '.join(fields)} than follows"


def _at_once(asked: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that waits for nothing."""
    try:
        asked.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("a record was waited for")
