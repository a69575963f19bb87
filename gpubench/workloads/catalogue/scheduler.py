"""What the scheduler costs: tasks that do nothing."""

from gpubench.workloads.catalogue.entry import BOTH_DEVICES, Param, Workload

WORKLOADS = (
    Workload(
        name="tasks",
        factory="tasks:Tasks",
        family="scheduler",
        source="parsl-perf",
        scaling="none",
        backends=("dask",),
        devices=BOTH_DEVICES,
        params={"count": Param("count", 500, "no-op tasks per repetition", original="--iterate")},
        timed="submitting `count` tasks that do nothing, waiting for all, gathering their results",
        graph="none",
        counted="nothing; the rate is tasks over seconds",
        oracle="exactly `count` results, each of them 7",
        grows=(("count", 1.0),),
    ),
)
