"""Tables and paths against their equations, computed row by row from the votes as they stand."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from math import comb, exp, log

import numpy as np
import pytest

from clash.stats.selection.families import FAMILIES, fit_family
from clash.stats.selection.joint_table import (
    ALPHAS,
    PULLS,
    cell_pressure,
    hierarchical_backoff,
    joint_table,
    residual_shrinkage,
)
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.paths import PATH_RULES, build_path

OUTCOMES = (0.0, 0.5, 1.0)


def _rows(n: int = 90, judges: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lopsided votes with ties, and labels that depend on two judges together."""
    rng = np.random.default_rng(seed)
    votes = rng.choice(OUTCOMES, (n, judges), p=(0.25, 0.15, 0.6))
    together = (votes[:, 0] == 1) ^ (votes[:, 1] == 1)
    label = np.where(rng.random(n) < 0.85, together, rng.random(n) < 0.5).astype(float)
    return votes, label


def _panel(votes: np.ndarray, label: np.ndarray) -> PanelVotes:
    return PanelVotes.of(votes, label, np.arange(len(label)), "binary")


def _base(label: np.ndarray) -> float:
    return float((label.sum() + 0.5) / (len(label) + 1))


def _by_row(panel: PanelVotes, p: np.ndarray, judges: list[int]) -> np.ndarray:
    return p[panel.cells(judges).of_pattern][panel.pattern][:, 0]


def _setup(train: int = 60, judges: int = 4):
    votes, label = _rows(judges=judges)
    panel = _panel(votes, label)
    everybody = list(range(judges))
    cells = panel.cells(everybody)
    cell_counts = panel.rows(np.arange(train)).evidence(panel.n_patterns).on(cells)
    return votes, label, panel, cells, cell_counts


def _cells(votes: np.ndarray, label: np.ndarray, k: int) -> dict[tuple[float, ...], list[float]]:
    risks = defaultdict(list)
    for row, y in zip(votes[:, :k].tolist(), label.tolist(), strict=True):
        risks[tuple(row)].append(y)
    return risks


@pytest.mark.parametrize("fallback", ["global", "lower-prefix"])
def test_the_joint_table_is_equation_12_row_by_row(fallback):
    votes, label, panel, cells, evidence = _setup()
    posterior = _by_row(
        panel, joint_table(cells, evidence, alpha=0.7, fallback=fallback), [0, 1, 2, 3]
    )
    base = _base(label[:60])
    unseen_share = 0
    for row in range(len(label)):
        expected_risk = base
        for k in range(4, -1, -1):
            inside = _cells(votes[:60], label[:60], k).get(tuple(votes[row, :k].tolist()))
            if inside:
                expected_risk = (sum(inside) + 0.7 * base) / (len(inside) + 0.7)
                break
            unseen_share += k == 4
            if fallback == "global":
                break
        assert posterior[row] == pytest.approx(expected_risk)
    assert unseen_share > 3


def test_alpha_is_the_one_that_predicts_left_out_rows_best():
    """By refitting without each row; the base rate is that of all, as the shortcut has it."""
    votes, label, _, cells, evidence = _setup()
    base = _base(label[:60])

    def risk(alpha: float) -> float:
        total = 0.0
        for row in range(60):
            is_same = (votes[:60] == votes[row]).all(axis=1)
            is_same[row] = False
            p = (label[:60][is_same].sum() + alpha * base) / (is_same.sum() + alpha)
            total += (label[row] - p) ** 2
        return total

    best = min(ALPHAS, key=risk)
    table = joint_table(cells, evidence)
    assert table == pytest.approx(joint_table(cells, evidence, alpha=best))


def test_backoff_is_the_recursion_over_prefixes_row_by_row():
    votes, label, panel, cells, evidence = _setup()
    posterior = _by_row(panel, hierarchical_backoff(cells, evidence, pull=3.0), [0, 1, 2, 3])
    for row in range(len(label)):
        p = _base(label[:60])
        for k in range(1, 5):
            inside = _cells(votes[:60], label[:60], k).get(tuple(votes[row, :k].tolist()), [])
            p = (sum(inside) + 3.0 * p) / (len(inside) + 3.0)
        assert posterior[row] == pytest.approx(p)
    free = hierarchical_backoff(cells, evidence)
    assert any(np.allclose(free, hierarchical_backoff(cells, evidence, pull=x)) for x in PULLS)


def test_the_hybrid_is_equation_13_row_by_row():
    """Scalar prediction + N / (N + tau) times the mean residual of the cell, clipped."""
    votes, label, panel, cells, evidence = _setup()
    scalar = fit_family(FAMILIES["logistic"], cells, evidence)
    base = _by_row(panel, scalar, [0, 1, 2, 3])
    for tau in (1.0, 9.0):
        p = residual_shrinkage(cells, evidence, scalar, pull=tau)
        posterior = _by_row(panel, p, [0, 1, 2, 3])
        for row in range(len(label)):
            is_same = (votes[:60] == votes[row]).all(axis=1)
            n = int(is_same.sum())
            mean = float((label[:60][is_same] - base[:60][is_same]).mean()) if n else 0.0
            expected_risk = min(max(base[row] + n / (n + tau) * mean, 0.0), 1.0)
            assert posterior[row] == pytest.approx(expected_risk)
    assert residual_shrinkage(cells, evidence, scalar, pull=np.inf) == pytest.approx(scalar)


def test_diagnostics_are_those_of_the_rows():
    """H_K, equation 7 by plug-in, unseen rate and the proxy, from counts of patterns."""
    votes, _, panel, _, _ = _setup()
    counts = panel.rows(np.arange(60)).evidence(panel.n_patterns)
    for judges in ([0], [2, 0], [0, 1, 2, 3]):
        count = Counter(tuple(row) for row in votes[:60][:, judges].tolist())
        new = [tuple(row) for row in votes[60:][:, judges].tolist()]
        h = exp(-sum(n / 60 * log(n / 60) for n in count.values()))
        unseen_share = sum(row not in count for row in new) / len(new)
        cell = sum(1 / count[row] for row in new if row in count) / len(new) + unseen_share
        pressure = cell_pressure(panel, judges, counts, panel.pattern[60:])
        assert pressure.h_k == pytest.approx(h)
        assert pressure.unseen == pytest.approx(unseen_share)
        assert pressure.cell_pressure == pytest.approx(cell)
        assert pressure.v == pytest.approx(h / 60 + unseen_share)
        assert pressure.n_occupied == len(count)


def _oracle(votes: np.ndarray, label: np.ndarray, judges: list[int]) -> float:
    """Squared error of the cell means on the block itself."""
    inside = _cells(votes[:, judges], label, len(judges))
    mean = [sum(inside[tuple(row)]) / len(inside[tuple(row)]) for row in votes[:, judges].tolist()]
    return float(((label - np.array(mean)) ** 2).mean())


def _support(votes: np.ndarray, judges: list[int]) -> float:
    share = np.array(list(Counter(map(tuple, votes[:, judges].tolist())).values())) / len(votes)
    return exp(-float((share * np.log(share)).sum()))


def _build(rule: str, votes: np.ndarray, label: np.ndarray, budget: int) -> dict[int, tuple]:
    panel = _panel(votes, label)
    counts = panel.rows(np.arange(len(label))).evidence(panel.n_patterns)
    sizes = range(1, votes.shape[1] + 1)
    return build_path(rule, panel, counts, budget, list(sizes), np.random.default_rng(0)).panels


def test_information_first_orders_by_the_oracle_risk_of_each_alone():
    votes, label = _rows(120, 5, seed=1)
    order = _build("information-first", votes, label, 50)[5]
    risks = [_oracle(votes, label, [j]) for j in order]
    assert risks == sorted(risks)


@pytest.mark.parametrize("budget", [5, 50, 1000])
def test_the_penalised_path_is_equation_4_step_by_step(budget):
    votes, label = _rows(120, 5, seed=2)
    order = list(_build("complexity-penalised", votes, label, budget)[5])
    for k in range(1, 5):
        now, remaining_judges = order[:k], [j for j in range(5) if j not in order[:k]]

        def worth(j: int, now: list[int] = now) -> float:
            cost = max(_support(votes, [*now, j]) - _support(votes, now), 0.0) / budget
            return _oracle(votes, label, now) - _oracle(votes, label, [*now, j]) - cost

        assert worth(order[k]) == pytest.approx(max(worth(j) for j in remaining_judges))


def test_a_dear_label_makes_the_penalised_path_another_than_a_cheap_one():
    """A judge that splits the table finely is taken early only where labels are many."""
    rng = np.random.default_rng(5)
    n = 400
    label = rng.integers(0, 2, n).astype(float)
    plain = np.where(rng.random(n) < 0.70, label, 1 - label)
    finer = np.where(rng.random(n) < 0.74, label, 1 - label)
    finer = np.where(rng.random(n) < 0.33, 0.5, finer)
    votes = np.column_stack([plain, finer])
    first = {m: _build("complexity-penalised", votes, label, m)[1][0] for m in (3, 10**6)}
    risk = [_oracle(votes, label, [j]) for j in (0, 1)]
    assert first[10**6] == int(np.argmin(risk))
    cost = [(_support(votes, [j]) - 1) / 3 for j in (0, 1)]
    assert first[3] == int(np.argmin(np.add(risk, cost)))


def test_the_frontier_puts_forward_the_subset_of_least_risk_and_expected_pressure():
    """Against all subsets of four judges, the binomial expectation summed term by term."""
    votes, label = _rows(80, 4, seed=3)
    budget = 30

    def expected_risk_of(judges: list[int]) -> float:
        total = 0.0
        for count in Counter(map(tuple, votes[:, judges].tolist())).values():
            p = count / len(votes)
            inverse = sum(
                comb(budget, k) * p**k * (1 - p) ** (budget - k) / k for k in range(1, budget + 1)
            )
            total += p * (inverse + (1 - p) ** budget)
        risk = _oracle(votes, label, judges)
        return risk + total * risk

    table = _build("calibration-frontier", votes, label, budget)
    for size in (1, 2, 3, 4):
        best = min(combinations(range(4), size), key=lambda judges: expected_risk_of(list(judges)))
        assert expected_risk_of(list(table[size])) == pytest.approx(expected_risk_of(list(best)))


def test_a_random_path_is_any_order_of_all_judges_and_every_rule_has_every_size():
    votes, label = _rows(60, 5)
    for rule in PATH_RULES:
        panels = _build(rule, votes, label, 40)
        assert {k: len(set(judges)) for k, judges in panels.items()} == {k: k for k in range(1, 6)}
    panel = _panel(votes, label)
    counts = panel.rows(np.arange(60)).evidence(panel.n_patterns)
    first = Counter(
        build_path("random", panel, counts, 40, [5], np.random.default_rng(i)).panels[5][0]
        for i in range(300)
    )
    assert set(first) == set(range(5))
    assert min(first.values()) > 30
