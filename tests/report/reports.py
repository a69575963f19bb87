"""Report inputs of campaigns that stand on disk."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from campaign_builder import QUICK, Writer, begin, finish, make_block, make_plan, variant

from gpubench.model.plan import Plan, PlanAddition, PlannedJob
from gpubench.report.campaign_page import campaign_page
from gpubench.report.page import html, markdown
from gpubench.results.campaigns import campaign_results
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.results.merge.environment_changes import Changes, find_changes, planned_environment
from gpubench.results.merge.evidence import evidence
from gpubench.results.merge.family import family
from gpubench.results.merge.table import sample_table
from gpubench.results.results import judge
from gpubench.stats.settings import VerdictSettings
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign

ROOT = Path(__file__).parents[2]
TEMPLATES = {f"report/{path.name}": path.read_text() for path in (ROOT / "templates" / "report").iterdir()}
Suite = Sequence[tuple[str, dict[str, Any], int, float]]
NOW = dt.datetime(2025, 11, 20, 15, 0, tzinfo=dt.UTC)

THREE = (variant("1.17.0"), variant("1.19.0"), variant("1.19.0-proto1", "1.19.0", {"UCX_PROTO_ENABLE": "n"}))


def collect(campaign: Campaign) -> JudgedCampaign:
    accounting = account(campaign)
    results = campaign_results(campaign, accounting.outcomes, sample_table(accounting.outcomes))
    comparisons = family(campaign.plan, results.runs)
    settings = VerdictSettings(margin=campaign.plan.margin)
    inputs = JudgedCampaign(
        results=results,
        accounting=accounting,
        verdicts=judge(comparisons, settings),
        settings=settings,
        changes=Changes(),
        evidence={},
        manifests=campaign.manifests(),
        generated_at=NOW,
        target="",
    )
    return with_provenance(inputs, recorded(inputs))


def recorded(inputs: JudgedCampaign) -> dict[str, dict[str, Any]]:
    """The provenance of every run, by the name of its directory."""
    return {run.directory.name: dict(run.provenance) for run in inputs.outcomes if run.directory}


PAGES: list[tuple[JudgedCampaign, bytes]] = []


def page_html(inputs: JudgedCampaign) -> bytes:
    """The page of a campaign; the same inputs have the same page, whose charts take half a second to draw."""
    found = next((page for drawn, page in PAGES if drawn is inputs), None)
    if found is None:
        found = html(campaign_page(inputs), TEMPLATES)
        PAGES.append((inputs, found))
    return found


def summary(inputs: JudgedCampaign) -> str:
    """The same in Markdown."""
    return markdown(campaign_page(inputs))


def with_plan(inputs: JudgedCampaign, plan: Plan) -> JudgedCampaign:
    """The same runs, had they been planned like this."""
    return dataclasses.replace(inputs, results=dataclasses.replace(inputs.results, plan=plan))


def with_provenance(
    inputs: JudgedCampaign, provenance: Mapping[str, Mapping[str, Any]], **expected: Any
) -> JudgedCampaign:
    """The same campaign, had its runs recorded this; by the name of their directory."""
    seen = {
        one.run.run: evidence(provenance.get(one.directory.name, {}), one.record, inputs.plan.protocol)
        for one in inputs.outcomes
        if one.directory
    }
    planned = planned_environment(inputs.plan, inputs.manifests, expected.get("allow", ()))
    sides = {
        label: dataclasses.replace(side, by_binding=expected.get("known", {}).get(label, {}))
        for label, side in planned.sides.items()
    }
    facts = {run: of_run.facts for run, of_run in seen.items()}
    allowed = dataclasses.replace(planned, sides=sides)
    changes = find_changes(family(inputs.plan, inputs.results.runs), facts, allowed)
    return dataclasses.replace(inputs, evidence=seen, changes=changes)


def slower_message(label: str, workload: object) -> float:
    """The story of the default campaign: a 10 MB message got slower in 1.19.0."""
    is_it = getattr(workload, "params", {}).get("size") == 10_000_000
    return 1.48 if is_it and label == "1.19.0" else 1.0


def story(directory: Path) -> Campaign:
    """Three variants, eight blocks, everything went well."""
    campaign = begin(directory, make_plan(THREE))
    finish(campaign, slower_message)
    return campaign


def troubled(directory: Path) -> Campaign:
    """Failed, skipped and lost runs, a failed workload, a replaced block."""
    plan: Plan = make_plan(THREE, blocks=6)
    campaign = begin(directory, plan)
    ids = [one.params_id for one in plan.workloads]
    block = make_block(6, [one.label for one in plan.variants], ids, replaces=2)
    job = PlannedJob(job="n1-2", nodes=1, workers_per_node=2, memory_limit=0, limit_s=60.0, blocks=[block])
    campaign = campaign.append(PlanAddition(created_at=plan.created_at, reason="block 2 was broken", jobs=[job]))
    writer = Writer(campaign, slower_message)
    for number, row in enumerate(campaign.rows()):
        if number == 4:
            writer.write(*row, status="failed", reason="worker 1 on laptop was killed by signal 9 after 3.2 s")
        elif number == 7:
            writer.write(*row, record=False)
        elif number == 8:
            continue
        elif number == 10:
            writer.write(*row, status="skipped", reason="known issue openucx/ucx#9999: hangs on lo")
        elif number == 12:
            writer.write(*row, failed={ids[2]: "wrong answer: 119 998 rows, not 120 000"})
        else:
            writer.write(*row, warnings=["2 workers on 2 cores: over-subscribed"])
    return campaign


def empty(directory: Path) -> Campaign:
    """Planned, and not one run."""
    return begin(directory, make_plan(THREE))


SHARES = {1: 1.0, 2: 1.12, 4: 1.45}
"""Seconds of a weak workload by node count: what perfect scaling would leave at 1."""


def scaled(directory: Path, blocks: int = 4, suite: Suite = QUICK) -> Campaign:
    """One, two and four nodes."""
    plan = make_plan(THREE, nodes=tuple(SHARES), blocks=blocks, suite=suite)
    campaign = begin(directory, plan)
    writer = Writer(campaign)
    for job, block, run in campaign.rows():
        slower = SHARES[job.nodes] * (1.1 if run.variant == "1.19.0" and job.nodes == 4 else 1.0)
        writer.effect = lambda _, workload, slower=slower, nodes=job.nodes: (
            slower / (nodes if workload.name == "transpose-sum" else 1)
        )
        writer.write(job, block, run)
    return campaign
