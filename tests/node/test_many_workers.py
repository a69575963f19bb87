"""A cluster of more workers than ``scheduler_info`` of the newest Dask names unasked (five)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.spec import Deadlines, WorkloadSpec
from gpubench.spec.plain import parse_lines
from tests.node.runners import Runner
from tests.node.specs_by_hand import node_half

pytestmark = pytest.mark.system

WORKERS = 7
RING = {"size": 1000, "round_trips": 2, "pairs": "ring"}


def test_every_worker_of_seven_is_described_probed_and_used(tmp_path: Path) -> None:
    workloads = [
        WorkloadSpec("message", "dask", RING, reps=1, warmup=0, timeout_s=300.0),
        WorkloadSpec("transpose-sum", "dask", {"size": 700, "chunk": 100}, reps=1, warmup=0, timeout_s=300.0),
    ]
    changes: dict[str, Any] = {"workloads": workloads, "workers_per_node": WORKERS, "memory_limit": 1 << 30}
    runner = Runner(
        [sys.executable, "-I"],
        tmp_path,
        node_half=node_half(),
        deadlines=Deadlines(start_s=150.0, stop_s=20.0),
        **changes,
    )
    runner.start("--rank", "0").communicate(timeout=500)
    record = runner.record()
    assert (record.status, record.reason) == ("ok", "")
    assert [(item.status, item.reason) for item in record.workloads] == [("ok", "")] * 2
    assert record.workloads[0].details["pairs"] == WORKERS
    provenance = json.loads((runner.run_dir() / "provenance.json").read_text())
    workers = {one["address"] for one in provenance["processes"] if one["role"] == "worker"}
    assert len(workers) == WORKERS
    assert {row["worker"] for row in provenance["speed"]} == workers
    rows = parse_lines((runner.run_dir() / "links.jsonl").read_text())
    assert {row["receiver"] for row in rows if row["workload"] == "message"} == workers
