"""``python -m benchmarks.gpu_shares``: all figures of a machine with GPUs in twenty minutes; one command.

Two campaigns on site local-gpu: ``gpu-one`` on the first GPU and, where there are several, ``gpu-node`` on all of them,
each with half of the time. Then the share of the copy bandwidth that array workloads reach, and verdicts on seconds,
joules and processor seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from benchmarks.gpu_shares.shares import shares
from benchmarks.rounds import machine
from gpubench.node.workloads import nvml

AIM = 0.9
GPUBENCH = [str(Path(sys.executable).with_name("gpubench"))]


def campaigns(gpus: int, minutes: float, variants: str, pool: str, outputs: Path) -> Iterator[tuple[Path, list[str]]]:
    """Where each campaign will be, and the words that run it."""
    suites = [("gpu-one", 1, "env.CUDA_VISIBLE_DEVICES=0")]
    if gpus > 1:
        suites.append(("gpu-node", gpus, f"node.gpus={gpus}"))
    for suite, workers, setting in suites:
        directory = outputs / suite
        budget = f"{minutes / len(suites):g}m"
        words = ["bench", "--site", "local-gpu", "--suite", suite, "--workers", str(workers)]
        words += ["--variants", variants, "--set", setting, "--set", f"layout.rmm_pool={pool}"]
        yield directory, [*words, "--budget", budget, "--outputs", str(directory)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print; or print what is there already."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_shares", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--variants", default="1.19.0 1.22.0", help="as gpubench bench takes them")
    parser.add_argument("--pool", default="32GB", help="memory pool of each GPU (RMM); gpu-one needs 30 GiB")
    parser.add_argument("--outputs", type=Path, default=Path("outputs/gpu"))
    parser.add_argument("--dry-run", action="store_true", help="print the commands and both plans")
    parser.add_argument("--gpus", type=int, default=nvml.count(), help="of the node; default: as many as NVML counts")
    parser.add_argument("--show", type=Path, nargs="+", metavar="CAMPAIGN", help="measure nothing, print its figures")
    options = parser.parse_args(arguments)
    if options.show:
        for campaign in options.show:
            show(campaign)
        return 0
    if not options.gpus:
        print("no GPU answers to NVML here; --dry-run --gpus 4 shows what would be run", file=sys.stderr)
        return 2
    print(machine())
    for directory, words in campaigns(options.gpus, options.minutes, options.variants, options.pool, options.outputs):
        print(f"\ngpubench {' '.join(words)}", flush=True)
        done = subprocess.run([*GPUBENCH, *words, *(["--dry-run"] if options.dry_run else [])], check=False)
        if done.returncode:
            return done.returncode
        if not options.dry_run:
            show(max(directory.iterdir(), key=lambda path: path.stat().st_mtime))
    return 0


def show(campaign: Path) -> None:
    """The verdicts, and the shares."""
    subprocess.run([*GPUBENCH, "compare", str(campaign)], check=False)
    samples = pl.read_parquet(campaign / "results.parquet")
    print("\n| variant | workload | ms | GB/s | copy, GB/s | share of the copy |")
    print("|---|---|---|---|---|---|")
    for one in shares(samples):
        figures = f"{1e3 * one.seconds:.1f} | {one.bandwidth / 1e9:.1f} | {one.copy / 1e9:.1f}"
        print(
            f"| {one.variant} | {one.workload} | {figures} | {one.share:.0%}{'' if one.share >= AIM else ', missed'} |"
        )
    masks = sorted(set(samples["throttle"].drop_nulls().to_list()))
    print(f"throttle reasons seen (bits of NVML): {', '.join(map(hex, masks)) or 'none recorded'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
