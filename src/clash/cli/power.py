from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from clash.cli.options import AsJson, Judges, Presentation, Seed, Subset

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.analysis.power import PanelDesign, Pilot, PowerQuestion
    from clash.analysis.power.candidate_pairs import CandidatePair, PairVotes
    from clash.report.tables import Table
    from clash.votes import Votes

_BALLOTS = 20.0
_PANELS = ("0.356", "0.49")
_CORRELATIONS = "0.05,0.1,0.2,0.3,0.5"


def power(
    question: Annotated[
        str,
        typer.Option(
            "--for",
            help="compare (two conditions), paired (two candidates, same items), concordance,"
            " kappa or retest.",
        ),
    ] = "compare",
    effect: Annotated[
        float, typer.Option("--effect", help="Difference to detect; 0.1 is ten points.")
    ] = 0.10,
    base: Annotated[
        float,
        typer.Option("--base", help="Middle of the two proportions; kappa: share of class 1."),
    ] = 0.5,
    alpha: Annotated[float, typer.Option("--alpha", help="Two-sided error rate.")] = 0.05,
    wanted: Annotated[float, typer.Option("--power", help="Power asked for.")] = 0.80,
    panel: Annotated[
        list[str] | None,
        typer.Option(
            "--panel",
            help="Discrimination rate of each judge, comma separated; give it again to compare"
            " panels. Default: the published pilot's means, 0.356 and 0.49.",
        ),
    ] = None,
    ballots: Annotated[
        float | None,
        typer.Option("--ballots", min=0.01, help="Ballots of all judges on a run or item."),
    ] = None,
    icc: Annotated[
        str, typer.Option("--icc", help="Correlations of ballots of one run or item.")
    ] = _CORRELATIONS,
    n: Annotated[
        int | None,
        typer.Option("--n", min=1, help="What you have: its power, and what it detects."),
    ] = None,
    half_width: Annotated[
        float, typer.Option("--half-width", help="Of the interval (concordance, kappa, retest).")
    ] = 0.05,
    expected: Annotated[
        float, typer.Option("--expected", help="Concordance, kappa or agreement expected.")
    ] = 0.8,
    times: Annotated[int, typer.Option("--times", min=2, help="Runs of a test-retest.")] = 2,
    per_question: Annotated[
        float, typer.Option("--per-question", help="Items that share a question.")
    ] = 1.0,
    pilot: Annotated[
        str | None,
        typer.Option("--from", help="A pilot run or votes file: its correlation, its next step."),
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(
            "--pair",
            help="With --from, of more than two candidates: the two asked about, as a,b."
            " Default: the two with most points.",
        ),
    ] = None,
    outcome: Annotated[
        str, typer.Option("--outcome", help="With --from: wins (of side A) or agreement (labels).")
    ] = "wins",
    judges: Judges = None,
    subset: Subset = None,
    presentation: Presentation = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Check each figure by Monte Carlo.")
    ] = False,
    replications: Annotated[
        int, typer.Option("--replications", min=10, help="Simulated studies.")
    ] = 1000,
    published: Annotated[
        bool, typer.Option("--published", help="The published tables 3.3 and 3.4 beside ours.")
    ] = False,
    runs: Annotated[
        Path, typer.Option("--runs", help="Folder that run ids are looked up in.")
    ] = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """How many runs, items or labels a question needs, and what you have can show.

    `clash power --for paired --effect 0.1 --panel 0.9,0.8,0.6 --icc 0.3`
    """
    from clash.analysis.power.scenarios import PowerQuestion
    from clash.stats.power import ErrorRates

    asked = PowerQuestion(
        question=cast("Any", _question(question)),
        effect=effect,
        middle=base,
        level=ErrorRates(alpha, wanted),
        half_width=half_width,
        expected=expected,
        runs=times,
        per_cluster=per_question,
        n=n,
    )
    number = 0 if seed is None else seed
    if pilot is not None:
        filters = (judges, subset, presentation)
        _from_pilot(asked, pilot, runs, filters, pair, outcome, number, as_json=as_json)
        return
    usual = question == "compare" and panel is None and ballots is None
    panels = _panels(panel or list(_PANELS), ballots, question)
    _scenario(
        asked,
        panels,
        _numbers(icc, "--icc"),
        replications=replications if simulate else 0,
        seed=number,
        published=published or usual,
        as_json=as_json,
    )


def _scenario(
    asked: PowerQuestion,
    panels: list[PanelDesign],
    correlations: list[float],
    *,
    replications: int,
    seed: int,
    published: bool,
    as_json: bool,
) -> None:
    from clash.analysis.power.scenarios import scenario
    from clash.cli.common import print_json
    from clash.report import power as report
    from clash.reproduction.power_tables import published_tables as recompute

    found = scenario(
        asked,
        panels,
        correlations,
        simulate=replications > 0,
        replications=replications or 1,
        seed=seed,
    )
    paper = recompute() if published else None
    if as_json:
        beside = None if paper is None else report.as_json(paper)
        print_json({**report.as_json(found), "published": beside})
        return
    tables = [report.scenario_table(found)]
    _show(tables + ([] if paper is None else report.published_tables(paper)))


def _from_pilot(
    asked: PowerQuestion,
    source: str,
    runs: Path,
    filters: tuple[str | None, str | None, str | None],
    wanted: str | None,
    outcome: str,
    seed: int,
    *,
    as_json: bool,
) -> None:
    from clash.analysis.power.candidate_pairs import choose_pair
    from clash.cli.common import print_json, read_votes, stdout
    from clash.errors import ConfigError
    from clash.report import power as report

    if asked.question not in ("compare", "paired"):
        raise ConfigError(
            f"a pilot answers compare and paired, not {asked.question!r}",
            field="--for",
            hint="--for paired",
        )
    if outcome not in ("wins", "agreement"):
        raise ConfigError(f"no outcome {outcome!r}", field="--outcome", hint="wins or agreement")
    field = _field(source, runs, read_votes(source, runs, *filters))
    # Whether judges agree with labels is asked of all candidates, unless two are named.
    pair = choose_pair(field, wanted) if outcome == "wins" or wanted is not None else None
    made = partial(
        _pilot, field, asked, outcome=cast("Literal['wins', 'agreement']", outcome), seed=seed
    )
    found = made(pair)
    if pair is None and outcome == "wins" and field.n_met > 1:
        pooled = f"{field.n_met} pairs of candidates, pooled: most met on few prompts;"
        found = replace(found, notes=(*found.notes, f"{pooled} --pair a,b asks about two"))
    beside = _beside(field, pair, made) if pair is not None and wanted is None else []
    if as_json:
        pairs = [report.pair_line(one) for one in ([found, *beside] if beside else [])]
        print_json({**report.as_json(found), "pairs": pairs})
        return
    _show([*report.pilot_tables(found), *report.pairs_tables(found, beside, len(field.pairs()))])
    stdout().print(f"\nnext: {found.next_step}", soft_wrap=True, markup=False)


def _field(source: str, runs: Path, votes: Votes) -> PairVotes:
    """The votes, and who is which side in them."""
    from clash.analysis.power.candidate_pairs import PairVotes, names_of_file, names_of_run
    from clash.cli.common import find_run

    folder = find_run(source, runs)
    return PairVotes(votes, names_of_file(Path(source)) if folder is None else names_of_run(folder))


def _pilot(
    field: PairVotes,
    asked: PowerQuestion,
    pair: CandidatePair | None,
    *,
    outcome: Literal["wins", "agreement"],
    seed: int,
) -> Pilot:
    from clash.analysis.power.pilot import pilot

    return pilot(
        field.votes if pair is None else field.of(pair),
        cast("Literal['compare', 'paired']", asked.question),
        pair=pair,
        outcome=outcome,
        effect=asked.effect,
        level=asked.level,
        seed=seed,
    )


def _beside(
    field: PairVotes, pair: CandidatePair, made: Callable[[CandidatePair], Pilot]
) -> list[Pilot]:
    """The other pairs; one that never decides tells nothing, and is left out."""
    from clash.analysis.power.candidate_pairs import other_pairs
    from clash.errors import StatisticsError

    found = []
    for other in other_pairs(field.pairs(), pair):
        with suppress(StatisticsError):
            found.append(made(other))
    return found


def _show(tables: list[Table]) -> None:
    from clash.cli.common import stdout
    from clash.report.terminal import print_tables

    print_tables(stdout(), tables)


def _question(text: str) -> str:
    from clash.analysis.power.scenarios import QUESTIONS
    from clash.errors import ConfigError

    if text not in QUESTIONS:
        raise ConfigError(
            f"no question {text!r}", field="--for", hint=f"one of {', '.join(QUESTIONS)}"
        )
    return text


def _panels(texts: list[str], ballots: float | None, question: str) -> list[PanelDesign]:
    """Panels by their judges' rates; ballots by default 20 a run, or one a judge and item."""
    from clash.analysis.power.scenarios import PanelDesign

    made = []
    for text in texts:
        rates = tuple(_numbers(text, "--panel"))
        usual = _BALLOTS if question == "compare" else float(len(rates))
        made.append(PanelDesign(rates, usual if ballots is None else ballots))
    return made


def _numbers(text: str, option: str) -> list[float]:
    from clash.errors import ConfigError

    try:
        found = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found or not all(0 <= value <= 1 for value in found):
        raise ConfigError(
            f"{text!r} is no list of numbers from 0 to 1", field=option, hint=f"{option} 0.2,0.3"
        )
    return found
