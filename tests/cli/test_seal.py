"""A seal takes in what came since, and only of a run that passes; a signature says whose it is."""

import json
import shutil
import subprocess

import pytest

from clash.cli.app import run
from clash.records import Label
from clash.store import layout
from clash.store.journal import Journal
from review.runs import judged, plain_prompts

openssh = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="needs ssh-keygen (apt install openssh-client)"
)


def key(tmp_path, name):
    path = tmp_path / name
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path


def signers_file(tmp_path, **keys):
    file = tmp_path / "allowed_signers"
    lines = [f"{person} {path.with_suffix('.pub').read_text()}" for person, path in keys.items()]
    file.write_text("".join(lines))
    return file


def verify(folder, capsys, *options):
    capsys.readouterr()
    code = run(["verify", str(folder.path), "--json", *map(str, options)])
    record = json.loads(capsys.readouterr().out)
    problems = {check["check"]: check["reason"] for check in record["checks"] if check["problem"]}
    return code, record.get("signer"), problems


SIGNED = "the manifest is signed by an allowed signer"


# -- sealing -----------------------------------------------------------------------------------


def test_a_seal_takes_in_labels_and_leaves_what_was_whole_as_it_was(folder, capsys):
    before = (folder.path / layout.MANIFEST).read_bytes()
    assert run(["seal", str(folder.path)]) == 0
    assert (folder.path / layout.MANIFEST).read_bytes() == before
    with Journal(folder.path / layout.LABELS) as labels:
        labels.append(Label(item_id="q1", annotator="ann", winner=None, note="unsure"))
        labels.append(Label(item_id="q2", annotator="ann", winner="south"))
    assert verify(folder, capsys) == (5, None, {})
    assert verify(folder, capsys, "--allow-unchecked") == (0, None, {})
    assert run(["seal", str(folder.path), "--json"]) == 0
    assert layout.LABELS in json.loads(capsys.readouterr().out)["files"]
    assert verify(folder, capsys) == (0, None, {})


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (layout.RESPONSES, b"Blue", b"Mauve"),
        (layout.MANIFEST, b'"prompts": "prompts.jsonl"', b'"prompts": "others.jsonl"'),
        (layout.LABELS, b"south", b"north"),
    ],
)
def test_a_report_of_changed_records_says_so_and_seals_nothing(folder, capsys, name, old, new):
    with Journal(folder.path / layout.LABELS) as labels:
        labels.append(Label(item_id="q1", annotator="ann", winner="south"))
    assert run(["seal", str(folder.path)]) == 0
    path = folder.path / name
    path.write_bytes(path.read_bytes().replace(old, new))
    before = {record.name: record.read_bytes() for record in folder.path.iterdir()}
    for options in ([], ["--no-write"], ["--json"]):
        capsys.readouterr()
        assert run(["report", str(folder.path), *options]) == 0
        assert f"warning: {name} was changed after it was sealed" in capsys.readouterr().err
        assert {record.name: record.read_bytes() for record in folder.path.iterdir()} == before
    assert run(["report", str(folder.path), "--write"]) == 0
    assert f"{name} was changed after it was sealed" in capsys.readouterr().err
    # Nobody can seal changed records by writing their report, but for the labels, which are told.
    assert verify(folder, capsys)[0] == (5 if name == layout.RESPONSES else 0)


def test_a_report_that_was_changed_is_written_anew_and_it_says_so(folder, capsys):
    page = folder.path / layout.REPORT_MD
    before = page.read_bytes()
    page.write_bytes(before + b"south is better\n")
    assert run(["report", str(folder.path), "--no-write"]) == 0
    assert "report.md was changed after it was sealed" in capsys.readouterr().err
    assert page.read_bytes() != before
    assert run(["report", str(folder.path)]) == 0
    assert "report.md was changed after it was sealed" in capsys.readouterr().err
    assert page.read_bytes() == before
    assert run(["report", str(folder.path)]) == 0
    assert "changed" not in capsys.readouterr().err


def test_what_does_not_pass_is_not_sealed(folder, capsys):
    report = folder.path / layout.REPORT_MD
    report.write_text(report.read_text() + "south is better\n")
    before = (folder.path / layout.MANIFEST).read_bytes()
    assert run(["seal", str(folder.path)]) == 5
    assert "report.md was changed after it was sealed" in capsys.readouterr().err
    assert (folder.path / layout.MANIFEST).read_bytes() == before


def test_a_run_that_has_not_ended_is_not_sealed(folder, capsys):
    with folder.write() as writer:
        writer.save(writer.manifest().model_copy(update={"seal": None, "files": {}}))
    assert run(["seal", str(folder.path)]) == 2
    assert "has not ended" in capsys.readouterr().err


# -- signing -----------------------------------------------------------------------------------


@openssh
def test_a_signature_says_who_sealed_the_run(folder, tmp_path, capsys):
    ann, bob = key(tmp_path, "ann"), key(tmp_path, "bob")
    signers = signers_file(tmp_path, **{"bob@example.org": bob, "ann@example.org": ann})
    assert verify(folder, capsys, "--signers", signers)[2] == {
        SIGNED: "there is no manifest.json.sig"
    }
    assert run(["seal", str(folder.path), "--sign", str(ann)]) == 0
    assert verify(folder, capsys) == (0, None, {})
    assert verify(folder, capsys, "--signers", signers) == (0, "ann@example.org", {})
    assert run(["verify", str(folder.path)]) == 0
    assert "the signature was not checked" in capsys.readouterr().err
    only_bob = signers_file(tmp_path, **{"bob@example.org": bob})
    code, signer, problems = verify(folder, capsys, "--signers", only_bob)
    assert (code, signer) == (5, None)
    assert "is signed by a key that" in problems[SIGNED]


@openssh
def test_a_run_that_was_forged_in_every_file_fails_by_its_signature_alone(folder, tmp_path, capsys):
    """The forger makes a whole run of his own, which agrees with itself, and keeps the signature."""
    ann = key(tmp_path, "ann")
    signers = signers_file(tmp_path, **{"ann@example.org": ann})
    assert run(["seal", str(folder.path), "--sign", str(ann)]) == 0
    signature = (folder.path / layout.SIGNATURE).read_bytes()
    other_run = judged(tmp_path / "other", plain_prompts(5))
    (other_run.path / layout.SIGNATURE).write_bytes(signature)
    assert verify(other_run, capsys) == (0, None, {})
    code, signer, problems = verify(other_run, capsys, "--signers", signers)
    assert (code, signer, list(problems)) == (5, None, [SIGNED])
    assert "was changed after it was signed" in problems[SIGNED]


@openssh
def test_a_signature_for_something_else_is_none_of_a_run(folder, tmp_path, capsys):
    ann = key(tmp_path, "ann")
    words = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(ann), "-n", "git"]
    manifest = (folder.path / layout.MANIFEST).read_bytes()
    result = subprocess.run(words, input=manifest, capture_output=True, check=True)
    (folder.path / layout.SIGNATURE).write_bytes(result.stdout)
    signers = signers_file(tmp_path, **{"ann@example.org": ann})
    assert list(verify(folder, capsys, "--signers", signers)[2]) == [SIGNED]
    (folder.path / layout.SIGNATURE).write_bytes(b"no signature")
    assert list(verify(folder, capsys, "--signers", signers)[2]) == [SIGNED]


@openssh
def test_a_report_leaves_a_signed_run_as_it_is_unless_it_is_told_to_write(folder, tmp_path, capsys):
    ann = key(tmp_path, "ann")
    assert run(["seal", str(folder.path), "--sign", str(ann)]) == 0
    with Journal(folder.path / layout.LABELS) as labels:
        labels.append(Label(item_id="q1", annotator="ann", winner="south"))
    before = (folder.path / layout.MANIFEST).read_bytes()
    assert run(["report", str(folder.path)]) == 0
    assert (folder.path / layout.MANIFEST).read_bytes() == before
    assert run(["report", str(folder.path), "--write"]) == 0
    assert "is for the run before this change" in capsys.readouterr().err
    signers = signers_file(tmp_path, **{"ann@example.org": ann})
    assert list(verify(folder, capsys, "--signers", signers)[2]) == [SIGNED]
    assert run(["seal", str(folder.path), "--sign", str(ann)]) == 0
    assert verify(folder, capsys, "--signers", signers) == (0, "ann@example.org", {})


@openssh
def test_a_key_that_cannot_sign_is_a_message(folder, tmp_path, capsys):
    public = key(tmp_path, "ann").with_suffix(".pub")
    (tmp_path / "ann").unlink()
    assert run(["seal", str(folder.path), "--sign", str(public)]) == 2
    assert "cannot sign" in capsys.readouterr().err
    assert not (folder.path / layout.SIGNATURE).exists()
    assert run(["seal", str(folder.path), "--sign", str(tmp_path / "none")]) == 2
    assert "no such key" in capsys.readouterr().err


def test_no_program_of_the_current_directory_signs(folder, tmp_path, capsys, monkeypatch):
    """Without OpenSSH there is a message, whatever lies in the current directory."""
    trap = tmp_path / "ssh-keygen"
    trap.write_text("#!/bin/sh\ntouch sprung\n")
    trap.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").touch()
    for path in ("", ".", f"{tmp_path / 'empty'}"):
        monkeypatch.setenv("PATH", path)
        assert run(["seal", str(folder.path), "--sign", "key"]) == 2
        assert "ssh-keygen is not installed" in capsys.readouterr().err
    assert not (tmp_path / "sprung").exists()
