"""Blinding: labels instead of names, in a shuffled order, with self-identification masked.

What a judge sees is also normalised (:mod:`clash.collect.normalise`). Everything here is pure: the
shuffle is a function of seed, item, presentation and judge, so a resumed run shows each judge the
same page.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from clash.collect.authorship import claims
from clash.collect.normalise import normalise
from clash.conversations import transcript_starts
from clash.records import Blinding, Scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clash.collect.sentences import Span
    from clash.config import BlindingConfig, JudgingConfig
    from clash.records import AnsweredTurn

MASK = "[masked]"
_NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class VisibleTurn:
    """One turn of a conversation as a judge sees it, masked and normalised.

    Attributes:
        user: what a simulated user said; null where the item holds the user's message.
    """

    user: str | None
    text: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Presentation:
    """The responses as a judge sees them, and what the labels hide. Equal only to itself.

    Attributes:
        texts: response by label, in the order they are shown, masked and normalised.
        turns: the same turn by turn, of those responses that are conversations.
    """

    blinding: Blinding
    texts: Mapping[str, str]
    turns: Mapping[str, tuple[VisibleTurn, ...]] = field(default_factory=dict)

    def shows(self, texts: Mapping[str, str]) -> bool:
        """Whether each response is shown as it is, by candidate, with nothing to note about it."""
        is_noted = self.turns or self.blinding.scrubbed or self.blinding.normalised
        return not is_noted and all(
            self.texts[label] == texts[name] for label, name in self.blinding.labels.items()
        )


def rng(seed: int, *parts: object) -> random.Random:
    """A generator that depends on nothing but ``seed`` and ``parts``."""
    key = "\x1f".join(map(str, (seed, *parts)))
    return random.Random(int.from_bytes(hashlib.sha256(key.encode()).digest()))  # noqa: S311 - reproducible, not secret


def presentations(
    item_id: str,
    texts: Mapping[str, str],
    judges: Sequence[str],
    config: BlindingConfig,
    seed: int,
    *,
    names: Iterable[str] = (),
    excluded_candidates: Mapping[str, frozenset[str]] = MappingProxyType({}),
    turns: Mapping[str, Sequence[AnsweredTurn]] = MappingProxyType({}),
    judging: JudgingConfig | None = None,
    is_plain: bool = False,
) -> Iterator[Presentation]:
    """Every presentation of one item.

    Args:
        item_id: the item.
        texts: response by candidate.
        judges: ids of those who will see it; each gets a shuffle of its own only if configured.
        config: per judge, both orders, and what to scrub.
        seed: the run's.
        names: ids of the candidates, masked too where a response applies them to itself.
        excluded_candidates: those that a judge is not shown, by judge.
        turns: the turns of the candidates whose response is a conversation.
        judging: what is asked; where each text is judged by itself, each has pages of its own.
        is_plain: nothing in the texts is to be masked or removed, as earlier pages of the item
            showed (:meth:`Presentation.shows`).

    Yields:
        One presentation, or two with ``both_orders`` (the second is the first reversed); with
        ``per_judge``, so for each judge. A judge with excluded candidates gets its own, in the same
        order; none where fewer than two responses remain.
    """
    spans = {
        name: [] if is_plain or config.scrub == "off" else _claims(text, turns.get(name, ()), names)
        for name, text in texts.items()
    }
    visible = {
        name: (text, {})
        if is_plain
        else normalise(mask(text, spans[name]) if config.scrub == "mask" else text)
        for name, text in texts.items()
    }
    visible_turns = {
        name: tuple(_visible_turn(turn, names, config.scrub) for turn in conversation)
        for name, conversation in turns.items()
        if conversation
    }
    responses = _BlindResponses(item_id, texts, spans, visible, visible_turns)
    if judging is not None and judging.is_single:
        yield from _single_texts(responses, judges, config, seed, judging)
    else:
        yield from _rankings(responses, judges, config, seed, excluded_candidates)


@dataclass(frozen=True, slots=True)
class _BlindResponses:
    """The responses of an item, by candidate.

    Attributes:
        texts: as they were written.
        spans: what of them says who wrote it.
        visible: what a judge sees of them, and how many hidden characters of each kind it lacks.
        turns: conversations as a judge sees them.
    """

    item_id: str
    texts: Mapping[str, str]
    spans: Mapping[str, Sequence[Span]]
    visible: Mapping[str, tuple[str, dict[str, int]]]
    turns: Mapping[str, tuple[VisibleTurn, ...]]

    def scrubs(self, names: Iterable[str]) -> list[Scrub]:
        """What is noted of these candidates' statements of authorship."""
        return [
            Scrub(candidate=name, start=start, end=end, text=self.texts[name][start:end])
            for name in names
            for start, end in self.spans[name]
        ]

    def page(self, blinding: Blinding) -> Presentation:
        """The page with these labels."""
        labels = blinding.labels.items()
        return Presentation(
            blinding,
            {label: self.visible[name][0] for label, name in labels},
            {label: self.turns[name] for label, name in labels if name in self.turns},
        )


def _rankings(
    responses: _BlindResponses,
    judges: Sequence[str],
    config: BlindingConfig,
    seed: int,
    excluded_candidates: Mapping[str, frozenset[str]],
) -> Iterator[Presentation]:
    """A page with all responses, or two with ``both_orders``; more where judges have their own."""
    item_id, names = responses.item_id, responses.texts
    apart = [
        judge for judge in judges if not excluded_candidates.get(judge, _NOBODY).isdisjoint(names)
    ]
    for judge in judges if config.per_judge else (None, *apart):
        # Candidates are sorted first: the order they were written in must not show.
        order = sorted(names)
        shuffle_key = judge if judge is not None and config.per_judge else ""
        rng(seed, "blind", item_id, shuffle_key).shuffle(order)
        names_to_exclude = excluded_candidates.get(judge or "", _NOBODY)
        order = [name for name in order if name not in names_to_exclude]
        if len(order) < 2:
            continue
        for number, candidates in enumerate(
            [order, order[::-1]] if config.both_orders else [order]
        ):
            blinding = Blinding(
                item_id=item_id,
                presentation=number,
                judge=judge,
                labels={f"A{i}": name for i, name in enumerate(candidates)},
                scrubbed=responses.scrubs(names),
                normalised={
                    name: counts for name, (_, counts) in responses.visible.items() if counts
                },
            )
            yield responses.page(blinding)


def _claims(text: str, turns: Sequence[AnsweredTurn], names: Iterable[str]) -> list[Span]:
    """Statements of authorship in a text; in a conversation, those of each answer by itself."""
    if not turns:
        return list(claims(text, names))
    answers = [turn.text for turn in turns]
    return [
        (offset + start, offset + end)
        for offset, answer in zip(transcript_starts(answers), answers, strict=True)
        for start, end in claims(answer, names)
    ]


def _visible_turn(
    turn: AnsweredTurn, names: Iterable[str], scrub: Literal["mask", "flag", "off"]
) -> VisibleTurn:
    user = None if turn.user is None else visible_text(turn.user, names, scrub)[0]
    return VisibleTurn(user, visible_text(turn.text, names, scrub)[0])


def visible_text(
    text: str, names: Iterable[str], scrub: Literal["mask", "flag", "off"]
) -> tuple[str, dict[str, int]]:
    """A text as a judge sees it, and how many hidden characters of each kind were removed."""
    return normalise(mask(text, claims(text, names)) if scrub == "mask" else text)


def _single_texts(
    responses: _BlindResponses,
    judges: Sequence[str],
    config: BlindingConfig,
    seed: int,
    judging: JudgingConfig,
) -> Iterator[Presentation]:
    """A page for each text, or two with ``both_orders``: the choices reversed."""
    item_id = responses.item_id
    for judge in judges if config.per_judge else (None,):
        for index, name in enumerate(sorted(responses.texts)):
            first = _choices(judging, rng(seed, "choices", item_id, name, judge or ""))
            orders = [first, first[::-1]] if config.both_orders else [first]
            for number, choices in enumerate(orders):
                counts = responses.visible[name][1]
                blinding = Blinding(
                    item_id=item_id,
                    presentation=index * len(orders) + number,
                    judge=judge,
                    labels={"A0": name},
                    scrubbed=responses.scrubs([name]),
                    normalised={name: dict(counts)} if counts else {},
                    choices=choices,
                )
                yield responses.page(blinding)


def _choices(judging: JudgingConfig, generator: random.Random) -> list[str]:
    """The labels in a random order; of a scale, its ends, the lowest first."""
    choices = judging.choices or []
    if judging.mode == "label":
        generator.shuffle(choices)
    return choices


def mask(text: str, spans: Sequence[Span]) -> str:
    """``text`` with each span replaced by :data:`MASK`."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    return MASK.join(text[end:start] for end, start in zip(ends, starts, strict=True))
