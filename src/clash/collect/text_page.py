"""The page of one text that is judged by itself, and the label or score in the answer.

Pure. The text counts as hostile, as the responses of a ranking do: it is defused, it stands between
delimiters with a nonce, and an answer counts only with the code of its page.
"""

from __future__ import annotations

import json
import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clash.collect.answers import KEY, AnswerForm, find_answer
from clash.collect.defusing import defuse_delimiters
from clash.collect.jsontext import Unreadable, note
from clash.collect.judge_prompt import (
    JudgePrompt,
    closed_object,
    conversation,
    criterion_lines,
    hidden_text_flags,
    item_turns,
    note_on_turns,
    response_block,
    section,
)
from clash.collect.parsing import REMARKS, ParsedAnswer, shorten
from clash.config import PROMPT
from clash.providers.base import JudgeTask
from clash.records import Turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.collect.blind import Presentation
    from clash.collect.templates import Templates
    from clash.config import JudgingConfig
    from clash.records import Criterion, Item, Parse

REASON = "reason"
TEXT_LABEL = "A0"
"""The neutral label of the only text of a page."""
_DEFAULT_QUESTIONS = {
    "label": "Which of the labels fits the text?",
    "score": "How good is the text as an answer to what it was written for?",
}
_NUMBER = re.compile(r"(-?\d{1,5})(?:\.0)?(?: ?(?:/|out of) ?(\d{1,5}))?")
_MOST_OF_A_SCALE = 25
"""Steps of a scale up to which the schema lists each; a longer one is checked after the answer."""


# -- the page --------------------------------------------------------------------------------------


def render_text_prompt(
    item: Item,
    criteria: Sequence[Criterion],
    presentation: Presentation,
    templates: Templates,
    judging: JudgingConfig,
    *,
    nonce: str,
    code: str | None,
    goal: str | None = None,
) -> JudgePrompt:
    """Render the page of one text.

    Args:
        item: its conversation and reference answer are shown, unless the prompt is the text.
        criteria: listed where there are some; only the label or the score is asked for.
        presentation: the text, masked and normalised, and the choices in their order.
        templates: the words of the run.
        judging: question, and labels or scale.
        nonce: the code in the delimiters, unknown to the author of the text.
        code: what an answer must repeat to count.
        goal: what a simulated user of the item wants to reach.
    """
    flags = [*hidden_text_flags(presentation)]
    (label,) = presentation.texts
    choices = tuple(presentation.blinding.choices or ())
    is_prompt = presentation.blinding.labels[label] == PROMPT
    is_played = bool(presentation.turns)
    body = "" if is_prompt else conversation(item.turns, item.system, goal, numbers=is_played)
    block = response_block(label, presentation, nonce, flags)
    if is_played:
        block = f"{note_on_turns(templates, presentation)}\n\n{block}"
    fields = {
        "question": defuse_delimiters(judging.question or _DEFAULT_QUESTIONS[judging.mode]),
        "conversation": section("conversation", body),
        "reference": section("reference", item.reference),
        "criteria": section("criteria", "\n".join(criterion_lines(criteria))),
        "text": block,
        "nonce": nonce,
        "answer_format": _answer_format(templates, judging, choices, code),
    }
    task = JudgeTask(
        () if is_prompt else item_turns(item),
        tuple(criteria),
        dict(presentation.texts),
        choices=tuple(judging.labels),
        scale=judging.bounds if judging.mode == "score" else None,
    )
    return JudgePrompt(
        system=sys.intern(templates.render("text.system", {})),
        turns=(Turn(role="user", content=templates.render("text.user", fields)),),
        schema=_schema(judging.mode, choices),
        task=task,
        labels=(label,),
        criteria=(),
        flags=tuple(flags),
        ties=False,
        code=code,
        judging=judging,
    )


def _answer_format(
    templates: Templates, judging: JudgingConfig, choices: Sequence[str], code: str | None
) -> str:
    if judging.mode == "label":
        meanings = judging.labels
        lines = [
            f"- `{name}`: {meanings[name]}" if meanings[name] else f"- `{name}`" for name in choices
        ]
        words = defuse_delimiters("\n".join(lines))
    else:
        low, _ = judging.bounds
        words = " to ".join(f"{end} ({'worst' if int(end) == low else 'best'})" for end in choices)
    form = templates.render(f"answer.{judging.mode}", {"choices": words})
    return form if code is None else f"{form}\n\n{templates.render('ballot', {'code': code})}"


@lru_cache(maxsize=64)
def _schema(mode: str, choices: tuple[str, ...]) -> Mapping[str, Any]:
    """JSON Schema of the answer. Labels are sorted, so that a run has one schema for all pages."""
    if mode == "label":
        value: dict[str, Any] = {"type": "string", "enum": sorted(choices)}
    else:
        low, high = sorted(map(int, choices))
        value = {"type": "integer"}
        if high - low <= _MOST_OF_A_SCALE:
            value["enum"] = list(range(low, high + 1))
    return closed_object({REASON: {"type": "string"}, mode: value})


# -- the answer ------------------------------------------------------------------------------------


def parse_vote(
    text: str, judging: JudgingConfig, *, code: str | None, schema_enforced: bool
) -> ParsedAnswer:
    """Read the label or the score in a judge's reply; never raises.

    A label counts as it is spelled, upper and lower case apart; a score counts as a whole number of
    the scale, ``4``, ``"4"`` or ``4/5``, and is never clamped or rounded.
    """
    repairs = list[str]()
    key: str = judging.mode
    try:
        answer = find_answer(
            text, AnswerForm((REASON, key), code, schema_enforced=schema_enforced), repairs
        )
        _check_keys(answer, key, repairs)
        vote: str | int = (
            _label(answer[key], judging, repairs)
            if key == "label"
            else _score(answer[key], judging, repairs)
        )
        reason = answer.get(REASON)
        words = shorten(reason, repairs) if isinstance(reason, str) and reason.strip() else ""
    except Unreadable as error:
        return ParsedAnswer(None, "failed", repairs=tuple(repairs), error=str(error))
    status: Parse = "repaired" if repairs else "clean"
    reasons = {TEXT_LABEL: {key: words}} if words else {}
    return ParsedAnswer(None, status, reasons=reasons, repairs=tuple(repairs), vote=vote)


def _check_keys(answer: Mapping[str, Any], key: str, repairs: list[str]) -> None:
    """Refuse keys that nobody asked for: one of them may contradict the label."""
    if answer.get(key) is None:
        raise Unreadable(f"the answer has no {key}")
    order = list(answer)
    for name in answer.keys() - {KEY, REASON, key}:
        remark = name.strip().lower() in REMARKS and isinstance(answer[name], str)
        if not remark or order.index(name) > order.index(key):
            raise Unreadable(f"the key {json.dumps(name)[:40]} was not asked for")
        note(repairs, f"{name!r} passed over")


def _label(value: Any, judging: JudgingConfig, repairs: list[str]) -> str:  # noqa: ANN401 - any JSON
    """The label that ``value`` spells; only spellings that cannot mean another."""
    if isinstance(value, str):
        if value in judging.labels:
            return value
        bare = _bare(value)
        names = [name for name in judging.labels if _bare(defuse_delimiters(name)) == bare]
        if len(names) == 1:
            note(repairs, f"{value.strip()[:40]!r} read as {names[0]}")
            return names[0]
    raise Unreadable(f"the label is {json.dumps(value)[:40]}, which is not one of those listed")


def _bare(label: str) -> str:
    return label.strip().strip("`\"'").casefold()


def _score(value: Any, judging: JudgingConfig, repairs: list[str]) -> int:  # noqa: ANN401 - any JSON
    low, high = judging.bounds
    score = value
    if isinstance(value, str) and (match := _NUMBER.fullmatch(value.strip())):
        if match[2] is None or int(match[2]) == high:
            score = int(match[1])
            note(repairs, "a score written as text")
    elif isinstance(value, float) and value.is_integer():
        score = int(value)
    if isinstance(score, int) and not isinstance(score, bool) and low <= score <= high:
        return score
    raise Unreadable(f"the score is {json.dumps(value)[:40]}, expected {low} to {high}")
