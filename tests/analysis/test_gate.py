"""A gate passes on evidence: the bound of an interval, a paired difference, never a missing figure."""

import math

import pytest

from analysis.labelled import pairs, run
from clash.analysis.figures import Figure
from clash.analysis.findings import compute_findings, figures
from clash.analysis.gate import ThresholdRule, check, complete, figure_changes

FOUND = {"concordance": Figure(0.85, 0.79, 0.90), "cost": Figure(2.0)}


def passes(rule, on="bound", findings=FOUND):
    return check([rule], findings, on)[0].passed


def test_an_estimate_is_held_by_its_bound_and_on_request_by_its_point():
    rule = ThresholdRule("concordance", "min", 0.80)
    assert not passes(rule)
    assert passes(rule, "point")
    assert passes(ThresholdRule("concordance", "min", 0.79))
    assert not passes(ThresholdRule("concordance", "max", 0.88))
    assert passes(ThresholdRule("concordance", "max", 0.88), "point")


def test_a_number_without_an_interval_is_held_as_it_is():
    assert passes(ThresholdRule("cost", "max", 2.0))
    assert not passes(ThresholdRule("cost", "max", 1.99))


def test_a_figure_that_is_not_there_fails_and_names_its_neighbours():
    line = check([ThresholdRule("concordence", "min", 0.1)], FOUND)[0]
    assert not line.passed
    assert "concordance" in line.message


def test_a_cost_that_is_a_lower_bound_cannot_pass_a_cap():
    known_figures = {"cost": Figure(1.0, 1.0, math.inf)}
    assert not passes(ThresholdRule("cost", "max", 5.0), findings=known_figures)
    assert passes(ThresholdRule("cost", "max", 5.0), "point", known_figures)


def test_a_run_that_did_not_complete_fails():
    assert complete("complete").passed
    assert not complete("partial").passed


def changes_between(tmp_path, now, before):
    runs = [run(tmp_path, pairs(rows), name=name) for name, rows in (("n", now), ("b", before))]
    named_figures = [figures(compute_findings(data)) for data in runs]
    return figure_changes(*runs, *named_figures)


def test_against_a_baseline_shared_items_are_paired(tmp_path):
    """One item lost in fifty: paired it is a small, sure change; unpaired it would be a wide one."""
    before = [("a", "aaa")] * 40 + [("b", "aaa")] * 10
    now = [("a", "bbb"), *before[1:]]
    change = changes_between(tmp_path, now, before)["concordance"]
    assert change.value == pytest.approx(-0.02)
    assert change.high - change.low < 0.1
    rule = ThresholdRule("concordance", "max-drop", 0.07)
    assert check([rule], {"concordance": change})[0].passed
    assert not check([ThresholdRule("concordance", "max-drop", 0.03)], {"concordance": change})[
        0
    ].passed


def test_the_same_run_again_changes_nothing(tmp_path):
    rows = [("a", "aaa")] * 2 + [("b", "aab")]
    changes = changes_between(tmp_path, rows, rows)
    names = ("concordance", "unanimity", "win_rate.a", "coverage")
    lines = check([ThresholdRule(name, "max-drop", 0) for name in names], changes)
    assert all(line.passed for line in lines)


def test_what_rises_is_held_too():
    assert not check([ThresholdRule("cost", "max-rise", 0.5)], {"cost": Figure(0.6)})[0].passed
    assert check([ThresholdRule("cost", "max-rise", 0.5)], {"cost": Figure(0.4)})[0].passed
