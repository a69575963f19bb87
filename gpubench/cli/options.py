"""An option is declared once, as a field of a dataclass: typer's parameters come from it.

Options that campaigns share with other groups are in ``campaign/options``."""

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gpubench.stats import settings


def command_group(text: str) -> typer.Typer:
    """A group of commands with this help."""
    return typer.Typer(
        help=text, no_args_is_help=True, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
    )


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of each dataclass among its parameters as options; it gets one instance of each."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, type[Any]] = {
        each.name: each.annotation
        for each in own
        if isinstance(each.annotation, type) and dataclasses.is_dataclass(each.annotation)
    }
    parameters = [
        parameter for each in own for parameter in (parameters_of(groups[each.name]) if each.name in groups else [each])
    ]

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


NamedSite = Annotated[str, typer.Argument(help="Profile in sites/, or a .toml file.", show_default=False)]
Allow = Annotated[
    list[str] | None,
    typer.Option(help="What may differ between the variants of a block, like kernel or 'network.*'; repeatable."),
]
FailOn = Annotated[
    settings.FailOn | None,
    typer.Option(
        help="Exit with a failure for this and worse: with regression, code 21 becomes 0 if something was compared."
    ),
]
Svg = Annotated[Path | None, typer.Option(help="Also every chart as an SVG file in this directory.")]
Planned = Annotated[
    Path | None,
    typer.Argument(help="Directory of a planned campaign, instead of the options that plan one.", show_default=False),
]
DeclaredEnded = Annotated[
    str | None,
    typer.Option(
        "--ended",
        metavar="JOB_ID",
        help="End nothing: keep with the job that you say that it has ended. For one whose scheduler can't tell.",
        show_default=False,
    ),
]
MaybeCampaign = Annotated[
    Path | None, typer.Argument(help="Directory of the campaign; default: the newest in outputs/.", show_default=False)
]
