"""The tutorial takes the commands that it shows and no other, and they print what it shows."""

from __future__ import annotations

import pytest

from docs.tutorial_session import CUT, comparable, replay

pytestmark = pytest.mark.timeout(300)  # a dozen processes, on a machine that may be busy


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return replay(tmp_path_factory.mktemp("reader"))


def test_every_command_succeeds(results):
    failures = [(c.words, r.code, r.out[-500:], r.err[-1500:]) for c, r in results if r.code != 0]
    assert not failures
    assert not [c.words for c, r in results if "Traceback" in r.err + r.out]
    commands = {c.words.split()[1] for c, _ in results if c.words.startswith("clash ")}
    assert commands >= {"demo", "init", "eval", "report", "explain", "review", "gate", "view"}


def test_the_page_shows_what_the_commands_print(results):
    """To refresh the page: PYTHONPATH=tests python -m docs.tutorial_session."""
    stale = {
        command.words: missing
        for command, result in results
        if (missing := [
            line
            for line in comparable(command.shown)
            if line != CUT and line not in comparable(result.out)
        ])
    }  # fmt: skip
    assert sum(bool(command.shown) for command, _ in results) >= 5
    assert not stale


def test_the_story_ends_with_a_decision_checked_by_the_reader(results):
    outputs = {command.words: result.out for command, result in results}
    (evaluation,) = (
        o for words, o in outputs.items() if "--max-cost 2" in words and "eval" in words
    )
    assert "claude-haiku-5.5 wins" in evaluation
    assert any("90% [60, 98]" in out for words, out in outputs.items() if "review" in words)
