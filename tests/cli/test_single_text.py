"""Runs that judge each text by itself, from the configuration to the sealed folder and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import yaml

from clash.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class InProcess:
    """Runs commands in a folder, in this process."""

    path: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Result:
        self.capsys.readouterr()
        code = run(list(arguments))
        output = self.capsys.readouterr()
        return Result(code, output.out, output.err)


@pytest.fixture
def lab(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return InProcess(tmp_path, capsys)


TEXTS = [
    {"id": f"q{n}-{kind}", "prompt": f"What is number {n}?", "response": text, "label": label}
    for n in range(5)
    for kind, text, label in (
        ("a", f"What number {n} is: the number after {n - 1}, a plain number.", "relevant"),
        ("b", "Bananas.", "irrelevant"),
    )
]
LABELS = {"mode": "label", "labels": ["relevant", "irrelevant"], "passing": "relevant"}


def write(lab, judging, entries, **config):
    (lab.path / "clash.yaml").write_text(
        yaml.safe_dump({"panel": "baseline", "judging": judging, **config}), encoding="utf-8"
    )
    (lab.path / "texts.yaml").write_text(yaml.safe_dump(entries), encoding="utf-8")


def records(lab, run, name):
    lines = (lab.path / "runs" / run / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("judging", [LABELS, {"mode": "score", "scale": "1-5", "passing": 3}])
def test_a_run_is_made_verified_repeated_and_gated(lab, judging):
    entries = TEXTS if judging is LABELS else [{**t, "label": 3} for t in TEXTS]
    write(lab, judging, entries, blinding={"both_orders": True})
    result = lab("eval", "texts.yaml", "--run-id", "one", "--json")
    assert result.code == 0, result.err
    votes = [judgment["vote"] for judgment in records(lab, "one", "judgments.jsonl")]
    assert len(votes) == 10 * 4 * 2
    assert None not in votes
    verdicts = records(lab, "one", "verdicts.jsonl")
    assert len(verdicts) == 10
    assert all("ranking" in verdict and verdict["ranking"] is None for verdict in verdicts)
    assert lab("verify", "one").code == 0
    assert lab("eval", "--replay", "one", "--run-id", "two").code == 0
    assert records(lab, "two", "verdicts.jsonl") == verdicts
    gate = lab("gate", "one", "--min", "pass_rate=0.99", "--json")
    assert gate.code == 1, gate.err
    assert json.loads(gate.out)["rules"][-1]["rule"]["figure"] == "pass_rate"


def test_what_compares_responses_refuses_the_run(lab):
    write(lab, LABELS, TEXTS)
    assert lab("eval", "texts.yaml", "--run-id", "one").code == 0
    for words in ("review", "choose", "variance", "favouritism", "power --from"):
        result = lab(*words.split(), "one")
        assert (result.code, "judges each text by itself" in result.err) == (2, True), (
            words,
            result,
        )
        assert "fix: " in result.err
    assert lab("eval", "texts.yaml", "--until", "ci<0.1", "--run-id", "two").code == 2
    write(lab, LABELS, TEXTS, blinding={"show_names": True})
    assert "show_names" in lab("eval", "texts.yaml", "--run-id", "two").err
    assert [path.name for path in (lab.path / "runs").iterdir()] == ["one"]


def test_a_decision_on_texts_is_explained_judge_by_judge_and_text_by_text(lab):
    """The verdicts without a judge are those of a run that never had it."""
    write(lab, LABELS, TEXTS)
    assert lab("eval", "texts.yaml", "--run-id", "whole").code == 0
    result = lab("explain", "whole", "--json")
    explanation = json.loads(result.out)
    assert explanation["n_texts"] == len(TEXTS) == explanation["n_labelled"]
    verdicts = _verdicts(lab, "whole")
    panel = [f"baseline/{line['judge']}" for line in explanation["judges"]]
    for line, model in zip(explanation["judges"], panel, strict=True):
        other_models = [{"model": name} for name in panel if name != model]
        write(lab, LABELS, TEXTS, panel={"name": "rest", "judges": other_models})
        assert lab("eval", "texts.yaml", "--run-id", line["judge"], "-q").code == 0
        without = _verdicts(lab, line["judge"])
        assert line["n_changed"] == sum(without[key] != verdicts[key] for key in verdicts)
        decided_by = {t["item_id"] for t in explanation["texts"] if line["judge"] in t["decisive"]}
        differ = {item for item, _ in verdicts if without[item, _] != verdicts[item, _]}
        assert decided_by <= differ
    labels = {record["id"]: record["label"] for record in TEXTS}
    misses = [item for (item, _), opinions in verdicts.items() if opinions != labels[item]]
    assert {t["item_id"] for t in explanation["texts"]} >= set(misses)
    assert explanation["agreement"]["estimate"] == pytest.approx(1 - len(misses) / len(TEXTS))
    screen = lab("explain", "whole")
    assert len(screen.out.splitlines()) <= 22
    assert "Leaving out a single judge changes the verdict on" in screen.out
    assert "Without one judge" in lab("explain", "whole", "-v").out


def test_a_persons_labels_of_several_texts_of_an_item_all_count(lab):
    """As lines of labels.jsonl, one a text; the last of a person on a text counts."""
    records = [
        {"id": f"q{n}", "prompt": f"{n}?", "responses": {"a": f"It is {n}.", "b": "Bananas."},
         "labels": {"a": "irrelevant", "b": "relevant"}}
        for n in range(4)
    ]  # fmt: skip
    write(lab, LABELS, records)
    assert lab("eval", "texts.yaml", "--run-id", "one").code == 0
    votes = [("a", "irrelevant"), ("a", "relevant"), ("b", "irrelevant")]
    lines = [
        {"v": 1, "item_id": f"q{n}", "annotator": "ann", "candidate": name, "vote": vote}
        for n in range(4)
        for name, vote in votes
    ]
    path = lab.path / "runs" / "one" / "labels.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    explanation = json.loads(lab("explain", "one", "--json").out)
    assert explanation["n_labelled"] == 8
    people = {(t["candidate"], t["people"]) for t in explanation["texts"]}
    assert people <= {("a", "relevant"), ("b", "irrelevant")}
    page = (lab.path / "runs" / "one" / "report.html").read_text(encoding="utf-8")
    assert "= level" not in page  # a share of texts is level with nothing
    walk = lab("report", "one", "--item", "q1").out
    notes = [line.strip() for line in walk.splitlines() if "people say" in line]
    assert [line.split(" (")[0] for line in notes] == [
        "people say relevant",
        "people say irrelevant",
    ]
    assert "people say relevant" in lab("report", "one", "--item", "q1", "-q").out
    unlabelled_record = json.loads(lab("explain", "one", "--no-labels", "--json").out)
    assert unlabelled_record["n_labelled"] == 0


def _verdicts(lab, run):
    path = lab.path / "runs" / run / "verdicts.jsonl"
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(line["item_id"], line["candidate"]): line.get("label") for line in lines}


def test_validate_holds_the_panel_against_the_labels_and_counts_misses(lab):
    write(lab, LABELS, TEXTS)
    result = lab("validate", "texts.yaml", "--run-id", "held")
    assert result.code == 0, result.err
    report = json.loads((lab.path / "runs" / "held" / "report.json").read_text(encoding="utf-8"))
    people = report["single_text"]["people"]
    by_hand = {v["item_id"]: v.get("label") for v in records(lab, "held", "verdicts.jsonl")}
    right = sum(by_hand[text["id"]] == text["label"] for text in TEXTS)
    assert (people["rate"]["right"], people["n"]) == (right, 10)
    assert sum(map(sum, people["confusion"])) == 10


def test_a_prompt_without_a_response_is_the_text(lab):
    comments = [{"id": "c1", "prompt": "You are a fool."}, {"id": "c2", "prompt": "Thank you."}]
    write(lab, {"mode": "label", "labels": ["toxic", "fine"]}, comments)
    assert lab("eval", "texts.yaml", "--run-id", "one").code == 0
    assert {r["candidate"] for r in records(lab, "one", "responses.jsonl")} == {"prompt"}
    assert lab("verify", "one").code == 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"id": "q", "prompt": "Why?", "responses": {"prompt": "So."}}, "another name"),
        ({"prompt": "p", "response": "r", "label": "maybe"}, "which no judge can give"),
        ({"prompt": "p", "responses": {"a": "x", "b": "y"}, "label": "relevant"}, "and one label"),
        ({"prompt": "p", "responses": {"a": "x"}, "labels": {"b": "relevant"}}, "has no text"),
        ({"prompt": "p", "response": "r", "responses": {"a": "x"}}, "either response or responses"),
    ],
)
def test_a_label_that_no_text_can_have_is_refused_before_anything_is_judged(lab, entry, message):
    write(lab, LABELS, [entry])
    result = lab("eval", "texts.yaml")
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert not list((lab.path / "runs").glob("*")) if (lab.path / "runs").exists() else True


def test_a_file_of_single_texts_says_what_is_missing_where_responses_are_ranked(lab):
    write(lab, {"mode": "rank"}, TEXTS)
    result = lab("eval", "texts.yaml")
    assert result.code == 2
    assert "is for judging one text by itself\nfix: --labels A,B or --scale 1-5" in result.err
