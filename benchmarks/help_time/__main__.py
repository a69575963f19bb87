"""``python -m benchmarks.help_time``: ``gpubench --help`` and ``gpubench plan --help`` beside ``dask --help``."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.commands import timed
from benchmarks.rounds import machine, ratio

COMMANDS = (("gpubench", "--help"), ("gpubench", "plan", "--help"), ("dask", "--help"))


def main() -> None:
    """Print one table; a first round only warms the disk's cache."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.help_time", description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    before = machine()
    programs: list[tuple[str | Path, ...]] = [
        (Path(sys.executable).with_name(name), *words) for name, *words in COMMANDS
    ]
    turns = [[timed(words) for words in programs] for _ in range(rounds + 1)][1:]
    print(f"{rounds} rounds; before: {before}; after: {machine()}\n")
    print("| | seconds | over `dask --help` | CPU seconds | over `dask --help` |\n|---|---|---|---|---|")
    for number, words in enumerate(COMMANDS):
        wall = [(turn[number].wall_s, turn[-1].wall_s) for turn in turns]
        cpu = [(turn[number].cpu_s, turn[-1].cpu_s) for turn in turns]
        print(f"| `{' '.join(words)}` | {beside(wall)} | {beside(cpu)} |")


def beside(rounds: Sequence[tuple[float, float]]) -> str:
    """Two columns: the median of one command, and its ratio to the other."""
    ours, theirs = zip(*rounds, strict=True)
    return f"{statistics.median(ours):.3f} | {ratio(ours, theirs)}"


main()
