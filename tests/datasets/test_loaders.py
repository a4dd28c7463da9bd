"""Each public schema, in a small file of that schema, through the loader that recognises it."""

import csv
import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from clash.datasets import catalogue, loaders
from clash.datasets.dataset import to_prompts
from clash.errors import InputError


def to_parquet(path, records):
    parquet.write_table(pa.Table.from_pylist(records), path)
    return path


def to_json(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records))
    return path


def to_jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def contents_of(dataset):
    """Item: (label, responses by candidate)."""
    texts = dataset.texts()
    return {item.item_id: (item.label, texts[item.item_id]) for item in dataset.items}


def votes(dataset, item_id):
    return {x.annotator: x.winner for x in dataset.labels if x.item_id == item_id}


def talk(*turns):
    roles = ("user", "assistant")
    return [{"content": text, "role": roles[n % 2]} for n, text in enumerate(turns)]


def vote(question, a, b, winner, judge, turn=1):
    texts = {m: [f"{m} first", f"{m} second"] for m in (a, b)}
    turns = [f"question {question}", "and then?"]
    return {
        "question_id": question,
        "model_a": a,
        "model_b": b,
        "winner": winner,
        "judge": judge,
        "conversation_a": talk(turns[0], texts[a][0], turns[1], texts[a][1]),
        "conversation_b": talk(turns[0], texts[b][0], turns[1], texts[b][1]),
        "turn": turn,
    }


def test_mt_bench_merges_both_orders_and_all_annotators_of_a_pair(tmp_path):
    path = to_parquet(
        tmp_path / "human.parquet",
        [
            vote(81, "gpt-4", "alpaca-13b", "model_a", "expert_1"),
            vote(81, "alpaca-13b", "gpt-4", "model_b", "expert_2"),
            vote(81, "alpaca-13b", "gpt-4", "model_a", "expert_3"),
            vote(81, "alpaca-13b", "gpt-4", "tie", "author_1", turn=2),
            vote(121, "alpaca-13b", "gpt-4", "model_a", "expert_1"),
            vote(121, "alpaca-13b", "gpt-4", "tie", "expert_1"),
        ],
    )
    assert loaders.recognise(path) == "mt-bench"
    dataset = loaders.load(path)
    first, second, third = dataset.items
    assert first.item_id == "q81-t1-alpaca-13b-gpt-4"
    assert first.label == "gpt-4"
    assert votes(dataset, first.item_id) == {
        "expert_1": "gpt-4",
        "expert_2": "gpt-4",
        "expert_3": "alpaca-13b",
    }
    assert first.prompt == "question 81"
    assert contents_of(dataset)[first.item_id][1] == {
        "alpaca-13b": "alpaca-13b first",
        "gpt-4": "gpt-4 first",
    }
    assert first.tags == ["writing", "turn-1"]
    assert (first.cluster, second.cluster, third.cluster) == ("q81", "q81", "q121")
    assert second.label == "tie"
    assert [(turn.role, turn.content) for turn in second.turns] == [
        ("user", "question 81"),
        ("user", "and then?"),
    ]
    line = json.loads([*to_prompts(dataset)][1])
    assert line["responses"]["gpt-4"] == ["gpt-4 first", "gpt-4 second"]
    assert "gpt-4 second" in contents_of(dataset)[second.item_id][1]["gpt-4"]
    assert third.tags[0] == "coding"
    assert third.label == "tie"
    assert "1 votes repeat" in dataset.notes[0]
    assert dataset.facts[second.item_id].turns == 2


def battle(question, winner, **more):
    return {
        "question_id": question,
        "model_a": "gpt-4o-2024-05-13",
        "model_b": "gpt-4o-mini-2024-07-18",
        "winner": winner,
        "judge_hash": "abc",
        "conversation_a": talk("Hello?", "Hi."),
        "conversation_b": talk("Hello?", "Yes."),
        "turn": 1,
        "anony": True,
        "language": "English",
        "is_code": False,
        "category_tag": {"math_v0.1": {"math": True}, "criteria_v0.1": {"creativity": True}},
        **more,
    }


def test_arena_100k_keeps_what_the_rules_ask_about(tmp_path):
    path = to_parquet(
        tmp_path / "arena.parquet",
        [
            battle("q1", "model_b"),
            battle("q2", "tie (bothbad)", is_code=True, anony=False, language="Polish"),
            battle("q3", "model_a", conversation_b=talk("Goodbye?", "Yes.")),
            battle(
                "q4",
                "model_a",
                turn=2,
                conversation_a=talk("Hello?", "Hi.", "Bye?", "Bye."),
                conversation_b=talk("Hello?", "Yes.", "Bye?", "No."),
            ),
            battle("q5", "model_a", conversation_a=talk("Hello?")),
        ],
    )
    assert loaders.recognise(path) == "arena"
    dataset = loaders.load(path)
    assert contents_of(dataset)["q1"] == (
        "gpt-4o-mini-2024-07-18",
        {"gpt-4o-2024-05-13": "Hi.", "gpt-4o-mini-2024-07-18": "Yes."},
    )
    assert dataset.items[0].tags == ["math"]
    assert dataset.items[1].tags == ["code", "math"]
    assert dataset.items[1].label == "tie"
    assert votes(dataset, "q2") == {"abc": "both bad"}
    facts = dataset.facts["q2"]
    assert (facts.anonymous, facts.language, facts.turns) == (False, "Polish", 1)
    assert dataset.facts["q4"].turns == 2
    assert contents_of(dataset)["q4"][1]["gpt-4o-2024-05-13"] == "[Turn 1]\nHi.\n\n[Turn 2]\nBye."
    assert {e.item_id: e.reason for e in dataset.exclusions} == {
        "q3": "the two conversations ask different questions",
        "q5": "unreadable conversation: expected 1 questions with an answer each",
    }


def test_arena_with_contents_in_parts_is_read_too(tmp_path):
    def parts(*turns):
        return [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in talk(*turns)]

    record = battle("q1", "both_bad")
    record |= {"id": record.pop("question_id"), "conversation_a": parts("Hello?", "Hi.")}
    record["conversation_b"] = parts("Hello?", "Yes.")
    dataset = loaders.load(to_jsonl(tmp_path / "arena.jsonl", [record]))
    assert contents_of(dataset)["q1"][1]["gpt-4o-2024-05-13"] == "Hi."


def test_arena_55k_reads_json_inside_csv(tmp_path):
    records = [
        ["30192", "a", "b", '["Why?","Why not?"]', '["Because.","So."]', '["Yes","No"]', 1, 0, 0],
        ["65089", "a", "b", '["Say \\"hi\\", now\\n"]', '["hi"]', '["ho"]', 0, 0, 1],
        ["96401", "a", "b", '["Q"]', '["x"]', "[null]", 0, 1, 0],
        ["198779", "a", "b", '["Q"]', '["\\ud83d"]', '["y"]', 0, 1, 0],
    ]
    path = tmp_path / "train.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(
            [
                "id",
                "model_a",
                "model_b",
                "prompt",
                "response_a",
                "response_b",
                "winner_model_a",
                "winner_model_b",
                "winner_tie",
            ]
        )
        out.writerows(records)
    assert loaders.recognise(path) == "arena-55k"
    dataset = loaders.load(path)
    rows_of_dataset = contents_of(dataset)
    assert rows_of_dataset["30192"][0] == "a"
    assert rows_of_dataset["65089"] == ("tie", {"a": "hi", "b": "ho"})
    assert rows_of_dataset["198779"] == ("b", {"a": "\ufffd", "b": "y"})
    assert dataset.items[1].prompt == 'Say "hi", now\n'
    assert dataset.excluded_by_reason() == {"a turn is null": 1}
    assert dataset.facts["30192"].turns == 2


def test_arena_55k_refuses_a_row_with_two_winners(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(
        "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
        '1,a,b,"[""Q""]","[""x""]","[""y""]",1,1,0\n'
    )
    with pytest.raises(InputError, match=r"train.csv:2: winner_model_a: expected exactly one"):
        loaders.load(path)


def test_rewardbench_hides_which_response_is_the_chosen_one(tmp_path):
    records = [
        {
            "prompt": f"Question {n}",
            "chosen": "good",
            "chosen_model": "gpt-4" if n % 2 else "same",
            "rejected": "bad",
            "rejected_model": "human" if n % 2 else "same",
            "subset": "alpacaeval-easy",
            "id": n,
        }
        for n in range(64)
    ]
    dataset = loaders.load(to_parquet(tmp_path / "filtered.parquet", records))
    assert loaders.recognise(tmp_path / "filtered.parquet") == "rewardbench"
    first = [next(iter(texts.values())) for _, texts in contents_of(dataset).values()]
    # 64 fair coins: between 16 and 48 heads but for 1 in 20,000.
    assert 16 <= first.count("good") <= 48
    for label, texts in contents_of(dataset).values():
        assert texts[label] == "good"
    assert dataset.items[0].item_id == "alpacaeval-easy-0"
    assert {"same#a", "same#b"} == set(contents_of(dataset)["alpacaeval-easy-2"][1])


def test_rewardbench_2_is_one_among_four_and_leaves_the_ties_out(tmp_path):
    base = {"prompt": "Q?", "num_correct": 1, "subset": "Math", "models": ["m"]}
    path = to_parquet(
        tmp_path / "test.parquet",
        [
            {**base, "id": "1", "chosen": ["right"], "rejected": ["w1", "w2", "w3"]},
            {**base, "id": "ties:1", "chosen": ["r", "s"], "rejected": ["w"], "num_correct": 2},
        ],
    )
    assert loaders.recognise(path) == "rewardbench-2"
    dataset = loaders.load(path)
    [(label, texts)] = contents_of(dataset).values()
    assert texts[label] == "right"
    assert sorted(texts) == ["response-a", "response-b", "response-c", "response-d"]
    assert dataset.excluded_by_reason() == {"several correct responses, so no single winner": 1}


def test_llmbar_names_its_subset_by_folder(tmp_path):
    path = to_json(
        tmp_path / "Adversarial" / "Neighbor" / "dataset.json",
        [
            {"input": "Do it.", "output_1": "done", "output_2": "no", "label": 1},
            {"input": "Do that.", "output_1": "no", "output_2": "done", "label": 2},
        ],
    )
    dataset = loaders.load(path)
    assert contents_of(dataset) == {
        "Neighbor-000": ("response-a", {"response-a": "done", "response-b": "no"}),
        "Neighbor-001": ("response-b", {"response-a": "no", "response-b": "done"}),
    }
    assert dataset.items[0].tags == ["Neighbor"]


def test_judgebench_tells_two_responses_of_one_model_apart(tmp_path):
    record = {
        "pair_id": "e302",
        "original_id": 1420,
        "source": "mmlu-pro-law",
        "question": "Which?",
        "response_model": "gpt-4o-2024-05-13",
        "response_A": "FFFFF",
        "response_B": "AAAAA",
        "label": "B>A",
    }
    dataset = loaders.load(to_jsonl(tmp_path / "gpt.jsonl", [record]))
    assert contents_of(dataset) == {
        "e302": (
            "gpt-4o-2024-05-13#b",
            {"gpt-4o-2024-05-13#a": "FFFFF", "gpt-4o-2024-05-13#b": "AAAAA"},
        )
    }
    assert dataset.items[0].tags == ["mmlu-pro-law"]


def test_summeval_pairs_each_summary_once_by_the_mean_of_four_dimensions(tmp_path):
    third = 1 / 3
    record = {
        "id": "cnn-1",
        "text": "A long story.",
        "machine_summaries": ["s1", "s2", "s3", "s4", "s5"],
        "human_summaries": ["h"],
        "relevance": [5.0, 4.0, 3 + third, 4.0, 1.0],
        "coherence": [4.0, 4.0, 4.0, 3 + third, 1.0],
        "fluency": [5.0, 4.0, 5.0, 5.0, 1.0],
        "consistency": [5.0, 4.0, 5.0, 5.0, 1.0],
    }
    path = to_parquet(tmp_path / "test.parquet", [record])
    assert loaders.recognise(path) == "summeval"
    dataset = loaders.load(path)
    assert contents_of(dataset) == {
        "cnn-1-01": ("system-01", {"system-01": "s1", "system-02": "s2"}),
        "cnn-1-03": ("tie", {"system-03": "s3", "system-04": "s4"}),
    }
    assert {item.cluster for item in dataset.items} == {"cnn-1"}


def test_pandalm_takes_the_majority_of_three(tmp_path):
    base = {
        "motivation_app": "Grammarly",
        "cmp_key": "bloom-7b_llama-7b",
        "instruction": "Rewrite.",
        "response1": "one",
        "response2": "",
    }
    path = tmp_path / "testset-v1.json"
    records = [
        {"idx": 0, **base, "input": "Text.", "annotator1": 2, "annotator2": 2, "annotator3": 1},
        {"idx": 1, **base, "input": None, "annotator1": 0, "annotator2": 1, "annotator3": 2},
    ]
    # pandas writes a missing input as NaN, which JSON has no word for.
    path.write_text(json.dumps(records).replace("null", "NaN"))
    dataset = loaders.load(path)
    assert contents_of(dataset)["panda-0000"] == ("llama-7b", {"bloom-7b": "one", "llama-7b": ""})
    assert [item.prompt for item in dataset.items] == ["Rewrite.\n\nText.", "Rewrite."]
    assert dataset.items[1].label == "tie"
    assert votes(dataset, "panda-0001") == {
        "annotator1": "tie",
        "annotator2": "bloom-7b",
        "annotator3": "llama-7b",
    }


@pytest.mark.parametrize(
    ("label", "winner"),
    [
        ("A", "x"),
        ("b", "y"),
        ("[[B]]", "y"),
        ("tie", "tie"),
        ("model_a", "x"),
        ("x", "x"),
        ("A>>B", "x"),
        ("B>A", "y"),
        ("A<B", "y"),
        (1, "x"),
        (2, "y"),
        (1.5, "tie"),
        ("tie (bothbad)", "tie"),
    ],
)
def test_a_label_may_be_written_in_many_ways(tmp_path, label, winner):
    record = {"prompt": "Q?", "response_a": "1", "response_b": "2", "model_a": "x", "model_b": "y"}
    dataset = loaders.load(to_jsonl(tmp_path / "any.jsonl", [{**record, "label": label}]))
    assert dataset.items[0].label == winner


def test_a_label_that_is_ambiguous_is_refused_with_the_mend(tmp_path):
    record = {"prompt": "Q?", "response_a": "1", "response_b": "2", "label": 0}
    path = to_jsonl(tmp_path / "any.jsonl", [{**record, "label": "A"}, record])
    with pytest.raises(InputError) as error:
        loaders.load(path)
    assert str(error.value).startswith(f"{path}:2: label: cannot tell the winner from '0'")
    assert "fix: A, B or tie" in str(error.value)


def test_a_table_in_csv_with_other_names_and_several_annotators(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "pair_id,question,answer_a,answer_b,annotator,winner,category,group\n"
        "p1,Why?,because,so,ann,A,math; hard,g1\n"
        "p1,Why?,because,so,bob,B,math; hard,g1\n"
        "p1,Why?,because,so,cid,B,math; hard,g1\n"
        "p2,Who?,me,you,ann,,,\n"
    )
    dataset = loaders.load(path)
    [item] = dataset.items
    assert (item.label, item.tags, item.cluster) == ("response-b", ["math", "hard"], "g1")
    assert votes(dataset, "p1") == {
        "ann": "response-a",
        "bob": "response-b",
        "cid": "response-b",
    }
    assert dataset.excluded_by_reason() == {"no label": 1}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("p1,Why?,because,so,ann,B", "mine.csv:3: item_id: the id appears twice"),
        ("p1,Why?,because,no,bob,B", "mine.csv:3: item_id: the id appears twice, with other"),
    ],
)
def test_a_repeated_id_must_be_another_annotator_on_the_same_pair(tmp_path, second, message):
    path = tmp_path / "mine.csv"
    head = "id,question,answer_a,answer_b,annotator,winner\n"
    path.write_text(head + "p1,Why?,because,so,ann,A\n" + second + "\n")
    with pytest.raises(InputError) as error:
        loaders.load(path)
    assert message in str(error.value)


def test_a_row_without_an_id_gets_one_that_no_other_row_has(tmp_path):
    pair = {"output_1": "x", "output_2": "y", "label": 1}
    rows = [{"id": "pair-0002", "prompt": "a", **pair}, {"prompt": "b", **pair}]
    path = to_jsonl(tmp_path / "mine.jsonl", rows)
    assert [item.item_id for item in loaders.load_file(path).items] == ["pair-0002", "pair-0002-2"]


def test_a_table_without_responses_names_the_column(tmp_path):
    path = to_jsonl(tmp_path / "any.jsonl", [{"prompt": "Q?", "label": "A"}])
    with pytest.raises(InputError, match=r"any.jsonl:1: response_a: is missing"):
        loaders.load(path)


def test_more_than_two_responses_come_by_name(tmp_path):
    record = {"prompt": "Q?", "responses": {"x": "1", "y": "2", "z": "3"}, "label": "z"}
    dataset = loaders.load(to_jsonl(tmp_path / "any.jsonl", [record]))
    assert dataset.items[0].label == "z"
    assert dataset.candidates == ["x", "y", "z"]


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(InputError, match="mt-bench, arena, arena-55k"):
        loaders.load("no-such-set", cache=tmp_path)


def test_a_known_name_that_was_not_pulled_says_how(tmp_path):
    with pytest.raises(InputError, match="clash datasets pull mt-bench"):
        loaders.load("mtbench", cache=tmp_path)


def test_every_catalogue_entry_has_a_loader_and_a_licence():
    names = [name for record in catalogue.datasets() for name in (record.name, *record.aliases)]
    assert len(names) == len(set(names))
    for record in catalogue.datasets():
        assert record.loader in loaders.LOADERS
        assert record.licence
        assert record.files
