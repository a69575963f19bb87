"""A job of a standing cluster: a job script of the site whose one block is the cluster's lifetime, or a Job of pods."""

from collections.abc import Mapping
from typing import Any

from gpubench.errors import PlanRefusedError
from gpubench.launchers import LAUNCHERS
from gpubench.model.cluster import TLS_FOLDER, ClusterJob, ClusterRecord
from gpubench.model.quantities import format_seconds
from gpubench.model.site import Site
from gpubench.node.spec import Deadlines, RunSpec
from gpubench.node.spec.cluster import SCHEDULER_FILE
from gpubench.render.jinja import environment
from gpubench.render.job import TEMPLATE, in_any_run_spec, job_file, make_ready, of_the_site, place_of, release
from gpubench.render.kubernetes_objects import container, label, measuring, of_any_job
from gpubench.render.node_half import NODE_HALF
from gpubench.render.shell import command_line
from gpubench.runtimes import RUNTIMES

SPEC = "specs/nodes.json"
CLIENT_FILE = "client.sh"
WITH_PYTHON = ("venv", "conda")
"""Kinds of images whose Python a client can start by its path."""


def render_cluster_job(
    record: ClusterRecord, job: ClusterJob, templates: Mapping[str, str], node_half: str
) -> dict[str, bytes]:
    """Every file of one job by its path below the cluster's directory.

    Args:
        node_half: hash of the packed node half.

    Raises:
        PlanRefusedError: the site's pods share no directory.
    """
    site = _site(record, job)
    check_shared(site)
    name, folder = job_file(site.scheduler, templates), f"jobs/{job.job}"
    facts = {
        **of_the_site(site),
        "job": job.job,
        "nodes": job.nodes,
        "runs": 0,
        "about": format_seconds(job.limit_s),
        "limit_s": int(job.limit_s),
        "gpubench": record.gpubench,
        "skips_runs": False,
        **(_objects(record, job) if in_pods(site) else _script(record, job)),
    }
    text = environment(templates).get_template(f"{site.scheduler}/{name}{TEMPLATE}").render(facts)
    return {f"{folder}/{name}": text.encode(), f"{folder}/{SPEC}": _nodes_spec(record, job, node_half).dump().encode()}


def _script(record: ClusterRecord, job: ClusterJob) -> dict[str, Any]:
    site, runtime = record.site, RUNTIMES[record.site.runtime]
    command = runtime.command(record.image, [f"../../{NODE_HALF}", *_words(SPEC, job)])
    return {
        "blocks": [{"number": 1, "seconds": int(site.limits.start), "conductor": [], "commands": [(["run"], command)]}],
        "images": make_ready(site.runtime, [record.image]),
        "in_image": runtime.prefix(place_of(site, site.device)),
    }


def _words(spec: str, job: ClusterJob) -> list[str]:
    return ["cluster", "--spec", spec, "--first-rank", str(job.first_rank)]


def _objects(record: ClusterRecord, job: ClusterJob) -> dict[str, Any]:
    """What only object files need. The claim is mounted under the path that it has where jobs are submitted.

    So one path names the scheduler's file, or a key, in every pod and on that machine.
    """
    site, directory = record.site, record.directory
    arguments = [f"{directory}/{NODE_HALF}", *_words(f"{directory}/jobs/{job.job}/{SPEC}", job)]
    arguments += ["--lasts", str(int(job.limit_s))]
    return {
        **of_any_job(site, job.limit_s),
        "name": label(f"{record.name}-{job.job}", {"cluster": record.identity, "job": job.job}),
        "campaign": directory,
        "containers": [container(site, "cluster", record.image, arguments, measuring(site))],
        "outputs": claimed(record),
        "standing": True,
        "starts_pods": False,
    }


def claimed(record: ClusterRecord) -> str:
    """Where the folder of the claim is: two above the cluster's directory, ``OUTPUTS/clusters/NAME``."""
    return record.directory.rpartition("/")[0].rpartition("/")[0]


def _site(record: ClusterRecord, job: ClusterJob) -> Site:
    """As the job sees it: a further one has no scheduler, and leaves it no room."""
    return record.site if job.leads else record.site.with_layout(scheduler="rank0")


def in_pods(site: Site) -> bool:
    """Whether the jobs of a site are pods, which see nothing but the site's claim."""
    return LAUNCHERS[site.launcher].brings_files


def check_shared(site: Site) -> None:
    """Raise PlanRefusedError where the jobs of a site are pods without a directory that all of them see."""
    if in_pods(site) and not site.kubernetes.claim:
        raise PlanRefusedError(
            f"site {site.name} has no kubernetes.claim, which the nodes of a standing cluster need",
            then="name a ReadWriteMany claim whose kubernetes.claim_folder is paths.outputs on this machine",
        )


def variables(record: ClusterRecord) -> dict[str, str]:
    """What image, site, known issues and variant set in every process, and where keys are; a client wants the same."""
    environment = {**record.image.env, **record.site.env, **record.workarounds, **record.variant.env}
    if record.protocol == "tls":  # https://distributed.dask.org/en/stable/tls.html
        before, folder = "DASK_DISTRIBUTED__COMM__TLS__", f"{record.directory}/{TLS_FOLDER}"
        environment |= {f"{before}CA_FILE": f"{folder}/ca.pem", "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}
        for role, name in (("SCHEDULER", "cluster"), ("WORKER", "cluster"), ("CLIENT", "client")):
            environment |= {
                f"{before}{role}__CERT": f"{folder}/{name}.pem",
                f"{before}{role}__KEY": f"{folder}/{name}.key",
            }
    return environment


def client_lines(record: ClusterRecord) -> list[str]:
    """The lines of Python that join the cluster, under the variables of ``client.sh``."""
    return [
        "from dask.distributed import Client",
        f"client = Client(scheduler_file={record.directory + '/' + SCHEDULER_FILE!r})",
        "print(client)",
    ]


def client_script(record: ClusterRecord) -> bytes:
    """``client.sh``: what a shell sources before it starts a script that joins."""
    lines = [f"# . {CLIENT_FILE}: what a client of cluster {record.name} needs"]
    lines += [f"export {name}={command_line([value])}" for name, value in sorted(variables(record).items())]
    python = client_python(record)
    if python:
        lines.append(f"export PATH={command_line([python.rpartition('/')[0]])}:$PATH")
    return ("\n".join(lines) + "\n").encode()


def client_python(record: ClusterRecord) -> str:
    """The cluster's own Python; empty where it is inside a container."""
    return record.image.python if record.image.kind in WITH_PYTHON else ""


def planned_ucx(record: ClusterRecord) -> str:
    """The version that scheduler and workers must have loaded; ``none``: no UCX."""
    return release(record.image.ucx_version) if record.protocol == "ucx" else "none"


def _nodes_spec(record: ClusterRecord, job: ClusterJob, node_half: str) -> RunSpec:
    """What every node's processes are like: a run without workloads."""
    site, image = _site(record, job), record.image
    # Pods of a job don't begin together: one may wait for a node, or for its image.
    start_s = site.limits.start + (site.kubernetes.start if in_pods(site) else 0.0)
    return RunSpec(
        **in_any_run_spec(site, image, record.variant),
        campaign=record.name,
        job=job.job,
        block=1,
        run=record.identity,
        order=0,
        protocol=record.protocol,
        device=site.device,
        nodes=job.nodes,
        workers_per_node=site.layout.workers,
        threads_per_worker=site.layout.threads,
        memory_limit=record.memory_limit,
        env=variables(record),
        workloads=[],
        deadlines=Deadlines(start_s=start_s, stop_s=site.limits.stop, silence_s=site.limits.silence),
        block_s=site.limits.start,
        node_half=node_half,
    )
