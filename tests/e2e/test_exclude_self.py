"""A voting judge that is a candidate too: said, and with ``exclude_self`` kept from its own responses."""

from __future__ import annotations

import json

import pytest

from e2e.lab import Lab, prefers

WORDS = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--observers", "none")
SELF, OTHER = "openrouter/vendor/one.5", "vendor-two"


def lay(lab: Lab, *, n_others: int = 1, judges: tuple[str, ...] = ("a", "b"), **panel) -> None:
    """Judge ``one`` is the candidate ``openrouter/vendor/one.5``, and prefers itself."""
    names = (SELF, *(f"other-{n}" for n in range(n_others)))
    lab.prompts(4, candidates=names)
    lab.panel(
        {"id": "one", "model": SELF, "price": {"input": 1, "output": 10}},
        *(f"compatible/{judge}" for judge in judges),
        **panel,
    )
    lab.server.conduct("vendor/one.5", answer=prefers(lambda text: SELF in text))
    for judge in judges:
        lab.server.conduct(judge, answer=prefers(lambda text: -len(text)))


def n_calls_of(lab: Lab, model: str) -> int:
    return sum(call.model == model for call in lab.server.calls)


def test_without_it_the_run_and_the_report_warn_of_the_vote_on_the_own_response(lab):
    lay(lab)
    result = lab.here("eval", *WORDS, "--run-id", "run", "--yes")
    assert result.code == 0, result.err
    warning = f"the voting judge one is also the candidate {SELF}, and votes on its own responses"
    assert result.err.count(warning) == 1
    run = lab.folder()
    assert any(warning in note for note in run.report["notes"])
    assert n_calls_of(lab, "vendor/one.5") == 4
    # It outvotes nobody here, but no verdict is unanimous.
    assert not any(verdict["unanimous"] for verdict in run.lines("verdicts"))


@pytest.mark.parametrize("how", ["option", "panel"])
def test_of_two_responses_it_is_not_asked_and_its_absence_is_no_failure(lab, how):
    lay(lab, **({"exclude_self": True} if how == "panel" else {}), quorum=3)
    words = ("--exclude-self",) if how == "option" else ()
    result = lab.here("eval", *WORDS, *words, "--run-id", "run", "--yes")
    assert result.code == 0, result.err
    assert "votes on its own responses" not in result.err
    run = lab.folder()
    assert n_calls_of(lab, "vendor/one.5") == 0
    verdicts = run.lines("verdicts")
    assert [v["unanimous"] for v in verdicts] == [True] * 4
    assert {v["split"] for v in verdicts} == {"2-0"}
    assert run.manifest["status"] == "complete"
    coverage = run.report["coverage"]
    assert (coverage["expected"], coverage["excluded"], coverage["not_run"]) == (8, 4, 0)
    assert run.manifest["counts"]["voting_expected"] == 8
    assert run.manifest["panel"]["excluded"] == {"one": [SELF]}
    assert "not asked: own response" in (run.path / "report.md").read_text(encoding="utf-8")
    # The same in every command that reads the run.
    assert lab.here("verify", "runs/run").code == 0
    assert lab.here("resume", "runs/run").code == 0
    assert n_calls_of(lab, "vendor/one.5") == 0
    gate_result = lab.here("gate", "runs/run", "--min", "unanimity=1", "--on", "point")
    assert gate_result.code == 0, gate_result.out
    again = lab.here("aggregate", "runs/run", "--method", "majority", "--json")
    assert again.code == 0, again.err
    export = lab.here("export", "runs/run", "--votes", "--to", "votes.jsonl")
    assert export.code == 0, export.err
    votes = (lab.path / "votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["judge"] for line in votes} == {"a", "b"}


def test_one_of_the_others_that_fails_is_still_below_the_quorum(lab):
    from wire import faults

    lay(lab, exclude_self=True, quorum=3)
    lab.write("clash.yaml", {"limits": {"max_attempts": 1}})
    lab.server.misbehave(faults.server_error(), model="b", times=1)
    run = lab.judged(*WORDS, code=3)
    abstained = [v["abstained"] for v in run.lines("verdicts") if v["abstained"]]
    assert abstained == ["below the quorum: no usable judgment by b"]


def test_of_four_responses_it_ranks_the_other_three_and_its_own_is_judged_by_the_others(lab):
    lay(lab, n_others=3)
    run = lab.judged(*WORDS, "--exclude-self")
    pages = {(b["item_id"], b["judge"]): b["labels"] for b in run.lines("blinding")}
    assert len(pages) == 8
    for (_, judge), labels in pages.items():
        assert (SELF in labels.values()) == (judge is None)
        assert list(labels) == [f"A{n}" for n in range(len(labels))]
    assert n_calls_of(lab, "vendor/one.5") == 4
    assert not any(SELF in str(s.body) for s in lab.server.calls if s.model == "vendor/one.5")
    assert run.report["coverage"]["excluded"] == 0
    for verdict in run.lines("verdicts"):
        # The others put the longest text, which is this one, last.
        assert verdict["ranking"][-1] == [SELF]
        assert verdict["scores"][SELF] == 0
    assert lab.here("verify", "runs/run").code == 0
    assert lab.here("resume", "runs/run").code == 0
    for command in ("diagnose", "report"):
        result = lab.here(command, "runs/run")
        assert result.code == 0, (command, result.err)
    votes = lab.here("export", "runs/run", "--votes", "--to", "votes.jsonl")
    assert votes.code == 0, votes.err


def test_a_dry_run_prices_what_will_be_asked(lab):
    lay(lab, exclude_self=True)
    report = lab.here("eval", *WORDS, "--dry-run", "--json").json
    assert {line["who"]: line["calls"] for line in report["plan"]} == {"a": 4, "b": 4}


def test_observers_that_vote_and_a_given_response_by_another_road_are_the_same_model(lab):
    """A candidate reached through OpenRouter, given under the name that its vendor uses."""
    lab.prompts(1, candidates=("openai/gpt-5.2", "other"))
    lab.panel(
        {
            "id": "gpt",
            "model": "openrouter/openai/gpt-5.2:free",
            "price": {"input": 1, "output": 1},
        },
        "compatible/a",
    )
    result = lab.here("eval", *WORDS, "--dry-run", "--exclude-self", "--json")
    assert {line["who"]: line["calls"] for line in result.json["plan"]} == {"a": 1}


def test_a_judge_that_is_kept_from_some_items_is_calibrated_on_the_others(lab):
    """Of two responses it judges none, so that the calibrator is of the two judges that remain."""
    lay(lab, exclude_self=True)
    names = (SELF, "other-0")
    prompts = [
        {
            "prompt": f"{n}?",
            "label": names[n % 2],
            "responses": {name: f"{name}: {n}" for name in names},
        }
        for n in range(32)
    ]
    lab.write("prompts.yaml", prompts)
    lab.judged(*WORDS, run="first")
    words = ("--splits", 2, "--jobs", 1, "--out", "cal.json", "--json")
    result = lab.here("calibrate", "runs/first", *words)
    assert result.code == 0, result.err
    assert result.json["n"] == 32
    run = lab.judged(*WORDS, "--calibrator", "cal.json")
    assert n_calls_of(lab, "vendor/one.5") == 0
    assert {v["method"] for v in run.lines("verdicts")} == {"calibrated"}
    assert lab.here("verify", "runs/run").code == 0
