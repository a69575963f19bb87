"""``python -m benchmarks.starts``: real runs of the smallest suite; a run that isn't ``ok`` is told with its reason."""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.rounds import machine

UCX_OF_STACK = {"ucxx-0.45.1": ("1.17.0", "1.19.0"), "ucxx-0.52.0": ("1.19.0", "1.22.0")}
"""Versions that a stack runs."""
SUITE = """name = "starts"
reps = 1
warmup = 1

[[workload]]
name = "tasks"
[workload.params]
count = 20

[[workload]]
name = "message"
[workload.params]
size = "1KiB"
round_trips = 2
"""


def campaign(folder: Path, stack: str, blocks: int, waiting: str) -> collections.Counter[str]:
    """How often each status, with its reason, came out of ``blocks`` runs of every version."""
    versions = UCX_OF_STACK[stack]
    suite = folder / "starts.toml"
    suite.write_text(SUITE, encoding="utf-8")
    words = ["bench", "--suite", str(suite), "--variants", " ".join(versions), "--blocks", str(blocks)]
    words += ["--set", f"layout.waiting={waiting}", "--set", "layout.arrangement=sequential", "--outputs", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.starts.front", stack, *words],
        env={**os.environ, "XDG_STATE_HOME": str(folder)},  # where the lock is that lets one campaign run at a time
        capture_output=True,
        text=True,
        check=False,
    )
    records = [json.loads(path.read_text("utf-8")) for path in folder.glob("local-starts-*/runs/*/run.json")]
    if len(records) != blocks * len(versions):
        raise SystemExit(f"{len(records)} records of {blocks * len(versions)}:\n{done.stdout}\n{done.stderr}")
    return collections.Counter(f"{one['status']} {one['reason']}".strip() for one in records)


def main() -> None:
    """Print a row per stack and number of clusters that start at the same time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starts", description=__doc__)
    parser.add_argument("--starts", type=int, default=300)
    parser.add_argument("--waiting", choices=("default", "event"), default="event")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--stacks", nargs="+", choices=list(UCX_OF_STACK), default=list(UCX_OF_STACK))
    options = parser.parse_args()
    print("| stack | UCX | clusters at once | starts | outcome | machine |\n|---|---|---|---|---|---|")
    for stack in options.stacks:
        for at_once in options.at_once:
            blocks = math.ceil(options.starts / len(UCX_OF_STACK[stack]) / at_once)
            with tempfile.TemporaryDirectory() as top, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                folders = [Path(top, str(number)) for number in range(at_once)]
                for folder in folders:
                    folder.mkdir()
                ended = pool.map(lambda folder: campaign(folder, stack, blocks, options.waiting), folders)  # noqa: B023
                outcomes = sum(ended, collections.Counter())
            told = "; ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
            row = [stack, ", ".join(UCX_OF_STACK[stack]), at_once, outcomes.total(), told, machine()]
            print(f"| {' | '.join(map(str, row))} |", flush=True)


main()
