import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import PlanRefusedError
from gpubench.model.plan import Plan
from gpubench.model.site import Site
from gpubench.node.spec import WorkloadSpec
from gpubench.node.spec.waiting import ASLEEP
from gpubench.plan.request import History
from tests.plan.requests_by_hand import GIB, SITE, image, plan, site, workload


def run_ids(made: Plan) -> list[str]:
    return [run.run for _, _, run in made.runs()]


@given(st.integers(0, 2**31), st.integers(1, 12), st.sampled_from(["a=1 b=1", "1 2 3", "a=1 b=2,X=y c=3 d=4"]))
def test_run_ids_are_unique(seed: int, blocks: int, words: str) -> None:
    ids = run_ids(plan(words, seed=seed, blocks=blocks, nodes=[1, 2]))
    assert len(ids) == len(set(ids)) == blocks * 2 * len(words.split())


@pytest.mark.parametrize(
    "changed",
    [
        plan(campaign="bench-q-2"),
        plan(nodes=[2]),
        plan(workloads=[workload(count=6), workload("message", 5, size=1024, round_trips=2)]),
    ],
    ids=["campaign", "nodes", "workload"],
)
def test_what_a_run_is_part_of_is_in_its_id(changed: Plan) -> None:
    assert not set(run_ids(changed)) & set(run_ids(plan()))


def test_a_variant_that_is_called_otherwise_changes_the_ids_of_its_own_runs_only() -> None:
    before, after = plan(), plan("old=1.17.0 newer=1.19.0")
    kept = {run.run for _, _, run in before.runs() if run.variant == "old"}
    assert set(run_ids(before)) & set(run_ids(after)) == kept


def test_images_and_clock_are_not_in_the_run_id() -> None:
    assert run_ids(plan(images={}, created_at="2027-01-01T00:00:00+00:00", gpubench="9")) == run_ids(plan())


def test_all_runs_of_a_block_take_the_workloads_in_one_order_and_blocks_differ() -> None:
    many = [workload(count=count) for count in range(5)]
    blocks = [block for job in plan(workloads=many).jobs for block in job.blocks]
    assert all(len({tuple(run.workloads) for run in block.runs}) == 1 for block in blocks)
    assert len({tuple(block.runs[0].workloads) for block in blocks}) > 1
    assert {item.params_id for item in many} == set(blocks[0].runs[0].workloads)


def test_without_a_history_the_profile_tells_the_time() -> None:
    made = plan()
    assert (made.time.run_s, made.time.block_s, made.time.total_s) == (8.0, 16.0, 96.0)
    assert made.time.source == "the profile of site bench, whatever the repetitions; no run like these is known yet"


@pytest.mark.parametrize(
    ("mode", "run_s"), [("estimate", 4.0 + 3 * 120), ("exponential", 4.0 + 3 * 120), ("fixed", 6.0)]
)
def test_repetitions_that_take_as_long_as_a_parameter_says_are_in_the_time(mode: str, run_s: float) -> None:
    """Seen: a target of 120 s, and "about 9 s a run"."""
    tasks = WorkloadSpec("tasks", "dask", {"mode": mode, "target": 120.0}, reps=2, warmup=1, timeout_s=600.0)
    assert plan(workloads=[tasks]).time.run_s == run_s


def test_a_history_beats_the_profile() -> None:
    made = plan(history=History(campaign="earlier", run_s=3.25, runs=14))
    assert (made.time.run_s, made.time.block_s, made.time.total_s) == (3.25, 6.5, 39.0)
    assert made.time.source == "median of 14 runs of earlier, which had the same shape"


def test_a_profile_that_expects_no_time_at_all_still_makes_a_plan() -> None:
    made = plan(
        site=site('[limits]\njob = "1h"\n').model_copy(
            update={"estimates": site().estimates.model_copy(update={"run": 0.0, "workload": 0.0})}
        ),
        budget_s=60.0,
        budget_firm=True,
    )
    assert made.time.block_s > 0


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("cpu", r"^layout\.rmm_pool is a pool of GPU memory, and workers run on the cpu; "),
        ("gpu", r"^a memory pool of 15\.0 GiB doesn't fit: a worker has 16\.0 GiB on its GPU, of which CUDA itself"),
    ],
)
def test_a_memory_pool_that_no_worker_can_have_is_refused(device: str, said: str) -> None:
    profile = SITE.replace("one_machine = true", 'one_machine = true\nrmm_pool = "15GiB"')
    pooled = Site.load(profile + '[node]\ngpus = 2\ngpu_memory = "16GiB"\n', "bench.toml")
    with pytest.raises(PlanRefusedError, match=said):
        plan(site=pooled, device=device, protocol="tcp")


@pytest.mark.parametrize(
    ("tls", "refused"),
    [
        ("tcp", True),
        ("rc,sm", True),
        ("^cuda_copy,cuda_ipc", True),
        ("tcp,cuda_copy,cuda_ipc", False),
        ("cuda", False),
        ("all", False),
        ("^ib", False),
    ],
)
def test_gpu_workers_over_a_ucx_that_is_told_to_do_without_cuda_are_refused(tls: str, refused: bool) -> None:
    words = f"a=1.17.0,UCX_TLS={tls} b=1.19.0,UCX_TLS=all"
    plan(words, device="cpu", protocol="ucx")
    plan(words, device="gpu", protocol="tcp")
    said = rf"^variant a: UCX_TLS = {re.escape(tls)} leaves out CUDA"
    with pytest.raises(PlanRefusedError, match=said) if refused else contextlib.nullcontext():
        plan(words, device="gpu", protocol="ucx")


def test_ucx_without_any_transport_is_refused() -> None:
    with pytest.raises(PlanRefusedError, match=r"^variant b: UCX_TLS is empty, and leaves UCX no transport"):
        plan("a=1.19.0 b=1.19.0,UCX_TLS=")


def test_the_family_is_every_candidate_against_the_baseline_in_every_cell() -> None:
    made = plan("base=1.17.0 b=1.19.0 c=1.21.0", nodes=[1, 2])
    assert made.baseline == "base"
    assert {(item.nodes, item.workload, item.baseline, item.candidate) for item in made.comparisons} == {
        (nodes, name, "base", candidate) for nodes in (1, 2) for name in ("tasks", "message") for candidate in "bc"
    }
    assert len(made.comparisons) == 8


def test_a_job_holds_no_more_blocks_than_its_limit_surely_holds() -> None:
    made = plan(site=site('[limits]\njob = "100s"\n'), blocks=10)  # 16 s a block, and half as much again
    assert [len(job.blocks) for job in made.jobs] == [4, 4, 2]
    assert [job.limit_s for job in made.jobs] == [100.0] * 3


def test_a_block_that_no_job_holds_is_refused() -> None:
    with pytest.raises(PlanRefusedError, match=r"^a block may take 24s, a job at most 20s; raise limits\.job"):
        plan(site=site('[limits]\njob = "20s"\n'))


def test_workers_share_half_of_the_machine_also_when_several_nodes_are_one_machine() -> None:
    assert plan(nodes=[1, 2]).memory_limit((1, 2)) == 16 * GIB // 2 // 4
    apart = site(layout=site().layout.model_copy(update={"one_machine": False}))
    assert plan(site=apart, nodes=[1, 2]).memory_limit((1, 2)) == 16 * GIB // 2 // 2
    named = site(layout=site().layout.model_copy(update={"memory": 6 * GIB}))
    assert plan(site=named, workers=[3]).memory_limit((1, 3)) == 2 * GIB


def test_over_subscription_is_said() -> None:
    def said(**changes: object) -> list[str]:
        return [note for note in plan(**changes).notes if "more threads than cores" in note]

    assert said(machine_cores=4, nodes=[1, 2]) == []
    assert said(machine_cores=3, nodes=[1, 2]) == [
        "more threads than cores: 4 worker threads, a scheduler and a client on 3 cores"
    ]
    assert said(machine_cores=3, workers=[4]) == [
        "more threads than cores: 4 worker threads, a scheduler and a client on 3 cores"
    ]


def test_more_processes_that_poll_than_cores_are_said_where_the_cores_are_known() -> None:
    def said(**changes: object) -> list[str]:
        return [note for note in plan(**changes).notes if note.startswith("oversubscribed")]

    assert said(machine_cores=4) == said(machine_cores=0) == said(machine_cores=3, protocol="tcp") == []
    (line,) = said(machine_cores=3)
    assert "4 processes poll while they wait, on 3 cores; layout.waiting" in line
    assert "6 processes poll" in said(machine_cores=3, nodes=[1, 2])[0]
    assert said(machine_cores=3, site=site(env={**site().env, **ASLEEP})) == []
    assert said(machine_cores=3, site=site(env=ASLEEP), words="a=1.17.0 b=1.17.0,UCXPY_PROGRESS_MODE=blocking") != []


def test_few_blocks_are_said() -> None:
    assert "2 blocks: no verdict can be given below 3; 5 or more are advised" in plan(blocks=2).notes
    assert "3 blocks: 5 or more are advised" in plan(blocks=3).notes
    assert not any("advised" in note for note in plan(blocks=5).notes)


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ("a=1.22.0 b=1.22.0", "a and b"),
        ("a=1.22.0,X=y b=1.22.0,X=y c=1.19.0", "a and b"),
        ("a=1.22.0 b=1.22.0,X=y", None),
        ("a=1.22.0 b=1.22.0,UCX_TLS=tcp", "a and b"),  # as the site sets it
        ("a=1.22.0 b=1.22.0,UCX_TLS=sm", None),
        ("a=1.22.0 b=1.19.0", None),
    ],
)
def test_the_same_thing_twice_is_called_a_against_a(words: str, labels: str | None) -> None:
    notes = [note for note in plan(words).notes if "A against A" in note]
    assert notes == (
        [f"A against A: {labels} are the same image with the same settings; every alarm would be false"]
        if labels
        else []
    )


@pytest.mark.parametrize(
    ("words", "protocol", "is_said"),
    [
        ("a=1.22.0 b=1.19.0", "tcp", True),
        ("a=1.22.0 b=1.22.0,UCX_TLS=sm", "tcp", True),
        ("a=1.22.0 b=1.22.0,dask==2025.7.0", "tcp", False),
        ("a=1.22.0 b=1.22.0,DASK_X=y", "tcp", False),
        ("a=1.22.0 b=1.19.0", "ucx", False),
    ],
)
def test_over_tcp_versions_of_ucx_are_said_to_change_nothing(words: str, protocol: str, is_said: bool) -> None:
    notes = [note for note in plan(words, protocol=protocol).notes if "Dask sends nothing by UCX" in note]
    assert bool(notes) == is_said


def test_two_names_of_one_image_are_the_same_thing_too() -> None:
    both = {"1.22.0": image("1.22.0"), "v1.22.0": image("1.22.0")}
    made = plan("a=1.22.0 b=v1.22.0", images=both)
    assert any("A against A: a and b" in note for note in made.notes)


def test_a_plan_says_why_its_blocks_are_not_interleaved():
    why = "runtime enroot starts one run at a time"
    assert f"sequential: {why}" in plan(not_interleaved=why).notes
    assert not [note for note in plan().notes if note.startswith("sequential")]


def test_a_plan_of_nothing_special_notes_the_workers_memory_only() -> None:
    made = plan()
    assert made.notes == ["2 workers per node, 4.0 GiB each"]
    assert made.first_pass == ""


def test_a_plan_whose_processes_sleep_while_they_wait_says_so() -> None:
    sleeps = site(layout=site().layout.model_copy(update={"waiting": "event"}))
    line = "waiting: processes that wait for messages sleep (layout.waiting = event)"
    assert line in plan(site=sleeps).notes
    assert line not in plan(site=sleeps, protocol="tcp").notes
    assert line not in plan().notes


NEEDS = """
[need_transport]
same_node = ["cuda_ipc"]
between_nodes = ["rc_mlx5", "dc_mlx5"]
"""


@pytest.mark.parametrize(
    ("tls", "nodes", "refused"),
    [
        ("all", [2], ""),
        ("tcp,cuda_copy,cuda_ipc", [1], ""),
        ("tcp,cuda", [1], ""),
        ("^tcp", [2], ""),
        ("rc,cuda", [2], ""),
        ("ib,cuda", [2], ""),
        ("rc_x,cuda", [2], ""),
        ("tcp,cuda_copy", [1], "cuda_ipc, of need_transport.same_node of the site"),
        ("tcp,cuda", [2], "rc_mlx5 and dc_mlx5, of need_transport.between_nodes of the site"),
        ("^ib", [2], "rc_mlx5 and dc_mlx5, of need_transport.between_nodes of the site"),
        ("rc_v,cuda", [2], "rc_mlx5 and dc_mlx5, of need_transport.between_nodes of the site"),
    ],
)
def test_a_ucx_tls_without_what_the_site_needs_is_refused(tls: str, nodes: list[int], refused: str) -> None:
    profile = SITE.replace("one_machine = true", "").replace('UCX_TLS = "tcp"', f'UCX_TLS = "{tls}"') + NEEDS
    needing = Site.load(profile, "bench.toml")
    said = re.escape(f"UCX_TLS = {tls} leaves out {refused}")
    with pytest.raises(PlanRefusedError, match=said) if refused else contextlib.nullcontext():
        plan(site=needing, nodes=nodes, protocol="ucx", device="gpu")


def test_two_nodes_with_a_worker_each_need_the_transports_of_one_node_where_they_are_one_machine() -> None:
    profile = SITE.replace('UCX_TLS = "tcp"', 'UCX_TLS = "rc,cuda_copy"').replace("workers = 2", "workers = 1") + NEEDS
    one_machine = Site.load(profile, "bench.toml")
    with pytest.raises(PlanRefusedError, match=r"cuda_ipc, of need_transport\.same_node of the site"):
        plan(site=one_machine, nodes=[2], protocol="ucx", device="gpu")
    apart = Site.load(profile.replace("one_machine = true", ""), "bench.toml")
    assert plan(site=apart, nodes=[2], protocol="ucx", device="gpu")


def test_workers_on_the_cpu_need_no_transport_for_gpu_memory() -> None:
    assert plan(site=Site.load(SITE + NEEDS, "bench.toml"), nodes=[1], protocol="ucx", device="cpu")
