"""Conclusions and caveats of a dependence analysis, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.dependence.measure import TOGETHER
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.dependence.dependence_findings import Dependence
    from clash.stats.intervals import Interval

ALPHA = 0.05
MOST_NAMES = 4


def conclusions(dependence: Dependence) -> tuple[str, ...]:
    """The findings a reader should leave with, the most important first."""
    parts = (_worth, _independence, _blocs, _families, _idle, _models)
    return tuple(sentence for part in parts for sentence in part(dependence))


def _worth(dependence: Dependence) -> Iterator[str]:
    number, size = dependence.effective, dependence.effective.judges
    if number.by_mean is None or number.mean_correlation is None:
        yield (
            "No correlation of two judges can be computed, so the effective number of judges "
            "is unknown."
        )
        return
    most = "" if dependence.truth.from_labels else "at most "
    correlation = number.mean_correlation.estimate
    mean_correlation = f"{correlation:.2f} on average once the truth is known"
    if number.by_mean.estimate >= size:
        yield (
            f"{plural(size, 'judge')}, each worth a whole independent one: their votes correlate by"
            f" {mean_correlation}."
        )
    else:
        yield (
            f"{plural(size, 'judge')} are worth {most}{_range(number.by_mean)} independent"
            f" ones: their votes correlate by {mean_correlation}."
        )
    if number.by_accuracy is None:
        if number.mean_accuracy <= 0.5:
            yield (
                f"The judges are right on {number.mean_accuracy:.0%} of their votes on average, no "
                "better than chance: adding more such judges does not improve the majority."
            )
        return
    by = "by the labels" if dependence.truth.from_labels else "by the estimated truth"
    right = (
        f"Their majority is right on {number.majority_accuracy:.1%} of the rows ({by}), one of "
        "them "
        f"on {number.mean_accuracy:.1%} on average"
    )
    if number.by_accuracy.estimate < 1:
        yield f"{right}: for accuracy, the panel is worth no more than one judge."
    else:
        yield (
            f"{right}; {_range(number.by_accuracy)} independent judges of that accuracy would do "
            "as well."
        )


def _independence(dependence: Dependence) -> Iterator[str]:
    pairs_tested = [pair for pair in dependence.pairs if pair.p_holm is not None]
    if not pairs_tested:
        yield (
            "Independence cannot be tested: "
            + (dependence.tests[0].refusal or "too few votes")
            + "."
        )
        return
    pairs_rejected = [
        pair for pair in pairs_tested if pair.p_holm is not None and pair.p_holm < ALPHA
    ]
    alike = [pair for pair in pairs_rejected if pair.correlation and pair.correlation.estimate > 0]
    if not pairs_rejected:
        yield (
            f"Independence given the truth is not rejected for any of {len(pairs_tested)} pairs "
            "(Holm-corrected): dependence is negligible, or the rows are too few to detect it."
        )
        return
    yield (
        f"Independence given the truth is rejected for {len(pairs_rejected)} of "
        f"{len(pairs_tested)} pairs "
        f"(Holm-corrected at {ALPHA:g}), {len(alike)} of them because their errors coincide: a "
        "method that treats their votes as independent evidence (Dawid-Skene, a vote weighted "
        "by accuracy) is overconfident."
    )


def _blocs(dependence: Dependence) -> Iterator[str]:
    for bloc in dependence.blocs:
        m = len(bloc.judges)
        text = (
            f"{_names(bloc.judges)} ({m}) err together: correlation {bloc.within:.2f} among "
            f"themselves, {bloc.outside:.2f} with the others; the {m} are worth {bloc.worth:.1f}."
        )
        if bloc.near_copies:
            text += (
                " These votes cannot distinguish them from copies of one judge: give them one "
                "vote together, or replace some of them with other judges."
            )
        yield text
    if dependence.blocs and not dependence.truth.from_labels:
        n = dependence.truth.labelled
        basis = f"From {plural(n, 'label')}" if n else "Without labels"
        yield (
            f"{basis} it is unknown who is right: either these judges share errors, or "
            "they agree on the truth and the others' errors were mistaken for it."
        )


def _families(dependence: Dependence) -> Iterator[str]:
    if dependence.family_ratio is None:
        return
    yield (
        f"Judges of one family are coupled {dependence.family_ratio:.2f} times as strongly as "
        "judges of "
        "different families."
    )


def _idle(dependence: Dependence) -> Iterator[str]:
    idle = [judge.judge for judge in dependence.judges if judge.is_idle]
    if not idle:
        return
    reason = (
        "without it, the held-out log-loss against the labels does not rise significantly"
        if dependence.truth.from_labels
        else "it adds less than 0.01 bit about the truth to the others' votes"
    )
    yield (
        f"Removed one at a time, {len(idle)} of {len(dependence.judges)} judges make no measurable "
        f"contribution: {_names(idle)} ({reason}). Removing several together may still matter."
    )


def _models(dependence: Dependence) -> Iterator[str]:
    scores = [
        model for model in dependence.models if model.bic is not None and model.gain is not None
    ]
    if len(scores) < 2:
        return
    by_bic = min(scores, key=lambda model: model.bic or 0.0)
    by_votes = max(scores, key=lambda model: model.held_out or 0.0)
    gain = by_votes.gain
    if by_votes is scores[0] or gain is None or gain.low <= 0:
        yield (
            "Independent judges describe held-out votes as well as any model of dependence that "
            "was "
            f"fitted; BIC prefers {by_bic.name}."
        )
        return
    yield (
        f"{by_votes.name} describes held-out votes best, by {gain.estimate:.3f} "
        f"[{gain.low:.3f}, {gain.high:.3f}] nats a row over independent judges; BIC prefers "
        f"{by_bic.name}."
    )


def caveats(dependence: Dependence) -> tuple[str, ...]:
    """Limits of the analysis: estimated truth, clusters, ties and missing couplings."""
    return tuple(_truth_caveats(dependence)) + tuple(_reading_caveats(dependence))


def _truth_caveats(dependence: Dependence) -> Iterator[str]:
    if dependence.truth.from_labels:
        return
    yield (
        f"The truth is estimated from the votes ({dependence.truth.method}). Shared errors are "
        "mistaken for the truth: residual correlations are more likely too small than too "
        "large, and "
        "the panel is worth at most what is stated here."
    )
    if dependence.alternatives:
        yield (
            "By other estimates of the truth it is worth "
            + ", ".join(
                f"{alternative.by_mean:.1f} ({alternative.method})"
                for alternative in dependence.alternatives
            )
            + " judges."
        )
    labels = dependence.panel.labels
    if labels.labelled:
        yield f"{labels.sentence}."
    else:
        yield "A few hundred labelled items would settle it."
    yield from dependence.truth.warnings


def _reading_caveats(dependence: Dependence) -> Iterator[str]:
    if dependence.panel.clusters < TOGETHER:
        yield (
            f"{plural(dependence.panel.clusters, 'group')} of rows: with fewer than {TOGETHER},"
            " nothing is said of pairs of judges, of what the panel is worth, or of what a judge"
            " adds."
        )
    if dependence.couplings is not None and not dependence.truth.from_labels:
        yield (
            "Couplings and their standard errors take that estimate as given and do not "
            "include its uncertainty."
        )
    if dependence.coupling_method == "pseudo-likelihood":
        gaps = (
            ", missing votes count as no influence"
            if dependence.panel.missing + dependence.panel.ties
            else ""
        )
        yield (
            f"{len(dependence.panel.judges)} judges are too many to enumerate their votes: "
            "couplings and "
            "the tests on them predict each vote from the others (pseudo-likelihood, sandwich "
            f"errors{gaps}), and take the truth as given."
        )
    if dependence.panel.clusters < dependence.panel.rows:
        yield (
            f"{dependence.panel.rows} rows in {plural(dependence.panel.clusters, 'group')}: intervals and "
            "tests let rows "
            "of one group depend on each other."
        )
    if dependence.panel.ties:
        yield (
            f"{dependence.panel.ties:.0%} of the votes are ties: they count half in correlations "
            "and accuracies and are left out of couplings and tests."
        )
    yield from dependence.panel.notes
    if dependence.no_couplings:
        yield f"No couplings: {dependence.no_couplings}."


def _range(interval: Interval) -> str:
    """A number of judges and its interval."""
    return f"{interval.estimate:.1f} ({interval.low:.1f} to {interval.high:.1f})"


def _names(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES - 1])} … {names[-1]}"
