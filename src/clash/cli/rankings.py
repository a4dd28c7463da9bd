"""What ``clash aggregate`` does with the methods that rank candidates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clash.votes import Votes
    from clash.votes.rankings import NamedRankings

    Floats = NDArray[Any]

GROUPS = ("all", "rankings")
NAMELESS = "the votes name no candidates: by model_a and model_b, model and group, or a ranking"


@dataclass(frozen=True)
class Asked:
    """The methods of a command line.

    Attributes:
        items: that give a verdict on each item.
        rankings: that rank the candidates.
        refused: rankings that votes without names of candidates cannot have.
    """

    items: tuple[str, ...]
    rankings: tuple[str, ...]
    refused: tuple[str, ...] = ()

    @classmethod
    def of(cls, method: str) -> Asked:
        """Sort methods by what they are about.

        Borda and the majorities are about both: with a method of rankings they rank, with one of
        items they give verdicts, and with both they do both.

        Raises:
            ConfigError: an unknown method.
        """
        from clash.analysis.aggregation import method_names
        from clash.analysis.rankings import ranking_names

        verdicts, rankings = method_names(), ranking_names()
        names = _expanded(method, verdicts, rankings)
        for name in names:
            if name not in (*verdicts, *rankings):
                known = dict.fromkeys((*GROUPS, *verdicts, *rankings))
                hint = f"one of {', '.join(known)}"
                raise ConfigError(f"no method {name!r}", field="--method", hint=hint)
        ranks = any(name not in verdicts or name == "borda" for name in names)
        decides = not ranks or any(name not in rankings for name in names)
        return cls(
            tuple(name for name in names if decides and name in verdicts),
            tuple(name for name in names if ranks and name in rankings),
        )

    def without_names(self, source: str) -> Asked:
        """The same for votes that name no candidates.

        Raises:
            InputError: then nothing is left.
        """
        if not self.items and set(self.rankings) - {"borda", "majority", "weighted-majority"}:
            hint = 'write {"item": …, "judge": …, "vote": "A", "model_a": …, "model_b": …}'
            raise InputError(NAMELESS, path=source, hint=hint)
        both = ("borda", "majority", "weighted-majority")
        items = dict.fromkeys((*self.items, *(name for name in self.rankings if name in both)))
        return Asked(tuple(items), (), tuple(n for n in self.rankings if n not in both))


def _expanded(method: str, verdicts: Sequence[str], rankings: Sequence[str]) -> list[str]:
    groups = {"all": [n for n in verdicts if n != "borda"], "rankings": rankings}
    parts = [part.strip() for part in method.split(",") if part.strip()]
    if not parts:
        raise ConfigError("names no method", field="--method", hint="majority,dawid-skene")
    return list(dict.fromkeys(name for part in parts for name in groups.get(part, [part])))


def read(
    source: str,
    runs: Path,
    judges: str | None = None,
    subset: str | None = None,
    presentation: str | None = None,
    *,
    decisive: bool = False,
    copies: str = "merge",
) -> NamedRankings | None:
    """The ballots of a file or of a run; null where a file names no candidates.

    Raises:
        InputError: a file is wrong, or nothing is left after the filter.
        RunFolderError: it is neither a file nor a run.
    """
    from clash.cli.common import find_run
    from clash.votes.rankings import file_rankings, run_rankings

    folder = find_run(source, runs)
    if folder is None:
        return file_rankings(
            source,
            judges=judges,
            subset=subset,
            presentation=presentation,
            decisive=decisive,
            copies=copies,
        )
    if presentation is not None:
        raise ConfigError(
            "a ballot of a run ranks all responses of a page, in whatever order they were shown",
            field="--presentation",
            hint="leave it out, or rank the pairs: clash export RUN --votes",
        )
    return run_rankings(folder, judges=judges, subset=subset, decisive=decisive, copies=copies)


def item_weights(source: str, votes: Votes, named: NamedRankings | None) -> Floats:
    """Weights of the judges of some votes, (J,).

    Raises:
        ConfigError: no such source, or a judge without a weight.
        StatisticsError: the one-coin model is not identified.
    """
    from clash.analysis.rankings.weights import from_mapping, judge_weights, vote_weights

    if named is None:
        return vote_weights(source, votes)
    found = dict(zip(named.judges, judge_weights(source, named).tolist(), strict=True))
    return from_mapping(found, votes.judges, source)
