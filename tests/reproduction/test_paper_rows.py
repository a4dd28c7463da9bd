"""docs/reproduction.md has a row for every item of the papers, and what a row names is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from clash.analysis.aggregation.methods import method_names
from clash.cli.app import app
from clash.documents import read_yaml
from clash.reproduction.simulations import EXPERIMENTS, ON_VOTES

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "../shared/papers"
FILES = {
    "agent-clash": "agent-clash.md",
    "ising": "ising-aggregation.md",
    "finite-calibration": "finite-calibration.md",
    "pilot": "judge-effectiveness-pilot.md",
}
VERDICTS = {"same", "corrected", "cannot be had", "removed", "stands", "done", "counted"}
NUMBERED = re.compile(
    r"\b(Table|Figure|Theorem|Proposition|Lemma|Corollary|Remark|Algorithm) (\d{1,2})\b"
)
EQUATION = re.compile(r"\((\d{1,2})\)\s{0,3}(?:\$\$|\\end\{aligned\}\s?\$\$)")
ROWS = {
    paper: read_yaml(ROOT / "docs" / "tables" / "papers" / f"{paper}.yaml").value for paper in FILES
}
LISTED = read_yaml(Path(__file__).with_name("paper_items.yaml")).value


def items(paper: str) -> list[str]:
    return [name for line in LISTED[paper] for name in line]


@pytest.mark.parametrize("paper", list(FILES))
def test_every_item_has_one_row_and_no_row_is_of_something_else(paper):
    row_names = [name for row in ROWS[paper] for name in row["of"]]
    assert sorted(row_names) == sorted(items(paper))


@pytest.mark.skipif(not PAPERS.is_dir(), reason="../shared/papers is absent")
@pytest.mark.parametrize("paper", list(FILES))
def test_every_numbered_item_of_a_paper_is_listed(paper):
    text = (PAPERS / FILES[paper]).read_text(encoding="utf-8")
    own_parts = text.partition("## References")
    citation = r"(?:\[1, Figure|Ai et al\. \(2025,|Algorithm 1\.) "
    text = re.sub(citation + r"?[^)\]]{0,20}[)\]]", "", own_parts[0]) + own_parts[2]
    citations = {f"{kind} {number}" for kind, number in NUMBERED.findall(text)}
    citations |= {f"Equation {number}" for number in EQUATION.findall(text)}
    assert citations - set(items(paper)) <= {"Figure 10"}  # named in a note, and not in the paper
    assert len(citations) > 11 or paper == "pilot"


@pytest.mark.parametrize("paper", list(FILES))
def test_a_row_says_what_is_so_and_why(paper):
    for row in ROWS[paper]:
        assert set(row) <= {"of", "what", "command", "theirs", "ours", "verdict", "why"}, row
        assert row["verdict"] in VERDICTS, row
        assert row.get("why") or row["verdict"] in ("same", "done", "removed", "counted"), row
        for name in re.findall(r"[\w/-]+\.(?:py|md|yaml)\b", " ".join(map(str, row.values()))):
            is_there = (ROOT / name).exists() or (ROOT / "docs" / name).exists()
            assert is_there or "/" not in name, name


@pytest.mark.parametrize("paper", list(FILES))
def test_the_commands_of_a_row_exist_with_their_options(paper):
    root = get_command(app)
    for row in ROWS[paper]:
        for part in row["command"].split(";"):
            words = shlex.split(part)
            if words[0] in ("python", "pytest"):
                assert (ROOT / words[1]).is_file(), words[1]
            elif words[0] == "clash":
                _check_command(root, words)
            else:
                assert row["command"] == "(no figures)"


def _check_command(command, words):
    remaining_words = words[1:]
    while remaining_words and hasattr(command, "commands"):
        assert remaining_words[0] in command.commands, words
        command, remaining_words = command.commands[remaining_words[0]], remaining_words[1:]
    if words[1] == "simulate":
        assert remaining_words[0] in {**EXPERIMENTS, **ON_VOTES}, words
    if "--method" in words:
        assert {*words[words.index("--method") + 1].split(",")} <= {*method_names()}, words
    options = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    assert {word for word in remaining_words if word.startswith("-")} <= options, words
