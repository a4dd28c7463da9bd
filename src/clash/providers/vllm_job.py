"""Answers the rows of a batch on a Ray cluster: Ray Data feeds vLLM. Needs neither clash nor a key.

:mod:`clash.providers.batch_vllm` copies this file into the batch's folder and starts it as a Ray job.
Answers are written as they come, one line a row, so that a job that is killed loses only what its
engines had in work: the next one in the same folder goes on with the rows that have no line.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Answer every row of ``folder/rows.jsonl`` that has no line in ``folder/answers.jsonl``."""
    settings = json.loads((folder / "settings.json").read_bytes())
    rows = open_rows(folder)
    if not rows:
        return
    with (folder / "answers.jsonl").open("a+b", buffering=0) as answers:
        if answers.tell():
            answers.seek(-1, os.SEEK_END)
            if answers.read() != b"\n":
                answers.write(b"\n")  # ends the line that a killed job left unfinished
        for row in pipeline(settings, rows).iter_rows():
            answers.write(json.dumps(line(row)).encode() + b"\n")
        os.fsync(answers.fileno())


def open_rows(folder: Path) -> list[dict[str, str]]:
    """The rows to ask: each its id, and its messages and sampling parameters as JSON.

    As text, because Arrow would give equal keys to the schemas and options of all rows.
    """
    answered_ids: set[str | None] = set()
    if (folder / "answers.jsonl").exists():
        with (folder / "answers.jsonl").open("rb") as lines:
            answered_ids = {answered_id(text) for text in lines}
    with (folder / "rows.jsonl").open("rb") as lines:
        rows = [json.loads(text) for text in lines]
    return [
        {"custom_id": row["custom_id"], "question": json.dumps(row["question"])}
        for row in rows
        if row["custom_id"] not in answered_ids
    ]


def answered_id(text: bytes) -> str | None:
    """The id in a line of answers; null in one that a kill cut short."""
    try:
        return str(json.loads(text)["custom_id"])
    except (ValueError, TypeError, KeyError):
        return None


def pipeline(settings: dict[str, Any], rows: list[dict[str, str]]) -> Any:  # noqa: ANN401 - Ray has no types
    """The rows with their answers, as a data set of Ray that computes while it is read."""
    import ray
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    config = vLLMEngineProcessorConfig(
        model_source=settings["source"],
        engine_kwargs=settings["arguments"],
        accelerator_type=settings["accelerator"],
        concurrency=(1, settings["replicas"]),
        batch_size=settings["rows"],
        # A row that the engine refuses is a failed row, not the end of the batch.
        should_continue_on_error=True,
        chat_template_stage={"enabled": True, "chat_template_kwargs": settings["template"]},
        # vLLM does both itself.
        tokenize_stage=False,
        detokenize_stage=False,
        log_engine_metrics=False,
    )
    processor = build_processor(config, preprocess=question, postprocess=answer)
    # Answers leave Ray a block at a time, and a block is what a killed job loses.
    n_blocks = -(-len(rows) // settings["rows"])
    return processor(ray.data.from_items(rows, override_num_blocks=n_blocks))


def question(row: dict[str, Any]) -> dict[str, Any]:
    """What Ray's processor takes: ``messages`` and ``sampling_params``."""
    fields: dict[str, Any] = json.loads(row["question"])
    return fields


def answer(row: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an answer: Ray adds the prompt, the ids of all tokens and more."""
    names = ("custom_id", "generated_text", "num_input_tokens", "num_generated_tokens")
    return {name: row[name] for name in names}


def line(row: dict[str, Any]) -> dict[str, Any]:
    """A line of ``answers.jsonl``: the text and its tokens, or why there is none."""
    if row.get("__inference_error__"):
        return {"custom_id": row["custom_id"], "error": str(row["__inference_error__"])}
    return {
        "custom_id": row["custom_id"],
        "text": row["generated_text"],
        "input_tokens": int(row["num_input_tokens"]),
        "output_tokens": int(row["num_generated_tokens"]),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
