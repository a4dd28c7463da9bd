"""Maps from votes to labels: held to independent software, closed forms and known truth."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection.families import FAMILIES, MENU, fit_family
from clash.stats.selection.joint_table import hierarchical_backoff, joint_table
from clash.stats.selection.panel import Evidence, PanelVotes
from clash.stats.selection.penalised_regression import binomial, multinomial
from clash.stats.selection.scalar import (
    isotonic,
    majority,
    ridge_score,
)

RNG = np.random.default_rng


def additive(n, k=5, seed=0, target="binary"):
    rng = RNG(seed)
    y = rng.random(n) < 0.5
    votes = np.where(rng.random((n, k)) < np.linspace(0.55, 0.8, k), y[:, None], ~y[:, None])
    return PanelVotes.of(votes.astype(float), y.astype(float), np.arange(n), target)


def parity(n, seed=0):
    votes = RNG(seed).integers(0, 2, (n, 3))
    return PanelVotes.of(votes.astype(float), votes.sum(axis=1) % 2, np.arange(n), "binary")


def learn_from(panel, judges=None):
    cells = panel.cells(range(panel.n_judges) if judges is None else judges)
    rows = panel.rows(np.flatnonzero(panel.has_label))
    return cells, rows.evidence(panel.n_patterns).on(cells)


def test_logistic_has_the_optimum_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    panel = additive(300)
    cells, evidence = learn_from(panel)
    odds = binomial(cells.design, evidence.n, evidence.s[:, 0])
    x = np.vstack([cells.design, cells.design])
    y = np.r_[np.ones(len(cells.design)), np.zeros(len(cells.design))]
    weight = np.r_[evidence.s[:, 0], evidence.n - evidence.s[:, 0]]
    reference_fit_result = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(
        x, y, sample_weight=weight
    )
    assert odds == pytest.approx(reference_fit_result.decision_function(cells.design), abs=2e-3)


def test_multinomial_has_the_optimum_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = RNG(6)
    x, counts = rng.normal(size=(80, 5)), rng.integers(0, 4, (80, 3)).astype(float)
    cell, class_index = np.nonzero(counts)
    reference_fit = LogisticRegression(C=1.0, tol=1e-8, max_iter=5000)
    reference_fit.fit(x[cell], class_index, sample_weight=counts[cell, class_index])
    assert multinomial(x, counts) == pytest.approx(reference_fit.predict_proba(x), abs=3e-3)


def test_ridge_is_scikit_learns():
    from sklearn.linear_model import Ridge

    cells, evidence = learn_from(additive(200))
    reference_fit_result = Ridge(alpha=1.0).fit(
        cells.design, evidence.mean[:, 0], sample_weight=evidence.n
    )
    assert ridge_score(cells, evidence)[:, 0] == pytest.approx(
        reference_fit_result.predict(cells.design)
    )


def test_isotonic_without_smoothing_is_scikit_learns_up_to_half_a_row_a_block():
    from sklearn.isotonic import IsotonicRegression

    cells, evidence = learn_from(additive(5000))
    score = ridge_score(cells, evidence)
    reference_fit_result = IsotonicRegression().fit(
        score[:, 0], evidence.mean[:, 0], sample_weight=evidence.n
    )
    our_scores = isotonic(score, evidence)[:, 0]
    assert our_scores == pytest.approx(reference_fit_result.predict(score[:, 0]), abs=0.02)
    assert np.all(np.diff(our_scores[np.argsort(score[:, 0])]) >= -1e-12)


def test_a_score_that_points_the_wrong_way_is_turned():
    cells, evidence = learn_from(additive(2000))
    score = ridge_score(cells, evidence)
    assert isotonic(-score, evidence) == pytest.approx(isotonic(score, evidence), abs=1e-9)


def test_joint_table_is_equation_12_and_falls_back():
    votes = np.array([[1, 1], [1, 1], [1, 0], [0, 0.0], [0, 1]])
    panel = PanelVotes.of(votes, [1, 0, 1, 0, np.nan], np.arange(5), "binary")
    cells, evidence = learn_from(panel)
    base = (2 + 0.5) / (4 + 1)
    p = joint_table(cells, evidence, alpha=0.5)[panel.pattern[[0, 2, 4]], 0]
    assert p == pytest.approx([(1 + 0.5 * base) / 2.5, (1 + 0.5 * base) / 1.5, base])
    prefix = joint_table(cells, evidence, alpha=0.5, fallback="lower-prefix")[panel.pattern[4], 0]
    assert prefix == pytest.approx((0 + 0.5 * base) / 1.5)


def test_backoff_tends_to_the_table_and_to_the_base_rate():
    cells, evidence = learn_from(parity(400))
    table = joint_table(cells, evidence, alpha=1e-9)
    assert hierarchical_backoff(cells, evidence, pull=1e-9) == pytest.approx(table, abs=1e-6)
    flat = hierarchical_backoff(cells, evidence, pull=1e9)
    assert flat == pytest.approx(np.full_like(flat, evidence.base[0]), abs=1e-6)


@pytest.mark.parametrize("name", ["joint-table", "hierarchical-backoff", "residual-shrinkage"])
def test_tables_see_a_parity_that_stackers_cannot(name):
    cells, evidence = learn_from(parity(2000))
    truth = np.nan_to_num(cells.values).sum(axis=1) % 2
    assert fit_family(FAMILIES[name], cells, evidence)[:, 0] == pytest.approx(truth, abs=0.1)
    stacked_scores = fit_family(FAMILIES["logistic"], cells, evidence)[:, 0]
    assert stacked_scores == pytest.approx(np.full(len(stacked_scores), 0.5), abs=0.12)


def test_majority_keeps_every_verdict_whatever_the_labels_say():
    panel = additive(300)
    wrong = PanelVotes.of(
        panel.values[panel.pattern], RNG(1).integers(0, 2, 300), np.arange(300), "binary"
    )
    cells, evidence = learn_from(wrong)
    p, share = majority(cells, evidence)[:, 0], cells.values.mean(axis=1)
    assert np.array_equal(np.sign(p - 0.5), np.sign(share - 0.5))


@pytest.mark.parametrize("name", list(FAMILIES))
@pytest.mark.parametrize("target", ["binary", "three", "scalar"])
def test_every_family_predicts_or_refuses(name, target):
    rng = RNG(2)
    y = rng.choice([0.0, 0.5, 1.0], 240) if target != "binary" else rng.integers(0, 2, 240) * 1.0
    noise = rng.choice([0.0, 0.5, 1.0], (240, 5))
    votes = np.where(rng.random((240, 5)) < 0.6, y[:, None], noise)
    votes[rng.random((240, 5)) < 0.05] = np.nan
    panel = PanelVotes.of(votes, y, np.arange(240), target)
    cells, evidence = learn_from(panel)
    of_sides = {"ising-temperature": ("three",), "expert-pool": ("three", "scalar")}
    if target in of_sides.get(name, ()):
        with pytest.raises(StatisticsError, match=r"two (classes|sides)"):
            fit_family(FAMILIES[name], cells, evidence)
        return
    p = fit_family(FAMILIES[name], cells, evidence)
    assert p.shape == (len(cells.values), cells.n_classes)
    assert np.all((p > 0) & (p < 1))
    if target == "three":
        assert p.sum(axis=1) == pytest.approx(1.0)
    side = p[:, 0] if p.shape[1] == 1 else p[:, 2] + p[:, 1] / 2
    rows = side[cells.of_pattern][panel.pattern]
    assert np.corrcoef(rows, y)[0, 1] > 0.5


def test_one_label_value_gives_a_prediction_near_it_not_a_crash():
    panel = PanelVotes.of(
        RNG(0).integers(0, 2, (40, 4)) * 1.0, np.ones(40), np.arange(40), "binary"
    )
    cells, evidence = learn_from(panel)
    for name in ("majority", "mean-isotonic", "one-coin-isotonic", "logistic", "joint-table"):
        p = fit_family(FAMILIES[name], cells, evidence)
        assert np.isfinite(p).all()
    assert fit_family(FAMILIES["logistic"], cells, evidence).min() > 0.7


def test_nothing_labelled_is_refused():
    cells, evidence = learn_from(additive(50))
    empty = Evidence(evidence.n * 0, evidence.s * 0, evidence.votes)
    with pytest.raises(StatisticsError, match="no labelled row"):
        fit_family(FAMILIES["logistic"], cells, empty)


def test_the_published_table_is_asked_for_by_name_and_not_on_the_menu():
    """Alpha 0.5 and the base rate for unseen patterns: the whole of equation 12."""
    panel = additive(60)
    cells = panel.cells(range(panel.n_judges))
    cell_counts = panel.rows(np.arange(30)).evidence(panel.n_patterns).on(cells)
    family_fit = fit_family(FAMILIES["joint-table-global"], cells, cell_counts)
    edge = 1 / (2 * (30 + 2))
    assert family_fit == pytest.approx(
        joint_table(cells, cell_counts, alpha=0.5).clip(edge, 1 - edge)
    )
    assert "joint-table" in MENU
    assert "joint-table-global" not in MENU
