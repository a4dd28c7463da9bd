"""``clash validate``, ``rerun``, ``compare`` and ``gate``, whole, over the loopback and keyless."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from e2e.lab import Lab, prefers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wire import WireServer

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ("openai/gpt-x", "anthropic/claude-x", "google/gemini-x")


@pytest.fixture
def lab(lab: Lab, server: WireServer) -> Iterator[Lab]:
    """Judges of every vendor's own wire, who prefer the longer response."""
    before, server.answer = server.answer, prefers(len)
    prices = {"price": {"input": 1.0, "output": 10.0}}
    lab.panel(*({"model": model, **prices} for model in NATIVE), name="native")
    yield lab
    server.answer = before


def pairs(lab: Lab, n: int = 12) -> Path:
    """Labelled pairs on few questions; the longer response is the label in three of four."""
    lines = []
    for i in range(n):
        longer, shorter = f"a rather long answer, number {i}", f"short {i}"
        lines.append(
            {
                "item_id": f"p{i}",
                "group": f"q{i // 2}",
                "prompt": f"Question {i // 2}?",
                "response_a": longer if i % 3 else shorter,
                "response_b": shorter if i % 3 else longer,
                "model_a": "gpt-4",
                "model_b": "alpaca-13b",
                "label": "A" if bool(i % 3) == bool(i % 4) else "B",
                "subset": "even" if i % 2 else "odd",
            }
        )
    path = lab.path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def validated(lab: Lab, *words: object) -> dict:
    done = lab("validate", pairs(lab), "-p", "native.yaml", "--criteria", "none", "--run-id", "run",
               "--yes", "--json", *words)  # fmt: skip
    assert done.code == 0, done.err
    return done.json


def test_validate_holds_native_judges_against_people(lab: Lab, server: WireServer) -> None:
    """Three vendors' own wires, injected responses; figures that can be counted by hand."""
    found = validated(lab)
    assert {"clash", "run", "winner", "leaderboard", "coverage", "cost_usd", "decision"} <= set(
        found
    )
    assert (found["concordance"], found["n"]) == (0.75, 12)
    assert found["kappa"] == pytest.approx(0.5)
    low, high = found["ci"]
    assert low < 0.75 < high
    assert {judge["judge"]: judge["concordance"] for judge in found["judges"]} == dict.fromkeys(
        ("gpt-x", "claude-x", "gemini-x"), 0.75
    )
    assert {call.vendor for call in server.calls} == {"openai", "anthropic", "google"}
    assert lab("verify", "run").code == 0


def test_judges_never_see_label_model_or_dataset(lab: Lab, server: WireServer) -> None:
    validated(lab)
    for call in server.calls:
        sent = json.dumps(call.body)
        assert "gpt-4" not in sent
        assert "alpaca" not in sent


def test_the_report_of_the_run_has_the_concordance(lab: Lab) -> None:
    validated(lab)
    text = (lab.path / "runs/run/report.md").read_text(encoding="utf-8")
    for title in ("Concordance with people", "Who would say what people say", "Every sub-panel"):
        assert f"## {title}" in text
    found = json.loads((lab.path / "runs/run/report.json").read_text(encoding="utf-8"))
    rows = {line["name"]: line for line in found["concordance"]["methods"]}
    assert rows["baseline: longest"]["estimate"] == 0.75
    assert rows["random guess"]["estimate"] == 0.5
    tiers = {row["name"]: row["rate"]["n"] for row in found["concordance"]["by_tier"]}
    assert set(tiers) == {"strong", "weak"}  # known of the models of the first paper


def test_a_sample_is_drawn_by_its_seed(lab: Lab) -> None:
    validated(lab, "--n", 5, "--sample-seed", 7)
    first = (
        [item["item_id"] for item in lab.folder().jsonl("items")]
        if hasattr(lab.folder(), "jsonl")
        else (lab.path / "runs/run/items.jsonl").read_text().splitlines()
    )
    assert len(first) == 5
    manifest = json.loads((lab.path / "runs/run/manifest.json").read_text())
    assert manifest["dataset"]["rules"]["seed"] == 7
    assert manifest["dataset"]["counts"]["drawn"] == 5


def test_a_file_without_labels_is_refused_before_anything_is_spent(
    lab: Lab, server: WireServer
) -> None:
    done = lab("validate", lab.prompts(), "-p", "native.yaml", "--yes")
    assert done.code == 2
    assert "no label" in done.err
    assert not server.calls


def test_prompts_with_labels_are_a_data_set_too(lab: Lab) -> None:
    file = lab.prompts(label="ada")
    done = lab("validate", file, "-p", "baseline", "--run-id", "run", "--yes", "--json")
    assert done.code == 0, done.err
    assert done.json["n"] == 3


def test_a_rerun_judges_the_same_responses_with_other_seeds(lab: Lab, server: WireServer) -> None:
    validated(lab)
    before = len(server.calls)
    done = lab("rerun", "run", "--times", 2, "--yes", "--json")
    assert done.code == 0, done.err
    assert len(server.calls) == before + 2 * 36
    assert done.json["cost_usd"] > 0
    manifests = [
        json.loads((lab.path / "runs" / name / "manifest.json").read_text())
        for name in ("run", "run-r1", "run-r2")
    ]
    seeds = [manifest["seeds"]["seed"] for manifest in manifests]
    assert len(set(seeds)) == 3
    assert [m["kind"] for m in manifests] == ["validate", "rerun", "rerun"]
    assert {m["parent"] for m in manifests[1:]} == {"run"}
    assert manifests[2]["seeds"]["parent_seed"] == seeds[0]
    assert manifests[2]["seeds"]["number"] == 2
    pages = [(lab.path / "runs" / m["run"] / "blinding.jsonl").read_text() for m in manifests]
    assert len(set(pages)) == 3
    found = done.json
    assert found["all_same"]["estimate"] == 1.0
    assert {c["name"]: c["n"] for c in found["categories"]} == {
        "stably correct": 9,
        "stably incorrect": 3,
    }
    for name in ("run-r1", "run-r2"):
        assert lab("verify", name).code == 0
    assert (lab.path / "runs/run-r2/retest.md").is_file()


def test_seeds_of_reruns_derive_from_the_parents() -> None:
    from clash.cli.again import derived_seed

    assert derived_seed(42, 1) == derived_seed(42, 1)
    assert len({derived_seed(seed, number) for seed in (1, 2) for number in (1, 2, 3)}) == 6


def test_a_targeted_rerun_takes_the_wrong_and_the_unsure(lab: Lab, server: WireServer) -> None:
    validated(lab)
    assert lab("rerun", "run", "--targeted", "--yes").code == 2  # one run tells no instability
    assert lab("rerun", "run", "--yes").code == 0
    before = len(server.calls)
    done = lab("rerun", "run", "--targeted", "--stable", 2, "--yes", "--json")
    assert done.code == 0, done.err
    assert len(server.calls) == before + 3 * 5
    part = done.json["targeted"][0]
    assert {group["name"]: group["n"] for group in part["groups"]} == {
        "stably incorrect": 3,
        "stably correct": 2,
    }
    assert part["confirmed"]["coin"]["p"] == pytest.approx(0.125)
    assert "selection" in part["caveat"]


def test_regenerating_needs_candidates_and_gets_fresh_responses(
    lab: Lab, server: WireServer
) -> None:
    validated(lab)
    refused = lab("rerun", "run", "--regenerate", "--yes")
    assert refused.code == 2
    assert "--regenerate" in refused.err
    server.answer = _generator_or_judge()
    made = lab("eval", lab.prompts(candidates=()), "-m", "openai/ada,openai/bob", "-p", "native.yaml",
               "--criteria", "none", "--run-id", "made", "--yes", "--allow-unknown-price")  # fmt: skip
    assert made.code == 0, made.err
    assert lab("rerun", "made", "--yes").code == 0
    done = lab("rerun", "made", "--regenerate", "--yes", "--json")
    assert done.code == 0, done.err
    assert [line["fresh_responses"] for line in done.json["runs"]] == [False, False, True]
    texts = [
        sorted(json.loads(line)["text"] for line in path.read_text().splitlines())
        for path in (
            lab.path / "runs" / n / "responses.jsonl" for n in ("made", "made-r1", "made-r2")
        )
    ]
    assert texts[0] == texts[1] != texts[2]
    assert done.json["variance"] is not None
    # The candidates observe in a rerun as they did in the run.
    judges = {judge["judge"] for judge in done.json["judges"]}
    assert {"self:openai/ada", "self:openai/bob"} <= judges


def _generator_or_judge():
    from wire.answers import schema_of

    judge, count = prefers(len), iter(range(10_000))

    def answer(asked):
        if schema_of(asked) is not None:
            return judge(asked)
        return f"{asked.model} writes {'more ' * (next(count) % 7)}every time"

    return answer


def test_compare_and_gate_read_what_validate_and_rerun_wrote(lab: Lab) -> None:
    validated(lab)
    assert lab("rerun", "run", "--yes").code == 0
    done = lab("compare", "run", "run-r1", "--json")
    assert done.code == 0, done.err
    shared = done.json["pairs"][0]["shared"]
    assert (shared["n"], shared["only_first"], shared["only_second"]) == (12, 0, 0)
    summary = lab.path / "summary.md"
    failed = lab("gate", "run", "--min", "concordance=0.8", "--junit", "gate.xml", "--github",
                 GITHUB_STEP_SUMMARY=str(summary))  # fmt: skip
    assert failed.code == 1
    assert "::error title=clash gate%3A concordance::" in failed.out
    assert "| FAIL | concordance |" in summary.read_text()
    assert (lab.path / "gate.xml").read_text().count("<failure") == 1
    held = lab("gate", "run", "--min", "concordance=0.7", "--on", "point", "--json")
    assert held.code == 0
    assert held.json["passed"] is True
    assert lab("gate", "run-r1", "--baseline", "run", "--max-drop", "concordance=0").code == 0
    assert lab("gate", "run").code == 2  # no rule, nothing could fail


def test_a_run_of_another_tool_is_judged_again_by_a_panel_of_ones_own(lab: Lab) -> None:
    results = ROOT / "../shared/data/agent-clash"
    if not results.is_dir():
        pytest.skip("../shared/data is absent")
    assert lab("datasets", "convert", results, "--out", "runs").code == 0
    refused = lab("rerun", "mt-bench", "--yes")
    assert refused.code == 2
    assert "--panel" in refused.err
    done = lab("rerun", "mt-bench", "--panel", "baseline", "--yes", "--json", "--quiet")
    assert done.code == 0, done.err
    assert done.json["runs"][1]["concordance"]["n"] == 100
    silent = lab("rerun", "arena-1", "--panel", "baseline", "--yes")
    assert silent.code == 2
    assert "no response text" in silent.err
    shown = lab("rerun", "--compare", "arena-1", "arena-2", "arena-3")
    assert "Published figures (28 of 33 the same)" in shown.out
    report = lab("report", "mt-bench")
    assert "Published figures (51 of 58 the same)" in report.out


def steps(file: str) -> list[str]:
    """The shell lines of a workflow, but for the installation."""
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    (job,) = document["jobs"].values()
    return [s["run"] for s in job["steps"] if "run" in s and s["name"] != "install"]


def shell(lab: Lab, script: str) -> int:
    """A step as a CI server runs it, with ``clash`` on the path."""
    import subprocess

    tools = lab.path / "bin"
    tools.mkdir(exist_ok=True)
    clash = tools / "clash"
    clash.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m clash "$@"\n')
    clash.chmod(0o755)
    environ = {**os.environ, **lab.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    environ |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(lab.path / "summary.md")}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=lab.path, env=environ, timeout=100,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode


def test_the_projects_own_gate_workflow_runs_as_it_stands(lab: Lab) -> None:
    (lab.path / "datasets").symlink_to(ROOT / "datasets")
    for script in steps(".github/workflows/gate.yaml"):
        assert shell(lab, script) == 0, script
    assert (lab.path / "gate/quickstart.xml").is_file()
    assert "Gate on quickstart" in (lab.path / "summary.md").read_text()


def test_the_users_gate_replays_a_recorded_run_without_a_network(
    lab: Lab, server: WireServer
) -> None:
    """Recorded over the wire, replayed with the server refusing every call."""
    lab.prompts()
    lab.write("clash.yaml", {"panel": "native.yaml", "criteria": {"mode": "none"}})
    recorded = lab("eval", "prompts.yaml", "--out", "ci", "--run-id", "recorded", "--yes")
    assert recorded.code == 0, recorded.err
    server.clear()
    for script in steps("configs/ci/gate.yaml"):
        assert shell(lab, script) == 0, script
    assert not server.calls
    assert "Gate on gate: passed" in (lab.path / "summary.md").read_text()


def test_the_users_gate_fails_where_a_prompt_was_changed_without_recording(lab: Lab) -> None:
    lab.prompts()
    lab.write("clash.yaml", {"panel": "native.yaml", "criteria": {"mode": "none"}})
    assert lab("eval", "prompts.yaml", "--out", "ci", "--run-id", "recorded", "--yes").code == 0
    file = lab.path / "prompts.yaml"
    file.write_text(file.read_text().replace("Question 1?", "Another question?"))
    codes = [shell(lab, script) for script in steps("configs/ci/gate.yaml")]
    assert codes[:2] == [0, 3]
    assert codes[2] == 1


def test_the_nightly_workflow_is_of_commands_that_exist() -> None:
    import typer

    from clash.cli.app import app

    known = set(typer.main.get_command(app).commands)
    for script in steps("configs/ci/nightly.yaml"):
        words = shlex.split(script.replace("\n", " "))
        assert words[0] == "clash"
        assert words[1] in known
