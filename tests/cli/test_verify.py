"""What ``clash verify`` can compute anew cannot be forged, and what it cannot is named.

The forger of these tests makes every hash and the seal anew: only recomputing tells.
"""

import json
import shutil

import pytest

import clash
from clash.cli.app import run
from clash.store import layout
from clash.store.folder import RunFolder
from clash.store.manifest import Manifest, sha256_json, sha256_text
from review.runs import judged, plain_prompts


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("honest"), plain_prompts(6))


@pytest.fixture
def forged(honest, tmp_path):
    return RunFolder(shutil.copytree(honest.path, tmp_path / "run"))


def reseal(folder, **changes):
    """All that needs no secret: hashes of files and of the parts of the manifest, the seal."""
    raw = {**json.loads((folder.path / layout.MANIFEST).read_text()), **changes}
    raw["hashes"] |= {part: sha256_json(raw[part]) for part in ("config", "panel", "templates")}
    raw["hashes"] |= {f"template {name}": sha256_text(t) for name, t in raw["templates"].items()}
    with folder.write() as writer:
        writer.seal(Manifest.model_validate(raw))


def edit(folder, name, change):
    path = folder.path / name
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before, name
    path.write_text(after, encoding="utf-8")


def edit_json(folder, name, change):
    def changed(text):
        value = json.loads(text)
        change(value)
        return json.dumps(value, indent=1) + "\n"

    edit(folder, name, changed)


def edit_line(folder, name, change, pick=lambda record: True):
    """Change the first record that ``pick`` takes."""

    def changed(text):
        lines = text.splitlines(keepends=True)
        place = next(n for n, line in enumerate(lines) if pick(json.loads(line)))
        record = json.loads(lines[place])
        change(record)
        lines[place] = json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n"
        return "".join(lines)

    edit(folder, name, changed)


def verified(folder, capsys, *options):
    capsys.readouterr()
    code = run(["verify", str(folder.path), "--json", *options])
    return code, json.loads(capsys.readouterr().out)


def failing(folder, capsys):
    code, said = verified(folder, capsys, "--allow-unchecked")
    assert code == 5
    assert said["ok"] is False
    return {check["check"]: check["reason"] for check in said["checks"] if check["problem"]}


def unchecked(folder, capsys):
    """What was not checked, of a run that passes only with --allow-unchecked."""
    assert verified(folder, capsys)[0] == 5
    code, said = verified(folder, capsys, "--allow-unchecked")
    assert code == 0
    return {c["check"]: c["reason"] for c in said["checks"] if c["state"] == "unchecked"}


def test_an_honest_run_passes_every_check_in_full(honest, capsys):
    code, said = verified(honest, capsys)
    assert code == 0
    assert said["unchecked"] == 0
    assert {check["state"] for check in said["checks"]} == {"ok"}


# -- reports -----------------------------------------------------------------------------------


def lead(report):
    report["leaderboard"][0]["points"]["estimate"] = 0.99


def swap(report):
    first, second = report["leaderboard"]
    first["candidate"], second["candidate"] = second["candidate"], first["candidate"]


@pytest.mark.parametrize("version", [None, "0.0.1"], ids=["this clash", "another clash"])
@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lead, "leaderboard"),
        (swap, "leaderboard"),
        (lambda report: report["decision"].update(winner="west"), "decision"),
        (lambda report: report.update(cost_usd=3.0), "cost_usd"),
        (lambda report: report["coverage"].update(clean=7), "coverage"),
        (lambda report: report["leaderboard"].pop(), "leaderboard"),
    ],
)
def test_a_changed_number_or_name_fails_whichever_clash_wrote_it(
    forged, capsys, change, field, version
):
    edit_json(forged, layout.REPORT_JSON, change)
    if version is not None:
        edit_json(forged, layout.REPORT_JSON, lambda report: report.update(clash=version))
    reseal(forged)
    ((check, reason),) = failing(forged, capsys).items()
    assert check == "the report follows from the records"
    assert field in reason


def test_the_wording_of_another_clash_is_named_as_unchecked(forged, capsys):
    def reworded(report):
        report["clash"] = "0.0.1"
        report["decision"]["sentence"] = "North it is."
        report["another"] = 1

    edit_json(forged, layout.REPORT_JSON, reworded)
    reseal(forged)
    ((check, reason),) = unchecked(forged, capsys).items()
    assert check == "the report follows from the records"
    assert f"written by clash 0.0.1, this is {clash.__version__}" in reason


@pytest.mark.parametrize("name", [layout.REPORT_MD, layout.REPORT_HTML])
def test_a_changed_page_fails_and_names_its_line(forged, capsys, name):
    edit(forged, name, lambda text: text.replace("north", "west", 1))
    reseal(forged)
    ((check, reason),) = failing(forged, capsys).items()
    assert check == f"{name} shows the report"
    assert f"{name}:" in reason


@pytest.mark.parametrize("name", [layout.REPORT_MD, layout.REPORT_HTML])
def test_a_page_of_another_version_is_unchecked_where_it_differs(forged, capsys, name):
    reseal(forged, versions={"clash": "0.0.1"})
    assert verified(forged, capsys)[1]["checks"] != []
    edit(forged, name, lambda text: text + "more\n")
    reseal(forged)
    assert (
        f"computed by clash 0.0.1, here {clash.__version__}"
        in (unchecked(forged, capsys)[f"{name} shows the report"])
    )


# -- the manifest ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"cost_usd": 0.5},
        {"cost_usd": None},
        {"cost_is_lower_bound": True},
        {"status": "failed"},
        {"counts": {"items": 7}},
    ],
    ids=str,
)
def test_a_sum_that_the_records_do_not_make_fails(forged, honest, capsys, changes):
    if "counts" in changes:
        changes = {"counts": {**honest.manifest().counts, **changes["counts"]}}
    reseal(forged, **changes)
    assert "the manifest's sums follow from the records" in failing(forged, capsys)


@pytest.mark.parametrize("part", ["config", "panel", "templates"])
def test_a_part_of_the_manifest_that_lost_its_hash_is_unchecked(forged, capsys, part):
    raw = json.loads((forged.path / layout.MANIFEST).read_text())
    del raw["hashes"][part]
    with forged.write() as writer:
        writer.seal(Manifest.model_validate(raw))
    checks = verified(forged, capsys)[1]["checks"]
    assert {
        "check": "the manifest agrees with its own hashes",
        "state": "unchecked",
        "reason": f"manifest.json has no hash of its {part}",
        "problem": None,
        "unchecked": f"manifest.json has no hash of its {part}",
    } in checks


def test_a_run_that_has_not_ended_is_unchecked(forged, capsys):
    with forged.write() as writer:
        writer.save(writer.manifest().model_copy(update={"seal": None, "files": {}}))
    reasons = unchecked(forged, capsys)
    assert reasons["manifest is sealed"].startswith("the run has not ended")
    assert "files have the sealed hashes" in reasons
