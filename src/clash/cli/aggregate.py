from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.options import AsJson, Decisive, Judges, Presentation, Seed, Subset, VotesArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.aggregation import Aggregation
    from clash.analysis.calibration.calibrated_votes import CalibratedVotes
    from clash.cli.rankings import Asked
    from clash.votes import Votes

DEFAULT = "auto,majority,one-coin,dawid-skene,ising-shared,ising-class,ising-family,factor"


def aggregate(
    source: VotesArgument,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="Methods, comma separated: of verdicts (`all`), of `rankings` (borda, copeland,"
            " schulze, kemeny, bradley-terry, plackett-luce), or both.",
        ),
    ] = DEFAULT,
    judges: Judges = None,
    subset: Subset = None,
    presentation: Presentation = None,
    decisive: Decisive = False,
    use_labels: Annotated[
        bool, typer.Option("--use-labels", help="Labels enter the fits; scores are cross-fitted.")
    ] = False,
    ties: Annotated[
        str | None,
        typer.Option(
            "--ties",
            help="A tied vote is `half` a vote each (the default), `missing`, or an `outcome`.",
        ),
    ] = None,
    copies: Annotated[
        str,
        typer.Option("--copies", help="Both orders and repeats of an item: `merge` or `separate`."),
    ] = "merge",
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Scores from here on count as side 1.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            help="Of the judges, in rankings and the weighted majority: `panel`, `equal`,"
            " `discrimination`, `one-coin`, or a file of judge and weight.",
        ),
    ] = None,
    ridge: Annotated[
        str | None,
        typer.Option(
            "--ridge",
            help="L2 on the couplings of the Ising models, as a share of the items (0.01), or"
            " `held-out` to choose it by held-out likelihood.",
        ),
    ] = None,
    bootstrap: Annotated[
        int | None,
        typer.Option(
            "--bootstrap", min=0, help="Replicates behind the intervals of rankings (1000)."
        ),
    ] = None,
    calibrator: Annotated[
        Path | None,
        typer.Option("--calibrator", help="A file of `clash calibrate`, as a method beside them."),
    ] = None,
    max_risk: Annotated[
        float | None,
        typer.Option("--max-risk", help="Share of wrong calibrated verdicts to allow."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="JSONL: a line for each method and item or candidate."),
    ] = None,
    runs: Annotated[
        Path, typer.Option("--runs", help="Folder that run ids are looked up in.")
    ] = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Aggregate votes or a run again, offline, by several methods side by side.

    Methods of verdicts decide every item; methods of rankings order the candidates.
    """
    from clash.cli import aggregated, rankings
    from clash.cli.common import read_votes

    asked = rankings.Asked.of(method)
    _choice(copies, "--copies", "merge", "separate")
    named = None
    if asked.rankings:
        named = rankings.read(
            source, runs, judges, subset, presentation, decisive=decisive, copies=copies
        )
        asked = asked if named is not None else asked.without_names(source)
    elif weights is not None:  # a run's panel has weights, and names may tell who ties
        named = rankings.read(source, runs, judges, subset, decisive=decisive, copies=copies)
    _of_use(
        asked,
        {
            "--use-labels": use_labels,
            "--ties": ties is not None,
            "--threshold": threshold is not None,
            "--calibrator": calibrator is not None,
            "--max-risk": max_risk is not None,
            "--ridge": ridge is not None,
        },
        {"--bootstrap": bootstrap is not None},
        weights,
    )
    start = 42 if seed is None else seed
    shown = aggregated.Shown()
    if asked.items:
        votes = read_votes(source, runs, judges, subset, presentation, decisive=decisive)
        shown.applied = _calibrated(calibrator, votes, max_risk)
        worth = None
        if weights not in (None, "one-coin") and "weighted-majority" in asked.items:
            worth = rankings.item_weights(str(weights), votes, named)
        shown.verdicts = _verdicts(
            votes,
            asked,
            seed=start,
            ties=ties or "half",
            copies=copies,
            use_labels=use_labels,
            threshold=threshold,
            weights=worth,
            ridge=_ridge(ridge, asked.items),
        )
    if named is not None and asked.rankings:
        from clash.analysis.rankings import REPLICATES, rank_candidates

        shown.rankings = rank_candidates(
            named,
            asked.rankings,
            seed=start,
            replicates=REPLICATES if bootstrap is None else bootstrap,
            weights=weights,
        )
    written = None if out is None else shown.write(out)
    if as_json:
        aggregated.print_object(source, runs, asked, shown, written)
    else:
        aggregated.print_result(asked, shown, written)


def _ridge(text: str | None, methods: Sequence[str]) -> Any:  # noqa: ANN401 - a number or the Literal
    """The ridge that was asked for.

    Raises:
        ConfigError: neither a positive number nor ``held-out``, or no method that reads it.
    """
    from clash.analysis.aggregation.ising_methods import DEFAULT_RIDGE, FORMS
    from clash.errors import ConfigError

    if text is None:
        return DEFAULT_RIDGE
    if not set(methods) & set(FORMS):
        hint = f"name one of {', '.join(FORMS)}"
        raise ConfigError("no method named here reads it", field="--ridge", hint=hint)
    if text == "held-out":
        return text
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < float("inf"):
        raise ConfigError(f"no ridge {text!r}", field="--ridge", hint="0.01, or held-out")
    return share


def _verdicts(votes: Votes, asked: Asked, *, ties: str, copies: str, **more: Any) -> Aggregation:  # noqa: ANN401 - passed on
    from clash.analysis.aggregation import aggregate as run
    from clash.analysis.aggregation import aggregate_outcomes

    rows: Any = copies
    if _choice(ties, "--ties", "half", "missing", "outcome") == "outcome":
        return aggregate_outcomes(votes, asked.items, copies=rows)
    return run(
        votes, asked.items, ties=_choice(ties, "--ties", "half", "missing"), copies=rows, **more
    )


def _of_use(
    asked: Asked, of_items: Mapping[str, bool], of_rankings: Mapping[str, bool], weights: str | None
) -> None:
    """Refuse an option that no method of the command would read.

    Raises:
        ConfigError: there is one.
    """
    from clash.errors import ConfigError

    for options, methods, hint in (
        (of_items, asked.items, "name a method of verdicts, such as majority or dawid-skene"),
        (of_rankings, asked.rankings, "name a method of rankings, such as bradley-terry"),
    ):
        for name, given in options.items():
            if given and not methods:
                raise ConfigError("no method named here reads it", field=name, hint=hint)
    if weights is not None and not asked.rankings and "weighted-majority" not in asked.items:
        hint = "name weighted-majority or a method of rankings"
        raise ConfigError("no method named here reads it", field="--weights", hint=hint)


def _calibrated(file: Path | None, votes: Votes, max_risk: float | None) -> CalibratedVotes | None:
    """What a calibrator makes of the votes.

    Raises:
        InputError: it is of another panel.
    """
    from clash.errors import ConfigError

    if max_risk is not None and not 0 < max_risk < 1:
        raise ConfigError("a risk lies between 0 and 1", field="--max-risk", hint="0.05")
    if file is None:
        if max_risk is not None:
            raise ConfigError("needs --calibrator", field="--max-risk")
        return None
    from clash.analysis.calibration.calibrated_votes import calibrate_votes
    from clash.analysis.calibration.calibrator import read_calibrator

    return calibrate_votes(read_calibrator(file), votes, max_risk, str(file))


def _choice(text: str, field: str, *known: str) -> Any:  # noqa: ANN401 - a Literal
    from clash.errors import ConfigError

    if text not in known:
        raise ConfigError(f"no choice {text!r}", field=field, hint=" or ".join(known))
    return text
