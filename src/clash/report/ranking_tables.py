"""Rankings of candidates, as tables and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import pick, to_dict
from clash.report.formats import DASH, JSON_DIGITS, first_names, number
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.rankings.candidate_rankings import (
        CandidatePlace,
        CandidateRankings,
        MethodRanking,
    )

SCORES = {
    "borda": "mean share of the Borda points of a ballot",
    "majority": "share of the items won, judges counted equally",
    "weighted-majority": "share of the items won, judges weighted",
    "copeland": "pairs won, level pairs count half",
    "schulze": "candidates beaten by the stronger path",
    "kemeny": "candidates ranked below in the order with the fewest contradictions",
    "bradley-terry": "log strength against the mean",
    "plackett-luce": "log strength against the mean",
}
"""What the score of each method is."""
_MOST_ROWS = 20
_MOST_NAMES = 3
_WIDEST = 8


def as_json(rankings: CandidateRankings) -> dict[str, Any]:
    """What all methods share: the ballots, the wins by pair, and why the methods differ."""
    wins = pick(rankings, "wins", "ties", digits=JSON_DIGITS)
    return {**to_dict(rankings, JSON_DIGITS), "pairwise": wins}


def methods_json(rankings: CandidateRankings) -> dict[str, dict[str, Any]]:
    """By method: how the fit ended, and every candidate, best first."""
    return {method.method: _method_json(method) for method in rankings.methods}


def _method_json(method: MethodRanking) -> dict[str, Any]:
    fit = pick(method.fit, iterations="n_iter", residual="residual", separated="is_separated")
    tie = pick(method.fit, tie_parameter="tie", digits=JSON_DIGITS)
    return {**to_dict(method, JSON_DIGITS), **fit, **tie}


def lines(rankings: CandidateRankings) -> Iterator[dict[str, Any]]:
    """A line for each method and candidate, for a file."""
    for method in rankings.methods:
        for row in method.places:
            yield {"method": method.method, **to_dict(row, JSON_DIGITS)}


def headlines(rankings: CandidateRankings) -> list[str]:
    """Who is first, and why methods differ if they do."""
    methods = [method for method in rankings.methods if method.places]
    if not methods:
        return ["No method ranks the candidates."]
    leaders, *other_leaders = dict.fromkeys(method.first for method in methods)
    verb = "is" if len(leaders) == 1 else "are level and"
    by = methods[0].method if other_leaders or len(methods) == 1 else f"all {len(methods)} methods"
    answer = f"{first_names(leaders, _MOST_NAMES)} {verb} first by {by}"
    rivals = methods[0].places[0].close
    if other_leaders:
        answer += "; other methods put others first"
    elif rivals:
        answer += f", but not significantly ahead of {first_names(rivals, _MOST_NAMES)}"
    return [f"{answer}.", *rankings.differences]


def tables(rankings: CandidateRankings, *, verbose: bool = True) -> list[Table]:
    """Ranks by all methods side by side, wins head to head, then the scores of each method.

    Args:
        rankings: of the candidates.
        verbose: with the scores of each method; otherwise of one method alone.
    """
    methods = [method for method in rankings.methods if method.places]
    head = [_side_by_side(rankings), *_head_to_head(rankings)]
    is_whole = verbose or len(methods) == 1
    return [*head, *(_scores(m, rankings) for m in methods if is_whole)]


def _side_by_side(rankings: CandidateRankings) -> Table:
    methods = [m for m in rankings.methods if m.places]
    by_name = [{row.candidate: row for row in m.places} for m in methods]
    order = _order(rankings) if methods else []
    rows = [[name, *(_rank(column.get(name)) for column in by_name)] for name in order]
    title = (
        f"{len(rankings.candidates)} candidates, {rankings.n_ranked_items} of {rankings.n_items} "
        "items with a"
        f" ranking, {len(rankings.weights)} judges, {rankings.n_rankings} rankings"
    )
    notes = []
    if rankings.replicates and methods:
        notes.append(
            "rank, best first, and in brackets the ranks that the rankings allow: "
            f"{rankings.level:.0%} intervals for all candidates together"
        )
        notes.append(
            f"bootstrap over {rankings.n_clusters} items or prompts, {rankings.replicates} "
            "replicates,"
            f" seed {rankings.seed}"
        )
    if len(set(rankings.weights.values())) > 1:
        weights = [f"{name} {weight:.3g}" for name, weight in rankings.weights.items()]
        more = [f"{len(weights) - _MOST_ROWS} more"] if len(weights) > _MOST_ROWS else []
        notes.append(
            f"judges weighted by {rankings.weights_by}: {', '.join(weights[:_MOST_ROWS] + more)}"
        )
    notes += [f"{m.method} refused: {n}" for m in rankings.methods if not m.places for n in m.notes]
    return Table(
        title,
        ["candidate", *(m.method.replace("-", "-\n") for m in methods)],
        rows[:_MOST_ROWS],
        frozenset(range(1, len(methods) + 1)),
        [*notes, *_cut(rows), *rankings.notes],
        brief=True,
    )


def _rank(row: CandidatePlace | None) -> str:
    if row is None:
        return DASH
    tie_mark = "=" if row.tied else ""
    if row.rank_low is None:
        return f"{row.rank}{tie_mark}"
    return f"{row.rank}{tie_mark} [{row.rank_low}, {row.rank_high}]"


def _head_to_head(rankings: CandidateRankings) -> Iterator[Table]:
    """How often each candidate is ranked above each other; none beyond ``_WIDEST`` candidates."""
    names = rankings.candidates
    if not 2 < len(names) <= _WIDEST:
        return
    prefers = rankings.wins + rankings.ties / 2
    order = [names.index(name) for name in _order(rankings)]
    rows = [
        [f"{at} {names[i]}", *(DASH if i == j else f"{prefers[i, j]:.4g}" for j in order)]
        for at, i in enumerate(order, start=1)
    ]
    notes = ["weight of the ballots that put the row before the column, ties count half"]
    # Names of models are long: the columns have their numbers.
    columns = ["", *(str(at) for at in range(1, len(order) + 1))]
    yield Table("Head to head", columns, rows, frozenset(range(1, len(columns))), notes)


def _order(rankings: CandidateRankings) -> list[str]:
    """The candidates by the first method that ranks them; by name where none does."""
    methods = [m for m in rankings.methods if m.places]
    return [row.candidate for row in methods[0].places] if methods else list(rankings.candidates)


def _scores(method: MethodRanking, rankings: CandidateRankings) -> Table:
    rows = [
        {
            "candidate": row.candidate,
            "place": _rank(row),
            "score": f"{row.score:.3f}",
            f"{rankings.level:.0%}": DASH
            if row.low is None
            else f"[{row.low:.3f}, {row.high:.3f}]",
            "first": number(row.first, ".0%"),
            "not apart from": DASH if row.first is None else first_names(row.close, _MOST_NAMES),
        }
        for row in method.places
    ]
    return Table.of(
        f"{method.method}: {SCORES[method.method]}",
        rows[:_MOST_ROWS],
        text=("not apart from",),
        notes=[*_fit(method), *method.notes, *_cut(rows)],
    )


def _fit(method: MethodRanking) -> Iterator[str]:
    if method.fit is not None:
        outcome = "converged" if method.fit.converged else "not converged"
        tie = "" if method.fit.tie is None else f", tie parameter {method.fit.tie:.3g}"
        yield (
            f"{outcome} in {method.fit.n_iter} steps, largest difference of observed and expected"
            f" wins {method.fit.residual:.1e}{tie}"
        )


def _cut(rows: Sequence[object]) -> list[str]:
    n_more = len(rows) - _MOST_ROWS
    return [f"and {n_more} more: --json or --out has them all"] if n_more > 0 else []
