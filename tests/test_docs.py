"""What the documents show works as it stands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KEYS = re.compile(r"(_API_KEY|_BASE_URL|^CLASH_)")


def keyless_lines():
    text = (ROOT / "docs" / "recipes.md").read_text()
    blocks = re.findall(r"```console\n# keyless\n(.*?)```", text, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "datasets").symlink_to(ROOT / "datasets")
    return folder


def test_every_keyless_line_of_the_recipes_runs(place):
    environ = {k: v for k, v in os.environ.items() if not KEYS.search(k)}
    lines = keyless_lines()
    assert len(lines) > 10
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "clash"
        done = subprocess.run(
            [sys.executable, "-m", "clash", *words[1:]],
            cwd=place,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"
    again, first = (place / "runs" / name / "verdicts.jsonl" for name in ("again", "first"))
    assert again.read_bytes() == first.read_bytes()


def test_the_command_reference_is_current():
    done = subprocess.run([sys.executable, str(ROOT / "docs" / "make.py"), "--check"], cwd=ROOT)
    assert done.returncode == 0, "run: python docs/make.py"


def test_the_readme_has_its_two_lines():
    text = (ROOT / "README.md").read_text()
    assert "python -m pip install . && clash eval datasets/quickstart.yaml" in text
    assert "python -m pip install '.[dev]' && pytest" in text


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"])
def test_links_between_documents_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
