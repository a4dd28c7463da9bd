"""Statistics by function calls: aggregate, audit, calibrate, dependence, compare, choose, gate.

Each returns a :class:`~clash.library.results.Result`: the typed findings of the analysis, the
tables that the command of the same name prints, and its JSON.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from clash.analysis.serialize import to_dict
from clash.errors import ConfigError, as_run_errors, one_of
from clash.library.arguments import LabelledVoteFilters, VoteFilters, speaks_python
from clash.library.notebook_inputs import as_file, run_path
from clash.library.results import GateResult, Records, Result, Run
from clash.pipeline.options import Observer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.analysis.calibration.calibrated_votes import CalibratedVotes
    from clash.analysis.calibration.study import CalibrationStudy
    from clash.analysis.choice import Choice
    from clash.analysis.compare import RunComparison
    from clash.analysis.dependence.dependence_findings import Dependence
    from clash.analysis.diagnosis import Diagnosis
    from clash.analysis.explanation import Explanation
    from clash.analysis.power.scenarios import Scenario
    from clash.analysis.published import PublishedAudit
    from clash.analysis.retest import Retest
    from clash.analysis.rundata import RunData
    from clash.analysis.single_text.explanation import TextExplanation
    from clash.analysis.walk import Walk
    from clash.library.notebook_inputs import VotesSource
    from clash.pipeline.aggregate import AggregateFindings
    from clash.pipeline.sources import VoteSelection
    from clash.store.folder import RunFolder
    from clash.votes import Votes


Threshold = Any
"""A number, at least that; or ``("max", number)``, ``("min", number)``."""
_RUNS = Path("runs")
_SILENT = Observer()


@speaks_python
def read_votes(
    votes: VotesSource,
    *,
    judges: str | None = None,
    subset: str | None = None,
    presentation: str | None = None,
    decisive: bool = False,
    use_labels: bool = True,
    out: str | Path = _RUNS,
) -> Votes:
    """The votes of a file, a run, a list of dicts or a data frame, filtered.

    Args:
        votes: the source; rows have ``item``, ``judge``, ``vote`` and optionally ``label``.
        judges: names with wildcards, comma separated.
        subset: subsets with wildcards.
        presentation: ``orig`` or ``swap``.
        decisive: only items whose label is a side.
        use_labels: labels that are there are used; without, the votes are read as if they had none.
        out: the folder that run ids are looked up in.

    Raises:
        InputError: a row is wrong, or nothing is left after the filter.
    """
    filters = LabelledVoteFilters(
        judges=judges,
        subset=subset,
        presentation=presentation,
        decisive=decisive,
        use_labels=use_labels,
        out=out,
    )
    with _selection(votes, filters) as selection:
        matrix = selection.votes()
    return _anonymous(matrix, votes)


@contextmanager
def _selection(
    votes: VotesSource, filters: VoteFilters | LabelledVoteFilters
) -> Iterator[VoteSelection]:
    """The votes of the source that the filters let through, as the commands select them."""
    from clash.pipeline.sources import VoteSelection

    runs = Path(filters.get("out", _RUNS))
    names = ("judges", "subset", "presentation", "decisive", "use_labels")
    selection: dict[str, Any] = {name: filters[name] for name in names if name in filters}  # type: ignore[literal-required]
    with as_file(votes.path if isinstance(votes, Run) else votes, "votes.jsonl") as path:
        yield VoteSelection(path, runs, **selection)


def _anonymous(matrix: Votes, votes: VotesSource) -> Votes:
    """The votes without the name of the temporary file that they were read from."""
    return matrix if isinstance(votes, str | Path | Run) else replace(matrix, source="")


@speaks_python
def aggregate(
    votes: VotesSource,
    method: str = "auto",
    *,
    seed: int = 42,
    use_labels: bool | None = None,
    ties: Literal["half", "missing", "outcome"] | None = None,
    copies: Literal["merge", "separate"] = "merge",
    weights: str | None = None,
    bootstrap: int | None = None,
    style: str | None = None,
    pairs: str | Path | None = None,
    **filters: Unpack[VoteFilters],
) -> Result[AggregateFindings]:
    """Aggregate votes into verdicts or rankings, by one method or several (comma separated).

    Args:
        votes: as for :func:`read_votes`.
        method: methods of verdicts, such as ``auto``, ``majority``, ``dawid-skene``, and methods
            that rank candidates, such as ``borda``, ``bradley-terry``.
        seed: seed of the random starts, the cross-validation and the bootstrap.
        use_labels: true, every method is fitted on the labels too; false, none is. By default
            ``auto`` brings the expert pool along from 10 labels on, which reads them.
        ties: a tie counts ``half`` for each side (the default), is ``missing``, or an ``outcome``.
        copies: repeated votes of a judge on an item are merged, or count separately.
        weights: of the judges: ``panel``, ``equal``, ``discrimination``, ``one-coin``, or a file.
        bootstrap: resamples behind the intervals of rankings.
        style: with ``bradley-terry``, also fit how reliable each judge is, and rank at equal
            style: ``length``, ``markdown``, ``position``, ``self``, ``all`` or ``none``.
        pairs: the responses behind a votes file, for the style.
        **filters: the filters of :func:`read_votes`.

    Returns:
        ``findings.verdicts.methods`` has for each method its posterior ``p`` of side A and its
        verdicts, ``findings.verdicts.selected`` the method to use, ``findings.rankings`` the
        order of the candidates by each method that ranks, ``findings.judge_aware`` their
        strengths with the judges' reliability and at equal style.

    Raises:
        ConfigError: there is no such method.
    """
    from clash.pipeline.aggregate import AggregateOptions, aggregate_votes

    options = AggregateOptions(
        method,
        use_labels=use_labels,
        ties=ties,
        copies=copies,
        weights=weights,
        bootstrap=bootstrap,
        seed=seed,
        style=style,
        pairs=None if pairs is None else Path(pairs),
    )
    with _selection(votes, filters) as selection:
        findings = aggregate_votes(selection, options)
    return Result(
        findings,
        tuple(findings.tables()),
        tuple(findings.headlines()),
        tuple(findings.warnings()),
        findings.as_json(),
    )


@speaks_python
def calibrate(
    votes: VotesSource,
    *,
    labels: int | None = None,
    splits: int = 5,
    folds: int | None = None,
    seed: int = 42,
    jobs: int | None = 1,
    to: str | Path | None = None,
    sources: str = "group",
    **filters: Unpack[VoteFilters],
) -> Result[CalibrationStudy]:
    """Learn from human labels which judges to ask and how to weigh their votes.

    Args:
        votes: votes with labels, as for :func:`read_votes`.
        labels: labelled items to learn from in each split; null is all that a split leaves.
        splits: random splits of the items into training and test.
        folds: cross-validation with so many folds, in place of splits.
        seed: seed of the splits.
        jobs: processes; null is one for each core.
        to: write the calibrator here, for ``evaluate(calibrator=…)``.
        sources: what a split keeps together: ``group``, or ``item`` where groups are categories.
        **filters: the filters of :func:`read_votes`.

    Raises:
        InputError: there are too few labelled items.
    """
    from clash.pipeline.calibrate import CalibrateOptions, calibrate_votes, write_calibrator

    options = CalibrateOptions(
        labels=labels, splits=splits, folds=folds, seed=seed, jobs=jobs, sources=sources
    )
    with _selection(votes, filters) as selection:
        findings = calibrate_votes(selection, options)
        if to is not None:
            write_calibrator(findings.fit(), Path(to))
    return Result(
        findings.study,
        tuple(findings.tables()),
        tuple(findings.headlines()),
        (),
        {**findings.as_json(), "written": None if to is None else str(to)},
    )


@speaks_python
def apply_calibrator(
    votes: VotesSource,
    calibrator: str | Path,
    *,
    max_risk: float | None = None,
    risk_confidence: float | None = None,
    **filters: Unpack[VoteFilters],
) -> Result[CalibratedVotes]:
    """Read votes as probabilities with a calibrator, and abstain where it is not sure enough.

    Args:
        votes: votes of the judges that it was fitted on, as for :func:`read_votes`.
        calibrator: a file of :func:`calibrate`.
        max_risk: the share of wrong verdicts to allow; null answers every row.
        risk_confidence: keep it with this confidence, such as 0.9; null keeps it on average.
        **filters: the filters of :func:`read_votes`.

    Returns:
        A row for each item: the probability ``p`` of side A, and the winner, which is null where
        the calibrator abstains.

    Raises:
        InputError: the votes lack a judge that it asks.
        ConfigError: the risk is no share.
    """
    from clash.analysis.calibration.calibrated_votes import calibrate_votes
    from clash.analysis.calibration.calibrator import read_calibrator
    from clash.pipeline.aggregate import risk_limit
    from clash.report import calibration as report
    from clash.report.tables import Table

    limit = risk_limit(max_risk, risk_confidence)
    path = Path(calibrator)
    matrix = read_votes(votes, **filters)
    findings = calibrate_votes(read_calibrator(path), matrix, limit, str(path))
    verdicts = list(findings.lines())
    rows = [(v["item"], f"{v['p']:.3f}", v["winner"] or "abstained") for v in verdicts]
    return Result(
        findings,
        (Table("Calibrated verdicts", ("item", "p", "winner"), rows, frozenset({1})),),
        (report.applied_line(findings),),
        findings.warnings,
        {**report.applied_json(findings), "verdicts": verdicts},
    )


@speaks_python
def dependence(
    votes: VotesSource,
    *,
    method: str | None = None,
    bootstrap: int = 500,
    seed: int = 0,
    **filters: Unpack[LabelledVoteFilters],
) -> Result[Dependence]:
    """Do the judges err together, and how many independent judges is the panel worth?

    Args:
        votes: as for :func:`read_votes`.
        method: the model of dependence; null chooses.
        bootstrap: resamples for the intervals.
        seed: seed of the resamples.
        **filters: the filters of :func:`read_votes`.
    """
    from clash.analysis.dependence import DependenceOptions, diagnose
    from clash.report import dependence as report

    default = DependenceOptions()
    options = replace(
        default,
        method=default.method if method is None else method,
        bootstrap=bootstrap,
        seed=seed,
    )
    findings = diagnose(read_votes(votes, **filters), options)
    return Result(
        findings,
        tuple(report.tables(findings, verbose=True)),
        (report.headline(findings), *findings.conclusions),
        tuple(findings.caveats),
        to_dict(findings),
    )


@speaks_python
def diagnose(
    votes: VotesSource,
    *,
    candidates: int | None = None,
    similarity: str | None = "tfidf",
    seed: int = 42,
    **filters: Unpack[LabelledVoteFilters],
) -> Result[Diagnosis]:
    """Is each judge worth its votes: ties, agreement, biases; keep, down-weight or replace.

    Args:
        votes: as for :func:`read_votes`; of a run its pages and orders are looked at too.
        candidates: how many candidates a page shows; a run knows it, votes are of pairs.
        similarity: how responses are compared: ``tfidf``, or a sentence-transformers model in the
            local cache; null is the best that is installed.
        seed: seed of the simulations.
        **filters: the filters of :func:`read_votes`.
    """
    from clash.pipeline.diagnose import DiagnoseOptions, diagnose_votes
    from clash.report import diagnosis as report

    options = DiagnoseOptions(candidates, similarity=similarity, seed=seed)
    with _selection(votes, filters) as selection:
        findings = diagnose_votes(selection, options)
    return Result(findings, tuple(report.tables(findings)), findings.summary, (), to_dict(findings))


@speaks_python
def power(
    question: str = "paired",
    *,
    effect: float = 0.1,
    panels: Sequence[Sequence[float]] = ((0.9, 0.8, 0.6),),
    icc: Sequence[float] = (0.05, 0.1, 0.2, 0.3, 0.5),
    n: int | None = None,
    ballots: float | None = None,
    **assumptions: Any,  # noqa: ANN401 - fields of PowerQuestion
) -> Result[Scenario]:
    """How many items, runs or labels a question needs, and what ``n`` of them can show.

    Args:
        question: ``compare``, ``paired``, ``concordance``, ``kappa`` or ``retest``.
        effect: the absolute difference to detect.
        panels: the share of decisive votes of each judge, for each panel to compare.
        icc: correlations of the votes on one item.
        n: what there is, to be told what it can show.
        ballots: votes of all judges on an item; by default one of each judge.
        **assumptions: further fields of
            :class:`~clash.analysis.power.scenarios.PowerQuestion`, as ``half_width``.

    Raises:
        ConfigError: there is no such question, or an assumption is impossible.
    """
    from clash.analysis.power.scenarios import QUESTIONS, PanelDesign, PowerQuestion, scenario
    from clash.report import power as report

    if question not in QUESTIONS:
        is_name = isinstance(question, str)
        name = repr(question) if is_name else f"in {type(question).__name__}: name one"
        raise ConfigError(f"no question {name}", hint=one_of(str(question)[:40], QUESTIONS))
    assumption_set = PowerQuestion(question, effect=effect, n=n, **assumptions)
    designs = [
        PanelDesign(tuple(rates), float(len(rates)) if ballots is None else ballots)
        for rates in panels
    ]
    findings = scenario(assumption_set, designs, list(icc), simulate=False, replications=1, seed=0)
    return Result(findings, (report.scenario_table(findings),), (), (), to_dict(findings))


@speaks_python
def compare(
    *runs: str | Path | Run,
    every_record: bool = False,
    by_tag: str | None = None,
    difficulty: Mapping[str, float] = MappingProxyType({}),
    use_labels: bool = True,
    out: str | Path = _RUNS,
) -> Result[RunComparison]:
    """Compare runs with a test, paired where they share items.

    Args:
        runs: two runs or more; one suffices with ``by_tag``.
        every_record: pool items that stand in several runs as often as they do.
        by_tag: wildcards, comma separated: items whose first matching tag is the same are a data set.
        difficulty: of data sets by name, for the gradient of agreement; by default the share of
            split verdicts.
        use_labels: labels that are there are used; without, the runs are read as if they had none.
        out: the folder that run ids are looked up in.

    Raises:
        ConfigError: fewer than two runs.
    """
    from clash.analysis.compare import compare as compute
    from clash.analysis.compare import run_names
    from clash.analysis.compare.data_sets import DataSetRule
    from clash.report.compare import tables
    from clash.report.headline import comparison_headline

    rule = DataSetRule(tuple(word for word in (by_tag or "").split(",") if word), difficulty)
    if len(runs) < 2 and not rule.tags:
        raise ConfigError("a comparison needs two runs", field="RUN", hint="name a second one")
    folders = [_folder(run, out) for run in runs]
    with as_run_errors(*(folder.path for folder in folders)):
        read = [_load(folder).by_label_rule(use_labels=use_labels) for folder in folders]
        data, names = [run for run, _ in read], run_names(folders)
        findings = compute(data, names=names, every_record=every_record, rule=rule)
    record = {"folders": [str(folder.path) for folder in folders], **to_dict(findings)}
    record["labels"] = [to_dict(labels) for _, labels in read]
    headlines = comparison_headline(findings).sentences()
    return Result(findings, tuple(tables(findings)), headlines, (), record)


@speaks_python
def choose(
    run: str | Path | Run,
    *,
    max_cost_per_call: float | None = None,
    max_latency: str | float | None = None,
    latency_quantile: float = 0.5,
    worth: float | None = None,
    price: Mapping[str, float] = MappingProxyType({}),
    latency: Mapping[str, str | float] = MappingProxyType({}),
    use_labels: bool = True,
    seed: int | None = None,
    out: str | Path = _RUNS,
) -> Result[Choice]:
    """The best candidate of a run under a price and a time, and whether a dearer one is worth it.

    Args:
        run: the run.
        max_cost_per_call: the most that a response may cost, in US dollars.
        max_latency: the longest that it may take: ``"800ms"``, ``"1.5s"``, or milliseconds.
        latency_quantile: of the response times, 0.5 for the median.
        worth: what one more preferred answer is worth, in US dollars.
        price: US dollars per response by candidate, where the run has none.
        latency: times by candidate, as ``max_latency``.
        use_labels: labels that suffice decide what is better; without, the panel alone does.
        seed: of the draws; by default the run's.
        out: the folder that run ids are looked up in.

    Raises:
        ConfigError: a limit is no amount, or names no candidate.
        InputError: nothing was compared, or a limit needs a figure that no candidate has.
    """
    from clash.analysis.choice import ChoiceLimits
    from clash.analysis.choice import choose as compute
    from clash.pipeline.amounts import seconds_of
    from clash.report.choice import choice_headline, tables

    limits = ChoiceLimits(
        max_cost_per_call,
        None if max_latency is None else seconds_of(str(max_latency), "--max-latency"),
        latency_quantile,
        worth,
        dict(price),
        {name: seconds_of(str(time), "--latency") for name, time in latency.items()},
    )
    folder = _folder(run, out)
    with as_run_errors(folder.path):
        findings = compute(_load(folder), limits, use_labels=use_labels, seed=seed)
    record = {"run": str(folder.path), **to_dict(findings)}
    headlines = choice_headline(findings).sentences()
    return Result(findings, tuple(tables(findings)), headlines, (), record)


@speaks_python
def audit(
    source: VotesSource,
    published: Mapping[str, float] = MappingProxyType({}),
) -> Result[tuple[PublishedAudit, ...]]:
    """Check a published evaluation for seven flaws, and correct its headline.

    Args:
        source: a run, a folder or file of another tool's results, or votes as for
            :func:`read_votes`, of which a line may have ``verdict``, ``first``, ``prompt``,
            ``response_a`` and ``response_b`` too.
        published: published figures to check: ``concordance``, ``kappa`` and ``n``.

    Returns:
        An audit for each evaluation that the source holds.

    Raises:
        InputError: it is no evaluation, or a line is wrong.
        StatisticsError: nothing in it has a label.
    """
    from clash.pipeline.published import audit_published, audits_json, parse_figures
    from clash.report import published as report

    figures = parse_figures([f"{name}={value}" for name, value in published.items()])
    with as_file(source.path if isinstance(source, Run) else source, "votes.jsonl") as path:
        audits = tuple(audit_published(path, figures))
    tables = tuple(table for audit in audits for table in report.tables(audit, verbose=True))
    headlines = tuple(report.headline(audit) for audit in audits)
    return Result(audits, tables, headlines, (), audits_json(audits))


@overload
def explain(
    run: str | Path | Run, item: None = None, *, use_labels: bool = True, out: str | Path = _RUNS
) -> Result[Explanation | TextExplanation]: ...


@overload
def explain(
    run: str | Path | Run, item: str, *, use_labels: bool = True, out: str | Path = _RUNS
) -> Result[Walk]: ...


def explain(
    run: str | Path | Run,
    item: str | None = None,
    *,
    use_labels: bool = True,
    out: str | Path = _RUNS,
) -> Result[Explanation | TextExplanation] | Result[Walk]:
    """Explain a decision: which items and judges it rests on, and what would change it.

    Args:
        run: the run.
        item: explain this item instead: blinding, judgments, reasons, verdict, calls.
        use_labels: labels that are there are used; without, the run is read as if it had none.
        out: the folder that run ids are looked up in.

    Returns:
        ``findings.flips`` counts the verdicts that would have to change, ``findings.judges`` is
        the decision without each judge, ``findings.disagreements`` has the judges' reasons. Of a
        run on single texts, ``findings.judges`` and ``findings.texts``. Of an item,
        ``findings.judgments``, ``findings.verdict`` and ``findings.calls``.

    Raises:
        InputError: the run has no such item.
        RunFolderError: there is no such run.
    """
    from clash.pipeline.explain import explain_item, explain_run
    from clash.report import explanation as report
    from clash.report.headline import run_headline
    from clash.report.item_walk import headline, walk_tables

    folder = _folder(run, out)
    path = str(folder.path)
    if item is not None:
        steps = explain_item(folder, item)
        record = {"run": path, "item": to_dict(steps)}
        return Result(steps, tuple(walk_tables(steps)), (headline(steps),), (), record)
    result = explain_run(folder, use_labels=use_labels)
    findings = result.explanation
    return Result(
        findings,
        tuple(report.tables(findings)),
        tuple(report.headlines(findings, run_headline(result.findings))),
        (),
        {**to_dict(findings), "labels": to_dict(result.labels), "run": path},
    )


def retest_result(folders: Sequence[RunFolder], notes: tuple[str, ...] = ()) -> Result[Retest]:
    """The test-retest findings of a run and its reruns."""
    from clash.analysis.retest import retest
    from clash.report.headline import retest_headline
    from clash.report.retest import tables

    with as_run_errors(*(folder.path for folder in folders)):
        findings = retest([_load(folder) for folder in folders])
    record = {"folders": [str(folder.path) for folder in folders], **to_dict(findings)}
    headlines = retest_headline(findings).sentences()
    return Result(findings, tuple(tables(findings)), headlines, notes, record)


@speaks_python
def gate(
    run: str | Path | Run,
    thresholds: Mapping[str, Threshold] | None = None,
    *,
    baseline: str | Path | Run | None = None,
    max_drop: Mapping[str, float] | None = None,
    max_rise: Mapping[str, float] | None = None,
    on: Literal["bound", "point"] = "bound",
    allow_partial: bool = False,
    use_labels: bool = True,
    out: str | Path = _RUNS,
) -> GateResult:
    """Hold a run to thresholds: ``gate(run, {"concordance": 0.8, "cost": ("max", 2)})``.

    Args:
        run: the run.
        thresholds: by figure, a number (at least that) or ``("max", number)``.
        baseline: a run that this one must not fall behind.
        max_drop: by figure, how far it may fall against the baseline.
        max_rise: by figure, how far it may rise.
        on: hold the bound of the 95% interval to the threshold, or the estimate.
        allow_partial: a run that did not complete may pass too.
        use_labels: labels that are there are used; without, the runs are read as if they had none.
        out: the folder that run ids are looked up in.

    Raises:
        ConfigError: no threshold is given, or one is not a number.
    """
    from clash.pipeline.gate import check_run, rules_of
    from clash.report import gate as report

    if not thresholds and baseline is None:
        raise ConfigError(
            "no threshold was given, so nothing could fail",
            field="thresholds",
            hint='{"concordance": 0.8, "cost": ("max", 2)}, or a baseline',
        )
    rules = rules_of(thresholds or {})
    changes = [*rules_of(max_drop or {}, "max-drop"), *rules_of(max_rise or {}, "max-rise")]
    folder = _folder(run, out)
    earlier = None if baseline is None else _folder(baseline, out)
    with as_run_errors(*(run.path for run in (folder, earlier) if run)):
        result = check_run(
            folder,
            rules,
            changes,
            baseline=earlier,
            on=on,
            allow_partial=allow_partial,
            use_labels=use_labels,
        )
    return GateResult(
        result.passed,
        Records(result.checks),
        (report.table(folder.path.name, result.checks, result.labels),),
        result.as_json(),
    )


def _folder(run: str | Path | Run, out: str | Path) -> RunFolder:
    from clash.pipeline.sources import open_run

    return run.folder if isinstance(run, Run) else open_run(run_path(run), Path(out), _SILENT)


def _load(folder: RunFolder) -> RunData:
    from clash.analysis.rundata import RunData

    return RunData.load(folder)
