"""People's win rates from a few labels and all verdicts: beside the panel's, or why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.made import run_data
from clash.analysis.corrected import correction
from clash.analysis.findings import compute_findings
from clash.analysis.serialize import to_dict
from clash.records import Label
from clash.report.sections import report_tables

TWO = ("ada", "bob")


def judged(n, rng, skill=0.85, share=0.6):
    """Who people prefer, and a run whose three judges see it as often as their skill."""
    truth = np.where(rng.random(n) < share, 0, 1)
    table = []
    for t in truth:
        votes = np.where(rng.random(3) < skill, t, 1 - t)
        table.append({j: [[TWO[v]], [TWO[1 - v]]] for j, v in zip("xyz", votes, strict=True)})
    return truth, run_data(table, TWO)


def labelled(data, truth, rows):
    labels = tuple(
        Label(item_id=f"q{i}", annotator="ann", winner=TWO[truth[i]]) for i in sorted(rows)
    )
    return replace(data, labels=labels)


def test_a_random_sample_corrects_a_panel_that_favours_one():
    rng = np.random.default_rng(0)
    truth, data = judged(300, rng, share=0.5)
    # Judges see ada in front wherever they are told so: in a third of bob's items.
    table = [
        {j: [[TWO[0]], [TWO[1]]] for j in "xyz"} if t and rng.random() < 0.4 else None
        for t in truth
    ]
    said = [
        row or {j: [[TWO[t]], [TWO[1 - t]]] for j in "xyz"}
        for row, t in zip(table, truth, strict=True)
    ]
    data = labelled(run_data(said, TWO), truth, rng.permutation(300)[:80].tolist())
    found = correction(data, TWO)
    ada = found.of("ada")
    assert ada.panel > 0.62
    assert ada.bias > 0.1
    assert abs(ada.rate.estimate - np.mean(truth == 0)) < 0.06
    assert ada.rate.half_width < ada.labels_only.half_width


@pytest.mark.slow
def test_the_interval_covers_what_people_prefer():
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(150):
        truth, data = judged(150, rng)
        data = labelled(data, truth, rng.permutation(150)[:50].tolist())
        rate = correction(data, TWO).of("ada")
        if rate is not None:
            covered.append(not rate.rate.excludes(0.6))
    assert len(covered) > 140
    assert np.mean(covered) > 0.91


def test_what_the_panel_was_split_on_is_no_sample_of_all():
    rng = np.random.default_rng(2)
    truth, data = judged(200, rng, skill=0.8)
    split = [i for i, verdict in enumerate(data.verdicts) if not verdict.unanimous]
    found = correction(labelled(data, truth, split[:30]), TWO)
    assert found.rates == ()
    assert "unanimous have a label, too few" in found.refusal
    assert "clash review RUN" in found.refusal


def test_few_labels_are_said_and_none_are_silent():
    rng = np.random.default_rng(3)
    truth, data = judged(60, rng)
    assert correction(data, TWO) is None
    assert "too few (10)" in correction(labelled(data, truth, range(5)), TWO).refusal


def test_all_labelled_is_the_labels():
    rng = np.random.default_rng(4)
    truth, data = judged(60, rng)
    rate = correction(labelled(data, truth, range(60)), TWO).of("bob")
    assert rate.rate == rate.labels_only
    assert rate.rate.estimate == pytest.approx(np.mean(truth == 1))


def test_the_leaderboard_shows_it_beside_the_panels():
    rng = np.random.default_rng(5)
    truth, data = judged(120, rng)
    few = compute_findings(labelled(data, truth, range(6)))
    notes = " ".join(report_tables(few)[0].notes)
    assert "not estimated from 6 labels" in notes
    found = compute_findings(labelled(data, truth, rng.permutation(120)[:60].tolist()))
    board = report_tables(found)[0]
    assert "people put it first" in board.columns
    first = found.leaderboard[0]
    assert first.corrected_rate == found.correction.of(first.candidate).rate
    assert to_dict(found)["leaderboard"][0]["corrected"]["n"] == 60
