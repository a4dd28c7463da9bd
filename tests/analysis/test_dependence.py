"""From votes to what the panel is worth: what was planted is named, and what is not known said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clash.analysis.dependence import DependenceOptions, diagnose
from clash.analysis.dependence.truth import METHODS
from clash.analysis.serialize import to_dict
from clash.errors import ConfigError, NotIdentifiedError, StatisticsError
from clash.report.dependence import write_plots
from clash.stats.simulate.panels import IndependentPanel
from clash.votes import VoteRow, Votes, encode, read_votes

if TYPE_CHECKING:
    from clash.analysis.dependence.dependence_findings import Dependence

SHARED = Path(__file__).resolve().parents[2] / "../shared/data/votes"
COPIES = ["nano#1", "nano#2", "nano#3"]
OTHERS = ["alpha", "beta", "delta", "epsilon", "gamma"]


def votes_of(matrix: np.ndarray, names: list[str], **columns: list) -> Votes:
    rows = [
        VoteRow(
            f"q{i}",
            judge,
            None if value < 0 else "tie" if value == 2 else float(value),
            **{key: values[i] for key, values in columns.items() if key != "family"},
            family=columns["family"][j] if "family" in columns else None,
        )
        for i, row in enumerate(matrix)
        for j, (judge, value) in enumerate(zip(names, row, strict=True))
    ]
    return encode(rows)


def copied_panel(n: int = 700, seed: int = 0, *, small: bool = False) -> Votes:
    """Three noisy copies of one judge and five judges of their own; some votes failed or tied.

    The small panel has two of the copies and three of the others.
    """
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.5).astype(int)
    original = np.where(rng.random(n) < 0.75, labels, 1 - labels)
    near = [np.where(rng.random(n) < 0.93, original, 1 - original) for _ in COPIES]
    own_indices = [np.where(rng.random(n) < 0.8, labels, 1 - labels) for _ in OTHERS]
    matrix = np.array([*near, *own_indices]).T
    noise = rng.random(matrix.shape)
    matrix = np.where(noise < 0.02, -1, np.where(noise < 0.04, 2, matrix))
    rows_kept = [0, 1, 3, 4, 5] if small else list(range(8))
    names = [(COPIES + OTHERS)[j] for j in rows_kept]
    family = [("x", "x", "x", "y", "y", "z", "u", "v")[j] for j in rows_kept]
    return votes_of(matrix[:, rows_kept], names, label=labels.astype(float).tolist(), family=family)


@pytest.fixture(scope="module")
def label_diagnosis() -> Dependence:
    return diagnose(copied_panel(), DependenceOptions(bootstrap=100))


@pytest.fixture(scope="module")
def vote_diagnosis() -> Dependence:
    return diagnose(copied_panel().without_labels(), DependenceOptions(bootstrap=100))


def test_near_copies_are_named(label_diagnosis: Dependence) -> None:
    assert tuple(COPIES) in {bloc.judges for bloc in label_diagnosis.blocs if bloc.near_copies}
    assert any(
        "nano#1, nano#2, nano#3 (3) err together" in line for line in label_diagnosis.conclusions
    )


def test_without_labels_the_split_is_seen_but_not_who_is_right(vote_diagnosis: Dependence) -> None:
    """Every bloc lies on one side of the split, and the report says that it may be the other."""
    assert vote_diagnosis.blocs
    for bloc in vote_diagnosis.blocs:
        assert set(bloc.judges) <= set(COPIES) or set(bloc.judges) <= set(OTHERS)
    assert any("it is unknown who is right" in line for line in vote_diagnosis.conclusions)


def test_the_panel_is_worth_what_was_planted(label_diagnosis: Dependence) -> None:
    """Five independent judges and three copies of one: K_eff by its definition."""
    truth_in_original = 4 * 0.75 * 0.25
    fidelity = 0.93 * 2 - 1
    covariance = fidelity**2 * truth_in_original
    rate = 0.93 * 0.75 + 0.07 * 0.25
    r = covariance / (4 * rate * (1 - rate))
    true_number = 8 / (1 + 7 * (3 * r / 28))
    by_mean = label_diagnosis.effective.by_mean
    assert by_mean.low <= true_number <= by_mean.high
    assert label_diagnosis.truth.from_labels
    assert "worth at most" not in label_diagnosis.conclusions[0]
    assert label_diagnosis.alternatives == ()


def test_without_labels_the_number_is_an_upper_bound_and_says_so(
    vote_diagnosis: Dependence,
) -> None:
    assert "worth at most" in vote_diagnosis.conclusions[0]
    assert any("--no-labels leaves the labels out" in caveat for caveat in vote_diagnosis.caveats)
    assert not vote_diagnosis.truth.from_labels
    assert {alternative.method for alternative in vote_diagnosis.alternatives} >= {
        "one-coin",
        "dawid-skene",
    }
    assert any("By other estimates of the truth" in caveat for caveat in vote_diagnosis.caveats)


def test_pairs_carry_every_figure(label_diagnosis: Dependence) -> None:
    """Copies are coupled and rejected; judges of their own are neither."""
    pairs = {(pair.first, pair.second): pair for pair in label_diagnosis.pairs}
    assert len(pairs) == 28
    copies, apart = pairs["nano#1", "nano#2"], pairs["alpha", "gamma"]
    assert copies.p_holm < 1e-6
    assert copies.p_ratio_holm < 0.01
    assert copies.coupling.low > 0
    assert copies.coupling_error > 0
    assert copies.same_family
    assert apart.p_holm > 0.05
    assert apart.coupling.low < 0 < apart.coupling.high
    assert not apart.same_family
    assert copies.together < 700


def test_matrices_are_symmetric_and_agree_with_the_pairs(label_diagnosis: Dependence) -> None:
    names = label_diagnosis.panel.judges
    np.testing.assert_allclose(label_diagnosis.correlations, label_diagnosis.correlations.T)
    np.testing.assert_allclose(label_diagnosis.couplings, label_diagnosis.couplings.T)
    for pair in label_diagnosis.pairs:
        j, k = names.index(pair.first), names.index(pair.second)
        assert label_diagnosis.correlations[j, k] == pytest.approx(pair.correlation.estimate)
        assert label_diagnosis.couplings[j, k] == pytest.approx(pair.coupling.estimate)


def test_families_are_tabulated(label_diagnosis: Dependence) -> None:
    """Families of two judges or more, within, across; the ratio is the paper's."""
    rows = {row.name: row for row in label_diagnosis.families}
    assert [rows[name].pairs for name in ("x", "y")] == [3, 1]
    assert rows["within families"].pairs == 4
    assert rows["across families"].pairs == 24
    assert rows["x"].correlation.estimate > 0.5
    assert rows["across families"].correlation.low < 0.05


def test_hypotheses_are_tested_or_refused_with_the_reason(label_diagnosis: Dependence) -> None:
    tests = {test.name: test for test in label_diagnosis.tests}
    assert tests["independence"].p < 1e-6
    assert tests["family independence"].p > 0.01
    assert tests["exchangeability within family"].p > 0.01
    assert tests["class-independent couplings"].p > 0.01
    assert all((test.p is None) == bool(test.refusal) for test in label_diagnosis.tests)


def test_judges_that_add_nothing_are_named(label_diagnosis: Dependence) -> None:
    adds = {judge.judge: judge.adds for judge in label_diagnosis.judges}
    assert all(adds[name] for name in OTHERS)
    assert not all(adds[name] for name in COPIES)
    assert label_diagnosis.judges[0].log_loss is not None


def test_a_model_of_dependence_beats_independence(label_diagnosis: Dependence) -> None:
    scores = {model.name: model for model in label_diagnosis.models}
    assert scores["Ising within families"].gain.low > 0
    assert (
        min((m for m in scores.values() if m.bic), key=lambda m: m.bic).name != "independent (CI)"
    )


def test_independent_judges_get_a_clean_bill() -> None:
    sample = IndependentPanel.of([0.8] * 5, [0.75] * 5).sample(500, np.random.default_rng(1))
    votes = votes_of(sample.votes, list("abcde"), label=sample.labels.astype(float).tolist())
    diagnosis = diagnose(votes, DependenceOptions(bootstrap=60))
    assert diagnosis.blocs == ()
    assert diagnosis.families == ()
    assert diagnosis.effective.by_mean.low <= 5 <= diagnosis.effective.by_mean.high
    assert any("is not rejected for any of 10 pairs" in line for line in diagnosis.conclusions)
    assert diagnosis.tests[1].refusal.startswith("no family") or diagnosis.tests[1].p is not None


def test_three_judges_without_labels_say_what_cannot_be_known() -> None:
    sample = IndependentPanel.of([0.8] * 3, [0.75] * 3).sample(300, np.random.default_rng(2))
    diagnosis = diagnose(votes_of(sample.votes, list("abc")), DependenceOptions(bootstrap=40))
    assert all(pair.p is None for pair in diagnosis.pairs)
    assert any("cannot be tested" in line for line in diagnosis.conclusions)
    assert {test.p for test in diagnosis.tests} == {None}
    assert any("labelled items would settle it" in caveat for caveat in diagnosis.caveats)


def test_few_labels_enter_the_fit_and_many_replace_it() -> None:
    votes = copied_panel(250, small=True)
    few = votes.take(np.arange(250))
    labels = few.labels.copy()
    labels[40:] = np.nan
    object.__setattr__(few, "labels", labels)
    by_few = diagnose(few, DependenceOptions(bootstrap=20))
    assert by_few.truth.method == "factor"
    assert any("From 40 labels it is unknown who is right" in line for line in by_few.conclusions)
    diagnosis = diagnose(votes, DependenceOptions(bootstrap=20))
    assert diagnosis.truth.method == "labels"


def test_rows_of_one_group_widen_the_intervals() -> None:
    """Every item twice in one group: intervals as of half the rows."""
    votes = copied_panel(300, small=True)
    index = np.repeat(np.arange(300), 2)
    twice = votes.take(index)
    object.__setattr__(twice, "groups", np.repeat(np.arange(300), 2))
    object.__setattr__(twice, "repeats", tuple(str(i % 2) for i in range(600)))
    object.__setattr__(twice, "items", tuple(f"r{i}" for i in range(600)))
    once, doubled_diagnosis = (
        diagnose(v, DependenceOptions(bootstrap=200)) for v in (votes, twice)
    )
    assert doubled_diagnosis.panel.clusters == 300
    widths = [value.effective.by_mean.half_width for value in (once, doubled_diagnosis)]
    assert widths[1] == pytest.approx(widths[0], rel=0.25)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "auto"])
def test_every_method_of_estimating_the_truth_runs(method: str) -> None:
    diagnosis = diagnose(
        copied_panel(300, small=True).without_labels(), DependenceOptions(method, bootstrap=20)
    )
    assert diagnosis.truth.method == method
    assert np.isfinite(diagnosis.effective.by_mean.estimate)


def test_more_than_fifteen_judges_are_coupled_by_pseudo_likelihood() -> None:
    """Two copies of one of sixteen judges are coupled to it, and given it not to each other."""
    rng = np.random.default_rng(3)
    sample = IndependentPanel.of([0.75] * 16, [0.75] * 16).sample(600, rng)
    sample.votes[:, 1:3] = sample.votes[:, :1] ^ (rng.random((600, 2)) < 0.05)
    names = [f"j{i:02d}" for i in range(16)]
    diagnosis = diagnose(
        votes_of(sample.votes, names, label=sample.labels.tolist()),
        DependenceOptions(bootstrap=50),
    )
    assert diagnosis.coupling_method == "pseudo-likelihood"
    closest = sorted(diagnosis.pairs, key=lambda pair: -pair.coupling.estimate)[:2]
    assert {(pair.first, pair.second) for pair in closest} == {("j00", "j01"), ("j00", "j02")}
    assert all(pair.p_wald_holm < 0.05 and pair.p_ratio is None for pair in closest)
    assert any("too many to enumerate" in caveat for caveat in diagnosis.caveats)
    assert all(test.p is not None or test.refusal for test in diagnosis.tests)


def test_the_picture_puts_copies_side_by_side_and_frames_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 900)
    source = np.where(rng.random(900) < 0.8, labels, 1 - labels)
    columns = [
        np.where(rng.random(900) < 0.05, 1 - source, source)
        if judge % 2
        else np.where(rng.random(900) < 0.75, labels, 1 - labels)
        for judge in range(6)
    ]
    votes = votes_of(np.column_stack(columns), list("abcdef"), label=labels.tolist())
    diagnosis = diagnose(votes, DependenceOptions(bootstrap=100))
    plot_files = write_plots(diagnosis, tmp_path)
    assert {path.suffix for path in plot_files} == {".svg", ".png"}
    text = (tmp_path / "couplings.svg").read_text(encoding="utf-8")
    names = re.findall(r">([a-f])</text>", text)
    assert names[:6] == ["a", "b", "d", "f", "c", "e"]


def test_a_crowd_that_hardly_shares_items_gets_no_couplings_and_is_told_why() -> None:
    rng = np.random.default_rng(4)
    sample = IndependentPanel.of([0.75] * 20, [0.75] * 20).sample(400, rng)
    sparse = np.where(rng.random(sample.votes.shape) < 0.7, -1, sample.votes).astype(np.int8)
    diagnosis = diagnose(
        votes_of(sparse, [f"j{i:02d}" for i in range(20)]), DependenceOptions(bootstrap=20)
    )
    assert diagnosis.couplings is None
    assert "votes are missing" in diagnosis.no_couplings
    assert all(test.refusal for test in diagnosis.tests[1:])


def test_what_cannot_be_done_is_refused() -> None:
    sample = IndependentPanel.of([0.8] * 2, [0.8] * 2).sample(200, np.random.default_rng(4))
    pair = votes_of(sample.votes, ["a", "b"])
    with pytest.raises(NotIdentifiedError, match="third judge"):
        diagnose(pair)
    with pytest.raises(StatisticsError, match="at least two"):
        diagnose(votes_of(sample.votes[:, :1], ["a"]))
    with pytest.raises(ConfigError, match="no method"):
        diagnose(copied_panel(50, small=True), DependenceOptions("nonsense"))
    with pytest.raises(StatisticsError, match="family"):
        diagnose(pair_of_three(), DependenceOptions("factor-family"))


def pair_of_three() -> Votes:
    sample = IndependentPanel.of([0.8] * 3, [0.8] * 3).sample(100, np.random.default_rng(5))
    return votes_of(sample.votes, list("abc"))


def test_a_judge_that_never_voted_is_left_out_and_named() -> None:
    sample = IndependentPanel.of([0.8] * 4, [0.8] * 4).sample(150, np.random.default_rng(7))
    matrix = sample.votes.astype(int)
    matrix[:, 1] = -1
    diagnosis = diagnose(votes_of(matrix, list("abcd")), DependenceOptions(bootstrap=20))
    assert diagnosis.panel.judges == ("a", "c", "d")
    assert "left out because they never voted: b" in diagnosis.caveats
    assert diagnosis.effective.judges == 3


def test_pairs_that_hardly_met_are_not_correlated() -> None:
    sample = IndependentPanel.of([0.8] * 4, [0.8] * 4).sample(150, np.random.default_rng(8))
    matrix = sample.votes.astype(int)
    matrix[9:, 0] = -1
    diagnosis = diagnose(votes_of(matrix, list("abcd")), DependenceOptions(bootstrap=20))
    pairs = {(pair.first, pair.second): pair for pair in diagnosis.pairs}
    assert pairs["a", "b"].together == 9
    assert pairs["a", "b"].correlation is None
    assert pairs["b", "c"].correlation is not None


DEGENERATE = {
    "all say one": lambda votes, truth: np.ones_like(votes),
    "all are right": lambda votes, truth: np.repeat(truth[:, None], 4, axis=1),
    "all are wrong": lambda votes, truth: 1 - np.repeat(truth[:, None], 4, axis=1),
    "all tie": lambda votes, truth: np.full_like(votes, 2),
    "one is constant": lambda votes, truth: np.where(np.arange(4) == 0, 1, votes),
    "one is a copy": lambda votes, truth: votes[:, [0, 0, 2, 3]],
    "two halves never meet": lambda votes, truth: np.where(
        (np.arange(len(votes)) < len(votes) / 2)[:, None] == (np.arange(4) < 2), -1, votes
    ),
    "three items": lambda votes, truth: votes[:3],
}


NOTHING_TO_ESTIMATE = {"all say one", "all are right", "all are wrong", "all tie", "three items"}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("use_labels", [True, False])
def test_degenerate_votes_are_diagnosed_or_refused(name: str, use_labels: bool) -> None:
    """Never a traceback, a warning or a NaN in the JSON: a diagnosis, or an error that says why."""
    sample = IndependentPanel.of([0.8] * 4, [0.7] * 4).sample(90, np.random.default_rng(9))
    truth = sample.labels.astype(int)
    matrix = DEGENERATE[name](sample.votes.astype(int), truth)
    labels = truth[: len(matrix)].astype(float).tolist()
    votes = votes_of(matrix, list("abcd"), label=labels)
    votes = votes if use_labels else votes.without_labels()
    options = DependenceOptions(bootstrap=20)
    if name in NOTHING_TO_ESTIMATE and not use_labels:
        with pytest.raises(NotIdentifiedError, match="needs 3 judges"):
            diagnose(votes, options)
        return
    diagnosis = diagnose(votes, options)
    assert json.dumps(to_dict(diagnosis), allow_nan=False)
    assert diagnosis.conclusions


def test_two_judges_with_labels_are_enough() -> None:
    sample = IndependentPanel.of([0.8] * 2, [0.8] * 2).sample(300, np.random.default_rng(6))
    votes = votes_of(sample.votes, ["a", "b"], label=sample.labels.astype(float).tolist())
    diagnosis = diagnose(votes, DependenceOptions(bootstrap=50))
    assert diagnosis.effective.by_mean.low <= 2 <= diagnosis.effective.by_mean.high


def test_the_same_seed_gives_the_same_diagnosis() -> None:
    diagnosis, other_diagnosis = (
        diagnose(copied_panel(200, small=True), DependenceOptions(bootstrap=30, seed=3))
        for _ in range(2)
    )
    assert diagnosis.conclusions == other_diagnosis.conclusions
    assert diagnosis.pairs == other_diagnosis.pairs
    assert diagnosis.judges == other_diagnosis.judges


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data is not here")
def test_near_copies_of_a_real_panel() -> None:
    """Eight samples of one model among four others: found without labels, worth about two."""
    votes = read_votes(SHARED / "rb2-replicates.votes.jsonl.gz", judges="gpt-5.4-nano#*,*#s0")
    diagnosis = diagnose(votes, DependenceOptions(bootstrap=200))
    copies = [bloc for bloc in diagnosis.blocs if bloc.near_copies]
    assert [len(bloc.judges) for bloc in copies] == [8]
    assert all(judge.startswith("gpt-5.4-nano#") for judge in copies[0].judges)
    assert 1.8 < copies[0].worth < 2.2
    assert 2.2 < diagnosis.effective.by_mean.estimate < 2.7
    assert not any(judge.adds for judge in diagnosis.judges if "nano" in judge.judge)
