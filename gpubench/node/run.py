"""A run from its start to its record: the leader supervises it and writes the record, the other nodes follow.

At its end the leader writes logs, provenance, and last of all the record.
"""

import argparse
import dataclasses
import io
import os
import secrets
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from gpubench.node import admission, proofs, scratch, ucx_log
from gpubench.node.image import WrongImageError, check_build
from gpubench.node.process import hash_of_archive
from gpubench.node.rank import RankError, find_rank
from gpubench.node.rendezvous import TOKEN_VARIABLE, RendezvousTimeoutError
from gpubench.node.run_node import NotCleanError, RunNode
from gpubench.node.spec import RunRecord, RunSpec, WorkloadRecord
from gpubench.node.spec.plain import SpecError, from_plain
from gpubench.node.spec.records import EXIT_NODE, EXIT_OK, LOGS_FILE, PROVENANCE, RAN, RUN_RECORD, workload_record
from gpubench.node.stop import StoppedError, StopRequest
from gpubench.node.supervisor import Leader, NodeLostError, RunFailedError
from gpubench.node.workloads import clock
from gpubench.node.workloads.clock import utc_now
from gpubench.node.workloads.ucx import configurations
from gpubench.node.writer.atomic import write_atomic
from gpubench.node.writer.run_dir import attempt_of, claim, finish, finished, recorded, write_provenance


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
        "binding_env": proofs.binding_environment(processes[0]) if processes else {},
        "transport": {
            "lanes": result["lanes"] if result else [],
            "observed": ucx_log.transports(result["lanes"]) if result else [],
            "carriers": result["carriers"] if result else [],
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


def supervise(options: argparse.Namespace, spec: RunSpec) -> int:
    """Do this node's part, or that of the supervisor that has only the scheduler; returns the exit code.

    Raises:
        RankError: the rank is unknown, the run has no such node, or its nodes share no token.
    """
    rank = find_rank(options.rank, os.environ, spec.nodes) if options.role == "auto" else _scheduler_rank(spec)
    runs_dir = campaign_of(options.spec) / "runs"
    before = recorded(runs_dir, spec.run)
    if finished(runs_dir, spec.run) is not None:
        return EXIT_OK  # the job was started again: a finished run stays as it is
    if options.skip:
        return _skip(spec, runs_dir, options.skip) if rank == 0 else EXIT_OK
    token = _token(spec)
    stop = StopRequest()
    node = RunNode(spec, Path(options.spec).resolve(), runs_dir, rank=rank, token=token, protocol=options.protocol)
    started = dataclasses.replace(spec, protocol=options.protocol or spec.protocol)
    node.env.update(admission.environment(started.scheme, token))
    try:
        if rank == spec.leader_rank:
            return _lead(node, claim(runs_dir, spec.run), token, stop)
        from gpubench.node.follower import follow

        node.ensure_clean()
        follow(node, token, stop, before)
        return EXIT_OK
    except (StoppedError, RendezvousTimeoutError, NotCleanError) as error:
        print(f"gpubench run, rank {rank}: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_NODE
    finally:
        node.stop()
        node.remove()


def campaign_of(spec_path: str) -> Path:
    """The campaign's directory: ``OUTDIR``, else from the spec's path (``jobs/<job>/specs/<spec>``).

    Raises:
        SpecError: neither.
    """
    above = list(Path(spec_path).resolve().parents)
    if not os.environ.get("OUTDIR") and len(above) < 4:
        raise SpecError(f"{spec_path} is in no campaign; set OUTDIR to the campaign's directory")
    return Path(os.environ.get("OUTDIR") or above[3])


def _scheduler_rank(spec: RunSpec) -> int:
    """Rank of the supervisor that is on none of the nodes. Raises RankError: the run has none."""
    if spec.scheduler_rank < spec.nodes:
        raise RankError(f"the run has its scheduler on {spec.scheduler_on}: --role scheduler supervises one elsewhere")
    return spec.scheduler_rank


def _nodes(spec: RunSpec) -> str:
    apart = "" if len(spec.ranks) == spec.nodes else f" with its scheduler on {spec.scheduler_on}"
    return f"{spec.nodes} node{'' if spec.nodes == 1 else 's'}{apart}"


def _token(spec: RunSpec) -> str:
    """The token of this start of the job; the same on all nodes of a run, and different for every start.

    Raises:
        RankError: a run on several nodes without one: nodes could connect to rank 0 of another start.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if not token and len(spec.ranks) > 1:
        raise RankError(f"a run on {_nodes(spec)} needs {TOKEN_VARIABLE}, the same on every node, new for every job")
    return token or secrets.token_hex(8)


def _lead(node: RunNode, run_dir: Path, token: str, stop: StopRequest) -> int:
    record = new_record(node.spec, run_dir, clock.utc_now(), hash_of_archive())
    record.warnings += node.warnings
    leader = Leader(node, run_dir, token, stop)
    result = None
    code = EXIT_OK
    try:
        if node.spec.turns:
            leader.join_block()
        check_build(node.spec)
        node.ensure_clean()
        result = leader.run()
        take_result(record, result)
    except NodeLostError as error:
        record.status, record.reason, record.cause = "lost", str(error), error.cause
    except RunFailedError as error:
        record.reason, record.cause = str(error), error.cause
    except WrongImageError as error:
        record.reason = str(error)
    except OSError as error:
        record.status = "lost" if scratch.is_fault(error) else record.status
        record.reason = f"the node's system refused: {error}"
    except NotCleanError as error:
        record.reason, code = str(error), EXIT_NODE
    except StoppedError as error:
        record.status, record.reason, code = "skipped", str(error), EXIT_NODE
    if result is None:
        without_result(node.spec, record)
    final_reports = leader.finish(failed=record.status != "ok")
    record.phases = leader.phases
    silent = sorted(set(leader.peers) - set(final_reports))
    if silent and record.status in RAN:
        ranks = ", ".join(map(str, silent))
        record.warnings.append(f"no last report of rank {ranks}: logs, load and environment there aren't recorded")
    joined = {rank: {"rank": rank, **leader.peers[rank], "load": []} for rank in silent}
    reported = {rank: report["node"] for rank, report in final_reports.items()}
    nodes = [node.report(), *(report for _, report in sorted({**joined, **reported}.items()))]
    record.hosts = [str(item["host"]) for item in nodes]
    logs = node.logs(whole=record.status != "ok")
    logs.update(_ucx_configurations(node, result))
    for rank in sorted(final_reports):
        logs.update(final_reports[rank]["logs"])
    used = [f"{user} on {item['host']}" for item in nodes for user in item.get("gpus_in_use", ())]
    if used:
        record.warnings.append(f"before this run somebody else used {'; '.join(used)}")
    node.remove()  # before the record: a run with a record needs no cleaning
    write_all(run_dir, record, provenance(node.spec, record, result, nodes), logs)
    if leader.turns:
        leader.turns.close()  # the block continues when nothing of this run is left
    return code


def _ucx_configurations(node: RunNode, result: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    """Of the first block alone: they are the same in all."""
    if node.spec.block > 1 or not result or not result["processes"]:
        return {}
    texts = configurations(str(result["processes"][0]["ucx"]["path"]), node.env)
    return {f"rank{node.rank}/{name}": text for name, text in texts.items()}


def _skip(spec: RunSpec, runs_dir: Path, reason: str) -> int:
    run_dir = claim(runs_dir, spec.run)
    record = new_record(spec, run_dir, clock.utc_now(), hash_of_archive())
    record.status, record.reason = "skipped", reason
    without_result(spec, record)
    write_all(run_dir, record, provenance(spec, record, None, []), {})
    return EXIT_OK
