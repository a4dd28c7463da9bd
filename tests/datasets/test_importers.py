"""Small hand-written files in the forms of other tools become runs with nothing lost in silence."""

import gzip
import json

import pytest

from clash.datasets.convert import convert, recognise
from clash.errors import InputError


def jsonl(path, *records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def rankings(run):
    """Judge's ranking in candidates' names, by item, presentation and judge."""
    labels = {(b.item_id, b.presentation): b.labels for b in run.blinding}
    return {
        (j.item_id, j.presentation, j.judge): j.ranking
        and [
            sorted(labels[j.item_id, j.presentation][label] for label in group)
            for group in j.ranking
        ]
        for j in run.judgments
    }


def page_order(run, item_id, presentation):
    return next(
        list(b.labels.values())
        for b in run.blinding
        if (b.item_id, b.presentation) == (item_id, presentation)
    )


# ------------------------------------------------------------------------------- FastChat


def game(question, entry, two, g1, g2, prompt="pair-v2", turn=1):
    return {
        "question_id": question,
        "model_1": entry,
        "model_2": two,
        "g1_winner": g1,
        "g2_winner": g2,
        "judge": ["gpt-4", prompt],
        "g1_judgment": "…",
        "g2_judgment": "…",
        "turn": turn,
        "tstamp": 1.0,
    }


@pytest.fixture
def fastchat(tmp_path):
    folder = tmp_path / "mt_bench"
    jsonl(
        folder / "question.jsonl",
        {"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite."]},
        {"question_id": 101, "category": "reasoning", "turns": ["Think.", "Again."]},
    )
    for model in ("a", "b"):
        jsonl(
            folder / "model_answer" / f"{model}.jsonl",
            *[
                {
                    "question_id": q,
                    "model_id": model,
                    "choices": [{"index": 0, "turns": [f"{model}{q}-1", f"{model}{q}-2"]}],
                }
                for q in (81, 101)
            ],
        )
    return folder


def test_fastchat_pairs_keep_both_orders_and_errors_are_failures(fastchat):
    jsonl(
        fastchat / "model_judgment" / "gpt-4_pair.jsonl",
        game(81, "a", "b", "model_1", "model_2"),
        game(81, "a", "b", "tie", "model_1", turn=2),
        game(101, "a", "b", "error", "model_2", prompt="pair-math-v1"),
    )
    assert recognise(fastchat) == "fastchat"
    [run] = convert(fastchat).runs
    assert run.name == "fastchat-pair"
    assert rankings(run) == {
        ("q81-t1-a-b", 0, "gpt-4"): [["a"], ["b"]],
        ("q81-t1-a-b", 1, "gpt-4"): [["b"], ["a"]],
        ("q81-t2-a-b", 0, "gpt-4"): [["a", "b"]],
        ("q81-t2-a-b", 1, "gpt-4"): [["a"], ["b"]],
        ("q101-t1-a-b", 0, "gpt-4"): None,
        ("q101-t1-a-b", 1, "gpt-4"): [["b"], ["a"]],
    }
    assert page_order(run, "q81-t1-a-b", 0) == ["a", "b"]
    assert page_order(run, "q81-t1-a-b", 1) == ["b", "a"]
    assert run.counts()["failed_judgments"] == 1
    first, second, _ = run.items
    assert (first.prompt, first.tags, first.cluster) == ("Write.", ["writing", "turn-1"], "q81")
    assert second.prompt == "[Turn 1]\nWrite.\n\n[Turn 2]\nRewrite."
    texts = {(r.item_id, r.candidate): r.text for r in run.responses}
    assert texts["q81-t1-a-b", "a"] == "a81-1"
    assert texts["q81-t2-a-b", "b"] == "[Turn 1]\nb81-1\n\n[Turn 2]\nb81-2"
    assert run.panel[0].family == "openai"


def test_fastchat_records_that_were_appended_twice_count_once(fastchat):
    jsonl(
        fastchat / "model_judgment" / "gpt-4_pair.jsonl",
        game(81, "a", "b", "model_1", "model_1"),
        game(81, "a", "b", "model_2", "model_2"),
    )
    [run] = convert(fastchat).runs
    assert rankings(run)["q81-t1-a-b", 0, "gpt-4"] == [["b"], ["a"]]
    assert any("2 judgments appeared more than once" in note for note in run.notes)


def test_fastchat_scores_become_rankings_and_a_missing_score_is_told(tmp_path):
    base = {"judge": ["gpt-4", "single-v1"], "turn": 1, "tstamp": 1.0, "judgment": "…"}
    scores = [(81, "a", 8), (81, "b", 9.5), (81, "c", 8), (82, "a", 3), (82, "b", -1)]
    path = jsonl(
        tmp_path / "gpt-4_single.jsonl",
        *[{"question_id": q, "model": m, "score": s, **base} for q, m, s in scores],
    )
    [run] = convert(path).runs
    assert rankings(run) == {
        ("q81-t1", 0, "gpt-4"): [["b"], ["a", "c"]],
        ("q82-t1", 0, "gpt-4"): [["a"]],
    }
    assert any("1 answers have no score" in note for note in run.notes)
    assert any("4 responses: not among the imported files" in note for note in run.notes)
    assert all(r.text is None and r.error for r in run.responses)


# ----------------------------------------------------------------------------- arena-hard


def test_arena_hard_shows_the_baseline_first_and_then_second(tmp_path):
    base = {"uid": "u1", "category": "hard_prompt", "judge": "gpt-4.1", "baseline": "o3"}
    path = jsonl(
        tmp_path / "model_judgment" / "gpt-4.1" / "mine.jsonl",
        {**base, "model": "mine", "games": [{"score": "A>>B"}, {"score": "A>B"}]},
        {**base, "uid": "u2", "model": "mine", "games": [{"score": "A=B"}, {"score": None}]},
        {**base, "uid": "u3", "model": "mine", "games": [{"score": "B<<A"}, None]},
    )
    assert recognise(path) == "arena-hard"
    assert recognise(tmp_path) == "arena-hard"
    [run] = convert(path).runs
    assert rankings(run) == {
        ("u1-mine", 0, "gpt-4.1"): [["o3"], ["mine"]],
        ("u1-mine", 1, "gpt-4.1"): [["mine"], ["o3"]],
        ("u2-mine", 0, "gpt-4.1"): [["mine", "o3"]],
        ("u2-mine", 1, "gpt-4.1"): None,
        ("u3-mine", 0, "gpt-4.1"): [["o3"], ["mine"]],
        ("u3-mine", 1, "gpt-4.1"): None,
    }
    assert page_order(run, "u1-mine", 1) == ["mine", "o3"]
    assert run.judgments[0].flags == ["much better"]
    assert run.items[0].tags == ["hard_prompt"]


def test_arena_hard_with_answers_beside_it_has_texts(tmp_path):
    jsonl(tmp_path / "question.jsonl", {"uid": "u1", "category": "hard", "prompt": "Do it."})
    answer = {"uid": "u1", "model": "mine", "messages": [{"role": "user", "content": "Do it."}]}
    answer["messages"].append({"role": "assistant", "content": {"answer": "Done."}})
    jsonl(tmp_path / "model_answer" / "mine.jsonl", answer)
    old = {"question_id": "u1", "model_id": "old", "choices": [{"turns": [{"content": "No."}]}]}
    jsonl(tmp_path / "model_answer" / "old.jsonl", old)
    record = {"uid": "u1", "model": "mine", "judge": "j", "baseline": "old", "games": []}
    record["games"] = [{"score": "B>A"}, {"score": "B>A"}]
    jsonl(tmp_path / "model_judgment" / "j" / "mine.jsonl", record)
    [run] = convert(tmp_path).runs
    assert {r.candidate: r.text for r in run.responses} == {"old": "No.", "mine": "Done."}
    assert run.items[0].prompt == "Do it."
    assert not any("not among" in note for note in run.notes)


def test_arena_hard_refuses_a_score_it_does_not_know(tmp_path):
    record = {"uid": "u1", "model": "m", "judge": "j", "games": [{"score": "A?B"}]}
    path = jsonl(tmp_path / "m.jsonl", record)
    with pytest.raises(InputError, match=r"m.jsonl:1: games: expected A>>B to B>>A"):
        convert(path)


# ------------------------------------------------------------------------------ AlpacaEval


def test_alpaca_eval_preferences_and_the_ones_that_failed(tmp_path):
    base = {
        "output_1": "base",
        "generator_1": "gpt4_1106_preview",
        "generator_2": "mine",
        "dataset": "helpful_base",
        "annotator": "weighted_alpaca_eval_gpt4_turbo",
        "price_per_example": 0.01,
        "time_per_example": 0.2,
    }
    path = tmp_path / "annotations.json"
    values = [1.99, 1.0, 1.5, None]
    path.write_text(
        json.dumps(
            [
                {"instruction": f"Q{n}", "output_2": "", **base, "preference": value}
                for n, value in enumerate(values)
            ]
        )
    )
    [run] = convert(path).runs
    judge = base["annotator"]
    assert list(rankings(run).values()) == [
        [["mine"], ["gpt4_1106_preview"]],
        [["gpt4_1106_preview"], ["mine"]],
        [["gpt4_1106_preview", "mine"]],
        None,
    ]
    assert {j.judge for j in run.judgments} == {judge}
    assert run.judgments[0].flags == ["preference 1.99"]
    assert run.judgments[3].error == "no preference is recorded"
    assert run.cost_usd == pytest.approx(0.04)
    assert run.wall_s == pytest.approx(0.8)
    assert [p.winner for p in run.verdicts] == ["mine", "gpt4_1106_preview", None, None]
    assert run.responses[1].text == ""
    assert any("order that the judge saw is not recorded" in note for note in run.notes)


def test_alpaca_eval_refuses_a_preference_out_of_range(tmp_path):
    path = tmp_path / "annotations.json"
    record = {"instruction": "Q", "output_1": "a", "output_2": "b", "preference": 0}
    path.write_text(json.dumps([record]))
    with pytest.raises(InputError, match="record 1, preference: expected 1 to 2"):
        convert(path)


def test_a_folder_of_annotations_holds_several_judges(tmp_path):
    for judge, preference in (("one", 1), ("two", 2)):
        record = {
            "instruction": "Q",
            "output_1": "a",
            "output_2": "b",
            "preference": preference,
            "annotator": judge,
        }
        path = tmp_path / "m" / judge / "annotations.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([record]))
    [run] = convert(tmp_path).runs
    assert {key[2]: ranking[0] for key, ranking in rankings(run).items()} == {
        "one": ["output-1"],
        "two": ["output-2"],
    }


# ------------------------------------------------------------------------------- promptfoo


def cell(test, provider, output, *components, **more):
    return {
        "testIdx": test,
        "promptIdx": 0,
        "provider": {"id": f"openai:{provider}", "label": provider},
        "prompt": {"raw": f"Question {test}", "label": "Question {{n}}"},
        "vars": {"n": test},
        "response": {"output": output},
        "latencyMs": 250,
        "cost": 0.001,
        "gradingResult": {"componentResults": list(components)},
        **more,
    }


def grade(kind, score, value="clear", provider=None):
    assertion = {"type": kind, "value": value}
    if provider:
        assertion["provider"] = provider
    return {"pass": score > 0.5, "score": score, "reason": "…", "assertion": assertion}


def promptfoo(tmp_path, *cells):
    path = tmp_path / "out.json"
    document = {"evalId": "eval-1", "results": {"version": 3, "results": list(cells), "stats": {}}}
    path.write_text(json.dumps(document))
    return path


def test_promptfoo_graders_become_judges_and_checks_an_observer(tmp_path):
    path = promptfoo(
        tmp_path,
        cell(
            0,
            "a",
            "yes",
            grade("select-best", 1),
            grade("llm-rubric", 0.4, provider="j:x"),
            grade("llm-rubric", 0.8, "kind", provider="j:x"),
            grade("contains", 0),
        ),
        cell(
            0,
            "b",
            "no",
            grade("select-best", 0),
            grade("llm-rubric", 0.9, provider="j:x"),
            grade("llm-rubric", 0.7, "kind", provider="j:x"),
            grade("contains", 1),
        ),
    )
    assert recognise(path) == "promptfoo"
    export_file = tmp_path / "out.json.gz"
    export_file.write_bytes(gzip.compress(path.read_bytes()))
    assert recognise(export_file) == "promptfoo"
    [run] = convert(path).runs
    assert rankings(run) == {
        ("test-001", 0, "select-best"): [["a"], ["b"]],
        ("test-001", 0, "llm-rubric/j:x"): [["b"], ["a"]],
        ("test-001", 0, "promptfoo:checks"): [["b"], ["a"]],
    }
    roles = {seat.id: seat.role for seat in run.panel}
    assert roles["promptfoo:checks"] == "observer"
    assert roles["select-best"] == "voting"
    [criteria] = run.criteria
    assert criteria.source == "fixed"
    assert [c.name for c in criteria.criteria] == ["clear", "kind"]
    response = run.responses[0]
    assert (response.text, response.latency_s, response.cost_usd) == ("yes", 0.25, 0.001)
    assert run.items[0].prompt == "Question 0"


@pytest.mark.parametrize(
    "spoilt",
    [
        5,
        cell(0, "a", "x", prompt=5),
        cell(0, "a", "x", latencyMs="x"),
        cell(0, "a", "x", cost=-1),
        cell(0, "a", "x", gradingResult={"componentResults": 5}),
        cell(0, "a", "x", grade("llm-rubric", 1) | {"score": "x"}),
    ],
    ids=str,
)
def test_a_record_of_other_types_is_refused(tmp_path, spoilt):
    path = promptfoo(tmp_path, spoilt, cell(0, "b", "y", grade("llm-rubric", 1)))
    with pytest.raises(
        InputError, match=r"out\.json: holds a record that promptfoo does not write"
    ):
        convert(path)


def test_promptfoo_verdicts_that_could_not_be_read_are_failures(tmp_path):
    path = promptfoo(
        tmp_path,
        cell(0, "a", "yes", grade("select-best", 0)),
        cell(0, "b", "no", grade("select-best", 0)),
    )
    [run] = convert(path).runs
    assert rankings(run) == {("test-001", 0, "select-best"): None}
    assert "could not be read" in run.judgments[0].error


def test_promptfoo_outputs_that_failed_are_not_ranked(tmp_path):
    path = promptfoo(
        tmp_path,
        cell(0, "a", "yes", grade("llm-rubric", 1)),
        cell(0, "b", "no", grade("llm-rubric", 0)),
        cell(0, "c", None, error="429", failureReason=2),
        cell(1, "a", "yes", grade("llm-rubric", 1)),
        cell(1, "b", None, error="429", failureReason=2),
    )
    [run] = convert(path).runs
    assert rankings(run) == {("test-001", 0, "llm-rubric"): [["a"], ["b"]]}
    assert len(run.items) == 2
    assert [r.error for r in run.responses if r.text is None] == ["429", "429"]


def test_promptfoo_repeats_are_items_of_one_cluster(tmp_path):
    cells = [cell(0, name, name, grade("llm-rubric", n)) for n, name in enumerate("ab")]
    [run] = convert(promptfoo(tmp_path, *cells, *cells)).runs
    assert [item.item_id for item in run.items] == ["test-001", "test-002"]
    assert [item.cluster for item in run.items] == ["test-001", "test-001"]


def test_promptfoo_prompts_of_one_provider_are_candidates(tmp_path):
    cells = [
        {
            **cell(0, "a", output, grade("llm-rubric", score)),
            "promptIdx": n,
            "prompt": {"raw": f"Prompt {n}", "label": f"p{n}"},
        }
        for n, (output, score) in enumerate([("x", 1), ("y", 0)])
    ]
    [run] = convert(promptfoo(tmp_path, *cells)).runs
    assert rankings(run) == {("test-001", 0, "llm-rubric"): [["a (prompt 1)"], ["a (prompt 2)"]]}
    assert run.items[0].prompt == '{"n": 0}'


# --------------------------------------------------------------------------------- anything


def test_labelled_pairs_are_recognised_as_such(tmp_path):
    record = {"prompt": "Q?", "response_a": "1", "response_b": "2", "label": "A"}
    converted_conversion = convert(jsonl(tmp_path / "mine.jsonl", record))
    assert converted_conversion.format == "pairs"
    assert converted_conversion.runs == ()
    assert len(converted_conversion.dataset.items) == 1


def test_nothing_that_is_known_says_what_is(tmp_path):
    with pytest.raises(InputError, match="alpaca-eval, arena-hard"):
        convert(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        convert(tmp_path / "none")


def test_a_form_without_judgments_is_refused(tmp_path):
    path = jsonl(tmp_path / "x.jsonl", {"prompt": "Q?"})
    with pytest.raises(InputError, match="contains no judgment in the format of fastchat"):
        convert(path, "fastchat")
