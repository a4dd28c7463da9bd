"""Compressed calls read like plain ones, whatever moment a process was killed at."""

from __future__ import annotations

import json
import os
import struct

import pytest

from clash.cli.app import run as clash
from clash.errors import MissingPackageError, RunFolderError
from clash.files import packed, run_files
from clash.integrations import sql
from clash.store import chain, layout
from clash.store.chain import ChainedJournal
from clash.store.folder import RunFolder
from clash.store.journal import read_on
from clash.store.manifest import Manifest

zstandard = pytest.importorskip("zstandard")


def lines(n, size=3000):
    """Lines that hardly compress, without a link."""
    return [json.dumps({"n": i, "x": os.urandom(size).hex()}).encode() + b"\n" for i in range(n)]


def journal(path, rows, *, packs=True):
    with ChainedJournal(path, packs=packs) as writer:
        for line in rows:
            writer.append_line(line)
        writer.pack()
    return list(run_files.lines(path))


@pytest.fixture
def calls(tmp_path):
    """A journal in two frames or more, and its lines."""
    return tmp_path / layout.CALLS, journal(tmp_path / layout.CALLS, lines(300, 4000))


def frames_of(path):
    with packed.packed_path(path).open("rb") as file:
        return packed.Frames(file, path, run_files.LONGEST).index


def test_lines_are_those_of_a_plain_journal_and_the_disk_holds_them_once(tmp_path):
    rows = lines(40)
    plain = journal(tmp_path / "plain.jsonl", rows, packs=False)
    path = tmp_path / layout.CALLS
    assert journal(path, rows) == plain
    assert path.stat().st_size == 0
    data = packed.packed_path(path).read_bytes()
    reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    assert reader.read() == b"".join(plain)  # as `zstd -dc` shows it


def test_any_place_of_a_packed_journal_can_be_read(calls):
    path, rows = calls
    assert len(frames_of(path)) > 2
    full_data = b"".join(rows)
    with run_files.open_to_read(path) as file:
        for start in (0, packed.FRAME - 5, len(full_data) // 2, len(full_data) - 9, len(full_data)):
            file.seek(start)
            assert file.read(5000) == full_data[start : start + 5000]
        assert file.seek(0, os.SEEK_END) == len(full_data)
    assert chain.head(path) == chain.digest(rows[-1])


def test_a_journal_goes_on_after_its_frames(calls):
    path, rows = calls
    more = journal(path, lines(3), packs=False)
    assert more[: len(rows)] == rows
    assert chain.link(more[len(rows)]) == chain.digest(rows[-1])
    late, _ = read_on(path, sum(map(len, rows)))
    assert [line + b"\n" for line in late] == more[len(rows) :]
    assert journal(path, []) == more


def test_old_lines_are_packed_while_the_journal_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(chain, "MOST_PLAIN", 20_000)
    path = tmp_path / layout.CALLS
    with ChainedJournal(path, packs=True) as writer:
        for line in lines(22):
            writer.append_line(line)
    assert 0 < path.stat().st_size < 20_000
    assert len(frames_of(path)) > 2
    assert len(list(run_files.lines(path))) == 22


@pytest.mark.parametrize("moment", ["frame torn", "lines not removed", "header torn"])
def test_a_process_that_was_killed_while_it_packed_loses_nothing(tmp_path, moment):
    path = tmp_path / layout.CALLS
    journal(path, lines(5))
    plain_data = journal(path, lines(5), packs=False)
    target = packed.packed_path(path)
    n_before = target.stat().st_size
    plain = path.read_bytes()
    run_files.pack_lines(path)
    path.write_bytes(plain)
    if moment != "lines not removed":
        os.truncate(target, n_before + (20 if moment == "header torn" else 500))
    assert list(run_files.lines(path)) == plain_data
    run_files.mend_frames(path)
    assert list(run_files.lines(path)) == plain_data
    assert path.stat().st_size == (0 if moment == "lines not removed" else len(plain))
    assert len(journal(path, lines(1))) == len(plain_data) + 1


def test_a_process_that_was_killed_between_two_frames_loses_nothing(calls):
    path, full_data = calls
    target = packed.packed_path(path)
    data, frames = target.read_bytes(), frames_of(path)
    for cut in (frames[0].end, frames[1].end, frames[1].end + 9, frames[2].end - 1):
        path.write_bytes(b"".join(full_data))
        target.write_bytes(data[:cut])
        assert list(run_files.lines(path)) == full_data
        assert chain.head(path) == chain.digest(full_data[-1])
        run_files.mend_frames(path)
        assert list(run_files.lines(path)) == full_data
        assert sum(frame.size for frame in frames_of(path)) + path.stat().st_size == sum(
            map(len, full_data)
        )


def test_frames_that_were_cut_off_are_never_taken_for_those_of_a_killed_process(calls):
    path, _ = calls
    target = packed.packed_path(path)
    data = target.read_bytes()[:-9]
    target.write_bytes(data)
    with pytest.raises(RunFolderError, match="ends inside a frame"):
        run_files.mend_frames(path)
    assert target.read_bytes() == data


def test_lines_that_follow_no_frame_are_never_removed(tmp_path):
    path = tmp_path / layout.CALLS
    journal(path, lines(5))
    path.write_bytes(b'{"n":1,"chain":"%s"}\n' % (b"0" * 64))
    with pytest.raises(RunFolderError, match="does not follow the last of"):
        run_files.mend_frames(path)
    assert path.stat().st_size
    with pytest.raises(RunFolderError, match="does not follow the last of"):
        list(run_files.lines(path))


def test_lines_that_are_all_alike_are_no_bomb(tmp_path):
    path = tmp_path / layout.CALLS
    rows = journal(path, [b'{"x":"%s"}\n' % (b"a" * 300_000)] * 20)
    assert len(rows) == 20
    n_lines = sum(map(len, rows))
    assert packed.packed_path(path).stat().st_size * packed.MAX_RATIO >= n_lines


HEADER = struct.Struct("<II QQ32s")


def frame(data, *, size=None, padding=0, body=None):
    body = zstandard.ZstdCompressor().compress(data) if body is None else body
    head = HEADER.pack(0x184D2A5C, 48 + padding, len(body), size or len(data), bytes(32))
    return head + bytes(padding) + body


LINE = b'{"x":"%s"}\n' % (b"a" * 1_000_000)
DAMAGED = {
    "a bomb": (frame(LINE * 60), "as a decompression bomb does"),
    "larger than a line may be": (
        frame(LINE, size=1 << 40, padding=6000),
        "as a decompression bomb does",
    ),
    "another size": (frame(LINE, size=len(LINE) - 1, padding=6000), "not of the size"),
    "a size that lies": (
        frame(b"", size=1000, body=zstandard.ZstdCompressor(write_content_size=False).compress(b"{}\n")),
        "not of the size",
    ),
    "no frame": (frame(b'{"x": 1}\n', body=b"no frame at all"), "is damaged"),
    "two frames in one": (
        frame(b"{}\n", body=zstandard.ZstdCompressor().compress(b"{}\n") * 2),
        "is damaged",
    ),
    "cut off": (frame(b'{"x": 1}\n')[:-3], "ends inside a frame"),
    "something else": (b"\x28\xb5\x2f\xfd" + bytes(100), "not a frame that clash wrote"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_hostile_file_is_refused_in_two_lines(tmp_path, name):
    data, message = DAMAGED[name]
    path = tmp_path / layout.CALLS
    path.touch()
    packed.packed_path(path).write_bytes(data)
    with pytest.raises(RunFolderError, match=message) as error:
        list(run_files.lines(path))
    assert str(packed.packed_path(path)) in str(error.value)
    assert "\n  fix: " in str(error.value)


def test_without_the_package_the_message_names_the_extra(calls, monkeypatch):
    monkeypatch.setattr("clash.extras.is_installed", lambda _: False)
    with pytest.raises(MissingPackageError, match="zstd"):
        list(run_files.lines(calls[0]))


PROMPTS = "\n".join(
    json.dumps({"id": f"q{i}", "prompt": f"Say {i}.", "responses": {"a": f"It is {i}.", "b": "No."}})
    for i in range(6)
)  # fmt: skip


def test_every_command_reads_a_run_whose_calls_are_compressed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.jsonl").write_text(PROMPTS)
    judging = ["eval", "p.jsonl", "--panel", "baseline", "-q", "--yes"]
    assert clash([*judging, "--run-id", "packed", "--compress"]) == 0
    assert clash([*judging, "--run-id", "plain"]) == 0
    runs = [RunFolder(tmp_path / "runs" / name) for name in ("packed", "plain")]
    assert runs[0].manifest().codecs == {layout.CALLS: "zstd"}
    assert '"codecs"' not in (runs[1].path / layout.MANIFEST).read_text()
    ids = [[call.call_id for call in run.calls()] for run in runs]
    assert ids[0] == ids[1]
    verdicts = [(run.path / layout.VERDICTS).read_bytes() for run in runs]
    assert verdicts[0] == verdicts[1]
    question = "select judge, count(*) n from calls group by judge"
    for command in (
        ["verify", "runs/packed"],
        ["query", "runs/packed", question],
        ["report", "runs/packed", "-q"],
        ["resume", "runs/packed", "-q"],
        ["verify", "runs/packed"],
        ["export", "runs/packed", "--votes", "--to", "votes.jsonl"],
        ["eval", "--replay", "runs/packed", "--run-id", "again", "-q", "--yes"],
        ["verify", "runs/again"],
    ):
        assert clash(command) == 0, (command, capsys.readouterr())
    monkeypatch.delattr(sql, "_unpack")
    assert clash(["query", "runs/packed", "select count(*) from judgments"]) == 0


def test_reruns_and_arms_of_a_study_are_compressed_where_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.jsonl").write_text(PROMPTS)
    assert clash(["eval", "p.jsonl", "--panel", "baseline", "-q", "--yes", "--run-id", "r"]) == 0
    assert clash(["rerun", "r", "-q", "--yes", "--compress"]) == 0
    design = ["--rubrics", "1", "--shuffles", "2", "--samples", "1"]
    assert clash(["variance", "r", *design, "-q", "--yes", "--compress"]) == 0
    runs = [path.parent for path in (tmp_path / "runs").rglob(layout.MANIFEST)]
    packed_runs = {run.name for run in runs if (run / layout.PACKED_CALLS).exists()}
    assert packed_runs == {run.name for run in runs} - {"r"}
    assert len(packed_runs) >= 2
    assert clash(["verify", "runs/r-r1"]) == 0


def test_a_resumed_run_reads_answers_that_are_packed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.jsonl").write_text(PROMPTS)
    judging = ["eval", "p.jsonl", "--panel", "baseline", "-q", "--yes", "--compress"]
    assert clash([*judging, "--run-id", "r"]) == 0
    folder = RunFolder(tmp_path / "runs" / "r")
    n_calls = sum(1 for _ in folder.calls())
    judgments = folder.path / layout.JUDGMENTS
    full_data = judgments.read_bytes()
    judgments.write_bytes(b"".join(full_data.splitlines(keepends=True)[:5]))
    assert clash(["resume", "runs/r", "-q"]) == 0
    assert sum(1 for _ in folder.calls()) == n_calls  # read again, not made again
    assert sorted(judgments.read_bytes().splitlines()) == sorted(full_data.splitlines())


def test_a_codec_of_a_later_version_is_named(tmp_path):
    manifest = Manifest(run="r", kind="eval", codecs={layout.CALLS: "brotli-9"})
    (tmp_path / layout.MANIFEST).write_text(manifest.text())
    with pytest.raises(RunFolderError, match=r"'brotli-9' is none that this version"):
        RunFolder(tmp_path).manifest()
