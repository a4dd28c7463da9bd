"""A benchmark folder as FastChat and arena-hard keep it.

``question.jsonl``, ``model_answer/MODEL.jsonl``, ``model_judgment/…/*.jsonl``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.conversations import transcript
from clash.datasets import record_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clash.datasets.record_files import SourceRow

_QUESTIONS = "question.jsonl"
_ANSWERS = "model_answer"
_JUDGMENTS = "model_judgment"
_LEVELS = 4


@dataclass(frozen=True)
class BenchmarkTexts:
    """The texts of a benchmark, as far as they are there.

    Attributes:
        questions: turns by question.
        answers: turns by model and question.
        categories: by question.
    """

    questions: Mapping[str, list[str]]
    answers: Mapping[tuple[str, str], list[str]]
    categories: Mapping[str, str]

    def prompt(self, question: str, turns: int | None = None) -> str | None:
        """A question up to a turn."""
        return _up_to(self.questions.get(question), turns)

    def text(self, model: str, question: str, turns: int | None = None) -> str | None:
        """A model's answer up to a turn."""
        return _up_to(self.answers.get((model, question)), turns)

    def tags(self, question: str) -> list[str]:
        """The question's category, where it has one."""
        return [self.categories[question]] if question in self.categories else []


def judgments(path: Path) -> list[Path]:
    """The judgment files: ``path`` itself, or those below the folder."""
    folder = path / _JUDGMENTS
    return record_files.files_below(folder if folder.is_dir() else path, "*.jsonl")


def read(path: Path) -> BenchmarkTexts:
    """The texts of the benchmark that ``path`` belongs to; empty where they are not beside it.

    Raises:
        InputError: a file of it cannot be read.
    """
    folder = _folder(path)
    if folder is None:
        return BenchmarkTexts({}, {}, {})
    questions = list(record_files.rows(folder / _QUESTIONS))
    return BenchmarkTexts(
        questions={question_id(row): _questions(row) for row in questions},
        answers={
            (row.optional("model_id", "model") or file.stem, question_id(row)): _answers(row)
            for file in sorted((folder / _ANSWERS).glob("*.jsonl"))
            for row in record_files.rows(file)
        },
        categories={
            question_id(row): row.text("category") for row in questions if row.get("category")
        },
    )


def question_id(row: SourceRow) -> str:
    """The question that a record is about."""
    return row.text("uid", "question_id")


def _folder(path: Path) -> Path | None:
    near = [path, *path.parents][: _LEVELS + 1]
    return next((folder for folder in near if (folder / _QUESTIONS).is_file()), None)


def _questions(row: SourceRow) -> list[str]:
    turns = row.get("turns")
    if isinstance(turns, list):
        return [_content(turn) for turn in turns]
    return [row.text("prompt")]


def _answers(row: SourceRow) -> list[str]:
    messages = row.get("messages")
    if isinstance(messages, list):
        return [_content(m) for m in messages if m.get("role") == "assistant"]
    choices = row.get("choices")
    if not isinstance(choices, list) or not choices:
        raise row.error("expected choices or messages", "choices")
    return [_content(turn) for turn in choices[0].get("turns", [])]


def _content(turn: Any) -> str:  # noqa: ANN401 - any JSON value
    """A turn's text: itself, or under ``content``, or under ``content.answer``."""
    while isinstance(turn, dict):
        turn = turn.get("content", turn.get("answer", ""))
    if isinstance(turn, list):
        return "".join(_content(part) for part in turn[:1])
    return turn if isinstance(turn, str) else ""


def _up_to(turns: list[str] | None, number: int | None) -> str | None:
    if not turns:
        return None
    return transcript(turns[: number or len(turns)])
