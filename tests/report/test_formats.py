"""Numbers as text: one format for each kind, and a dash for what is not there."""

import math

import pytest

from clash import wording
from clash.report import formats
from clash.report.tables import Table, cut_note, with_rows
from clash.stats.intervals import Interval


def interval(estimate, low, high):
    return Interval(estimate, low, high, 0.95, 100, 100, "test")


@pytest.mark.parametrize(
    ("text", "expected_value"),
    [
        (formats.percent(interval(0.714, 0.6, 0.8)), "71% [60, 80]"),
        (formats.percent(interval(0.714, 0.6, 0.8), digits=1), "71.4% [60.0, 80.0]"),
        (formats.bounds(interval(0.714, 0.6, 0.8)), "[60.0, 80.0]"),
        (formats.points(interval(0.061, 0.01, 0.112)), "+6.1 [+1.0, +11.2]"),
        (formats.points(interval(0.061, -math.inf, math.inf)), "+6.1 –"),
        (formats.estimate(interval(0.5, -0.001, 1), 2), "0.50 [0.00, 1.00]"),
        (formats.estimate(interval(0.5, -0.001, 1), 2, sign="+"), "+0.50 [-0.00, +1.00]"),
        (formats.number(0.5, ".0%"), "50%"),
        (formats.p_cell(0.0004), "< 0.001"),
        (formats.money(1.5), "$1.50"),
        (formats.money(0.0125), "$0.0125"),
        (formats.money(0.71), "$0.71"),
        (formats.money(0.0008), "$0.0008"),
        (formats.money(0.00012), "$0.00012"),
        (wording.plural(1, "run"), "1 run"),
        (wording.plural(2, "run"), "2 runs"),
        (wording.decimal(12.8333), "12.8"),
        (formats.money(None), "unknown"),
        (formats.seconds(0.35), "350 ms"),
        (formats.counts({"refusal": 1, "timeout": 3}), "3 timeout, 1 refusal"),
        (formats.first_names(["a", "b", "c"], 2), "a, b and 1 more"),
        (formats.first_names(["a", "b"], 2), "a, b"),
    ],
)
def test_a_number_is_written_as_its_kind_is(text, expected_value):
    assert text == expected_value


@pytest.mark.parametrize("value", [None, interval(math.nan, math.nan, math.nan)])
def test_what_is_not_there_is_a_dash(value):
    for form in (formats.percent, formats.points, formats.estimate):
        assert form(value) == formats.DASH
    assert formats.number(math.nan, ".3f") == formats.number(None, ".3f") == formats.DASH


def test_tables_without_rows_are_left_out_and_cut_rows_are_counted():
    table = Table("t", ["a"], [["1"]])
    assert with_rows([None, Table("empty", ["a"], []), table]) == [table]
    assert cut_note(43, 40) == ["3 more in report.json"]
    assert cut_note(40, 40) == []
