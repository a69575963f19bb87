"""``python -m benchmarks.plan_render``: ``gpubench plan --out`` beside a ReFrame dry run; memory as campaigns grow."""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import platformdirs

from benchmarks.commands import timed
from benchmarks.plan_render import reframe
from benchmarks.rounds import machine, ratio

NODES = [1, 2, 4, 8, 16]
VARIANTS = [f"v{number}" for number in range(5)]
ROWS = len(NODES) * len(VARIANTS)
GPUBENCH = Path(sys.executable).with_name("gpubench")
MIB = 1 << 20


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_render", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--blocks", type=int, default=12, help=f"{ROWS} runs each")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10000], help="runs, for the memory")
    options = parser.parse_args()
    command = reframe.install(Path(platformdirs.user_cache_dir("gpubench-benchmarks")))
    with tempfile.TemporaryDirectory(prefix="plan-render-") as home:
        print("| runs | files | seconds | CPU seconds | peak memory, MiB |\n|---|---|---|---|---|")
        for runs in options.sizes:
            out = Path(home) / f"runs{runs}"
            used = timed(render(out, runs // ROWS))
            files = sum(each.is_file() for each in out.rglob("*"))
            figures = f"{used.wall_s:.1f} | {used.cpu_s:.1f} | {used.peak_bytes / MIB:.0f}"
            print(f"| {runs // ROWS * ROWS} | {files} | {figures} |", flush=True)
        compare(command, Path(home), options.blocks, options.rounds)


def compare(command: Path, home: Path, blocks: int, rounds: int) -> None:
    """Both in turns, each into an empty folder."""
    ours, theirs = [], []
    before = machine()
    for number in range(rounds):
        ours.append(timed(render(home / f"ours{number}", blocks)))
        directory = home / f"reframe{number}"
        directory.mkdir()
        theirs.append(timed([command, *reframe.write(directory, NODES, VARIANTS, blocks)], directory))
        written = len(list((directory / "out").rglob("rfm_job.sh")))
        assert written == ROWS * blocks, f"ReFrame wrote {written} scripts"
        shutil.rmtree(directory)
    print(f"\n{ROWS * blocks} runs, {rounds} rounds; before: {before}; after: {machine()}\n")
    print(f"| ms a run | gpubench plan | reframe {reframe.VERSION} --dry-run | theirs over ours |\n|---|---|---|---|")
    for name, field in (("clock", "wall_s"), ("CPU", "cpu_s")):
        a, b = ([getattr(each, field) for each in taken] for taken in (ours, theirs))
        figures = [f"{1000 * statistics.median(taken) / (ROWS * blocks):.1f}" for taken in (a, b)]
        print(f"| {name} | {' | '.join(figures)} | {ratio(b, a)} |", flush=True)


def render(out: Path, blocks: int) -> list[str | Path]:
    """Plans ``blocks`` blocks of every variant at every node count, each block in a job of its own."""
    variants = " ".join(f"{name}=1.22.0,UCX_RNDV_THRESH={number + 1}k" for number, name in enumerate(VARIANTS))
    return [
        *(GPUBENCH, "plan", "--site", "local-slurm", "--out", out, "--variants", variants, "--blocks", str(blocks)),
        *("--nodes", " ".join(map(str, NODES)), "--set", "limits.job=6m", "--seed", "1"),
    ]


main()
