"""The faults of Summit's old scripts on a job's nodes: what they do there. Plans refuse them: test_resource_sets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsf.cluster import LsfCluster

# One write each: two tasks share the output, and print() writes its pieces one by one.
MASK = (
    "python3 -c 'import os; "
    'os.write(1, b"%s %d\\n" % (os.environb[b"JSM_NAMESPACE_RANK"], len(os.sched_getaffinity(0))))'
    "'"
)
CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def lsf(tmp_path: Path) -> Iterator[LsfCluster]:
    made = LsfCluster(tmp_path, cores=CORES, gpus=6)
    yield made
    made.close()


def test_a_resource_set_confines_and_the_default_binding_squeezes_a_task_onto_one_core(
    lsf: LsfCluster, tmp_path: Path
) -> None:
    shape = f"-n 2 -r 1 -a 1 -c {CORES} -g 6"
    stat, _, printed = lsf.ended(tmp_path, f"jsrun {shape} --bind rs {MASK} | sort; jsrun {shape} {MASK} | sort")
    assert (stat, printed.splitlines()) == ("DONE", [f"0 {CORES}", f"1 {CORES}", "0 1", "1 1"])


def test_seven_sets_with_a_gpu_each_on_a_node_with_six_end_the_job(lsf: LsfCluster, tmp_path: Path) -> None:
    stat, code, printed = lsf.ended(tmp_path, "jsrun -n 7 -r 7 -c 1 -g 1 -a 1 true")
    assert (stat, code) == ("EXIT", 255)
    assert "It is not possible to satisfy the resource request: 7 sets per host of 1 cores and 1 GPUs" in printed


def test_the_seeds_wait_step_with_a_variable_that_nobody_sets_ends_the_job(lsf: LsfCluster, tmp_path: Path) -> None:
    script = 'num_workers=4\n%s\necho "waits for $target_num_workers" # the seed defines num_workers'
    (tmp_path / "loose").mkdir()
    assert lsf.ended(tmp_path / "loose", script % "")[0] == "DONE"
    stat, code, printed = lsf.ended(tmp_path, script % "set -u")
    assert (stat, code) == ("EXIT", 1)
    assert "target_num_workers: unbound variable" in printed
