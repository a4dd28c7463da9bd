"""Blinding: labels instead of names, in a shuffled order, with self-identification masked.

Everything here is pure: the shuffle is a function of seed, item, presentation and judge, so that
a resumed run shows each judge the very same page.
"""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.collect.spans import folded, found
from clash.records import Blinding, Scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clash.config import BlindingConfig

MASK = "[masked]"

_MAKERS = (
    r"anthropic|open\s?ai|google(?:\s+deepmind)?|deepmind|meta(?:\s+ai)?|mistral(?:\s+ai)?|x\.?ai|"
    r"deepseek|alibaba(?:\s+cloud)?|qwen|moonshot(?:\s+ai)?|cohere|microsoft|amazon|nvidia|"
    r"zhipu(?:\s+ai)?|01\.ai|databricks|tii|ibm|apple|baidu|tencent|lmsys"
)
_MODELS = (
    r"claude|chat\s?gpt|gpt|gemini|gemma|bard|palm|llama|mi[sx]tral|grok|"
    r"deepseek|qwen|kimi|command\s?r\+?|copilot|phi[-\s]?\d|vicuna|alpaca|yi[-\s]\w+|nova|glm|"
    r"ernie|hunyuan|jamba|dbrx|falcon|nemotron|o[134](?:-mini|-pro)?"
)
# A version or a variant after the name: "Claude Opus 4.5", "GPT-5.2 pro", "Llama-3-70B". A number
# can be read in one way only, and the group is atomic: "gpt-4 3.14159…" would otherwise be divided
# into pieces in every possible way, which takes time exponential in its length.
_VERSION = r"v?\d\w{0,12}(?:\.\w{1,12}){0,4}"
_VARIANT = "opus|sonnet|haiku|pro|flash|mini|nano|ultra|turbo|large|instruct"
_TAIL = rf"(?>(?:[-\s]?(?:{_VERSION}|{_VARIANT})){{0,6}})"
_NAME = rf"(?:{_MODELS}){_TAIL}"
_BLANKS = r"\s{0,4}"
_SOMEONE = re.compile(rf"\b(?:{_MODELS}|{_MAKERS})")
"""Every pattern below needs one of these, and most texts have none."""
_IDENTITY = [
    re.compile(pattern)
    for pattern in (
        rf"\b(?:i\s+am|i['’]m|my\s+name\s+is|call\s+me)\s+(?:an?\s+)?(?P<hit>{_NAME})\b",
        rf"\bas\s+(?P<hit>{_NAME})(?=\s*[,(]|\s+(?:i|an?|by|from)\b)",
        rf"\b(?:made|created|built|trained|developed|designed)\s+by\s+(?P<hit>{_MAKERS})\b",
        rf"\bi\s+(?:was\s+)?(?:come|came|made|created|built|trained|developed)\s+(?:from|by|at)"
        rf"\s+(?P<hit>{_MAKERS})\b",
        rf"\b(?:language\s+model|ai\s+model|ai\s+assistant|assistant|llm|ai)\s+"
        rf"(?:(?:made|created|built|trained|developed|designed)\s+)?(?:from|by|at)\s+"
        rf"(?P<hit>{_MAKERS})\b",
        rf"^\s*\**(?P<hit>{_NAME})\**\s*:\s",
        rf"(?:[—–-]|signed,?|regards,?|yours,?)\s*\**\b(?P<hit>{_NAME})\**\s*$",
        rf"\b(?P<hit>{_NAME}){_BLANKS}(?:,|\()?{_BLANKS}(?:an?\s+)?(?:ai\s+|language\s+)?(?:model|assistant)?{_BLANKS}"
        rf"(?:made|created|built|trained|developed)\s+by\s+(?:{_MAKERS})\b",
    )
]


@dataclass(frozen=True, slots=True, eq=False)
class Presentation:
    """What a judge gets to see of the responses, and what that hides. Equal only to itself.

    Attributes:
        texts: response by label, in the order they are shown, masked.
    """

    blinding: Blinding
    texts: Mapping[str, str]


def rng(seed: int, *parts: object) -> random.Random:
    """A generator that depends on nothing but ``seed`` and ``parts``."""
    key = "\x1f".join(map(str, (seed, *parts)))
    return random.Random(int.from_bytes(hashlib.sha256(key.encode()).digest()))  # noqa: S311 - reproducible, not secret


def presentations(
    item_id: str,
    texts: Mapping[str, str],
    judges: Sequence[str],
    config: BlindingConfig,
    seed: int,
    *,
    names: Iterable[str] = (),
) -> Iterator[Presentation]:
    """Every presentation of one item.

    Args:
        item_id: the item.
        texts: response by candidate.
        judges: ids of those who will see it; each gets a shuffle of its own only if configured.
        config: per judge, both orders, and what to scrub.
        seed: the run's.
        names: ids of the candidates, masked as well where a response says them of itself.

    Yields:
        One presentation, two with ``both_orders`` (the second is the first reversed); and so for
        each judge with ``per_judge``.
    """
    scrubbed = {name: scrub(text, names) for name, text in texts.items()}
    shown = {
        name: masked(text, scrubbed[name]) if config.scrub == "mask" else text
        for name, text in texts.items()
    }
    records = [] if config.scrub == "off" else _as_records(texts, scrubbed)
    for judge in judges if config.per_judge else [None]:
        # Candidates are sorted first: the order they were written in must not show.
        order = sorted(texts)
        rng(seed, "blind", item_id, judge or "").shuffle(order)
        orders = [order, order[::-1]] if config.both_orders else [order]
        for number, names_in_order in enumerate(orders):
            labels = {f"A{i}": name for i, name in enumerate(names_in_order)}
            yield Presentation(
                Blinding(
                    item_id=item_id,
                    presentation=number,
                    judge=judge,
                    labels=labels,
                    scrubbed=records,
                ),
                {label: shown[name] for label, name in labels.items()},
            )


def scrub(text: str, names: Iterable[str] = ()) -> list[tuple[int, int]]:
    """Where a response says who wrote it: spans, in order, not overlapping.

    Only statements about the author count: "As Claude, …", "made by Anthropic"; a text *about*
    Claude or Google is left alone. The price is that indirect hints stay.
    """
    low = folded(text)
    own = [_own_name(name) for name in map(_short, names) if name in low]
    if not own and not _SOMEONE.search(low):
        return []
    return found((*_IDENTITY, *own), low, "hit")


def _short(name: str) -> str:
    return folded(name.rpartition("/")[2])


def _own_name(short: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:i\s+am|i['’]m|my\s+name\s+is|as)\s+(?P<hit>{re.escape(short)})\b")


def masked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """``text`` with each span replaced by :data:`MASK`."""
    for start, end in reversed(spans):
        text = text[:start] + MASK + text[end:]
    return text


def _as_records(
    texts: Mapping[str, str], spans: Mapping[str, list[tuple[int, int]]]
) -> list[Scrub]:
    return [
        Scrub(candidate=name, start=start, end=end, text=texts[name][start:end])
        for name in texts
        for start, end in spans[name]
    ]
