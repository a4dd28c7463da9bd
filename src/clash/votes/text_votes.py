"""The votes of a run that judges each text by itself, as an array: texts by seats by pages.

A text is one candidate's response to one item, or the item's prompt. A vote is the code of a label
(its place in the run's list) or a score. A judge that saw both orders of the labels has two votes
on a text and one say, the mean of the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from clash.config import JudgingConfig
    from clash.records import Item, Judgment, Response
    from clash.stats.typing import Bools, Floats, Index
    from clash.votes.blinding_index import BlindingIndex
    from clash.votes.from_run import Panelist
    from clash.votes.text_labels import TextKey


@dataclass(frozen=True)
class TextVotes:
    """The votes on N texts by J seats of the panel, on P pages each.

    Attributes:
        texts: item and candidate of each row.
        clusters: (N,), codes of what intervals are clustered by: the group of the item.
        seats: ids of the judges of the panel.
        votes: (N, J, P), codes of labels or scores; NaN where there is none.
        first_shown: (N, J, P), the code of the label that the page listed first; NaN likewise.
        n_labels: K; 0 where the votes are scores.
    """

    texts: tuple[TextKey, ...]
    clusters: Index
    seats: tuple[str, ...]
    votes: Floats
    first_shown: Floats
    n_labels: int

    @classmethod
    def of(
        cls,
        items: Sequence[Item],
        responses: Iterable[Response],
        judgments: Iterable[Judgment],
        blinds: BlindingIndex,
        seats: Sequence[Panelist],
        n_pages: int,
        judging: JudgingConfig,
    ) -> TextVotes:
        """The votes of some judges, in the order of the items and of their responses.

        Args:
            items: of the run.
            responses: every one is a text, those without a text included.
            judgments: of all judges; those of other seats are left out.
            blinds: what each page showed.
            seats: whose votes are wanted.
            n_pages: pages on which each judge sees a text.
            judging: what was asked.
        """
        names: dict[str, list[str]] = {item.item_id: [] for item in items}
        for response in responses:
            if response.candidate not in names.get(response.item_id, [response.candidate]):
                names[response.item_id].append(response.candidate)
        texts = tuple(
            (item_id, name) for item_id, candidates in names.items() for name in candidates
        )
        groups: dict[str, int] = {}
        cluster = {item.item_id: groups.setdefault(item.cluster, len(groups)) for item in items}
        shape = len(texts), len(seats), n_pages
        votes, first_shown = np.full(shape, np.nan), np.full(shape, np.nan)
        rows = {key: row for row, key in enumerate(texts)}
        columns = {seat.id: column for column, seat in enumerate(seats)}
        codes = {label: code for code, label in enumerate(judging.labels)}
        for judgment in judgments:
            column = columns.get(judgment.seat)
            if judgment.vote is None or column is None:
                continue
            (candidate,) = blinds.labels(judgment).values()
            at = rows[judgment.item_id, candidate], column, judgment.presentation % n_pages
            votes[at] = codes[str(judgment.vote)] if codes else float(judgment.vote)
            choices = blinds.choices(judgment)
            first_shown[at] = codes[choices[0]] if codes and choices else np.nan
        clusters = np.array([cluster[item_id] for item_id, _ in texts], dtype=np.intp)
        ids = tuple(seat.id for seat in seats)
        return cls(texts, clusters, ids, votes, first_shown, len(codes))

    @property
    def answer_shares(self) -> Floats:
        """(N, J), the share of its pages of a text that a judge answered."""
        return np.asarray(1 - np.isnan(self.votes).mean(axis=2))

    @property
    def has_vote(self) -> Bools:
        """(N, J), whether a judge answered on at least one page."""
        return np.asarray(~np.isnan(self.votes).all(axis=2))

    @property
    def shares(self) -> Floats:
        """(N, J, K), how a judge's say on a text is divided among the labels; NaN without a vote."""
        one_hot = self.votes[..., None] == np.arange(self.n_labels)
        counts = one_hot.sum(axis=2).astype(float)
        total = counts.sum(axis=2, keepdims=True)
        shares: Floats = np.divide(
            counts, total, out=np.full(counts.shape, np.nan), where=total > 0
        )
        return shares

    @property
    def says(self) -> Floats:
        """(N, J), the label that a judge gives a text, or its mean score; NaN where it has none.

        A judge that contradicts itself over the two orders gives no label.
        """
        if not self.n_labels:
            present = ~np.isnan(self.votes)
            total = np.where(present, self.votes, 0.0).sum(axis=2)
            n = present.sum(axis=2)
            means: Floats = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
            return means
        shares = self.shares
        has_one = np.nan_to_num(shares).max(axis=2, initial=0.0) > 1 - 1e-9
        return np.where(has_one, np.argmax(np.nan_to_num(shares), axis=2), np.nan)

    def of_seats(self, names: Collection[str]) -> TextVotes:
        """The votes of some of the judges."""
        columns = [column for column, seat in enumerate(self.seats) if seat in names]
        return replace(
            self,
            seats=tuple(self.seats[column] for column in columns),
            votes=self.votes[:, columns],
            first_shown=self.first_shown[:, columns],
        )

    def take(self, rows: Sequence[int] | Index | Bools) -> TextVotes:
        """Some of the texts, their clusters numbered anew."""
        index = np.arange(len(self.texts))[np.asarray(rows)]
        return TextVotes(
            tuple(self.texts[row] for row in index.tolist()),
            np.unique(self.clusters[index], return_inverse=True)[1].astype(np.intp),
            self.seats,
            self.votes[index],
            self.first_shown[index],
            self.n_labels,
        )
