"""Why a run decides as it does, as sentences and tables."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from clash.analysis.single_text.explanation import TextExplanation
from clash.escape import clip
from clash.pages.names import short_names, shorten
from clash.report import text_explanation
from clash.report.formats import DASH, first_names, number, p_cell, percent, plural
from clash.report.screens import blank_screen
from clash.report.tables import MOST_ROWS, Table, cut_note, with_rows
from clash.report.text_explanation import MOST_TELLING, REASON_LENGTH, ScreenParts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.explanation import Explanation, Flip
    from clash.analysis.explanation.disagreements import LongerChoices, Opinion, TellingDisagreement
    from clash.analysis.explanation.without import Omission
    from clash.report.headline import Headline
    from clash.report.screens import Screen
    from clash.stats.intervals import Interval
    from clash.votes import LabelUse

_MOST_DISAGREEMENTS = 10
_FEW_NAMES = 3
_FEWEST_NAMES = 2
_NAME_WIDTH = 22
_ITEM_WIDTH = 18
_ITEMS_FILE = "`clash explain RUN --json`"


def headlines(explanation: Explanation | TextExplanation, headline: Headline) -> list[str]:
    """The answer of the run, what labels say against it, and how many verdicts would change it."""
    if isinstance(explanation, TextExplanation):
        return text_explanation.headlines(explanation, headline)
    lines = [headline.text, headline.contradiction or headline.evidence]
    lines += _panel_sentences(_change_sentences(explanation), headline)
    return [line for line in lines if line]


def demo_lesson(choices: LongerChoices) -> list[str]:
    """What happened in the demo, why, and what to do: its judges count words."""
    if choices.longer <= choices.items / 2:
        return []
    count = "all" if choices.longer == choices.items else f"{choices.longer} of"
    return [
        f"Padding fooled these judges, which only count words: on {count} {choices.items} prompts"
        " where people put another answer first, the panel's choice is longer. Labels showed"
        " it, votes cannot: check a panel against people before you trust it."
    ]


def explanation_screen(
    explanation: Explanation | TextExplanation,
    headline: Headline,
    width: int | None,
    run: str,
    labels: LabelUse | None = None,
) -> Screen:
    """The answer, what would change it, and the most telling disagreements, in 20 lines.

    Args:
        explanation: of the run.
        headline: of the run.
        width: of the terminal; null where there is none.
        run: how the commands of the next steps name it.
        labels: what became of them.
    """
    if isinstance(explanation, TextExplanation):
        parts = text_explanation.screen_parts(explanation)
    else:
        parts = _screen_parts(explanation)
    screen = blank_screen(width)
    screen.headline(replace(headline, evidence="", notes=()))
    for sentence in _panel_sentences(parts.sentences, headline):
        screen.sentence(sentence)
    screen.add()
    for label, text in parts.facts:
        screen.fact(label, text)
    if labels is not None and (labels.labelled or labels.n_unknown_items):
        screen.fact("Labels", labels.sentence)
    command = f"clash explain {run} -v"
    if parts.telling:
        screen.add()
        screen.sentence(f"Most telling of {plural(parts.n_disagreements, 'disagreement')}", "bold")
        for item_id, text in parts.telling:
            screen.fact(shorten(item_id, _ITEM_WIDTH), text)
        command = f"clash explain {run} --item {shlex.quote(parts.telling[0][0])}"
    elif parts.is_undecided and headline.next_steps:
        command = headline.next_steps[0].command
    screen.add()
    screen.add((f"Next    {command}", ""))
    return screen


def _screen_parts(explanation: Explanation) -> ScreenParts:
    is_validation = explanation.kind == "validate" and explanation.agreement is not None
    facts = (_people_facts if is_validation else _facts)(explanation)
    lines, names = explanation.disagreements, _ShortNames.of(explanation)
    telling = []
    for line in lines[:MOST_TELLING]:
        prompt = f"“{clip(line.prompt, REASON_LENGTH)}”" if line.prompt.strip() else ""
        text = f"{_sides(line, names)}. {_best_reason(line, names) or prompt}".rstrip()
        telling.append((line.item_id, text))
    is_undecided = explanation.leader is None
    return ScreenParts(_change_sentences(explanation), facts, telling, len(lines), is_undecided)


class _ShortNames(dict[str, str]):
    """Candidates and judges of an explanation as they are shown; other words stay as they are."""

    def __missing__(self, name: str) -> str:
        return name

    @classmethod
    def of(cls, explanation: Explanation) -> _ShortNames:
        candidates = [explanation.leader, explanation.rival]
        candidates += [line.name for line in explanation.best_items]
        judges = [line.name for line in explanation.judges]
        for line in explanation.disagreements:
            judges += [opinion.judge for opinion in line.opinions]
            candidates += [o.reason.candidate for o in line.opinions if o.reason is not None]
        return cls(
            short_names([name for name in candidates if name], _NAME_WIDTH)
            | short_names(judges, _NAME_WIDTH)
        )


def _change_sentences(explanation: Explanation) -> list[str]:
    """What would change the answer: of a validation its agreement, else its decision."""
    n = explanation.changes_to_longest
    if explanation.kind != "validate" or explanation.agreement is None:
        return _flip_sentences(explanation) if explanation.leader is not None else []
    if not n:
        return []
    items = plural(explanation.n_labelled, "item")
    consequence = "make the panel no better than picking the longest answer"
    return [f"Wrong instead of right on {n} of {items} would {consequence}."]


def _panel_sentences(sentences: Sequence[str], headline: Headline) -> list[str]:
    """Sentences about verdicts, which say whose they are where the answer is people's."""
    if not headline.by_people:
        return list(sentences)
    return [f"By the panel alone: {text[0].lower()}{text[1:]}" for text in sentences]


def _flip_sentences(explanation: Explanation) -> list[str]:
    names = _ShortNames.of(explanation)
    level = explanation.flip("change", "level")
    significance = explanation.flip("change", "significant", "not significant")
    changes: list[tuple[Flip, str]] = []
    if level is not None and level.items:
        target = "" if level.rival == explanation.rival else f" over {names[level.rival or DASH]}"
        changes.append((level, f"end the lead{target}"))
    if significance is not None and significance.items is not None:
        is_decided = significance.conclusion == "not significant"
        consequence = f"make {names[explanation.leader or DASH]} the clear winner"
        undone = "make the difference insignificant"
        changes.append((significance, undone if is_decided else consequence))
    if not changes:
        items = plural(explanation.n_items, "item")
        return [f"No change of verdicts can decide it: {items} cannot show a difference."]
    (first, consequence), *further = sorted(changes, key=lambda change: change[0].items or 0)
    start = (
        f"Changed verdicts on {_count(first)} of {explanation.n_items} items would {consequence}"
    )
    return ["; ".join([start, *(f"on {_count(flip)}, {then}" for flip, then in further)]) + "."]


def _count(flip: Flip) -> str:
    return f"{'' if flip.exact else 'at most '}{flip.items}"


def tables(explanation: Explanation | TextExplanation) -> list[Table]:
    """Everything: the facts, each omission, the items that one judge decides, disagreements."""
    if isinstance(explanation, TextExplanation):
        return text_explanation.tables(explanation)
    facts = Table("", ("", ""), [*_facts(explanation), *_length_fact(explanation)])
    return with_rows(
        [
            facts,
            _omissions("Without one judge", "judge", explanation.judges, explanation),
            _omissions("Without one category", "category", explanation.categories, explanation),
            _omissions(
                "Without the best tenth of a candidate's items",
                "candidate",
                explanation.best_items,
                explanation,
            ),
            _flips(explanation),
            _pivotal(explanation),
            _disagreements(explanation),
        ]
    )


def _facts(explanation: Explanation) -> list[tuple[str, str]]:
    """What the decision rests on, by name."""
    names = _ShortNames.of(explanation)
    facts = [
        (
            "Without a judge",
            _changes(explanation.judges, f"the {len(explanation.judges)} judges", names),
        ),
        (
            "Without a category",
            _changes(
                explanation.categories, f"the {len(explanation.categories)} categories", names
            ),
        ),
        ("Without best items", _changes(explanation.best_items, "", names)),
        ("One judge decides", _hanging(explanation)),
    ]
    if explanation.agreement is not None and explanation.judges:
        rates = {
            f"without {names[line.name]}": line.agreement
            for line in explanation.judges
            if line.agreement is not None
        }
        text = f"{explanation.agreement.estimate:.0%} agree; {_extremes(rates)}"
        facts.append(("Panel vs. people", text))
    return [(name, text) for name, text in facts if text]


def _people_facts(explanation: Explanation) -> list[tuple[str, str]]:
    """What the agreement with people rests on, by name."""
    names = _ShortNames.of(explanation)
    misses = [line for line in explanation.disagreements if line.kind == "people"]
    unanimous = sum(line.unanimous for line in misses)
    facts = [("Wrong verdicts", f"{len(misses)}, of them {unanimous} unanimous")]
    judges = {
        f"without {names[line.name]}": line.agreement
        for line in explanation.judges
        if line.agreement is not None
    }
    tags = {
        f"in {line.name}": line.inside_agreement
        for line in explanation.categories
        if line.inside_agreement is not None
    }
    facts += [
        (label, _extremes(rates))
        for label, rates in (("Without a judge", judges), ("By category", tags))
        if rates
    ]
    return [*facts, *_length_fact(explanation)]


def _extremes(rates: Mapping[str, Interval]) -> str:
    """The lowest and the highest of some rates, with their intervals."""
    order = sorted(rates, key=lambda name: rates[name].estimate)
    ends = dict.fromkeys([order[0], order[-1]])
    return " to ".join(f"{percent(rates[name])} {name}" for name in ends)


def _length_fact(explanation: Explanation) -> list[tuple[str, str]]:
    choices = explanation.longer_choices
    if not choices.items:
        return []
    text = f"the panel's choice is longer on {choices.longer} of {choices.items} items where"
    return [("Longer answers", f"{text} people chose another")]


def _changes(lines: Sequence[Omission], parts: str, names: Mapping[str, str]) -> str:
    """Which omissions change the decision, and to what.

    Args:
        lines: what the decision is without each part.
        parts: what these parts are together; empty where they are candidates' best items.
        names: short ones.
    """
    best = "" if parts else "the best items of "
    if not lines:
        return ""
    by_outcome: dict[str, list[str]] = {}
    for line in lines:
        if line.changes is not None:
            by_outcome.setdefault(_outcome(line, names), []).append(names[line.name])
    if not by_outcome:
        return f"the decision stays without {best}any one of {parts or 'the candidates'}"
    return "; ".join(
        f"{outcome} without {best}{'any one of ' if len(group) > 1 else ''}"
        f"{first_names(group, _FEW_NAMES)}"
        for outcome, group in by_outcome.items()
    )


def _outcome(line: Omission, names: Mapping[str, str]) -> str:
    if line.changes == "significance":
        return "significant" if line.status == "decided" else "not significant"
    if line.leader is None:
        return "nobody leads" if line.status == "tied" else "no decision"
    return f"{names[line.leader]} {'wins' if line.status == 'decided' else 'leads'}"


def _hanging(explanation: Explanation) -> str:
    items = explanation.pivotal
    if not items:
        return "no item" if explanation.leader is not None and explanation.judges else ""
    names = first_names([item.item_id for item in items], _FEWEST_NAMES)
    return f"{len(items)} of {explanation.n_items} items: {names}"


def _omissions(
    title: str, column: str, lines: Sequence[Omission], explanation: Explanation
) -> Table:
    names = _ShortNames.of(explanation)
    has_inside = any(line.inside is not None for line in lines)
    has_labels = any(line.agreement is not None for line in lines)
    has_items = any(line.items for line in lines)
    rows = [
        [
            names[line.name],
            *([str(line.items)] if has_items else []),
            "" if line.changes is None else _outcome(line, names),
            names[line.leader or DASH],
            percent(line.share),
            p_cell(line.p),
            *([percent(line.inside)] if has_inside else []),
            *([percent(line.agreement)] if has_labels else []),
        ]
        for line in lines
    ]
    columns = [
        column,
        *(["items"] if has_items else []),
        "changes to",
        "leader",
        "win rate",
        "p",
        *(["in it alone"] if has_inside else []),
        *(["agrees with people"] if has_labels else []),
    ]
    notes = [
        f"win rate of {names[explanation.leader or DASH]} against"
        f" {names[explanation.rival or DASH]}, ties count half; 95%"
    ]
    if column == "judge":
        notes.append("the remaining judges decide by a majority of their weight")
    numeric = frozenset(
        i for i, name in enumerate(columns) if name not in (column, "changes to", "leader")
    )
    return Table(title, columns, rows, numeric, notes)


def _flips(explanation: Explanation) -> Table:
    names = _ShortNames.of(explanation)
    words = {
        "level": "the lead ends",
        "significant": "the difference becomes significant",
        "not significant": "the difference is no longer significant",
    }
    verbs = {"change": "verdicts change", "drop": "best items are left out"}
    rows = [
        {
            "conclusion": words[flip.conclusion]
            + (f" (over {names[flip.rival]})" if flip.rival else ""),
            "if so many": verbs[flip.by],
            "items": DASH if flip.items is None else str(flip.items),
            "count": "exact" if flip.exact else "at most (greedy)",
            "such as": first_names(flip.item_ids, _FEW_NAMES),
        }
        for flip in explanation.flips
    ]
    return Table.of(
        "What would change the decision",
        rows,
        text=("if so many", "count", "such as"),
        notes=[
            "a verdict changes: the leader goes to the last place of the item (to the first, to"
            " become significant); the others keep their order"
        ],
    )


def _pivotal(explanation: Explanation) -> Table:
    names = _ShortNames.of(explanation)
    leader, rival = names[explanation.leader or DASH], names[explanation.rival or DASH]
    rows = [
        [
            item.item_id,
            item.outcome,
            number(item.lead, "+.2f"),
            item.split or "",
            ", ".join(names[judge] for judge in item.judges),
        ]
        for item in explanation.pivotal[:MOST_ROWS]
    ]
    columns = ["item", leader, "lead", "split", "any one of"]
    notes = [
        f"lead: share of the points of {leader} minus {rival}'s, the"
        " narrowest first; any one of these judges, ranking the other way round, changes it",
        *cut_note(len(explanation.pivotal), file=_ITEMS_FILE),
    ]
    return Table("Items that one judge decides", columns, rows, frozenset({2}), notes)


def _sides(line: TellingDisagreement, names: Mapping[str, str]) -> str:
    split = "unanimous" if line.unanimous else line.split
    panel = "a tie" if line.panel == "tie" else names[line.panel]
    if line.kind == "judges":
        return f"judges split {split}, panel {panel}"
    people = "a tie" if line.people == "tie" else names[line.people or DASH]
    return f"people {people}, panel {panel} ({split})"


def _best_reason(line: TellingDisagreement, names: Mapping[str, str]) -> str:
    """What a judge of the panel's mind holds against the other side."""
    reasons = [opinion for opinion in line.opinions if opinion.reason is not None]
    with_panel = [o for o in reasons if o.first == line.panel and _is_against(o, line)]
    opinions = (with_panel or [o for o in reasons if o.first == line.panel] or reasons)[:1]
    return "".join(
        f"{names[opinion.judge]} on {_reason(opinion, names, REASON_LENGTH)}"
        for opinion in opinions
    )


def _is_against(opinion: Opinion, line: TellingDisagreement) -> bool:
    return opinion.reason is not None and opinion.reason.candidate == line.people


def _reason(opinion: Opinion, names: Mapping[str, str], most: int | None = None) -> str:
    """Whom a judge's reason is about, its words, and the score."""
    reason = opinion.reason
    if reason is None:
        return ""
    text = reason.text if most is None else clip(reason.text, most)
    score = "" if reason.score is None else f", {reason.score}/5"
    return f"{names[reason.candidate]}: “{text}” ({reason.criterion}{score})"


def _disagreements(explanation: Explanation) -> Table:
    lines, names = explanation.disagreements, _ShortNames.of(explanation)
    rows = [
        {
            "item": "" if index else line.item_id,
            "": "" if index else _sides(line, names),
            "judge: first place": f"{names[opinion.judge]}: {names[opinion.first or 'failed']}",
            "reason against": _reason(opinion, names),
        }
        for line in lines[:_MOST_DISAGREEMENTS]
        for index, opinion in enumerate(line.opinions)
    ]
    return Table.of(
        f"Most telling disagreements ({min(len(lines), _MOST_DISAGREEMENTS)} of {len(lines)})",
        rows,
        text=("", "judge: first place", "reason against"),
        notes=[
            f"order: {explanation.disagreement_order}",
            *cut_note(len(lines), _MOST_DISAGREEMENTS, _ITEMS_FILE),
        ],
    )
