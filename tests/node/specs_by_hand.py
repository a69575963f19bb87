"""Run specs with fixed values, and campaign directories that hold one."""

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Any

from gpubench import resources
from gpubench.node.spec import Deadlines, RunSpec, WorkloadSpec
from gpubench.node.spec.run import RUN_SPEC
from gpubench.render.node_half import pack
from tests.workloads.running import complete

RUN = "0123456789ab"


def run_spec(**changes: Any) -> RunSpec:
    """A run of one workload on one node, over tcp."""
    base = RunSpec(
        schema=RUN_SPEC,
        campaign="bench-q-1",
        site="bench",
        job="j001-n1",
        block=1,
        run=RUN,
        order=0,
        variant="a",
        image="image-a",
        ucx_version="1.19.0",
        binding="ucxx",
        protocol="tcp",
        device="cpu",
        nodes=1,
        workers_per_node=1,
        threads_per_worker=1,
        memory_limit=2 * 1024**3,
        interface="lo",
        manifest="manifest-a",
        env={},
        env_allow=["PATH"],
        expect_transport=[],
        need_transport={},
        expect_ucx="1.19.0",
        workloads=[WorkloadSpec("tasks", "dask", complete("tasks", {"count": 5}), reps=2, warmup=1, timeout_s=120.0)],
        deadlines=Deadlines(start_s=60.0, stop_s=30.0, silence_s=60.0),
        block_s=10.0,
    )
    return dataclasses.replace(base, **changes)


def node_half() -> str:
    """The hash that processes report which were started from the ``node.pyz`` of ``write_campaign``."""
    return hashlib.sha256(pack(resources.node_half())).hexdigest()


def write_campaign(directory: Path, spec: RunSpec) -> Path:
    """``node.pyz`` and the spec where a campaign has them; returns the spec's path."""
    (directory / "node.pyz").write_bytes(pack(resources.node_half()))
    path = directory / "jobs" / spec.job / "specs" / f"001-{spec.order}-{spec.run}.json"
    path.parent.mkdir(parents=True)
    path.write_text(spec.dump(), encoding="utf-8")
    return path


def quiet_environment(**more: str) -> dict[str, str]:
    """What a process needs, and nothing that a test's own shell may hold."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, **more}
