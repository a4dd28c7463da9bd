"""Explain ties by the diversity of the responses: judge failure, or equivalent responses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.analysis.semantic import likeness
from clash.errors import StatisticsError
from clash.stats.diversity import MEASURES, TieSplit, diversity, split_ties
from clash.stats.icc import anova_icc
from clash.stats.intervals import Interval
from clash.stats.logistic_regression import ClusteredLogistic, clustered_logistic
from clash.stats.resample import cluster_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.semantic import Encoder, Likeness
    from clash.analysis.texts import Texts
    from clash.stats.typing import Codes, Floats
    from clash.votes import Votes


Reading = Literal["equivalence", "mixed", "failure"]
FAILURE, EQUIVALENCE = 0.2, 0.4
"""R² below which judges fail whatever the responses, and above which they decide where these
differ (judge-effectiveness pilot, 4.3 and 5)."""
REPLICATES = 200
_FLOOR_AT = 95
_FEW_ITEMS = 20
_FEW_BALLOTS = 60
MOST_JUDGES = 15


@dataclass(frozen=True)
class Slope:
    """A measure of diversity in the regression of deciding on it, a standard deviation wide.

    Attributes:
        odds: factor on the odds of deciding for one standard deviation more.
    """

    feature: str
    odds: Interval


@dataclass(frozen=True)
class TieShares:
    """The split of ties with intervals (bootstrap over groups)."""

    equivalence: Interval
    conservatism: Interval
    unguided: Interval


@dataclass(frozen=True)
class Equivalence:
    """How far the diversity of responses explains where judges decide.

    Attributes:
        semantic: what the semantic similarity is; ``semantic_version`` of what made it.
        items: items with texts and ballots.
        means: mean of each measure, in the order of ``slopes``.
        slopes: logistic regression of deciding on diversity, intercept for each judge,
            clustered by group.
        r2: of the items' discrimination rates on the measures (adjusted, so that four measures
            of nothing explain nothing), with its interval.
        ceiling: the most that it could be: the share of the variance of those rates that is
            between items, the rest being the chance of few ballots an item. NaN where one
            judge judged each item once.
        explained: ``r2`` over ``ceiling``, at most 1: of what could be explained. NaN without one.
        published: by the published bands on ``r2``, which few ballots an item keep low.
        reading: by the same bands on ``explained``, where it is known.
        shares: the split of all ties; null without ties.
        standard: judges that may set the standard of readiness.
    """

    semantic: str
    semantic_version: str
    items: int
    means: tuple[float, ...]
    slopes: tuple[Slope, ...]
    r2: Interval
    ceiling: float
    explained: float
    published: Reading
    reading: Reading
    shares: TieShares | None
    standard: tuple[str, ...]
    notes: tuple[str, ...]


def _band(share: float) -> Reading:
    return "equivalence" if share >= EQUIVALENCE else "failure" if share < FAILURE else "mixed"


def equivalence(
    votes: Votes,
    texts: Mapping[str, Texts],
    *,
    standard: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    seed: int = 0,
) -> Equivalence:
    """Regress deciding on diversity, and split the ties.

    Args:
        votes: sides and ties.
        texts: the responses by item id of the votes.
        standard: judges whose decisions are signal, that may set the standard of readiness;
            all of them where not given.
        encoder: an embedding model for the semantic similarity; without one, TF-IDF.
        seed: of the bootstrap.

    Raises:
        StatisticsError: fewer than 20 items with texts and ballots.
    """
    items = [item for item in dict.fromkeys(votes.items) if item in texts]
    table = _Table.of(votes, texts, items, encoder)
    judges = np.unique(table.judges)
    eligible = np.array(
        [standard is None or votes.judges[judge] in standard for judge in judges], dtype=bool
    )
    fit = table.fit()
    draws = _bootstrap(table, fit, eligible, np.random.default_rng(seed))
    r2 = _r2(table, np.ones(len(table.item_ids)))
    shares = _split(table, fit, eligible)
    ceiling = _ceiling(table)
    explained_share = min(1.0, r2 / ceiling) if ceiling > 0 else math.nan
    slopes = tuple(_slope(fit, table, index) for index in range(MEASURES))
    return Equivalence(
        semantic=table.semantic.name,
        semantic_version=table.semantic.version,
        items=len(table.item_ids),
        means=tuple(float(x) for x in table.raw.mean(axis=0)),
        slopes=slopes,
        r2=_percentiles(r2, draws[:, 0], len(table.item_ids)),
        ceiling=ceiling,
        explained=explained_share,
        published=_band(r2),
        reading=_band(r2 if math.isnan(explained_share) else explained_share),
        shares=None if math.isnan(shares.equivalence) else _shares(shares, draws, table),
        standard=tuple(votes.judges[j] for j, may in zip(judges, eligible, strict=True) if may),
        notes=tuple(_notes(table, eligible)),
    )


@dataclass(frozen=True)
class _Table:
    """Ballots, and the diversity of the responses they compare.

    Attributes:
        decisive: (n,), 1 or 0.
        x: (n, 4), standardised measures; ``raw`` (items, 4) as measured, ``z`` standardised.
        judges: (n,), columns of the votes; ``codes`` the same, numbered from 0.
        item: (n,), row of ``raw``.
        semantic: how alike the responses of each item are.
    """

    decisive: Floats
    x: Floats
    judges: Codes
    codes: Codes
    groups: Codes
    item: Codes
    item_ids: tuple[str, ...]
    raw: Floats
    z: Floats
    semantic: Likeness

    @classmethod
    def of(
        cls,
        votes: Votes,
        texts: Mapping[str, Texts],
        items: Sequence[str],
        encoder: Encoder | None,
    ) -> _Table:
        index_of = {item: at for at, item in enumerate(items)}
        row, judge = np.nonzero(~np.isnan(votes.matrix))
        busiest = _busiest(judge, len(votes.judges))
        row, judge = row[busiest[judge]], judge[busiest[judge]]
        has_texts = np.array([votes.items[r] in index_of for r in row], dtype=bool)
        row, judge = row[has_texts], judge[has_texts]
        if len({votes.items[r] for r in row}) < _FEW_ITEMS:
            raise StatisticsError(
                f"diversity needs {_FEW_ITEMS} items with ballots and the texts of both responses"
            )
        pairs = [texts[item] for item in items]
        firsts, seconds = [pair.first for pair in pairs], [pair.second for pair in pairs]
        semantic = likeness(firsts, seconds, encoder)
        raw = diversity(firsts, seconds, semantic.values)
        spread = raw.std(axis=0)
        z = (raw - raw.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0)
        item = np.array([index_of[votes.items[r]] for r in row], dtype=np.intp)
        is_decided = (votes.matrix[row, judge] != 0.5).astype(float)
        codes = np.unique(judge, return_inverse=True)[1].astype(np.intp)
        groups = votes.groups[row]
        ids = tuple(items)
        return cls(is_decided, z[item], judge, codes, groups, item, ids, raw, z, semantic)

    @property
    def n_judges(self) -> int:
        """Judges with ballots here."""
        return len(np.unique(self.judges))

    def design(self, codes: Codes, x: Floats) -> Floats:
        """Measures, then an intercept for each judge."""
        return np.hstack([x, np.eye(self.n_judges)[codes]])

    def fit(self, weights: Floats | None = None, start: Floats | None = None) -> ClusteredLogistic:
        """Deciding on diversity; a refit needs no last digits."""
        rows = slice(None) if weights is None else weights > 0
        return clustered_logistic(
            self.design(self.codes, self.x)[rows],
            self.decisive[rows],
            self.groups[rows],
            weights=None if weights is None else weights[rows],
            start=start,
            ridge=0.1,
            tol=1e-8 if start is None else 1e-5,
        )


def _busiest(judge: NDArray[np.intp], n_judges: int) -> NDArray[np.bool_]:
    """(J,), the judges with most ballots: a rate of its own is no use to one with few."""
    counts = np.bincount(judge, minlength=n_judges)
    members = np.zeros(n_judges, dtype=bool)
    members[np.argsort(-counts, kind="stable")[:MOST_JUDGES]] = True
    busiest: NDArray[np.bool_] = members & (counts >= max(1, min(_FEW_BALLOTS, counts.max())))
    return busiest


def _slope(fit: ClusteredLogistic, table: _Table, index: int) -> Slope:
    features = ("1 - ROUGE-L", table.semantic.feature, "length variation", "structure")
    odds = replace(
        fit.interval(index).transform(math.exp),
        n=len(table.decisive),
        n_effective=len(np.unique(table.groups)),
        method="logistic, clustered",
    )
    return Slope(features[index], odds)


def _r2(table: _Table, weights: Floats) -> float:
    """Adjusted R² of the items' discrimination rates, judges' own rates taken out."""
    ballots = weights[table.item]
    rate = _judge_rates(table, ballots)
    excess = table.decisive - rate[table.codes]
    n = len(table.item_ids)
    count = np.bincount(table.item, minlength=n)
    has_ballots = count > 0
    y = np.bincount(table.item, weights=excess, minlength=n)[has_ballots] / count[has_ballots]
    x, w = np.hstack([np.ones((n, 1)), table.z])[has_ballots], weights[has_ballots]
    root = np.sqrt(w)
    beta = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
    residual_sum = float(w @ (y - x @ beta) ** 2)
    total = float(w @ (y - np.average(y, weights=w)) ** 2)
    if total <= 1e-12:
        return 0.0
    rank = int(np.linalg.matrix_rank(x[w > 0])) - 1
    free = int(np.sum(w > 0))
    plain = 1 - residual_sum / total
    return max(0.0, 1 - (1 - plain) * (free - 1) / max(1, free - rank - 1))


def _judge_rates(table: _Table, weights: Floats) -> Floats:
    codes, judges = table.codes, table.n_judges
    total = np.bincount(codes, weights=weights, minlength=judges)
    hits = np.bincount(codes, weights=weights * table.decisive, minlength=judges)
    rates: Floats = hits / np.where(total > 0, total, 1.0)
    return rates


def _ceiling(table: _Table) -> float:
    """Share of the variance of item rates that is between items (Spearman, Brown)."""
    rates = _judge_rates(table, np.ones(len(table.decisive)))
    icc = anova_icc(table.decisive - rates[table.codes], table.item).estimate
    if math.isnan(icc):
        return math.nan
    m = float(np.bincount(table.item).mean())
    icc = max(0.0, icc)
    # Spearman-Brown: reliability of a mean of m ballots, each of reliability icc.
    return m * icc / (1 + (m - 1) * icc) if icc else 0.0


def _split(
    table: _Table,
    fit: ClusteredLogistic,
    eligible: NDArray[np.bool_],
    weights: Floats | None = None,
) -> TieSplit:
    judges = table.n_judges
    slopes, intercepts = fit.coefficients[:-judges], fit.coefficients[-judges:]
    score = table.z @ slopes
    at = 1 - 1 / (1 + np.exp(-(score[table.item][:, None] + intercepts)))
    most = float(np.percentile(score, _FLOOR_AT))
    at_most = 1 - 1 / (1 + np.exp(-(most + intercepts)))
    own_readiness = at[np.arange(len(at)), table.codes]
    w = np.ones(len(own_readiness)) if weights is None else weights
    has_weight = w > 0
    if not np.any((1 - table.decisive) * w):
        return TieSplit(math.nan, math.nan, math.nan)
    rows = np.repeat(np.flatnonzero(has_weight), w[has_weight].astype(int))
    return split_ties(own_readiness[rows], at[rows], at_most, eligible=eligible)


def _bootstrap(
    table: _Table, fit: ClusteredLogistic, eligible: NDArray[np.bool_], rng: np.random.Generator
) -> Floats:
    """(B, 4): R² and the three shares, of resampled groups."""
    draws = []
    first = np.full(len(table.item_ids), -1)
    first[table.item[::-1]] = np.arange(len(table.item))[::-1]
    for block in cluster_weights(table.groups, rng, REPLICATES):
        for weights in block:
            of_item = np.where(first >= 0, weights[first], 0.0)
            again = table.fit(weights, fit.coefficients)
            shares = _split(table, again, eligible, weights)
            draws.append(
                [_r2(table, of_item), shares.equivalence, shares.conservatism, shares.no_guidance]
            )
    return np.array(draws)


def _shares(shares: TieSplit, draws: Floats, table: _Table) -> TieShares:
    n = int(np.sum(table.decisive == 0))
    middle = (shares.equivalence, shares.conservatism, shares.no_guidance)
    equivalence, conservatism, unguided_share = (
        _percentiles(value, draws[:, 1 + at], n) for at, value in enumerate(middle)
    )
    return TieShares(equivalence, conservatism, unguided_share)


def _percentiles(estimate: float, draws: Floats, n: int) -> Interval:
    finite = draws[~np.isnan(draws)]
    low, high = np.quantile(finite, [0.025, 0.975]) if len(finite) else (0.0, 1.0)
    # A percentile interval of a floored figure can miss the estimate by a rounding.
    return Interval(
        estimate,
        min(float(low), estimate),
        max(float(high), estimate),
        0.95,
        n,
        n,
        "bootstrap over clusters, percentile",
    )


def _notes(table: _Table, eligible: NDArray[np.bool_]) -> list[str]:
    notes = [
        "the split is by a model: the reference is the judge that decides most often, among "
        "those whose decisions are signal; unguided: what it ties even where responses differ "
        "most (95th percentile)"
    ]
    if eligible.sum() < 2:
        notes.append(
            "only one judge sets the reference: its own conservatism counts as equivalence or "
            "unguided"
        )
    if table.n_judges < 2:
        notes.append("one judge: conservatism cannot be estimated")
    return notes
