"""``python -m benchmarks.sharpness``: ``gpubench bench``, some times over, or each ``--try`` in turns.

With ``--slurm`` the campaigns run on the tests' private Slurm of four hosts, as profile ``local-slurm`` says.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime as dt
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.rounds import machine

DECIDED = ("broken", "equivalent", "improvement", "regression")


def main() -> None:
    """A row per campaign, then the half-widths of the 95 % intervals by workload."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharpness", description=__doc__)
    parser.add_argument("--campaigns", type=int, default=1)
    parser.add_argument(
        "--try", dest="tries", action="append", metavar="WORDS", help="of bench, quoted; may be repeated"
    )
    parser.add_argument("--slurm", action="store_true", help="root, and Slurm as for make test-system")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        where = stack.enter_context(_slurm()) if options.slurm else Where()
        _campaigns(options.campaigns, options.tries or [""], where)


@dataclasses.dataclass(frozen=True)
class Where:
    """The site's words, the environment on its login node, and a directory that all its nodes see."""

    words: tuple[str, ...] = ()
    environment: dict[str, str] | None = None
    shared: Path | None = None


@contextlib.contextmanager
def _slurm() -> Iterator[Where]:
    from tests.conftest import plain_environment  # noqa: PLC0415 - of the tests
    from tests.slurm.campaigns import copy_images  # noqa: PLC0415 - of the tests
    from tests.slurm.cluster import SlurmCluster  # noqa: PLC0415 - of the tests

    with SlurmCluster() as slurm:
        cache = slurm.shared / "cache"
        copy_images(cache)
        environment = plain_environment({**slurm.env(), "XDG_CACHE_HOME": str(cache)})
        yield Where(("--site", "local-slurm"), environment, slurm.shared)


def _campaigns(count: int, tries: list[str], where: Where) -> None:
    widths: dict[tuple[str, str], list[float]] = {}
    print(
        "| words | seconds | runs ok | decided | in the clock | found | machine before |\n|---|---|---|---|---|---|---|"
    )
    for _ in range(count):
        for words in tries:  # in turns: what else the machine does hits all of them
            before, began = machine(), time.monotonic()
            with tempfile.TemporaryDirectory(dir=where.shared) as top:
                command = [
                    str(Path(sys.executable).parent / "gpubench"),
                    "bench",
                    *where.words,
                    *shlex.split(words),
                    "--outputs",
                    top,
                ]
                subprocess.run(command, stdout=subprocess.DEVNULL, env=where.environment, check=False)
                seconds = time.monotonic() - began
                (campaign,) = (path.parent for path in Path(top).glob("*/plan.json"))
                cells = json.loads((campaign / "verdicts.json").read_text("utf-8"))["cells"]
                shares = [share for share, _ in _runs(campaign)]
                statuses = [status for _, status in _runs(campaign)]
            for cell in cells:
                name = f"{cell['workload']} {_size(cell)}{cell['candidate']} vs {cell['baseline']}"
                if cell["low"] is not None:
                    half = ((1 + cell["high"]) / (1 + cell["low"])) ** 0.5 - 1
                    widths.setdefault((words, name), []).append(half)
            found = [
                f"{cell['workload']} {_size(cell)}{cell['effect']:+.1%} {cell['verdict']}"
                for cell in cells
                if cell["verdict"] in DECIDED
            ]
            decided = f"{len(found)} of {len(cells)}"
            ok = f"{statuses.count('ok')} of {len(statuses)}"
            row = [words, f"{seconds:.0f}", ok, decided, f"{statistics.mean(shares):.0%}", "; ".join(found), before]
            print(f"| {' | '.join(row)} |", flush=True)
    print("\n| words | workload | half-width of the 95 % interval: median | each |\n|---|---|---|---|")
    for (words, name), each in widths.items():
        row = [words, name, f"± {statistics.median(each):.1%}", ", ".join(f"{half:.1%}" for half in each)]
        print(f"| {' | '.join(row)} |")


def _size(cell: dict[str, Any]) -> str:
    params = json.loads(cell["params"])
    return f"{params['size']} B " if cell["workload"] == "message" else ""


def _runs(campaign: Path) -> Iterator[tuple[float, str]]:
    """Of every run: which share of the time that wasn't others' is timed repetitions; its status."""
    for path in campaign.glob("runs/*/run.json"):
        record = json.loads(path.read_text("utf-8"))
        lines = (path.parent / "samples.jsonl").read_text("utf-8").splitlines()
        samples = [json.loads(line) for line in lines]
        began, ended = (dt.datetime.fromisoformat(record[key]) for key in ("started_at", "ended_at"))
        lasted = (ended - began).total_seconds() - record["phases"].get("waited", 0.0)
        yield sum(one["wall_s"] for one in samples if not one["warmup"]) / lasted, str(record["status"])


main()
