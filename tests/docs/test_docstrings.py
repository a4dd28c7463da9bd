"""A docstring that lists the attributes of a class lists those that it has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "clash"


def class_definitions() -> dict[str, list[ast.ClassDef]]:
    """The classes of the package by name."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)
    return classes


def attributes(node: ast.ClassDef, classes: dict[str, list[ast.ClassDef]]) -> set[str]:
    """Fields, methods and what is set on ``self``, those of the bases included."""
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            names.add(part.target.id)
        elif isinstance(part, ast.Assign):
            names |= {target.id for target in part.targets if isinstance(target, ast.Name)}
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(part.name)
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            names |= {part.attr} if part.value.id == "self" else set()
    for base in node.bases:
        for parent in classes.get(getattr(base, "id", ""), []):
            if parent is not node:
                names |= attributes(parent, classes)
    return names


def listed(node: ast.ClassDef) -> list[str]:
    """The names that the section Attributes of the docstring lists."""
    _, _, section = (ast.get_docstring(node) or "").partition("Attributes:\n")
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    records = re.findall(r"^    (\w[\w, ]*?):", section, re.MULTILINE)
    return [name.strip() for record in records for name in record.split(",")]


def test_the_attributes_that_a_docstring_lists_are_there():
    classes = class_definitions()
    definitions = [node for nodes in classes.values() for node in nodes]
    assert sum(bool(listed(node)) for node in definitions) > 100
    assert [
        f"{node.name}: {name}"
        for node in definitions
        for name in listed(node)
        if name not in attributes(node, classes)
    ] == []
