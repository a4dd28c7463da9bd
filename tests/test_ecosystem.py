"""What other tools read of this repository: the action, the hook, the image, the citation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from clash.cli.app import run
from clash.version import __version__

ROOT = Path(__file__).resolve().parents[1]
BASH = shutil.which("bash")


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with a run that can be replayed without a key, and a ``clash`` to type."""
    monkeypatch.chdir(tmp_path)
    for name in ("CLASH_PANEL", "CLASH_MODELS", "CLASH_PROMPTS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "clash"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clash "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    comment = tools / "gh"
    comment.write_text('#!/bin/sh\necho "$@" >> gh.log\n', encoding="utf-8")
    comment.chmod(0o755)
    Path("prompts.yaml").write_text(
        "- {id: q, prompt: Say hi, responses: {a: 'Hi there, friend.', b: Hi}}\n"
        "- {id: r, prompt: Say ho, responses: {a: 'Ho ho ho, all.', b: Ho}}\n",
        encoding="utf-8",
    )
    Path("clash.yaml").write_text("prompts: prompts.yaml\npanel: baseline\n", encoding="utf-8")
    return tmp_path


def fill(value, context):
    """A value of the action with its expressions replaced, as the runner does."""
    return re.sub(r"\$\{\{ *([^}]+?) *\}\}", lambda match: context[match[1]], str(value))


def action_steps(project, **inputs):
    """Run the action's own steps, except those that install; the exit code of each by its name."""
    action = read("action.yml")
    values = {name: record.get("default", "") for name, record in action["inputs"].items()} | inputs
    context = {f"inputs.{name}": str(value) for name, value in values.items()}
    context |= {"github.token": "t", "github.event.pull_request.number": "7"}
    output = project / "output"
    (project / "temp").mkdir(exist_ok=True)
    codes = {}
    for step in action["runs"]["steps"]:
        if "run" not in step or step["name"] == "install":
            continue
        output.touch()
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        context["steps.eval.outputs.run"] = outputs.get("run", "")
        environ = {name: fill(value, context) for name, value in step.get("env", {}).items()}
        path = {
            "PATH": f"{project / 'bin'}:{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(output),
            "RUNNER_TEMP": str(project / "temp"),
        }
        result = subprocess.run(
            [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env={**os.environ, **path, **environ},
            cwd=project,
            capture_output=True,
            text=True,
        )
        codes[step["name"]] = result.returncode
    return codes


@pytest.mark.skipif(BASH is None, reason="the action runs in bash")
def test_the_action_judges_gates_and_comments(project):
    assert action_steps(project) == {"eval": 0, "gate": 0, "comment": 0}
    assert (project / "runs" / "action-local-1" / "report.html").is_file()
    assert (project / "temp" / "clash-comment.md").read_text(encoding="utf-8").strip()
    assert "pr comment 7" in (project / "gh.log").read_text(encoding="utf-8")


@pytest.mark.skipif(BASH is None, reason="the action runs in bash")
def test_no_file_of_the_repository_becomes_a_comment(project):
    """Nor what it links to, such as .git/config, which may hold a token."""
    (project / "clash-comment.md").write_text("LGTM, says the bot", encoding="utf-8")
    Path("clash.yaml").write_text("panel: nowhere\n", encoding="utf-8")
    assert action_steps(project)["eval"] == 2
    assert not (project / "gh.log").exists()


@pytest.mark.skipif(BASH is None, reason="the action runs in bash")
def test_a_gate_that_fails_fails_the_action_and_inputs_are_data(project):
    hostile = "--min\nunanimity=2\n--out\nruns; touch pwned $(touch pwned)"
    codes = action_steps(project, gate="--min\nunanimity=2")
    assert (codes["eval"], codes["gate"]) == (0, 1)
    shutil.rmtree(project / "runs")
    assert action_steps(project, gate=hostile)["gate"] == 1
    assert not (project / "pwned").exists()


def test_the_action_installs_what_it_says_and_pastes_no_input_into_a_script():
    for step in read("action.yml")["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        assert "uses" in step or step["shell"] == "bash"


def test_the_hook_reads_what_init_writes_and_refuses_what_is_broken(project, capsys):
    hook = read(".pre-commit-hooks.yaml")[0]
    assert run(["init", "new"]) == 0
    program, *words = hook["entry"].split()
    files = [str(path) for path in Path("new").iterdir() if re.search(hook["files"], str(path))]
    assert program == "clash"
    assert sorted(files) == ["new/clash.yaml", "new/prompts.yaml"]
    assert run([*words, *files]) == 0
    Path("clash.yaml").write_text("sede: 3\n", encoding="utf-8")
    assert run([*words, "clash.yaml"]) == 2
    assert 'clash.yaml:1: unknown key "sede"' in capsys.readouterr().err


def test_what_the_image_copies_is_what_a_wheel_is_made_of():
    """There is no builder here: the steps of the image are those of a wheel's install."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    retained_lines = {line[1:] for line in lines if line.startswith("!")}
    build = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    sources = set(re.findall(r'^(\w+) = "clash/_assets/', build, re.MULTILINE))
    assert retained_lines == {"LICENSE", "README.md", "pyproject.toml", "src", *sources}
    assert all((ROOT / name).exists() for name in retained_lines)
    assert 'ENTRYPOINT ["clash"]' in text
    assert "USER clash" in text


def test_the_citation_names_this_version():
    citation = read("CITATION.cff")
    assert citation["version"] == __version__
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)


def test_every_page_that_agents_are_sent_to_exists():
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "llms.txt").read_text(encoding="utf-8"))
    links += re.findall(r"\]\(([^)]+)\)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(links) > 12
    assert [link for link in links if not (ROOT / link).exists()] == []
