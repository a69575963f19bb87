"""Options of commands that read results, each declared once."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from gpubench.campaign import options as campaign_options
from gpubench.cli import options
from gpubench.errors import UsageError
from gpubench.report.section_names import Content
from gpubench.stats import settings


def _of_results(metavar: str, text: str) -> Any:
    """An argument that names campaigns or imports."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


_SEVERAL = "Campaigns, imports, or directories that hold some"
Target = Annotated[
    Path | None,
    _of_results(
        "TARGET", "A campaign (any path inside of it) or an import; default: the newest with results in outputs/."
    ),
]
Other = Annotated[Path | None, _of_results("B", "A second campaign or import, which is compared with the first.")]
Directories = Annotated[list[Path], _of_results("DIR", f"{_SEVERAL}.")]
MaybeDirectories = Annotated[list[Path] | None, _of_results("DIR", f"{_SEVERAL}; default: outputs/.")]
MaybeKept = Annotated[
    Path | None,
    _of_results(
        "DIR", "A campaign or an import; default, of mlflow alone: the newest campaign with results in outputs/."
    ),
]
File = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="File to write; csv and parquet need one.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Form = Literal["lines", "json", "markdown"]


@dataclasses.dataclass(frozen=True)
class QuestionOptions:
    """Questions other than the planned ones, and the format of the answer."""

    baseline: Annotated[
        str | None, typer.Option(help="Variant to compare with; default: the first planned. With B: the variant of A.")
    ] = None
    candidate: Annotated[
        str | None, typer.Option(help="Variant to judge; default: every other. With B: the variant of B.")
    ] = None
    margin: campaign_options.Margin = None
    allow: options.Allow = None
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as one JSON object.")] = False
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False

    @property
    def form(self) -> Form:
        """How it is printed; raises UsageError for two ways."""
        if self.as_json and self.as_markdown:
            raise UsageError("--json and --markdown exclude each other", then="choose one")
        return "json" if self.as_json else "markdown" if self.as_markdown else "lines"


@dataclasses.dataclass(frozen=True)
class CompareOptions(QuestionOptions):
    """Of ``compare``."""

    columns: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD=COLUMN,...", help="For a table: which column is which, like variant=build,wall_s=seconds."
        ),
    ] = None
    by: Annotated[str | None, typer.Option(help="For a table: further columns that identify a cell.")] = None
    fail_on: options.FailOn = settings.FailOn.INCONCLUSIVE


@dataclasses.dataclass(frozen=True)
class ReportOptions(QuestionOptions):
    """Of ``report``, whose page of one campaign answers the planned question."""

    baseline: Annotated[str | None, typer.Option(help="With B: the variant of A.")] = None
    candidate: Annotated[str | None, typer.Option(help="With B: the variant of B.")] = None
    margin: Annotated[str | None, typer.Option(help="With B: differences up to this do not matter, like 3%.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print what --only names as one JSON object.")] = False
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a pull request; write no page.")
    ] = False
    only: Annotated[Content | None, typer.Option(help="Print this section, and write no page.")] = None
    html: Annotated[
        Path | None,
        typer.Option(help="With B: file of the page; default: B-against-A.html (their names) in this directory."),
    ] = None
    svg: options.Svg = None


@dataclasses.dataclass(frozen=True)
class TrendOptions:
    """Of ``trend``."""

    as_json: AsJson = False
    html: Annotated[
        Path | None, typer.Option(help="Write one page that opens offline: charts over dates, and changes.")
    ] = None
    svg: options.Svg = None
