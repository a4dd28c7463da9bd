"""``clash datasets``: what it prints, what it writes, and that the rest of clash reads it."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from clash.cli import datasets
from clash.collect.load import load
from clash.datasets import loaders
from clash.errors import ClashError, InputError, RunFolderError
from clash.store.audit import audit
from clash.store.folder import RunFolder

PUBLISHED = Path(__file__).resolve().parents[2] / "../shared/data/agent-clash"


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CLASH_CACHE", str(tmp_path / "cache"))
    for name in ("HF_ENDPOINT", "HF_TOKEN", "CLASH_SEED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clash(capsys):
    def call(*arguments):
        datasets.app([str(argument) for argument in arguments], standalone_mode=False)
        return capsys.readouterr().out

    return call


def as_json(text):
    value = json.loads(text)
    assert "clash" in value
    return value


def mt_bench_file(path):
    def talk(question, model):
        turns = [f"question {question}", f"{model} one", "more?", f"{model} two"]
        return [{"content": t, "role": ("user", "assistant")[n % 2]} for n, t in enumerate(turns)]

    records = [
        {
            "question_id": question,
            "model_a": "gpt-4",
            "model_b": "llama-13b",
            "winner": winner,
            "judge": judge,
            "conversation_a": talk(question, "gpt-4"),
            "conversation_b": talk(question, "llama-13b"),
            "turn": turn,
        }
        for question, turn, judge, winner in [
            (81, 1, "e1", "model_a"),
            (81, 1, "e2", "model_a"),
            (82, 1, "e1", "model_b"),
            (83, 1, "e1", "tie"),
            (83, 2, "e1", "model_a"),
        ]
    ]
    parquet.write_table(pa.Table.from_pylist(records), path)
    return path


def test_list_names_every_set_with_its_licence(clash):
    datasets = as_json(clash("list", "--json"))["datasets"]
    assert {"mt-bench", "arena", "llmbar", "pandalm"} <= {record["name"] for record in datasets}
    assert all(record["licence"] and record["citation"] for record in datasets)
    assert {record["here"] for record in datasets} == {False}
    assert "mt-bench" in clash("list")


def test_pull_then_sample_by_name_makes_a_prompts_file(clash, start_hub, tmp_path):
    path = mt_bench_file(tmp_path / "human.parquet")
    hub = start_hub(files={"data/human-00000-of-00001-x.parquet": path.read_bytes()})
    report = as_json(clash("pull", "mt-bench", "--base-url", hub.url, "--json"))
    assert report["files"][0]["verified"].startswith("sha256 ")
    assert report["licence"] == "CC-BY-4.0"
    assert "cite: Zheng" in clash("pull", "mtbench", "--base-url", hub.url)
    out = tmp_path / "mine" / "sample.jsonl"
    new_report = as_json(clash("sample", "mt-bench", "--out", out, "--json"))
    assert new_report["counts"] == {
        "items": 4,
        "admitted": 2,
        "drawn": 2,
        "no clear winner": 1,
        "not single-turn": 1,
    }
    prompts = load(out)
    assert [item.label for item in prompts.items] == ["gpt-4", "llama-13b"]
    assert sorted(prompts.candidates) == ["gpt-4", "llama-13b"]
    again = loaders.load(out)
    assert {(x.item_id, x.annotator) for x in again.labels} == {
        ("q81-t1-gpt-4-llama-13b", "e1"),
        ("q81-t1-gpt-4-llama-13b", "e2"),
        ("q82-t1-gpt-4-llama-13b", "e1"),
    }
    lines = Path(new_report["written"]["excluded"]).read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert {e["reason"] for e in records} == {"no clear winner", "not single-turn"}
    account = json.loads(Path(new_report["written"]["account"]).read_text())
    assert account["rules"]["seed"] == 42
    assert account["licence"] == "CC-BY-4.0"


def test_sample_takes_any_file_and_its_options(clash, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = mt_bench_file(tmp_path / "human.parquet")
    result = clash("sample", path, "--n", "2", "--rules", "all", "--seed", "7")
    assert "wrote prompts to human-2-seed7.jsonl" in result
    assert len(load(tmp_path / "human-2-seed7.jsonl").items) == 2
    long = as_json(clash("sample", path, "--rules", "clear", "--min-chars", "99", "--json"))
    assert long["counts"]["a response is shorter than 99 characters"] == 3
    with pytest.raises(InputError, match="the rules admit only 3"):
        clash("sample", path, "--n", "9", "--rules", "clear")


def test_sample_of_what_is_not_here_says_how_to_get_it(clash):
    with pytest.raises(ClashError, match="clash datasets pull arena"):
        clash("sample", "arena")


def test_convert_makes_run_folders_that_hold_what_they_say(clash, tmp_path):
    record = {
        "instruction": "Q",
        "output_1": "a",
        "output_2": "b",
        "generator_1": "x",
        "generator_2": "y",
        "annotator": "openai/judge",
        "preference": 2,
        "price_per_example": 0.01,
    }
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps([record, {**record, "instruction": "R", "preference": None}]))
    [written_path] = as_json(clash("convert", path, "--out", tmp_path / "runs", "--json"))[
        "written"
    ]
    folder = RunFolder.open(written_path["path"])
    manifest = folder.manifest()
    assert (manifest.kind, manifest.status) == ("eval", "complete")
    assert manifest.counts["failed_judgments"] == 1
    assert manifest.cost_usd == pytest.approx(0.02)
    assert manifest.panel["judges"][0]["family"] == "openai"
    win, loss = folder.verdicts()
    assert (win.winner, win.split) == ("y", "1-0")
    assert loss.abstained
    assert [finding for finding in audit(folder) if finding.problem] == []
    assert "price_per_example" not in (folder.path / "published.jsonl").read_text()
    with pytest.raises(RunFolderError, match="is there already"):
        clash("convert", path, "--out", tmp_path / "runs")


def test_convert_of_pairs_makes_a_prompts_file(clash, tmp_path):
    path = tmp_path / "mine.jsonl"
    record = {"prompt": "Q?", "response_a": "1", "response_b": "2", "label": "A"}
    path.write_text(json.dumps(record) + "\n")
    result = clash("convert", path, "--out", tmp_path / "out")
    assert "1 labelled items" in result
    [item] = load(tmp_path / "out" / "mine.jsonl").items
    assert item.label == "response-a"


def test_an_unknown_form_lists_the_known_ones(clash, tmp_path):
    with pytest.raises(ClashError, match="agent-clash, alpaca-eval"):
        clash("convert", tmp_path, "--from", "excel")


def test_the_published_results_become_ten_run_folders(clash, tmp_path):
    if not PUBLISHED.is_dir():
        pytest.skip("the published results are not beside this checkout")
    written_paths = as_json(clash("convert", PUBLISHED, "--out", tmp_path, "--json"))["written"]
    assert len(written_paths) == 10
    run = RunFolder.open(tmp_path / "mt-bench")
    label = {item.item_id: item.label for item in run.items()}
    verdicts = run.verdicts()
    assert sum(verdict.winner == label[verdict.item_id] for verdict in verdicts) == 88
    [empty] = [verdict for verdict in verdicts if verdict.abstained]
    assert empty.item_id == "mtbench-036"
    assert run.manifest().config["candidates"][0]["tier"] == "strong"
    assert RunFolder.open(tmp_path / "arena-3").manifest().parent == "arena-1"
    tied = next(v for v in RunFolder.open(tmp_path / "arena-3").verdicts() if v.winner is None)
    assert (tied.item_id, tied.abstained, tied.split) == ("arena-100", None, "1-1")
    published_lines = (tmp_path / "arena-1" / "published.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["match"] for line in published_lines) == 76
