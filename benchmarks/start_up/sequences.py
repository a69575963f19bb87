"""Job scripts that do what ours does without any of its care: bare Dask, and the prior scripts' sleeps.

Each writes ``first-<job>``: when its client could take the first sample, in seconds of the Unix clock. All processes
start from the image of our runs. Workers run without a nanny, as ours do.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from gpubench.node.spec import PROCESS_DEFAULTS

CLOCK = 'echo "$EPOCHREALTIME" >"began-$SLURM_JOB_ID"'

HEAD = """#!/bin/bash
#SBATCH --ntasks-per-node=1 --exclusive --time=10 --output=log-%j
set -u
unset "${{!PYTHON@}}"
{exports}
srun "--nodes=$SLURM_JOB_NUM_NODES" "--ntasks=$SLURM_JOB_NUM_NODES" bash "$PWD/{role}"
"""

COMMON = """
file=$PWD/scheduler-$SLURM_JOB_ID.json
# A session for each process, as ours have: where the kernel groups by session (autogroup), one session of many
# processes gets the share of one beside what else the machine does.
dask() {{
  setsid --wait {python} -I -m "distributed.cli.dask_$1" --interface eth0 --no-dashboard \\
    --scheduler-file "$file" "${{@:2}}"
}}
workers() {{
  for ((i = 0; i < {workers}; i++)); do
    dask worker --no-nanny --nthreads 1 --local-directory "/tmp/dask-$SLURM_PROCID-$i" &
  done
}}
client() {{
  setsid --wait {python} -I client.py "$file" $((SLURM_JOB_NUM_NODES * {workers})) "$1" "first-$SLURM_JOB_ID"
}}
"""

# Everything at once: workers and client wait for the scheduler's file.
BARE = """
if ((SLURM_PROCID == 0)); then dask scheduler --port 0 & fi
workers
if ((SLURM_PROCID == 0)); then client 0.05; fi
wait
"""

# What the draco script does: six seconds for the scheduler, and a client that looks for workers every five.
SLEEPS = """
if ((SLURM_PROCID == 0)); then dask scheduler --port 0 & fi
sleep 6
workers
if ((SLURM_PROCID == 0)); then client 5; fi
wait
"""

CLIENT = """
import sys
import time

from distributed import Client

file, expected, pause, first = sys.argv[1:]
client = Client(scheduler_file=file)
while len(client.scheduler_info(n_workers=-1)["workers"]) != int(expected):
    time.sleep(float(pause))
began = time.time()
client.gather(client.map(abs, range(40)))
with open(first, "w") as out:
    out.write(repr(began))
client.shutdown()
"""


def files(python: str, env: Mapping[str, str], workers: int) -> dict[str, str]:
    """Every file by name; ``bare.sh`` and ``sleeps.sh`` are the jobs."""
    settings = {**PROCESS_DEFAULTS, **env}
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in sorted(settings.items()))
    common = COMMON.format(python=shlex.quote(python), workers=workers)
    return {
        "bare.sh": HEAD.format(exports=exports, role="bare-role.sh"),
        "sleeps.sh": HEAD.format(exports=exports, role="sleeps-role.sh"),
        "bare-role.sh": common + BARE,
        "sleeps-role.sh": common + SLEEPS,
        "client.py": CLIENT,
    }


def clocked(script: str) -> str:
    """The job script, which first of all writes ``began-<job>``: seconds of the Unix clock."""
    head, line, rest = script.partition("\nset -u\n")
    if not line:
        raise ValueError("the script has no line 'set -u'")
    return f"{head}\n{CLOCK}{line}{rest}"
