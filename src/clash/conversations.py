"""Conversations of several turns: where a candidate answers, and its answers as turns and as one text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.records import AnsweredTurn, Response, Turn
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Answer = str | Sequence[str | Turn]
    """A response in a file: a text, the answers turn by turn, or the messages after the prompt."""


def conversation_parts(messages: Sequence[Turn]) -> Iterator[tuple[Turn, ...]]:
    """The messages of an item, cut after each user message that a candidate answers.

    One that an assistant message follows has its answer there.
    """
    part: list[Turn] = []
    for number, message in enumerate(messages):
        part.append(message)
        if message.role != "user":
            continue
        later = (turn.role for turn in messages[number + 1 :] if turn.role != "system")
        if next(later, "user") == "user":
            yield tuple(part)
            part = []


def user_messages(texts: Sequence[str]) -> dict[str, str | list[Turn]]:
    """The field of an item that holds what its user says: ``prompt``, or ``messages`` of several."""
    if len(texts) == 1:
        return {"prompt": texts[0]}
    return {"messages": [Turn(role="user", content=text) for text in texts]}


# -- the answers ----------------------------------------------------------------------------------


def transcript(texts: Sequence[str]) -> str:
    """Several turns of one side as one text; a single turn is itself."""
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"{_heading(n)}{text}" for n, text in enumerate(texts, start=1))


def transcript_starts(texts: Sequence[str]) -> list[int]:
    """Where each of the texts begins in their :func:`transcript`."""
    if len(texts) == 1:
        return [0]
    starts, end = [], 0
    for number, text in enumerate(texts, start=1):
        starts.append(end + len(_heading(number)))
        end = starts[-1] + len(text) + len("\n\n")
    return starts


def _heading(turn: int) -> str:
    return f"[Turn {turn}]\n"


def injected_response(
    item_id: str, candidate: str, answer: str | Sequence[AnsweredTurn] | None
) -> Response:
    """A response that came with the prompts: a text, or the turns of a conversation."""
    turns = [] if answer is None or isinstance(answer, str) else list(answer)
    text = transcript([turn.text for turn in turns]) if turns else answer
    return Response(
        item_id=item_id,
        candidate=candidate,
        text=text,
        source="injected",
        turns=turns if len(turns) > 1 else [],
    )


def read_answer(messages: Sequence[Turn], answer: Answer) -> str | list[AnsweredTurn]:
    """A response as a file holds it.

    Args:
        messages: those of the item.
        answer: a text; an answer for each user message of the item; or the messages that follow its
            only one, which begin and end with the assistant.

    Raises:
        ValueError: there are fewer or more answers, or roles do not alternate.
    """
    if isinstance(answer, str):
        return answer
    n_questions = len(list(conversation_parts(messages)))
    texts = [part if isinstance(part, str) else part.content for part in answer]
    if all(isinstance(part, str) for part in answer):
        if len(texts) != n_questions:
            raise ValueError(
                f"has {plural(len(texts), 'answer')} to {plural(n_questions, 'user message')}"
            )
        return [AnsweredTurn(text=text) for text in texts]
    roles = [part.role for part in answer if isinstance(part, Turn)]
    if n_questions > 1:
        raise ValueError(f"repeats user messages, of which the prompt has {n_questions}")
    if roles != ["assistant", "user"] * (len(roles) // 2) + ["assistant"]:
        raise ValueError("must begin and end with the assistant, and roles must alternate")
    users = [None, *texts[1::2]]
    return [
        AnsweredTurn(user=user, text=text) for user, text in zip(users, texts[::2], strict=True)
    ]


def written_answer(response: Response) -> str | list[str] | list[dict[str, str]] | None:
    """A response as a prompts file holds it; what :func:`read_answer` reads."""
    turns = response.turns
    if not turns:
        return response.text
    if all(turn.user is None for turn in turns):
        return [turn.text for turn in turns]
    return [
        {"role": role, "content": text}
        for turn in turns
        for role, text in (("user", turn.user), ("assistant", turn.text))
        if text is not None
    ]
