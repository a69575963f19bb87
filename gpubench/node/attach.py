"""Measure one workload on a cluster that another program started; the cluster is left unchanged and running."""

import signal
from pathlib import Path
from types import FrameType
from typing import Any, Optional

from gpubench.node import checks, external_cluster, process
from gpubench.node.limit import Limit
from gpubench.node.probe import describe, describe_scheduler, describe_worker
from gpubench.node.stop import StoppedError
from gpubench.node.workload import describe_error, measure_into
from gpubench.spec import WorkloadSpec
from gpubench.spec.attach_record import (
    ATTACH_FILE,
    ATTACH_RECORD,
    REFUSED,
    UNREACHABLE,
    VERSIONS,
    AttachRecord,
    AttachSpec,
)
from gpubench.spec.records import workload_record
from gpubench.workloads import families
from gpubench.workloads.base import UnavailableError, WorkloadContext
from gpubench.writer.atomic import write_atomic

BINDINGS = {"ucx": "ucx-py", "ucxx": "ucxx"}


def attach(spec: AttachSpec, directory: Path, parent: Optional[int]) -> int:
    """Inspect the cluster, and measure if a workload is named; record, samples and links are written to ``directory``.

    Returns the process's exit code.
    """
    _end_in_order(parent)
    record = AttachRecord(schema=ATTACH_RECORD)
    client = _connect(spec, record)
    try:
        if client is not None:
            _use(client, spec, record, directory)
    except external_cluster.RefusedError as error:
        record.refusal = VERSIONS if isinstance(error, external_cluster.VersionsError) else REFUSED
        record.reason = str(error)
    finally:
        if client is not None:
            client.close()
    write_atomic(directory / ATTACH_FILE, record.dump().encode("utf-8"))
    return 0


def _end_in_order(parent: Optional[int]) -> None:
    """Turn signals and the front end's death into an exception, so that our code is removed from the cluster."""

    def stop(number: int, _frame: Optional[FrameType]) -> None:
        for other in external_cluster.ENDING:
            signal.signal(other, signal.SIG_IGN)
        raise StoppedError(f"interrupted by {signal.Signals(number).name}")

    for number in external_cluster.ENDING:
        signal.signal(number, stop)
    if parent is not None:
        process.die_with_parent(parent, signal.SIGTERM)


def _connect(spec: AttachSpec, record: AttachRecord) -> Any:
    """The client; None if no scheduler answers, and the record says so."""
    from distributed import Client

    try:
        return Client(spec.address, timeout=spec.connect_s, name="gpubench", set_as_default=True)
    except (OSError, ValueError, TypeError, ImportError, RuntimeError) as error:  # no answer, no TLS, ...
        said = str(error).strip().split("\n")[0][:200]
        record.refusal = UNREACHABLE
        record.reason = f"no Dask scheduler answers at {spec.address} within {spec.connect_s:g} s ({said})"
        return None


def _use(client: Any, spec: AttachSpec, record: AttachRecord, directory: Path) -> None:
    record.versions = external_cluster.check_versions(client)
    if spec.workload is not None:
        families.load([spec.workload])
    with external_cluster.code_installed(client, Path(process.archive())):
        _look(client, spec, record)
        if spec.workload is not None:
            _measure(_context(client, record), spec.workload, record, directory)


def _look(client: Any, spec: AttachSpec, record: AttachRecord) -> None:
    record.workers = client.run_on_scheduler(external_cluster.workers_of)
    tasks = client.run_on_scheduler(external_cluster.tasks_of)
    if tasks:
        record.warnings.append(f"the scheduler knows {tasks} tasks of other clients: the cluster is shared")
    scheduler = client.run_on_scheduler(describe_scheduler)
    by_address = client.run(describe_worker)
    if len(by_address) != len(record.workers):
        record.warnings.append(f"{len(record.workers)} workers at the scheduler, {len(by_address)} answer")
    record.protocol = external_cluster.common_protocol([scheduler["address"], *by_address])
    record.device = external_cluster.device_of(client, spec.device)
    record.processes = [
        scheduler,
        *(dict(facts, address=address) for address, facts in sorted(by_address.items())),
        describe("client"),
    ]
    packages = {facts["packages"] for facts in by_address.values()}
    if len(packages) > 1:
        record.warnings.append(f"the workers have {len(packages)} different sets of packages")
    threads = sorted({int(worker["threads"]) for worker in record.workers})
    if len(threads) > 1:
        record.warnings.append(f"workers have {' and '.join(map(str, threads))} threads")


def _context(client: Any, record: AttachRecord) -> WorkloadContext:
    return WorkloadContext(
        client=client,
        workers=[worker["address"] for worker in record.workers],
        threads_per_worker=min(int(worker["threads"]) for worker in record.workers),
        device=record.device,
        binding=BINDINGS.get(record.protocol, record.protocol),
    )


def _measure(context: WorkloadContext, planned: WorkloadSpec, record: AttachRecord, directory: Path) -> None:
    found = record.workload = workload_record(planned, "ok")
    try:
        context.client.run(families.load, [planned])
        with Limit(planned.timeout_s):
            result = measure_into(directory, context, planned, found)
        checks.check_seen(planned.name, result.seen_bytes, result.least_moved_bytes)
    except StoppedError:
        raise
    except UnavailableError as error:
        found.status, found.reason = "skipped", str(error)
    except checks.CheckError as error:
        found.status, found.reason = "failed", str(error)
    except Exception as error:  # noqa: BLE001 - any error of a workload is its result
        found.status, found.reason = "failed", describe_error(error)
