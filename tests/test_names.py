"""One word for one thing: the names of classes, the glossary, and no import cycle."""

import functools
import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

DUPLICATE_CLASSES: frozenset[str] = frozenset()
"""Names of classes that still stand in two modules. It only shrinks."""

CYCLES: frozenset[tuple[str, ...]] = frozenset()
"""Modules that import each other in a circle: none."""

MOST_EMPTY_NAMES = 3
"""Participles, pronouns and verbs in 1,000 names that the code binds."""

MOST_ELSEWHERE = {"tests": 10, "benchmarks": 16, "docs": 26}
"""The same for what stands beside the package."""


@functools.cache
def house():
    spec = importlib.util.spec_from_file_location("house", ROOT / "docs" / "house.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.House(ROOT)


def public_classes():
    module, tree = house()
    return {
        node.name
        for syntax in tree.trees.values()
        for node in syntax.body
        if isinstance(node, module.ast.ClassDef) and not node.name.startswith("_")
    }


def test_no_public_class_name_stands_in_two_modules():
    _, tree = house()
    assert set(tree.class_names()) == DUPLICATE_CLASSES


def test_every_class_of_the_glossary_exists_and_no_word_stands_twice():
    text = (ROOT / "docs" / "glossary.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|([^|]*)\|$", text, re.MULTILINE)
    words = [word for word, _, _ in rows if word not in ("word", "---")]
    assert len(words) > 50
    assert len(words) == len(set(words))
    names = {name for *_, cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert len(names) > 25
    assert sorted(names - public_classes()) == []


def test_names_say_what_they_hold():
    module, tree = house()
    bound = sum(len(module.bindings(syntax)) for syntax in tree.trees.values())
    share = 1000 * len(tree.empty_names()) / bound
    assert share <= MOST_EMPTY_NAMES, f"{share:.1f}: python docs/house.py --names src/clash"


@pytest.mark.parametrize("folder", MOST_ELSEWHERE)
def test_names_outside_of_the_package_say_what_they_hold(folder):
    module, _ = house()
    trees = [module.ast.parse(path.read_text()) for path in (ROOT / folder).rglob("*.py")]
    empty_names = Counter(name for tree in trees for _, name in module.empty_names(tree))
    share = 1000 * empty_names.total() / sum(len(module.bindings(tree)) for tree in trees)
    assert share <= MOST_ELSEWHERE[folder], f"{share:.1f}: {empty_names.most_common(20)}"


def test_no_module_imports_itself_in_a_circle():
    """Imports in functions and under TYPE_CHECKING count."""
    _, tree = house()
    assert {tuple(cycle) for cycle in tree.cycles()} == CYCLES
