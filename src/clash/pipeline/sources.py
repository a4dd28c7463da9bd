"""Sources that a user may name: a run, or the votes of a file or a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.errors import ConfigError, RunFolderError, nearest, one_of
from clash.pipeline.options import Observer
from clash.store.folder import RunFolder
from clash.store.group import RunGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.votes import Votes
    from clash.votes.named_rankings import NamedRankings, PairTexts

_SUFFIXES = frozenset({".jsonl", ".csv", ".xlsx", ".gz"})


def open_run(run: str | Path, runs: Path, observer: Observer) -> RunFolder:
    """Open a run by path, by its id in the folder ``runs``, or as ``latest``.

    Raises:
        RunFolderError: there is no such run.
    """

    def note(error: RunFolderError) -> None:
        observer.note(f"left out: {error}")

    return RunFolder.open(run, out=runs, on_skip=note)


def open_runs(names: Sequence[str | Path], runs: Path, observer: Observer) -> RunFolder:
    """Open one run, or several that are read as one.

    Raises:
        RunFolderError: there is no such run, or they cannot be read as one.
    """
    folders = [open_run(name, runs, observer) for name in names]
    return folders[0] if len(folders) == 1 else RunGroup.of(folders)


def find_run(source: str | Path, runs: Path, observer: Observer) -> RunFolder | None:
    """The run that a source names; null where it is a file of votes or of prompts.

    Raises:
        RunFolderError: it is neither a file nor a run.
    """
    path = Path(source)
    is_mistyped = not path.exists() and path.suffix in _SUFFIXES
    if is_mistyped or (path.is_file() and path.name != "manifest.json"):
        return None  # the reader of the file says what is wrong with it
    return open_run(source, runs, observer)


def _check_misspelling(name: str) -> None:
    """Refuse a name that is nearly one of the votes that ship with clash.

    Raises:
        RunFolderError: it is.
    """
    from clash.datasets.votes_files import votes_files

    if nearest(name, votes_files()) is not None:
        raise RunFolderError(
            f"{name}: is no file, no run, and no votes that ship with clash"
            f"\n  fix: {one_of(name, votes_files())}"
        )


@dataclass(frozen=True)
class VoteSelection:
    """The votes that the user named, and the filters on them.

    Attributes:
        source: a votes file, a run, or the name of votes that ship with clash. A file, folder or
            run of that name comes first.
        more: further runs, which are read with the first as one.
        runs: the folder that run ids are looked up in.
        judges: only these judges: names with wildcards, comma separated.
        subset: only these subsets, likewise.
        presentation: only this presentation, ``orig`` or ``swap``.
        decisive: only items whose label is a side.
        use_labels: the labels that are there are used; without, every command reads the votes as
            if they had none. The one place where this is decided.
    """

    source: str | Path
    runs: Path = Path("runs")
    judges: str | None = None
    subset: str | None = None
    presentation: str | None = None
    decisive: bool = False
    use_labels: bool = True
    observer: Observer = field(default_factory=Observer, compare=False)
    more: tuple[str | Path, ...] = ()

    @cached_property
    def folder(self) -> RunFolder | None:
        """The run that is the source; null for a votes file.

        Raises:
            RunFolderError: the source is neither a file, nor a run, nor the name of votes that
                ship with clash.
            ConfigError: one of several sources is a file.
        """
        if self.more:
            return self._group()
        if self._shipped_file is not None:
            return None
        try:
            return find_run(self.source, self.runs, self.observer)
        except RunFolderError:
            _check_misspelling(str(self.source))
            raise

    def _group(self) -> RunFolder:
        sources = (self.source, *self.more)
        for source in sources:
            if find_run(source, self.runs, self.observer) is None:
                raise ConfigError(
                    f"{source} is a file, and of several sources each has to be a run",
                    field="RUN",
                    hint="write all votes into one file",
                )
        return open_runs(sources, self.runs, self.observer)

    @cached_property
    def file(self) -> Path:
        """The votes file that is the source, where :attr:`folder` is null."""
        return self._shipped_file or Path(self.source)

    @cached_property
    def _shipped_file(self) -> Path | None:
        """The votes that ship with clash under this name, unless the user has something of it."""
        from clash.datasets.votes_files import votes_path

        votes_file = votes_path(str(self.source))
        if votes_file is None:
            return None
        path = next((p for p in (Path(self.source), self.runs / self.source) if p.exists()), None)
        if path is not None:
            self.observer.note(f"reads {path}, not the votes of this name that ship with clash")
            return None
        return votes_file

    @property
    def _filters(self) -> dict[str, Any]:
        return {"judges": self.judges, "subset": self.subset, "decisive": self.decisive}

    def votes(self) -> Votes:
        """The selected votes, with their labels if these are to be used.

        Raises:
            InputError: a file is wrong, or nothing is left after the filter.
            RunFolderError: the source is neither a file nor a run.
        """
        from clash.votes import encode, read_votes
        from clash.votes.from_run import vote_rows

        filters = {**self._filters, "presentation": self.presentation}
        if self.folder is None:
            votes = read_votes(self.file, **filters)
        else:
            votes = encode(vote_rows(self.folder), **filters)
        return votes if self.use_labels else votes.without_labels()

    def rankings(
        self, copies: str = "merge", *, texts: PairTexts | None = None
    ) -> NamedRankings | None:
        """The selected rankings of candidates; null where a file names no candidates.

        Args:
            copies: ``merge`` gives a judge that saw an item in both orders one say on it;
                ``separate`` a say for each.
            texts: with the traits of the responses: of a run its own, of a file these.

        Raises:
            ConfigError: a presentation is selected from a run.
            InputError: a file is wrong, or nothing is left after the filter.
            RunFolderError: the source is neither a file nor a run.
        """
        from clash.votes.named_rankings import file_rankings, run_rankings

        filters = {**self._filters, "copies": copies}
        if self.folder is None:
            return file_rankings(self.file, presentation=self.presentation, texts=texts, **filters)
        if self.presentation is not None:
            raise ConfigError(
                "a ballot of a run ranks all responses of a page, in whatever order they were shown",
                field="--presentation",
                hint="leave it out, or rank the pairs: clash export RUN --votes",
            )
        return run_rankings(self.folder, style=texts is not None, **filters)
