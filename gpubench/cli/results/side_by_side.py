"""Two campaigns or imports side by side: which variants, which question, and what differs besides."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gpubench.cli.results.judge import Question
from gpubench.cli.results.open_target import opened, root_of
from gpubench.cli.results.trend import ReadCampaign, read_campaign
from gpubench.errors import DataError, UsageError
from gpubench.history import sides
from gpubench.history.sides import match
from gpubench.importers.directory import ImportedResults
from gpubench.model.base import nearest
from gpubench.report.sides import UNPAIRED, Side, SideBySide, judge_sides
from gpubench.stats.settings import Summary, VerdictSettings

_MOST = 8


def side_by_side(first: Path, second: Path, question: Question) -> SideBySide:
    """Read, match and judge both.

    Raises:
        UsageError: it isn't clear which variants are meant, or one isn't there; the two were planned with different
            questions, and none was named.
        DataError: the sides have no cell in common.
    """
    if root_of(first).resolve() == root_of(second).resolve():
        raise UsageError(f"{first} is named twice", then="its own variants are compared by: gpubench compare DIR")
    read = [_open(first), _open(second)]
    chosen = _variants([_labels(one) for one in read], question.baseline, question.candidate)
    settings = _settings(read, question)
    both = [
        _side(letter, one, variant, settings.summary) for letter, one, variant in zip("AB", read, chosen, strict=True)
    ]
    pairs, lone = match(both[0].cells, both[1].cells)
    if not pairs:
        raise DataError(
            f"{first} and {second} have no cell in common: no workload with the same parameters at the same size",
            then="gpubench report --only scaling of each shows what they hold",
        )
    shown = SideBySide(both[0], both[1], pairs, lone, judge_sides(both[0], both[1], pairs, settings), [], settings)
    return dataclasses.replace(shown, notes=_notes(shown, read))


def _open(directory: Path) -> ReadCampaign | ImportedResults:
    kept = opened(directory)
    return kept if isinstance(kept, ImportedResults) else read_campaign(kept)


def _labels(one: ReadCampaign | ImportedResults) -> list[str]:
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


def _settings(read: list[ReadCampaign | ImportedResults], question: Question) -> VerdictSettings:
    """The question that both campaigns were planned with, but for what is named now; an import has none of its own."""
    plans = [one.campaign.plan for one in read if isinstance(one, ReadCampaign)]
    margins, summaries = {plan.margin for plan in plans}, {plan.summary for plan in plans}
    if question.margin is None and len(margins) > 1:
        low, high = sorted(margins)
        raise UsageError(
            f"one side was planned with a margin of {100 * low:g} %, the other with {100 * high:g} %",
            then=f"say which counts: --margin {100 * low:g}%",
        )
    if question.summary is None and len(summaries) > 1:
        words = " and the other ".join(sorted(summaries))
        raise UsageError(f"one side was planned to judge the {words} of a run", then="say which: --summary mean")
    planned = VerdictSettings(plans[0].margin, summary=plans[0].summary) if plans else VerdictSettings()
    return question.settings(planned)


def _side(letter: str, one: ReadCampaign | ImportedResults, variant: str, summary: Summary) -> Side:
    if isinstance(one, ImportedResults):
        return Side(letter, "import", one.name, variant, sides.of_import(one.table, variant, summary))
    plan = one.campaign.plan
    cells = sides.of_campaign(plan, one.table, variant, summary)
    return Side(letter, "campaign", plan.campaign, variant, cells)


def _notes(shown: SideBySide, read: list[ReadCampaign | ImportedResults]) -> list[str]:
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


def _differs(shown: SideBySide, read: list[ReadCampaign | ImportedResults]) -> list[str]:
    """Circumstances that both campaigns recorded, as of the first figure of either."""
    if any(isinstance(one, ImportedResults) for one in read):
        return []
    figures = [
        next((figure for figure in one.figures() if figure.variant == side.variant), None)
        for one, side in zip(read, (shown.first, shown.second), strict=True)
        if isinstance(one, ReadCampaign)
    ]
    sites = [one.campaign.plan.site for one in read if isinstance(one, ReadCampaign)]
    fields = [
        f"{name} {getattr(sites[0], name)} → {getattr(sites[1], name)}"
        for name in ("name", "scheduler", "launcher", "runtime")
        if getattr(sites[0], name) != getattr(sites[1], name)
    ]
    return fields + (figures[0].changed(figures[1]) if figures[0] and figures[1] else [])
