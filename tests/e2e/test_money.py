"""``--max-cost`` is never overshot, and ``--dry-run`` says what a run will cost without a call."""

from __future__ import annotations

import math

import pytest

from e2e.lab import PRICE, Lab
from wire import faults, vendors

CAPPED = {"max_tokens": 120}
WORDS = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")


def billed(lab: Lab, *, lost: int | None = None) -> float:
    """What the vendor's bill would say, in dollars: every answer that was made, lost or not.

    Args:
        lab: whose server it is.
        lost: tokens that each answer is billed at whose asker was killed before it came.
    """
    total = 0.0
    for seen in lab.server.calls:
        asked = vendors.read(seen.vendor, seen.path, seen.body)
        tokens_out = len(seen.text or "") // 4 + 1
        if not seen.paid:
            if seen.status is not None or lost is None:
                continue
            tokens_out = lost
        total += (
            (len(asked.prompt) // 4 + 1) * PRICE["input"] + tokens_out * PRICE["output"]
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
    assert run.manifest["cost_usd"] == pytest.approx(billed(lab))
    assert run.manifest["cost_is_lower_bound"] is False
    return billed(lab)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_with_64_calls_in_flight_the_cap_holds_and_the_rest_can_be_bought_later(
    lab, whole_cost, share
):
    lay(lab)
    lab.server.latency_s = 0.02
    cap = round(whole_cost * share, 6)
    done = lab.here("eval", *WORDS, "--run-id", "run", "--max-cost", cap, "--concurrency", 64)
    assert done.code == 3, done.err
    assert 0 < billed(lab) <= cap
    run = lab.folder()
    assert run.manifest["cost_usd"] == pytest.approx(billed(lab))
    assert run.manifest["status"] == "partial"
    assert f"the budget of ${cap} does not pay for another call" in done.err
    assert lab.here("verify", "runs/run").code == 0
    # The cap was put to use: not even the dearest call would have fitted into what is left.
    worst = max(held["usd"] for held in run.lines("reservations"))
    assert billed(lab) + worst > cap

    again = lab.here("resume", "runs/run")
    assert again.code == 3
    assert billed(lab) <= cap
    more = lab.here("resume", "runs/run", "--max-cost", 10)
    assert more.code == 0
    run = lab.folder()
    assert run.manifest["status"] == "complete"
    assert billed(lab) == pytest.approx(whole_cost)
    assert run.manifest["cost_usd"] == pytest.approx(whole_cost)
    # The progress line tells the money of the run, not of its last process.
    assert f"${whole_cost:.4f}" in more.err


def test_the_cap_holds_over_kills_and_resumes(lab, whole_cost):
    lay(lab)
    lab.server.latency_s = 0.05
    cap = round(whole_cost / 2, 6)
    words = ("eval", *WORDS, "--run-id", "run", "--max-cost", cap, "--yes")
    for moment in (12, 24, 36):
        process = lab.start(*words)
        seen = lab.server.calls
        lab.wait_for(lambda seen=seen, moment=moment: len(seen) >= moment, process)
        process.kill()
        process.communicate()
        words = ("resume", "runs/run")
    lab.server.latency_s = 0.0
    run = lab.resumed(code=3)
    # What was in flight at a kill may have been billed, and nobody can know.
    bill = billed(lab, lost=CAPPED["max_tokens"])
    assert run.manifest["cost_usd"] <= billed(lab) + 1e-9
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
    assert 0 < billed(lab) <= cap
    lost = [c for c in run.lines("calls") if c["error_class"] == "connection"]
    assert lost
    assert all(call["cost_usd"] is None and call["cost_bound_usd"] > 0 for call in lost)
    assert run.manifest["cost_is_lower_bound"] is True


def test_a_cap_that_cannot_hold_is_refused_before_anything_is_asked(lab):
    lab.prompts(2)
    lab.panel("compatible/a", {"model": "compatible/b", "price": PRICE})
    refused = lab.here("eval", *WORDS, "--run-id", "run", "--max-cost", 1)
    assert refused.code == 2
    assert "the price of compatible/a is unknown" in refused.err
    assert "--allow-unknown-price" in refused.err
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
    sealed = lab.judged(*WORDS, code=3).manifest
    refused = lab.here("resume", "runs/run", "--max-cost", 1)
    assert refused.code == 2
    assert "the price of compatible/a is unknown" in refused.err
    assert lab.folder().manifest == sealed  # it was not even touched


def test_an_unknown_price_is_said_loudly(lab):
    lab.prompts(1)
    lab.panel("compatible/a")
    done = lab.here("eval", *WORDS)
    assert "price unknown: compatible/a; costs are lower bounds" in done.err


# -- dry run ----------------------------------------------------------------------------------------


def test_a_dry_run_makes_no_call_and_no_folder_and_needs_no_key(lab):
    lab.prompts(3, candidates=())
    lab.panel("openai/gpt-5.2", {"model": "compatible/b", "price": PRICE})
    done = lab.here(
        *("eval", "prompts.yaml", "--panel", "panel.yaml", "--models", "openai/gpt-5.2-pro"),
        *("--models", "openai/gpt-5.2,anthropic/claude-opus-4-5", "--dry-run"),
        OPENAI_API_KEY="",
        ANTHROPIC_API_KEY="",
    )
    assert done.code == 0, done.err
    assert lab.server.count() == 0
    assert not (lab.path / "runs").exists()
    for word in ("dry run: no call was made", "expected $", "at most $", "generate", "judge"):
        assert word in done.out


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
    told = lab.here("eval", "prompts.yaml", "--dry-run", "--json").json
    run = lab.judged("prompts.yaml")
    purposes = {"generate": 6, "criteria": 6, "judge": (2 + 1) * 6 * 2}
    assert {
        purpose: sum(line["calls"] for line in told["plan"] if line["purpose"] == purpose)
        for purpose in purposes
    } == purposes
    assert told["calls"] == sum(purposes.values()) == len(run.lines("calls"))
    assert told["items"] == 6
    assert told["unknown_price"] == []
    assert billed(lab) <= told["worst_usd"]
    assert told["expected_usd"] <= told["worst_usd"]
    lines = told["plan"]
    assert sum(line["expected_usd"] for line in lines) == pytest.approx(told["expected_usd"])
