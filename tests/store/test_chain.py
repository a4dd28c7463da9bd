"""Each line of calls.jsonl carries the hash of the line before, whatever happened between."""

import hashlib
import json

import pytest

from clash.records import Item
from clash.store import chain, layout
from clash.store.audit import audit
from clash.store.folder import RunFolder, RunWriter
from clash.store.journal import Journal
from clash.store.manifest import Manifest
from store.calls import call

CHECK = "each call follows the one before it"


def call_number(number, **more):
    return call(f"judge-{number}", **{"text": f"answer {number}", **more})


@pytest.fixture
def folder(tmp_path):
    with RunWriter.create(tmp_path, "run", Manifest(run="run", kind="eval")) as writer:
        writer.append(Item(item_id="q", prompt="?"))
        for number in range(5):
            writer.append(call_number(number))
        writer.seal(writer.manifest())
    return RunFolder(tmp_path / "run")


def lines(folder):
    return (folder.path / layout.CALLS).read_bytes().splitlines(keepends=True)


def outcome(folder):
    (actual_finding,) = (finding for finding in audit(folder) if finding.check == CHECK)
    return actual_finding


def test_a_line_carries_the_hash_that_other_tools_make_of_the_line_before(folder):
    links = [json.loads(line)["chain"] for line in lines(folder)]
    hashes = [hashlib.sha256(line.rstrip(b"\n")).hexdigest() for line in lines(folder)]
    assert links == [chain.START, *hashes[:-1]]
    assert folder.manifest().chain == hashes[-1]
    assert outcome(folder).state == "ok"
    assert [c.text for c in folder.calls()] == [f"answer {n}" for n in range(5)]


@pytest.mark.parametrize(
    ("forge", "line"),
    [
        (lambda x: [x[0], x[1].replace(b"answer 1", b"answer 9"), *x[2:]], 3),
        (lambda x: [*x[:2], *x[3:]], 3),
        (lambda x: [*x[:2], x[1], *x[2:]], 3),
        (lambda x: [x[0], x[2], x[1], *x[3:]], 2),
        (lambda x: [*x[1:]], 1),
        (lambda x: [x[0], x[1].replace(b',"chain":"', b',"chaim":"'), *x[2:]], 2),
    ],
    ids=["edited", "removed", "inserted", "reordered", "the first removed", "unlinked"],
)
def test_the_first_broken_link_is_named_though_the_seal_was_made_anew(folder, forge, line):
    (folder.path / layout.CALLS).write_bytes(b"".join(forge(lines(folder))))
    with folder.write() as writer:
        writer.seal(writer.manifest())
    assert outcome(folder).problem == f"calls.jsonl:{line} does not follow the line before it"


@pytest.mark.parametrize(
    "forge",
    [lambda x: x[:-1], lambda x: [*x[:-1], x[-1].replace(b"answer 4", b"answer 9")]],
    ids=["the last removed", "the last edited"],
)
def test_the_end_is_held_by_the_head_in_the_manifest(folder, forge):
    (folder.path / layout.CALLS).write_bytes(b"".join(forge(lines(folder))))
    assert outcome(folder).problem == (
        "the last line of calls.jsonl is not the one that manifest.json names"
    )


def test_the_chain_goes_on_after_a_crash_that_tore_the_last_line(folder):
    path = folder.path / layout.CALLS
    with path.open("ab") as file:
        file.write(b'{"v":1,"call_id":"ju')
    with folder.write() as writer:
        assert writer.repairs == {layout.CALLS: 20}
        writer.append(call_number(5, text="lone \ud800 surrogate"))
    path.write_bytes(path.read_bytes()[:-1])  # only the line feed was lost
    with folder.write() as writer:
        writer.append(call_number(6))
        writer.seal(writer.manifest())
    assert outcome(folder).state == "ok"
    assert len(lines(folder)) == 7


def test_calls_of_a_clash_without_a_chain_are_named_and_held_by_what_follows(tmp_path):
    with RunWriter.create(tmp_path, "run", Manifest(run="run", kind="eval")) as writer:
        writer.append(Item(item_id="q", prompt="?"))
        with Journal(writer.path / layout.CALLS) as journal:
            journal.append(call_number(0))
            journal.append(call_number(1))
    folder = RunFolder(tmp_path / "run")
    with folder.write() as writer:
        writer.append(call_number(2))
        writer.seal(writer.manifest())
    assert outcome(folder).problem is None
    assert outcome(folder).unchecked == ("the first 2 of 3 calls carry no hash of the call before")
    old = (folder.path / layout.CALLS).read_bytes()
    (folder.path / layout.CALLS).write_bytes(old.replace(b"answer 1", b"answer 9"))
    assert outcome(folder).problem == "calls.jsonl:3 does not follow the line before it"
