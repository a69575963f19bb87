"""The page of a campaign, its answer first."""

from __future__ import annotations

import dataclasses

from gpubench.merge.curves import curves, scheduler_shares
from gpubench.report import headline, labels, links, provenance
from gpubench.report.inputs import ReportInputs
from gpubench.report.next_steps import next_steps
from gpubench.report.page import Page
from gpubench.report.plots import effect_plot, efficiency_plot
from gpubench.report.runs import runs_section
from gpubench.report.samples import samples_section
from gpubench.report.scaling import is_scaled, overhead_section, scaling_section
from gpubench.report.sections import PAGE, Section, SectionPart, Styled, TextTable, Words
from gpubench.report.tiles import tiles
from gpubench.report.verdicts import verdict_section
from gpubench.store.accounting import run_warnings


def campaign_page(inputs: ReportInputs) -> Page:
    """Its links to raw files are relative to the campaign's directory."""
    plan = inputs.plan
    names = labels.cell_names([one.key for one in inputs.verdicts])
    samples = samples_section(inputs, names)
    drawn, left_out = tiles(inputs, names)
    more = f"; {left_out} more workloads and sizes stand in the table" if left_out else ""
    measured = curves(plan, inputs.cells)
    return Page(
        title=f"{' · '.join(one.label for one in plan.variants)} on {plan.site.name}",
        over=headline.about(inputs),
        headline=headline.answer(inputs),
        notes=[[Styled("A against A. ", "strong"), text] for text in headline.same_twice(plan)],
        tiles=drawn,
        key="Mean time, baseline → candidate; dot and line: change and interval, slower to the right; band: "
        f"±{inputs.settings.margin.percent}, the margin. One scale for all{more}.",
        steps=next_steps(inputs),
        sections=[
            _verdicts(inputs),
            samples,
            *_scaling(inputs, [part.anchor for part in samples.parts]),
            *(
                []
                if links.say_nothing(inputs.links)
                else [_page_only(links.links_section(plan.campaign, inputs.links))]
            ),
            runs_section(inputs),
            provenance.provenance_section(inputs),
            _facts(inputs),
            _notes(inputs),
        ],
        made=f"Made {headline.moment(inputs.generated_at)} by gpubench {plan.gpubench}.",
        why_no_chart=f"no run of {plan.campaign} has a sample",
        plots=lambda width: [
            effect_plot(inputs.verdicts, inputs.settings.margin, width),
            efficiency_plot(measured, width),
        ],
    )


def _page_only(section: Section) -> Section:
    return dataclasses.replace(section, on=PAGE)


def _verdicts(inputs: ReportInputs) -> Section:
    section = verdict_section(
        inputs.plan.campaign,
        inputs.verdicts,
        inputs.settings,
        inputs.seconds,
        notes=provenance.unplanned(inputs.plan, inputs.changes),
        linked=True,
    )
    against = " or ".join(labels.baselines(inputs.verdicts) or [inputs.plan.baseline])
    change = (
        f"Change: time of the candidate against the baseline {against}; positive is slower. Baseline and candidate: "
        "geometric means over the blocks in which both ran. The interval is over blocks, at the level at which Holm "
        "decided the cell; that of an equivalent one is 95 %. Every change leads to its run means and raw files."
    )
    said = [headline.certainty(inputs), inputs.calibration]
    sure = SectionPart(
        text=[Styled(change, "quiet")], lines=said, fold="How sure this is", anchor="certainty", look="beside"
    )
    return dataclasses.replace(section, parts=[*section.parts, sure])


def _scaling(inputs: ReportInputs, anchors: list[str]) -> list[Section]:
    """Of workloads with runs at two sizes or more, and the scheduler's share where it was measured."""
    measured = curves(inputs.plan, inputs.cells)
    ids = {one.workload.params_id for one in measured}
    scaled = {name for name in ids if is_scaled([one for one in measured if one.workload.params_id == name])}
    shown = [one for one in measured if one.workload.params_id in scaled]
    shares = scheduler_shares(inputs.plan, inputs.cells)
    found = [_page_only(scaling_section(inputs.plan.campaign, shown, [], anchors=anchors))] if shown else []
    return found + ([overhead_section(inputs.plan, shares, anchors)] if shares else [])


def _facts(inputs: ReportInputs) -> Section:
    table = TextTable(["campaign", ""], headline.facts(inputs), "What was run", "facts")
    return Section([SectionPart(table=table)], title="The campaign", anchor="campaign", brief=inputs.plan.campaign)


def _notes(inputs: ReportInputs) -> Section:
    warnings = [
        *provenance.unplanned(inputs.plan, inputs.changes),
        *inputs.plan.notes,
        *inputs.warnings,
        *run_warnings(inputs.outcomes),
    ]
    files: list[str | Styled] = [
        "Files of this campaign: ",
        Styled("plan.json", link="plan.json"),
        ", ",
        Styled("results.parquet", link="results.parquet"),
        " (every sample), ",
        Styled("verdicts.json", link="verdicts.json"),
        " (every number of every verdict), ",
        Styled("report.md", link="report.md"),
        ".",
    ]
    text: list[Words] = [files] if warnings else ["No warning was recorded.", files]
    return Section(
        [SectionPart(lines=warnings), SectionPart(text=text)],
        title="Notes and files",
        anchor="notes",
        brief=f"{len(warnings)} notes" if warnings else "no warning",
        open=bool(warnings),
        on=PAGE,
    )
