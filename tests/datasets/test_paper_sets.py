"""The papers' data sets come out as their appendices prepare them, from files of the publishers' schemas."""

import json
import zipfile

import pytest
import yaml

from clash import assets
from clash.cli.app import run
from clash.config import Config
from clash.datasets import catalogue, loaders, pull, record_files
from clash.datasets.paper_sets import PAPER_SETS, prepare_set
from clash.documents import read_yaml, validate
from clash.errors import DownloadError, InputError

LONG = "x" * 100


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        columns = list(rows[0])
        lines = [",".join(columns), *(",".join(str(row[c]) for c in columns) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def wikiqa(question, *answers):
    return [
        {"question_id": question, "question": f"Ask {question}?", "document_title": "T",
         "answer": text, "label": label}
        for text, label in answers
    ]  # fmt: skip


def comment(n, toxicity, annotators=5, text=LONG):
    return {"id": n, "comment_text": text if text == "short" else f"{text}{n}", "toxicity": toxicity,
            "toxicity_annotator_count": annotators}  # fmt: skip


def battle(n, winner="model_a", language="English", answer="fine"):
    def side(text):
        return [{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": text}]

    return {"question_id": f"b{n}", "model_a": "m1", "model_b": "m2", "winner": winner,
            "conversation_a": side(answer), "conversation_b": side("other"), "turn": 1,
            "language": language}  # fmt: skip


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def convert(*words):
    assert run(["datasets", "convert", *map(str, words), "--json"]) == 0


def test_wikiqa_is_a_passage_a_question_relevant_if_one_sentence_answers(tmp_path):
    """Appendix H.1, tables 5 and 6."""
    rows = [*wikiqa("Q1", ("A.", 0), ("B.", 1)), *wikiqa("Q2", ("C.", 0), ("D.", 0))]
    convert(write(tmp_path / "w.jsonl", rows), "--from", "wikiqa", "--out", tmp_path / "out")
    first, second = lines(tmp_path / "out", "wikiqa.jsonl")
    assert first == {"id": "Q1", "prompt": "Ask Q1?", "label": "relevant", "response": "A. B."}
    assert (second["response"], second["label"]) == ("C. D.", "irrelevant")
    config = yaml.safe_load((tmp_path / "out" / "wikiqa.yaml").read_text())
    assert set(config["judging"]["labels"]) == {"relevant", "irrelevant"}
    assert config["prompts"] == "wikiqa.jsonl"


def test_jigsaw_keeps_long_comments_of_five_annotators_a_thousand_a_bucket(tmp_path):
    """Appendix H.2: buckets by quarter, toxic from one half on, the draw by its seed."""
    rows = [comment(n, share) for n, share in enumerate([0, 0.24, 0.25, 0.5, 0.75, 1.0])]
    rows += [comment(100, 0.1, annotators=4), comment(101, 0.1, text="short")]
    rows += [comment(1000 + n, 0.3) for n in range(1005)]
    file = write(tmp_path / "test_private_expanded.csv", rows)
    ready = prepare_set("jigsaw", file, 1)
    labels = {item.item_id: item.label for item in ready.dataset.items}
    assert [labels[str(n)] for n in (0, 1, 3, 4, 5)] == ["not toxic"] * 2 + ["toxic"] * 3
    assert sum(item.tags == ["0.25-0.5"] for item in ready.dataset.items) == 1000
    account = json.loads(ready.account)
    assert account["counts"]["excluded"] == {
        "not drawn: 1,000 of each bucket are": 6,
        "fewer than 5 annotators": 1,
        "shorter than 100 characters": 1,
    }
    ids = [item.item_id for item in ready.dataset.items]
    assert ids == [item.item_id for item in prepare_set("jigsaw", file, 1).dataset.items]
    assert ids != [item.item_id for item in prepare_set("jigsaw", file, 2).dataset.items]


def test_a_comment_is_the_text_itself(tmp_path):
    convert(write(tmp_path / "c.jsonl", [comment(1, 0.9)]), "--from", "jigsaw", "--out", tmp_path)
    (row,) = lines(tmp_path, "jigsaw.jsonl")
    assert row == {"id": "1", "prompt": f"{LONG}1", "tags": ["0.75-1"], "label": "toxic"}


def test_a_comment_can_be_judged_and_measured(tmp_path, capsys):
    """The whole way, without a key: four baselines label three comments, against people's labels."""
    rows = [comment(n, share) for n, share in enumerate((0.1, 0.6, 0.9))]
    convert(write(tmp_path / "c.jsonl", rows), "--from", "jigsaw", "--out", tmp_path)
    capsys.readouterr()
    words = ["validate", tmp_path / "jigsaw.jsonl", "-c", tmp_path / "jigsaw.yaml", "--json"]
    words += ["--panel", "baseline", "--out", tmp_path / "runs", "--yes"]
    assert run(list(map(str, words))) in (0, 3)
    assert json.loads(capsys.readouterr().out)["coverage"]["items"] == 3


def test_the_same_text_twice_is_one_item(tmp_path):
    rows = [comment(1, 0.1), {**comment(1, 0.2), "id": 2}]
    ready = prepare_set("jigsaw", write(tmp_path / "c.jsonl", rows), 0)
    assert [item.item_id for item in ready.dataset.items] == ["1"]
    (left_out,) = ready.dataset.exclusions
    assert (left_out.item_id, left_out.reason) == ("2", "same prompt and responses as another item")


def test_phoenix_is_read_from_its_archive(tmp_path):
    rows = [
        {"document": "News.", "summary": "Right.", "user_feedback": True},
        {"document": "News.", "summary": "Wrong.", "user_feedback": False},
    ]
    archive = tmp_path / "summarization-test.jsonl.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("summarization-test.jsonl", "\n".join(map(json.dumps, rows)))
    ready = prepare_set("phoenix-summarization", archive, 0)
    assert [item.label for item in ready.dataset.items] == ["good", "bad"]
    assert {item.group for item in ready.dataset.items} == {"summary-0001"}


def test_summeval_is_a_score_for_each_summary_grouped_by_its_text(tmp_path):
    row = {"id": "n1", "text": "News.", "machine_summaries": ["s1", "s2"], "relevance": [1, 2],
           "coherence": [3.3333333, 5], "fluency": [1, 1], "consistency": [1, 1]}  # fmt: skip
    ready = prepare_set("summeval", write(tmp_path / "s.jsonl", [row]), 0)
    assert [(i.label, i.group) for i in ready.dataset.items] == [("3.33333", "n1"), ("5", "n1")]
    assert yaml.safe_load(ready.config)["judging"]["scale"] == "1-5"


def test_pairs_are_judged_in_both_orders(tmp_path):
    rows = [
        {"prompt": f"p{n}", "chosen": "good", "rejected": "bad", "chosen_model": "m",
         "rejected_model": "n", "subset": "chat", "id": n}
        for n in range(1002)
    ]  # fmt: skip
    ready = prepare_set("rewardbench", write(tmp_path / "r.jsonl", rows), 0)
    assert [i.item_id for i in ready.dataset.items][-1] == "chat-999"
    assert yaml.safe_load(ready.config)["blinding"] == {"both_orders": True}


def test_llmbar_is_a_folder_of_five_subsets(tmp_path):
    subsets = [
        "Natural",
        *(f"Adversarial/{n}" for n in ("Neighbor", "GPTInst", "GPTOut", "Manual")),
    ]
    row = {"input": "Do.", "output_1": "x", "output_2": "y", "label": 2}
    for subset in subsets:
        path = tmp_path / subset / "dataset.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([{**row, "input": subset}]))
    items = prepare_set("llmbar", tmp_path, 0).dataset.items
    assert {item.tags[0] for item in items} == {s.rpartition("/")[2] for s in subsets}


def test_arena_keeps_english_battles_with_a_winner_and_short_texts(tmp_path):
    rows = [battle(0, "tie"), battle(1, language="German"), battle(2, answer="y" * 20_001)]
    rows += [battle(n) for n in range(3, 805)]
    ready = prepare_set("arena-100k", write(tmp_path / "a.jsonl", rows), 0)
    assert len(ready.dataset.items) == 800
    assert json.loads(ready.account)["counts"]["excluded"] == {
        "after the first 800": 2,
        "a tie": 1,
        "not English": 1,
        "more than 5,000 tokens, at 4 characters each": 1,
    }


def test_a_pulled_set_is_converted_by_its_name(start_hub, tmp_path, monkeypatch, capsys):
    content = "".join(json.dumps(row) + "\n" for row in wikiqa("Q1", ("A.", 1))).encode()
    hub = start_hub(files={"data/test.jsonl": content})
    record = catalogue.find("wikiqa").model_copy(update={"files": ["data/*.jsonl"]})
    monkeypatch.setattr(catalogue, "find", lambda _: record)
    monkeypatch.setenv("CLASH_CACHE", str(tmp_path / "cache"))
    assert run(["datasets", "convert", "wikiqa", "--out", str(tmp_path / "out")]) == 2
    assert "clash datasets pull wikiqa" in capsys.readouterr().err
    assert run(["datasets", "pull", "wikiqa", "--base-url", hub.url, "-q"]) == 0
    assert run(["datasets", "convert", "wikiqa", "--out", str(tmp_path / "out")]) == 0
    assert len(lines(tmp_path / "out", "wikiqa.jsonl")) == 1


def test_what_asks_for_agreement_is_not_pulled(tmp_path):
    with pytest.raises(DownloadError, match=r"--from jigsaw"):
        pull.pull(catalogue.find("jigsaw"), tmp_path)


def test_a_file_that_never_ends_is_refused(start_hub, tmp_path, monkeypatch):
    hub = start_hub(files={"data/test.parquet": b"x" * 5000})
    monkeypatch.setattr(pull, "MOST_BYTES", 4000)
    with pytest.raises(DownloadError, match="is larger than"):
        pull.pull(catalogue.find("wikiqa"), tmp_path, base_url=hub.url, attempts=1)


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("wikiqa", {"question": "q", "answer": "a", "label": 1}, "question_id"),
        ("wikiqa", {"question_id": "1", "question": "q", "answer": "a", "label": "x"}, "1 or 0"),
        ("jigsaw", comment(1, "much"), "a number"),
        ("jigsaw", comment(1, 7), "share from 0 to 1"),
        ("phoenix-summarization", {"document": "d", "summary": "s"}, "user_feedback"),
        (
            "summeval",
            {"id": "1", "text": "t", "machine_summaries": ["s"], "coherence": []},
            "score",
        ),
    ],
)
def test_another_schema_is_refused_with_the_place(tmp_path, name, row, message):
    with pytest.raises(InputError, match=message) as error:
        prepare_set(name, write(tmp_path / "x.jsonl", [row]), 0)
    assert "x.jsonl" in str(error.value)


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04 broken", b"", "two", "bomb"], ids=["broken", "empty", "two", "bomb"]
)
def test_an_archive_that_is_none_is_refused(tmp_path, content, monkeypatch):
    monkeypatch.setattr(record_files, "unpacked_bound", lambda _size: 1000)
    path = tmp_path / "x.jsonl.zip"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("a.jsonl", "{}\n" * (1000 if content == "bomb" else 1))
            if content == "two":
                file.writestr("b.jsonl", "{}\n")
    with pytest.raises(InputError):
        list(record_files.rows(path))


def test_a_text_data_set_is_recognised_by_its_fields(tmp_path):
    file = write(tmp_path / "w.jsonl", wikiqa("Q1", ("A.", 1)))
    assert loaders.recognise(file) == "wikiqa"


@pytest.mark.parametrize("name", sorted(PAPER_SETS))
def test_every_set_has_its_entry_and_its_question(name):
    assert catalogue.find(name)
    task = PAPER_SETS[name].config
    config = read_yaml(assets.path("configs", "tasks", f"{task}.yaml")).value
    assert config["panel"] in assets.panels()
    assert config["criteria"] == {"mode": "none"}
    assert validate(Config, read_yaml(assets.path("configs", "tasks", f"{task}.yaml")))
