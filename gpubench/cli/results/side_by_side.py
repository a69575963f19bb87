"""``gpubench scaling A B`` and ``gpubench compare A B``: two campaigns or imports side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import typer

from gpubench import resources
from gpubench.cli.campaign.display import show_verdicts
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.results.history import ReadTargets, read_campaign
from gpubench.cli.results.open_target import opened
from gpubench.cli.say import say, say_text
from gpubench.errors import DataError, UsageError
from gpubench.files import write_atomically
from gpubench.history import sides
from gpubench.history.sides import match
from gpubench.importers.directory import ImportedResults
from gpubench.model.base import nearest
from gpubench.report.record import verdicts_json
from gpubench.report.sides import UNPAIRED, Side, SideBySide, judge_sides, sides_json, sides_lines
from gpubench.report.sides_page import html
from gpubench.stats.question import Question
from gpubench.stats.settings import Summary
from gpubench.stats.verdict import exit_code

_MOST = 8


def scale_sides(
    first: Path,
    second: Path,
    baseline: str | None,
    candidate: str | None,
    *,
    margin: float | None,
    summary: str | None,
    as_json: bool,
    page: Path | None,
) -> None:
    """Print both curves of every workload with verdicts, or one JSON object; ``page`` is written besides."""
    shown = side_by_side(first, second, baseline, candidate, margin=margin, summary=summary)
    if page:
        write_atomically(page, html(shown, resources.texts("templates")))
    if as_json:
        say_text(json.dumps(sides_json(shown), indent=1))
        return
    for line in sides_lines(shown):
        say(line)
    if page:
        say(f"page: {page}")


def compare_sides(
    first: Path,
    second: Path,
    baseline: str | None,
    candidate: str | None,
    *,
    margin: float | None,
    summary: str | None,
    as_json: bool,
) -> NoReturn:
    """Print the verdicts alone; ends with their exit code."""
    shown = side_by_side(first, second, baseline, candidate, margin=margin, summary=summary)
    if as_json:
        name = f"{shown.second.label} against {shown.first.label}"
        say_text(verdicts_json(name, shown.verdicts, shown.settings).decode())
    else:
        show_verdicts(shown.verdicts)
        for note in shown.notes:
            say(f"note: {note}")
    raise typer.Exit(exit_code(shown.verdicts))


def side_by_side(
    first: Path,
    second: Path,
    baseline: str | None,
    candidate: str | None,
    *,
    margin: float | None,
    summary: str | None,
) -> SideBySide:
    """Read, match and judge both.

    Raises:
        UsageError: it isn't clear which variants are meant, or one isn't there; the two were planned with different
            questions, and none was named.
        DataError: the sides have no cell in common.
    """
    if first.resolve() == second.resolve():
        raise UsageError(f"{first} is named twice", then="its own variants are compared by: gpubench compare DIR")
    read = [_open(first), _open(second)]
    chosen = _variants([_labels(one) for one in read], baseline, candidate)
    number = None if summary is None else CampaignOptions(summary=summary).chosen_summary()
    plans = [one.campaign.plan for one in read if isinstance(one, ReadTargets)]
    settings = Question(margin, summary=number).settings(*plans)
    both = [
        _side(letter, one, variant, settings.summary) for letter, one, variant in zip("AB", read, chosen, strict=True)
    ]
    pairs, lone = match(both[0].cells, both[1].cells)
    if not pairs:
        raise DataError(
            f"{first} and {second} have no cell in common: no workload with the same parameters at the same size",
            then="gpubench scaling of each shows what they hold",
        )
    shown = SideBySide(both[0], both[1], pairs, lone, judge_sides(both[0], both[1], pairs, settings), [], settings)
    return SideBySide(both[0], both[1], pairs, lone, shown.verdicts, _notes(shown, read), settings)


def _open(directory: Path) -> ReadTargets | ImportedResults:
    kept = opened(directory)
    return kept if isinstance(kept, ImportedResults) else read_campaign(kept)


def _labels(one: ReadTargets | ImportedResults) -> list[str]:
    if isinstance(one, ImportedResults):
        return sides.variants_of_import(one.table)
    return [variant.label for variant in one.campaign.plan.variants]


def _variants(labels: list[list[str]], baseline: str | None, candidate: str | None) -> tuple[str, str]:
    """Of A and of B: those that are named, else the only one that both have."""
    for name, there, option in ((baseline, labels[0], "--baseline"), (candidate, labels[1], "--candidate")):
        if name is not None and name not in there:
            raise UsageError(
                f"{option}: no variant '{name}'{nearest(name, there)}", then=f"there are {', '.join(there)}"
            )
    common = [label for label in labels[0] if label in labels[1]]
    if baseline is not None and candidate is not None:
        return baseline, candidate
    named = baseline or candidate
    if named is not None and named in common:
        return named, named
    if named is None and len(common) == 1:
        return common[0], common[0]
    what = f"both have {', '.join(common)}" if common else "no variant is in both"
    raise UsageError(
        f"{what}: A has {', '.join(labels[0])}; B has {', '.join(labels[1])}",
        then="say which: --baseline VARIANT-OF-A --candidate VARIANT-OF-B (one of them does where both have it)",
    )


def _side(letter: str, one: ReadTargets | ImportedResults, variant: str, summary: Summary) -> Side:
    if isinstance(one, ImportedResults):
        return Side(letter, "import", one.name, variant, sides.of_import(one.table, variant, summary))
    plan = one.campaign.plan
    cells = sides.of_campaign(plan, one.table, variant, summary)
    return Side(letter, "campaign", plan.campaign, variant, cells)


def _notes(shown: SideBySide, read: list[ReadTargets | ImportedResults]) -> list[str]:
    """What can't be taken out, what isn't recorded, and what else differs."""
    notes = [UNPAIRED]
    refused = sum(bool(pair.refused) for pair in shown.pairs)
    if refused:
        notes.append(
            f"{refused} of {len(shown.pairs)} cells are refused: what differs in layout or device is no scheduler"
        )
    unknown = sorted({word for pair in shown.pairs if not pair.refused for word in pair.unknown})
    if unknown:
        notes.append(
            f"layout-unknown: {', '.join(unknown)} not recorded on both sides, so nobody can say they are alike"
        )
    protocols = {(pair.first.protocol, pair.second.protocol) for pair in shown.pairs}
    notes += [
        f"protocol: {a or 'not recorded'} against {b or 'not recorded'}"
        for a, b in sorted(protocols, key=str)
        if a != b
    ]
    notes += [str(one.note["caution"]) for one in read if isinstance(one, ImportedResults) and one.note["caution"]]
    differs = _differs(shown, read)
    if differs:
        more = f" and {len(differs) - _MOST} more" if len(differs) > _MOST else ""
        notes.append(f"differs between the sides besides: {', '.join(differs[:_MOST])}{more}")
    return list(dict.fromkeys(notes))


def _differs(shown: SideBySide, read: list[ReadTargets | ImportedResults]) -> list[str]:
    """Circumstances that both campaigns recorded, as of the first figure of either."""
    if any(isinstance(one, ImportedResults) for one in read):
        return []
    figures = [
        next((figure for figure in one.figures() if figure.variant == side.variant), None)
        for one, side in zip(read, (shown.first, shown.second), strict=True)
        if isinstance(one, ReadTargets)
    ]
    sites = [one.campaign.plan.site for one in read if isinstance(one, ReadTargets)]
    fields = [
        f"{name} {getattr(sites[0], name)} → {getattr(sites[1], name)}"
        for name in ("name", "scheduler", "launcher", "runtime")
        if getattr(sites[0], name) != getattr(sites[1], name)
    ]
    return fields + (figures[0].changed(figures[1]) if figures[0] and figures[1] else [])
