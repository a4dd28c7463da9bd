"""``clash variance`` and ``rerun --keep``: judges whose choice is moved by one thing at a time."""

from __future__ import annotations

import hashlib
import json
import re
import signal

import pytest

from e2e.lab import PRICE, prefers

OWN, OTHER = ("Depth", "Detail", "Range"), ("Brevity", "Focus", "Plainness")
N = 8


def rubric(request, names):
    rows = [{"name": name, "weight": 1, "description": ""} for name in names]
    return json.dumps({"criteria": rows})


def judge(request):
    """The longer response, unless the rubric asks for brevity."""
    sign = -1 if "Brevity" in request.prompt else 1
    return prefers(lambda text: sign * len(text))(request)


def author(names):
    return lambda request: rubric(request, names)


@pytest.fixture
def study(lab):
    """A run whose criteria a model wrote, with a judge that follows them."""
    lab.server.conduct("own", answer=author(OWN))
    lab.server.conduct("other", answer=author(OTHER))
    lab.server.conduct("judge", answer=judge)
    lab.panel(local("judge"))
    lab.write(
        "clash.yaml",
        {"panel": "panel.yaml", "criteria": {"model": "compatible/own", "price": PRICE}},
    )
    responses = {"ada": "A long response, with much to say.", "bob": "Short."}
    lab.write(
        "prompts.yaml",
        [{"id": f"q{i}", "prompt": f"Q {i}?", "responses": responses} for i in range(N)],
    )
    lab.judged("prompts.yaml", "--max-cost", "5")
    return lab


def local(name, **more):
    return {"model": f"compatible/{name}", "price": PRICE, **more}


def sources(split):
    return {source["source"]: source for source in split["sources"]}


def test_another_author_of_criteria_is_a_number_with_an_interval(study):
    words = ("variance", "run", "--author", "compatible/other", "--samples", "1", "--yes", "--json")
    words = (*words, "--allow-unknown-price")
    plan = study.here(*words, "--dry-run").json
    # Two rubrics and the other author's, two shuffles; the run itself is one of the six arms.
    assert [arm["complete"] for arm in plan["arms"]] == [True, *[False] * 5]
    assert plan["calls"] == 5 * N + 2 * N
    before = study.server.count()
    result = study.here(*words)
    assert result.code == 0, result.err
    assert study.server.count() - before == plan["calls"]
    assert study.server.count(model="other") == N
    (effect,) = result.json["authors"]
    assert (effect["author"], effect["candidate"]) == ("compatible/other", "ada")
    assert effect["difference"]["difference"]["estimate"] == -1
    parts = sources(result.json["panel"][0])
    assert parts["author"]["change"]["estimate"] == 1
    assert parts["shuffle"]["change"]["estimate"] == 0
    assert parts["author"]["variance"]["estimate"] == pytest.approx(0.5, abs=0.26)
    for part in parts.values():
        assert 0 <= part["share"]["low"] <= part["share"]["high"] <= 1
    # Every arm is a run; the second time nothing is asked again.
    arm = "runs/run-variance/g1-a1-s2-k1"
    assert study.here("verify", arm).code == 0
    assert study.here("verify", study.path / arm).code == 0  # wherever it is verified from
    again = study.here(*words)
    assert again.json["panel"] == result.json["panel"]
    assert study.server.count() - before == plan["calls"]


def test_one_budget_holds_for_all_arms_and_the_same_command_goes_on(study):
    words = ("variance", "run", "--samples", "1", "--yes")
    plan, before = study.here(*words, "--dry-run", "--json").json, study.server.count()
    price = plan["expected_usd"]
    short = study.here(*words, "--max-cost", f"{price * 0.3:.6f}", "--json")
    assert short.code == 3
    assert short.json["missing"]
    assert 0 < short.json["cost_usd"] <= price * 0.3
    remaining_result = study.here(*words, "--max-cost", f"{price * 3:.6f}", "--json")
    assert (remaining_result.code, remaining_result.json["missing"]) == (0, []), (
        remaining_result.err
    )
    assert study.server.count() - before == plan["calls"]
    screen = study.here("variance", "runs/run-variance", "--report", "-v")
    assert "of the variance" in screen.out or "Nothing but the prompts" in screen.out
    words = ("variance", "runs/run-variance", "--report", "--json", "--to", "variance.md")
    assert study.here(*words).json["missing"] == []
    assert "# " in (study.path / "variance.md").read_text()
    assert study.here("variance", "run", "--shuffles", "1").code == 2


def test_ctrl_c_ends_an_arm_and_the_same_command_goes_on(study):
    words = ("variance", "run", "--samples", "1", "--yes", "--concurrency", "1")
    plan, before = study.here(*words, "--dry-run", "--json").json, study.server.count()
    study.server.latency_s = 0.05
    process = study.start(*words)
    study.wait_for(lambda: study.server.count() - before > N + 3, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert re.search(r"\d arms? missing \(interrupted\): the same command goes on", err)
    study.server.latency_s = 0.0
    remaining_result = study.here(*words, "--json")
    assert (remaining_result.code, remaining_result.json["missing"]) == (0, []), (
        remaining_result.err
    )
    assert study.server.count() - before == plan["calls"]


def test_generations_draw_responses_anew_for_all_arms_of_a_level(lab):
    def writes(request):
        mark = hashlib.sha256(f"{request.prompt}{lab.server.count()}".encode()).hexdigest()
        return "word " * (1 + int(mark[:2], 16))

    for name in ("ann", "ben"):
        lab.server.conduct(name, answer=writes)
    lab.server.conduct("judge", answer=prefers(len))
    lab.panel(local("judge"))
    lab.write(
        "clash.yaml",
        {
            "panel": "panel.yaml",
            "candidates": [local("ann"), local("ben")],
            "criteria": {"mode": "none"},
            "observers": [],
        },
    )
    lab.prompts(n=N, candidates=())
    lab.judged("prompts.yaml", "--max-cost", "9")
    words = ("variance", "run", "--generations", "2", "--samples", "1", "--max-cost", "9", "--json")
    result = lab.here(*words, "--yes")
    assert result.code == 0, result.err
    assert lab.server.count(model="ann") == 2 * N
    parts = sources(result.json["panel"][0])
    assert parts["responses"]["change"]["estimate"] > 0
    assert parts["shuffle"]["change"]["estimate"] == 0


def test_a_study_of_one_prompt_is_refused_before_it_is_paid_for(study):
    n_calls = study.server.count()
    result = study.here("variance", "run", "--items", "1", "--max-cost", "5", "--yes")
    assert result.code == 2
    assert "--items" in result.err
    assert study.server.count() == n_calls


def test_a_response_that_failed_is_nothing_to_compare(lab):
    lab.server.conduct("ann", answer=lambda _: "Fine.")
    lab.server.conduct("ben", answer=lambda request: "Fine." if "Q 0?" in request.prompt else "")
    lab.server.conduct("judge", answer=prefers(len))
    lab.panel(local("judge"))
    settings = {"candidates": [local("ann"), local("ben")], "criteria": {"mode": "none"}}
    lab.write("clash.yaml", {"panel": "panel.yaml", **settings})
    lab.write("prompts.yaml", [{"id": f"q{i}", "prompt": f"Q {i}?"} for i in range(N)])
    words = ("--run-id", "run", "--yes", "--max-cost", "5")
    assert lab.here("eval", "prompts.yaml", *words).code == 3
    assert len(lab.folder().lines("blinding")) == 1
    n_calls = lab.server.count()
    result = lab.here("variance", "run", "--samples", "1", "--max-cost", "5", "--yes")
    assert result.code == 2
    assert "name a run of more prompts" in result.err
    assert lab.server.count() == n_calls


def test_a_rerun_keeps_what_it_is_told_to(study):
    before = study.server.count(model="own")
    assert study.here("rerun", "run", "--keep", "criteria,shuffle", "--yes").code == 0
    assert study.server.count(model="own") == before
    first, second = study.folder(), study.folder("run-r1")
    assert [page["labels"] for page in first.lines("blinding")] == [
        page["labels"] for page in second.lines("blinding")
    ]
    assert "kept: criteria, shuffle" in second.manifest["notes"]
    assert study.here("rerun", "run", "--keep", "shuffle", "--yes").code == 0
    assert study.server.count(model="own") == before + N
    assert study.here("rerun", "run", "--keep", "shufle").code == 2
    assert study.here("rerun", "run", "--keep", "responses", "--regenerate").code == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ('{"run": "run"}', "design"),
        ('{"run": "../run", "design": {}}', "run id"),
        ('{"run": "run", "design": {"shuffles": 0}}', "shuffles"),
    ],
)
def test_a_study_file_that_is_wrong_is_named(study, text, problem):
    folder = study.path / "runs" / "run-variance"
    folder.mkdir()
    (folder / "variance.json").write_text(text, encoding="utf-8")
    result = study.here("variance", "runs/run-variance", "--report")
    assert result.code == 2
    assert re.search(problem, result.err), result.err
    assert "variance.json" in result.err


def test_candidates_of_few_prompts_are_left_out_and_a_study_without_another_is_not_paid_for(study):
    """Pairs of different models: ``bob`` answers every prompt, each other candidate one."""
    pairs = [
        {"id": f"p{i}", "prompt": f"P {i}?", "responses": {f"m{i}": "A" * i, "bob": "Short."}}
        for i in range(1, 5)
    ]
    words = ("--rubrics", "1", "--shuffles", "1", "--max-cost", "5", "--yes", "--json")
    for name, records, code in (("pairs", pairs, 0), ("apart", pairs[:1], 2)):
        if code:
            records = [*records, {"id": "x", "prompt": "X?", "responses": {"y": "Y", "z": "Z"}}]
        study.write("prompts.yaml", records)
        study.judged("prompts.yaml", "--max-cost", "5", run=name)
        n_calls = study.server.count()
        result = study.here("variance", name, *words)
        assert result.code == code, result.err
        assert (study.server.count() > n_calls) == (code == 0)
        if code == 0:
            assert [split["candidate"] for split in result.json["panel"]] == ["bob"]
