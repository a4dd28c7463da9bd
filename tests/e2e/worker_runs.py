"""A small run whose calls worker processes or actors make, and the same by one process."""

from __future__ import annotations

from e2e.lab import PRICE, Folder, Lab

WORDS = ("prompts.yaml", "--models", "compatible/ada,compatible/bob", "--panel", "panel.yaml")
CALLS = 2 * 6 + 6 + (3 + 2) * 6
"""Responses, criteria, and judgments of three judges and two observers on six items."""


def lay(lab: Lab, *observers: str) -> None:
    lab.prompts(6, candidates=())
    voting = [{"model": f"compatible/{name}", "price": PRICE} for name in "abc"]
    records = [{"model": model, "price": PRICE, "role": "observer"} for model in observers]
    lab.panel(*voting, *records, criteria="compatible/writer")


def verdicts(run: Folder) -> bytes:
    return (run.path / "verdicts.jsonl").read_bytes()
