"""Who is connected to a cluster whose scheduler wrote a file, and where its workers may run."""

import logging
from pathlib import Path

from gpubench.clusters.inspect_client import CONNECT_S, address_in, ask, image_python, named_python
from gpubench.clusters.options import InspectOptions
from gpubench.errors import GpubenchError, IncompleteError, MissingToolError, PlanRefusedError, UsageError
from gpubench.node.spec.cluster import SCHEDULER_FILE, InspectRecord
from gpubench.plan.cluster_checks import check_count, check_libraries, check_versions, host_lines
from gpubench.plan.cpu_affinity import WorkerAffinity, judge_affinity
from gpubench.render.cluster import client_python, planned_ucx, variables
from gpubench.report.sections import TextTable, table_lines
from gpubench.resources.profiles import default_variant, load_site
from gpubench.store.clusters import Cluster, find_cluster

_log = logging.getLogger(__name__)

ANSWER_S = 60.0
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
            what = "has no scheduler yet" if cluster.standing else "is stopped"
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
    ours = variables(own.record) if own else {}
    if options.python is not None:
        return named_python(options.python), ours
    if own and client_python(own.record):
        return Path(client_python(own.record)), ours
    site = load_site(options.site)
    python, env = image_python(site, default_variant(site, None, then="--python PYTHON").ucx)
    return python, {**env, **ours}


def _row(worker: WorkerAffinity) -> tuple[str, ...]:
    verdict = f"FAIL: {worker.why}" if worker.why else f"pass{f' ({worker.note})' if worker.note else ''}"
    return (worker.name, worker.host, worker.allowed, worker.expected, worker.numa, worker.gpu, verdict)
