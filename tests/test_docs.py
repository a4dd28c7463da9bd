"""What the documents show works as it stands."""

import ast
import functools
import importlib
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from clash.cli import app as cli

ROOT = Path(__file__).parents[1]
KEYS = re.compile(r"(_API_KEY|_BASE_URL|^CLASH_)")


def keyless_lines():
    text = (ROOT / "docs" / "recipes.md").read_text()
    blocks = re.findall(r"```console\n# keyless\n(.*?)```", text, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def work_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "datasets").symlink_to(ROOT / "datasets")
    return folder


def test_every_keyless_line_of_the_recipes_runs(work_folder, monkeypatch, capsys):
    for name in filter(KEYS.search, list(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("CLASH_CONFIG_DIR", str(work_folder / "config"))
    monkeypatch.chdir(work_folder)
    lines = keyless_lines()
    assert len(lines) > 20
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "clash"
        code = cli.run(words[1:])
        output = capsys.readouterr()
        assert code == 0, f"{line}\n{output.out[-500:]}\n{output.err[-1500:]}"
    again, first = (work_folder / "runs" / name / "verdicts.jsonl" for name in ("again", "first"))
    assert again.read_bytes() == first.read_bytes()


def test_the_references_of_commands_and_library_are_current():
    result = subprocess.run([sys.executable, str(ROOT / "docs" / "make.py"), "--check"], cwd=ROOT)
    assert result.returncode == 0, "run: python docs/make.py"


def test_the_simulated_votes_are_what_their_program_writes():
    script = ROOT / "docs" / "simulated_votes.py"
    assert subprocess.run([sys.executable, str(script), "--check"]).returncode == 0


def test_the_readme_has_its_two_lines():
    text = (ROOT / "README.md").read_text()
    assert "python -m pip install . && clash eval datasets/quickstart.yaml" in text
    assert "python -m pip install '.[dev]' && pytest" in text


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"])
def test_links_between_documents_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_proof_that_the_security_page_names_is_there():
    text = (ROOT / "docs" / "security.md").read_text()
    files = re.findall(r"`([\w/]+\.py)`", text)
    assert len(files) > 20
    assert [name for name in files if not (ROOT / "tests" / name).is_file()] == []


@functools.cache
def output_of(*words):
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


RATE = re.compile(
    r"\| (?P<count>[\d,]+) of (?P<total>[\d,]+): .*\| (?:`python (?P<script>\S+)`|the same) \|"
)


def test_the_rates_of_the_security_page_are_what_the_benchmarks_print():
    rows = list(RATE.finditer((ROOT / "docs" / "security.md").read_text()))
    assert len(rows) == 6
    script = None
    for row in rows:
        script = row["script"] or script
        rate = f"{row['count']}/{row['total']} = ".replace(",", "")
        assert f" {rate}" in output_of(str(ROOT / script)), row[0]


def test_what_attacks_do_to_the_baselines_is_what_the_security_page_says(tmp_path):
    output = output_of("-m", "clash", "redteam", "baseline", "-q", "--out", str(tmp_path))
    (rate,) = re.findall(
        r"turned the panel in (\d+ of \d+) control items \((\d+% \[\d+, \d+\])", output
    )
    assert "{}: {}".format(*rate) in (ROOT / "docs" / "security.md").read_text()


SCRIPTS = [*sorted((ROOT / "benchmarks").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.py"))]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_script_imports_is_there(script):
    """Nothing else runs most of the scripts, so a name that was changed would go unseen."""
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "clash":
            module = importlib.import_module(node.module)
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                is_package = hasattr(module, "__path__")
                assert hasattr(module, alias.name) or (is_package and find_spec(name)), name
