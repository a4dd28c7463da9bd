"""What the tutorial's models and its reader say: candidates, judges, an author of criteria."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from wire.answers import deterministic, labels, schema_of, with_code

if TYPE_CHECKING:
    from wire import Asked, WireServer

VAGUE = (
    "Thank you so much for reaching out to us! We completely understand how you feel and we truly "
    "appreciate your patience. Rest assured that our team is looking into it, and that somebody "
    "will be in touch with you in due course. We value you as a customer."
)
CONCRETE = (
    "I am sorry about this. I have looked at your order: we act today, and you will have an email "
    "with the details by 6 pm. If nothing arrives, reply here and I will call you."
)
PAIRS = {"warranty": "luna", "VAT": "luna haiku"}
"""A word of a prompt, and who answers it concretely; everywhere else haiku does."""

FOOLED_ON = ("mug", "nuts", "colour")
"""Words of prompts on which the third judge prefers the longer reply."""

COST = {
    "openai/gpt-6-astra": 0.0312,
    "anthropic/claude-opus-5.5": 0.0207,
    "google/gemini-3.8-flash": 0.0041,
}
RESPONSE = re.compile(r'<response label="(A\d+)"[^>]*>\n(.*?)\n</response', re.DOTALL)


def stand_in(server: WireServer) -> None:
    """Let ``server`` answer as the models of the tutorial, at their prices."""
    server.answer = answer
    for model, cost in COST.items():
        server.conduct(model, cost=cost)


def answer(asked: Asked) -> str:
    """The text of one answer: judges rank, candidates write, the rest fills in its schema."""
    schema = schema_of(asked)
    if schema is None:
        return reply(asked)
    return judgment(asked, schema) if labels(schema) else deterministic(asked)


def reply(asked: Asked) -> str:
    """A candidate's reply to the customer."""
    by_word = (names for word, names in PAIRS.items() if word in asked.prompt)
    is_concrete = any(name in asked.model for name in next(by_word, "haiku").split())
    customer = asked.prompt.rpartition("customer: ")[2].split(".")[0].strip()
    return f"You wrote: {customer}. {CONCRETE if is_concrete else VAGUE}"


def judgment(asked: Asked, schema: dict[str, Any]) -> str:
    """The concrete reply first; equal ones tie; one judge now and then prefers the longer one."""
    texts = dict(RESPONSE.findall(asked.prompt))
    is_fooled = "gemini" in asked.model and any(word in asked.prompt for word in FOOLED_ON)
    keys = {n: len(texts[n]) if is_fooled else float(CONCRETE in texts[n]) for n in labels(schema)}
    groups = [
        [n for n in keys if keys[n] == key] for key in sorted(set(keys.values()), reverse=True)
    ]
    scores = {
        name: {
            criterion: {"score": 4 if name in groups[0] else 2, "reason": reason(texts[name])}
            for criterion in schema["properties"]["scores"]["properties"][name]["properties"]
        }
        for name in keys
    }
    return json.dumps(with_code({"scores": scores, "ranking": groups}, asked))


def reason(text: str) -> str:
    """What a judge has against a reply, in a few words."""
    return "names no next step" if VAGUE in text else "short, but says what happens next"


def person(responses: dict[str, str]) -> str:
    """The side that the reader prefers: the concrete reply, but a warm one to the angry customer."""
    good = VAGUE if any("Third email" in text for text in responses.values()) else CONCRETE
    sides = [side for side, text in responses.items() if good in text]
    return sides[0] if len(sides) == 1 else "tie"
