"""What nobody else has derived again, derived again: other code on the same data gives the same."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clash.analysis.diagnosis.response_diversity import equivalence
from clash.analysis.prereg import Registration, freeze
from clash.analysis.texts import Texts
from clash.reproduction.simulations.growth import VALIDATION, learn
from clash.stats.diversity import diversity, tfidf_similarity
from clash.stats.selection.regime import RegimeMap
from clash.stats.simulate.interactions import ResampledPanels, regime
from clash.stats.voting.bradley_terry import bradley_terry, count_comparisons
from clash.votes import VoteRow, encode

if TYPE_CHECKING:
    from collections.abc import Callable

ALPHA = 0.5
JUDGES = 7


# -- tables 22 to 24, the semi-real table and the regime map ---------------------------------------


def table_by_dictionary(
    votes: np.ndarray, labels: np.ndarray, half: float = 0.5
) -> Callable[[np.ndarray], float]:
    """Equation 12 with the global fallback, a pattern at a time.

    Our base rate counts half a label more of each side than the paper's, for which ``half`` is 0.
    """
    losses_by_method = defaultdict(list)
    for row, label in zip(votes.tolist(), labels.tolist(), strict=True):
        losses_by_method[tuple(row)].append(label)
    base = (sum(labels) + half) / (len(labels) + 2 * half)

    def predict(row: np.ndarray) -> float:
        own_entry = losses_by_method.get(tuple(row.tolist()), [])
        return (sum(own_entry) + ALPHA * base) / (len(own_entry) + ALPHA) if own_entry else base

    return predict


def grids(law: Callable, seed: int, budgets: tuple[int, ...], test: int = 600):
    """Ours and the rows behind it: the same generator draws the same votes."""
    our_learned = learn(law, budgets, np.random.default_rng(seed), test=test)
    sample = law(max(budgets) + VALIDATION + test, np.random.default_rng(seed))
    return our_learned, sample.votes.astype(float), sample.labels.astype(float)


PANELS = (
    np.random.default_rng(8).integers(0, 2, (300, JUDGES)).astype(float),
    np.repeat(np.random.default_rng(9).integers(0, 2, (200, 1)), JUDGES, axis=1).astype(float),
)
LAWS = {name: regime(name).draw for name in ("additive", "mixed", "parity", "xor", "and")}
LAWS["semi-real"] = ResampledPanels(PANELS, regime("parity")).draw


@pytest.mark.parametrize("name", list(LAWS))
def test_the_errors_of_the_joint_table_are_those_of_a_dictionary(name):
    """Every prefix, on validation and on test rows, and the unseen mass: tables 22 to 24."""
    budgets = (16, 128)
    grid_votes, votes, labels = grids(LAWS[name], 5, budgets)
    n = max(budgets)
    held_out, new = slice(n, n + VALIDATION), slice(n + VALIDATION, None)
    for budget, grid in zip(budgets, grid_votes, strict=True):
        for k in range(1, JUDGES + 1):
            known_votes = votes[:budget, :k]
            predict = table_by_dictionary(known_votes, labels[:budget])
            for rows, errors in ((held_out, grid.validation), (new, grid.test)):
                p = np.array([predict(row) for row in votes[rows, :k]])
                assert errors[0, k - 1] == pytest.approx(np.mean((labels[rows] - p) ** 2))
                as_published = table_by_dictionary(known_votes, labels[:budget], half=0)
                p = np.array([as_published(row) for row in votes[rows, :k]])
                plain = np.mean((labels[rows] - p) ** 2)
                assert errors[0, k - 1] == pytest.approx(plain, abs=0.02 if budget == 16 else 1e-3)
            patterns = set(map(tuple, known_votes.tolist()))
            unseen_share = np.mean([tuple(row) not in patterns for row in votes[new, :k].tolist()])
            assert grid.unseen_share[k - 1] == pytest.approx(unseen_share)


@pytest.mark.parametrize(("name", "sign"), [("additive", -1), ("parity", 1), ("xor", 1)])
def test_scikit_learn_finds_the_same_winner_by_about_the_same(name, sign):
    """Ridge, isotonic and logistic of scikit-learn in place of ours, K by validation as in table 22."""
    linear, isotonic = (
        pytest.importorskip(f"sklearn.{part}") for part in ("linear_model", "isotonic")
    )
    own_losses, reference_losses = [], []
    for seed in range(4):
        (grid,), votes, labels = grids(LAWS[name], seed, (256,), test=2000)
        own_losses.append(grid.gap())
        held_out, new = slice(256, 256 + VALIDATION), slice(256 + VALIDATION, None)
        best = {}
        for k in range(1, JUDGES + 1):
            x = votes[:, :k]
            table = table_by_dictionary(x[:256], labels[:256])
            ridge = linear.Ridge(alpha=1.0).fit(x[:256], labels[:256])
            steps = isotonic.IsotonicRegression(out_of_bounds="clip")
            steps.fit(ridge.predict(x[:256]), labels[:256])
            logistic = linear.LogisticRegression().fit(x[:256], labels[:256])
            for family, p in (
                ("table", np.array([table(row) for row in x])),
                ("scalar", steps.predict(ridge.predict(x))),
                ("scalar", logistic.predict_proba(x)[:, 1]),
            ):
                risks = [np.mean((labels[rows] - p[rows]) ** 2) for rows in (held_out, new)]
                best[family] = min(best.get(family, (9.0, 9.0)), (risks[0], risks[1]))
        reference_losses.append(best["scalar"][1] - best["table"][1])
    assert np.sign(np.mean(own_losses)) == np.sign(np.mean(reference_losses)) == sign
    assert np.mean(own_losses) == pytest.approx(np.mean(reference_losses), abs=0.012)


def test_a_regime_map_names_the_least_mean_risk_of_each_kind():
    """Corollary 1's map: gap and winner of each cell by plain loops over splits."""
    rng = np.random.default_rng(3)
    families = ("joint-table", "ridge-isotonic", "logistic")
    risk = rng.uniform(0.1, 0.3, (5, 2, 3, 3))
    regimes = RegimeMap((10, 20), (1, 2, 3), families, risk)
    for b, budget in enumerate((10, 20)):
        for k in range(3):
            means = [sum(risk[s, b, k, f] for s in range(5)) / 5 for f in range(3)]
            scalar = 1 if means[1] < means[2] else 2
            gaps = [risk[s, b, k, scalar] - risk[s, b, k, 0] for s in range(5)]
            spread = (sum((g - sum(gaps) / 5) ** 2 for g in gaps) / 4 / 5) ** 0.5
            cell = regimes.cell(budget, k + 1)
            assert cell.winner == families[means.index(min(means))]
            assert (cell.gap, cell.se) == pytest.approx((sum(gaps) / 5, spread))


# -- weighted Bradley-Terry, and the plan that is frozen -------------------------------------------


def test_weighted_bradley_terry_is_weighted_logistic_regression():
    """Ballots weighted by their judge's discrimination (pilot, section 2.2b), ties half to each."""
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 4, (2, 900))
    rows_kept = first != second
    first, second = first[rows_kept], second[rows_kept]
    truth = np.array([0.9, 0.2, -0.3, -0.8])
    chance = 1 / (1 + np.exp(truth[second] - truth[first]))
    outcome = np.where(rng.random(len(first)) < 0.3, 0.5, rng.random(len(first)) < chance)
    weight = np.array([1.0, 0.656, 0.266])[rng.integers(0, 3, len(first))]
    our_fit = bradley_terry(
        count_comparisons(first, second, outcome, 4, weight), prior=0, ties="half"
    )
    design = np.zeros((len(first), 4))
    design[np.arange(len(first)), first] = 1
    design[np.arange(len(first)), second] = -1
    twice, sides = np.vstack([design, design]), np.repeat([1, 0], len(first))
    shares = np.concatenate([weight * outcome, weight * (1 - outcome)])
    fit = linear.LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=5000)
    fit.fit(twice[:, :3][shares > 0], sides[shares > 0], shares[shares > 0])
    reference_theta = np.append(fit.coef_[0], 0.0)
    assert our_fit.converged
    assert our_fit.theta - our_fit.theta[3] == pytest.approx(reference_theta, abs=1e-4)


def test_a_frozen_plan_has_the_hash_of_what_its_file_holds():
    """SHA-256 of time and plan as JSON with sorted keys, from the file alone."""
    judge = {"id": "a", "model": "x/y", "role": "voting", "weight": 1.0}
    plan = Registration.model_validate(
        {"panel": [judge], "method": "borda", "tie_break": "none", "outcome": "wins",
         "primary": "café", "candidates": ["café", "b"], "effect": 0.1, "alpha": 0.05,
         "power": 0.8, "items": 100, "criteria": "dynamic", "both_orders": False,
         "per_judge": False}
    )  # fmt: skip
    record = json.loads(json.dumps(freeze(plan, "2026-02-28T12:00:00Z").as_json()))
    seal = record.pop("sha256")
    text = json.dumps(record, sort_keys=True, ensure_ascii=False).encode("utf-8")
    assert hashlib.sha256(text).hexdigest() == seal
    assert hashlib.sha256(text.replace(b"0.05", b"0.06")).hexdigest() != seal


def test_how_far_diversity_explains_deciding_is_scikit_learns_r2():
    """Adjusted R2 of the items' rates of decided ballots, judges' own rates taken out first."""
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(6)
    words = [f"w{k}" for k in range(400)]
    rows, texts, rates = [], {}, {"a": 0.3, "b": -0.6, "c": 0.0}
    for i in range(60):
        apart = rng.random()
        base = rng.choice(words, 30)
        other_indices = np.where(rng.random(30) < apart, rng.choice(words, 30), base)[
            : rng.integers(15, 31)
        ]
        texts[f"q{i:02}"] = Texts(" ".join(base), " ".join(other_indices))
        for judge, ease in rates.items():
            is_decided = rng.random() < 1 / (1 + np.exp(-(5 * (apart - 0.5) + ease)))
            rows.append(VoteRow(f"q{i:02}", judge, "A" if is_decided else "tie"))
    votes = encode(rows)
    estimate = equivalence(votes, texts, seed=1).r2.estimate
    decided = (votes.matrix != 0.5).astype(float)
    y = (decided - decided.mean(axis=0)).mean(axis=1)
    pairs = [texts[item] for item in votes.items]
    firsts, seconds = [p.first for p in pairs], [p.second for p in pairs]
    x = diversity(firsts, seconds, tfidf_similarity(firsts, seconds))
    x = x[:, x.std(axis=0) > 1e-9]
    plain = linear.LinearRegression().fit(x, y).score(x, y)
    n, features = x.shape
    assert estimate == pytest.approx(1 - (1 - plain) * (n - 1) / (n - features - 1))
    assert 0.1 < estimate < 0.9
