"""A campaign as results: its planned runs with what became of them, and its planned family."""

import functools
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import polars as pl

from gpubench.images.variant_text import variant_text
from gpubench.model.plan import Plan
from gpubench.results.imports import flat
from gpubench.results.merge.family import cells, day_of, family
from gpubench.results.merge.provenance import ProvenanceFacts, facts
from gpubench.results.results import Results, RunCircumstances
from gpubench.stats.data import CellRun, ComparisonInput, Key
from gpubench.stats.question import Question
from gpubench.store.accounting import RunResult, replaced_blocks
from gpubench.store.campaign import Campaign


def campaign_results(campaign: Campaign, outcomes: Sequence[RunResult], samples: pl.DataFrame) -> Results:
    """The results of a campaign, maybe one that still runs; ``samples`` is the table of its outcomes."""
    plan = campaign.plan
    runs = cells(plan, outcomes, samples)
    return Results(
        kind="campaign",
        name=plan.campaign,
        place=campaign.directory,
        variants=[variant.label for variant in plan.variants],
        keys=_in_planned_order(plan, runs),
        runs=runs,
        family=functools.partial(_family, plan, runs, replaced_blocks(outcomes).keys()),
        plan=plan,
        plans=[plan],
        about=_about(plan, outcomes),
        circumstances=functools.partial(
            _circumstances, plan, functools.cache(campaign.manifests), {run.run.run: run for run in outcomes}
        ),
    )


def _family(plan: Plan, runs: Sequence[CellRun], replaced: Set[int], question: Question) -> list[ComparisonInput]:
    return family(plan.model_copy(update={"comparisons": question.comparisons(plan)}), runs, replaced)


def _in_planned_order(plan: Plan, runs: Sequence[CellRun]) -> list[Key]:
    workloads = {workload.params_id: number for number, workload in enumerate(plan.workloads)}
    places = {place: number for number, place in enumerate(plan.places)}

    def order(key: Key) -> tuple[int, int]:
        cell = dict(key)
        return workloads[cell["params_id"]], places[cell["nodes"], cell["workers_per_node"]]

    return sorted({run.key for run in runs}, key=order)


def _about(plan: Plan, outcomes: Sequence[RunResult]) -> str:
    versions = ", ".join(f"{variant.label} ({variant_text(variant)})" for variant in plan.variants)
    ok = sum(outcome.status == "ok" for outcome in outcomes)
    in_part = sum(bool(outcome.in_part) for outcome in outcomes)
    runs = f"{ok} of {len(outcomes)} runs are ok{f', {in_part} of them in part' if in_part else ''}"
    return f"{day_of(plan)}, site {plan.site.name}, suite {plan.suite}, {versions}; {runs}"


def _circumstances(
    plan: Plan, manifests: Callable[[], Mapping[str, Any]], outcomes: Mapping[str, RunResult], run: CellRun
) -> RunCircumstances:
    recorded = facts(outcomes[run.run].provenance)
    image = next(variant.image for variant in plan.variants if variant.label == run.variant)
    image_fields = flat(manifests().get(image.manifest, {}), "image") if image else {}
    machine = (("site", plan.site.name), ("processors", _processors(plan, recorded)))
    return RunCircumstances(image_fields, recorded, machine)


def _processors(plan: Plan, recorded: ProvenanceFacts) -> str:
    cpus = " x ".join(recorded.text(name) for name in ("cores", "cpu_model"))
    gpus = recorded.text("gpu_model") if plan.device != "cpu" and recorded.knows("gpu_model") else ""
    return f"{cpus}, {gpus}" if gpus else cpus
