"""``gpubench cluster verify`` and ``affinity``: on any cluster whose scheduler wrote a file."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from gpubench.cli.clusters.inspect_client import SubprocessClient, address_in, image_python, named_python
from gpubench.cli.say import say
from gpubench.errors import GpubenchError, IncompleteError, MissingToolError, PlanRefusedError
from gpubench.files import temporary_directory
from gpubench.node.spec.inspect_record import INSPECT_SPEC, InspectRecord, InspectSpec
from gpubench.plan.cluster_checks import check_count, check_processes, check_versions, host_lines
from gpubench.plan.cpu_affinity import WorkerAffinity, judge_affinity
from gpubench.report.sections import TextTable, table_lines
from gpubench.resources.profiles import default_variant, load_site
from gpubench.store.clusters import Cluster

CONNECT_S = 30.0
ANSWER_S = 60.0
COLUMNS = ("worker", "host", "CPUs allowed", "expected", "NUMA", "GPU", "verdict")


@dataclasses.dataclass(frozen=True)
class InspectOptions:
    """What to inspect, and with which Python: default: that of the cluster's own image, else of the site's."""

    scheduler_file: Path
    python: Path | None
    site: str


def verify(asked: InspectOptions, workers: int | None) -> None:
    """Who is connected, and whether versions agree.

    Raises:
        MissingToolError: the cluster doesn't answer.
        PlanRefusedError: versions or UCX disagree.
        IncompleteError: fewer workers than planned (``workers``, else what the cluster was asked to have).
    """
    about = _about(asked.scheduler_file)
    found = _look(asked, about, places=False)
    if found.workers:
        for line in host_lines(found.workers):
            say(line)
    findings = list(check_versions(found.versions))
    if found.processes:
        findings += check_processes(found.processes, about.get("ucx"))
    count = check_count(len(found.versions) - 2, workers or _planned(about))
    for finding in [*findings, count]:
        say(str(finding))
    wrong = [finding for finding in findings if not finding.ok]
    if wrong:
        raise PlanRefusedError(f"the cluster doesn't agree in {len(wrong)} of these lines")
    if not count.ok:
        raise IncompleteError(count.what)


def affinity(asked: InspectOptions, cpus: int | None) -> None:
    """Where every worker may run, against what it needs.

    Raises:
        MissingToolError: the cluster doesn't answer.
        PlanRefusedError: a worker is where it shouldn't be, or client and cluster have other versions.
    """
    about = _about(asked.scheduler_file)
    found = _look(asked, about, places=True)
    if not found.processes:
        differ = "; ".join(finding.what for finding in check_versions(found.versions) if not finding.ok)
        raise PlanRefusedError(f"other versions: {differ}", then="name a Python of the cluster's own: --python PYTHON")
    known = {str(one["address"]): one for one in found.workers}
    judged = judge_affinity([{**known[str(one["address"])], **one} for one in found.places], cpus)
    for line in table_lines(TextTable(COLUMNS, [_row(one) for one in judged])):
        say(line)
    wrong = [one for one in judged if one.why]
    if wrong or not judged:
        raise PlanRefusedError(
            f"{len(wrong)} of {len(judged)} workers have the wrong CPUs or GPUs" if judged else "there is no worker",
            then="check how the launcher binds them" if judged else "",
        )


def _about(scheduler_file: Path) -> dict[str, Any]:
    """What gpubench wrote into the files of its own clusters; empty for other clusters; raises UsageError."""
    address_in(scheduler_file)
    plain = json.loads(scheduler_file.read_text(encoding="utf-8"))
    about = plain.get("gpubench")
    return dict(about) if isinstance(about, dict) else {}


def _look(asked: InspectOptions, about: dict[str, Any], *, places: bool) -> InspectRecord:
    python, env = _python(asked, about)
    address = address_in(asked.scheduler_file)
    spec = InspectSpec(INSPECT_SPEC, address, CONNECT_S, places, ANSWER_S)
    with temporary_directory("inspect") as temporary:
        found = SubprocessClient(temporary, python, env).ask(spec, 3 * CONNECT_S + ANSWER_S)
    if found.unreachable:
        raise MissingToolError(
            f"no Dask scheduler answers at {address} within {CONNECT_S:g} s ({found.unreachable})",
            then="is it running, and reachable from here?",
        )
    return found


def _python(asked: InspectOptions, about: dict[str, Any]) -> tuple[Path, dict[str, str]]:
    variables = {str(name): str(value) for name, value in dict(about.get("variables", {})).items()}
    if asked.python is not None:
        return named_python(asked.python), variables
    if about.get("python"):
        return Path(str(about["python"])), variables
    site = load_site(asked.site)
    spec = default_variant(site, None, then="--python PYTHON").ucx
    python, env = image_python(site, spec)
    return python, {**env, **variables}


def _planned(about: dict[str, Any]) -> int | None:
    """The planned number of workers of our own cluster; None for other clusters, and if it can't be found out here."""
    try:
        return Cluster.open(Path(str(about["directory"]))).planned
    except (KeyError, GpubenchError):
        return None


def _row(one: WorkerAffinity) -> tuple[str, ...]:
    verdict = f"FAIL: {one.why}" if one.why else f"pass{f' ({one.note})' if one.note else ''}"
    return (one.name, one.host, one.allowed, one.expected, one.numa, one.gpu, verdict)
