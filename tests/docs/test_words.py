"""Plain words: phrases that a reader has to read twice stand in no message, help, page or document.

The list is short on purpose; `typos` and `proselint` check spelling and style of the documents in CI.
A phrase that was replaced once is added here, with what to write instead.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

INSTEAD = {
    "how sure may": "how confident can I be",
    "baseline judges sit": "using the built-in baseline judges",
    "no language model": "non-LLM baseline",
    "mend:": "fix:",
    "is what it says it is": "verified: all 11 checks passed",
    "not surely ahead": "ahead, but the difference is not significant",
    "which is {n}% of the points": "a {n}% win rate",
    "foresee": "predict",
    "names that retire": "models being retired",
    "models that retire": "models being retired",
    "who would say what people say": "agreement with human labels, by judge",
    "texts that speak to the judge": "possible prompt injections",
    "speaks to the judge": "possible prompt injection",
    "does not hold is a failed call": "calls missing from the recording fail",
    "takes for the truth": "shared errors are mistaken for the truth",
    "nothing that shows": "no measurable contribution",
    "against any continuum": "two classes fit better than a continuous trait",
    "say which so many": "suggest which N items",
    "the menu together": "weighted average of all methods",
    "stands twice": "appears twice",
    "stand twice": "appear twice",
    "worth its ballots": "worth keeping",
    "computed anew": "recomputed",
    "broke off": "was interrupted",
    "breaks off": "ends inside",
    "commoner side": "the more common side",
    "oftener": "more often",
    "bought twice": "paid for twice",
    "bought again": "asked for again",
    "likeness of meaning": "similarity of meaning",
    "nothing listens at": "no server is running at",
    "records do not fit together": "the records are inconsistent",
    "is no model": "is not a model",
    "is no judge": "is not a judge",
    "is no record": "is not a record",
    "not the one of this page": "not the code of this page",
    "may take it back": "may retract it",
    "nothing usable of": "no usable judgment by",
    "is not what the records": "does not follow from the records",
    "ties have no place": "this model cannot use ties",
    "short of its tolerance": "without converging",
    "count for nobody": "are not counted",
    "counts for nobody": "is not counted",
    "refused for good:": "cannot be used:",
    "do not know whom a candidate met": "ignore which opponents a candidate met",
    "hang on one judge": "one judge decides",
    "speaks against the hypothesis": "is evidence against the hypothesis",
    "leave no ranking of any weight": "give no ranking a weight above 0",
    "what labels buy": "effect of more labels",
    "does adding a judge pay": "does another judge help",
    "lines of its own": "extra lines",
    "1 runs": "1 run",
    "1 items": "1 item",
    "1 judges": "1 judge",
}
"""What is not written -> what is."""

PATTERN = re.compile(
    "|".join(rf"(?<![\w.]){re.escape(p)}".replace(r"\{n\}", r"\d+") for p in INSTEAD), re.IGNORECASE
)


def prose() -> dict[str, str]:
    """Everything that a user reads, by where it stands."""
    texts = {}
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("configs/**/*.yaml")]
    pages += [*ROOT.glob("src/clash/**/*.j2"), *ROOT.glob("src/clash/**/*.js")]
    pages += [*ROOT.glob("src/clash/**/*.toml"), *ROOT.glob("docs/notebooks/*.ipynb")]
    for path in pages:
        texts[str(path.relative_to(ROOT))] = path.read_text(encoding="utf-8")
    for path in ROOT.glob("src/clash/**/*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts[f"{path.relative_to(ROOT)}:{node.lineno}"] = node.value
    return texts


def offences(text: str) -> list[str]:
    return PATTERN.findall(" ".join(text.split()))


def test_no_phrase_of_the_list_is_left():
    remaining = {where: phrases for where, text in prose().items() if (phrases := offences(text))}
    assert not remaining, f"see INSTEAD in {__file__} for what to write: {remaining}"


@pytest.mark.parametrize("phrase", INSTEAD)
def test_each_phrase_is_recognised_across_lines(phrase):
    wrapped_text = "\n    ".join(f"So: {phrase}.".replace("{n}", "50").split())
    assert offences(wrapped_text)
    assert not offences(INSTEAD[phrase])
