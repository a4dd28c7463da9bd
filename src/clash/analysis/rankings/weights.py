"""Weights of judges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.documents import parse_json, read_text
from clash.errors import ConfigError, InputError
from clash.files.csv_reader import read_csv
from clash.stats.latent.dawid_skene import DawidSkene, one_coin
from clash.stats.latent.patterns import MISSING, TIE, collapse
from clash.stats.voting.rankings import pairwise_outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.stats.typing import Floats
    from clash.votes import Votes
    from clash.votes.named_rankings import NamedRankings


SOURCES = ("panel", "equal", "discrimination", "one-coin")


def judge_weights(source: str, rankings: NamedRankings) -> Floats:
    """A weight >= 0 for each judge, (J,).

    Args:
        source: ``panel``, the weights of the run's panel (1 each in a votes file); ``equal``;
            ``discrimination``, the share of a judge's pairs that it does not tie, over the
            greatest; ``one-coin``, the log-odds of its accuracy as the one-coin model has it
            (equation 12), 0 for a judge worse than chance; or a file, see :func:`read_weights`.
        rankings: of the judges, by candidate.

    Raises:
        ConfigError: neither a source nor a file, or a file without one of the judges.
        InputError: the file cannot be read.
        StatisticsError: the one-coin model is not identified from these rankings.
    """
    if source == "panel":
        return rankings.weights
    if source == "equal":
        return np.ones(len(rankings.judges))
    if source == "discrimination":
        return _discrimination(rankings)
    if source == "one-coin":
        return np.maximum(0.0, _log_odds(rankings))
    return from_mapping(weights_file(source), rankings.judges, source)


def vote_weights(source: str, votes: Votes) -> Floats:
    """The same for the judges of votes that name no candidates, (J,); each side is level there.

    ``one-coin`` is left to the weighted majority itself, which has the votes as it reads them.

    Raises:
        ConfigError: neither a source nor a file, or a file without one of the judges.
        InputError: the file cannot be read.
    """
    if source in ("panel", "equal"):
        return np.ones(len(votes.judges))
    if source == "discrimination":
        has_vote = ~np.isnan(votes.matrix)
        is_decisive = has_vote & (votes.matrix != 0.5)
        return _over_greatest(is_decisive.sum(axis=0), has_vote.sum(axis=0))
    return from_mapping(weights_file(source), votes.judges, source)


def weights_file(source: str) -> Mapping[str, float]:
    """The weights of a file that ``--weights`` names.

    Raises:
        ConfigError: there is no such file.
        InputError: it cannot be read.
    """
    if not Path(source).is_file():
        raise ConfigError(
            f"{source!r} is neither a source of weights nor a file",
            field="--weights",
            hint=f"{', '.join(SOURCES)}, or a file of judge and weight",
        )
    return read_weights(Path(source))


def from_mapping(weights: Mapping[str, float], judges: Sequence[str], source: str) -> Floats:
    """The weights of these judges, (J,).

    Raises:
        ConfigError: a judge has none.
    """
    missing = [name for name in judges if name not in weights]
    if missing:
        raise ConfigError(
            f"{source} has no weight for {missing[0]!r}",
            field="--weights",
            hint="write a weight for every judge, 0 for one that should not count",
        )
    return np.array([weights[name] for name in judges])


def read_weights(file: Path) -> dict[str, float]:
    """Weights by judge, from JSON (``{"judge": 1.5}``) or CSV with ``judge,weight``.

    Raises:
        InputError: with line and field, where it is neither, or a weight is not a number >= 0.
    """
    text = read_text(file)
    if not text.lstrip().startswith("{"):
        return _from_csv(file)
    weights = parse_json(text, file, hint='{"judge": 1.5}')
    return {str(name): _weight(value, file, str(name)) for name, value in weights.items()}


def _from_csv(file: Path) -> dict[str, float]:
    table = read_csv(file)
    if not {"judge", "weight"} <= set(table.header):
        raise InputError("has no columns judge,weight", path=file, line=1, hint="judge,weight")
    return {
        row.get("judge", ""): _weight(row.get("weight"), file, "weight", line)
        for line, row in table.rows
    }


def _weight(value: object, file: Path, field: str, line: int | None = None) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) else -1.0
    except (ValueError, OverflowError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise InputError(
            f"{value!r} is not a weight", path=file, line=line, field=field, hint="a number >= 0"
        )
    return number


def _discrimination(rankings: NamedRankings) -> Floats:
    outcomes = pairwise_outcomes(rankings.rankings)
    judge = rankings.rankings.judges[outcomes.ranking]
    n = np.bincount(judge, minlength=len(rankings.judges))
    return _over_greatest(np.bincount(judge, ~outcomes.tied, len(rankings.judges)), n)


def _over_greatest(n_decisive: NDArray[Any], n: NDArray[Any]) -> Floats:
    """Discrimination rates over the greatest of them; 0 for a judge without a ranking."""
    rate = np.divide(n_decisive, n, out=np.zeros(len(n)), where=n > 0)
    shares: Floats = rate / rate.max() if rate.any() else rate
    return shares


def _log_odds(rankings: NamedRankings) -> Floats:
    """log(p / (1 - p)) of each judge's accuracy p, over every pair of every item."""
    outcomes, k = pairwise_outcomes(rankings.rankings), len(rankings.candidates)
    low_candidate, high_candidate = (
        np.minimum(outcomes.first, outcomes.second),
        np.maximum(outcomes.first, outcomes.second),
    )
    item = rankings.rankings.items[outcomes.ranking]
    _, row = np.unique((item * k + low_candidate) * k + high_candidate, return_inverse=True)
    sign = np.where(outcomes.tied, 0.0, np.where(outcomes.first == low_candidate, 1.0, -1.0))
    cells = (int(row.max()) + 1, len(rankings.judges))
    lead, has_outcome = np.zeros(cells), np.zeros(cells, dtype=bool)
    judge = rankings.rankings.judges[outcomes.ranking]
    # Of a pair that a judge saw several times, the side it took more often.
    np.add.at(lead, (row, judge), sign)
    has_outcome[row, judge] = True
    codes = np.where(lead > 0, 1, np.where(lead < 0, 0, TIE))
    model = one_coin(collapse(np.where(has_outcome, codes, MISSING).astype(np.int8))).parameters
    if not isinstance(model, DawidSkene):
        raise TypeError("one-coin fits a DawidSkene law")
    # Equation 12 weighs votes of 0 and 1, which are twice the log-odds apart.
    return np.asarray(model.weights / 2)
