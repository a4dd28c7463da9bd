"""Groups of options: one parameter of a command that stands for several options.

`grouped` makes a command of a function such as ``def demo(*, run_id: RunId = None, output: Output)``:
the fields of ``Output`` become ``--json``, ``--quiet`` and ``--verbose``, where ``output`` stands.
"""

from __future__ import annotations

from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class OptionGroup:
    """Options that a command takes as one parameter; a subclass is a dataclass of them."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: each group of options replaced by its options, in place."""
    hints = get_type_hints(command, include_extras=True)
    groups = {
        name: hint
        for name, hint in hints.items()
        if isinstance(hint, type) and issubclass(hint, OptionGroup)
    }

    @wraps(command)
    def wrapper(**values: Any) -> None:  # noqa: ANN401 - whatever the options hold
        for name, group in groups.items():
            names = (parameter.name for parameter in _options(group))
            values[name] = group(**{option: values.pop(option) for option in names})
        command(**values)

    parameters = [
        option
        for name, parameter in signature(command).parameters.items()
        for option in (
            _options(groups[name])
            if name in groups
            else [parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)]
        )
    ]
    wrapper.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {option.name: option.annotation for option in parameters}
    return wrapper


def _options(group: type) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for option in fields(group):
        yield Parameter(
            option.name,
            Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=hints[option.name],
        )
