"""Where a campaign runs: node counts times workers per node, and what fits there."""

from typing import Any

import pytest

from gpubench.errors import PlanRefusedError
from gpubench.plan.budget import node_hours
from tests.plan.requests_by_hand import plan, site, workload
from tests.workloads.running import complete

SWEEP: dict[str, Any] = {"nodes": [1, 2], "workers": [2, 4], "blocks": 2}


def test_a_sweep_of_workers_per_node_is_planned_place_by_place() -> None:
    made = plan(**SWEEP)
    assert [job.job for job in made.jobs] == ["j001-n1-w2", "j002-n1-w4", "j003-n2-w2", "j004-n2-w4"]
    assert made.places == [(1, 2), (1, 4), (2, 2), (2, 4)]
    assert {one.place for one in made.comparisons} == set(made.places)
    assert len(made.comparisons) == 4 * 2
    assert len({run.run for _, _, run in made.runs()}) == 4 * 2 * 2
    assert [(cost.nodes, cost.workers_per_node, cost.runs) for cost in node_hours(made)] == [
        (*place, 4) for place in made.places
    ]


def test_a_workload_that_needs_more_workers_is_left_out_where_there_are_too_few_and_said() -> None:
    made = plan(nodes=[1, 2], workers=[1], blocks=2)
    measured = {job.nodes: len(job.blocks[0].runs[0].workloads) for job in made.jobs}
    assert measured == {1: 1, 2: 2}
    assert {one.nodes for one in made.comparisons if one.workload == "message"} == {2}
    assert "message needs at least 2 workers: left out on 1 node x 1 worker" in made.notes


def test_a_workload_that_does_not_fit_is_refused_with_the_arithmetic() -> None:
    merge = workload("merge", **complete("merge", {"rows_per_worker": 100_000_000}))
    with pytest.raises(PlanRefusedError) as refused:
        plan(workloads=[merge])
    said = str(refused.value)
    assert said.startswith(
        "merge doesn't fit on 1 node x 2 workers: a worker has 4.0 GiB, 60 % of which it uses before it spills to disk"
    )
    assert "holds up to 8.9 GiB (rows_per_worker × 16 B" in said
    assert "a smaller rows_per_worker" in refused.value.then


def test_memory_that_nobody_knows_refuses_nothing() -> None:
    merge = workload("merge", **complete("merge", {"rows_per_worker": 100_000_000}))
    assert plan(workloads=[merge], machine_memory=0).jobs[0].memory_limit == 0
    gpus = site(node=site().node.model_copy(update={"gpus": 2, "gpu_memory": None}))
    assert plan(workloads=[merge], device="gpu", protocol="tcp", site=gpus)


@pytest.mark.parametrize(
    ("gpus", "nodes", "one_machine", "has"), [(8, 1, False, 40), (2, 2, False, 40), (1, 1, True, 40), (1, 2, True, 20)]
)
def test_a_worker_has_one_gpu_however_many_its_node_has_and_nodes_that_are_one_machine_share_it(
    gpus: int, nodes: int, one_machine: bool, has: int
) -> None:
    """With ``dask cuda worker`` on the first GPUs of the machine, as many as a node has workers."""
    node = site().node.model_copy(update={"gpus": gpus, "gpu_memory": 40 * 1024**3})
    layout = site().layout.model_copy(update={"one_machine": one_machine})
    merge = workload("merge", **complete("merge", {"rows_per_worker": 10**9}))
    with pytest.raises(PlanRefusedError, match=rf"a worker has {has}\.0 GiB, 80 % of which"):
        plan(
            workloads=[merge],
            device="gpu",
            protocol="tcp",
            site=site(node=node, layout=layout),
            nodes=[nodes],
            workers=[1],
        )


def test_a_workload_that_would_make_the_memory_pool_grow_is_refused() -> None:
    merge = workload("merge", **complete("merge", {"rows_per_worker": 100_000_000}))
    pooled = site(layout=site().layout.model_copy(update={"rmm_pool": 10**9}))
    with pytest.raises(PlanRefusedError, match=r"a worker's memory pool has .*, and it holds up to "):
        plan(workloads=[merge], device="gpu", protocol="tcp", site=pooled, machine_memory=0)
