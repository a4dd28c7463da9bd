"""Tables that only the page of a run has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.shared import FEWEST, Unknown
from clash.report import retest
from clash.report.concordance.cells import p_value
from clash.report.tables import NONE, Table, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.analysis.dependence.findings import EffectiveNumber
    from clash.analysis.further import Further
    from clash.analysis.shared import Shared
    from clash.stats.intervals import Interval

CRITERIA = "Criteria"
LENGTH = "Length"
SHARED = "Errors in common"
RETEST = "Test and retest"


def tables(more: Further) -> list[Table]:
    """Those about the judges; empty ones are for the caller to leave out."""
    return [_shared(more.shared), _lengths(more), _criteria(more)]


def again(more: Further) -> list[Table]:
    """The run against its parent; one line that says why not, where that cannot be read."""
    if more.retest is None:
        return []
    if isinstance(more.retest, Unknown):
        return [Table(RETEST, [""], [[more.retest.why]])]
    return retest.tables(more.retest)


def _criteria(more: Further) -> Table:
    rows = [
        [cell.candidate, cell.criterion, _scored(cell.mean), f"{cell.mean.n:g}"]
        for cell in more.scores.cells
    ]
    return Table(
        CRITERIA,
        ["candidate", "criterion", "mean score, 1 to 5", "items"],
        rows,
        frozenset({2, 3}),
        ["mean over items of the voting judges' mean; 95% intervals, clustered by prompt"],
    )


def _scored(mean: Interval) -> str:
    return f"{mean.estimate:.2f} [{mean.low:.2f}, {mean.high:.2f}]"


def _lengths(more: Further) -> Table:
    rows = [
        [
            line.who,
            percent(line.rate.interval),
            f"{line.rate.interval.n:g}",
            str(line.rate.left_out),
            p_value(line.rate.test),
        ]
        for line in more.lengths
    ]
    return Table(
        LENGTH,
        ["who", "puts the longer response first", "pairs", "tied, equally long or unsaid", "p"],
        rows,
        frozenset({1, 2, 3, 4}),
        ["p: of one half; longer may well be better, so read judges beside people"],
    )


def _shared(known: Shared | Unknown) -> Table:
    if isinstance(known, Unknown):
        return Table(SHARED, [""], [[f"not told: {known.why}"]])
    rows = [
        [
            f"{pair.first} : {pair.second}",
            "same" if pair.same_family else "",
            str(pair.together),
            _interval(pair.correlation),
            *([] if known.couplings is None else [_interval(pair.coupling)]),
        ]
        for pair in known.pairs
    ]
    fitted = known.couplings is not None
    return Table(
        SHARED,
        ["pair", "family", "items", "residual correlation", *(["coupling"] if fitted else [])],
        rows,
        frozenset({2, 3, 4} if fitted else {2, 3}),
        list(_read(known)),
    )


def _read(known: Shared) -> Iterator[str]:
    yield _worth(known.effective)
    if known.truth.known:
        yield f"given people's labels on {known.truth.labelled} items"
    else:
        yield (
            f"given an estimate of the truth ({known.truth.method}): what all judges get wrong together"
            " it takes for the truth, so these are too small; from 100 labels on these are the truth"
        )
    yield f"from {FEWEST} items on; `clash dependence RUN` tests and explains all of this"


def _worth(number: EffectiveNumber) -> str:
    worth = number.by_mean
    if worth is None:
        return f"how many independent judges these {number.judges} are worth cannot be told"
    return (
        f"these {number.judges} judges are worth {worth.estimate:.1f}"
        f" [{worth.low:.1f}, {worth.high:.1f}] independent ones"
    )


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return NONE
    return f"{interval.estimate:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]"
