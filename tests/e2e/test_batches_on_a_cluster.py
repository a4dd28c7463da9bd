"""``vllm/`` judges: a run is judged by a job on a Ray cluster, whoever dies meanwhile."""

from __future__ import annotations

import pytest

from e2e.batching import FAST, WORDS, begun, killed
from wire.jobs import JobsServer, answer_some


@pytest.fixture
def head(lab):
    with JobsServer() as running:
        lab.prompts(6)
        record = {
            "model": "vllm/org/m",
            "base_url": running.address,
            "price": {"input": 1, "output": 1},
        }
        lab.panel({**record, "engine": {"folder": str(lab.path / "shared")}})
        lab.write("clash.yaml", FAST)
        yield running


def sound(lab, run):
    assert run.manifest["status"] == "complete"
    assert len(run.answered()) == len(set(run.answered())) == 6
    assert lab.here("verify", run.path).code == 0


def test_a_run_is_judged_by_a_job(lab, head):
    run = lab.judged(*WORDS, "--batch")
    sound(lab, run)
    assert len(head.jobs) == 1
    # A cluster of one's own gives no discount on the price that the panel names.
    assert {c["cost_usd"] for c in run.lines("calls")} == {14e-6}
    replayed_result = lab.here("eval", "--replay", "runs/run", "--run-id", "again", "--yes")
    assert replayed_result.code == 0, replayed_result.err
    assert lab.folder("again").winners == run.winners


def test_without_batch_nothing_is_asked(lab, head):
    result = lab.here("eval", *WORDS, "--run-id", "run", "--yes")
    assert result.code == 2
    assert "in batches only" in result.err
    assert "fix: add --batch" in result.err
    assert not head.jobs


def test_killed_while_the_job_works_a_resume_fetches_its_answers(lab, head):
    head.hold = True
    process = begun(lab)
    lab.wait_for(lambda: head.polls > 1, process)
    killed(process)
    head.hold = False
    run = lab.resumed()
    assert len(head.jobs) == 1
    sound(lab, run)


def test_a_job_that_dies_goes_on_where_it_was(lab, head):
    head.work = answer_some(4)
    run = lab.judged(*WORDS, "--batch")
    assert len(head.jobs) == 2
    assert {c["attempt"] for c in run.lines("calls")} == {1}
    sound(lab, run)


def test_a_row_that_is_lost_is_a_failure_and_a_resume_asks_it_alone(lab, head):
    def work(folder):
        answer_some(5)(folder)
        return "SUCCEEDED"

    head.work = work
    run = lab.judged(*WORDS, "--batch", code=3)
    calls = [call for call in run.lines("calls") if call["outcome"] == "error"]
    assert [call["error_class"] for call in calls] == ["bad_payload"]
    assert len(run.answered()) == 5
    head.work = answer_some()
    run = lab.resumed()
    assert len(head.jobs) == 2
    assert sorted(c["attempt"] for c in run.lines("calls")) == [1] * 6 + [2]
    sound(lab, run)


def test_where_no_engine_starts_the_run_says_why(lab, head):
    head.work = lambda _: "FAILED"
    result = lab.here("eval", *WORDS, "--batch", "--run-id", "run", "--yes")
    assert result.code in (3, 4)
    assert "no GPU here" in result.out + result.err


def test_a_changed_engine_in_a_run_folder_is_not_ones_own(lab, head):
    head.work = lambda _: "FAILED"
    lab.here("eval", *WORDS, "--batch", "--run-id", "run", "--yes")
    file = lab.folder().path / "manifest.json"
    text = file.read_text()
    file.write_text(text.replace('"arguments": {}', '"arguments": {"trust_remote_code": true}'))
    assert file.read_text() != text
    head.jobs.clear()
    result = lab.here("resume", "runs/run")
    assert result.code != 0
    assert not head.jobs


def test_doctor_asks_the_cluster_and_starts_no_job(lab, head):
    result = lab.here("doctor", "--ping", "--panel", "panel.yaml")
    assert result.code == 0, result.out + result.err
    assert "the cluster answers" in result.out
    head.token = "another"
    result = lab.here("doctor", "--ping", "--panel", "panel.yaml")
    assert result.code == 1
    assert "auth" in result.out
    assert not head.jobs
