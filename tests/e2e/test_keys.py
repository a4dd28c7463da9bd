"""A key goes where its owner means it to go: by no file, folder or option of a stranger elsewhere.

The wire server stands in for a proxy, so that whatever is sent to ``evil.example`` is on its
record, headers and all.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from e2e.lab import _BARE, PRICE

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "ghp_0123456789abcdefghij"
EVIL = "http://evil.example"
OPENAI, COMPATIBLE = f"{EVIL}/openai/v1", f"{EVIL}/compatible/v1"
JUDGE = {"id": "judge", "model": "compatible/judge", "price": PRICE}


@pytest.fixture
def lab(lab):
    """The vendors' own keys, no address, and a token that is not a model's business."""
    keys = {k: v for k, v in lab.environ.items() if k.endswith("_KEY")}
    proxy = {"HTTP_PROXY": f"http://127.0.0.1:{lab.server.port}"}
    lab.environ = {**keys, **proxy, "GITHUB_TOKEN": SECRET}
    lab.prompts(2)
    return lab


def sent_text(lab) -> str:
    """Everything that reached any server."""
    return repr(lab.server.calls)


def refuses(lab, n_done, *pairs: str) -> None:
    """Exit code 2, no call, and a message that names each pair and both ways to confirm it."""
    assert n_done.code == 2, (n_done.out, n_done.err)
    assert lab.server.calls == []
    for pair in pairs:
        assert pair in n_done.err
        assert f"clash trust {pair.replace(' -> ', ' ')}" in n_done.err
    assert "--trust-host" in n_done.err


def clash_yaml(lab, judge, **more) -> None:
    panel = {"name": "mine", "judges": [{**JUDGE, **judge}]}
    lab.write("clash.yaml", {"panel": panel, "criteria": {"mode": "none"}, **more})


EVAL = ("eval", "prompts.yaml", "--run-id", "run", "--yes")

# -- the four leaks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["GITHUB_TOKEN", "COMPATIBLE_API_KEY"])
def test_a_configuration_read_by_itself_sends_no_key_to_another_host(lab, key):
    clash_yaml(lab, {"base_url": COMPATIBLE, "api_key_env": key})
    refuses(lab, lab.here(*EVAL), f"{key} -> {EVIL}")
    assert not (lab.path / "runs").exists()


def test_a_panel_and_criteria_that_it_names_send_none_either(lab):
    evil = {"base_url": COMPATIBLE, "api_key_env": "GITHUB_TOKEN"}
    panel = lab.panel({**JUDGE, **evil}, name="theirs")
    criteria = {"mode": "dynamic", "model": "openai/writer", "base_url": OPENAI, "price": PRICE}
    candidate = {"model": "openai/c", "base_url": OPENAI, "api_key_env": "OPENROUTER_API_KEY"}
    lab.write(
        "clash.yaml",
        {"panel": panel.name, "criteria": criteria, "candidates": [{**candidate, "price": PRICE}]},
    )
    pairs = [f"{key} -> {EVIL}" for key in ("GITHUB_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY")]
    refuses(lab, lab.here(*EVAL), *pairs)


@pytest.mark.parametrize("name", ["Host", "host", "Transfer-Encoding"])
def test_no_header_of_a_file_takes_a_key_from_its_vendors_address_to_another_server(lab, name):
    """A CDN passes what arrives at an address of its own on to the server that ``Host`` names."""
    clash_yaml(lab, {"model": "openai/judge", "options": {"headers": {name: "evil.example"}}})
    result = lab.here(*EVAL)
    assert result.code == 2
    assert f"{name} is part of the address" in result.err
    assert "clash.yaml" in result.err
    assert lab.server.calls == []


@pytest.mark.parametrize(
    ("name", "value"), [("X-Team", "blue\n"), ("X-Team", "a\r\nHost: b"), ("X\n", "")]
)
def test_a_header_of_several_lines_is_refused_where_it_is_read(lab, name, value):
    clash_yaml(lab, {"model": "compatible/judge", "options": {"headers": {name: value}}})
    result = lab.here(*EVAL)
    assert result.code == 2
    assert "has a line break or a control character" in result.err
    assert lab.server.calls == []


def test_a_token_does_not_go_to_the_vendor_that_a_strangers_file_names(lab):
    clash_yaml(lab, {"model": "openai/judge", "api_key_env": "GITHUB_TOKEN"})
    result = lab.here(*EVAL, HTTPS_PROXY=lab.environ["HTTP_PROXY"])
    refuses(lab, result, "GITHUB_TOKEN -> api.openai.com")


@pytest.mark.parametrize("name", [".env", "keys.env"])
def test_a_file_of_variables_sets_no_address(lab, name):
    lab.write(name, f"# keys\nOTHER=1\nOPENAI_BASE_URL={OPENAI}\n")
    lab.panel({**JUDGE, "model": "openai/judge"})
    words = () if name == ".env" else ("--env-file", name)
    result = lab.here(*EVAL, "--panel", "panel.yaml", "--criteria", "none", *words)
    assert result.code == 2
    assert f"{name}:3: OPENAI_BASE_URL" in result.err
    assert lab.server.calls == []


def test_an_address_that_the_shell_sets_too_makes_that_of_the_file_harmless(lab):
    lab.write(".env", f"OPENAI_BASE_URL={OPENAI}\n")
    lab.panel({**JUDGE, "model": "openai/judge"})
    own_address = lab.server.base_url("openai")
    run = lab.judged(
        "prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", OPENAI_BASE_URL=own_address
    )
    assert run.manifest["status"] == "complete"
    assert EVIL not in sent_text(lab)


def strangers(lab, judge) -> Path:
    """A run folder as somebody else, on another machine, would have made and sent it."""
    elsewhere = {"CLASH_CONFIG_DIR": str(lab.path / "another-machine")}
    clash_yaml(lab, judge)
    result = lab.here(
        "eval", "prompts.yaml", "--run-id", "theirs", "--trust-host", EVIL, **elsewhere
    )
    assert result.code in (0, 3, 4), result.err
    (lab.path / "clash.yaml").unlink()
    lab.server.clear()
    return lab.path / "runs" / "theirs"


@pytest.mark.parametrize("command", ["rerun", "resume"])
@pytest.mark.parametrize("key", ["GITHUB_TOKEN", "COMPATIBLE_API_KEY"])
def test_a_strangers_folder_sends_no_key(lab, command, key):
    folder = strangers(lab, {"base_url": COMPATIBLE, "api_key_env": key})
    if command == "resume":
        for name in ("judgments.jsonl", "calls.jsonl", "reservations.jsonl"):
            (folder / name).unlink()
        manifest = json.loads((folder / "manifest.json").read_text())
        unended_manifest = {
            **manifest,
            "status": "running",
            "files": {},
            "chain": None,
            "seal": None,
        }
        (folder / "manifest.json").write_text(json.dumps(unended_manifest))
    words = ("--yes",) if command == "rerun" else ()
    refuses(lab, lab.here(command, f"runs/{folder.name}", *words), f"{key} -> {EVIL}")


def test_a_strangers_folder_does_not_reach_this_machine_with_a_key_either(lab):
    own_address = lab.server.base_url("compatible")
    folder = strangers(lab, {"base_url": own_address, "api_key_env": "COMPATIBLE_API_KEY"})
    server = own_address.removesuffix("/compatible/v1")
    refuses(lab, lab.here("rerun", f"runs/{folder.name}"), f"COMPATIBLE_API_KEY -> {server}")


def test_calibration_pairs_from_a_strangers_folder_send_no_key(lab):
    long = "The first thing holds. The second follows from it. The third does not. " * 3
    lab.write(
        "prompts.yaml",
        [
            {"prompt": f"Q{i}?", "responses": {"a": f"{long}{i}", "b": f"{long}{i}!"}}
            for i in (1, 2)
        ],
    )
    folder = strangers(lab, {"base_url": COMPATIBLE, "api_key_env": "GITHUB_TOKEN"})
    result = lab.here("diagnose", f"runs/{folder.name}", "--calibrate-judges", "--sources", 2)
    refuses(lab, result, f"GITHUB_TOKEN -> {EVIL}")


def test_doctor_pings_nobody_with_a_key_that_was_not_confirmed(lab):
    clash_yaml(lab, {"base_url": COMPATIBLE, "api_key_env": "GITHUB_TOKEN"})
    result = lab.here("doctor", "--ping", "--json")
    assert result.code == 1
    bad = [f for f in result.json["findings"] if f["level"] == "bad"]
    assert [f["subject"] for f in bad] == ["compatible/judge"]
    assert f"GITHUB_TOKEN -> {EVIL}" in bad[0]["says"]
    assert lab.server.calls == []


# -- an honest run goes on --------------------------------------------------------------------------


def local(lab, **more) -> dict:
    return {"base_url": lab.server.base_url("compatible"), **more}


def test_a_run_made_here_goes_on_and_is_repeated_without_a_question(lab):
    clash_yaml(lab, local(lab))
    run = lab.judged("prompts.yaml")
    server = f"http://127.0.0.1:{lab.server.port}"
    assert run.manifest["destinations"] == [{"variable": "COMPATIBLE_API_KEY", "server": server}]
    result = lab.here("rerun", "runs/run")
    assert result.code == 0, result.err
    assert f"COMPATIBLE_API_KEY -> {server} for compatible/judge" in result.err
    assert lab.here("resume", "runs/run").code == 0
    assert lab.here("rerun", "runs/run-r1").code == 0


def test_a_replay_asks_no_observer_either(lab):
    """It makes no call: an observer that a file names is answered from the run as the judges are."""
    observer = {**JUDGE, **local(lab), "id": "watcher", "model": "compatible/watcher"}
    clash_yaml(lab, local(lab), observers=[observer])
    run = lab.judged("prompts.yaml")
    (lab.path / "clash.yaml").unlink()
    lab.server.clear()
    result = lab.here("eval", "--replay", "runs/run", "--run-id", "again", "--yes")
    assert result.code == 0, result.err
    assert lab.server.calls == []
    judges = sorted(j["judge"] for j in run.judgments())
    assert sorted(j["judge"] for j in lab.folder("again").judgments()) == judges


def test_a_run_made_here_whose_judge_was_changed_is_a_strangers(lab):
    clash_yaml(lab, local(lab))
    run = lab.judged("prompts.yaml")
    lab.server.clear()
    text = (run.path / "manifest.json").read_text()
    changed_text = text.replace(lab.server.base_url("compatible"), COMPATIBLE)
    (run.path / "manifest.json").write_text(changed_text)
    refuses(lab, lab.here("rerun", "runs/run"), f"COMPATIBLE_API_KEY -> {EVIL}")


def test_a_folder_moved_to_another_machine_is_confirmed_there(lab):
    clash_yaml(lab, local(lab))
    lab.judged("prompts.yaml")
    elsewhere = {"CLASH_CONFIG_DIR": str(lab.path / "another-machine")}
    server = f"http://127.0.0.1:{lab.server.port}"
    assert lab.here("rerun", "runs/run", **elsewhere).code == 2
    assert lab.here("trust", "COMPATIBLE_API_KEY", server, **elsewhere).code == 0
    assert lab.here("rerun", "runs/run", **elsewhere).code == 0


def test_a_run_of_an_earlier_version_is_repeated_at_the_vendors_own_address(lab):
    clash_yaml(lab, {})
    own_address = {"COMPATIBLE_BASE_URL": lab.server.base_url("compatible")}
    run = lab.judged("prompts.yaml", **own_address)
    manifest = run.manifest
    del manifest["destinations"], manifest["origin"]
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    assert lab.here("rerun", "runs/run", **own_address).code == 0


# -- confirming ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "environ"),
    [(("--trust-host", EVIL), {}), ((), {"CLASH_TRUST_HOSTS": f"other.example {EVIL}"})],
    ids=["option", "environment"],
)
def test_a_host_is_trusted_for_one_command(lab, words, environ):
    clash_yaml(lab, {"base_url": COMPATIBLE})
    result = lab.here(*EVAL, *words, **environ)
    assert result.code == 0, result.err
    assert f"COMPATIBLE_API_KEY -> {EVIL} for compatible/judge" in result.err
    shutil.rmtree(lab.path / "runs")
    lab.server.clear()
    refuses(lab, lab.here(*EVAL), f"COMPATIBLE_API_KEY -> {EVIL}")


def test_a_file_of_variables_trusts_no_host(lab):
    lab.write(".env", f"CLASH_TRUST_HOSTS={EVIL}\nCLASH_CONFIG_DIR={lab.path}\n")
    clash_yaml(lab, {"base_url": COMPATIBLE})
    refuses(lab, lab.here(*EVAL), f"COMPATIBLE_API_KEY -> {EVIL}")


def test_a_pair_is_confirmed_listed_and_taken_back(lab):
    clash_yaml(lab, {"base_url": COMPATIBLE})
    assert "nothing is confirmed" in lab.here("trust").out
    assert lab.here("trust", "COMPATIBLE_API_KEY", f"{EVIL}/compatible/v1").code == 0
    assert f"COMPATIBLE_API_KEY -> {EVIL}" in lab.here("trust").out
    record = {"variable": "COMPATIBLE_API_KEY", "server": EVIL}
    assert lab.here("trust", "--json").json["confirmed"] == [record]
    assert lab.here(*EVAL).code == 0
    assert lab.here("trust", "COMPATIBLE_API_KEY", EVIL, "--remove").code == 0
    assert "nothing is confirmed" in lab.here("trust").out
    assert lab.here("trust", "COMPATIBLE_API_KEY", EVIL, "--remove").code == 2
    assert lab.here("trust", "COMPATIBLE_API_KEY").code == 2


def test_one_confirmed_key_lets_no_other_go(lab):
    clash_yaml(lab, {"base_url": COMPATIBLE, "api_key_env": "GITHUB_TOKEN"})
    lab.here("trust", "COMPATIBLE_API_KEY", EVIL)
    refuses(lab, lab.here(*EVAL), f"GITHUB_TOKEN -> {EVIL}")


def test_an_unencrypted_address_of_the_environment_is_confirmed_too(lab):
    lab.panel(JUDGE)
    words = (*EVAL, "--panel", "panel.yaml", "--criteria", "none")
    refuses(lab, lab.here(*words, COMPATIBLE_BASE_URL=COMPATIBLE), f"COMPATIBLE_API_KEY -> {EVIL}")


def on_a_terminal(lab, answer: str, *words: str) -> tuple[int, str]:
    """``clash WORDS`` with a person at the keyboard who types ``answer``."""
    keyboard, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "clash", *words],
        cwd=lab.path,
        env={**_BARE, "HOME": str(lab.path), "TERM": "dumb", **lab.environ},
        stdin=terminal,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        output = b""
        try:
            while piece := os.read(keyboard, 4096):
                output += piece
                if output.rstrip().endswith(b"[y/N]:"):
                    os.write(keyboard, answer.encode())
        except OSError:
            pass  # the other end has closed
        code = process.wait(60)
    os.close(keyboard)
    return code, re.sub(r"\s+", " ", output.decode())


def test_a_person_is_asked_once_even_with_yes(lab):
    clash_yaml(lab, {"base_url": COMPATIBLE})
    code, output = on_a_terminal(lab, "n\n", *EVAL)
    assert code == 2
    assert f"COMPATIBLE_API_KEY -> {EVIL} (not encrypted)" in output
    assert lab.server.calls == []
    code, output = on_a_terminal(lab, "y\n", *EVAL)
    assert code == 0, output
    assert len(lab.server.calls) == 2
    code, output = on_a_terminal(lab, "", "rerun", "runs/run", "--yes")
    assert code == 0, output
    assert "[y/N]" not in output


# -- what is shown ----------------------------------------------------------------------------------


def test_a_dry_run_shows_where_keys_would_go_and_never_a_key(lab):
    clash_yaml(
        lab,
        {"base_url": COMPATIBLE, "api_key_env": "GITHUB_TOKEN"},
        observers=[{"model": "openai/watcher", "price": PRICE}],
    )
    result = lab.here(*EVAL, "--dry-run")
    assert result.code == 0, result.err
    under = dict(zip(result.out.splitlines(), result.out.splitlines()[1:], strict=False))
    assert "compatible/judge" in under[f"GITHUB_TOKEN -> {EVIL} (not confirmed)"]
    assert "openai/watcher (observer)" in under["OPENAI_API_KEY -> api.openai.com"]
    assert SECRET not in result.out + result.err
    places = lab.here(*EVAL, "--dry-run", "--json").json["destinations"]
    assert {"variable": "GITHUB_TOKEN", "server": EVIL} in places
    assert lab.server.calls == []


def test_quiet_shows_no_destinations(lab):
    clash_yaml(lab, local(lab))
    assert "->" not in lab.here(*EVAL, "-q").err


def test_doctor_checks_a_panel_in_the_configuration_each_model_at_each_address(lab):
    own_address = lab.server.base_url("compatible")
    twin = {"model": "compatible/judge", "price": PRICE}
    panel = {
        "name": "mine",
        "judges": [
            {"id": "a", **twin, "base_url": own_address},
            {"id": "b", **twin, "base_url": "http://localhost:9/v1"},
            {"id": "c", "model": "anthropic/c", "api_key_env": "NOT_SET", "price": PRICE},
        ],
    }
    lab.write("clash.yaml", {"panel": panel, "criteria": {"mode": "none"}})
    result = lab.here("doctor", "--json")
    assert result.code == 1
    finding_by_subject = {f["subject"]: f for f in result.json["findings"]}
    for address in (own_address, "http://localhost:9/v1"):
        row = finding_by_subject[f"compatible/judge at {address} with COMPATIBLE_API_KEY"]
        assert row["says"].startswith("COMPATIBLE_API_KEY -> http://")
    assert finding_by_subject["NOT_SET"]["says"] == "is not set; needed by panel mine"


def test_a_model_that_stopped_at_one_of_its_addresses_is_named_with_it(lab):
    own_address = lab.server.base_url("compatible")
    lab.environ["WRONG"] = "not-the-key-0123456789"
    twin = {"model": "compatible/judge", "price": PRICE, "base_url": own_address}
    lab.panel({"id": "a", **twin}, {"id": "b", **twin, "api_key_env": "WRONG"}, quorum=1)
    run = lab.judged("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", code=4)
    (name,) = run.manifest["stopped"]
    assert name == f"compatible/judge at 127.0.0.1:{lab.server.port} with WRONG"
