"""A finished campaign on disk as the node half writes it, of any size, without running anything."""

from __future__ import annotations

import datetime as dt
import functools
import json
import random
from pathlib import Path
from typing import Any

from gpubench.model.image import Image
from gpubench.model.plan import (
    Comparison,
    Plan,
    PlannedBlock,
    PlannedJob,
    PlannedRun,
    PlannedVariant,
    TimeModel,
)
from gpubench.model.site import Layout, Site
from gpubench.node.spec import RunRecord, WorkloadRecord, WorkloadSpec
from gpubench.node.spec.plain import content_id
from gpubench.node.spec.records import LINKS_FILE, LOGS_FILE, PROVENANCE_FILE, RUN_FILE, RUN_RECORD
from gpubench.node.writer.run_dir import append_links, append_sample, finish, write_provenance
from gpubench.store.campaign import Campaign

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
VARIANTS = ("1.17.0", "1.19.0")
WORKLOADS = {"merge": 0.4, "transpose-sum": 0.1, "strided-sum": 0.05, "tasks": 0.2, "shuffle": 0.3}
"""Names, with typical seconds."""
REAL = Path(__file__).parents[2] / "tests" / "golden" / "schemas" / "1" / "campaign" / "runs" / "174deff34338-1"


def generate(directory: Path, runs: int, samples: int, seed: int) -> None:
    """``runs`` runs of two variants, ``samples`` in each, shared by the workloads; one in four blocks on two nodes."""
    plan = _plan(runs // len(VARIANTS), samples // len(WORKLOADS) - 1)
    campaign = Campaign.begin(directory, plan)
    for one in plan.variants:
        if one.image:
            campaign.write_manifest(one.image.manifest, _manifest(one.label))
    random_ = random.Random(seed)
    number = 0
    for job in plan.jobs:
        for block in job.blocks:
            for run in block.runs:
                started_at = START + dt.timedelta(seconds=60 * number)
                _write(campaign.runs_dir / f"{run.run}-1", plan, (job, block, run), started_at, random_)
                number += 1


def _plan(blocks: int, reps: int) -> Plan:
    workloads = [
        WorkloadSpec(
            name=name, backend="dask", params={"size": 1000, "method": "tasks"}, reps=reps, warmup=1, timeout_s=60.0
        )
        for name in WORKLOADS
    ]
    ids = [one.params_id for one in workloads]
    of_two = blocks // 4
    jobs = [
        PlannedJob(
            job=f"j{nodes:03d}",
            nodes=nodes,
            workers_per_node=2,
            memory_limit=2**31,
            limit_s=600.0,
            blocks=[_block(first + at, nodes, ids) for at in range(count)],
        )
        for nodes, first, count in ((1, 0, blocks - of_two), (2, blocks - of_two, of_two))
    ]
    comparisons = [
        Comparison(
            workload=one.name,
            backend=one.backend,
            params_id=one.params_id,
            nodes=job.nodes,
            workers_per_node=2,
            threads_per_worker=1,
            baseline=VARIANTS[0],
            candidate=VARIANTS[1],
        )
        for job in jobs
        for one in workloads
    ]
    return Plan(
        campaign="local-scale-20260101T000000Z",
        created_at=START.isoformat(),
        gpubench="0",
        seed=7,
        site=Site(
            name="local", scheduler="local", launcher="fork", runtime="venv", interface="lo", layout=Layout(workers=2)
        ),
        suite="scale",
        workloads=workloads,
        variants=[PlannedVariant(label=label, ucx=label, env={}, image=_image(label)) for label in VARIANTS],
        protocol="ucx",
        device="cpu",
        threads_per_worker=1,
        margin=0.03,
        jobs=jobs,
        comparisons=comparisons,
        time=TimeModel(run_s=10.0, block_s=20.0, total_s=20.0 * blocks, source="generated"),
        budget_s=None,
        notes=[],
    )


def _image(label: str) -> Image:
    return Image(
        kind="venv",
        id=content_id(label, 16),
        ucx_spec=label,
        ucx_version=label,
        binding="ucxx",
        python="python3",
        env={},
        manifest=content_id(_manifest(label)),
    )


def _manifest(label: str) -> dict[str, Any]:
    return {"schema": "gpubench/manifest/1", "packages": {}, "ucx": {"version": label}}


def _block(number: int, nodes: int, ids: list[str]) -> PlannedBlock:
    labels = VARIANTS if number % 2 else VARIANTS[::-1]
    runs = [
        PlannedRun(run=content_id([number, label, nodes]), variant=label, order=order, workloads=ids)
        for order, label in enumerate(labels)
    ]
    return PlannedBlock(block=number, runs=runs)


def _write(
    path: Path,
    plan: Plan,
    row: tuple[PlannedJob, PlannedBlock, PlannedRun],
    started_at: dt.datetime,
    random_: random.Random,
) -> None:
    job, block, run = row
    path.mkdir(parents=True)
    clock = started_at
    noise = random_.lognormvariate(0, 0.01)
    lines = []
    for planned in plan.workloads:
        for rep in range(-1, planned.reps):
            wall_s = WORKLOADS[planned.name] * noise * random_.lognormvariate(0, 0.03)
            clock += dt.timedelta(seconds=wall_s)
            line = {
                "workload": planned.name,
                "backend": planned.backend,
                "params_id": planned.params_id,
                "rep": max(rep, 0),
                "warmup": rep < 0,
                "wall_s": wall_s,
                "bytes": 48_000_000,
                "answer": "ok",
                "started_at": clock.isoformat(timespec="microseconds"),
            }
            lines.append(line)
    append_sample(path, *lines)
    links = [json.loads(line) for line in (REAL / LINKS_FILE).read_text().splitlines()]
    of_workloads = [{"workload": one.name, "params_id": one.params_id} for one in plan.workloads]
    append_links(path, [row | which for which in of_workloads for row in links])
    (path / LOGS_FILE).write_bytes((REAL / LOGS_FILE).read_bytes())
    real = _real(RUN_FILE)
    image = next(one.image for one in plan.variants if one.label == run.variant)
    provenance = _provenance(run.run, job.nodes, (clock - started_at).total_seconds(), random_)
    write_provenance(path, provenance | {"manifest": image.manifest if image else ""})
    record = RunRecord(
        schema=RUN_RECORD,
        campaign=plan.campaign,
        site=plan.site.name,
        job=job.job,
        block=block.block,
        run=run.run,
        attempt=1,
        order=run.order,
        variant=run.variant,
        image=image.id if image else "",
        ucx_version=run.variant,
        protocol=plan.protocol,
        device=plan.device,
        nodes=job.nodes,
        workers_per_node=job.workers_per_node,
        threads_per_worker=plan.threads_per_worker,
        status="ok",
        reason="",
        started_at=started_at.isoformat(),
        ended_at=clock.isoformat(),
        transport=["tcp"],
        hosts=[f"node{number}" for number in range(job.nodes)],
        phases=real["phases"],
        workloads=[
            WorkloadRecord(
                workload=one.name,
                backend=one.backend,
                params=dict(one.params),
                params_id=one.params_id,
                reps=one.reps,
                warmup=one.warmup,
                status="ok",
                reason="",
                details=next((each["details"] for each in real["workloads"] if each["workload"] == one.name), {}),
            )
            for one in plan.workloads
        ],
        node_half=real["node_half"],
    )
    finish(path, record)


@functools.cache
def _real(name: str) -> dict[str, Any]:
    """A file of a run that was really run, kept by the tests of released schemas."""
    found: dict[str, Any] = json.loads((REAL / name).read_bytes())
    return found


def _provenance(run: str, nodes: int, seconds: float, random_: random.Random) -> dict[str, Any]:
    """That of the real run, once per node, with the load of every second; 11 KB and more, as real ones have."""
    real = _real(PROVENANCE_FILE)

    def of_every_node(key: str) -> list[dict[str, Any]]:
        return [{**one, "host": f"node{number}"} for number in range(nodes) for one in real[key]]

    load = [
        {"busy": random_.uniform(50, 100), "load1": random_.uniform(1, 7), "steal": 0.0, "t": 1795299738.53 + second}
        for second in range(int(seconds) + 5)
    ]
    return {
        **real,
        "run": run,
        "processes": of_every_node("processes"),
        "nodes": [{**one, "load": load} for one in of_every_node("nodes")],
        "speed": of_every_node("speed"),
    }
