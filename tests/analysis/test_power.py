"""Scenarios, the published figures, and what a pilot leads to."""

from __future__ import annotations

import numpy as np
import pytest

from clash.analysis.power.candidate_pairs import CandidatePair, PairVotes, choose_pair
from clash.analysis.power.pilot import pilot
from clash.analysis.power.scenarios import PanelDesign, PowerQuestion, scenario
from clash.errors import ConfigError, StatisticsError
from clash.stats.power.comparisons import power_paired
from clash.stats.power.design import Clustering, ErrorRates
from clash.votes import VoteRow, encode

CORRELATIONS = (0.05, 0.1, 0.2, 0.3, 0.5)
WORDS = {1.0: "A", 0.5: "tie", 0.0: "B"}


def _votes(n: int, ties: list[float], edge: float, spread: float, seed: int = 0, **labels):
    """n prompts, a judge for each tie rate; items differ in who is better by ``spread``."""
    rng = np.random.default_rng(seed)
    lean = edge + spread * rng.normal(size=n)
    rows = []
    for i in range(n):
        p = 1 / (1 + np.exp(-lean[i]))
        for j, tie in enumerate(ties):
            vote = 0.5 if rng.random() < tie else float(rng.random() < p)
            label = "A" if labels.get("label") else None
            rows.append(VoteRow(f"q{i}", f"j{j}", WORDS[vote], label=label))
    return encode(rows)


@pytest.mark.parametrize("question", ["compare", "paired", "concordance", "kappa", "retest"])
def test_every_question_holds_up_in_simulation(question) -> None:
    ask = PowerQuestion(
        question, half_width=0.08, per_cluster=2 if question == "concordance" else 1
    )
    correlations = [0.2] if question in ("compare", "paired", "concordance") else [0.0]
    plan = scenario(
        ask, [PanelDesign((0.8, 0.5), 6.0)], correlations, simulate=True, replications=500, seed=1
    )
    check_result = plan.cells[0].checked
    assert check_result is not None
    assert abs(check_result.simulated - check_result.claimed) < 0.07
    if check_result.half_width is not None:
        assert check_result.half_width == pytest.approx(0.08, rel=0.05)


def test_what_there_is_can_show_what_it_can_show() -> None:
    cell = scenario(PowerQuestion("paired", n=100), [PanelDesign((0.9, 0.9), 2)], [0.3]).cells[0]
    again = power_paired(100, cell.detectable or 0, 0.9, Clustering(2, 0.3))
    assert again == pytest.approx(0.8, abs=1e-3)


def test_pilot_names_the_next_step_and_its_power_is_reached() -> None:
    """A simulated pilot of 40 prompts; a study of the size it asks for finds the effect as often."""
    votes = _votes(40, [0.1, 0.3, 0.6], 0.0, 1.0, seed=4)
    pilot_findings = pilot(votes, "paired", effect=0.15)
    assert pilot_findings.more == pilot_findings.needed - 40 > 0
    assert pilot_findings.next_step.startswith(f"{pilot_findings.more} more prompts for 80% power")
    assert pilot_findings.needed_low <= pilot_findings.needed <= pilot_findings.needed_high
    saving_by_addition = {addition.like: addition.saves for addition in pilot_findings.additions}
    assert saving_by_addition["j0"] >= 0
    assert pilot_findings.size == pytest.approx(3.0)


def test_pilot_of_conditions_counts_informative_ballots() -> None:
    votes = _votes(300, [0.444, 0.635, 0.852], 0.2, 0.8, seed=2)
    pilot_findings = pilot(votes, "compare")
    assert pilot_findings.size == pytest.approx(3 * pilot_findings.discrimination.estimate)
    assert pilot_findings.icc.method == "random intercept, profile likelihood"
    saves = [addition.saves for addition in pilot_findings.additions]
    assert saves == sorted(saves, reverse=True)


def test_pilot_by_agreement_with_labels_turns_sides() -> None:
    """All labels say A, so agreement is wins of A."""
    votes = _votes(100, [0.2, 0.2], 1.0, 0.5, label=True)
    by_label = pilot(votes, "compare", outcome="agreement")
    assert by_label.base.estimate == pilot(votes, "compare").base.estimate > 0.6


def test_one_judge_tells_no_correlation_and_says_so() -> None:
    pilot_findings = pilot(_votes(60, [0.3], 0.3, 0.5), "compare")
    assert "is assumed" in pilot_findings.notes[0]
    assert (pilot_findings.icc.low, pilot_findings.icc.high) == (0, 1)
    assert pilot_findings.design_effect == 1


def test_no_ties_at_all_is_a_pilot_too() -> None:
    pilot_findings = pilot(_votes(80, [0.0, 0.0], 0.3, 0.5), "paired", level=ErrorRates(0.05, 0.9))
    assert pilot_findings.discrimination.estimate == 1
    assert pilot_findings.needed > 0


def test_nothing_but_ties_is_no_pilot() -> None:
    with pytest.raises(StatisticsError, match="every ballot is a tie"):
        pilot(_votes(20, [1.0, 1.0], 0.0, 0.0))


def test_scores_and_missing_labels_are_refused() -> None:
    scores = encode([VoteRow(f"q{i}", "j", float(i)) for i in range(5)])
    with pytest.raises(StatisticsError, match="scores"):
        pilot(scores)
    with pytest.raises(StatisticsError, match="labels"):
        pilot(_votes(10, [0.1], 0.0, 0.0), outcome="agreement")


# -- more than two candidates ------------------------------------------------------------------------


def _three(n: int = 60, seed: int = 3) -> tuple[list[VoteRow], dict[str, CandidatePair]]:
    """ann beats bob and cy by far, bob and cy are alike; sides by turns, three judges a prompt."""
    rng = np.random.default_rng(seed)
    strength = {"ann": 1.5, "bob": 0.0, "cy": -0.1}
    rows, names = [], {}
    for i in range(n):
        for k, pair in enumerate((("ann", "bob"), ("bob", "cy"), ("ann", "cy"))):
            a, b = pair if (i + k) % 2 else pair[::-1]
            item = f"q{i}#{a}|{b}"
            names[item] = CandidatePair(a, b)
            p = 1 / (1 + np.exp(strength[b] - strength[a]))
            for judge in ("x", "y", "z"):
                vote = "tie" if rng.random() < 0.2 else ("A" if rng.random() < p else "B")
                rows.append(VoteRow(item, judge, vote, label=None, group=f"q{i}"))
    return rows, names


def test_a_pair_is_asked_of_its_own_rows_seen_from_its_first_candidate() -> None:
    rows, names = _three()
    field = PairVotes(encode(rows), names)
    assert field.candidates == ["ann", "bob", "cy"]
    assert field.pairs()[0] == CandidatePair("ann", "bob")
    wins = {}
    for pair in (CandidatePair("ann", "bob"), CandidatePair("bob", "ann")):
        pilot_findings = pilot(field.of(pair), pair=pair)
        assert (pilot_findings.clusters, pilot_findings.ballots) == (60, 180)
        assert pilot_findings.next_step.startswith(f"{pair.name}: ")
        wins[pair.first] = pilot_findings.base.estimate
    assert wins["ann"] > 0.7
    assert wins["ann"] + wins["bob"] == pytest.approx(1)
    # Over all pairs side A is nobody: the sides went by turns, and wins are even.
    assert pilot(field.votes).base.estimate == pytest.approx(0.5, abs=0.06)


def test_pairs_that_are_not_there_are_refused() -> None:
    rows, names = _three(10)
    field = PairVotes(encode(rows), names)
    for wrong in ("ann", "ann,ann", "ann,dee"):
        with pytest.raises(ConfigError, match="no pair"):
            choose_pair(field, wrong)
    assert choose_pair(field, "cy, ann") == CandidatePair("cy", "ann")
    assert choose_pair(field, None) == CandidatePair("ann", "bob")
    assert choose_pair(PairVotes(encode(rows), {}), None) is None
    with pytest.raises(StatisticsError, match="never met"):
        field.of(CandidatePair("ann", "dee"))


def test_pairs_of_few_prompts_each_are_pooled() -> None:
    rows, names = [], {}
    for i in range(120):
        a, b = sorted((f"m{i % 12}", f"m{(i + 1 + i // 12) % 12}"))
        names[f"q{i}"] = CandidatePair(a, b)
        rows += [VoteRow(f"q{i}", judge, "AB"[(i + k) % 2]) for k, judge in enumerate("xyz")]
    field = PairVotes(encode(rows), names)
    assert field.is_scattered
    assert choose_pair(field, None) is None
    assert choose_pair(field, "m0,m1") == CandidatePair("m0", "m1")


def test_a_handful_of_prompts_tells_no_correlation() -> None:
    pilot_findings = pilot(_votes(4, [0.1, 0.3, 0.6], 0.2, 0.5))
    assert "4 prompts" in pilot_findings.notes[0]
    assert pilot_findings.needed_low < pilot_findings.needed < pilot_findings.needed_high


def test_a_judge_that_ties_more_is_no_better_for_that() -> None:
    """The fewer its ties, the more a further judge saves: what is tied shows no difference."""
    pilot_findings = pilot(_votes(300, [0.05, 0.4, 0.8], 0.2, 0.6, seed=5))
    saves = [addition.saves for addition in pilot_findings.additions]
    assert saves == sorted(saves, reverse=True)
    assert saves[0] > saves[1] > saves[2]


def test_a_panel_that_ties_more_needs_more_prompts_for_the_same_difference() -> None:
    panels = [PanelDesign((0.9, 0.9), 2), PanelDesign((0.45, 0.45), 2)]
    plan = scenario(PowerQuestion("paired", effect=0.1, n=100), panels, [0.2])
    # Half the decisions show half of the difference: n d / D^2 is twice as much, but for D^2.
    alone = scenario(PowerQuestion("paired", effect=0.05), panels[1:], [0.2])
    assert plan.cell(1, 0.2).needed == alone.cell(0, 0.2).needed
    ratio = plan.cell(1, 0.2).exact / plan.cell(0, 0.2).exact
    assert ratio == pytest.approx(2, rel=0.02)
