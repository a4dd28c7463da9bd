"""A judge whose model stops for good has stand-ins: named, counted, priced, and never merged in silence."""

from __future__ import annotations

import json
import math

import pytest

from e2e.batching import FAST
from e2e.lab import PRICE, Lab
from wire import faults

WORDS = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--observers", "none")
STAND_IN = "gpt~compatible/spare"


def lay(lab: Lab, n: int = 6, **judge) -> None:
    lab.prompts(n)
    first = {"id": "gpt", "model": "compatible/first", "price": PRICE, "concurrency": 1, **judge}
    first.setdefault("fallbacks", [{"model": "compatible/spare", "price": PRICE}])
    lab.panel(first, {"model": "compatible/b", "price": PRICE}, quorum=2)
    lab.write("clash.yaml", {"limits": {"max_attempts": 1}})


def judges_of(run, seat: str = "gpt") -> dict[str, int]:
    """Who judged how many items in a place."""
    counts: dict[str, int] = {}
    for judgment in run.lines("judgments"):
        if (judgment["stands_in_for"] or judgment["judge"]) == seat:
            counts[judgment["judge"]] = counts.get(judgment["judge"], 0) + 1
    return counts


def test_after_a_refusal_the_fallback_judges_the_rest_under_a_name_of_its_own(lab):
    lay(lab)
    lab.server.misbehave(faults.unauthorized(), model="first", nth=3)
    result = lab.here("eval", *WORDS, "--run-id", "run")
    assert result.code == 0, result.err
    run = lab.folder()
    assert judges_of(run) == {"gpt": 2, STAND_IN: 4}
    assert f"{STAND_IN} judged 4 items in place of gpt" in result.err
    assert run.manifest["status"] == "complete"
    assert list(run.manifest["stopped"]) == ["compatible/first"]
    verdicts = run.lines("verdicts")
    assert all(v["ranking"] is not None for v in verdicts)
    coverage = run.report["coverage"]
    assert (coverage["expected"], coverage["clean"], coverage["not_run"]) == (12, 12, 0)
    judges = {judge["judge"]: judge for judge in run.report["judges"]}
    assert judges[STAND_IN]["stands_in_for"] == "gpt"
    assert judges[STAND_IN]["judged"] == 4
    # Markdown escapes what it may take for a sign of its own.
    page = (run.path / "report.md").read_text(encoding="utf-8").replace("\\", "")
    assert STAND_IN in page
    models = {c["judge"]: c["model"] for c in run.lines("calls") if c["outcome"] == "ok"}
    assert models["gpt"] == "compatible/first"
    assert models[STAND_IN] == "compatible/spare"
    assert lab.here("verify", "runs/run").code == 0
    lab.here("export", "runs/run", "--votes", "--to", "votes.jsonl")
    lines = (lab.path / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["judge"] for line in lines} == {"gpt", STAND_IN, "b"}


def test_a_model_that_is_down_is_replaced_after_some_failures_and_resume_asks_it_for_what_it_lost(
    lab,
):
    lay(lab, n=8)
    lab.server.misbehave(faults.server_error(), model="first", times=math.inf)
    result = lab.here("eval", *WORDS, "--run-id", "run")
    assert result.code == 3, result.err
    run = lab.folder()
    assert judges_of(run) == {"gpt": 2, STAND_IN: 6}
    lab.server.clear()
    assert lab.here("resume", "runs/run").code == 0
    run = lab.folder()
    assert lab.server.count(model="first") == 2
    assert lab.server.count(model="spare") == 0
    assert run.report["coverage"]["clean"] == 16
    assert lab.here("verify", "runs/run").code == 0


def test_a_judgment_that_a_resumed_run_has_from_a_stand_in_takes_the_place_of_the_failed_one(lab):
    lay(lab, n=4)
    lab.server.misbehave(faults.server_error(), model="first", times=2)
    assert lab.here("eval", *WORDS, "--run-id", "run").code == 3
    lab.server.clear()
    lab.server.misbehave(faults.unauthorized(), model="first", times=math.inf)
    assert lab.here("resume", "runs/run").code == 0
    run = lab.folder()
    coverage = run.report["coverage"]
    assert (coverage["expected"], coverage["clean"], coverage["failed"]) == (8, 8, {})
    assert lab.here("verify", "runs/run").code == 0


def test_a_replay_says_the_same_of_who_judged_what(lab):
    lay(lab)
    lab.server.misbehave(faults.unauthorized(), model="first", nth=3)
    run = lab.judged(*WORDS)
    lab.server.clear()
    again = lab.judged("--replay", "runs/run", run="again")
    assert lab.server.count() == 0
    assert judges_of(again) == judges_of(run)
    assert again.winners == run.winners


def test_where_the_last_fallback_stops_too_the_run_was_refused(lab):
    lay(lab, n=2)
    for model in ("first", "spare"):
        lab.server.misbehave(faults.unauthorized(), model=model, times=math.inf)
    result = lab.here("eval", *WORDS, "--run-id", "run")
    assert result.code == 4, result.err
    assert set(lab.folder().manifest["stopped"]) == {"compatible/first", "compatible/spare"}


def test_the_worst_case_is_that_of_the_dearest_and_a_fallback_without_a_price_is_no_cap(lab):
    words = ("eval", *WORDS, "--dry-run", "--json")
    lay(lab, fallbacks=[])
    plain = lab.here(*words).json
    dear = {"input": 10.0, "output": 100.0}
    lay(lab, fallbacks=[{"model": "compatible/spare", "price": dear}])
    report = lab.here(*words).json
    worst = {line["who"]: line["worst_usd"] for line in report["plan"]}
    assert worst["gpt"] == pytest.approx(
        10 * next(line["worst_usd"] for line in plain["plan"] if line["who"] == "gpt")
    )
    assert report["expected_usd"] == plain["expected_usd"]
    lay(lab, fallbacks=["compatible/spare"])
    refused_result = lab.here("eval", *WORDS, "--max-cost", 1)
    assert refused_result.code == 2
    assert "the price of compatible/spare is unknown" in refused_result.err


def test_each_judge_its_own_shuffle_and_its_stand_in_reads_the_same_page(lab):
    lay(lab, n=4)
    lab.write("clash.yaml", {"limits": {"max_attempts": 1}, "blinding": {"per_judge": True}})
    lab.server.misbehave(faults.unauthorized(), model="first", nth=1)
    run = lab.judged(*WORDS)
    assert judges_of(run) == {STAND_IN: 4}
    assert {page["judge"] for page in run.lines("blinding")} == {"gpt", "b"}
    assert lab.here("verify", "runs/run").code == 0


def test_under_a_stopping_rule_the_fallback_judges_at_every_look(lab):
    rule = ("--until", "ci<0.4", "--looks", 3)
    lay(lab, n=12)
    # It would answer the next question, which it is not asked: not in the next batch either.
    lab.server.misbehave(faults.unauthorized(), model="first", times=1)
    run = lab.judged(*WORDS, *rule, "--concurrency", 1)
    assert judges_of(run) == {STAND_IN: len(run.lines("verdicts"))}
    assert list(run.manifest["stopped"]) == ["compatible/first"]
    looks = [look["prompts"] for look in run.manifest["stopping"]["looks"]]
    assert looks == [4, 8, 12][: len(looks)]
    assert looks[-1] == len(run.lines("verdicts"))
    assert lab.here("verify", "runs/run").code == 0


def test_in_a_batch_the_fallback_judges_what_the_refused_model_left(lab):
    lab.prompts(4)
    first = {"id": "gpt", "model": "openai/first", "price": PRICE}
    first["fallbacks"] = [{"model": "anthropic/spare", "price": PRICE}]
    lab.panel(first, {"model": "google/b", "price": PRICE}, quorum=2)
    lab.write("clash.yaml", FAST)
    lab.server.batches.trouble("POST", "/files", 401)
    result = lab.here("eval", *WORDS, "--run-id", "run", "--batch")
    assert result.code == 0, result.err
    run = lab.folder()
    assert judges_of(run) == {"gpt~anthropic/spare": 4}
    assert all(v["ranking"] is not None for v in run.lines("verdicts"))
    assert lab.here("verify", "runs/run").code == 0
