"""A stopping rule and a cap on money: what the cap cut off is bought later, and the rule goes on."""

from __future__ import annotations

import signal

import pytest

from e2e.lab import PRICE, Folder, Lab

WORDS = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
RULE = ("--until", "ci<0.3", "--looks", 4)


def lay(lab: Lab) -> None:
    lab.prompts(24)
    # A cap on tokens, so that what is set aside for a call in flight is near what it costs.
    capped_options = {"max_tokens": 120}
    lab.panel(
        *({"model": f"compatible/{j}", "price": PRICE, "options": capped_options} for j in "ab")
    )


@pytest.fixture(scope="module")
def reference_run(tmp_path_factory, server) -> Folder:
    lab = Lab(tmp_path_factory.mktemp("until"), server, server.environ("compatible"))
    lay(lab)
    run = lab.judged(*WORDS, *RULE)
    assert len(run.manifest["stopping"]["looks"]) > 1
    return run


def test_what_a_cap_cut_off_is_judged_later_and_nothing_twice(lab, reference_run):
    lay(lab)
    cap = reference_run.manifest["cost_usd"] * 0.7
    run = lab.judged(*WORDS, *RULE, "--max-cost", cap, "--concurrency", 4, code=3)
    stopping = run.manifest["stopping"]
    assert not stopping["met"]
    assert len(stopping["looks"]) < len(reference_run.manifest["stopping"]["looks"])
    assert "not met yet: the run was interrupted" in " ".join(run.manifest["notes"])
    run = lab.resumed("--max-cost", 10)
    assert run.manifest["stopping"] == reference_run.manifest["stopping"]
    assert run.winners == reference_run.winners
    assert len(run.answered()) == len(set(run.answered())) == len(reference_run.answered())
    assert run.manifest["cost_usd"] == pytest.approx(reference_run.manifest["cost_usd"])
    assert lab.here("verify", "runs/run").code == 0


def test_killed_in_its_second_batch_it_comes_to_the_same_looks(lab, reference_run):
    lay(lab)
    lab.server.latency_s = 0.05
    process = lab.start("eval", *WORDS, *RULE, "--run-id", "run", "--yes", "--concurrency", 3)
    calls = lab.server.calls
    lab.wait_for(lambda: len(calls) > 16, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    lab.server.latency_s = 0.0
    run = lab.resumed()
    assert run.manifest["status"] == "complete"
    assert run.manifest["stopping"] == reference_run.manifest["stopping"]
    assert run.winners == reference_run.winners
