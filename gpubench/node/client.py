"""The client of a run: wait for the workers, check that this is the planned cluster, measure, check again.

A process of its own under the supervisor. Samples go straight into the run directory; what the supervisor needs for the
run record goes into one file, written last.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import functools
import json
import os
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List, Mapping, NoReturn, Optional

from gpubench.node import gpu_proofs, image, process_facts, proofs, scratch, speed, ucx_log
from gpubench.node.dask_processes import RESULT_FILE, address_in
from gpubench.node.spec import RunSpec, WorkloadRecord
from gpubench.node.spec.plain import to_plain
from gpubench.node.spec.records import AFTER_A_FAILURE, workload_record
from gpubench.node.spec.slowness import slowness
from gpubench.node.spec.turns import END
from gpubench.node.spec.waiting import crowded_hosts
from gpubench.node.turns import ClientTurns
from gpubench.node.workload_limits import Limit, WorkloadTimeoutError, check_nothing_spilled, describe_error, watched
from gpubench.node.workloads import counters, links
from gpubench.node.workloads.base import UnavailableError, WorkloadContext
from gpubench.node.workloads.bindings import keep_notifier
from gpubench.node.workloads.families import create, load
from gpubench.node.workloads.repetitions import measure
from gpubench.node.writer.atomic import write_atomic
from gpubench.node.writer.run_dir import append_links, append_sample

ANSWER_S = 60.0
"""In which all processes of a cluster answer: ``Client.run`` itself waits for ever for one whose event loop hangs."""


@dataclasses.dataclass
class ClientOutcome:
    """What the client reports to its supervisor."""

    error: str = ""
    transport: List[str] = dataclasses.field(default_factory=list)
    lanes: List[str] = dataclasses.field(default_factory=list)
    carriers: List[str] = dataclasses.field(default_factory=list)
    talked: Dict[str, List[str]] = dataclasses.field(default_factory=lambda: {key: [] for key in proofs.OTHER_PEERS})
    """Addresses of workers that sent data to another one or got some, by key of ``need_transport``."""
    processes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    workloads: List[WorkloadRecord] = dataclasses.field(default_factory=list)
    dask_config: Dict[str, Any] = dataclasses.field(default_factory=dict)
    ready_s: float = 0.0
    registered_at: List[float] = dataclasses.field(default_factory=list)
    warnings: List[str] = dataclasses.field(default_factory=list)
    speed: List[Dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def workers(self) -> List[Dict[str, Any]]:
        return [process for process in self.processes if process["role"] == "worker"]

    def with_names(self, message: str) -> str:
        """The message with names of workers instead of addresses, whose ports nobody knows by the time it is read."""
        for worker in self.workers:
            name = "worker {} (pid {} on {})".format(worker["name"], worker["pid"], worker["host"])
            message = re.sub(rf"{re.escape(worker['address'])}(?!\d)", name, message)
        return message


def run_client(options: argparse.Namespace, spec: RunSpec) -> NoReturn:
    """Measure everything that the spec names, and end this process.

    With a handle of turns among the options, only while it is this run's turn.
    """
    import dask
    from distributed import Client

    load(spec.workloads)
    run_dir, turns = Path(options.run_dir), None if options.turns is None else ClientTurns(options.turns)
    outcome = ClientOutcome(dask_config=dict(dask.config.config))
    address = address_in(options.address, spec.deadlines.start_s)
    if spec.protocol == "ucx" and spec.binding == "ucxx":
        keep_notifier()
    started = time.monotonic()
    client = Client(address, timeout=spec.deadlines.start_s, name="gpubench", set_as_default=True)
    probes: List[Dict[str, Any]] = []
    try:
        with Limit(spec.deadlines.start_s + ANSWER_S):
            context = _ready(client, spec, outcome, started=started, shared=str(run_dir))
        outcome.ready_s = time.monotonic() - started
        if turns:
            turns.end()
        _measure_all(context, spec, outcome, run_dir, turns, probes=probes)
        outcome.speed, outcome.warnings = speed.table(probes), [*outcome.warnings, *speed.warnings(probes)]
        if turns:
            turns.begin(END)
        with Limit(ANSWER_S):
            _at_end(context, spec, outcome)
    except proofs.CheckError as error:
        outcome.error = outcome.error or str(error)
    except WorkloadTimeoutError as error:
        outcome.error = outcome.error or f"a process of the cluster doesn't answer: {error}"
    for planned in spec.workloads[len(outcome.workloads) :]:
        outcome.workloads.append(workload_record(planned, "failed", outcome.error))
    write_atomic(Path(RESULT_FILE), json.dumps(to_plain(outcome), default=str).encode("utf-8"))
    # All is written. Dask and the binding take more than a second to close, and the cluster is ended anyway.
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)  # UCX's log is a C stream
    os._exit(0)


def _ready(client: Any, spec: RunSpec, outcome: ClientOutcome, *, started: float, shared: str) -> WorkloadContext:
    """Every planned worker is connected, and every process is what was planned: one question to the scheduler, one to
    all workers.
    """
    where = spec.build_manifest
    mine = process_facts.describe("client", where)
    cluster = client.run_on_scheduler(
        process_facts.cluster_when_complete,
        workers=spec.workers,
        timeout_s=spec.deadlines.start_s - (time.monotonic() - started),
        build_manifest=where,
    )
    connected = cluster["connected"]
    if connected < spec.workers:
        raise proofs.CheckError(f"{connected} of {spec.workers} workers connected within {spec.deadlines.start_s:g} s")
    if connected > spec.workers:  # Dask would use them, and measure a larger cluster
        raise proofs.CheckError(f"{connected} workers connected, {spec.workers} planned")
    outcome.registered_at = _by_our_clock(client, spec, cluster["registered_at"])
    workers = by_place(client.run(process_facts.worker_at_start, build_manifest=where, kind=spec.device))
    outcome.processes = [cluster["process"], *workers, mine]
    proofs.check_protocol(spec, [process["address"] for process in (cluster["process"], *workers)])
    proofs.check_processes(spec, outcome.processes)
    proofs.check_packages(mine, image.packages_in_manifest(where))
    outcome.warnings += gpu_proofs.check_at_start(spec, workers)
    outcome.warnings += crowded_hosts(spec.protocol, outcome.processes)
    return WorkloadContext(
        client=client,
        workers=[worker["address"] for worker in workers],
        threads_per_worker=spec.threads_per_worker,
        device=spec.device,
        binding=spec.binding if spec.protocol == "ucx" else spec.protocol,
        shared=shared,
        counters=counters.of_run(client, mine["host"], outcome.processes),
    )


def by_place(answers: Mapping[str, Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """What the workers said, with their addresses, in the order of nodes and of the GPUs on each: ``worker-10-0-2``.

    Data and pairs of workers are dealt out in this order. In that of addresses, whose ports are drawn anew, each run
    would send between other GPUs, of which NVLink joins some and not others (a DGX-1).
    """
    workers = [dict(answer, address=address) for address, answer in answers.items()]
    return sorted(workers, key=lambda worker: [int(number) for number in re.findall(r"\d+", worker["name"])])


def _by_our_clock(client: Any, spec: RunSpec, registered_at: List[float]) -> List[float]:
    """The scheduler's times by this machine's clock, which is another one where the scheduler is elsewhere."""
    if spec.scheduler_rank == spec.leader_rank:
        return registered_at
    before = time.time()
    there = client.run_on_scheduler(process_facts.clock)
    return [at + (before + time.time()) / 2 - there for at in registered_at]


def _measure_all(
    context: WorkloadContext,
    spec: RunSpec,
    outcome: ClientOutcome,
    run_dir: Path,
    turns: Optional[ClientTurns],
    *,
    probes: List[Dict[str, Any]],
) -> None:
    """Every workload in turn, each on the same clean workers, until one may have damaged the cluster.

    The workers' speed before the first and after the last goes to ``probes``: other clusters are quiet then.
    """
    hurt = ""
    for place, planned in enumerate(spec.workloads):
        record = workload_record(planned, "ok")
        outcome.workloads.append(record)
        if hurt:
            record.status, record.reason = "skipped", f"{AFTER_A_FAILURE} {hurt}"
            continue
        try:
            with contextlib.ExitStack() as stack:
                if turns:
                    stack.enter_context(turns.all_of(place))
                limit = stack.enter_context(Limit(planned.timeout_s))
                stack.enter_context(watched(context, limit.end))
                proofs.check_same_workers(
                    context.workers, context.client.run_on_scheduler(process_facts.worker_addresses)
                )
                if not place:
                    probes.append(context.client.run(speed.probe))
                try:
                    result = measure(
                        create(planned.name, context, planned.backend, planned.params),
                        planned,
                        functools.partial(append_sample, run_dir),
                        slow=slowness(spec.env),
                        rounds=[turn.reps for turn in spec.turns if turn.workload == place],
                        between=functools.partial(_switch, turns, place, limit) if turns else None,
                    )
                    about = {"workload": planned.name, "params_id": planned.params_id}
                    append_links(run_dir, [{**row, **about} for row in links.rows(result.links)])
                    record.details, record.status, record.reason = result.details, result.status, result.reason
                    senders = [row["sender"] for row in result.links]
                    proofs.check_same_workers(context.workers, result.answered)
                    proofs.check_moved(spec, planned.name, result.seen_bytes, result.least_moved_bytes, senders)
                    proofs.note_talk(outcome.talked, result.pairs, outcome.workers)
                except UnavailableError as error:  # the workload measured nothing; the others can run
                    record.status, record.reason = "skipped", str(error)
                if spec.device == "gpu":
                    memory = context.client.run(process_facts.gpu_memory)
                    check_nothing_spilled(outcome.workers, memory)
                    gpu_proofs.check_pools_kept(planned.name, outcome.workers, memory)
                if place == len(spec.workloads) - 1:
                    probes.append(context.client.run(speed.probe))
                    proofs.check_same_workers(context.workers, probes[-1])
        except proofs.CheckError as error:  # the cluster is wrong: no sample of it counts
            record.status, record.reason = "failed", outcome.with_names(str(error))
            outcome.error = outcome.error or record.reason
            hurt = planned.name
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            if scratch.is_fault(error):  # it says nothing about the variant; any other error is the workload's result
                raise
            record.status, record.reason = "failed", outcome.with_names(describe_error(error))
            hurt = planned.name


def _switch(turns: ClientTurns, place: int, limit: Limit) -> None:
    """From one turn of a workload to its next; the others' time doesn't count for its limit."""
    with limit.held():
        turns.end()
        turns.begin(place)


def _at_end(context: WorkloadContext, spec: RunSpec, outcome: ClientOutcome) -> None:
    """The transports that UCX used: by now every connection that the workloads needed has been made."""
    if spec.protocol != "ucx":
        return
    logs = dict(context.client.run(process_facts.ucx_said, kind=spec.device))
    proofs.check_same_workers(context.workers, logs)
    outcome.carriers = sorted({name for log in logs.values() for name in log["carriers"]})
    logs["scheduler"] = context.client.run_on_scheduler(process_facts.ucx_said, kind=spec.device)
    logs["client"] = process_facts.ucx_said(spec.device)
    outcome.warnings += proofs.unused_variables(spec, [log["unused"] for log in logs.values()])
    lanes = {process: log["lanes"] for process, log in logs.items()}
    outcome.lanes = sorted({lane for by_peer in lanes.values() for lane in ucx_log.every(by_peer)})
    outcome.transport = proofs.check_transport(spec, lanes)
    proofs.check_needed(spec, outcome.talked, {worker["address"]: worker for worker in outcome.workers}, lanes)
    outcome.warnings += proofs.not_chosen(spec, outcome.talked, outcome.carriers)
