"""Rankings of candidates, as tables and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.report.formats import NONE, first_names, rounded
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from clash.analysis.rankings import Place, Ranked, Rankings

SCORES = {
    "borda": "mean share of the points of a ballot",
    "majority": "share of the items won, one say a judge",
    "weighted-majority": "share of the items won, judges weighted",
    "copeland": "pairs won, level ones half",
    "schulze": "candidates beaten by the stronger path",
    "kemeny": "candidates below in the order that contradicts least",
    "bradley-terry": "log strength against the mean",
    "plackett-luce": "log strength against the mean",
}
"""What the score of each method is."""
_MOST_ROWS = 20
_MOST_NAMES = 3
_WIDEST = 8


def as_json(found: Rankings) -> dict[str, Any]:
    """What the methods share: the ballots, the pairs, and why the methods differ."""
    return {
        "candidates": list(found.candidates),
        "absent": list(found.absent),
        "n_items": found.n_items,
        "n_judged": found.n_judged,
        "n_clusters": found.n_clusters,
        "n_ballots": found.n_ballots,
        "n_failed": found.failed,
        "seed": found.seed,
        "replicates": found.replicates,
        "level": found.level,
        "weights": {name: rounded(weight) for name, weight in found.weights.items()},
        "weights_by": found.weights_by,
        "pairwise": {"wins": _matrix(found.wins), "ties": _matrix(found.ties)},
        "condorcet_winner": found.condorcet,
        "smith_set": list(found.smith),
        "cycle": list(found.cycle),
        "connected": [list(group) for group in found.groups],
        "differences": list(found.differences),
        "warnings": list(found.warnings),
        "notes": list(found.notes),
    }


def methods_json(found: Rankings) -> dict[str, dict[str, Any]]:
    """By method: how the fit ended, and every candidate, best first."""
    return {method.method: _method(method) for method in found.methods}


def _method(method: Ranked) -> dict[str, Any]:
    fit = method.fit
    return {
        "status": method.status,
        "converged": method.converged,
        "iterations": fit.n_iter if fit else None,
        "residual": fit.residual if fit else None,
        "tie_parameter": rounded(fit.tie) if fit else None,
        "separated": fit.is_separated if fit else None,
        "replicates": method.replicates,
        "ranking": [_place(place) for place in method.places],
        "notes": list(method.notes),
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "candidate": place.candidate,
        "rank": place.rank,
        "rank_low": place.rank_low,
        "rank_high": place.rank_high,
        "score": rounded(place.score),
        "low": rounded(place.low),
        "high": rounded(place.high),
        "first": rounded(place.first),
        "tied_with": list(place.tied),
        "not_apart_from": list(place.close),
    }


def lines(found: Rankings) -> Iterator[dict[str, Any]]:
    """A line for each method and candidate, for a file."""
    for method in found.methods:
        for place in method.places:
            yield {"method": method.method, **_place(place)}


def _matrix(table: NDArray[Any]) -> list[list[float]]:
    rows: list[list[float]] = table.round(6).tolist()
    return rows


def tables(found: Rankings) -> list[Table]:
    """The places side by side, who beat whom, and each method's scores."""
    made = [_side_by_side(found), *_head_to_head(found)]
    return [*made, *(_scores(m, found) for m in found.methods if m.places)]


def _side_by_side(found: Rankings) -> Table:
    ranked = [m for m in found.methods if m.places]
    by_name = [{place.candidate: place for place in m.places} for m in ranked]
    order = _order(found) if ranked else []
    rows = [[name, *(_rank(column.get(name)) for column in by_name)] for name in order]
    title = (
        f"{len(found.candidates)} candidates, {found.n_judged} of {found.n_items} items with a"
        f" ballot, {len(found.weights)} judges, {found.n_ballots} ballots"
    )
    notes = []
    if found.replicates and ranked:
        notes.append(f"place, best first, and in brackets its {found.level:.0%} interval")
        notes.append(
            f"bootstrap over {found.n_clusters} items or prompts, {found.replicates} replicates,"
            f" seed {found.seed}"
        )
    if len(set(found.weights.values())) > 1:
        each = [f"{name} {weight:.3g}" for name, weight in found.weights.items()]
        more = [f"{len(each) - _MOST_ROWS} more"] if len(each) > _MOST_ROWS else []
        notes.append(
            f"judges weighted by {found.weights_by}: {', '.join(each[:_MOST_ROWS] + more)}"
        )
    notes += [f"{m.method} refused: {n}" for m in found.methods if not m.places for n in m.notes]
    return Table(
        title,
        ["candidate", *(m.method.replace("-", "-\n") for m in ranked)],
        rows[:_MOST_ROWS],
        frozenset(range(1, len(ranked) + 1)),
        [*notes, *_cut(rows), *found.notes],
        brief=True,
    )


def _rank(place: Place | None) -> str:
    if place is None:
        return NONE
    shared = "=" if place.tied else ""
    if place.rank_low is None:
        return f"{place.rank}{shared}"
    return f"{place.rank}{shared} [{place.rank_low}, {place.rank_high}]"


def _head_to_head(found: Rankings) -> Iterator[Table]:
    """Who was put before whom, where that is a table that can be read."""
    names = found.candidates
    if not 2 < len(names) <= _WIDEST:
        return
    prefers = found.wins + found.ties / 2
    order = [names.index(name) for name in _order(found)]
    rows = [
        [f"{at} {names[i]}", *(NONE if i == j else f"{prefers[i, j]:.4g}" for j in order)]
        for at, i in enumerate(order, start=1)
    ]
    notes = ["weight of the ballots that put the row before the column, a tie half"]
    # Names of models are long: the columns have their numbers.
    columns = ["", *(str(at) for at in range(1, len(order) + 1))]
    yield Table("Head to head", columns, rows, frozenset(range(1, len(columns))), notes)


def _order(found: Rankings) -> list[str]:
    """The candidates by the first method that ranks them; by name where none does."""
    ranked = [m for m in found.methods if m.places]
    return [place.candidate for place in ranked[0].places] if ranked else list(found.candidates)


def _scores(method: Ranked, found: Rankings) -> Table:
    rows = [
        [
            place.candidate,
            _rank(place),
            f"{place.score:.3f}",
            NONE if place.low is None else f"[{place.low:.3f}, {place.high:.3f}]",
            NONE if place.first is None else f"{place.first:.0%}",
            first_names(place.close, _MOST_NAMES) if place.first is not None else NONE,
        ]
        for place in method.places
    ]
    columns = ["candidate", "place", "score", f"{found.level:.0%}", "first", "not apart from"]
    return Table(
        f"{method.method}: {SCORES[method.method]}",
        columns,
        rows[:_MOST_ROWS],
        frozenset(range(1, 5)),
        [*_fit(method), *method.notes, *_cut(rows)],
    )


def _fit(method: Ranked) -> Iterator[str]:
    if method.fit is not None:
        ended = "converged" if method.fit.converged else "not converged"
        tie = "" if method.fit.tie is None else f", tie parameter {method.fit.tie:.3g}"
        yield (
            f"{ended} in {method.fit.n_iter} steps, largest difference of observed and expected"
            f" wins {method.fit.residual:.1e}{tie}"
        )


def _cut(rows: Sequence[object]) -> list[str]:
    rest = len(rows) - _MOST_ROWS
    return [f"and {rest} more: --json or --out has them all"] if rest > 0 else []
