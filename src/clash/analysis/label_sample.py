"""Which items have a label, and with what chance: drawn for review, or a sample of each stratum.

A review draws items by sequential Poisson sampling (Ohlsson 1998). Each item has a number u in
(0, 1), which follows from the seed and its id, and a rate, higher where the panel is unsure; items
come in the order of u / rate. After n of them the next one's u / rate is the threshold tau, and each
item had the chance min(1, rate tau) of being among the n (Duffield, Lund and Thorup 2007). The order
does not depend on any label, so the chances hold wherever the review stops.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.labels import ItemLabel
from clash.records import LabelDraw
from clash.stats.hypothesis_tests import two_sided
from clash.stats.selection.corrected_share import FEWEST
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData
    from clash.records import Label, Verdict
    from clash.stats.typing import Floats, Index

FEWEST_IN_STRATUM = 5
LEVEL = 0.01
"""Level of the test that labelled items are a sample like the rest."""
MEND = "label items that are drawn at random: clash review RUN"
_UNSURE_RATE = 2.0
"""How much likelier an item is drawn on which the panel is split evenly than one on which it is
unanimous. People and panel differ about twice as often there, so that rates of 1.4 to 2 are best."""


@dataclass(frozen=True)
class LabelSample:
    """How the labelled items of a run came to be labelled.

    Attributes:
        has_label: (N,).
        chances: (N,), of each item to be labelled; null where they were not recorded.
        strata: (N,), 1 where the panel was unanimous; null where one sample is of all items.
        refusal: why these labels are no sample that speaks for all items; null where they are.
        any_time: a review drew the items, and stops when it has seen enough.
    """

    has_label: NDArray[np.bool_]
    chances: Floats | None = None
    strata: Index | None = None
    refusal: str | None = None
    any_time: bool = False


def draw_rate(verdict: Verdict) -> float:
    """The rate at which an item is drawn: 1 where the panel is sure, 2 where it is not at all."""
    confidence = 0.0 if verdict.confidence is None else verdict.confidence
    return round(_UNSURE_RATE - (_UNSURE_RATE - 1) * min(max(confidence, 0.0), 1.0), 6)


def draw_key(item_id: str, seed: int, rate: float) -> float:
    """An item's place in the order of a draw: u / rate."""
    digest = hashlib.sha256(f"{seed}\0{item_id}".encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:8], "big") + 0.5) / 2**64 / rate


def draw_order(
    verdicts: Iterable[Verdict], seed: int, *, equal: bool
) -> list[tuple[str, LabelDraw]]:
    """The items in the order in which a review draws them.

    Args:
        verdicts: of the items.
        seed: of the draw.
        equal: all items have the same chance.
    """
    draws = [
        (
            verdict.item_id,
            LabelDraw(seed=seed, rate=1.0 if equal else draw_rate(verdict), equal=equal),
        )
        for verdict in verdicts
    ]
    return sorted(draws, key=lambda pair: draw_key(pair[0], seed, pair[1].rate))


def label_sample(run: RunData) -> LabelSample:
    """How the labelled items of a run were chosen, by what their labels say of it."""
    has_label = np.array([item_id in run.truth for item_id in run.rows], dtype=bool)
    n = len(set(run.cluster_codes[has_label].tolist()))
    if n < FEWEST:
        return LabelSample(
            has_label,
            refusal=f"{plural(n, 'labelled prompt')} {'is' if n == 1 else 'are'} too few ({FEWEST});"
            f" {MEND}",
        )
    if has_label.all():
        return LabelSample(has_label)
    draws = item_draws(run.labels)
    if not draws:
        return _by_strata(run, has_label)
    # The size of a sample with equal chances was asked for; any other draw ends by what it shows.
    any_time = not next(iter(draws.values())).equal
    return LabelSample(has_label, _drawn_chances(run, has_label, draws), any_time=any_time)


def item_draws(labels: Iterable[Label]) -> dict[str, LabelDraw]:
    """The draw of each item that has one, by the commonest of the draws of a run."""
    draws = {
        label.item_id: label.draw
        for label in labels
        if label.draw is not None and ItemLabel.of(label).choice is not None
    }
    kinds = Counter((draw.seed, draw.equal) for draw in draws.values())
    if not kinds:
        return {}
    kind = max(kinds, key=lambda key: (kinds[key], key))
    return {item: draw for item, draw in draws.items() if (draw.seed, draw.equal) == kind}


def _drawn_chances(
    run: RunData, has_label: NDArray[np.bool_], draws: Mapping[str, LabelDraw]
) -> Floats:
    """The chance of each item to be labelled.

    Items labelled in another way stand for themselves alone. The chances of the others add up to the
    number of labels: items that were drawn and passed over lower them.
    """
    draw = next(iter(draws.values()))
    rates = np.array(
        [
            draws[v.item_id].rate if v.item_id in draws else 1.0 if draw.equal else draw_rate(v)
            for v in run.verdicts
        ]
    )
    keys = np.array(
        [
            draw_key(item.item_id, draw.seed, rate)
            for item, rate in zip(run.items, rates, strict=True)
        ]
    )
    is_drawn = np.array([item_id in draws for item_id in run.rows], dtype=bool)
    is_open = ~has_label & (keys > keys[is_drawn].max())
    threshold = float(keys[is_open].min()) if is_open.any() else math.inf
    eligible = is_drawn | ~has_label
    chances = np.minimum(1.0, rates * threshold)
    chances *= is_drawn.sum() / chances[eligible].sum()
    return np.asarray(np.where(eligible, np.minimum(chances, 1.0), 1.0), np.float64)


def _by_strata(run: RunData, has_label: NDArray[np.bool_]) -> LabelSample:
    """A random sample of the items on which the panel was unanimous, and one of the others.

    Where one of the two has few labels, the labels must look like a random sample of all items.
    """
    clusters = run.cluster_codes
    strata = np.array([int(verdict.unanimous) for verdict in run.verdicts], dtype=np.intp)
    sure = np.array([-1.0 if v.confidence is None else v.confidence for v in run.verdicts])
    few = None
    for stratum, words in ((1, "unanimous"), (0, "not unanimous")):
        inside = strata == stratum
        labelled_rows, unlabelled_rows = inside & has_label, inside & ~has_label
        if not unlabelled_rows.any():
            continue
        if len(np.unique(clusters[labelled_rows])) < FEWEST_IN_STRATUM:
            few = few or (
                f"{int(labelled_rows.sum())} of the {int(inside.sum())} items on which the panel"
                f" was {words} have a label, too few ({FEWEST_IN_STRATUM}); {MEND}"
            )
        elif rank_sum_p(sure[labelled_rows], sure[unlabelled_rows]) < LEVEL:
            return LabelSample(
                has_label,
                refusal=f"of the items on which the panel was {words}, the labelled ones are not a "
                f"random sample: the panel's confidence in them differs from the rest; {MEND}",
            )
    if few is None:
        several = len(np.unique(strata)) > 1
        return LabelSample(has_label, strata=strata if several else None)
    doubt = strata + sure / 10
    is_like_all = rank_sum_p(doubt[has_label], doubt[~has_label]) >= LEVEL
    return LabelSample(has_label, refusal=None if is_like_all else few)


def rank_sum_p(first: Floats, second: Floats) -> float:
    """Two-sided p of Wilcoxon's rank-sum test, normal approximation with ties; 1 if all are tied."""
    values = np.concatenate([first, second])
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[code]
    n, m, total = len(first), len(second), len(values)
    ties = float(((count.astype(float) ** 3) - count).sum()) / (total * max(total - 1, 1))
    variance = n * m / 12 * (total + 1 - ties)
    if variance <= 0:
        return 1.0
    return two_sided((float(ranks[:n].sum()) - n * (total + 1) / 2) / math.sqrt(variance))
