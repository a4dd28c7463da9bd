"""The result files of "Multi-Agent Judging for LLM Evaluation", as they were published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, field_validator

from clash.datasets import record_files
from clash.documents import Document, validate
from clash.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

MATRIX = "judge_matrix_data.json"
PAIRS = "mt_bench_100_evaluations.json"
MT_BENCH = "validation_results.json"
ARENA = "arena_validation_results.json"
ARENA_2 = "arena_validation_results_run2.json"
ARENA_3 = "arena_validation_results_run3.json"
END_TO_END = "e2e_mini_results.json"

M = TypeVar("M", bound=BaseModel)


class _PublishedRecord(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class JudgeRow(_PublishedRecord):
    """One judge's ranking of the labels, best first."""

    judge_model: str
    ranking: list[str]
    is_supreme: bool


class TallyWinner(_PublishedRecord):
    """The first of the tally."""

    anon_id: str
    model: str


class TallySummary(_PublishedRecord):
    """The tally of an evaluation."""

    winner: TallyWinner
    total_cost: float


class Evaluation(_PublishedRecord):
    """One logged evaluation. An ``eval_id`` that occurs twice was evaluated again."""

    eval_id: str
    human_winner: str
    ai_winner: str
    judge_matrix: list[JudgeRow]
    ai_ranking: list[str]
    summary: TallySummary
    timestamp: str


class JudgeLog(_PublishedRecord):
    """The log, newest first; ``other`` holds everything after the first Arena run."""

    mtbench: list[Evaluation]
    arena_r1: list[Evaluation]
    other: list[Evaluation]


class ResultRecord(_PublishedRecord):
    """One evaluation in a result file, without its judges."""

    eval_id: int
    human_winner: str
    ai_winner: str
    match: bool
    confidence: float
    ai_ranking: list[str]
    cost: float
    elapsed_s: float
    model_a: str | None = None
    model_b: str | None = None
    category: str | None = None
    error: str | None = None


class ResultFile(_PublishedRecord):
    """A result file."""

    timestamp: str
    results: list[ResultRecord]


class TextPair(_PublishedRecord):
    """An MT-Bench pair with both texts and one person's vote."""

    id: int
    question_id: int
    prompt: str
    model_a: str
    model_b: str
    response_a: str
    response_b: str
    winner: str
    winner_side: Literal["A", "B"]


class TextPairs(_PublishedRecord):
    """Every pair of the first experiment."""

    pairs: list[TextPair]


class EndToEndPrompt(_PublishedRecord):
    """A prompt of the end-to-end test."""

    id: str
    difficulty: str
    prompt: str


class EndToEndCycle(_PublishedRecord):
    """One prompt in one end-to-end run."""

    eval_id: str
    prompt_id: str
    ai_winner: str
    confidence: float
    judge_cost: float
    elapsed_s: float
    hash_a: str
    hash_b: str
    gen_latency_a: float
    gen_latency_b: float


class EndToEnd(_PublishedRecord):
    """The end-to-end test: ten prompts, generated and judged three times."""

    models: dict[str, str]
    prompts: list[EndToEndPrompt]
    runs: dict[str, list[EndToEndCycle]]

    @field_validator("models")
    @classmethod
    def _check_both(cls, models: dict[str, str]) -> dict[str, str]:
        if {"model_a", "model_b"} - models.keys():
            raise ValueError("expected model_a and model_b")
        return models


@dataclass(frozen=True)
class PublishedFiles:
    """The published files that a folder holds; null for one that it does not."""

    folder: Path
    matrix: JudgeLog
    pairs: TextPairs | None
    mt_bench: ResultFile | None
    arena: ResultFile | None
    arena_2: ResultFile | None
    arena_3: ResultFile | None
    end_to_end: EndToEnd | None


def is_here(folder: Path) -> bool:
    """Whether a folder holds the published files."""
    return folder.is_dir() and _path(folder, MATRIX) is not None


def read(folder: Path) -> PublishedFiles:
    """The files of a folder, or of the folders below it.

    Raises:
        InputError: the judges' rankings are missing, or a file is not of this form.
    """
    matrix = _read(folder, MATRIX, JudgeLog)
    if matrix is None:
        raise InputError(f"holds no {MATRIX}", path=folder, hint="it has the judges' rankings")
    return PublishedFiles(
        folder=folder,
        matrix=matrix,
        pairs=_read(folder, PAIRS, TextPairs, under="pairs"),
        mt_bench=_read(folder, MT_BENCH, ResultFile),
        arena=_read(folder, ARENA, ResultFile),
        arena_2=_read(folder, ARENA_2, ResultFile),
        arena_3=_read(folder, ARENA_3, ResultFile),
        end_to_end=_read(folder, END_TO_END, EndToEnd),
    )


def _path(folder: Path, name: str) -> Path | None:
    return min(folder.rglob(name), default=None, key=lambda path: len(path.parts))


def _read(folder: Path, name: str, model: type[M], *, under: str | None = None) -> M | None:
    path = _path(folder, name)
    if path is None:
        return None
    value: Any = record_files.read_json(path)
    return validate(model, Document(path, {under: value} if under else value), error=InputError)
