"""The supervisor of a standing cluster as a pod has it: no script has said when the job ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.node.spec.cluster import ENDED, STATE_FILE, TOKEN_FILE, ClusterState
from tests.node.runners import SHORT
from tests.node.specs_by_hand import quiet_environment, run_spec, write_campaign

pytestmark = pytest.mark.integration


def test_the_cluster_ends_in_order_when_the_time_that_its_job_may_take_is_nearly_over(tmp_path: Path) -> None:
    path = write_campaign(tmp_path, run_spec(workloads=[], deadlines=SHORT))
    (tmp_path / TOKEN_FILE).write_text("secret")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-I", tmp_path / "node.pyz", "cluster", "--spec", path, "--lasts", str(SHORT.stop_s / 2)],
        env=quiet_environment(JOB_COMPLETION_INDEX="0", SCRATCHDIR=str(scratch)),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "gpubench cluster, rank 0: the job's time is over\n")
    state = ClusterState.parse((tmp_path / STATE_FILE).read_text())
    assert (state.phase, state.reason) == (ENDED, "the job's time is over")
    assert list(scratch.iterdir()) == []
