"""The numbers of a retest under flat names, as :mod:`clash.analysis.figures` has those of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.figures import Figure, finite_figures

if TYPE_CHECKING:
    from clash.analysis.concordance.cases import CaseRate
    from clash.analysis.retest import Retest
    from clash.analysis.retest.lines import RunPair
    from clash.analysis.retest.targeted import TargetedRun


def figures(retest: Retest) -> dict[str, Figure]:
    """The numbers of the comparison under flat names, as :func:`clash.analysis.figures.figures`."""
    numbers: list[tuple[str, Figure]] = [("same", Figure.of(retest.all_same))]
    numbers.append(("pair_agreement", Figure.of(retest.pair_agreement)))
    costs = [line.cost_usd for line in retest.runs if line.cost_usd is not None]
    if costs:
        numbers.append(("cost.all", Figure(sum(costs))))
    for number, line in enumerate(retest.runs, start=1):
        numbers.append((f"run{number}.n", Figure(line.n)))
        if line.cost_usd is not None:
            numbers.append((f"run{number}.cost", Figure(line.cost_usd)))
            numbers.append((f"run{number}.cost.item", Figure(line.cost_usd / line.n)))
        if line.concordance is not None:
            numbers += _of_rate(f"run{number}", line.concordance)
    for name, share in (("combined", retest.all_runs), ("majority", retest.majority)):
        if share is not None:
            numbers += _of_rate(name, share)
    if retest.pairs:
        numbers += _of_pair(retest.pairs[0])
    for category in retest.categories:
        numbers.append((category.name.replace(" ", "_"), Figure(category.n)))
        numbers.append((f"{category.name.replace(' ', '_')}.share", Figure.of(category.share)))
    if retest.systematic is not None:
        numbers.append(("systematic", Figure.of(retest.systematic)))
    for part in retest.targeted_runs[:1]:
        numbers += _of_targeted(part)
    return dict(finite_figures(numbers))


def _of_rate(name: str, share: CaseRate) -> list[tuple[str, Figure]]:
    return [
        (f"{name}.concordance", Figure.of(share.interval)),
        (f"{name}.right", Figure(share.right)),
        (f"{name}.kappa", Figure(2 * share.estimate - 1)),
        (f"{name}.wilson.low", Figure(share.wilson.low)),
        (f"{name}.wilson.high", Figure(share.wilson.high)),
        (f"{name}.clustered.low", Figure(share.interval.low)),
        (f"{name}.clustered.high", Figure(share.interval.high)),
    ]


def _of_pair(pair: RunPair) -> list[tuple[str, Figure]]:
    numbers = [
        ("agreement", Figure.of(pair.verdicts.agreement)),
        ("kappa.verdicts", Figure.of(pair.verdicts.kappa.interval)),
    ]
    if pair.matches is not None:
        table = pair.matches
        numbers += [
            ("both", Figure(table.both)),
            ("first_only", Figure(table.first)),
            ("second_only", Figure(table.second)),
            ("neither", Figure(table.neither)),
            ("kappa.matches", Figure.of(table.kappa.interval)),
            ("mcnemar.p", Figure(table.change.p)),
            ("mcnemar.corrected", Figure(table.corrected.statistic)),
        ]
    return numbers


def _of_targeted(part: TargetedRun) -> list[tuple[str, Figure]]:
    numbers: list[tuple[str, Figure]] = []
    for group in part.groups:
        name = f"targeted.{group.name.replace(' ', '_')}"
        right = round(group.right.estimate * group.n)
        numbers += [
            (f"{name}.n", Figure(group.n)),
            (f"{name}.right", Figure(right)),
            (f"{name}.wrong", Figure(group.n - right)),
            (f"{name}.rate", Figure.of(group.right)),
        ]
    if part.confirmation is not None:
        numbers += [
            ("targeted.coin.p", Figure(part.confirmation.coin.p)),
            ("targeted.expected", Figure(part.confirmation.expected)),
        ]
    return numbers
