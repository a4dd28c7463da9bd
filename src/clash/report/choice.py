"""Which candidate to take within limits: headline, screen and tables."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from clash.pages.names import short_names
from clash.report.formats import DASH, first_names, money, number, percent, plural, seconds
from clash.report.headline import Headline
from clash.report.screens import IntervalRow, blank_screen, interval_chart
from clash.report.tables import Table
from clash.wording import with_capital

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clash.analysis.choice import Choice, ChoiceLimits, ChoiceOption, PriceQuestion
    from clash.report.screens import Screen
    from clash.stats.intervals import Interval

_SURE = 0.95
_NAME_WIDTH = 24
_MOST_NAMES = 3
_QUESTIONS = 2
_SLIGHT = 0.05


def choice_headline(choice: Choice) -> Headline:
    """Whom to take, in one sentence, and what speaks for it."""
    names = _names(choice)
    limits = limits_text(choice.limits)
    notes = tuple(_notes(choice))
    if choice.candidate is None:
        text = f"No candidate is known to stay {limits}." if choice.unknown else (
            f"No candidate stays {limits}."
        )  # fmt: skip
        return Headline("nothing", text, _nearest(choice, names), notes=notes)
    option = choice.option(choice.candidate)
    within = [line for line in choice.options if line.is_within]
    rate = percent(option.win_rate)
    name, goal = names[option.candidate], _goal(choice)
    is_sure = option.p_best is not None and option.p_best >= _SURE
    if len(within) == 1:
        shape, text = "winner", f"{name} is the only one {limits}: win rate {rate}."
    elif is_sure:
        shape, text = "winner", f"{name} is the {goal} {limits}: win rate {rate}."
    else:
        shape, text = "open", f"{name} is the likeliest {goal} {limits}: win rate {rate}."
    return Headline(
        "winner" if shape == "winner" else "open", text, _evidence(option, choice), notes=notes
    )


def _goal(choice: Choice) -> str:
    return "best" if choice.limits.worth_usd is None else "best value"


def limits_text(limits: ChoiceLimits) -> str:
    """``under $0.01 a call and 2.0 s``; ``without limits`` where there are none."""
    parts = [] if limits.cost_usd is None else [f"${limits.cost_usd:g} a call"]
    if limits.latency_s is not None:
        at = "" if limits.quantile == 0.5 else f" at the {100 * limits.quantile:g}% quantile"
        parts.append(f"{seconds(limits.latency_s)}{at}")
    return f"under {' and '.join(parts)}" if parts else "at any price and speed"


def _evidence(option: ChoiceOption, choice: Choice) -> str:
    if option.p_best is None or option.regret is None or option.regret_high is None:
        return ""
    loss = _loss(option.regret, choice)
    most = _loss(option.regret_high, choice)
    unit = "" if choice.limits.worth_usd is not None else " of win rate"
    return (
        f"Best in {option.p_best:.0%} of draws; expected regret {loss}{unit}, in 95% of draws at"
        f" most {most}."
    )


def _loss(value: float, choice: Choice) -> str:
    if choice.limits.worth_usd is not None:
        return money(value)
    return f"{100 * value:.1f} points"


def _nearest(choice: Choice, names: Mapping[str, str]) -> str:
    """The cheapest and the fastest, which come nearest to the limits."""
    limits, parts = choice.limits, []
    prices = [line for line in choice.options if line.cost_usd is not None]
    if limits.cost_usd is not None and prices:
        cheapest = min(prices, key=lambda line: line.cost_usd.estimate if line.cost_usd else 0)
        parts.append(f"the cheapest is {names[cheapest.candidate]} at {_cost(cheapest)}")
    times = [line for line in choice.options if line.latency_s is not None]
    if limits.latency_s is not None and times:
        fastest = min(times, key=lambda line: line.latency_s.estimate if line.latency_s else 0)
        parts.append(f"the fastest is {names[fastest.candidate]} at {_time(fastest)}")
    text = "; ".join(parts)
    return f"{with_capital(text)}." if text else ""


def _notes(choice: Choice) -> Iterator[str]:
    if choice.unknown:
        needs = [
            option
            for option, limit, figure in (
                ("--price", choice.limits.cost_usd, "cost_usd"),
                ("--price", choice.limits.worth_usd, "cost_usd"),
                ("--latency", choice.limits.latency_s, "latency_s"),
            )
            if limit is not None
            and any(getattr(choice.option(name), figure) is None for name in choice.unknown)
        ]
        example = " ".join(
            f"{option} {shlex.quote(choice.unknown[0])}={'0.002' if option == '--price' else '800ms'}"
            for option in dict.fromkeys(needs)
        )
        are = "is" if len(choice.unknown) == 1 else "are"
        yield (
            f"{first_names(choice.unknown, _MOST_NAMES)} {are} left out: the run does not know the"
            f" cost or latency. State it: {example}"
        )
    if choice.candidate is not None:
        option = choice.option(choice.candidate)
        for figure, chance in (("cost", option.p_cost), ("time", option.p_latency)):
            if chance is not None and chance < _SURE:
                yield f"Its {figure} keeps the limit with a chance of only {chance:.0%}."
    if choice.labels_unused is not None:
        yield f"{plural(choice.n_labelled, 'label')} not used: {choice.labels_unused}"


def choice_screen(choice: Choice, width: int | None, run: str) -> Screen:
    """The answer, the candidates beside the limits, and whether the price is worth it.

    Args:
        choice: what to show.
        width: of the terminal; null where there is none.
        run: how the commands of the next steps name it.
    """
    screen = blank_screen(width)
    screen.headline(choice_headline(choice))
    rows = [IntervalRow(line.candidate, line.win_rate, _note(line)) for line in choice.options]
    owner = "people's" if choice.by == "people" else "panel's"
    caption = f"{owner} win rate, ties half, 95% intervals; cost and time"
    screen.lines += interval_chart(rows, screen.width, caption, reference=0.5)
    screen.add()
    names = _names(choice)
    for question in _telling(choice):
        head = f"{_times(question)} the price?"
        screen.fact(head, question_text(question, names, choice.limits.worth_usd))
    if choice.without_limits is not None and choice.candidate is not None:
        best = choice.option(choice.without_limits)
        screen.fact(
            "Without limits",
            f"{names[best.candidate]}: {percent(best.win_rate)} · {_cost(best)} · {_time(best)}",
        )
    front = _front(choice, names)
    if front:
        screen.fact("Pareto front", front)
    people = f"people's, {plural(choice.n_labelled, 'label')} correct the panel"
    panel = "the panel's"
    if not choice.labels.used and choice.labels.labelled:
        panel = f"{panel}; {choice.labels.sentence}"
    screen.fact("Preference", people if choice.by == "people" else panel)
    if choice.limits.worth_usd is None and choice.questions:
        screen.add()
        screen.hanging("Next  ", f"clash choose {run} --worth 0.05", "dim")
    return screen


def _telling(choice: Choice) -> list[PriceQuestion]:
    """The questions about the best of the cheaper and the best of the dearer candidates."""
    order = [line.candidate for line in choice.options]
    cheaper = [q for q in choice.questions if q.dearer == choice.candidate]
    dearer = [q for q in choice.questions if q.cheaper == choice.candidate]
    picks = [min(cheaper, key=lambda q: order.index(q.cheaper))] if cheaper else []
    picks += [min(dearer, key=lambda q: order.index(q.dearer))] if dearer else []
    return picks[:_QUESTIONS]


def _times(question: PriceQuestion) -> str:
    if question.ratio is None:
        return "Worth"
    return f"{question.ratio:.1f} x" if question.ratio < 10 else f"{question.ratio:.0f} x"


def question_text(
    question: PriceQuestion, names: Mapping[str, str], worth_usd: float | None = None
) -> str:
    """Whether a dearer candidate is worth its price, and from which worth of an answer on."""
    dearer, cheaper = names[question.dearer], names[question.cheaper]
    text = f"{dearer} is preferred to {cheaper} on {percent(question.preferred)}"
    price = question.usd_per_win
    if worth_usd is not None and question.p_worth is not None:
        return (
            f"{text}: worth it at {money(worth_usd)} an answer in {question.p_worth:.0%} of draws"
        )
    if math.isinf(price.low):
        return f"{text}: no, at no price"
    if math.isinf(price.estimate):
        return f"{text}: no, unless a better answer is worth more than {money(price.low)}"
    return f"{text}: yes where one more better answer is worth {usd_range(price)}"


def usd_range(price: Interval) -> str:
    """``$0.16 [$0.09, $1.10]``, with ``no limit`` for an end that no amount reaches."""
    if math.isinf(price.estimate):
        return DASH if math.isinf(price.low) else f"more than {money(price.low)}"
    high = "no limit" if math.isinf(price.high) else money(price.high)
    return f"{money(price.estimate)} [{money(price.low)}, {high}]"


def _front(choice: Choice, names: Mapping[str, str]) -> str:
    lines = [line for line in choice.options if line.p_front is not None and line.p_front > _SLIGHT]
    lines.sort(key=lambda line: -(line.p_front or 0.0))
    return " · ".join(f"{names[line.candidate]} {line.p_front:.0%}" for line in lines[:4])


def _note(option: ChoiceOption) -> str:
    mark = {True: "", False: "  over", None: "  unknown"}[option.is_within]
    return f"{_cost(option)} · {_time(option)}{mark}"


def _cost(option: ChoiceOption) -> str:
    return "no price" if option.cost_usd is None else money(option.cost_usd.estimate)


def _time(option: ChoiceOption) -> str:
    return "no time" if option.latency_s is None else seconds(option.latency_s.estimate)


def _names(choice: Choice) -> dict[str, str]:
    return short_names((line.candidate for line in choice.options), _NAME_WIDTH)


def tables(choice: Choice) -> list[Table]:
    """Every candidate beside the limits, and every question of price."""
    return [_options(choice), *([_questions(choice)] if choice.questions else [])]


def _options(choice: Choice) -> Table:
    words = {True: "yes", False: "no", None: "unknown"}
    rows = [
        {
            "candidate": line.candidate,
            "win rate": percent(line.win_rate),
            "cost": _figure(line.cost_usd, line.cost_source, money),
            "time": _figure(line.latency_s, line.latency_source, seconds),
            "within": words[line.is_within],
            "p cost": number(line.p_cost, ".0%"),
            "p time": number(line.p_latency, ".0%"),
            "p front": number(line.p_front, ".0%"),
            "p best": number(line.p_best, ".0%"),
            "regret": DASH if line.regret is None else _loss(line.regret, choice),
            "regret, 95%": DASH if line.regret_high is None else _loss(line.regret_high, choice),
        }
        for line in choice.options
    ]
    unit = "US dollars a response" if choice.limits.worth_usd is not None else "win rate"
    return Table.of(
        f"Candidates {limits_text(choice.limits)}",
        rows,
        notes=[
            f"{choice.draws:,} draws of the Bayesian bootstrap over prompts, seed {choice.seed}",
            "p cost, p time: chance to keep the limit; p front: to be on the Pareto front; p best: to"
            " be the best within the limits",
            f"regret: {unit} lost on average by taking it; 95% of the draws lose no more than the"
            " last column",
        ],
        brief=True,
        optional=("regret, 95%", "p time", "p cost"),
    )


def _figure(figure: Interval | None, source: str | None, form: object) -> str:
    if figure is None:
        return DASH
    write = money if form is money else seconds
    if source == "given":
        return f"{write(figure.estimate)} (given)"
    if not math.isfinite(figure.high):
        return f"{write(figure.estimate)} {DASH}"
    return f"{write(figure.estimate)} [{write(figure.low)}, {write(figure.high)}]"


def _questions(choice: Choice) -> Table:
    rows = [
        {
            "dearer": line.dearer,
            "cheaper": line.cheaper,
            "price": _times(line) if line.ratio is not None else DASH,
            "extra a call": money(line.extra_usd),
            "preferred": percent(line.preferred),
            "for one more better answer": usd_range(line.usd_per_win),
            "p worth it": number(line.p_worth, ".0%"),
        }
        for line in choice.questions
    ]
    return Table.of(
        "Is the dearer one worth its price?",
        rows,
        text=("cheaper",),
        notes=[
            "preferred: how often the dearer one is, ties half; one more better answer: extra cost over"
            " (answers preferred less answers passed over)"
        ],
        brief=True,
    )
