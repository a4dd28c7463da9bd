"""The models of the published experiments: names, families, tiers, ratings."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from clash.documents import read_yaml, validate

_FILE = Path(__file__).with_name("models.yaml")


class PublishedModel(BaseModel):
    """A model of the published experiments.

    Attributes:
        arena: its names in the Chatbot Arena data sets.
        frontier: in the set that the Arena sample was drawn from.
        tier: ``strong`` or ``weak``, where the first experiment has it.
        elo: Chatbot Arena rating of 13 August 2024; null where not known of exactly one model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    family: str
    arena: list[str] = []
    frontier: bool = False
    tier: str | None = None
    elo: int | None = None


@cache
def models() -> dict[str, PublishedModel]:
    """Every model, by the name that the paper gives it."""
    document = read_yaml(_FILE)
    models = (validate(PublishedModel, document.at(index)) for index in range(len(document.value)))
    return {model.name: model for model in models}


@cache
def _by_any_name() -> dict[str, PublishedModel]:
    return {name: model for model in models().values() for name in (*model.arena, model.name)}


def find(name: str) -> PublishedModel | None:
    """The model of that name, the paper's or the Arena's, with or without ``vendor/``."""
    by_name = _by_any_name()
    return by_name.get(name) or by_name.get(name.rpartition("/")[2])


def describe(candidate: str) -> dict[str, str | int]:
    """A candidate for a manifest: ``id`` and, where known, family, tier and rating."""
    facts: dict[str, str | int] = {"id": candidate}
    model = find(candidate)
    if model is not None:
        facts |= model.model_dump(include={"family", "tier", "elo"}, exclude_none=True)
    return facts
