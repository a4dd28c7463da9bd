"""The turns of a conversation: what a candidate is asked in each.

Pure. A user message that an assistant message follows in the prompts file has its answer there; every
other one is answered by the candidate before the next one is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.records import AnsweredTurn, Turn
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.config import SimulatedUser
    from clash.records import Item


@dataclass(frozen=True)
class Script:
    """What is decided of a conversation before it begins.

    Attributes:
        parts: the messages of the item, cut after each that the candidate answers.
        user: who goes on after the last part; null where nobody does.
    """

    parts: tuple[tuple[Turn, ...], ...]
    user: SimulatedUser | None = None

    @classmethod
    def of(cls, item: Item, user: SimulatedUser | None = None) -> Script:
        """The script of an item."""
        return cls(tuple(_parts(item.turns)), user)

    @property
    def is_conversation(self) -> bool:
        """Whether a candidate is asked more than once."""
        return len(self.parts) > 1 or self.user is not None

    @property
    def at_once(self) -> Script:
        """The same messages in one call, as runs were made before turns were played."""
        return Script((sum(self.parts, ()),))

    @property
    def most_turns(self) -> int:
        """The most turns that the candidate answers."""
        return max(len(self.parts), self.user.turns if self.user is not None else 0)

    def messages(self, turns: Sequence[AnsweredTurn], user: str | None) -> Iterator[Turn]:
        """What is sent for the next turn: all so far, and the user's message at the end.

        Args:
            turns: those that the candidate has answered.
            user: what a simulated user says now; null where the script has the message.
        """
        for number, turn in enumerate(turns):
            yield from self._questions(number, turn.user)
            yield Turn(role="assistant", content=turn.text)
        yield from self._questions(len(turns), user)

    def _questions(self, number: int, user: str | None) -> tuple[Turn, ...]:
        return self.parts[number] if user is None else (Turn(role="user", content=user),)


def _parts(messages: Sequence[Turn]) -> Iterator[tuple[Turn, ...]]:
    part: list[Turn] = []
    for number, message in enumerate(messages):
        part.append(message)
        if message.role != "user":
            continue
        later = (turn.role for turn in messages[number + 1 :] if turn.role != "system")
        if next(later, "user") == "user":
            yield tuple(part)
            part = []


def numbered(messages: Sequence[Turn]) -> Iterator[tuple[str, str]]:
    """The messages with their roles; those that a candidate answers also have the turn's number."""
    for number, part in enumerate(_parts(messages), start=1):
        *earlier, last = part
        yield from ((turn.role, turn.content) for turn in earlier)
        yield f"{last.role}, turn {number}", last.content


def answered_turns(item: Item, answer: Sequence[str] | Sequence[Turn]) -> list[AnsweredTurn]:
    """The turns of an injected conversation.

    Args:
        item: what was asked.
        answer: an answer for each user message of the item; or the messages that follow its only
            one, which begin and end with the assistant.

    Raises:
        ValueError: there are fewer or more, or roles do not alternate.
    """
    expected = len(Script.of(item).parts)
    texts = [part if isinstance(part, str) else part.content for part in answer]
    if all(isinstance(part, str) for part in answer):
        if len(texts) != expected:
            raise ValueError(f"has {len(texts)} answers to {plural(expected, 'user message')}")
        return [AnsweredTurn(text=text) for text in texts]
    roles = [part.role for part in answer if isinstance(part, Turn)]
    if expected > 1:
        raise ValueError(f"repeats user messages, of which the prompt has {expected}")
    if len(roles) % 2 == 0 or roles != ["assistant", "user"] * (len(roles) // 2) + ["assistant"]:
        raise ValueError("must begin and end with the assistant, and roles must alternate")
    users = [None, *texts[1::2]]
    return [
        AnsweredTurn(user=user, text=text) for user, text in zip(users, texts[::2], strict=True)
    ]
