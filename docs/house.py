"""Measure the house: how many rooms, how long, how tangled, how named, how heavy.

``python docs/house.py`` measures the tree it stands in; ``--tree DIR`` another checkout, for
before and after; ``--names PATH`` lists the names that say nothing; ``--rooms`` lists import
cycles, names used twice and modules with one importer; ``--install`` installs the package in
a fresh environment and weighs it; ``--json`` prints one object; ``--table BEFORE AFTER`` prints two
such objects as a Markdown table; ``--refresh`` measures this tree and its install, and rewrites the
table of ``docs/house.md``.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

PRONOUNS = frozenset(
    [
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "them",
        "they",
        "he",
        "she",
        "we",
        "us",
        "one",
        "ones",
        "other",
        "others",
        "another",
        "each",
        "both",
        "such",
        "same",
        "thing",
        "things",
        "stuff",
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "all",
        "some",
        "any",
        "none",
        "rest",
        "own",
        "mine",
        "ours",
        "theirs",
        "here",
        "there",
        "place",
        "whole",
        "about",
        "else",
        "why",
        "how",
        "info",
        "entry",
        "entries",
    ]
)
IRREGULAR = frozenset(
    [
        "been",
        "begun",
        "bent",
        "borne",
        "bought",
        "bound",
        "brought",
        "built",
        "cast",
        "caught",
        "chosen",
        "come",
        "cut",
        "dealt",
        "done",
        "drawn",
        "driven",
        "eaten",
        "fallen",
        "felt",
        "fit",
        "forgotten",
        "found",
        "frozen",
        "given",
        "gone",
        "got",
        "grown",
        "had",
        "heard",
        "held",
        "hidden",
        "hit",
        "hurt",
        "kept",
        "known",
        "laid",
        "learnt",
        "led",
        "left",
        "lent",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "put",
        "read",
        "said",
        "seen",
        "sent",
        "set",
        "shown",
        "shut",
        "sold",
        "spent",
        "split",
        "spoken",
        "spread",
        "stood",
        "taken",
        "taught",
        "told",
        "thought",
        "thrown",
        "torn",
        "understood",
        "woken",
        "won",
        "worn",
        "written",
        "used",
        "unseen",
    ]
) - {"fit", "set", "split", "read", "bound", "cut", "left", "cast", "spread", "hit", "come", "put"}
NOUNS_IN_ED = frozenset(
    [
        "seed",
        "need",
        "speed",
        "feed",
        "bed",
        "red",
        "weed",
        "shed",
        "reed",
        "breed",
        "deed",
        "id",
        "embed",
    ]
)
VERBS = frozenset(["ask", "asks", "keep", "say", "says", "tell", "tells", "want", "wants"])
"""Verbs: names of functions, and of nothing else."""
# Flags: true or false is what a participle says best.
FLAGS = frozenset(["converged", "abstained", "truncated", "interrupted"])


def is_empty_name(name: str) -> bool:
    """Whether a name is a bare participle or a pronoun, and so says not what it holds."""
    if name.startswith("__"):
        return False
    word = name.strip("_").lower()
    if word in PRONOUNS or word in IRREGULAR:
        return True
    return (
        word.endswith("ed")
        and len(word) > 4
        and word.isalpha()
        and word not in NOUNS_IN_ED
        and word not in FLAGS
    )


def empty_names(tree: ast.AST) -> list[tuple[int, str]]:
    """The names of a module that say not what they hold, with their lines."""
    functions = {
        (node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return [
        (line, name)
        for line, name in bindings(tree)
        if is_empty_name(name) or (name in VERBS and (line, name) not in functions)
    ]


def bindings(tree: ast.AST) -> list[tuple[int, str]]:
    """Every name that the code binds: variables, parameters, fields, functions, classes."""
    bound: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.append((node.lineno, name))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.append((node.lineno, name))
            case ast.ClassDef(name=name):
                bound.append((node.lineno, name))
            case ast.Attribute(attr=name, ctx=ast.Store()):
                bound.append((node.lineno, name))
    return bound


COMMAND_LAYERS = frozenset(f"clash.{layer}" for layer in ("cli", "pipeline", "analysis", "report"))
"""Packages that call their module of a command by the command's name."""


class House:
    """The modules of one tree, parsed once."""

    def __init__(self, root: Path) -> None:
        self.source = root / "src"
        self.texts = {p: p.read_text() for p in sorted((self.source / "clash").rglob("*.py"))}
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}
        self.modules = {self._module(path): path for path in self.texts}

    def _module(self, path: Path) -> str:
        parts = path.relative_to(self.source).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def imports(self) -> dict[str, set[str]]:
        """Who imports whom: imports of functions and of type checking count."""
        arrows: dict[str, set[str]] = {}
        for module, path in self.modules.items():
            targets: set[str] = set()
            for node in ast.walk(self.trees[path]):
                if isinstance(node, ast.Import):
                    targets |= {a.name for a in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    for alias in node.names:
                        inner = f"{node.module}.{alias.name}"
                        targets.add(inner if inner in self.modules else node.module)
            arrows[module] = {t for t in targets if t in self.modules and t != module}
        return arrows

    def cycles(self) -> list[list[str]]:
        """Sets of modules that import each other in a circle (Tarjan's components)."""
        arrows, order, low = self.imports(), {}, {}
        stack: list[str] = []
        circles: list[list[str]] = []

        def visit(node: str) -> None:
            order[node] = low[node] = len(order)
            stack.append(node)
            for target in arrows[node]:
                if target not in order:
                    visit(target)
                    low[node] = min(low[node], low[target])
                elif target in stack:
                    low[node] = min(low[node], order[target])
            if low[node] == order[node]:
                circle = []
                while not circle or circle[-1] != node:
                    circle.append(stack.pop())
                if len(circle) > 1:
                    circles.append(sorted(circle))

        sys.setrecursionlimit(10_000)
        for node in arrows:
            if node not in order:
                visit(node)
        return circles

    def single_importers(self) -> dict[str, str]:
        """Modules that exactly one other module imports, and which one."""
        readers: dict[str, set[str]] = defaultdict(set)
        for module, targets in self.imports().items():
            for target in targets:
                readers[target].add(module)
        return {m: next(iter(r)) for m, r in sorted(readers.items()) if len(r) == 1}

    def class_names(self) -> dict[str, list[str]]:
        """Public class names that stand in more than one module."""
        places: dict[str, list[str]] = defaultdict(list)
        for module, path in self.modules.items():
            for node in self.trees[path].body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(module)
        return {name: modules for name, modules in sorted(places.items()) if len(modules) > 1}

    def module_names(self) -> dict[str, list[str]]:
        """Module names that stand in more than one package.

        The layers' modules of one command count once: ``clash gate`` is ``gate`` in each of them.
        """
        commands = {
            path.stem
            for module, path in self.modules.items()
            if module.startswith("clash.cli.") and path.stem in _functions(self.trees[path])
        }
        places: dict[str, list[str]] = defaultdict(list)
        for module, path in self.modules.items():
            package, _, name = module.rpartition(".")
            is_of_command = package in COMMAND_LAYERS and name in commands
            if path.name not in {"__init__.py", "__main__.py"} and not is_of_command:
                places[path.stem].append(module)
        return {name: modules for name, modules in sorted(places.items()) if len(modules) > 1}

    def empty_names(self) -> list[tuple[str, int, str]]:
        """Bindings whose name is a bare participle, pronoun or verb."""
        return [
            (str(path.relative_to(self.source.parent)), line, name)
            for path, tree in self.trees.items()
            for line, name in empty_names(tree)
        ]

    def measure(self) -> dict[str, object]:
        """All figures of the table."""
        lengths = sorted(
            node.end_lineno - node.lineno + 1 - _docstring_lines(node)
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        lines = sum(text.count("\n") for text in self.texts.values())
        comments = sum(len(re.findall(r"^\s*#", t, re.MULTILINE)) for t in self.texts.values())
        bound = sum(len(bindings(tree)) for tree in self.trees.values())
        aliases = sum(
            len(re.findall(r"^\s*Floats\b.*=", t, re.MULTILINE)) for t in self.texts.values()
        )
        return {
            "modules": len(self.modules),
            "lines": lines,
            "functions": len(lengths),
            "function lines (median, p90, max)": (
                f"{statistics.median(lengths):.0f}, {lengths[len(lengths) * 9 // 10]}, {lengths[-1]}"
            ),
            "comment lines": comments,
            "import cycles": len(self.cycles()),
            "modules with one importer": len(self.single_importers()),
            "public class names used twice": len(self.class_names()),
            "module names used twice": len(self.module_names()),
            "declarations of Floats": aliases,
            "names that are participles or pronouns, per 1000 bindings": round(
                1000 * len(self.empty_names()) / bound, 1
            ),
        }


def _functions(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first.end_lineno - first.lineno + 1 if is_text else 0


def import_seconds(python: str) -> float:
    """CPU seconds of ``import clash`` beyond the interpreter, the median of nine."""
    # -I: neither PYTHONPATH nor the current folder may put another clash before the installed one.
    code = "import time; t = time.process_time(); import clash; print(time.process_time() - t)"
    runs = [
        float(
            subprocess.run(
                [python, "-I", "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(9)
    ]
    return statistics.median(runs)


def install(root: Path, extras: str = "") -> dict[str, object]:
    """Install the package in a fresh environment: packages, megabytes, import time."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", python, "install", "-q", f"{root}{extras}"],
            check=True,
        )
        site = next(Path(folder).glob("lib/*/site-packages"))
        size = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
        return {
            f"packages installed{extras}": len(list(site.glob("*.dist-info"))),
            f"MB installed{extras}": round(size / 1e6),
            f"seconds to install{extras}": round(time.monotonic() - began),
            f"import clash, CPU ms{extras}": round(1000 * import_seconds(python), 1),
        }


HERE = Path(__file__).resolve().parent
PAGE = HERE / "house.md"
BEFORE, AFTER = HERE / "tables" / "house-before.json", HERE / "tables" / "house-after.json"
TABLE = re.compile(r"(?<=<!-- table -->\n).*(?=<!-- /table -->)", re.DOTALL)


def table(before: dict[str, object], after: dict[str, object]) -> str:
    """A Markdown table of two measurements; a figure that one of them lacks is a dash."""
    rows = [
        f"| {name} | {before.get(name, '–')} | {after.get(name, '–')} |"
        for name in dict.fromkeys([*before, *after])
    ]
    return "\n".join(["| | before | after |", "| --- | ---: | ---: |", *rows]) + "\n"


def refresh(after: dict[str, object]) -> None:
    """Keep the measurement as the one after, and rewrite the table of the page."""
    AFTER.write_text(json.dumps(after, indent=1) + "\n")
    rows = table(json.loads(BEFORE.read_text()), after)
    PAGE.write_text(TABLE.sub(lambda _: rows, PAGE.read_text()))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--names", metavar="PATH", help="list empty names below PATH")
    parser.add_argument("--rooms", action="store_true", help="list cycles, twins, one importer")
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--table", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--refresh", action="store_true", help="rewrite the table of house.md")
    options = parser.parse_args()
    if options.table:
        before, after = (json.loads(path.read_text()) for path in options.table)
        print(table(before, after), end="")
        return
    house = House(options.tree)
    if options.names is not None:
        for path, line, name in house.empty_names():
            if path.startswith(options.names):
                text = house.texts[options.tree / path].splitlines()[line - 1].strip()
                print(f"{path}:{line}:{name}\t{text}")
        return
    if options.rooms:
        rooms = {
            "cycles": house.cycles(),
            "classes": house.class_names(),
            "modules": house.module_names(),
            "one importer": house.single_importers(),
            "empty names": Counter(name for *_, name in house.empty_names()).most_common(40),
        }
        print(json.dumps(rooms, indent=1))
        return
    figures = house.measure()
    if options.install or options.refresh:
        figures |= install(options.tree)
    if options.refresh:
        refresh(figures)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:60} {value}")


if __name__ == "__main__":
    main()
