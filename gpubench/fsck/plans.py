"""The plan against the hashes in it, and what was made from it: scripts' specs, the node half, manifests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpubench.fsck.findings import MOVE, RESTORE, Finding, read_object
from gpubench.fsck.runs import Row
from gpubench.model.plan import Plan
from gpubench.plan.jobs import run_id
from gpubench.render.job import turns_spec
from gpubench.render.planned import UNRESOLVED, spec_path, turns_path
from gpubench.spec import WorkloadSpec
from gpubench.spec.plain import content_id
from gpubench.store.campaign import PLAN_FILE, Campaign


def check_plan(campaign: Campaign) -> Iterator[Finding]:
    """Whether run ids and workloads' ids are still the hashes of what stands beside them."""
    plan = campaign.plan
    sources = [(PLAN_FILE, plan.jobs)]
    sources += [(f"plan.d/{number:03d}.json", one.jobs) for number, one in enumerate(campaign.additions, start=1)]
    for name, jobs in sources:
        wrong = [
            run.run
            for job in jobs
            for block in job.blocks
            for run in block.runs
            if run.run != run_id(plan.campaign, block.block, job.place, run.variant, run.workloads)
        ]
        if wrong:
            what = f"{len(wrong)} run ids aren't the hash of their row, the first: {wrong[0]}"
            yield Finding(str(campaign.directory / name), "edited", what, RESTORE)
    for one in plan.workloads:
        spec = WorkloadSpec(one.name, one.backend, one.params, one.reps, one.warmup, one.timeout_s)
        if spec.params_id != one.params_id:
            what = f"{one.params_id} isn't the hash of workload {one.name} and its parameters"
            yield Finding(str(campaign.directory / PLAN_FILE), "edited", what, RESTORE)


def check_specs(campaign: Campaign, node_half: str) -> Iterator[Finding]:
    """Every spec that is there against the plan, and those that are missing though others of its job are there."""
    plan = campaign.plan
    planned: dict[Path, Row] = {
        campaign.job_dir(job.job) / spec_path(block, run): (job, block, run) for job, block, run in campaign.rows()
    }
    turns = {
        campaign.job_dir(job.job) / turns_path(block): turns_spec(plan, job, block).dump()
        for job in campaign.jobs
        for block in job.blocks
        if block.turns
    }
    there = set((campaign.directory / "jobs").glob("*/specs/*.json"))
    for path in sorted(there - planned.keys() - turns.keys()):
        if path.parents[1].name in {job.job for job in campaign.jobs}:
            yield Finding(str(path), "foreign", "no run of the plan has such a spec", MOVE)
    rendered = {path.parents[1] for path in there}
    for path, text in turns.items():
        if path not in there and path.parents[1] in rendered:
            yield Finding(
                str(path), "torn", "the block's turns are missing", f"gpubench plan --out {campaign.directory}"
            )
        elif path in there and path.read_text("utf-8", errors="replace") != text:
            yield Finding(str(path), "edited", "the turns aren't those of the plan", RESTORE)
    for path, row in planned.items():
        if path not in there:
            if path.parents[1] in rendered:
                yield Finding(
                    str(path), "torn", "the run's spec is missing", f"gpubench plan --out {campaign.directory}"
                )
            continue
        spec = read_object(path)
        if spec is None:
            yield Finding(str(path), "torn", "cut off or not JSON", RESTORE)
            continue
        try:
            wrong = _against_plan(plan, row, spec)
        except (TypeError, AttributeError):  # somebody else's idea of what stands there
            wrong = ["workloads"]
        if node_half and spec.get("node_half", node_half) != node_half:
            wrong.append("node_half (of node.pyz)")
        if wrong:
            yield Finding(str(path), "edited", f"it isn't what the plan says: {', '.join(wrong)}", RESTORE)


def _against_plan(plan: Plan, row: Row, spec: dict[str, Any]) -> list[str]:
    job, block, run = row
    variant = next((one for one in plan.variants if one.label == run.variant), None)
    image = (variant.image if variant else None) or UNRESOLVED
    said = {
        "campaign": plan.campaign,
        "job": job.job,
        "block": block.block,
        "run": run.run,
        "order": run.order,
        "variant": run.variant,
        "image": image.id,
        "manifest": image.manifest,
        "nodes": job.nodes,
        "workers_per_node": job.workers_per_node,
        "threads_per_worker": plan.threads_per_worker,
        "protocol": plan.protocol,
        "env": {
            **image.env,
            **plan.site.env,
            **plan.workarounds(job.nodes),
            **(variant.env if variant else {}),
        },
    }
    wrong = [name for name, value in said.items() if spec.get(name, value) != value]
    workloads = {one.params_id: (one.name, one.reps, one.warmup) for one in plan.workloads}
    taken = [(one.get("name"), one.get("reps"), one.get("warmup")) for one in spec.get("workloads", [])]
    return wrong if taken == [workloads.get(one) for one in run.workloads] else [*wrong, "workloads"]


def check_manifests(campaign: Campaign) -> Iterator[Finding]:
    """Every manifest against the hash in its name, and those that the plan names against what is there."""
    named = {one.image.manifest for one in campaign.plan.variants if one.image and one.image.manifest}
    there = sorted((campaign.directory / "manifests").glob("*"))
    for path in there:
        plain = read_object(path) if path.suffix == ".json" else None
        if path.suffix != ".json" or path.stem not in named:
            yield Finding(str(path), "foreign", "no variant's image has that manifest", MOVE)
        elif plain is None:
            yield Finding(str(path), "torn", "cut off or not JSON", RESTORE)
        elif content_id(plain) != path.stem:
            yield Finding(str(path), "edited", "its name isn't the hash of what it says", RESTORE)
    for name in sorted(named - {path.stem for path in there}):
        path = campaign.manifest_path(name)
        yield Finding(str(path), "torn", "an image's manifest is missing", RESTORE)


def unknown_jobs(campaign: Campaign, names: Sequence[str]) -> Iterator[Finding]:
    """Job directories that the plan doesn't know."""
    known = {job.job for job in campaign.jobs}
    for name in names:
        if name not in known:
            yield Finding(str(campaign.job_dir(name)), "foreign", "no job of the plan has that name", MOVE)
