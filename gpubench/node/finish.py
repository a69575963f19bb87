"""The end of a run on rank 0: logs, provenance, and last of all the record."""

import dataclasses
import io
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from gpubench.node import checks, ucx
from gpubench.spec import RunRecord, RunSpec, WorkloadRecord
from gpubench.spec.plain import from_plain
from gpubench.spec.records import LOGS_FILE, PROVENANCE, RUN_RECORD, workload_record
from gpubench.workloads.clock import utc_now
from gpubench.writer.atomic import write_atomic
from gpubench.writer.run_dir import attempt_of, finish, write_provenance


def new_record(spec: RunSpec, run_dir: Path, started_at: str, node_half: str) -> RunRecord:
    """A record with all that is known before the run; status and times are filled in at the end."""
    known = {
        "schema": RUN_RECORD,
        "attempt": attempt_of(run_dir),
        "status": "failed",
        "reason": "",
        "started_at": started_at,
        "ended_at": started_at,
        "workloads": [],
        "node_half": node_half,
    }
    as_planned = {field.name for field in dataclasses.fields(RunRecord)} & {
        field.name for field in dataclasses.fields(spec)
    }
    return RunRecord(**{**{name: getattr(spec, name) for name in as_planned}, **known})


def without_result(spec: RunSpec, record: RunRecord) -> None:
    """Without a client's result every workload gets the run's status, so that its samples can still be assigned."""
    status = "failed" if record.status == "failed" else "skipped"
    record.workloads = [workload_record(planned, status, record.reason) for planned in spec.workloads]


def take_result(record: RunRecord, result: Mapping[str, Any]) -> None:
    """Carry what the client found into the record and judge the run by it.

    A failed workload does not fail the run, unless no workload is ok.
    """
    record.workloads = [from_plain(WorkloadRecord, item) for item in result["workloads"]]
    record.transport = list(result["transport"])
    record.warnings += result["warnings"]
    ended = sorted(record.workloads, key=lambda item: item.status != "failed")
    if result["error"]:
        record.status, record.reason = "failed", result["error"]
    elif not any(item.status == "ok" for item in record.workloads):
        record.status, record.reason = "failed", f"{ended[0].workload}: {ended[0].reason}"
    else:
        record.status, record.reason = "ok", ""


def provenance(
    spec: RunSpec, record: RunRecord, result: Optional[Mapping[str, Any]], nodes: List[Mapping[str, Any]]
) -> Dict[str, Any]:
    """What ran where, and what the nodes were doing meanwhile."""
    processes = list(result["processes"]) if result else []
    return {
        "schema": PROVENANCE,
        "run": spec.run,
        "attempt": record.attempt,
        "manifest": spec.manifest,
        "node_half": record.node_half,
        "processes": processes,
        "binding_env": checks.binding_environment(processes[0]) if processes else {},
        "transport": {
            "lanes": result["lanes"] if result else [],
            "observed": ucx.transports(result["lanes"]) if result else [],
        },
        "dask_config": result["dask_config"] if result else {},
        "speed": result.get("speed", []) if result else [],
        "registered_s": result["registered_s"] if result else [],
        "nodes": nodes,
        "warnings": record.warnings,
    }


def write_logs(run_dir: Path, logs: Mapping[str, str]) -> None:
    """One ``logs.zip`` for all nodes."""
    import zipfile  # not before the processes of the run are started

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(logs.items()):
            archive.writestr(name, text)
    write_atomic(run_dir / LOGS_FILE, buffer.getvalue())


def write_all(run_dir: Path, record: RunRecord, prov: Mapping[str, Any], logs: Mapping[str, str]) -> None:
    """Logs, provenance, record: in this order, so that a run with a record has everything."""
    write_logs(run_dir, logs)
    write_provenance(run_dir, prov)
    record.ended_at = utc_now()
    finish(run_dir, record)
