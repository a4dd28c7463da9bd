"""Findings as plain data for JSON: one serializer for every result dataclass.

The keys are the names of the fields. A dataclass whose key or content differs says so itself:

    class Ranked:
        json_keys: ClassVar[Mapping[str, str]] = {"n_ranked_items": "n_judged"}  # field -> key
        json_properties: ClassVar[tuple[str, ...]] = ("distance_se",)  # written after the fields
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


def to_dict(result: DataclassInstance) -> dict[str, Any]:
    """A result dataclass as a dictionary of plain data, field by field.

    Everything in it is converted as :func:`to_plain` does.
    """
    keys = getattr(result, "json_keys", {})
    names = (*(field.name for field in fields(result)), *getattr(result, "json_properties", ()))
    return {keys.get(name, name): to_plain(getattr(result, name)) for name in names}


def to_plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A value as lists, dictionaries, text, numbers and nulls.

    A number that is none (NaN, infinity) becomes null; an enum its value, a path its text, an
    array nested lists, a dataclass or model a dictionary. Other values stay as they are.
    """
    if isinstance(value, str) and not isinstance(value, Enum):
        return value
    if isinstance(value, float):
        return round(float(value), DIGITS) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return value
