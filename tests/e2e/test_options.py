"""What each option of ``clash eval`` changes in the folder, and what it leaves alone."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest

from e2e.lab import PRICE, prefers
from wire import faults

PANEL = ("--panel", "panel.yaml")
PLAIN = ("prompts.yaml", *PANEL, "--criteria", "none")


def local(name, **more):
    return {"model": f"compatible/{name}", "price": PRICE, **more}


def votes_of(run) -> dict:
    """What each judge said of each page."""
    return {
        (j["item_id"], j["presentation"], j["judge"]): (j["ranking"], j["scores"], j["parse"])
        for j in run.judgments()
    }


def first_shown(request) -> str:
    """A judge that prefers whatever stands first on its page."""
    names = sorted({c for c in ("A0", "A1", "A2") if f'label="{c}"' in request.prompt})
    return json.dumps({"ranking": [[name] for name in names]})


def length(text: str) -> float:
    return len(text)


# -- order on the page ------------------------------------------------------------------------------


def test_both_orders_halve_a_judges_votes_and_count_its_flips(lab):
    lab.server.conduct("fickle", answer=first_shown)
    lab.server.conduct("firm", answer=prefers(length))
    lab.prompts(6, candidates=("ada", "roberta"))
    lab.panel(local("fickle"), local("firm"), quorum=1)
    run = lab.judged(*PLAIN, "--both-orders")

    pages = run.lines("blinding")
    assert len(pages) == 2 * 6
    orders = {(p["item_id"], p["presentation"]): list(p["labels"].values()) for p in pages}
    assert all(orders[item, 1] == orders[item, 0][::-1] for item, _ in orders)
    assert len(run.judgments()) == 2 * 2 * 6
    judges = {row["judge"]: row for row in run.report["judges"]}
    assert judges["fickle"]["flips"]["estimate"] == 1
    assert judges["firm"]["flips"]["estimate"] == 0
    assert judges["fickle"]["first_shown"]["estimate"] == 1
    assert judges["firm"]["first_shown"]["estimate"] == 0.5
    assert judges["fickle"]["first_expected"] == 0.5
    for verdict in run.lines("verdicts"):
        # One point of the firm judge, half a point for each side of the fickle one.
        assert verdict["scores"] == {"ada": 0.5, "roberta": 1.5}
        assert verdict["winner"] == "roberta"
        assert verdict["confidence"] == 0.5
        assert verdict["split"] == "1-0-1"
        assert verdict["unanimous"] is False


def test_one_page_is_shared_by_all_judges_unless_each_is_to_have_its_own(lab):
    lab.prompts(12)
    lab.panel(local("a"), local("b"))
    shared_pages = lab.judged(*PLAIN, run="shared").lines("blinding")
    assert [page["judge"] for page in shared_pages] == [None] * 12
    own_pages = lab.judged(*PLAIN, "--per-judge", run="own").lines("blinding")
    assert Counter(page["judge"] for page in own_pages) == {"a": 12, "b": 12}
    by_judge = [[p["labels"]["A0"] for p in own_pages if p["judge"] == judge] for judge in "ab"]
    assert by_judge[0] != by_judge[1]
    assert {name for row in by_judge for name in row} == {"ada", "bob"}


def test_another_seed_shuffles_otherwise_and_the_same_seed_alike(lab):
    lab.prompts(12)
    lab.panel(local("a"))
    orders = {}
    for run, seed in (("x", 1), ("y", 1), ("z", 2)):
        pages = lab.judged(*PLAIN, "--seed", seed, run=run).lines("blinding")
        orders[run] = [page["labels"]["A0"] for page in pages]
    assert orders["x"] == orders["y"] != orders["z"]


# -- criteria ---------------------------------------------------------------------------------------


def test_criteria_come_from_a_model_from_the_file_or_from_nowhere(lab):
    lab.prompts(2)
    lab.panel(local("a"), criteria=local("writer"))
    criteria = [{"name": "Wit", "weight": 3}, {"name": "Warmth", "weight": 1}]

    dynamic = lab.judged("prompts.yaml", *PANEL, run="dynamic")
    assert [c["source"] for c in dynamic.lines("criteria")] == ["dynamic"] * 2
    assert lab.server.count(model="writer") == 2

    lab.server.clear()
    lab.write("fixed.yaml", {"criteria": {"mode": "fixed", "items": criteria}})
    run = lab.judged("prompts.yaml", *PANEL, "--config", "fixed.yaml", run="fixed")
    assert [c["source"] for c in run.lines("criteria")] == ["fixed"] * 2
    assert set(run.judgments()[0]["scores"]["A0"]) == {"Wit", "Warmth"}
    assert "Wit (weight 75%)" in str(lab.server.calls[0].body)

    lab.server.clear()
    run = lab.judged(*PLAIN, run="none")
    assert [(c["source"], c["criteria"]) for c in run.lines("criteria")] == [("none", [])] * 2
    assert run.judgments()[0]["scores"] == {}
    assert run.judgments()[0]["ranking"]
    assert lab.server.count(model="writer") == 0

    lab.server.clear()
    again = lab.judged("prompts.yaml", *PANEL, "--criteria-from", "dynamic", run="again")
    assert lab.server.count(model="writer") == 0
    assert [c["criteria"] for c in again.lines("criteria")] == [
        c["criteria"] for c in dynamic.lines("criteria")
    ]
    assert votes_of(again) == votes_of(dynamic)


def test_criteria_of_a_run_are_found_beside_it_wherever_runs_go(lab):
    lab.prompts(1)
    lab.panel(local("a"), criteria=local("writer"))
    for run, more in (("one", ()), ("two", ("--criteria-from", "one"))):
        words = ("eval", "prompts.yaml", *PANEL, "--run-id", run, "--out", "elsewhere", *more)
        result = lab.here(*words)
        assert result.code == 0, result.err
    assert lab.server.count(model="writer") == 1


def test_the_file_may_say_where_runs_go(lab):
    lab.prompts(1)
    lab.panel(local("a"))
    lab.write("clash.yaml", {"out": "from-file"})
    assert lab.here("eval", *PLAIN, "--run-id", "x").code == 0
    assert lab.here("eval", *PLAIN, "--run-id", "x", "--out", "from-line").code == 0
    assert (lab.path / "from-file" / "x").is_dir()
    assert (lab.path / "from-line" / "x").is_dir()


def test_an_ablation_without_criteria_needs_no_edit_of_the_file(lab):
    lab.prompts(1)
    lab.panel(local("a"))
    lab.write(
        "clash.yaml", {"criteria": {"mode": "fixed", "items": [{"name": "Wit", "weight": 1}]}}
    )
    run = lab.judged(*PLAIN)
    assert run.lines("criteria")[0]["source"] == "none"


def test_criteria_of_an_item_are_its_own(lab):
    lab.prompts(1, criteria=[{"name": "Rhyme", "weight": 1, "description": "does it?"}])
    lab.panel(local("a"), criteria=local("writer"))
    run = lab.judged("prompts.yaml", *PANEL)
    assert set(run.judgments()[0]["scores"]["A0"]) == {"Rhyme"}
    assert lab.server.count(model="writer") == 0


# -- observers --------------------------------------------------------------------------------------

MODELS = ("--models", "compatible/ada,compatible/roberta")


def own_text(name):
    """A judge that puts its own response first."""
    return prefers(lambda text: name in text)


@pytest.fixture
def vain(lab):
    """Two candidates that judge for themselves, and a panel of one that likes the first."""
    for name in ("ada", "roberta"):
        judge = own_text(name)
        lab.server.conduct(
            name,
            answer=lambda request, name=name, judge=judge: (
                judge(request) if request.schema else f"I, the {name} of all."
            ),
        )
    lab.server.conduct("sober", answer=own_text("ada"))
    lab.prompts(2, candidates=())
    lab.panel(local("sober"))
    return lab


def test_an_observer_that_failed_is_asked_again_by_resume(lab):
    """Its failures leave the run complete, so they alone say that something is open."""
    lab.prompts(2)
    lab.panel(local("judge"))
    lab.write("clash.yaml", {"observers": [local("watcher")], "limits": {"max_attempts": 1}})
    lab.server.misbehave(faults.server_error(), model="watcher", times=math.inf)
    run = lab.judged(*PLAIN)
    assert run.manifest["status"] == "complete"
    assert run.report["coverage"]["failed"] == {}
    lab.server.clear()
    run = lab.resumed()
    assert [judgment["error"] for judgment in run.judgments()] == [None] * 4
    assert lab.server.count() == 2


def test_candidates_watch_and_are_not_counted(vain):
    run = vain.judged(*PLAIN, *MODELS)
    watching = {j["judge"]: j for j in run.judgments() if j["role"] == "observer"}
    assert set(watching) == {"self:ada", "self:roberta"}
    for verdict in run.lines("verdicts"):
        assert verdict["winner"] == "ada"
        assert sum(verdict["scores"].values()) == 1
        assert (verdict["split"], verdict["unanimous"]) == ("1-0", True)
    rows = {row["candidate"]: row for row in run.report["self_evaluation"]}
    assert rows["roberta"]["own_first"]["estimate"] == 1
    assert rows["roberta"]["panel_first"]["estimate"] == 0


def test_without_observers_nobody_watches(vain):
    run = vain.judged(*PLAIN, *MODELS, "--observers", "none")
    assert {j["judge"] for j in run.judgments()} == {"sober"}
    assert run.report["self_evaluation"] == []


def test_candidates_may_vote_at_1_against_the_panels_2(vain):
    vain.write("clash.yaml", {"observers": {"judges": "candidates", "role": "voting"}})
    run = vain.judged(*PLAIN, *MODELS)
    weights = {j["judge"]: j["weight"] for j in run.judgments()}
    assert weights == {"sober": 2, "self:ada": 1, "self:roberta": 1}
    for verdict in run.lines("verdicts"):
        assert verdict["scores"] == {"ada": 3, "roberta": 1}
        # The candidates vote, each for itself; the panel, of one judge, is unanimous.
        assert (verdict["split"], verdict["unanimous"]) == ("2-1", True)


def test_a_quorum_of_judges_stays_one_of_judges_where_their_weight_is_doubled(vain):
    """A quorum of 2 was written for a panel whose judges weigh 1 each."""
    vain.server.conduct("mute", answer=lambda _: "no comment")
    vain.panel(local("sober"), local("mute"), quorum=2)
    vain.write("clash.yaml", {"observers": {"judges": "candidates", "role": "voting"}})
    run = vain.judged(*PLAIN, *MODELS, code=3)
    assert run.manifest["panel"]["quorum"] == 4
    # The judge's 2 and the candidates' 1 and 1 are enough; the judge alone would not be.
    assert all(v["ranking"] for v in run.lines("verdicts"))
    vain.server.conduct(
        "roberta", answer=lambda request: "no comment" if request.schema else "roberta"
    )
    run = vain.judged(*PLAIN, *MODELS, code=3, run="short")
    assert all(v["ranking"] is None for v in run.lines("verdicts"))


# -- repeats, ties ----------------------------------------------------------------------------------


def test_repeats_are_items_of_their_own_in_the_cluster_of_their_prompt(lab):
    lab.prompts(2, candidates=("ready",))
    lab.panel(local("a"))
    run = lab.judged(*PLAIN, "--models", "compatible/ada", "--repeat", 3, "--observers", "none")
    items = run.lines("items")
    assert [item["item_id"] for item in items] == [f"q{i}~{n}" for i in (0, 1) for n in (1, 2, 3)]
    assert Counter(item["group"] for item in items) == {"q0": 3, "q1": 3}
    assert lab.server.count(model="ada") == 6
    assert len(run.lines("verdicts")) == 6
    duel = run.report["duels"][0]
    assert "clusters" in duel["test"] or "clustered" in duel["test"]


def test_a_split_panel_is_a_tie_and_no_name_or_place_breaks_it(lab):
    lab.server.conduct("likes-ada", answer=prefers(lambda text: "ada" in text))
    lab.server.conduct("likes-bob", answer=prefers(lambda text: "bob" in text))
    lab.prompts(8)
    lab.panel(local("likes-ada"), local("likes-bob"))
    run = lab.judged(*PLAIN)
    for verdict in run.lines("verdicts"):
        assert verdict["winner"] is None
        assert verdict["ranking"] == [["ada", "bob"]]
        assert verdict["confidence"] == 0
        assert verdict["split"] == "1-1"
    assert run.report["coverage"]["tied"] == 8
    assert run.report["decision"]["status"] == "tied"
    assert run.report["decision"]["winner"] is None


def test_a_tie_may_be_broken_by_scores_and_by_nothing_else(lab):
    for judge, likes, fair in (("x", "ada", 5), ("y", "bob", 4)):
        lab.server.conduct(
            judge,
            answer=prefers(
                lambda text, likes=likes: likes in text,
                score=lambda text, fair=fair: fair if "ada" in text else 3,
            ),
        )
    lab.prompts(2)
    lab.panel(local("x"), local("y"))
    fixed_criteria = {"mode": "fixed", "items": [{"name": "Wit", "weight": 1}]}
    lab.write("clash.yaml", {"aggregate": {"tie_break": "scores"}, "criteria": fixed_criteria})
    run = lab.judged("prompts.yaml", *PANEL, run="scores")
    assert set(run.winners.values()) == {"ada"}
    assert all(v["ranking"] == [["ada"], ["bob"]] for v in run.lines("verdicts"))
    assert all(v["confidence"] == 0 for v in run.lines("verdicts"))
    # Scores that tie as well leave the tie.
    for judge, likes in (("x", "ada"), ("y", "bob")):
        lab.server.conduct(judge, answer=prefers(lambda text, likes=likes: likes in text))
    run = lab.judged("prompts.yaml", *PANEL, run="level")
    assert set(run.winners.values()) == {None}


def test_a_judge_may_tie_only_where_the_panel_allows_it(lab):
    lab.server.conduct("level", answer=prefers(lambda _: 0))
    lab.prompts(1)
    lab.panel(local("level"))
    run = lab.judged(*PLAIN, run="allowed")
    assert run.judgments()[0]["ranking"] == [["A0", "A1"]]
    assert run.lines("verdicts")[0]["split"] == "1"
    assert run.lines("verdicts")[0]["unanimous"] is True
    lab.panel(local("level"), ties=False, reask=False)
    run = lab.judged(*PLAIN, run="forbidden", code=3)
    assert run.judgments()[0]["ranking"] is None
    assert "ties are not allowed" in run.judgments()[0]["error"]


@pytest.mark.parametrize("renaming", [("zoe", "bob"), ("bob", "ada"), ("b", "a")])
def test_names_and_the_order_of_responses_change_no_verdict(lab, renaming):
    def entries(names, *, reverse):
        response_pairs = [
            list(zip(names, (f"One {i}.", f"Two {i}."), strict=True)) for i in range(10)
        ]
        return [
            {
                "id": f"q{i}",
                "prompt": f"Question {i}?",
                "responses": dict(b[::-1] if reverse else b),
            }
            for i, b in enumerate(response_pairs)
        ]

    lab.panel(local("a"), local("b"))
    winners = []
    for names, reverse in ((("ada", "bob"), False), (renaming, True)):
        lab.write("prompts.yaml", entries(names, reverse=reverse))
        run = lab.judged(*PLAIN, run="-".join(names))
        winners.append([names.index(w) if w else None for w in run.winners.values()])
    assert winners[0] == winners[1]
    assert len(set(winners[0])) > 1


# -- other methods, replay --------------------------------------------------------------------------


def test_a_method_that_eval_does_not_have_is_refused_not_relabelled(lab):
    lab.prompts(1)
    lab.panel(local("a"))
    result = lab.here("eval", *PLAIN, "--method", "schulze")
    assert result.code == 2
    assert "aggregate.method" in result.err
    assert "dawid-skene" in result.err
    assert lab.server.count() == 0


def test_a_replay_comes_to_the_same_verdicts_with_no_server_and_no_key(lab):
    lab.prompts(3, candidates=())
    lab.panel(local("a"), local("b"), criteria=local("writer"))
    words = ("prompts.yaml", *MODELS, "--both-orders", "--seed", 7)
    first = lab.judged(*words, *PANEL, run="first")
    lab.server.clear()
    lab.environ = {}
    again = lab.judged(*words, "--replay", "first", run="again")
    assert lab.server.count() == 0
    for name in ("verdicts", "blinding", "criteria"):
        lines_again, first_lines = again.lines(name), first.lines(name)
        assert [m | {"call_id": 0} for m in lines_again] == [
            t | {"call_id": 0} for t in first_lines
        ], name
    assert votes_of(again) == votes_of(first)
    assert again.manifest["cost_usd"] == 0
    assert again.manifest["cost_is_lower_bound"] is False
    assert lab.here("verify", "runs/again").code == 0
    # The run knows its prompts, seed and options: naming it is enough, and naming more changes it.
    lab.here("eval", "--replay", "first", "--run-id", "alone")
    alone = lab.folder("alone")
    assert alone.lines("verdicts") == again.lines("verdicts")
    assert alone.manifest["prompts"] == "prompts.yaml"
    assert alone.manifest["seeds"] == {"seed": 7}
    fewer = lab.here("eval", "--replay", "first", "--limit", 1, "--run-id", "fewer")
    assert fewer.code == 0
    assert len(lab.folder("fewer").lines("verdicts")) == 1
    assert lab.server.count() == 0
    # A replay can be replayed; what the run does not hold is a failed call, never a paid one.
    third = lab.judged(*words, "--replay", "again", run="third")
    assert third.lines("verdicts") == again.lines("verdicts")
    other_result = lab.here("eval", *words[:-1], 8, "--replay", "first", "--run-id", "other")
    assert other_result.code == 3
    causes = lab.folder("other").report["coverage"]["failed"]
    assert set(causes) == {"replay_miss"}


def test_options_of_every_candidate_hold_for_whoever_reads_them_in_the_manifest(lab):
    """A manifest writes each option down, so that none may count for being written."""
    lab.prompts(2, candidates=())
    lab.write("clash.yaml", {"generation": {"max_tokens": 77}})
    models = ("--models", "compatible/ada,compatible/bob", "--panel", "baseline")
    run = lab.judged("prompts.yaml", *models)
    assert lab.here("verify", "runs/run").code == 0
    assert lab.here("rerun", "runs/run", "--regenerate", "--yes").code == 0
    for folder in (run, lab.folder("run-r1")):
        bodies = [c["request"]["body"] for c in folder.lines("calls") if c["purpose"] == "generate"]
        assert [body["max_tokens"] for body in bodies] == [77] * 4
