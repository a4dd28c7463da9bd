"""``--batch``: half the price, the same verdicts, and rows that fail are asked again."""

from __future__ import annotations

import pytest

from clash.providers.batch_openai import OpenAIBatches
from e2e.batching import FAST, SUBMIT, VENDORS, WORDS, begun, killed, lay, said, whole
from e2e.lab import PRICE, Lab
from wire import faults, vendors
from wire.batches import LOST

# -- what comes of it -------------------------------------------------------------------------------


@pytest.fixture
def pipeline(lab: Lab) -> Lab:
    """Every stage and every vendor: two candidates, criteria, four judges, the candidates too."""
    lab.prompts(4, candidates=())
    lab.panel(
        *({"model": m, "price": PRICE} for m in ("openai/o", "anthropic/a", "google/g")),
        {"model": "openrouter/x/r", "price": PRICE},
        criteria={"model": "google/writer", "price": PRICE},
    )
    candidates = [{"model": m, "price": PRICE} for m in ("openai/ada", "anthropic/bob")]
    lab.write("clash.yaml", {"panel": "panel.yaml", "candidates": candidates, **FAST})
    return lab


def test_every_stage_comes_to_the_same_as_live_at_half_the_price(pipeline):
    lab = pipeline
    first_run = lab.judged("prompts.yaml", run="live")
    asked_live = {observed_call.model for observed_call in lab.server.calls}
    lab.server.clear()
    result = lab.here("eval", "prompts.yaml", "--run-id", "run", "--batch")
    assert result.code == 0, result.err
    run = lab.folder()
    assert run.winners == first_run.winners
    assert said(run) == said(first_run)
    assert [r["text"] for r in sorted(run.lines("responses"), key=str)] == [
        r["text"] for r in sorted(first_run.lines("responses"), key=str)
    ]
    assert {observed_call.model for observed_call in lab.server.calls} == asked_live
    assert (
        "asked live, since only openai, anthropic, google, vllm have a batch API: openrouter/x/r"
        in (result.err)
    )
    # One batch for each model and purpose; only OpenRouter is asked over the live wire.
    assert len(lab.server.batches.submitted) == 2 + 1 + 3 + 2
    whole(lab, run)

    price = {c["call_id"]: c["cost_usd"] for c in first_run.lines("calls")}
    for call in run.lines("calls"):
        batch = not call["model"].startswith("openrouter")
        assert call["outcome"] == "ok"
        if batch:
            assert call["cost_usd"] == pytest.approx(price[call["call_id"]] / 2)
            assert call["cost_source"] == "config, half for a batch"
            assert call["latency_s"] is call["ttft_s"] is None
            assert call["request"]["batch"] in {
                new_batch.id for new_batch in lab.server.batches.submitted
            }
            assert call["request"]["custom_id"].startswith(call["call_id"])
            assert call["request"]["body"]
        else:
            assert call["latency_s"] > 0
    assert "rows that are with the provider are done" in result.err
    assert run.manifest["cost_is_lower_bound"] is False

    again = lab.judged("--replay", "run", "--panel", "panel.yaml", run="again")
    assert again.winners == run.winners


def test_a_batch_is_said_to_the_provider_in_hashes_only(lab):
    lay(lab, "openai/o")
    lab.judged(*WORDS, "--batch")
    (batch,) = lab.server.batches.submitted
    assert batch.about["metadata"]["clash_run"] == "run"
    for row in batch.rows:
        assert row.key.startswith("judge-")
        assert row.key.endswith(batch.name)
        assert len(row.key) <= 64


def test_a_dry_run_prices_a_batch_at_half(lab):
    lay(lab, "openai/gpt-6-luna")
    lab.panel("openai/gpt-6-luna", {"model": "openrouter/x/r", "price": PRICE})
    at = {
        words: {
            line["who"]: line
            for line in lab.here("eval", *WORDS, "--dry-run", "--json", *words).json["plan"]
        }
        for words in ((), ("--batch",))
    }
    cost_at_once, cost_of_batch = at[()], at["--batch",]
    for name in ("expected_usd", "worst_usd"):
        assert cost_of_batch["gpt-6-luna"][name] == pytest.approx(
            cost_at_once["gpt-6-luna"][name] / 2
        )
        assert cost_of_batch["r"][name] == cost_at_once["r"][name]
    assert [line["batch"] for line in cost_of_batch.values()] == [True, False]
    output = lab.here("eval", *WORDS, "--dry-run", "--batch", "-v").out
    assert "at the price of a batch: openai/gpt-6-luna" in output
    assert lab.server.batches.requests == []


def test_a_batch_can_be_ordered_in_the_file_and_by_the_environment(lab):
    lay(lab, "openai/o", n=1, batch=True)
    lab.judged(*WORDS)
    assert len(lab.server.batches.submitted) == 1
    lab.judged(*WORDS, "--live", run="other")
    assert len(lab.server.batches.submitted) == 1
    lay(lab, "openai/o", n=1)
    lab.judged(*WORDS, run="third", CLASH_BATCH="1")
    assert len(lab.server.batches.submitted) == 2


def test_a_rerun_and_a_validation_can_go_by_batch_and_a_run_go_over_to_it(lab):
    lay(lab, "openai/o", n=2, max_attempts=1)
    lab.prompts(2, label="ada")
    lab.server.misbehave(faults.server_error(), nth=1)
    lab.judged(*WORDS, code=3, CLASH_BATCH="0")
    run = lab.resumed("--batch")
    assert [len(batch.rows) for batch in lab.server.batches.submitted] == [1]
    whole(lab, run)
    assert lab.here("rerun", "run", "--batch").code == 0
    assert lab.here("validate", *WORDS, "--batch").code == 0
    assert [len(batch.rows) for batch in lab.server.batches.submitted] == [1, 2, 2]


def test_a_live_run_has_no_file_of_batches(lab):
    lay(lab, "openai/o", n=1)
    assert not (lab.judged(*WORDS).path / "batches.jsonl").exists()


def test_what_is_asked_a_second_time_goes_into_a_second_batch(lab):
    """An answer that cannot be read is asked again; so is one that breaks off, with more room."""
    lay(lab, "anthropic/a", n=3)
    odd = iter(["no JSON at all"])
    lab.server.conduct("a", answer=lambda request: next(odd, None) or lab.server.answer(request))
    run = lab.judged(*WORDS, "--batch")
    lab.server.conduct("a")
    first, second = lab.server.batches.submitted
    assert [len(batch.rows) for batch in (first, second)] == [3, 1]
    assert "-reask-" in second.rows[0].key
    assert sum(bool(j["repairs"]) for j in run.judgments()) == 1
    whole(lab, run)


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_a_model_refuses_is_left_out_of_the_next_batch(lab, vendor):
    lay(lab, f"{vendor}/m", n=3)
    refused_field = "responseJsonSchema" if vendor == "google" else "json_schema"
    lab.server.conduct("m", refuses=(refused_field,))
    run = lab.judged(*WORDS, "--batch")
    lab.server.conduct("m")
    assert [len(batch.rows) for batch in lab.server.batches.submitted] == [3, 3]
    outcomes = sorted((c["attempt"], c["outcome"], c["error_class"]) for c in run.attempts("m"))
    assert outcomes == [(1, "error", "unsupported")] * 3 + [(2, "ok", None)] * 3
    whole(lab, run)


def test_a_batch_is_split_where_the_provider_takes_no_more(lab, monkeypatch):
    lay(lab, "openai/o", n=10)
    monkeypatch.setattr(OpenAIBatches, "most_rows", 4)
    run = lab.judged(*WORDS, "--batch")
    assert sorted(len(batch.rows) for batch in lab.server.batches.submitted) == [2, 4, 4]
    size = max(len(file) for file in lab.server.batches.files.values()) / 4
    lab.server.clear()
    monkeypatch.setattr(OpenAIBatches, "most_rows", 100)
    monkeypatch.setattr(OpenAIBatches, "most_bytes", round(3.9 * size))
    other_run = lab.judged(*WORDS, "--batch", run="other")
    assert all(len(file) <= 3.9 * size for file in lab.server.batches.files.values())
    assert len(lab.server.batches.submitted) == 4
    assert said(other_run) == said(run)


# -- rows that fail ---------------------------------------------------------------------------------


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("loss", ["expired", "missing"])
def test_a_row_without_an_answer_is_a_failure_and_is_asked_again(lab, vendor, loss):
    lay(lab, f"{vendor}/m", "compatible/b", "compatible/c")
    fates = {1: loss, 3: "500", 4: loss}
    lab.server.batches.fate = lambda n: fates.get(n, "answered")
    run = lab.judged(*WORDS, "--batch", code=3)
    # What expired was never asked; what is missing may have been, and may be billed.
    error_class, cost = {"expired": ("timeout", 0.0), "missing": ("bad_payload", None)}[loss]
    failed_ids = {
        (call["error_class"], call["cost_usd"], call["cost_bound_usd"] is None)
        for call in run.attempts("m")
        if call["outcome"] == "error"
    }
    assert failed_ids == {(error_class, cost, cost == 0.0), ("server", 0.0, True)}
    records = [j for j in run.judgments("m") if j["ranking"] is None]
    assert sorted(j["error"].partition(":")[0] for j in records) == sorted(
        [error_class, error_class, "server"]
    )
    assert lab.here("verify", "runs/run").code == 0

    lab.server.batches.fate = lambda n: "answered"
    run = lab.resumed()
    assert [len(batch.rows) for batch in lab.server.batches.submitted] == [6, 3]
    assert all(j["ranking"] is not None for j in run.judgments())
    assert run.manifest["cost_is_lower_bound"] == (loss == "missing")
    whole(lab, run)


def test_a_file_that_openai_refuses_as_a_whole_stops_the_model(lab):
    lay(lab, "openai/o", n=2)
    error = {"code": "model_not_found", "message": "The model o does not exist", "line": 1}
    lab.server.batches.refuse = {"object": "list", "data": [{**error, "param": None}]}
    run = lab.judged(*WORDS, "--batch", code=4)
    assert "not_found" in run.manifest["stopped"]["openai/o"]
    assert [c["cost_usd"] for c in run.attempts("o")] == [0.0, 0.0]
    lab.server.batches.refuse = None
    whole(lab, lab.resumed())


def test_a_model_of_the_responses_api_alone_goes_into_a_batch_of_that_api(lab):
    lay(lab, "openai/o", n=2)
    text = "This model is only supported in v1/responses and not in v1/chat/completions."
    error = {"code": "model_not_found", "message": text, "line": 1, "param": None}
    lab.server.batches.refuse = {"object": "list", "data": [error]}
    lab.server.batches.refuses_endpoint = "/v1/chat/completions"
    run = lab.judged(*WORDS, "--batch")
    endpoints = [batch.about["endpoint"] for batch in lab.server.batches.submitted]
    assert endpoints == ["/v1/chat/completions", "/v1/responses"]
    assert [c["cost_usd"] == 0.0 for c in run.attempts("o")] == [True, True, False, False]
    whole(lab, run)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_wrong_key_is_refused_before_anything_is_handed_in(lab, vendor):
    lay(lab, f"{vendor}/m", n=2)
    ending = {"openai": "/files", "anthropic": "/batches", "google": ":batchGenerateContent"}
    lab.server.batches.trouble("POST", ending[vendor], 401)
    run = lab.judged(*WORDS, "--batch", code=4)
    assert "auth" in run.manifest["stopped"][f"{vendor}/m"]
    assert lab.server.batches.submitted == []
    whole(lab, lab.resumed())


# -- the line ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("problem", [LOST, 503])
def test_an_answer_that_is_lost_is_looked_for_and_not_ordered_again(lab, vendor, problem):
    lay(lab, f"{vendor}/m")
    lab.server.batches.trouble("POST", SUBMIT[vendor], problem)
    run = lab.judged(*WORDS, "--batch")
    assert len(lab.server.batches.submitted) == 1
    whole(lab, run)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_line_that_breaks_while_a_batch_is_on_is_no_harm(lab, vendor):
    lay(lab, f"{vendor}/m")
    lab.server.batches.polls = 4
    for problem in (503, LOST, 429):
        ending = "_2" if vendor == "openai" else "1"
        lab.server.batches.trouble("GET", ending, problem)
    run = lab.judged(*WORDS, "--batch")
    assert len(lab.server.batches.submitted) == 1
    whole(lab, run)


def test_a_batch_that_cannot_be_looked_after_is_left_and_fetched_later(lab):
    lay(lab, "openai/o")
    lab.server.batches.trouble("GET", "/batch_2", 401)
    result = lab.here("eval", *WORDS, "--run-id", "run", "--batch")
    assert result.code == 4, result.err
    run = lab.folder()
    assert run.lines("calls") == []
    assert run.lines("judgments") == []
    assert run.manifest["cost_is_lower_bound"] is True
    run = lab.resumed()
    assert len(lab.server.batches.submitted) == 1
    whole(lab, run)


# -- money ------------------------------------------------------------------------------------------


def bill(lab: Lab) -> float:
    """What the vendor's bill would say: every row that was answered, at half the price."""
    total = 0.0
    for call in lab.server.calls:
        request = vendors.read(call.vendor, call.path, call.body)
        if call.paid:
            tokens_in, tokens_out = len(request.prompt) // 4 + 1, len(call.text or "") // 4 + 1
            total += (tokens_in * PRICE["input"] + tokens_out * PRICE["output"]) / 2e6
    return total


def test_a_cap_is_reserved_before_a_batch_is_handed_in(lab):
    lay(lab, "openai/o", n=20)
    whole_cost = lab.judged(*WORDS, "--batch", run="free").manifest["cost_usd"]
    assert whole_cost == pytest.approx(bill(lab))
    lab.server.clear()
    cap = round(whole_cost * 0.7, 6)
    result = lab.here("eval", *WORDS, "--run-id", "run", "--batch", "--max-cost", cap)
    assert result.code == 3, result.err
    assert "does not pay for another call" in result.err
    assert 0 < bill(lab) <= cap
    assert len(lab.server.batches.submitted) > 1  # what one left over paid for the next
    run = lab.folder()
    assert run.manifest["cost_usd"] == pytest.approx(bill(lab))
    run = lab.resumed("--max-cost", 1)
    assert bill(lab) == pytest.approx(whole_cost)
    whole(lab, run)


def test_the_cap_holds_for_a_batch_that_is_still_on(lab):
    """Its money is set aside once, not once for each process that waits for it."""
    lay(lab, "openai/o", n=10)
    worst = lab.here("eval", *WORDS, "--dry-run", "--json", "--batch").json["worst_usd"]
    lab.server.batches.hold = True
    process = begun(lab, "--max-cost", worst * 1.05)
    lab.wait_for(lambda: any(batch.polls for batch in lab.server.batches.submitted), process)
    killed(process)
    lab.server.batches.hold = False
    run = lab.resumed()
    assert [len(batch.rows) for batch in lab.server.batches.submitted] == [10]
    assert run.manifest["cost_usd"] == pytest.approx(bill(lab))
    whole(lab, run)
