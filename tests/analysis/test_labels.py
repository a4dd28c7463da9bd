"""The truth of an item is one, whoever reads it: a winner or a ranking, of one person or several."""

import json

import pytest

from analysis.labelled import run as labelled_run
from clash.analysis.concordance.cases import labelled_cases
from clash.analysis.labelled import concordance_with_labels
from clash.analysis.rundata import RunData
from clash.datasets.dataset import Dataset
from clash.datasets.sampling import with_paper_names
from clash.errors import InputError
from clash.labels import ItemLabel, Truth
from clash.records import Item, Label, Response
from clash.review.rater_agreement import agreement
from clash.store.folder import RunFolder
from clash.votes import read_votes
from clash.votes.from_run import vote_rows
from clash.votes.named_rankings import file_rankings, run_rankings

TEXTS = {"a": "text of a", "b": "text of b", "c": "text of c"}


def label(reply, annotator="ann"):
    if isinstance(reply, list):
        return Label(item_id="q", annotator=annotator, ranking=reply)
    return Label(item_id="q", annotator=annotator, winner=reply)


def judged_run(tmp_path, *reply, in_file=None, candidates="abc"):
    """A run of one item that one judge ranked in the order of the names."""
    texts = {name: TEXTS[name] for name in candidates}
    item = {"id": "q", "label": in_file, "says": {"j1": "a"}, "texts": texts}
    labelled_run(tmp_path, [item], judges=("j1",))
    path = tmp_path / "made"
    with (path / "labels.jsonl").open("a", encoding="utf-8") as file:
        for number, record in enumerate(reply):
            file.write(label(record, f"p{number}").model_dump_json() + "\n")
    return RunFolder(path)


def test_a_label_of_an_item_that_the_run_does_not_have_counts_nowhere(tmp_path):
    folder = judged_run(tmp_path, "b")
    with (folder.path / "labels.jsonl").open("a", encoding="utf-8") as file:
        for name in ("other", "further", "other"):
            line = Label(item_id=name, annotator="ann", winner="a")
            file.write(line.model_dump_json() + "\n")
    run, labels = RunData.load(RunFolder(folder.path)).by_label_rule(use_labels=True)
    assert run.truth == {"q": "b"}
    assert (labels.rows, labels.labelled) == (1, 1)
    assert labels.sentence.endswith("labels of 2 items that the run does not have are left out")


@pytest.mark.parametrize(
    ("reply", "winner", "sides"),
    [
        (["b"], "b", {"a|b": "B", "a|c": None, "b|c": "A"}),
        ([[["b"], ["c"], ["a"]]], "b", {"a|b": "B", "a|c": "B", "b|c": "A"}),
        ([[["a", "b"], ["c"]]], "tie", {"a|b": "tie", "a|c": "A", "b|c": "A"}),
        ([[["b"]]], "b", {"a|b": "B", "a|c": None, "b|c": "A"}),
        (["both bad"], "tie", {"a|b": "tie", "a|c": "tie", "b|c": "tie"}),
        ([[["c"], ["b"], ["a"]], "b", [["b"], ["c"], ["a"]]], "b", {"b|c": "A", "a|c": "B"}),
        ([[["a"], ["b", "c"]], "b"], "tie", {"a|b": "tie", "a|c": "A", "b|c": "tie"}),
        ([[]], "c", {"a|b": None, "a|c": "B", "b|c": "B"}),
    ],
)
def test_every_reader_of_a_run_takes_one_truth(tmp_path, reply, winner, sides):
    folder = judged_run(tmp_path, *reply, in_file="c")
    data = RunData.load(folder)
    assert data.truth == {"q": winner}
    assert [case.label for case in labelled_cases(data)] == [winner]
    assert concordance_with_labels(data).concordance.estimate == (winner == "a")
    read = {row.item.removeprefix("q#"): row.label for row in vote_rows(folder)}
    assert {pair: read[pair] for pair in sides} == sides
    assert {pair: data.truths["q"].side(*pair.split("|")) for pair in sides} == sides
    if winner == "tie":
        with pytest.raises(InputError, match="no ranking is left"):
            run_rankings(folder, decisive=True)
    else:
        assert run_rankings(folder, decisive=True).n_items == 1


@pytest.mark.parametrize("reply", ["b", [["b"], ["a"]], [["b"]]])
def test_of_two_candidates_the_winner_and_the_side_are_the_same(tmp_path, reply):
    folder = judged_run(tmp_path, reply, in_file="a", candidates="ab")
    assert RunData.load(folder).truth == {"q": "b"}
    assert [row.label for row in vote_rows(folder)] == ["B"]


def test_the_label_of_the_prompts_file_holds_where_nobody_decided(tmp_path):
    folder = judged_run(tmp_path, None, in_file="b")
    assert RunData.load(folder).truth == {"q": "b"}


def test_of_winner_and_ranking_the_ranking_counts():
    assert ItemLabel("a", [["b"], ["a"]]).choice == "b"
    assert ItemLabel("a", [[], []]).choice == "a"
    assert Truth(()).winner is None


def test_people_who_rank_are_compared_with_each_other_and_with_the_panel(tmp_path):
    data = RunData.load(judged_run(tmp_path, [["a"], ["b"], ["c"]], "a"))
    lines = agreement(data, data.labels, "p0")
    assert [line["with"] for line in lines[:2]] == ["p1", "the panel"]
    assert labelled_cases(data)[0].annotators == {"p0": "a", "p1": "a"}


def test_a_sample_renames_the_candidates_of_a_ranking():
    names = ("gpt-4-0613", "vicuna-13b-v1.3")
    dataset = Dataset(
        "d",
        "here",
        "none",
        items=(Item(item_id="q", prompt="?", label=names[0]),),
        responses=tuple(
            Response(item_id="q", candidate=name, text=name, source="injected") for name in names
        ),
        labels=(Label(item_id="q", annotator="p", ranking=[[name] for name in names]),),
    )
    rows = with_paper_names(dataset)
    assert rows.labels[0].ranking == [[response.candidate] for response in rows.responses]
    assert rows.items[0].label == rows.labels[0].ranking[0][0]


def write_labels(tmp_path, *labels):
    path = tmp_path / "rankings.jsonl"
    lines = [
        {"item": f"q{i}", "judge": j, "ranking": ["a", "b", "c"], "label": label}
        for i, label in enumerate(labels)
        for j in ("j1", "j2")
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_the_label_of_a_votes_file_may_be_a_ranking(tmp_path):
    path = write_labels(tmp_path, [["c"], ["a"], "b"], "b", [["a", "b"], ["c"]], "both bad")
    votes = read_votes(path)
    read = dict(zip(votes.items, votes.labels.tolist(), strict=True))
    expected_votes = {"q0#a|b": 1, "q0#a|c": 0, "q0#b|c": 0, "q1#a|b": 0, "q1#b|c": 1}
    expected_votes |= {"q2#a|b": 0.5, "q2#a|c": 1, "q3#a|b": 0.5, "q3#b|c": 0.5}
    assert {pair: read[pair] for pair in expected_votes} == expected_votes
    assert file_rankings(path, decisive=True).n_items == 2


def test_a_label_that_ranks_a_candidate_twice_names_its_line(tmp_path):
    with pytest.raises(InputError, match=r"rankings.jsonl:3: label: candidate 'a' appears twice"):
        read_votes(write_labels(tmp_path, "a", ["a", "b", "a"]))
