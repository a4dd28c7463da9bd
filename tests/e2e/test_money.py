"""``--max-cost`` is never overshot, and ``--dry-run`` says what a run will cost without a call."""

from __future__ import annotations

import json
import math
import re

import pytest

from clash.report.formats import money
from e2e.lab import PRICE, Lab
from wire import faults, vendors
from wire.answers import deterministic, labels, schema_of

CAPPED = {"max_tokens": 120}
WORDS = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")


def vendor_bill(lab: Lab, *, loss: int | None = None) -> float:
    """What the vendor's bill would say, in dollars: every answer that was made, lost or not.

    Args:
        lab: whose server it is.
        lost: tokens that each answer is billed at whose asker was killed before it came.
    """
    total = 0.0
    for call in lab.server.calls:
        request = vendors.read(call.vendor, call.path, call.body)
        tokens_out = len(call.text or "") // 4 + 1
        if not call.paid:
            if call.status is not None or loss is None:
                continue
            tokens_out = loss
        total += (
            (len(request.prompt) // 4 + 1) * PRICE["input"] + tokens_out * PRICE["output"]
        ) / 1e6
    return total


def lay(lab: Lab, n: int = 40, judges: str = "abc") -> None:
    lab.prompts(n)
    lab.panel(*({"model": f"compatible/{j}", "price": PRICE, "options": CAPPED} for j in judges))


@pytest.fixture(scope="module")
def whole_cost(server, tmp_path_factory) -> float:
    """What the run costs that the tests below cannot afford."""
    lab = Lab(tmp_path_factory.mktemp("whole"), server, server.environ("compatible"))
    server.clear()
    lay(lab)
    run = lab.judged(*WORDS)
    assert run.manifest["cost_usd"] == pytest.approx(vendor_bill(lab))
    assert run.manifest["cost_is_lower_bound"] is False
    return vendor_bill(lab)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_with_64_calls_in_flight_the_cap_holds_and_the_rest_can_be_bought_later(
    lab, whole_cost, share
):
    lay(lab)
    lab.server.latency_s = 0.02
    cap = round(whole_cost * share, 6)
    result = lab.here("eval", *WORDS, "--run-id", "run", "--max-cost", cap, "--concurrency", 64)
    assert result.code == 3, result.err
    assert 0 < vendor_bill(lab) <= cap
    run = lab.folder()
    assert run.manifest["cost_usd"] == pytest.approx(vendor_bill(lab))
    assert run.manifest["status"] == "partial"
    assert f"the budget of ${cap} does not pay for another call" in result.err
    assert lab.here("verify", "runs/run").code == 0
    # The cap was put to use: not even the dearest call would have fitted into what is left.
    worst = max(held["usd"] for held in run.lines("reservations"))
    assert vendor_bill(lab) + worst > cap

    again = lab.here("resume", "runs/run")
    assert again.code == 3
    assert vendor_bill(lab) <= cap
    more = lab.here("resume", "runs/run", "--max-cost", 10)
    assert more.code == 0
    run = lab.folder()
    assert run.manifest["status"] == "complete"
    assert vendor_bill(lab) == pytest.approx(whole_cost)
    assert run.manifest["cost_usd"] == pytest.approx(whole_cost)
    # The progress line tells the money of the run, not of its last process.
    assert f"${whole_cost:.4f}" in more.err
    # A later process has the cap that was given last.
    later = lab.here("resume", "runs/run")
    assert later.code == 0, later.err
    assert "more than --max-cost" not in later.err


def test_the_cap_holds_over_kills_and_resumes(lab, whole_cost):
    lay(lab)
    lab.server.latency_s = 0.05
    cap = round(whole_cost / 2, 6)
    words = ("eval", *WORDS, "--run-id", "run", "--max-cost", cap, "--yes")
    for moment in (12, 24, 36):
        process = lab.start(*words)
        calls = lab.server.calls
        lab.wait_for(lambda calls=calls, moment=moment: len(calls) >= moment, process)
        process.kill()
        process.communicate()
        words = ("resume", "runs/run")
    lab.server.latency_s = 0.0
    run = lab.resumed(code=3)
    # What was in flight at a kill may have been billed, and nobody can know.
    bill = vendor_bill(lab, loss=CAPPED["max_tokens"])
    assert run.manifest["cost_usd"] <= vendor_bill(lab) + 1e-9
    assert run.manifest["cost_usd"] < bill <= cap
    assert run.manifest["cost_is_lower_bound"] is True
    assert lab.here("verify", "runs/run").code == 0


def test_the_cap_holds_where_answers_are_billed_and_lost(lab, whole_cost):
    lay(lab)
    lab.server.misbehave(faults.reset_mid_body(), every=4)
    lab.server.misbehave(faults.truncated(), every=5)
    cap = round(whole_cost / 3, 6)
    lab.write("clash.yaml", {"limits": {"max_cost": cap}})
    run = lab.judged(*WORDS, code=3)
    assert 0 < vendor_bill(lab) <= cap
    lost_calls = [c for c in run.lines("calls") if c["error_class"] == "connection"]
    assert lost_calls
    assert all(call["cost_usd"] is None and call["cost_bound_usd"] > 0 for call in lost_calls)
    assert run.manifest["cost_is_lower_bound"] is True


def test_a_cap_that_cannot_hold_is_refused_before_anything_is_asked(lab):
    lab.prompts(2)
    lab.panel("compatible/a", {"model": "compatible/b", "price": PRICE})
    refused_result = lab.here("eval", *WORDS, "--run-id", "run", "--max-cost", 1)
    assert refused_result.code == 2
    assert "the price of compatible/a is unknown" in refused_result.err
    assert "--allow-unknown-price" in refused_result.err
    assert not (lab.path / "runs").exists()
    assert lab.server.count() == 0

    run = lab.judged(*WORDS, "--max-cost", 1, "--allow-unknown-price")
    assert lab.server.count() == 4
    assert run.manifest["cost_is_lower_bound"] is True
    assert [a["cost_usd"] for a in run.attempts("a")] == [None, None]


def test_nor_can_a_cap_be_put_on_a_run_that_is_resumed(lab):
    lab.prompts(2)
    lab.panel("compatible/a")
    lab.server.misbehave(faults.server_error(), times=math.inf)
    lab.write("clash.yaml", {"limits": {"max_attempts": 1}})
    sealed_manifest = lab.judged(*WORDS, code=3).manifest
    refused_result = lab.here("resume", "runs/run", "--max-cost", 1)
    assert refused_result.code == 2
    assert "the price of compatible/a is unknown" in refused_result.err
    assert lab.folder().manifest == sealed_manifest  # it was not even touched


def test_an_unknown_price_is_said_loudly(lab):
    lab.prompts(1)
    lab.panel("compatible/a")
    result = lab.here("eval", *WORDS)
    assert "price unknown: compatible/a; costs are lower bounds" in result.err


# -- dry run ----------------------------------------------------------------------------------------


def test_a_dry_run_tells_answers_of_turns_from_responses(lab):
    turns = [{"role": "user", "content": text} for text in ("Name a fruit.", "Another.")]
    items = [{"id": "one", "prompt": "Name a town."}, {"id": "two", "messages": turns}]
    (lab.path / "talk.jsonl").write_text("\n".join(map(json.dumps, items)))
    models = ("--models", "openai/gpt-5.2-pro,openai/gpt-5.2")
    result = lab.here("eval", "talk.jsonl", "--panel", "baseline", *models, "--dry-run")
    assert "6 answers for 4 responses" in result.out


def test_a_dry_run_makes_no_call_and_no_folder_and_needs_no_key(lab):
    lab.prompts(3, candidates=())
    lab.panel("openai/gpt-5.2", {"model": "compatible/b", "price": PRICE})
    result = lab.here(
        *("eval", "prompts.yaml", "--panel", "panel.yaml", "--models", "openai/gpt-5.2-pro"),
        *("--models", "openai/gpt-5.2,anthropic/claude-opus-4-5", "--dry-run"),
        OPENAI_API_KEY="",
        ANTHROPIC_API_KEY="",
    )
    assert result.code == 0, result.err
    assert lab.server.count() == 0
    assert not (lab.path / "runs").exists()
    for word in ("Nothing was sent", "6 answers, 3 criteria, 12 judgments"):
        assert word in result.out
    assert "OPENAI_API_KEY -> http://127.0.0.1" in result.out
    assert "(not set)\n  openai/gpt-5.2 " in result.out
    assert "fix: set OPENAI_API_KEY, ANTHROPIC_API_KEY" in result.out


def test_what_a_dry_run_foretells_comes_true(lab):
    lab.prompts(3, candidates=("ready",))
    lab.panel(
        *({"model": f"compatible/{j}", "price": PRICE, "options": CAPPED} for j in "ab"),
        criteria={"model": "compatible/writer", "price": PRICE},
    )
    lab.write(
        "clash.yaml",
        {
            "panel": "panel.yaml",
            "candidates": [{"model": "compatible/ada", "price": PRICE}],
            "blinding": {"both_orders": True},
            "repeat": 2,
        },
    )
    report = lab.here("eval", "prompts.yaml", "--dry-run", "--json").json
    run = lab.judged("prompts.yaml")
    purposes = {"generate": 6, "criteria": 6, "judge": (2 + 1) * 6 * 2}
    assert {
        purpose: sum(line["calls"] for line in report["plan"] if line["purpose"] == purpose)
        for purpose in purposes
    } == purposes
    assert report["calls"] == sum(purposes.values()) == len(run.lines("calls"))
    assert report["items"] == 6
    assert report["unknown_price"] == []
    assert vendor_bill(lab) <= report["worst_usd"]
    assert report["expected_usd"] <= report["worst_usd"]
    lines = report["plan"]
    assert sum(line["expected_usd"] for line in lines) == pytest.approx(report["expected_usd"])


# -- usage that cannot be true ----------------------------------------------------------------------

HUGE = 10**30
LIES = {
    "openai": ("openai/liar", {}, {"prompt_tokens": HUGE, "completion_tokens": 5}),
    "responses": (
        "openai/liar",
        {"api": "responses"},
        {"input_tokens": 5, "output_tokens": HUGE},
    ),
    "anthropic": ("anthropic/liar", {}, {"input_tokens": 1e30, "output_tokens": 5}),
    "google": (
        "google/liar",
        {},
        {"promptTokenCount": 2_000_000_000, "candidatesTokenCount": 5},
    ),
    "openrouter": (
        "openrouter/vendor/liar",
        {},
        {"prompt_tokens": 5, "completion_tokens": 5, "cost": 1000.0},
    ),
    "compatible": ("compatible/liar", {}, {"prompt_tokens": -5, "completion_tokens": 10**400}),
}


@pytest.mark.parametrize("wire", LIES)
def test_a_server_that_lies_about_usage_cannot_spend_the_budget(lab, wire):
    model, options, reports = LIES[wire]
    lab.prompts(3)
    lab.panel({"model": model, "price": PRICE, "options": {**CAPPED, **options}})
    lab.server.conduct(model.split("/", 1)[1], reports=reports)
    result = lab.here("eval", *WORDS, "--run-id", "run", "--max-cost", 0.5)
    assert result.code == 0, result.err
    run = lab.folder()
    calls = run.lines("calls")
    assert [call["cost_usd"] for call in calls] == [None] * 3
    assert all(0 < call["cost_bound_usd"] < 0.01 for call in calls)
    assert all(call["usage_doubt"] for call in calls)
    assert all((call["tokens"]["input"] or 0) < 5000 for call in calls)
    assert run.manifest["cost_usd"] == 0
    assert run.manifest["cost_is_lower_bound"] is True
    assert result.err.count(f"warning: {model}: 3 calls report usage that is impossible") == 1
    (doubt,) = run.report["usage_doubts"]
    assert (doubt["model"], doubt["calls"]) == (model, 3)
    assert doubt["bound_usd"] == pytest.approx(sum(call["cost_bound_usd"] for call in calls))
    assert "usage that is impossible" in (run.path / "report.md").read_text(encoding="utf-8")
    assert lab.here("verify", "runs/run").code == 0


def test_the_bound_of_what_is_not_believed_counts_against_the_cap(lab):
    lay(lab, n=20, judges="a")
    lab.server.conduct("a", reports={"prompt_tokens": HUGE, "completion_tokens": 1})
    try:
        run = lab.judged(*WORDS, "--max-cost", 0.02, "--concurrency", 1, code=3)
    finally:
        lab.server.conduct("a")
    bounds = [call["cost_bound_usd"] for call in run.lines("calls")]
    assert 1 < len(bounds) < 20
    assert 0.02 - max(bounds) < sum(bounds) <= 0.02


def test_a_cap_that_was_passed_is_an_error_that_says_by_how_much(lab):
    """Each call is charged at three times its list price: believed, since lists grow old."""
    lab.prompts(3)
    lab.panel({"model": "openrouter/vendor/dear", "price": PRICE, "options": CAPPED})
    lab.server.conduct("vendor/dear", cost=0.012)
    result = lab.here("eval", *WORDS, "--run-id", "run", "--max-cost", 0.03, "--concurrency", 3)
    assert result.code == 3, result.err
    assert "error: the run spent $0.0360, $0.0060 more than --max-cost allows" in result.err
    report = lab.here("resume", "runs/run", "--json")
    assert report.code == 3
    assert report.json["over_usd"] == pytest.approx(0.006)
    assert lab.here("resume", "runs/run", "--max-cost", 1).code == 0


# -- forecast and fact ------------------------------------------------------------------------------


def test_every_run_ends_with_its_cost_beside_what_was_expected(lab):
    lay(lab, n=3)
    result = lab.here("eval", *WORDS, "--run-id", "run", "--yes")
    run = lab.folder()
    forecast, spending = run.manifest["forecast"], run.report["spending"]
    assert forecast["calls"] == 9
    assert 0 < spending["cost_usd"] <= spending["worst_usd"] == forecast["worst_usd"]
    assert spending["expected_usd"] == forecast["expected_usd"]
    cost, expected_usd = money(spending["cost_usd"]), money(forecast["expected_usd"])
    assert f"{cost} (expected {expected_usd}) · " in result.out
    full_output = lab.here("report", "runs/run", "-v").out
    assert (
        f"Cost {cost} (expected {expected_usd}, at most {money(forecast['worst_usd'])})"
        in full_output
    )
    assert spending["warning"] is None


def test_a_cap_stands_in_the_price_and_a_cap_below_the_price_is_warned_of(lab):
    lay(lab, n=3)
    forecast = lab.here("eval", *WORDS, "--dry-run", "--json").json
    expected_usd, worst = forecast["expected_usd"], forecast["worst_usd"]
    for cap, warns in ((expected_usd / 2, True), ((expected_usd + worst) / 2, False)):
        words = ("eval", *WORDS, "--max-cost", cap, "--dry-run")
        result = lab.here(*words)
        assert f"at most {money(cap)} (the cap; {money(worst)} without)" in result.out
        assert ("will probably stop before the end" in result.err) == warns
        assert lab.here(*words, "--json").json["cap_usd"] == cap
    assert lab.server.count() == 0


def test_a_run_that_costs_far_more_than_expected_says_why(lab):
    """Long answers, some of them cut off and bought again, and some calls that are repeated."""
    lab.prompts(6)
    lab.panel({"model": "compatible/a", "price": {"input": 0, "output": 10.0}})
    lab.server.conduct("a", answer=lambda request: " " * 8000 + deterministic(request))
    lab.server.misbehave(faults.server_error(), times=2)
    lab.server.misbehave(faults.truncated(), times=3)
    try:
        result = lab.here("eval", *WORDS, "--run-id", "run", "--yes")
    finally:
        lab.server.conduct("a")
    spending = lab.folder().report["spending"]
    assert spending["cost_usd"] > 1.5 * spending["expected_usd"]
    assert f"warning: {spending['warning']}" in result.err
    # A second purchase may be cut off in its turn, and is then not counted with the answers.
    assert re.search(r"[123] truncated answers?, asked for again", spending["warning"])
    assert "2 retries" in spending["warning"]


def test_a_folder_of_the_previous_version_has_no_forecast_and_is_reported(lab):
    lay(lab, n=2)
    run = lab.judged(*WORDS)
    manifest = run.manifest
    del manifest["forecast"]
    (run.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    result = lab.here("report", "runs/run")
    assert result.code == 0, result.err
    assert "expected $" not in result.out


FIVE = {"mode": "fixed", "items": [{"name": name, "weight": 1} for name in "vwxyz"]}
SIXTY = tuple(f"model-{n:02}" for n in range(60))


def thorough(request) -> str:
    """A judge that gives every score of 3 its reason, on one line."""
    names = labels(schema_of(request))
    cell = {"score": 3, "reason": "Says nothing of the empty list or of negative numbers"}
    rows = {name: {f"C{n}": cell for n in range(1, 6)} for name in names}
    return json.dumps({"scores": rows, "ranking": [[name] for name in names]})


def many(lab: Lab, **options: int) -> None:
    """Two prompts with 60 responses, judged by five criteria; every score has its reason."""
    lab.prompts(2, candidates=SIXTY)
    lab.panel({"model": "compatible/a", "price": PRICE, "options": options})
    lab.write("clash.yaml", {"criteria": FIVE})
    lab.server.conduct("a", answer=thorough)


def test_with_60_responses_and_five_criteria_the_first_answer_is_whole(lab):
    many(lab)
    try:
        report = lab.here(
            "eval", "prompts.yaml", "--panel", "panel.yaml", "--dry-run", "--json"
        ).json
        run = lab.judged("prompts.yaml", "--panel", "panel.yaml")
    finally:
        lab.server.conduct("a")
    assert [call["outcome"] for call in run.lines("calls")] == ["ok", "ok"]
    assert lab.server.paid_twice() == []
    cost_usd = run.manifest["cost_usd"]
    assert cost_usd / 1.5 < report["expected_usd"] < cost_usd * 1.5
    assert cost_usd <= report["worst_usd"]


def test_a_cap_that_cannot_suffice_is_said_before_and_priced(lab):
    many(lab, max_tokens=2000)
    try:
        words = ("eval", "prompts.yaml", "--panel", "panel.yaml")
        report = lab.here(*words, "--dry-run", "--json").json
        result = lab.here(*words, "--run-id", "run", "--yes")
    finally:
        lab.server.conduct("a")
    assert "warning: a: max_tokens is too low for 2 of 2 judgments" in result.err
    assert "fix: options: {max_tokens: 13820}" in result.err
    (line,) = (line for line in report["plan"] if line["who"] == "a")
    assert (line["calls"], line["cut"], line["needs"]) == (2, 2, 13820)
    calls = lab.folder().lines("calls")
    assert [call["outcome"] for call in calls].count("truncated") >= 2
    assert lab.folder().manifest["cost_usd"] <= report["worst_usd"]


@pytest.mark.parametrize(
    "extra",
    [
        {"max_tokens": 100_000},
        {"n": 50},
        {"generationConfig": {"candidateCount": 8}},
        {"tools": [{"type": "web_search"}]},
        {"plugins": [{"id": "web"}]},
        {"models": ["vendor/dear"]},
        {"service_tier": "priority"},
    ],
    ids=str,
)
def test_no_field_of_ones_own_makes_an_answer_dearer_than_was_reserved(lab, extra):
    lab.prompts(1)
    lab.panel({"model": "compatible/j", "price": PRICE, "options": {"extra": extra}})
    refusal = lab.here("eval", "prompts.yaml", "--panel", "panel.yaml", "--yes", "--max-cost", "1")
    assert refusal.code == 2, refusal.err
    assert "options.extra" in refusal.err
    assert not lab.server.calls
