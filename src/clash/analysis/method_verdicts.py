"""A run's verdicts by a method that reads the votes of all its items, or by strengths.

Every pair of an item's candidates is a row of votes, one for each judge. A method gives each row
the share of the votes for its first candidate, as it weighs them: a posterior where it fits a model.
With two candidates that share is the verdict. With more, strengths are fitted to the shares of the
item's pairs (a Bradley-Terry model with one game a pair: pairwise coupling, Hastie and Tibshirani
1998); they order the candidates as the sums of their shares do, and add to 1 as ``p``.

A method that cannot decide leaves every verdict to the Borda count, and each record says why.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.aggregation import row_verdicts
from clash.analysis.aggregation.methods import attempt, method_runner
from clash.analysis.pair_rows import PairRows
from clash.analysis.verdicts import BORDA, break_tie, judges_behind, weighted_rows
from clash.errors import StatisticsError
from clash.stats.voting.bradley_terry import refit_strengths
from clash.votes.from_run import without_controls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.aggregation.methods import MethodFit
    from clash.analysis.verdicts import VerdictRules
    from clash.records import Groups, Item, Verdict
    from clash.stats.typing import Floats
    from clash.votes.ballots import ItemRankings

BRADLEY_TERRY, AUTO, ISING_CLASS = "bradley-terry", "auto", "ising-class"
FEWEST = 30
"""Items below which no method that fits a model decides: on simulated panels of 3 and 5 judges,
Dawid-Skene and the others are worse than majority up to 20 items and level with it at 30."""
WITHOUT_FIT = frozenset({"majority", BRADLEY_TERRY})
"""Methods that decide item by item, however few there are."""
NEAR_EVEN = 0.02
"""Confidence below which a winner is no verdict, where the run does not say another."""
PRIOR = 0.5
"""Games of each candidate of an item against a phantom, where strengths come from judges."""
_COUPLING_PRIOR = 1e-3
"""The same where they come from shares, which are known: only to keep strengths finite."""
_SLACK = 1e-6
"""Log strengths that differ by less are equal."""
_DIGITS = 9


@dataclass(frozen=True)
class MethodUse:
    """How the method of a run decided.

    Attributes:
        method: that decided: the one of the run, or ``borda`` where that could not.
        model: what ``auto`` selected; null for any other method. ``reason`` says why.
        converged: of the fit; null without one.
        fallback: why the method of the run did not decide; null where it did.
        n_items: items that it decided.
        n_rows: rows of votes that it read: pairs of candidates.
    """

    method: str
    model: str | None = None
    reason: str | None = None
    converged: bool | None = None
    fallback: str | None = None
    n_items: int = 0
    n_rows: int = 0


@dataclass(frozen=True)
class _Strengths:
    """An item decided: groups best first, and the share of each candidate."""

    ranking: Groups
    p: dict[str, float]

    @property
    def confidence(self) -> float:
        """The share of the winner less the next one; 0 of a tie."""
        if len(self.ranking[0]) > 1:
            return 0.0
        first, second = sorted(self.p.values(), reverse=True)[:2]
        return round(first - second, _DIGITS)


def decide_by_method(
    verdicts: Sequence[Verdict],
    items: Sequence[Item],
    rankings: Mapping[str, ItemRankings],
    rules: VerdictRules,
) -> tuple[list[Verdict], MethodUse]:
    """The verdicts of a run by the method of its rules.

    Items that abstain by Borda's rules (no quorum) abstain, and are not read. Control items keep the
    Borda count: they test the judges, and must not weigh them.

    Args:
        verdicts: of every item, by the Borda count.
        items: of the run, in the same order.
        rankings: the judges', by item.
        rules: of the run.
    """
    ids = {item.item_id for item in without_controls(items)}
    judged_rows = [
        row for row, v in enumerate(verdicts) if v.ranking is not None and v.item_id in ids
    ]
    try:
        strengths, use = _decide(
            [rankings[verdicts[row].item_id] for row in judged_rows],
            [items[row].cluster for row in judged_rows],
            rules,
        )
    except StatisticsError as refusal:
        reason = f"{rules.method}: {refusal}"
        results = [
            v if v.ranking is None else v.model_copy(update={"fallback": reason}) for v in verdicts
        ]
        return results, MethodUse(BORDA, fallback=reason, n_items=len(judged_rows))
    results = list(verdicts)
    for row, outcome in zip(judged_rows, strengths, strict=True):
        results[row] = _verdict(verdicts[row], rankings[verdicts[row].item_id], outcome, rules, use)
    return results, use


def _verdict(
    by_borda: Verdict,
    rankings: ItemRankings,
    outcome: _Strengths,
    rules: VerdictRules,
    use: MethodUse,
) -> Verdict:
    ranking = break_tie(outcome.ranking, rankings, rules)
    winner = ranking[0][0] if len(ranking[0]) == 1 else None
    unanimous, split = judges_behind(rankings, rules, winner)
    return by_borda.model_copy(
        update={
            "method": use.method,
            "model": use.model,
            "ranking": ranking,
            "winner": winner,
            "confidence": outcome.confidence,
            "unanimous": unanimous,
            "split": split,
            "p": outcome.p,
            "borda": by_borda.ranking,
        }
    )


def _decide(
    rankings: Sequence[ItemRankings], clusters: Sequence[str], rules: VerdictRules
) -> tuple[list[_Strengths], MethodUse]:
    """The outcome of each item.

    Raises:
        StatisticsError: too few items, a model that is not identified, or a fit that did not converge.
    """
    n = len(rankings)
    if n < FEWEST and rules.method not in WITHOUT_FIT:
        raise StatisticsError(f"{n} items are too few to weigh the judges by ({FEWEST} needed)")
    if rules.method == BRADLEY_TERRY or not n:
        wins = [_weighted_wins(item, rules) for item in rankings]
        pairs = sum(len(item.candidates) * (len(item.candidates) - 1) // 2 for item in rankings)
        use = MethodUse(rules.method, n_items=n, n_rows=pairs)
        return _strengths(rankings, wins, wins, PRIOR), use
    rows = PairRows.of(rankings, clusters, rules)
    fit, reason = _fit(rows, rules)
    if fit.p is None or fit.fit is None:
        raise StatisticsError(fit.refusal or "no fit")
    if not fit.fit.converged:
        raise StatisticsError(f"the fit did not converge in {fit.fit.n_iter} steps")
    use = MethodUse(
        rules.method,
        fit.selected,
        fit.reason or reason,
        fit.fit.converged,
        n_items=n,
        n_rows=len(rows.table.items),
    )
    wins = level = rows.wins(rankings, fit.p)
    is_tie = row_verdicts(fit.p, rows.table, level_is_tie=True) == 0.5
    if is_tie.any():
        level = rows.wins(rankings, np.where(is_tie, 0.5, fit.p))
    return _strengths(rankings, wins, level, _COUPLING_PRIOR), use


def _fit(rows: PairRows, rules: VerdictRules) -> tuple[MethodFit, str | None]:
    """The fit, with ``p`` of the first candidate by name, and a remark on how it read the rows.

    A fit to sides called after candidates learns which one is better more often, and then gives it
    the narrow items too: tests of a difference would find one where there is none. So no fit knows
    which candidate a vote is for. Either each row is there in both directions (the judges then err
    alike on both sides), or side 1 is the response shown first, which a shuffle decides: errors that
    judges share because of the order then have classes to depend on.
    """
    by_order = rules.method == AUTO or (rules.method == ISING_CLASS and rows.has_order)
    table = rows.by_order(rules.seed) if by_order else rows.in_both_directions()
    fit = attempt(rules.method, method_runner(rules.method, table, rules.seed), table.patterns())
    if fit.p is None:
        return fit, None
    p = rows.from_order(fit.p, rules.seed) if by_order else rows.from_both_directions(fit.p)
    reason = None
    if rules.method == ISING_CLASS:
        reason = (
            "its classes are which response was shown first"
            if by_order
            else "judges saw the responses in several orders, so both classes have the same couplings"
        )
    return replace(fit, p=p), reason


def _weighted_wins(item: ItemRankings, rules: VerdictRules) -> Floats:
    """What the judges' rankings say of each pair, by the weights of the panel, (K, K)."""
    ranks, weights = weighted_rows(item, rules)
    points = (np.sign(ranks[:, None, :] - ranks[:, :, None]) + 1) / 2
    wins: Floats = np.nansum(points * weights[:, None, None], axis=0)
    np.fill_diagonal(wins, 0.0)
    return wins


def _strengths(
    rankings: Sequence[ItemRankings],
    wins: Sequence[Floats],
    level: Sequence[Floats],
    prior: float,
) -> list[_Strengths]:
    """The outcome of each item from its pairs.

    Args:
        rankings: the items.
        wins: of each, (K, K): ``p`` is by these.
        level: the same with the pairs that are tied at one half: the order is by these.
        prior: games of each candidate against a phantom.

    Raises:
        StatisticsError: strengths did not converge.
    """
    by_size: dict[int, list[int]] = defaultdict(list)
    for index, item in enumerate(rankings):
        by_size[len(item.candidates)].append(index)
    outcomes: dict[int, _Strengths] = {}
    for indices in by_size.values():
        strengths = _log_strengths(np.stack([wins[i] for i in indices]), prior)
        order = strengths
        if level is not wins:
            order = _log_strengths(np.stack([level[i] for i in indices]), prior)
        share = np.exp(strengths - strengths.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        for at, index in enumerate(indices):
            names = rankings[index].candidates
            p = dict(zip(names, share[at].round(_DIGITS).tolist(), strict=True))
            outcomes[index] = _Strengths(_groups(order[at], names), p)
    return [outcomes[index] for index in range(len(rankings))]


def _log_strengths(wins: Floats, prior: float) -> Floats:
    """(N, K); of two candidates and shares they give these shares back, whatever the prior."""
    if wins.shape[1] == 2 and prior == _COUPLING_PRIOR:
        p = np.clip(wins[:, 0, 1], 1e-12, 1 - 1e-12)
        logit = np.log(p) - np.log1p(-p)
        return np.stack([logit / 2, -logit / 2], axis=1)
    theta = refit_strengths(
        wins, np.zeros_like(wins), prior=prior, davidson=False, tol=1e-11, max_iter=200
    )
    if np.isnan(theta).any():
        raise StatisticsError("the strengths of an item's candidates did not converge")
    return theta


def _groups(strengths: Floats, names: Sequence[str]) -> Groups:
    order = np.argsort(-strengths, kind="stable").tolist()
    groups: Groups = [[names[order[0]]]]
    for before, index in pairwise(order):
        if strengths[before] - strengths[index] <= _SLACK:
            groups[-1].append(names[index])
        else:
            groups.append([names[index]])
    return [sorted(group) for group in groups]
