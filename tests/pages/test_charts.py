"""Interval charts: names stay apart, labels never collide, nothing in them is markup."""

import itertools
import re

import pytest

from clash.pages import ChartRow, difference_axis, interval_chart, share_axis, short_names
from clash.pages.charts import _extent

EVIL = "<b onmouseover=alert(1)>\"'\u202e"


def row(name="a", estimate=0.6, low=0.5, high=0.7, **more):
    return ChartRow(name, estimate, low, high, f"{estimate:.0%}", **more)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["luna", "mars"], ["luna", "mars"]),
        (["openrouter/anthropic/claude-haiku-5.5"], ["…/claude-haiku-5.5"]),
        (["x" * 50 + "/a-fine-model", "y"], ["…/a-fine-model", "y"]),
        (["n" * 40], ["…" + "n" * 19]),
    ],
)
def test_a_long_name_loses_its_front(names, short):
    assert list(short_names(names, 20).values()) == short


def test_two_long_names_never_look_alike():
    names = [f"vendor-{letter}/the-same-model-with-a-long-name" for letter in "abc"]
    short = short_names([*names, *names], 20)
    assert len(set(short.values())) == 3
    assert all(text.partition("…")[2] in name for name, text in short.items())


@pytest.mark.parametrize("estimate", [0.02, 0.3, 0.5, 0.51, 0.97])
def test_a_win_rate_axis_is_symmetrical_and_holds_every_value(estimate):
    rows = [row(estimate=estimate, low=max(estimate - 0.04, 0), high=min(estimate + 0.02, 1))]
    axis = share_axis(rows)
    assert axis.low + axis.high == pytest.approx(1)
    assert axis.position(0.5) == pytest.approx(50)
    assert axis.low <= rows[0].low
    assert rows[0].high <= axis.high


@pytest.mark.parametrize(
    "axis",
    [
        share_axis([row()]),
        share_axis([row()], reference=0.25, label="25% = chance"),
        share_axis([row(low=0, high=1)], reference=0.25, label="25% = chance"),
        difference_axis([row(estimate=0.01, low=-0.02, high=0.04)]),
        difference_axis([row(estimate=-0.3, low=-0.9, high=0.1)]),
    ],
)
def test_no_two_labels_of_a_scale_lie_on_each_other(axis):
    scale = interval_chart([row()], axis, label="x").partition('class="scale"')[2]
    labels = re.findall(r'x="([\d.]+)%" y="1rem"[^>]*>([^<]*)<', scale)
    assert len(labels) >= 3
    extents = sorted(_extent(float(x), text) for x, text in labels)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(extents))


def test_a_row_without_an_estimate_has_its_name_and_a_dash_and_draws_nothing():
    html = interval_chart([ChartRow("never", None, note="not judged")], share_axis([]), label="x")
    assert "never" in html
    assert "not judged" in html
    assert "<b>–</b>" in html
    assert "<circle" not in html
    assert 'class="interval"' not in html


def test_nothing_in_a_chart_is_markup_or_hidden():
    evil = row(EVIL, note=EVIL, bounds=EVIL, mark=0.5)
    html = interval_chart([evil], share_axis([evil]), label=EVIL, mark_label=EVIL)
    assert "<b on" not in html
    assert "\u202e" not in html
    assert "style=" not in html
