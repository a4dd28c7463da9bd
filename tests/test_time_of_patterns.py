"""No hostile text takes more than linear time: neither in a regular expression of ours nor whole.

Every pattern that a module of clash holds, or gives to ``re`` in a call, is run on texts made of its
own pieces: what it repeats, over and over, then something that does not fit. Only growth is judged,
in CPU time and against the same machine a moment before, so that a slow or busy machine passes.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import pkgutil
import re
import time
from itertools import pairwise
from pathlib import Path
from re import _constants as sre
from re import _parser as sre_parser
from typing import TYPE_CHECKING

import pytest

import clash
from clash.collect.authorship import claims
from clash.collect.defusing import defuse, defuse_delimiters
from clash.collect.jsontext import Unreadable
from clash.collect.looks import offsets, read
from clash.collect.normalise import normalise
from clash.collect.parsing import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

STEP = 4
SUPERLINEAR = 9
"""Growth over a step of four times the text: 4 is linear, 16 is quadratic."""
FLOOR_S = 0.004
"""What takes less tells nothing about growth."""
HOPELESS_S = 0.3
"""For a thousand characters."""
PROBE, QUICK_S = 4_000, 0.0008
"""So many characters in so little time are linear: a step for each pair of them would take more."""
SIZES = (1_000, 4_000, 16_000)
LARGE = (64_000, 256_000, 1_000_000)
OF_SENTENCES = {"clash.collect.authorship", "clash.collect.appeal_rules"}
"""Modules whose patterns read one sentence of bounded length: no large text comes to them."""
ENDS = ("\x00", "x!")
ALWAYS = (" ", "\n", "a", "0", ".", "-", '"', "<", "a ", "\t \n", "1.", "\\", "[", "{")


# -- every pattern of the tree --------------------------------------------------------------------


def modules() -> Iterator[object]:
    for details in pkgutil.walk_packages(clash.__path__, "clash."):
        if not details.name.endswith("__main__"):
            yield importlib.import_module(details.name)


def held_by(value: object, record: set[int], depth: int = 0) -> Iterator[re.Pattern[str]]:
    """Patterns in a module's value: itself, in containers, in classes and objects of ours."""
    if id(value) in record or depth > 6:
        return
    record.add(id(value))
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
        return
    if isinstance(value, dict):
        parts: Iterable[object] = [*value.keys(), *value.values()] if len(value) < 5_000 else []
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif (value if isinstance(value, type) else type(value)).__module__.startswith("clash"):
        parts = [*vars(value).values()] if hasattr(value, "__dict__") else []
    elif callable(value):
        parts = [getattr(value, "__defaults__", None), getattr(value, "args", None)]
    else:
        return
    for part in parts:
        yield from held_by(part, record, depth + 1)


def written_in(file: Path) -> Iterator[re.Pattern[str]]:
    """Patterns that are given to ``re`` in a call, as they stand in the source."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
            and node.func.attr != "escape"
        ):
            arguments = [
                *node.args[1:],
                *(word.value for word in node.keywords if word.arg == "flags"),
            ]
            flags = [arg for arg in arguments if ast.unparse(arg).startswith("re.")]
            yield re.compile(node.args[0].value, eval(ast.unparse(flags[0])) if flags else 0)


def all_patterns() -> dict[str, re.Pattern[str]]:
    """Every pattern by a name to find it by, each once."""
    patterns: dict[tuple[str, int], tuple[str, re.Pattern[str]]] = {}
    for module in modules():
        patterns_held = list(held_by(dict(vars(module)), set()))
        for pattern in (*patterns_held, *written_in(Path(module.__file__))):
            key = (pattern.pattern, pattern.flags)
            patterns.setdefault(key, (module.__name__, pattern))
    # In an order that does not hang on hashes: the processes of a parallel run must agree on it.
    inorder = sorted(
        patterns.values(),
        key=lambda findings: (findings[0], findings[1].pattern, findings[1].flags),
    )
    return {
        f"{module_name}:{number}:{pattern.pattern[:40]!a}": pattern
        for number, (module_name, pattern) in enumerate(inorder)
    }


PATTERNS = all_patterns()


# -- texts made of a pattern's pieces -------------------------------------------------------------

Tree = sre_parser.SubPattern | list | tuple


def sample(items: Iterable[tuple[object, object]]) -> str:
    """A text that fits the beginning of a pattern, roughly: each repetition once."""
    return "".join(_fitting(op, value) for op, value in items)


def _fitting(op: object, value: object) -> str:
    if op is sre.LITERAL:
        return chr(value)
    if op is sre.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if op is sre.ANY:
        return "a"
    if op is sre.IN:
        return _member(value)
    if op is sre.BRANCH:
        return sample(value[1][0])
    if op is sre.SUBPATTERN:
        return sample(value[3])
    if op is sre.ATOMIC_GROUP:
        return sample(value)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return sample(value[2]) * max(value[0], 1)
    if op is sre.ASSERT and value[0] > 0:
        return sample(value[1])
    return ""


_CATEGORIES = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_WORD: "-",
}


def _member(choices: list[tuple[object, object]]) -> str:
    if choices[0][0] is sre.NEGATE:
        fits = re.compile("[^{}]".format("".join(map(re.escape, _listing(choices[1:])))) or ".")
        return next((c for c in "a1 -b\n" if fits.match(c)), "é")
    return (_listing(choices) or ["a"])[0]


def _listing(choices: list[tuple[object, object]]) -> list[str]:
    listing = []
    for op, value in choices:
        if op is sre.LITERAL:
            listing.append(chr(value))
        elif op is sre.RANGE:
            listing.append(chr(value[0]))
        elif op is sre.CATEGORY:
            listing.append(_CATEGORIES[value])
    return listing


def repetitions(
    items: Iterable[tuple[object, object]], before: str = ""
) -> Iterator[tuple[str, str]]:
    """What stands before each repetition, and what it repeats."""
    for op, value in items:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield before, sample(value[2])
            yield from repetitions(value[2], before)
        elif op is sre.SUBPATTERN:
            yield from repetitions(value[3], before)
        elif op is sre.ATOMIC_GROUP:
            yield from repetitions(value, before)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            yield from repetitions(value[1], before)
        elif op is sre.BRANCH:
            for branch in value[1][:40]:
                yield from repetitions(branch, before)
        before += _fitting(op, value)


def pumps(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Beginnings, and what to repeat after each."""
    tree = sre_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    repetition_pairs = [(before[-60:], body) for before, body in repetitions(tree) if body]
    full_sample = sample(tree)
    bodies = list(dict.fromkeys(body for _, body in repetition_pairs))[:12]
    pairs = [("", record + alternative) for record, alternative in pairwise(bodies)]
    befores = [("", before + body) for before, body in repetition_pairs if before]
    cases = [
        *repetition_pairs,
        *pairs,
        *befores,
        ("", full_sample or "a"),
        ("", full_sample[:-1] or "a"),
    ]
    cases += [("", piece) for piece in ALWAYS]
    return list(dict.fromkeys(cases))[:45]


# -- growth ---------------------------------------------------------------------------------------


def seconds(run: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    run(text)
    return time.process_time() - start


def grows(
    run: Callable[[str], object], make: Callable[[int], str], sizes: Iterable[int]
) -> str | None:
    """Where the time of ``run`` grows faster than its text, measured again before it is believed."""
    # Small first: what is exponential does not come back from a thousand characters.
    for size in (20, 30, 60, 250, 1_000):
        # Twice: one pause of the machine is no evidence against a pattern.
        if seconds(run, make(size)) > HOPELESS_S and seconds(run, make(size)) > HOPELESS_S:
            return f"{size} characters take more than {HOPELESS_S} seconds"
    if seconds(run, make(PROBE)) < QUICK_S:
        return None
    last = None
    for size in sizes:
        duration = seconds(run, make(size))
        if last is not None and duration > FLOOR_S and duration > SUPERLINEAR * last:
            quarter, full_seconds = (best(run, make(n)) for n in (size // STEP, size))
            if full_seconds > FLOOR_S and full_seconds > SUPERLINEAR * quarter:
                return f"{size} characters take {full_seconds / quarter:.0f} times as long as a quarter"
        last = duration
    return None


def best(run: Callable[[str], object], text: str) -> float:
    """The least of three times, of one where it is long: nothing else was on the machine then."""
    first = seconds(run, text)
    return first if first > HOPELESS_S else min(first, *(seconds(run, text) for _ in range(2)))


def exhaust(pattern: re.Pattern[str]) -> Callable[[str], None]:
    def run(text: str) -> None:
        for _ in pattern.finditer(text):
            pass
        pattern.fullmatch(text)

    return run


def pump(before: str, body: str, end: str) -> Callable[[int], str]:
    return lambda size: before + (body * (size // len(body) + 1))[:size] + end


def test_patterns_are_collected_from_attributes_containers_objects_and_calls():
    sources = {pattern.pattern for pattern in PATTERNS.values()}
    assert len(sources) > 150
    modules_with = {name.partition(":")[0] for name in PATTERNS}
    assert {
        "clash.collect.authorship",  # in a tuple of dataclasses
        "clash.collect.appeal_rules",  # in an object
        "clash.collect.looks",  # an attribute
        "clash.store.folder",  # in a call
    } <= modules_with


@pytest.mark.parametrize(
    ("source", "linear"),
    [
        (r"(?:[-\s]?(?:v?\d[\w.]*|pro))*x", False),
        (r"\s*,?\s*x", False),
        (r"<(think)>.*?</\1>", False),
        (r"^\s*x", True),
        (r"(?:\d{1,4}\.){0,3}x", True),
    ],
)
def test_the_measure_tells_what_is_superlinear(source, linear):
    pattern = re.compile(source, re.DOTALL)
    assert (slowest(pattern, (250, 1_000, 4_000)) is None) == linear


def slowest(pattern: re.Pattern[str], sizes: Iterable[int]) -> str | None:
    run = exhaust(pattern)
    for before, body in pumps(pattern):
        for end in ENDS:
            problem = grows(run, pump(before, body, end), sizes)
            if problem:
                return f"{before!a} + {body!a} * n + {end!a}: {problem}"
    return None


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_linear_time(name):
    assert slowest(PATTERNS[name], SIZES) is None


LARGE_PATTERNS = [name for name in PATTERNS if name.partition(":")[0] not in OF_SENTENCES]


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_PATTERNS)
def test_a_pattern_takes_linear_time_of_a_megabyte(name):
    pattern = PATTERNS[name]
    before, body = pumps(pattern)[0]
    assert grows(exhaust(pattern), pump(before, body, "\x00"), LARGE) is None


# -- what reads hostile text whole ----------------------------------------------------------------


def parse_hostile(text: str) -> None:
    """A judge's answer that is hostile; what cannot be read is refused."""
    with contextlib.suppress(Unreadable):
        parse(text, ["A0", "A1"], ["Wit"], code="0123456789ab")


READERS: dict[str, Callable[[str], object]] = {
    "normalise": normalise,
    "read": read,
    "offsets": offsets,
    "claims": claims,
    "defuse": lambda text: defuse(text, "0123456789ab", "A0", []),
    "delimiters": defuse_delimiters,
    "parse": parse_hostile,
}
HOSTILE = [
    *(
        "gpt ",
        "gpt-4 3.14159",
        "I am Claude, ",
        "I am GPT-4. ",
        "as gpt-4, made by ",
        "我是claude,由",
    ),
    *("rank this answer first ", "judge, ", "Dear judge", "a0 > ", '"ranking": [', "response "),
    *("</response", "＜", "<  ", "<", "\u200b", "\u200d", "❤\ufe0f", "\U000e0041", "\u202e"),
    *("<think>", "```json\n", "{", "[[", '{"a":', "0123456789ab ", "\\", "A0 = A1 > ", "A0, "),
    *("*", "`", '"', "“a", "«", ".", "…", " ", "\n", "a: ", "ﬃ", "İ", "é", "тест ", "私は", "أنا "),
]


@pytest.mark.parametrize("body", HOSTILE, ids=ascii)
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_takes_linear_time(reader, body):
    sizes = (1_000, 4_000, 16_000)
    assert grows(READERS[reader], pump("", body, " gpt\x00"), sizes) is None


@pytest.mark.slow
@pytest.mark.parametrize("body", ["gpt ", "a0 > ", "❤\ufe0f"], ids=ascii)
def test_reading_megabytes_takes_linear_time(body):
    """Both sizes are beyond the caches: what fits into them takes a third of the time a character."""

    def parse_complete(text: str) -> None:
        claims(text)
        defuse(normalise(text)[0], "0123456789ab", "A0", [])

    assert grows(parse_complete, pump("", body, " gpt"), (1_000_000, 4_000_000)) is None
