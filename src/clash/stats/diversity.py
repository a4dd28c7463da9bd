"""How different responses are, and how much of a judge's ties that explains."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, encode_clusters, normal_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats


_WORD = re.compile(r"\w+", re.UNICODE)
_SECTION = re.compile(r"^\s{0,3}#{1,6}\s|^\s{0,3}\*\*[^*\n]+\*\*:?\s*$", re.MULTILINE)
_LIST = re.compile(r"^[^\S\n]*(?:[-*+•]|\d+[.)])\s+", re.MULTILINE)
_FENCE = re.compile(r"^[^\S\n]*(?:```|~~~)", re.MULTILINE)
MEASURES = 4


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


def tfidf_similarity(firsts: Sequence[str], seconds: Sequence[str]) -> Floats:
    """(n,), cosine of TF-IDF vectors of character 3- to 5-grams within words.

    A similarity of wording, not of meaning: a paraphrase in other words looks different to it.
    The document frequencies are those of these texts.

    Raises:
        StatisticsError: rows that do not match, or no text at all.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if len(firsts) != len(seconds) or not len(firsts):
        raise StatisticsError(f"{len(firsts)} and {len(seconds)} texts are no pairs")
    if not any(text.strip() for text in (*firsts, *seconds)):
        return np.ones(len(firsts))
    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 5), min_df=1, max_features=200_000
    )
    matrix = vectorizer.fit_transform([*firsts, *seconds])
    n = len(firsts)
    cosine = np.asarray(matrix[:n].multiply(matrix[n:]).sum(axis=1)).ravel().astype(float)
    same = np.array([a == b for a, b in zip(firsts, seconds, strict=True)])
    # Two equal texts without a gram in them have no vectors.
    found: Floats = np.where(same, 1.0, np.clip(cosine, 0.0, 1.0))
    return found


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
    same = (a == b).all(axis=1).astype(float)
    found: Floats = np.divide((a * b).sum(axis=1), sizes, out=same, where=sizes > 0)
    return np.clip(found, 0.0, 1.0)


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
        raise StatisticsError(f"{len(firsts)}, {len(seconds)} texts and {len(alike)} likenesses")
    rows = []
    for at, (a, b) in enumerate(zip(firsts, seconds, strict=True)):
        one, two = Shape.of(a), Shape.of(b)
        rows.append(
            [
                1 - rouge_l(a, b),
                1 - float(alike[at]),
                length_variation([one.words, two.words]),
                structural_divergence(one, two),
            ]
        )
    return np.array(rows)


@dataclass(frozen=True, slots=True)
class Logit:
    """A logistic regression with a weak ridge and errors robust to clusters.

    Attributes:
        coefficients: (p,), the last columns those of the design; see the caller.
        covariance: (p, p), sandwich over clusters.
        log_likelihood: unpenalised.
    """

    coefficients: Floats
    covariance: Floats
    log_likelihood: float
    converged: bool
    n_iter: int
    residual: float

    def interval(self, index: int, level: float = 0.95) -> Interval:
        """A coefficient with its Wald interval."""
        middle = float(self.coefficients[index])
        reach = normal_quantile(level) * math.sqrt(float(self.covariance[index, index]))
        nan = math.nan
        return Interval(middle, middle - reach, middle + reach, level, nan, nan, "wald, clustered")


def logit(
    design: ArrayLike,
    outcome: ArrayLike,
    clusters: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    start: ArrayLike | None = None,
    ridge: float = 1e-3,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> Logit:
    """Fit by Newton's method; the ridge keeps it finite where a column decides everything.

    Args:
        design: (n, p), with whatever intercepts are wanted.
        outcome: (n,), 1 or 0.
        clusters: (n,), codes.
        weights: (n,), of the rows (how often a bootstrap drew them).
        start: (p,), where to start from; 0 where not given.
        ridge: weight of the squares of all coefficients, over 2.
        tol: of the gradient, for each unit of weight.
        max_iter: steps.

    Raises:
        StatisticsError: shapes that differ, or no row.
    """
    x, y = np.asarray(design, dtype=float), np.asarray(outcome, dtype=float)
    if x.ndim != 2 or len(x) != len(y) or not len(y):
        raise StatisticsError(f"a regression of {y.shape} outcomes on {x.shape}")
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    beta = np.zeros(x.shape[1]) if start is None else np.asarray(start, dtype=float)
    scale, steps = max(1.0, float(w.sum())), 0
    gradient, hessian = _derivatives(x, y, w, beta, ridge)
    while np.abs(gradient).max() > tol * scale and steps < max_iter:
        move = np.linalg.solve(hessian, gradient)
        beta = beta - move / max(1.0, float(np.abs(move).max()) / 3)
        steps += 1
        gradient, hessian = _derivatives(x, y, w, beta, ridge)
    residual = float(np.abs(gradient).max())
    eta = x @ beta
    likelihood = float(w @ (y * eta - np.logaddexp(0, eta)))
    covariance = _sandwich(x, y, w, beta, hessian, np.asarray(clusters))
    return Logit(beta, covariance, likelihood, residual <= tol * scale, steps, residual)


def _derivatives(
    x: Floats, y: Floats, w: Floats, beta: Floats, ridge: float
) -> tuple[Floats, Floats]:
    p = 1 / (1 + np.exp(-np.clip(x @ beta, -500, 500)))
    gradient: Floats = x.T @ (w * (p - y)) + ridge * beta
    hessian: Floats = (x.T * (w * p * (1 - p))) @ x + ridge * np.eye(len(beta))
    return gradient, hessian


def _sandwich(
    x: Floats, y: Floats, w: Floats, beta: Floats, hessian: Floats, clusters: NDArray[np.generic]
) -> Floats:
    _, codes, groups = encode_clusters(y, clusters)
    p = 1 / (1 + np.exp(-np.clip(x @ beta, -500, 500)))
    totals = np.zeros((groups, x.shape[1]))
    np.add.at(totals, codes, x * (w * (p - y))[:, None])
    bread = np.linalg.inv(hessian)
    meat = totals.T @ totals * (groups / max(1, groups - 1))
    found: Floats = bread @ meat @ bread
    return found


@dataclass(frozen=True, slots=True)
class TieSplit:
    """Shares of the ties of all judges; they add up to 1.

    Attributes:
        equivalence: ties that the readiest judge would cast too, beyond its floor, because the
            responses are alike.
        conservatism: ties beyond those of the readiest judge at the same diversity.
        unguided: ties that even the readiest judge casts where responses differ most: the
            criteria give it nothing to decide by.
    """

    equivalence: float
    conservatism: float
    unguided: float


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
    readiest = np.minimum(tied, at[:, eligible].min(axis=1))
    floor = np.minimum(readiest, at_most[eligible].min())
    return TieSplit(
        float((readiest - floor).sum()) / total,
        float((tied - readiest).sum()) / total,
        float(floor.sum()) / total,
    )
