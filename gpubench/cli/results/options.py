"""What can be asked of results, declared once."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import completion, options
from gpubench.cli.declared import Make

Target = Annotated[
    Path | None,
    typer.Argument(
        metavar="TARGET",
        help="A campaign (any path inside of it), a pack or an import; default: the newest with results in outputs/.",
        show_default=False,
        autocompletion=completion.campaigns,
    ),
    Make(),
]
Other = Annotated[
    Path | None,
    typer.Argument(
        metavar="B",
        help="A second campaign, pack or import, which is compared with the first.",
        show_default=False,
        autocompletion=completion.campaigns,
    ),
]
Directories = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR",
        help="Campaigns, imports, packs, or directories that hold some.",
        autocompletion=completion.campaigns,
    ),
]
Kept = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="A campaign or an import, also packed.",
        show_default=False,
        autocompletion=completion.campaigns,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AsMarkdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")]


class FailOn(StrEnum):
    """The weakest finding that ``compare`` fails for."""

    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"


class Content(StrEnum):
    """What can be shown of results."""

    VERDICTS = "verdicts"
    SCALING = "scaling"
    LINKS = "links"
    COVERAGE = "coverage"
    CHANGES = "changes"


class TrendContent(StrEnum):
    """What ``trend`` shows."""

    COVERAGE = "coverage"
    CHANGES = "changes"


@dataclasses.dataclass(frozen=True)
class QuestionOptions:
    """What to ask, other than what was planned."""

    baseline: Annotated[
        str | None,
        typer.Option(
            help="Variant compared against; default: the first planned. With B: the variant of A.",
            autocompletion=completion.variants,
        ),
    ] = None
    candidate: Annotated[
        str | None,
        typer.Option(
            help="Variant judged; default: every other. With B: the variant of B.", autocompletion=completion.variants
        ),
    ] = None
    margin: options.Margin = None
    summary: Annotated[
        str | None,
        typer.Option(
            help="Of a table, or with B: mean, geomean or median of a run; chosen before looking. With B: default as "
            "planned.",
            autocompletion=completion.summaries,
        ),
    ] = None
    allow: options.Allow = None
