"""What goes to stdout and to stderr: one JSON object, plain lines in a pipe, no colour unasked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from e2e.lab import PRICE

EVAL = {"clash", "run", "winner", "leaderboard", "coverage", "cost_usd", "decision"}
"""What design promises of ``clash eval --json``."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"\x1b|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def test_json_is_one_object_on_stdout_and_nothing_else(lab):
    lab.prompts(2)
    lab.panel({"model": "compatible/a", "price": PRICE})
    words = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--run-id", "run", "--json")
    result = lab(*words)
    assert result.code == 0
    actual_report = result.json
    assert set(actual_report) >= EVAL
    assert actual_report["run"] == "runs/run"
    report = lab.folder().report
    assert actual_report["leaderboard"] == report["leaderboard"]
    assert actual_report["coverage"] == report["coverage"]
    assert actual_report["winner"] == report["decision"]["winner"]
    assert actual_report["cost_usd"] == lab.folder().manifest["cost_usd"]
    for more in (("resume",), ("report",), ("verify",)):
        printed_result = lab.here(*more, "runs/run", "--json")
        assert printed_result.code == 0
        assert {"clash", "run"} <= set(printed_result.json)
    assert lab.here("report", "runs/run", "--item", "q0", "--json").json["item"]["labels"]
    assert lab.here("runs", "--json").json["runs"][0]["run"] == "run"


def test_json_tells_of_a_run_that_went_wrong_as_well(lab):
    from wire import faults

    lab.prompts(1)
    lab.server.misbehave(faults.unauthorized())
    lab.panel({"model": "compatible/a", "price": PRICE})
    words = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--run-id", "run")
    result = lab.here("eval", *words, "--json")
    assert result.code == result.json["exit_code"] == 4
    assert set(result.json["stopped"]) == {"compatible/a"}
    assert result.json["winner"] is None
    broken = lab.path / "runs" / "run" / "calls.jsonl"
    broken.write_bytes(broken.read_bytes() + b"\n")
    audit = lab.here("verify", "runs/run", "--json")
    assert audit.code == 5
    assert audit.json["ok"] is False
    assert any(check["problem"] for check in audit.json["checks"])


def test_in_a_pipe_there_is_no_colour_no_bar_and_no_broken_path(lab):
    lab.prompts(2)
    lab.panel({"model": "compatible/a", "price": PRICE})
    deep = "a-folder-with-a-long-name/" * 4 + "runs"
    words = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--out", deep, "--run-id", "run")
    result = lab(*words, COLUMNS="60")
    assert not CONTROL.search(result.out + result.err)
    assert f"Report  {deep}/run/report.html" in result.out.splitlines()
    assert f"clash report {deep}/run --open" in result.out
    assert "judging 2/2" in result.err
    quiet = lab(*words[:-1], "other", "--quiet")
    assert quiet.err == ""
    assert quiet.out.startswith("No clear winner: ")
    assert quiet.out.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("words", [("demo",), ("eval", "nowhere.yaml")], ids=["demo", "error"])
def test_on_a_terminal_no_color_is_obeyed(lab, words, colour):
    import pty

    our_end, their_end = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environ.pop("NO_COLOR", None)
    if not colour:
        environ["NO_COLOR"] = "1"
    with subprocess.Popen(
        [sys.executable, "-m", "clash", *words],
        cwd=lab.path,
        env=environ,
        stdin=their_end,
        stdout=their_end,
        stderr=their_end,
    ) as process:
        os.close(their_end)
        output = b""
        try:
            while piece := os.read(our_end, 65536):
                output += piece
        except OSError:  # Linux says so when the other end is closed
            pass
        finally:
            os.close(our_end)
    assert process.returncode == (0 if words == ("demo",) else 2)
    styles = {
        style for style in COLOUR.findall(output.decode()) if re.search(r"[34]\d|38|48", style)
    }
    assert bool(styles) == colour


def test_what_a_model_says_cannot_steer_the_terminal_or_the_report(lab):
    from wire import faults

    evil = "\x1b]0;owned\x07\x1b[31mred\x1b[0m [bold]loud[/bold] <script>x</script> \u202egnp"
    lab.prompts(1, candidates=("ready",))
    lab.panel({"model": "compatible/a", "price": PRICE})
    lab.server.misbehave(faults.text(evil), model="ada")
    words = ("prompts.yaml", "--models", "compatible/ada", "--panel", "panel.yaml")
    result = lab.here("eval", *words, "--observers", "none", "--run-id", "run")
    assert result.code == 0, result.err
    visible_result = lab.here("report", "runs/run", "--item", "q0")
    assert visible_result.code == 0
    assert not CONTROL.search(result.out + result.err + visible_result.out + visible_result.err)
    assert "[bold]loud[/bold]" in visible_result.out


def test_help_starts_without_what_only_a_run_needs(tmp_path):
    heavy = (
        *("pydantic", "numpy", "scipy", "sklearn", "matplotlib", "aiohttp", "anyio", "httpx2"),
        *("openai", "anthropic", "google.genai", "yaml", "pyarrow"),
    )
    code = (
        "import sys\n"
        "from clash.cli.app import run\n"
        "code = run(sys.argv[1:])\n"
        f"loaded = [m for m in {heavy!r} if m in sys.modules]\n"
        "print(code, loaded, file=sys.stderr)\n"
    )
    for words in (["--help"], ["--version"]):
        result = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True
        )
        assert result.stderr == "0 []\n", (words, result.stderr)


def test_a_reader_that_leaves_is_no_error(lab):
    lab.prompts(1)
    for name in "ab":
        lab.judged("prompts.yaml", run=name)
    process = lab.start("report", "runs/a", "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert "Traceback" not in err
    assert process.wait(30) in (0, 1)
    assert json.loads(lab.here("report", "runs/b", "--json").out)["run"] == "runs/b"


@pytest.mark.parametrize("n_bytes", [("stdout",), ("stderr",), ("stdout", "stderr")])
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_reader_that_leaves_changes_neither_the_run_nor_its_exit_code(lab, n_bytes, words):
    """`clash eval … | head`: exit code 1 would say that a gate failed."""
    from wire import faults

    lab.prompts(4)
    lab.server.misbehave(faults.unauthorized())
    lab.panel({"model": "compatible/a", "price": PRICE})
    eval_ = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
    process = lab.start(*eval_, "--run-id", "run", *words)
    for name in n_bytes:
        getattr(process, name).close()
    assert process.wait(60) == 4
    for name in {"stdout", "stderr"} - set(n_bytes):
        with getattr(process, name) as stream:
            assert "Traceback" not in stream.read()
    assert lab.here("verify", "runs/run").code == 0


def test_a_closed_stdout_is_no_error(lab):
    lab.prompts(1)
    line = f"{sys.executable} -m clash runs >&-"
    result = subprocess.run(line, shell=True, cwd=lab.path, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
