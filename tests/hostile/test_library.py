"""A run folder that somebody changed costs a reader in Python an exception of ours, or nothing."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress

import pytest

import clash
from clash.errors import ClashError
from hostile import samples

PROMPTS = [
    {
        "id": f"q{n}",
        "prompt": f"Say {n} <script>things</script>.",
        "responses": {"ada": "x " * n, "<img src=x onerror=alert(1)>": "y"},
        "label": "ada",
    }
    for n in range(4)
]


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return clash.evaluate(PROMPTS, panel="baseline", out=tmp_path_factory.mktemp("honest"))


def _manifest(old: str, new: str):
    def change(run):
        path = run / "manifest.json"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


def _link(run):
    (run / "responses.jsonl").unlink()
    (run / "responses.jsonl").symlink_to("/etc/passwd")


def _each(name: str, **fields: object):
    def change(run):
        path = run / name
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        path.write_text("".join(json.dumps({**r, **fields}) + "\n" for r in lines), "utf-8")

    return change


def _stray_labels(run):
    records = [
        {"item_id": "q0", "annotator": "<script>", "winner": "nobody"},
        {"item_id": "nowhere", "annotator": "ann", "winner": "ada"},
    ]
    (run / "labels.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records), "utf-8")


CHANGES = {
    **samples.SPOILT,
    "link": _link,
    "negative seed": _manifest('"seed": 42', '"seed": -1'),
    "seed of 5000 digits": _manifest('"seed": 42', f'"seed": {"9" * 5000}'),
    "seed NaN": _manifest('"seed": 42', '"seed": NaN'),
    "no weight": _manifest('"weight": 1.0', '"weight": 0.0'),
    "weight NaN": _manifest('"weight": 1.0', '"weight": NaN'),
    "quorum of words": _manifest('"quorum": ', '"quorum": "x", "q": '),
    "huge page": _each("judgments.jsonl", presentation=10**18),
    "huge cost": _each("responses.jsonl", cost_usd=1e308, latency_s=1e308),
    "id that leads out": _each("items.jsonl", item_id="../../x"),
    "control characters": _each(
        "items.jsonl", group="\x1b]0;o\x07<script>\u202e", tags=["<script>"]
    ),
    "judge of HTML": _each("judgments.jsonl", judge="<script>"),
    "stray labels": _stray_labels,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_run_is_an_error_of_ours_or_is_shown_as_data(honest, tmp_path, name):
    CHANGES[name](shutil.copytree(honest.path, tmp_path / "run"))
    html = ""
    for use in (
        lambda: clash.load(tmp_path / "run"),
        lambda: clash.load(tmp_path / "run").items,
        lambda: clash.load(tmp_path / "run").judgments,
        lambda: clash.load(tmp_path / "run").verdicts,
        lambda: clash.load(tmp_path / "run").leaderboard,
        lambda: clash.gate(tmp_path / "run", {"unanimity": 0.1}, allow_partial=True),
        lambda: clash.gate(honest, baseline=tmp_path / "run", allow_partial=True),
        lambda: clash.compare(honest, tmp_path / "run"),
        lambda: clash.choose(tmp_path / "run", worth=0.1),
        lambda: clash.load(tmp_path / "run").votes() and honest,
    ):
        with suppress(ClashError):
            html += use()._repr_html_()
    # Every tag is one that clash writes: no name and no text became one.
    tags = set(re.findall(r"<\s*/?\s*(\w+)", html))
    assert tags <= {"p", "b", "table", "thead", "tbody", "tr", "th", "td", "small", "br"}
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_names_of_others_are_escaped_in_a_notebook(honest):
    page_text = honest.responses._repr_html_() + honest._repr_html_() + honest.items._repr_html_()
    assert "&lt;img src=x onerror=alert(1)&gt;" in page_text
    assert "<img" not in page_text
    assert "<script" not in page_text
