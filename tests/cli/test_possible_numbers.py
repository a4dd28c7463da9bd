"""Every interval that a command prints lies in the range of its quantity and holds its estimate."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from clash.cli.app import app, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INF = math.inf
RANGES: dict[str, tuple[float, float]] = {
    r"kappas?(\[\]\.interval|\.interval)?|alpha(_decisive)?|(mean_)?correlation|anova": (-1, 1),
    r"difference|gain|edge|margin|pull|against(_\w+)?|ahead|bits": (-1, 1),
    r"experiments\.(clustered|newcombe)": (-1, 1),
    r"scale\.anchor": (-4, 4),
    r"coupling|log_loss|models\[\]\.gain|effects\[\]\.\w+|slope": (-INF, INF),
    r"by_mean|by_spectrum|effective": (1, 4),
    r"by_accuracy|tau2|odds_ratio|cost_usd|latency_ms|needed": (0, INF),
    r"sigma": (0, 12),
}
"""The quantities that are no shares, by the end of their path; every other lies in [0, 1]."""
NO_LENGTH = (r"models\[\]\.gain", r"needed", r"power.*icc", r"range\..*")
"""May have none: the base's gain over itself, what a correlation of 0 needs, and what readings of
the votes agree on, which is no interval."""
ON_VOTES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "dependence": (("dependence", "IT", "--bootstrap", "20"), ()),
    "diagnose": (("diagnose", "IT"), ()),
    "power": (("power", "--for", "paired", "--from", "IT"), ()),
    "aggregate": (
        ("aggregate", "IT", "--range", "--use-labels"),
        ("one judge", "one item", "one cluster", "missing votes"),
    ),
    "calibrate": (
        ("calibrate", "IT", "--splits", "2", "--jobs", "1"),
        ("missing votes",),
    ),
    "audit": (("audit", "IT"), ("all ties",)),
    "study ising": (("study", "ising", "IT", "--trials", "2"), ("one of the other class",)),
    "study fcps": (("study", "fcps", "IT", "--splits", "2"), ("one of the other class",)),
}
"""The words of a command, and the votes that it is tried on; all where none are named."""
ON_RUNS: dict[str, list[tuple[str, ...]]] = {
    "report": [("report", "IT")],
    "gate": [("gate", "IT", "--min", "win_rate_ties_half.x=0.1")],
    "compare": [("compare", "IT", "ties")],
    "choose": [("choose", "IT")],
    "explain": [("explain", "IT")],
}
ELSEWHERE = {
    ("demo", "eval", "validate", "rerun", "resume", "merge", "review"): "the figures of `report`",
    (
        "variance",
        "favouritism",
        "redteam",
    ): "they judge anew: their analyses have tests of few items",
    ("prereg", "simulate"): "figures of a plan, and of simulations",
    (
        "init",
        "schema",
        "doctor",
        "trust",
        "runs",
        "verify",
        "seal",
        "export",
        "query",
    ): "no estimate",
    ("datasets list", "datasets pull", "datasets sample", "datasets convert"): "no estimate",
}


def table(items: int, judges: int, vote: Any, label: Any = None, group: Any = None) -> list[dict]:
    """Lines of votes; a vote that is None is missing."""
    lines = []
    for i in range(items):
        for j in range(judges):
            line: dict[str, object] = {"item": f"q{i}", "judge": f"j{j}", "vote": vote(i, j)}
            if label is not None:
                line["label"] = label(i)
            if group is not None:
                line["group"] = group(i)
            if line["vote"] is not None:
                lines.append(line)
    return lines


def side(i: int) -> int:
    return i % 2


def mostly(i: int, j: int) -> int:
    """A vote that is wrong on a third of the items, on others for each judge."""
    return side(i) if (i * 7 + j * 5 + i // 3) % 3 else 1 - side(i)


VOTES = {
    "one judge": table(12, 1, mostly, side),
    "one item": table(1, 4, lambda _i, j: j % 2, lambda _: 1),
    "three items, no label": table(3, 4, mostly),
    "all ties": table(12, 3, lambda _i, _j: "tie", lambda i: "AB"[i % 2]),
    "a constant judge": table(12, 3, lambda i, j: 1 if j == 0 else mostly(i, j), side),
    "one class": table(12, 3, mostly, lambda _: 1),
    "all alike": table(12, 3, lambda _i, _j: 1, lambda _: 1),
    "copies": table(12, 3, lambda i, _j: mostly(i, 0), side),
    "one cluster": table(12, 3, mostly, side, lambda _: "g"),
    "missing votes": table(12, 3, lambda i, j: mostly(i, j) if (i + j) % 3 == 0 else None, side),
    "one of the other class": table(64, 3, mostly, lambda i: int(i != 5)),
}
RESPONSES = ("Paris is the capital of France, on the Seine.", "I do not know.")
PROMPTS = {
    "two": [(*RESPONSES, "x"), (*RESPONSES[::-1], "x")],
    "ties": [("Paris", "Paris", None)] * 3,
}


def run_json(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command prints with --json; null where it refuses its input."""
    code = run([*words, "--json"])
    text = capsys.readouterr().out
    assert code in (0, 1, 2), words
    return None if code == 2 else json.loads(text, parse_constant=pytest.fail)


def intervals(value: Any, path: str) -> Iterator[tuple[str, float | None, float, float]]:
    """Path, estimate and ends of each interval in a document."""
    if isinstance(value, list):
        for element in value:
            yield from intervals(element, f"{path}[]")
    if not isinstance(value, dict):
        return
    for key in value:
        if re.fullmatch(r"(\w+_)?low", key) and value[key] is not None:
            name = key.removesuffix("low")
            estimate = value.get("estimate" if key == "low" else name[:-1])
            high = value[f"{name}high"]
            at = path if key == "low" else f"{path}.{name[:-1]}"
            yield at, estimate, value[key], INF if high is None else high
        yield from intervals(value[key], f"{path}.{key}")


def faults(document: Any, command: str) -> Iterator[str]:
    """What is impossible in a document."""
    for path, estimate, low, high in intervals(document, command):
        least, most = 0.0, 1.0
        for pattern, ends in RANGES.items():
            if re.search(rf"\.({pattern})$", path):
                least, most = ends
        where = f"{path}: {estimate} [{low}, {high}]"
        if not least <= low <= high <= most:
            yield f"{where} is not in [{least}, {most}]"
        if isinstance(estimate, (int, float)) and not low - 1e-9 <= estimate <= high + 1e-9:
            yield f"{where} does not hold its estimate"
        if low == high and not any(re.search(f"{pattern}$", path) for pattern in NO_LENGTH):
            yield f"{where} has no length"


@pytest.fixture(scope="module")
def work_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("possible")
    for name, lines in VOTES.items():
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, items in PROMPTS.items():
            lines = [
                {"id": f"q{i}", "prompt": f"Capital of France? {i}", "responses": {"x": x, "y": y}}
                | ({"label": label} if label else {})
                for i, (x, y, label) in enumerate(items)
            ]
            text = "".join(f"{json.dumps(line)}\n" for line in lines)
            (folder / "prompts.jsonl").write_text(text, "utf-8")
            options = ("--panel", "baseline", "--run-id", name, "--yes", "-q")
            assert run(["eval", "prompts.jsonl", *options]) == 0
    return folder


@pytest.mark.parametrize("votes", VOTES)
def test_intervals_of_votes_are_possible(votes, work_folder, capsys, monkeypatch):
    monkeypatch.chdir(work_folder)
    wrong = []
    for words, tried_on in ON_VOTES.values():
        if not tried_on or votes in tried_on:
            arguments = tuple(f"{votes}.jsonl" if word == "IT" else word for word in words)
            wrong += faults(run_json(arguments, capsys), words[0])
    assert wrong == []


@pytest.mark.parametrize("name", PROMPTS)
def test_intervals_of_runs_are_possible(name, work_folder, capsys, monkeypatch):
    monkeypatch.chdir(work_folder)
    wrong = []
    for words in (words for group in ON_RUNS.values() for words in group):
        arguments = tuple(name if word == "IT" else word for word in words)
        if arguments[-2:] != ("ties", "ties"):
            wrong += faults(run_json(arguments, capsys), words[0])
    assert wrong == []


def test_every_command_with_json_is_looked_at():
    def names(group: Any, before: str = "") -> Iterator[str]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from names(command, f"{before}{name} ")
            elif any("--json" in parameter.opts for parameter in command.params):
                yield f"{before}{name}"

    looked_at = {*ON_VOTES, *ON_RUNS, *(name for group in ELSEWHERE for name in group)}
    assert set(names(typer.main.get_command(app))) <= looked_at
