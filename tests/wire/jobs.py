"""The REST API for jobs of a Ray head node (2.60), on the loopback; a job is a Python function."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from wire.answers import judge
from wire.loopback import LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def answer_of(row: dict[str, Any]) -> dict[str, Any]:
    """A line of answers as the job writes it: a judge that ranks by a hash of each text."""
    question = row["question"]
    schema = question["sampling_params"].get("structured_outputs", {}).get("json")
    prompt = "\n".join(message["content"] for message in question["messages"])
    namespace = SimpleNamespace(model="m", prompt=prompt, schema=schema and json.loads(schema))
    text = judge(namespace)
    return {"custom_id": row["custom_id"], "text": text, "input_tokens": 9, "output_tokens": 5}


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def answer_some(n: int | None = None) -> Callable[[Path], str]:
    """A job that answers its first ``n`` rows without a line; where rows are left, it dies."""

    def work(folder: Path) -> str:
        file = folder / "answers.jsonl"
        text = file.read_text() if file.exists() else ""
        custom_ids = {json.loads(line)["custom_id"] for line in text.splitlines()}
        left = [row for row in rows_in(folder) if row["custom_id"] not in custom_ids]
        lines = [json.dumps(answer_of(row)) + "\n" for row in left[:n]]
        file.write_text(text + "".join(lines))
        return "SUCCEEDED" if len(lines) == len(left) else "FAILED"

    return work


class JobsServer(LoopbackServer):
    """A head node.

    Attributes:
        work: what the next jobs do in their folder; returns their status.
        hold: jobs stay at work until it is false.
        jobs: by submission id.
        polls: how often a job was looked after.
        token: what requests must carry; null for none.
    """

    def __init__(self) -> None:
        self.work: Callable[[Path], str] = answer_some()
        self.hold = False
        self.jobs: dict[str, dict[str, Any]] = {}
        self.polls = 0
        self.token: str | None = None
        super().__init__()

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any]:
        if self.token and headers["authorization"] != f"Bearer {self.token}":
            return 401, "Unauthorized: invalid authentication token"
        parts = path.strip("/").split("/")
        if method == "POST" and parts == ["api", "jobs"]:
            return self._submit(json.loads(body))
        job = self.jobs.get(parts[2])
        if job is None:
            return 404, f"Job {parts[2]} does not exist"
        if parts[3:] == ["stop"]:
            job["status"] = "STOPPED"
            return 200, {"stopped": True}
        self.polls += 1
        if job["status"] == "RUNNING" and not self.hold:
            job["status"] = self.work(Path(shlex.split(job["entrypoint"])[-1]))
        return 200, job

    def _submit(self, job: dict[str, Any]) -> tuple[int, Any]:
        name = job["submission_id"]
        if name in self.jobs:
            return 500, f"ValueError: Job with submission_id {name} already exists."
        log = "last available logs: no GPU here"
        self.jobs[name] = {"type": "SUBMISSION", "status": "RUNNING", "message": log, **job}
        return 200, {"job_id": name, "submission_id": name}
