"""Who is connected to a cluster whose scheduler wrote a file, and where its workers may run.

A client in a separate Python asks the cluster, because this tool has no Dask: one question, one answer.
"""

import json
import logging
import os
import shutil
import subprocess
from pathlib import Path

from gpubench import resources
from gpubench.campaign.interrupts import LOOK_S, end_process, interrupts
from gpubench.clusters.options import InspectOptions
from gpubench.errors import (
    GpubenchError,
    IncompleteError,
    InterruptedByUserError,
    MissingToolError,
    PlanRefusedError,
    UsageError,
)
from gpubench.files import temporary_directory, write_atomically
from gpubench.images.obtain import kind_of, obtain_images
from gpubench.node.spec.cluster import SCHEDULER_FILE, InspectRecord
from gpubench.plan.cluster_checks import check_count, check_libraries, check_versions, host_lines
from gpubench.plan.cpu_affinity import WorkerAffinity, judge_affinity
from gpubench.polling import poll_until
from gpubench.render.cluster import WITH_PYTHON, client_python, planned_ucx, variables
from gpubench.render.node_half import NODE_HALF, pack
from gpubench.report.sections import TextTable, table_lines
from gpubench.resources.profiles import default_variant, load_site
from gpubench.store.clusters import Cluster, find_cluster

_log = logging.getLogger(__name__)

ANSWER_S, CONNECT_S, STOP_S = 60.0, 30.0, 5.0
COLUMNS = ("worker", "host", "CPUs allowed", "expected", "NUMA", "GPU", "verdict")


def verify(options: InspectOptions, workers: int | None) -> None:
    """Who is connected, and whether versions agree.

    Raises:
        MissingToolError: the cluster doesn't answer.
        PlanRefusedError: versions or UCX disagree.
        IncompleteError: fewer workers than planned (``workers``, else what the cluster was asked to have).
    """
    file = _scheduler_file(options)
    own = _own(file)
    record = _look(file, options, own)
    if record.workers:
        for line in host_lines(record.workers):
            _log.info(line)
    findings = list(check_versions(record.versions))
    if record.processes:
        findings += check_libraries(record.processes, planned_ucx(own.record) if own else None)
    count = check_count(len(record.versions) - 2, workers or (own.planned if own else None))
    for finding in [*findings, count]:
        _log.info(str(finding))
    wrong = [finding for finding in findings if not finding.ok]
    if wrong:
        raise PlanRefusedError(f"the cluster doesn't agree in {len(wrong)} of these lines")
    if not count.ok:
        raise IncompleteError(count.what)


def affinity(options: InspectOptions, cpus: int | None) -> None:
    """Where every worker may run, against what it needs.

    Raises:
        MissingToolError: the cluster doesn't answer.
        PlanRefusedError: a worker is where it shouldn't be, or client and cluster have other versions.
    """
    file = _scheduler_file(options)
    record = _look(file, options, _own(file), ANSWER_S)
    if not record.processes:
        differ = "; ".join(finding.what for finding in check_versions(record.versions) if not finding.ok)
        raise PlanRefusedError(f"other versions: {differ}", then="name a Python of the cluster's own: --python PYTHON")
    judged = judge_affinity(record.workers, cpus)
    for line in table_lines(TextTable(COLUMNS, [_row(worker) for worker in judged])):
        _log.info(line)
    wrong = [worker for worker in judged if worker.why]
    if wrong or not judged:
        raise PlanRefusedError(
            f"{len(wrong)} of {len(judged)} workers have the wrong CPUs or GPUs" if judged else "there is no worker",
            then="check how the launcher binds them" if judged else "",
        )


def _scheduler_file(options: InspectOptions) -> Path:
    if options.scheduler_file is None:
        cluster = find_cluster(options.outputs or Path("outputs"), options.name)
        file, name = cluster.directory / SCHEDULER_FILE, cluster.record.name
        if not file.exists():
            what = "has no scheduler: not yet, or not any more" if cluster.standing else "is stopped"
            raise IncompleteError(f"cluster {name} {what}", then=f"gpubench cluster status {name}")
        return file
    if options.name is not None:
        raise UsageError("NAME and --scheduler-file exclude each other", then="leave one out")
    return options.scheduler_file


def _own(scheduler_file: Path) -> Cluster | None:
    """The cluster of ours whose directory has the file; None for other clusters."""
    try:
        return Cluster.open(scheduler_file.resolve().parent)
    except GpubenchError:
        return None


def _look(file: Path, options: InspectOptions, own: Cluster | None, answer_s: float = 0.0) -> InspectRecord:
    address = address_in(file)
    python, env = _python(options, own)
    record = ask(address, python, env, answer_s)
    if record.unreachable:
        raise MissingToolError(
            f"no Dask scheduler answers at {address} within {CONNECT_S:g} s ({record.unreachable})",
            then="is it running, and reachable from here?",
        )
    return record


def _python(options: InspectOptions, own: Cluster | None) -> tuple[Path, dict[str, str]]:
    """As the user names it, else the cluster's own, else that of the site's image; and what the client needs set.

    Raises:
        UsageError: it is no program, or inside a container.
        PlanRefusedError: there is no image yet.
    """
    ours = variables(own.record) if own else {}
    if options.python is not None:
        program = shutil.which(str(options.python))
        if program is None:
            raise UsageError(f"--python {options.python} is no program", then="give the path of a Python")
        return Path(program).absolute(), ours
    if own and client_python(own.record):
        return Path(client_python(own.record)), ours
    site = load_site(options.site)
    spec, kind = default_variant(site, None, then="--python PYTHON").ucx, kind_of(site)
    if kind not in WITH_PYTHON:
        raise UsageError(f"the Python of an image of kind {kind} can't be started by its path", then="--python PYTHON")
    image = obtain_images(site, [spec])[spec]
    if image is None:
        raise PlanRefusedError(f"no image yet for {spec}", then=f"gpubench images build {spec}, or --python PYTHON")
    return Path(image[0].python), {**image[0].env, **ours}


def address_in(path: Path) -> str:
    """The scheduler's address in the file that it wrote; raises UsageError."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--scheduler-file {path}: {error.strerror}") from None
    except ValueError:
        plain = None
    address = plain.get("address") if isinstance(plain, dict) else None
    if not isinstance(address, str) or "://" not in address:
        raise UsageError(
            f"--scheduler-file {path} isn't one that a Dask scheduler wrote",
            then="dask scheduler --scheduler-file FILE",
        )
    return address


def ask(address: str, python: Path, env: dict[str, str], answer_s: float = 0.0) -> InspectRecord:
    """What the client found; see ``inspect_cluster.look``.

    Args:
        address: of the scheduler.
        python: that has Dask, in the cluster's version.
        env: of the client, beside this process's own environment.
        answer_s: seconds that a busy worker may take to say where it may run; 0: it isn't asked.

    Raises:
        MissingToolError: the client couldn't be started, or ended without an answer.
        InterruptedByUserError: Ctrl-C or a signal.
    """
    with temporary_directory("inspect") as directory:
        node_half, answer, log = (directory.resolve() / name for name in (NODE_HALF, "record.json", "look.log"))
        write_atomically(node_half, pack(resources.node_half()))
        command = [str(python), "-I", str(node_half), "look", "--address", address, "--record", str(answer)]
        command += ["--connect", str(CONNECT_S), "--answer", str(answer_s), "--parent", str(os.getpid())]
        with interrupts() as interrupted:
            _run(command, env, log, interrupted, 3 * CONNECT_S + answer_s)
        if interrupted:
            raise InterruptedByUserError(f"interrupted by {interrupted[0]}")
        if not answer.exists():
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            message = lines[-1] if lines else "it ended without a message"
            raise MissingToolError(f"{python} couldn't check the cluster: {message.removeprefix('gpubench look: ')}")
        return InspectRecord.parse(answer.read_text(encoding="utf-8"))


def _run(command: list[str], env: dict[str, str], log: Path, interrupted: list[str], limit_s: float) -> None:
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us
            )
        except OSError as error:
            raise MissingToolError(f"can't start {command[0]}: {error.strerror}") from None
    try:
        poll_until(lambda: process.poll() is not None or interrupted, interval_s=LOOK_S, timeout_s=limit_s)
    finally:
        end_process(process, STOP_S)


def _row(worker: WorkerAffinity) -> tuple[str, ...]:
    verdict = f"FAIL: {worker.why}" if worker.why else f"pass{f' ({worker.note})' if worker.note else ''}"
    return (worker.name, worker.host, worker.allowed, worker.expected, worker.numa, worker.gpu, verdict)
