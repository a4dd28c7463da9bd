"""How often what is no vote is read as one, and how often a vote is lost.

    python benchmarks/parsing.py [--show N]

Reads a generated corpus (tests/collect/corpus.py): ways of not answering, each with its one right
outcome, and honest answers that are deformed. Prints, for each way of asking for JSON, the false
votes and the lost answers with exact (Clopper-Pearson) 95% intervals. The cases are generated, not
drawn from what judges write, so the rates are of this corpus; the intervals say what as many cases
without a failure can show. Offline, in seconds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from scipy.stats import binomtest  # noqa: TID253 - a script

from collect.corpus import FORMATS, honest_answers, not_answers, outcome, with_a_remark


def rate(cases, is_one):
    """Count, share and interval, in words."""
    if not cases:
        return "–"
    k = sum(map(is_one, cases))
    bounds = binomtest(k, len(cases)).proportion_ci(method="exact")
    return f"{k}/{len(cases)} = {k / len(cases):.2%} [{bounds.low:.2%}, {bounds.high:.2%}]"


def is_false(case):
    """Read as a vote that the judge did not give."""
    return outcome(case).ranking not in (None, case.ranking)


def is_lost(case):
    """Read as no vote, where the judge gave one."""
    return outcome(case).ranking is None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, default=5, help="How many failures to print.")
    show = parser.parse_args().show
    groups = {
        "no answer": not_answers(),
        "honest, deformed": honest_answers(),
        "honest, with a remark after it": with_a_remark(),
    }
    print(f"{'cases':32}{'format':9}{'false votes':38}lost answers")
    failures = []
    for name, cases in groups.items():
        for form in (*FORMATS, "all"):
            best_cases = [case for case in cases if form in (case.format, "all")]
            votes = [case for case in best_cases if case.ranking is not None]
            print(f"{name:32}{form:9}{rate(best_cases, is_false):38}{rate(votes, is_lost)}")
        failures += [c for c in cases if is_false(c) or (c.ranking is not None and is_lost(c))]
    for case in failures[:show]:
        print(f"\n{case.form} ({case.format}): {outcome(case).error}\n{case.text}")


if __name__ == "__main__":
    main()
