"""Votes files become arrays, and what is wrong with one is said with line, field and hint."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clash.errors import InputError
from clash.votes import VoteRow, encode, read_votes, write_votes

NAN = np.nan
SHARED = Path(__file__).resolve().parents[2] / "../shared/data/votes"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is absent")


def write(tmp_path, *records, name="votes.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def vote(item="q1", judge="a", vote="A", **more):
    return {"item": item, "judge": judge, "vote": vote, **more}


def test_items_by_judges_with_labels_families_and_missing_votes(tmp_path):
    path = write(
        tmp_path,
        vote("q1", "b", "A", label="A", family="x", subset="s"),
        vote("q1", "a", "B", family="y"),
        vote("q2", "b", None, label="B"),
        vote("q2", "c", "A"),
    )
    votes = read_votes(path)
    assert votes.judges == ("a", "b", "c")
    assert votes.families == ("y", "x", None)
    assert votes.items == ("q1", "q2")
    assert np.array_equal(votes.matrix, [[0, 1, NAN], [NAN, NAN, 1]], equal_nan=True)
    assert votes.labels.tolist() == [1, 0]
    assert (votes.kind, votes.label_kind, votes.classes) == ("binary", "binary", (0.0, 1.0))
    assert votes.failed.tolist() == [0, 1, 0]
    assert votes.subsets == ("s", None)
    assert votes.codes().tolist() == [[0, 1, -1], [-1, -1, 1]]
    assert (votes.n_rows, votes.n_items, votes.source) == (2, 2, str(path))


@pytest.mark.parametrize(("outcomes", "kind"), [
    (["A", "B"], "binary"),
    ([1, 0], "binary"),
    ([True, False], "binary"),
    ([1.0, "B"], "binary"),
    (["A", "tie"], "ternary"),
    ([1, 0, "tie"], "ternary"),
    ([3, 4.5], "numeric"),
    ([0.5, 1], "numeric"),
    ([None], "binary"),
])  # fmt: skip
def test_outcomes_say_what_kind_they_are(tmp_path, outcomes, kind):
    path = write(tmp_path, *(vote(f"q{i}", vote=value) for i, value in enumerate(outcomes)))
    assert read_votes(path).kind == kind


def test_ties_are_half_and_the_middle_class(tmp_path):
    votes = read_votes(write(tmp_path, vote(vote="tie", label="A"), vote("q2", label="tie")))
    assert votes.matrix.ravel().tolist() == [0.5, 1]
    assert votes.classes == (0.0, 0.5, 1.0)
    assert votes.codes().ravel().tolist() == [1, 2]
    assert votes.label_codes().tolist() == [2, 1]


def test_scores_stay_scores_whatever_a_filter_leaves(tmp_path):
    path = write(tmp_path, vote(vote=1), vote(judge="b", vote=4))
    votes = read_votes(path, judges="a")
    assert votes.kind == "numeric"
    with pytest.raises(InputError, match="no classes"):
        votes.codes()


def test_swapped_and_repeated_copies_are_rows_of_one_group(tmp_path):
    path = write(
        tmp_path,
        vote("q1", vote="A", presentation="orig", label="A"),
        vote("q1", vote="B", presentation="swap"),
        vote("q1", vote="A", presentation="swap", repeat=1),
        vote("q2", vote="A", presentation="orig"),
    )
    votes = read_votes(path)
    assert votes.items == ("q1", "q1", "q1", "q2")
    assert votes.groups.tolist() == [0, 0, 0, 1]
    assert votes.presentations == ("orig", "swap", "swap", "orig")
    assert votes.repeats == (None, None, "1", None)
    # The label is the item's, wherever it was said.
    assert votes.labelled.tolist() == [True, True, True, False]
    assert read_votes(path, presentation="swap").n_rows == 2


def test_a_group_in_the_file_names_the_cluster(tmp_path):
    path = write(tmp_path, vote("q1a", group="q1"), vote("q1b", group="q1"), vote("q2"))
    assert read_votes(path).groups.tolist() == [0, 0, 1]


def test_a_verdict_over_both_orders_stands_beside_the_original_order(tmp_path):
    rows = [vote(judge="a", presentation="both"), vote(judge="b", presentation="orig")]
    rows += [vote(judge="c"), vote(judge="b", presentation="swap")]
    votes = read_votes(write(tmp_path, *rows))
    assert votes.presentations == ("orig", "swap")
    assert np.isnan(votes.matrix).tolist() == [[False, False, False], [True, False, True]]


def test_a_judge_with_both_kinds_keeps_them_apart(tmp_path):
    rows = [vote(presentation="both"), vote(presentation="orig")]
    votes = read_votes(write(tmp_path, *rows))
    assert sorted(votes.presentations) == ["both", "orig"]


def test_judges_are_chosen_with_wildcards(tmp_path):
    path = write(tmp_path, *(vote(judge=j) for j in ("gpt-4", "gpt-5#s0", "claude#s0", "x[1]")))
    assert read_votes(path, judges="gpt-*").judges == ("gpt-4", "gpt-5#s0")
    assert read_votes(path, judges="gpt-4, *#s0").judges == ("claude#s0", "gpt-4", "gpt-5#s0")
    assert read_votes(path, judges=["x[1]"]).judges == ("x[1]",)


def test_subset_and_decisive_leave_rows(tmp_path):
    path = write(
        tmp_path,
        vote("q1", label="A", subset="hard/1"),
        vote("q2", label="tie", subset="hard/2"),
        vote("q3", subset="easy"),
    )
    assert read_votes(path, subset="hard/*").items == ("q1", "q2")
    assert read_votes(path, decisive=True).items == ("q1",)


@pytest.mark.parametrize(("options", "hint"), [
    ({"judges": "llama*"}, "there is: a, b"),
    ({"subset": "x"}, "there is: s"),
    ({"presentation": "swap"}, "the file has no presentation"),
    ({"decisive": True}, "leave out --decisive"),
])  # fmt: skip
def test_a_filter_that_leaves_nothing_lists_what_there_is(tmp_path, options, hint):
    path = write(tmp_path, vote(subset="s"), vote(judge="b", subset="s"))
    with pytest.raises(InputError) as error:
        read_votes(path, **options)
    assert hint in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(("line", "field", "message"), [
    ('{"item": "q2", "judge": "a"}', None, "vote"),
    ('{"item": "q2", "judge": "a", "vote": "C"}', "vote", "'C' is not an outcome"),
    ('{"item": "q2", "judge": "a", "vote": "1"}', "vote", "'1' is not an outcome"),
    ('{"item": "q2", "judge": "a", "vote": "A", "label": "a"}', "label", "'a' is not an outcome"),
    ('{"item": "q2", "judge": "a", "vote": [1]}', "vote", "array"),
    ('{"item": null, "judge": "a", "vote": 1}', "item", "null"),
    ('{"item": "q2", "judge": "a", "vote": 1', None, "not JSON"),
    ('[1, 2]', None, "array"),
    ('{"item": "q1", "judge": "a", "vote": "B"}', None, "first in line 1"),
    ('{"item": "q2", "judge": "a", "vote": 7}', "vote", "score 7"),
    ('{"item": "q1", "judge": "b", "vote": "B", "label": "B"}', "label", "two labels"),
])  # fmt: skip
def test_what_is_wrong_is_said_with_file_line_and_field(tmp_path, line, field, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(vote(label="A")) + "\n\n" + line + "\n")
    with pytest.raises(InputError) as error:
        read_votes(path)
    assert (error.value.line, error.value.field) == (3, field)
    assert message in str(error.value)
    assert error.value.hint


def test_the_line_is_right_far_into_a_file_and_after_a_filter(tmp_path):
    rows = [vote(f"q{i}", judge="a" if i % 2 else "b") for i in range(20000)]
    path = write(tmp_path, *rows, vote("q19999", judge="a"))
    with pytest.raises(InputError, match="first in line 20000") as error:
        read_votes(path, judges="a")
    assert error.value.line == 20001


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_bytes(b'{"item": "q\xff", "judge": "a", "vote": 1}\n')
    with pytest.raises(InputError) as error:
        read_votes(path)
    assert error.value.line == 1


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_refused(tmp_path, content):
    path = tmp_path / "votes.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no votes"):
        read_votes(path)


def test_files_that_are_not_there_or_damaged_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_votes(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="is a folder"):
        read_votes(tmp_path)
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(json.dumps(vote()).encode() * 100)[:-9])
    with pytest.raises(InputError, match="damaged"):
        read_votes(cut)


def test_numbers_as_ids_are_the_same_as_their_text(tmp_path):
    votes = read_votes(write(tmp_path, vote(7, 1), vote("7", 2)))
    assert votes.items == ("7",)
    assert votes.judges == ("1", "2")


def test_a_byte_order_mark_and_a_missing_last_newline_are_fine(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(vote(f"q{i}")).encode() for i in range(3))
    )
    assert read_votes(path).items == ("q0", "q1", "q2")


def test_csv_holds_the_same_votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(
        'item,judge,vote,label,family,note\nq1,a,A,A,x,"1,2"\nq1,b,tie,,,\nq2,a,,B,x,\nq2,b,1,B,,\n'
    )
    votes = read_votes(path)
    assert np.array_equal(votes.matrix, [[1, 0.5], [NAN, 1]], equal_nan=True)
    assert votes.labels.tolist() == [1, 0]
    assert votes.families == ("x", None)
    assert votes.failed.tolist() == [1, 0]


def test_csv_scores_are_numbers(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,judge,vote\nq1,a,3.5\nq2,a,4\n")
    assert read_votes(path).matrix.ravel().tolist() == [3.5, 4]


@pytest.mark.parametrize(("text", "line", "message"), [
    ("item,vote\nq1,A\n", 1, "no column 'judge'"),
    ("item,judge,vote\nq1,a,A\nq2,a,good\n", 3, "'good' is not an outcome"),
    ('item,judge,vote\n"q\n1",a,A\nq2,,A\n', 4, "is empty"),
    ('item,judge,vote,note\nq1,a,A,"x\ny"\nq2,a,Z,\n', 4, "'Z' is not an outcome"),
])  # fmt: skip
def test_csv_errors_name_the_line(tmp_path, text, line, message):
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_votes(path)
    assert error.value.line == line
    assert message in str(error.value)


def test_csv_that_is_no_text_or_no_csv_is_refused(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes(b"item,judge,vote\nq\xff,a,A\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_votes(path)
    path.write_text('item,judge,vote\nq,"a,A\n')
    with pytest.raises(InputError, match="not CSV"):
        read_votes(path)


def test_a_file_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError

    path = write(tmp_path, vote())
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InputError, match="permission denied"):
        read_votes(path)


@pytest.mark.parametrize("number", ["inf", "-inf", "1e999"])
def test_a_score_without_bound_is_no_outcome(tmp_path, number):
    path = tmp_path / "votes.csv"
    path.write_text(f"item,judge,vote\nq1,a,{number}\n")
    with pytest.raises(InputError, match="not an outcome"):
        read_votes(path)


def test_many_subsets_are_not_all_listed(tmp_path):
    path = write(tmp_path, *(vote(f"q{i}", subset=f"s{i:02d}") for i in range(30)))
    with pytest.raises(InputError, match=r"30 in all"):
        read_votes(path, subset="none")


def test_sparse_tables_are_laid_out_by_sorting(tmp_path):
    """Many repeats of few items make more keys than votes; nothing changes but the road."""
    rows = [VoteRow(f"q{i}", "a", 1, presentation=f"p{i}", repeat=str(i)) for i in range(40)]
    votes = encode(rows)
    assert votes.n_rows == 40
    assert votes.repeats[7] == "7"
    with pytest.raises(InputError, match="second vote"):
        encode([*rows, rows[3]])


ROWS = [
    VoteRow(
        "q1", "a", "A", "A", family="x", group="g", presentation="orig", extra={"model_a": "m"}
    ),
    VoteRow("q1", "b", None, "A", subset="s", repeat="0"),
    VoteRow("q2", "a", "tie", presentation="swap"),
]


@pytest.mark.parametrize("name", ["v.jsonl", "v.jsonl.gz", "v.csv", "v.csv.gz", "V.CSV.GZ"])
def test_what_is_written_is_read_again(tmp_path, name):
    assert write_votes(tmp_path / name, ROWS) == 3
    file_votes, expected_votes = read_votes(tmp_path / name), encode(ROWS)
    assert np.array_equal(file_votes.matrix, expected_votes.matrix, equal_nan=True)
    assert np.array_equal(file_votes.labels, expected_votes.labels, equal_nan=True)
    assert np.array_equal(file_votes.groups, expected_votes.groups)
    assert (file_votes.items, file_votes.judges, file_votes.families) == (
        expected_votes.items,
        expected_votes.judges,
        expected_votes.families,
    )
    assert (file_votes.presentations, file_votes.repeats, file_votes.subsets) == (
        expected_votes.presentations,
        expected_votes.repeats,
        expected_votes.subsets,
    )


def test_further_keys_are_written_and_a_failed_vote_is_a_null(tmp_path):
    path = tmp_path / "v.jsonl"
    write_votes(path, ROWS)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["model_a"] == "m"
    assert lines[1]["vote"] is None
    assert "family" not in lines[1]


def test_the_same_votes_are_the_same_bytes(tmp_path):
    for name in ("one.jsonl.gz", "two.jsonl.gz"):
        write_votes(tmp_path / name, ROWS)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="may not be written"):
        write_votes(tmp_path / "none" / "v.jsonl", ROWS)


def test_taking_rows_keeps_everything_in_step(tmp_path):
    votes = encode([VoteRow(f"q{i}", "a", i % 2, label=i % 2, subset=f"s{i}") for i in range(5)])
    part = votes.take(np.array([False, True, False, True, True]))
    assert part.items == ("q1", "q3", "q4")
    assert part.groups.tolist() == [0, 1, 2]
    assert part.labels.tolist() == [1, 1, 0]
    assert part.subsets == ("s1", "s3", "s4")


def test_more_cells_than_memory_holds_are_refused():
    rows = [VoteRow(f"q{i}", f"j{i}", 1) for i in range(16000)]
    with pytest.raises(InputError, match="--judges"):
        encode(rows)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from([0, 1, None, "tie"])),
        unique_by=lambda t: t[:2],
        min_size=1,
    )
)
def test_every_vote_lands_in_its_cell_and_no_other(triples):
    votes = encode([VoteRow(f"q{i}", f"j{j}", v) for i, j, v in triples])
    cells = {
        (votes.items[r], votes.judges[c]): votes.matrix[r, c]
        for r in range(votes.n_rows)
        for c in range(len(votes.judges))
        if not np.isnan(votes.matrix[r, c])
    }
    expected_votes = {
        (f"q{i}", f"j{j}"): 0.5 if v == "tie" else v for i, j, v in triples if v is not None
    }
    assert cells == expected_votes
    assert votes.failed.sum() == sum(v is None for _, _, v in triples)


# Counts of the data sets' own cards.
@needs_shared
@pytest.mark.parametrize(("name", "items", "judges", "kind"), [
    ("llmbar-processed", 466, 8, "binary"),
    ("llmbar-casestudy", 315, 30, "binary"),
    ("rb2-replicates", 1763, 40, "ternary"),
    ("ta-feedback.part1", 2802, 14, "binary"),
    ("pandalm", 999, 6, "ternary"),
    ("llmfao", 2139, 127, "ternary"),
    ("mtbench-panel", 1814, 15, "ternary"),
    ("llm-rubric", 3511, 26, "numeric"),
    ("amel-llmbar", 100, 8, "binary"),
    ("arena-claude4", 877, 2, "binary"),
])  # fmt: skip
def test_real_panels_have_the_shape_their_cards_say(name, items, judges, kind):
    votes = read_votes(SHARED / f"{name}.votes.jsonl.gz")
    assert (votes.n_items, len(votes.judges), votes.kind) == (items, judges, kind)
    assert len(np.unique(votes.groups)) == items


@needs_shared
def test_majority_on_a_real_panel_is_the_reference_figure():
    """llmbar-processed, orig: 74.2 with ties as half credit (data README)."""
    from clash.stats.scoring import accuracy
    from clash.stats.voting.majority import majority

    votes = read_votes(SHARED / "llmbar-processed.votes.jsonl.gz", presentation="orig")
    assert votes.n_rows == 466
    assert 100 * accuracy(majority(votes.matrix).verdict, votes.labels) == pytest.approx(
        74.2, abs=0.05
    )


def test_a_run_without_votes_is_not_told_what_a_line_of_a_file_is():
    with pytest.raises(InputError, match="`clash resume RUN` finishes it"):
        encode([])
