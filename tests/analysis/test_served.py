"""Whether the model that answered is the one that was asked."""

from __future__ import annotations

import pytest

from clash.analysis.served import notes, swapped_models
from clash.config import is_same_model


@pytest.mark.parametrize(
    ("model_name", "served_model"),
    [
        ("openai/gpt-5.2", "gpt-5.2"),
        ("openai/gpt-5.2", "gpt-5.2-2026-01-01"),
        ("openai/gpt-4", "gpt-4-0613"),
        ("anthropic/claude-haiku-5-5", "claude-haiku-5-5-20261001"),
        ("openrouter/anthropic/claude-opus-4.5", "anthropic/claude-opus-4-5"),
        ("openrouter/openai/gpt-5.2-pro:free", "openai/gpt-5.2-pro"),
        ("google/gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("google/gemini-2.0-flash", "gemini-2.0-flash-001"),
        ("compatible/qwen3:14b", "qwen3:14b"),
        ("replay/openrouter/openai/gpt-5.2", "openai/gpt-5.2-2026-01-01"),
    ],
)
def test_a_snapshot_or_a_variant_is_the_same_model(model_name, served_model):
    assert is_same_model(model_name, served_model)


@pytest.mark.parametrize(
    ("model_name", "served_model"),
    [
        ("openai/gpt-5.2", "gpt-4o-mini"),
        ("openai/gpt-5.2", "gpt-5.2-mini"),
        ("openai/gpt-5.2-pro", "gpt-5.2"),
        ("openrouter/anthropic/claude-opus-4.5", "anthropic/claude-haiku-4.5"),
        ("compatible/qwen3:14b", "qwen3:4b"),
    ],
)
def test_another_model_is_told_from_it(model_name, served_model):
    assert not is_same_model(model_name, served_model)


def test_each_model_that_another_one_answered_for_is_named_once():
    swaps = swapped_models(
        [("openai/a", "a"), ("openai/b", "x"), ("openai/b", "x"), ("openai/b", None)]
        + [("openai/c", f"m{number}" * 40) for number in range(9)]
    )
    assert list(swaps) == ["openai/b", "openai/c"]
    b, c = notes(swaps)
    assert b == "openai/b was asked, and the server names x as the model that answered"
    assert "and 6 more" in c
    assert len(c) < 400
