"""``python -m benchmarks.start_up``: seconds from a job's start to its first sample, on the tests' real Slurm."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence

from benchmarks.rounds import machine, ratio
from benchmarks.start_up.timing import NAMES, Contest
from tests.slurm.campaigns import Login, copy_images
from tests.slurm.cluster import SlurmCluster


def main() -> None:
    """Print a table per node count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_up", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--workers", type=int, default=1, help="per node")
    options = parser.parse_args()
    with SlurmCluster() as slurm:
        cache = slurm.shared / "cache"
        copy_images(cache)
        for nodes in options.nodes:
            directory = slurm.shared / f"nodes{nodes}"
            directory.mkdir()
            contest = Contest(slurm, Login(slurm, directory, cache), nodes, options.workers, options.rounds)
            times: dict[str, list[float]] = {name: [] for name in NAMES}
            before = machine()
            for number in range(1, options.rounds + 1):
                for name in NAMES if number % 2 else NAMES[::-1]:  # a load that rises or falls must favour nobody
                    times[name].append(contest.seconds(name, number))
            print(f"\nnodes: {nodes}, workers on each: {options.workers}, rounds: {options.rounds}")
            print(f"before: {before}; after: {machine()}")
            show(times)


def show(times: Mapping[str, Sequence[float]]) -> None:
    """One row per contestant."""
    print("| | median, s | range, s | ours over it |\n|---|---|---|---|")
    for name, taken in times.items():
        beside = "" if name == "ours" else ratio(times["ours"], taken)
        figures = f"{statistics.median(taken):.2f} | {min(taken):.2f} to {max(taken):.2f}"
        print(f"| {name} | {figures} | {beside} |", flush=True)


main()
