"""What moves a result, as a headline, a screen and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.variance import NOISE, PROMPTS
from clash.report.formats import DASH, number, p_phrase, p_value, percent, points
from clash.report.tables import Table, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.variance import VarianceSplit, VarianceStudy

TITLE = "Where the variance comes from"
_NAMES = {
    PROMPTS: "prompts",
    NOISE: "judges' own noise",
    "responses": "new responses",
    "author": "other author of criteria",
    "rubric": "new criteria",
    "shuffle": "new shuffle",
}


def source_name(source: str) -> str:
    """The words for a source; of factors that work together, each of them."""
    return " x ".join(_NAMES.get(part, part) for part in source.split(" x "))


def headline(study: VarianceStudy) -> str:
    """The answer in one sentence."""
    split = study.panel[0]
    within = sorted(
        (part for part in split.sources if part.source != PROMPTS and " x " not in part.source),
        key=lambda part: -part.variance.estimate,
    )
    if split.total.estimate == 0:
        return "Every verdict is the same on every prompt and in every arm: nothing varies."
    if not any(part.variance.estimate for part in within):
        return "Nothing but the prompts moves the verdicts: every arm agrees."
    first = within[0]
    prompts = next(part for part in split.sources if part.source == PROMPTS)
    return (
        f"{prompts.share.estimate:.0%} of the variance of a verdict is between prompts,"
        f" {first.share.estimate:.0%} is {source_name(first.source)}."
    )


def evidence(study: VarianceStudy) -> list[str]:
    """What a new draw of each factor changes, and what another author of criteria does."""
    split = study.panel[0]
    changes = [
        f"{source_name(part.source)} {percent(part.change)}"
        for part in split.sources
        if part.change is not None
    ]
    lines = [
        f"{plural(len(study.arms), 'arm')} of {plural(split.n_items, 'prompt')};"
        f" win rate of {split.candidate} over all arms {split.mean:.0%}."
    ]
    if changes:
        lines.append(f"Verdicts that change with: {', '.join(changes)}.")
    lines += [
        f"Criteria by {effect.author} move the win rate of {effect.candidate} by"
        f" {points(effect.difference.difference)} points"
        f" (paired {p_phrase(effect.difference.test)}, {plural(effect.n, 'prompt')})."
        for effect in study.authors
    ]
    return lines


def tables(study: VarianceStudy) -> list[Table]:
    """The split of each candidate, then of each judge."""
    return with_rows(
        [
            *(components(split) for split in study.panel),
            _judges(study.judges),
            _authors(study),
        ]
    )


def components(split: VarianceSplit) -> Table:
    """A line for each source of variance."""
    rows = [
        {
            "source": source_name(part.source),
            "share": percent(part.share),
            "variance": f"{part.variance.estimate:.3f} [{part.variance.low:.3f}, {part.variance.high:.3f}]",
            "error": number(100 * part.error, ".1f"),
            "verdicts changed": percent(part.change),
        }
        for part in split.sources
    ]
    notes = [
        "share: of the variance of one verdict on one prompt; error: standard error that this"
        " source adds to the win rate of one run, in points; verdicts changed: two runs that differ"
        " in this alone (the judges' own noise is always in it). 95% intervals, clustered by prompt"
    ]
    if split.confounds:
        names = ", ".join(source_name(source) for source in split.confounds)
        notes.append(f"the judges' own noise holds what the design cannot tell from it: {names}")
    if split.missing:
        notes.append(f"{plural(split.missing, 'verdict')} missing, left out")
    return Table.of(f"{TITLE}: {split.candidate}", rows, notes=notes)


def _judges(splits: Sequence[VarianceSplit]) -> Table | None:
    """For each judge, how often its verdict changes with each factor."""
    if not splits:
        return None
    sources = list(dict.fromkeys(p.source for s in splits for p in s.sources if p.change))
    rows = [
        [split.rater, *(_change(split, source) for source in sources), str(split.n_items)]
        for split in splits
    ]
    columns = ["judge", *(source_name(source) for source in sources), "prompts"]
    note = "share of prompts on which the judge decides otherwise when this alone is drawn anew"
    return Table(
        "What changes a judge's mind", columns, rows, frozenset(range(1, len(columns))), [note]
    )


def _change(split: VarianceSplit, source: str) -> str:
    return next((percent(p.change) for p in split.sources if p.source == source), DASH)


def _authors(study: VarianceStudy) -> Table:
    rows = [
        {
            "author": effect.author,
            "candidate": effect.candidate,
            "change of win rate": points(effect.difference.difference),
            "p": p_value(effect.difference.test),
            "prompts": effect.n,
        }
        for effect in study.authors
    ]
    return Table.of(
        "Who writes the criteria",
        rows,
        text=("candidate",),
        notes=[
            "against criteria by the run's own author, on the same prompts; paired t, clustered"
        ],
    )
