"""The turns of a conversation: what a candidate is asked in each.

Pure. A user message that an assistant message follows in the prompts file has its answer there; every
other one is answered by the candidate before the next one is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.conversations import conversation_parts
from clash.records import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.config import SimulatedUser
    from clash.records import AnsweredTurn, Item


@dataclass(frozen=True)
class Script:
    """What is fixed about a conversation before it begins.

    Attributes:
        parts: the messages of the item, cut after each that the candidate answers.
        user: who goes on after the last part; null where nobody does.
    """

    parts: tuple[tuple[Turn, ...], ...]
    user: SimulatedUser | None = None

    @classmethod
    def of(cls, item: Item, user: SimulatedUser | None = None) -> Script:
        """The script of an item."""
        return cls(tuple(conversation_parts(item.turns)), user)

    @property
    def is_conversation(self) -> bool:
        """Whether a candidate answers more than once."""
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


def role_texts(messages: Sequence[Turn]) -> Iterator[tuple[str, str]]:
    """The messages with their roles; those that a candidate answers also have the turn's number."""
    for number, part in enumerate(conversation_parts(messages), start=1):
        *earlier, last = part
        yield from ((turn.role, turn.content) for turn in earlier)
        yield f"{last.role}, turn {number}", last.content
