"""``python -m benchmarks.budgets``: CPU seconds and memory of what has a budget, beside ``dask --help``, in turns."""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.commands import timed
from benchmarks.rounds import machine, ratio
from benchmarks.store_scale.generate import REAL, generate

BIN = Path(sys.executable).parent
MIB = 1 << 20
CHANGES = """
import numpy, sys
from gpubench.stats.change_points import change_points
series, dates, steps = map(int, sys.argv[1:])
draw = numpy.random.default_rng(1)
values = 0.01 * draw.standard_normal((series, dates))
if steps:
    values[:, dates // 3:] += 0.02
    values[:, 2 * dates // 3:] -= 0.01
change_points(values.tolist(), seed=1)
"""
"""Figures over dates that scatter by 1 %; with steps, all of them change twice."""
SHRINK = """
import random, types
from gpubench.clusters.resize import choose
draw = random.Random(1)
jobs = [types.SimpleNamespace(job=f"g{n}", nodes=draw.randint(1, 64), first_rank=n) for n in range(200)]
choose(jobs, sum(job.nodes for job in jobs) - min(job.nodes for job in jobs))
"""
IMPORTS = "import numpy, gpubench.clusters.resize"
VARIANTS = " ".join(f"v{number}=1.22.0,UCX_RNDV_THRESH={number + 1}k" for number in range(5))


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.budgets", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=10000)
    asked = parser.parse_args()
    python = [sys.executable, "-c"]
    with tempfile.TemporaryDirectory(prefix="budgets-") as home:
        quick = shutil.copytree(REAL.parents[1], Path(home) / "quick")
        large = Path(home) / "local-scale-20260101T000000Z"
        generate(large, asked.runs, 10, 1)
        plan: list[str | Path] = [
            *("plan", "--site", "local-slurm", "--variants", VARIANTS, "--nodes", "1 2 4 8 16", "--seed", "1"),
            *("--blocks", str(asked.runs // 25), "--set", "limits.job=6m", "--outputs", Path(home) / "outputs"),
        ]
        commands: dict[str, list[str | Path]] = {
            "gpubench --help": [BIN / "gpubench", "--help"],
            "verdicts of a tiny campaign": [BIN / "gpubench", "compare", quick],
            "plan": [BIN / "gpubench", "plan", "--site", "local-slurm", "--outputs", Path(home) / "outputs"],
            f"plan of {asked.runs} runs, printed": [BIN / "gpubench", *plan],
            f"status of {asked.runs} runs": [BIN / "gpubench", "status", large],
            "changes in 20 series of 2,000 dates, none there": [*python, CHANGES, "20", "2000", "0"],
            "the same, two in each": [*python, CHANGES, "20", "2000", "1"],
            "changes in 100 series of 60 dates, two in each": [*python, CHANGES, "100", "60", "1"],
            "changes in a series of 365 dates, two there": [*python, CHANGES, "1", "365", "1"],
            "shrink of 200 jobs of up to 64 nodes": [*python, SHRINK],
            "what that imports": [*python, IMPORTS],
        }
        print("| | CPU seconds | over `dask --help` | peak, MiB | load |\n|---|---|---|---|---|")
        for name, words in commands.items():
            turns = [(timed(words, Path(home)), timed([BIN / "dask", "--help"])) for _ in range(asked.rounds + 1)][1:]
            ours, peer = ([used.cpu_s for used in side] for side in zip(*turns, strict=True))
            peak = max(used.peak_bytes for used, _ in turns) / MIB
            load = machine().rpartition("load ")[2].split()[0]
            print(f"| {name} | {statistics.median(ours):.2f} | {ratio(ours, peer)} | {peak:.0f} | {load} |", flush=True)


main()
