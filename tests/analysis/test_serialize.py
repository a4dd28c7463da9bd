"""Results become plain data by one rule, whatever they hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar

import numpy as np

from clash.analysis.serialize import to_dict


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    n_ranked: int
    share: float

    json_keys: ClassVar = {"n_ranked": "n_judged"}
    json_properties: ClassVar = ("double",)

    @property
    def double(self) -> float:
        return 2 * self.share


@dataclass(frozen=True)
class Outer:
    parts: tuple[Inner, ...]
    matrix: np.ndarray
    by_name: dict[int, object]


def test_every_value_becomes_json() -> None:
    result = Outer(
        (Inner(2, 0.1 + 0.2), Inner(0, float("inf"))),
        np.array([[1.0, np.nan]]),
        {1: Colour.RED, 2: Path("a/b"), 3: np.int64(4), 4: None, 5: True},
    )
    assert to_dict(result) == {
        "parts": [
            {"n_judged": 2, "share": 0.3, "double": 0.6},
            {"n_judged": 0, "share": None, "double": None},
        ],
        "matrix": [[1.0, None]],
        "by_name": {"1": "red", "2": "a/b", "3": 4, "4": None, "5": True},
    }
