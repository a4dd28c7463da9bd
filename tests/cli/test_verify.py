"""What ``clash verify`` can compute anew cannot be forged, and what it cannot is named.

The forger of these tests makes every hash and the seal anew: only recomputing tells.
"""

import base64
import json
import tracemalloc
import zlib

import pytest

import clash
from clash.analysis.findings import compute_findings
from clash.analysis.rundata import RunData
from clash.cli.app import run
from clash.report.page_audit import audit_pages
from clash.store import chain, layout
from clash.store.manifest import Manifest, sha256_json, sha256_text


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
        line_number = next(n for n, line in enumerate(lines) if pick(json.loads(line)))
        record = json.loads(lines[line_number])
        change(record)
        lines[line_number] = json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n"
        return "".join(lines)

    edit(folder, name, changed)


def verify(folder, capsys, *options):
    capsys.readouterr()
    code = run(["verify", str(folder.path), "--json", *options])
    return code, json.loads(capsys.readouterr().out)


def failing(folder, capsys):
    code, signer = verify(folder, capsys, "--allow-unchecked")
    assert code == 5
    assert signer["ok"] is False
    return {check["check"]: check["reason"] for check in signer["checks"] if check["problem"]}


def unchecked_reasons(folder, capsys):
    """What was not checked, of a run that passes only with --allow-unchecked."""
    assert verify(folder, capsys)[0] == 5
    code, signer = verify(folder, capsys, "--allow-unchecked")
    assert code == 0
    return {c["check"]: c["reason"] for c in signer["checks"] if c["state"] == "unchecked"}


def test_an_honest_run_passes_every_check_in_full(honest, capsys):
    code, signer = verify(honest, capsys)
    assert code == 0
    assert signer["unchecked"] == 0
    assert {check["state"] for check in signer["checks"]} == {"ok"}


# -- reports -----------------------------------------------------------------------------------


def more_than_a_count(report):
    report["coverage"]["clean"] += 1e-6


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
        (more_than_a_count, "coverage"),
        (lambda report: report["leaderboard"].pop(), "leaderboard"),
    ],
)
def test_a_changed_number_or_name_fails_whichever_clash_wrote_it(
    folder, capsys, change, field, version
):
    edit_json(folder, layout.REPORT_JSON, change)
    if version is not None:
        edit_json(folder, layout.REPORT_JSON, lambda report: report.update(clash=version))
    reseal(folder)
    ((check, reason),) = failing(folder, capsys).items()
    assert check == "the report follows from the records"
    assert field in reason


def test_the_last_digits_of_a_sum_are_no_difference(folder, capsys):
    def nudge(report):
        report["leaderboard"][0]["points"]["estimate"] *= 1 + 1e-12

    edit_json(folder, layout.REPORT_JSON, nudge)
    reseal(folder)
    assert verify(folder, capsys)[0] == 0


def test_the_wording_of_another_clash_is_named_as_unchecked(folder, capsys):
    def reword(report):
        report["clash"] = "0.0.1"
        report["decision"]["sentence"] = "North it is."
        report["another"] = 1

    edit_json(folder, layout.REPORT_JSON, reword)
    reseal(folder)
    ((check, reason),) = unchecked_reasons(folder, capsys).items()
    assert check == "the report follows from the records"
    assert f"written by clash 0.0.1, this is {clash.__version__}" in reason


def test_quietly_only_what_fails_and_the_outcome_are_printed(honest, folder, capsys):
    assert run(["verify", str(honest.path), "-q"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    edit(folder, layout.REPORT_MD, lambda text: text.replace("north", "west", 1))
    reseal(folder)
    assert run(["verify", str(folder.path), "-q"]) == 5
    assert capsys.readouterr().out.startswith("FAIL report.md shows the report")


@pytest.mark.parametrize("name", [layout.REPORT_MD, layout.REPORT_HTML])
def test_a_changed_page_fails_and_names_its_line(folder, capsys, name):
    edit(folder, name, lambda text: text.replace("north", "west", 1))
    reseal(folder)
    ((check, reason),) = failing(folder, capsys).items()
    assert check == f"{name} shows the report"
    assert f"{name}:" in reason


@pytest.mark.parametrize("name", [layout.REPORT_MD, layout.REPORT_HTML])
def test_a_page_of_another_version_is_unchecked_where_it_differs(folder, capsys, name):
    reseal(folder, versions={"clash": "0.0.1"})
    assert verify(folder, capsys)[1]["checks"] != []
    edit(folder, name, lambda text: text + "more\n")
    reseal(folder)
    assert (
        f"computed by clash 0.0.1, here {clash.__version__}"
        in (unchecked_reasons(folder, capsys)[f"{name} shows the report"])
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
def test_a_sum_that_the_records_do_not_make_fails(folder, honest, capsys, changes):
    if "counts" in changes:
        changes = {"counts": {**honest.manifest().counts, **changes["counts"]}}
    reseal(folder, **changes)
    assert "the manifest's sums follow from the records" in failing(folder, capsys)


@pytest.mark.parametrize("part", ["config", "panel", "templates"])
def test_a_part_of_the_manifest_that_lost_its_hash_is_unchecked(folder, capsys, part):
    raw = json.loads((folder.path / layout.MANIFEST).read_text())
    del raw["hashes"][part]
    with folder.write() as writer:
        writer.seal(Manifest.model_validate(raw))
    checks = verify(folder, capsys)[1]["checks"]
    assert {
        "check": "the manifest agrees with its own hashes",
        "state": "unchecked",
        "reason": f"manifest.json has no hash of its {part}",
        "problem": None,
        "unchecked": f"manifest.json has no hash of its {part}",
    } in checks


def test_a_run_that_has_not_ended_is_unchecked(folder, capsys):
    with folder.write() as writer:
        writer.save(writer.manifest().model_copy(update={"seal": None, "files": {}}))
    reasons = unchecked_reasons(folder, capsys)
    assert reasons["manifest is sealed"].startswith("the run has not ended")
    assert "files have the sealed hashes" in reasons


# -- the records -------------------------------------------------------------------------------


def rechain(folder):
    """Every link of the chain made anew: it needs no secret either."""
    path = folder.path / layout.CALLS
    head, lines = chain.START, []
    for line in path.read_bytes().splitlines(keepends=True):
        record = json.loads(line)
        record["chain"] = head
        lines.append(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
        head = chain.digest(lines[-1])
    path.write_bytes(b"".join(lines))


def reverse(judgment):
    judgment["ranking"].reverse()


def other_text(record):
    record["text"] += " Truly."


def relabel(page):
    page["labels"] = dict(zip(page["labels"], reversed(page["labels"].values()), strict=True))


def better(call):
    answer = json.loads(call["text"])
    answer["ranking"].reverse()
    call["text"] = json.dumps(answer)


JUDGED, SUMS = "judgments follow from the answers", "the manifest's sums follow from the records"
DECIDED, PAGES = "verdicts follow from the judgments", "pages follow from seed and responses"
FAILED = {"ranking": None, "scores": {}, "reasons": {}, "parse": "failed", "error": "timeout: no"}
MASKED = {"candidate": "north", "start": 0, "end": 3, "text": "Red"}
FORGERIES = {
    "a judgment is reversed": ("judgments", reverse, JUDGED),
    "a judge is given weight": ("judgments", lambda j: j.update(weight=9.0), JUDGED),
    "a judge is set aside": ("judgments", lambda j: j.update(role="observer"), JUDGED),
    "a response is flagged": ("judgments", lambda j: j.update(flags=["A0: odd"]), JUDGED),
    "a judgment fails": ("judgments", lambda j: j.update(FAILED), JUDGED),
    "an answer is reversed": ("calls", better, JUDGED),
    "an answer is refused": ("calls", lambda c: c.update(outcome="refusal"), JUDGED),
    "a question is another": ("calls", lambda c: c.update(request_hash="0"), JUDGED),
    "a model is another": ("calls", lambda c: c.update(model="openai/o9"), JUDGED),
    "a call costs more": ("calls", lambda c: c.update(cost_usd=4.0), SUMS),
    "a response is improved": ("responses", other_text, JUDGED),
    "a prompt is another": ("items", lambda i: i.update(prompt="Another?"), JUDGED),
    "a reference is added": ("items", lambda i: i.update(reference="Seven."), JUDGED),
    "labels are swapped": ("blinding", relabel, PAGES),
    "a mask is added": ("blinding", lambda b: b.update(scrubbed=[MASKED]), PAGES),
    "a criterion is another": (
        "criteria",
        lambda c: c["criteria"][0].update(name="Charm"),
        "criteria follow from the answers",
    ),
    "a winner is another": ("verdicts", lambda v: v.update(winner="west"), DECIDED),
    "a verdict is surer": ("verdicts", lambda v: v.update(confidence=0.99), DECIDED),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_record_that_does_not_follow_fails_though_all_else_was_made_to_fit(
    folder, capsys, forgery
):
    name, change, check = FORGERIES[forgery]
    edit_line(folder, f"{name}.jsonl", change)
    rechain(folder)
    reseal(folder)
    if name != "verdicts":
        assert run(["report", str(folder.path), "--write"]) == 0  # verdicts and pages that fit
    assert check in failing(folder, capsys)


@pytest.mark.parametrize("name", ["judgments", "blinding", "criteria", "calls", "verdicts"])
def test_a_record_that_was_left_out_of_a_complete_run_is_missed(folder, capsys, name):
    edit(folder, f"{name}.jsonl", lambda text: text.partition("\n")[2])
    rechain(folder)
    reseal(folder)
    assert failing(folder, capsys)


CONFIGURED = "panel, candidates and seed follow from the configuration"


def heavier(raw):
    raw["panel"]["judges"][0]["weight"] = 9.0


def quorum(raw):
    raw["panel"]["quorum"] = 1


def reseed(raw):
    raw["config"]["seed"] = raw["seeds"]["seed"] = 7


def reconfigure(raw):
    raw["config"]["panel"]["judges"][0]["weight"] = 9.0
    raw["panel"]["judges"][0]["weight"] = 9.0


def retemplate(raw):
    raw["templates"]["judge.user"] += "\nBe kind to north."


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (heavier, CONFIGURED),
        (quorum, CONFIGURED),
        (lambda raw: raw["seeds"].update(seed=7), CONFIGURED),
        (lambda raw: raw["stopped"].update({"openai/o9": "auth: no"}), CONFIGURED),
        (reseed, "pages follow from seed and responses"),
        (reconfigure, "judgments follow from the answers"),
        (retemplate, "judgments follow from the answers"),
        (lambda raw: raw.update(secret="0" * 32), "judgments follow from the answers"),
    ],
    ids=["weight", "quorum", "seed", "stopped", "both seeds", "both weights", "template", "secret"],
)
def test_a_manifest_that_was_changed_with_its_hashes_does_not_fit_the_calls(
    folder, capsys, change, check
):
    raw = json.loads((folder.path / layout.MANIFEST).read_text())
    change(raw)
    reseal(folder, **raw)
    assert run(["report", str(folder.path), "--write"]) == 0
    assert check in failing(folder, capsys)


@pytest.mark.parametrize("field", ["notes", "started", "ended", "wall_s", "git"])
def test_what_nothing_follows_from_is_seen_by_a_signature_alone(folder, capsys, field):
    """The list in docs/run-folder.md: whoever trusts these has to know who sealed them."""
    replacements = {
        "notes": ["All is well."],
        "wall_s": 1.0,
        "git": {"commit": "0", "dirty": False},
    }
    reseal(folder, **{field: replacements.get(field, "2020-01-01T00:00:00.000Z")})
    assert run(["report", str(folder.path), "--write"]) == 0
    assert verify(folder, capsys)[0] == 0


@pytest.mark.parametrize("form", ["votes", "csv", "parquet"])
def test_an_export_beside_the_records_is_held_to_them(folder, capsys, form):
    for options in ([], ["--observers"]):
        assert run(["export", str(folder.path), f"--{form}", *options]) == 0
        code, signer = verify(folder, capsys)
        assert (code, signer["ok"]) == (0, True)
    (export,) = (path for name in layout.EXPORT_FILES if (path := folder.path / name).exists())
    data = bytearray(export.read_bytes())
    data[len(data) // 2] ^= 1
    export.write_bytes(data)
    code, signer = verify(folder, capsys)
    assert code == 5
    reasons = {check["check"]: check["unchecked"] for check in signer["checks"]}
    assert export.name in reasons["exports follow from the records"]


def test_a_lock_that_holds_something_is_none_that_clash_left(folder, capsys):
    (folder.path / layout.LOCK).touch()
    assert verify(folder, capsys)[0] == 0
    (folder.path / layout.LOCK).write_text("not of this run")
    assert layout.LOCK in failing(folder, capsys)["the folder holds nothing else"]


def bomb(megabytes):
    """Text that unpacks to so many megabytes, packed like the blocks of a page."""
    return base64.b64encode(zlib.compress(bytes(megabytes << 20), 9)).decode()


@pytest.mark.parametrize("blocks", [1, 64], ids=["one large", "many"])
def test_a_page_that_unpacks_to_more_than_the_records_make_is_not_unpacked(folder, blocks):
    block = f'<script type="text/plain" id="items-1">{bomb(256 // blocks)}</script>\n'
    edit(folder, layout.REPORT_HTML, lambda text: text + block * blocks)
    data = RunData.load(folder)
    findings = compute_findings(data)
    tracemalloc.start()
    (problem,) = (check.problem for check in audit_pages(folder, data, findings) if check.problem)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem.startswith("report.html:")
    assert peak < 100 << 20


def test_a_page_that_is_much_longer_than_the_records_make_is_not_read(folder, capsys):
    with (folder.path / layout.REPORT_HTML).open("ab") as file:
        file.write(b"<br>" * (16 << 18))
    reseal(folder)
    reason = failing(folder, capsys)["report.html shows the report"]
    assert reason == "report.html is much longer than the report that follows from the records"
