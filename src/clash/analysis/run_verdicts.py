"""The verdicts of a run: of every item, by the method of the run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.verdicts import BORDA, VerdictRules, verdict
from clash.votes.from_run import BlindingIndex, unblind_rankings
from clash.votes.text_votes import TextVotes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clash.analysis.method_verdicts import MethodUse
    from clash.records import Item, Judgment, Response, Verdict
    from clash.store.folder import RunFolder
    from clash.votes.from_run import ItemRankings


def verdicts(folder: RunFolder) -> list[Verdict]:
    """A verdict, or the reason for none, for every item of a run, in the order of its items."""
    rules = VerdictRules.of(folder)
    judgments = folder.judgments()
    blinds = BlindingIndex.of(folder.blinding())
    if rules.judging is not None:
        items, responses = folder.items(), folder.responses()
        votes = TextVotes.of(
            items, responses, judgments, blinds, rules.seats, rules.presentations, rules.judging
        )
        return list(decide_single_texts(votes, rules, responses, judgments).verdicts)
    rankings = unblind_rankings(judgments, blinds, rules.presentations, folder.criteria())
    return list(
        decide_verdicts(rules, folder.items(), folder.responses(), judgments, rankings).verdicts
    )


@dataclass(frozen=True)
class DecidedItems:
    """The verdicts of a run.

    Attributes:
        verdicts: in the order of the items.
        use: how the method decided; null where that is the Borda count.
    """

    verdicts: tuple[Verdict, ...]
    use: MethodUse | None = None


def decide_verdicts(
    rules: VerdictRules,
    items: Sequence[Item],
    responses: Iterable[Response],
    judgments: Iterable[Judgment],
    rankings: Mapping[str, ItemRankings],
) -> DecidedItems:
    """:func:`verdicts` of what was read from a run."""
    reasons = _reasons(rules, items, responses, judgments)
    results = [
        verdict(item.item_id, rankings.get(item.item_id), rules, reasons.get(item.item_id))
        for item in items
    ]
    use, least = None, 0.0
    if rules.calibrator is not None:
        from clash.analysis.calibration.calibrated_verdicts import calibrate_verdicts
        from clash.analysis.calibration.calibrator import RiskLimit

        limit = None if rules.max_risk is None else RiskLimit(rules.max_risk, rules.risk_confidence)
        results = calibrate_verdicts(results, rankings, rules.calibrator, limit)
    elif rules.method != BORDA:
        from clash.analysis.method_verdicts import NEAR_EVEN, decide_by_method

        results, use = decide_by_method(results, items, rankings, rules)
        least = NEAR_EVEN if use.fallback is None else 0.0
    least = least if rules.min_confidence is None else rules.min_confidence
    results = [_unless_close(result, least) for result in results]
    return DecidedItems(tuple(results), use)


def decide_single_texts(
    votes: TextVotes,
    rules: VerdictRules,
    responses: Iterable[Response],
    judgments: Sequence[Judgment],
) -> DecidedItems:
    """A verdict for each text of a run that judges each by itself."""
    from clash.analysis.single_text.verdicts import decide_texts

    reasons = {
        (response.item_id, response.candidate): f"no response: {response.error or 'it is empty'}"
        for response in responses
        if response.text is None
    }
    failures: dict[str, list[str]] = defaultdict(list)
    for judgment in judgments:
        if judgment.error:
            failures[judgment.item_id].append(f"{judgment.judge}: {judgment.error}")
    for key in votes.texts:
        if failures[key[0]]:
            why = "every judge failed: " + "; ".join(failures[key[0]])[:300]
            reasons.setdefault(key, why)
    outcome = decide_texts(votes, rules, reasons)
    return DecidedItems(outcome.verdicts, outcome.use)


def _unless_close(result: Verdict, least: float) -> Verdict:
    """The verdict, or an abstention where its winner is not confident enough; ties stay ties."""
    if result.winner is None or result.confidence is None or result.confidence >= least:
        return result
    why = f"for review: confidence {result.confidence:.2f} is below {least:g} (min_confidence)"
    return result.model_copy(
        update={
            "ranking": None,
            "winner": None,
            "confidence": None,
            "unanimous": False,
            "abstained": why,
        }
    )


def _reasons(
    rules: VerdictRules,
    items: Iterable[Item],
    responses: Iterable[Response],
    judgments: Iterable[Judgment],
) -> dict[str, str]:
    """Why an item that nobody judged has no judgment."""
    failures: dict[str, list[str]] = defaultdict(list)
    for judgment in judgments:
        if judgment.error:
            failures[judgment.item_id].append(f"{judgment.judge}: {judgment.error}")
    texts: dict[str, set[str]] = defaultdict(set)
    errors: dict[str, list[str]] = defaultdict(list)
    for response in responses:
        if response.text is not None:
            texts[response.item_id].add(response.candidate)
        if response.error:
            errors[response.item_id].append(f"{response.candidate}: {response.error}")
    reasons: dict[str, str] = {}
    for item in items:
        name = item.item_id
        if failures[name]:
            reasons[name] = "every judge failed: " + "; ".join(failures[name])[:300]
        elif len(texts[name]) < 2:
            reasons[name] = "fewer than two responses: " + "; ".join(errors[name])[:300]
        elif not rules.eligible(texts[name]):
            reasons[name] = "excluded: every voting judge wrote one of the responses"
        else:
            reasons[name] = "not judged: the run is incomplete"
    return reasons
