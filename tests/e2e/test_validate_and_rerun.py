"""``clash validate``, ``rerun``, ``compare`` and ``gate``, whole, over the loopback and keyless."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.main import get_command

from clash.cli.app import app, run
from clash.pipeline.rerun import derived_seed
from e2e.lab import CommandResult, Lab, prefers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wire import WireServer

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "../shared/data/agent-clash"
NATIVE = ("openai/gpt-x", "anthropic/claude-x", "google/gemini-x")
OTHERS = ("compatible/one", "compatible/two", "compatible/three")


class ClashCommands(Lab):
    """Commands in this process, so that the vendors' SDKs are imported once."""

    def __call__(self, *words: object, timeout: float = 240, **environ: str) -> CommandResult:
        """``clash WORDS`` to its end."""
        del timeout
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.path)
            for name, value in {**self.environ, **environ, "COLUMNS": "100"}.items():
                patch.setenv(name, value)
            out, err = _captured_streams(patch)
            code = run([str(word) for word in words])
            return CommandResult(code, _text(out), _text(err))

    def records(self, name: str, file: str) -> list[dict[str, Any]]:
        """The lines of a file of a run."""
        text = (self.path / "runs" / name / file).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def manifest(self, name: str) -> dict[str, Any]:
        text = (self.path / "runs" / name / "manifest.json").read_text(encoding="utf-8")
        return dict(json.loads(text))


def _captured_streams(patch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    import io

    streams = io.StringIO(), io.StringIO()
    patch.setattr(sys, "stdout", streams[0])
    patch.setattr(sys, "stderr", streams[1])
    return streams


def _text(stream: Any) -> str:
    return str(stream.getvalue())


@pytest.fixture
def run_clash(lab: Lab, server: WireServer) -> Iterator[ClashCommands]:
    """Judges who prefer the longer response."""
    before, server.answer = server.answer, prefers(len)
    commands = ClashCommands(lab.path, server, lab.environ)
    prices = {"price": {"input": 1.0, "output": 10.0}}
    for name, models in (("native", NATIVE), ("others", OTHERS)):
        commands.panel(*({"model": model, **prices} for model in models), name=name)
    yield commands
    server.answer = before


def pairs(lab: Lab, n: int = 12) -> Path:
    """Labelled pairs on few questions; the longer response is the label in three of four."""
    lines = []
    for i in range(n):
        longer, shorter = f"a rather long answer, number {i}", f"short {i}"
        first = bool(i % 3)  # the longer one stands first
        lines.append(
            {
                "item_id": f"p{i}",
                "group": f"q{i // 2}",
                "prompt": f"Question {i // 2}?",
                "response_a": longer if first else shorter,
                "response_b": shorter if first else longer,
                "model_a": "gpt-4",
                "model_b": "alpaca-13b",
                "label": "A" if first == bool(i % 4) else "B",
            }
        )
    path = lab.path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def validation_of(folder: ClashCommands, *words: object, panel: str = "others") -> dict[str, Any]:
    constant_words: Sequence[object] = (
        "-p",
        f"{panel}.yaml",
        "--criteria",
        "none",
        "--run-id",
        "run",
    )
    result = folder("validate", pairs(folder), *constant_words, "--yes", "--json", *words)
    assert result.code == 0, result.err
    return result.json


def test_validate_and_rerun_are_whole_with_native_judges(
    run_clash: ClashCommands, server: WireServer
) -> None:
    """Three vendors' own wires, injected responses; figures that can be counted by hand."""
    report = validation_of(run_clash, panel="native")
    parts = {"clash", "run", "winner", "leaderboard", "coverage", "cost_usd", "decision"}
    assert parts <= set(report)
    assert (report["concordance"], report["n"]) == (0.75, 12)
    assert report["kappa"] == pytest.approx(0.5)
    low, high = report["ci"]
    assert low < 0.75 < high
    alone = {judge["judge"]: judge["concordance"] for judge in report["judges"]}
    assert alone == dict.fromkeys(("gpt-x", "claude-x", "gemini-x"), 0.75)
    assert {call.vendor for call in server.calls} == {"openai", "anthropic", "google"}
    assert run_clash("verify", "run").code == 0
    again = run_clash("rerun", "run", "--yes", "--json")
    assert again.code == 0, again.err
    assert len(server.calls) == 2 * 36
    assert again.json["all_same"]["estimate"] == 1.0
    assert again.json["cost_usd"] > 0
    assert run_clash("verify", "run-r1").code == 0


def test_judges_never_see_label_or_model(run_clash: ClashCommands, server: WireServer) -> None:
    validation_of(run_clash)
    for call in server.calls:
        request_text = json.dumps(call.body)
        assert "gpt-4" not in request_text
        assert "alpaca" not in request_text


def test_the_report_of_the_run_has_the_concordance(run_clash: ClashCommands) -> None:
    validation_of(run_clash)
    text = (run_clash.path / "runs/run/report.md").read_text(encoding="utf-8")
    for title in (
        "Concordance with people",
        "Agreement with human labels by judge",
        "Every sub-panel",
    ):
        assert f"## {title}" in text
    record = json.loads((run_clash.path / "runs/run/report.json").read_text(encoding="utf-8"))
    rows = {line["name"]: line for line in record["concordance"]["methods"]}
    assert rows["baseline: longest"]["estimate"] == 0.75
    assert rows["random guess"]["estimate"] == 0.5
    tiers = {row["name"] for row in record["concordance"]["by_tier"]}
    assert tiers == {"strong", "weak"}  # known of the models of the first paper


def test_tiers_may_be_told(run_clash: ClashCommands) -> None:
    file = run_clash.write(
        "tiers.yaml", {"gpt-4": {"tier": "new", "elo": 1300}, "alpaca-13b": "old"}
    )
    validation_of(run_clash, "--tiers", file)
    record = json.loads((run_clash.path / "runs/run/report.json").read_text(encoding="utf-8"))
    assert {row["name"] for row in record["concordance"]["by_tier"]} == {"new", "old"}
    wrong = run_clash.write("wrong.yaml", {"gpt-4": {"rank": 1}})
    result = run_clash("validate", pairs(run_clash), "-p", "others.yaml", "--tiers", wrong, "--yes")
    assert result.code == 2
    assert "gpt-4" in result.err


def test_a_data_set_is_validated_by_its_name_with_published_figures_beside_it(
    run_clash: ClashCommands,
) -> None:
    """From the cache of `clash datasets pull`, by the paper's rules; two people on each pair."""
    write_pulled(run_clash)
    words = ("--cache", "cache", "-p", "baseline", "--run-id", "run", "--yes", "--json")
    result = run_clash("validate", "mt-bench", *words)
    assert result.code == 0, result.err
    assert result.json["n"] == 3  # the tie and the second turn are left out
    concordance = json.loads((run_clash.path / "runs/run/report.json").read_text())["concordance"]
    estimates = {line["name"]: line["estimate"] for line in concordance["methods"]}
    assert estimates["GPT-4 as a single judge"] == 0.85
    assert estimates["human and human"] == 0.81
    assert estimates["longest answer"] == 0.7
    assert estimates["two people, any vote"] == pytest.approx((1 + 1 + 1 / 3) / 3)
    assert "left out: 1 (no clear winner)" in " ".join(run_clash.manifest("run")["notes"])


def write_pulled(commands: ClashCommands) -> None:
    """A data set of the hub's schema, as a pull leaves it."""
    import pyarrow as pa
    from pyarrow import parquet

    def talk(words: str) -> list[dict[str, str]]:
        turns = ["a question", words, "and then?", words]
        return [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(turns)]

    votes = [
        (81, 1, "x", "model_a"), (81, 1, "y", "model_a"),
        (82, 1, "x", "model_b"), (82, 1, "y", "model_b"),
        (83, 1, "x", "model_a"), (83, 1, "y", "model_a"), (83, 1, "z", "model_b"),
        (84, 1, "x", "tie"),
        (85, 2, "x", "model_a"),
    ]  # fmt: skip
    rows = [
        {
            "question_id": question,
            "model_a": "gpt-4",
            "model_b": "llama-13b",
            "winner": winner,
            "judge": judge,
            "conversation_a": talk(f"long words of an answer to {question}"),
            "conversation_b": talk(f"few, {question}"),
            "turn": turn,
        }
        for question, turn, judge, winner in votes
    ]
    folder = commands.path / "cache/mt-bench"
    file = folder / "data/human-0.parquet"
    file.parent.mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(rows), file)
    subject = {
        "path": "data/human-0.parquet",
        "size": file.stat().st_size,
        "sha256": "",
        "address": "",
    }
    (folder / "pulled.json").write_text(json.dumps(_record(subject)))


def _record(subject: dict[str, Any]) -> dict[str, Any]:
    """What a pull writes beside the files, with values for whatever else it says."""
    from dataclasses import fields

    from clash.datasets.pull import PulledDataset, PulledFile

    file = {f.name: subject.get(f.name, "") for f in fields(PulledFile)}
    empty_fields = {f.name: "" for f in fields(PulledDataset) if f.name not in ("folder", "files")}
    return {**empty_fields, "name": "mt-bench", "files": [file]}


def test_a_sample_is_drawn_by_its_seed(run_clash: ClashCommands) -> None:
    validation_of(run_clash, "--n", 5, "--sample-seed", 7)
    assert len(run_clash.records("run", "items.jsonl")) == 5
    dataset = run_clash.manifest("run")["dataset"]
    assert (dataset["rules"]["seed"], dataset["counts"]["drawn"]) == (7, 5)


def test_a_file_without_labels_is_refused_before_anything_is_spent(
    run_clash: ClashCommands, server: WireServer
) -> None:
    result = run_clash("validate", run_clash.prompts(), "-p", "others.yaml", "--yes")
    assert result.code == 2
    assert "no label" in result.err
    assert not server.calls


@pytest.mark.parametrize("is_packed", [False, True])
def test_prompts_with_labels_are_a_data_set_too(run_clash: ClashCommands, is_packed: bool) -> None:
    file = run_clash.prompts(label="ada")
    if is_packed:
        plain, file = file, file.with_name("prompts.yaml.gz")
        file.write_bytes(gzip.compress(plain.read_bytes()))
    result = run_clash("validate", file, "-p", "baseline", "--run-id", "run", "--yes", "--json")
    assert result.code == 0, result.err
    assert result.json["n"] == 3


def test_a_rerun_judges_the_same_responses_with_other_seeds(
    run_clash: ClashCommands, server: WireServer
) -> None:
    validation_of(run_clash)
    before = len(server.calls)
    result = run_clash("rerun", "run", "--times", 2, "--yes", "--json")
    assert result.code == 0, result.err
    assert len(server.calls) == before + 2 * 36
    manifest_fields = [run_clash.manifest(name) for name in ("run", "run-r1", "run-r2")]
    seeds = [manifest["seeds"]["seed"] for manifest in manifest_fields]
    assert seeds[1:] == [derived_seed(seeds[0], number) for number in (1, 2)]
    assert len(set(seeds)) == 3
    assert manifest_fields[2]["seeds"] == {"seed": seeds[2], "parent_seed": seeds[0], "number": 2}
    assert [m["kind"] for m in manifest_fields] == ["validate", "rerun", "rerun"]
    assert {m["parent"] for m in manifest_fields[1:]} == {"run"}
    shuffles = [
        [page["labels"] for page in run_clash.records(m["run"], "blinding.jsonl")]
        for m in manifest_fields
    ]
    assert shuffles[0] != shuffles[1] != shuffles[2]
    assert {c["name"]: c["n"] for c in result.json["categories"]} == {
        "stably correct": 9,
        "stably incorrect": 3,
    }
    assert (run_clash.path / "runs/run-r2/retest.md").is_file()


def test_a_judge_that_takes_the_first_place_flips_with_the_order(
    run_clash: ClashCommands, server: WireServer
) -> None:
    """One judge of three always says A0: it flips on every pair, to the first, the others never."""
    by_length = server.answer
    server.conduct("one", answer=_first_shown)
    try:
        validation_of(run_clash, "--both-orders")
        result = run_clash("rerun", "run", "--yes", "--json")
    finally:
        server.conduct("one", answer=by_length)
    flips = {line["judge"]: line["flips"] for line in result.json["flips"]}
    assert flips["one"]["rate"]["estimate"] == 1.0
    assert (flips["one"]["to_first"], flips["one"]["to_second"]) == (24, 0)
    assert flips["two"]["rate"]["estimate"] == 0.0


def _first_shown(request: Any) -> str:
    return json.dumps({"ranking": [["A0"], ["A1"]]})


def test_a_targeted_rerun_takes_the_wrong_and_the_unsure(
    run_clash: ClashCommands, server: WireServer
) -> None:
    validation_of(run_clash)
    assert (
        run_clash("rerun", "run", "--targeted", "--yes").code == 2
    )  # one run tells no instability
    assert run_clash("rerun", "run", "--yes").code == 0
    before = len(server.calls)
    result = run_clash("rerun", "run", "--targeted", "--stable", 2, "--yes", "--json")
    assert result.code == 0, result.err
    assert len(server.calls) == before + 3 * 5
    part = result.json["targeted"][0]
    assert {group["name"]: group["n"] for group in part["groups"]} == {
        "stably incorrect": 3,
        "stably correct": 2,
    }
    assert part["confirmed"]["coin"]["p"] == pytest.approx(0.125)
    assert "selection" in part["caveat"]


def test_regenerating_needs_candidates_and_gets_fresh_responses(
    run_clash: ClashCommands, server: WireServer
) -> None:
    validation_of(run_clash)
    refused_result = run_clash("rerun", "run", "--regenerate", "--yes")
    assert refused_result.code == 2
    assert "--regenerate" in refused_result.err
    server.answer = _generator_or_judge()
    words = ("-p", "others.yaml", "--criteria", "none", "--run-id", "made", "--yes")
    models = "compatible/ada,compatible/bob"
    result = run_clash(
        "eval", run_clash.prompts(candidates=()), "-m", models, *words, "--allow-unknown-price"
    )
    assert result.code == 0, result.err
    assert run_clash("rerun", "made", "--yes").code == 0
    final_result = run_clash("rerun", "made", "--regenerate", "--yes", "--json")
    assert final_result.code == 0, final_result.err
    assert [line["fresh_responses"] for line in final_result.json["runs"]] == [False, False, True]
    names = ("made", "made-r1", "made-r2")
    texts = [
        sorted(r["text"] for r in run_clash.records(name, "responses.jsonl")) for name in names
    ]
    assert texts[0] == texts[1] != texts[2]
    assert final_result.json["variance"] is not None
    # The candidates observe in a rerun as they did in the run.
    judges = {judge["judge"] for judge in final_result.json["judges"]}
    assert {"self:ada", "self:bob"} <= judges


def _generator_or_judge() -> Any:
    from wire.answers import schema_of

    judge, count = prefers(len), iter(range(10_000))

    def answer(request: Any) -> str:
        if schema_of(request) is not None:
            return str(judge(request))
        return f"{request.model} writes {'more ' * (next(count) % 7)}every time"

    return answer


def test_compare_and_gate_read_what_validate_and_rerun_wrote(run_clash: ClashCommands) -> None:
    validation_of(run_clash)
    assert run_clash("rerun", "run", "--yes").code == 0
    result = run_clash("compare", "run", "run-r1", "--json", "--to", "c.md", "--html", "c.html")
    assert result.code == 0, result.err
    assert result.json["written"] == ["c.md", "c.html"]
    page = (run_clash.path / "c.html").read_text()
    assert "run and run-r1 agree on each of the 12 items" in page
    assert "http" not in page.partition("<body>")[2]  # it loads nothing and links nowhere
    assert 'href="/"' not in page
    n_shared = result.json["pairs"][0]["shared"]
    assert (n_shared["n"], n_shared["only_first"], n_shared["only_second"]) == (12, 0, 0)
    assert "On the items that both have" in (run_clash.path / "c.md").read_text()
    summary = run_clash.path / "summary.md"
    words = ("--min", "concordance=0.8", "--junit", "gate.xml", "--github")
    failed_gate = run_clash("gate", "run", *words, GITHUB_STEP_SUMMARY=str(summary))
    assert failed_gate.code == 1
    assert "::error title=clash gate%3A concordance::" in failed_gate.out
    assert "| FAIL | concordance |" in summary.read_text()
    assert (run_clash.path / "gate.xml").read_text().count("<failure") == 1
    held_gate = run_clash("gate", "run", "--min", "concordance=0.7", "--on", "point", "--json")
    assert (held_gate.code, held_gate.json["passed"]) == (0, True)
    assert run_clash("gate", "run-r1", "--baseline", "run", "--max-drop", "concordance=0").code == 0
    assert run_clash("gate", "run").code == 2  # no rule, nothing could fail
    assert run_clash("gate", "run", "--min", "concordance").code == 2
    assert "concordance" in run_clash("gate", "run", "--list", "--json").json["figures"]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="../shared/data is absent")
def test_the_published_runs_are_reported_and_judged_again_by_a_panel_of_ones_own(
    run_clash: ClashCommands,
) -> None:
    assert run_clash("datasets", "convert", RESULTS, "--out", "runs").code == 0
    refused_result = run_clash("rerun", "mt-bench", "--yes")
    assert refused_result.code == 2
    assert "--panel" in refused_result.err
    result = run_clash("rerun", "mt-bench", "--panel", "baseline", "--yes", "--json", "--quiet")
    assert result.code == 0, result.err
    again = next(line for line in result.json["runs"] if line["run"] == "mt-bench-r1")
    assert again["concordance"]["n"] == 100
    silent = run_clash("rerun", "arena-1", "--panel", "baseline", "--yes")
    assert silent.code == 2
    assert "no response text" in silent.err
    visible_result = run_clash("rerun", "--compare", "arena-1", "arena-2", "arena-3", "-v")
    assert "Published figures (30 of 40 the same)" in visible_result.out
    report = run_clash("report", "mt-bench", "-v")
    assert "Published figures (67 of 74 the same)" in report.out
    assert run_clash("verify", "mt-bench").code == 5  # published without its calls
    assert run_clash("verify", "mt-bench", "--allow-unchecked").code == 0
    both_result = run_clash("compare", "mt-bench", "arena-1-log", "-v")
    assert "Unanimous and split, pooled (N = 192)" in both_result.out


def steps(file: str) -> list[str]:
    """The shell lines of a workflow, but for the installation."""
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    (job,) = document["jobs"].values()
    return [s["run"] for s in job["steps"] if "run" in s and s["name"] != "install"]


def shell(lab: Lab, script: str) -> int:
    """A step as a CI server runs it, with ``clash`` on the path."""
    tools = lab.path / "bin"
    tools.mkdir(exist_ok=True)
    clash = tools / "clash"
    clash.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m clash "$@"\n')
    clash.chmod(0o755)
    environ = {**os.environ, **lab.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    environ |= {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(lab.path / "summary.md")}
    words = ["bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(words, cwd=lab.path, env=environ, timeout=240, check=False).returncode


def test_the_projects_own_gate_workflow_runs_as_it_stands(run_clash: ClashCommands) -> None:
    (run_clash.path / "datasets").symlink_to(ROOT / "datasets")
    for script in steps(".github/workflows/gate.yaml"):
        assert shell(run_clash, script) == 0, script
    assert (run_clash.path / "gate/quickstart.xml").is_file()
    assert "Gate on quickstart" in (run_clash.path / "summary.md").read_text()


def test_the_users_gate_replays_a_recorded_run_and_fails_where_a_prompt_was_changed(
    run_clash: ClashCommands, server: WireServer
) -> None:
    """Recorded over the wire, replayed without a call; a changed prompt is not in the record."""
    run_clash.prompts()
    run_clash.write("clash.yaml", {"panel": "others.yaml", "criteria": {"mode": "none"}})
    result = run_clash("eval", "prompts.yaml", "--out", "ci", "--run-id", "recorded", "--yes")
    assert result.code == 0, result.err
    server.clear()
    scripts = steps("configs/ci/gate.yaml")
    assert [shell(run_clash, script) for script in scripts] == [0, 0, 0]
    assert not server.calls
    assert "Gate on gate: passed" in (run_clash.path / "summary.md").read_text()
    file = run_clash.path / "prompts.yaml"
    file.write_text(file.read_text().replace("Question 1?", "Another question?"))
    changed_scripts = [script.replace("--run-id gate", "--run-id other") for script in scripts]
    changed_scripts = [script.replace("gate gate ", "gate other ") for script in changed_scripts]
    assert [shell(run_clash, script) for script in changed_scripts] == [0, 3, 1]
    assert not server.calls


def test_the_nightly_workflow_is_of_commands_that_exist() -> None:
    commands = set(get_command(app).commands)  # type: ignore[attr-defined]
    for script in steps("configs/ci/nightly.yaml"):
        words = shlex.split(script)
        assert words[0] == "clash"
        assert words[1] in commands
