"""The client of a run: wait for the workers, check that this is the planned cluster, measure, check again.

A process of its own under the supervisor. Samples go straight into the run directory; what the supervisor needs for the
run record goes into one file, written last.
"""

import ctypes
import dataclasses
import json
import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any, Dict, List, Optional

from gpubench.node import checks, ucx
from gpubench.node.probe import count_workers, describe, describe_scheduler
from gpubench.spec import RunSpec, SampleLine, WorkloadRecord, WorkloadSpec
from gpubench.spec.plain import to_plain
from gpubench.spec.records import workload_record
from gpubench.workloads.base import Context, UnavailableError
from gpubench.workloads.families import create, load
from gpubench.workloads.measure import measure
from gpubench.writer.atomic import write_atomic
from gpubench.writer.run_dir import append_links, append_sample

RESULT_FILE = "client-result.json"
POLL_S = 0.05
AGAIN_S = 1.0


class WorkloadTimeoutError(Exception):
    """A workload didn't end within its limit."""


@dataclasses.dataclass
class Outcome:
    """What the client tells its supervisor."""

    error: str = ""
    transport: List[str] = dataclasses.field(default_factory=list)
    lanes: List[str] = dataclasses.field(default_factory=list)
    processes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    workloads: List[WorkloadRecord] = dataclasses.field(default_factory=list)
    dask_config: Dict[str, Any] = dataclasses.field(default_factory=dict)
    ready_s: float = 0.0
    warnings: List[str] = dataclasses.field(default_factory=list)


def run_client(spec: RunSpec, address: str, scratch: Path, run_dir: Path) -> int:
    """Measure everything that the spec names; returns the process's exit code."""
    import dask
    from distributed import Client

    load(planned.name for planned in spec.workloads)
    outcome = Outcome(dask_config=dict(dask.config.config))
    started = time.monotonic()
    client = Client(address, timeout=spec.deadlines.start_s, name="gpubench", set_as_default=True)
    try:
        context = _ready(client, spec, outcome, started)
        outcome.ready_s = time.monotonic() - started
        _measure_all(context, spec, outcome, run_dir)
        _check_transport(client, spec, outcome)
    except checks.CheckError as error:
        outcome.error = outcome.error or str(error)
    for planned in spec.workloads[len(outcome.workloads) :]:
        outcome.workloads.append(workload_record(planned, "failed", outcome.error))
    write_atomic(scratch / RESULT_FILE, json.dumps(to_plain(outcome), default=str).encode("utf-8"))
    return 0


def _ready(client: Any, spec: RunSpec, outcome: Outcome, started: float) -> Context:
    """Every planned worker is connected, and every process is what was planned."""
    deadline = started + spec.deadlines.start_s
    while True:
        connected = client.run_on_scheduler(count_workers)
        if connected >= spec.workers:
            break
        if time.monotonic() > deadline:
            raise checks.CheckError(
                f"{connected} of {spec.workers} workers connected within {spec.deadlines.start_s:g} s"
            )
        time.sleep(POLL_S)
    if connected > spec.workers:
        outcome.warnings.append(f"{connected} workers connected, {spec.workers} planned")
    where = spec.build_manifest
    scheduler = client.run_on_scheduler(describe_scheduler, build_manifest=where)
    by_address = client.run(describe, build_manifest=where)
    processes = [scheduler, *(dict(facts, address=worker) for worker, facts in sorted(by_address.items()))]
    outcome.processes = [*processes, describe("client", where)]
    checks.check_protocol(spec, [process["address"] for process in processes])
    checks.check_processes(spec, outcome.processes)
    return Context(
        client=client,
        workers=sorted(by_address),
        threads_per_worker=spec.threads_per_worker,
        device=spec.device,
        binding=spec.binding if spec.protocol == "ucx" else spec.protocol,
    )


def _measure_all(context: Context, spec: RunSpec, outcome: Outcome, run_dir: Path) -> None:
    hurt = ""
    for planned in spec.workloads:
        record = workload_record(planned, "ok")
        outcome.workloads.append(record)
        if hurt:
            record.status, record.reason = "skipped", f"after the failure of {hurt}"
            continue
        try:
            with limit(planned.timeout_s):
                _measure_one(context, spec, planned, record, run_dir)
        except UnavailableError as error:  # nothing was begun: the others may go on
            record.status, record.reason = "skipped", str(error)
        except checks.CheckError as error:  # not the workload's fault: no sample of this cluster counts
            record.status, record.reason = "failed", str(error)
            outcome.error = outcome.error or str(error)
            hurt = planned.name
        except Exception as error:  # noqa: BLE001 - whatever a workload raises is its result, with its words
            record.status = "failed"
            record.reason = "{}: {}".format(type(error).__name__, str(error).strip().split("\n")[0][:300])
            hurt = planned.name


def _measure_one(context: Context, spec: RunSpec, planned: WorkloadSpec, record: WorkloadRecord, run_dir: Path) -> None:
    def emit(sample: SampleLine) -> None:
        append_sample(run_dir, sample)

    measurement = create(planned.name, context, planned.backend, planned.params)
    result = measure(
        measurement,
        name=planned.name,
        backend=planned.backend,
        params_id=planned.params_id,
        reps=planned.reps,
        warmup=planned.warmup,
        emit=emit,
    )
    append_links(run_dir, [{**row, "workload": planned.name, "params_id": planned.params_id} for row in result.links])
    senders = [row["sender"] for row in result.links]
    checks.check_moved(spec, planned.name, result.seen_bytes, result.least_moved_bytes, senders)
    record.details = result.details
    record.status, record.reason = result.status, result.reason


def _check_transport(client: Any, spec: RunSpec, outcome: Outcome) -> None:
    """After the workloads: by then every connection that they needed has been made."""
    if spec.protocol != "ucx":
        return
    lanes_by_process: Dict[str, List[str]] = dict(client.run(own_lanes))
    lanes_by_process["scheduler"] = client.run_on_scheduler(own_lanes)
    lanes_by_process["client"] = own_lanes()
    outcome.lanes = sorted({lane for lanes in lanes_by_process.values() for lane in lanes})
    outcome.transport = checks.check_transport(spec, lanes_by_process)


def own_lanes() -> List[str]:
    """The lanes in this very process's UCX log."""
    ctypes.CDLL(None).fflush(None)  # UCX's log is a C stream, and holds lines back until its buffer is full
    path = Path(os.environ["UCX_LOG_FILE"].replace("%p", str(os.getpid())))
    return ucx.lanes(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else []


class limit:  # noqa: N801 - reads as a statement
    """Raise WorkloadTimeoutError in the main thread when the block takes longer than ``seconds``.

    And again every second until the block is left: Python swallows what is raised while an object is being deleted, and
    a workload lets go of thousands of futures.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._over = False

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._expired)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, AGAIN_S)

    def __exit__(self, *_: object) -> None:
        self._over = True
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _expired(self, _number: int, _frame: Optional[FrameType]) -> None:
        if not self._over:
            raise WorkloadTimeoutError(f"no answer within {self.seconds:g} s")
