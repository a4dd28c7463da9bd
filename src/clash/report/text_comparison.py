"""The comparison of two runs of which at least one judges each text by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.decision import p_text
from clash.report.formats import DASH, estimate, number, p_cell, percent, points
from clash.report.tables import Table, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.single_text.comparison import TextChange, TextComparison, WinnerAgreement

_ALPHA = 0.05


def headline(comparison: TextComparison) -> str:
    """The answer in a sentence: how often the runs say the same, of texts or of which is better."""
    first, second = comparison.runs
    if comparison.texts is not None:
        texts = comparison.texts
        return f"{first} and {second} say the same of {percent(texts.agreement)} of {plural(texts.n, 'text')}."
    if comparison.winners is not None:
        winners = comparison.winners
        pairs = plural(winners.n, "pair")
        return f"{first} and {second} order {percent(winners.agreement)} of {pairs} of responses alike."
    return f"{first} and {second} share no text that both judge."


def evidence(comparison: TextComparison) -> list[str]:
    """What is significant beside the headline, a sentence each."""
    changes = comparison.texts.changes if comparison.texts is not None else []
    sentences = [
        f"{change.figure}: {_values(change)}, {_gap(change)} ({p_text(change.p)})."
        for change in changes
        if change.p <= _ALPHA
    ]
    winners = comparison.winners
    if winners is not None and winners.decisive is not None:
        pairs = plural(winners.n_decisive, "pair")
        sentences.append(f"Of {pairs} that both decide, they agree on {percent(winners.decisive)}.")
    if winners is not None and winners.people is not None:
        rates = " and ".join(percent(rate) for rate in winners.people)
        test = DASH if winners.people_p is None else p_text(winners.people_p)
        sentences.append(
            f"With people they agree on {rates} of {plural(winners.n_labelled, 'labelled pair')}"
            f" (paired {test})."
        )
    sentences += [
        f"{run} was interrupted before it judged {n:,} of its texts, and no figure counts them:"
        f" `clash resume {run}`."
        for run, n in zip(comparison.runs, comparison.n_unjudged, strict=True)
        if n
    ]
    return sentences


def tables(comparisons: Sequence[TextComparison]) -> list[Table]:
    """The tables of every two runs that have a row."""
    return with_rows(
        table
        for comparison in comparisons
        for table in (_changes(comparison), _winners(comparison))
    )


def _changes(comparison: TextComparison) -> Table:
    first, second = comparison.runs
    texts = comparison.texts
    rows = [
        [c.figure, number(c.first, ".3f"), number(c.second, ".3f"), _gap(c), p_cell(c.p)]
        for c in (texts.changes if texts is not None else ())
    ]
    notes = [] if texts is None else [
        f"the same verdict on {percent(texts.agreement)} of {plural(texts.n, 'text')};"
        f" kappa {estimate(texts.kappa, 2)}",
        "paired by text, clustered by prompt; no correction for the number of figures",
    ]  # fmt: skip
    columns = ["figure", first, second, "difference", "p"]
    return Table(
        f"{first} and {second}, text by text", columns, rows, frozenset({1, 2, 3, 4}), notes
    )


def _winners(comparison: TextComparison) -> Table:
    first, second = comparison.runs
    winners = comparison.winners
    rows = [] if winners is None else list(map(list, _winner_rows(winners, comparison.runs)))
    modes = " and ".join(comparison.modes)
    notes = [
        f"judging: {modes}; a single text is better than another by its score, or by having the label"
        " that passes (of two labels: the first)"
    ]
    return Table(
        f"{first} and {second}: which response is better", ["", ""], rows, frozenset(), notes
    )


def _winner_rows(winners: WinnerAgreement, runs: tuple[str, str]) -> list[tuple[str, str]]:
    rows = [
        ("pairs of responses", str(winners.n)),
        ("the same order", percent(winners.agreement)),
        ("of pairs that both decide", f"{percent(winners.decisive)} of {winners.n_decisive}"),
        ("kappa", estimate(winners.kappa, 2)),
        (
            "left level",
            ", ".join(f"{n} {rate:.0%}" for n, rate in zip(runs, winners.tied, strict=True)),
        ),
    ]
    if winners.people is not None:
        rates = zip(runs, winners.people, strict=True)
        rows.append(
            ("agreement with people", ", ".join(f"{n} {percent(rate)}" for n, rate in rates))
        )
        rows.append(
            ("difference", f"{points(winners.people_gap)}, {p_text(winners.people_p or 0.0)}")
        )
    return rows


def _values(change: TextChange) -> str:
    form = ".2f" if change.figure == "score" else ".0%"
    return f"{change.first:{form}}, then {change.second:{form}}"


def _gap(change: TextChange) -> str:
    if change.figure == "score":
        return estimate(change.difference, 2, sign="+")
    return points(change.difference)
