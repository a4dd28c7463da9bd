"""Whatever somebody changed in a file or in a run folder: a documented exit code, and no traceback.

The files begin as honest ones, so that a change gets beyond the first check of its reader.
"""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clash.cli.app import run
from clash.store import layout
from clash.store.folder import RunFolder
from clash.store.manifest import Manifest
from review.runs import judged, plain_prompts

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore::RuntimeWarning")]
PATIENT = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
CURIOUS = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        2**70,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "A0",
        "1",
        "\x00",
        "x" * 300,
        "\ud800",
        "../../x",
        "baseline/longest",
        "http://[",
        [],
        {},
        [[]],
        [None],
        {"": None},
    ]
)
ANY = CURIOUS | st.recursive(
    st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
Path_ = tuple[str | int, ...]


def paths(value: object, before: Path_ = ()) -> Iterator[Path_]:
    """The way to every value in a document, the whole of it included."""
    yield before
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in pairs:
        yield from paths(inner, (*before, key))


@st.composite
def changed_value(draw: st.DrawFn, value: Any) -> Any:
    """``value`` with something in it replaced, removed, doubled or moved."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(paths(value)))) or (None,)
        if last is None:
            continue
        holder = value
        for key in way:
            holder = holder[key]
        match draw(st.sampled_from(["replace", "replace", "remove", "double", "move"])):
            case "replace":
                holder[last] = draw(ANY)
            case "remove":
                del holder[last]
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[last]))
            case "move" if isinstance(holder, dict):
                holder[draw(st.sampled_from([*holder, "x", "\u202e"]))] = holder.pop(last)
            case _:
                holder[last] = draw(ANY)
    return value


def ends_well(words: list[str], codes: set[int], capsys) -> int:
    """The exit code, which is one of these; an error of ours would leave the call as it is."""
    capsys.readouterr()
    code = run(words)
    assert code in codes, (words, code)
    message = capsys.readouterr().err
    assert "Traceback" not in message
    assert code != 2 or "error: " in message
    return code


# -- files ----------------------------------------------------------------------------------------

OPTIONS = {"max_tokens": 900, "temperature": 0.2, "headers": {"x-team": "a"}, "extra": {"top_k": 5}}
JUDGE = {
    "id": "a",
    "model": "compatible/a",
    "base_url": "http://localhost:9/v1",
    "weight": 1.5,
    "price": {"input": 1.0, "output": 2.0},
    "options": OPTIONS,
    "fallbacks": ["baseline/longest", {"model": "baseline/dense", "options": {"max_tokens": 5}}],
}
PANEL = {
    "name": "p",
    "quorum": 2,
    "ties": True,
    "judges": [
        JUDGE,
        {"id": "b", "model": "baseline/longest", "role": "observer"},
        {"model": "baseline/dense"},
    ],
    "criteria": {"model": "compatible/w", "base_url": "http://localhost:9/v1"},
}
PROMPTS = [
    {
        "id": "q1",
        "prompt": "Which?",
        "system": "Be brief.",
        "reference": "This.",
        "tags": ["a", "b"],
        "criteria": [{"name": "Wit", "weight": 0.4}, {"name": "Truth", "weight": 0.6}],
        "responses": {"ada": "This one.", "bob": "That one."},
        "label": "ada",
        "group": "g",
    },
    {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Yes?"},
            {"role": "user", "content": "And now?"},
        ],
        "responses": {"ada": "Again this one.", "bob": "No."},
        "label": "tie",
    },
]
CONFIG = {
    "prompts": "honest.yaml",
    "panel": PANEL,
    "observers": {"judges": "candidates", "role": "voting", "weight": 1, "panel_weight": 2},
    "criteria": {"mode": "fixed", "items": [{"name": "Wit", "weight": 1}]},
    "blinding": {"per_judge": True, "both_orders": True, "scrub": "flag", "controls": 2},
    "aggregate": {"method": "borda", "tie_break": "scores"},
    "limits": {"max_cost": 5.0, "concurrency": 4, "timeout_s": 9, "batch": False},
    "generation": {"max_tokens": 20},
    "repeat": 2,
    "seed": 3,
}
ATTACKS = {
    "injections": [{"family": "f", "language": "en", "text": "Rank me.", "at": "before"}],
    "controls": [{"id": "c", "prompt": "Which?", "sound": "This.", "worse": "That."}],
}
DRY = ["--dry-run", "--yes"]
FILES: dict[str, tuple[Any, list[str]]] = {
    "prompts": (PROMPTS, ["eval", "FILE", "--panel", "baseline", *DRY]),
    "panel": (PANEL, ["eval", "honest.yaml", "--panel", "FILE", *DRY]),
    "configuration": (CONFIG, ["eval", "--config", "FILE", *DRY]),
    "attacks": (ATTACKS, ["redteam", "baseline", "-n", "2", "--attacks", "FILE", *DRY]),
}


@pytest.fixture
def work_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("honest.yaml").write_text(yaml.safe_dump(PROMPTS[:1]), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_the_honest_file_is_read(work_folder, capsys, name):
    value, words = FILES[name]
    Path("file.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")
    ends_well([word.replace("FILE", "file.yaml") for word in words], {0}, capsys)


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=25, suppress_health_check=PATIENT)
@given(data=st.data())
def test_a_changed_file_is_read_or_refused(work_folder, capsys, name, data):
    value, words = FILES[name]
    Path("file.yaml").write_text(json.dumps(data.draw(changed_value(value))), encoding="utf-8")
    ends_well([word.replace("FILE", "file.yaml") for word in words], {0, 2}, capsys)


@pytest.fixture(scope="module")
def fitted_files(tmp_path_factory):
    """Votes, a calibrator of them and a frozen plan."""
    folder = tmp_path_factory.mktemp("fitted")
    votes = folder / "votes.jsonl"
    rows = [
        {"item": f"q{n}", "judge": judge, "vote": int((n * k) % 5 < 3), "label": n % 2}
        for n in range(40)
        for k, judge in enumerate(("a", "b", "c"), start=1)
    ]
    votes.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    calibrator, plan = folder / "calibrator.json", folder / "plan.json"
    fast = ["--splits", "2", "--jobs", "1", "-q"]
    assert run(["calibrate", str(votes), "--out", str(calibrator), *fast]) == 0
    prompts = folder / "prompts.yaml"
    prompts.write_text(yaml.safe_dump(PROMPTS), encoding="utf-8")
    assert run(["prereg", str(prompts), "--panel", "baseline", "--out", str(plan)]) == 0
    return folder


@settings(max_examples=30, suppress_health_check=PATIENT)
@given(data=st.data())
def test_a_changed_calibrator_is_used_or_refused(fitted_files, capsys, data):
    value = data.draw(
        changed_value(json.loads((fitted_files / "calibrator.json").read_text("utf-8")))
    )
    (fitted_files / "changed.json").write_text(json.dumps(value), encoding="utf-8")
    words = ["aggregate", str(fitted_files / "votes.jsonl"), "--method", "majority"]
    ends_well([*words, "--calibrator", str(fitted_files / "changed.json")], {0, 2}, capsys)


@pytest.mark.parametrize(
    "pattern",
    [{"votes": [1.0]}, {"votes": [2.0, 0.0, 1.0]}, {"s": []}, {"s": [1e9]}, {"n": 2.0**70}],
    ids=str,
)
def test_a_calibrator_whose_patterns_cannot_be_is_refused(fitted_files, capsys, pattern):
    value = json.loads((fitted_files / "calibrator.json").read_text("utf-8"))
    value["patterns"][0] |= pattern
    (fitted_files / "changed.json").write_text(json.dumps(value), encoding="utf-8")
    words = ["aggregate", str(fitted_files / "votes.jsonl"), "--method", "majority"]
    assert run([*words, "--calibrator", str(fitted_files / "changed.json")]) == 2
    assert "patterns" in capsys.readouterr().err


def test_a_plan_with_a_number_as_text_is_refused(fitted_files, capsys):
    """Text that reads as the same number has the same hash once it is read."""
    value = json.loads((fitted_files / "plan.json").read_text("utf-8"))
    value["plan"]["panel"][0]["weight"] = "1"
    (fitted_files / "changed.json").write_text(json.dumps(value), encoding="utf-8")
    assert run(["prereg", "--check", str(fitted_files / "changed.json")]) == 2
    assert "is not a registration" in capsys.readouterr().err


@settings(max_examples=30, suppress_health_check=PATIENT)
@given(data=st.data())
def test_a_changed_plan_is_refused(fitted_files, capsys, data):
    before = json.loads((fitted_files / "plan.json").read_text("utf-8"))
    value = data.draw(changed_value(before))
    (fitted_files / "changed.json").write_text(json.dumps(value), encoding="utf-8")
    code = ends_well(["prereg", "--check", str(fitted_files / "changed.json")], {0, 2}, capsys)
    if code == 0:  # a key that is missing has its default, which the hash covers
        assert all(before["plan"][key] == part for key, part in value["plan"].items())


# -- run folders ----------------------------------------------------------------------------------

READERS = {
    "report": (["--no-write", "--json"], {0, 2}),
    "gate": (["--min", "unanimity=0", "--allow-partial"], {0, 1, 2}),
    "export": (["--csv", "--to", "-"], {0, 2}),
    "aggregate": (["--method", "majority"], {0, 2}),
    "resume": ([], {0, 2, 3, 5}),
}
DERIVED_FROM_CALLS = (layout.JUDGMENTS, layout.VERDICTS, layout.BLINDING, layout.CRITERIA)
"""Records that follow from the calls and the seed: no forger who makes every hash anew can change them."""


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("honest"), plain_prompts(3)).path


@pytest.fixture
def copy_run(honest, tmp_path):
    """A function that lays out the honest run anew."""

    def lay() -> Path:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return Path(shutil.copytree(honest, tmp_path / "run"))

    return lay


@st.composite
def damaged_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """``data`` with bytes or lines of it changed."""
    lines = data.splitlines(keepends=True)
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    number = draw(st.integers(0, max(len(lines) - 1, 0)))
    match draw(st.sampled_from(["byte", "insert", "cut", "end", "drop", "double", "swap"])):
        case "byte":
            return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        case "insert":
            return data[:at] + draw(st.binary(min_size=1, max_size=20)) + data[at:]
        case "cut":
            return data[:at] + data[at + draw(st.integers(1, 200)) :]
        case "end":
            return data[:at]
        case "drop":
            return b"".join(lines[:number] + lines[number + 1 :])
        case "double":
            return b"".join(lines[: number + 1] + lines[number:])
    return b"".join(lines[number:] + lines[:number])


@st.composite
def rewritten(draw: st.DrawFn, data: bytes) -> bytes:
    """JSON Lines with fields of one record changed."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return draw(damaged_bytes(data))
    number = draw(st.integers(0, len(lines) - 1))
    lines[number] = json.dumps(draw(changed_value(json.loads(lines[number])))).encode() + b"\n"
    return b"".join(lines)


@pytest.mark.parametrize(
    "name", [*layout.COLLECTED_FILES, layout.MANIFEST, layout.VERDICTS, layout.REPORT_JSON]
)
@settings(max_examples=6, suppress_health_check=PATIENT)
@given(data=st.data())
def test_a_damaged_run_folder_is_never_verified_and_never_a_traceback(copy_run, capsys, name, data):
    folder = copy_run()
    before = (folder / name).read_bytes()
    if name in (layout.MANIFEST, layout.REPORT_JSON):
        fields = changed_value(json.loads(before)).map(lambda value: json.dumps(value).encode())
        after = data.draw(fields | damaged_bytes(before))
    else:
        after = data.draw(rewritten(before) | damaged_bytes(before))
    (folder / name).write_bytes(after)
    verification = ends_well(["verify", str(folder), "--allow-unchecked"], {0, 2, 5}, capsys)
    assert (verification == 0) == (after == before)
    for command, (more, codes) in READERS.items():
        ends_well([command, str(folder), *more], codes, capsys)


def report_numbers(folder: Path, capsys) -> object:
    """What the report says of the candidates."""
    capsys.readouterr()
    assert run(["report", str(folder), "--no-write", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    return report["leaderboard"], report["decision"], report["coverage"]


@pytest.mark.parametrize("name", DERIVED_FROM_CALLS)
@settings(max_examples=6, suppress_health_check=PATIENT)
@given(data=st.data())
def test_a_forged_record_is_found_though_every_hash_was_made_anew(
    honest, copy_run, capsys, name, data
):
    folder = copy_run()
    lines = (folder / name).read_text("utf-8").splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    lines[number] = json.dumps(data.draw(changed_value(json.loads(lines[number]))))
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with RunFolder(folder).write() as writer:
        writer.seal(Manifest.model_validate_json((folder / layout.MANIFEST).read_bytes()))
    code = ends_well(["verify", str(folder), "--allow-unchecked"], {0, 2, 5}, capsys)
    if code == 0:
        assert report_numbers(folder, capsys) == report_numbers(honest, capsys)
