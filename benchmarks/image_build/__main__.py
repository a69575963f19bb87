"""``python -m benchmarks.image_build``: ``gpubench images build`` beside ``uv pip install``; how soon a bench starts.

Each round builds one version in a new cache of images, and installs the same packages into a new virtual environment,
from the same warm cache of uv, with and without compiling their bytecode. The last part runs campaigns of one block
with the image that is there, and takes the time from the command to the start of its first run.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uv

from benchmarks.commands import timed
from benchmarks.rounds import machine, ratio

GPUBENCH = Path(sys.executable).with_name("gpubench")
BUILD, COMPILED, PLAIN = "gpubench images build", "uv pip install --compile-bytecode", "uv pip install"


def main() -> None:
    """Print a table of the builds and one of the starts; round 0 only warms the caches."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.image_build", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--version", default="1.19.0")
    options = parser.parse_args()
    before = machine()
    rounds = [_round(options.version) for _ in range(options.rounds + 1)][1:]
    print(f"{options.rounds} rounds; before: {before}; after: {machine()}\n")
    print("| | seconds | gpubench over it | CPU seconds |\n|---|---|---|---|")
    ours = [one[BUILD][0] for one in rounds]
    for name in (BUILD, COMPILED, PLAIN):
        wall, cpu = [one[name][0] for one in rounds], [one[name][1] for one in rounds]
        over = "" if name == BUILD else str(ratio(ours, wall))
        print(f"| {name} | {statistics.median(wall):.1f} | {over} | {statistics.median(cpu):.1f} |")
    starts = [_start(options.version) for _ in range(options.rounds + 1)][1:]
    print(f"\nfrom `gpubench bench` to its first run, images there: {statistics.median(starts):.2f} s (", end="")
    print(f"{min(starts):.2f} to {max(starts):.2f}; {machine()})")


def _round(version: str) -> dict[str, tuple[float, float]]:
    """Seconds and CPU seconds of each way. In each of them uv copies files, as images need it, and makes no links."""
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        env = ["env", f"UV_CACHE_DIR={_uv('cache', 'dir')}", "UV_LINK_MODE=copy", f"XDG_CACHE_HOME={top}"]
        used = {BUILD: timed([*env, GPUBENCH, "images", "build", version, "--runtime", "venv"])}
        stack = next(path for path in (top / "gpubench" / "venv").iterdir() if path.name.startswith("ucxx-"))
        frozen = top / "packages.txt"
        frozen.write_text(_uv("pip", "freeze", "--python", str(stack / "files")) + f"\nlibucx-cu12=={version}\n")
        for name, more in ((COMPILED, ["--compile-bytecode"]), (PLAIN, [])):
            new = top / ("compiled" if more else "plain")
            _uv("venv", "--python", str((stack / "files" / "bin" / "python").resolve()), str(new))
            used[name] = timed(
                [*env, uv.find_uv_bin(), "pip", "install", "--no-deps", *more, "--python", str(new), "-r", str(frozen)]
            )
        return {name: (one.wall_s, one.cpu_s) for name, one in used.items()}


def _uv(*words: str) -> str:
    return subprocess.run([uv.find_uv_bin(), *words], check=True, capture_output=True, text=True).stdout.strip()


def _start(version: str) -> float:
    """Seconds from the command to the start of the first run."""
    with tempfile.TemporaryDirectory() as top:
        began = dt.datetime.now(dt.UTC)
        variants = f"a={version} b={version}"
        words: Sequence[str | Path] = [GPUBENCH, "bench", "--variants", variants, "--blocks", "1", "--outputs", top]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started = [json.loads(path.read_text("utf-8"))["started_at"] for path in Path(top).glob("*/runs/*/run.json")]
        return min((dt.datetime.fromisoformat(one) - began).total_seconds() for one in started)


main()
