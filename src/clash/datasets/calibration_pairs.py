"""Pairs with a known gap in quality, made offline from a user's own responses.

Each pair holds a response as it is (``original``) and the same response ``altered``. The gap is
the share of its sentences that were touched, 0 for the two controls (``identical`` and
``paraphrased``, where a tie is right). Fenced code is never touched, except by truncation. The
same seed and the same responses give the same pairs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from clash.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from clash.records import Item

Kind = Literal["facts", "truncated", "disfluent", "padded", "identical", "paraphrased"]
KINDS: tuple[Kind, ...] = (
    "facts",
    "truncated",
    "disfluent",
    "padded",
    "identical",
    "paraphrased",
)
DOSES = (0.25, 0.5, 1.0)
KEPT_SHARES = (0.75, 0.5, 0.25)
ORIGINAL, ALTERED, TAG = "original", "altered", "calibration"
_FEWEST_WORDS = 25
_SENTENCE = re.compile(r"(?<=[.!?])(\s+)(?=\S)|(\n+)")
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)([^\n]*)$", re.MULTILINE)
"""A line that begins a block of code, or ends one where nothing follows the fence."""
_NUMBER = re.compile(r"(?<![\w.])\d{1,4}(?![\w.]*\d)")
_OPPOSITES = {
    "increase": "decrease", "increases": "decreases", "more": "less", "before": "after",
    "always": "never", "first": "last", "largest": "smallest", "true": "false",
    "higher": "lower", "above": "below", "all": "none of the", "can": "cannot",
    "is": "is not", "are": "are not", "was": "was not", "will": "will not", "has": "has no",
}  # fmt: skip
_BOTH_WAYS = {**_OPPOSITES, **{b: a for a, b in _OPPOSITES.items() if " " not in b}}
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
_SYNONYMS = (
    ("do not", "don't"), ("does not", "doesn't"), ("is not", "isn't"), ("are not", "aren't"),
    ("cannot", "can't"), ("it is", "it's"), ("that is", "that's"), ("you will", "you'll"),
    ("for example", "for instance"), ("however", "yet"), ("also", "as well"),
    ("because", "since"), ("use", "employ"), ("show", "display"), ("begin", "start"),
    ("big", "large"), ("quickly", "fast"), ("need to", "have to"), ("such as", "like"),
)  # fmt: skip
_PADDING = (
    "It is worth noting that there are many aspects to consider here.",
    "As with so many things, the details matter and should not be overlooked.",
    "In other words, this is a topic that deserves careful attention.",
    "Of course, every situation is different, and your experience may vary.",
    "With that in mind, let us keep the overall picture in view.",
    "This point is important, and its importance can hardly be overstated.",
    "There is certainly a lot more that could be said about this.",
    "All in all, these considerations are relevant in many ways.",
)


@dataclass(frozen=True)
class CalibrationPair:
    """A response and its altered copy.

    Attributes:
        source: the item that the response is of; pairs of one source hang together.
        gap: share of sentences touched (truncated: of words removed).
    """

    pair_id: str
    source: str
    item: Item
    kind: Kind
    gap: float
    original: str
    altered: str

    @property
    def label(self) -> str:
        """The right verdict: the original, or a tie."""
        return ORIGINAL if self.gap > 0 else "tie"

    @property
    def content(self) -> tuple[str, ...]:
        """What a judge reads."""
        prompt = self.item.prompt or repr([turn.model_dump() for turn in self.item.messages or []])
        return prompt, self.item.system or "", self.original, self.altered

    def as_prompt(self) -> dict[str, Any]:
        """An entry of a prompts file."""
        question: dict[str, Any] = (
            {"prompt": self.item.prompt}
            if self.item.messages is None
            else {"messages": [turn.model_dump() for turn in self.item.messages]}
        )
        return {
            "id": self.pair_id,
            **question,
            **({"system": self.item.system} if self.item.system else {}),
            "tags": [TAG, self.kind, f"gap:{self.gap:.4f}"],
            "group": self.source,
            "label": self.label,
            "responses": {ORIGINAL: self.original, ALTERED: self.altered},
        }


def calibration_pairs(
    sources: Iterable[Item],
    responses: dict[str, dict[str, str]],
    *,
    seed: int = 42,
    most: int = 30,
    kinds: Sequence[Kind] = KINDS,
) -> list[CalibrationPair]:
    """Pairs from one response of each of at most ``most`` items.

    Args:
        sources: the items.
        responses: text by item and candidate.
        seed: of the choice of items, responses and sentences.
        most: items used.
        kinds: what is done to them.

    Raises:
        InputError: no response has 25 words of prose or more.
    """
    rng = Random(seed)  # noqa: S311 - no secret depends on it
    usable = []
    for item in sources:
        texts = responses.get(item.item_id, {})
        long = sorted(name for name, text in texts.items() if len(text.split()) >= _FEWEST_WORDS)
        if long:
            usable.append((item, texts[rng.choice(long)]))
    if not usable:
        raise InputError(
            f"no response has {_FEWEST_WORDS} words or more",
            hint="calibration pairs are made from your own responses: give longer ones",
        )
    sample = rng.sample(usable, min(most, len(usable)))
    pairs = [pair for item, text in sample for pair in _pairs_of(item, text, kinds, rng)]
    # Items that share prompt and response come to the same pair, which is judged once.
    return list({pair.content: pair for pair in reversed(pairs)}.values())[::-1]


def to_jsonl(pairs: Sequence[CalibrationPair]) -> str:
    """A prompts file that `clash eval` judges."""
    return "".join(json.dumps(pair.as_prompt(), ensure_ascii=False) + "\n" for pair in pairs)


def _pairs_of(item: Item, text: str, kinds: Sequence[Kind], rng: Random) -> list[CalibrationPair]:
    pairs: list[CalibrationPair] = []
    texts: set[str] = set()
    for kind in kinds:
        doses = (
            KEPT_SHARES
            if kind == "truncated"
            else DOSES
            if kind in _DAMAGE or kind == "padded"
            else (0,)
        )
        for dose in doses:
            copy, gap = alter(text, kind, dose, rng)
            # Nothing in it can be altered that way, or no more than a smaller dose did.
            if copy in texts or (kind != "identical" and copy == text):
                continue
            texts.add(copy)
            name = f"{item.item_id}-{kind}" + (f"-{round(100 * dose)}" if dose else "")
            pairs.append(CalibrationPair(name, item.item_id, item, kind, gap, text, copy))
    return pairs


def alter(text: str, kind: Kind, dose: float, rng: Random) -> tuple[str, float]:
    """The altered text, and the gap it really has.

    Args:
        text: a response.
        kind: what is done.
        dose: share of sentences to touch; for ``truncated`` the share of words kept.
        rng: which sentences.
    """
    if kind == "identical":
        return text, 0.0
    if kind == "truncated":
        return _truncate(text, dose)
    if kind == "padded":
        return _pad(text, dose, rng)
    if kind == "paraphrased":
        copy, _ = _change_share(text, 1.0, rng, _paraphrase)
        return copy, 0.0
    return _change_share(text, dose, rng, _DAMAGE[kind])


def _truncate(text: str, share: float) -> tuple[str, float]:
    spans = list(re.finditer(r"\S+", text))
    n = max(1, round(share * len(spans)))
    return text[: spans[n - 1].end()], 1 - n / len(spans)


def _pad(text: str, dose: float, rng: Random) -> tuple[str, float]:
    """Filler after randomly chosen sentences of prose, as much of it as ``dose`` says."""
    parts = _parts(text)
    positions = [at for at, part in enumerate(parts) if _is_prose(part)]
    count = max(1, round(dose * len(positions)))
    for at in rng.sample(positions, min(count, len(positions))):
        parts[at] = f"{parts[at]} {rng.choice(_PADDING)}"
    return "".join(parts), min(1.0, count / max(1, len(positions)))


def _change_share(
    text: str, dose: float, rng: Random, change: Callable[[str, Random], str]
) -> tuple[str, float]:
    """``change`` done to a share of the sentences; the share that it really changed."""
    parts = _parts(text)
    positions = [at for at, part in enumerate(parts) if _is_prose(part)]
    candidates = [at for at in positions if change(parts[at], Random(0)) != parts[at]]  # noqa: S311
    count = min(len(candidates), max(1, round(dose * len(positions))))
    n_changes = 0
    for at in rng.sample(candidates, count):
        sentence = change(parts[at], rng)
        n_changes += sentence != parts[at]
        parts[at] = sentence
    return "".join(parts), n_changes / max(1, len(positions))


def _parts(text: str) -> list[str]:
    """Sentences, the space between them and code blocks, which join to the text again."""
    parts: list[str] = []
    last = 0
    for start, end in (*_blocks(text), (len(text), len(text))):
        parts += [part for part in _SENTENCE.split(text[last:start]) if part]
        parts += [text[start:end]] if start < end else []
        last = end
    return parts


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where blocks of code begin and end; one that does not end is none."""
    start: int | None = None
    for fence in _FENCE.finditer(text):
        if start is None:
            start = fence.start()
        elif not fence[1].strip():
            yield start, fence.end()
            start = None


def _is_prose(part: str) -> bool:
    return not _FENCE.match(part) and len(_WORD.findall(part)) >= 3


def _falsify(sentence: str, rng: Random) -> str:
    """One fact turned: a number changed, or a word that carries the claim."""
    numbers = list(_NUMBER.finditer(sentence))
    if numbers:
        match = rng.choice(numbers)
        value = int(match.group())
        number = value + rng.choice([1, 2, 3, 7]) * max(1, value // 10)
        return sentence[: match.start()] + str(number) + sentence[match.end() :]
    words = [w for w in _WORD.finditer(sentence) if w.group().lower() in _BOTH_WAYS]
    if not words:
        return sentence
    match = rng.choice(words)
    opposite = _BOTH_WAYS[match.group().lower()]
    opposite = opposite.capitalize() if match.group()[0].isupper() else opposite
    return sentence[: match.start()] + opposite + sentence[match.end() :]


def _make_clumsy(sentence: str, rng: Random) -> str:
    """The same words, badly put: articles gone, two neighbours swapped, one word doubled."""
    words = [w for w in sentence.split(" ") if w.lower() not in ("the", "a", "an")]
    if len(words) < 3:
        return sentence
    at = rng.randrange(len(words) - 2)
    words[at], words[at + 1] = words[at + 1], words[at]
    twice = rng.randrange(len(words))
    words.insert(twice, words[twice])
    return " ".join(words).replace(",", "")


def _paraphrase(sentence: str, _rng: Random) -> str:
    """Words for words of the same meaning, one way or the other."""
    for phrase, synonym in _SYNONYMS:
        for old, new in ((phrase, synonym), (synonym, phrase)):
            pattern = re.compile(rf"\b{re.escape(old)}\b")
            if pattern.search(sentence):
                return pattern.sub(new, sentence, count=1)
    return sentence


_DAMAGE: dict[str, Callable[[str, Random], str]] = {"facts": _falsify, "disfluent": _make_clumsy}
