"""Writes docs/tables/pressure.md: tables 17, 26 and 27 of the finite-calibration paper on public panels.

    python docs/tables/pressure.py DATA [--splits 10] [--seed 0]

DATA holds files that end in .votes.jsonl.gz. Of a panel with more rows, a random 1,500 are used. The
sentences that docs/reproduction.md quotes are kept in pressure.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from calibration import PANELS
from clash.errors import ClashError
from clash.report.formats import number
from clash.report.markdown import render_table
from clash.report.studies import checks_table
from clash.reproduction.studies.fcps_study import FcpsPlan, fcps_study
from clash.reproduction.studies.pressure import pressure_checks
from clash.votes import read_votes

if TYPE_CHECKING:
    from clash.reproduction.studies.fcps_records import FcpsStudy, PressureChecks

HERE = Path(__file__).resolve().parent
MOST = 1500
CIRCULAR = ("mtbench-human",)
"""Its labels are the majority of its votes."""
HEAD = """# Sparse cells, risk and winner on public panels

Written by `python docs/tables/pressure.py DATA --splits {splits}`: tables 17, 26 and 27 of the
finite-calibration paper for {n} public panels together, from the splits of `clash study fcps`, which
prints them for one. Of more than {most} rows, a random {most} are used.
"""


def studies(data: Path, splits: int, seed: int) -> dict[str, FcpsStudy]:
    """Each panel whose labels are enough."""
    results = {}
    for name, (stem, filters) in PANELS.items():
        if name in CIRCULAR:
            continue
        (file,) = sorted(data.glob(f"{stem}*.votes.jsonl*"))
        try:
            votes = read_votes(file, **filters)
            results[name] = fcps_study(votes, FcpsPlan(splits, most_items=MOST), seed)
        except ClashError as refusal:
            print(f"{name}: {str(refusal).splitlines()[0]}", flush=True)
            continue
        print(name, flush=True)
    return results


def sentences(checks: PressureChecks) -> dict[str, str]:
    """What the rows of docs/reproduction.md quote."""
    slopes = (checks.by_pressure, checks.by_unseen)
    slope_words = " and ".join(f"{s.estimate:.3f} (s.e. {s.clustered_se:.3f})" for s in slopes)
    score = checks.score
    auc = "one family always wins" if score is None else (
        f"AUC {score.auc.estimate:.3f} [{score.auc.low:.3f}, {score.auc.high:.3f}],"
        f" p {score.p:.3f} within clusters"
    )  # fmt: skip
    return {
        "proxy": auc,
        "pressure": slope_words,
        "correlations": f"mean {checks.correlation:.3f}, {checks.positive:.0%} of"
        f" {checks.groups} groups positive",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    results = studies(options.data, options.splits, options.seed)
    all_checks = pressure_checks(
        [study.points for study in results.values()],
        [study.splits_at for study in results.values()],
        options.seed,
    )
    parts = [HEAD.format(splits=options.splits, n=len(results), most=MOST).strip()]
    parts.append(render_table(checks_table(all_checks)))
    rows = [
        [name, str(c.groups), number(c.correlation, "+.3f"), number(c.positive, ".2f"),
         number(c.by_pressure.estimate, "+.3f"), number(c.by_unseen.estimate, "+.3f")]
        for name, c in ((name, study.checks) for name, study in results.items())
    ]  # fmt: skip
    columns = ["panel", "groups", "mean correlation", "positive", "slope, H / n", "slope, unseen"]
    lines = [columns, ["---"] * len(columns), *rows]
    parts.append("## Panel by panel\n\n" + "\n".join(f"| {' | '.join(r)} |" for r in lines))
    (HERE / "pressure.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (HERE / "pressure.json").write_text(json.dumps(sentences(all_checks), indent=1) + "\n")


if __name__ == "__main__":
    main()
