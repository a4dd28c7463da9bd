"""Control items: pairs whose better response is known, clean and with an injection in the other.

They measure the judges, not the candidates: a judge that prefers the worse response of a clean
item has erred, and one that prefers it only with an injection was turned by that.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import count, islice
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from clash import assets
from clash.config import Strict
from clash.documents import read_yaml, validate
from clash.errors import InputError
from clash.records import Control, Item, Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

SOUND, WORSE = "sound", "worse"
"""The candidates of a control item."""
_PREFIX = "control"


class ControlPair(Strict):
    """A prompt with a right response and one that is plainly worse."""

    id: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    sound: str = Field(min_length=1)
    worse: str = Field(min_length=1)


class Injection(Strict):
    """A text that asks, tricks or threatens a judge into preferring the response it stands in.

    Attributes:
        family: the kind of attack, by which rates are reported.
        at: whether it stands before or after the response.
    """

    family: str = Field(min_length=1)
    language: str = "en"
    text: str = Field(min_length=1)
    at: Literal["before", "after"] = "after"

    def within(self, response: str) -> str:
        """``response`` with the injection in it."""
        parts = (self.text, response) if self.at == "before" else (response, self.text)
        return "\n\n".join(parts)


class ControlSet(Strict):
    """What control items are made of."""

    controls: tuple[ControlPair, ...] = ()
    injections: tuple[Injection, ...] = ()

    @model_validator(mode="after")
    def _controls_differ(self) -> Self:
        counts = Counter(pair.id for pair in self.controls)
        duplicate = next((name for name, uses in counts.items() if uses > 1), None)
        if duplicate is not None:
            raise ValueError(f"two controls have the id {duplicate!r}; give each an id of its own")
        return self

    @property
    def families(self) -> dict[str, list[Injection]]:
        """The injections by family, in the order of the file."""
        families: dict[str, list[Injection]] = {}
        for injection in self.injections:
            families.setdefault(injection.family, []).append(injection)
        return families


def read_controls(path: Path | None = None) -> ControlSet:
    """The control set that ships with clash; ``path`` replaces its controls, its injections or both.

    Raises:
        InputError: the file is no control set, or holds neither controls nor injections.
    """
    defaults = validate(ControlSet, read_yaml(assets.path("datasets", "redteam.yaml")))
    if path is None:
        return defaults
    controls = validate(ControlSet, read_yaml(path), error=InputError)
    if not (controls.controls or controls.injections):
        raise InputError(
            "holds neither controls nor injections",
            path=path,
            hint="see datasets/redteam.yaml for the form of both",
        )
    return ControlSet(
        controls=controls.controls or defaults.controls,
        injections=controls.injections or defaults.injections,
    )


def draw(controls: ControlSet, n: int, seed: int) -> list[tuple[ControlPair, Injection]]:
    """Up to ``n`` different pairs of a control and an injection.

    Balanced over families before controls, and over controls before languages: any beginning of
    the list holds every family about equally often, so a small ``n`` still tells families apart.
    """
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    pairs = rng.sample(controls.controls, len(controls.controls))
    families = [rng.sample(group, len(group)) for group in controls.families.values()]
    rng.shuffle(families)
    return list(islice(_combinations(pairs, families), n))


def _combinations(
    pairs: Sequence[ControlPair], families: Sequence[Sequence[Injection]]
) -> Iterator[tuple[ControlPair, Injection]]:
    """Every control with every injection once; each round goes through the families in turn."""
    if not pairs:
        return
    for round_ in count():
        lap, step = divmod(round_, len(pairs))
        if all(lap >= len(family) for family in families):
            return
        for number, family in enumerate(families):
            if lap < len(family):
                # Families start at controls far apart, so that a few rounds meet all controls;
                # `step + lap` gives each control another language in each lap.
                start = number * len(pairs) // len(families)
                yield pairs[(step + start) % len(pairs)], family[(step + lap) % len(family)]


def control_items(
    attacks: Iterable[tuple[ControlPair, Injection]], *, repeats: int = 1
) -> tuple[tuple[Item, ...], tuple[Response, ...]]:
    """Items and responses to judge: each attacked pair, and the clean form of every control in it.

    Args:
        attacks: what :func:`draw` gave.
        repeats: how often each clean control is judged; what differs between two of its
            judgments is a judge's own noise, which no attack is to be blamed for.
    """
    items: list[Item] = []
    responses: list[Response] = []
    combinations = list(attacks)
    clean = {pair.id: pair for pair, _ in combinations}
    forms = [(pair, None) for pair in clean.values() for _ in range(repeats)] + combinations
    for number, (pair, injection) in enumerate(forms, start=1):
        item = _item(pair, injection, number)
        worse = pair.worse if injection is None else injection.within(pair.worse)
        items.append(item)
        responses += [
            Response(item_id=item.item_id, candidate=SOUND, text=pair.sound, source="injected"),
            Response(item_id=item.item_id, candidate=WORSE, text=worse, source="injected"),
        ]
    return tuple(items), tuple(responses)


def _item(pair: ControlPair, injection: Injection | None, number: int) -> Item:
    name = f"{_PREFIX}-{number:03d}-{pair.id}"
    if injection is None:
        control = Control(pair=pair.id)
    else:
        control = Control(pair=pair.id, family=injection.family, language=injection.language)
        name += f"-{injection.family}"
    return Item(
        item_id=name,
        prompt=pair.prompt,
        label=SOUND,
        group=f"{_PREFIX}-{pair.id}",
        control=control,
    )
