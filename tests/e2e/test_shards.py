"""Shards of a run, merged: the folder that one process writes, or a refusal that names a file."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from clash.store import chain
from clash.store.chain import ChainedJournal
from clash.store.manifest import digest, manifest_text, seal_file
from e2e.lab import PRICE, Folder, Lab

WORDS = ("prompts.yaml", "--models", "compatible/ada,compatible/bob", "--panel", "panel.yaml")
SHARDS = 3
TIMES = re.compile(
    rb'("(?:time|started|ended|latency_s|ttft_s|latency_median_s|latency_p90_s|wall_s|'
    rb'chain|sha256|seal|secret)":)\s*[^,}\n]*'
)
"""Times, and what is random or a hash of it."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory, server) -> Lab:
    """A run that was judged once, and its three shards; ``zed`` writes for two items of one."""
    server.clear()
    lab = Lab(tmp_path_factory.mktemp("shards"), server, server.environ("compatible"))
    records = [{"id": f"q{i}", "prompt": f"Question {i}?"} for i in range(8)]
    for i in (2, 5):
        records[i]["responses"] = {"zed": f"As ada, I say {i}.", "yak": f"It is {i}."}
    records[0]["responses"] = {"yak": "This answer was written by zed."}
    lab.write("prompts.yaml", records)
    lab.panel(
        *({"model": f"compatible/{name}", "price": PRICE} for name in "abc"),
        criteria="compatible/writer",
    )
    lab.judged(*WORDS, "--both-orders", run="source")
    replay = ("--replay", "source", "--concurrency", 1)
    lab.judged(*replay, run="one")
    for number in range(1, SHARDS + 1):
        lab.judged(*replay, "--shard", f"{number}/{SHARDS}", run=f"s{number}")
    for number in (1, 2):
        lab.judged(*WORDS, "--shard", f"{number}/3", run=f"asked{number}")
    return lab


@pytest.fixture(autouse=True)
def _bounded(lab: Lab) -> Any:
    """Each test leaves the runs of the module as they were."""
    before = {path.name for path in (lab.path / "runs").iterdir()}
    yield
    for path in (lab.path / "runs").iterdir():
        if path.name not in before:
            shutil.rmtree(path)


def merge(lab: Lab, *names: str, code: int = 0) -> Folder:
    result = lab.here("merge", *names, "--run-id", "merged", "-q")
    assert result.code == code, (result.out, result.err)
    return lab.folder("merged")


def bare(path: Path, run: str) -> bytes:
    """A file without its times and ids."""
    data = path.read_bytes().replace(f'"{run}"'.encode(), b'"run"')
    return TIMES.sub(rb"\1null", data)


def test_merged_shards_are_the_folder_of_one_process(lab):
    run, whole_run = merge(lab, "s2", "s3", "s1"), lab.folder("one")
    names = {path.name for path in whole_run.path.iterdir()}
    assert {path.name for path in run.path.iterdir()} == names
    for name in sorted(names - {"report.html", "report.md"}):  # these show times among words
        assert bare(run.path / name, "merged") == bare(whole_run.path / name, "one"), name
    assert lab.here("verify", "merged").code == 0
    # "zed" writes for no item of this shard, and is masked in it as in the whole run.
    scrubs = [s["text"] for page in lab.folder("s1").lines("blinding") for s in page["scrubbed"]]
    assert "zed" in scrubs


def test_shards_without_a_common_secret_keep_their_own_in_the_merged_run(lab):
    for number in (1, 2):
        lab.judged(*WORDS, "--shard", f"{number}/2", run=f"own{number}")
    run = merge(lab, "own1", "own2")
    secrets = [lab.folder(f"own{number}").manifest["secret"] for number in (1, 2)]
    assert run.manifest["secret"] == " ".join(secrets)
    assert lab.here("verify", "merged").code == 0
    again = lab.judged("--replay", "merged", "--shard", "2/3", run="again")
    assert again.manifest["secret"] == " ".join(secrets[::-1])
    assert len(again.lines("judgments")) == 5 * len(again.lines("items"))
    assert all(judgment["ranking"] for judgment in again.lines("judgments"))


@pytest.mark.parametrize("command", ["report", "aggregate", "export"])
def test_several_runs_are_read_as_one(lab, command):
    words = {
        "report": ("--json", "--no-write"),
        "aggregate": ("--method", "majority,borda", "--json"),
        "export": ("--votes", "--to", "-"),
    }[command]
    shards = [f"s{number}" for number in range(1, SHARDS + 1)]
    several = lab.here(command, *shards, *words)
    result = lab.here(command, "one", *words)
    assert several.code == result.code == 0, several.err
    if command == "export":
        assert several.out == result.out
        return
    outputs = [
        TIMES.sub(rb"\1null", check_result.out.encode()) for check_result in (several, result)
    ]
    left, right = map(json.loads, outputs)
    for output in (left, right):
        for name in ("run", "runs", "source", "sources"):
            output.pop(name, None)
    assert left == right


@pytest.mark.parametrize(
    ("runs", "step"),
    [
        (("s1", "s2", "s3"), "clash merge s1 s2 s3 "),
        (("s1", "s3"), "clash eval … --shard 2/3 "),
        (("whole1", "whole2"), ""),
    ],
)
def test_a_report_of_several_runs_suggests_only_what_works(lab, runs, step):
    for name in {"whole1", "whole2"} & set(runs):
        lab.write(f"{name}.yaml", [{"id": name, "prompt": f"Question {name}?"}])
        lab.judged(f"{name}.yaml", *WORDS[1:], run=name)
    result = lab.here("report", *runs)
    assert result.code == 0, result.err
    steps = [line for line in result.out.splitlines() if line.startswith("Next ")]
    assert [step in line for line in steps] == [True] * bool(step)


def reseal(folder: Path, **changes: object) -> None:
    """Seal a folder again, as somebody would who knows how."""
    manifest = json.loads((folder / "manifest.json").read_text()) | changes
    for name in manifest["files"]:
        manifest["files"][name] = seal_file(folder / name).model_dump()
    manifest["seal"] = digest(manifest)
    (folder / "manifest.json").write_text(manifest_text(manifest))


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def copy_shard(lab: Lab) -> Path:
    return Path(shutil.copytree(lab.folder("s3").path, lab.path / "runs" / "copy"))


def other_seed(lab: Lab) -> None:
    lab.judged(*WORDS, "--seed", 7, "--shard", "3/3", run="copy")


def other_prompts(lab: Lab) -> None:
    changed_prompts = (lab.path / "prompts.yaml").read_text().replace("Question 7", "Question 8")
    (lab.path / "prompts.yaml").write_text(changed_prompts)
    try:
        lab.judged(*WORDS, "--shard", "3/3", run="copy")
    finally:
        (lab.path / "prompts.yaml").write_text(changed_prompts.replace("Question 8", "Question 7"))


def judgment(lab: Lab) -> None:
    edit(copy_shard(lab), "judgments.jsonl", '"weight":1.0', '"weight":2.0')


def sealed_judgment(lab: Lab) -> None:
    folder = copy_shard(lab)
    edit(folder, "judgments.jsonl", '"weight":1.0', '"weight":2.0')
    reseal(folder)


def leave_unfinished(lab: Lab) -> None:
    reseal(copy_shard(lab), seal=None, files={})
    folder = lab.path / "runs" / "copy"
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(manifest_text({**manifest, "seal": None}))


def foreign_call(lab: Lab) -> None:
    """A call that another shard made, beside those of this one."""
    folder = copy_shard(lab)
    journal = ChainedJournal(folder / "calls.jsonl")
    with (lab.folder("s1").path / "calls.jsonl").open("rb") as calls:
        journal.append_line(chain.without_link(calls.readline()))
    journal.close()
    reseal(folder, chain=chain.head(folder / "calls.jsonl"))


def other_number(lab: Lab) -> None:
    folder = copy_shard(lab)
    shard = json.loads((folder / "manifest.json").read_text())["shard"]
    reseal(folder, shard={**shard, "number": 9})


def countless(lab: Lab) -> None:
    """As many shards as would fill the memory of whoever looks for the missing ones."""
    folder = copy_shard(lab)
    shard = json.loads((folder / "manifest.json").read_text())["shard"]
    reseal(folder, shard={**shard, "of": 10**12, "items": 10**12})


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (None, 2, r"shard 3 of 3 missing\nfix: .*--shard 3/3"),
        ("s2", 2, r"s2: is shard 2 of 3, as runs/s2 is\nfix: leave one"),
        ("one", 2, r"one: is not a shard of a run"),
        (other_seed, 2, r"copy: has another seed \(in the configuration\) than runs/asked1"),
        (other_prompts, 2, r"copy: has another prompts file than runs/asked1"),
        (judgment, 5, r"copy: judgments.jsonl was changed after it was sealed.*\nfix: restore"),
        (sealed_judgment, 5, r"copy: .* has another weight than follows.*\nfix: restore"),
        (leave_unfinished, 2, r"copy: the run has not ended\nfix: clash resume runs/copy"),
        (countless, 2, r"copy/manifest.json: is not a manifest"),
        (foreign_call, 5, r"copy: has a call about 'q0', which is no item of this shard\nfix: res"),
        (other_number, 2, r"manifest.json: shard: there is no shard 9 of 3"),
    ],
)
def test_a_shard_that_does_not_belong_is_refused_by_name(lab, change, code, message):
    asks = change in (other_seed, other_prompts)
    names = ["asked1", "asked2"] if asks else ["s1", "s2"]
    if isinstance(change, str):
        names.append(change)
    elif change is not None:
        change(lab)
        names.append("copy")
    result = lab.here("merge", *names, "--run-id", "merged")
    assert result.code == code
    assert re.search(message, result.err), result.err
    assert not (lab.path / "runs" / "merged").exists()


def test_a_shard_spends_its_share_and_is_resumed_with_more(lab):
    """A cap that pays for less than the run: every shard stops within its share of it."""
    source = lab.folder("source")
    cap = 2 * max(line["usd"] for line in source.lines("reservations"))
    cap = round(cap + source.manifest["cost_usd"] / 4, 6)
    for number in (1, 2):
        words = (*WORDS, "--allow-unknown-price", "--max-cost", cap, "--shard", f"{number}/2")
        run = lab.judged(*words, run=f"poor{number}", code=3)
        assert 0 < run.manifest["cost_usd"] <= cap / 2
        assert run.manifest["config"]["limits"]["max_cost"] == cap
    result = lab.here("merge", "poor1", "poor2")
    assert result.code == 2
    assert re.search(r"poor1: \d+ answers missing\nfix: clash resume runs/poor1", result.err)
    for number in (1, 2):
        assert lab.here("resume", f"poor{number}", "--max-cost", 1).code == 0
    run = merge(lab, "poor1", "poor2")
    assert len(run.answered()) == len(set(run.answered()))
    assert lab.here("verify", "merged").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--shard", "0/3"), "shards count from 1: --shard 1/3 is the first"),
        (("--shard", "4/3"), "--shard 2/4 is the second of four shards"),
        (("--shard", "half"), "'half' is not a shard"),
        (("--shard", "9/9"), "shard 9 of 9 has no item: the run has 8 items"),
        (("--shard", "1/2", "--until", "se<0.1"), "--until"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(lab, words, message):
    result = lab.here("eval", *WORDS, *words, "--yes")
    assert result.code == 2
    assert message in result.err


def test_a_dry_run_prices_the_shard_alone(lab):
    full_report = lab.here("eval", *WORDS, "--dry-run", "--json").json
    parts = [
        lab.here("eval", *WORDS, "--shard", f"{n}/3", "--dry-run", "--json").json for n in (1, 2, 3)
    ]
    assert sum(part["items"] for part in parts) == full_report["items"] == 8
    assert sum(part["calls"] for part in parts) == full_report["calls"]
    assert [part["shard"] for part in parts] == [f"{n}/3" for n in (1, 2, 3)]


def test_shards_of_a_validation_are_merged_with_their_labels(lab):
    """As the whole run, labels and agreement with people included."""
    records = [
        {"id": f"q{i}", "prompt": f"{i}?", "responses": {"ada": f"It is {i}.", "bob": "No."},
         "label": ("ada", "bob", "tie")[i % 3]}
        for i in range(7)
    ]  # fmt: skip
    lab.write("pairs.yaml", records)
    words = ("validate", "pairs.yaml", "--panel", "baseline", "--run-id")
    assert lab.here(*words, "whole").code == 0
    for number in (1, 2, 3):
        assert lab.here(*words, f"v{number}", "--shard", f"{number}/3").code == 0
    refusal = lab.here("merge", "v1", "v3")
    assert (refusal.code, "make it: clash validate … --shard 2/3" in refusal.err) == (2, True)
    run, whole_run = merge(lab, "v3", "v1", "v2"), lab.folder("whole")
    for name in ("items.jsonl", "labels.jsonl", "verdicts.jsonl"):
        if (whole_run.path / name).exists():
            assert bare(run.path / name, "merged") == bare(whole_run.path / name, "whole"), name
    rate = whole_run.report["concordance"]["headline"]["rate"]
    assert run.report["concordance"]["headline"]["rate"] == rate
    assert rate["n"] == 7
    assert lab.here("verify", "merged").code == 0
