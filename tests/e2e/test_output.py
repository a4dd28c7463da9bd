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
    done = lab(*words)
    assert done.code == 0
    found = done.json
    assert set(found) >= EVAL
    assert found["run"] == "runs/run"
    report = lab.folder().report
    assert found["leaderboard"] == report["leaderboard"]
    assert found["coverage"] == report["coverage"]
    assert found["winner"] == report["decision"]["winner"]
    assert found["cost_usd"] == lab.folder().manifest["cost_usd"]
    for more in (("resume",), ("report",), ("verify",)):
        told = lab.here(*more, "runs/run", "--json")
        assert told.code == 0
        assert {"clash", "run"} <= set(told.json)
    assert lab.here("report", "runs/run", "--item", "q0", "--json").json["item"]["labels"]
    assert lab.here("runs", "--json").json["runs"][0]["run"] == "run"


def test_json_tells_of_a_run_that_went_wrong_as_well(lab):
    from wire import faults

    lab.prompts(1)
    lab.server.misbehave(faults.unauthorized())
    lab.panel({"model": "compatible/a", "price": PRICE})
    words = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--run-id", "run")
    done = lab.here("eval", *words, "--json")
    assert done.code == done.json["exit_code"] == 4
    assert set(done.json["stopped"]) == {"compatible/a"}
    assert done.json["winner"] is None
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
    done = lab(*words, COLUMNS="60")
    assert not CONTROL.search(done.out + done.err)
    assert f"Report  {deep}/run/report.html" in done.out.splitlines()
    assert f"clash report {deep}/run --open" in done.out
    assert "judging 2/2" in done.err
    quiet = lab(*words[:-1], "other", "--quiet")
    assert quiet.err == ""
    assert quiet.out.startswith("No clear winner: ")
    assert quiet.out.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("words", [("demo",), ("eval", "nowhere.yaml")], ids=["demo", "error"])
def test_on_a_terminal_no_color_is_obeyed(lab, words, colour):
    import pty

    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environ.pop("NO_COLOR", None)
    if not colour:
        environ["NO_COLOR"] = "1"
    with subprocess.Popen(
        [sys.executable, "-m", "clash", *words],
        cwd=lab.path,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 65536):
                said += piece
        except OSError:  # Linux says so when the other end is closed
            pass
        finally:
            os.close(ours)
    assert process.returncode == (0 if words == ("demo",) else 2)
    styles = {style for style in COLOUR.findall(said.decode()) if re.search(r"[34]\d|38|48", style)}
    assert bool(styles) == colour


def test_what_a_model_says_cannot_steer_the_terminal_or_the_report(lab):
    from wire import faults

    evil = "\x1b]0;owned\x07\x1b[31mred\x1b[0m [bold]loud[/bold] <script>x</script> \u202egnp"
    lab.prompts(1, candidates=("ready",))
    lab.panel({"model": "compatible/a", "price": PRICE})
    lab.server.misbehave(faults.text(evil), model="ada")
    words = ("prompts.yaml", "--models", "compatible/ada", "--panel", "panel.yaml")
    done = lab.here("eval", *words, "--observers", "none", "--run-id", "run")
    assert done.code == 0, done.err
    shown = lab.here("report", "runs/run", "--item", "q0")
    assert shown.code == 0
    assert not CONTROL.search(done.out + done.err + shown.out + shown.err)
    assert "[bold]loud[/bold]" in shown.out


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
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.stderr == "0 []\n", (words, done.stderr)


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


@pytest.mark.parametrize("gone", [("stdout",), ("stderr",), ("stdout", "stderr")])
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_reader_that_leaves_changes_neither_the_run_nor_its_exit_code(lab, gone, words):
    """`clash eval … | head`: exit code 1 would say that a gate failed."""
    from wire import faults

    lab.prompts(4)
    lab.server.misbehave(faults.unauthorized())
    lab.panel({"model": "compatible/a", "price": PRICE})
    eval_ = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
    process = lab.start(*eval_, "--run-id", "run", *words)
    for name in gone:
        getattr(process, name).close()
    assert process.wait(60) == 4
    for name in {"stdout", "stderr"} - set(gone):
        with getattr(process, name) as stream:
            assert "Traceback" not in stream.read()
    assert lab.here("verify", "runs/run").code == 0


def test_a_closed_stdout_is_no_error(lab):
    lab.prompts(1)
    line = f"{sys.executable} -m clash runs >&-"
    done = subprocess.run(line, shell=True, cwd=lab.path, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
