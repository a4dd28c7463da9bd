"""Shared errors of a run's voting judges, in brief for its report (``clash dependence`` has all)."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.patterns import MISSING, TIE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.dependence.dependence_findings import (
        EffectiveNumber,
        PairFinding,
        TruthSource,
    )
    from clash.analysis.dependence.truth import TruthEstimate
    from clash.analysis.rundata import RunData
    from clash.stats.dependence.couplings import Couplings
    from clash.stats.typing import Floats, Index, VoteCodes
    from clash.votes.binary import MethodTable


REPLICATES = 200
FEWEST = 20
"""Rows below which correlations between errors are noise."""
MOST_COUPLED = 8
"""Judges up to which couplings are fitted for a page; their number grows with its square."""
_CODES = {1.0: 1, -1.0: 0, 0.0: TIE}


@dataclass(frozen=True)
class SharedErrors:
    """Errors that judges share.

    Attributes:
        correlations: residual correlations given the truth or its estimate, shape (K, K); NaN
            where undefined.
        couplings: log odds ratios given the truth and all other judges, shape (K, K); null
            where they were not fitted, or the fit did not settle.
        pairs: both, with intervals by a bootstrap over prompts.
        effective: how many independent judges the panel is worth.
    """

    judges: tuple[str, ...]
    truth: TruthSource
    correlations: Floats
    couplings: Floats | None
    pairs: tuple[PairFinding, ...]
    effective: EffectiveNumber


@dataclass(frozen=True)
class UnknownErrors:
    """The reason why shared errors cannot be measured."""

    why: str


def shared_errors(data: RunData) -> SharedErrors | UnknownErrors:
    """Correlations and couplings of the voting judges' errors.

    Labels are the truth where a hundred items have one; else a model estimates it, which takes
    what all judges get wrong together for the truth.
    """
    # Only now: these models take longer to load than a report takes.
    from clash.analysis.dependence.truth import ENOUGH
    from clash.votes.binary import MethodTable

    judges = data.rules.voting
    items, codes, truth, groups = _table(data, [judge.id for judge in judges])
    if len(codes) < FEWEST:
        return UnknownErrors(f"{len(codes)} judged pairs of responses: too few, {FEWEST} would do")
    n_labelled = int((~np.isnan(truth)).sum())
    rows = MethodTable(
        items=items,
        codes=codes,
        truth=truth,
        groups=groups,
        judges=np.arange(len(judges)),
        families=tuple(judge.family for judge in judges),
        uses_labels=n_labelled >= ENOUGH,
    )
    try:
        return _measure_errors(data, rows)
    except StatisticsError as refusal:
        return UnknownErrors(str(refusal))


def _measure_errors(data: RunData, rows: MethodTable) -> SharedErrors:
    from clash.analysis.dependence import measure
    from clash.analysis.dependence.truth import estimate

    estimate_of_truth = estimate(rows, "auto")
    seed = data.manifest.seeds.get("seed", 0)
    correlations = measure.measure(estimate_of_truth, REPLICATES, np.random.default_rng([seed, 6]))
    coupling_fit = _couplings(estimate_of_truth, np.random.default_rng([seed, 7]))
    names = [data.rules.voting[k] for k in estimate_of_truth.rows.judges]
    ids = [judge.id for judge in names]
    return SharedErrors(
        tuple(ids),
        estimate_of_truth.source,
        correlations.correlations.within_classes,
        None if coupling_fit is None else coupling_fit.matrix,
        measure.pairs(correlations, None, coupling_fit, ids, [judge.family for judge in names]),
        measure.effective(estimate_of_truth, correlations),
    )


def _couplings(estimate: TruthEstimate, rng: np.random.Generator) -> Couplings | None:
    from clash.analysis.dependence.truth import untied_posteriors
    from clash.stats.dependence.couplings import couplings
    from clash.stats.dependence.independence import without_ties

    patterns = without_ties(estimate.patterns)
    if patterns.n_judges > MOST_COUPLED:
        return None
    try:
        coupling_fit = couplings(
            patterns,
            untied_posteriors(estimate, patterns),
            rng,
            clusters=estimate.rows.groups,
            replicates=REPLICATES,
        )
    except StatisticsError:
        return None
    return coupling_fit if coupling_fit.converged else None


def _table(
    data: RunData, judges: Sequence[str]
) -> tuple[tuple[str, ...], VoteCodes, Floats, Index]:
    """A row for each pair of responses that was judged: item (N), codes (N, K), truth and group."""
    items, codes, truth, groups = [], array("b"), array("d"), array("q")
    for item, rankings in data.ballots.items():
        for a, b in combinations(range(len(rankings.candidates)), 2):
            items.append(item)
            codes.extend(_CODES.get(rankings.lead(judge, a, b), MISSING) for judge in judges)
            truth.append(data.wins(item, rankings.candidates[a], rankings.candidates[b]))
            groups.append(data.clusters[item])
    matrix = np.asarray(codes).reshape(-1, len(judges))
    group_numbers = np.unique(groups, return_inverse=True)[1].astype(np.intp)
    return tuple(items), matrix, np.asarray(truth), group_numbers
