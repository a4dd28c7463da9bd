"""Results as plain data for JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


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
