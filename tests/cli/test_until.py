"""A run that judges until a rule holds, broken off anywhere, goes on to the same looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clash.analysis.serialize import to_dict
from clash.cli.app import run
from clash.pipeline import sequential_run as pipeline
from clash.pipeline.stopping import Look, parse_rule

QUICKSTART = str(Path(__file__).resolve().parents[2] / "datasets" / "quickstart.yaml")
RULE = ["--until", "ci<0.4", "--looks", "4", "--sequential", "pocock"]


class Kill(BaseException):
    """What no handler catches."""


def _eval(out: Path, *more: str) -> list[str]:
    return ["eval", QUICKSTART, "--out", str(out), "--run-id", "u", "-q", *RULE, *more]


def _stopping(out: Path) -> dict:
    return json.loads((out / "u" / "manifest.json").read_text())["stopping"]


def _verdicts(out: Path) -> bytes:
    return (out / "u" / "verdicts.jsonl").read_bytes()


@pytest.fixture(scope="module")
def reference_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed")
    assert run(_eval(out)) == 0
    assert len(_stopping(out)["looks"]) == 3
    return out


def _broken(out: Path, monkeypatch: pytest.MonkeyPatch, batch: int, *, before: bool) -> None:
    """Killed at a batch, before it is judged or after, the look not yet taken."""
    whole, calls = pipeline.carry_on, []

    def carry_on(*args, **kwargs):
        calls.append(1)
        if before and len(calls) == batch:
            raise Kill
        outcome = whole(*args, **kwargs)
        if len(calls) == batch:
            raise Kill
        return outcome

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "carry_on", carry_on)
        with pytest.raises(Kill):
            run(_eval(out))


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_broken_off_at_any_batch_it_comes_to_the_same_end(
    reference_run: Path, tmp_path: Path, monkeypatch, capsys, batch: int, before: bool
) -> None:
    _broken(tmp_path, monkeypatch, batch, before=before)
    assert run(["resume", str(tmp_path / "u"), "-q"]) == 0
    assert _stopping(tmp_path) == _stopping(reference_run)
    assert _verdicts(tmp_path) == _verdicts(reference_run)
    assert run(["verify", str(tmp_path / "u")]) == 0


def test_a_torn_list_of_prompts_is_made_whole_from_the_pool(
    reference_run: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    """A kill while the second batch was written down: some items there, one torn."""
    _broken(tmp_path, monkeypatch, 2, before=True)
    for name in ("items", "responses"):
        file = tmp_path / "u" / f"{name}.jsonl"
        file.write_bytes(file.read_bytes()[:-700])
    assert run(["resume", str(tmp_path / "u"), "-q"]) == 0
    assert _stopping(tmp_path) == _stopping(reference_run)
    assert sorted(_verdicts(tmp_path).splitlines()) == sorted(_verdicts(reference_run).splitlines())


def test_a_torn_pool_is_refused(tmp_path: Path, monkeypatch, capsys) -> None:
    _broken(tmp_path, monkeypatch, 1, before=True)
    file = tmp_path / "u" / "pool.jsonl"
    file.write_bytes(file.read_bytes()[:-30])
    assert run(["resume", str(tmp_path / "u"), "-q"]) == 2
    assert "pool.jsonl: holds 31 of 32 items" in capsys.readouterr().err


def test_a_run_whose_loop_has_ended_judges_nothing_more(reference_run: Path, capsys) -> None:
    before, manifest = _verdicts(reference_run), _stopping(reference_run)
    assert run(["resume", str(reference_run / "u"), "-q"]) == 0
    assert (_verdicts(reference_run), _stopping(reference_run)) == (before, manifest)
    notes = json.loads((reference_run / "u" / "manifest.json").read_text())["notes"]
    assert sum(note.startswith("--until") for note in notes) == 1


def test_a_registered_rule_is_gone_on_with(tmp_path: Path, monkeypatch, capsys) -> None:
    plan = tmp_path / "plan.json"
    assert run(["prereg", QUICKSTART, "--primary", "birch", "--out", str(plan), *RULE]) == 0
    carry_on = pipeline.carry_on
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "carry_on", lambda *a, **k: (carry_on(*a, **k), 1 / 0))
        with pytest.raises(ZeroDivisionError):
            run([*_eval(tmp_path), "--prereg", str(plan)])
    assert run(["resume", str(tmp_path / "u"), "-q"]) == 0
    preregistration = json.loads((tmp_path / "u" / "report.json").read_text())["preregistration"]
    assert preregistration["deviations"] == []
    assert {look["candidate"] for look in _stopping(tmp_path)["looks"]} == {"birch"}


def test_a_look_is_read_as_it_was_written() -> None:
    look = Look(6, "a", float("nan"), 0.0, 1.0, 1.0)
    assert to_dict(look)["estimate"] is None
    assert to_dict(Look.read(json.loads(json.dumps(to_dict(look))))) == to_dict(look)


def test_a_rule_is_read_before_anything_is_planned(tmp_path: Path, capsys) -> None:
    assert run(["eval", QUICKSTART, "--out", str(tmp_path), "--until", "soon", "--dry-run"]) == 2
    assert "--until" in capsys.readouterr().err
    assert parse_rule("ci < .25", "pocock").width == 0.25
