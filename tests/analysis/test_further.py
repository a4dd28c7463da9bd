"""What the page shows beyond the findings: length, shared errors, test and retest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.simulated_runs import run_data
from clash.analysis.further import further, longer
from clash.analysis.retest import Retest
from clash.analysis.rundata import RunData
from clash.analysis.shared_errors import SharedErrors, UnknownErrors, shared_errors
from clash.cli.app import run
from clash.records import Label
from clash.report.html import details
from clash.store.folder import RunFolder
from review.runs import judged, plain_prompts

ADA, BOB, TIE = [["ada"], ["bob"]], [["bob"], ["ada"]], [["ada", "bob"]]


def with_texts(data, lengths):
    """Responses of so many characters: (ada's, bob's) by item."""
    size = {f"q{i}": {"ada": a, "bob": b} for i, (a, b) in enumerate(lengths)}
    answers = (
        r.model_copy(update={"text": "x" * size[r.item_id][r.candidate]}) for r in data.responses
    )
    return replace(data, responses=tuple(answers))


def test_the_longer_response_is_counted_for_people_panel_and_judges():
    rows = [{"x": ADA, "y": ADA}, {"x": ADA, "y": BOB}, {"x": TIE, "y": BOB}, {"x": BOB, "y": None}]
    data = with_texts(run_data(rows, ["ada", "bob"]), [(9, 1), (9, 1), (9, 1), (5, 5)])
    data = replace(data, labels=(Label(item_id="q0", annotator="ann", winner="bob"),))
    rates = {line.rater: line.rate for line in longer(data)}
    assert rates["x"].interval.estimate == 1.0
    assert (rates["x"].interval.n, rates["x"].left_out) == (2, 2)  # a tie, and equal lengths
    assert rates["y"].interval.estimate == pytest.approx(1 / 3)
    assert rates["people"].interval.estimate == 0.0
    assert rates["the panel"].interval.n == 2  # q1 is split one to one: a tie


def test_a_judge_that_never_tells_two_lengths_apart_has_no_line():
    data = with_texts(run_data([{"x": TIE, "y": ADA}] * 3, ["ada", "bob"]), [(4, 2)] * 3)
    assert [line.rater for line in longer(data)] == ["the panel", "y"]


def panel(rng, n, copies):
    """Judges that are right in seven of ten, the last ``copies`` of them in the same ones."""
    truth = rng.random(n) < 0.5
    right = rng.random((n, 4)) < 0.7
    right[:, -copies:] = right[:, -1:]
    ada = np.where(right, truth[:, None], ~truth[:, None])
    return [{f"j{k}": ADA if answer else BOB for k, answer in enumerate(row)} for row in ada], truth


def test_with_labels_correlations_are_those_of_the_errors_within_the_classes():
    rows, truth = panel(np.random.default_rng(3), 300, copies=2)
    data = run_data(rows, ["ada", "bob"])
    labels = tuple(
        Label(item_id=f"q{i}", annotator="ann", winner="ada" if t else "bob")
        for i, t in enumerate(truth)
    )
    overlap = shared_errors(replace(data, labels=labels))
    assert isinstance(overlap, SharedErrors)
    assert overlap.truth.from_labels
    votes = np.array([[float(groups is ADA) for groups in row.values()] for row in rows])
    for value in (True, False):
        votes[truth == value] -= votes[truth == value].mean(axis=0)
    assert overlap.correlations == pytest.approx(np.corrcoef(votes.T), abs=1e-9)
    strongest = max(overlap.pairs, key=lambda pair: pair.correlation.estimate)
    assert (strongest.first, strongest.second) == ("j2", "j3")
    assert overlap.effective.by_mean.high < 4


def test_without_labels_a_model_stands_for_the_truth_and_the_page_says_so():
    rows, _ = panel(np.random.default_rng(3), 300, copies=1)
    overlap = shared_errors(run_data(rows, ["ada", "bob"]))
    assert isinstance(overlap, SharedErrors)
    assert not overlap.truth.from_labels
    table = details._shared_errors(overlap)
    assert len(table.rows) == 6
    assert any("too small" in note for note in table.notes)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"x": ADA, "y": BOB, "z": ADA}] * 5, "too few"),
        ([{"x": ADA, "y": BOB}] * 40, "two judges without labels"),
        ([{"x": ADA, "y": None}] * 40, "1 judge"),
        ([{"x": None, "y": None}] * 40, "0 judged pairs"),
    ],
)
def test_where_shared_errors_cannot_be_told_the_reason_is(rows, why):
    overlap = shared_errors(run_data(rows, ["ada", "bob"]))
    assert isinstance(overlap, UnknownErrors)
    assert why in overlap.why
    assert details._shared_errors(overlap).rows


def test_judges_that_always_agree_break_nothing():
    data = run_data([{"x": ADA, "y": ADA, "z": ADA}] * 40, ["ada", "bob"])
    assert details._shared_errors(shared_errors(data)).rows


@pytest.fixture(scope="module")
def rerun(tmp_path_factory):
    first = judged(tmp_path_factory.mktemp("retest"), plain_prompts(12), "first")
    words = ["rerun", str(first.path), "--out", str(first.path.parent), "--yes", "-q"]
    assert run(words) == 0
    return RunFolder(first.path.parent / "first-r1")


def test_a_rerun_is_held_beside_its_parent(rerun):
    retest = further(RunData.load(rerun), rerun.path).retest
    assert isinstance(retest, Retest)
    assert [line.run for line in retest.runs] == ["first", "first-r1"]
    page = (rerun.path / "report.html").read_text()
    assert 'id="test-and-retest"' in page
    assert "The same first place in both runs" in page


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone", "the run gone cannot be read beside this one"),
        ("../../gone", "is not a run id"),
        ("/gone", "is not a run id"),
    ],
)
def test_a_parent_that_is_not_there_is_said_and_looked_for_nowhere_else(rerun, name, why):
    data = RunData.load(rerun)
    data = replace(data, manifest=data.manifest.model_copy(update={"parent": name}))
    further_findings = further(data, rerun.path)
    assert isinstance(further_findings.retest, UnknownErrors)
    assert why in further_findings.retest.why
    assert len(details._retest_tables(further_findings)) == 1


def test_a_run_without_a_parent_has_no_retest(rerun):
    parent = RunFolder(rerun.path.parent / "first")
    assert further(RunData.load(parent), parent.path).retest is None
    assert "test-and-retest" not in (parent.path / "report.html").read_text()
