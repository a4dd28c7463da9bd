"""How different responses are, and how much of a judge's ties that explains."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

    from clash.stats.typing import Floats


_WORD = re.compile(r"\w+", re.UNICODE)
_SECTION = re.compile(r"^\s{0,3}#{1,6}\s|^\s{0,3}\*\*[^*\n]+\*\*:?\s*$", re.MULTILINE)
_LIST = re.compile(r"^[^\S\n]*(?:[-*+•]|\d+[.)])\s+", re.MULTILINE)
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)", re.MULTILINE)
MEASURES = 4
_GRAM_SIZES = (3, 4, 5)


@dataclass(frozen=True, slots=True)
class Shape:
    """How a response is built."""

    words: int
    sections: int
    list_items: int
    code_blocks: int

    @classmethod
    def of(cls, text: str) -> Shape:
        """Count words, Markdown headings (or lines wholly bold), list items and fenced blocks."""
        fences = len(_FENCE.findall(text))
        return cls(
            len(_WORD.findall(text)),
            len(_SECTION.findall(text)),
            len(_LIST.findall(text)),
            (fences + 1) // 2,
        )

    @property
    def parts(self) -> Floats:
        """(3,), sections, list items, code blocks."""
        return np.array([self.sections, self.list_items, self.code_blocks], dtype=float)


def rouge_l(first: str, second: str) -> float:
    """ROUGE-L: F1 of the longest common subsequence of words, lower-cased (Lin 2004).

    1 for two texts without words, 0 where only one has any.
    """
    from rapidfuzz.distance import LCSseq

    a, b = (_WORD.findall(text.lower()) for text in (first, second))
    if not a or not b:
        return float(a == b)
    return 2 * LCSseq.similarity(a, b) / (len(a) + len(b))


def length_variation(counts: Sequence[int]) -> float:
    """Standard deviation over mean of word counts; 0 where there are no words at all."""
    sizes = np.asarray(counts, dtype=float)
    return float(sizes.std() / sizes.mean()) if sizes.sum() else 0.0


def structural_divergence(first: Shape, second: Shape) -> float:
    """Sum of |difference| of sections, list items and code blocks over their sum, in [0, 1]."""
    total = float((first.parts + second.parts).sum())
    return float(np.abs(first.parts - second.parts).sum()) / total if total else 0.0


def tfidf_similarity(
    firsts: Sequence[str], seconds: Sequence[str], *, max_grams: int = 200_000
) -> Floats:
    """(n,), cosine of TF-IDF vectors of character 3- to 5-grams within words.

    A similarity of wording, not of meaning: a paraphrase in other words looks different to it.
    Term frequencies are counts; idf = log((1 + N) / (1 + df)) + 1 over these N texts, smoothed as
    if one more text held every gram. Equal to scikit-learn's ``TfidfVectorizer`` with
    ``analyzer="char_wb", ngram_range=(3, 5), max_features=max_grams``.

    Args:
        firsts: n texts.
        seconds: n texts.
        max_grams: where the texts have more, only the most frequent ones count.

    Raises:
        StatisticsError: rows that do not match, or no text at all.
    """
    if len(firsts) != len(seconds) or not len(firsts):
        raise StatisticsError(f"{len(firsts)} and {len(seconds)} texts are not pairs")
    if not any(text.strip() for text in (*firsts, *seconds)):
        return np.ones(len(firsts))
    n, vectors = len(firsts), _gram_counts([*firsts, *seconds])
    if vectors.shape[1] > max_grams:
        vectors = vectors[:, np.sort(np.argsort(-vectors.sum(axis=0))[:max_grams])]
    document_counts = np.bincount(vectors.indices, minlength=vectors.shape[1])
    vectors.data *= (np.log((1 + 2 * n) / (1 + document_counts)) + 1)[vectors.indices]
    norms = np.sqrt(vectors.multiply(vectors).sum(axis=1))
    vectors.data /= np.repeat(norms, np.diff(vectors.indptr))
    cosine = vectors[:n].multiply(vectors[n:]).sum(axis=1)
    # Two equal texts without a gram in them have no vectors, and are alike all the same.
    equal = np.array([a == b for a, b in zip(firsts, seconds, strict=True)])
    similarity: Floats = np.where(equal, 1.0, np.clip(cosine, 0.0, 1.0))
    return similarity


def _gram_counts(texts: Sequence[str]) -> csr_array:
    """(N, grams), how often each gram stands in each text; a word includes a blank at each end."""
    from scipy.sparse import csr_array

    columns: dict[str, int] = defaultdict(lambda: len(columns))
    word_columns: dict[str, list[int]] = {}
    indices, counts, row_ends = array("q"), array("d"), [0]
    for text in texts:
        for word, count in Counter(text.lower().split()).items():
            if word not in word_columns:
                with_blanks = f" {word} "
                word_columns[word] = [
                    columns[with_blanks[at : at + n]]
                    for n in _GRAM_SIZES
                    for at in range(len(with_blanks) - n + 1)
                ]
            indices.extend(word_columns[word])
            counts.extend([count] * len(word_columns[word]))
        row_ends.append(len(indices))
    shape = (len(texts), len(columns))
    grams = csr_array((np.array(counts), np.array(indices), np.array(row_ends)), shape=shape)
    # In alphabetical order, so that a limit on the grams parts equally frequent ones by name.
    grams = grams[:, [columns[gram] for gram in sorted(columns)]]
    grams.sum_duplicates()
    return grams


def cosines(firsts: ArrayLike, seconds: ArrayLike) -> Floats:
    """(n,), cosine of row and row, no less than 0; vectors of zero length are like their kind only.

    Args:
        firsts: (n, d).
        seconds: (n, d).

    Raises:
        StatisticsError: shapes that differ, or numbers that are none.
    """
    a, b = np.asarray(firsts, dtype=float), np.asarray(seconds, dtype=float)
    if a.ndim != 2 or a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise StatisticsError(f"vectors of {a.shape} and {b.shape} cannot be compared")
    sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    equal_rows = (a == b).all(axis=1).astype(float)
    cosine: Floats = np.divide((a * b).sum(axis=1), sizes, out=equal_rows, where=sizes > 0)
    return np.clip(cosine, 0.0, 1.0)


def diversity(firsts: Sequence[str], seconds: Sequence[str], similar: ArrayLike) -> Floats:
    """(n, 4), each 0 for identical responses.

    In this order: 1 - ROUGE-L, 1 - similarity, variation of length, structural divergence.

    Args:
        firsts: n texts.
        seconds: n texts.
        similar: (n,), their likeness by whatever measure, 1 for the same.

    Raises:
        StatisticsError: rows that do not match, or none.
    """
    alike = np.asarray(similar, dtype=float)
    if not len(firsts) == len(seconds) == len(alike) or not len(firsts):
        raise StatisticsError(f"{len(firsts)}, {len(seconds)} texts and {len(alike)} similarities")
    rows = []
    for at, (a, b) in enumerate(zip(firsts, seconds, strict=True)):
        first_shape, second_shape = Shape.of(a), Shape.of(b)
        rows.append(
            [
                1 - rouge_l(a, b),
                1 - float(alike[at]),
                length_variation([first_shape.words, second_shape.words]),
                structural_divergence(first_shape, second_shape),
            ]
        )
    return np.array(rows)


@dataclass(frozen=True, slots=True)
class TieSplit:
    """Shares of the ties of all judges; they add up to 1.

    Attributes:
        equivalence: ties that the readiest judge would cast too, beyond its floor, because the
            responses are alike.
        conservatism: ties beyond those of the readiest judge at the same diversity.
        no_guidance: ties that even the readiest judge casts where responses differ most: the
            criteria give it nothing to decide by.
    """

    equivalence: float
    conservatism: float
    no_guidance: float


def split_ties(
    tied: Floats, at: Floats, at_most: Floats, *, eligible: NDArray[np.bool_]
) -> TieSplit:
    """Split expected ties by judge and diversity.

    Args:
        tied: (n,), modelled P(tie) of each ballot, of its own judge.
        at: (n, J), P(tie) of every judge at the ballot's diversity.
        at_most: (J,), P(tie) of every judge where responses differ most.
        eligible: (J,), judges that may be the readiest one: a judge that decides by tossing a
            coin never ties, and sets no standard.

    Returns:
        NaN shares where there is no tie or no eligible judge.
    """
    total = float(tied.sum())
    if total == 0 or not eligible.any():
        return TieSplit(math.nan, math.nan, math.nan)
    # A judge cannot tie less by equivalence than it ties at all, hence the minimum with `tied`.
    readiest = np.minimum(tied, at[:, eligible].min(axis=1))
    floor = np.minimum(readiest, at_most[eligible].min())
    return TieSplit(
        float((readiest - floor).sum()) / total,
        float((tied - readiest).sum()) / total,
        float(floor.sum()) / total,
    )
