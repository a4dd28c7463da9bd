"""Findings as plain data for JSON: one serializer for every result dataclass.

The keys are the names of the fields. A dataclass whose key or content differs says so itself:

    class Ranked:
        json_keys: ClassVar[Mapping[str, str]] = {"n_ranked_items": "n_judged"}  # field -> key
        json_omits: ClassVar[tuple[str, ...]] = ("matrix",)  # fields that are not written
        json_properties: ClassVar[tuple[str, ...]] = ("distance_se",)  # written after the fields

A map that is flatter than its results is put together from :func:`to_dict` and :func:`pick`.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DIGITS = 12
"""Decimals that are kept: later ones differ between machines and their linear algebra."""


def to_dict(result: DataclassInstance, digits: int = DIGITS) -> dict[str, Any]:
    """A result dataclass as a dictionary of plain data, field by field.

    Everything in it is converted as :func:`to_plain` does.
    """
    keys, omits = getattr(result, "json_keys", {}), getattr(result, "json_omits", ())
    names = [field.name for field in fields(result) if field.name not in omits]
    names += getattr(result, "json_properties", ())
    return {keys.get(name, name): to_plain(getattr(result, name), digits) for name in names}


def pick(result: object, *names: str, digits: int = DIGITS, **attributes: str) -> dict[str, Any]:
    """Some attributes of a result as plain data, to be spread in a flatter map.

    Args:
        result: whose attributes are read; null makes every value null.
        names: attributes that keep their name.
        digits: decimals that are kept.
        attributes: by key, the attribute written there.
    """
    keys = {**{name: name for name in names}, **attributes}
    if result is None:
        return dict.fromkeys(keys)
    return {key: to_plain(getattr(result, name), digits) for key, name in keys.items()}


def to_plain(value: Any, digits: int = DIGITS) -> Any:  # noqa: ANN401 - any JSON value
    """A value as lists, dictionaries, text, numbers and nulls.

    A number is rounded to ``digits`` decimals, and null where it is none (NaN, infinity); an enum
    becomes its value, a path its text, an array nested lists, a dataclass or model a dictionary.
    Other values stay as they are.
    """
    if isinstance(value, str) and not isinstance(value, Enum):
        return value
    if isinstance(value, float):
        return round(float(value), digits) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): to_plain(part, digits) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part, digits) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return to_dict(value, digits)
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist(), digits)
    if isinstance(value, Enum):
        return to_plain(value.value, digits)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return value
