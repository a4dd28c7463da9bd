"""The criteria of an item: derived from its prompt alone, before any response is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from clash.collect.calling import ModelStopError, PendingCall, call_id
from clash.collect.jsontext import Unreadable, body, objects
from clash.collect.judge_prompt import conversation
from clash.collect.plan import CRITERIA_TOKENS
from clash.providers.base import Request
from clash.records import Criteria, Criterion, Turn, weigh_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.collect.calling import AnswerSource
    from clash.collect.plan import Plan
    from clash.config import ModelRef
    from clash.records import Item

_FENCE = "```"
FALLBACK = tuple(
    Criterion(name=name, weight=0.25)
    for name in ("Accuracy", "Clarity", "Helpfulness", "Completeness")
)

_CRITERION = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "weight": {"type": "integer"},
        "description": {"type": "string"},
    },
    "required": ["name", "weight", "description"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"criteria": {"type": "array", "items": _CRITERION}},
    "required": ["criteria"],
    "additionalProperties": False,
}


def ready_criteria(item: Item, plan: Plan) -> Criteria | None:
    """The criteria of an item for which no call is needed; null where a model has to write them."""
    config = plan.config.criteria
    if item.item_id in plan.reused_criteria:
        return plan.reused_criteria[item.item_id].model_copy(update={"call_id": None})
    if item.criteria:
        return _record(item, "fixed", item.criteria)
    if config.mode == "none":
        return _record(item, "none", [])
    if config.mode == "fixed":
        return _record(item, "fixed", config.items or FALLBACK)
    if plan.criteria_ref is None:
        return _record(item, "fallback", FALLBACK, error=plan.criteria_why)
    return None


async def derive(item: Item, plan: Plan, ref: ModelRef, caller: AnswerSource) -> Criteria:
    """Ask the criteria model; the generic criteria, with the reason, where it does not deliver."""
    pending = PendingCall(
        call_id=call_id("criteria", item.item_id),
        purpose="criteria",
        item_id=item.item_id,
        ref=ref,
        request=criteria_request(item, plan, ref),
    )
    try:
        call = await caller.ask(pending)
    except ModelStopError as error:
        return _record(item, "fallback", FALLBACK, error=str(error))
    if call.outcome != "ok":
        reason = call.error or f"the answer was {call.outcome}"
        return _record(item, "fallback", FALLBACK, error=reason, call_id=call.call_id)
    try:
        criteria = parse(call.text or "")
    except Unreadable as error:
        return _record(item, "fallback", FALLBACK, error=str(error), call_id=call.call_id)
    return _record(item, "dynamic", criteria, call_id=call.call_id)


def criteria_request(item: Item, plan: Plan, ref: ModelRef) -> Request:
    """The request to the criteria model: the prompt, and nothing of any response."""
    prompt = plan.templates.render(
        "criteria.user", {"conversation": conversation(item.turns, item.system, plan.goal(item))}
    )
    return Request(
        turns=(Turn(role="user", content=prompt),),
        system=plan.templates.render("criteria.system", {}),
        max_tokens=ref.options.max_tokens or CRITERIA_TOKENS,
        schema=SCHEMA,
        options=ref.options,
    )


def parse(text: str) -> list[Criterion]:
    """Three to five criteria, with weights that add up to 1; names alone weigh the same.

    A list may stand by itself, in a code fence or in prose.

    Raises:
        Unreadable: they are fewer, more, unnamed, named twice, or without positive weights.
    """
    values = _values(text)
    for value in values:
        rows = value.get("criteria") if isinstance(value, dict) else value
        if isinstance(rows, list):
            return _read_criteria(rows)
    if all(isinstance(value, dict) and "name" in value for value in values):
        return _read_criteria(values)  # a list in prose, of which the objects are what is found
    raise Unreadable("the answer has no list of criteria")


def _values(text: str) -> list[Any]:
    """The JSON values of an answer: of its code fence, where it has one."""
    inner = body(text)
    fence_text = inner[inner.find(_FENCE) : inner.rfind(_FENCE)].partition("\n")[2]
    return objects(fence_text if fence_text.strip() else text, [])


def _read_criteria(records: list[Any]) -> list[Criterion]:
    rows = weigh_names(records)
    if not 3 <= len(rows) <= 5:
        raise Unreadable(f"expected 3 to 5 criteria, found {len(rows)}")
    try:
        criteria = [Criterion.model_validate(row) for row in rows]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise Unreadable(f"a criterion is not valid ({field}: {first['msg']})") from None
    names = [criterion.name.strip() for criterion in criteria]
    if not all(names) or len({name.lower() for name in names}) < len(names):
        raise Unreadable("a criterion has no name, or two have the same")
    total = sum(criterion.weight for criterion in criteria)
    return [
        Criterion(name=name, weight=round(c.weight / total, 6), description=c.description.strip())
        for name, c in zip(names, criteria, strict=True)
    ]


def _record(
    item: Item,
    source: Any,  # noqa: ANN401 - a Literal that pydantic checks
    criteria: Sequence[Criterion],
    *,
    error: str | None = None,
    call_id: str | None = None,
) -> Criteria:
    return Criteria(
        item_id=item.item_id, source=source, criteria=list(criteria), error=error, call_id=call_id
    )
