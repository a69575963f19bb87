"""``python -m benchmarks.against_dask_cuda``: suite ``contrib/upstream``, beside dask-cuda's scripts started by hand.

The campaign holds each script beside our workload of the same sizes. By hand, the script runs on a plain Dask cluster
of the campaign's image.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.against_dask_cuda.by_hand import cluster
from benchmarks.rounds import machine

GPUBENCH = Path(sys.executable).with_name("gpubench")
SUITE = Path(__file__).parents[2] / "contrib" / "upstream" / "upstream.toml"
UPSTREAM = "upstream.py:Upstream"


def _campaign(asked: argparse.Namespace, outputs: Path) -> Path:
    words = ["--suite", str(SUITE), "--variants", asked.variants, "--protocol", "tcp"]
    shape = ["--blocks", str(asked.blocks), "--workers", str(asked.workers), "--set", "layout.arrangement=sequential"]
    subprocess.run([GPUBENCH, "bench", *words, *shape, "--outputs", outputs], stdout=sys.stderr, check=False)
    return next(outputs.glob("*/plan.json")).parent


def _seconds(campaign: Path) -> dict[str, list[float]]:
    """Every timed repetition, by ``params_id``."""
    found: dict[str, list[float]] = {}
    for path in campaign.glob("runs/*/samples.jsonl"):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if not line["warmup"]:
                found.setdefault(line["params_id"], []).append(line["wall_s"])
    return found


def _median(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.4f}" if seconds else "none"


def main() -> None:
    """Print one line per script."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against_dask_cuda", description=__doc__)
    parser.add_argument("--variants", default="a=1.22.0,stack=ucxx-0.52.0 b=1.22.0,stack=ucxx-0.52.0")
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        campaign = _campaign(asked, Path(folder))
        plan: dict[str, Any] = json.loads((campaign / "plan.json").read_text(encoding="utf-8"))
        seconds, workloads = _seconds(campaign), plan["workloads"]
        python = Path(plan["variants"][0]["image"]["python"])
        print("script | in the campaign, s | our workload | its s | by hand, s | machine")
        with cluster(python, asked.workers, Path(folder)) as shared:
            for script, ours in itertools.pairwise(workloads):
                if script["name"] != UPSTREAM or ours["name"] == UPSTREAM or script["params_id"] not in seconds:
                    continue
                options = shlex.split(script["params"]["options"])
                by_hand = shared.run(script["params"]["benchmark"], options, asked.blocks * script["reps"])
                row = [f"{script['params']['benchmark']} {shlex.join(options)}", _median(seconds[script["params_id"]])]
                row += [ours["name"], _median(seconds.get(ours["params_id"], [])), _median(by_hand), machine()]
                print(" | ".join(row), flush=True)


if __name__ == "__main__":
    main()
