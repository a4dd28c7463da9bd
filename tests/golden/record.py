"""Golden outputs: what every command prints as JSON and writes into a run folder, on fixed inputs.

``python tests/golden/record.py`` writes the recordings beside this file again; do so only where an
output was meant to change, and read the difference. What changes from run to run (times, paths,
hashes, versions) is left out.
"""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import os
import random
import re
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).parent
QUICKSTART = str(HERE.parents[1] / "datasets" / "quickstart.yaml")
RUN = "runs/first"

COMMANDS: dict[str, list[str]] = {
    "demo": ["demo", "--run-id", "demo"],
    "eval": ["eval", QUICKSTART, "-n", "12", "--run-id", "first", "--seed", "7", "--both-orders"],
    "eval-dry-run": ["eval", QUICKSTART, "-n", "4", "--dry-run"],
    "eval-again": ["eval", QUICKSTART, "--run-id", "second", "--seed", "9", "--per-judge"],
    "eval-until": ["eval", QUICKSTART, "--run-id", "until", "--until", "ci<0.3", "--looks", "3"],
    "validate": ["validate", "pairs.jsonl", "--panel", "baseline", "--run-id", "pairs"],
    "rerun": ["rerun", "demo"],
    "resume": ["resume", "demo"],
    "redteam": ["redteam", "baseline", "--n", "6", "--run-id", "attacked"],
    "eval-shard": [
        "eval",
        QUICKSTART,
        "-n",
        "9",
        "--run-id",
        "part-1",
        "--shard",
        "1/2",
        "--seed",
        "7",
    ],
    "eval-shard-2": [
        "eval",
        QUICKSTART,
        "-n",
        "9",
        "--run-id",
        "part-2",
        "--shard",
        "2/2",
        "--seed",
        "7",
    ],
    "merge": ["merge", "part-1", "part-2", "--run-id", "joined"],
    "report-several": ["report", "part-1", "part-2"],
    "report": ["report", RUN, "--no-write"],
    "compare": ["compare", "demo", "second"],
    "choose": [
        *("choose", "demo", "--max-cost-per-call", "0.003", "--max-latency", "800ms"),
        *("--price", "aspen=0.004", "--price", "birch=0.002", "--price", "cedar=0.0005"),
        *("--latency", "aspen=1.1s", "--latency", "birch=700ms", "--latency", "cedar=300ms"),
    ],
    "gate": ["gate", "demo", "--min", "coverage=0.5"],
    "gate-failed": ["gate", "demo", "--min", "concordance=0.99"],
    "runs": ["runs"],
    "verify": ["verify", "demo"],
    "seal": ["seal", "demo"],
    "export": ["export", "demo", "--votes", "--to", "demo-votes.jsonl"],
    "export-csv": ["export", "demo", "--csv", "--to", "demo.csv"],
    "aggregate-run": ["aggregate", "demo", "--out", "verdicts.jsonl"],
    "aggregate-votes": [
        "aggregate",
        "votes.jsonl",
        "--method",
        "auto,majority,dawid-skene,ising-shared,ising-class,factor",
    ],
    "aggregate-rankings": [
        "aggregate",
        "demo",
        "--method",
        "borda,copeland,schulze,kemeny,bradley-terry,plackett-luce",
    ],
    "dependence-run": ["dependence", "demo", "--bootstrap", "50"],
    "dependence-votes": ["dependence", "votes.jsonl", "--bootstrap", "50"],
    "diagnose-run": ["diagnose", "demo", "--replications", "50"],
    "diagnose-votes": ["diagnose", "votes.jsonl", "--replications", "50"],
    "prereg": ["prereg", QUICKSTART, "--primary", "birch", "--out", "plan.json"],
    "eval-prereg": ["eval", QUICKSTART, "--run-id", "planned", "--prereg", "plan.json", "-n", "20"],
    "power": ["power"],
    "power-paired": [
        "power",
        "--for",
        "paired",
        "--panel",
        "0.9,0.6",
        "--icc",
        "0.3",
        "--n",
        "50",
        "--simulate",
        "--replications",
        "50",
    ],
    "power-pilot": ["power", "--from", "demo-votes.jsonl", "--for", "paired"],
    "calibrate": ["calibrate", "votes.jsonl", "--out", "calibrator.json", "--splits", "2"],
    "aggregate-calibrated": [
        "aggregate",
        "votes.jsonl",
        "--calibrator",
        "calibrator.json",
        "--max-risk",
        "0.1",
    ],
    "simulate-three-judges": ["simulate", "three-judges"],
    "simulate-weak-factor": ["simulate", "weak-factor", "--replications", "3"],
    "datasets-list": ["datasets", "list"],
    "datasets-convert": ["datasets", "convert", "pairs.jsonl", "--out", "converted.jsonl"],
    "doctor": ["doctor"],
    "trust": ["trust"],
    "init": ["init", "new"],
    "eval-own": ["eval", "own.jsonl", "--panel", "baseline", "--run-id", "own"],
    "favouritism": ["favouritism", "own"],
    "variance": ["variance", "second", "--items", "6"],
    "audit": ["audit", "demo-votes.jsonl", "--published", "concordance=0.6"],
    "study-ising": [
        *("study", "ising", "votes.jsonl", "--trials", "2", "--train", "60", "--k", "3"),
        *("--methods", "majority,dawid-skene,ising-shared"),
    ],
    "study-fcps": [
        *("study", "fcps", "votes.jsonl", "--splits", "2", "--labels", "50", "--pool", "3"),
    ],
    "wrong-prompts": ["eval", "wrong.yaml"],
    "no-such-run": ["report", "nothing"],
}
FOLDERS = ("first", "second", "demo-r1", "pairs", "planned", "until", "attacked")
"""Run folders whose files are recorded."""

_VOLATILE = {
    *("started", "ended", "seconds", "time", "bytes", "size", "versions", "git", "python", "sdk"),
    *("path", "out", "seal", "tip", "secrets_scan", "clash", "image", "wall_per_item"),
    *("semantic_version",),
}
_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_SECONDS = re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|GB free)\b")


def write_inputs(folder: Path) -> None:
    """The files that the commands read: labelled pairs, votes of a correlated panel, pairs of which a
    judge wrote one, a mistake.
    """
    rng = random.Random(20261122)
    words = [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
    ]
    pairs = []
    for i in range(14):
        texts = [" ".join(rng.choices(words, k=rng.randint(3, 30))) for _ in "ab"]
        label = rng.choice(["a", "b", "tie"]) if i else "a"
        pairs.append(
            {
                "id": f"p{i}",
                "prompt": f"Write about {words[i % 12]}.",
                "responses": dict(zip("ab", texts, strict=True)),
                "label": label,
            }
        )
    _write_lines(folder / "pairs.jsonl", pairs)
    votes = []
    for i in range(160):
        label, shared_noise = rng.random() < 0.55, rng.random()
        for j, accuracy in enumerate((0.85, 0.75, 0.7, 0.65, 0.6)):
            chance = shared_noise if j in {1, 2} else rng.random()
            vote = label if chance < accuracy else not label
            missing = rng.random() < 0.02
            votes.append(
                {
                    "item": f"q{i}",
                    "judge": f"judge-{j}",
                    "vote": None if missing else int(vote),
                    "label": int(label),
                }
            )
    _write_lines(folder / "votes.jsonl", votes)
    own_noise = [
        {
            "id": f"o{i}",
            "prompt": f"Say {i}.",
            "responses": {"longest": "word " * (3 + 4 * (i % 3)), "other": "text " * 8},
            "label": "longest" if i % 2 else "other",
        }
        for i in range(8)
    ]
    _write_lines(folder / "own.jsonl", own_noise)
    (folder / "wrong.yaml").write_text("- id: q1\n  promt: a misspelt key\n")


def _write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def record() -> dict[str, Any]:
    """Run every command in an empty folder: exit codes, JSON, and files of the run folders."""
    from clash.cli.app import run

    outputs: dict[str, Any] = {}
    constant_tokens = mock.patch.object(
        secrets, "token_hex", lambda n=16: ("0123456789abcdef" * n)[: 2 * n]
    )
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name), constant_tokens:
        folder = Path(name).resolve()
        write_inputs(folder)
        for title, words in COMMANDS.items():
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run([*words, "--json"])
            text = out.getvalue()
            try:
                body = json.loads(text)
            except ValueError:
                body = text
            outputs[title] = {"code": code, "json": steady(body, folder)}
        for run_id in FOLDERS:
            for path in sorted((folder / "runs" / run_id).glob("*")):
                outputs[f"{run_id}/{path.name}"] = _content(path, folder)
        for name in ("verdicts.jsonl", "demo-votes.jsonl", "demo.csv", "calibrator.json"):
            outputs[name] = _content(folder / name, folder)
    return outputs


def _content(path: Path, folder: Path) -> Any:
    """What a file holds: records of JSON, text as it is, of pages only that they are there."""
    if path.suffix == ".html" or path.name.startswith("."):
        return "…"
    text = path.read_text()
    if path.suffix == ".jsonl":
        return sorted_records([steady(json.loads(line), folder) for line in text.splitlines()])
    return steady(json.loads(text) if path.suffix == ".json" else text, folder)


def sorted_records(records: list[Any]) -> list[Any]:
    """In an order that does not depend on which call was answered first."""
    return sorted(records, key=lambda r: json.dumps(r, sort_keys=True))


def steady(value: Any, folder: Path) -> Any:
    """The value without what differs from run to run."""
    if isinstance(value, dict):
        return {
            key: "…" if key in _VOLATILE or key.endswith("_s") else steady(part, folder)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [steady(part, folder) for part in value]
    if isinstance(value, str):
        text = value.replace(str(folder), "FOLDER").replace(str(HERE.parents[1]), "ROOT")
        return _SECONDS.sub("SECONDS", _TIME.sub("TIME", _HASH.sub("SHA256", text)))
    return value


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Where two recordings differ; numbers may differ by one part in a million.

    A key that only the new one has is no difference: outputs are extended by adding.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        missing_keys = [f"{where}.{key}: is gone" for key in old if key not in new]
        return missing_keys + [
            line
            for key, part in old.items()
            if key in new
            for line in differences(part, new[key], f"{where}.{key}")
        ]
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return [f"{where}: {len(old)} entries before, {len(new)} now"]
        pairs = zip(old, new, strict=True)
        return [
            line for i, (a, b) in enumerate(pairs) for line in differences(a, b, f"{where}[{i}]")
        ]
    numbers = (int, float)
    if isinstance(old, numbers) and isinstance(new, numbers) and not isinstance(old, bool):
        equal = abs(old - new) <= 1e-6 * max(abs(old), abs(new), 1e-3)
        return [] if equal else [f"{where}: {old} before, {new} now"]
    return [] if old == new else [f"{where}: {str(old)[:300]!r} before, {str(new)[:300]!r} now"]


def read(title: str = "golden.json.xz") -> dict[str, Any]:
    """The recordings beside this file."""
    return json.loads(lzma.decompress((HERE / title).read_bytes()))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "golden.json.xz"
    os.environ.setdefault("CLASH_CONFIG_DIR", tempfile.mkdtemp())
    recording = record()
    data = json.dumps(recording, ensure_ascii=False, sort_keys=True, indent=0).encode()
    target.write_bytes(lzma.compress(data, preset=9))
    for title, part in recording.items():
        sys.stdout.write(
            f"{title} {part['code'] if isinstance(part, dict) and 'code' in part else ''}\n"
        )
