"""Conversations as the hub's data sets write them: messages with a role and a content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clash.datasets.record_files import SourceRow


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The texts of both sides, turn by turn."""

    questions: list[str]
    answers: list[str]


def read_dialogue(row: SourceRow, field: str, *, turns: int | None = None) -> Dialogue:
    """The two sides of a conversation, up to a turn.

    Raises:
        InputError: it is not a list of messages, or its turns are incomplete.
    """
    messages = row.get(field)
    if not isinstance(messages, list):
        raise row.error("expected a list of messages", field)
    texts: dict[str, list[str]] = {"user": [], "assistant": []}
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role in texts:
            texts[role].append(_text(row, field, message.get("content")))
    end = turns or len(texts["user"])
    if not texts["user"] or len(texts["user"]) < end or len(texts["assistant"]) < end:
        raise row.error(f"expected {end} questions with an answer each", field)
    return Dialogue(texts["user"][:end], texts["assistant"][:end])


def _text(row: SourceRow, field: str, content: Any) -> str:  # noqa: ANN401 - any JSON value
    """A content that is text, or a list of parts of which the text counts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return "\n".join(part.get("text") or "" for part in content)
    raise row.error("a message's content is neither text nor a list of parts", field)
