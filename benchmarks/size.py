"""What the number of items takes: CPU, memory, disk of a run that waits for nobody.

``python benchmarks/size.py --items 1000 5000 20000`` makes prompts with two responses of 40 to 120
words, judges them by rule (``--panel baseline``), and prints a row for each number: CPU seconds,
the most resident memory until the last judgment and of the whole command, and the size of the
folder. ``--then`` names commands that are run on the folder afterwards, ``--options`` are those of
``clash eval``.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from pathlib import Path

import harness
from harness import CLASH, ROOT, ResourceUse, run

HEADER = "| items | command | CPU s | MB until the last judgment | MB at most | MB on disk |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--then", nargs="*", default=["resume", "verify"])
    parser.add_argument("--options", default="", help="further options of clash eval")
    parser.add_argument("--longest", type=int, default=600, help="seconds that a command may take")
    arguments = parser.parse_args()
    harness.LONGEST_S = arguments.longest
    print(HEADER, "| --- | --- | --- | --- | --- | --- |", sep="\n", flush=True)
    for n in arguments.items:
        folder = Path(tempfile.mkdtemp(prefix="clash-size-"))
        try:
            measure(folder, n, arguments.options.split(), arguments.then)
        finally:
            shutil.rmtree(folder)


def measure(folder: Path, n: int, options: list[str], then: list[str]) -> None:
    """Judge ``n`` items in a folder and print what that took, and each command after it."""
    write_prompts(folder / "prompts.jsonl", n)
    command = [*CLASH, "eval", "prompts.jsonl", "--panel", "baseline", "--run-id", "run", "-q"]
    usage = run([*command, "--yes", *options], folder, {})
    path = folder / "runs" / "run"
    end_time = (path / "judgments.jsonl").stat().st_mtime
    row(n, "eval", usage, f"{usage.peak_until(end_time):.0f}", path)
    for name in then:
        usage = run([*CLASH, *name.split(), "runs/run"], folder, {})
        row(n, name, usage, "", path)


def row(n: int, command: str, used: ResourceUse, judging: str, path: Path) -> None:
    """Print what one command took."""
    disk = sum(file.stat().st_size for file in path.iterdir()) / 1e6
    cells = (f"{n:,}", command, f"{used.cpu_s:.1f}", judging, f"{used.peak_mb:.0f}", f"{disk:.0f}")
    print(f"| {' | '.join(cells)} |", flush=True)


def write_prompts(path: Path, n: int) -> None:
    """Prompts with two responses each, of words of the documentation."""
    pages = " ".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))
    words = [word for word in pages.split() if word.isalpha()]
    draw = random.Random(n)

    def text(least: int, most: int) -> str:
        return " ".join(draw.choices(words, k=draw.randint(least, most)))

    with path.open("w") as file:
        for number in range(n):
            responses = {name: text(40, 120) for name in ("north", "south")}
            record = {"id": f"item-{number:06d}", "prompt": text(10, 30), "responses": responses}
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
