"""A stranger's first minute, twice: the same to the byte but for times and ids."""

from __future__ import annotations

import base64
import json
import re
import zlib

import pytest

from e2e.lab import Folder, Lab

VOLATILE = re.compile(
    r"(run|time|started|ended|seal|sha256|wall_per_item|\w+_s|secret|request_hash|chain)"
)
"""Keys whose values are a moment, a duration, an id, a secret, or a hash over one of these."""

PACKED = re.compile(r'<script type="text/plain" id="[^"]*">([^<]*)')


@pytest.fixture(scope="module")
def twins(tmp_path_factory, server) -> tuple[Folder, Folder]:
    folders = []
    for name in ("one", "two"):
        lab = Lab(tmp_path_factory.mktemp(name), server)
        result = lab("demo")
        assert result.code == 0, result.err
        (path,) = (lab.path / "runs").iterdir()
        folders.append(Folder(path))
    return folders[0], folders[1]


def still(value):
    """``value`` without what time and chance put into it; the order of keys is kept."""
    if isinstance(value, dict):
        return {key: still(part) for key, part in value.items() if not VOLATILE.fullmatch(key)}
    return [still(part) for part in value] if isinstance(value, list) else value


def unpack_block(block: re.Match[str]) -> str:
    """A block of data in the page, in words: JSON, or a line of it for each call."""
    decoded_answer = zlib.decompress(base64.b64decode(block[1])).decode()
    return "\n".join(json.dumps(still(json.loads(line))) for line in decoded_answer.splitlines())


def text(folder: Folder, name: str) -> str:
    raw = (folder.path / name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return "\n".join(json.dumps(still(json.loads(line))) for line in raw.splitlines())
    if name.endswith(".json"):
        return json.dumps(still(json.loads(raw)), indent=1)
    return words(PACKED.sub(unpack_block, raw), folder)


def words(raw: str, folder: Folder) -> str:
    """A report without the run's id, moments, durations, and hashes over these."""
    raw = raw.replace(folder.path.name, "RUN")
    for form in (
        r"\d{4}-\d\d-\d\dT[\d:.]+Z",
        r"\b\d+(\.\d+)? m?s\b",
        r"\d\d:\d\d UTC",
        r"\b[0-9a-f]{64}\b",
    ):
        raw = re.sub(form, "TIME", raw)
    return re.sub(r'("\w+_s": ?)[\d.e-]+', r"\1TIME", raw)


def test_two_runs_have_the_same_files(twins):
    names = [sorted(path.name for path in run.path.iterdir()) for run in twins]
    assert names[0] == names[1]
    assert len(names[0]) >= 10


def test_every_file_is_the_same_but_for_times_and_ids(twins):
    first_run, two = twins
    for path in sorted(first_run.path.iterdir()):
        assert text(first_run, path.name) == text(two, path.name), path.name


def test_the_quickstart_needs_no_key_says_what_its_judges_are_and_ends_with_a_decision(tmp_path):
    lab = Lab(tmp_path, server=None)
    result = lab("demo")
    assert result.code == 0
    assert len(result.out.splitlines()) <= 20
    assert result.out.startswith("No clear winner: people would prefer aspen")
    assert "The panel puts birch first" in result.out
    story = " ".join(result.out.split())
    assert "on all 11 prompts where people put another answer first" in story
    assert "check a panel against people" in story
    (path,) = (tmp_path / "runs").iterdir()
    run = Folder(path)
    assert run.manifest["status"] == "complete"
    assert run.manifest["cost_usd"] == 0
    output = lab("report", "latest", "-v").out
    assert "non-LLM baselines" in output
    assert run.report["decision"]["sentence"] in " ".join(output.split())
    assert {call["cost_usd"] for call in run.lines("calls")} == {0.0}
    assert lab("verify", "latest").code == 0


def test_eval_with_no_key_and_no_panel_says_so_in_one_line_and_seats_the_baseline(tmp_path):
    lab = Lab(tmp_path, server=None)
    lab.prompts(2)
    result = lab("eval", "prompts.yaml", "--run-id", "run")
    assert result.code == 0
    notes = [line for line in result.err.splitlines() if "no API key is set" in line]
    assert len(notes) == 1
    assert "non-LLM baselines" in notes[0]
    assert lab.folder().manifest["panel"]["name"] == "baseline"
