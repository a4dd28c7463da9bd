"""The 2^m vote vectors of m judges: enumeration, energies and moments of an Ising law."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clash.stats.typing import Floats, Index

DENSE = 7
"""Judges up to which one matrix product beats two halves."""


@lru_cache(maxsize=32)
def pairs(m: int) -> tuple[Index, Index]:
    """Rows and columns of the m (m - 1) / 2 pairs j < k, in the order of their couplings."""
    first, second = np.triu_indices(m, 1)
    first.flags.writeable = second.flags.writeable = False
    return first, second


@lru_cache(maxsize=32)
def spin_states(m: int) -> Floats:
    """All vote vectors as spins, shape (2^m, m); bit j of the row number set means -1."""
    bits = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
    states: Floats = np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
    states.flags.writeable = False
    return states


@lru_cache(maxsize=16)
def features(m: int) -> Floats:
    """Spins and their pair products, shape (2^m, m + m (m - 1) / 2)."""
    states = spin_states(m)
    first, second = pairs(m)
    both = np.hstack([states, states[:, first] * states[:, second]])
    both.flags.writeable = False
    return both


@lru_cache(maxsize=32)
def masks(m: int) -> Index:
    """Where field j and coupling (j, k) sit in a Walsh spectrum of length 2^m."""
    bit = np.left_shift(1, np.arange(m))
    first, second = pairs(m)
    spots = np.concatenate([bit, bit[first] | bit[second]]).astype(np.intp)
    spots.flags.writeable = False
    return spots


def walsh(vector: Floats) -> Floats:
    """Walsh-Hadamard transform (unnormalised) of a vector of length 2^m, in m 2^m additions."""
    out: Floats = np.array(vector, dtype=np.float64)
    half = 1
    while half < len(out):
        blocks = out.reshape(-1, 2, half)
        upper = blocks[:, 0] + blocks[:, 1]
        blocks[:, 1] = blocks[:, 0] - blocks[:, 1]
        blocks[:, 0] = upper
        half *= 2
    return out


def energies(natural: Floats, m: int) -> Floats:
    """Energy of every state under fields and couplings ``natural``; shape (2^m,).

    Half the judges make the rows of a matrix, half its columns: what couples within a half is
    added along it, what couples across is one small product.
    """
    if m <= DENSE:
        return np.asarray(features(m) @ natural)
    low, high, across = halves(m)
    a, b = m // 2, m - m // 2
    cross = spin_states(b) @ natural[across].reshape(a, b).T
    levels = cross @ spin_states(a).T
    levels += features(a) @ natural[low]
    levels += (features(b) @ natural[high])[:, None]
    return np.asarray(levels.ravel())


def moments(weights: Floats, m: int) -> Floats:
    """Weighted sums of spins and pair products over the states, in the order of ``natural``."""
    if m <= DENSE:
        return np.asarray(weights @ features(m))
    low, high, across = halves(m)
    a, b = m // 2, m - m // 2
    table = weights.reshape(2**b, 2**a)
    out = np.empty(m + m * (m - 1) // 2)
    out[low] = table.sum(axis=0) @ features(a)
    out[high] = table.sum(axis=1) @ features(b)
    out[across] = (spin_states(a).T @ (table.T @ spin_states(b))).ravel()
    return out


@lru_cache(maxsize=16)
def halves(m: int) -> tuple[Index, Index, Index]:
    """Where ``natural`` holds what is within the first m // 2 judges, the rest, and across.

    The last is in the order of (first half, second half), row by row.
    """
    a = m // 2
    first, second = pairs(m)
    at = np.zeros((m, m), np.intp)
    at[first, second] = m + np.arange(len(first))
    low = np.concatenate([np.arange(a), at[:a, :a][pairs(a)]])
    high = np.concatenate([np.arange(a, m), at[a:, a:][pairs(m - a)]])
    return low, high, at[:a, a:].ravel()


def log_normaliser(natural: Floats, m: int) -> tuple[float, Floats]:
    """The log partition function and its gradient, the expected spins and pair products."""
    energy = energies(natural, m)
    top = energy.max()
    weight = np.exp(energy - top)
    total = weight.sum()
    return float(top + np.log(total)), moments(weight / total, m)
