"""What is printed of results: their verdicts, and sections by name."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence

from gpubench.errors import DataError, UsageError
from gpubench.model.cell_names import cell_names
from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.report.answer import VerdictAnswer
from gpubench.report.differences import cautions, same_twice
from gpubench.report.section_names import Content
from gpubench.report.sections import Section
from gpubench.report.variants_line import compared
from gpubench.report.verdicts import verdict_section
from gpubench.results.curves import curves, workload_of
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.results.judging import judge_campaign
from gpubench.results.results import Results, judge
from gpubench.stats.data import ComparisonInput, Key
from gpubench.stats.question import Question
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.unpaired import UNPAIRED
from gpubench.store.accounting import run_counts
from gpubench.store.campaign import Campaign
from gpubench.store.states import account_now

_log = logging.getLogger(__name__)

UNPAIRED_NOTE = (
    "unpaired: no block is shared, so the days, the nodes and the scheduler of each side are part of every difference; "
    "a verdict holds only for these two sides as they were measured"
)


def campaign_answer(campaign: Campaign, question: Question) -> VerdictAnswer:
    """Of the whole family, or the pair that is asked for; writes ``results.parquet`` and ``verdicts.json``."""
    return judged_answer(judge_campaign(campaign, question), question)


def judged_answer(judged: JudgedCampaign, question: Question) -> VerdictAnswer:
    """That of a campaign that was judged for this question."""
    plan = judged.plan
    base = question.baseline or plan.baseline
    shown = [
        verdict
        for verdict in judged.verdicts
        if verdict.baseline == base and question.candidate in (None, verdict.candidate)
    ]
    notes = [*same_twice(judged), *cautions(judged)]
    arrangement = plan.site.layout.arrangement
    section = verdict_section(plan.campaign, shown, judged.settings, arrangement=arrangement, notes=notes)

    def document() -> str:
        from gpubench.report.campaign_page import campaign_page
        from gpubench.report.page import markdown

        return markdown(campaign_page(judged))

    planned = question.baseline is None and question.candidate is None
    whole = document if planned else None
    runs = run_counts(judged.outcomes)
    return VerdictAnswer(shown, judged.settings, section, runs, whole, compared(judged))


def verdict_answer(results: Results, question: Question) -> VerdictAnswer:
    """Of an import, a table, or two sides: the verdicts of the whole family, or of the candidate that is asked for."""
    settings = question.settings(*results.plans)
    comparisons = results.family(question)
    verdicts = judge(comparisons, settings)
    if results.unit != "s":
        verdicts = [dataclasses.replace(verdict, sides_s=None) for verdict in verdicts]
    shown = [verdict for verdict in verdicts if verdict.candidate == question.candidate] or verdicts
    unpaired = [UNPAIRED_NOTE] if any(UNPAIRED in verdict.flags for verdict in shown) else []
    notes = [*unpaired, *results.notes, *_notes(results, comparisons, question)]
    return VerdictAnswer(shown, settings, verdict_section(results.name, shown, settings, notes=notes))


def import_answer(results: Results) -> VerdictAnswer | None:
    """The planned verdicts of an import; None, with a warning, where it holds one version alone."""
    try:
        return verdict_answer(results, Question())
    except DataError as error:
        _log.warning(str(error))
        return None


def _notes(results: Results, comparisons: Sequence[ComparisonInput], question: Question) -> Iterator[str]:
    if results.kind == "table" and question.margin is None:
        margin = VerdictSettings().margin.percent
        yield f"the margin is ±{margin}, the default, since a table says none: --margin sets it"
    yield from lone_lines(results)
    if results.kind == "import":
        yield from import_cautions(results, comparisons)


def lone_lines(results: Results) -> Iterator[str]:
    """Cells that only one side has, each workload once with its sizes."""
    sizes: dict[tuple[str, Key], list[int]] = {}
    for letter, key in results.lone:
        sizes.setdefault((letter, workload_of(key)), []).append(dict(key)["workers"])
    names = cell_names([dict(workload) for _, workload in sizes])
    for ((letter, _), workers), name in zip(sizes.items(), names, strict=True):
        yield f"only {letter} has {name} on {', '.join(map(str, sorted(workers)))} workers"


def import_cautions(results: Results, comparisons: Sequence[ComparisonInput]) -> Iterator[str]:
    """What pairs by date can show and what they can't, and what isn't compared."""
    from gpubench.results.imports import uncompared

    if comparisons and (alone := uncompared(results, comparisons[0].baseline)):
        every = cell_names([dict(key) for key in results.keys])
        names = [name for key, name in zip(results.keys, every, strict=True) if key in alone]
        yield (
            f"{counted(len(alone), 'cell')} without {comparisons[0].baseline}, or with nothing beside it, "
            f"{'are' if len(alone) > 1 else 'is'} not compared: {labels.listed(names)}"
        )
    if not results.runs:
        yield "every row is a warm-up, so nothing is left to judge"
        return
    if all(run.date is None for run in results.runs):
        yield "no blocks and no dates are recorded, so no verdict is possible; import with --date if you know the day"
        return
    yield (
        "imported: a 'block' is a date on which both versions were measured. That takes out what differs between "
        "days; it can't take out what goes with the version within a day"
    )
    if results.caution:
        yield results.caution
    if results.has_means:
        yield "a date's figure is one mean of many repetitions: stragglers and noise within a run can't be seen"


def section(results: Results, content: Content, kept: Campaign | None) -> Section:
    """A section other than verdicts; raises UsageError, DataError if the results have none.

    Args:
        kept: the campaign, where it is one.
    """
    if content is Content.SCALING:
        return _scaling(results)
    if kept is None:
        raise UsageError(
            f"{results.place} is an import: this needs runs, which it doesn't have", then="name a campaign"
        )
    from gpubench.report.runs import run_list_section

    return run_list_section(results.name, account_now(kept).outcomes)


def _scaling(results: Results) -> Section:
    from gpubench.report.scaling import scaling_section

    measured = curves(results)
    if not any(point.logs for curve in measured for point in curve.measured):
        if results.plan:
            raise DataError(f"{results.place} has no run that is ok", then="gpubench status shows how the runs ended")
        raise DataError(
            f"{results.place}: the source recorded no number of workers", then="there is nothing to scale by"
        )
    remarks, notes = [], [*([UNPAIRED_NOTE] if results.kind == "sides" else []), *results.notes]
    if all(len(curve.measured) < 2 for curve in measured):
        remarks.append('there is only one size: plan several, like --nodes "1 2 4" or --workers "1 2 4"')
    elif results.kind == "import":
        notes.append("sizes are compared over all their dates; changes between the dates widen the intervals")
    return dataclasses.replace(scaling_section(results.name, measured, remarks), notes=notes)
