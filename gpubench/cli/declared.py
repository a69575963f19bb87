"""An option is declared once, as a field of a dataclass: typer's parameters and make's variables come from it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


@dataclasses.dataclass(frozen=True)
class Make:
    """Marks an option that is also a variable of make, which has its name in capitals; ``example`` is a value."""

    example: str = ""


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of each dataclass among its parameters as options; it gets one instance of each."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, type[Any]] = {
        each.name: each.annotation
        for each in own
        if isinstance(each.annotation, type) and dataclasses.is_dataclass(each.annotation)
    }
    parameters = [one for each in own for one in (parameters_of(groups[each.name]) if each.name in groups else [each])]

    def wrapper(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        command(**made, **given)

    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    # typer reads options from a function's signature and annotations.
    wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    )
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapper


def parameters_of(group: type) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters of a command."""
    types = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
            annotation=types[field.name],
        )
        for field in dataclasses.fields(group)
    ]
