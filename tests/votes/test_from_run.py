"""A run folder is the votes file it would export, in a frame that no shuffle moves."""

import numpy as np
import pytest

from clash.errors import InputError, RunFolderError
from clash.records import Blinding, Criteria, Criterion, Item, Judgment, Label
from clash.store.folder import RunFolder, RunWriter
from clash.store.manifest import Manifest
from clash.store.stored import ByItem
from clash.votes import read_votes, run_votes, write_votes
from clash.votes.ballots import unblind_rankings
from clash.votes.blinding_index import BlindingIndex
from clash.votes.from_run import score_rows, vote_rows

NAN = np.nan


def judgment(item, judge, ranking, *, presentation=0, role="voting", scores=None):
    return Judgment(
        item_id=item,
        presentation=presentation,
        judge=judge,
        role=role,
        weight=1,
        ranking=ranking,
        scores=scores or {},
        parse="clean" if ranking else "failed",
    )


def page(item, *candidates, presentation=0, judge=None):
    labels = {f"A{i}": name for i, name in enumerate(candidates)}
    return Blinding(item_id=item, presentation=presentation, judge=judge, labels=labels)


@pytest.fixture
def run(tmp_path):
    def make(*records):
        panel = {
            "judges": [
                {"id": "j1", "family": "openai", "role": "voting"},
                {"id": "j2", "family": "google", "role": "voting"},
            ]
        }
        manifest = Manifest(run="r", kind="eval", panel=panel)
        with RunWriter.create(tmp_path, "r", manifest) as writer:
            for record in records:
                writer.append(record)
        return RunFolder.open(tmp_path / "r")

    return make


def pair(item="q1", **more):
    return Item(item_id=item, prompt="?", **more)


A1, A0, TIE = [["A1"], ["A0"]], [["A0"], ["A1"]], [["A0", "A1"]]


def test_two_candidates_are_sides_in_the_order_of_their_names(run):
    folder = run(
        pair("q1", label="zeta", tags=["maths", "hard"]),
        pair("q2", label="tie"),
        page("q1", "zeta", "alpha"),
        page("q2", "alpha", "zeta"),
        judgment("q1", "j1", A0),
        judgment("q1", "j2", None),
        judgment("q2", "j1", A0),
        judgment("q2", "j2", TIE),
    )
    votes = run_votes(folder)
    # A is alpha: in q1 the judge took A0, zeta; in q2 it took A0, alpha.
    assert np.array_equal(votes.matrix, [[0, NAN], [1, 0.5]], equal_nan=True)
    assert votes.labels.tolist() == [0, 0.5]
    assert votes.presentations == ("swap", "orig")
    assert (votes.judges, votes.families) == (("j1", "j2"), ("openai", "google"))
    assert votes.failed.tolist() == [0, 1]
    assert votes.subsets == ("maths", None)
    assert votes.source == str(folder.path)


def test_both_orders_are_two_rows_of_one_group_in_one_frame(run):
    folder = run(
        pair(),
        page("q1", "alpha", "zeta"),
        page("q1", "zeta", "alpha", presentation=1),
        judgment("q1", "j1", A0),
        judgment("q1", "j1", A0, presentation=1),
    )
    votes = run_votes(folder)
    assert sorted(zip(votes.presentations, votes.matrix[:, 0].tolist(), strict=True)) == [
        ("orig", 1.0),
        ("swap", 0.0),
    ]
    assert len(set(votes.groups.tolist())) == 1


def test_shuffles_of_each_judge_stay_in_one_row_and_the_order_is_kept(run):
    folder = run(
        pair(),
        page("q1", "alpha", "zeta", judge="j1"),
        page("q1", "zeta", "alpha", judge="j2"),
        judgment("q1", "j1", A0),
        judgment("q1", "j2", A1),
    )
    votes = run_votes(folder)
    assert votes.matrix.tolist() == [[1, 1]]
    assert [row.extra["order"] for row in vote_rows(folder)] == ["orig", "swap"]


def test_three_candidates_are_three_pairs_of_one_group(run):
    folder = run(
        pair(label="b"),
        page("q1", "c", "a", "b"),
        judgment("q1", "j1", [["A2"], ["A0", "A1"]]),
    )
    votes = run_votes(folder)
    assert votes.items == ("q1#a|b", "q1#a|c", "q1#b|c")
    assert votes.matrix.ravel().tolist() == [0, 0.5, 1]
    assert np.array_equal(votes.labels, [0, NAN, 1], equal_nan=True)
    assert votes.groups.tolist() == [0, 0, 0]
    assert votes.presentations == ("orig", "swap", "swap")


def test_repeats_of_a_prompt_share_its_group(run):
    items = [pair("q1~1", group="q1"), pair("q1~2", group="q1"), pair("q2")]
    pages = [page(item.item_id, "a", "b") for item in items]
    judgments = [judgment(item.item_id, "j1", A0) for item in items]
    assert run_votes(run(*items, *pages, *judgments)).groups.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("winners", "label"),
    [(["b"], 0), (["b", "b", "a"], 0), (["a", "b"], 0.5), (["both bad"], 0.5), ([None], 1)],
)
def test_people_decide_and_else_the_items_label_stands(run, winners, label):
    decisions = [
        Label(item_id="q1", annotator=f"p{i}", winner=winner) for i, winner in enumerate(winners)
    ]
    folder = run(pair(label="a"), page("q1", "a", "b"), judgment("q1", "j1", A0), *decisions)
    assert run_votes(folder).labels.tolist() == [label]


def test_a_ranking_by_a_person_labels_every_pair(run):
    folder = run(
        pair(),
        page("q1", "a", "b", "c"),
        judgment("q1", "j1", [["A0"], ["A1"], ["A2"]]),
        Label(item_id="q1", annotator="p", ranking=[["c"], ["a", "b"]]),
    )
    assert run_votes(folder).labels.tolist() == [0.5, 0, 0]


def test_observers_are_left_out_unless_asked_for(run):
    folder = run(
        pair(),
        page("q1", "a", "b"),
        judgment("q1", "j1", A0),
        judgment("q1", "self", A1, role="observer"),
    )
    assert run_votes(folder).judges == ("j1",)
    assert run_votes(folder, observers=True).judges == ("j1", "self")
    assert [row.extra.get("role") for row in vote_rows(folder, observers=True)] == [
        None,
        "observer",
    ]


def test_filters_are_those_of_a_votes_file(run):
    folder = run(
        pair("q1", label="a"),
        pair("q2"),
        page("q1", "a", "b"),
        page("q2", "b", "a"),
        *(judgment(item, judge, A0) for item in ("q1", "q2") for judge in ("j1", "j2")),
    )
    assert run_votes(folder, judges="*2").judges == ("j2",)
    assert run_votes(folder, presentation="swap").items == ("q2",)
    assert run_votes(folder, decisive=True).items == ("q1",)


def test_an_export_read_again_is_the_run(run, tmp_path):
    folder = run(
        pair("q1", label="c"),
        page("q1", "b", "c", "a"),
        page("q1", "a", "c", "b", presentation=1),
        judgment("q1", "j1", [["A0"], ["A1"], ["A2"]]),
        judgment("q1", "j1", [["A0"], ["A1"], ["A2"]], presentation=1),
        judgment("q1", "j2", None),
    )
    write_votes(tmp_path / "v.csv.gz", vote_rows(folder))
    our_votes, read = run_votes(folder), read_votes(tmp_path / "v.csv.gz")
    assert np.array_equal(our_votes.matrix, read.matrix, equal_nan=True)
    assert np.array_equal(our_votes.labels, read.labels, equal_nan=True)
    assert (our_votes.items, our_votes.presentations) == (read.items, read.presentations)
    assert np.array_equal(our_votes.groups, read.groups)


def test_scores_are_weighted_means_of_each_response(run):
    rubric = [Criterion(name="true", weight=0.75), Criterion(name="short", weight=0.25)]
    scores = {"A0": {"true": 4, "short": 2}, "A1": {"true": 1}}
    folder = run(
        pair(),
        page("q1", "b", "a"),
        Criteria(item_id="q1", source="fixed", criteria=rubric),
        judgment("q1", "j1", A0, scores=scores),
        judgment("q1", "j2", None),
        Label(item_id="q1", annotator="p", scores={"a": {"true": 2, "short": 3}}),
    )
    votes = run_votes(folder, scores=True)
    assert votes.items == ("q1#b", "q1#a")
    assert np.array_equal(votes.matrix, [[3.5, NAN], [1, NAN]], equal_nan=True)
    assert np.array_equal(votes.labels, [NAN, 2.5], equal_nan=True)
    assert votes.kind == "numeric"
    assert votes.groups.tolist() == [0, 0]


def test_votes_and_verdicts_take_the_same_mean_where_no_scored_criterion_is_in_the_rubric(run):
    folder = run(
        pair(),
        page("q1", "b", "a"),
        Criteria(item_id="q1", source="fixed", criteria=[Criterion(name="true", weight=1)]),
        judgment("q1", "j1", TIE, scores={"A0": {"kind": 4, "short": 2}, "A1": {}}),
    )
    rankings = unblind_rankings(
        folder.judgments(),
        BlindingIndex.of(folder.blinding()),
        criteria=ByItem(folder.records(Criteria)),
    )
    assert np.array_equal(rankings["q1"].scores["j1"], [NAN, 3.0], equal_nan=True)  # of a, of b
    rows = {row.item: row.vote for row in score_rows(folder)}
    assert rows == {"q1#b": 3.0, "q1#a": None}


def test_scores_of_one_each_are_scores_still(run):
    folder = run(pair(), page("q1", "a", "b"), judgment("q1", "j1", A0, scores={"A0": {"x": 1}}))
    assert run_votes(folder, scores=True).kind == "numeric"


def test_a_run_without_judgments_is_refused(run):
    with pytest.raises(InputError, match="no judgment that can be used"):
        run_votes(run(pair()))


def test_a_judgment_without_blinding_names_the_file_and_the_mend(run):
    with pytest.raises(RunFolderError, match=r"blinding\.jsonl: lacks .*\n.*clash resume"):
        run_votes(run(pair(), judgment("q1", "j1", A0)))


def test_a_judge_leans_to_whom_more_of_its_pages_put_higher():
    pages = [("q", "j1", [["A0"], ["A1"]]), ("q", "j1", [["A0"], ["A1"]])]
    judgments = [judgment(*page, presentation=n) for n, page in enumerate(pages)]
    judgments.append(judgment("q", "j2", [["A1"], ["A0"]]))
    for second_page, lead in ((("a", "b"), 1.0), (("b", "a"), 0.0)):
        blinds = BlindingIndex.of([page("q", "a", "b"), page("q", *second_page, presentation=1)])
        rankings = unblind_rankings(judgments, blinds, 2)["q"]
        leads = [rankings.lead(judge, 0, 1) for judge in ("j1", "j2", "nobody")]
        np.testing.assert_equal(leads, [lead, -1.0, NAN])
