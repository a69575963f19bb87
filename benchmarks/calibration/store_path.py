"""The same campaigns through plan, run directories, accounting and merge: the store must not change a verdict.

Every campaign is planned by ``make_plan``, its runs are written by the node half's writer, and the verdicts are made
from what stands on the disk. What becomes of a simulated cell:

- a run whose cells are all lost was killed: samples of its first workload, but no record;
- a failed cell is a workload that failed after half of its repetitions;
- a lost cell is a skipped workload where another one of its run ended well (else the node half would call the whole
  run failed, which is not what was simulated), else one of which only half the samples reached the disk.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.calibration.campaigns import Campaigns, generate
from benchmarks.calibration.noise import PLACE, Noise, Shape
from benchmarks.calibration.whole_path import LABELS, same_verdict
from gpubench import __version__
from gpubench.model.plan import Plan, PlannedBlock, PlannedJob, PlannedRun
from gpubench.model.site import Layout, Site
from gpubench.model.variant import Variant
from gpubench.node.run import take_result
from gpubench.node.spec import RunRecord, WorkloadSpec
from gpubench.node.spec.plain import to_plain
from gpubench.node.spec.records import RUN_RECORD, workload_record
from gpubench.node.writer.run_dir import append_sample, attempt_of, claim, finish
from gpubench.plan.make import make_plan
from gpubench.plan.request import Request
from gpubench.plan.request_checks import plan_clusters
from gpubench.plan.scope import plan_scope
from gpubench.results.merge.family import cells, family
from gpubench.results.merge.table import sample_table
from gpubench.stats.question import Question
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict, judge
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign

_START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_OK, _LOST, _FAILED = range(3)  # as in Campaigns


def disagreements(seed: int, noise: Noise, shape: Shape) -> int:
    """Cells whose verdict, p-value or interval differs between the store's path and the arrays' (should be 0)."""
    different = 0
    for campaigns in generate(seed, noise, shape):
        fast = campaigns.judged(VerdictSettings())
        for which in range(campaigns.times.shape[0]):
            with tempfile.TemporaryDirectory(prefix="gpubench-calibration-") as directory:
                write(Path(directory), campaigns, which)
                verdicts = read(Path(directory))
            rows = range(which * campaigns.comparisons, (which + 1) * campaigns.comparisons)
            different += sum(not same_verdict(*pair, fast) for pair in zip(verdicts, rows, strict=True))
    return different


def write(directory: Path, campaigns: Campaigns, which: int) -> None:
    """Plan one campaign and write its runs, in the order in which they would have run."""
    plan = plan_campaign(campaigns, which)
    writer = _Writer(Campaign.begin(directory, plan), campaigns, which)
    for job, block, run in plan.runs():
        writer.write(job, block, run)


def read(directory: Path) -> list[Verdict]:
    """Verdicts from what stands on the disk, as ``compare`` makes them."""
    campaign = Campaign.open(directory)
    accounting = account(campaign)
    assert not accounting.warnings, accounting.warnings
    plan = campaign.whole_plan
    table = cells(plan, accounting.outcomes, sample_table(accounting.outcomes))
    return judge(family(plan, table), Question().settings(plan))


def plan_campaign(campaigns: Campaigns, which: int) -> Plan:
    """One campaign's plan; its seed makes the orders in which its runs were simulated."""
    count, blocks, variants, reps = campaigns.times.shape[1:]
    nodes, workers = PLACE
    workloads = [WorkloadSpec("tasks", "dask", {"count": 100 + cell}, reps, 1, 60.0) for cell in range(count)]
    site = Site(
        name="simulated",
        scheduler="local",
        launcher="fork",
        runtime="venv",
        device="cpu",
        interface="lo",
        layout=Layout(workers=workers),
    )
    request = Request(
        gpubench=__version__,
        site=site,
        suite="simulated",
        workloads=workloads,
        variants=[Variant(label=label, ucx=label) for label in LABELS[:variants]],
        nodes=[nodes],
        blocks=blocks,
        seed=int(campaigns.seeds[which]),
        protocol="tcp",
        margin=site.defaults.margin,
        machine_cores=2,
        machine_memory=2**33,
    )
    scope = plan_scope(*plan_clusters(request))
    return make_plan(request, scope, campaign=f"calibration-{which}", created_at=_START.isoformat())


@dataclasses.dataclass
class _Writer:
    """The node half of every run of one simulated campaign; ``clock`` goes on as samples are taken."""

    campaign: Campaign
    campaigns: Campaigns
    which: int
    clock: dt.datetime = _START

    def write(self, job: PlannedJob, block: PlannedBlock, run: PlannedRun) -> None:
        """One run directory."""
        place = (self.which, slice(None), block.block - 1, LABELS.index(run.variant))
        workloads = {item.params_id: item for item in self.campaign.plan.workloads}
        status = dict(zip(workloads, self.campaigns.status[place].tolist(), strict=True))
        times = dict(zip(workloads, self.campaigns.times[place].tolist(), strict=True))
        killed, any_ok = set(status.values()) == {_LOST}, _OK in status.values()
        path, started = claim(self.campaign.runs_dir, run.run), self.clock
        ended = []
        for planned in (workloads[params_id] for params_id in run.workloads):
            became = status[planned.params_id]
            skipped = became == _LOST and any_ok
            if not skipped:
                self._take(path, planned, times[planned.params_id][: None if became == _OK else planned.reps // 2])
            if killed:
                break
            word = "skipped" if skipped else "failed" if became == _FAILED else "ok"
            ended.append(to_plain(workload_record(planned, word, "" if word == "ok" else "simulated")))
        self.clock += dt.timedelta(seconds=1)
        if not killed:
            record = self._record(job, block, run, attempt_of(path), started)
            take_result(record, {"workloads": ended, "transport": ["tcp"], "warnings": [], "error": ""})
            finish(path, record)

    def _take(self, path: Path, planned: WorkloadSpec, times: Sequence[float]) -> None:
        """A warm-up, which must not count, and timed samples."""
        for number, wall_s in enumerate([10.0, *times]):
            append_sample(
                path,
                {
                    "workload": planned.name,
                    "backend": planned.backend,
                    "params_id": planned.params_id,
                    "rep": max(number - 1, 0),
                    "warmup": number == 0,
                    "wall_s": wall_s,
                    "bytes": 0,
                    "answer": "ok",
                    "started_at": self.clock.isoformat(timespec="microseconds"),
                },
            )
            self.clock += dt.timedelta(seconds=wall_s)

    def _record(
        self, job: PlannedJob, block: PlannedBlock, run: PlannedRun, attempt: int, started: dt.datetime
    ) -> RunRecord:
        plan = self.campaign.plan
        return RunRecord(
            schema=RUN_RECORD,
            campaign=plan.campaign,
            site=plan.site.name,
            job=job.job,
            block=block.block,
            run=run.run,
            attempt=attempt,
            order=run.order,
            variant=run.variant,
            image="",
            ucx_version="",
            protocol=plan.protocol,
            device=plan.device,
            nodes=job.nodes,
            workers_per_node=job.workers_per_node,
            threads_per_worker=plan.threads_per_worker,
            status="failed",
            reason="",
            started_at=started.isoformat(),
            ended_at=self.clock.isoformat(),
        )
