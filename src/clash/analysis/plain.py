"""Results as plain data for JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def record(result: DataclassInstance) -> dict[str, Any]:
    """A result with all that is in it; what is not a number becomes null."""
    fields: dict[str, Any] = plain(asdict(result))
    return fields


def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Lists, dictionaries, text and numbers; what is not a number (NaN, infinity) is null."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return round(value, 12) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value
