"""Whatever a name, a response or a reason holds, it is shown, and does nothing where it is shown."""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from clash import escape
from clash.cli.app import run
from clash.votes import VoteRow, read_votes, write_votes
from hostile import samples

UNSEEN = re.compile(f"[{escape.INVISIBLE}\r]")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
FORGE = MarkdownIt("commonmark").enable("table").enable("strikethrough")
TEXTS = st.lists(
    st.sampled_from(
        [*samples.NAMES, "@", "#1", "`", "``", "|", "\\", "$x$", "~~a~~", "&lt;", "\ud800"]
    )
    | st.text(max_size=6)
).map(" ".join)


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    prompts = samples.prompts_with_names(folder / "prompts.jsonl")
    words = [
        "eval",
        str(prompts),
        "--panel",
        "baseline",
        "--out",
        str(folder),
        "--run-id",
        "r",
        "-q",
    ]
    assert run(words) == 0
    return folder / "r"


def inline_tokens(markdown: str):
    for block in FORGE.parse(markdown):
        yield from block.children or []
        assert block.type != "html_block"


def assert_inert(markdown: str) -> None:
    """Nothing in it is markup that acts, or text that a forge turns into a mention or a link."""
    for token in inline_tokens(markdown):
        assert token.type not in ("link_open", "image", "html_inline", "s_open"), token
        if token.type == "text":
            assert not re.search(r"@\w|#\d|://|www\.|\bGH-\d", token.content), token


def test_the_report_of_hostile_names_is_inert_markdown(hostile_run):
    report = (hostile_run / "report.md").read_text(encoding="utf-8")
    assert not UNSEEN.search(report)
    assert "U+202E" in report
    assert_inert(report)


@pytest.mark.parametrize(
    "words", [("report",), ("report", "--item", samples.NAMES[5]), ("verify",)]
)
def test_the_terminal_shows_hostile_names_and_obeys_none(hostile_run, capsys, words):
    command, *more = words
    assert run([command, str(hostile_run), *more]) == 0
    output = capsys.readouterr()
    assert not UNSEEN.search(output.out + output.err)


def test_a_message_that_quotes_a_file_obeys_nothing_in_it(tmp_path, capsys):
    path = tmp_path / "a.yaml"
    path.write_text('- prompt: a\n  "\\e]0;owned\\a\\u202E[/]": b\n', encoding="utf-8")
    assert run(["eval", str(path), "--panel", "baseline", "--dry-run"]) == 2
    assert not UNSEEN.search(capsys.readouterr().err)


def test_a_folder_whose_name_is_markup_is_named_as_it_is(hostile_run, tmp_path, capsys):
    strange_path = tmp_path / "[red]\u202e[" / "]"
    strange_path.parent.mkdir()
    strange_path.symlink_to(hostile_run)
    assert run(["report", str(strange_path)]) == 0
    assert "[red][U+202E][" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("report",), ("report", "-q"), ("report", "--item", "one")])
def test_the_log_of_a_ci_obeys_no_name_and_no_response(tmp_path, capsys, monkeypatch, words):
    """A name that leads the headline stood at the start of a line, as a command does."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    prompt = {"id": "one", "prompt": "Hi\n  ::add-mask::a\nsee ##[group]b"}
    prompt["responses"] = {"::error::owned": "a long response\n::stop-commands::x", "b": "short"}
    (tmp_path / "p.jsonl").write_text(json.dumps(prompt) + "\n", encoding="utf-8")
    words_of_run = [
        "eval",
        str(tmp_path / "p.jsonl"),
        "--panel",
        "baseline",
        "--out",
        str(tmp_path),
    ]
    assert run([*words_of_run, "--run-id", "r"]) == 0
    assert run([words[0], str(tmp_path / "r"), *words[1:]]) == 0
    output = capsys.readouterr()
    lines = (output.out + output.err).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]
    assert any(": :error::owned" in line for line in lines)


@pytest.mark.parametrize(
    "text", ["::a", " \t::a", "b\n::a", "b\r\n  ::a", "##[a]", "b ##[a]", "###[a]", ":::a"]
)
def test_no_line_of_a_log_begins_as_a_command(text):
    for line in escape.for_actions_log(text).splitlines():
        assert not re.match(r"\s*::|.*##\[", line)
    assert escape.for_actions_log("std::sort", starts_line=True) == "std::sort"
    assert escape.for_actions_log("::a", starts_line=False) == "::a"


def test_json_is_the_data_and_holds_no_hidden_character(hostile_run, capsys):
    assert run(["report", str(hostile_run), "--json"]) == 0
    text = capsys.readouterr().out
    assert not UNSEEN.search(text)
    assert samples.NAMES[0] in {line["candidate"] for line in json.loads(text)["leaderboard"]}


def test_no_cell_of_an_export_is_a_formula(hostile_run, tmp_path):
    for form, name in (("--csv", "v.csv"), ("--votes", "votes.csv")):
        assert run(["export", str(hostile_run), form, "--to", str(tmp_path / name)]) == 0
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert not UNSEEN.search(text)
        for row in csv.reader(io.StringIO(text)):
            assert not [cell for cell in row if cell.startswith(FORMULA)]


def test_junit_and_annotations_hold_hostile_names_as_text(hostile_run, tmp_path, capsys):
    rules = ["--min", "concordance=1", "--max", "cost=1"]
    junit = tmp_path / "gate.xml"
    assert run(["gate", str(hostile_run), *rules, "--junit", str(junit), "--github"]) == 1
    text = junit.read_text(encoding="utf-8")
    assert not UNSEEN.search(text)
    ET.fromstring(text)
    commands = [line for line in capsys.readouterr().out.splitlines() if "::error" in line]
    assert all(line.startswith("::error title=clash gate") for line in commands)


@given(TEXTS)
def test_any_text_is_inert_on_every_medium(text):
    for document in (escape.for_markdown(text), f"| a |\n| --- |\n| {escape.for_markdown(text)} |"):
        assert_inert(document.encode("utf-8", "replace").decode())
    assert not UNSEEN.search(escape.for_markdown(text))
    assert not re.search(f"[{escape.INVISIBLE}\ud800-\udfff]", escape.for_terminal(text))
    ET.fromstring(f"<a>{escape.for_xml(text).replace('&', '').replace('<', '')}</a>")
    assert not escape.for_csv(text).startswith(FORMULA)
    assert json.loads(escape.for_json(json.dumps(text, ensure_ascii=False))) == text
    command = escape.for_workflow(text)
    assert "\n" not in command
    assert "\r" not in command


@given(st.text(alphabet="'=+-@a1\t\uff1d", min_size=1))
def test_a_cell_is_read_as_it_was_meant(cell):
    assert escape.from_csv(escape.for_csv(cell)) == cell


def test_votes_of_hostile_judges_come_back_from_csv(tmp_path):
    path = tmp_path / "votes.csv"
    names = ["=1+1", "'=1", "-7", "plain", "'quoted'"]
    write_votes(path, [VoteRow(item="q1", judge=name, vote=1.0) for name in names])
    assert sorted(read_votes(path).judges) == sorted(names)
