"""Which labelled items to judge: inclusion rules, then a seeded draw; each exclusion has a reason.

The preset ``paper`` holds the rules of the second experiment of "Multi-Agent Judging for LLM
Evaluation": both models in its set of frontier models, a clear winner, an anonymous battle,
English, one turn, 30 characters at least in each response; seed 42. The paper's own script is not
published, so the same rules draw a sample of the same kind, not the same hundred battles.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from clash.datasets import published_models
from clash.datasets.dataset import Dataset, Exclusion, ItemFacts, repeats
from clash.errors import InputError
from clash.labels import TIE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from clash.records import Item, Label

Stratum = Literal["winner", "tier", "tag"]


@dataclass(frozen=True)
class SamplingRules:
    """Which items may be drawn, how many, and how.

    Attributes:
        n: how many to draw; null takes every one that the rules admit.
        frontier: both models in the paper's set, and called by its names.
        min_chars: characters that each response has at least.
        stratify: draw from each winner, tier of the winner or first tag in its proportion.
        keep_repeats: an item that shows what an earlier one shows, prompt and responses alike, is
            an item too.
    """

    n: int | None = None
    seed: int = 42
    frontier: bool = False
    clear_winner: bool = False
    anonymous: bool = False
    language: str | None = None
    turns: int | None = None
    min_chars: int = 0
    stratify: Stratum | None = None
    keep_repeats: bool = False

    def record(self) -> dict[str, Any]:
        """As a manifest holds them; a rule that came later only where it is used."""
        rules = asdict(self)
        if not self.keep_repeats:
            del rules["keep_repeats"]
        return rules


PAPER_ARENA = SamplingRules(
    frontier=True,
    clear_winner=True,
    anonymous=True,
    language="English",
    turns=1,
    min_chars=30,
)
"""The second experiment's, on Chatbot Arena."""

PAPER_MT_BENCH = SamplingRules(clear_winner=True, turns=1)
"""The first experiment's, on MT-Bench."""


def paper_rules(dataset: str) -> SamplingRules:
    """The paper's rules for a data set; everything labelled, for one that it does not use."""
    if dataset.startswith("arena"):
        return PAPER_ARENA
    return PAPER_MT_BENCH if dataset == "mt-bench" else SamplingRules(clear_winner=True)


@dataclass(frozen=True)
class DatasetSample:
    """The drawn items, and the reason for each one left out.

    Attributes:
        counts: items of the source, admitted, drawn, and left out by each reason.
        open_rules: rules that the source cannot answer, and that therefore excluded nothing.
    """

    dataset: Dataset
    rules: SamplingRules
    counts: Mapping[str, int]
    open_rules: tuple[str, ...] = ()
    strata: Mapping[str, int] = field(default_factory=dict)

    def summary(self) -> str:
        """The account as JSON."""
        account = {
            "dataset": self.dataset.name,
            "source": self.dataset.source,
            "licence": self.dataset.licence,
            "rules": self.rules.record(),
            "counts": self.counts,
            "strata": self.strata,
            "unanswered": self.open_rules,
        }
        return json.dumps(account, ensure_ascii=False)


def sample(dataset: Dataset, rules: SamplingRules, rng: np.random.Generator) -> DatasetSample:
    """Draw ``rules.n`` items of those that the rules admit.

    The items keep the order of the source. Each excluded one is in ``dataset.exclusions`` with the
    first rule that it fails.

    Raises:
        InputError: more are asked for than the rules admit.
    """
    before = len(dataset.items) + len(dataset.exclusions)
    source = with_paper_names(dataset) if rules.frontier else dataset
    duplicates = {} if rules.keep_repeats else repeats(source)
    texts = source.texts()
    eligible: list[Item] = []
    exclusions: list[Exclusion] = []
    for item in source.items:
        facts = source.facts.get(item.item_id, ItemFacts())
        reason = _fails(item, texts[item.item_id], facts, rules)
        if reason is None and item.item_id in duplicates:
            reason = "same prompt and responses as another item"
        if reason is None:
            eligible.append(item)
        else:
            exclusions.append(Exclusion(item.item_id, reason))
    ids = _draw(eligible, rules, rng)
    exclusions += [
        Exclusion(item.item_id, f"not drawn (seed {rules.seed})")
        for item in eligible
        if item.item_id not in ids
    ]
    subset = source.only(ids, exclusions)
    counts = {"items": before, "admitted": len(eligible), "drawn": len(ids)}
    strata = Counter(_stratum(item, rules.stratify) for item in subset.items)
    return DatasetSample(
        dataset=subset,
        rules=rules,
        counts=counts | subset.excluded_by_reason(),
        open_rules=_unanswered_rules(source, rules),
        strata=dict(strata.most_common()) if rules.stratify else {},
    )


def with_paper_names(dataset: Dataset) -> Dataset:
    """The data set with the paper's names for the models that it knows.

    An item of two versions that the paper calls by one name keeps the names it has.
    """
    paper_names = {item_id: _short(texts) for item_id, texts in dataset.texts().items()}

    def name(item_id: str, candidate: str | None) -> str | None:
        return paper_names[item_id].get(candidate or "", candidate)

    return replace(
        dataset,
        items=tuple(
            item.model_copy(update={"label": name(item.item_id, item.label)})
            for item in dataset.items
        ),
        responses=tuple(
            r.model_copy(update={"candidate": name(r.item_id, r.candidate), "model": r.candidate})
            for r in dataset.responses
        ),
        labels=tuple(_rename_label(label, paper_names[label.item_id]) for label in dataset.labels),
    )


def _rename_label(label: Label, paper_names: Mapping[str, str]) -> Label:
    ranking = label.ranking and [[paper_names.get(n, n) for n in group] for group in label.ranking]
    return label.model_copy(
        update={
            "winner": paper_names.get(label.winner or "", label.winner),
            "ranking": ranking,
            "scores": {paper_names.get(name, name): score for name, score in label.scores.items()},
        }
    )


def _short(candidates: Iterable[str]) -> dict[str, str]:
    names = {name: model.name for name in candidates if (model := published_models.find(name))}
    return names if len(set(names.values())) == len(names) else {}


def _fails(
    item: Item, texts: Mapping[str, str | None], facts: ItemFacts, rules: SamplingRules
) -> str | None:
    """The first rule that an item fails. A fact that the source does not state fails no rule."""
    if rules.frontier and not all(_is_frontier(name) for name in texts):
        return "a model is not in the frontier set"
    if rules.clear_winner and item.label in (None, TIE):
        return "no clear winner"
    if rules.anonymous and facts.anonymous is False:
        return "not anonymous"
    if rules.language and facts.language not in (None, rules.language):
        return f"not in {rules.language}"
    if rules.turns and facts.turns not in (None, rules.turns):
        return "not single-turn" if rules.turns == 1 else f"not of {rules.turns} turns"
    if (
        min((len(text or "") for text in texts.values()), default=len(item.prompt or ""))
        < rules.min_chars
    ):
        return f"a response is shorter than {rules.min_chars} characters"
    return None


def _is_frontier(name: str) -> bool:
    model = published_models.find(name)
    return model is not None and model.frontier


def _unanswered_rules(dataset: Dataset, rules: SamplingRules) -> tuple[str, ...]:
    facts = [dataset.facts.get(item.item_id, ItemFacts()) for item in dataset.items]
    wishes = {"anonymous": rules.anonymous, "language": rules.language, "turns": rules.turns}
    return tuple(
        name
        for name, wish in wishes.items()
        if wish and any(getattr(fact, name) is None for fact in facts)
    )


def _draw(eligible: Sequence[Item], rules: SamplingRules, rng: np.random.Generator) -> set[str]:
    if rules.n is None or rules.n == len(eligible):
        return {item.item_id for item in eligible}
    if rules.n > len(eligible):
        raise InputError(
            f"{rules.n} items are requested, but the rules admit only {len(eligible)}",
            field="n",
            hint="request fewer, or relax a rule",
        )
    strata: dict[str, list[str]] = {}
    for item in eligible:
        strata.setdefault(_stratum(item, rules.stratify), []).append(item.item_id)
    shares = _shares({name: len(members) for name, members in strata.items()}, rules.n)
    ids: set[str] = set()
    for name in sorted(strata):
        indices = rng.choice(len(strata[name]), size=shares[name], replace=False)
        ids |= {strata[name][index] for index in indices}
    return ids


def _stratum(item: Item, by: Stratum | None) -> str:
    match by:
        case None:
            return ""
        case "winner":
            return item.label or "no label"
        case "tag":
            return item.tags[0] if item.tags else "no tag"
        case "tier":
            model = published_models.find(item.label or "")
            return (model and model.tier) or "no tier"


def _shares(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """``n`` split in proportion to the sizes: whole parts, then the largest remainders."""
    total = sum(sizes.values())
    exact = {name: n * size / total for name, size in sizes.items()}
    shares = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (shares[name] - exact[name], name))
    for name in by_remainder[: n - sum(shares.values())]:
        shares[name] += 1
    return shares


def to_exclusions(exclusions: Iterable[Exclusion]) -> Iterable[str]:
    """What was left out and why, as JSON Lines."""
    for exclusion in exclusions:
        yield json.dumps(asdict(exclusion), ensure_ascii=False)
