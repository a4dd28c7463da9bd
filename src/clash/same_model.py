"""Whether two names are of one model."""

from __future__ import annotations

import re

_SNAPSHOT = re.compile(
    r"(?:-(?:latest|\d{4}-\d{2}-\d{2}|\d{8}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4})){1,4}$"
)
"""Dates and numbers of a version: ``-2026-01-01``, ``-20260101``, ``-0613``, ``-001``."""
_VARIANT = re.compile(r"[:@][\w.-]+$")
"""OpenRouter's ``:free``, an engine's ``@version``."""


def is_same_model(asked: str, served: str) -> bool:
    """Whether ``served`` is a name of the model ``asked``: a snapshot, a variant, or as it is.

    Args:
        asked: as in a configuration, ``provider/model``.
        served: as the server names it, with a vendor or without.
    """
    (base, variant), (other, tag) = _parts(asked), _parts(served)
    # Ollama's `qwen3:4b` is not `qwen3:14b`; OpenRouter leaves `:free` out of its answers.
    return base == other and (variant == tag or not (variant and tag))


def _parts(name: str) -> tuple[str, str]:
    """The last part of a name without its version, and its variant."""
    last = name.lower().rpartition("/")[2].replace(".", "-").replace("_", "-")
    variant = _VARIANT.search(last)
    return _SNAPSHOT.sub("", _VARIANT.sub("", last)), variant[0] if variant else ""
