"""The prompt that a judge reads: the conversation, criteria, blinded responses, and the answer format.

Pure. Every response counts as hostile: it is defused, and stands between delimiters with a nonce.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from clash.collect.conversation import role_texts
from clash.collect.defusing import defuse, defuse_delimiters
from clash.collect.jsontext import is_object
from clash.escape import clip
from clash.providers.base import JudgeTask, Request
from clash.records import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.collect.blind import Presentation
    from clash.collect.templates import Templates
    from clash.config import JudgingConfig, Options
    from clash.records import Blinding, Call, Criterion, Item

_MOST_NAME = 100
"""Characters of a name that a judge is told."""


@dataclass(frozen=True, slots=True)
class JudgePrompt:
    """What every judge of a presentation reads, and what its answer may name.

    Attributes:
        labels: the labels of the responses, in the order they are shown.
        criteria: names, in the order of their ids ``C1`` …
        flags: what was defused in the responses, each with the label of the response.
        ties: whether a group of the ranking may hold more than one label.
        code: what an answer must repeat; null in runs made before there were codes.
        judging: what is asked of a single text; null where responses are ranked.
    """

    system: str
    turns: tuple[Turn, ...]
    schema: Mapping[str, Any]
    task: JudgeTask
    labels: tuple[str, ...]
    criteria: tuple[str, ...]
    flags: tuple[str, ...]
    ties: bool
    code: str | None = None
    judging: JudgingConfig | None = None

    def request(self, options: Options, max_tokens: int) -> Request:
        """The prompt as a request to one judge."""
        return Request(
            turns=self.turns,
            system=self.system,
            max_tokens=max_tokens,
            schema=self.schema,
            ballot_code=self.code,
            stream=bool(options.stream),
            options=options,
            task=self.task,
        )


def render_prompt(
    item: Item,
    criteria: Sequence[Criterion],
    presentation: Presentation,
    templates: Templates,
    *,
    ties: bool,
    nonce: str,
    code: str | None = None,
    goal: str | None = None,
    shows_names: bool = False,
) -> JudgePrompt:
    """Render the prompt of one presentation.

    Args:
        item: its conversation and reference answer are shown.
        criteria: may be empty: then a ranking alone is asked for.
        presentation: the responses, masked and normalised, in their order.
        templates: the words of the run.
        ties: whether the ranking may have ties.
        nonce: the code in the delimiters, unknown to the authors of the responses.
        code: what an answer must repeat to count; null for runs made before there were codes.
        goal: what a simulated user of the item wants to reach.
        shows_names: tell the judge who wrote each response.
    """
    flags = [*hidden_text_flags(presentation)]
    is_played = bool(presentation.turns)
    blocks = [response_block(label, presentation, nonce, flags) for label in presentation.texts]
    if is_played:
        blocks.insert(0, note_on_turns(templates, presentation))
    if shows_names:
        blocks.insert(0, _note_on_names(templates, presentation))
    fields = {
        "conversation": conversation(item.turns, item.system, goal, numbers=is_played),
        "reference": section("reference", item.reference),
        "criteria": _criteria(criteria),
        "responses": "\n\n".join(blocks),
        "nonce": nonce,
        "answer_format": _answer_format(templates, criteria, code, ties=ties),
    }
    labels = tuple(presentation.texts)
    return JudgePrompt(
        system=_system(templates, ties=ties),
        turns=(Turn(role="user", content=templates.render("judge.user", fields)),),
        schema=answer_schema(labels, len(criteria), ties=ties),
        task=JudgeTask(item_turns(item), tuple(criteria), dict(presentation.texts), ties),
        labels=labels,
        criteria=tuple(criterion.name for criterion in criteria),
        flags=tuple(flags),
        ties=ties,
        code=code,
    )


def hidden_text_flags(presentation: Presentation) -> Iterator[str]:
    """Flags of responses with hidden text: no honest writing holds tag characters."""
    blinding = presentation.blinding
    for label, candidate in blinding.labels.items():
        if "tag" in blinding.normalised.get(candidate, {}):
            yield f"{label}: hid text in tag characters"


def _system(templates: Templates, *, ties: bool) -> str:
    rule = templates.render("ties.allowed" if ties else "ties.forbidden", {})
    # The same for every page, of which many are held at once.
    return sys.intern(templates.render("judge.system", {"ties_rule": rule}))


def item_turns(item: Item) -> tuple[Turn, ...]:
    """The system message and the turns of an item."""
    system = [Turn(role="system", content=item.system)] if item.system else []
    return (*system, *item.turns)


def page_code(secret: str, purpose: Literal["delimiter", "ballot"], blinding: Blinding) -> str:
    """Twelve hex digits that cannot be known without the run's secret, the same on every resume.

    The delimiters and the answer of a page have different codes: a judge that quotes a delimiter
    must not thereby write the code of an answer.
    """
    page = json.dumps([purpose, blinding.item_id, blinding.presentation, blinding.judge])
    return hmac.digest(secret.encode(), page.encode(), "sha256").hex()[:12]


def seeded_nonce(seed: int, *parts: object) -> str:
    """The code in the delimiters of runs that have no secret, for which it has to be reproduced.

    It follows from what is public, so new runs do not use it.
    """
    key = "\x1f".join(map(str, ("nonce", seed, *parts)))
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def conversation(
    turns: Sequence[Turn], system: str | None, goal: str | None = None, *, numbers: bool = False
) -> str:
    """The prompt as a judge or a criteria writer reads it; delimiters in it are defused too.

    Args:
        turns: the messages of the item.
        system: its system message.
        goal: what a simulated user of the item wants to reach.
        numbers: count the user messages that a candidate answers.
    """
    if len(turns) == 1 and system is None and goal is None and not numbers:
        return defuse_delimiters(turns[0].content)
    lines = [f"[system]\n{system}"] if system else []
    lines += [f"[what the user wants to reach]\n{goal}"] if goal else []
    messages = role_texts(turns) if numbers else ((turn.role, turn.content) for turn in turns)
    lines += [f"[{role}]\n{content}" for role, content in messages]
    return defuse_delimiters("\n\n".join(lines))


@lru_cache(maxsize=64)
def answer_schema(labels: tuple[str, ...], criteria: int, *, ties: bool) -> Mapping[str, Any]:
    """JSON Schema of a judgment. Shared: not to be changed.

    Criteria go by number and not by name, so that a run has few schemas: vendors compile and
    cache each. Only the subset that every vendor accepts in strict mode.
    """
    label = {"type": "string", "enum": list(labels)}
    group = {"type": "array", "items": label}
    ranking = {"type": "array", "items": group if ties else label}
    if not criteria:
        return closed_object({"ranking": ranking})
    cell = closed_object(
        {"score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}, "reason": {"type": "string"}}
    )
    row = closed_object({f"C{number}": cell for number in range(1, criteria + 1)})
    return closed_object({"scores": closed_object(dict.fromkeys(labels, row)), "ranking": ranking})


def closed_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of an object with these properties, all required, and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def reask(request: Request, call: Call, error: str, templates: Templates) -> Request:
    """The second request, after an answer that cannot be read.

    A schema that was sent and left more than its object in the answer (thinking before it, a
    fence) does not hold the judge to it, and has no room for the code that such an answer needs.
    So the form is then asked for in words.
    """
    answer = call.text or ""
    if call.structured == "schema" and not is_object(answer):
        options = request.options.model_copy(update={"structured": "text"})
        request = replace(request, options=options)
    question = templates.render("reask", {"error": error})
    if request.ballot_code is not None:
        question += "\n\n" + templates.render("ballot", {"code": request.ballot_code})
    turns = (
        *request.turns,
        Turn(role="assistant", content=answer[:20_000] or "(empty)"),
        Turn(role="user", content=question),
    )
    return replace(request, turns=turns)


def longer(request: Request) -> Request:
    """The same question with room for twice the answer."""
    return replace(request, max_tokens=request.max_tokens * 2)


def section(name: str, text: str | None) -> str:
    """A part of a page under its name; empty without text."""
    return f"<{name}>\n{defuse_delimiters(text)}\n</{name}>\n" if text else ""


def response_block(label: str, presentation: Presentation, nonce: str, flags: list[str]) -> str:
    """A response between its delimiters; a conversation has a block for each turn."""
    turns = presentation.turns.get(label, ())
    if not turns:
        text = defuse(presentation.texts[label], nonce, label, flags)
        return _delimit("response", f'label="{label}"', text, nonce)
    blocks = []
    for number, turn in enumerate(turns, start=1):
        attributes = f'label="{label}" turn="{number}"'
        turn_flags: list[str] = []
        if turn.user is not None:
            blocks.append(
                _delimit("prompt", attributes, defuse(turn.user, nonce, label, turn_flags), nonce)
            )
        blocks.append(
            _delimit("response", attributes, defuse(turn.text, nonce, label, turn_flags), nonce)
        )
        flags += (f"{flag} in turn {number}" for flag in turn_flags)
    return "\n\n".join(blocks)


def _delimit(name: str, attributes: str, text: str, nonce: str) -> str:
    body = text if text.strip() else "(the response is empty)"
    return f'<{name} {attributes} nonce="{nonce}">\n{body}\n</{name} nonce="{nonce}">'


def _note_on_names(templates: Templates, presentation: Presentation) -> str:
    """Who wrote each response. A name is one line and short: it may come from a stranger's file."""
    lines = [
        f"{label}: {clip(defuse_delimiters(name), _MOST_NAME)}"
        for label, name in presentation.blinding.labels.items()
    ]
    return templates.render("names", {"authors": "\n".join(lines)})


def note_on_turns(templates: Templates, presentation: Presentation) -> str:
    """How to read responses of several turns."""
    has_user = any(turn.user is not None for turns in presentation.turns.values() for turn in turns)
    note = (
        " The user's later messages differ from response to response; they stand in `prompt` blocks"
        " with the label of the response, are no work of the assistant, and are not judged."
    )
    return templates.render("turns", {"user_note": note if has_user else ""})


def _criteria(criteria: Sequence[Criterion]) -> str:
    return "\n".join(criterion_lines(criteria)) or "(none: judge the responses as a whole)"


def criterion_lines(criteria: Sequence[Criterion]) -> Iterator[str]:
    """The criteria by number, with their weights."""
    total = sum(criterion.weight for criterion in criteria)
    for number, criterion in enumerate(criteria, start=1):
        share = f"{criterion.weight / total:.0%}"
        description = f": {criterion.description}" if criterion.description else ""
        yield defuse_delimiters(f"C{number}. {criterion.name} (weight {share}){description}")


def _answer_format(
    templates: Templates, criteria: Sequence[Criterion], code: str | None, *, ties: bool
) -> str:
    name = "answer.scores" if criteria else "answer.ranking"
    # Not the labels that are shown: an example must not put one of them first.
    example = '[["BEST"], ["NEXT"]]' if ties else '["BEST", "NEXT"]'
    ids = ", ".join(f"C{number}" for number in range(1, len(criteria) + 1))
    form = templates.render(name, {"ranking_example": example, "criterion_ids": ids})
    return form if code is None else f"{form}\n\n{templates.render('ballot', {'code': code})}"
