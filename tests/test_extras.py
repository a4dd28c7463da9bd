"""Without an optional package the core works, and what needs it names the line that installs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import clash
from clash.cli.app import run
from clash.errors import ConfigError
from clash.extras import EXTRAS, install_line, require

ROOT = Path(__file__).parents[1]
CORE = """
import json, sys
from clash.extras import EXTRAS
sys.modules.update(dict.fromkeys(EXTRAS))
from clash.cli.app import run
for words in json.loads(sys.argv[1]):
    code = run(words)
    if code:
        sys.exit(f"{words}: {code}")
"""


@pytest.fixture
def votes(tmp_path: Path) -> str:
    """A votes file of 60 items by three judges."""
    path = tmp_path / "votes.jsonl"
    lines = [
        {"item": f"q{i}", "judge": f"j{judge}", "vote": (i + (i % (judge + 3) == 0)) % 2,
         "label": i % 2}
        for i in range(60)
        for judge in range(3)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def extras_of_the_project() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["optional-dependencies"]


def test_every_extra_installs_its_packages_and_all_installs_every_extra() -> None:
    project = extras_of_the_project()
    for package, extra in EXTRAS.items():
        requirements = " ".join(project[extra]).replace("-", "_")
        assert package.replace(".", "_") in requirements
    (line,) = project["all"]
    for extra in set(EXTRAS.values()):
        assert extra in line


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as error:
        require(package)
    module_name = package.replace("_", "-").replace(".", "-")
    assert (
        str(error.value)
        == f"this needs {module_name}\n  fix: pip install 'clash-eval[{EXTRAS[package]}]'"
    )
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("matplotlib", ["dependence", "VOTES", "--plots", "p"]),
        ("matplotlib", ["calibrate", "VOTES", "--plots", "p"]),
        ("matplotlib", ["diagnose", "VOTES", "--plot", "p"]),
        ("matplotlib", ["simulate", "independent", "--plots", "p"]),
        ("matplotlib", ["simulate", "independent", "--out", "p"]),
        ("matplotlib", ["study", "ising", "VOTES", "--out", "p"]),
        ("matplotlib", ["study", "fcps", "VOTES", "--out", "p"]),
        ("matplotlib", ["report", "latest", "--plots", "p"]),
        ("ray", ["power", "--ray", "local"]),
        ("ray", ["calibrate", "VOTES", "--ray", "host:6379"]),
        ("pyarrow", ["validate", "data.parquet", "--panel", "baseline", "--yes"]),
        ("sentence_transformers", ["diagnose", "VOTES", "--similarity", "some-model",
                                   "--pairs", "pairs.jsonl"]),
    ],
)  # fmt: skip
def test_a_command_that_needs_a_missing_package_ends_with_2(
    package: str,
    words: list[str],
    votes: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.parquet").write_bytes(b"PAR1")
    pair = {"item_id": "q0", "response_a": "one text", "response_b": "another"}
    Path("pairs.jsonl").write_text(json.dumps(pair) + "\n")
    monkeypatch.setitem(sys.modules, package, None)
    assert run([votes if word == "VOTES" else word for word in words]) == 2
    error = capsys.readouterr().err
    assert f"this needs {package.replace('_', '-')}" in error
    assert f"fix: {install_line(package)}" in error
    assert not Path("p").exists()


def test_a_data_frame_of_the_library_needs_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo"]) == 0
    monkeypatch.setitem(sys.modules, "pandas", None)
    loaded_run_data = clash.load("latest")
    assert loaded_run_data.to_dict()
    with pytest.raises(
        ConfigError, match=re.escape(f"needs pandas\n  fix: {install_line('pandas')}")
    ):
        loaded_run_data.leaderboard.to_frame()


def test_the_core_works_without_any_optional_package(votes: str, tmp_path: Path) -> None:
    quickstart = str(ROOT / "datasets" / "quickstart.yaml")
    commands = [
        ["demo"],
        ["eval", quickstart, "--run-id", "e", "--quiet"],
        ["validate", quickstart, "--panel", "baseline", "--run-id", "v", "--yes", "--quiet"],
        ["verify", "v"],
        ["report", "v"],
        ["gate", "v", "--min", "coverage=1"],
        ["export", "v", "--csv"],
        *([name, votes] for name in ("aggregate", "dependence", "diagnose")),
        ["calibrate", votes, "--labels", "20", "--splits", "2", "--quiet"],
    ]
    result = subprocess.run(
        [sys.executable, "-c", CORE, json.dumps(commands)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert "<svg" in (tmp_path / "runs" / "v" / "report.html").read_text(encoding="utf-8")


def test_an_export_that_cannot_be_compared_is_a_gap_of_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo"]) == 0
    assert run(["export", "latest", "--parquet"]) == 0
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(["verify", "latest", "--allow-unchecked"]) == 0
    lines = " ".join(capsys.readouterr().out.split())  # they are wrapped to the terminal
    assert "judgments.parquet is not compared: this needs pyarrow" in lines
    assert run(["export", "latest", "--parquet"]) == 2
    assert install_line("pyarrow") in capsys.readouterr().err
