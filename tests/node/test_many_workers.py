"""Clusters of more workers than ``scheduler_info`` of the newest Dask names unasked (five), and of very many."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.campaigns import campaign_in, cluster_processes, nothing_left, records
from tests.conftest import Run

pytestmark = pytest.mark.system
MANY = int(os.environ.get("MANY_WORKERS", "128"))
"""Each takes some 52 MiB of its own and 2 s of a core to start: 256 need 14 GiB, and some five minutes of two cores."""


@pytest.mark.long
def test_very_many_workers_are_registered_stand_in_the_record_and_leave_nothing(
    gpubench: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    # A worker's limit is what Dask holds it to, and no memory that it takes.
    limits = ("--set", "limits.start=50m", "--set", f"layout.memory={MANY * 256}MiB")
    # While so many register, the scheduler accepts nobody for longer than the 30 s that Dask waits.
    # What a worker does without work, a hundred times a second, takes all of two cores where 256 do it.
    dask = {"COMM__TIMEOUTS__CONNECT": "600s", "ADMIN__TICK__INTERVAL": "5s", "WORKER__PROFILE__ENABLED": "False"}
    patient = [word for name, value in dask.items() for word in ("--set", f"env.DASK_DISTRIBUTED__{name}={value}")]
    shape = ("--site", "local", "--protocol", "tcp", "--ucx", "1.22.0", "--workers", str(MANY), "--threads", "1")
    tasks = ("--set", f"count={4 * MANY}", "--reps", "1", "--warmup", "0")
    words = ("measure", "tasks", *shape, *limits, *patient, *tasks)
    done = gpubench(*words, env={"TMPDIR": str(scratch)})
    assert done.returncode == 0, done.stderr
    campaign = campaign_in(tmp_path)
    (record,) = records(campaign).values()
    assert (record["status"], record["workers_per_node"]) == ("ok", MANY)
    (provenance,) = (json.loads(path.read_text()) for path in campaign.glob("runs/*/provenance.json"))
    workers = {one["address"] for one in provenance["processes"] if one["role"] == "worker"}
    assert len(workers) == MANY
    assert {row["worker"] for row in provenance["speed"]} == workers
    nothing_left(lambda: cluster_processes(campaign))
    assert list(scratch.iterdir()) == []
    with capsys.disabled():
        print(f"\n{MANY} workers: seconds {record['phases']}, load {os.getloadavg()[0]:.0f}")
