"""Why a run decides as it does, as sentences and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.formats import DASH, first_names, number, p_at_least, percent
from clash.report.tables import MOST_ROWS, Table, cut_note, with_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.explanation import Explanation, Flip
    from clash.analysis.explanation.disagreements import Disagreement, Opinion
    from clash.analysis.explanation.without import Omission

_BRIEF_DISAGREEMENTS = 3
_MOST_DISAGREEMENTS = 20
_FEW_NAMES = 3
_REASON_LENGTH = 70
_KIND = {"judge": "judge", "category": "category", "best items": "tenth of best items"}
_ITEMS_FILE = "`clash explain RUN --json`"


def headlines(explanation: Explanation) -> list[str]:
    """The answer, then how many verdicts would change it."""
    if explanation.leader is None:
        lines = [explanation.decision.headline]
    else:
        lines = [_decision(explanation), *_flip_sentences(explanation)]
    if explanation.kind != "validate" or explanation.agreement is None:
        return lines
    # A run that holds a panel against people asks about the panel, not about the candidates.
    return [f"The panel agrees with people on {_agreement(explanation)}.", *lines]


def _decision(explanation: Explanation) -> str:
    leader, rival = explanation.leader, explanation.rival
    share, p = explanation.share, explanation.decision.p
    ties = f", {explanation.ties} tied" if explanation.ties else ""
    p_text = "" if p is None else f"; p {p_at_least(p) if p < 0.001 else f'= {p:.3f}'}"
    record = f"{explanation.wins} won, {explanation.losses} lost{ties}{p_text}"
    if explanation.decision.status == "decided":
        return f"{leader} wins; closest is {rival}: {record}."
    if explanation.decision.status == "tied":
        return f"{leader} and {rival} are level: {record}."
    if share is not None and share.estimate > 0.5:
        return f"{leader} leads, but is not significantly ahead of {rival}: {record}."
    return f"{leader} leads overall, but is not ahead of {rival}: {record}."


def _flip_sentences(explanation: Explanation) -> list[str]:
    level = explanation.flip("change", "level")
    significance = explanation.flip("change", "significant", "not significant")
    changes: list[tuple[Flip, str]] = []
    if level is not None and level.items:
        other = "" if level.rival == explanation.rival else f" over {level.rival}"
        changes.append((level, f"end the lead{other}"))
    if significance is not None and significance.items is not None:
        is_decided = significance.conclusion == "not significant"
        consequence = f"make {explanation.leader} the clear winner"
        changes.append((significance, "make it insignificant" if is_decided else consequence))
    if not changes:
        return [f"No change of verdicts can decide it: {explanation.n_items} items are too few."]
    (first, consequence), *rest = sorted(changes, key=lambda change: change[0].items or 0)
    start = (
        f"Changed verdicts on {_count(first)} of {explanation.n_items} items would {consequence}"
    )
    return ["; ".join([start, *(f"on {_count(flip)}, {then}" for flip, then in rest)]) + "."]


def _count(flip: Flip) -> str:
    return f"{'' if flip.exact else 'at most '}{flip.items}"


def _agreement(explanation: Explanation) -> str:
    rate = explanation.agreement
    n = explanation.n_labelled
    return DASH if rate is None else f"{round(rate.estimate * n)} of {n} items ({percent(rate)})"


def brief_tables(explanation: Explanation) -> list[Table]:
    """The facts and the most telling disagreements, for the first screen."""
    return with_rows([_facts(explanation), _telling(explanation)])


def tables(explanation: Explanation) -> list[Table]:
    """Everything: the facts, each omission, the items that hang on one judge, disagreements."""
    return with_rows(
        [
            _facts(explanation),
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


def _facts(explanation: Explanation) -> Table:
    rows = [
        ("Without one judge", _changes(explanation.judges)),
        ("Without one category", _changes(explanation.categories)),
        ("Without best items", _changes(explanation.best_items)),
        ("One judge decides", _hanging(explanation)),
    ]
    if explanation.agreement is not None and explanation.kind != "validate":
        rows.append(("Panel and people", f"agree on {_agreement(explanation)}"))
    if explanation.agreement is not None and explanation.judges:
        rates = (f"{line.name} {_percent(line)}" for line in explanation.judges)
        rows.append(("Agreement without", ", ".join(rates)))
    return Table("", ("", ""), [(name, text) for name, text in rows if text], brief=True)


def _percent(line: Omission) -> str:
    return DASH if line.agreement is None else f"{line.agreement.estimate:.0%}"


def _changes(lines: Sequence[Omission]) -> str:
    """Which omissions change the decision, and to what."""
    if not lines:
        return ""
    by_outcome: dict[str, list[str]] = {}
    for line in lines:
        if line.changes is not None:
            by_outcome.setdefault(_outcome(line), []).append(line.name)
    if not by_outcome:
        return f"the decision stays, whichever of the {len(lines)} is left out"
    return "; ".join(
        f"{outcome} without {first_names(names, _FEW_NAMES)}"
        for outcome, names in by_outcome.items()
    )


def _outcome(line: Omission) -> str:
    if line.changes == "significance":
        return "significant" if line.status == "decided" else "not significant"
    if line.leader is None:
        return "nobody leads" if line.status == "tied" else "no decision"
    return f"{line.leader} {'wins' if line.status == 'decided' else 'leads'}"


def _hanging(explanation: Explanation) -> str:
    items = explanation.pivotal
    if not items:
        return "no item" if explanation.leader is not None and explanation.judges else ""
    names = first_names([item.item_id for item in items], _FEW_NAMES)
    return f"{len(items)} of {explanation.n_items} items: {names}"


def _omissions(
    title: str, column: str, lines: Sequence[Omission], explanation: Explanation
) -> Table:
    has_inside = any(line.inside is not None for line in lines)
    has_labels = any(line.agreement is not None for line in lines)
    has_items = any(line.items for line in lines)
    rows = [
        [
            line.name,
            *([str(line.items)] if has_items else []),
            "" if line.changes is None else _outcome(line),
            line.leader or DASH,
            percent(line.share),
            p_at_least(line.p),
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
    notes = [f"win rate of {explanation.leader} against {explanation.rival}, ties count half; 95%"]
    if column == "judge":
        notes.append("the judges that are left decide by a majority of their weight")
    numeric = frozenset(
        i for i, name in enumerate(columns) if name not in (column, "changes to", "leader")
    )
    return Table(title, columns, rows, numeric, notes)


def _flips(explanation: Explanation) -> Table:
    words = {
        "level": "the lead ends",
        "significant": "the difference becomes significant",
        "not significant": "the difference is no longer significant",
    }
    verbs = {"change": "verdicts change", "drop": "best items are left out"}
    rows = [
        [
            words[flip.conclusion] + (f" (over {flip.rival})" if flip.rival else ""),
            verbs[flip.by],
            DASH if flip.items is None else str(flip.items),
            "exact" if flip.exact else "at most (greedy)",
            first_names(flip.item_ids, _FEW_NAMES),
        ]
        for flip in explanation.flips
    ]
    return Table(
        "What would change the decision",
        ["conclusion", "if so many", "items", "count", "such as"],
        rows,
        frozenset({2}),
        [
            "a verdict changes: the leader goes to the last place of the item (to the first, to"
            " become significant); the others keep their order"
        ],
    )


def _pivotal(explanation: Explanation) -> Table:
    rows = [
        [
            item.item_id,
            item.outcome,
            number(item.lead, "+.2f"),
            item.split or "",
            ", ".join(item.judges),
        ]
        for item in explanation.pivotal[:MOST_ROWS]
    ]
    return Table(
        "Items that hang on one judge",
        ["item", f"{explanation.leader}", "lead", "split", "any one of"],
        rows,
        frozenset({2}),
        [
            f"lead: share of the points of {explanation.leader} minus {explanation.rival}'s, the"
            " narrowest first; any one of these judges, ranking the other way round, changes it",
            *cut_note(len(explanation.pivotal), file=_ITEMS_FILE),
        ],
    )


def _telling(explanation: Explanation) -> Table:
    lines = explanation.disagreements
    rows = [
        (line.item_id, f"{_sides(line)}. {_best_reason(line)}".strip())
        for line in lines[:_BRIEF_DISAGREEMENTS]
    ]
    return Table(f"Most telling of {_plural(len(lines), 'disagreement')}", ("", ""), rows)


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _sides(line: Disagreement) -> str:
    split = "unanimous" if line.unanimous else line.split
    panel = "a tie" if line.panel == "tie" else line.panel
    if line.kind == "judges":
        return f"judges split {split}, panel {panel}"
    people = "a tie" if line.people == "tie" else line.people
    return f"people {people}, panel {panel} ({split})"


def _best_reason(line: Disagreement) -> str:
    """What a judge of the panel's mind holds against the other side."""
    reasons = [opinion for opinion in line.opinions if opinion.reason is not None]
    with_panel = [o for o in reasons if o.first == line.panel and _is_against(o, line)]
    chosen = (with_panel or [o for o in reasons if o.first == line.panel] or reasons)[:1]
    return "".join(_opinion(opinion, _REASON_LENGTH) for opinion in chosen)


def _is_against(opinion: Opinion, line: Disagreement) -> bool:
    return opinion.reason is not None and opinion.reason.candidate == line.people


def _opinion(opinion: Opinion, most: int | None = None) -> str:
    reason = opinion.reason
    if reason is None:
        return opinion.judge
    text = reason.text if most is None or len(reason.text) <= most else f"{reason.text[:most]}…"
    score = "" if reason.score is None else f", {reason.score}/5"
    return f"{opinion.judge} on {reason.candidate}: “{text}” ({reason.criterion}{score})"


def _disagreements(explanation: Explanation) -> Table:
    lines = explanation.disagreements
    rows = []
    for line in lines[:_MOST_DISAGREEMENTS]:
        first = True
        for opinion in line.opinions:
            reason = _opinion(opinion).removeprefix(opinion.judge).removeprefix(" on ")
            rows.append(
                [
                    line.item_id if first else "",
                    _sides(line) if first else "",
                    opinion.judge,
                    opinion.first or "failed",
                    reason,
                ]
            )
            first = False
    return Table(
        f"Most telling disagreements ({min(len(lines), _MOST_DISAGREEMENTS)} of {len(lines)})",
        ["item", "", "judge", "puts first", "against"],
        rows,
        frozenset(),
        [f"order: {explanation.disagreement_order}"],
    )
