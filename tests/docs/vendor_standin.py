"""What the tutorial's models and its reader say: candidates, judges, an author of criteria."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from wire.answers import deterministic, labels, schema_of, share, with_code

if TYPE_CHECKING:
    from pathlib import Path

    from wire import VendorRequest, WireServer

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
FIVE_MODELS = {
    "openai/gpt-6-luna": (0.9, 0.0021),
    "anthropic/claude-haiku-5.5": (1.3, 0.0034),
    "google/gemini-3.5-flash-lite": (0.5, 0.0006),
    "x-ai/grok-4.7": (1.2, 0.0149),
    "anthropic/claude-sonnet-5.5": (1.9, 0.0118),
}
"""What a stand-in for five priced candidates is worth to the judges, and what a reply costs."""

SUBJECTS = [
    "parcel",
    "jacket",
    "mug",
    "order",
    "invoice",
    "warranty",
    "card",
    "nuts",
    "account",
    "refund",
]
WHEN = ("today", "since Monday", "for the third time")
RESPONSE = re.compile(r'<response label="(A\d+)"[^>]*>\n(.*?)\n</response', re.DOTALL)


def stand_in(server: WireServer) -> None:
    """Let ``server`` answer as the models of the tutorial, at their prices."""
    server.answer = answer
    for model, cost in COST.items():
        server.conduct(model, cost=cost)


def answer(request: VendorRequest) -> str:
    """The text of one answer: judges rank, candidates write, the rest fills in its schema."""
    schema = schema_of(request)
    if schema is None:
        return reply(request)
    return judgment(request, schema) if labels(schema) else deterministic(request)


def reply(request: VendorRequest) -> str:
    """A candidate's reply to the customer."""
    by_word = (names for word, names in PAIRS.items() if word in request.prompt)
    is_concrete = any(name in request.model for name in next(by_word, "haiku").split())
    customer = request.prompt.rpartition("customer: ")[2].split(".")[0].strip()
    return f"You wrote: {customer}. {CONCRETE if is_concrete else VAGUE}"


def judgment(request: VendorRequest, schema: dict[str, Any]) -> str:
    """The concrete reply first; equal ones tie; one judge now and then prefers the longer one."""
    texts = dict(RESPONSE.findall(request.prompt))
    is_fooled = "gemini" in request.model and any(word in request.prompt for word in FOOLED_ON)
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
    return json.dumps(with_code({"scores": scores, "ranking": groups}, request))


def reason(text: str) -> str:
    """What a judge has against a reply, in a few words."""
    return "names no next step" if VAGUE in text else "short, but says what happens next"


def person(responses: dict[str, str]) -> str:
    """The side that the reader prefers: the concrete reply, but a warm one to the angry customer."""
    good = VAGUE if any("Third email" in text for text in responses.values()) else CONCRETE
    sides = [side for side, text in responses.items() if good in text]
    return sides[0] if len(sides) == 1 else "tie"


def five_models(server: WireServer, prompts: Path) -> str:
    """Let ``server`` answer as five candidates and their judges; writes 30 prompts.

    Returns:
        The candidates, as ``--models`` takes them.
    """
    lines = [
        f"- {json.dumps({'prompt': f'Reply to this customer: I wrote about my {s}, {w}.'})}\n"
        for w in WHEN
        for s in SUBJECTS
    ]
    prompts.write_text("".join(lines), encoding="utf-8")
    server.answer = graded
    for model, cost in COST.items():
        server.conduct(model, cost=cost)
    for model, (_, cost) in FIVE_MODELS.items():
        server.conduct(model, cost=cost, latency_s=20 * cost)
    return ",".join(f"openrouter/{model}" for model in FIVE_MODELS)


def graded(request: VendorRequest) -> str:
    """Candidates sign with the quality of their reply; judges rank by it, each with some error."""
    schema = schema_of(request)
    if schema is None:
        quality = FIVE_MODELS[request.model][0] + 1.6 * share(request.model + request.prompt)
        return f"{CONCRETE} (case {quality:.3f})"
    if not labels(schema):
        return deterministic(request)
    texts = dict(RESPONSE.findall(request.prompt))
    quality_by_label = {
        n: float(texts[n].rpartition("(case ")[2][:5]) + 0.8 * share(request.model + texts[n])
        for n in labels(schema)
    }
    order = sorted(quality_by_label, key=lambda n: -quality_by_label[n])
    scores = {
        name: {
            criterion: {
                "score": 5 - position,
                "reason": "could say more" if position > 1 else "clear",
            }
            for criterion in schema["properties"]["scores"]["properties"][name]["properties"]
        }
        for position, name in enumerate(order)
    }
    return json.dumps(with_code({"scores": scores, "ranking": [[n] for n in order]}, request))
