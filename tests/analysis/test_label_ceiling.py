"""Concordance beside what a perfect judge would reach with the same labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.simulated_runs import run_data
from clash.analysis.findings import compute_findings
from clash.records import Label
from clash.report.concordance import tables
from clash.stats.label_noise import majority_accuracy

TWO = ("ada", "bob")


def labelled_by(people, person, right, n=200, seed=0):
    """A run whose panel is right on a share of items, and whose people each on another."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    verdicts = np.where(rng.random(n) < right, truth, 1 - truth)
    data = run_data([{"x": [[TWO[v]], [TWO[1 - v]]]} for v in verdicts], TWO)
    labels = [
        Label(item_id=f"q{i}", annotator=f"p{k}", winner=TWO[t if rng.random() < person else 1 - t])
        for i, t in enumerate(truth)
        for k in range(people)
    ]
    return replace(data, labels=tuple(labels))


def test_a_perfect_panel_is_at_the_ceiling_and_not_above():
    ceiling = compute_findings(labelled_by(3, 0.8, 1.0)).concordance.ceiling
    assert ceiling.ceiling.estimate == pytest.approx(majority_accuracy(0.8, 3, 2), abs=0.04)
    assert ceiling.of_ceiling == pytest.approx(1, abs=0.05)
    assert ceiling.split.judge_error.estimate < 0.05
    assert ceiling.split.noise.low <= 0.2 <= ceiling.split.noise.high


def test_a_weak_panel_has_an_error_of_its_own_and_the_report_prints_both():
    findings = compute_findings(labelled_by(2, 0.85, 0.7, seed=1))
    ceiling = findings.concordance.ceiling
    assert ceiling.split.panel.low <= 0.7 <= ceiling.split.panel.high
    assert ceiling.concordance.estimate < ceiling.ceiling.low
    table = next(t for t in tables(findings.concordance) if t.title == "Label noise")
    assert [row[0].strip() for row in table.rows[5:7]] == [
        "disagreement with a person: label noise",
        "and judge error",
    ]


@pytest.mark.parametrize(("people", "n"), [(1, 200), (2, 9)])
def test_few_items_with_several_labels_have_no_ceiling(people, n):
    assert compute_findings(labelled_by(people, 0.8, 0.8, n)).concordance.ceiling is None
