"""Campaigns on disk as the tool and the node half write them, without running anything."""

import dataclasses
import datetime as dt
import random
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
from gpubench.node.spec.records import LOGS_FILE, RUN_RECORD
from gpubench.node.spec.sample_columns import Sample
from gpubench.node.writer import run_dir
from gpubench.node.writer.run_dir import append_sample, write_provenance
from gpubench.store.campaign import Campaign
from tests.plan.requests_by_hand import image

START = dt.datetime(2025, 11, 20, 14, 0, tzinfo=dt.UTC)

QUICK: tuple[tuple[str, dict[str, Any], int, float], ...] = (
    ("message", {"size": 1024}, 30, 60e-6),
    ("message", {"size": 10_000_000}, 30, 5.2e-3),
    ("merge", {"rows_per_worker": 200_000, "frac_match": 0.3}, 6, 0.41),
    ("transpose-sum", {"n": 3000, "chunk": 1000}, 6, 0.13),
    ("tasks", {"count": 500}, 6, 0.22),
)
"""Workloads with parameters, repetitions and typical seconds."""

Effect = Callable[[str, WorkloadSpec], float]


def workload(name: str, params: Mapping[str, Any], reps: int, warmup: int = 1) -> WorkloadSpec:
    return WorkloadSpec(name=name, backend="dask", params=params, reps=reps, warmup=warmup, timeout_s=60.0)


def variant(label: str, ucx: str = "", env: Mapping[str, str] | None = None) -> PlannedVariant:
    ucx = ucx or label
    built = image(ucx).model_copy(update={"manifest": content_id(manifest(ucx))})
    return PlannedVariant(label=label, ucx=ucx, env=dict(env or {}), image=built)


def manifest(ucx: str) -> dict[str, Any]:
    packages = {"dask": "2025.7.0", "distributed": "2025.7.0", "numpy": "2.2.6", "libucx-cu12": ucx}
    return {"schema": "gpubench/manifest/1", "packages": packages, "ucx": {"version": ucx, "hash": content_id(ucx, 64)}}


def make_block(
    number: int, variants: Sequence[str], params_ids: Sequence[str], nodes: int = 1, **extra: Any
) -> PlannedBlock:
    shift = number % len(variants)
    labels = [*variants[shift:], *variants[:shift]]
    runs = [
        PlannedRun(
            run=content_id({"block": number, "variant": label, "nodes": nodes}),
            variant=label,
            order=order,
            workloads=list(params_ids),
        )
        for order, label in enumerate(labels)
    ]
    return PlannedBlock(block=number, runs=runs, **extra)


def make_plan(
    variants: Sequence[PlannedVariant] = (variant("1.17.0"), variant("1.19.0")),
    *,
    blocks: int = 8,
    nodes: Sequence[int] = (1,),
    suite: Sequence[tuple[str, dict[str, Any], int, float]] = QUICK,
    campaign: str = "local-quick-20251120T140000Z",
) -> Plan:
    workloads = [workload(name, params, reps) for name, params, reps, _ in suite]
    labels, ids = [one.label for one in variants], [one.params_id for one in workloads]
    jobs = [
        PlannedJob(
            job=f"n{count}-1",
            nodes=count,
            workers_per_node=2,
            memory_limit=2**31,
            limit_s=600.0,
            blocks=[make_block(number, labels, ids, count) for number in range(blocks)],
        )
        for count in nodes
    ]
    comparisons = [
        Comparison(
            workload=one.name,
            backend=one.backend,
            params_id=one.params_id,
            nodes=count,
            workers_per_node=2,
            threads_per_worker=1,
            baseline=labels[0],
            candidate=candidate,
        )
        for count in nodes
        for one in workloads
        for candidate in labels[1:]
    ]
    site = Site(
        name="local", scheduler="local", launcher="fork", runtime="venv", interface="lo", layout=Layout(workers=2)
    )
    return Plan(
        campaign=campaign,
        created_at=START.isoformat(),
        gpubench="0.1.0.dev0",
        seed=7,
        site=site,
        suite="quick",
        workloads=workloads,
        variants=list(variants),
        protocol="ucx",
        device="cpu",
        threads_per_worker=1,
        margin=0.03,
        jobs=jobs,
        comparisons=comparisons,
        time=TimeModel(run_s=10.0, block_s=20.0, total_s=160.0, source="estimates of the site"),
        budget_s=300.0,
        notes=[],
    )


def no_effect(_variant: str, _workload: WorkloadSpec) -> float:
    return 1.0


@dataclasses.dataclass
class Writer:
    """Writes run directories of ``campaign``; ``effect`` multiplies the typical seconds of a variant's workload."""

    campaign: Campaign
    effect: Effect = no_effect
    seconds: Mapping[str, float] = dataclasses.field(
        default_factory=lambda: {workload(name, params, 1).params_id: typical for name, params, _, typical in QUICK}
    )
    clock: dt.datetime = START
    costs: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    """By variant, per second: ``cpu_s``, ``energy_j``."""
    logs: Callable[[PlannedRun, PlannedBlock], Mapping[str, str]] = lambda _run, _block: {}
    """Texts of a run's ``logs.zip``, by name."""

    def write(
        self,
        job: PlannedJob,
        block: PlannedBlock,
        run: PlannedRun,
        *,
        attempt: int = 1,
        status: str = "ok",
        reason: str = "",
        failed: Mapping[str, str] | None = None,
        record: bool = True,
        **overrides: Any,
    ) -> Path:
        """One run directory. ``failed`` maps ``params_id`` to the reason; ``record=False`` is a run that was killed."""
        plan = self.campaign.plan
        directory = self.campaign.runs_dir / f"{run.run}-{attempt}"
        directory.mkdir(parents=True)
        begun, lines = self.clock, []
        known = {one.params_id: one for one in plan.workloads}
        random_ = random.Random(f"{run.run} {attempt}")
        for params_id in run.workloads:
            if status in ("ok", "failed"):
                lines += self._lines(known[params_id], run.variant, random_, short=params_id in (failed or {}))
        (directory / "samples.jsonl").touch()
        append_sample(directory, *lines)
        write_provenance(directory, provenance(run, plan))
        with zipfile.ZipFile(directory / LOGS_FILE, "w") as logs:
            for name, text in self.logs(run, block).items():
                logs.writestr(name, text)
        self.clock += dt.timedelta(seconds=2)
        if record:
            ending = {"attempt": attempt, "status": status, "reason": reason, "started_at": begun.isoformat()}
            made = self._record(job, block, run, ending, failed or {})
            run_dir.finish(directory, dataclasses.replace(made, **overrides))
        return directory

    def _lines(self, planned: WorkloadSpec, label: str, random_: random.Random, *, short: bool) -> list[Sample]:
        lines = []
        typical = (
            self.seconds.get(planned.params_id, 0.1) * self.effect(label, planned) * random_.lognormvariate(0, 0.01)
        )
        for number in range(planned.warmup + (2 if short else planned.reps)):
            warmup = number < planned.warmup
            wall_s = typical * random_.lognormvariate(0, 0.03) * (1.8 if warmup else 1)
            self.clock += dt.timedelta(seconds=wall_s)
            lines.append(
                {
                    "workload": planned.name,
                    "backend": planned.backend,
                    "params_id": planned.params_id,
                    "rep": number if warmup else number - planned.warmup,
                    "warmup": warmup,
                    "wall_s": wall_s,
                    "bytes": int(planned.params.get("size", 48_000_000)),
                    "answer": "ok",
                    "started_at": self.clock.isoformat(timespec="microseconds"),
                    **{name: rate * wall_s for name, rate in self.costs.get(label, {}).items()},
                }
            )
        return lines

    def _record(
        self,
        job: PlannedJob,
        block: PlannedBlock,
        run: PlannedRun,
        ending: Mapping[str, Any],
        failed: Mapping[str, str],
    ) -> RunRecord:
        plan = self.campaign.plan
        known = {one.params_id: one for one in plan.workloads}
        image = next(one.image for one in plan.variants if one.label == run.variant)
        return RunRecord(
            schema=RUN_RECORD,
            campaign=plan.campaign,
            site=plan.site.name,
            job=job.job,
            block=block.block,
            run=run.run,
            order=run.order,
            variant=run.variant,
            image=image.id if image else "",
            ucx_version=image.ucx_version if image else "",
            protocol=plan.protocol,
            device=plan.device,
            nodes=job.nodes,
            workers_per_node=job.workers_per_node,
            threads_per_worker=plan.threads_per_worker,
            **ending,
            ended_at=self.clock.isoformat(),
            transport=["tcp"],
            hosts=["laptop"],
            workloads=[
                WorkloadRecord(
                    workload=known[params_id].name,
                    backend=known[params_id].backend,
                    params=known[params_id].params,
                    params_id=params_id,
                    reps=known[params_id].reps,
                    warmup=known[params_id].warmup,
                    status="failed" if params_id in failed else "ok",
                    reason=failed.get(params_id, ""),
                )
                for params_id in run.workloads
                if ending["status"] in ("ok", "failed")
            ],
        )


def provenance(run: PlannedRun, plan: Plan) -> dict[str, Any]:
    version = next(one.image.ucx_version for one in plan.variants if one.label == run.variant and one.image)
    env = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"} | next(
        one.env for one in plan.variants if one.label == run.variant
    )
    processes = [
        {
            "role": role,
            "rank": 0,
            "host": "laptop",
            "pid": 4711 + number,
            "ucx": {"loaded": version, "path": f"/images/ucx/{version}/lib/libucp.so.0", "env": env},
            "node_half": "9f2c1e77aa01",
            "python": "3.11.7",
            "affinity": [0, 1],
            "packages": "9d1f5c2ab0e34a77",
            "build_id": "",
            "versions": {"dask": "2025.7.0", "distributed": "2025.7.0"},
        }
        for number, role in enumerate(("scheduler", "worker", "worker", "client"))
    ]
    node = {
        "rank": 0,
        "host": "laptop",
        "cpu_model": "Intel(R) Xeon(R) Processor @ 2.60GHz",
        "cores": 2,
        "kernel": "6.1.0",
        "memory": 8 * 2**30,
        "load": [{"t": t, "load1": 0.8 + t / 10, "steal": 0.4, "busy": 61.0} for t in range(5)],
        "dask_config": {"distributed.comm.ucx": {}},
        "environment": {"PATH": "/usr/bin"},
    }
    return {
        "schema": "gpubench/provenance/1",
        "run": run.run,
        "processes": processes,
        "nodes": [node],
        "transport": {"lanes": ["tcp/lo"], "observed": ["tcp"]},
        "warnings": [],
    }


def begin(directory: Path, plan: Plan | None = None) -> Campaign:
    """A campaign with its manifests and not one run."""
    campaign = Campaign.begin(directory, plan or make_plan())
    for one in campaign.plan.variants:
        if one.image:
            campaign.write_manifest(one.image.manifest, manifest(one.ucx))
    return campaign


def finish(campaign: Campaign, effect: Effect = no_effect) -> Writer:
    """Write every planned run as ``ok``."""
    writer = Writer(campaign, effect)
    for row in campaign.rows():
        writer.write(*row)
    return writer
