"""``import-results``, and what can be asked of an imported directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer

from gpubench import resources
from gpubench.cli.campaign.display import show_verdicts
from gpubench.cli.results.charts import show_plots, terminal_width, write_images
from gpubench.cli.results.history import shipped_issues, tell_import
from gpubench.cli.results.open_target import opened_import
from gpubench.cli.say import say, say_text, warn
from gpubench.errors import DataError, UsageError
from gpubench.files import write_atomically
from gpubench.history.changes import find
from gpubench.importers import FORMATS, sizes
from gpubench.importers.base import day
from gpubench.importers.directory import Given, ImportedResults, import_files
from gpubench.importers.pairing import default_baseline, family, points, reworded
from gpubench.report.export import Format, rendered
from gpubench.report.imported import imported_scaling_json, imported_scaling_lines
from gpubench.report.imported_page import ImportedInputs, drawings, html, markdown
from gpubench.report.plots import effect_plot
from gpubench.report.record import verdicts_json
from gpubench.stats.data import ComparisonInput
from gpubench.stats.question import Question
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict, exit_code, judge

_MOST_REASONS = 8


def import_results(
    kind: str,
    paths: Sequence[Path],
    out: Path,
    *,
    variant: str | None,
    date: str | None,
    site: str | None,
    columns: str | None = None,
) -> None:
    """Import and say what came in; raises UsageError for an unknown format, DataError where most isn't usable."""
    if kind not in FORMATS:
        raise UsageError(f"no format '{kind}'", then=f"there are {', '.join(FORMATS)}")
    given_day = None if date is None else day(date)
    if date is not None and given_day is None:
        raise UsageError(f"--date '{date}' is no date", then="write it like 20261107")
    found = import_files(kind, FORMATS[kind], paths, out, Given(variant, given_day, site, columns))
    for line in import_lines(found):
        say(line)
    for line in refused_lines(found.note["refused"]):
        warn(line)


def import_lines(found: ImportedResults) -> Iterator[str]:
    """What an import holds, and what its source never recorded."""
    note, table = found.note, found.table
    days, versions = table["date"].drop_nulls(), table["variant"].drop_nulls().unique().sort().to_list()
    span = f"{days.n_unique()} dates, {days.min()!s} to {days.max()!s}" if len(days) else "no date is recorded"
    workloads = ", ".join(sorted(table["workload"].unique()))
    yield f"{note['kept']} of {note['rows_in']} rows of {len(note['sources'])} files kept in {found.place}: {span}"
    yield f"versions: {', '.join(versions) or 'not recorded'}; workloads: {workloads}"
    if spellings := note.get("spellings"):
        said = (f"{', '.join(map(repr, words))} as {read}" for read, words in spellings.items())
        yield f"spellings of versions, read as one: {'; '.join(said)}"
    yield f"never recorded by {note['format']}: {', '.join(note['never_recorded'])}"


def refused_lines(refused: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each reason once, with how many rows it kept out, and the first of them."""
    reasons: dict[str, list[str]] = {}
    for one in refused:
        place = f"{one['file']}:{one['line']}" if one["line"] else str(one["file"])
        reasons.setdefault(one["reason"], []).append(place)
    for reason, places in list(reasons.items())[:_MOST_REASONS]:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"refused {places[0]}{more}: {reason}"
    if len(reasons) > _MOST_REASONS:
        yield f"{len(reasons) - _MOST_REASONS} more reasons stand in import.json"


def judged(
    found: ImportedResults, baseline: str | None, margin: float | None
) -> tuple[list[ComparisonInput], list[Verdict], VerdictSettings]:
    """The whole family of an import against one version, dates in place of blocks."""
    settings = Question(margin).settings()
    comparisons = family(found.table, baseline or default_baseline(points(found.table), found.table))
    if not comparisons:
        raise DataError(
            f"{found.place} has no cell with two versions, so there is nothing to compare",
            then="import the files of another version too, or name another --baseline",
        )
    return comparisons, list(reworded(judge(comparisons, settings), comparisons)), settings


def compare_imported(
    directory: Path, baseline: str | None, candidate: str | None, *, margin: float | None, as_json: bool
) -> NoReturn:
    """Print the verdicts; ends with their exit code."""
    found = opened_import(directory)
    _, verdicts, settings = judged(found, baseline, margin)
    shown = [one for one in verdicts if candidate in (None, one.candidate)]
    if not shown:
        there = sorted({one.candidate for one in verdicts})
        raise UsageError(f"no variant '{candidate}' beside the baseline", then=f"there are {', '.join(there)}")
    if as_json:
        say_text(verdicts_json(found.name, shown, settings).decode())
    else:
        show_verdicts(shown)
        for line in cautions(found):
            say(f"note: {line}")
    raise typer.Exit(exit_code(shown))


def cautions(found: ImportedResults) -> Iterator[str]:
    """What pairs by date can show and what they can't."""
    if found.table["date"].null_count() == found.table.height:
        yield "no blocks and no dates are recorded, so no verdict can stand; import with --date where you know the day"
        return
    yield (
        "imported: a 'block' is a date on which both versions were measured. That takes out what differs between days; "
        "it can't take out what goes with the version within a day"
    )
    if found.note["caution"]:
        yield str(found.note["caution"])
    if (found.table["reps"] != 1).any():
        yield "a date's figure is one mean of many repetitions: stragglers and noise within a run can't be seen"


def scale_imported(directory: Path, *, as_json: bool) -> None:
    """Print how the cells of an import scale; raises DataError where no size is recorded."""
    found = opened_import(directory)
    curves = sizes.curves(found.table)
    if not curves:
        raise DataError(f"{directory}: the source recorded no number of workers", then="there is nothing to scale by")
    if as_json:
        say_text(json.dumps(imported_scaling_json(found.name, curves), indent=1))
        return
    for line in imported_scaling_lines(curves):
        say(line)
    say("note: sizes are compared over all their dates; what changed between the dates is in the intervals")


def summarise_imported(directory: Path, *, as_markdown: bool) -> None:
    """Print what an import says, in few lines; nothing is written."""
    inputs = inputs_of(opened_import(directory))
    if as_markdown:
        say_text(markdown(inputs))
        return
    show_verdicts(inputs.verdicts)
    for line in inputs.cautions:
        say(f"note: {line}")


def report_imported(directory: Path, charts: Mapping[Format, Path | None], *, terminal: bool) -> None:
    """Write report.html and report.md: verdicts, change points, charts over dates, what is missing.

    Args:
        directory: the import, or a pack of one.
        charts: where every chart goes as a file too, by its format.
        terminal: draw the effects here.
    """
    found = opened_import(directory)
    inputs = inputs_of(found)
    show_verdicts(inputs.verdicts)
    for name, data in (("report.html", html(inputs)), ("report.md", markdown(inputs))):
        write_atomically(found.derived(name), data)
    say(f"report: {found.derived('report.html')}")
    for form, target in charts.items():
        if target is not None:
            write_images(
                rendered(drawings(inputs), inputs.templates, form), target, f"no figure of {found.name} has a date"
            )
    if terminal:
        show_plots([effect_plot(inputs.verdicts, inputs.settings.margin, terminal_width())])


def inputs_of(found: ImportedResults) -> ImportedInputs:
    """What the report of an import is made from."""
    told = tell_import(found, shipped_issues())
    try:
        _, verdicts, settings = judged(found, None, None)
    except DataError as error:  # one version alone has a history too
        warn(str(error))
        verdicts, settings = [], VerdictSettings()
    return ImportedInputs(
        note=found.note,
        verdicts=verdicts,
        settings=settings,
        observed=told.figures,
        missing=told.missing,
        series=find(told.figures, settings.seed),
        source=told.source,
        cautions=list(cautions(found)),
        templates=resources.texts("templates"),
    )
