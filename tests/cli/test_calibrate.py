"""Calibrate on labels, deploy in a run: one command line after the other, offline."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

from clash.analysis.rundata import RunData
from clash.cli.app import run
from clash.review.tasks import review_tasks
from clash.store.folder import RunFolder
from clash.votes import VoteRow, write_votes

WORDS = ("apple tree", "river stone", "green field", "old clock", "warm bread", "long road")


@pytest.fixture
def prompts(tmp_path):
    """Items on which the response with a list and an end is the better one."""
    items = []
    for number in range(60):
        word = WORDS[number % len(WORDS)]
        good = (
            f"A {word} is described well here.\n\n- It is a {word}.\n- It lasts {number} years.\n"
        )
        bad = f"{word} " * (2 + number % 5)
        names = ("m1", "m2") if number % 2 else ("m2", "m1")
        responses = dict(zip(names, (good, bad), strict=True))
        label = names[0] if number % 7 else names[1]
        items.append(
            {
                "id": f"q{number}",
                "prompt": f"Describe {word} number {number}.",
                "responses": responses,
                "label": label,
            }
        )
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def answer(capsys, *words, code=0):
    capsys.readouterr()
    assert run([*map(str, words), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_answer_comes_first_and_risks_and_families_with_verbose(tmp_path, capsys):
    path = tmp_path / "v.jsonl"
    # One judge is right, the other two are not better than a coin.
    rows = [
        VoteRow(f"q{i}", f"j{j}", "AB"[vote], label="AB"[i % 2])
        for i in range(240)
        for j, vote in enumerate((i % 2, i // 2 % 2, i // 4 % 2))
    ]
    write_votes(path, rows)
    command = ["calibrate", str(path), "--splits", "2", "--jobs", "1"]
    assert run(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.match(
        r"Calibrated with 192 labels, the panel is right on 100% of other items, the majority on "
        r"[67]\d% \(gain by item: \+[23]\d\.\d \[",
        text,
    )
    assert "Families" not in text
    assert run([*command, "-v"]) == 0
    whole_text = " ".join(capsys.readouterr().out.split())
    assert whole_text.startswith(text[:80])
    assert "Families, each with" in whole_text
    assert "Share of rows answered" in whole_text


def test_from_labels_to_calibrated_verdicts_that_verify(tmp_path, prompts, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = ("eval", prompts, "--panel", "baseline", "--criteria", "none", "--yes", "-q")
    answer(capsys, *base, "--run-id", "first")
    actual_answer = answer(
        capsys, "calibrate", "first", "--splits", "2", "--jobs", "1", "--out", "cal.json",
        "--families", "mean-isotonic,logistic", "--paths", "information-first",
    )  # fmt: skip
    assert actual_answer["n"] == 60
    assert set(actual_answer["selected"]) == {"path", "k", "family", "judges"}
    for block in ("test", "majority"):
        assert {"accuracy", "balanced_accuracy", "mse", "nll", "ece", "se"} <= set(
            actual_answer[block]
        )
    assert set(actual_answer["diagnostics"]) == {"h_k", "cell_pressure", "unseen", "v"}

    answer(capsys, *base, "--run-id", "second", "--calibrator", "cal.json")
    verdicts = RunFolder.open("second").verdicts()
    judged_verdicts = [v for v in verdicts if v.ranking is not None]
    assert judged_verdicts
    assert all(v.method == "calibrated" for v in judged_verdicts)
    assert all(sum(v.p.values()) == pytest.approx(1) for v in judged_verdicts)
    assert run(["verify", "second"]) == 0

    risk = ("--max-risk", "0.01", "--risk-confidence", "0.9")
    answer(capsys, *base, "--run-id", "third", "--calibrator", "cal.json", *risk)
    third = RunFolder.open("third").verdicts()
    assert all(v.winner is None for v in third)
    assert any("for review" in v.abstained for v in third)
    assert any("0.01 with 90% confidence" in v.abstained for v in third)
    assert run(["verify", "third"]) == 0


def decide(folder, page, tmp_path, capsys):
    """A person's file: from the page on disk, choosing the response with a list."""
    assert run(["review", str(folder), "--all", "--export-static", str(page)]) == 0
    packed_text = re.search(r'id="held">([^<]*)<', page.read_text())[1]
    record = json.loads(zlib.decompress(base64.b64decode(packed_text)))
    decisions = [
        {"item": item["item"], "choice": side}
        for item in record["items"]
        for side, answer in item["responses"].items()
        if "\n- " in answer
    ]
    file = tmp_path / "ann.json"
    file.write_text(json.dumps({**record, "annotator": "Ann", "decisions": decisions}))
    assert run(["review", str(folder), "--import", str(file)]) == 0


def test_what_people_decide_calibrates_a_run_and_its_doubts_come_back_to_them_first(
    tmp_path, prompts, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    items = [json.loads(line) for line in prompts.read_text().splitlines()]
    prompts.write_text("".join(json.dumps({**i, "label": None}) + "\n" for i in items))
    base = ("eval", prompts, "--panel", "baseline", "--criteria", "none", "--yes", "-q")
    answer(capsys, *base, "--run-id", "first")
    quick = ("--splits", "2", "--jobs", "1", "--families", "logistic", "--paths", "random")
    refused_answer = answer(capsys, "calibrate", "first", *quick, code=2)
    assert "at least 30" in refused_answer["error"]["message"]
    decide(Path("runs/first"), tmp_path / "page.html", tmp_path, capsys)
    actual_answer = answer(capsys, "calibrate", "first", *quick, "--out", "cal.json")
    assert actual_answer["n"] == 60
    board = answer(capsys, "report", "first")["leaderboard"]
    assert all(row["corrected"]["n"] == 60 for row in board)

    again = answer(capsys, "aggregate", "first", "--method", "majority", "--calibrator", "cal.json")
    assert again["methods"]["calibrated"]["accuracy"] > 0.9
    answer(capsys, *base, "--run-id", "second", "--calibrator", "cal.json", "--max-risk", "0.05")
    data = RunData.load(RunFolder.open("second"))
    doubts = {v.item_id for v in data.verdicts if v.abstained and "for review" in v.abstained}
    first = [task.item.item_id for task in review_tasks(data, "all")][: len(doubts)]
    assert doubts
    assert set(first) == doubts


def test_a_calibrator_of_another_panel_is_refused_before_the_first_call(
    tmp_path, prompts, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = [
        VoteRow(f"q{i}", judge, (i + k) % 2, i % 2)
        for i in range(60)
        for k, judge in enumerate(("ann", "bob", "cleo"))
    ]
    write_votes(tmp_path / "votes.jsonl", rows)
    quick = ("--splits", "2", "--jobs", "1", "--families", "logistic", "--out", "cal.json")
    answer(capsys, "calibrate", "votes.jsonl", *quick)
    refused_answer = answer(
        capsys, "eval", prompts, "--panel", "baseline", "--criteria", "none", "--yes",
        "--calibrator", "cal.json", "--run-id", "x", code=2,
    )  # fmt: skip
    assert "not in this panel" in refused_answer["error"]["message"]
    assert not (tmp_path / "runs" / "x").exists()


def test_aggregate_puts_a_calibrator_beside_the_methods(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        VoteRow(f"q{i}", judge, (i + (i % k == 0)) % 2, i % 2)
        for i in range(80)
        for k, judge in ((9, "ann"), (5, "bob"), (3, "cleo"))
    ]
    write_votes(tmp_path / "votes.jsonl", rows)
    answer(capsys, "calibrate", "votes.jsonl", "--splits", "2", "--jobs", "1", "--out", "cal.json")
    actual_answer = answer(
        capsys, "aggregate", "votes.jsonl", "--method", "majority", "--calibrator", "cal.json",
        "--out", "out.jsonl",
    )  # fmt: skip
    assert actual_answer["methods"]["calibrated"]["answered"] == 80
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sum(line["method"] == "calibrated" for line in lines) == 80
    wrong = answer(capsys, "aggregate", "votes.jsonl", "--max-risk", "0.1", code=2)
    assert "--calibrator" in wrong["error"]["message"]


def split_votes(path, n=150, n_labelled=90):
    """Three judges, one of them bad; labels on the first items."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        truth = int(rng.random() < 0.5)
        for judge, right in (("ann", 0.9), ("bob", 0.7), ("cleo", 0.5)):
            vote = truth if rng.random() < right else 1 - truth
            rows.append(VoteRow(f"q{i}", judge, vote, truth if i < n_labelled else None))
    write_votes(path, rows)


def test_a_plan_names_items_without_a_label_and_says_how_they_were_chosen(tmp_path, capsys):
    split_votes(tmp_path / "v.jsonl")
    plan = answer(capsys, "calibrate", tmp_path / "v.jsonl", "--plan", "12")["plan"]
    assert len(set(plan["items"])) == 12
    assert all(int(item[1:]) >= 90 for item in plan["items"])
    assert plan["labelled"] == 90
    assert plan["imagined"] is False
    least_saving = plan["curve"][0]["saved_low"]
    assert plan["way"] == ("active" if least_saving > 0 else "random")
    rate = plan["win_rate"]
    assert rate["low"] < rate["estimate"] < rate["high"]
    assert rate["high"] - rate["low"] < rate["labels_only"][1] - rate["labels_only"][0]


def test_a_plan_without_labels_draws_at_random_and_imagines_its_curve(tmp_path, capsys):
    split_votes(tmp_path / "v.jsonl", n_labelled=0)
    plan = answer(capsys, "calibrate", tmp_path / "v.jsonl", "--plan", "5")["plan"]
    assert (plan["way"], plan["imagined"], plan["labelled"]) == ("random", True, 0)
    assert "too few labels to estimate" in plan["why"]
    assert plan["curve"][0]["mse_random"] > 0


def test_a_plan_for_what_is_all_labelled_is_refused(tmp_path, capsys):
    split_votes(tmp_path / "v.jsonl", n_labelled=150)
    actual_answer = answer(capsys, "calibrate", tmp_path / "v.jsonl", "--plan", "5", code=2)
    assert "every item has a label" in actual_answer["error"]["message"]


def test_few_labels_correct_the_win_rate_in_a_narrower_interval(tmp_path, capsys):
    split_votes(tmp_path / "v.jsonl", n=400, n_labelled=100)
    actual_answer = answer(capsys, "calibrate", tmp_path / "v.jsonl", "--splits", "2", "--jobs", "1",
                   "--families", "logistic", "--paths", "random")  # fmt: skip
    rate = actual_answer["win_rate"]
    assert rate["high"] - rate["low"] < 0.95 * (rate["labels_only"][1] - rate["labels_only"][0])


def test_one_map_or_an_average_and_a_guard_only_for_one(tmp_path, capsys):
    split_votes(tmp_path / "v.jsonl")
    base = ("calibrate", tmp_path / "v.jsonl", "--splits", "2", "--jobs", "1")
    pool = answer(capsys, *base)
    assert [m["family"] for m in pool["members"]] == ["expert-pool"]
    average = answer(capsys, *base, "--select", "average")
    assert average["combine"] == "average"
    assert len(average["members"]) > 5
    assert sum(m["weight"] for m in average["members"]) == pytest.approx(1, abs=1e-3)
    first_answer = answer(capsys, *base, "--guard", "1")
    assert (first_answer["combine"], len(first_answer["members"])) == ("one", 1)
    assert first_answer["members"][0]["judges"] == first_answer["selected"]["judges"]
    refused_answer = answer(capsys, *base, "--select", "average", "--guard", "1", code=2)
    assert "--select one" in refused_answer["error"]["message"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--families", "guess"), "--families"),
        (("--paths", "best"), "--paths"),
        (("--k", "a"), "--k"),
        (("--loss", "mae"), "--loss"),
        (("--protocol", "none"), "--protocol"),
        (("--select", "some"), "--select"),
    ],
)
def test_options_that_are_none_are_named(tmp_path, capsys, words, says):
    write_votes(tmp_path / "v.jsonl", [VoteRow("q", "a", 1, 1)])
    actual_answer = answer(capsys, "calibrate", tmp_path / "v.jsonl", *words, code=2)
    assert says in actual_answer["error"]["message"]


def grouped_votes(path, groups, n=120):
    rng = np.random.default_rng(2)
    lines = []
    for i in range(n):
        truth = int(rng.random() < 0.6)
        for judge in ("a", "b", "c"):
            vote = truth if rng.random() < 0.8 else 1 - truth
            line = {"item": f"q{i}", "judge": judge, "vote": vote, "label": truth}
            lines.append(json.dumps({**line, "group": groups(i)}))
    path.write_text("\n".join(lines))


SMALL = ("--splits", "3", "--jobs", "1", "--families", "logistic", "--paths", "random")


@pytest.mark.parametrize(
    ("labels", "options", "used", "why"),
    [
        (40, (), 40, ()),
        (42, (), 40, ("--labels 42", "40 of 120", "copies")),
        (42, ("--sources", "item"), 42, ()),
        (42, ("--folds", "3"), 40, ("--labels 42", "40 of 120", "copies")),
        (500, (), 95, ("--labels 500", "95 of 120", "a fifth")),
    ],
)
def test_labels_are_counted_in_items_and_another_number_is_said(
    tmp_path, capsys, labels, options, used, why
):
    grouped_votes(tmp_path / "v.jsonl", lambda i: f"s{i // 5}")
    actual_answer = answer(
        capsys, "calibrate", tmp_path / "v.jsonl", *SMALL, "--labels", labels, *options
    )
    assert actual_answer["n_train_items"] == actual_answer["n_train"] == used
    assert len(actual_answer["notes"]) == bool(why)
    assert all(words in note for note in actual_answer["notes"] for words in why)


def test_groups_that_are_categories_are_refused_with_two_ways_out(tmp_path, capsys):
    grouped_votes(tmp_path / "v.jsonl", lambda _: "gpt")
    wrong = answer(capsys, "calibrate", tmp_path / "v.jsonl", *SMALL, code=2)["error"]
    assert "all 120 labelled items share group 'gpt'" in wrong["message"]
    assert "copies of one source" in wrong["message"]
    assert "subset" in wrong["message"]
    assert "--sources item" in wrong["message"]
    actual_answer = answer(capsys, "calibrate", tmp_path / "v.jsonl", *SMALL, "--sources", "item")
    assert actual_answer["n_sources"] == 120


def test_a_risk_with_confidence_is_printed_deployed_and_refused_to_older_files(tmp_path, capsys):
    votes, file = tmp_path / "v.jsonl", tmp_path / "cal.json"
    grouped_votes(votes, lambda i: f"s{i}", n=400)
    actual_answer = answer(capsys, "calibrate", votes, *SMALL, "--out", file)
    curve = {(step["labels"], step["max_risk"]): step for step in actual_answer["risk"]["curve"]}
    assert actual_answer["risk"]["fewest_labels"]["0.1"] == 74
    assert curve[50, 0.1]["promised"] == 0
    assert curve[50, 0.2]["with_confidence"] <= curve[2000, 0.2]["with_confidence"]
    share = next(
        line["answered"] for line in actual_answer["answered"]
        if (line["max_risk"], line["confidence"]) == (0.2, 0.9)
    )  # fmt: skip
    apply = ("aggregate", votes, "--method", "majority", "--calibrator", file)
    risk = ("--max-risk", "0.2", "--risk-confidence", "0.9")
    rows = answer(capsys, *apply, *risk)["methods"]["calibrated"]
    assert rows["answered"] == pytest.approx(share * 400)
    no_answer = answer(capsys, *apply, "--max-risk", "0.01", "--risk-confidence", "0.9")
    notes = " ".join(no_answer["methods"]["calibrated"]["notes"])
    assert "at least 230 are needed" in notes
    assert "767 labelled items" in notes

    older = json.loads(file.read_text())
    del older["control"]["right"]
    file.write_text(json.dumps(older))
    assert answer(capsys, *apply, "--max-risk", "0.2")["methods"]["calibrated"]["answered"] > 0
    wrong = answer(capsys, *apply, *risk, code=2)["error"]["message"]
    assert "earlier version" in wrong
    wrong = answer(capsys, *apply, "--risk-confidence", "0.9", code=2)["error"]["message"]
    assert "needs --max-risk" in wrong
