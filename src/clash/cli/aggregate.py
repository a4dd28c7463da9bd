from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import AsJson, Seed
from clash.cli.voting import Decisive, Judges, Presentation, Subset, VotesArgument

if TYPE_CHECKING:
    from clash.analysis.aggregation import Aggregation
    from clash.analysis.calibration.votes import OnVotes
    from clash.analysis.encode import Votes

DEFAULT = "auto,majority,one-coin,dawid-skene,ising-shared,ising-class,ising-family,factor"


def aggregate(
    source: VotesArgument,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="Methods, comma separated, or `all`.",
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
        str,
        typer.Option(
            "--ties", help="A tied vote is `half` a vote each, `missing`, or an `outcome`."
        ),
    ] = "half",
    copies: Annotated[
        str,
        typer.Option("--copies", help="Both orders and repeats of an item: `merge` or `separate`."),
    ] = "merge",
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Scores from here on count as side 1.")
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
        Path | None, typer.Option("--out", "-o", help="JSONL: a line for each item and method.")
    ] = None,
    runs: Annotated[
        Path, typer.Option("--runs", help="Folder that run ids are looked up in.")
    ] = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Aggregate votes or a run again, offline, by several methods side by side."""
    from clash.analysis.aggregation import aggregate as run
    from clash.analysis.aggregation import aggregate_outcomes
    from clash.cli.common import print_json, stdout
    from clash.cli.voting import read
    from clash.report import aggregation as report
    from clash.report import calibration
    from clash.report.terminal import show_table

    votes = read(source, runs, judges, subset, presentation, decisive=decisive)
    names = _names(method)
    applied = _calibrated(calibrator, votes, max_risk)
    rows = _choice(copies, "--copies", "merge", "separate")
    if _choice(ties, "--ties", "half", "missing", "outcome") == "outcome":
        found = aggregate_outcomes(votes, names, copies=rows)
    else:
        found = run(
            votes,
            names,
            seed=42 if seed is None else seed,
            ties=_choice(ties, "--ties", "half", "missing"),
            copies=rows,
            use_labels=use_labels,
            threshold=threshold,
        )
    written = None if out is None else _write(out, found, applied)
    if as_json:
        told = report.as_json(found)
        if applied is not None:
            told["methods"]["calibrated"] = calibration.applied_json(applied)
        print_json({"source": source, **told, "written": written})
        return
    show_table(stdout(), report.table(found))
    stdout().print(f"\nuse {found.selected}: {found.reason}", soft_wrap=True)
    if applied is not None:
        stdout().print(calibration.applied_line(applied), soft_wrap=True)
    for warning in (*found.warnings, *(() if applied is None else applied.warnings)):
        stdout().print(f"warning: {warning}", style="yellow", soft_wrap=True)
    if written:
        stdout().print(f"wrote {written}", soft_wrap=True)


def _names(method: str) -> list[str]:
    from clash.analysis.aggregation import known_methods

    if method.strip() == "all":
        return known_methods()
    return [name.strip() for name in method.split(",") if name.strip()]


def _calibrated(file: Path | None, votes: Votes, max_risk: float | None) -> OnVotes | None:
    """What a calibrator makes of the votes.

    Raises:
        InputError: it is of another panel.
    """
    from clash.errors import ConfigError

    if max_risk is not None and not 0 < max_risk < 1:
        raise ConfigError("a risk lies between 0 and 1", field="--max-risk", mend="0.05")
    if file is None:
        if max_risk is not None:
            raise ConfigError("needs --calibrator", field="--max-risk")
        return None
    from clash.analysis.calibration.calibrator import read_calibrator
    from clash.analysis.calibration.votes import on_votes

    return on_votes(read_calibrator(file), votes, max_risk, str(file))


def _write(path: Path, found: Aggregation, applied: OnVotes | None) -> str:
    """A line for each item and method: ``p`` of the first side, and the winner it implies."""
    import json

    winners = {1.0: "A", 0.0: "B", 0.5: "tie"}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for result in found.methods:
            if result.p is None or result.verdict is None:
                continue
            rows = zip(found.items, result.p.tolist(), result.verdict.tolist(), strict=True)
            for item, p, verdict in rows:
                line = {"item": item, "method": result.method, "p": round(p, 9)}
                line["winner"] = winners[verdict]
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        for line in () if applied is None else applied.lines():
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return str(path)


def _choice(text: str, field: str, *known: str) -> Any:  # noqa: ANN401 - a Literal
    from clash.errors import ConfigError

    if text not in known:
        raise ConfigError(f"no choice {text!r}", field=field, mend=" or ".join(known))
    return text
