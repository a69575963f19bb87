"""``gpubench run`` on a node: the one entrypoint that every launcher calls, on every site.

``node.pyz`` holds sources, which each process that starts from it compiles: a role imports what it needs, and no more.
But for ``variables``: it notes the variables before libraries that are imported later add theirs.
"""

import argparse
import dataclasses
import gc
import os
import sys
from pathlib import Path
from typing import List, Optional

from gpubench.node import admission, dask_processes, forked, gpu, role_options, variables  # noqa: F401 - see above
from gpubench.node.gpu import DEVICES, resolve
from gpubench.node.process import EXIT_DISK, die_with_parent
from gpubench.node.rank import RankError
from gpubench.node.scratch import is_fault
from gpubench.node.spec import RunSpec
from gpubench.node.spec.plain import SpecError
from gpubench.node.spec.records import EXIT_NODE, EXIT_OK
from gpubench.node.stop import StoppedError, StopRequest

EXIT_USAGE = 2
POD_STEPS = ("arrive", "run", "end")


def main(arguments: Optional[List[str]] = None) -> int:
    """Parse the command line and act. Returns the exit code: 0 a record was written, 40 none could be, 2 usage."""
    parser = _parser()
    options, unknown = parser.parse_known_args(arguments)
    try:
        if options.command in OTHERS:
            if unknown:
                parser.error("unrecognized arguments: {}".format(" ".join(unknown)))
            return OTHERS[options.command](options)
        if options.spec is None and options.role in role_options.BY_HAND:
            from gpubench.node import by_hand

            by_hand.run(options, unknown)
            return EXIT_OK
        if unknown:
            raise role_options.CombinationError(f"role {options.role} takes no {' '.join(unknown)}")
        role_options.check(options)
        spec = RunSpec.parse(Path(options.spec).read_text(encoding="utf-8"), options.spec)
        spec = dataclasses.replace(spec, device=resolve(options.device or spec.device))
        if options.role == forked.ROLE:
            die_with_parent(options.parent)
            _import_for_all(spec)
            options = parser.parse_args(forked.become(Path(options.members), options.parent))
        if options.role == "auto" or (options.role == "scheduler" and options.scheduler_file is None):
            from gpubench.node.run import supervise

            return supervise(options, spec)
        die_with_parent(options.parent)
        admission.close_to_others()
        if options.role == "client":
            from gpubench.node.client import run_client

            run_client(options, spec)
        _become(options, spec)
        return EXIT_OK
    except ModuleNotFoundError as error:
        if options.command == "run" and options.spec is not None:
            raise  # a role of a run: its supervisor reads the whole story in the log
        print(f"gpubench {options.command}: this Python has no {error.name}; use the image's Python", file=sys.stderr)  # noqa: T201
        return EXIT_USAGE
    except (role_options.CombinationError, SpecError, RankError, OSError, StoppedError) as error:
        print(f"gpubench {options.command}: {error}", file=sys.stderr)  # noqa: T201
        return _exit_code(options, error)


def _exit_code(options: argparse.Namespace, error: Exception) -> int:
    if options.command == "run" and options.role == "client" and is_fault(error):
        return EXIT_DISK
    return EXIT_NODE if isinstance(error, (OSError, StoppedError)) else EXIT_USAGE


def _cluster(options: argparse.Namespace) -> int:
    from gpubench.node import cluster_main

    return cluster_main.run(options)


def _look(options: argparse.Namespace) -> int:
    from gpubench.node.inspect_cluster import look

    die_with_parent(options.parent)
    return look(options.address, Path(options.record), connect_s=options.connect, answer_s=options.answer)


def _retire(options: argparse.Namespace) -> int:
    from gpubench.node.cluster_follower import retire

    die_with_parent(options.parent)
    return retire(options.address, options.rank)


def _pod(options: argparse.Namespace) -> int:
    from gpubench.node import pod

    return pod.step(options, main)


def _conduct(options: argparse.Namespace) -> int:
    from gpubench.node.rendezvous import TOKEN_VARIABLE
    from gpubench.node.run import campaign_of
    from gpubench.node.spec.turns import TurnsSpec
    from gpubench.node.turns import conduct

    spec = TurnsSpec.parse(Path(options.spec).read_text(encoding="utf-8"), options.spec)
    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise RankError(f"an interleaved block needs {TOKEN_VARIABLE}, the same for all of its runs, new for every job")
    conduct(spec, campaign_of(options.spec) / "runs", token, StopRequest())
    return EXIT_OK


OTHERS = {"cluster": _cluster, "conduct": _conduct, "look": _look, "pod": _pod, "retire": _retire}
"""Commands beside ``run``."""


def _become(options: argparse.Namespace, spec: RunSpec) -> None:
    """A scheduler or a worker, as planned or with the protocol that the command line names."""
    from gpubench.node.workloads import families

    started = dataclasses.replace(spec, protocol=options.protocol or spec.protocol)
    # The scheduler unpickles the graphs of the workloads. Here the others import at the same time; at the first graph
    # they would wait for it.
    families.load(spec.workloads)
    if options.role == "scheduler":
        watched = []
        if options.registry:
            os.environ[dask_processes.REGISTRY_VARIABLE] = options.registry
            watched = ["--preload", dask_processes.REGISTRY]
        dask_processes.run_scheduler([*dask_processes.scheduler_arguments(started, options.scheduler_file), *watched])
    else:
        # The client asks for it first: imported while the scheduler starts.
        from gpubench.node import process_facts  # noqa: F401

        lacking = gpu.lacking(spec.workers_per_node, os.environ) if spec.device == "gpu" else ""
        if lacking:
            raise SystemExit(lacking)
        become_worker = dask_processes.WORKERS[spec.device]()  # imports, while the scheduler does the same
        address = dask_processes.address_in(options.address, spec.deadlines.start_s)
        become_worker(dask_processes.worker_arguments(started, address, options.name, options.local_directory or "."))


def _import_for_all(spec: RunSpec) -> None:
    """What scheduler, workers and client import, but for the binding and for users' files, which may start threads."""
    from gpubench.node import client, process_facts  # noqa: F401
    from gpubench.node.workloads import families
    from gpubench.node.workloads.catalogue.own import is_own

    gc.disable()  # what is imported stays: to look through it again and again takes a tenth of the time
    try:
        dask_processes.import_for_all(spec)
        families.load(workload for workload in spec.workloads if not is_own(workload.name))
    finally:
        gc.enable()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpubench")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="one run of a campaign on this node, or one role of it", allow_abbrev=False)
    run.add_argument("--spec", help="the run spec (JSON) that gpubench wrote; roles by hand need none")
    named = ("auto", "scheduler", "worker", "client")
    run.add_argument("--role", choices=(*named, forked.ROLE), metavar=f"{{{','.join(named)}}}", default="auto")
    run.add_argument("--rank", type=int, help="rank of this node, from 0; default: as the launcher says")
    run.add_argument("--device", choices=DEVICES, help="auto asks NVML; default: as the spec says")
    run.add_argument("--protocol", help="another protocol than the planned one, for trying; such a run can't be ok")
    run.add_argument("--skip", metavar="REASON", help="write a record that says the run was skipped, and why")
    run.add_argument("--address", help="scheduler's address (roles worker and client), or @FILE that will hold it")
    run.add_argument("--name", help="the worker's name")
    run.add_argument("--run-dir", help="where the client appends its samples")
    run.add_argument("--scheduler-file", metavar="FILE", help="where the scheduler writes its address")
    run.add_argument("--interface", help="network interface to listen on (by hand)")
    run.add_argument("--nthreads", type=int, help="threads of a worker (by hand)")
    run.add_argument("--memory-limit", help="memory of a worker, like 4GiB (by hand)")
    run.add_argument("--local-directory", metavar="DIR", help="where a worker puts its files")
    run.add_argument("--death-timeout", help="seconds that a worker waits for its scheduler (by hand)")
    run.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    run.add_argument("--turns", type=int, metavar="FD", help=argparse.SUPPRESS)
    run.add_argument("--registry", help=argparse.SUPPRESS)
    run.add_argument("--members", metavar="FILE", help=argparse.SUPPRESS)
    steps = commands.add_parser("pod", help="one container of a pod of a Kubernetes Indexed Job")
    steps.add_argument("step", choices=POD_STEPS)
    steps.add_argument("--spec", help="the run spec; of the first run for arrive")
    steps.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    steps.add_argument("--deadline", type=float, help="seconds that arrive waits for the last node")
    steps.add_argument("--skip", metavar="REASON", help="rank 0 writes a record that says why the run was skipped")
    cluster = commands.add_parser("cluster", help="this node's part of a standing cluster")
    cluster.add_argument("--spec", required=True, help="the job's nodes.json")
    cluster.add_argument("--first-rank", type=int, default=0, help="how many nodes the jobs before this one have")
    cluster.add_argument("--rank", type=int, help="rank of this node in its job, from 0; default: as the launcher says")
    cluster.add_argument("--role", choices=("auto", "scheduler"), default="auto", help="scheduler: it has no workers")
    cluster.add_argument("--lasts", type=float, metavar="S", help="in a pod: seconds that the job may take from now on")
    cluster.add_argument("--skip", metavar="REASON", help="write down why the cluster wasn't started")
    cluster.add_argument("--clean", action="store_true", help="end what killed supervisors left on this machine")
    conducted = commands.add_parser("conduct", help="give the turns of an interleaved block to its runs")
    conducted.add_argument("--spec", required=True, help="the block's turns (JSON) as gpubench wrote them")
    look = commands.add_parser("look", help="who is connected to a cluster, and where its workers may run")
    look.add_argument("--address", required=True, help="scheduler's address")
    look.add_argument("--record", metavar="FILE", required=True, help="where to write what was found")
    look.add_argument("--connect", type=float, metavar="S", required=True, help="seconds that the scheduler may take")
    look.add_argument("--answer", type=float, metavar="S", required=True, help="seconds that a busy worker may take")
    look.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    retire = commands.add_parser("retire", help=argparse.SUPPRESS)
    retire.add_argument("--address", required=True)
    retire.add_argument("--rank", type=int, required=True)
    retire.add_argument("--parent", type=int)
    return parser
