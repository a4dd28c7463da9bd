"""A run folder has one writer, derived files are replaced whole, and the seal covers all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from clash.errors import RunFolderError
from clash.records import Batch, BatchRow, Item, Judgment, Label, Response
from clash.store import layout
from clash.store.audit import audit
from clash.store.folder import RunFolder, RunWriter, new_run_id, runs
from clash.store.manifest import FileSeal, Manifest
from store.calls import call


def new_folder(tmp_path, name="run", **more) -> RunWriter:
    return RunWriter.create(tmp_path, name, Manifest(run=name, kind="eval", **more))


def judgment(**more):
    return Judgment(
        **{
            "item_id": "q",
            "presentation": 0,
            "judge": "j",
            "role": "voting",
            "weight": 1,
            "ranking": None,
            "parse": "failed",
            **more,
        }
    )


def problems(folder):
    return {finding.check: finding.problem for finding in audit(folder) if finding.problem}


def gaps(folder):
    return {finding.check: finding.unchecked for finding in audit(folder) if finding.unchecked}


# -- the lock ---------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_until_the_first_has_closed(tmp_path):
    with new_folder(tmp_path):
        with pytest.raises(RunFolderError, match="another process is writing"):
            RunFolder(tmp_path / "run").write()
        assert RunFolder(tmp_path / "run").items() == []  # reading is free
    with RunFolder(tmp_path / "run").write():
        pass
    assert not (tmp_path / "run" / layout.LOCK).exists()


def test_the_lock_of_a_process_that_died_is_free(tmp_path):
    new_folder(tmp_path).close()
    code = (
        "import sys, os; from clash.store.folder import RunFolder; from pathlib import Path;"
        "w = RunFolder(Path(sys.argv[1])).write(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")]).returncode == 9
    assert (tmp_path / "run" / layout.LOCK).exists()
    RunFolder(tmp_path / "run").write().close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no open file")
def test_a_lock_on_a_file_that_was_removed_is_taken_anew(tmp_path, monkeypatch):
    """Between opening and locking, the last holder may close, and the next one lock a new file."""
    from clash.store import folder as module

    new_folder(tmp_path).close()
    path = tmp_path / "run" / layout.LOCK
    real, calls = module._acquire, []

    def slow(fd):
        calls.append(fd)
        if len(calls) == 1:
            path.unlink()  # the last holder closes now
        real(fd)

    monkeypatch.setattr(module, "_acquire", slow)
    with RunFolder(tmp_path / "run").write():
        assert len(calls) == 2
        monkeypatch.setattr(module, "_acquire", real)
        with pytest.raises(RunFolderError, match="another process"):
            RunFolder(tmp_path / "run").write()


def test_files_may_be_synced_while_others_are_opened(tmp_path):
    """The sync runs in a thread; a resumed run opens its journals one by one."""
    new_folder(tmp_path).close()
    stop = threading.Event()
    errors = []

    def sync(writer):
        while not stop.is_set():
            try:
                writer.sync()
            except RuntimeError as error:
                errors.append(error)
                return

    for _ in range(30):
        with RunFolder(tmp_path / "run").write() as writer:
            stop.clear()
            thread = threading.Thread(target=sync, args=(writer,))
            thread.start()
            for name in layout.COLLECTED_FILES:
                writer.journal(name)
            stop.set()
            thread.join()
    assert errors == []


# -- reading ----------------------------------------------------------------------------------------


def test_of_several_records_for_one_thing_the_last_counts(tmp_path):
    with new_folder(tmp_path) as writer:
        writer.append(judgment(error="server: no"))
        writer.append(judgment(ranking=[["A0"]], parse="clean"))
        writer.append(Response(item_id="q", candidate="a", source="generated", error="timeout"))
        writer.append(Response(item_id="q", candidate="a", source="generated", text="yes"))
        writer.append(Label(item_id="q", annotator="me", winner="a"))
        writer.append(Label(item_id="q", annotator="me", winner="b"))
    folder = RunFolder(tmp_path / "run")
    assert [j.parse for j in folder.judgments()] == ["clean"]
    assert [r.text for r in folder.responses()] == ["yes"]
    assert [label.winner for label in folder.labels()] == ["b"]


def test_a_run_is_found_by_path_by_id_and_as_the_latest(tmp_path):
    new_folder(tmp_path, "one", started="2026-01-02").close()
    new_folder(tmp_path, "two", started="2026-01-01").close()
    for name in (tmp_path / "one", tmp_path / "one" / "manifest.json", "one", "latest"):
        assert RunFolder.open(name, out=tmp_path).path.name == "one"
    with pytest.raises(RunFolderError, match="did you mean two"):
        RunFolder.open("tw", out=tmp_path)
    assert [run.path.name for run in runs(tmp_path)] == ["one", "two"]
    assert runs(tmp_path / "none") == []


def test_ids_sort_by_time_and_two_of_a_second_differ():
    ids = [new_run_id("My Prompts: v2!") for _ in range(50)]
    assert len(set(ids)) == 50
    assert all("-my-prompts-v2-" in name for name in ids)


def test_a_run_of_a_newer_schema_is_not_guessed_at(tmp_path):
    new_folder(tmp_path).close()
    path = tmp_path / "run" / "manifest.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"v": 1', '"v": 2'), encoding="utf-8")
    with pytest.raises(RunFolderError, match="schema 2; this version of clash reads up to 1"):
        RunFolder.open(tmp_path / "run")


def test_opening_for_writing_mends_what_a_crash_left(tmp_path):
    new_folder(tmp_path).close()
    items = tmp_path / "run" / "items.jsonl"
    items.write_bytes(b'{"v":1,"item_id":"q","prompt":"?"}\n{"v":1,"it')
    with RunFolder(tmp_path / "run").write() as writer:
        assert writer.repairs == {"items.jsonl": 10}
        assert [item.item_id for item in writer.items()] == ["q"]


# -- sealing ----------------------------------------------------------------------------------------


def test_a_sealed_run_has_nothing_to_be_said_against_and_an_open_one_has(tmp_path):
    with new_folder(tmp_path) as writer:
        writer.append(Item(item_id="q", prompt="?"))
        writer.replace(layout.VERDICTS, [])
        assert "has not ended" in gaps(writer)["manifest is sealed"]
        sealed_seal_result = writer.seal(writer.manifest(), status="complete")
    assert problems(RunFolder(tmp_path / "run")) == {}
    assert sealed_seal_result.files["items.jsonl"].lines == 1
    assert set(sealed_seal_result.files) == {*layout.COLLECTED_FILES, layout.VERDICTS}


def test_a_file_that_came_later_is_no_part_of_the_run(tmp_path):
    with new_folder(tmp_path) as writer:
        writer.seal(writer.manifest())
    (tmp_path / "run" / layout.REPORT_JSON).write_text("{}", encoding="utf-8")
    problem_list = problems(RunFolder(tmp_path / "run"))
    assert problem_list == {
        "files have the sealed hashes": "report.json was added after the run was sealed"
    }
    (tmp_path / "run" / layout.REPORT_JSON).unlink()


def test_labels_may_come_at_any_time_and_are_named_until_they_are_sealed(tmp_path):
    with new_folder(tmp_path) as writer:
        writer.seal(writer.manifest())
        writer.append(Label(item_id="q", annotator="me", winner="a"))
        assert problems(writer) == {
            "records refer to each other": "a label is of the unknown item 'q'"
        }
        writer.append(Item(item_id="q", prompt="?"))
        writer.seal(writer.manifest())
        before = gaps(writer)
        writer.append(Label(item_id="q", annotator="me", winner="b"))
    folder, check = RunFolder(tmp_path / "run"), "files have the sealed hashes"
    assert problems(folder) == {}
    assert check not in before
    assert gaps(folder)[check].startswith("labels.jsonl has lines that are not sealed")
    labels = folder.path / layout.LABELS
    labels.write_text(labels.read_text().replace('"a"', '"c"'))
    assert problems(folder) == {check: "labels.jsonl was changed after it was sealed"}


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_what_clash_did_not_write_fails_and_no_link_is_followed(tmp_path, kind):
    with new_folder(tmp_path) as writer:
        writer.seal(writer.manifest())
    record = tmp_path / "run" / "notes.txt"
    make = {
        "file": record.touch,
        "folder": record.mkdir,
        "link": lambda: record.symlink_to(tmp_path / "nowhere"),
        "pipe": lambda: os.mkfifo(record),
    }[kind]
    make()
    (problem,) = problems(RunFolder(tmp_path / "run")).items()
    assert problem[0] == "the folder holds nothing else"
    assert problem[1].startswith("'notes.txt' is ")


def test_the_seal_of_an_older_clash_holds_though_it_knew_fewer_fields(tmp_path):
    """Fields are added with time; a manifest that lacks some is still the one that was sealed."""
    from clash.store.manifest import digest, manifest_text

    with new_folder(tmp_path) as writer:
        writer.seal(writer.manifest())
    file = tmp_path / "run" / layout.MANIFEST
    old = json.loads(file.read_bytes())
    for name in ("notes", "wall_s", "preregistration"):
        del old[name]
    file.write_text(manifest_text({**old, "seal": digest(old)}), encoding="utf-8")
    assert problems(RunFolder(tmp_path / "run")) == {}
    file.write_text(manifest_text({**old, "seal": digest(old), "kind": "rerun"}), encoding="utf-8")
    assert "manifest is sealed" in problems(RunFolder(tmp_path / "run"))


def test_a_call_that_was_answered_twice_is_found(tmp_path):
    with new_folder(tmp_path) as writer:
        for attempt, outcome in ((1, "error"), (2, "ok"), (3, "ok")):
            writer.append(call(attempt=attempt, outcome=outcome))
        writer.append(Item(item_id="q", prompt="?"))
        writer.seal(writer.manifest())
    assert problems(RunFolder(tmp_path / "run")) == {
        "answered calls are unique": "the call c was answered (and paid) 2 times"
    }


def test_a_derived_file_is_the_old_one_or_the_new_one_never_a_half(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "no space left")

    with new_folder(tmp_path) as writer:
        writer.replace_text(layout.REPORT_MD, "old")
        monkeypatch.setattr("os.replace", full)
        with pytest.raises(RunFolderError, match=r"report\.md: cannot be written \(no space left"):
            writer.replace_text(layout.REPORT_MD, "new")
        assert (writer.path / layout.REPORT_MD).read_text(encoding="utf-8") == "old"


def test_line_counts_and_hashes_are_those_of_other_tools(tmp_path):
    import hashlib

    from clash.store.manifest import seal_file

    file = tmp_path / "x.jsonl"
    file.write_bytes(b"a\nb\n" * 700_000)
    assert seal_file(file) == FileSeal(
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(), lines=1_400_000
    )


def batch(state, *calls, **more):
    rows = [
        BatchRow(call_id=call, attempt=1, custom_id=f"{call}-b", request_hash="h") for call in calls
    ]
    return Batch(batch="b", model="m", state=state, rows=rows, time="t", **more)


def test_a_batch_is_its_last_line_with_the_rows_of_its_first(tmp_path):
    with new_folder(tmp_path) as writer:
        writer.append(batch("submitting", "c", "d", refused=["schema"]))
        writer.append(batch("submitted", provider_id="batch_1"))
        (results,) = writer.batches()
    assert (results.state, results.provider_id, results.refused) == (
        "submitted",
        "batch_1",
        ["schema"],
    )
    assert [row.call_id for row in results.rows] == ["c", "d"]


def test_a_row_of_a_batch_that_has_ended_must_have_its_call(tmp_path):
    with new_folder(tmp_path) as writer:
        writer.append(batch("submitting", "c"))
        writer.append(Item(item_id="q", prompt="?"))
        writer.seal(writer.manifest())
    assert problems(RunFolder(tmp_path / "run")) == {}
    with RunFolder(tmp_path / "run").write() as writer:
        writer.append(batch("ended"))
        writer.seal(writer.manifest())
    assert problems(RunFolder(tmp_path / "run")) == {
        "rows of batches are accounted for": "the batch b has ended, and its row c-b has no call"
    }
