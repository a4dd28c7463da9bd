"""The array types of the statistics, each declared once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Real numbers: votes, scores, probabilities, weights. NaN is a missing value."""

Codes = NDArray[np.intp]
"""Whole numbers that stand for categories, judges or items, counted from 0."""

Index = NDArray[np.intp]
"""Positions in another array."""

Bools = NDArray[np.bool_]
"""True or false for each element."""

VoteCodes = NDArray[np.int8]
"""Votes of judges: a class 0, 1, ... for each judge and item; -1 is missing, never a vote.

Where votes are binary, 2 is a tie. Labels are coded alike: -1 where the truth is unknown."""
