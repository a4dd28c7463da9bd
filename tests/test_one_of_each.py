"""What the source says, it says once, and what it declares is used."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from clash import errors

SOURCE = Path(__file__).resolve().parents[1] / "src/clash"
TREES = {
    path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(SOURCE.rglob("*.py"))
}
LEAVES = [
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type)
    and issubclass(kind, errors.ClashError)
    and not kind.__subclasses__()
    and kind.__module__ == errors.__name__
]
LONG = 700
"""Characters of a body, as a tree; shorter ones are properties of a line."""


@pytest.mark.parametrize("name", LEAVES)
def test_every_exception_is_raised_somewhere(name):
    calls = (node for tree in TREES.values() for node in ast.walk(tree))
    assert any(
        isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
        for node in calls
    )


def test_no_two_functions_have_the_same_body():
    places = defaultdict(list)
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                text = "\n".join(map(ast.dump, body))
                if len(text) >= LONG:
                    places[text].append(f"{file}:{node.lineno} {node.name}")
    assert [same for same in places.values() if len(same) > 1] == []


def test_every_constant_of_a_module_is_read():
    read = {name for tree in TREES.values() for node in ast.walk(tree) for name in _read(node)}
    unread = [
        f"{file}: {target.id}"
        for file, tree in TREES.items()
        for node in tree.body
        for target in _targets(node)
        if target.id.isupper() and target.id not in read
    ]
    assert unread == []


def _targets(node):
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target for target in targets if isinstance(target, ast.Name)]


def _read(node):
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
