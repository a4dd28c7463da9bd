"""The job through Ray's own vLLM processor on a local cluster; its engine is a stub without a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clash.extras import is_installed
from clash.providers import vllm_job

pytestmark = pytest.mark.skipif(
    not all(map(is_installed, ("ray", "pyarrow", "pandas", "transformers"))),
    reason="needs Ray with its data pipelines, and transformers for the chat template",
)
STUB = Path(__file__).parent / "engine_stub"
START = """
import runpy, sys, ray
ray.init("local", num_cpus=4, num_gpus=1, include_dashboard=False, logging_level="ERROR")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
TEMPLATE = "{% for m in messages %}<{{ m.role }}{{ mood }}>{{ m.content }}{% endfor %}"


def tokenizer(folder: Path) -> Path:
    """What the chat template needs of a model: no weights."""
    folder.mkdir()
    words = {"[UNK]": 0, "a": 1}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}
    files = {
        "tokenizer.json": {"version": "1.0", "added_tokens": [], "model": model},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": "[UNK]",
            "chat_template": TEMPLATE,
        },
        "config.json": {"model_type": "llama"},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    return folder


def test_rows_become_lines_and_what_the_engine_refuses_costs_one_row(tmp_path):
    schema = json.dumps({"type": "object", "properties": {"x": {}}})
    rows = [
        {
            "custom_id": f"row-{i}",
            "question": {
                "messages": [{"role": "user", "content": "TOO LONG" if i == 4 else f"nr {i}"}],
                "sampling_params": {
                    "max_tokens": 10 + i,
                    "structured_outputs": {"json": schema.replace("x", f"x{i}")},
                },
            },
        }
        for i in range(6)
    ]
    settings = {
        "source": str(tokenizer(tmp_path / "model")),
        "replicas": 1,
        "rows": 3,
        "accelerator": None,
        "arguments": {"max_model_len": 400},
        "template": {"mood": "!"},
    }
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    # The last job was killed when it had answered one row and half of the next.
    (tmp_path / "answers.jsonl").write_text(
        '{"custom_id": "row-0", "text": "paid"}\n{"custom_id": "r'
    )
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(STUB),
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    job = subprocess.run(
        [sys.executable, "-c", START, vllm_job.__file__, str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert job.returncode == 0, job.stderr[-3000:]
    first, torn_line, *others = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert (json.loads(first)["text"], torn_line) == ("paid", '{"custom_id": "r')
    lines = {line["custom_id"]: line for line in map(json.loads, others)}
    assert len(others) == len(lines) == 5
    refused_entry = lines.pop("row-4")
    assert refused_entry["error"].startswith(
        "ValueError: The prompt is longer than the maximum model"
    )
    for i in (1, 2, 3, 5):
        line = lines[f"row-{i}"]
        assert (line["input_tokens"], line["output_tokens"]) == (3, 2)
        assert json.loads(line["text"]) == {
            "prompt": f"<user!>nr {i}",
            "max_tokens": 10 + i,
            "schema": schema.replace("x", f"x{i}"),
            "max_model_len": 400,
        }
