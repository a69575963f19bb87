"""``python -m benchmarks.store_scale``: merge and report at several sizes, beside the seed's way of reading."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.commands import Used, timed
from benchmarks.rounds import machine
from benchmarks.store_scale.generate import generate

GPUBENCH = Path(sys.executable).with_name("gpubench")
MIB = 1 << 20
SAMPLES = 100
SEED_WAY = """
import sys, pathlib, pandas
files = sorted(pathlib.Path(sys.argv[1]).glob("runs/*/samples.jsonl"))
print(len(pandas.concat([pandas.read_json(path, lines=True) for path in files])))
"""
"""One frame per file, joined at the end, as the DGX-1 campaigns' merge-outputs.py does; it checks nothing."""
MERGE = """
import sys, pathlib
from gpubench.results.merge.table import sample_table
from gpubench.store.accounting import account
from gpubench.store.campaign import Campaign
print(sample_table(account(Campaign.open(pathlib.Path(sys.argv[1]))).outcomes).height)
"""
"""What gpubench does to come as far: it reads the records too, checks every line, and joins both."""


def main() -> None:
    """Print one line per size and command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_scale", description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[1000, 10000], help=f"{SAMPLES} samples each")
    parser.add_argument("--seed", type=int, default=20261121)
    asked = parser.parse_args()
    print("| runs | samples | command | seconds | CPU seconds | peak, MiB |\n|---|---|---|---|---|---|")
    for runs in asked.runs:
        with tempfile.TemporaryDirectory(prefix="store-scale-") as home:
            campaign = Path(home) / "local-scale-20260101T000000Z"
            generate(campaign, runs, SAMPLES, asked.seed)
            verdicts: list[str | Path] = [GPUBENCH, "compare", campaign]
            _print(runs, "verdicts (and merge)", timed(verdicts))
            _print(runs, "report (merge, verdicts, page)", timed([GPUBENCH, "report", campaign]))
            _print(runs, "merge alone", timed([sys.executable, "-c", MERGE, campaign]))
            _print(runs, "status", timed([GPUBENCH, "status", campaign]))
            _print(runs, "pandas.read_json per file, concat", timed([sys.executable, "-c", SEED_WAY, campaign]))
    print(machine())


def _print(runs: int, name: str, used: Used) -> None:
    figures = f"{used.wall_s:.1f} | {used.cpu_s:.1f} | {used.peak_bytes / MIB:.0f}"
    print(f"| {runs} | {runs * SAMPLES} | {name} | {figures} |", flush=True)


main()
