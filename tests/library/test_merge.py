"""Shards from Python: two calls and a merge are one evaluation."""

from __future__ import annotations

import pytest

import clash
from clash.errors import ConfigError, RunFolderError

PROMPTS = [
    {"id": f"q{n}", "prompt": f"Say {n}.", "responses": {"a": f"It is {n}.", "b": "No." * n}}
    for n in range(5)
]


def test_merged_shards_have_the_verdicts_of_the_whole(tmp_path):
    arguments = {"panel": "baseline", "out": tmp_path}
    shards = [clash.evaluate(PROMPTS, shard=f"{n}/2", **arguments) for n in (1, 2)]
    assert [len(run.verdicts) for run in shards] == [3, 2]
    assert "shard 2 of 2 of a run of 5 items" in shards[1].folder.manifest().notes[0]
    full_merge_result = clash.merge(shards[::-1], out=tmp_path, run_id="whole")
    assert full_merge_result.folder.manifest().notes == []
    result = clash.evaluate(PROMPTS, **arguments)
    assert full_merge_result.verdicts.to_dict() == result.verdicts.to_dict()


def test_no_shards_are_no_run(tmp_path):
    with pytest.raises(RunFolderError, match="no shard was given"):
        clash.merge([], out=tmp_path)


def test_a_shard_has_no_stopping_rule(tmp_path):
    with pytest.raises(ConfigError, match="looks at the whole run"):
        clash.evaluate(PROMPTS, panel="baseline", out=tmp_path, shard="1/2", until="ci<0.3")
