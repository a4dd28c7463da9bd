"""The verdict on each text of a run that judges each by itself.

A label is decided by the share of the panel's weight that is for it, or by a model of the judges
that reads the votes of all texts; a score by the mean or the median of the judges' scores. Text and
quorum count as in a ranking: a judge that failed has no say, and a text without enough say has no
verdict. Two labels that are level are no verdict either: nobody has chosen between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.aggregation.methods import attempt, method_runner
from clash.analysis.method_verdicts import AUTO, FEWEST, NEAR_EVEN, MethodUse
from clash.analysis.verdicts import VerdictRules, left_for_review, split_of
from clash.errors import StatisticsError
from clash.records import Verdict
from clash.stats.latent.multiclass import collapse_classes, dawid_skene_classes
from clash.stats.latent.patterns import MISSING, TIE
from clash.votes.binary import MethodTable
from clash.votes.text_labels import text_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.config import JudgingConfig
    from clash.stats.typing import Floats, Index
    from clash.votes.text_votes import TextVotes

MAJORITY, MEDIAN = "majority", "median"
_LEVEL = 1e-9
_DIGITS = 9


@dataclass(frozen=True)
class TextVerdicts:
    """The verdicts of a run, one for each text, and how its method decided."""

    verdicts: tuple[Verdict, ...]
    use: MethodUse | None = None


@dataclass(frozen=True)
class _Panel:
    """The panel's rules beside the votes.

    Attributes:
        weights: (N, J), the weight of each judge that has a say in a text; 0 for the others.
        refusals: (N,), why a text has no verdict; empty where it has enough judges.
        is_complete: (N,), every judge that may judge the text answered on every page.
    """

    judging: JudgingConfig
    votes: TextVotes
    rules: VerdictRules
    weights: Floats
    refusals: tuple[str, ...]
    is_complete: tuple[bool, ...]


def decide_texts(
    votes: TextVotes, rules: VerdictRules, reasons: Mapping[tuple[str, str], str]
) -> TextVerdicts:
    """The verdict on each text, in the order of the votes.

    Args:
        votes: of the panel.
        rules: of a run that judges single texts.
        reasons: why a text has no vote, where something is known of it.
    """
    panel = _panel(votes, rules, reasons)
    if panel.judging.mode == "score":
        return TextVerdicts(tuple(_score_verdict(panel, row) for row in range(len(votes.texts))))
    p, use = _posteriors(panel)
    verdicts = [_label_verdict(panel, row, p[row], use) for row in range(len(votes.texts))]
    decided_by_fit = use is not None and use.fallback is None
    least = NEAR_EVEN if decided_by_fit else 0.0
    least = least if rules.min_confidence is None else rules.min_confidence
    return TextVerdicts(tuple(_unless_close(verdict, least) for verdict in verdicts), use)


def _panel(votes: TextVotes, rules: VerdictRules, reasons: Mapping[tuple[str, str], str]) -> _Panel:
    if rules.judging is None:
        raise StatisticsError("these rules are of a run that ranks responses")
    weight_of = {seat.id: seat.weight for seat in rules.seats}
    weights = np.where(votes.has_vote, [weight_of[seat] for seat in votes.seats], 0.0)
    answer_shares, whys, complete = votes.answer_shares, [], []
    for row, key in enumerate(votes.texts):
        eligible = rules.may_judge(key[1])
        columns = [votes.seats.index(seat.id) for seat in eligible]
        weight = sum(
            seat.weight * answer_shares[row, column]
            for seat, column in zip(eligible, columns, strict=True)
        )
        complete.append(bool(columns) and bool((answer_shares[row, columns] == 1).all()))
        if not eligible:
            whys.append("excluded: every voting judge wrote the text")
        elif not weights[row].any():
            whys.append(reasons.get(key, "not judged: the run is incomplete"))
        elif not rules.enough(weight, eligible):
            absent = [seat.id for seat, column in zip(eligible, columns, strict=True)
                      if not votes.has_vote[row, column]]  # fmt: skip
            names = ", ".join(absent) or "some"
            whys.append(f"below the quorum: no usable judgment by {names}")
        else:
            whys.append("")
    return _Panel(rules.judging, votes, rules, weights, tuple(whys), tuple(complete))


# -- labels ----------------------------------------------------------------------------------------


def _posteriors(panel: _Panel) -> tuple[Floats, MethodUse | None]:
    """The share of each label, (N, K): of the panel's weight, or as the run's method weighs votes."""
    shares = vote_shares(panel.votes, panel.weights)
    method = panel.rules.method_name
    if method == MAJORITY:
        return shares, None
    rows = np.flatnonzero([not reason for reason in panel.refusals])
    try:
        p, use = _fit_labels(panel.votes.take(rows), panel.rules)
    except StatisticsError as refusal:
        fallback = f"{method}: {refusal}"
        return shares, MethodUse(MAJORITY, fallback=fallback, n_items=len(rows))
    shares[rows] = p
    return shares, use


def vote_shares(votes: TextVotes, weights: Floats) -> Floats:
    """The share of the weight that is for each label, (N, K); 0 where nobody has a say."""
    by_label = np.nansum(votes.shares * weights[:, :, None], axis=1)
    total = by_label.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(by_label, total, out=np.zeros(by_label.shape), where=total > 0)
    return shares


def _fit_labels(votes: TextVotes, rules: VerdictRules) -> tuple[Floats, MethodUse]:
    """The posterior of each label, (N, K), by a model that reads the votes on all texts.

    Unlike the sides of a pair, labels have a meaning of their own, so a model may learn how often
    each occurs and which way a judge errs.

    Raises:
        StatisticsError: too few texts, a model that is not identified, or one that did not converge.
    """
    n = len(votes.texts)
    if n < FEWEST:
        raise StatisticsError(f"{n} texts are too few to weigh the judges by ({FEWEST} needed)")
    if votes.n_labels > 2:
        patterns = collapse_classes(label_codes(votes), n_outcomes=votes.n_labels)
        fit = dawid_skene_classes(patterns)
        if not fit.converged:
            raise StatisticsError(f"the fit did not converge in {fit.n_iter} steps")
        use = MethodUse(rules.method, converged=True, n_items=n, n_rows=n)
        return fit.tempered_posterior, use
    table = two_label_table(votes, rules)
    result = attempt(rules.method, method_runner(rules.method, table, rules.seed), table.patterns())
    if result.p is None or result.fit is None:
        raise StatisticsError(result.refusal or "no fit")
    if not result.fit.converged:
        raise StatisticsError(f"the fit did not converge in {result.fit.n_iter} steps")
    model = result.selected if rules.method == AUTO else None
    use = MethodUse(rules.method, model, result.reason, True, n_items=n, n_rows=n)
    return np.column_stack([result.p, 1 - result.p]), use


def label_codes(votes: TextVotes) -> Index:
    """The label that each judge gives each text, (N, J); -1 where it has no single one."""
    opinions = votes.says
    return np.where(np.isnan(opinions), -1, np.nan_to_num(opinions)).astype(np.intp)


def two_label_table(votes: TextVotes, rules: VerdictRules) -> MethodTable:
    """The votes as models of two sides read them: side 1 is the run's first label."""
    first = votes.shares[:, :, 0]
    codes = np.where(first > 0.5, 1, np.where(first < 0.5, 0, TIE))
    codes = np.where(np.isnan(first), MISSING, codes).astype(np.int8)
    return MethodTable(
        items=tuple(text_names(votes.texts).values()),
        codes=codes,
        truth=np.full(len(votes.texts), np.nan),
        groups=votes.clusters,
        judges=np.arange(len(votes.seats)),
        families=tuple(seat.family for seat in rules.seats),
    )


def _label_verdict(panel: _Panel, row: int, p: Floats, use: MethodUse | None) -> Verdict:
    item_id, candidate = panel.votes.texts[row]
    method = MAJORITY if use is None else use.method
    if panel.refusals[row]:
        return _abstained(item_id, candidate, method, panel.refusals[row])
    names = list(panel.judging.labels)
    order = np.argsort(-p, kind="stable")
    first, second = float(p[order[0]]), float(p[order[1]])
    by_label = {name: round(share, _DIGITS) for name, share in zip(names, p.tolist(), strict=True)}
    if first - second <= _LEVEL:
        level = [name for name in names if first - by_label[name] <= 1e-6]
        verdict = _abstained(item_id, candidate, method, f"level: {', '.join(level)}")
        return verdict.model_copy(update={"p": by_label, "split": _split(panel, row, None)})
    label = names[order[0]]
    votes = panel.votes.says[row][panel.weights[row] > 0]
    return Verdict(
        item_id=item_id,
        candidate=candidate,
        method=method,
        model=None if use is None else use.model,
        fallback=None if use is None else use.fallback,
        ranking=None,
        winner=None,
        label=label,
        confidence=round(first - second, _DIGITS),
        unanimous=panel.is_complete[row] and bool((votes == order[0]).all()),
        split=_split(panel, row, label),
        p=by_label,
        passed=panel.judging.passes(label),
    )


def _split(panel: _Panel, row: int, label: str | None) -> str:
    names = list(panel.judging.labels)
    opinions = panel.votes.says[row][panel.weights[row] > 0].tolist()
    return split_of([None if code != code else names[int(code)] for code in opinions], label)


# -- scores ----------------------------------------------------------------------------------------


def _score_verdict(panel: _Panel, row: int) -> Verdict:
    item_id, candidate = panel.votes.texts[row]
    method = panel.rules.method_name
    if panel.refusals[row]:
        return _abstained(item_id, candidate, method, panel.refusals[row])
    present = panel.weights[row] > 0
    scores, weights = panel.votes.says[row][present], panel.weights[row][present]
    score = (
        weighted_median(scores, weights)
        if method == MEDIAN
        else np.average(scores, weights=weights)
    )
    confidence = _score_confidence(scores, weights, float(score), panel.judging)
    least = panel.rules.min_confidence or 0.0
    if confidence < least:
        reason = f"for review: confidence {confidence:.2f} is below {least:g} (min_confidence)"
        return _abstained(item_id, candidate, method, reason)
    return Verdict(
        item_id=item_id,
        candidate=candidate,
        method=method,
        ranking=None,
        winner=None,
        score=round(float(score), _DIGITS),
        confidence=round(confidence, _DIGITS),
        unanimous=panel.is_complete[row] and bool(np.ptp(scores) == 0),
        passed=panel.judging.passes(round(float(score), _DIGITS)),
    )


def weighted_median(scores: Floats, weights: Floats) -> float:
    """The score with half of the weight on either side; the mean of two where that is between them."""
    order = np.argsort(scores, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    at = int(np.searchsorted(shares, 0.5 - _LEVEL))
    values = scores[order]
    if abs(shares[at] - 0.5) <= _LEVEL and at + 1 < len(values):
        return float(values[at] + values[at + 1]) / 2
    return float(values[at])


def _score_confidence(
    scores: Floats, weights: Floats, score: float, judging: JudgingConfig
) -> float:
    """How close the judges are, 0 to 1: 1 where they agree, 0 where they stand at both ends.

    One less the mean distance from the verdict, as a share of half the scale.
    """
    low, high = judging.bounds
    distance = float(np.average(np.abs(scores - score), weights=weights))
    return max(0.0, 1 - distance / ((high - low) / 2))


# -- no verdict ------------------------------------------------------------------------------------


def _abstained(item_id: str, candidate: str, method: str, reason: str) -> Verdict:
    return Verdict(
        item_id=item_id,
        candidate=candidate,
        method=method,
        ranking=None,
        winner=None,
        abstained=reason,
    )


def _unless_close(verdict: Verdict, least: float) -> Verdict:
    """The verdict, or an abstention where its label is not confident enough."""
    if verdict.label is None or verdict.confidence is None or verdict.confidence >= least:
        return verdict
    return left_for_review(verdict, least, label=None, passed=None)
