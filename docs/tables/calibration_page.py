"""docs/tables/calibration.md and the summary in docs/statistics.md, from figures that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.stats.selection.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
PAGE, STATISTICS = HERE / "calibration.md", HERE.parent / "statistics.md"
BEGIN, END = "<!-- calibration: begin -->", "<!-- calibration: end -->"
SHORT = {"balanced_accuracy": "balanced", "mse": "MSE", "nll": "NLL", "ece": "ECE"}
HEAD = """# Calibration on public panels

Written by `docs/tables/calibration.py`. Random splits by source; each chooses and fits on its labels
and is measured on the rest. A label is of a source, whatever its copies. Errors are standard errors over splits. Families: each with its own best
path and prefix by validation. ECE: of what is selected over all test blocks together, of families
block by block, which is larger by the noise of few rows. The oracle has the least test error of the whole menu in hindsight:
nobody can deploy it. *weight*: its mean weight in what is deployed.
"""
COLD = """
Test squared error with so few labels, each panel in turn the new one. *task prior*: one-coin, the
paper's. *pooled prior*: the family that was best on the other panels with as many labels. *naive*:
the best of the menu by cross-validation. *guarded*: the same, where the intervals of one standard
error part from the prior's. *average*: what `clash calibrate` does. One path, prefixes 1, 2, 3, 5 and
all, without the Ising model.
"""
CIRCULAR = {
    "mtbench-human": "The label is the majority of these very votes, so that this shows what the"
    " families do with 65 judges and gaps, and nothing of how right people are; it is in no summary."
}


def shown(figure: Sequence[float], digits: int = 3) -> str:
    """Mean and standard error."""
    mean, se = (float("nan") if x is None else x for x in figure)
    if np.isnan(mean):
        return "–"
    return f"{mean:.{digits}f}" + ("" if np.isnan(se) else f" ± {se:.{digits}f}")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Markdown."""
    rule = ["---"] * left + ["---:"] * (len(columns) - left)
    lines = ["| " + " | ".join(row) + " |" for row in (columns, rule, *rows)]
    return "\n".join(lines)


def section(name: str, results: dict[str, Any]) -> str:
    """One panel."""
    last = list(results["curve"])[-1]
    final = results["curve"][last]
    metrics = Metrics.names()
    lines = [("**selected**", final["selected"], "", ""), ("majority", final["majority"], "", "")]
    families_by_error = sorted(results["families"].items(), key=lambda pair: pair[1]["mse"][0])
    lines += [(f, x, f"{x['k']:.1f}", f"{x['weight']:.0%}") for f, x in families_by_error]
    rows = [[f, k, *(shown(x[m]) for m in metrics), w] for f, x, k, w in lines]
    oracle = ["–" if m != "mse" else shown(final["oracle"]) for m in metrics]
    rows.append(["*oracle, not deployable*", "", *oracle, ""])
    head = ["", "K", *(SHORT.get(m, m) for m in metrics), "weight"]
    sentence = (
        f"{results['target']} target, {results['judges']} judges, {results['labelled']} labelled rows of"
        f" {results['sources']} sources, {results['splits']} splits. {CIRCULAR.get(name, '')}"
    ).strip()
    return "\n\n".join(
        [
            f"## {name}",
            sentence,
            f"With {last} labels:",
            table(head, rows),
            "By labels (accuracy; then test squared error):",
            table(
                [
                    "labels",
                    "selected",
                    "majority",
                    "selected",
                    "majority",
                    "table",
                    "scalar",
                    "table - scalar",
                ],
                [curve_row(n, x) for n, x in results["curve"].items()],
                0,
            ),
        ]
    )


def curve_row(labels: str, x: dict[str, Any]) -> list[str]:
    """A budget of the learning curve."""
    gap, se = x["against"]["gap"]
    return [
        labels,
        shown(x["selected"]["accuracy"]),
        shown(x["majority"]["accuracy"]),
        shown(x["selected"]["mse"], 4),
        shown(x["majority"]["mse"], 4),
        shown(x["against"]["table"], 4),
        shown(x["against"]["scalar"], 4),
        "–" if np.isnan(gap) else f"{gap:+.4f} [{gap - 1.96 * se:+.4f}, {gap + 1.96 * se:+.4f}]",
    ]


def ablation(results: dict[str, Any]) -> str:
    """Table 10: prefix against family, at the largest budget of each panel."""
    names = ["table K=all", "table", "scalar K=all", "scalar", "full K=all", "full"]
    rows = []
    for name, panel in results.items():
        last = list(panel["curve"])[-1]
        against_ = panel["curve"][last]["against"]
        rows.append([name, last, *(f"{against_[key][0]:.4f}" for key in names)])
    return table(["panel", "labels", *names], rows)


def verdict(results: dict[str, Any]) -> str:
    """Table 11 in a sentence."""
    cells = [x["against"]["gap"] for panel in results.values() for x in panel["curve"].values()]
    cells = [(gap, se) for gap, se in cells if not np.isnan(gap)]
    clear = [gap for gap, se in cells if abs(gap) > 1.96 * se]
    return (
        f"Over {len(results)} panels and {len(cells)} pairs of panel and budget, the scalar family that"
        f" validation chooses has less test error than the table that it chooses in"
        f" {sum(gap > 0 for gap, _ in cells)}; the paired 95% interval over splits excludes zero in"
        f" {len(clear)}, {sum(gap > 0 for gap in clear)} of them for the scalar family."
    )


def cold_start(results: dict[str, Any]) -> str:
    """Table 21."""
    ways = [
        "majority",
        "task prior",
        "pooled prior",
        "naive",
        "guarded, task",
        "guarded, pooled",
        "average",
        "average, pooled",
    ]
    rows = [
        [name, labels, x["prior"], *(f"{x[way][0]:.4f}" for way in ways)]
        for labels, panels in results.items()
        for name, x in panels.items()
    ]
    for labels, panels in results.items():
        ratio = [
            np.mean([np.log(x[way][0] / x["majority"][0]) for x in panels.values()]) for way in ways
        ]
        rows.append(
            ["*all, against majority*", labels, "", *(f"{np.expm1(r):+.1%}" for r in ratio)]
        )
    return table(["panel", "labels", "pooled prior is", *ways], rows, 3)


def summary(results: dict[str, Any]) -> str:
    """What docs/statistics.md shows: one line a panel at 100 labels, or the nearest budget."""
    rows = []
    for name, panel in results.items():
        labels = min(panel["curve"], key=lambda n: abs(int(n) - 100))
        x = panel["curve"][labels]
        families = {f: v for f, v in panel["families"].items() if f != "majority"}
        best = min(families, key=lambda f: families[f]["mse"][0])
        gain = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * g for g in x["gain"]))
        rows.append(
            [
                name,
                f"{panel['target']}, {panel['judges']}",
                labels,
                f"{100 * x['majority']['accuracy'][0]:.1f}",
                f"{100 * x['selected']['accuracy'][0]:.1f}",
                gain,
                shown([*x["majority"]["mse"][:1], float("nan")]),
                shown(x["selected"]["mse"]),
                shown(x["oracle"]),
                f"{x['selected']['ece'][0]:.3f} ({x['chance']:.3f})",
                best,
            ]
        )
    head = [
        "panel",
        "target, judges",
        "labels",
        "majority %",
        "selected %",
        "gain, points",
        "MSE majority",
        "MSE selected",
        "oracle (not deployable)",
        "ECE (by chance)",
        "least MSE with all labels",
    ]
    return "\n\n".join([verdict(results), table(head, rows, 2)])


def write(results: dict[str, Any], order: Sequence[str]) -> None:
    """The page, and the summary in docs/statistics.md."""
    panels = {name: results["panels"][name] for name in order if name in results["panels"]}
    counted_panels = {name: panel for name, panel in panels.items() if name not in CIRCULAR}
    parts = [
        HEAD.strip(),
        "## Scalar against table",
        verdict(counted_panels),
        ablation(counted_panels),
    ]
    if results["cold"]:
        parts += ["## Cold start", COLD.strip(), cold_start(results["cold"])]
    parts += [section(name, panel) for name, panel in panels.items()]
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    text = STATISTICS.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    body = f"{BEGIN}\n{summary(counted_panels)}\n{END}"
    STATISTICS.write_text(before + body + after, encoding="utf-8")
