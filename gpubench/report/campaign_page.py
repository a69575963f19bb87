"""The page of a campaign, which begins with the answer.

The answer says in plain words what was compared, what was found, and how sure that is.
"""

import dataclasses
import datetime as dt
from collections.abc import Sequence

from gpubench.model.cell_names import cell_names
from gpubench.model.plan import Plan
from gpubench.model.text import counted
from gpubench.node.spec.records import RAN
from gpubench.node.spec.turns import INTERLEAVED, SEQUENTIAL
from gpubench.node.spec.waiting import polls
from gpubench.report import labels
from gpubench.report.answer import answer
from gpubench.report.differences import added_blocks, cautions, same_twice, variants_section
from gpubench.report.next_steps import next_steps
from gpubench.report.page import Page
from gpubench.report.provenance import provenance_section
from gpubench.report.runs import runs_section
from gpubench.report.samples import samples_section
from gpubench.report.scaling import is_scaled, scaling_section
from gpubench.report.sections import Medium, RichText, Section, SectionPart, TextSpan, TextTable
from gpubench.report.variants_line import compared
from gpubench.report.verdicts import verdict_section
from gpubench.results.curves import Curve, curves
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.stats.verdict import share_percent
from gpubench.store.accounting import replaced_blocks, run_counts, run_warnings

ARRANGEMENTS = {
    SEQUENTIAL: "sequential: in a block one variant's cluster ran after the other's",
    INTERLEAVED: "interleaved: the clusters of a block were alive at the same time, and their repetitions took turns",
}
_MOST_CAUTIONS = 2
"""Lines of cautions that leave room for the chart on a first screen."""
ENOUGH_FOR_STRAGGLERS = 30
"""Repetitions a run: with 6, a candidate with 5 % stragglers of twice the time is found in one campaign of ten."""


def certainty(inputs: JudgedCampaign) -> str:
    """How sure the answer is, and by what rule."""
    family, settings = len(inputs.verdicts), inputs.settings
    together = f", over all {family} comparisons together" if family > 1 else ""
    share = f"at most {100 * settings.alpha:g} %"
    looks = ""
    if added_blocks(inputs):
        share, looks = f"more than {100 * settings.alpha:g} %", ", since blocks were added after a look at the results"
    rule = (
        f"If nothing differed at all, a campaign like this one would still call a regression or an improvement in "
        f"{share} of cases{together}{looks}. “Equivalent” means that the "
        f"{100 * (1 - 2 * settings.alpha):g} % interval lies within ±{settings.margin.percent} "
        f"({settings.margin.ends}); “inconclusive” means that these data don’t allow a decision."
    )
    if family > 1:
        rule += (
            " The interval beside a verdict is at the level of Holm’s step, so it holds zero where it is only too wide "
            "for a decision; an “equivalent” comparison has the interval of its own test."
        )
    rule += _rare_stragglers(inputs)
    if unchecked := sorted(
        {str(verdict.key["workload"]) for verdict in inputs.verdicts if "unchecked" in verdict.flags}
    ):
        rule += (
            f" The answers of {', '.join(unchecked)} were not checked: a time that is short because the answer is "
            "wrong counts, too."
        )
    if any(verdict.one_job for verdict in inputs.verdicts):
        rule += " Several blocks share an allocation, so the answer holds on these nodes."
    return rule


def _rare_stragglers(inputs: JudgedCampaign) -> str:
    """Which stragglers these samples can't show, and how to see more."""
    limits = [verdict.straggler_limit for verdict in inputs.verdicts if verdict.straggler_limit is not None]
    if not limits:
        return ""
    low, high = share_percent(min(limits)), share_percent(max(limits))
    text = f" Stragglers rarer than {low if low == high else f'{low} to {high}'} % of samples can’t be excluded"
    few = min(workload.reps for workload in inputs.plan.workloads) < ENOUGH_FOR_STRAGGLERS
    return f"{text}; where they matter, run {ENOUGH_FOR_STRAGGLERS} repetitions or more." if few else f"{text}."


def about(inputs: JudgedCampaign) -> str:
    """One line: what was compared, where, and when it was planned."""
    plan = inputs.plan
    when = moment(dt.datetime.fromisoformat(plan.created_at))
    compared = " and ".join(f"{others} against {baseline}" for baseline, others in _compared(inputs).items())
    return f"{compared} · suite {plan.suite} on {plan.site.name} · {_blocks(inputs)} · {when}"


def _blocks(inputs: JudgedCampaign) -> str:
    """``12 blocks``, or ``3 of 12 blocks`` where others were not begun or lost."""
    replaced = replaced_blocks(inputs.outcomes)
    planned = {outcome.block.block for outcome in inputs.outcomes} - replaced.keys()
    ran = {outcome.block.block for outcome in inputs.outcomes if outcome.status in RAN} & planned
    return f"{len(ran)} of {counted(len(planned), 'block')}" if ran != planned else counted(len(planned), "block")


def _compared(inputs: JudgedCampaign) -> dict[str, str]:
    candidates: dict[str, list[str]] = {}
    for verdict in inputs.verdicts:
        candidates.setdefault(verdict.baseline, []).append(verdict.candidate)
    return {baseline: ", ".join(dict.fromkeys(others)) for baseline, others in candidates.items()}


def facts(inputs: JudgedCampaign) -> list[tuple[str, str]]:
    """What was run, in a few words each."""
    plan = inputs.plan
    nodes = sorted({outcome.job.nodes for outcome in inputs.outcomes})
    workers = sorted({outcome.job.workers_per_node for outcome in inputs.outcomes})
    threads = f", {counted(plan.threads_per_worker, 'thread')} each"
    variants = counted(len(plan.variants), "variant")
    return [
        ("campaign", plan.campaign),
        ("site", plan.site.name),
        ("suite", plan.suite),
        ("planned", moment(dt.datetime.fromisoformat(plan.created_at))),
        ("nodes", ", ".join(map(str, nodes))),
        ("workers per node", f"{', '.join(map(str, workers))}{threads}"),
        ("protocol", f"{plan.protocol} on {plan.device}"),
        ("listeners", plan.listeners),
        ("blocks", f"{_blocks(inputs)}, each of {variants}, order shuffled from seed {plan.seed}"),
        ("arrangement", ARRANGEMENTS[plan.site.layout.arrangement] if len(plan.variants) > 1 else "one variant alone"),
        ("waiting", _waiting(plan)),
        ("runs", run_counts(inputs.outcomes)),
        ("gpubench", plan.gpubench),
    ]


def _waiting(plan: Plan) -> str:
    polling = [variant.label for variant in plan.variants if polls(plan.protocol, {**plan.site.env, **variant.env})]
    if not polling:
        return "processes that wait for messages sleep"
    which = "" if len(polling) == len(plan.variants) else f" under {', '.join(polling)}"
    return f"processes that wait for messages poll{which}: each takes a core also when it has nothing to do"


def moment(when: dt.datetime) -> str:
    """``2025-11-20 14:00 UTC``."""
    return when.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def campaign_page(inputs: JudgedCampaign) -> Page:
    """The page; its links to raw files are relative to the campaign's directory."""
    plan = inputs.plan
    names = cell_names([verdict.key for verdict in inputs.verdicts])
    samples = samples_section(inputs, names)
    measured = curves(inputs.results)
    return Page(
        title=f"{' · '.join(variant.label for variant in plan.variants)} on {plan.site.name}",
        over=about(inputs),
        headline=answer(inputs.verdicts, inputs.settings),
        notes=[[TextSpan("A against A. ", "strong"), text] for text in same_twice(inputs)],
        about=[TextSpan(compared(inputs), "quiet"), *_first_cautions(inputs)],
        steps=next_steps(inputs),
        sections=[
            _verdicts(inputs),
            samples,
            *_scaling(inputs, measured, [part.anchor for part in samples.parts]),
            variants_section(inputs),
            runs_section(inputs),
            provenance_section(inputs),
            _facts(inputs),
            _notes(inputs),
        ],
        made=f"Made {moment(inputs.generated_at)} by gpubench {plan.gpubench}.",
        why_no_chart=f"no run of {plan.campaign} has a sample",
    )


def _verdicts(inputs: JudgedCampaign) -> Section:
    section = verdict_section(
        inputs.plan.campaign,
        inputs.verdicts,
        inputs.settings,
        notes=cautions(inputs),
        linked=True,
    )
    against = " or ".join(labels.baselines(inputs.verdicts) or [inputs.plan.baseline])
    change = (
        f"Change: time of the candidate against the baseline {against}; positive is slower. Baseline and candidate: "
        "geometric means over the blocks in which both ran. The interval is over blocks, at the level at which Holm "
        "decided the cell; that of an equivalent one is 90 %. Every change links to its run means and raw files."
    )
    sure = SectionPart(
        text=[TextSpan(change, "quiet")],
        lines=[certainty(inputs)],
        fold="How sure this is",
        anchor="certainty",
        style="beside",
    )
    return dataclasses.replace(section, parts=[*section.parts, sure])


def _scaling(inputs: JudgedCampaign, measured: Sequence[Curve], anchors: list[str]) -> list[Section]:
    """The scaling of workloads with runs at two sizes or more."""
    scaled = [
        key for key in {curve.key for curve in measured} if is_scaled([curve for curve in measured if curve.key == key])
    ]
    shown = [curve for curve in measured if curve.key in scaled]
    section = scaling_section(inputs.plan.campaign, shown, anchors=anchors)
    return [dataclasses.replace(section, medium=Medium.PAGE)] if shown else []


def _first_cautions(inputs: JudgedCampaign) -> list[TextSpan]:
    """What differs besides the plan, for the first screen; of many lines the first."""
    lines = cautions(inputs)
    if len(lines) > _MOST_CAUTIONS:
        *kept, last = lines[:_MOST_CAUTIONS]
        lines = [*kept, f"{last} ({len(lines) - _MOST_CAUTIONS} more under “Notes and files”)"]
    return [TextSpan(line, "note") for line in lines]


def _facts(inputs: JudgedCampaign) -> Section:
    table = TextTable(["campaign", ""], facts(inputs), "What was run", "facts")
    return Section([SectionPart(table=table)], title="The campaign", anchor="campaign", brief=inputs.plan.campaign)


def _notes(inputs: JudgedCampaign) -> Section:
    warnings = [
        *cautions(inputs),
        *inputs.plan.notes,
        *inputs.accounting.warnings,
        *run_warnings(inputs.outcomes),
    ]
    files: list[str | TextSpan] = [
        "Files of this campaign: ",
        TextSpan("plan.json", link="plan.json"),
        ", ",
        TextSpan("results.parquet", link="results.parquet"),
        " (every sample), ",
        TextSpan("verdicts.json", link="verdicts.json"),
        " (every number of every verdict), ",
        TextSpan("report.md", link="report.md"),
        ".",
    ]
    text: list[RichText] = [files] if warnings else ["No warning was recorded.", files]
    return Section(
        [SectionPart(lines=warnings), SectionPart(text=text)],
        title="Notes and files",
        anchor="notes",
        brief=counted(len(warnings), "note") if warnings else "no warning",
        open=bool(warnings),
        medium=Medium.PAGE,
    )
