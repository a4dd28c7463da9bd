"""Whether judges favour their own when they are told who wrote what: a blind and an unblinded arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.concordance.cases import candidate_profiles, own_name
from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import (
    PairedDifference,
    Significance,
    paired_difference,
    wilcoxon_signed_rank,
)
from clash.stats.intervals import Interval, wilson_clustered
from clash.votes.matrix import SIDES
from clash.votes.style import organisation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.stats.typing import Bools, Codes, Floats
    from clash.votes.ballots import ItemRankings

EVERY_JUDGE = "all"
_NO_KIN = "no judge of this run has a candidate of its own family beside another"


@dataclass(frozen=True)
class OwnRate:
    """How often judges rank their own candidates above the others, with and without names.

    Attributes:
        judge: the judge, or ``all``.
        kinship: ``itself``, its ``family``, or the name of a candidate of its family.
        n: pairs of an item and a judge that judged it in both arms.
        n_items: items among them.
        blind: share of comparisons of own with others that own wins, a tie half.
        open_rate: the same where the judges were told the names.
        effect: told less blind, on the same items: t test, clustered by item.
        signed_rank: Wilcoxon's signed rank test of the same, over clusters of items.
        n_labelled: of ``n``, with a label that tells who is better.
        people: the same share by people, on those; null without labels.
        blind_excess: blind less people, on those; null likewise.
        open_excess: told less people, likewise.
    """

    judge: str
    kinship: str
    n: int
    n_items: int
    blind: Interval
    open_rate: Interval
    effect: PairedDifference
    signed_rank: Significance
    n_labelled: int
    people: Interval | None
    blind_excess: PairedDifference | None
    open_excess: PairedDifference | None


@dataclass(frozen=True)
class Favouritism:
    """A blind run and its unblinded arm.

    Attributes:
        families: by family: over all judges, then by judge.
        selves: judges that are candidates themselves, likewise; empty where there are none.
        candidates: by candidate, over the judges of its family.
        missing: judgments of an item with own and other responses that are in one arm only.
    """

    families: tuple[OwnRate, ...]
    selves: tuple[OwnRate, ...]
    candidates: tuple[OwnRate, ...]
    missing: int


@dataclass(frozen=True)
class _Row:
    """One judge on one item: share of comparisons that own wins, NaN for people without a label."""

    item: str
    judge: str
    blind: float
    open_rate: float
    people: float


def favouritism(blind: RunData, open_arm: RunData) -> Favouritism:
    """Compare how judges rank their own candidates in a blind and an unblinded arm of the same pages.

    Raises:
        StatisticsError: no judge has its own among the candidates of an item with others.
    """
    by_family, by_self = _kin(blind)
    rows, missing = _rows(blind, open_arm, by_family)
    own_rows, _ = _rows(blind, open_arm, by_self)
    if not rows and not own_rows:
        raise StatisticsError(_NO_KIN)
    return Favouritism(
        tuple(_lines(rows, "family", blind)),
        tuple(_lines(own_rows, "itself", blind)),
        tuple(_candidates(blind, open_arm, by_family, candidate_families(blind))),
        missing,
    )


def require_kin(run: RunData) -> None:
    """Refuse a run in which no judge has ranked its own candidate beside others, before any new call.

    Raises:
        StatisticsError: there is none.
    """
    if not any(_rows(run, run, kin)[0] for kin in _kin(run)):
        raise StatisticsError(_NO_KIN)


def _kin(run: RunData) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """By judge, the candidates of its family, and itself where it is one."""
    families = candidate_families(run)
    judges = run.rules.panelists
    by_family = {
        judge.id: frozenset(name for name, family in families.items() if family == judge.family)
        for judge in judges
    }
    by_self = {
        judge.id: frozenset({name})
        for judge in judges
        if (name := own_name(judge.id, run.candidates)) is not None
    }
    return by_family, by_self


def candidate_families(run: RunData) -> dict[str, str]:
    """The family of each candidate: from the manifest, else from the name of its model."""
    profiles = candidate_profiles(run)
    models = {response.candidate: response.model or "" for response in run.responses}
    candidates = run.manifest.candidates or run.manifest.config["candidates"]
    models |= {
        str(candidate["id"]): candidate["model"]
        for candidate in candidates
        if candidate.get("model")
    }
    families = {}
    for name in run.candidates:
        profile = profiles.get(name)
        family = profile.family if profile else None
        family = family or organisation(models.get(name, "")) or organisation(name)
        if family is not None:
            families[name] = family
    return families


def _rows(
    blind: RunData, open_arm: RunData, kin_by_judge: Mapping[str, Collection[str]]
) -> tuple[list[_Row], int]:
    """A row for each judge and item in both arms, and how many are in one arm only."""
    rows, missing = [], 0
    for item in blind.items:
        arms = [run.ballots.get(item.item_id) for run in (blind, open_arm)]
        for judge, names in kin_by_judge.items():
            pair = [_share(ballots, judge, names) for ballots in arms]
            missing += int(np.isnan(pair).sum() == 1)
            if not np.isnan(pair).any():
                people = _human_share(blind, item.item_id, names)
                rows.append(_Row(item.item_id, judge, pair[0], pair[1], people))
    return rows, missing


def _share(ballots: ItemRankings | None, judge: str, kin: Collection[str]) -> float:
    """The share of comparisons of own candidates with others that own wins, a tie half."""
    if ballots is None or judge not in ballots.ranks:
        return np.nan
    kin_columns = [n for n, name in enumerate(ballots.candidates) if name in kin]
    rival_columns = [n for n, name in enumerate(ballots.candidates) if name not in kin]
    ranks = ballots.ranks[judge]
    lead = np.sign(ranks[:, None, rival_columns] - ranks[:, kin_columns, None])
    leads = lead[~np.isnan(lead)]
    return float((leads.mean() + 1) / 2) if leads.size else np.nan


def _human_share(run: RunData, item: str, kin: Collection[str]) -> float:
    """The same by the labels of the item; NaN where they do not decide."""
    truth = run.truths.get(item)
    if truth is None:
        return np.nan
    names = run.responders[item]
    outcomes = [
        SIDES[side]
        for name in names
        if name in kin
        for rival in names
        if rival not in kin and (side := truth.side(name, rival)) is not None
    ]
    return float(np.mean(outcomes)) if outcomes else np.nan


def _lines(rows: Sequence[_Row], kinship: str, run: RunData) -> Iterable[OwnRate]:
    """Over all judges, where there are several, then by judge."""
    judges = list(dict.fromkeys(row.judge for row in rows))
    if len(judges) > 1:
        yield _own_rate(EVERY_JUDGE, kinship, rows, run)
    for judge in judges:
        yield _own_rate(judge, kinship, [row for row in rows if row.judge == judge], run)


def _candidates(
    blind: RunData,
    open_arm: RunData,
    by_family: Mapping[str, Collection[str]],
    families: Mapping[str, str],
) -> Iterable[OwnRate]:
    """Each candidate by the judges of its family, against candidates of other families."""
    for name in families:
        judges = {judge: {name} for judge, names in by_family.items() if name in names}
        rows, _ = _rows(_without_kin(blind, name, families), open_arm, judges)
        if rows:
            yield _own_rate(EVERY_JUDGE, name, rows, blind)


def _without_kin(run: RunData, name: str, families: Mapping[str, str]) -> RunData:
    """The items on which a candidate meets nobody of its own family."""
    kin = {relative for relative, family in families.items() if family == families[name]} - {name}
    ids = {
        item for item, names in run.responders.items() if name in names and kin.isdisjoint(names)
    }
    return run.only(ids)


def _own_rate(judge: str, kinship: str, rows: Sequence[_Row], run: RunData) -> OwnRate:
    blind, open_rate, people = (
        np.array([getattr(row, part) for row in rows]) for part in ("blind", "open_rate", "people")
    )
    clusters = np.array([run.clusters[row.item] for row in rows])
    has_label = ~np.isnan(people)
    return OwnRate(
        judge,
        kinship,
        len(rows),
        len({row.item for row in rows}),
        wilson_clustered(blind, clusters),
        wilson_clustered(open_rate, clusters),
        paired_difference(open_rate, blind, clusters),
        wilcoxon_signed_rank(open_rate, blind, clusters),
        int(has_label.sum()),
        wilson_clustered(people[has_label], clusters[has_label]) if has_label.any() else None,
        _excess(blind, people, has_label, clusters),
        _excess(open_rate, people, has_label, clusters),
    )


def _excess(
    shares: Floats, people: Floats, has_label: Bools, clusters: Codes
) -> PairedDifference | None:
    if not has_label.any():
        return None
    return paired_difference(shares[has_label], people[has_label], clusters[has_label])
