"""Whether unanimous verdicts are right more often than split ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.concordance.breakdown import Contrast, contrast
from clash.analysis.concordance.cases import CaseRate, LabelledCase, codes, concordance_of, rate

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class ConcordanceBySplit:
    """Concordance by how the panel split.

    Attributes:
        by_split: a rate for each split, as ``2-1``.
        judges_on_split: each voting judge on the items where the panel is not unanimous.
        incomplete: items with a verdict but not of all judges: neither unanimous nor a full
            split, and left out of the contrast.
    """

    unanimous: CaseRate | None
    split: CaseRate | None
    incomplete: int
    contrast: Contrast | None
    by_split: dict[str, CaseRate]
    judges_on_split: dict[str, CaseRate]


def split(cases: Sequence[LabelledCase], voting: Sequence[str]) -> ConcordanceBySplit:
    """Compare unanimous verdicts with those that are not."""
    full_panel = [
        case for case in cases if case.outcome and all(judge in case.tops for judge in voting)
    ]
    unanimous = [case for case in full_panel if case.verdict.unanimous]
    apart = [case for case in full_panel if not case.verdict.unanimous]
    n_decided = sum(case.outcome is not None for case in cases)
    has_both = bool(unanimous and apart)
    splits = sorted({case.verdict.split or "" for case in full_panel})
    return ConcordanceBySplit(
        unanimous=concordance_of(unanimous) if unanimous else None,
        split=concordance_of(apart) if apart else None,
        incomplete=n_decided - len(full_panel),
        contrast=_contrast(unanimous, apart) if has_both else None,
        by_split={
            name: concordance_of(
                [case for case in full_panel if (case.verdict.split or "") == name]
            )
            for name in splits
        },
        judges_on_split={judge: _judge(judge, apart) for judge in voting} if apart else {},
    )


def _contrast(unanimous: Sequence[LabelledCase], split_cases: Sequence[LabelledCase]) -> Contrast:
    first, second = [case.right for case in unanimous], [case.right for case in split_cases]
    return contrast("unanimous", "split", first, second, "judged by the whole panel")


def _judge(judge: str, cases: Sequence[LabelledCase]) -> CaseRate:
    return rate([float(case.tops[judge] == case.label) for case in cases], codes(cases))
