"""What the library returns: typed results that become data frames, dicts and tables in a notebook."""

from __future__ import annotations

import html
import shutil
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar, overload

from clash.analysis.decision import Decision
from clash.analysis.serialize import to_plain
from clash.errors import ConfigError, RunFolderError, as_run_errors, one_of
from clash.escape import for_xml
from clash.extras import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from clash.analysis.concordance import Concordance
    from clash.analysis.coverage import Coverage
    from clash.analysis.findings import Findings
    from clash.analysis.leaderboard import Standing
    from clash.records import Item, Judgment, Label, Response, Verdict
    from clash.report.tables import Table
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest
    from clash.votes import Votes

T = TypeVar("T")
F = TypeVar("F")


def _pandas() -> Any:  # noqa: ANN401 - the module
    require("pandas")
    return import_module("pandas")


def _plain(record: object) -> dict[str, Any]:
    """A record as plain data: a pydantic record or a dataclass."""
    if hasattr(record, "model_dump"):
        return record.model_dump(mode="json")  # type: ignore[no-any-return]
    if is_dataclass(record):
        return {f.name: to_plain(getattr(record, f.name)) for f in fields(record)}
    raise TypeError(f"{type(record).__name__} is not a record")


def _escape(text: str) -> str:
    """Text of others as HTML: no markup, and what hides or turns text written out."""
    return html.escape(for_xml(text))


def tables_html(tables: Iterable[Table]) -> str:
    """Tables as HTML for a notebook; every cell is escaped, since models wrote some of them."""
    return "".join(_table_html(table) for table in tables)


def _table_html(table: Table) -> str:
    def cells(values: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} style="text-align:{"right" if i in table.numeric else "left"}">'
            f"{_escape(value)}</{tag}>"
            for i, value in enumerate(values)
        )

    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    notes = "".join(f"<br><small>{_escape(note)}</small>" for note in table.notes)
    return (
        f"<p><b>{_escape(table.title)}</b></p>"
        f"<table><thead><tr>{cells(table.columns, 'th')}</tr></thead>"
        f"<tbody>{rows}</tbody></table><p>{notes}</p>"
    )


class Records(tuple[T, ...], Generic[T]):
    """An immutable sequence of records that becomes a data frame, dicts or an HTML table.

    ``run.verdicts[0].winner`` reads one record; ``run.verdicts.to_frame()`` has a row for each.
    """

    __slots__ = ()

    def to_dict(self) -> list[dict[str, Any]]:
        """The records as plain data; NaN becomes null."""
        return [_plain(record) for record in self]

    def to_frame(self) -> pd.DataFrame:
        """A row for each record. Fields of a nested record become columns such as ``rate.low``.

        Raises:
            ConfigError: pandas is not installed.
        """
        return _pandas().json_normalize(self.to_dict())

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Records[T]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> T | Records[T]:
        if isinstance(index, slice):
            return Records(super().__getitem__(index))
        return super().__getitem__(index)

    def _repr_html_(self) -> str:
        from clash.report.tables import Table

        rows = [_flat(record) for record in self.to_dict()]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        body = [[_cell(row.get(name)) for name in columns] for row in rows[:20]]
        notes = [f"20 of {len(rows)} records"] if len(rows) > 20 else []
        return tables_html([Table(f"{len(rows)} records", columns, body, frozenset(), notes)])


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, part in value.items():
        if isinstance(part, dict):
            flat |= _flat(part, f"{prefix}{name}.")
        else:
            flat[prefix + name] = part
    return flat


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


@dataclass(frozen=True, repr=False, eq=False)  # findings hold arrays, which compare by element
class Result(Generic[F]):
    """The result of a statistical function.

    Attributes:
        findings: the typed result of the analysis.
        tables: the tables that the command of the same name prints.
        headlines: its sentences.
        warnings: what to beware of.
        record: what :meth:`to_dict` returns.
    """

    findings: F
    tables: tuple[Table, ...]
    headlines: tuple[str, ...]
    warnings: tuple[str, ...]
    record: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """What the command of the same name prints with ``--json``."""
        return self.record

    def to_frame(self, table: int | str = 0) -> pd.DataFrame:
        """One of the tables as a data frame, by number or title.

        Raises:
            ConfigError: pandas is not installed, or there is no such table.
        """
        titles = [t.title for t in self.tables]
        if isinstance(table, str):
            if table not in titles:
                raise ConfigError(f"no table {table!r}", hint=one_of(table, titles))
            table = titles.index(table)
        if not -len(titles) <= table < len(titles):
            raise ConfigError(f"no table {table}", hint=f"there are {len(titles)}")
        selection = self.tables[table]
        return _pandas().DataFrame(selection.rows, columns=selection.columns)

    def __repr__(self) -> str:
        words = "; ".join(self.headlines) or "; ".join(table.title for table in self.tables)
        return f"<clash.Result {type(self.findings).__name__}: {words}>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{_escape(line)}</p>" for line in self.headlines)
        warnings = "".join(f"<p>⚠ {_escape(line)}</p>" for line in self.warnings)
        return lines + tables_html(self.tables) + warnings


@dataclass(frozen=True, repr=False)
class GateResult:
    """Whether a run holds its thresholds; true where it does.

    Attributes:
        passed: whether all thresholds hold.
        checks: one for each threshold, with the figure and whether it passed.
        tables: the table that ``clash gate`` prints.
        record: what :meth:`to_dict` returns.
    """

    passed: bool
    checks: Records[Any]
    tables: tuple[Table, ...]
    record: dict[str, Any]

    def __bool__(self) -> bool:
        return self.passed

    def to_dict(self) -> dict[str, Any]:
        """What ``clash gate --json`` prints."""
        return self.record

    def to_frame(self) -> pd.DataFrame:
        """A row for each threshold."""
        return self.checks.to_frame()

    def __repr__(self) -> str:
        failures = [check.message for check in self.checks if not check.passed]
        return f"<clash.GateResult {'; '.join(failures) or 'passed'}>"

    def _repr_html_(self) -> str:
        return tables_html(self.tables)


@dataclass(frozen=True)
class RunDecision(Decision):
    """The decision of a run, and how every screen and page states it.

    Attributes:
        headline: the answer, in at most 90 characters; ``sentence`` has all its figures.
        contradiction: what human labels, or a plain rule, say against it; null where nothing does.
    """

    headline: str = ""
    contradiction: str | None = None

    def _repr_html_(self) -> str:
        against = f"<p>{_escape(self.contradiction)}</p>" if self.contradiction else ""
        return f"<p><b>{_escape(self.headline)}</b></p>{against}"


class Run:
    """A finished run: its folder, what it found, and its records.

    ``run.decision.headline``, ``run.leaderboard.to_frame()``, ``run.report("report.html")``.

    Attributes:
        folder: the run folder.
        exit_code: that of the command line: 0, 3 incomplete, 4 refused by a provider.
        warnings: notes of the run, and what is not trusted about it.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        exit_code: int = 0,
        summary: dict[str, Any] | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.exit_code = exit_code
        self.warnings = tuple(warnings)
        self._summary = summary

    @property
    def path(self) -> Path:
        """The run folder's path."""
        return self.folder.path

    @property
    def id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.folder.path.name

    @cached_property
    def manifest(self) -> Manifest:
        """Configuration, seeds, versions, counts and hashes."""
        return self.folder.manifest()

    @property
    def status(self) -> str:
        """``complete``, ``partial``, ``failed`` or ``running``."""
        return self.manifest.status

    @cached_property
    def _data(self) -> Any:  # noqa: ANN401 - RunData, which is imported on use
        from clash.analysis.rundata import RunData

        with as_run_errors(self.path):
            return RunData.load(self.folder)

    @cached_property
    def findings(self) -> Findings:
        """Everything in the report, recomputed from the records."""
        from clash.analysis.findings import compute_findings

        with as_run_errors(self.path):
            return compute_findings(self._data)

    @property
    def decision(self) -> RunDecision:
        """The decision, with the headline that screens and pages show."""
        from clash.report.headline import run_headline

        headline = run_headline(self.findings)
        facts = vars(self.findings.decision)
        return RunDecision(**facts, headline=headline.text, contradiction=headline.contradiction)

    @property
    def winner(self) -> str | None:
        """The candidate that is significantly ahead of all others; null where none is."""
        return self.findings.decision.winner

    @property
    def leaderboard(self) -> Records[Standing]:
        """The candidates, best first, with intervals."""
        return Records(self.findings.leaderboard)

    @property
    def coverage(self) -> Coverage:
        """How many items were decided, tied, abstained or failed."""
        return self.findings.coverage

    @property
    def concordance(self) -> Concordance | None:
        """Agreement with human labels; null where there are none."""
        return self.findings.concordance

    @property
    def cost_usd(self) -> float:
        """What the calls cost, in US dollars."""
        return self.findings.cost_usd

    @cached_property
    def items(self) -> Records[Item]:
        """The prompts."""
        return Records(self._data.items)

    @cached_property
    def responses(self) -> Records[Response]:
        """The candidates' responses."""
        return Records(self._data.responses)

    @cached_property
    def judgments(self) -> Records[Judgment]:
        """What each judge answered, by blinded label."""
        return Records(self._data.judgments)

    @cached_property
    def verdicts(self) -> Records[Verdict]:
        """The aggregated verdict on each item."""
        return Records(self._data.verdicts)

    @cached_property
    def labels(self) -> Records[Label]:
        """People's decisions."""
        return Records(self._data.labels)

    def votes(self) -> Votes:
        """The votes of the judges on pairs of responses, as arrays."""
        from clash.votes.from_run import run_votes

        with as_run_errors(self.path):
            return run_votes(self.folder)

    def report(self, path: str | Path | None = None) -> Path:
        """The HTML report; with ``path`` a copy of it there.

        Raises:
            RunFolderError: the run has no report yet.
        """
        from clash.files import run_files
        from clash.store import layout

        page = self.path / layout.REPORT_HTML
        if not run_files.is_file(page):
            raise RunFolderError(f"{page}: is missing\n  fix: clash.resume({str(self.path)!r})")
        if path is None:
            return page
        if (self.path / layout.REPORT_DATA).exists():
            raise RunFolderError(
                f"{page}: needs the data file beside it and cannot be copied alone"
                "\n  fix: copy the run folder, or open the page where it is"
            )
        return Path(shutil.copyfile(page, path))

    def card(self, path: str | Path, *, dark: bool = False) -> Path:
        """Write the verdict card: headline, interval chart and evidence in 1200 x 630 pixels.

        Args:
            path: a file that ends in ``.svg``, or in ``.png``, which needs the extra ``plots``.
            dark: on a dark ground.

        Raises:
            ConfigError: another ending, or matplotlib is not installed.
        """
        from clash.report.card import check_card_path, verdict_card, write_card

        to = Path(path)
        check_card_path(to)
        write_card(
            verdict_card(self.findings, self.manifest.prompts), to, "dark" if dark else "light"
        )
        return to

    def to_dict(self) -> dict[str, Any]:
        """What ``clash eval --json`` prints."""
        if self._summary is None:
            from clash.pipeline.finish import RunResult, summary

            self._summary = summary(
                RunResult(self.folder, self.manifest, self.findings, self.exit_code, None)
            )
        return self._summary

    def to_frame(self) -> pd.DataFrame:
        """The leaderboard, a row for each candidate."""
        return self.leaderboard.to_frame()

    def _repr_html_(self) -> str:
        from clash.report.headline import run_headline
        from clash.report.sections import report_tables

        answer, *more = run_headline(self.findings).sentences()
        headline = f"<p><b>{_escape(answer)}</b></p>"
        headline += "".join(f"<p>{_escape(line)}</p>" for line in more)
        tables = [table for table in report_tables(self.findings) if table.brief]
        path = f"<p><small>{_escape(str(self.path))}</small></p>"
        return headline + tables_html(tables) + path

    def __repr__(self) -> str:
        return f"<clash.Run {self.id}: {self.status}>"
