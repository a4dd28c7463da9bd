"""How many runs, items or labels a question needs: from assumptions, or from a pilot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from clash.analysis.serialize import to_dict, to_plain
from clash.errors import ConfigError, StatisticsError, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.judge_edges import PanelEdges
    from clash.analysis.power.candidate_pairs import CandidatePair, PairVotes
    from clash.analysis.power.pilot import Pilot
    from clash.analysis.power.scenarios import PanelDesign, PowerQuestion, Scenario
    from clash.pipeline.sources import VoteSelection
    from clash.report.tables import Table
    from clash.reproduction.power_tables import PublishedTables

    _PilotSetting = tuple[PairVotes, PowerQuestion, Literal["wins", "agreement"], int, PanelEdges]

_BALLOTS = 20.0
"""Ballots of a run where nobody says how many."""


@dataclass(frozen=True)
class PowerFindings:
    """What a design can show.

    Attributes:
        published_tables: the published tables computed again; null where they are not asked for.
    """

    scenario: Scenario
    published_tables: PublishedTables | None = None

    def as_json(self) -> dict[str, Any]:
        """The contract of ``clash power --json``."""
        return {**to_dict(self.scenario), "published": to_plain(self.published_tables)}

    def headline(self) -> str:
        """How many runs, items or labels the question needs."""
        from clash.report import power

        return power.headline(self.scenario)

    def tables(self) -> list[Table]:
        """What each panel needs at each correlation, and the published tables."""
        from clash.report import power

        tables = [power.scenario_table(self.scenario)]
        if self.published_tables is not None:
            tables += power.published_tables(self.published_tables)
        return tables


def plan_power(
    question: PowerQuestion,
    panels: Sequence[PanelDesign],
    correlations: Sequence[float],
    *,
    replications: int = 0,
    seed: int = 0,
    with_published: bool = False,
) -> PowerFindings:
    """What a question needs, for each panel and each correlation of ballots.

    Args:
        question: what is asked.
        panels: rates and ballots of the judges.
        correlations: of ballots of one run or item.
        replications: simulated studies that check each figure; 0 simulates none.
        seed: of the simulation.
        with_published: compute the published tables again too.
    """
    from clash.analysis.power.scenarios import scenario
    from clash.reproduction.power_tables import published_tables

    findings = scenario(
        question,
        list(panels),
        list(correlations),
        simulate=replications > 0,
        replications=replications or 1,
        seed=seed,
    )
    return PowerFindings(findings, published_tables() if with_published else None)


@dataclass(frozen=True)
class PilotFindings:
    """What a pilot says of the study after it.

    Attributes:
        pilot: of the candidates asked about, or of all of them.
        other_pilots: the other pairs of candidates.
        n_pairs: pairs of candidates that the votes hold.
    """

    pilot: Pilot
    other_pilots: tuple[Pilot, ...]
    n_pairs: int

    def as_json(self) -> dict[str, Any]:
        """The contract of ``clash power --from RUN --json``."""
        from clash.report import power

        pairs = [self.pilot, *self.other_pilots] if self.other_pilots else []
        return {**to_dict(self.pilot), "pairs": [power.pair_line(pilot) for pilot in pairs]}

    def headline(self) -> str:
        """How many more prompts the question needs."""
        text = self.pilot.next_step
        return f"{text[0].upper()}{text[1:]}."

    def tables(self) -> list[Table]:
        """The pilot's estimates, and the other pairs."""
        from clash.report import power

        pairs = power.pairs_tables(self.pilot, self.other_pilots, self.n_pairs)
        return [*power.pilot_tables(self.pilot), *pairs]


def pilot_power(
    selection: VoteSelection,
    question: PowerQuestion,
    *,
    pair: str | None = None,
    outcome: str = "wins",
    seed: int = 0,
) -> PilotFindings:
    """What the votes of a pilot say of the study after it.

    Args:
        selection: the votes.
        question: ``compare`` or ``paired``.
        pair: the two candidates asked about, as ``a,b``; null is the two with most points.
        outcome: ``wins`` of the first side, or ``agreement`` with labels.
        seed: of the bootstrap.

    Raises:
        ConfigError: a pilot cannot answer the question, or an option is wrong.
        InputError: the votes cannot be read.
        StatisticsError: the votes decide nothing.
    """
    from clash.analysis.judge_edges import judge_edges
    from clash.analysis.power.candidate_pairs import choose_pair, other_pairs
    from clash.analysis.tasks import run_tasks

    if question.question not in ("compare", "paired"):
        raise ConfigError(
            f"a pilot answers compare and paired, not {question.question!r}",
            field="--for",
            hint="--for paired",
        )
    if outcome not in ("wins", "agreement"):
        raise ConfigError(f"no outcome {outcome!r}", field="--outcome", hint="wins or agreement")
    votes = _pair_votes(selection)
    # Whether judges agree with labels is asked of all candidates, unless two are named.
    candidates = choose_pair(votes, pair) if outcome == "wins" or pair is not None else None
    edges = judge_edges(votes.votes, seed)
    measure = cast("Literal['wins', 'agreement']", outcome)
    setting = votes, question, measure, seed, edges
    findings = _pilot(setting, candidates)
    if candidates is None and outcome == "wins" and votes.n_met > 1:
        pooling = f"{votes.n_met} pairs of candidates, pooled: most were compared on few prompts;"
        note = f"{pooling} --pair a,b asks about two"
        findings = replace(findings, notes=(*findings.notes, note))
    use = votes.votes.label_use
    labels = use.sentence if measure == "agreement" else edges.label_use(use)
    findings = replace(findings, notes=(*findings.notes, f"labels: {labels}"))
    other_pilots: tuple[Pilot, ...] = ()
    if candidates is not None and pair is None:
        pairs = other_pairs(votes.pairs(), candidates)
        # Pairs whose votes decide nothing are left out.
        pilots = list(run_tasks(_pilot_or_none, setting, pairs))
        other_pilots = tuple(pilot for pilot in pilots if pilot is not None)
    return PilotFindings(findings, other_pilots, len(votes.pairs()))


def _pair_votes(selection: VoteSelection) -> PairVotes:
    """The votes, and who is which side in them."""
    from clash.analysis.power.candidate_pairs import PairVotes, names_of_file, names_of_run

    folder = selection.folder
    names = names_of_file(selection.file) if folder is None else names_of_run(folder)
    return PairVotes(selection.votes(), names)


def _pilot(setting: _PilotSetting, pair: CandidatePair | None) -> Pilot:
    from clash.analysis.power.pilot import pilot

    votes, question, outcome, seed, edges = setting
    return pilot(
        votes.votes if pair is None else votes.of(pair),
        cast("Literal['compare', 'paired']", question.question),
        pair=pair,
        outcome=outcome,
        effect=question.effect,
        level=question.level,
        edges=edges,
        seed=seed,
    )


def _pilot_or_none(setting: _PilotSetting, pair: CandidatePair) -> Pilot | None:
    """The pilot of a pair; null where its votes decide nothing."""
    try:
        return _pilot(setting, pair)
    except StatisticsError:
        return None


def check_question(text: str) -> Any:  # noqa: ANN401 - a Literal
    """The question, if it is one.

    Raises:
        ConfigError: it is none.
    """
    from clash.analysis.power.scenarios import QUESTIONS

    if text not in QUESTIONS:
        raise ConfigError(f"no question {text!r}", field="--for", hint=one_of(text, QUESTIONS))
    return text


def panel_designs(texts: Sequence[str], ballots: float | None, question: str) -> list[PanelDesign]:
    """Panels by their judges' rates; ballots by default 20 a run, or one a judge and item.

    Raises:
        ConfigError: a panel is no list of rates.
    """
    from clash.analysis.power.scenarios import PanelDesign

    designs = []
    for text in texts:
        rates = tuple(parse_shares(text, "--panel"))
        default = _BALLOTS if question == "compare" else float(len(rates))
        designs.append(PanelDesign(rates, default if ballots is None else ballots))
    return designs


def parse_shares(text: str, option: str) -> list[float]:
    """Comma-separated numbers from 0 to 1.

    Raises:
        ConfigError: they are none.
    """
    try:
        shares = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        shares = []
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise ConfigError(
            f"{text!r} is not a list of numbers from 0 to 1", field=option, hint=f"{option} 0.2,0.3"
        )
    return shares
