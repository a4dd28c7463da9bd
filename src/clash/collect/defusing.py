"""Responses without what could close their delimiters or command the judge. Pure."""

from __future__ import annotations

import re

from clash.collect.spans import folded, found

_DELIMITER = re.compile(
    r"<(?=\s*(?:/\s*)?(?:response|responses|prompt|conversation|criteria|system|judge|reference|task)\b)",
    re.IGNORECASE,
)
_TO_THE_JUDGE = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"(?:ignore|disregard|forget)\s+(?:all\s+|any\s+)?(?:the\s+|your\s+|these\s+)?"
        r"(?:previous|prior|above|earlier|other)\s+(?:instruction|rule|criteri|prompt|response)\w*",
        r"(?:dear|attention|note\s+to|message\s+(?:to|for)|instructions?\s+(?:to|for))\s+"
        r"(?:the\s+)?(?:judge|evaluator|grader|reviewer)s?",
        r"\b(?:rank|rate|score|place|put|prefer|choose|select|give)\s+"
        r"(?:me|this\s+(?:response|answer|one)|response\s+a\d|a\d)\s+"
        r"(?:first|highest|best|top|as\s+(?:the\s+)?(?:best|winner)|(?:a\s+)?(?:5|five|full\s+marks))",
        r"\b(?:this\s+(?:response|answer)|a\d)\s+(?:is|should\s+be)\s+(?:the\s+)?"
        r"(?:winner|ranked\s+first|best\s+response)",
        r"^[^\S\n]*(?:\[?(?:system|inst|/inst)\]?\s*:|<\|im_(?:start|end)\|>|###\s*(?:system|instruction))",
    )
)


def defuse(text: str, nonce: str, label: str, flags: list[str]) -> str:
    """``text`` with nothing in it that could close its delimiters or command the judge.

    The words stay readable: an angle bracket becomes a single quote bracket, and what speaks to
    the judge is put in brackets that the judge is told never to follow.
    """
    if nonce in text:
        text = text.replace(nonce, "·" * len(nonce))
        flags.append(f"{label}: holds the nonce")
    if _DELIMITER.search(text):
        text = defuse_delimiters(text)
        flags.append(f"{label}: imitates a delimiter")
    spans = found(_TO_THE_JUDGE, folded(text))
    if spans:
        first = text[slice(*spans[0])].strip()
        flags.append(f"{label}: speaks to the judge ({first[:40]!r})")
    for start, end in reversed(spans):
        text = f"{text[:start]}⟦{text[start:end]}⟧{text[end:]}"
    return text


def defuse_delimiters(text: str) -> str:
    """``text`` whose imitations of a delimiter begin with ``‹`` instead of ``<``."""
    return _DELIMITER.sub("‹", text)
