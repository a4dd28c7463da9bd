"""A run that is killed, stopped or cancelled while its batches are on: nothing is ordered twice."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from e2e.batching import SUBMIT, VENDORS, WORDS, begun, killed, lay, whole
from wire.batches import HUNG, LOST, STALLED

if TYPE_CHECKING:
    from e2e.lab import Lab

# -- kills ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vendor", VENDORS)
def test_killed_between_handing_in_and_writing_it_down_nothing_is_ordered_twice(lab, vendor):
    lay(lab, f"{vendor}/m")
    batches = lab.server.batches
    batches.trouble("POST", SUBMIT[vendor], HUNG)
    process = begun(lab)
    lab.wait_for(lambda: bool(batches.submitted), process)
    killed(process)
    assert [line["state"] for line in lab.folder().lines("batches")] == ["submitting"]
    run = lab.resumed()
    assert len(batches.submitted) == 1
    assert [c["attempt"] for c in run.attempts("m")] == [1] * 6
    assert run.manifest["cost_is_lower_bound"] is False
    states = [line["state"] for line in run.lines("batches")]
    assert states == ["submitting", "submitted", "ended"]
    whole(lab, run)


def test_batches_of_one_size_are_told_apart_though_their_provider_knows_no_names(lab):
    """Two judges of one account with as many rows each: whose answer was lost, whose was not?"""
    lay(lab, "anthropic/a", "anthropic/b", n=3)
    batches = lab.server.batches
    batches.trouble("POST", "/batches", LOST)
    run = lab.judged(*WORDS, "--batch")
    assert len(batches.submitted) == 2
    whole(lab, run)


def test_killed_before_handing_in_the_rows_cost_nothing_and_are_asked(lab):
    lay(lab, "openai/o")
    batches = lab.server.batches
    batches.trouble("POST", "/batches", STALLED)
    process = begun(lab, "--max-cost", 1)
    lab.wait_for(lambda: any(r == "POST /openai/v1/batches" for r in batches.requests), process)
    killed(process)
    assert batches.submitted == []
    run = lab.resumed()
    assert len(batches.submitted) == 1
    first = [call for call in run.attempts("o") if call["attempt"] == 1]
    assert {(c["error_class"], c["cost_usd"]) for c in first} == {("interrupted", 0.0)}
    assert run.manifest["cost_is_lower_bound"] is False
    whole(lab, run)


def test_killed_while_it_waits_a_run_goes_on_with_the_batch_it_has(lab):
    lay(lab, "openai/a", "openai/b")
    batches = lab.server.batches
    batches.hold = True
    process = begun(lab)
    lab.wait_for(lambda: sum(batch.polls > 0 for batch in batches.submitted) == 2, process)
    killed(process)
    batches.hold = False
    run = lab.resumed()
    assert len(batches.submitted) == 2
    whole(lab, run)


def test_the_file_of_batches_may_be_torn(lab):
    lay(lab, "openai/o")
    run = lab.judged(*WORDS, "--batch")
    file = run.path / "batches.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    assert lab.here("verify", "runs/run").code == 5
    n_looks = len(lab.server.batches.requests)
    run = lab.resumed()
    # Every row has its call, so the batch need not even be looked after.
    assert len(lab.server.batches.requests) == n_looks
    assert run.lines("batches")[-1]["state"] == "ended"
    assert run.lines("batches")[-1]["answered"] == 6
    whole(lab, run)


# -- Ctrl-C, cancelling, going over to live ---------------------------------------------------------


def test_ctrl_c_leaves_the_batch_with_the_provider_and_a_resume_fetches_it(lab):
    lay(lab, "openai/o")
    batches = lab.server.batches
    batches.hold = True
    process = begun(lab)
    lab.wait_for(lambda: any(batch.polls for batch in batches.submitted), process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert "1 batch of 6 rows stays with the provider: `clash resume runs/run` fetches it" in err
    assert not any("cancel" in request for request in batches.requests)
    run = lab.folder()
    assert run.lines("judgments") == []
    assert run.manifest["status"] in ("partial", "failed")
    assert run.manifest["cost_is_lower_bound"] is True
    assert lab.here("verify", "runs/run").code == 0
    batches.hold = False
    run = lab.resumed()
    assert len(batches.submitted) == 1
    assert run.manifest["cost_is_lower_bound"] is False
    whole(lab, run)


@pytest.fixture
def waiting(lab: Lab) -> Lab:
    """A run that was killed while its batches were on."""
    lay(lab, "openai/a", "openai/b")
    lab.server.batches.hold = True
    process = begun(lab)
    lab.wait_for(lambda: sum(m.polls > 0 for m in lab.server.batches.submitted) == 2, process)
    killed(process)
    return lab


def test_cancelled_batches_keep_the_rows_that_are_through(waiting):
    lab, batches = waiting, waiting.server.batches
    result = lab.here("resume", "runs/run", "--cancel-batches")
    assert result.code == 3, result.err
    assert "6 failed (6 interrupted)" in result.out
    assert {batch.ended for batch in batches.submitted} == {"cancelled"}
    run = lab.folder()
    assert len(run.answered()) == 6
    calls = [call for call in run.lines("calls") if call["outcome"] == "error"]
    assert {(c["error_class"], c["cost_usd"]) for c in calls} == {("interrupted", 0.0)}
    assert len(batches.submitted) == 2
    assert lab.here("verify", "runs/run").code == 0
    again = lab.here("resume", "runs/run", "--cancel-batches")
    assert (again.code, again.err) == (0, "no batch of this run is with a provider\n")

    run = lab.resumed("--live")
    assert len(batches.submitted) == 2
    assert sorted(c["attempt"] for c in run.lines("calls") if c["outcome"] == "ok") == (
        [1] * 6 + [2] * 6
    )
    whole(lab, run)


def test_a_run_that_goes_on_live_still_fetches_what_was_handed_in(waiting):
    lab, batches = waiting, waiting.server.batches
    batches.hold = False
    run = lab.resumed("--live")
    assert len(batches.submitted) == 2
    assert len(lab.server.calls) == 12
    whole(lab, run)
