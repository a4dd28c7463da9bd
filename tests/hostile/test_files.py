"""A file that somebody else wrote costs at most a message: exit code 2, at once, in little memory."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clash import documents
from clash.analysis.rankings.weights import read_weights
from clash.cli.app import run
from clash.collect import load
from clash.datasets import record_files
from clash.errors import InputError
from clash.votes import read_votes
from clash.votes.lines import VoteLine, read_lines
from hostile import samples

if TYPE_CHECKING:
    from pathlib import Path

PROMPTS = "- prompt: Which?\n  responses: {ada: This., bob: That.}\n"
SECONDS, MEGABYTES = 20, 220
"""Of a process, its start included: 1 s on an idle machine, which that of a test is not."""


@pytest.fixture
def work_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts.yaml").write_text(PROMPTS, encoding="utf-8")
    (tmp_path / "votes.jsonl").write_bytes(samples.VOTE)
    return tmp_path


def check_refusal(capsys, *words: object) -> None:
    """One message, without a traceback, and exit code 2."""
    assert run([*map(str, words)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert "Traceback" not in output.err


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("validate PATH --panel baseline", ("folder", "empty", "vote")),
        ("aggregate PATH", ("folder", "empty")),
        ("aggregate votes.jsonl --calibrator PATH", ("folder", "empty", "vote")),
        ("audit PATH", ("folder", "empty", "vote")),
        ("dependence PATH", ("folder", "empty", "vote")),
        ("eval prompts.yaml --panel ./PATH --dry-run", ("folder", "empty", "word")),
        ("eval prompts.yaml --config PATH --dry-run", ("folder", "word")),
        ("eval prompts.yaml --panel baseline --prereg PATH --dry-run", ("folder", "empty", "word")),
    ],
)
def test_a_file_of_the_wrong_kind_is_refused_in_two_lines(work_folder, capsys, words, kinds):
    (work_folder / "folder").mkdir()
    (work_folder / "empty").touch()
    (work_folder / "vote").write_bytes(samples.VOTE)
    (work_folder / "word").write_text("word")
    for kind in kinds:
        assert run(words.replace("PATH", kind).split()) == 2
        problem, fix = capsys.readouterr().err.splitlines()
        assert problem.startswith("error: ")
        assert fix.startswith("fix: ")


@pytest.mark.parametrize("name", samples.YAML)
def test_hostile_yaml_is_refused_wherever_yaml_is_read(work_folder, capsys, name):
    (path,) = samples.write(work_folder / "in", {name: samples.YAML[name]}, ".yaml")
    if name not in ("long-number", "sexagesimal"):  # as a prompt, they are text
        check_refusal(capsys, "eval", path, "--panel", "baseline", "--dry-run")
    check_refusal(capsys, "eval", "prompts.yaml", "--panel", path, "--dry-run")
    check_refusal(
        capsys, "eval", "prompts.yaml", "--panel", "baseline", "--config", path, "--dry-run"
    )
    check_refusal(capsys, "aggregate", "votes.jsonl", "--calibrator", path)


@pytest.mark.parametrize("name", samples.JSONL)
def test_hostile_json_is_refused_wherever_json_is_read(work_folder, capsys, name):
    (path,) = samples.write(work_folder / "in", {name: samples.JSONL[name]}, ".jsonl")
    check_refusal(capsys, "eval", path, "--panel", "baseline", "--dry-run")
    check_refusal(capsys, "aggregate", path)
    check_refusal(capsys, "validate", path, "--panel", "baseline", "--dry-run")
    check_refusal(capsys, "datasets", "convert", path, "--out", work_folder / "out")
    json_path = path.rename(path.with_suffix(".json"))
    check_refusal(
        capsys, "eval", "prompts.yaml", "--panel", "baseline", "--prereg", json_path, "--dry-run"
    )
    check_refusal(capsys, "datasets", "convert", json_path, "--out", work_folder / "out")


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"item": "q", "judge": "b", "vote": 1, "vote": 0}', "vote"),
        (b'{"item": "q", "judge": "b", "vote": 1, "label": "A", "label":"B"}', "label"),
        # Written with an escape, a key has other letters and is the same.
        (b'{"item": "q", "judge": "b", "vote": 1, "v\\u006fte": 0}', "vote"),
        (b'{"item": "q", "judge": "b", "ranking": ["x", "y"], "ranking": ["y", "x"]}', "ranking"),
    ],
)
def test_a_vote_with_a_key_twice_is_refused_at_its_line(work_folder, capsys, line, key):
    path = work_folder / "twice.jsonl"
    first = b'{"item": "q", "judge": "a", "ranking": ["x", "y"]}\n'
    path.write_bytes((first if key == "ranking" else samples.VOTE) + line + b"\n")
    assert run(["aggregate", str(path)]) == 2
    assert f"twice.jsonl:2: {key}: the key '{key}' appears twice" in capsys.readouterr().err


def test_words_that_are_the_name_of_a_key_are_no_second_key(tmp_path):
    path = tmp_path / "votes.jsonl"
    lines = [{"item": "vote", "judge": f"j{n}", "vote": "A", "label": "label"} for n in range(3)]
    lines += [{"item": 'q "vote"', "judge": "caf\u00e9", "vote": "label", "label": "A"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    rows = [row for chunk in read_lines(path, VoteLine) for row in chunk]
    assert [(row.item, row.judge, row.vote, row.label) for row in rows] == [
        (line["item"], line["judge"], line["vote"], line["label"]) for line in lines
    ]


@pytest.mark.parametrize("name", ["prompts.jsonl", "prompts.json"])
def test_a_prompt_with_a_key_twice_is_refused_at_its_line(work_folder, capsys, name):
    (work_folder / name).write_text(
        '\n{"prompt": "a",\t"meta": {"n": 1, "n": 2}}\n', encoding="utf-8"
    )
    assert run(["eval", name, "--panel", "baseline", "--dry-run"]) == 2
    assert f"{name}:2: " in (message := capsys.readouterr().err)
    assert "twice" in message


@pytest.mark.parametrize("name", samples.CSV)
def test_hostile_csv_is_refused_wherever_csv_is_read(work_folder, capsys, name):
    (path,) = samples.write(work_folder / "in", {name: samples.CSV[name]}, ".csv")
    check_refusal(capsys, "eval", path, "--panel", "baseline", "--dry-run")
    check_refusal(capsys, "aggregate", path)
    check_refusal(capsys, "validate", path, "--panel", "baseline", "--dry-run")


@pytest.mark.parametrize("name", samples.GZIP)
def test_hostile_gzip_is_refused_wherever_gzip_is_read(work_folder, capsys, name):
    (path,) = samples.write(work_folder / "in", {name: samples.GZIP[name]}, ".jsonl.gz")
    check_refusal(capsys, "eval", path, "--panel", "baseline", "--dry-run")
    check_refusal(capsys, "aggregate", path)
    check_refusal(capsys, "validate", path, "--panel", "baseline", "--dry-run")


@pytest.mark.parametrize(
    "suffix", [".yaml", ".jsonl", ".csv", ".jsonl.gz", ".json", ".txt", ".parquet"]
)
def test_what_is_no_regular_file_is_refused_without_waiting_for_it(work_folder, capsys, suffix):
    for path in samples.no_files(work_folder / "in", suffix):
        if suffix != ".parquet" and path.name != f"folder{suffix}":  # a folder of prompts may be
            check_refusal(capsys, "eval", path, "--panel", "baseline", "--dry-run")
        if path.is_file():
            check_refusal(capsys, "aggregate", path)
        check_refusal(capsys, "validate", path, "--panel", "baseline", "--dry-run")


WORST = {
    "deep.yaml": ("eval", samples.YAML["deep-list"]),
    "laughs.yaml": ("eval", samples.YAML["billion-laughs"]),
    "itself.yaml": ("eval", samples.YAML["contains-itself"]),
    "values.yaml": ("eval", samples.MANY_VALUES),
    "deep.jsonl": ("eval", samples.JSONL["deep-object"]),
    "columns.csv": ("aggregate", samples.CSV["distinct-columns"]),
    "quote.csv": ("aggregate", samples.CSV["unclosed-quote"]),
    "zeros.jsonl.gz": ("aggregate", samples.GZIP["zeros"]),
    "votes.jsonl.gz": ("aggregate", samples.GZIP["votes"]),
    "audited.jsonl.gz": ("audit", samples.GZIP["votes"]),
}


def _little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEGABYTES << 20, MEGABYTES << 20))


@pytest.mark.parametrize("name", WORST)
def test_the_worst_files_are_refused_at_once_and_in_little_memory(work_folder, name):
    command, body = WORST[name]
    (work_folder / name).write_bytes(body)
    more = ["--panel", "baseline", "--dry-run"] if command == "eval" else []
    process = subprocess.run(
        [sys.executable, "-m", "clash", command, name, *more],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=_little_memory,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert process.returncode == 2, process.stderr
    assert process.stderr.startswith(f"error: {name}"), process.stderr


def test_a_large_honest_file_is_read(tmp_path):
    """A hundred times its packed size, and a thousand times the lines of any test."""
    line = b'{"item": "q%d", "judge": "gpt", "vote": 1, "note": "' + b"no remark " * 30 + b'"}\n'
    path = tmp_path / "votes.jsonl.gz"
    with gzip.open(path, "wb", 1) as file:
        for number in range(120_000):
            file.write(line % number)
    assert read_votes(path).n_items == 120_000
    assert 40 < 120_000 * len(line) / path.stat().st_size < 200


def test_yaml_keeps_its_meaning(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "base: &b {k: 1, l: [1.5, yes, null, 2026-01-02]}\n"
        "own: {<<: *b, k: 2}\n"
        "two: {<<: [{m: 1}, {m: 2, n: 3}]}\n"
        'text: ["1", !!str 2, "<<"]\nlong: 0000000000000000000000000000000000000000000000000000000000000000001\n',
        encoding="utf-8",
    )
    import yaml

    document = documents.read_yaml(path)
    reference_document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert document.value["long"] == "0" * 66 + "1"
    assert {**document.value, "long": 1} == {**reference_document, "long": 1}
    assert document.line(("own", "k")) == 2
    assert document.at("base").line(("l", 3)) == 1


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = ("id", "prompt", "messages", "responses", "tags", "label", "item", "judge", "vote", "group")
RECORDS = st.lists(st.dictionaries(st.sampled_from(KEYS), ANY, max_size=6), max_size=4)
BYTES = st.binary(max_size=200) | st.text(
    alphabet="[]{}:,-&*!|>?#%@`'\"\\ \n\t\r<=abc019.~\x00\x85\u2028\ufeff\ud7ff", max_size=80
).map(lambda text: text.encode("utf-8"))


def value_or_refusal(read, path: Path) -> None:
    try:
        answer = read(path)
        if hasattr(answer, "__next__"):
            list(answer)
    except InputError:
        pass


@settings(max_examples=300)
@given(
    BYTES,
    st.sampled_from([".yaml", ".json", ".jsonl", ".csv", ".tsv", ".txt", ".jsonl.gz", ".csv.gz"]),
)
def test_any_bytes_are_a_value_or_a_refusal(tmp_path_factory, body, suffix):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(gzip.compress(body) if suffix.endswith(".gz") else body)
    for read in (documents.read_yaml, load.load, read_votes, read_weights, record_files.rows):
        value_or_refusal(read, path)


@settings(max_examples=200)
@given(RECORDS)
def test_any_records_are_a_value_or_a_refusal(tmp_path_factory, records):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in records), encoding="utf-8")
    for read in (load.load, read_votes, record_files.rows):
        value_or_refusal(read, path)
    json_path = path.with_suffix(".json")
    json_path.write_text(json.dumps(records), encoding="utf-8")
    value_or_refusal(load.load, json_path)


def test_a_negative_seed_is_refused_before_anything_is_made(work_folder, capsys):
    """numpy refused it at the end of a run, when everything had been paid."""
    check_refusal(capsys, "aggregate", "votes.jsonl", "--seed", "-1")
    (work_folder / "clash.yaml").write_text("seed: -1\n", encoding="utf-8")
    check_refusal(capsys, "eval", "prompts.yaml", "--panel", "baseline")
    assert not (work_folder / "runs").exists()


@pytest.mark.parametrize("weight", [".inf", ".nan", "-.inf"])
def test_a_weight_without_end_is_refused_before_anything_is_made(work_folder, capsys, weight):
    """JSON has no infinity: the judgments of such a run could be written, and not be read."""
    judges = f"judges: [{{id: a, model: baseline/coverage, weight: {weight}}}]"
    (work_folder / "panel.yaml").write_text(f"name: p\n{judges}\n", encoding="utf-8")
    check_refusal(capsys, "eval", "prompts.yaml", "--panel", "panel.yaml")
    assert not (work_folder / "runs").exists()


# -- files that a stranger's folder points to -----------------------------------------------------


@pytest.fixture
def diary(work_folder, tmp_path_factory):
    """A text of the victim's, outside of the folder of the stranger."""
    file = tmp_path_factory.mktemp("victim") / "diary"
    file.write_text("Dear diary\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "value", ["{diary}", "../{away}", "link", "link.txt", "link.md", "{folder}"]
)
def test_a_configuration_that_nobody_named_reads_no_text_elsewhere(
    work_folder, capsys, diary, value
):
    for name in ("link", "link.txt", "link.md"):
        (work_folder / name).symlink_to(diary)
    away = os.path.relpath(diary, work_folder.parent)
    value = value.format(diary=diary, away=away, folder=diary.parent)
    (work_folder / "clash.yaml").write_text(f"prompts: {value}\n", encoding="utf-8")
    words = ["eval", "--panel", "baseline", "--models", "baseline/coverage,baseline/structure"]
    assert run([*words, "--dry-run"]) == 2
    assert f"clash.yaml: prompts: {value} leads out of the folder" in capsys.readouterr().err
    run([*words, "--dry-run", "--config", "clash.yaml"])
    assert "leads out" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["prompts", "templates"])
def test_no_link_leads_out_of_a_folder_of_texts(work_folder, capsys, diary, name):
    (work_folder / name).mkdir()
    (work_folder / name / "judge.system.md").symlink_to(diary)
    (work_folder / name / "user.next.md").symlink_to("user.next.md")
    (work_folder / "clash.yaml").write_text(
        f"prompts: prompts.yaml\n{name}: {name}\n", encoding="utf-8"
    )
    check_refusal(capsys, "eval", "--panel", "baseline", "--dry-run")
