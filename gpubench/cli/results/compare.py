"""``gpubench compare``: of a campaign, or of anybody's table of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import polars as pl
import typer

from gpubench.cli.campaign.display import show_notes, show_verdicts
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.results.judge import judge_campaign
from gpubench.cli.results.open_target import chosen_campaign
from gpubench.cli.say import say_text
from gpubench.errors import DataError, UsageError
from gpubench.model.text import KEPT_TEXT
from gpubench.report.record import verdicts_json
from gpubench.stats.question import Question
from gpubench.stats.table import comparisons_from_frame
from gpubench.stats.verdict import Verdict, exit_code, judge

_NAMES: dict[str, pl.DataType] = dict.fromkeys(("workload", "variant", "run", "job"), pl.String())
"""Columns of a CSV that are names whatever they look like: as numbers, versions 1.1 and 1.10 would be one."""

_Kind = tuple[Callable[[Path], pl.DataFrame], str]
_CSV: _Kind = (
    lambda path: pl.read_csv(path, schema_overrides=_NAMES, infer_schema_length=None).with_columns(
        pl.col(pl.String).str.replace(KEPT_TEXT, "${1}")
    ),
    "it should be UTF-8, one header line, fields parted by commas",
)
# All lines tell the columns: a warm-up that is first marked in line 101 is one too.
_JSON_LINES: _Kind = (
    lambda path: pl.read_ndjson(path, infer_schema_length=None),
    "it should be UTF-8 without a byte-order mark, one whole JSON object per line, no NaN",
)
READERS: dict[str, _Kind] = {
    ".csv": _CSV,
    ".jsonl": _JSON_LINES,
    ".ndjson": _JSON_LINES,
    ".parquet": (pl.read_parquet, "write it again"),
}
_SECOND = "_duplicated_0"
"""What polars appends to a name that stands in a CSV's header for the second time."""


def compare_campaign(
    directory: Path | None,
    outputs: Path | None,
    baseline: str | None,
    candidate: str | None,
    *,
    margin: float | None,
    allow: Sequence[str],
    as_json: bool,
) -> NoReturn:
    """Print the verdicts that were asked for; ends with their exit code."""
    judged = judge_campaign(
        chosen_campaign(directory, outputs, with_results=True), Question(margin, baseline, candidate, tuple(allow))
    )
    base = baseline or judged.campaign.plan.baseline
    shown = [
        one for one in judged.verdicts if one.baseline == base and (candidate is None or one.candidate == candidate)
    ]
    if as_json:
        plan = judged.campaign.plan
        say_text(verdicts_json(plan.campaign, shown, judged.settings, plan.site.layout.arrangement).decode())
    else:
        show_verdicts(shown, judged.accounting)
        show_notes(judged)
    raise typer.Exit(exit_code(shown))


def compare_samples(
    path: Path,
    baseline: str | None,
    candidate: str | None,
    *,
    margin: float | None,
    summary: str | None,
    by: str | None,
    as_json: bool,
) -> NoReturn:
    """Judge a table; ends with the verdicts' exit code.

    Raises:
        UsageError: a variant isn't named, an unknown kind of file or summary.
        DataError: a table that no verdict can stand on.
    """
    if baseline is None or candidate is None:
        raise UsageError("--samples needs --baseline and --candidate", then="name two of the table's variants")
    settings = Question(margin, summary=CampaignOptions(summary=summary).chosen_summary()).settings()
    columns = (by or "").replace(",", " ").split()
    comparisons = comparisons_from_frame(_read(path), baseline, candidate, columns)
    verdicts: list[Verdict] = judge(comparisons, settings)
    if as_json:
        say_text(verdicts_json(str(path), verdicts, settings).decode())
    else:
        show_verdicts(verdicts)
    raise typer.Exit(exit_code(verdicts))


def _read(path: Path) -> pl.DataFrame:
    if path.suffix.lower() not in READERS:
        raise UsageError(f"{path}: unknown kind of file", then=f"give one of {', '.join(sorted(READERS))}")
    read, then = READERS[path.suffix.lower()]
    try:
        frame = read(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} can't be read: {str(error).splitlines()[0]}", then=then) from None
    if twice := [name for name in frame.columns if name.endswith(_SECOND)]:
        raise DataError(f"{path} has column '{twice[0].removesuffix(_SECOND)}' twice", then="remove one")
    return frame
