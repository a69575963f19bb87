"""``python -m benchmarks.bisection.planted``: planted causes, searched by the real command with real runs."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SUITE = """
name = "planted"
reps = 6
[[workload]]
name = "tasks"
[workload.params]
count = 100
"""
OWN_SUITE = """
name = "planted"
reps = 6
[[workload]]
name = "{file}:by_package"
"""
OWN_WORKLOAD = """
import time


def _work():
    import toolz
    time.sleep(0.07 if toolz.__version__ == "1.0.0" else 0.05)


def by_package(client, params):
    return client.submit(_work, pure=False)
"""
SLOW = "GPUBENCH_SLOW"
HARMLESS = "UCX_TCP_PORT_RANGE=0,UCX_RNDV_THRESH=256k,UCX_TCP_MAX_POLL=8,UCX_ZCOPY_THRESH=64k"


def listed(percents: Sequence[int]) -> tuple[str, ...]:
    """``--points`` of one version, each slowed by a percentage."""
    points = (f"p{number}=1.22.0,{SLOW}={percent}%" for number, percent in enumerate(percents, 1))
    return "--points", " ".join(points)


CAUSES: dict[str, tuple[tuple[str, ...], Any]] = {
    "fourth of nine points": (listed([0] * 3 + [40] * 6), [["p3", "p4"]]),
    "two changes": (listed([0] * 2 + [40] * 4 + [100] * 3), [["p2", "p3"], ["p6", "p7"]]),
    "setting among four harmless ones": (
        ("--variants", f"fast=1.22.0 slow=1.22.0,{SLOW}=40%,{HARMLESS}", "--over", "settings"),
        [SLOW],
    ),
    "package among two harmless ones": (
        ("--variants", "old=1.22.0 new=1.22.0,toolz==1.0.0,click==8.1.8,zict==2.2.0", "--over", "packages"),
        ["toolz"],
    ),
    "nothing": (listed([0] * 5), []),
}
"""Words of a search, and what it should name."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each search."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisection.planted", description=__doc__)
    parser.add_argument("--searches", type=int, default=3)
    parser.add_argument("--causes", nargs="+", choices=CAUSES, default=list(CAUSES))
    options = parser.parse_args(arguments)
    print(
        "| cause | answer | named | right | steps | runs | seconds | load before |\n|---|---|---|---|---|---|---|---|"
    )
    for name in options.causes:
        words, expected = CAUSES[name]
        for _ in range(options.searches):
            load, began = os.getloadavg()[0], time.monotonic()
            answer = search(words, is_own=name.startswith("package"))
            named = names(answer)
            row = [name, answer["answer"], named, named == expected, answer["steps"], answer["runs"]]
            print(f"| {' | '.join(map(str, row))} | {time.monotonic() - began:.0f} | {load:.1f} |", flush=True)


def search(words: Sequence[str], *, is_own: bool) -> Mapping[str, Any]:
    """The answer of a search by the command, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        suite, own = Path(folder) / "planted.toml", Path(folder) / "own.py"
        own.write_text(OWN_WORKLOAD)
        suite.write_text(OWN_SUITE.format(file=own) if is_own else SUITE)
        command = [str(Path(sys.executable).parent / "gpubench"), "bisect", *words, "--suite", str(suite)]
        command += ["--workers", "1", "--margin", "10%", "--outputs", folder, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout:
            raise SystemExit(done.stderr)
        answer: Mapping[str, Any] = json.loads(done.stdout)
        return answer


def names(answer: Mapping[str, Any]) -> Any:
    """What a search named: pairs of points, or settings, or packages."""
    if "changes" in answer:
        return [[change["low"], change["high"]] for change in answer["changes"] if change["shown"]]
    return answer["named"]


if __name__ == "__main__":
    main()
