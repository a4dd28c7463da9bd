"""The examples for Slurm, Kubernetes and GitHub: their scripts are run, and their commands too."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from clash import assets
from clash.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

EXAMPLES = assets.path("configs", "examples")
_STAND_IN = """#!/bin/sh
printf '%s\\n' "$*" >> commands
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with prompts for a panel that needs no key."""
    prompts = [
        {"id": f"q{n}", "prompt": f"Say {n}.", "responses": {"a": f"{n} is {n}.", "b": "No."}}
        for n in range(5)
    ]
    (tmp_path / "prompts.yaml").write_text(json.dumps(prompts))
    (tmp_path / "clash.yaml").write_text("panel: baseline\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "clash").write_text(_STAND_IN)
    (tmp_path / "bin" / "clash").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands_of(script: str, folder: Path, environ: Mapping[str, object]) -> list[list[str]]:
    """The ``clash`` commands that a script comes to; a stand-in for clash notes them."""
    path = f"{folder / 'bin'}:/usr/bin:/bin"
    words = {name: str(value) for name, value in environ.items()}
    subprocess.run(["bash", "-c", script], env={"PATH": path, **words}, cwd=folder, check=True)
    lines = (folder / "commands").read_text().splitlines()
    (folder / "commands").unlink()
    return [line.split() for line in lines]


def finish(folder: Path, script: str, environs: list[dict[str, object]], closing: str) -> None:
    """Run every task, one of them twice, and the commands at the end of the file."""
    for environ in environs:
        for command in commands_of(script, folder, environ):
            assert command[0] == "eval"
            assert "--max-cost" in command
            assert run(command) == 0
    (again,) = commands_of(script, folder, environs[0])
    assert again[0] == "resume"
    assert run(again) == 0
    files = sorted(f"runs/{path.name}" for path in (folder / "runs").iterdir())
    for part in closing.split(" && "):
        words = [w for word in part.split()[1:] for w in (files if "*" in word else [word])]
        assert run(words) == 0
    assert (folder / "runs" / "night" / "report.html").exists()


def closing_line(text: str) -> str:
    (line,) = re.findall(r"^#   (clash merge .*)$", text, re.MULTILINE)
    return line


def test_the_slurm_array_judges_and_merges(folder):
    text = (EXAMPLES / "slurm-array.sh").read_text()
    tasks = [{"SLURM_ARRAY_TASK_ID": n, "SHARDS": 2} for n in (1, 2)]
    finish(folder, text, tasks, closing_line(text))


def test_the_kubernetes_job_judges_and_merges(folder):
    text = (EXAMPLES / "kubernetes-job.yaml").read_text()
    job = yaml.safe_load(text)
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job["spec"]["completionMode"] == "Indexed"
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    environ = {record["name"]: record["value"] for record in container["env"]}
    assert environ["SHARDS"] == str(job["spec"]["completions"])
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    (script,) = container["args"]
    tasks = [{"JOB_COMPLETION_INDEX": n, "SHARDS": 2} for n in (0, 1)]
    finish(folder, script, tasks, closing_line(text))


def test_the_github_matrix_judges_and_merges(folder):
    jobs = yaml.safe_load((EXAMPLES / "github-matrix.yaml").read_text())["jobs"]
    shards = jobs["shard"]["strategy"]["matrix"]["shard"]
    steps = [step["run"] for step in jobs["shard"]["steps"] if "run" in step]
    (judging,) = [step for step in steps if step.startswith("clash eval")]
    assert "--max-cost" in judging
    for shard in shards:
        assert run(judging.replace("${{ matrix.shard }}", str(shard)).split()[1:]) == 0
    ends = [step["run"] for step in jobs["merge"]["steps"] if "run" in step]
    for command in (end for end in ends if end.startswith("clash ")):
        assert run(command.split()[1:]) == 0
    assert jobs["merge"]["needs"] == "shard"
    assert (folder / "runs" / "night" / "report.md").exists()


def test_a_shard_is_merged_next_and_the_merged_run_is_the_latest(folder, capsys):
    for number in (1, 2):
        words = ["prompts.yaml", "--shard", f"{number}/2", "--run-id", f"part-{number}", "--yes"]
        assert run(["eval", *words]) == 0
        screen = capsys.readouterr().out
        assert f"Next    clash merge part-{number} …" in screen
        assert f"join it with shard {3 - number} of 2" in screen
    assert run(["merge", "part-1", "part-2", "--run-id", "night"]) == 0
    assert "clash merge" not in capsys.readouterr().out
    assert run(["report", "latest"]) == 0
    assert "Report  runs/night/" in capsys.readouterr().out
