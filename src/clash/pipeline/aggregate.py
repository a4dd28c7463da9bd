"""Aggregate the votes of a file or of a run by several methods side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from clash.config import METHOD_ALIASES
from clash.errors import ConfigError, InputError, one_of
from clash.pipeline.options import AGGREGATE_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clash.analysis.aggregation import Aggregation
    from clash.analysis.aggregation.ising_methods import RidgeChoice
    from clash.analysis.aggregation.vote_ranges import VoteRanges
    from clash.analysis.calibration.calibrated_votes import CalibratedVotes
    from clash.analysis.calibration.calibrator import RiskLimit
    from clash.analysis.rankings.candidate_rankings import CandidateRankings
    from clash.analysis.rankings.judge_aware import JudgeAwareRanking
    from clash.pipeline.sources import VoteSelection
    from clash.report.tables import Table
    from clash.stats.typing import Floats
    from clash.votes import Votes
    from clash.votes.named_rankings import NamedRankings, PairTexts

GROUPS = ("all", "rankings")
"""Names that stand for several methods."""
DUAL_METHODS = ("borda", "majority", "weighted-majority")
"""Methods that decide items and rank candidates."""
NAMELESS = "the votes name no candidates: by model_a and model_b, model and group, or a ranking"


@dataclass(frozen=True)
class MethodChoice:
    """The methods that somebody named.

    Attributes:
        items: methods that give a verdict on each item.
        rankings: methods that rank the candidates.
        refusals: rankings that votes without names of candidates cannot have.
    """

    items: tuple[str, ...]
    rankings: tuple[str, ...]
    refusals: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> MethodChoice:
        """Sort comma-separated names of methods into those of items and those of candidates.

        Borda and the majorities are about both: with a method of rankings they rank, with one of
        items they give verdicts, and with both they do both.

        Raises:
            ConfigError: an unknown method, or none.
        """
        from clash.analysis.aggregation.methods import method_names
        from clash.analysis.rankings import ranking_names

        verdicts, rankings = method_names(), ranking_names()
        names = _expand_groups(text, verdicts, rankings)
        for name in names:
            if name not in (*verdicts, *rankings):
                choices = dict.fromkeys((*GROUPS, *verdicts, *rankings))
                hint = one_of(name, choices)
                raise ConfigError(f"no method {name!r}", field="--method", hint=hint)
        ranks = any(name not in verdicts or name == "borda" for name in names)
        decides = not ranks or any(name not in rankings for name in names)
        return cls(
            tuple(name for name in names if decides and name in verdicts),
            tuple(name for name in names if ranks and name in rankings),
        )

    def without_names(self, source: str | Path) -> MethodChoice:
        """The same for votes that name no candidates.

        Raises:
            InputError: no method remains.
        """
        if not self.items and set(self.rankings) - set(DUAL_METHODS):
            hint = 'write {"item": …, "judge": …, "vote": "A", "model_a": …, "model_b": …}'
            raise InputError(NAMELESS, path=source, hint=hint)
        items = dict.fromkeys(
            (*self.items, *(name for name in self.rankings if name in DUAL_METHODS))
        )
        return MethodChoice(
            tuple(items), (), tuple(n for n in self.rankings if n not in DUAL_METHODS)
        )


def _expand_groups(text: str, verdicts: Sequence[str], rankings: Sequence[str]) -> list[str]:
    groups = {"all": [n for n in verdicts if n != "borda"], "rankings": rankings}
    parts = [METHOD_ALIASES.get(p, p) for p in map(str.strip, text.split(",")) if p]
    if not parts:
        raise ConfigError("names no method", field="--method", hint="majority,dawid-skene")
    return list(dict.fromkeys(name for part in parts for name in groups.get(part, [part])))


@dataclass(frozen=True)
class AggregateOptions:
    """How votes are aggregated; null where an option has a default that only some methods read.

    Attributes:
        method: methods, comma separated; ``all`` for those of verdicts, ``rankings`` for the others.
        use_labels: true, labels enter every fit; false, none; null, those of the expert pool, which
            ``auto`` brings along from 10 labels on. Scores are cross-fitted.
        ties: a tied vote is ``half`` a vote each (the default), ``missing``, or an ``outcome``.
        copies: both orders and repeats of an item: ``merge`` or ``separate``.
        threshold: scores from here on count as side 1.
        weights: of the judges: ``panel``, ``equal``, ``discrimination``, ``one-coin``, or a file.
        ridge: L2 on the couplings of the Ising models as a share of the items, or ``held-out``.
        bootstrap: replicates behind the intervals of rankings.
        calibrator: a file of ``clash calibrate``, as a method beside them.
        max_risk: share of wrong calibrated verdicts to allow.
        ranges: also what readings and strengths of the votes allow, and the items to label next.
        risk_confidence: keep it with this confidence; null keeps it on average.
        style: fit strengths with the judges' reliability too, at equal style: ``length``,
            ``markdown``, ``position``, ``self``, ``all`` or ``none``.
        pairs: the responses behind a votes file, for the style.
    """

    method: str = AGGREGATE_METHODS
    use_labels: bool | None = None
    ties: str | None = None
    copies: str = "merge"
    threshold: float | None = None
    weights: str | None = None
    ridge: str | None = None
    bootstrap: int | None = None
    calibrator: Path | None = None
    max_risk: float | None = None
    seed: int = 42
    ranges: bool = False
    risk_confidence: float | None = None
    style: str | None = None
    pairs: Path | None = None


@dataclass(frozen=True)
class AggregateFindings:
    """What the methods made of the votes; null where no method of a kind was named.

    Attributes:
        verdicts: on every item, by each method of verdicts.
        calibrated_votes: the verdicts of a calibrator.
        rankings: the order of the candidates, by each method of rankings.
        judge_aware: their strengths with the judges' reliability and at equal style.
        folder: the run that the votes are of; null for a votes file.
        ranges: what the votes allow, where it was asked for.
    """

    methods: MethodChoice
    verdicts: Aggregation | None
    calibrated_votes: CalibratedVotes | None
    rankings: CandidateRankings | None
    folder: Path | None
    ranges: VoteRanges | None = None
    judge_aware: JudgeAwareRanking | None = None

    def as_json(self) -> dict[str, Any]:
        """The contract of ``clash aggregate --json``, without ``source`` and ``written``."""
        from clash.report import aggregation, calibration, judge_aware_tables, ranking_tables

        record: dict[str, Any] = {"run": None if self.folder is None else str(self.folder)}
        record |= aggregation.as_json(self.verdicts) if self.verdicts else self._only_rankings()
        if self.ranges is not None:
            record["range"] = aggregation.ranges_json(self.ranges)
        methods = record["methods"]
        if self.calibrated_votes is not None:
            methods["calibrated"] = calibration.applied_json(self.calibrated_votes)
        if self.rankings is not None:
            record["rankings"] = ranking_tables.as_json(self.rankings)
            for name, method in ranking_tables.methods_json(self.rankings).items():
                verdict = methods.get(name, aggregation.without_figures())
                methods[name] = (
                    {**method, **verdict} if name in self.methods.items else {**verdict, **method}
                )
        if self.judge_aware is not None:
            record["judge_aware"] = judge_aware_tables.as_json(self.judge_aware)
        for name in self.methods.refusals:
            methods[name] = {
                **aggregation.without_figures(),
                "status": "refused",
                "converged": None,
                "notes": [NAMELESS],
            }
        return record

    def _only_rankings(self) -> dict[str, Any]:
        """The head of the JSON where no method gives verdicts."""
        if self.rankings is None:
            return {"methods": {}}
        names = [method.method for method in self.rankings.methods if method.places]
        return {
            "n_items": self.rankings.n_items,
            "n_judges": len(self.rankings.weights),
            "n_labelled": None,
            "selected": names[0] if names else None,
            "reason": "named first on the command line" if names else "no method could rank",
            "warnings": list(self.rankings.warnings),
            "notes": list(self.rankings.notes),
            "methods": {},
        }

    def tables(self, *, verbose: bool = True) -> list[Table]:
        """The methods of verdicts side by side, then the rankings.

        Args:
            verbose: with every figure, and a note on each method.
        """
        from clash.report import aggregation, judge_aware_tables, ranking_tables

        tables = []
        if self.verdicts is not None:
            tables.append(aggregation.table(self.verdicts, verbose=verbose))
        if self.ranges is not None:
            tables.append(aggregation.ranges_table(self.ranges))
        if self.rankings is not None:
            tables += ranking_tables.tables(self.rankings, verbose=verbose)
        return tables + judge_aware_tables.tables(self.judge_aware)

    def headlines(self) -> list[str]:
        """The answer: which method to use, what the calibrator does, and who is first."""
        from clash.report import aggregation, calibration, ranking_tables

        lines = []
        if self.verdicts is not None:
            lines += aggregation.headlines(self.verdicts)
        if self.ranges is not None:
            lines += aggregation.ranges_lines(self.ranges)
        if self.calibrated_votes is not None:
            lines.append(calibration.applied_line(self.calibrated_votes))
        if self.rankings is not None:
            lines += ranking_tables.headlines(self.rankings)
        return lines

    def warnings(self) -> list[str]:
        """What to beware of, and which methods could not be had."""
        parts = (self.verdicts, self.calibrated_votes, self.rankings, self.judge_aware)
        warnings = [line for part in parts if part is not None for line in part.warnings]
        return warnings + [f"{name} refused: {NAMELESS}" for name in self.methods.refusals]

    def write(self, path: Path) -> None:
        """Write a line of JSON for each method and item, and for each method and candidate.

        A file that ends in ``.txt`` gets the items to label next, one a line, for ``clash review --items``.

        Raises:
            ConfigError: such a file, and nobody asked for ranges.
        """
        if path.suffix == ".txt":
            if self.ranges is None:
                hint = "add --range, or name a .jsonl file"
                raise ConfigError("a .txt file is a list of items", field="--out", hint=hint)
            path.write_text("".join(f"{item}\n" for item in self.ranges.label_next), "utf-8")
            return
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for line in self._lines():
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        from clash.report import ranking_tables

        if self.verdicts is not None:
            yield from _item_lines(self.verdicts)
        if self.calibrated_votes is not None:
            yield from self.calibrated_votes.lines()
        if self.rankings is not None:
            yield from ranking_tables.lines(self.rankings)


def _item_lines(aggregation: Aggregation) -> Iterator[Mapping[str, Any]]:
    """For each item and method ``p`` of the first side, and the winner it implies."""
    winners = {1.0: "A", 0.0: "B", 0.5: "tie"}
    for result in aggregation.methods:
        if result.p is None or result.verdict is None:
            continue
        rows = zip(aggregation.items, result.p.tolist(), result.verdict.tolist(), strict=True)
        for item, p, verdict in rows:
            line = {"item": item, "method": result.method, "p": round(p, 9)}
            yield {**line, "winner": winners[verdict]}


def aggregate_votes(selection: VoteSelection, options: AggregateOptions) -> AggregateFindings:
    """Aggregate votes by the methods of the options.

    Methods of rankings that need names of candidates are refused where the votes have none and
    other methods remain.

    Raises:
        ConfigError: an option is wrong, or no method reads it.
        InputError: the votes cannot be read, or the calibrator is of another panel.
        StatisticsError: a model of weights is not identified.
    """
    methods = MethodChoice.parse(options.method)
    _check_choice(options.copies, "--copies", "merge", "separate")
    rankings, texts = None, _style_texts(options, methods)
    if methods.rankings:
        rankings = selection.rankings(options.copies, texts=texts)
        methods = methods if rankings is not None else methods.without_names(selection.file)
    elif options.weights is not None:  # a run's panel has weights, and names may tell who ties
        rankings = replace(selection, presentation=None).rankings(options.copies)
    _check_use(methods, options)
    verdicts = calibrated_votes = ranges = None
    if methods.items:
        votes = selection.votes()
        calibrated_votes = _apply_calibrator(votes, options)
        verdicts = _decide(votes, methods.items, options, rankings)
        ranges = _ranges(votes, options) if options.ranges else None
    return AggregateFindings(
        methods,
        verdicts,
        calibrated_votes,
        None if rankings is None else _rank(rankings, methods.rankings, options),
        None if selection.folder is None else selection.folder.path,
        ranges,
        None if rankings is None else _rank_by_judges(rankings, options),
    )


def _ranges(votes: Votes, options: AggregateOptions) -> VoteRanges:
    """What the votes allow.

    Raises:
        ConfigError: ties as an outcome.
    """
    from clash.analysis.aggregation.vote_ranges import vote_ranges

    if options.ties == "outcome":
        hint = "--ties half, or missing"
        raise ConfigError("ranges are of two sides", field="--range", hint=hint)
    return vote_ranges(
        votes,
        seed=options.seed,
        ties=cast("Literal['half', 'missing']", options.ties or "half"),
        copies=cast("Literal['merge', 'separate']", options.copies),
        use_labels=options.use_labels,
        threshold=options.threshold,
    )


def _style_texts(options: AggregateOptions, methods: MethodChoice) -> PairTexts | None:
    """The texts behind a votes file, none where no file was named; null where no style was.

    Raises:
        ConfigError: a style without ``bradley-terry``, or texts without a style.
        InputError: the file of pairs cannot be read.
    """
    if options.style is None:
        if options.pairs is not None:
            raise ConfigError("needs --style", field="--pairs", hint="--style all")
        return None
    if "bradley-terry" not in methods.rankings:
        hint = "clash aggregate … --method bradley-terry --style all"
        raise ConfigError("belongs to --method bradley-terry", field="--style", hint=hint)
    from clash.analysis.rankings.judge_aware import parse_styles
    from clash.analysis.texts import read_pairs

    parse_styles(options.style)
    pairs = {} if options.pairs is None else read_pairs(options.pairs)
    return {name: (pair.first, pair.second) for name, pair in pairs.items()}


def _rank_by_judges(rankings: NamedRankings, options: AggregateOptions) -> JudgeAwareRanking | None:
    """Strengths with the judges' reliability, where a style (or ``none``) was named."""
    from clash.analysis.rankings.judge_aware import parse_styles, rank_by_judges

    if options.style is None:
        return None
    return rank_by_judges(rankings, parse_styles(options.style), seed=options.seed)


def _decide(
    votes: Votes,
    methods: Sequence[str],
    options: AggregateOptions,
    rankings: NamedRankings | None,
) -> Aggregation:
    """Verdicts on every item."""
    from clash.analysis.aggregation import aggregate, aggregate_outcomes

    weights = None
    if options.weights not in (None, "one-coin") and "weighted-majority" in methods:
        weights = _vote_weights(options.weights, votes, rankings)
    ridge = _parse_ridge(options.ridge, methods)
    ties = options.ties or "half"
    copies = cast("Literal['merge', 'separate']", options.copies)
    _check_choice(ties, "--ties", "half", "missing", "outcome")
    if ties == "outcome":
        return aggregate_outcomes(votes, methods, copies=copies)
    return aggregate(
        votes,
        methods,
        ties=cast("Literal['half', 'missing']", ties),
        copies=copies,
        seed=options.seed,
        use_labels=options.use_labels,
        threshold=options.threshold,
        weights=weights,
        ridge=ridge,
    )


def _rank(
    rankings: NamedRankings, methods: Sequence[str], options: AggregateOptions
) -> CandidateRankings | None:
    """The order of the candidates."""
    from clash.analysis.rankings import REPLICATES, rank_candidates

    if not methods:
        return None
    return rank_candidates(
        rankings,
        methods,
        seed=options.seed,
        replicates=REPLICATES if options.bootstrap is None else options.bootstrap,
        weights=options.weights,
    )


def _vote_weights(source: str, votes: Votes, rankings: NamedRankings | None) -> Floats:
    """Weights of the judges of some votes, (J,).

    Raises:
        ConfigError: no such source, or a judge without a weight.
        StatisticsError: the one-coin model is not identified.
    """
    from clash.analysis.rankings.weights import from_mapping, judge_weights, vote_weights

    if rankings is None:
        return vote_weights(source, votes)
    weights = judge_weights(source, rankings).tolist()
    return from_mapping(dict(zip(rankings.judges, weights, strict=True)), votes.judges, source)


def _apply_calibrator(votes: Votes, options: AggregateOptions) -> CalibratedVotes | None:
    """The verdicts of a calibrator on the votes.

    Raises:
        ConfigError: a risk without a calibrator, or no share.
        InputError: it is of another panel.
    """
    if options.calibrator is None:
        if options.max_risk is not None:
            raise ConfigError("needs --calibrator", field="--max-risk")
        if options.risk_confidence is not None:
            raise ConfigError("needs --calibrator", field="--risk-confidence")
        return None
    from clash.analysis.calibration.calibrated_votes import calibrate_votes
    from clash.analysis.calibration.calibrator import read_calibrator

    limit = risk_limit(options.max_risk, options.risk_confidence)
    calibrator = read_calibrator(options.calibrator)
    return calibrate_votes(calibrator, votes, limit, str(options.calibrator))


def risk_limit(max_risk: float | None, confidence: float | None) -> RiskLimit | None:
    """The share of wrong verdicts that is allowed; null where all rows are answered.

    Raises:
        ConfigError: no share, or a confidence without one.
    """
    from clash.analysis.calibration.calibrator import RiskLimit

    for value, field, name, hint in (
        (max_risk, "--max-risk", "risk", "0.05"),
        (confidence, "--risk-confidence", "confidence", "0.9"),
    ):
        if value is not None and not 0 < value < 1:
            raise ConfigError(f"a {name} must be between 0 and 1", field=field, hint=hint)
    if max_risk is None:
        if confidence is not None:
            raise ConfigError("needs --max-risk", field="--risk-confidence", hint="--max-risk 0.05")
        return None
    return RiskLimit(max_risk, confidence)


def _parse_ridge(text: str | None, methods: Sequence[str]) -> RidgeChoice:
    """The ridge of the Ising models.

    Raises:
        ConfigError: neither a positive number nor ``held-out``, or no method that reads it.
    """
    from clash.analysis.aggregation.ising_methods import FORMS

    if text is None:
        return None
    if not set(methods) & set(FORMS):
        hint = f"name one of {', '.join(FORMS)}"
        raise ConfigError("no method named here reads it", field="--ridge", hint=hint)
    if text == "held-out":
        return "held-out"
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < float("inf"):
        raise ConfigError(f"no ridge {text!r}", field="--ridge", hint="0.01, or held-out")
    return share


def _check_use(methods: MethodChoice, options: AggregateOptions) -> None:
    """Refuse an option that no method would read.

    Raises:
        ConfigError: there is one.
    """
    of_items = {
        "--use-labels": options.use_labels,
        "--ties": options.ties,
        "--threshold": options.threshold,
        "--calibrator": options.calibrator,
        "--max-risk": options.max_risk,
        "--risk-confidence": options.risk_confidence,
        "--ridge": options.ridge,
        "--range": options.ranges or None,
    }
    for values, readers, hint in (
        (of_items, methods.items, "name a method of verdicts, such as majority or dawid-skene"),
        (
            {"--bootstrap": options.bootstrap},
            methods.rankings,
            "name a method of rankings, such as bradley-terry",
        ),
    ):
        for name, value in values.items():
            if value is not None and not readers:
                raise ConfigError("no method named here reads it", field=name, hint=hint)
    weighs = methods.rankings or "weighted-majority" in methods.items
    if options.weights is not None and not weighs:
        hint = "name weighted-majority or a method of rankings"
        raise ConfigError("no method named here reads it", field="--weights", hint=hint)


def _check_choice(text: str, field: str, *choices: str) -> None:
    if text not in choices:
        raise ConfigError(f"no choice {text!r}", field=field, hint=" or ".join(choices))
