"""Build the votes files in ``datasets/votes`` from the public repositories that publish the votes.

    git clone https://github.com/anthonyboisbouvier-paris/agent-clash-paper
    git clone https://github.com/princeton-nlp/LLMBar
    git clone https://github.com/composo-ai/llm-judge-criteria-ensembling
    python benchmarks/shipped_votes.py --clones FOLDER

Only votes, labels and names go into the files, no text of a prompt or a response. The commits are those
in ``datasets/votes/catalogue.yaml``; from these the files come out the same to the byte.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OUT = Path(__file__).parents[1] / "datasets" / "votes"
ADVERSARIAL = ("Constraint", "Negation", "Base_9", "Base_10")
LLMBAR_FAMILIES = {
    "ChatGPT": "openai",
    "ChatGPT-0301": "openai",
    "Falcon": "tii",
    "GPT-4": "openai",
    "LLaMA2": "meta",
    "PaLM2": "google",
}
COPIES = 8
EVERY = 3
"""Each third item of RewardBench 2: enough to show the copies, and a third of the wait."""


def panel_votes(repository: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The three frontier judges on MT-Bench and Arena pairs, as clash itself converts the runs."""
    from clash.cli.app import run

    with tempfile.TemporaryDirectory() as folder:
        run(["datasets", "convert", str(repository / "validation"), "--out", folder])
        for name, source in (("mt-bench-panel", "mt-bench"), ("arena-panel", "arena-1")):
            votes = Path(folder) / f"{name}.jsonl"
            run(["export", str(Path(folder) / source), "--votes", "--to", str(votes)])
            yield name, [json.loads(line) for line in votes.read_text("utf-8").splitlines()]


def wrong_majority(repository: Path) -> Iterator[dict[str, Any]]:
    """Six judges with a plain prompt on the instructions of LLMBar's case study made to mislead."""
    for subset in ADVERSARIAL:
        for judge, family in LLMBAR_FAMILIES.items():
            file = f"Dataset/CaseStudy/{subset}/evaluators/{judge}/Vanilla/result.json"
            for n, line in enumerate(json.loads((repository / file).read_text("utf-8"))):
                yield {
                    "item": f"{subset}-{n:03}",
                    "judge": judge,
                    "vote": _side(line["results"][0]["swap = False"].get("winner")),
                    "label": _side(line["label"]),
                    "family": family,
                    "subset": subset,
                }


def _side(winner: str | int | None) -> str | None:
    return None if winner is None else {"1": "A", "2": "B"}[str(winner)]


def near_copies(repository: Path) -> Iterator[dict[str, Any]]:
    """Eight samples of one small judge, and one sample of each of four others.

    A judge rates each response alone; its vote on a pair is the higher rating. A pair is the chosen
    response and the first rejected one; the hash of the item's id says which of them is A.
    """
    raw = repository / "results" / "raw"
    sources = [
        ("base_nano_k8", "nano", "gpt-5.4-nano", "openai", COPIES),
        ("base_both_k8", "mini", "gpt-5.4-mini", "openai", 1),
        ("base_both_k8", "full", "gpt-5.4", "openai", 1),
        ("base_claude_both_k8", "mini", "claude-haiku-4.5", "anthropic", 1),
        ("base_claude_both_k8", "full", "claude-sonnet-4.6", "anthropic", 1),
    ]
    for file, key, model, family, samples in sources:
        with (raw / f"{file}.jsonl").open(encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                # The ids of RewardBench 2 are distinct within a subset only.
                item = f"{line['subset'].replace(' ', '-')}-{line['id']}"
                number = int.from_bytes(hashlib.sha256(item.encode()).digest()[:8], "big")
                if number % EVERY or line["subset"] == "Ties":
                    continue
                chosen_is_first = number // EVERY % 2 == 0
                for sample in range(samples):
                    scores_of_winner, scores_of_loser = (
                        line[f"{key}_scores"][side][sample] for side in (0, 1)
                    )
                    yield {
                        "item": item,
                        "judge": model if samples == 1 else f"{model}#{sample + 1}",
                        "vote": _vote(
                            scores_of_winner, scores_of_loser, chosen_is_first=chosen_is_first
                        ),
                        "label": "A" if chosen_is_first else "B",
                        "family": family,
                        "subset": line["subset"],
                    }


def _vote(
    winner_score: float | None, loser_score: float | None, *, chosen_is_first: bool
) -> str | None:
    if winner_score is None or loser_score is None:
        return None
    if winner_score == loser_score:
        return "tie"
    return "A" if (winner_score > loser_score) == chosen_is_first else "B"


def write(name: str, votes: Iterable[dict[str, Any]]) -> None:
    """Write a votes file, sorted by item, without a date in the archive."""
    rows = sorted(votes, key=lambda row: (row["item"], row["judge"]))
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path = OUT / f"{name}.jsonl.gz"
    path.write_bytes(gzip.compress(lines.encode(), compresslevel=9, mtime=0))
    print(f"{path.name}: {len(rows)} votes, {path.stat().st_size:,} bytes")


def main() -> None:
    """Build the files from the clones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clones", type=Path, required=True, help="the folder of the clones")
    clones = parser.parse_args().clones
    for name, votes in panel_votes(clones / "agent-clash-paper"):
        write(name, votes)
    write("wrong-majority", wrong_majority(clones / "LLMBar"))
    write("near-copies", near_copies(clones / "llm-judge-criteria-ensembling"))


if __name__ == "__main__":
    main()
