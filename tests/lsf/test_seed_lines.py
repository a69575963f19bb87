"""Hand-written lines of Summit's old scripts with our command's name: a real cluster, in resource sets of stand-ins."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsf.cluster import LsfCluster
from tests.node.specs_by_hand import run_spec, write_campaign
from tests.slurm.hosts import until

pytestmark = pytest.mark.system

SCRIPT = """#!/bin/bash
#BSUB -nnodes 2 -W 0:10 -o log
set -u
{ours} --role scheduler --interface lo --scheduler-file s.json --local-directory d &
jsrun -c 2 -n 2 -r 1 -a 1 --bind rs --smpiargs="off" {ours} --role worker --scheduler-file s.json --local-directory d \\
  --nthreads 2 --nprocs 1 --memory-limit 512MB --nanny --death-timeout 60 --interface lo --reconnect &
{python} -c '
import distributed, json, os, time
while not os.path.exists("s.json"):
    time.sleep(0.1)
with distributed.Client(scheduler_file="s.json", timeout=60) as client:
    client.wait_for_workers(2, timeout=60)
    threads = sorted(worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
    cores = [len(cores) for cores in client.run(lambda: os.sched_getaffinity(0)).values()]
json.dump([threads, cores], open("found.json", "w"))
'
jskill all
kill %1
wait
"""


@pytest.fixture
def lsf(tmp_path: Path) -> Iterator[LsfCluster]:
    made = LsfCluster(tmp_path)
    yield made
    made.close()


def test_the_seeds_lines_make_a_cluster_with_our_commands_name_in_them(lsf: LsfCluster, tmp_path: Path) -> None:
    write_campaign(tmp_path, run_spec())
    script = SCRIPT.format(python=sys.executable, ours=f"{sys.executable} -I {tmp_path}/node.pyz run")
    assert lsf.run("bsub", text=script, cwd=tmp_path).returncode == 0
    until(lambda: lsf.job("101")["stat"] in ("DONE", "EXIT"), "the end of the job")
    log = (tmp_path / "log").read_text()
    assert json.loads((tmp_path / "found.json").read_text()) == [[2, 2], [2, 2]], log
    assert log.count("gpubench run: --nprocs is retired: --nworkers 1\n") == 2
    assert log.count("gpubench run: --reconnect is left out: Dask has it no more\n") == 2
    assert log.count("gpubench run: --local-directory is left out: Dask's scheduler has it no more\n") == 1
