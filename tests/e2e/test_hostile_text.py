"""Responses that were written to harm the run: it goes on, and they are judged like any other."""

from __future__ import annotations

import json
import subprocess

from e2e.lab import Lab

HANG = "By gpt-4 3.14159265358979323846264338327950288 is pi."


def test_a_response_cannot_hang_a_run(tmp_path):
    """The whole command, ended from outside: a pattern that never returns hears no signal."""
    record = {"prompt": "What is pi?", "responses": {"a": HANG, "b": "About 3.14159."}}
    (tmp_path / "prompts.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    lab = Lab(tmp_path, server=None)
    process = lab.start("eval", "prompts.jsonl", "--run-id", "run", "--yes")
    try:
        process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert len(lab.folder().lines("verdicts")) == 1
