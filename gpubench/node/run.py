"""This node's part of one run: the leader supervises the run and writes its record, the other nodes follow."""

import argparse
import dataclasses
import os
import secrets
import sys
from pathlib import Path

from gpubench.node import admission, finish, scratch
from gpubench.node.build import WrongImageError, check_build
from gpubench.node.node import NotCleanError, RunNode
from gpubench.node.process import hash_of_archive
from gpubench.node.rank import RankError, find_rank
from gpubench.node.rendezvous import TOKEN_VARIABLE, RendezvousTimeoutError
from gpubench.node.stop import EXIT_NODE, EXIT_OK, StoppedError, StopRequest
from gpubench.node.supervisor import Leader, NodeLostError, RunFailedError
from gpubench.spec import RunSpec
from gpubench.spec.plain import SpecError
from gpubench.workloads import clock
from gpubench.writer.run_dir import claim, finished, recorded


def supervise(options: argparse.Namespace, spec: RunSpec) -> int:
    """Do this node's part, or that of the node which has the scheduler only; the exit code.

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
        raise SpecError(f"{spec_path} stands in no campaign; set OUTDIR to the campaign's directory")
    return Path(os.environ.get("OUTDIR") or above[3])


def _scheduler_rank(spec: RunSpec) -> int:
    """Rank of the supervisor that is on none of the nodes.

    Raises:
        RankError: the run has none.
    """
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
    record = finish.new_record(node.spec, run_dir, clock.utc_now(), hash_of_archive())
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
        finish.take_result(record, result)
    except NodeLostError as error:
        record.status, record.reason, record.cause = "lost", str(error), error.cause
    except RunFailedError as error:
        record.reason, record.cause = str(error), error.cause
    except WrongImageError as error:
        record.reason = str(error)
    except OSError as error:
        record.status = "lost" if error.errno in scratch.FAULTS else record.status
        record.reason = f"the node's system refused: {error}"
    except NotCleanError as error:
        record.reason, code = str(error), EXIT_NODE
    except StoppedError as error:
        record.status, record.reason, code = "skipped", str(error), EXIT_NODE
    if result is None:
        finish.without_result(node.spec, record)
    final_reports = leader.finish(failed=record.status != "ok")
    record.phases = leader.phases
    nodes = [node.report(), *(final_reports[rank]["node"] for rank in sorted(final_reports))]
    record.hosts = [str(item["host"]) for item in nodes]
    logs = node.logs(whole=record.status != "ok")
    for rank in sorted(final_reports):
        logs.update(final_reports[rank]["logs"])
    node.remove()  # before the record: a run with a record needs no cleaning
    finish.write_all(run_dir, record, finish.provenance(node.spec, record, result, nodes), logs)
    if leader.turns:
        leader.turns.close()  # the block continues when nothing of this run is left
    return code


def _skip(spec: RunSpec, runs_dir: Path, reason: str) -> int:
    run_dir = claim(runs_dir, spec.run)
    record = finish.new_record(spec, run_dir, clock.utc_now(), hash_of_archive())
    record.status, record.reason = "skipped", reason
    finish.without_result(spec, record)
    finish.write_all(run_dir, record, finish.provenance(spec, record, None, []), {})
    return EXIT_OK
