"""``python -m benchmarks.sharpness.phases CAMPAIGN``: where the time of an interleaved campaign's blocks goes."""

from __future__ import annotations

import argparse
import collections
import datetime as dt
import itertools
import json
from pathlib import Path
from typing import Any


def main() -> None:
    """A row per phase: seconds of a block, and seconds and number of each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharpness.phases", description=__doc__)
    parser.add_argument("campaign", type=Path)
    blocks = _blocks(parser.parse_args().campaign)
    seconds: dict[str, list[float]] = collections.defaultdict(list)
    for runs in blocks.values():
        for phase, value in _phases(runs):
            seconds[phase].append(value)
    print(f"{len(blocks)} blocks")
    for phase, values in sorted(seconds.items()):
        each, total = sum(values) / len(values), sum(values) / len(blocks)
        print(f"{phase:32} {total:6.2f} s a block  {each:6.3f} s  x {len(values) / len(blocks):.1f}")


def _blocks(campaign: Path) -> dict[int, list[tuple[dict[str, Any], list[dict[str, Any]]]]]:
    """Record and samples of each run, by block."""
    blocks: dict[int, list[tuple[dict[str, Any], list[dict[str, Any]]]]] = collections.defaultdict(list)
    for path in campaign.glob("runs/*/run.json"):
        record = json.loads(path.read_text())
        samples = [json.loads(line) for line in (path.parent / "samples.jsonl").read_text().splitlines()]
        blocks[record["block"]].append((record, samples))
    return blocks


def _phases(runs: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> list[tuple[str, float]]:
    began = min(_at(record["started_at"]) for record, _ in runs)
    ended = max(_at(record["ended_at"]) for record, _ in runs)
    rows = sorted(
        ((record["variant"], sample) for record, samples in runs for sample in samples),
        key=lambda row: str(row[1]["started_at"]),
    )
    phases = [("to the first repetition", _at(rows[0][1]["started_at"]) - began)]
    for _, sample in rows:
        phases.append((f"{'warm-up' if sample['warmup'] else 'timed'} {sample['workload']}", sample["wall_s"]))
    for (variant, sample), (next_variant, next_sample) in itertools.pairwise(rows):
        between = _at(next_sample["started_at"]) - _at(sample["started_at"]) - sample["wall_s"]
        if sample["workload"] != next_sample["workload"]:
            kind = "to the next workload"
        else:
            kind = "between repetitions" if variant == next_variant else "between turns"
        phases.append((f"{kind} {next_sample['workload']}", between))
    last = rows[-1][1]
    phases.append(("after the last repetition", ended - _at(last["started_at"]) - last["wall_s"]))
    return phases


def _at(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


if __name__ == "__main__":
    main()
