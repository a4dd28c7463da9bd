"""The tree of exceptions in the docstring of ``clash.errors`` is the tree in the code."""

import inspect
import re

from clash import errors

LINE = re.compile(r"^ *(?P<branch>[├└│─ ]*)(?P<name>[A-Z]\w+) +(?P<code>\d) ", re.MULTILINE)


def drawn_tree():
    """Name, depth and exit code of each line of the drawing."""
    return [
        (line["name"], len(line["branch"]) // 4, line["code"])
        for line in LINE.finditer(errors.__doc__)
    ]


def test_the_drawn_tree_is_the_tree_of_classes():
    classes = [
        value
        for _, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, errors.ClashError)
    ]
    tree = [
        (error.__name__, error.__mro__.index(errors.ClashError), str(error.exit_code))
        for error in classes
    ]
    assert len(tree) > 8
    assert sorted(drawn_tree()) == sorted(tree)
