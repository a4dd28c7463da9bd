"""The papers' data sets with the papers' preparation: which rows, which labels, how judges see them.

Relevance, toxicity and summarization are those of the Ising paper (section 4.1, appendices H.1 and H.2),
the others those of the finite-calibration paper (appendix C, dataset construction).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from clash import assets
from clash.config import PROMPT
from clash.datasets import catalogue, pull, record_files
from clash.datasets.dataset import Dataset, DatasetBuilder, Exclusion, exact_repeats
from clash.datasets.loaders import arena, benchmarks, single_texts
from clash.errors import InputError, one_of
from clash.labels import TIE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from clash.datasets.record_files import SourceRow

    Reader = Callable[[Iterable[SourceRow], DatasetBuilder], Dataset]
    Preparation = Callable[[Dataset, np.random.Generator], Dataset]

PER_BUCKET, FIRST_PAIRS, BATTLES = 1000, 1000, 800
MOST_TOKENS, CHARS_PER_TOKEN = 5000, 4
REPEAT_REASON = "same prompt and responses as another item"
"""A run judges what is the same once; a published set may hold it several times."""
_PATTERNS = ("*.parquet", "*.jsonl", "*.jsonl.zip", "*.csv", "dataset.json")


@dataclass(frozen=True)
class PaperSet:
    """A data set as a paper uses it.

    Attributes:
        read: its records to items.
        config: the file in ``configs/tasks`` that says what judges are asked.
        rules: what the paper's preparation does, for the account.
        prepare: which items stay.
        first: records that are read; null for all.
    """

    read: Reader
    config: str
    rules: Mapping[str, str]
    prepare: Preparation = lambda dataset, _rng: dataset
    first: int | None = None


@dataclass(frozen=True)
class PreparedSet:
    """Items ready to be judged, and what was done to get them.

    Attributes:
        config: the text of a configuration that asks the paper's question of them.
        account: rules, seed and counts, as JSON.
        name: of the files.
    """

    name: str
    dataset: Dataset
    config: str
    account: str = field(repr=False)


def _buckets(dataset: Dataset, rng: np.random.Generator) -> Dataset:
    """Up to 1,000 comments of each bucket of toxicity, at random."""
    kept_ids: set[str] = set()
    for bucket in single_texts.BUCKETS:
        ids = [item.item_id for item in dataset.items if bucket in item.tags]
        kept_ids.update(rng.permutation(ids)[:PER_BUCKET].tolist())
    return _only(dataset, kept_ids, f"not drawn: {PER_BUCKET:,} of each bucket are")


def _battles(dataset: Dataset, _rng: np.random.Generator) -> Dataset:
    """The first 800 English battles with a winner whose texts have at most 5,000 tokens."""
    reasons = {item.item_id: _unfit(dataset, item.item_id) for item in dataset.items}
    texts = dataset.texts()
    exclusions: list[Exclusion] = []
    kept_ids: set[str] = set()
    for item in dataset.items:
        reason = reasons[item.item_id]
        if reason is None and item.label == TIE:
            reason = "a tie"
        length = len(item.prompt or "") + sum(len(t or "") for t in texts[item.item_id].values())
        if reason is None and length > MOST_TOKENS * CHARS_PER_TOKEN:
            reason = f"more than {MOST_TOKENS:,} tokens, at {CHARS_PER_TOKEN} characters each"
        if reason is None and len(kept_ids) == BATTLES:
            reason = f"after the first {BATTLES}"
        if reason is None:
            kept_ids.add(item.item_id)
        else:
            exclusions.append(Exclusion(item.item_id, reason))
    return dataset.only(kept_ids, exclusions)


def _unfit(dataset: Dataset, item_id: str) -> str | None:
    facts = dataset.facts.get(item_id)
    return None if facts is None or facts.language == "English" else "not English"


def _only(dataset: Dataset, item_ids: set[str], reason: str) -> Dataset:
    left_out = [Exclusion(i.item_id, reason) for i in dataset.items if i.item_id not in item_ids]
    return dataset.only(item_ids, left_out)


PAPER_SETS = {
    "wikiqa": PaperSet(
        single_texts.read_wikiqa,
        "relevance",
        {"passage": "all sentences of a question, joined", "relevant": "one of them answers it"},
    ),
    "jigsaw": PaperSet(
        single_texts.read_jigsaw,
        "toxicity",
        {
            "annotators": f"at least {single_texts.FEWEST_ANNOTATORS}",
            "characters": f"at least {single_texts.FEWEST_CHARS}",
            "drawn": f"{PER_BUCKET:,} at random of each quarter of the toxicity share",
            "toxic": "for at least half of the annotators",
        },
        _buckets,
    ),
    "phoenix-summarization": PaperSet(single_texts.read_phoenix, "summarization", {"rows": "all"}),
    "rewardbench": PaperSet(
        benchmarks.read_rewardbench,
        "preference",
        {"rows": f"the first {FIRST_PAIRS:,}", "orders": "both"},
        first=FIRST_PAIRS,
    ),
    "llmbar": PaperSet(
        benchmarks.read_llmbar, "preference", {"rows": "all five subsets", "orders": "both"}
    ),
    "summeval": PaperSet(
        single_texts.read_coherence,
        "coherence",
        {"label": "mean coherence of the experts, 1 to 5", "group": "the news text"},
    ),
    "arena-100k": PaperSet(
        arena.read,
        "preference",
        {
            "language": "English",
            "winner": "no tie",
            "tokens": f"at most {MOST_TOKENS:,}, at {CHARS_PER_TOKEN} characters each",
            "rows": f"the first {BATTLES} that qualify; the paper does not say which",
            "orders": "both",
        },
        _battles,
    ),
}


def prepare_set(name: str, path: Path | None, seed: int, cache: Path | None = None) -> PreparedSet:
    """A data set of a paper, from a file or folder, or as it was pulled.

    Args:
        name: of ``PAPER_SETS``.
        path: the publisher's file, or a folder of its files; null for what was pulled.
        seed: of the draw, where one is made.
        cache: where pulled data lie.

    Raises:
        InputError: no such set, nothing there, or records of another schema.
    """
    if name not in PAPER_SETS:
        raise InputError(
            f"no paper's data set is called {name!r}", hint=one_of(name, list(PAPER_SETS))
        )
    paper_set, known_dataset = PAPER_SETS[name], catalogue.find(name)
    files = _files(known_dataset, path, cache)
    source = known_dataset.source if path is None else str(path)
    rows = chain.from_iterable(record_files.rows(file) for file in files)
    builder = DatasetBuilder(name, source, known_dataset.licence)
    dataset = paper_set.read(islice(rows, paper_set.first), builder)
    dataset = _only(dataset, _distinct(dataset), REPEAT_REASON)
    dataset = paper_set.prepare(dataset, np.random.default_rng(seed))
    if not dataset.items:
        raise InputError("holds no item that the paper's rules admit", path=path or source)
    return PreparedSet(name, dataset, _config(name, paper_set), _account(dataset, paper_set, seed))


def _distinct(dataset: Dataset) -> set[str]:
    """Items that no earlier one equals; one without a response is its prompt alone."""
    texts = {item_id: responses or {PROMPT: ""} for item_id, responses in dataset.texts().items()}
    return {item.item_id for item in dataset.items} - exact_repeats(dataset.items, texts).keys()


def _files(dataset: catalogue.CatalogueEntry, path: Path | None, cache: Path | None) -> list[Path]:
    if path is None:
        return pull.pulled_files(dataset, cache)
    if not path.exists():
        raise InputError("no such file or folder", path=path, hint="check the path")
    files = record_files.files_below(path, *_PATTERNS)
    if not files:
        raise InputError(f"holds no file of {dataset.title}", path=path)
    return files


def _config(name: str, paper_set: PaperSet) -> str:
    text = assets.path("configs", "tasks", f"{paper_set.config}.yaml").read_text(encoding="utf-8")
    return f"{text.rstrip()}\nprompts: {name}.jsonl\n"


def _account(dataset: Dataset, paper_set: PaperSet, seed: int) -> str:
    labels = Counter(item.label or "none" for item in dataset.items)
    account = {
        "dataset": dataset.name,
        "source": dataset.source,
        "licence": dataset.licence,
        "rules": dict(paper_set.rules),
        "seed": seed,
        "counts": {"items": len(dataset.items), "excluded": dataset.excluded_by_reason()},
        "labels": labels if paper_set.config not in ("preference", "coherence") else {},
        "notes": dataset.notes,
    }
    return json.dumps(account, ensure_ascii=False)
