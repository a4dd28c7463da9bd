"""Small runs, judged offline by the baselines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clash.cli.app import run
from clash.store.folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def judged(folder: Path, prompts: Iterable[Mapping[str, Any]], name: str = "run") -> RunFolder:
    """Evaluate these prompts, whose responses are given."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "prompts.jsonl"
    file.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts), encoding="utf-8")
    words = ["eval", str(file), "--panel", "baseline", "--out", str(folder), "--run-id", name]
    assert run([*words, "--yes", "-q"]) == 0
    return RunFolder.open(folder / name)


def plain_prompts(n: int) -> list[dict[str, Any]]:
    """Prompts with a long and a short response; every third is labelled, every second tagged."""
    return [
        {
            "id": f"q{i}",
            "prompt": f"Name {i + 2} colours and say why.",
            "responses": {
                "north": "Red, because it is warm. " * (1 + i % 3),
                "south": "- Blue, because of the sky.\n- Name colours why." * (1 + i % 2),
            },
            **({"label": "north"} if i % 3 == 0 else {}),
            **({"tags": ["even"]} if i % 2 == 0 else {}),
        }
        for i in range(n)
    ]
