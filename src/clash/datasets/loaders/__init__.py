"""Loaders of labelled data: one module per family of sources, all to one type, ``Dataset``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from clash.datasets import catalogue, pull, record_files
from clash.datasets.dataset import Dataset, DatasetBuilder, labels_path, read_labels
from clash.datasets.loaders import arena, benchmarks, labelled_file, mt_bench, single_texts
from clash.errors import InputError
from clash.files.inputs import without_gz

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from clash.datasets.record_files import SourceRow

    Reader = Callable[[Iterable[SourceRow], DatasetBuilder], Dataset]


@dataclass(frozen=True)
class Loader:
    """How a schema is recognised and read.

    Attributes:
        columns: fields that every record of the schema has.
    """

    columns: frozenset[str]
    read: Reader


LOADERS: dict[str, Loader] = {
    "mt-bench": Loader(mt_bench.COLUMNS, mt_bench.read),
    "arena": Loader(arena.COLUMNS, arena.read),
    "arena-55k": Loader(arena.COLUMNS_55K, arena.read_55k),
    "rewardbench-2": Loader(benchmarks.REWARDBENCH_2, benchmarks.read_rewardbench_2),
    "rewardbench": Loader(benchmarks.REWARDBENCH, benchmarks.read_rewardbench),
    "llmbar": Loader(benchmarks.LLMBAR, benchmarks.read_llmbar),
    "judgebench": Loader(benchmarks.JUDGEBENCH, benchmarks.read_judgebench),
    "summeval": Loader(benchmarks.SUMMEVAL, benchmarks.read_summeval),
    "pandalm": Loader(benchmarks.PANDALM, benchmarks.read_pandalm),
    "jigsaw": Loader(single_texts.JIGSAW, single_texts.read_jigsaw),
    "phoenix-summarization": Loader(single_texts.PHOENIX, single_texts.read_phoenix),
    "wikiqa": Loader(single_texts.WIKIQA, single_texts.read_wikiqa),
    "table": Loader(frozenset(), labelled_file.read),
}
"""In the order in which a file's schema is tried; ``table`` takes what no other one knows."""


def load(name_or_path: str | Path, *, cache: Path | None = None) -> Dataset:
    """A data set of the catalogue that was pulled, or any file of labelled pairs.

    Args:
        name_or_path: a name that ``clash datasets list`` shows, or a file.
        cache: where pulled data lie; default: :func:`clash.datasets.pull.cache_folder`.

    Raises:
        InputError: it is neither, was not pulled yet, or cannot be read.
    """
    path = Path(name_or_path)
    if path.exists():
        return load_file(path)
    dataset = catalogue.find(str(name_or_path))
    builder = DatasetBuilder(dataset.name, dataset.source, dataset.licence)
    return read(dataset.loader, pull.pulled_files(dataset, cache), builder)


def load_file(path: Path) -> Dataset:
    """A file of labelled pairs, in a schema that is recognised by its fields.

    Beside a prompts file that ``clash datasets sample`` wrote, the annotators' decisions are
    read too.

    Raises:
        InputError: it cannot be read.
    """
    builder = DatasetBuilder(without_gz(path).stem, str(path), "as its file says")
    dataset = read(recognise(path), [path], builder)
    beside = labels_path(path)
    if not beside.is_file():
        return dataset
    item_ids = {item.item_id for item in dataset.items}
    labels = tuple(label for label in read_labels(beside) if label.item_id in item_ids)
    return dataset.with_labels(labels)


def recognise(path: Path) -> str:
    """The loader whose fields the first record of a file has.

    Raises:
        InputError: the file holds no record.
    """
    row = record_files.first(path)
    if row is None:
        raise InputError(
            "holds no record", path=path, hint="write at least one, a JSON object a line"
        )
    return next(name for name, loader in LOADERS.items() if loader.columns <= row.value.keys())


def read(loader: str, paths: Sequence[Path], builder: DatasetBuilder) -> Dataset:
    """The records of ``paths`` through one loader.

    Raises:
        InputError: a record cannot be used.
    """
    records = chain.from_iterable(record_files.rows(path) for path in paths)
    return LOADERS[loader].read(records, builder)
