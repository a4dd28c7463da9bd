"""The verdicts of a run: of every item, by the method of the run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.analysis.verdicts import BORDA, VerdictRules, left_for_review, verdict
from clash.records import Blinding, Criteria, Item, Judgment, Response, Verdict
from clash.store.stored import ByItem, item_ids, with_item
from clash.votes.ballots import Ballots, unblind_rankings
from clash.votes.blinding_index import BlindingIndex
from clash.votes.by_item import SharedVerdicts
from clash.votes.text_votes import TextVotes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from clash.analysis.method_verdicts import MethodUse
    from clash.store.folder import RunFolder
    from clash.votes.ballots import ItemRankings


def verdicts(folder: RunFolder) -> Sequence[Verdict]:
    """A verdict, or the reason for none, for every item of a run, in the order of its items."""
    rules = VerdictRules.of(folder)
    judgments = folder.records(Judgment)
    blinds = BlindingIndex.of(folder.records(Blinding))
    items, responses = folder.records(Item), folder.records(Response)
    if rules.judging is not None:
        votes = TextVotes.of(
            items, responses, judgments, blinds, rules.seats, rules.presentations, rules.judging
        )
        return decide_single_texts(votes, rules, responses, judgments).verdicts
    criteria = ByItem(folder.records(Criteria))
    rankings = unblind_rankings(judgments, blinds, rules.presentations, criteria)
    return decide_verdicts(rules, items, responses, judgments, rankings).verdicts


@dataclass(frozen=True)
class DecidedItems:
    """The verdicts of a run.

    Attributes:
        verdicts: in the order of the items.
        use: how the method decided; null where that is the Borda count.
    """

    verdicts: Sequence[Verdict]
    use: MethodUse | None = None


def decide_verdicts(
    rules: VerdictRules,
    items: Sequence[Item],
    responses: Iterable[Response],
    judgments: Iterable[Judgment],
    rankings: Mapping[str, ItemRankings],
) -> DecidedItems:
    """:func:`verdicts` of what was read from a run."""
    results: Iterable[Verdict] = _by_borda(rules, items, responses, judgments, rankings)
    use, least = None, 0.0
    if rules.calibrator is not None:
        from clash.analysis.calibration.calibrated_verdicts import calibrate_verdicts
        from clash.analysis.calibration.calibrator import RiskLimit

        limit = None if rules.max_risk is None else RiskLimit(rules.max_risk, rules.risk_confidence)
        results = calibrate_verdicts(list(results), rankings, rules.calibrator, limit)
    elif rules.method != BORDA:
        from clash.analysis.method_verdicts import NEAR_EVEN, decide_by_method

        results, use = decide_by_method(list(results), items, rankings, rules)
        least = NEAR_EVEN if use.fallback is None else 0.0
    least = least if rules.min_confidence is None else rules.min_confidence
    return DecidedItems(SharedVerdicts(_unless_close(result, least) for result in results), use)


def _by_borda(
    rules: VerdictRules,
    items: Sequence[Item],
    responses: Iterable[Response],
    judgments: Iterable[Judgment],
    rankings: Mapping[str, ItemRankings],
) -> Iterator[Verdict]:
    """The verdict on each item by Borda count; items that are ranked alike are counted once."""
    missing_ids = [name for name in item_ids(items) if name not in rankings]
    reasons = _reasons(rules, missing_ids, responses, judgments) if missing_ids else {}
    verdicts: dict[int, Verdict] = {}
    for name in item_ids(items):
        ballots = rankings.get(name)
        code = rankings.pattern(name) if ballots and isinstance(rankings, Ballots) else None
        if code is not None and code in verdicts:
            yield with_item(verdicts[code], name)
            continue
        result = verdict(name, ballots, rules, reasons.get(name))
        # A tie that scores may break is each item's own.
        if code is not None and ballots is not None and not ballots.has_scores:
            verdicts[code] = result
        yield result


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
            reason = "every judge failed: " + "; ".join(failures[key[0]])[:300]
            reasons.setdefault(key, reason)
    outcome = decide_texts(votes, rules, reasons)
    return DecidedItems(outcome.verdicts, outcome.use)


def _unless_close(result: Verdict, least: float) -> Verdict:
    """The verdict, or an abstention where its winner is not confident enough; ties stay ties."""
    if result.winner is None or result.confidence is None or result.confidence >= least:
        return result
    return left_for_review(result, least, ranking=None, winner=None)


def _reasons(
    rules: VerdictRules,
    names: Collection[str],
    responses: Iterable[Response],
    judgments: Iterable[Judgment],
) -> dict[str, str]:
    """Why items that nobody judged have no judgment, by id."""
    failures: dict[str, list[str]] = {name: [] for name in names}
    for judgment in judgments:
        if judgment.error and judgment.item_id in failures:
            failures[judgment.item_id].append(f"{judgment.judge}: {judgment.error}")
    texts: dict[str, set[str]] = defaultdict(set)
    errors: dict[str, list[str]] = defaultdict(list)
    for response in responses:
        if response.item_id not in failures:
            continue
        if response.text is not None:
            texts[response.item_id].add(response.candidate)
        if response.error:
            errors[response.item_id].append(f"{response.candidate}: {response.error}")
    reasons: dict[str, str] = {}
    for name in names:
        if failures[name]:
            reasons[name] = "every judge failed: " + "; ".join(failures[name])[:300]
        elif len(texts[name]) < 2:
            reasons[name] = "fewer than two responses: " + "; ".join(errors[name])[:300]
        elif not rules.eligible(texts[name]):
            reasons[name] = "excluded: every voting judge wrote one of the responses"
        else:
            reasons[name] = "not judged: the run is incomplete"
    return reasons
