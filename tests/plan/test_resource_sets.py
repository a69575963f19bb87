"""jsrun's resource sets: the arithmetic, what is refused with it, and the lines of Summit's old scripts."""

import shlex
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from gpubench.errors import PlanRefusedError
from gpubench.launchers.resource_sets import ResourceSetStep, check_steps, parse
from gpubench.model.site import LaunchSettings, Layout, Node, Site
from gpubench.plan.placement import check_graphs, check_placement
from tests.plan.requests_by_hand import plan, site

SUMMIT = {"cores": 42, "gpus": 6}


def jsrun(line: str, what: str = "workers") -> ResourceSetStep:
    return ResourceSetStep.of(what, parse(shlex.split(line)))


def on_summit(*lines: str, nodes: int, threads: int) -> list[str]:
    return check_steps([jsrun(line) for line in lines], nodes=nodes, threads=threads, **SUMMIT)


OLD = {
    "launch_dask_cluster": ("-c 42 -g 6 -n 4 -r 1 -a 1 --bind rs", 4, 42),
    "a worker per core": ("-n 84 -c 1 -a 1 -r 42 --bind rs", 2, 1),
    "dask-cuda": ('-c 12 -g 6 -n 2 -r 1 -a 1 --smpiargs="off" --bind rs', 2, 6),
    "a worker per GPU": ("-n 12 -c 1 -g 1 -r 6 -a 1 --smpiargs off", 2, 1),
    "921 nodes": ("--nrs 5526 --rs_per_host 6 --cpu_per_rs 1 --gpu_per_rs 1 --latency_priority gpu-cpu --smpiargs none "
                  "-e individual --stdio_stdout %h.%j.%t.%p", 921, 1),
}  # fmt: skip


@pytest.mark.parametrize(("line", "nodes", "threads"), OLD.values(), ids=OLD)
def test_the_lines_of_the_old_scripts_fit(line: str, nodes: int, threads: int) -> None:
    assert on_summit(line, nodes=nodes, threads=threads)


REFUSED = {
    "seven sets on six GPUs": (
        ["-n 7 -r 7 -c 1 -g 1"], 1, 1,
        "a node has 6 GPUs, and the job's resource sets want 7 "
        "(workers: 7 sets per node x 1 core and 1 GPU = 7 cores and 7 GPUs)",
    ),
    "the default binding": (
        ["-c 42 -g 6 -n 4 -r 1 -a 1"], 4, 42,
        "--bind=packed:1, jsrun's default, gives a task 1 of its set's 42 cores, and its processes have 42 threads",
    ),
    "too few cores in a set": (
        ["-c 1 -g 6 -n 1 -r 1 -a 1 --bind rs"], 1, 6,
        "--bind=rs gives a task 1 of its set's 1 cores, and its processes have 6 threads",
    ),
    "the scheduler's core": (
        ["-c 42 -g 6 -n 4 -r 1 --bind rs", "-n 1 -c 1 -g 0"], 4, 42,
        "a node has 42 cores, and the job's resource sets want 43 (workers: 1 set per node x 42 cores and 6 GPUs = "
        "42 cores and 6 GPUs; workers: 1 set per node x 1 core and 0 GPUs = 1 core and 0 GPUs)",
    ),
    "more sets than nodes hold": (
        ["-c 42 -g 6 -n 5 -r 1 --bind rs"], 4, 42, "workers: 5 resource sets, 1 per node on 4 nodes are 4",
    ),
    "packed by a word": (["-n 1 --bind packed:all"], 1, 1, "jsrun --bind=packed:all: there is rs, none and packed:N"),
    "a binding that isn't there": (["-n 1 --bind cores"], 1, 1, "jsrun --bind=cores: there is rs, none and packed:N"),
    "an option that isn't there": (["-n 1 --nodes 2"], 1, 1, "jsrun has no option '--nodes'"),
    "no number": (["-n one"], 1, 1, "jsrun --nrs=one: that is no number"),
    "no value": (["-n"], 1, 1, "jsrun -n takes a value"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "nodes", "threads", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_node_cannot_give_is_refused_with_the_arithmetic(
    lines: list[str], nodes: int, threads: int, message: str
) -> None:
    with pytest.raises(PlanRefusedError) as caught:
        on_summit(*lines, nodes=nodes, threads=threads)
    assert str(caught.value).startswith(message)


@hypothesis.given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 8), st.integers(1, 60), st.integers(0, 8))
def test_a_step_is_refused_exactly_when_a_node_has_less_than_its_sets(
    per_host: int, cores: int, gpus: int, node_cores: int, node_gpus: int
) -> None:
    step = ResourceSetStep("x", sets=per_host, per_host=per_host, tasks=1, cores=cores, gpus=gpus, bind="rs")
    fits = per_host * cores <= node_cores and per_host * gpus <= node_gpus
    if fits:
        check_steps([step], nodes=1, cores=node_cores, gpus=node_gpus, threads=1)
    else:
        with pytest.raises(PlanRefusedError, match=r"a node has .* and the job's resource sets want"):
            check_steps([step], nodes=1, cores=node_cores, gpus=node_gpus, threads=1)


def summit(options: tuple[str, ...] = (), **layout: Any) -> Site:
    return site(
        scheduler="lsf",
        launcher="jsrun",
        node=Node(cores=42, gpus=6),
        launch=LaunchSettings(options=list(options)),
        layout=Layout(**{"workers": 6, "threads": 7, **layout}),
    )


def test_a_sites_own_set_takes_one_core_from_every_node_and_its_arithmetic_is_in_the_plan() -> None:
    lines = [
        "the supervisors: 1 set per node x 41 cores and 6 GPUs = 41 cores and 6 GPUs",
        "the scheduler: 1 set per node x 1 core and 0 GPUs = 1 core and 0 GPUs",
    ]
    made = plan(site=summit(scheduler="own-set", threads=6), nodes=[4], blocks=1)
    assert [note for note in made.notes if "set per node" in note] == lines


WRONG = {
    "own set": ((), {"scheduler": "own-set"}, "--bind=rs gives a task 41 of its set's 41 cores, and its"),
    "-r 7": (("-r", "7"), {}, "a node has 42 cores, and the job's resource sets want"),
    "packed:1": (("--bind=packed:1",), {}, "--bind=packed:1, jsrun's default, gives a task 1 of its set's 42 cores"),
    "tasks": (("-a", "6"), {}, "site bench: 4 resource sets of 6 tasks for 4 nodes: every node has one supervisor"),
    "client alone": ((), {"client": "launch-node"}, "site bench: the client can be on the launch node with the"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "layout", "message"), WRONG.values(), ids=WRONG)
def test_a_plan_for_a_site_whose_sets_do_not_fit_is_refused(
    options: tuple[str, ...], layout: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanRefusedError) as caught:
        plan(site=summit(options, **layout), nodes=[4], blocks=1)
    assert str(caught.value).startswith(message)


def test_a_client_of_gpu_workers_is_refused_on_a_launch_node() -> None:
    both = summit(scheduler="launch-node", client="launch-node")
    check_placement(both, "cpu")
    with pytest.raises(PlanRefusedError, match=r"device = gpu: a client of GPU workers needs a GPU"):
        check_placement(both, "gpu")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            site(layout=Layout(workers=1, scheduler="launch-node")),
            "launch-node: fork has no launch node and no resource",
        ),
        (site(layout=Layout(workers=1, scheduler="own-set")), "own-set: fork has no launch node and no resource sets"),
        (site(launch=LaunchSettings(options=["-X"])), r"launch.options = \['-X'\]: launcher fork takes none"),
        (
            summit().model_copy(update={"node": Node(gpus=6)}),
            "jsrun makes resource sets of a node's cores, and node.cores isn't set",
        ),
    ],
)
def test_what_a_launcher_does_not_have_or_know_is_refused(asked: Site, message: str) -> None:
    with pytest.raises(PlanRefusedError, match=message):
        plan(site=asked)


@pytest.mark.parametrize("asked", ["-c 4 -g 4", "-c 30 -g 0"])
def test_a_node_holds_whole_sets_only(asked: str) -> None:
    assert on_summit(f"-n 2 {asked} -b rs", nodes=2, threads=4)
    with pytest.raises(PlanRefusedError, match="workers: 3 resource sets, 1 per node on 2 nodes are 2"):
        on_summit(f"-n 3 {asked} -b rs", nodes=2, threads=4)


def test_without_options_a_step_is_one_set_of_one_task_on_one_core() -> None:
    assert jsrun("") == ResourceSetStep("workers", 1, 0, 1, 1, 0, "packed:1")


def manifest(dask: str) -> dict[str, Any]:
    return {"stack": {"packages": {"dask": dask}}}


@pytest.mark.parametrize(
    ("place", "device", "workloads", "dask", "refused"),
    [
        ("launch-node", "gpu", ["transpose-sum", "merge", "weak-frame-sort"], "2025.7.0", "merge, weak-frame-sort"),
        ("own-set", "gpu", ["merge"], "2023.4.0", "merge"),
        ("own-set", "gpu", ["merge"], "2023.3.2", ""),
        ("own-set", "gpu", ["merge"], "2022.11.1", ""),
        ("rank0", "gpu", ["merge"], "2025.7.0", ""),
        ("launch-node", "cpu", ["merge"], "2025.7.0", ""),
        ("launch-node", "gpu", ["transpose-sum", "mine.py:merge"], "2025.7.0", ""),
    ],
)
def test_frames_on_gpus_with_a_scheduler_that_unpickles_without_one_are_refused(
    place: str, device: str, workloads: list[str], dask: str, refused: str
) -> None:
    there = summit(scheduler=place)
    if not refused:
        check_graphs(there, device, workloads, {"1.19.0": manifest(dask)})
        return
    with pytest.raises(PlanRefusedError) as caught:
        check_graphs(there, device, workloads, {"1.14.1": manifest("2022.3.0"), "1.19.0": manifest(dask)})
    assert f"Dask {dask} (of 1.19.0) unpickles the graphs of {refused} in the scheduler" in str(caught.value)
