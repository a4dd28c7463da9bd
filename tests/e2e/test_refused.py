"""A judge, a candidate, a criteria model that does not deliver: what stands in the folder, and then."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from e2e.lab import PRICE
from wire import faults

ALWAYS = math.inf


def judges(*names):
    return [{"model": f"compatible/{name}", "price": PRICE} for name in names]


# -- one judge with a wrong key ---------------------------------------------------------------------


def test_a_wrong_key_stops_its_judge_alone_and_the_right_one_completes_the_run(lab):
    lab.prompts(3)
    wrong = {"model": "openrouter/vendor/c", "api_key_env": "MINE", "concurrency": 1}
    lab.panel(*judges("a", "b"), {**wrong, "id": "c"})
    words = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
    run = lab.judged(*words, code=4, MINE="sk-or-v1-wrong0wrong0wrong0")

    assert all(j["ranking"] for j in run.judgments("a") + run.judgments("b"))
    records = run.judgments("c")
    assert [j["ranking"] for j in records] == [None] * 3
    assert all(j["error"].startswith("auth: the key in MINE is not accepted") for j in records)
    (refused_call,) = run.attempts("c")
    assert [j["call_id"] for j in records] == [refused_call["call_id"]] * 3
    assert lab.here("verify", "runs/run").code == 0
    # Two of three are a quorum.
    assert all(verdict["ranking"] for verdict in run.lines("verdicts"))
    assert list(run.manifest["stopped"]) == ["openrouter/vendor/c"]
    text = "".join(file.read_text(encoding="utf-8") for file in run.path.iterdir())
    assert "wrong0wrong0" not in text

    lab.server.clear()
    run = lab.resumed(MINE=lab.server.keys["openrouter"])
    assert Counter(call.model for call in lab.server.calls) == {"vendor/c": 3}
    assert all(j["ranking"] for j in run.judgments())
    assert run.manifest["stopped"] == {}
    assert run.manifest["status"] == "complete"
    assert lab.here("verify", "runs/run").code == 0


def test_below_the_quorum_there_is_no_verdict_and_the_reason_is_told(lab):
    lab.prompts(3)
    lab.server.misbehave(faults.refusal(), model="a", times=ALWAYS)
    lab.server.misbehave(faults.refusal(), model="b", nth=1)
    lab.panel(*judges("a", "b", "c"))
    run = lab.judged("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", code=3)
    counts = Counter(j["item_id"] for j in run.judgments() if j["ranking"] is None)
    for verdict in run.lines("verdicts"):
        if counts[verdict["item_id"]] == 1:
            assert verdict["ranking"] is not None
            assert not verdict["unanimous"]
        else:
            assert verdict["ranking"] is verdict["winner"] is verdict["confidence"] is None
            assert verdict["abstained"] == "below the quorum: no usable judgment by a, b"
    assert Counter(counts.values()) == {1: 2, 2: 1}
    board = {row["candidate"]: row for row in run.report["leaderboard"]}
    # The item without a verdict is in the denominator of the win rate.
    assert {row["items"] for row in board.values()} == {3}
    assert {row["judged"] for row in board.values()} == {2}
    assert sum(row["win_rate"]["estimate"] for row in board.values()) <= 2 / 3 + 1e-9


@pytest.mark.parametrize(("limit", "code"), [(0.34, 0), (0.33, 3)])
def test_more_failures_than_max_failed_make_a_run_incomplete(lab, limit, code):
    lab.prompts(1)
    lab.server.misbehave(faults.refusal(), model="a", times=ALWAYS)
    lab.panel(*judges("a", "b", "c"))
    lab.write("clash.yaml", {"limits": {"max_failed": limit}, "criteria": {"mode": "none"}})
    run = lab.judged("prompts.yaml", "--panel", "panel.yaml", code=code)
    assert run.manifest["status"] == ("complete" if code == 0 else "partial")


def test_a_run_that_no_judge_could_judge_has_failed(lab):
    lab.prompts(2)
    lab.server.misbehave(faults.not_found(), vendor="compatible", times=ALWAYS)
    lab.panel(*judges("a", "b"))
    run = lab.judged("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", code=4)
    assert run.manifest["status"] == "failed"
    assert {v["abstained"].partition(":")[0] for v in run.lines("verdicts")} == {
        "every judge failed"
    }
    assert run.report["decision"]["status"] == "none"
    assert run.report["decision"]["winner"] is None


# -- candidates -------------------------------------------------------------------------------------


def test_what_a_candidate_says_is_its_response_even_a_refusal_and_silence_is_none(lab):
    lab.prompts(5, candidates=("ready",))
    lab.panel(*judges("a"))
    lab.server.misbehave(faults.refusal("No."), model="ada")
    lab.server.misbehave(faults.truncated(), model="ada")
    lab.server.misbehave(faults.safety(), model="ada")
    lab.server.misbehave(faults.empty(), model="ada")
    lab.server.misbehave(faults.too_long(), model="ada")
    lab.write("clash.yaml", {"limits": {"concurrency": 1}, "observers": []})
    run = lab.judged(
        *("prompts.yaml", "--models", "compatible/ada", "--panel", "panel.yaml"),
        *("--criteria", "none"),
        code=3,
    )
    generated_by_item = {
        r["item_id"]: r for r in run.lines("responses") if r["source"] == "generated"
    }
    assert generated_by_item["q0"]["text"] == "No."
    assert generated_by_item["q0"]["error"] is None
    assert generated_by_item["q1"]["finish_reason"] == "length"
    assert generated_by_item["q1"]["text"]
    for item, reason in (("q2", "blocked"), ("q3", "empty"), ("q4", "too_long")):
        assert generated_by_item[item]["text"] is None
        assert reason in generated_by_item[item]["error"]
    shown_by_item = {
        page["item_id"]: set(page["labels"].values()) for page in run.lines("blinding")
    }
    assert shown_by_item == {item: {"ready", "ada"} for item in ("q0", "q1")}
    reasons = {v["item_id"]: v["abstained"] for v in run.lines("verdicts") if v["abstained"]}
    assert set(reasons) == {"q2", "q3", "q4"}
    assert all(why.startswith("fewer than two responses: ada") for why in reasons.values())
    assert run.report["coverage"]["responses_failed"] == {"ada": 3}
    board = {row["candidate"]: row for row in run.report["leaderboard"]}
    assert (board["ada"]["items"], board["ada"]["judged"]) == (5, 2)


def test_two_of_three_responses_are_judged_and_the_third_candidate_was_not_judged(lab):
    lab.prompts(1, candidates=("x", "y"))
    lab.server.misbehave(faults.safety(), model="ada", times=ALWAYS)
    lab.panel(*judges("a"))
    run = lab.judged(
        *("prompts.yaml", "--models", "compatible/ada", "--panel", "panel.yaml"),
        *("--criteria", "none", "--observers", "none"),
    )
    (verdict,) = run.lines("verdicts")
    assert {name for group in verdict["ranking"] for name in group} == {"x", "y"}
    row = next(r for r in run.report["leaderboard"] if r["candidate"] == "ada")
    assert (row["items"], row["judged"], row["losses"], row["points"]) == (1, 0, 0, None)


def test_a_candidate_with_a_wrong_key_is_completed_once_it_has_the_right_one(lab):
    lab.prompts(3, candidates=("ready",))
    lab.panel(*judges("a"))
    model = {"id": "ada", "model": "openrouter/vendor/ada", "api_key_env": "MINE", "price": PRICE}
    lab.write("clash.yaml", {"candidates": [model], "observers": [], "criteria": {"mode": "none"}})
    words = ("prompts.yaml", "--panel", "panel.yaml")
    trust_options = ("--trust-host", f"http://127.0.0.1:{lab.server.port}")
    run = lab.judged(*words, *trust_options, code=4, MINE="sk-or-v1-wrong0wrong0wrong0")
    assert run.manifest["status"] == "failed"
    assert {r["error"].partition(":")[0] for r in run.lines("responses") if r["error"]} == {"auth"}
    assert run.lines("blinding") == run.lines("judgments") == []
    run = lab.resumed(MINE=lab.server.keys["openrouter"])
    assert run.manifest["status"] == "complete"
    assert all(v["ranking"] for v in run.lines("verdicts"))
    assert lab.here("verify", "runs/run").code == 0


def test_what_was_sealed_with_two_responses_is_not_shown_a_third_later(lab):
    """Judges have seen the page: a response that comes later would make it another one."""
    lab.prompts(2, candidates=("x", "y"))
    lab.server.misbehave(faults.server_error(), model="ada", times=ALWAYS)
    lab.server.misbehave(faults.refusal(), model="a", nth=1)
    lab.panel(*judges("a", "b", "c"))
    limits = {"max_attempts": 1, "max_failed": 0}
    lab.write("clash.yaml", {"limits": limits, "criteria": {"mode": "none"}, "observers": []})
    words = ("prompts.yaml", "--panel", "panel.yaml", "--models", "compatible/ada")
    run = lab.judged(*words, code=3)
    pages = run.lines("blinding")
    lab.server.clear()
    run = lab.resumed(code=3)
    assert lab.server.count(model="ada") == 0
    assert run.lines("blinding") == pages
    assert run.report["coverage"]["responses_failed"] == {"ada": 2}
    assert lab.here("verify", "runs/run").code == 0


# -- the criteria model -----------------------------------------------------------------------------

GENERIC = ["Accuracy", "Clarity", "Helpfulness", "Completeness"]


NO_CRITERIA = [
    (faults.refusal(), "the answer was refusal"),
    (faults.safety(), "the answer was blocked"),
    (faults.truncated(), "the answer was truncated"),
    (faults.empty(), "the answer was empty"),
    (faults.text("Accuracy, mostly."), "JSON"),
    (faults.text('{"criteria": [{"name": "One", "weight": 1}]}'), "found 1"),
    (faults.too_long(), "too long"),
]


def test_a_criteria_model_that_fails_leaves_the_generic_four_and_the_reason(lab):
    n = len(NO_CRITERIA)
    lab.prompts(n + 1)
    for fault, _ in NO_CRITERIA:
        lab.server.misbehave(fault, model="writer")
    lab.panel(*judges("a"), criteria={"model": "compatible/writer", "concurrency": 1})
    run = lab.judged("prompts.yaml", "--panel", "panel.yaml")
    criteria_records = run.lines("criteria")
    assert [record["source"] for record in criteria_records] == ["fallback"] * n + ["dynamic"]
    for record, (_, reason) in zip(criteria_records, NO_CRITERIA, strict=False):
        assert [c["name"] for c in record["criteria"]] == GENERIC
        assert reason in record["error"]
    assert all(list(j["scores"]["A0"]) == GENERIC for j in run.judgments() if j["item_id"] != "q7")
    assert run.report["coverage"]["criteria"] == {"fallback": n, "dynamic": 1}


def test_a_criteria_model_that_does_not_exist_stops_no_judge(lab):
    lab.prompts(2)
    lab.server.misbehave(faults.not_found(), model="writer", times=ALWAYS)
    lab.panel(*judges("a"), criteria={"model": "compatible/writer", "concurrency": 1})
    run = lab.judged("prompts.yaml", "--panel", "panel.yaml", code=4)
    assert lab.server.count(model="writer") == 1
    assert [r["error"].partition(":")[0] for r in run.lines("criteria")] == ["not_found"] * 2
    assert all(v["ranking"] for v in run.lines("verdicts"))


# -- through the vendors' own SDKs ------------------------------------------------------------------

NATIVE = ("openai", "anthropic", "google")
FATES = {
    "waits": (faults.rate_limit("0.01"), 1, "answered"),
    "recovers": (faults.server_error(), 1, "answered"),
    "resets": (faults.reset_mid_body(), 1, "answered"),
    "poor": (faults.quota(), ALWAYS, "quota"),
    "long": (faults.too_long(), ALWAYS, "too_long"),
    "refuses": (faults.refusal(), ALWAYS, "refusal"),
    "filtered": (faults.safety(), ALWAYS, "blocked"),
    "cut": (faults.truncated(), ALWAYS, "truncated"),
    "lost": (faults.not_found(), ALWAYS, "not_found"),
}


def test_the_sdks_failures_come_to_the_same_causes(lab):
    lab.prompts(1)
    panel = []
    for vendor in NATIVE:
        for fate, (fault, times, _) in FATES.items():
            name = f"{fate}-{vendor}"
            lab.server.misbehave(fault, model=name, times=times)
            panel.append({"model": f"{vendor}/{name}", "price": PRICE})
        panel.append({"model": f"{vendor}/keyless-{vendor}", "api_key_env": "WRONG"})
    lab.panel(*panel, *judges(*"abcdefghijklmnopqrstuvwxyz"))
    run = lab.judged(
        *("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none"), code=4, WRONG="k" * 20
    )
    parts = {
        j["judge"]: (j["error"] or "answered").partition(":")[0]
        for j in run.judgments()
        if "-" in j["judge"]
    }
    expected_ends = {f"{fate}-{v}": end for fate, (_, _, end) in FATES.items() for v in NATIVE}
    # Anthropic has one word for what it will not say.
    expected_ends["filtered-anthropic"] = "refusal"
    # Google's word for a refusal is a prohibited content.
    expected_ends["refuses-google"] = "blocked"
    expected_ends |= {f"keyless-{v}": "auth" for v in NATIVE}
    assert parts == expected_ends
    assert "k" * 20 not in "".join(f.read_text(encoding="utf-8") for f in run.path.iterdir())
