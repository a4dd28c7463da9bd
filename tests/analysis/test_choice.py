"""Whom to take under a price and a time: runs whose costs, times and winners are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.simulated_runs import run_data
from clash.analysis.choice import ChoiceLimits, choose
from clash.errors import ClashError, ConfigError, InputError
from clash.pipeline.amounts import assignments, seconds_of
from clash.records import Label, Response
from clash.report.choice import choice_headline, choice_screen, tables

NAMES = ["ada", "bob", "cyd"]
COSTS = {"ada": 0.03, "bob": 0.01, "cyd": 0.001}
TIMES = {"ada": 2.0, "bob": 0.5, "cyd": 0.2}


def measured_data(n=40, bob_first=10, costs=COSTS, times=TIMES):
    """``n`` items: ada wins, bob wins the first ``bob_first`` of them, cyd is always last."""
    orders = [
        [["bob"], ["ada"], ["cyd"]] if i < bob_first else [["ada"], ["bob"], ["cyd"]]
        for i in range(n)
    ]
    return with_figures(run_data([{"x": order} for order in orders], NAMES), costs, times)


def with_figures(data, costs=COSTS, times=TIMES):
    """The run, with what each response cost and took."""
    return replace(
        data,
        responses=tuple(
            Response(
                item_id=response.item_id,
                candidate=response.candidate,
                text="x",
                source="generated",
                cost_usd=costs.get(response.candidate),
                latency_s=times.get(response.candidate),
            )
            for response in data.responses
        ),
    )


def test_limits_pick_the_best_of_those_that_keep_them():
    run = measured_data()
    assert choose(run, ChoiceLimits()).candidate == "ada"
    under = choose(run, ChoiceLimits(cost_usd=0.02))
    assert (under.candidate, under.without_limits) == ("bob", "ada")
    assert choose(run, ChoiceLimits(latency_s=0.3)).candidate == "cyd"
    nobody = choose(run, ChoiceLimits(cost_usd=0.0005))
    assert nobody.candidate is None
    assert choice_headline(nobody).text == "No candidate stays under $0.0005 a call."
    assert "cyd at $0.0010" in choice_headline(nobody).evidence


def test_worth_buys_the_dearer_one_only_where_its_wins_pay():
    run = measured_data()
    # ada's win rate is 7/8, bob's 5/8, and ada costs two cents more: the turn is at eight cents.
    assert choose(run, ChoiceLimits(worth_usd=0.07)).candidate == "bob"
    assert choose(run, ChoiceLimits(worth_usd=0.09)).candidate == "ada"
    question = next(q for q in choose(run, ChoiceLimits()).questions if q.cheaper == "bob")
    assert question.ratio == pytest.approx(3)
    assert question.preferred.estimate == pytest.approx(0.75)
    assert question.usd_per_win.estimate == pytest.approx(0.02 / 0.5)
    assert question.usd_per_win.low < 0.04 < question.usd_per_win.high


def test_the_price_of_a_win_is_within_its_own_interval_where_all_labels_name_the_dearer():
    order = [["ada"], ["bob"]]
    rows = [dict.fromkeys("xyz", order if i % 20 else order[::-1]) for i in range(60)]
    labels = tuple(Label(item_id=f"q{i}", annotator="ann", winner="ada") for i in range(40))
    run = replace(with_figures(run_data(rows, NAMES[:2])), labels=labels)
    (question,) = choose(run, ChoiceLimits()).questions
    price = question.usd_per_win
    assert price.estimate == pytest.approx(0.02)
    assert price.low <= price.estimate <= price.high


def test_a_sure_choice_has_no_regret_and_a_level_one_has():
    sure = choose(measured_data(bob_first=0), ChoiceLimits()).option("ada")
    level = choose(measured_data(bob_first=19), ChoiceLimits()).option("ada")
    assert sure.p_best > 0.99
    assert sure.regret < 0.001
    assert 0.5 < level.p_best < 0.8
    assert 0 < level.regret < level.regret_high < 0.3
    assert sure.p_front == 1


def test_candidates_without_a_figure_are_named_and_can_be_given_one():
    run = measured_data(costs={"bob": 0.01, "cyd": 0.001})
    choice = choose(run, ChoiceLimits(cost_usd=0.02))
    assert (choice.candidate, choice.unknown) == ("bob", ["ada"])
    assert "--price ada=0.002" in choice_headline(choice).notes[0]
    stated_choice = choose(run, ChoiceLimits(cost_usd=0.02, prices={"ada": 0.015}))
    assert (stated_choice.candidate, stated_choice.option("ada").cost_source) == ("ada", "given")
    with pytest.raises(InputError, match=r"no candidate has a latency[\s\S]*--latency ada=800ms"):
        choose(measured_data(times={}), ChoiceLimits(latency_s=1.0))
    with pytest.raises(ConfigError, match=r"no candidate 'adda'[\s\S]*did you mean \"ada\""):
        choose(run, ChoiceLimits(prices={"adda": 1.0}))


def test_labels_decide_what_is_better_unless_they_are_left_out():
    run = measured_data(bob_first=0)
    labels = [Label(item_id=item.item_id, annotator="eve", winner="cyd") for item in run.items[:39]]
    people = run.with_labels(labels)
    assert choose(people, ChoiceLimits()).by == "people"
    assert choose(people, ChoiceLimits()).candidate == "cyd"
    assert choose(people, ChoiceLimits(), use_labels=False).candidate == "ada"
    few = choose(run.with_labels(labels[:3]), ChoiceLimits())
    assert (few.by, few.candidate) == ("panel", "ada")
    assert "too few" in few.labels_unused


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_items_claim_little(n):
    choice = choose(measured_data(n, bob_first=0), ChoiceLimits(cost_usd=0.02, latency_s=3))
    for option in choice.options:
        assert 0 <= option.win_rate.low <= option.win_rate.high <= 1
        assert option.cost_usd.low >= 0
        for chance in (option.p_front, option.p_best, option.p_latency):
            assert chance is None or (n > 1 and 0 <= chance <= 1)
    assert choice.option("bob").p_best is None or choice.option("bob").p_best < 1
    assert all(0 <= q.preferred.low <= q.preferred.high <= 1 for q in choice.questions)
    assert choice_screen(choice, 80, "run").lines
    assert tables(choice)


@pytest.mark.parametrize(
    ("words", "option"),
    [(["ada"], "--price"), (["ada=x"], "--price"), (["=nan"], "--latency"), (["ada"], "--latency")],
)
def test_figures_that_are_none_are_refused(words, option):
    with pytest.raises(ConfigError, match=option):
        choose(measured_data(2), ChoiceLimits(prices=assignments(words, option)))


def test_times_have_units():
    assert [seconds_of(text, "x") for text in ("800ms", "1.5s", "800", " 2 S")] == [
        0.8,
        1.5,
        0.8,
        2,
    ]
    for text in ("fast", "", "-1s", "nan"):
        with pytest.raises(ConfigError, match="is no time"):
            seconds_of(text, "--max-latency")


@pytest.mark.parametrize(
    "limits", [{"cost_usd": -1.0}, {"worth_usd": float("nan")}, {"quantile": 1.0}]
)
def test_impossible_limits_are_refused(limits):
    with pytest.raises(ClashError, match=r"is no (amount|quantile)"):
        choose(measured_data(2), ChoiceLimits(**limits))
